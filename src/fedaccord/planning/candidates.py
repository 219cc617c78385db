"""Pilots that could be run next, what each is in words, and which doubts it would answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Matrix, Vector
from fedaccord.games.measured import find_needs
from fedaccord.measurement.curve_fit import CURVE
from fedaccord.measurement.diagnostics import Doubt, estimate_unbounded_worth
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.result import Plan
from fedaccord.wording import format_percent

# The parts of what agents can give: by all, by one alone, by all but one; of many agents fewer.
LEVELS, FEW_LEVELS, MANY = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05), (1.0, 0.35, 0.1), 40
# The parts of the plan: by all, by one among others that follow the plan, and by all but one.
PARTS = (0.25, 0.5, 1.0, 1.5, 2.0)
# A pilot has much of an agent from this part of what it can give on.
MUCH = 0.3
# An agent without a limit can give this many times what it gave in any pilot.
BEYOND = 2.0
# How near effective samples come to those a doubt asks for.
NEAR = 0.9

Chosen = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pilots to choose from.

    measurement: what earlier pilots measured.
    contributions: what each agent gives, a row for each pilot, in whole samples.
    labels: what each is in words, without a full stop.
    alone: the agent that alone gives, or that gives more than the plan asks; -1 for none.
    needs: the effective samples that each agent is planned to have.
    """

    measurement: Measurement
    contributions: Matrix
    labels: tuple[str, ...]
    alone: NDArray[np.intp]
    needs: Vector

    @classmethod
    def near(cls, plan: Plan, measurement: Measurement) -> Candidates:
        """List the levels of the design, pilots near a plan, and those that were run already."""
        most = find_most(measurement)
        rows: dict[tuple[int, ...], tuple[str, int]] = {}
        for given, label, alone in _list_all(plan, measurement, most):
            whole = np.floor(np.minimum(given, most) + 0.5)
            if whole.any():
                rows.setdefault(tuple(int(n) for n in whole), (label, alone))
        needs = plan.game.requirements
        if plan.contributions is None:
            needs = find_needs(measurement.curves, measurement.goals)
        return cls(
            measurement,
            np.array(list(rows), dtype=float),
            tuple(label for label, _ in rows.values()),
            np.array([alone for _, alone in rows.values()]),
            needs,
        )

    def answer(self, doubt: Doubt) -> tuple[Chosen, int]:
        """Return which pilots would answer a doubt, and how many of them it takes; 0 for none.

        doubt: of the plan.
        """
        agent = doubt.agent
        if doubt.kind == "too-few-pilots":
            answers, times = self._find_new(agent)
        elif agent is None:
            return np.zeros(len(self.labels), dtype=bool), 0
        else:
            answers, times = self._find_for(doubt.kind, agent), 1
        return answers, times if answers.any() else 0

    def _find_for(self, kind: str, agent: int) -> Chosen:
        samples = self.contributions @ self.measurement.benefits[agent]
        fit = self.measurement.fits[agent]
        tried = fit.model.contributions @ self.measurement.benefits[agent]
        if kind == "saturation-below-goal":
            return np.asarray(samples >= NEAR * samples.max())
        if kind == "extrapolation":
            if self.needs[agent] < tried.min():
                return np.asarray(samples <= max(self.needs[agent] / NEAR, samples.min()))
            enough = min(self.needs[agent], samples.max())
            # Where even all samples are no more than were tried, no pilot answers.
            return np.asarray((samples >= NEAR * enough) & (samples > tried.max()))
        if kind == "poor-fit":
            return self._find_tried()
        if kind == "negative-transfer":
            return self._find_much_of(self._find_harm(agent))
        if not fit.model.contributions[:, agent].any():
            return np.asarray(self.contributions[:, agent] > 0)
        return self._find_much_of(self._find_open(agent))

    def _find_new(self, agent: int | None) -> tuple[Chosen, int]:
        """Return the pilots that were not run yet, and how many the curve of an agent lacks."""
        fits = self.measurement.fits if agent is None else [self.measurement.fits[agent]]
        known = min(len(np.unique(fit.model.contributions, axis=0)) for fit in fits)
        return ~self._find_tried(), max(CURVE + self.measurement.table.size - 1 - known, 0)

    def _find_tried(self) -> Chosen:
        tried = {tuple(row) for row in self.measurement.table.contributions.tolist()}
        return np.array([tuple(row) in tried for row in self.contributions.tolist()])

    def _find_much_of(self, other: int) -> Chosen:
        most = find_most(self.measurement)[other]
        much = self.contributions[:, other] >= MUCH * most
        return np.asarray(much & (self.alone == other))

    def _find_harm(self, agent: int) -> int:
        """Return the agent whose samples seem to do most harm, in standard errors."""
        fit = self.measurement.fits[agent]
        others: list[int] = fit.model.others.tolist()
        found = {j: estimate_unbounded_worth(fit, j) for j in others}
        return min(found, key=lambda j: float(found[j][0] / found[j][1]))

    def _find_open(self, agent: int) -> int:
        """Return the agent whose worth to another is known least."""
        low, high = np.quantile(
            self.measurement.resamples.benefits[:, agent], [0.025, 0.975], axis=0
        )
        return int(np.argmax(high - low))


def find_most(measurement: Measurement) -> Vector:
    """Return the most samples each agent can give in a pilot; a guess where nothing limits it."""
    table = measurement.table
    tried = table.contributions.max(axis=0)
    guess = BEYOND * np.where(tried > 0, tried, table.contributions.max())
    return np.floor(np.where(np.isinf(table.limits), guess, table.limits))


def _list_all(
    plan: Plan, measurement: Measurement, most: Vector
) -> Iterator[tuple[Vector, str, int]]:
    """Yield pilots with what they are in words, and the agent that each has much of."""
    agents = [i for i in range(plan.size) if most[i] > 0]
    names = {i: plan.name(i) for i in agents}
    if plan.stable is not None and plan.stable.values.any():
        yield from _list_near_plan(plan.stable.values, most, names)
    for level in LEVELS if plan.size <= MANY else FEW_LEVELS:
        part = "all" if level == 1 else f"{format_percent(level)} of what"
        part += " it can give"
        yield level * most, f"Every agent gives {part}", -1
        for i, name in names.items():
            own = np.arange(plan.size) == i
            yield np.where(own, level * most, 0.0), f"Only {name} gives samples: {part}", i
            yield np.where(own, 0.0, level * most), f"Every agent but {name} gives {part}", -1
    for row in np.unique(measurement.table.contributions, axis=0):
        yield row, "This pilot repeats an earlier one with new samples", -1


def _list_near_plan(
    given: Vector, most: Vector, names: dict[int, str]
) -> Iterator[tuple[Vector, str, int]]:
    plan = "the plan without a safety margin"
    yield given, f"Every agent follows {plan}", -1
    for part in PARTS:
        if part != 1:
            yield part * given, f"Every agent gives {format_percent(part)} of {plan}", -1
    for i, name in names.items():
        own = np.arange(len(given)) == i
        yield np.where(own, 0.0, given), f"Every agent but {name} follows {plan}", -1
        yield (
            np.where(own, most, given),
            f"{name} gives all it can, and the others follow {plan}",
            i,
        )
        for part in PARTS:
            if part != 1 and given[i]:
                said = f"{name} gives {format_percent(part)} of {plan}, and the others follow it"
                yield np.where(own, part * given, given), said, -1
