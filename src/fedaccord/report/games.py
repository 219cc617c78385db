"""Solutions and checks of games as tables and sentences, for a terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.check import Answer, Check
from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.games.base import Game, has_goals, is_measured
from fedaccord.games.rows import RowGame
from fedaccord.report.games_chances import (
    describe_chances,
    list_chance,
    list_prospects,
    show_proposal,
)
from fedaccord.report.model import (
    FEW,
    Column,
    Mark,
    Place,
    Records,
    Table,
    Tone,
    choose_rows,
    keep_finite,
    name_rows,
)
from fedaccord.report.terminal import shorten_name
from fedaccord.wording import (
    capitalize_first,
    count,
    format_amount,
    format_range,
    name_alone,
)

if TYPE_CHECKING:
    from fedaccord.equilibria.result import SolvedGame, Staying

# Up to this many agents a page lists all; of more, only the SHOWN that matter most.
ROWS = 2_000
SHOWN = 500

ENVY = {
    Answer.TRUE: "No agent envies another.",
    Answer.FALSE: "The check does not find it envy-free.",
    Answer.BORDERLINE: "Whether an agent envies another is too close to call.",
}
TONES: Mapping[Answer, Tone] = {
    Answer.TRUE: "good",
    Answer.FALSE: "bad",
    Answer.BORDERLINE: "unsure",
}
STATUS_TONES: Mapping[Status, Tone] = {
    Status.OPTIMAL: "good",
    Status.LIMIT: "unsure",
    Status.NOT_ATTAINED: "unsure",
    Status.INFEASIBLE: "bad",
    Status.NONE_EXISTS: "bad",
    Status.FAILED: "bad",
}


# On a terminal.


def show_solutions(found: SolvedGame) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of a solved game: who gives what, what is proved, and why."""
    main = found.main_concept
    doubts = found.checks[main].doubts if main in found.checks else ()
    yield from (Mark(f"Doubt: {sentence}", "unsure") for sentence in doubts)
    yield list_solved(found).table("terminal")
    yield list_totals(found.solutions, found.checks).table("terminal")
    for name, solution in found.solutions.items():
        yield from describe_solution(solution, found.checks.get(name))
    for name, price in found.prices.items():
        if price is not None:
            yield describe_price(name.replace("_", " "), price)
    if main in found.checks:
        yield from _show_goals(found.checks[main], found.staying if main == "stable" else None)
    if main in found.checks and (reasons := explain_agents(found.checks[main])):
        yield ""
        yield f"The {main} plan, agent by agent:"
        yield from reasons


def show_solution(solution: Solution) -> Iterator[str | Mark | Table]:
    """Return what a notebook shows of one solution: who gives what, and what is proved."""
    yield list_solution(solution).table("terminal")
    yield list_totals({solution.concept: solution}).table("terminal")
    yield from describe_solution(solution, None)


def show_check(found: Check) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of a check: the verdict, agent by agent, and why."""
    if found.prospects is None:
        yield Mark(found.sentence(), TONES[found.stable])
        yield list_needs(found).table("terminal")
        yield from _show_goals(found)
    else:
        yield from show_proposal(found, found.prospects)
        yield ""
    yield from explain_agents(found)


def _show_goals(found: Check, staying: Staying | None = None) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of goals and harm, which only games of rows have."""
    if isinstance(found.game, RowGame):
        from fedaccord.report.goals import show_goals

        yield from show_goals(found, staying)


def describe_solution(solution: Solution, found: Check | None) -> Iterator[str]:
    """Return what the check makes of a solution, or why there is nothing to check.

    solution: what the solver claims.
    found: the check of its allocation, if it has one.
    """
    if found is not None:
        yield f"{solution.concept}: {found.sentence()}"
        if found.prospects is not None:
            yield f"{solution.concept}: {describe_chances(found.prospects)}."
        # The verdict stops at what it finds first; this concept is about envy all the same.
        if solution.concept == "envy-free" and found.stable is Answer.FALSE:
            yield f"{solution.concept}: {ENVY[found.envy_free]}"
    if solution.status is not Status.OPTIMAL:
        yield f"{solution.concept}: {solution.status.value}"
    if solution.note:
        yield f"{solution.concept}: {solution.note}"


def format_price(price: Interval) -> str:
    """Return what an interval tells of a price, with four digits."""
    return format_range(price.lower, price.upper, format_amount)


