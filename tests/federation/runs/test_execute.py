"""Runs in this process and in others are the same runs, and no process is left behind."""

import dataclasses
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import ClassVar

import numpy as np
import pytest
from federation.small import in_a_worker_only, small_federation, two_layers
from processes import is_alive, until

from fedaccord._checks import cores
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.runs import execute, processes, worker
from fedaccord.federation.runs.execute import Executor, LocalEngine, RunError
from fedaccord.federation.runs.store import Run, RunStore

HERE = os.getpid()
QUICK = {"rounds": 6, "batch_size": 4, "evaluate_every": 2}

needs_two_cores = pytest.mark.skipif(cores() < 2, reason="two workers need two cores")


def run(trial=0, algorithm=None, contributions=(30, 24, 40)):
    return Run("any", algorithm or FedAvg(**QUICK), contributions, base_seed=5, trial=trial)


def finished(federation, runs, workers):
    with LocalEngine(federation, workers=workers) as engine:
        return {one.run.key: one.history for one in engine.finished(runs)}


@needs_two_cores
def test_two_workers_make_the_same_runs_as_none_bit_for_bit():
    runs = [
        run(trial, algorithm(**QUICK), contributions)
        for trial in range(2)
        for algorithm in (FedAvg, MwFed)
        for contributions in ((30, 24, 40), (8, 24, 40))
    ]

    def chatty():
        os.write(1, b"a model that prints, as users' do\n")
        return two_layers()

    federation = small_federation(model=chatty)
    alone = finished(federation, runs, workers=1)
    shared = finished(federation, runs, workers=2)
    assert list(alone) == [one.key for one in runs]
    assert shared.keys() == alone.keys()
    for key, history in alone.items():
        other = shared[key]
        for name in ("samples", "unique", "loss", "accuracy"):
            assert np.array_equal(getattr(history, name), getattr(other, name), equal_nan=True)
        assert history.seed == other.seed
        assert not history.weights


def test_a_run_depends_on_what_identifies_it_and_nothing_else():
    federation = small_federation()
    runs = [run(0), run(1), run(0, contributions=(8, 24, 40))]
    together = finished(federation, runs, workers=1)
    for one in runs:
        alone = finished(federation, [one], workers=1)[one.key]
        assert np.array_equal(alone.loss, together[one.key].loss)
    losses = {history.loss.tobytes() for history in together.values()}
    assert len(losses) == len(runs)


def test_runs_are_taken_one_by_one_so_that_later_ones_can_be_dropped():
    taken = []

    def runs():
        for trial in range(100):
            taken.append(trial)
            yield run(trial)

    with LocalEngine(small_federation()) as engine:
        results = engine.finished(runs())
        next(results)
        assert taken == [0]
        next(results)
        assert taken == [0, 1]
        results.close()


@needs_two_cores
@pytest.mark.parametrize("kind", [KeyError, SystemExit])
def test_a_failure_in_a_users_model_names_the_run_wherever_it_happens(kind):
    calls = []

    def broken():
        # The federation tries the model three times when it is made; it fails later.
        calls.append(1)
        if len(calls) > 3 or os.getpid() != HERE:
            raise kind("no such layer")
        return two_layers()

    federation = small_federation(model=broken)
    words = (
        r"run of FedAvg in trial 4 with contributions 30, 24, 40 failed: "
        f"{kind.__name__}: '?no such layer"
    )
    for workers in (1, 2):
        with pytest.raises(RunError, match=words) as caught:
            finished(federation, [run(4)], workers)
        # Where in the model, for whoever has to find it.
        notes = "".join(getattr(caught.value, "__notes__", [])) or repr(caught.value.__cause__)
        assert kind.__name__ in notes


@needs_two_cores
def test_a_worker_that_is_killed_gets_a_sentence_that_names_its_run():
    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    federation = small_federation(model=in_a_worker_only(kill))
    words = "worker process was killed by signal 9 in the run of FedAvg in trial 3 .* fewer workers"
    with pytest.raises(RunError, match=words):
        finished(federation, [run(3)], workers=2)


@needs_two_cores
def test_bad_input_is_told_as_such_from_a_worker_too():
    with pytest.raises(InputError, match="client 0"):
        finished(small_federation(), [run(contributions=(31, 24, 40))], workers=2)


@needs_two_cores
def test_a_federation_that_cannot_be_sent_gets_a_sentence():
    lock = threading.Lock()

    def factory():
        with lock:
            return two_layers()

    words = r"cannot be sent to worker processes \(.*lock.*\): use the local engine with one worker"
    with pytest.raises(RunError, match=words):
        finished(small_federation(model=factory), [run()], workers=2)


