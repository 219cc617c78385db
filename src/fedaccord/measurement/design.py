"""Which pilots to run: the contributions that show most about learning curves and benefits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from fedaccord.errors import InputError

# What each agent gives in a pilot, in whole samples.
Contributions: TypeAlias = tuple[int, ...]

# How often the whole design is repeated where no budget is given, and the largest budget.
REPEATS, MOST_PILOTS = 3, 500_000
# All agents give the same part of what they have: the first three pilots show the height, the start
# and the bend of a learning curve, the other two its shape.
FIRST_LEVELS, MORE_LEVELS = (1.0, 0.1, 0.35), (0.6, 0.2)
# One agent gives nothing and the others some; one gives much and the others little. Nothing,
# because plans often ask nothing of an agent, and under FedAvg two samples, drawn again and again,
# are far from none. Not too little, because there accuracy is mostly chance, far from any plan.
WITHOUT, ALONE = (0.0, 0.3), (0.8, 0.1)
# Among few agents the others give nothing at all: what an agent reaches alone is then near a plan,
# and shows most of what it needs. Each repetition has other levels, and later ones have one pilot
# of all agents in place of five. Linear theory over invented federations found no design of as many
# pilots that shows the total of a stable plan much better.
FEW_WITHOUT, FEW_ALONE, AGAIN = (0.5, 0.7, 0.35), (0.35, 0.5, 0.7), 0.35
FEW = 4


def usual_budget(agents: int) -> int:
    """Return a sensible number of pilots: the whole design, three times."""
    return REPEATS * whole_design(agents)


def whole_design(agents: int) -> int:
    """Return how many pilots one round of the design has, 2 k + 5."""
    return len(FIRST_LEVELS) + len(MORE_LEVELS) + 2 * agents


def pilot_design(points: Sequence[int], *, budget: int) -> list[Contributions]:
    """Choose what agents give in each pilot.

    All agents give the same part of what they have (five pilots). Each in turn gives nothing while
    the others give some, which shows what it is worth to them. Each in turn gives much while the
    others give little or nothing, which shows what it is worth to itself. That makes 2 k + 5
    pilots, repeated while the budget lasts; among few agents at other levels each time. The more
    agents there are, the less each gives in most pilots. The order is such that the first pilots
    show most of what so few can. An agent that has no samples gives none and only measures.

    points: how many samples each agent has.
    budget: how many pilots.
    """
    sizes = [int(n) for n in points]
    if not sizes or min(sizes) < 0 or not any(sizes):
        raise InputError(f"pilots need agents that have samples; got {sizes}")
    giving = [place for place, size in enumerate(sizes) if size]
    design = []
    for levels in itertools.islice(_levels(len(giving)), check_budget(budget)):
        everywhere = [0.0] * len(sizes)
        for place, level in zip(giving, levels, strict=True):
            everywhere[place] = level
        design.append(take_parts(sizes, everywhere))
    return design


def check_budget(budget: Any) -> int:
    """Return a budget that is a number of runs, or raise an InputError."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise InputError(f"the budget must be a whole number of training runs; got {budget!r}")
    if not 1 <= budget <= MOST_PILOTS:
        raise InputError(f"the budget must be 1 to {MOST_PILOTS:,} training runs; got {budget}")
    return int(budget)


def check_design(
    design: Sequence[Sequence[int]], agents: Sequence[str], points: Sequence[int]
) -> list[Contributions]:
    """Return pilots that a user chose, or raise an InputError.

    design: what each agent gives in each pilot.
    agents: their names.
    points: how many samples each has.
    """
    chosen = [tuple(int(n) for n in pilot) for pilot in design]
    for number, pilot in enumerate(chosen):
        if len(pilot) != len(points):
            raise InputError(
                f"pilot {number} names {len(pilot)} contributions for {len(points)} agents"
            )
        for name, given, have in zip(agents, pilot, points, strict=True):
            if not 0 <= given <= have:
                raise InputError(
                    f"{name} gives {given} samples in pilot {number} and has {have}: give a number "
                    f"from 0 to {have}"
                )
        if not any(pilot):
            raise InputError(f"no agent gives anything in pilot {number}: leave it out")
    return chosen


def take_parts(sizes: Sequence[int], levels: Sequence[float]) -> Contributions:
    """Return parts of what agents have in whole samples, one sample at least in all.

    sizes: how many samples each agent has.
    levels: the part that each gives.
    """
    given = [math.floor(n * level + 0.5) for n, level in zip(sizes, levels, strict=True)]
    if not any(given):
        # So small a part of very few samples is none, and nothing could be trained.
        parts = np.multiply(sizes, levels)
        given[int(np.argmax(parts if parts.any() else np.array(sizes) > 0))] = 1
    return tuple(given)


def _levels(agents: int) -> Iterator[list[float]]:
    """Yield the part of its samples that each agent gives, pilot by pilot, without end."""
    # A tenth each of more than FEW agents would be more than any of them could need: a tenth
    # becomes what FEW of them would give, and all stays all.
    power = 1 + math.log10(max(agents, FEW) / FEW)
    (nothing, some), (much, little) = WITHOUT, ALONE
    if agents <= FEW:
        some, much, little = FEW_WITHOUT[0], FEW_ALONE[0], 0.0
    while True:
        yield from ([level**power] * agents for level in FIRST_LEVELS)
        yield from _each_in_turn(agents, nothing, some**power)
        yield from ([level**power] * agents for level in MORE_LEVELS)
        yield from _each_in_turn(agents, much, little**power)
        if agents <= FEW:
            break
    for time in itertools.count(1):
        yield [AGAIN] * agents
        yield from _each_in_turn(agents, FEW_ALONE[time % len(FEW_ALONE)], 0.0)
        yield from _each_in_turn(agents, 0.0, FEW_WITHOUT[time % len(FEW_WITHOUT)])


def _each_in_turn(agents: int, own: float, others: float) -> Iterator[list[float]]:
    for agent in range(agents):
        yield [own if other == agent else others for other in range(agents)]
