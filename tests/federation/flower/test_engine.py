"""An audit in Flower's simulation gives the local engine's numbers, and leaves nothing behind."""

import contextlib
import functools
import json
import os
import re
import sqlite3
import subprocess
import sys
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import torch
from federation.flower.in_process import InProcessGrid, Node
from federation.flower.simulated import (
    CHAPTER,
    Chapters,
    Unstartable,
    digits,
    forgetful,
    lonely_run,
    of_another_seed,
)
from federation.ray_nodes import asked
from federation.small import small_federation, two_layers
from flwr.app import Error, Message
from numpy.testing import assert_allclose, assert_array_equal
from processes import needs_proc, processes, told, until

from fedaccord.errors import InputError
from fedaccord.federation import FedAvg, HoldBack, MwFed, Pledged, Release, Solo
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.flower import engine as simulation
from fedaccord.federation.flower.engine import Clients, FlowerEngine, Simulation
from fedaccord.federation.runs.execute import (
    ENGINES,
    LocalEngine,
    RunError,
    check_is_requested,
    make_run,
)
from fedaccord.federation.runs.store import Run
from fedaccord.federation.runs.worker import answer

# Chapters of the source that all tests of the one simulation share.
EASIER, DIGITS, DROPOUT, OTHER_SEED, FORGETFUL = range(5)
SETTINGS = {"batch_size": 8, "learning_rate": 0.015}
# Another simulation's.
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
POINTS = (60, 60, 60, 60)
# A sum in another order may tell one validation point of a client otherwise, and no more.
ONE_POINT = 1 / 240 + 1e-9


def run_of(algorithm, chapter, contributions=POINTS):
    return Run("any", algorithm, contributions, base_seed=5, trial=CHAPTER * chapter)