@needs_two_cores
@pytest.mark.parametrize("what", ["federation", "algorithm"])
def test_what_cannot_be_loaded_there_gets_a_sentence(what, tmp_path, monkeypatch):
    module = tmp_path / f"vanishing_{what}.py"
    module.write_text(
        "from federation.small import two_layers\n"
        "from fedaccord.federation.algorithms.base import FedAvg\n\n"
        "def model():\n    return two_layers()\n\nclass Own(FedAvg):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    vanishing = importlib.import_module(module.stem)
    is_model = what == "federation"
    federation = small_federation(model=vanishing.model if is_model else two_layers)
    runs = [run(n, None if is_model else vanishing.Own(**QUICK)) for n in range(3)]
    module.unlink()
    words = rf"cannot load the {what} .*vanishing_{what}.*: use the local engine with one"
    with pytest.raises(RunError, match=words):
        finished(federation, runs, workers=2)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(InputError, match="workers must be a whole number of 1 or more"):
        LocalEngine(small_federation(), workers=workers)


def test_more_workers_than_cores_are_refused_with_the_remedy(monkeypatch):
    with pytest.raises(
        InputError, match=f"this machine has {cores()} cores: use {cores()} or fewer"
    ):
        LocalEngine(small_federation(), workers=cores() + 1)
    # Cores that this process may not use do not count.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    with pytest.raises(InputError, match="use 1 or fewer"):
        LocalEngine(small_federation(), workers=2)


def shouting(deal, run):
    """A way of its own to make runs: nobody learns anything, all losses are 7."""
    history = execute.make_run(deal, run)
    return dataclasses.replace(history, loss=np.full_like(history.loss, 7.0))


def serve_shouting(tasks, results_to):
    assert os.environ["LOUD"] == "very"
    worker.serve(tasks, results_to, make=shouting)


class ShoutingEngine(LocalEngine):
    server = "federation.runs.test_execute:serve_shouting"
    environment: ClassVar = {**processes.ONE_THREAD, "LOUD": "very"}
    apart = True


def test_an_engine_of_another_kind_needs_only_what_its_processes_run():
    with ShoutingEngine(small_federation()) as engine:
        assert [one.history.loss.min() for one in engine.finished([run(0), run(1)])] == [7, 7]

    def broken():
        raise KeyError("no such layer")

    federation = small_federation(model=in_a_worker_only(broken))
    with (
        ShoutingEngine(federation) as engine,
        pytest.raises(RunError, match=r"run of FedAvg in trial 0 .* KeyError"),
    ):
        list(engine.finished([run()]))


WITHOUT_FLOWER = """
import sys

class Missing:
    def find_spec(self, name, *rest):
        if name.startswith("flwr"):
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Missing())
from fedaccord.federation.runs.execute import ENGINES
print(*ENGINES, *({"ray", "flwr"} & set(sys.modules)))
ENGINES["flower"](None, workers=1)
"""


def test_engines_are_known_by_name_before_what_they_need_is_there():
    command = [sys.executable, "-c", WITHOUT_FLOWER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["local", "flower", "ray"]
    assert "this needs flwr; install it with: pip install 'fedaccord[flower]'" in done.stderr


def test_every_error_of_a_worker_can_be_sent_back():
    for error in (RunError("a"), InputError("b"), FedaccordError("c")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_processs_end_is_told_by_signal_or_status():
    one = worker.Worker(None, None)
    assert "killed by signal 9" in str(one._explain_loss(run(), -9))
    assert "ended with status 1" in str(one._explain_loss(run(), 1))


PARENT = """
import sys, time
from fedaccord.federation.runs.processes import Process

workers = [Process("slow:serve", at_once=True) for _ in range(2)]
sys.path.insert(0, sys.argv[1])
for worker in workers:
    worker.greet()
    worker.tasks.flush()
print(*(worker._process.pid for worker in workers), flush=True)
time.sleep(600)
"""
# A module that takes long to import, as torch does, without a look at the pipe.
SLOW = """
import os, pathlib, time
pathlib.Path(__file__).with_name(f"{os.getpid()} is importing").touch()
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends them at once")
def test_workers_end_at_once_when_their_process_is_killed(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    until(lambda: len(list(tmp_path.glob("* is importing"))) == 2, "both are importing")
    parent.kill()
    parent.communicate()
    until(lambda: not any(map(is_alive, workers)), "both workers are gone", seconds=5)


def test_a_worker_whose_process_is_gone_before_it_begins_ends_without_a_word():
    done = subprocess.run(
        [sys.executable, "-c", processes.BOOT], stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("place", ["before it is stored", "after it is stored"])
def test_an_interrupt_while_a_run_is_stored_loses_none_of_the_finished_runs(monkeypatch, place):
    """Ctrl-C mostly comes while the engine waits, but it may come at any moment."""
    runs = [run(trial) for trial in range(3)]
    made = finished(small_federation(), runs, workers=1)

    class Ready:
        """Has all its runs finished at once."""

        def submit(self, wanted):
            future = Future()
            future.set_result(made[wanted.key])
            return future

        def finished(self, wanted):
            return execute.spread(iter(wanted), self.submit, room=lambda: 3)

    def put(store, *given, plain=RunStore.put):
        monkeypatch.undo()
        if place == "after it is stored":
            plain(store, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunStore, "put", put)
    with RunStore() as store:
        with pytest.raises(KeyboardInterrupt):
            Executor(Ready(), store).execute(runs)
        assert all(store.get(one) is not None for one in runs)


def test_an_interrupt_while_a_run_is_stored_keeps_it_though_others_failed(monkeypatch):
    runs = [run(trial) for trial in range(3)]
    made = finished(small_federation(), runs[:1], workers=1)

    class Failing:
        """Has one run finished at once; the others fail."""

        def submit(self, wanted):
            future = Future()
            if wanted.key in made:
                future.set_result(made[wanted.key])
            else:
                future.set_exception(RunError("no such layer"))
            return future

        def finished(self, wanted):
            return execute.spread(iter(wanted), self.submit, room=lambda: 3)

    def put(store, *given):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(RunStore, "put", put)
    with RunStore() as store:
        with pytest.raises(KeyboardInterrupt):
            Executor(Failing(), store).execute(runs)
        assert store.get(runs[0]) is not None
