"""The paper's two algorithms as they are printed, computed line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.reproduce.claims import Claims, Finding, Setting, Verdict

CLAIMS = Claims()

# Of the small problem: clients, numbers in a model, rounds, length of a step.
CLIENTS, NUMBERS, ROUNDS, RATE = 4, 6, 200, 0.1
# How near a model must come to the best one to have found it, in parts of the best one.
FOUND = 1e-6
WEIGHTS = 2_000


@CLAIMS.add(
    "algorithm-1",
    claim="FedAvg ends a round with 1/(B k) times the sum of the clients' models",
    place="Appendix I, Algorithm 1",
    paper="After B local batches, the server's weights are 1/(B k) times the sum of the k "
    "clients' weights.",
    minutes=(0.1, 0.1),
)
def algorithm_1(setting: Setting) -> Finding:
    """Run both readings on a problem whose best model is known: the mean of the clients' own."""
    batches = setting.expected["local_batches"]
    off = {
        name: {b: distance_from_best(rule, b) for b in batches}
        for name, rule in (("printed", printed_average), ("mean", mean_average))
    }
    return judged_average(off["printed"], off["mean"])


def printed_average(models: Sequence[Vector], local_batches: int) -> Vector:
    """Put models together as Algorithm 1 prints it."""
    return np.asarray(sum(models) / (local_batches * len(models)))


def mean_average(models: Sequence[Vector], local_batches: int) -> Vector:
    """Put models together as fedaccord does, from as many samples of each client."""
    from fedaccord.federation.algorithms.fedavg import FedAvg

    # How many they are does not matter, as long as they are as many.
    counts = np.full(len(models), local_batches)
    return FedAvg(local_batches=local_batches).aggregate(list(models), counts)


def distance_from_best(average: Any, local_batches: int) -> float:
    """Give how far training ends from the best model, in parts of the best model's size.

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


def judged_average(printed: Mapping[int, float], mean: Mapping[int, float]) -> Finding:
    """Judge the printed factor and the mean, by where training ends for each B.

    printed, mean: how far from the best model, by B.
    """
    evidence = {
        "printed": {str(b): off for b, off in printed.items()},
        "mean": {str(b): off for b, off in mean.items()},
    }
    said = ", ".join(f"{off:.2g} with B = {b}" for b, off in printed.items())
    measured = (
        f"On {CLIENTS} clients whose best common model is known, {ROUNDS} rounds end off it, in "
        f"parts of its size, by {said} as printed; with the plain mean of the models by at most "
        f"{max(mean.values()):.2g}."
    )
    if max(mean.values()) > FOUND:
        return Finding(Verdict.FAILS, measured, evidence=evidence)
    if max(printed.values()) <= FOUND:
        return Finding(Verdict.HOLDS, measured, evidence=evidence)
    right = ", ".join(str(b) for b, off in printed.items() if off <= FOUND) or "no B"
    return Finding(
        Verdict.CORRECTED,
        measured,
        f"1/k times the sum, the mean of the models. The printed factor is right for B = {right} "
        "only, as in the experiment; for larger B it shrinks the model itself in every round.",
        evidence,
    )


@CLAIMS.add(
    "algorithm-2",
    claim="MW-FED distributes a fixed number of samples in proportion to the weights",
    place="Section 6, Federating Algorithms; Appendix I, Algorithm 2",
    paper="MW-FED takes a fixed number of samples each round, in proportion to the weights; "
    "Algorithm 2 lets client i train floor(m_i / m) batches of m, where m_i = m B k w_i / sum(w), "
    "and the experiment has B = 1.",
    minutes=(0.1, 0.1),
)
def algorithm_2(setting: Setting) -> Finding:
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
    return judged_counts(found, size * agents, size)


def judged_counts(found: Sequence[Mapping[str, Any]], total: int, size: int) -> Finding:
    """Judge counts of samples by the sentence of Section 6, in exact fractions.

    found: for each weights, the shares they give, and the samples by either way.
    total: of samples in a round.
    size: m.
    """
    # What the printed line gives, worked out apart from the package.
    floors = [[size * int(total * s / size) for s in one["shares"]] for one in found]
    as_printed = all(one["printed"] == mine for one, mine in zip(found, floors, strict=True))
    fewer = sum(sum(mine) != total for mine in floors)
    below = [
        (mine[i], one["shares"][i] * len(mine) < 1)
        for one, mine in zip(found, floors, strict=True)
        for i in range(len(mine))
    ]
    short = [drawn for drawn, is_below in below if is_below]
    starved = sum(drawn == 0 for drawn in short)
    proportional = all(
        sum(one["exact"]) == total
        and all(abs(n - total * s) < 1 for n, s in zip(one["exact"], one["shares"], strict=True))
        for one in found
    )
    kept = "always" if proportional else "not always"
    measured = (
        f"For {len(found):,} sets of {len(floors[0])} weights: as printed, a round has fewer "
        f"than its {total} samples in {fewer:,} cases, and of {len(short):,} agents below the "
        f"average weight {starved:,} draw nothing at all. Exact counts {kept} sum to {total}, each "
        "within one sample of its share."
    )
    evidence = {
        "weights": len(found),
        "rounds_cut_short": fewer,
        "below_average": len(short),
        "of_these_without_samples": starved,
        "package_does_as_printed_when_asked": as_printed,
    }
    if not proportional or not as_printed:
        return Finding(Verdict.FAILS, measured, evidence=evidence)
    if not fewer and not starved:
        return Finding(Verdict.HOLDS, measured, evidence=evidence)
    return Finding(
        Verdict.CORRECTED,
        measured,
        "Client i draws m_i samples, made whole so that they sum to m B k. The floor of Algorithm "
        "2 leaves agents below the average weight without any at B = 1, and shortens the rounds.",
        evidence,
    )
