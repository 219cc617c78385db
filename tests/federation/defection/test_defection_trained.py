"""The audit with real training: who is cut, whose draws move, and what a kill leaves."""

import dataclasses
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from federation.made_up import table
from federation.small import Recorder, recorded, small_federation, two_layers
from processes import is_alive, needs_proc, until

from fedaccord._checks import cores
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.runs import execute
from fedaccord.federation.runs.execute import LocalEngine
from fedaccord.federation.runs.store import Run, RunStore
from fedaccord.federation.training import loop as training
from fedaccord.federation.training import rng as draws

QUICK = {"rounds": 6, "batch_size": 4, "evaluate_every": 2}


def batches(federation, seen, algorithm, contributions):
    """Train as the audit does, and give the points of each batch."""
    run = Run("any", algorithm, contributions, base_seed=0, trial=0)
    with LocalEngine(federation) as engine:
        list(engine.finished([run]))
    return [np.array(batch).astype(int) for batch in seen if len(batch) == 4]


def points_of(client, seen):
    """The points of a client in the order drawn; those of client i are numbered from 1000 i."""
    drawn = np.concatenate(seen)
    return drawn[drawn // 1000 == client].tolist()


def faults_of_a_cut():
    """Cut client 1 from 20 points to 5, and list what does not happen as it should."""
    algorithm = FedAvg(rounds=12, batch_size=4, form="local", optimizer="sgd")
    federation, seen = recorded((10, 20, 40))
    full = batches(federation, seen, algorithm, (10, 20, 40))
    less = batches(federation, seen, algorithm, (10, 5, 40))
    looked = batches(
        federation, seen, dataclasses.replace(algorithm, evaluate_every=1), (10, 20, 40)
    )
    faults = []
    if not len(set(points_of(1, less))) <= 5 < len(set(points_of(1, full))):
        faults.append("the defector is not cut")
    if not set(points_of(1, less)) <= set(range(1000, 1020)):
        faults.append("the defector draws the points of others")
    if any(points_of(i, full) != points_of(i, less) for i in (0, 2)):
        faults.append("the others' draws move")
    if any(points_of(i, full) != points_of(i, looked) for i in range(3)):
        faults.append("looking more often changes what is drawn")
    return faults


def test_a_cut_touches_the_defector_and_nobody_elses_draws():
    assert faults_of_a_cut() == []


def test_a_defector_that_is_not_cut_is_caught(monkeypatch):
    def uncut(federation, algorithm, *, contributions=None, seed=0, tactic=None):
        return training.train(federation, algorithm, seed=seed)

    monkeypatch.setattr(execute, "train", uncut)
    assert "the defector is not cut" in faults_of_a_cut()


def test_a_random_stream_that_all_share_is_caught(monkeypatch):
    shared = {}

    def one_for_all(seed, purpose, *place):
        return shared.setdefault(seed, np.random.default_rng(seed))

    plain_train = training.train

    def train(*arguments, **options):
        shared.clear()
        return plain_train(*arguments, **options)

    monkeypatch.setattr(draws, "stream", one_for_all)
    monkeypatch.setattr(execute, "train", train)
    assert "the others' draws move" in faults_of_a_cut()


def test_a_run_uses_no_more_points_than_it_was_allowed(tmp_path):
    path = tmp_path / "runs.db"
    defection_curves(small_federation(), FedAvg(**QUICK), levels=[0.1], trials=2, store=path)
    with sqlite3.connect(path) as direct:
        rows = direct.execute('SELECT contributions, "unique" FROM runs').fetchall()
    direct.close()
    assert len(rows) == 2 * 4
    for contributions, unique in rows:
        pairs = zip(json.loads(unique), json.loads(contributions), strict=True)
        assert all(used <= brought for used, brought in pairs)
    assert {tuple(json.loads(c)) for c, _ in rows} == {
        (30, 24, 40),
        (3, 24, 40),
        (30, 2, 40),
        (30, 24, 4),
    }


def test_a_model_that_gives_nan_is_marked_diverged_and_not_satisfied():
    class Bursts(Recorder):
        def __init__(self):
            super().__init__([])

        def forward(self, inputs):
            return super().forward(inputs) * (math.nan if self.training else 1)

    audit = defection_curves(
        small_federation(model=Bursts, requirement=0.01), FedAvg(**QUICK), levels=[1], trials=2
    )
    curve = audit.curve("FedAvg")
    assert curve.diverged == 2
    assert curve.all_satisfied.p == 0
    assert curve.at(1).at_end.random.p == curve.at(1).by_then.random.p == 0
    json.dumps(audit.to_dict(), allow_nan=False)


def test_solo_learning_can_be_audited_too():
    audit = defection_curves(small_federation(), Solo(**QUICK), levels=[1, 0.1], trials=2)
    solo = audit.curve("Solo")
    # Alone, nobody else is touched by a cut.
    assert solo.at(0.1).at_end.others.p == solo.at(1).at_end.others.p


AUDIT = """
import os, pathlib, sys
sys.path[:0] = {path!r}
from federation.defection.test_defection_trained import audit_of_killed
folder, here = pathlib.Path(sys.argv[1]), os.getpid()

def model():
    from federation.small import two_layers
    os.getpid() == here or (folder / "workers" / str(os.getpid())).touch()
    return two_layers()

# No guard around what follows, as in many a user's script, and a model that has no name.
audit_of_killed(folder / "runs.db", workers=2, model=lambda: model())
"""


def audit_of_killed(path, workers=1, model=two_layers):
    algorithms = [kind(**QUICK, learning_rate=0.05) for kind in (FedAvg, MwFed)]
    federation = small_federation(model=model)
    return defection_curves(
        federation,
        algorithms,
        levels=[1, 0.5, 0.1],
        trials=400,
        width=0.6,
        workers=workers,
        store=path,
    )


def stored(path):
    if not path.exists() or not path.stat().st_size:
        return 0
    with RunStore(path) as store:
        return len(store)


@pytest.mark.slow
@pytest.mark.skipif(cores() < 2, reason="two workers need two cores")
@needs_proc
def test_an_audit_that_is_killed_twice_ends_as_one_that_is_not(tmp_path):
    path = tmp_path / "runs.db"
    (tmp_path / "workers").mkdir()
    safe = 0
    for ending in (signal.SIGKILL, signal.SIGINT):
        command = [sys.executable, "-c", AUDIT.format(path=sys.path), str(tmp_path)]
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            # One worker may have made them all before the other began.
            until(
                lambda goal=safe + 10: (
                    stored(path) >= goal and len(list((tmp_path / "workers").iterdir())) >= 2
                ),
                "ten more runs are kept, and both workers are at work",
            )
            # A terminal sends Ctrl-C to all the processes of its group.
            (os.killpg if ending == signal.SIGINT else os.kill)(process.pid, ending)
            process.wait(60)
            errors = process.stderr.read()
        workers = [int(file.name) for file in (tmp_path / "workers").iterdir()]
        assert len(workers) >= 2
        until(lambda pids=workers: not any(map(is_alive, pids)), "the workers are gone")
        # One traceback, that of the interrupted script itself: workers say nothing.
        assert errors.count("Traceback") == (ending == signal.SIGINT), errors
        safe = stored(path)
    resumed = audit_of_killed(path)
    assert resumed.reused >= 20
    uninterrupted = audit_of_killed(tmp_path / "another.db")
    assert uninterrupted.reused == 0
    assert table(resumed) == table(uninterrupted)
    # It is a table about something.
    assert 0 < resumed.curve("FedAvg").at(0.1).at_end.random.p < 1
