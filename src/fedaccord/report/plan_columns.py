"""What the tables of a plan share: which agents they list, and columns of each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from fedaccord._checks import Vector
from fedaccord.planning.probabilities import Estimates
from fedaccord.planning.result import Plan
from fedaccord.report.model import FEW, MANY, Cell, Column, Estimated, Records, choose_rows
from fedaccord.wording import format_goal, format_samples, format_short_probability

# Up to how many agents a page lists; of more, the agents that give most.
ROWS = 500
# The most agents that a table has columns for, or a sentence names.
COLUMNS = 6
ENDS = ("from", "to")


def choose_agents(plan: Plan, *, most: int = MANY, few: int = FEW) -> list[int]:
    """Return the agents to list: all, or the agents that give most."""
    weights = plan.game.alone if plan.contributions is None else plan.contributions
    return choose_rows(weights, most=most, few=few)


def of_agents(values: Estimates | None) -> Callable[[int], Estimated | None]:
    """Return what a column shows of each agent: an estimate with its interval."""
    if values is None:
        return lambda agent: None
    return lambda i: Estimated(values[i].value, values[i].low, values[i].high)


def of_each(values: Vector | None) -> Callable[[int], float | None]:
    """Return what a column shows of each agent: a number."""
    return lambda agent: None if values is None else float(values[agent])


def _trim_samples(value: float) -> float:
    """Round a number of samples to a whole one: no fit knows it better."""
    return float(math.floor(value + 0.5)) if math.isfinite(value) else value


# Samples are whole, accuracies and parts have three digits, probabilities two.
Samples = partial(Column, write=format_samples, trim=_trim_samples)
Fractions = partial(Column, write="{:.3f}".format, trim=partial(round, ndigits=3))
Probabilities = partial(Column, write=format_short_probability, trim=partial(round, ndigits=2))


def list_goal(plan: Plan) -> Column:
    """Return the column of goals."""
    return Column("goal", of_each(plan.goals), write=format_goal)


def list_chance(plan: Plan, *, sums: Sequence[Cell | Estimated] = ()) -> Column:
    """Return the column of the probabilities that agents reach their goals."""
    # What is not certain does not read as if it were.
    return Probabilities(
        "P(goal)",
        of_each(plan.satisfied),
        trim=lambda value: round(min(value, 0.99), 2),
        sums=sums,
    )


def list_records(
    plan: Plan, caption: str, *columns: Column, agents: list[int] | None = None
) -> Records:
    """Return a table with a row for each agent: of the page all or ROWS, of the terminal few."""
    page = choose_agents(plan, most=ROWS, few=ROWS) if agents is None else agents
    return Records(caption, columns, page, choose_agents(plan))
