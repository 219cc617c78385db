"""Pilots with several measures: a game of several goals per agent, and who harms whom.

Each measure is fitted by itself, as accuracies are. A measure that falls with data, such as log
loss, is fitted as 1 - value / unit, with a unit above all of its values and goals: a power law with
a floor stays one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtr

from fedaccord._checks import Matrix, Vector, as_numbers, check_real
from fedaccord._io.kinds import FAILED, PILOTS
from fedaccord._io.numbers import Exact, Marks, read_number
from fedaccord._io.rows import Rows
from fedaccord._io.table import format_table, read_rows, write_table
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.chances import Fading
from fedaccord.games.goals import MEASURES, Goal, GoalsGame, LossCurve, Worlds, read_measure
from fedaccord.games.measured import LearningCurve, find_needs, predict_accuracies
from fedaccord.measurement.diagnostics import estimate_unbounded_worth
from fedaccord.measurement.fit import Measurement, fit_curves, list_scatter
from fedaccord.measurement.noise import count_alike, count_by_deviations
from fedaccord.measurement.pilots import PilotTable
from fedaccord.measurement.pooling import find_fading
from fedaccord.wording import format_probability

# The largest value of a measure that falls is this part of its unit.
FILLED = 0.9
TINY = 1e-12
# A goal of a loss that is this many times every value is in another unit.
MOST_TIMES = 10.0
# Doubts that are about pilots, and not about accuracies: they hold for every measure.
ABOUT_PILOTS = ("suspect-rows", "failed-pilots", "too-few-pilots")
# The columns of pilots with several measures.
MEASURED = ("pilot", "agent", "contribution", "measure", "value", "sd", "goal", "limit")


@dataclass(frozen=True)
class Harm:
    """What samples of another seem to do to an agent.

    agent, other: their names.
    worth: of one sample of the other, in samples of the agent; below zero where it harms.
    error: the standard error of that.
    probability: that the worth is below zero, as far as the pilots tell.
    """

    agent: str
    other: str
    worth: float
    error: float
    probability: float

    @property
    def sentence(self) -> str:
        """The estimate in words."""
        verb = "takes away" if self.worth < 0 else "adds"
        return (
            f"A sample of {self.other} {verb} {abs(self.worth):.2g} samples of {self.agent} "
            f"(standard error {self.error:.1g}): it harms with probability {self.probability:.2f}."
        )


def find_harm(measurement: Measurement) -> tuple[Harm, ...]:
    """Return for all pairs of agents what one does to the other, the likeliest harm first.

    The fit has no worth below zero. This takes one step of Newton's method from it with one worth
    free, so that large harm is underestimated.

    measurement: a fit to pilots.
    """
    names = measurement.agents
    found = []
    for agent, fit in enumerate(measurement.fits):
        for other in fit.model.others.tolist():
            worth, error = estimate_unbounded_worth(fit, other)
            sure = float(stdtr(max(fit.freedom, 1.0), -worth / error)) if error > 0 else math.nan
            found.append(Harm(names[agent], names[other], worth, error, sure))
    return tuple(sorted(found, key=lambda harm: -harm.probability))


@dataclass(frozen=True, eq=False)
class GoalsMeasurement:
    """A game of several goals measured by pilots.

    measurements: the fit of each measure by its name, such as "sensitivity, over 75".
    units: of each measure, 1 unless it falls with data.
    certainty: the probability of harm from which a negative worth is used; None where none is.
    pilots: of each measure, the names of the pilots that have it; numbers where left out.
    """

    measurements: Mapping[str, Measurement]
    units: Mapping[str, float]
    certainty: float | None = None
    pilots: Mapping[str, Sequence[str | int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.pilots:
            numbered = {name: range(len(m.table)) for name, m in self.measurements.items()}
            object.__setattr__(self, "pilots", numbered)

    def __repr__(self) -> str:
        first = next(iter(self.measurements.values()))
        return f"GoalsMeasurement({len(first.agents)} agents, {', '.join(self.measurements)})"

    @cached_property
    def game(self) -> GoalsGame:
        """The game as fitted; an UnreachableError where a goal cannot be met."""
        return self.make_game(np.zeros(len(self._wants)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Which agents have too few pilots, or failed ones, a sentence each."""
        found = (
            doubt.sentence
            for measured in self.measurements.values()
            for doubt in measured.doubts
            if doubt.kind in ABOUT_PILOTS
        )
        # All measures are of the same pilots.
        return tuple(dict.fromkeys(found))

    @cached_property
    def _wants(self) -> list[tuple[str, int]]:
        """The measure and the agent of each goal, in the order of the game."""
        found = [
            (agent, name)
            for name, measured in self.measurements.items()
            for agent in np.flatnonzero(~np.isnan(measured.goals)).tolist()
        ]
        return [(name, agent) for agent, name in sorted(found, key=lambda pair: pair[0])]

    def make_game(self, margins: Vector) -> GoalsGame:
        """Return the game with targets above the goals.

        margins: of each goal, in shares of the measure's unit.
        """
        table = next(iter(self.measurements.values())).table
        pairs = zip(self._wants, margins.tolist(), strict=True)
        return GoalsGame(
            [self._make_goal(name, agent, margin) for (name, agent), margin in pairs],
            agents=table.agents,
            limits=table.limits,
            minimums=table.minimums,
            costs=table.costs,
            worlds=self._draw_worlds(margins),
        )

    def _draw_worlds(self, margins: Vector) -> Worlds:
        """Return the rows and needs of the goals in each resample, with targets above the goals."""
        needs = [
            find_needs(
                self.measurements[name].resamples.curves[:, agent],
                np.asarray(self.measurements[name].goals[agent] + margin),
            )
            for (name, agent), margin in zip(self._wants, margins.tolist(), strict=True)
        ]
        return Worlds(self._drawn_rows, np.array(needs).T)

    @cached_property
    def _drawn_rows(self) -> Matrix:
        """The rows of the goals in each resample, B x goals x k."""
        found = []
        for name, agent in self._wants:
            worths = self._worths[name][agent]
            drawn = self.measurements[name].resamples.benefits[:, agent]
            # Resamples have no worth below zero: harm is as great as in the game in all of them.
            found.append(np.where(worths < 0, worths, drawn))
        return np.stack(found, axis=1)

    def _make_goal(self, name: str, agent: int, margin: float) -> Goal:
        measured, unit = self.measurements[name], self.units[name]
        kind = _kind_of(name)
        floor, height, head, pace = measured.curves[agent].tolist()
        row = self._worths[name][agent]
        target = float(measured.goals[agent]) + margin
        who = measured.agents[agent]
        if 1 - target <= floor:
            raise UnreachableError(
                f'no amount of data reaches the target of "{name}" of {who}: give it an easier goal'
            )
        if MEASURES[kind].rises:
            curve = LearningCurve(floor, height, head, pace)
            return Goal(who, name, row, measure=kind, at_least=target, curve=curve, margin=margin)
        loss = LossCurve(unit * floor, unit * height, head, pace)
        at_most = float(f"{unit * (1 - target):.12g}")
        margin = unit * margin
        return Goal(who, name, row, measure=kind, at_most=at_most, curve=loss, margin=margin)

    @cached_property
    def _worths(self) -> Mapping[str, Matrix]:
        """By measure, W as fitted, with negative worths where harm is certain enough."""
        found = {name: np.array(measured.benefits) for name, measured in self.measurements.items()}
        if self.certainty is not None:
            for name, measured in self.measurements.items():
                for harm in find_harm(measured):
                    if harm.probability >= self.certainty:
                        pair = measured.agents.index(harm.agent), measured.agents.index(harm.other)
                        found[name][pair] = harm.worth
        return found

    def _predict(self, contributions: ArrayLike) -> Iterator[tuple[Vector, Vector, float, float]]:
        """Yield what resamples expect of each goal, their scatter, the goal and the finishing."""
        given = as_numbers(contributions, "contributions")
        effective, scale = self._drawn_rows @ given, self._fading.scale(given.sum())
        for (name, agent), samples in zip(self._wants, effective.T, strict=True):
            measured = self.measurements[name]
            drawn = measured.resamples
            reached = predict_accuracies(drawn.curves[:, agent], np.maximum(samples, 0.0))
            goal = float(measured.goals[agent])
            yield reached, scale * drawn.training[:, agent], goal, measured.table.finishing

    def chances(self, contributions: ArrayLike) -> Vector:
        """Return the probability that one run reaches each goal of the game, in its order.

        By what the curves may be and how far runs scatter, as fitted; harm is that of the game.

        contributions: who gives how much.
        """
        return np.array(
            [
                float(ndtr((reached - goal) / np.maximum(training, TINY)).mean()) * finishing
                for reached, training, goal, finishing in self._predict(contributions)
            ]
        )

    def spreads(self, contributions: ArrayLike) -> Vector:
        """Return the standard deviation of one run round what the fit expects, goal by goal.

        In shares of the measure's unit.

        contributions: who gives how much.
        """
        return np.array(
            [
                float(np.sqrt(np.var(reached) + np.mean(training**2)))
                for reached, training, _, _ in self._predict(contributions)
            ]
        )

    def describe(self, contributions: ArrayLike) -> str:
        """Return how likely one run is to reach all goals, and which goal is the least likely."""
        chances = self.chances(contributions)
        worst = int(np.argmin(chances))
        together, goal = self.estimate_all(contributions), self.game.goals[worst]
        least = self.chance_of_all(contributions)
        return (
            f"One run reaches all goals with probability {format_probability(together)} if goals "
            f"move together as in the pilots, and at least {least:.2f} in any case. Least likely: "
            f'{goal.agent}, "{goal.name}", {format_probability(float(chances[worst]))}.'
        )

    @cached_property
    def _fading(self) -> Fading:
        """How runs with more samples scatter less."""
        wants = [(self.measurements[name], agent) for name, agent in self._wants]
        found = [list_scatter(one.table, [one.fits[agent]]) for one, agent in wants]
        return find_fading([one for each in found for one in each])

    @cached_property
    def _residuals(self) -> Matrix:
        """How far each pilot was from what the fit expects, pilots x goals; NaN if not measured.

        Scaled to the training scatter that the fit found for runs of one size.
        """
        names = chain.from_iterable(self.pilots.values())
        rows = {pilot: row for row, pilot in enumerate(dict.fromkeys(names))}
        found = np.full((len(rows), len(self._wants)), np.nan)
        for column, (name, agent) in zip(found.T, self._wants, strict=True):
            measured = self.measurements[name]
            table = measured.table
            samples = np.maximum(table.contributions @ self._worths[name][agent], 0.0)
            expected = predict_accuracies(measured.curves[agent], samples)
            alike = table.accuracies[:, agent] - expected
            alike /= self._fading.scale(table.contributions.sum(axis=1))
            size = max(float(np.sqrt(np.nanmean(alike**2))), TINY)
            places = [rows[pilot] for pilot in self.pilots[name]]
            column[places] = alike * float(measured.training_noise[agent]) / size
        return found

    def estimate_all(self, contributions: ArrayLike) -> float:
        """Return the probability that one run reaches all goals, by how goals moved together.

        A pilot measures all goals of one run, so what it was off in one goal goes with what it was
        off in the others: every pilot is taken as what chance may do to a run, and more so if the
        run has fewer samples than the pilot. Pilots that measured only some of the goals do not
        tell. If no pilot measured all, the misses of goals are added up.

        contributions: who gives how much.
        """
        given = as_numbers(contributions, "contributions")
        known = ~np.isnan(self._residuals)
        whole = self._residuals[known.all(axis=1)]
        if not len(whole):
            return self._add_up_misses(given)
        residuals = self._fading.scale(given.sum()) * whole
        spare = np.array([reached - goal for reached, _, goal, _ in self._predict(given)])
        reached = spare.T[:, None, :] + residuals >= 0
        return float(reached.all(axis=2).mean() * known.any(axis=1).mean())

    def chance_of_all(self, contributions: ArrayLike) -> float:
        """Return a lower bound on the probability that one run reaches all goals.

        Misses of goals are added up, however they go together. The bound holds if runs scatter
        normally. If pilots scattered so unlike that the estimate is lower, it is the bound.
        """
        return min(self._add_up_misses(contributions), self.estimate_all(contributions))

    def _add_up_misses(self, contributions: ArrayLike) -> float:
        """Return one less the probabilities of all misses, which never go together then."""
        return max(0.0, 1.0 - float((1 - self.chances(contributions)).sum()))