def describe_price(name: str, price: Interval) -> str:
    """Return what an interval tells of a price, with its note."""
    note = getattr(price, "note", "")
    return f"{capitalize_first(name)}: {format_price(price)}.{note and f' {note}'}"


def explain_agents(found: Check) -> list[str]:
    """Explain each agent's number, where there are few enough to read."""
    few = found.game.size <= FEW
    return [f"{found.explain(agent)}." for agent in range(found.game.size * few)]


# Tables.


def has_costs(game: Game) -> bool:
    """Return whether samples cost some agents more than others."""
    return bool((game.costs != 1).any())


def _name_sums(game: Game, every: str) -> tuple[str, ...]:
    return (f"{every} (samples)", "total cost") if has_costs(game) else (every,)


def _numbers(head: str, values: Vector, where: Place | None = None) -> Column:
    return Column(head, lambda i: keep_finite(values[i]), where=where)


def _amounts(game: Game, head: str, values: Vector, rest: Indices | None = None) -> Column:
    """Return a column of samples: their sum, what they cost, and what agents left out have."""
    cost = game.total(values) if np.isfinite(values).all() else None
    return Column(
        head,
        lambda i: keep_finite(values[i]),
        sums=(keep_finite(values.sum()), cost)[: 1 + has_costs(game)],
        rest=None if rest is None else keep_finite(values[rest].sum()),
    )


def _frame(game: Game) -> Iterator[Column]:
    """Return the columns of what else a game says of its agents, such as limits if it has any."""
    if is_measured(game):
        yield _numbers("goal", game.goals, "page")
        if game.margins.any():
            yield _numbers("target", np.round(game.goals + game.margins, 3), "page")
    elif not has_goals(game):
        yield _numbers("requirement", game.requirements, "page")
    if np.isfinite(game.limits).any():
        yield _numbers("limit", game.limits, "page")
    if game.minimums.any():
        yield _numbers("minimum", game.minimums, "page")
    if has_costs(game):
        yield _numbers("cost of a sample", game.costs, "page")


def list_allocations(game: Game, solutions: Mapping[str, Solution], chosen: str) -> Records:
    """List who gives what under each concept, and what each would need alone.

    game: what was solved.
    solutions: the solutions by concept.
    chosen: the concept whose savings a page shows.
    """
    found = {c: s.contributions for c, s in solutions.items() if s.contributions is not None}
    weights = np.max([*found.values()], axis=0) if found else game.requirements
    page, terminal = choose_rows(weights, most=ROWS, few=SHOWN), choose_rows(weights)
    others = np.delete(np.arange(game.size), terminal)
    columns = [
        _amounts(game, concept, found[concept], others)
        if concept in found
        else Column(concept, lambda _: None, sums=(None, None), rest=None, where="terminal")
        for concept in solutions
    ]
    if chosen in found:
        saves = _amounts(game, f"{chosen} saves", game.alone - found[chosen])
        columns.append(replace(saves, where="page"))
    every = "all" if len(page) == game.size else f"all {game.size:,} agents"
    return Records(
        "Samples that each agent gives, alone and under each plan",
        (
            *name_rows(
                game.name,
                terminal=_name_sums(game, "all"),
                page=(every, "total cost")[: 1 + has_costs(game)],
                rest=f"{len(others):,} others, in all" if len(others) else "",
            ),
            _amounts(game, name_alone(game.has_margins), game.alone, others),
            *columns,
            *_frame(game),
        ),
        page,
        terminal,
    )


def list_solution(solution: Solution) -> Records:
    """List who gives what in one solution."""
    return list_allocations(solution.game, {solution.concept: solution}, solution.concept)


def list_solved(found: SolvedGame) -> Records:
    """List who gives what under each concept of a solved game."""
    return list_allocations(found.game, found.solutions, found.main_concept)