def assert_agree(found, local, *, one_point=ONE_POINT):
    assert found.clients == local.clients
    assert found.algorithm == local.algorithm
    assert found.seed == local.seed
    assert found.diverged == local.diverged
    assert not found.weights
    for name in ("requirements", "contributions", "samples", "unique", "satisfied"):
        assert_array_equal(getattr(found, name), getattr(local, name))
    assert_allclose(found.accuracy, local.accuracy, rtol=0, atol=one_point)
    assert_allclose(found.loss, local.loss, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def source():
    own, easier, dropout = digits(), digits(requirement=0.7), digits(model="cnn", requirement=0.7)
    faults = {OTHER_SEED: of_another_seed, FORGETFUL: forgetful}
    return Chapters((easier, own, dropout, own, own), faults)


@pytest.fixture(scope="module")
def engine(source):
    with FlowerEngine(source) as shared:
        yield shared


@pytest.fixture
def pairs(source, engine):
    """Makes runs in the simulation and here, and gives the two histories of each."""

    def both(runs):
        with LocalEngine(source) as local:
            here = [one.history for one in local.finished(runs)]
        return list(zip([one.history for one in engine.finished(runs)], here, strict=True))

    return both


# In Flower's simulation.


@pytest.mark.slow
def test_an_audit_in_the_simulation_gives_the_local_engines_table(source, engine, tmp_path):
    settings = {"rounds": 5, "evaluate_every": 3, **SETTINGS}
    engines = {"flower": lambda source, workers: contextlib.nullcontext(engine), "local": "local"}
    audits = {
        name: defection_curves(
            source,
            [FedAvg(**settings), MwFed(**settings)],
            levels=[1, 0.25],
            trials=2,
            seed=8,
            engine=machine,
            store=tmp_path / name,
        )
        for name, machine in engines.items()
    }
    curves = {name: [c.to_dict() for c in audit.curves] for name, audit in audits.items()}
    assert curves["flower"] == curves["local"]
    # Some are satisfied and some are not, or there would be nothing to agree on.
    shares = [curve.at(0.25).at_end.random.p for curve in audits["local"].curves]
    assert any(0 < share < 1 for share in shares)
    rows = {name: stored(tmp_path / name) for name in engines}
    # Everything but loss and accuracy is the very same: run, round, client, samples, points.
    counts = {name: [row[:-2] for row in table] for name, table in rows.items()}
    assert counts["flower"] == counts["local"]
    for column, tolerance in ((-1, {"rtol": 0, "atol": ONE_POINT}), (-2, {"rtol": 1e-4})):
        values = [np.array([row[column] for row in rows[name]], dtype=float) for name in engines]
        assert_allclose(*values, **tolerance)


def stored(file):
    with contextlib.closing(sqlite3.connect(file)) as database:
        return database.execute(
            "SELECT key, round, client, history.samples, history.'unique', loss, accuracy"
            " FROM history JOIN runs ON runs.id = history.run ORDER BY key, round, client"
        ).fetchall()


@pytest.mark.slow
def test_rounds_on_digits_agree_with_the_local_loop(pairs):
    settings = {"rounds": 12, "evaluate_every": 4, **SETTINGS}
    cut = (60, 0, 17, 60)
    runs = [
        run_of(FedAvg(**settings), DIGITS),
        run_of(MwFed(**settings), DIGITS),
        run_of(FedAvg(form="local", **settings), EASIER, cut),
        run_of(MwFed(form="local", **settings), EASIER, cut),
        run_of(FedAvg(**settings), DROPOUT),
        run_of(MwFed(form="local", goal_points=30, **settings), DROPOUT),
    ]
    for found, local in pairs(runs):
        assert_agree(found, local)
        assert np.isfinite(local.accuracy[-1]).all()
        parted = len({samples for samples in local.samples[-1] if samples}) > 1
        assert parted == (local.algorithm["kind"] == "mw-fed")


@pytest.mark.slow
def test_faults_of_clients_are_seen(pairs):
    algorithm = FedAvg(rounds=3, evaluate_every=1, **SETTINGS)
    chapters = DIGITS, OTHER_SEED, FORGETFUL
    (well, here), *faulty = pairs([run_of(algorithm, chapter) for chapter in chapters])
    assert_agree(well, here)
    for found, local in faulty:
        assert_array_equal(found.samples, local.samples)
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            assert_agree(found, local)


@pytest.mark.slow
@needs_proc
def test_who_does_not_have_the_token_cannot_use_its_ray(engine):
    list(engine.finished([run_of(FedAvg(rounds=1, **SETTINGS), DIGITS)]))
    own = [line for line in map(told, processes()) if str(engine.folders[-1]).encode() in line]
    # Ray's own, inside, is everybody's.
    assert engine.folders[-1].stat().st_mode & 0o777 == 0o700
    (address,) = set(re.findall(rb"--gcs-address=([^\0 ]+)", b"".join(own)))
    told_nothing = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH_")}

    assert asked(address.decode(), {**told_nothing, **engine.environment}).stdout == "1\n"
    for stranger in (told_nothing, {**told_nothing, **TOKEN}):
        refused = asked(address.decode(), stranger)
        assert refused.stdout == ""
        assert "InvalidAuthToken" in refused.stderr


@pytest.mark.slow
@needs_proc
def test_a_lost_client_is_told_and_nothing_is_left_when_the_audit_is_killed(tmp_path):
    code = "import sys; from federation.flower import simulated; simulated.main(sys.argv[1])"
    audit = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        sentence, losses, folders = (json.loads(audit.stdout.readline()) for _ in range(3))
        until((tmp_path / "hanging").exists, "a client hangs")
        # Each simulation has its own; the first is gone, or goes.
        assert len(set(folders)) == 2
        assert Path(folders[1]).exists()
    finally:
        audit.kill()
        _, errors = audit.communicate()
    # Neither Flower nor Ray says a word.
    assert errors == b""
    assert sentence == (
        "the process of client 0 was lost in the run of FedAvg in trial 1 with contributions 9 "
        "(ActorDiedError): if memory is short, use fewer workers"
    )
    with LocalEngine(small_federation((12,))) as local:
        here = local.finished(lonely_run(trial) for trial in (0, 1))
        assert_allclose(losses, [one.history.loss.ravel() for one in here], rtol=1e-6)
    seen = [file.stem.split() for file in tmp_path.glob("*.process")]
    groups = {int(group) for _, group in seen}
    # Two simulations, each with its server and its client.
    assert (len(groups), len(seen)) == (2, 4)
    until(lambda: not any(Path(folder).exists() for folder in folders), "the files are gone")
    until(lambda: not groups & {one.group for one in processes().values()}, "and the processes")


@pytest.mark.slow
def test_a_simulation_that_cannot_start_says_why_and_another_can_be_tried():
    with FlowerEngine(Unstartable(small_federation((12,)))) as engine:
        for trial in range(2):
            with pytest.raises(RunError) as caught:
                list(engine.finished([lonely_run(trial)]))
            assert str(caught.value) == (
                f"Flower's simulation ended in the run of FedAvg in trial {trial} with "
                "contributions 9: OSError: no room for another node"
            )
            assert "in _fail" in "".join(caught.value.__notes__)
        # Whoever cleans up after the first may be slow.
        assert len(set(engine.folders)) == 2
    assert not any(folder.exists() for folder in engine.folders)


# Without it: the same server and clients in this process.


class InThisProcess(Simulation):
    """The nodes are called one after the other here. Its clients may be tampered with."""

    def _start(self, clients):
        nodes = [
            Node(clients.app(), node_id=10 - i, partition_id=i) for i in range(len(clients.names))
        ]
        self.nodes = nodes
        return InProcessGrid(nodes)


@pytest.fixture
def here(tmp_path):
    return InThisProcess(tmp_path, actors=1)


def dealt(federation):
    return functools.lru_cache(maxsize=1)(federation.deal)


def small_run(algorithm, contributions, trial=4):
    return Run("any", algorithm, contributions, base_seed=5, trial=trial)


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("kind", [FedAvg, MwFed])
def test_one_client_or_one_that_brings_nothing_agree_with_the_local_loop(kind, form, tmp_path):
    algorithm = kind(rounds=4, batch_size=4, form=form, evaluate_every=3)
    for sizes, contributions in (((9,), (9,)), ((9,), (4,)), ((30, 24, 40), (11, 0, 40))):
        deal, run = dealt(small_federation(sizes)), small_run(algorithm, contributions)
        folder = tmp_path / str(contributions)
        folder.mkdir()
        found = InThisProcess(folder, actors=1).make(deal, run)
        assert_agree(found, make_run(deal, run), one_point=1e-9)


@pytest.mark.parametrize(
    "algorithm",
    [
        Pledged(passes=2, batch_size=5, evaluate_every=4, rounds=60),
        Pledged(passes=2, batch_size=5, evaluate_every=4, rounds=60).committed([30, 24, 40]),
        Release(batch_size=6, learning_rate=0.03, evaluate_every=2, evaluations=2, rounds=60),
        HoldBack(batch_size=6, learning_rate=0.02, evaluate_every=2, rounds=30),
    ],
    ids=["pledged", "committed", "release", "hold-back"],
)
def test_runs_that_may_end_early_are_those_that_were_asked_for(here, algorithm):
    run = small_run(algorithm, (15, 24, 40))
    deal = dealt(small_federation(requirement=0.7))
    found, local = here.make(deal, run), make_run(deal, run)
    check_is_requested(run, found)
    assert_agree(found, local, one_point=1e-9)
    assert len(found.samples) < algorithm.rounds
    assert found.checkpoints == local.checkpoints == found.weights == local.weights == {}


def test_training_that_diverges_ends_as_in_the_local_loop(here):
    algorithm = FedAvg(rounds=9, batch_size=5, learning_rate=1e308, optimizer="sgd")

    def deep():
        return torch.nn.Sequential(torch.nn.Linear(4, 30), torch.nn.Linear(30, 3)).double()

    deal, run = dealt(small_federation(model=deep)), small_run(algorithm, (30, 24, 40))
    local = make_run(deal, run)
    assert local.diverged
    assert len(local.samples) < 9
    found = here.make(deal, run)
    assert found.diverged
    for name in ("samples", "unique", "accuracy"):
        assert_array_equal(getattr(found, name), getattr(local, name))


def test_a_round_may_take_longer_than_flower_would_wait(here, monkeypatch):
    patience = []
    receive = InProcessGrid.send_and_receive

    def noted(self, messages, *, timeout=None):
        patience.append(timeout)
        return receive(self, messages, timeout=timeout)

    monkeypatch.setattr(InProcessGrid, "send_and_receive", noted)
    here.make(dealt(small_federation()), small_run(FedAvg(rounds=2), (30, 24, 40)))
    week = 7 * 24 * 3600
    assert len(patience) > 2
    assert all(seconds is None or seconds > week for seconds in patience)


def test_runs_follow_each_other_in_any_order_of_trials(here):
    federations = [small_federation((size, 20)) for size in (20, 20, 20)]
    for shift, federation in enumerate(federations):
        federation.clients[0].inputs.add_(shift)
    source = types.SimpleNamespace(deal=lambda trial: federations[trial])
    algorithm = FedAvg(rounds=2, batch_size=4, evaluate_every=1)
    histories = []
    for trial in (2, 0, 0, 1, 2):
        run = small_run(algorithm, (20, 7), trial)
        histories.append(here.make(dealt(source), run))
        assert_agree(histories[-1], make_run(source.deal, run), one_point=1e-9)
    assert len({history.loss.tobytes() for history in histories}) == 3


class BrokenElsewhere:
    """A model factory that fails once it has been sent to somebody."""

    def __init__(self, broken=False):
        self.broken = broken

    def __reduce__(self):
        return BrokenElsewhere, (True,)

    def __call__(self):
        if self.broken:
            raise KeyError("no such layer")
        return two_layers()


def test_what_fails_in_a_client_is_told_with_the_run_the_client_and_the_round(here):
    deal = dealt(small_federation(model=BrokenElsewhere()))
    told = answer(deal, small_run(FedAvg(), (30, 24, 40)), make=here.make)
    assert type(told[0]) is RunError
    assert str(told[0]) == (
        "the run of FedAvg in trial 4 with contributions 30, 24, 40 failed: client 0 is left out "
        "of round 1: it reports: KeyError: 'no such layer'"
    )


def test_a_client_that_cannot_do_as_told_says_the_remedy(here):
    def with_means():
        return torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)).double()

    run = small_run(FedAvg(form="pooled"), (30, 24, 40))
    with pytest.raises(RunError, match=r'client 0 .* needs form = "local"'):
        here.make(dealt(small_federation(model=with_means)), run)