@dataclass(frozen=True, eq=False)
class GoalPilots:
    """n pilot trainings of k agents with g measures each.

    agents: names.
    measures: names, each one of MEASURES, or one with a group after a comma.
    contributions: n x k, how many samples each agent gave in each pilot.
    values: n x k x g; NaN where training failed.
    deviations: n x k x g, the standard deviation of each value by chance in the validation points;
        NaN where not known.
    goals: k x g, what each agent wants of each measure; NaN where it wants nothing of one.
    limits: the most that each agent can give.
    """

    agents: tuple[str, ...]
    measures: tuple[str, ...]
    contributions: Matrix
    values: Matrix
    deviations: Matrix
    goals: Matrix
    limits: Vector

    def __len__(self) -> int:
        return len(self.contributions)

    def __repr__(self) -> str:
        return f"GoalPilots({len(self)} pilots, {len(self.agents)} agents, {self.measures})"

    def list_lines(self) -> Iterator[list[str | float | int]]:
        """Return one line per pilot, agent and measure, with the columns MEASURED."""
        size = np.ndindex(len(self), len(self.agents), len(self.measures))
        for pilot, agent, measure in size:
            value, spread = (x[pilot, agent, measure] for x in (self.values, self.deviations))
            yield [
                pilot,
                self.agents[agent],
                int(self.contributions[pilot, agent]),
                self.measures[measure],
                "failed" if math.isnan(value) else float(value),
                float(spread) if spread > 0 else "",
                "" if math.isnan(goal := self.goals[agent, measure]) else float(goal),
                int(self.limits[agent]),
            ]

    def save(self, path: str | Path) -> None:
        """Write MEASURES.csv or MEASURES.xlsx, replacing the file in one step."""
        write_table(path, MEASURED, self.list_lines())

    def to_csv(self) -> str:
        """Return the table as CSV."""
        return format_table(MEASURED, self.list_lines())

    def to_rows(self) -> Rows:
        """Return the table as a file of it is read."""
        cells: list[list[str]] = [list(MEASURED)]
        cells += [[Exact(cell) for cell in line] for line in self.list_lines()]
        return Rows("the pilots", list(range(1, len(cells) + 1)), cells)


