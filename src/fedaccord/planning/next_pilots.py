"""Which pilots to run next: those expected to narrow the interval of the stable total most.

Around theta, the stable plan without a margin, an error of agent i's curve moves its total T by

    dT / dx_i = y_i * (d err_i / dx_i) / -(d err_i / dn_i),   y = W_SS^-T costs_S

with x_i the parameters of its fit, n_i its effective samples and S the contributors, at theta. The
plan itself is uncertain, so the square of this is averaged over the plans of all resamples. A pilot
d measures every agent once, and by linear theory takes

    (dT/dx_i C_i j_i)^2 / (noise_i^2 + j_i' C_i j_i),   j_i = d err_i(d) / dx_i

from the variance of the total, with C_i the covariance of x_i. Pilots are chosen one after the
other, each in the light of what those before it will tell. Doubts that name an agent or a range
come first: each is answered by the most telling of the pilots that can answer it.

The plan without a margin is narrowed, because the margin's own size follows from it: on invented
federations, pilots chosen for the total with its margin were no better than the design.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord._io.kinds import PILOTS
from fedaccord._io.rows import Rows
from fedaccord.errors import InputError
from fedaccord.games.measured import find_needs
from fedaccord.measurement.design import Contributions, check_budget
from fedaccord.measurement.diagnostics import SUBJECTS, Doubt
from fedaccord.measurement.fit import Measurement
from fedaccord.measurement.pilots import continue_names
from fedaccord.measurement.to_run import Members, PilotList
from fedaccord.planning.candidates import Candidates, Chosen, find_most
from fedaccord.planning.probabilities import Estimate
from fedaccord.planning.result import Plan
from fedaccord.planning.selection import follow_equilibria
from fedaccord.wording import format_percent

# Up to this many agents the plans of all resamples are followed.
MOST_FOLLOWED = 40
# The least variance of a yes or no, as in the fit.
LEAST_VARIANCE = 0.01
TIDY = 1e-6


@dataclass(frozen=True, eq=False)
class NextPilots:
    """Pilots to run next, in the order in which they were chosen.

    plan: what they are to narrow.
    contributions: what each agent gives, pilot by pilot.
    why: what each pilot is for, a sentence or two each.
    widths: how wide the interval is expected to be after each pilot, as a part of what it is now.
    subject: what that interval is about.
    left: doubts that no pilot answers, for want of pilots or of samples.
    """

    plan: Plan
    contributions: tuple[Contributions, ...]
    why: tuple[str, ...]
    widths: tuple[float, ...]
    subject: str
    left: tuple[Doubt, ...]

    def __repr__(self) -> str:
        return f"NextPilots({len(self.contributions)} pilots): {self.verdict}"

    @property
    def verdict(self) -> str:
        """The expected narrowing in a sentence."""
        part = format_percent(1 - self.widths[-1])
        return f"These pilots are expected to make the interval of {self.subject} {part} narrower."

    @property
    def total(self) -> Estimate | None:
        """The stable total without a margin, with its interval; None where there is no plan."""
        return self.plan.totals.get("stable")

    def to_dict(self) -> dict[str, Any]:
        """Return the pilots for machines."""
        return {
            "verdict": self.verdict,
            "agents": [self.plan.name(i) for i in range(self.plan.size)],
            "contributions": [list(row) for row in self.contributions],
            "why": list(self.why),
            "expected_widths": list(self.widths),
            "total": None if self.total is None else self.total.to_dict(),
            "doubts_left": [vars(doubt) for doubt in self.left],
        }


def choose_next_pilots(plan: Plan, count: int) -> NextPilots:
    """Choose the pilots that are expected to narrow a plan most.

    plan: made from pilots.
    count: how many more pilots.
    """
    if plan.measurement is None:
        raise InputError("next pilots are chosen from a plan made from pilots; this one was not")
    search = _Search(plan, plan.measurement)
    for _ in range(check_budget(count)):
        search.add()
    return search.finish()


class _Search:
    """Chooses pilots one after the other.

    plan, measurement: what is to be narrowed.
    """

    def __init__(self, plan: Plan, measurement: Measurement) -> None:
        self.plan, self.measurement = plan, measurement
        self.candidates = Candidates.near(plan, measurement)
        self.subject, self.gradients = find_gradients(plan, measurement)
        answers = [(doubt, *self.candidates.answer(doubt)) for doubt in plan.doubts]
        self.open: list[tuple[Doubt, Chosen, int]] = [one for one in answers if one[2]]
        # Pilots may fail again, and no choice of contributions answers that.
        self.never = [doubt for doubt, _, times in answers if not times and doubt.agent is not None]
        self.covariances = [
            np.linalg.inv(fit.information + fit.prior.precision) for fit in measurement.fits
        ]
        self.slopes, self.noise = [], []
        for fit in measurement.fits:
            model = dataclasses.replace(fit.model, contributions=self.candidates.contributions)
            errors, slopes = model.slopes(fit.found[None])
            measuring = np.maximum(errors[0] * (1 - errors[0]), LEAST_VARIANCE) / fit.validation
            self.slopes.append(slopes[0])
            self.noise.append(fit.training**2 + measuring)
        self.variances = [self._variance]
        self.chosen: list[int] = []
        self.why: list[str] = []

    @property
    def _variance(self) -> float:
        pairs = zip(self.gradients, self.covariances, strict=True)
        return sum(float(np.einsum("bi,ij,bj->b", g, c, g).mean()) for g, c in pairs)

    def _rate(self) -> Matrix:
        """Return what each pilot would take from the variance, by the agent that tells it."""
        gains = []
        parts = zip(self.gradients, self.covariances, self.slopes, self.noise, strict=True)
        for gradients, covariance, slopes, noise in parts:
            along = slopes @ covariance
            gains.append(
                ((along @ gradients.T) ** 2).mean(axis=1) / (noise + (along * slopes).sum(axis=1))
            )
        return np.array(gains).T

    def add(self) -> None:
        """Choose the most telling pilot, among those that answer a doubt while one is open."""
        gains = self._rate()
        allowed = np.ones(len(gains), dtype=bool)
        if self.open:
            allowed = np.any([answers for _, answers, _ in self.open], axis=0)
        best = int(np.argmax(np.where(allowed, gains.sum(axis=1), -1.0)))
        answered = [doubt for doubt, answers, _ in self.open if answers[best]]
        self.why.append(self._explain(best, gains[best], answered))
        self.chosen.append(best)
        self._learn(best)
        self._close(best)

    def _learn(self, pilot: int) -> None:
        for agent, covariance in enumerate(self.covariances):
            slope = self.slopes[agent][pilot]
            along = covariance @ slope
            known = np.outer(along, along) / (self.noise[agent][pilot] + along @ slope)
            self.covariances[agent] = covariance - known
        self.variances.append(self._variance)

    def _close(self, pilot: int) -> None:
        still = []
        for doubt, answers, times in self.open:
            left = times - int(answers[pilot])
            if doubt.kind == "too-few-pilots":
                # It asks for pilots that differ from each other.
                answers = answers & (np.arange(len(answers)) != pilot)
            if left:
                still.append((doubt, answers, left))
        self.open = still

    def _explain(self, pilot: int, gains: Vector, answered: Sequence[Doubt]) -> str:
        said = [f"{self.candidates.labels[pilot]}."]
        for doubt in answered:
            whose = "" if doubt.agent is None else f" about {self.plan.name(doubt.agent)}"
            said.append(f"This pilot answers a doubt{whose}: {SUBJECTS[doubt.kind]}.")
        if gains.sum() > 0:
            agent = int(np.argmax(gains))
            said.append(f"This pilot shows most about {self.plan.name(agent)}.")
        return " ".join(said)

    def finish(self) -> NextPilots:
        """Return what was chosen."""
        start = self.variances[0] or 1.0
        widths = tuple(float(max(v, 0.0) / start) ** 0.5 for v in self.variances[1:])
        rows = self.candidates.contributions[self.chosen]
        return NextPilots(
            plan=self.plan,
            contributions=tuple(tuple(int(n) for n in row) for row in rows),
            why=tuple(self.why),
            widths=widths,
            subject=self.subject,
            left=(*(doubt for doubt, _, _ in self.open), *self.never),
        )


# What is to be narrowed.


def find_gradients(plan: Plan, measurement: Measurement) -> tuple[str, list[Matrix]]:
    """Return what is to be narrowed, and how it moves with each agent's parameters.

    Of each agent one row for every resample whose plan could be followed.
    """
    if plan.contributions is None or plan.stable is None or not plan.stable.values.any():
        return _find_reach(plan, measurement)
    plans = _follow(plan, measurement, plan.stable.values)
    weights = np.array([_weigh(plan, measurement, row) for row in plans])
    gradients = []
    for agent in range(plan.size):
        slopes = _slopes_at(measurement, agent, plans)
        _, height, head, pace = measurement.curves[agent]
        samples = plans @ measurement.benefits[agent]
        by_sample = height * pace * (head + samples) ** (-pace - 1)
        gradients.append(slopes * (weights[:, agent] / by_sample)[:, None])
    return "the stable plan's total", gradients


def _follow(plan: Plan, measurement: Measurement, chosen: Vector) -> Matrix:
    """Return the plan in each resample, or the plan alone where there are many agents."""
    game = plan.bare
    if plan.size > MOST_FOLLOWED:
        return chosen[None]
    drawn = measurement.resamples
    needs = find_needs(drawn.curves, measurement.goals)
    plans = follow_equilibria(drawn.benefits, needs, game.minimums, game.limits, chosen)
    known = plans[~np.isnan(plans).any(axis=1)]
    return known if len(known) else chosen[None]


def _weigh(plan: Plan, measurement: Measurement, given: Vector) -> Vector:
    """Return y: how much the total grows with each agent's need, where these are the plan."""
    game = plan.bare
    scale = TIDY * max(float(given.max()), 1.0)
    inside = np.flatnonzero((given > game.minimums + scale) & (given < game.limits - scale))
    weights = np.zeros(plan.size)
    block = measurement.benefits[np.ix_(inside, inside)]
    weights[inside] = np.linalg.lstsq(block.T, game.costs[inside], rcond=None)[0]
    return weights