@pytest.mark.parametrize("round_number", [0, 1])
def test_a_client_whose_process_is_lost_is_named(here, round_number):
    deal, run = dealt(small_federation()), small_run(FedAvg(rounds=1), (30, 24, 40))
    here.make(deal, run)
    kind = "train" if round_number else "query"

    def lost(message, answer):
        if message.metadata.message_type != kind:
            return answer
        reason = "<class 'ray.exceptions.ActorDiedError'>:<'The actor died ...'>"
        return Message(Error(code=0, reason=reason), reply_to=message)

    here.nodes[1].tamper = lost
    who = "client 1" if round_number else "node 9"
    with pytest.raises(RunError, match=rf"process of {who} was lost .* \(ActorDiedError\): if mem"):
        here.make(deal, run)


@pytest.mark.parametrize(
    ("algorithm", "contributions", "words"),
    [
        (FedAvg(), (31, 24, 40), "client 0 cannot give 31 samples: it has 30"),
        (FedAvg(), (0, 0, 0), "all contributions are 0"),
        (FedAvg(local_batches=2), (30, 24, 40), "set local_batches to 1"),
    ],
)
def test_bad_input_is_told_as_such_before_anything_starts(
    algorithm, contributions, words, tmp_path
):
    class NeverStarted(Simulation):
        def _start(self, clients):
            raise AssertionError("started")

    with pytest.raises(InputError, match=words):
        NeverStarted(tmp_path, actors=1).make(
            dealt(small_federation()), small_run(algorithm, contributions)
        )


