"""Agents alone: all cut alike, kept runs, and curves that are those of the runs."""

import numpy as np
import pytest
from federation.made_up import AnyEngine
from federation.small import small_federation

from fedaccord.federation.algorithms.base import Solo
from fedaccord.federation.defection import solo
from fedaccord.federation.defection.solo import all_cut, solo_curves
from fedaccord.federation.runs import execute
from fedaccord.federation.runs.execute import RunError
from fedaccord.federation.runs.store import RunStore
from fedaccord.federation.training.loop import train
from fedaccord.federation.training.rng import derive_seed

ALONE = Solo(rounds=6, batch_size=8, learning_rate=0.05, evaluate_every=4)


@pytest.fixture
def federation():
    return small_federation(sizes=(30, 24, 41))


def test_everybody_is_cut_to_the_level_half_up(federation):
    assert all_cut(federation, 1.0) == (30, 24, 41)
    assert all_cut(federation, 0.5) == (15, 12, 21)
    assert all_cut(federation, 0.01) == (1, 1, 1)


def test_curves_are_the_accuracies_of_the_runs_at_every_look(federation):
    found = solo_curves(federation, ALONE, levels=(1.0, 0.5), trials=2, seed=9)
    assert found.rounds.tolist() == [4, 6]
    assert found.clients == federation.names
    for level in (1.0, 0.5):
        assert found.accuracy[level].shape == (2, 2, 3)
        for trial in range(2):
            own = derive_seed(9, "trial", trial)
            brought = all_cut(federation, level)
            run = train(federation, ALONE, contributions=brought, seed=own)
            assert (found.accuracy[level][trial] == run.accuracy[[3, 5]]).all()
    assert (found.mean(0.5) == found.accuracy[0.5].mean(axis=0)).all()


def test_runs_that_are_kept_are_not_made_again(federation, tmp_path, monkeypatch):
    made = []
    put = RunStore.put
    monkeypatch.setattr(RunStore, "put", lambda *a: made.append(a) or put(*a))
    told = []

    def curves(trials):
        return solo_curves(
            *(federation, ALONE),
            levels=(1.0, 0.5),
            trials=trials,
            seed=0,
            store=tmp_path / "runs.sqlite",
            progress=lambda done, of: told.append((done, of)),
        )

    first, again = curves(1), curves(2)
    assert len(made) == 4
    assert told == [(0, 2), (1, 2), (2, 2), (2, 4), (3, 4), (4, 4)]
    assert (again.accuracy[0.5][:1] == first.accuracy[0.5]).all()
    curves(2)
    assert len(made) == 4


def test_a_run_that_an_engine_loses_is_missed(federation, tmp_path, monkeypatch):
    class Forgetful(AnyEngine):
        def finished(self, runs):
            with local(federation) as engine:
                yield from engine.finished(list(runs)[:-1])

    local = execute.ENGINES["local"]
    monkeypatch.setitem(execute.ENGINES, "local", Forgetful())
    asked = {"levels": (1.0, 0.5), "trials": 1, "seed": 0, "store": tmp_path / "runs.sqlite"}
    with pytest.raises(RunError, match=r"did not return 1 run.* are safe in"):
        solo_curves(federation, ALONE, **asked)


def test_a_run_that_diverges_has_reached_nothing(federation, monkeypatch):
    monkeypatch.setattr(
        RunStore, "rows", lambda self, run: [(4, "client 0", 8, 8, 0.1, float("nan"))]
    )
    found = solo_curves(federation, ALONE, levels=(1.0,), trials=1, seed=0)
    assert not found.accuracy[1.0].any()


def test_the_level_is_felt(federation, monkeypatch):
    """A curve at a level of 10 % that were the full one would go unnoticed otherwise."""
    few = solo_curves(federation, ALONE, levels=(1.0, 0.1), trials=2, seed=0)
    assert (few.accuracy[1.0] != few.accuracy[0.1]).any()
    full = all_cut(federation, 1.0)
    monkeypatch.setattr(solo, "all_cut", lambda source, level: full)
    same = solo_curves(federation, ALONE, levels=(1.0, 0.1), trials=2, seed=0)
    assert np.array_equal(same.accuracy[1.0], same.accuracy[0.1])