def list_totals(
    solutions: Mapping[str, Solution], checks: Mapping[str, Check] | None = None
) -> Records:
    """List each concept's total, what is proved of it, how it was found, and how sure it is.

    solutions: by concept.
    checks: by concept; of a measured game they know how likely all agents are to reach their goals.
    """
    found = list(solutions.items())
    priced = any(has_costs(solution.game) for solution in solutions.values())

    def bound(n: int, end: str) -> float | None:
        """Return a bound, or the total if they differ by rounding alone: they should read alike."""
        total, value = found[n][1].total, getattr(found[n][1].bounds, end)
        return keep_finite(total if abs(value - total) <= 1e-12 * abs(total) else value)

    sure = {
        name: check.everyone.value
        for name, check in (checks or {}).items()
        if check.everyone is not None
    }

    def everyone(n: int) -> float | None:
        return sure.get(found[n][0])

    def status(n: int) -> Mark:
        return Mark(found[n][1].status.key, STATUS_TONES[found[n][1].status])

    return Records(
        "Totals and their proved bounds",
        (
            Column("plan", lambda n: found[n][0], short="concept"),
            Column("total cost" if priced else "total", lambda n: keep_finite(found[n][1].total)),
            *([list_chance("P(all)", everyone)] if sure else []),
            Column("at least", lambda n: bound(n, "lower")),
            Column("at most", lambda n: bound(n, "upper")),
            Column("status", status),
            Column("method", lambda n: found[n][1].method),
        ),
        range(len(found)),
    )


def list_needs(found: Check) -> Records:
    """List what each gives, needs and reaches; of many agents, the furthest off."""
    if found.prospects is not None:
        return list_prospects(found, found.prospects)
    game = found.game
    envied = dict(reversed(found.envy))
    off = np.maximum(np.where(np.isfinite(found.short), found.short, np.inf), found.spare)
    terminal = choose_rows(off)
    rest = game.size - len(terminal)

    def envies(agent: int) -> str | None:
        return shorten_name(game.name(envied[agent])) if agent in envied else None

    return Records(
        "What each gives, needs and reaches",
        (
            *name_rows(
                game.name,
                terminal=_name_sums(game, f"and {rest:,} more; all" if rest else "all"),
                page=("all", "total cost")[: 1 + has_costs(game)],
            ),
            *_needs_columns(found),
            Column("envies", envies, where="terminal"),
            _numbers("reaches", found.utilities, "page"),
            *_frame(game),
        ),
        choose_rows(off, most=ROWS, few=SHOWN),
        terminal,
    )


def _needs_columns(found: Check) -> Iterator[Column]:
    yield _amounts(found.game, "gives", found.contributions)
    yield _numbers("needs", found.needed)
    # What the check counts as nothing is not shown as 1e-13.
    nothing = found.tolerance * found.scale
    for name, amounts in (("short", found.short), ("spare", found.spare)):
        yield _numbers(name, np.where(amounts > nothing, amounts, 0.0))
    yield _numbers(name_alone(found.has_margins), np.where(found.empty_handed, np.nan, found.alone))


def tabulate_needs(found: Check, agents: Indices, caption: str) -> Table:
    """Return a page's table of what some agents give and need.

    found: what was found.
    agents: whom to list, in order.
    caption: what the table is.
    """
    columns = (Column("agent", found.game.name), *_needs_columns(found))
    return Records(caption, columns, agents.tolist()).table("page")


# What one needs to know to trust the numbers, or to repeat them.


def list_game_facts(game: Game) -> Iterator[tuple[str, str]]:
    """Return what game it is, and whether anything in it is drawn at random."""
    kind = "whole numbers of samples" if game.is_integer else "real numbers of samples"
    yield "Game", f"{game.model}, {count(game.size, 'agent')}, {kind}"
    limited = int(np.isfinite(game.limits).sum())
    bound = int((game.minimums > 0).sum())
    frame = [
        f"{count(limited, 'agent')} with a limit" if limited else "",
        f"{count(bound, 'agent')} with a minimum" if bound else "",
        "samples cost some more than others" if has_costs(game) else "",
    ]
    if any(frame):
        yield "Limits and costs", ", ".join(filter(None, frame))
    estimated = getattr(game, "estimated", "")
    if getattr(game, "chances", None) is not None:
        yield "Seed", "the seed of the fit to the pilots; its resamples use it too"
    elif estimated:
        yield "Seed", f"{estimated.rstrip('.')}, seed {getattr(game, 'seed', 0)}"
    else:
        yield "Seed", "none: nothing here is drawn at random"


def list_check_facts(found: Check | None) -> Iterator[tuple[str, str]]:
    """Return how finely plans were checked."""
    if found is not None:
        fine = (
            "decided exactly"
            if found.tolerance == 0
            else f"differences below {found.tolerance:g} of the largest contribution count as zero"
        )
        yield "Checked", f"independently of the solver; {fine}"