def test_clients_that_learn_alone_need_no_federation():
    with (
        FlowerEngine(small_federation()) as engine,
        pytest.raises(InputError, match=r'Solo trains clients alone, .* use the engine "local"'),
    ):
        list(engine.finished([small_run(Solo(), (30, 24, 40))]))


def test_the_points_do_not_travel_with_the_messages(tmp_path):
    file = tmp_path / "source"
    app = Clients(str(file), ("a", "b"), (10**6, 10**6)).app()
    assert len(cloudpickle.dumps(app)) < 2_000
    assert not file.exists()


def test_the_engine_is_known_by_name_and_silent():
    engine = ENGINES["flower"](small_federation(), workers=1)
    assert isinstance(engine, FlowerEngine)
    other = FlowerEngine(small_federation())
    for name in ("FLWR_TELEMETRY_ENABLED", "RAY_USAGE_STATS_ENABLED"):
        assert engine.environment[name] == "0"
    tokens = {one.environment["RAY_AUTH_TOKEN"] for one in (engine, other)}
    assert len(tokens) == 2
    # Nothing is started, or written, before there is a run.
    assert engine.folders == []


@pytest.mark.parametrize("workers", [0, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(InputError, match="workers must be a whole number of 1 or more"):
        FlowerEngine(small_federation(), workers=workers)


@pytest.mark.parametrize("failures", [0, 2, 3])
def test_ray_gets_three_attempts(failures, tmp_path, monkeypatch):
    asked, ended = [], []

    def init(**options):
        asked.append(options)
        if len(asked) <= failures:
            raise Exception("The current node\ntimed out")

    fake = types.SimpleNamespace(init=init, shutdown=lambda: ended.append(1))
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setenv("PYTHONPATH", "")
    refused = pytest.raises(RunError, match=r"cannot start: The current node timed out$")
    with refused if failures == 3 else contextlib.nullcontext():
        simulation._start_ray(tmp_path, 2)
    assert len(asked) == min(failures + 1, 3)
    assert len(ended) == failures
    for options in asked:
        # Not the cluster that a user may have running.
        assert (options["address"], options["num_cpus"]) == ("local", 2)
