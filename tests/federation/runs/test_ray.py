"""Runs on Ray are the local engine's, whatever dies on the way, and nothing is left behind."""

import contextlib
import functools
import importlib.util
import json
import os
import pickle
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from commands import assert_refused, run
from federation.made_up import table
from federation.ray_nodes import Cluster, asked
from federation.small import in_a_worker_only, small_federation, two_layers
from federation.tiny import tiny_audit
from processes import is_alive, needs_proc, processes, told, until

from fedaccord._checks import cores
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.runs import ray as ray_engine
from fedaccord.federation.runs.execute import RunError, package_versions
from fedaccord.federation.runs.ray import RayEngine
from fedaccord.federation.runs.store import Run, RunStore
from fedaccord.federation.runs.worker import start_process

HERE = os.getpid()
QUICK = {"rounds": 6, "batch_size": 4, "evaluate_every": 2}
LEVELS = (1, 0.5, 0.1)
# Each algorithm with everybody in full, and with each of three clients cut to two levels.
RUNS_A_TRIAL = 2 * (1 + 3 * 2)


def audit(model=two_layers, *, trials=2, **options):
    algorithms = [kind(**QUICK, learning_rate=0.05) for kind in (FedAvg, MwFed)]
    federation = small_federation(model=model)
    return defection_curves(federation, algorithms, levels=LEVELS, trials=trials, **options)


def on(address, engine=RayEngine):
    return functools.partial(engine, address=address)


def every_number(path):
    """All that a file keeps of the runs, but for when they were made and how long they took."""
    with contextlib.closing(sqlite3.connect(path)) as direct:
        kept = direct.execute(
            "SELECT key, source, algorithm, contributions, seed, trial, accuracies, satisfied,"
            ' first_passage, samples, "unique", diverged, digest, history_digest, versions'
            " FROM runs ORDER BY key"
        ).fetchall()
        rows = direct.execute(
            'SELECT key, round, client, h.samples, h."unique", loss, accuracy'
            " FROM history AS h JOIN runs ON runs.id = h.run ORDER BY key, round, client"
        ).fetchall()
    return kept, rows


def leaving_a_mark(folder, then=lambda: None):
    """What leaves a file named for its node and its process whenever a model is made."""

    def act():
        stamp = time.monotonic_ns()
        (folder / f"on-{os.getppid()}-{os.getpid()}-{stamp}").touch()
        then()

    return act


def marks(folder, node="*"):
    return sorted(file.name.split("-")[1:3] for file in folder.glob(f"on-{node}-*"))


def one_run(trial=0, **more):
    return Run("any", FedAvg(**{**QUICK, **more}), (30, 24, 40), base_seed=5, trial=trial)


def made(engine, *runs):
    with engine:
        return {one.run.key: one.history for one in engine.finished(runs)}


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as running:
        yield running


@pytest.mark.slow
@needs_proc
def test_a_node_that_joins_is_used_and_one_that_is_killed_loses_nothing(cluster, tmp_path):
    go = tmp_path / "go"

    def wait():
        until(go.exists, "the test goes on")

    model = in_a_worker_only(leaving_a_mark(tmp_path, wait))
    node = []

    def kill_the_node_in_the_middle_of_a_run():
        try:
            until(lambda: marks(tmp_path, cluster.head.raylet), "a run is on the head")
            node.append(cluster.add())
            # It stays in its run until it is told to go on, and that is after it has been killed.
            node.append(until(lambda: marks(tmp_path, node[0].raylet), "the new node has a run"))
            os.kill(node[0].raylet, signal.SIGKILL)
            (tmp_path / "killed").touch()
        finally:
            go.touch()

    killer = threading.Thread(target=kill_the_node_in_the_middle_of_a_run)
    killer.start()
    spread = audit(model, engine=on(cluster.address), store=tmp_path / "ray.db")
    killer.join()
    assert (tmp_path / "killed").exists()
    [[_, worker]] = node[1]
    assert until(lambda: not is_alive(int(worker)), "the worker is gone with its node")
    alone = audit(model, store=tmp_path / "local.db")
    assert spread.reused == alone.reused == 0
    assert table(spread) == table(alone)
    kept, rows = every_number(tmp_path / "ray.db")
    assert len(kept) == 2 * RUNS_A_TRIAL
    assert len(rows) == len(kept) * 6 * 3
    assert (kept, rows) == every_number(tmp_path / "local.db")
    # It is a table about something.
    assert 0 < spread.curve("FedAvg").at(0.1).at_end.random.p < 1


def audit_through(client, model, folder, **options):
    """Audit through Ray's client server, which now and then does not start, before any run."""
    for _ in range(2):
        try:
            return audit(model, engine=on(client), **options)
        except RunError as error:
            if "has not answered" not in str(error) or marks(folder):
                raise
    return pytest.skip("Ray's client server did not start, twice")


