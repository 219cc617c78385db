"""Agents that estimate their own means and may share models: Donahue and Kleinberg (2021).

Agent i has n_i draws of a distribution whose mean varies from agent to agent with variance s2;
draws vary with variance m. A coalition of N draws in all makes one model, its mean. The expected
squared error of agent i is

    alone     m / n_i
    uniform   m / N + s2 (sum_{j != i} n_j^2 + (N - n_i)^2) / N^2
    coarse    the best mix w * own + (1 - w) * common, w per agent
    fine      the best mix of all members' means, a weight per pair

Kate Donahue and Jon Kleinberg, "Model-sharing games: analyzing federated learning under voluntary
participation", AAAI 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, as_numbers, check_choice
from fedaccord.coalitions.table import CoalitionTable, Members, tabulate_coalitions
from fedaccord.errors import InputError

FEDERATIONS = ("uniform", "coarse", "fine")


def tabulate_mean_estimation(
    samples: ArrayLike,
    *,
    federation: str = "uniform",
    noise: float = 10.0,
    spread: float = 1.0,
    weighted: bool = False,
    agents: Sequence[str] | None = None,
) -> CoalitionTable:
    """Return the expected errors of agents that share models of their means.

    samples: how many draws each agent has.
    federation: "uniform", "coarse" or "fine".
    noise: the variance of draws, m.
    spread: the variance of the agents' means, s2.
    weighted: whether totals count agents by their draws.
    agents: names.
    """
    counts = as_numbers(samples, "samples")
    if counts.ndim != 1 or not len(counts) or not (counts > 0).all():
        raise InputError("samples must be a list of numbers above 0, one per agent")
    for what, value in (("noise", noise), ("spread", spread)):
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{what} must be a number of 0 or more; got {value}")
    check_choice("federation", federation, FEDERATIONS)
    errors = {"uniform": uniform_errors, "coarse": coarse_errors, "fine": fine_errors}[federation]

    def cost(members: Members) -> Vector:
        return errors(counts[[*members]], noise, spread)

    weights = counts if weighted else None
    return tabulate_coalitions(len(counts), cost, agents=agents, weights=weights, what="errs by")


def _bias(counts: Vector, spread: float) -> Vector:
    """Return how far the common mean is from each agent's own, squared and expected."""
    total = counts.sum()
    others = (counts**2).sum() - counts**2
    return np.asarray(spread * (others + (total - counts) ** 2) / total**2)


def uniform_errors(counts: Vector, noise: float, spread: float) -> Vector:
    """Return the errors of members that all use the common mean."""
    return np.asarray(noise / counts.sum() + _bias(counts, spread))


def coarse_errors(counts: Vector, noise: float, spread: float) -> Vector:
    """Return the errors of members that each mix their own mean with the common one, at best.

        m (w^2 / n_i + (1 - w^2) / N) + (1 - w)^2 bias,   least at  w = bias / (a + bias)

    with a = m (1 / n_i - 1 / N).
    """
    common = noise / counts.sum()
    own, bias = noise / counts - common, _bias(counts, spread)
    both = own + bias
    mixed = np.divide(own * bias, both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(common + mixed)


def fine_errors(counts: Vector, noise: float, spread: float) -> Vector:
    """Return the errors of members that each weight all members' means, at best.

    With v_j = s2 + m / n_j the others' weights go as 1 / v_j; the rest is one quadratic.
    """
    own, vary = noise / counts, spread + noise / counts
    if len(counts) == 1:
        return own
    known = (1 / vary).sum() - 1 / vary
    others = 1 / known + spread
    return np.asarray(own * others / (own + others))