def fit_goals(
    table: str | Path | Rows | GoalPilots,
    *,
    certainty: float | None = None,
    seed: int = 0,
    resamples: int | None = None,
) -> GoalsMeasurement:
    """Fit a game of several goals to pilots with several measures.

        pilot,agent,contribution,measure,value[,goal][,sd][,limit][,minimum][,cost]

    There is a line for every agent, pilot and measure. A measure is one of MEASURES, or one
    with a group after a comma, as in "sensitivity, over 75". A goal is an agent's own for that
    measure; where it is empty, the agent has no such goal. The standard deviation of a value, by
    chance in the validation points, is taken from the scatter of the pilots, and training is left.
    Instead of it there can be columns positives and negatives: how many validation points of each
    class count.

    table: the file, its rows, or the pilots themselves.
    certainty: the probability of harm from which the game has a negative worth; none has where left
        out.
    seed, resamples: as in `fit_curves`.
    """
    if certainty is not None:
        check_real("certainty", certainty, above=0.5, below=1.0)
    if isinstance(table, GoalPilots):
        table = table.to_rows()
    rows = table if isinstance(table, Rows) else read_rows(table)
    parts = _split_by_measure(rows)
    tables = {name: _read_pilots(name, part) for name, part, _ in parts}
    _check_alike(rows.path, tables)
    _check_contributions([part for _, part, _ in parts])
    fits = {
        name: fit_curves(pilots, seed=seed, resamples=resamples) for name, pilots in tables.items()
    }
    units = {name: unit for name, _, unit in parts}
    return GoalsMeasurement(fits, units, certainty, {n: _name_pilots(part) for n, part, _ in parts})


