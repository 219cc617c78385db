"""How far another seed, or another order of the rows, could move the total of a plan.

A probability over a few hundred worlds has an error of its own. The plans that the search for the
margin went through tell what a probability costs near the requested one, so no further plan has to
be made. Where samples run out, a small error of the probability is a large one of the total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from fedaccord._checks import Vector
from fedaccord.measurement.posterior import CHAINS
from fedaccord.planning.margins import Aim
from fedaccord.wording import count_whole

# Two runs differ by less than this many standard errors of one of them, with 95 %.
APART = 2 * math.sqrt(2)
# Probabilities are compared on a scale on which certainty is far away, but not infinitely.
SUREST = 1 - 1e-9
# A change of the total by more than this part of it is a reason to doubt the plan; and where an
# agent gives its limit, since totals of other seeds were seen to change by three times as much.
MUCH, MUCH_AT_LIMITS = 0.1, 0.03


@dataclass(frozen=True)
class Reseeded:
    """What the total of a plan could be with another seed, or another order of the rows.

    low, high: its ends, in samples; high is None if no plan was found that is as sure as it takes.
    total: of the plan.
    away: by how much the probability of the same contributions could change.
    at_limits: whether an agent gives its limit, so that the others may have to give still more.
    """

    low: float
    high: float | None
    total: float
    away: float
    at_limits: bool = False

    @property
    def change(self) -> float:
        """By how many samples the total could change, if there is a plan at all."""
        more = 0.0 if self.high is None else self.high - self.total
        return max(more, self.total - self.low)

    @property
    def is_much(self) -> bool:
        """Whether the total could change by so much that nobody should sign unaware of it."""
        most = MUCH_AT_LIMITS if self.at_limits else MUCH
        return self.high is None or self.change > most * self.total

    def describe(self, probability: str) -> str:
        """Return in a sentence by how much the total could change.

        probability: the requested one, as it is written.
        """
        digits = 1 - math.floor(math.log10(max(self.change, 1.0)))
        number = count_whole(round(max(self.change, 1.0), min(digits, 0)), "sample")
        number = f"{number} or more" if self.at_limits else f"about {number}"
        said = (
            f"The total could change by {number} with another random seed or another order of the "
            "rows."
        )
        if self.high is None:
            said += f" There may even be no plan with probability {probability}."
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the ends for machines."""
        return {"low": self.low, "high": self.high, "probability_change": self.away}


def reseed_total(chosen: Aim, seen: Sequence[Aim], worlds: Vector) -> Reseeded:
    """Return what the total could be with another seed.

    chosen: the plan.
    seen: plans for other margins.
    worlds: the probability that all agents reach their goals with the plan, in each world.
    """
    total = float(chosen.contributions.sum())
    order = sorted(seen, key=lambda aim: aim.everyone)
    known = np.array([aim.everyone for aim in order])
    costs = np.array([aim.contributions.sum() for aim in order])
    # What a probability costs at least: a surer plan that is cheaper will do as well.
    costs = np.minimum.accumulate(costs[::-1])[::-1]
    away = APART * find_error(worlds)

    def price(probability: float) -> float:
        ends = ndtri(np.minimum((probability, *known), SUREST))
        return float(np.interp(ends[0], ends[1:], costs))

    times = total / max(price(chosen.everyone), 1.0)
    low = times * price(max(chosen.everyone - away, known[0]))
    surer = find_surer(chosen, worlds)
    high = None if surer > known[-1] else times * price(surer)
    full = bool((chosen.contributions >= chosen.game.limits)[chosen.contributions > 0].any())
    high = None if high is None else max(high, total)
    return Reseeded(min(low, total), high, total, away, full)


def find_surer(chosen: Aim, worlds: Vector) -> float:
    """Return the probability that a plan must have so that with another seed it is sure enough.

    chosen: the plan.
    worlds: the probability that all agents reach their goals with the plan, in each world.
    """
    # Near certainty an error of the same size would leave no room: three quarters of it at most.
    return min(chosen.everyone + APART * find_error(worlds), 1 - (1 - chosen.everyone) / 4)


def find_error(worlds: Vector) -> float:
    """Return the standard error of a mean over worlds; those of one Markov chain are alike."""
    error = float(worlds.std() / np.sqrt(len(worlds)))
    rounds = len(worlds) // CHAINS
    if rounds < 2:
        return error
    # Each round has one world of every chain.
    chains = worlds[: rounds * CHAINS].reshape(rounds, CHAINS).mean(axis=0)
    return max(error, float(chains.std(ddof=1) / np.sqrt(CHAINS)))