@pytest.mark.slow
def test_an_audit_goes_on_where_another_engine_stopped_though_a_worker_is_killed(cluster, tmp_path):
    def die_the_first_time():
        if len(marks(tmp_path)) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    model = in_a_worker_only(leaving_a_mark(tmp_path, die_the_first_time))
    path = tmp_path / "runs.db"
    audit(model, trials=1, store=path)
    client = f"ray://127.0.0.1:{cluster.client_port}"
    more = audit_through(client, model, tmp_path, store=path, workers=1)
    assert more.reused == RUNS_A_TRIAL
    # One worker died and another made the runs.
    assert len({worker for _, worker in marks(tmp_path)}) >= 2
    again = audit(model, store=path)
    assert again.reused == 2 * RUNS_A_TRIAL
    uninterrupted = audit(model, store=tmp_path / "another.db")
    assert table(more) == table(again) == table(uninterrupted)
    assert every_number(path) == every_number(tmp_path / "another.db")


class Counted:
    """A federation that leaves a mark whenever it is loaded."""

    def __init__(self, federation, folder):
        self.federation, self.folder = federation, folder

    def __setstate__(self, state):
        vars(self).update(state)
        (self.folder / f"loaded-{os.getpid()}-{time.monotonic_ns()}").touch()

    def deal(self, trial):
        assert torch.get_num_threads() == 1
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
        (self.folder / f"dealt-{os.getpid()}-{trial}").touch()
        return self.federation


@pytest.mark.slow
def test_workers_have_torchs_settings_and_one_thread_and_load_the_source_once(cluster, tmp_path):
    def as_torch_is_set():
        return torch.nn.Linear(4, 3)

    runs = [one_run(trial) for trial in range(5)]
    torch.set_default_dtype(torch.float64)
    try:
        federation = small_federation(model=as_torch_is_set)
        there = made(RayEngine(Counted(federation, tmp_path), address=cluster.address), *runs)
    finally:
        torch.set_default_dtype(torch.float32)
    assert there.keys() == {run.key for run in runs}
    dealt = [file.name.split("-")[1] for file in tmp_path.glob("dealt-*")]
    loaded = [file.name.split("-")[1] for file in tmp_path.glob("loaded-*")]
    assert len(dealt) == len(runs)
    assert sorted(loaded) == sorted(set(dealt))


@pytest.mark.slow
@needs_proc
def test_a_bug_is_told_and_not_tried_again(cluster, tmp_path):
    def broken():
        raise KeyError("no such layer")

    model = in_a_worker_only(leaving_a_mark(tmp_path, broken))
    words = r"run of FedAvg in trial 4 with contributions .* failed: KeyError: 'no such layer'"
    with pytest.raises(RunError, match=words) as caught:
        made(RayEngine(small_federation(model=model), address=cluster.address), one_run(4))
    assert "in broken" in "".join(caught.value.__notes__)
    assert len(marks(tmp_path)) == 1
    # Nor is what was asked for and cannot be.
    federation = small_federation()
    wrong = Run("any", FedAvg(**QUICK), (31, 24, 40), base_seed=5, trial=0)
    with pytest.raises(InputError, match="client 0"):
        made(RayEngine(federation, address=cluster.address), wrong)


