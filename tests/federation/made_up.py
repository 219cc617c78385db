"""Audits of federations that nobody trains: a rule tells what comes of each run."""

import json

import numpy as np

from fedaccord.federation.history import History
from fedaccord.federation.runs import execute
from fedaccord.federation.runs.execute import Finished

NAMES = ("north", "south", "west")


class MadeUp:
    """A source of federations that nobody trains: outcomes are told by a rule."""

    names = NAMES
    points = np.array([10, 20, 40])
    requirements = np.array([0.5, 0.5, 0.5])
    fingerprint = "made up"

    def deal(self, trial):
        raise AssertionError("nobody asks")


class AnyEngine:
    """An engine that is there already: nothing is started for it, and nothing closed."""

    def __call__(self, source, *, workers):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class MadeUpEngine(AnyEngine):
    """Gives outcomes by a rule, in an order of its own, some runs ahead of what was taken in.

    rule: tells from a run and a client the accuracies at two evaluations.
    """

    def __init__(self, rule, ahead=1, seed=0):
        self.rule, self.ahead, self.made = rule, ahead, []
        self._random = np.random.default_rng(seed)

    def finished(self, runs):
        runs, waiting = iter(runs), []
        while True:
            while len(waiting) < self.ahead and (run := next(runs, None)) is not None:
                waiting.append(run)
            if not waiting:
                return
            run = waiting.pop(int(self._random.integers(len(waiting))))
            self.made.append(run)
            yield Finished(run, self.history(run))

    def history(self, run):
        clients = len(run.contributions)
        accuracy = np.array([self.rule(run, i) for i in range(clients)], dtype=float).T
        return History(
            clients=NAMES[:clients],
            requirements=np.full(clients, 0.5),
            contributions=np.array(run.contributions),
            algorithm=run.algorithm.to_dict(),
            seed=run.seed,
            samples=np.full((2, clients), 3),
            unique=np.array([run.contributions, run.contributions]) // 2,
            loss=np.ones((2, clients)),
            accuracy=accuracy,
            diverged=bool(np.isnan(accuracy[-1]).any()),
            seconds=0.5,
        )


def made_up(monkeypatch, rule, ahead=1, seed=0):
    engine = MadeUpEngine(rule, ahead, seed)
    monkeypatch.setitem(execute.ENGINES, "local", engine)
    return engine


def table(audit):
    """What an audit says, timings aside."""
    found = audit.to_dict()
    assert found.pop("seconds") >= 0
    assert found.pop("run_seconds") >= 0
    return json.loads(json.dumps(found, allow_nan=False))


def by_points(run, client):
    """West is satisfied with half its points, south with all and in even trials, north always."""
    enough = {0: True, 1: run.contributions[1] == 20 and run.trial % 2 == 0}
    return [0.1, 0.9 if enough.get(client, run.contributions[2] >= 20) else 0.2]