def _find_reach(plan: Plan, measurement: Measurement) -> tuple[str, list[Matrix]]:
    """Return how the accuracies with all data move, where there is no total to narrow."""
    most = find_most(measurement)
    missed = {one.agent for one in plan.unreachable} or set(range(plan.size))
    gradients = [
        _slopes_at(measurement, agent, most[None]) * (agent in missed) for agent in range(plan.size)
    ]
    names = ", ".join(plan.name(agent) for agent in sorted(missed))
    return f"the accuracy that {names} can reach", gradients


def _slopes_at(measurement: Measurement, agent: int, given: Matrix) -> Matrix:
    fit = measurement.fits[agent]
    model = dataclasses.replace(fit.model, contributions=given)
    return np.asarray(model.slopes(fit.found[None])[1][0])


# The table to fill in.


def list_next_pilots(found: NextPilots, rows: Rows) -> PilotList:
    """Return pilots as rows to append to a table: in its columns, with names that follow on.

    found: the pilots.
    rows: of the table.
    """
    sheet = rows.to_sheet(PILOTS)
    table = found.plan.measurement.table  # type: ignore[union-attr]
    most = np.where(np.isinf(table.limits), table.contributions.max(axis=0), table.limits)
    headings = tuple(head for head in rows.cells[0] if head)
    return PilotList(
        Members(table.agents, most),
        found.contributions,
        continue_names(sheet.names("pilot"), len(found.contributions)),
        found.why,
        headings,
    )