def _name_pilots(part: Rows) -> tuple[str, ...]:
    """Return the names of the pilots of a measure that have a value, in the order of its table."""
    sheet = part.to_sheet(PILOTS)
    cells = zip(sheet.column("pilot"), sheet.column("accuracy"), strict=True)
    measured = {pilot for pilot, cell in cells if cell}
    return tuple(pilot for pilot in sheet.names("pilot") if pilot in measured)


def _kind_of(name: str, where: str = "the pilots") -> str:
    return read_measure(name.partition(",")[0].strip(), where)


def _read_pilots(name: str, part: Rows) -> PilotTable:
    try:
        return PilotTable.from_rows(part)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _check_alike(path: str, tables: Mapping[str, PilotTable]) -> None:
    """Refuse measures of other agents or with other limits, and agents that want nothing."""
    (first, one), *others = tables.items()
    for name, other in others:
        if other.agents != one.agents:
            stray = sorted(set(one.agents) ^ set(other.agents))
            raise InputError(
                f'{path}: {(stray or ["an agent"])[0]} is measured by "{first}" or by "{name}" and '
                "not by both: give every agent every measure, in the same order"
            )
        for own in ("limits", "minimums", "costs"):
            if (getattr(one, own) != getattr(other, own)).any():
                raise InputError(f'{path}: the {own} of "{first}" and "{name}" differ: correct one')
    without = np.all([np.isnan(table.goals) for table in tables.values()], axis=0)
    if without.any():
        raise InputError(
            f"{path} has no goal of {one.agents[int(np.argmax(without))]}: write one in the column "
            "goal, in a line of the measure that it is about"
        )