@pytest.mark.slow
@needs_proc
def test_a_run_that_always_ends_its_worker_is_given_up_in_a_sentence(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(ray_engine, "PAUSE", 0.1)

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    model = in_a_worker_only(leaving_a_mark(tmp_path, die))
    words = (
        "Ray lost the run of FedAvg in trial 3 .* 4 times, at last because its worker process "
        "died: .*fewer workers"
    )
    with pytest.raises(RunError, match=words):
        made(RayEngine(small_federation(model=model), address=cluster.address), one_run(3))
    workers = [worker for _, worker in marks(tmp_path)]
    assert len(workers) == len(set(workers)) == 4


@pytest.mark.slow
def test_a_node_with_other_versions_is_refused_by_name(cluster, monkeypatch):
    other = package_versions().replace("torch ", "torch 9.")
    monkeypatch.setattr(ray_engine, "package_versions", lambda: other)
    with pytest.raises(RunError) as caught:
        made(RayEngine(small_federation(), address=cluster.address), one_run())
    assert f"the Ray node {socket.gethostname()} (" in str(caught.value)
    assert f"has {package_versions()}, and this process has {other}: " in str(caught.value)


def test_what_a_node_cannot_import_is_told(monkeypatch):
    monkeypatch.setattr(ray_engine, "_load_job", lambda job: (None, package_versions()))
    run = pickle.dumps(one_run()).replace(
        b"fedaccord.federation.runs.store", b"fedaccord.federation.runs.shops"
    )
    result, _ = pickle.loads(ray_engine.attempt("job", run, node="r2 (10.0.0.2)"))
    words = (
        r"Ray node r2 \(10.0.0.2\) cannot load the algorithm \(ModuleNotFoundError: .*shops.*ins"
    )
    with pytest.raises(RunError, match=words):
        raise result


AUDIT = """
import os, pathlib, sys
sys.path[:0] = {path!r}
from federation.runs.test_ray import audit, leaving_a_mark, on
folder, here = pathlib.Path(sys.argv[1]), os.getpid()
mark = leaving_a_mark(folder)

def model():
    from federation.small import two_layers
    os.getpid() == here or mark()
    return two_layers()

# No guard around what follows, as in many a user's script, and a model that has no name.
audit(lambda: model(), trials=4000, engine=on(sys.argv[2] or None), store=folder / "runs.db")
"""


def stored(path):
    if not path.exists() or not path.stat().st_size:
        return 0
    with RunStore(path) as store:
        return len(store)


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_audit_that_is_stopped_keeps_its_runs_and_leaves_nothing_on_the_cluster(
    ending, cluster, tmp_path
):
    path = tmp_path / "runs.db"
    command = [sys.executable, "-c", AUDIT.format(path=sys.path), str(tmp_path), cluster.address]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        until(lambda: stored(path) >= 10, "ten runs are made")
        # A terminal sends Ctrl-C to all the processes of its group.
        (os.killpg if ending == signal.SIGINT else os.kill)(process.pid, ending)
        process.wait(240)
        errors = process.stderr.read()
    workers = {int(worker) for _, worker in marks(tmp_path)}
    until(lambda: not any(map(is_alive, workers)), "the cluster's workers are gone")
    # One traceback, that of the interrupted script itself: Ray says nothing.
    assert errors.count("Traceback") == (ending == signal.SIGINT), errors
    assert ("KeyboardInterrupt" in errors) == (ending == signal.SIGINT)
    # The cluster is as it was.
    assert is_alive(cluster.head.raylet)
    safe = stored(path)
    resumed = audit(store=path, trials=1)
    assert resumed.reused == min(RUNS_A_TRIAL, safe)


@pytest.mark.slow
@needs_proc
def test_a_ray_of_ones_own_is_closed_to_strangers_and_gone_when_all_is_killed(tmp_path):
    command = [sys.executable, "-c", AUDIT.format(path=sys.path), str(tmp_path), ""]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            raylet, worker = map(int, until(lambda: marks(tmp_path), "a run is made")[0])
            line = told(raylet)
            folder = Path(re.search(rb"/tmp/fedaccord-ray-[0-9a-z_]+", line)[0].decode())
            assert folder.stat().st_mode & 0o777 == 0o700
            assert folder.stat().st_uid == os.getuid()
            address = re.search(rb"--gcs-address=([^\0 ]+)", line)[1].decode()
            strange = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH_")}
            refused = asked(address, strange)
            assert "InvalidAuthToken" in refused.stderr
            known = dict(
                one.split("=", 1) for one in told(raylet, "environ").decode().split("\0")[:-1]
            )
            assert asked(address, known).stdout == "1\n"
            driver = processes()[raylet].parent
            assert processes()[driver].parent == process.pid
            os.kill(driver, signal.SIGKILL)
        finally:
            process.kill()
    until(lambda: not folder.exists(), "the files are gone")
    until(lambda: not any(map(is_alive, (driver, raylet, worker))), "the processes are gone")


def fail_later(tasks, results_to):
    """Do as a driver whose Ray is found, and fails with the first run under way."""
    pickle.load(tasks)
    with os.fdopen(results_to, "wb") as results:
        pickle.dump(("room", 1), results)
        results.flush()
        pickle.load(tasks)
        pickle.dump(("refused", "its store is full"), results)


def test_what_fails_once_ray_is_found_leaves_the_finished_runs_safe(tmp_path, monkeypatch):
    def begin(server, **options):
        return start_process("federation.runs.test_ray:fail_later", **options)

    monkeypatch.setattr(ray_engine, "start_process", begin)
    with pytest.raises(RunError, match=r"Ray here failed: its store is full.* safe in .*runs\.db"):
        audit(trials=1, engine=RayEngine, store=tmp_path / "runs.db")


@pytest.mark.slow
@needs_proc
def test_the_loss_of_the_head_is_told(tmp_path, monkeypatch):
    # Ray waits for it to come back, by itself for a minute.
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "3")
    model = in_a_worker_only(leaving_a_mark(tmp_path, lambda: time.sleep(0.5)))
    with Cluster() as doomed:
        address = doomed.address

        def stop():
            until(lambda: len(marks(tmp_path)) > 2, "runs are made")
            doomed.stop()

        stopper = threading.Thread(target=stop)
        stopper.start()
        try:
            with pytest.raises(RunError, match=f"Ray at {address} was lost: .* safe in .*runs.db"):
                audit(model, trials=4000, engine=on(address), store=tmp_path / "runs.db")
        finally:
            stopper.join()
    assert stored(tmp_path / "runs.db")


