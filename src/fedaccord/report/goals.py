"""Games with several goals or harm: each goal, and agents that would be better off alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedaccord.check import Check
from fedaccord.equilibria.result import Staying
from fedaccord.games.base import Game, has_goals
from fedaccord.games.rows import RowGame
from fedaccord.report.model import (
    Column,
    Mark,
    Part,
    Records,
    Section,
    Table,
    choose_rows,
    keep_finite,
)
from fedaccord.wording import (
    format_amount,
    name_few,
)

# The most agents that a sentence names, and that a page has a column for.
NAMES = 3
COLUMNS = 12


def list_goals(found: Check) -> Records | None:
    """List what each goal wants, reaches and has to spare; None where a game has no such goals."""
    game = found.game
    if not has_goals(game):
        return None
    reached, slacks = game.reached(found.contributions), game.slacks(found.contributions)
    slacks = np.where(np.abs(slacks) <= found.tolerance * found.scale, 0.0, slacks)
    # Of whole samples, less than one is none to spare.
    slacks = np.floor(slacks) if game.is_integer else slacks

    def state(goal: int) -> Mark | str:
        if slacks[goal] < 0:
            return Mark("missed", "bad")
        return "binds" if goal in found.binding else ""

    return Records(
        "What each goal wants and reaches",
        (
            Column("agent", lambda g: game.name(int(game.owners[g]))),
            Column("goal", lambda g: game.goals[g].name),
            Column("measure", lambda g: game.goals[g].measure, where="page"),
            Column("wants", lambda g: game.goals[g].wish),
            Column("reaches", lambda g: keep_finite(reached[g])),
            Column("spare samples", lambda g: keep_finite(max(0.0, slacks[g]) + 0.0)),
            Column("short by", lambda g: keep_finite(max(0.0, -slacks[g]) + 0.0), where="page"),
            Column("", state, coloured=True),
        ),
        range(len(game.goals)),
        choose_rows(-slacks),
    )


def describe_harm(found: Check) -> str:
    """Return which agents would give less alone; nothing if there are none."""
    if found.game.is_monotone or not len(found.better_alone):
        return ""
    first = int(found.better_alone[0])
    names = name_few([found.game.name(i) for i in found.better_alone.tolist()], NAMES)
    return (
        f"{names} would give less alone. "
        f"{found.game.name(first)} gives {format_amount(found.contributions[first])}, and alone it "
        f"would need {format_amount(found.alone[first])}."
    )


def describe_staying(game: Game, staying: Staying | None) -> str:
    """Return which agents should stay out, and what the others then give in all."""
    if staying is None:
        return ""
    names = name_few([game.name(i) for i in staying.left], NAMES)
    leaves = f"If {names} {'stays' if len(staying.left) == 1 else 'stay'} out, "
    if staying.solution.contributions is None:
        return f"{leaves}no stable plan of the others was found."
    if len(staying.agents) == 1:
        return f"{leaves}{game.name(staying.agents[0])} is alone: no agent gains by federating."
    total = format_amount(float(staying.solution.contributions.sum()))
    return (
        f"{leaves}the stable plan of the other {len(staying.agents)} agents takes {total} samples "
        "in all, and none of them would give less alone."
    )


def show_goals(found: Check, staying: Staying | None = None) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of goals and harm.

    found: the check of a plan.
    staying: which agents stay, if that is known.
    """
    goals = list_goals(found)
    if goals is not None:
        yield goals.table("terminal")
    if said := _join(describe_harm(found), describe_staying(found.game, staying)):
        yield Mark(said, "plain")


def _join(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def make_goals_section(found: Check | None, staying: Staying | None = None) -> Section | None:
    """Return a page's section on goals, and on agents that would be better off alone.

    found: the check of a plan, if there is one.
    staying: which agents stay, if that is known.
    """
    if found is None:
        return None
    goals = list_goals(found)
    said = _join(describe_harm(found), describe_staying(found.game, staying))
    parts: list[Part] = [Mark(said, "plain")] if said else []
    if goals is not None:
        parts.append(
            "Effective samples add up what all agents' samples are worth to a goal. The goal that "
            "binds is the one that asks most of its agent. Spare samples are counted in the "
            "agent's own samples."
        )
        parts.append(goals.table("page"))
    heading = "Goal by goal" if goals is not None else "Agents that are harmed"
    return Section(heading, tuple(parts)) if parts else None


def tabulate_benefits(game: Game) -> Table | None:
    """Return what one sample of each agent is worth to each goal, in the agent's own samples."""
    if not isinstance(game, RowGame) or game.size > COLUMNS:
        return None
    worth = np.round(game.rows / game.own_rows[:, None], 6)
    several = has_goals(game)
    names = [
        (game.name(int(owner)), *([game.goals[g].name] if has_goals(game) else []))
        for g, owner in enumerate(game.owners.tolist())
    ]
    return Table(
        "What one sample of each agent is worth, in the receiving agent's own samples",
        ("to", *(["goal"] if several else []), *(f"of {game.name(j)}" for j in range(game.size))),
        tuple((*name, *row) for name, row in zip(names, worth.tolist(), strict=True)),
    )
