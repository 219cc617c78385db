"""Histories, audits, scores and searches that nobody trained for: a rule tells what came out."""

import dataclasses

import numpy as np

from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.data.pretraining import PretrainedWeights, Scores
from fedaccord.federation.data.search import Draw
from fedaccord.federation.defection.curves import (
    DefectionAudit,
    at_end,
    compare_curves,
    list_satisfied,
    sum_up,
)
from fedaccord.federation.history import History
from fedaccord.federation.runs.store import Outcome

HOSTILE = (
    "<script>alert(1)</script>",
    "y" * 200,
    "$x$ and $\\frac{",
    "=cmd()\u202e\x1b[31m",
)


def history(accuracy, goals=0.8, *, names=None, samples=None, brought=None, **options):
    """A run with these accuracies, one row a round, NaN where nobody looked."""
    seen = np.array(accuracy, dtype=float)
    rounds, clients = seen.shape
    drawn = np.full((rounds, clients), 5) if samples is None else np.array(samples)
    given = np.full(clients, 60) if brought is None else np.array(brought)
    return History(
        clients=tuple(names or (f"agent {n}" for n in range(clients))),
        requirements=np.broadcast_to(np.array(goals, dtype=float), clients).copy(),
        contributions=given,
        algorithm={"kind": "fedavg", "rounds": rounds, "evaluate_every": 2},
        seed=7,
        samples=drawn,
        unique=np.minimum(np.cumsum(drawn, axis=0), given),
        loss=np.ones((rounds, clients)),
        accuracy=seen,
        diverged=bool(np.isnan(seen[-1]).any()),
        seconds=75.0,
        **options,
    )


def four_agents():
    """Four agents over six rounds; the last ends short of its goal by 0.05."""
    start = np.array([0.5, 0.55, 0.6, 0.45])
    seen = start + np.arange(6)[:, None] * np.array([0.08, 0.07, 0.06, 0.06])
    seen[::2] = np.nan
    return history(seen, samples=np.outer(np.arange(1, 7), [1, 2, 3, 9]))


def many_agents(clients=400, names=None):
    """Agents that end at 0.60 to 1.00 in equal steps, the first lowest; all want 0.80."""
    ends = np.linspace(0.6, 1.0, clients)
    part = np.linspace(0.2, 1, 40)[:, None]
    drawn = 1 + np.arange(clients) % 7
    return history(ends * part, names=names, samples=np.tile(drawn, (40, 1)))


def audit(rules, *, names, trials=4, levels=(1.0, 0.5, 0.25), protocol="P1", asked=None, **options):
    """An audit in which rules tell whether client i is satisfied when d cuts to a level.

    rules: for each algorithm, what tells it from level, d, i and the trial.
    """
    clients = range(len(names))
    full = tuple(asked or [60] * len(names))
    curves, rows = [], {}
    for algorithm, rule in rules.items():
        found = {
            level: [
                [
                    ((d,), outcome([rule(level, d, i, trial) for i in clients], full))
                    for d in clients
                ]
                for trial in range(trials)
            ]
            for level in (1.0, *levels)
        }
        settings = {"kind": algorithm, "rounds": 40}
        shown = {"clients": names, "levels": levels, "trials": found, "drawn": len(names)}
        curve = sum_up(algorithm, settings, full, **shown)
        curves.append(curve)
        for level, some in found.items():
            listed = list_satisfied(some, at_end, full, len(names))
            rows[algorithm, level] = listed["random" if protocol == "P1" else "contributors"]
    asked = {"levels": levels, "trials": trials, "protocol": protocol, "seed": 3}
    width = options.get("width")
    own = {f.name for f in dataclasses.fields(AuditOptions)} & options.keys()
    known = {
        "options": AuditOptions(**{**asked, **{name: options.pop(name) for name in own}}),
        "clients": tuple(names),
        "curves": compare_curves(curves, rows, width),
        "versions": ("numpy 2, torch 2",),
        "source": "ab" * 32,
        "requirements": (0.8,) * len(names),
        "reused": 0,
        "run_seconds": 100.0,
        "seconds": 61.0,
    }
    return DefectionAudit(**{**known, **options})


def outcome(satisfied, full):
    return Outcome(
        accuracies=tuple(0.9 if s else 0.5 for s in satisfied),
        satisfied=tuple(satisfied),
        # Everybody reaches its goal at some evaluation.
        first_passage=(10,) * len(satisfied),
        samples=(100,) * len(satisfied),
        unique=full,
        diverged=False,
        seconds=1.0,
        versions="numpy 2, torch 2",
    )


def lenient(level, defector, client, trial):
    """All are satisfied, whatever anybody does."""
    return True


def strict(level, defector, client, trial):
    """Who cuts is not satisfied, and all the others are."""
    return level == 1 or client != defector


def two_algorithms(names=("north", "south", "west"), **options):
    return audit({"FedAvg": lenient, "MW-FED": strict}, names=names, **options)


def scores(method="loss", **known):
    values = np.append(np.geomspace(0.001, 10, 99), np.nan)
    counts = np.ones(100, dtype=np.int64)
    return Scores(values, counts, "cd" * 32, {"method": method, **known})


def weights(*record, until=None):
    known = {"points": 200, "batches_trained": record[-1][0] if record else 12, "until": until}
    return PretrainedWeights({"w": np.zeros(2)}, tuple(record), {**known, "versions": {}})


def draws():
    tried = [Draw(3e-3, 64, 0.9, 30), Draw(1e-4, 8, 0.4, 250), Draw(2e-6, 512, 0.1, 4)]
    return (*tried, Draw(9e-3, 4, float("nan"), 2))