def command(folder, *arguments):
    """Run the command in a process of its own, as a user would."""
    done = subprocess.run(
        [sys.executable, "-m", "fedaccord", "audit", "tiny.toml", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@needs_proc
def test_the_command_starts_a_ray_of_its_own_and_leaves_nothing_of_it(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny_audit(trials=2))

    def seen():
        rays = {p for p, one in processes().items() if one.name in ("raylet", "gcs_server")}
        return rays, set(Path("/tmp").glob("fedaccord-ray-*"))

    before = seen()
    options = ("--engine", "ray", "--workers", 1, "--json", "--results", "ray.sqlite")
    code, out, errors = command(tmp_path, *options)
    assert (code, errors) == (
        0,
        "fedaccord: 12 runs to make.\nfedaccord: 12 runs are stored in ray.sqlite.\n",
    )
    after = seen()
    # Others may start and end theirs at the same time.
    mine = [pid for pid in after[0] - before[0] if b"fedaccord-ray-" in told(pid)]
    assert not mine
    assert not [folder for folder in after[1] - before[1] if folder.is_dir() and not in_use(folder)]
    code, here, _ = command(tmp_path, "--workers", 1, "--json")
    timings = {"seconds": 0, "run_seconds": 0}
    assert json.loads(out) | timings == json.loads(here) | timings


def in_use(folder):
    return any(str(folder).encode() in told(pid) for pid in processes())


def test_an_address_where_nothing_listens_is_refused_soon():
    with socket.socket() as taken:
        # Bound and not listening: nobody else can answer there.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for form in (address, f"ray://{address}"):
            with pytest.raises(
                InputError, match=rf"nothing answers at {form} \(.*refused.*ray sta"
            ):
                RayEngine(small_federation(), address=form)


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost", "local", "http://a:1", "a:b", ":6379", "a:70000", "a b:1", "a:1\n"),
        # No name of a machine.
        *("..:1", "ray://a..b:1", "a" * 64 + ":1"),
    ],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(InputError, match="must be auto, host:port or ray://host:port; got"):
        RayEngine(small_federation(), address=address)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--address", "auto"), ("--address", "--engine ray")),
        (("--engine", "local", "--address", "a:1"), ("--address", "--engine ray")),
        (("--engine", "flower", "--address", "a:1"), ("--address", "--engine ray")),
        (("--engine", "ray", "--address", "a"), ("host:port", "'a'")),
        (("--engine", "ray", "--address", "auto", "--workers", 0), ("workers", "1 or more")),
        (("--engine", "ray", "--workers", 10**6), ("workers", "cores")),
    ],
)
def test_the_command_refuses_what_makes_no_sense(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(run("audit", *options), *words)
    assert not list(tmp_path.iterdir())


def test_auto_is_the_address_that_the_environment_has(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(InputError, match="got 'nowhere'"):
        RayEngine(small_federation(), address="auto")


@pytest.mark.slow
@needs_proc
def test_something_that_listens_and_is_not_ray_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(ray_engine, "CONNECT", 5.0)
    monkeypatch.setattr(ray_engine, "LEAVE", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        engine = RayEngine(small_federation(), address=address)
        with pytest.raises(RunError, match=f"Ray at {address} has not answered in 5 seconds"):
            made(engine, one_run())
    children = [pid for pid, one in processes().items() if one.parent == HERE]
    assert not [pid for pid in children if b"ray_driver" in told(pid)]


def test_nothing_is_started_before_there_is_a_run(monkeypatch):
    monkeypatch.setattr(ray_engine, "_Driver", None)
    assert made(RayEngine(small_federation())) == {}


def test_a_federation_that_cannot_be_sent_gets_a_sentence():
    lock = threading.Lock()

    def model():
        with lock:
            return two_layers()

    with pytest.raises(RunError, match=r"cannot be sent to worker processes \(.*lock.*\): use"):
        made(RayEngine(small_federation(model=model)), one_run())


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    for address in (None, "auto"):
        with pytest.raises(InputError, match="workers must be a whole number of 1 or more"):
            RayEngine(small_federation(), workers=workers, address=address)


def test_only_on_this_machine_are_workers_limited_by_its_cores(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    many = 100 * cores()
    with pytest.raises(InputError, match=f"this machine has {cores()} cores"):
        RayEngine(small_federation(), workers=many)
    RayEngine(small_federation(), workers=many, address="auto")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs ray.*'fedaccord\[ray\]'"):
        RayEngine(small_federation())
