"""The paper's two algorithms as they are printed, computed line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.reproduce.claims import Claims, Measured, Setting

CLAIMS = Claims()

# Of the small problem: clients, numbers in a model, rounds, length of a step.
CLIENTS, NUMBERS, ROUNDS, RATE = 4, 6, 200, 0.1
# How near a model must come to the best one to have found it, in parts of the best one.
FOUND = 1e-6
WEIGHTS = 2_000


@CLAIMS.measure("algorithm-1")
def algorithm_1(setting: Setting) -> Measured:
    """Run both readings on a problem whose best model is known: the mean of the clients' own."""
    batches = setting.expected["local_batches"]
    printed, mean = (
        {str(b): measure_distance(rule, b) for b in batches}
        for rule in (average_as_printed, average_models)
    )
    return Measured(
        printed=printed,
        mean=mean,
        words={
            "clients": CLIENTS,
            "rounds": ROUNDS,
            "offs": ", ".join(f"{off:.2g} with B = {b}" for b, off in printed.items()),
            "worst": max(mean.values()),
            "worst_as_printed": max(printed.values()),
            "near": FOUND,
            "right": ", ".join(b for b, off in printed.items() if off <= FOUND) or "no B",
        },
    )


def average_as_printed(models: Sequence[Vector], local_batches: int) -> Vector:
    """Put models together as Algorithm 1 prints it."""
    return np.asarray(sum(models) / (local_batches * len(models)))


def average_models(models: Sequence[Vector], local_batches: int) -> Vector:
    """Put models together as fedaccord does, from as many samples of each client."""
    from fedaccord.federation.algorithms.base import FedAvg

    # How many they are does not matter, as long as they are as many.
    counts = np.full(len(models), local_batches)
    return FedAvg(local_batches=local_batches).aggregate(list(models), counts)


def measure_distance(
    average: Callable[[Sequence[Vector], int], Vector], local_batches: int
) -> float:
    """Return how far training ends from the best model, in parts of the best model's size.

    Client i wants the model a_i: its loss is half the squared distance to it. The best model for
    all of them is the mean of the a_i, and steps of any length find it.

    average: puts the clients' models together.
    local_batches: B.
    """
    wanted = np.random.default_rng(0).normal(size=(CLIENTS, NUMBERS)) + 1
    best, server = wanted.mean(axis=0), np.zeros(NUMBERS)
    for _ in range(ROUNDS):
        models = []
        for own in wanted:
            model = server
            for _ in range(local_batches):
                model = model - RATE * (model - own)
            models.append(model)
        server = average(models, local_batches)
    return float(np.linalg.norm(server - best) / np.linalg.norm(best))


@CLAIMS.measure("algorithm-2")
def algorithm_2(setting: Setting) -> Measured:
    """Divide a round's samples for many weights: as printed, and as fedaccord does."""
    from fedaccord.federation.algorithms.mw_fed import MwFed

    size, agents = setting.expected["batch_size"], setting.expected["agents"]
    exact, printed = MwFed(batch_size=size), MwFed(batch_size=size, counts="printed")
    # How many times each agent was short of its goal so far: weights are powers of the factor.
    raised = np.random.default_rng(0).integers(0, 9, size=(WEIGHTS, agents))
    found = []
    for times in raised:
        weights = [2 ** int(n) for n in times]
        found.append(
            {
                "shares": tuple(Fraction(weight, sum(weights)) for weight in weights),
                "exact": exact.allot(times * np.log(2.0)).tolist(),
                "printed": printed.allot(times * np.log(2.0)).tolist(),
            }
        )
    return judge_counts(found, size * agents, size)


def judge_counts(found: Sequence[Mapping[str, Any]], total: int, size: int) -> Measured:
    """Judge counts of samples by the sentence of Section 6, in exact fractions.

    found: for each weights, the shares they give, and the samples by either way.
    total: of samples in a round.
    size: m.
    """
    # What the printed line gives, worked out apart from the package.
    floors = [[size * int(total * s / size) for s in one["shares"]] for one in found]
    as_printed = all(one["printed"] == mine for one, mine in zip(found, floors, strict=True))
    fewer = sum(sum(mine) != total for mine in floors)
    short = [
        drawn
        for one, mine in zip(found, floors, strict=True)
        for drawn, share in zip(mine, one["shares"], strict=True)
        if share * len(mine) < 1
    ]
    starved = sum(drawn == 0 for drawn in short)
    proportional = all(
        sum(one["exact"]) == total
        and all(abs(n - total * s) < 1 for n, s in zip(one["exact"], one["shares"], strict=True))
        for one in found
    )
    return Measured(
        weights=len(found),
        rounds_cut_short=fewer,
        below_average=len(short),
        of_these_without_samples=starved,
        package_does_as_printed_when_asked=as_printed,
        words={
            "agents": len(floors[0]),
            "total": total,
            "proportional": proportional,
            "uneven": bool(fewer or starved),
        },
    )