def _check_contributions(parts: list[Rows]) -> None:
    """Refuse an agent that gives different amounts in one pilot: the measures are of one run."""
    seen: dict[tuple[str, str], tuple[float, str]] = {}
    for part in parts:
        sheet = part.to_sheet(PILOTS)
        keys = zip(sheet.column("pilot"), sheet.column("agent"), strict=True)
        for row, key in enumerate(keys):
            amount = sheet.number("contribution", row)
            before, where = seen.setdefault(key, (amount, sheet.where(row)))
            if before != amount:
                raise InputError(
                    f"{sheet.describe('contribution', row)} is {amount:g}, and in {where} it is "
                    f"{before:g}, for the same pilot {key[0]}: correct one"
                )


def _split_by_measure(rows: Rows) -> list[tuple[str, Rows, float]]:
    """Return the table of each measure as one of accuracies, and the unit of the measure."""
    heads = [head.strip().casefold() for head in rows.cells[0]]
    for name in ("measure", "value"):
        if name not in heads:
            raise InputError(
                f"{rows.path} has no column {name!r}: pilots of several measures have "
                "pilot,agent,contribution,measure,value"
            )
        if heads.count(name) > 1:
            raise InputError(f"{rows.path} names the column {name!r} twice; rename one of them")
    if len(rows.cells) < 2:
        raise InputError(
            f"{rows.path} has nothing below its first line; add a line for every agent, pilot and "
            "measure"
        )
    which, value = heads.index("measure"), heads.index("value")
    goal = heads.index("goal") if "goal" in heads else None
    groups: dict[str, list[int]] = {}
    for place, line in enumerate(rows.cells[1:], 1):
        where = f"{rows.unit} {rows.lines[place]} of {rows.path}"
        if which >= len(line) or not line[which]:
            raise InputError(f"{where} names no measure; fill it in")
        _kind_of(line[which], where)
        groups.setdefault(line[which], []).append(place)
    head = ["accuracy" if n == value else cell for n, cell in enumerate(rows.cells[0])]
    found = []
    for name, places in groups.items():
        cells = [list(rows.cells[place]) for place in places]
        unit = 1.0
        if not MEASURES[_kind_of(name)].rises:
            columns = [value] if goal is None else [value, goal]
            unit = _turn_round(rows, places, cells, columns)
            if "validation" in heads:
                # What measuring adds to a share of right answers says nothing of a loss.
                for line in cells:
                    line[heads.index("validation")] = ""
        top, cells = _count_validation(rows, places, head, cells, unit, _kind_of(name))
        kept = [[c for n, c in enumerate(row) if n != which] for row in [top, *cells]]
        lines = [rows.lines[place] for place in [0, *places]]
        found.append((name, replace(rows, lines=lines, cells=kept), unit))
    return found


# Columns that say by how much chance in the validation points moves a value.
NOISE = ("sd", "positives", "negatives")


def _count_validation(
    rows: Rows,
    places: list[int],
    head: list[str],
    cells: list[list[str]],
    unit: float,
    kind: str,
) -> tuple[list[str], list[list[str]]]:
    """Fill the column validation with the number of points on which a share varies as much.

    The standard deviation of a value counts first, then the points of each class.
    """
    heads = [name.strip().casefold() for name in head]
    there = [name for name in NOISE if name in heads]
    if not there:
        return head, cells
    agent, value = (heads.index(name) for name in ("agent", "accuracy"))
    columns = {name: heads.index(name) for name in there}
    marks = Marks()
    known: dict[str, list[tuple[float, dict[str, float]]]] = {}
    for place, row in zip(places, cells, strict=True):
        where = f"{rows.unit} {rows.lines[place]} of {rows.path}"
        numbers = {
            name: _read_noise(row[column], f"the {name} in {where}", marks)
            for name, column in columns.items()
            if column < len(row) and row[column]
        }
        text = row[value] if value < len(row) else ""
        share = math.nan
        if text and text.casefold() not in FAILED:
            share = read_number(text, f"the value in {where}", marks, kind="share", column="value")
        known.setdefault(row[agent], []).append((share, numbers))
    counts = {name: _count_alike(lines, unit, kind) for name, lines in known.items()}
    if "validation" not in heads:
        head, cells = [*head, "validation"], [[*row, ""] for row in cells]
        heads.append("validation")
    for row in cells:
        if not math.isnan(found := counts[row[agent]]):
            row[heads.index("validation")] = Exact(max(1, round(found)))
    return head, cells


def _count_alike(lines: list[tuple[float, dict[str, float]]], unit: float, kind: str) -> float:
    """Return on how many points a share varies as much as the values of one agent."""
    shares = [share for share, _ in lines]
    found = count_by_deviations(shares, [n.get("sd", math.nan) / unit for _, n in lines])
    sizes = next((n for _, n in lines if {"positives", "negatives"} <= set(n)), None)
    if not math.isnan(found) or sizes is None or np.isnan(shares).all():
        return found
    return count_alike(kind, float(np.nanmean(shares)), (sizes["negatives"], sizes["positives"]))


def _read_noise(text: str, what: str, marks: Marks) -> float:
    number = read_number(text, what, marks, column="value")
    if not 0 < number < math.inf:
        raise InputError(f"{what} is {text}: give a number above 0, or leave it empty")
    return number


def _turn_round(rows: Rows, places: list[int], cells: list[list[str]], columns: list[int]) -> float:
    """Write values of a measure that falls as shares that rise, and return their unit."""
    marks = Marks()
    texts = {
        (n, column): (row[column], f"{rows.unit} {rows.lines[places[n]]} of {rows.path}")
        for n, row in enumerate(cells)
        for column in columns
        if column < len(row) and row[column] and row[column].casefold() not in FAILED
    }
    for text, where in texts.values():
        marks.learn(text, "amount", "value", partial(str, f"the value in {where}"))
    numbers = {key: _read_loss(text, where, marks) for key, (text, where) in texts.items()}
    value = columns[0]
    most = max((number for (_, column), number in numbers.items() if column == value), default=0.0)
    for (n, column), number in numbers.items():
        text, where = texts[n, column]
        if column != value and number > MOST_TIMES * most > 0:
            raise InputError(
                f"the goal in {where} is {text}, and no value of the measure is above {most:g}: "
                "give both in the same unit"
            )
        if column != value and number <= 0:
            raise InputError(f"the goal in {where} is {text}: give a number above 0")
        if 0 < number < TINY * most:
            raise InputError(
                f"{text} in {where} is tiny compared with the largest value of the measure, "
                f"{most:g}: give all values in the same unit"
            )
    unit = max(numbers.values(), default=0.0) / FILLED or 1.0
    for (n, column), number in numbers.items():
        cells[n][column] = Exact(1 - number / unit)
    return unit


def _read_loss(text: str, where: str, marks: Marks) -> float:
    try:
        number = float(text)
    except ValueError:
        number = read_number(text, f"the value in {where}", marks, column="value")
    if not 0 <= number < math.inf:
        raise InputError(
            f"{text!r} in {where} is not a value of a loss; give a number that is zero or more"
        )
    return number
