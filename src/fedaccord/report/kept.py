"""Sentences and tables about agents that keep the samples they withhold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Solution, Status
from fedaccord.games.base import Game
from fedaccord.games.kept import KeptData
from fedaccord.planning.kept import KeptPlan
from fedaccord.report.games import list_solution
from fedaccord.report.model import (
    Column,
    Mark,
    Page,
    Records,
    Section,
    Table,
    choose_rows,
    keep_finite,
    rank,
)
from fedaccord.wording import (
    count,
    count_named,
    format_amount,
    format_number,
    format_part,
    format_samples,
    format_short_probability,
    join_with_and,
    pluralize,
)

# The most agents that a sentence names.
NAMED = 6
HEADING = "If agents keep what they withhold"
# What the numbers of a game of agents that keep data mean.
NEEDS = (
    "Agents keep the samples that they do not give, and learn from them. Every need is what an "
    "agent still needs when these samples are counted."
)
REMEDY = (
    "Such an agent has a reason to share only if the rules give it one: models that agents earn by "
    "delivering samples, or payments for samples."
)


def describe_kept(game: Game, kept: KeptData) -> Iterator[str]:
    """Return which agents gain nothing, or little, by giving a sample that they could keep.

    game: whose agents they are.
    kept: what their kept samples are worth.
    """
    if len(kept.keepers):
        names = _name(game, kept.keepers.tolist())
        one = len(kept.keepers) == 1
        yield (
            f"{names} {'gains' if one else 'gain'} nothing by sharing (kept worth 1): "
            f"{'it gives its minimum' if one else 'they give their minimums'}, whatever the others "
            "give."
        )
    if len(kept.reluctant):
        names, least = _name(game, kept.reluctant.tolist()), kept.worth[kept.reluctant].min()
        gain = pluralize(len(kept.reluctant), "gains", "gain")
        yield (
            f"{names} hardly {gain} by sharing (kept worth {least:.3g} or more): a shared sample "
            f"adds at most {format_part(1 - least)} of a sample to what its owner has."
        )
    if len(kept.keepers) or len(kept.reluctant):
        yield REMEDY


def _name(game: Game, agents: list[int]) -> str:
    names = [game.name(agent) for agent in agents[:NAMED]]
    if len(agents) > NAMED:
        names.append(count(len(agents) - NAMED, "more agent"))
    return join_with_and(names)


def describe_rest(game: Game, kept: KeptData, rest: Solution) -> Iterator[str | Mark | Table]:
    """Return what the others give if agents that give nothing fall short, and by how much they do.

    game: of agents that keep data, with everybody's requirement.
    kept: what their kept samples are worth.
    rest: the stable plan of the game in which those agents want nothing.
    """
    names = _name(game, kept.keepers.tolist())
    verb = pluralize(len(kept.keepers), "keeps its", "keep their")
    if rest.contributions is None:
        yield (
            f"If the requirements of agents that share nothing do not count, {_describe_lack(rest)}"
        )
        return
    yield Mark(f"If {names} {verb} data, the others settle on this plan:", "unsure")
    yield list_solution(rest).table("terminal")
    for agent, missing in find_missing(game, kept, rest.contributions).items():
        if missing > 0:
            yield (
                f"{game.name(agent)} then falls short by {format_number(missing)}, and nothing "
                "that it could give would change that: only the others' samples help it."
            )


def find_missing(game: Game, kept: KeptData, given: Vector) -> dict[int, float]:
    """Return by how much each agent that gives nothing misses its requirement.

    game: of agents that keep data.
    kept: what their kept samples are worth.
    given: what all agents give.
    """
    slack = game.utilities(given) - game.requirements
    return {agent: max(-float(slack[agent]), 0.0) for agent in kept.keepers.tolist()}


def kept_record(game: Game, kept: KeptData, rest: Solution | None) -> dict[str, Any]:
    """Return what is known of kept data for machines; null stands for infinity.

    game: of agents that keep data.
    kept: what their kept samples are worth.
    rest: the stable plan without the requirements of agents that give nothing, if it was sought.
    """
    result: dict[str, Any] = {
        "worth": kept.worth.tolist(),
        "holdings": [keep_finite(held) for held in kept.holdings],
        "gains_nothing": kept.keepers.tolist(),
        "gains_little": kept.reluctant.tolist(),
    }
    if rest is not None and rest.contributions is not None:
        missing = find_missing(game, kept, rest.contributions)
        result["rest"] = {
            "contributions": rest.contributions.tolist(),
            "missing": {game.name(agent): amount for agent, amount in missing.items()},
        }
    return result


# A plan, and what agents would give if they kept what they withhold.


def choose_writer(found: KeptPlan) -> Callable[[float], str]:
    """Return what writes the contributions of a plan: whole samples, or parts of them too."""
    return format_samples if found.whole else format_amount


def list_kept_verdict(found: KeptPlan) -> list[str]:
    """Return whether a plan holds for agents that keep what they withhold, in sentences."""
    less = found.given - found.responses
    if not len(found.defectors):
        return ["The plan holds even if agents keep what they withhold."]
    most, others = int(less.argmax()), len(found.defectors) - 1
    write = choose_writer(found)
    less_and_plan = (write(found.responses[most]), write(found.given[most]))
    return [
        "The plan does not hold if agents keep what they withhold: "
        f"{found.plan.name(most)} would give {' instead of '.join(less_and_plan)}.",
        *[f"{count(others, 'other agent')} would give less too."] * (others > 0),
    ]


def describe_kept_plan(found: KeptPlan) -> Iterator[str]:
    """Return what agents gain by sharing, and the stable plan if all keep what they withhold."""
    yield from describe_kept(found.game, found.kept)
    idle = np.flatnonzero((found.responses == 0) & (found.given > 0) & (found.kept.worth < 1))
    if len(idle):
        yield (
            f"If the others keep to the plan, {_name(found.game, idle.tolist())} "
            f"{pluralize(len(idle), 'gains', 'gain')} nothing by sharing: the samples of the "
            f"others and {pluralize(len(idle), 'its own are', 'their own are')} enough."
        )
    write, stable = choose_writer(found), found.stable_contributions
    if stable is not None and found.stable.contributions is not None:
        saving = ""
        if stable.sum() < found.given.sum():
            one = (found.kept.worth > 0).sum() == 1
            train = "they also train on the samples that they keep"
            train = "it also trains on the samples that it keeps" if one else train
            saving = f" That is no saving: {train}."
        yield (
            f"If {_name_keepers(found)}, the cheapest stable plan is in the last column: the agents"
            f" share {write(stable.sum())} samples instead of {write(found.given.sum())}.{saving}"
        )
        return
    yield f"If {_name_keepers(found)}, {_describe_lack(found.stable)}"
    if found.rest is None or found.rest.contributions is None or stable is None:
        return
    missing = find_missing(found.game, found.kept, found.rest.contributions)
    short = [agent for agent, amount in missing.items() if amount > 0]
    miss = pluralize(len(short), "misses its target", "miss their targets")
    give = pluralize(len(short), "it gives", "they give")
    total = stable.sum()
    settle = f"The others then give {write(total)} samples in all"
    settle = settle if total > 0 else "Then no agent shares anything"
    yield f"{settle}, and {_name(found.game, short)} {miss}, whatever {give}."


def _describe_lack(solution: Solution) -> str:
    """Return why there is no stable plan, as the end of a sentence."""
    if solution.status is Status.NONE_EXISTS:
        return "there is no stable plan. This is proved."
    if solution.status is Status.INFEASIBLE:
        return "no plan reaches all requirements, even if all agents give all they can."
    return "no stable plan was found. This does not prove that there is none."


def _name_keepers(found: KeptPlan) -> str:
    keepers = np.flatnonzero(found.kept.worth > 0).tolist()
    if len(keepers) == found.game.size:
        return "all agents keep what they withhold"
    verb = pluralize(len(keepers), "keeps what it withholds", "keep what they withhold")
    return f"{_name(found.game, keepers)} {verb}"


def list_kept_plan(found: KeptPlan) -> Records:
    """List what the plan asks of each agent, and what it would give if it kept the rest."""
    plan, kept, write = found.plan, found.kept, choose_writer(found)
    columns = [
        Column("agent", plan.name),
        Column("plan", lambda i: float(found.given[i]), write=write),
        Column("holds", lambda i: keep_finite(kept.holdings[i]), write=write),
        Column("kept worth", lambda i: float(kept.worth[i])),
        Column("would give", lambda i: float(found.responses[i]), write=write),
    ]
    stable = found.stable_contributions
    if found.reached is not None and found.level is not None:
        reached = found.reached
        columns.append(
            Column(
                f"P(goal) with {format_part(found.level)}",
                lambda i: float(reached[i]) if found.given[i] > 0 else None,
                short=f"P(goal)\nwith {format_part(found.level)}",
                write=format_short_probability,
            )
        )
    if stable is not None and found.stable.contributions is not None:
        head = "stable if all keep" if (kept.worth > 0).all() else "stable if they keep"
        columns.append(Column(head, lambda i: float(stable[i]), write=write))
    caption = "What each agent would give if it kept the rest of its samples"
    return Records(caption, tuple(columns), choose_rows(found.given))


def mark_kept_verdict(found: KeptPlan) -> Mark:
    """Return whether a plan holds for agents that keep what they withhold, with its tone."""
    return Mark(" ".join(list_kept_verdict(found)), "bad" if len(found.defectors) else "good")


def show_kept_plan(
    found: KeptPlan, parts: Iterator[str | Mark | Table]
) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of a plan for agents that keep what they withhold.

    found: what becomes of the plan.
    parts: what a terminal shows of the plan itself; its verdict comes first.
    """
    yield next(parts)
    yield mark_kept_verdict(found)
    yield from parts
    yield ""
    yield list_kept_plan(found).table("terminal")
    yield from describe_kept_plan(found)


def make_kept_section(found: KeptPlan) -> Section:
    """Return the section that says what agents give if they keep what they withhold."""
    verdict, table = mark_kept_verdict(found), list_kept_plan(found).table("page")
    return Section(HEADING, (verdict, table, *describe_kept_plan(found)))


def add_kept_section(page: Page, found: KeptPlan) -> Page:
    """Return a plan's page that also says what agents give if they keep what they withhold.

    page: of the plan. Its verdict, its tone and the question who could give less change if an
        agent would give less.
    found: what becomes of the plan.
    """
    page = replace(page, sections=(*page.sections, make_kept_section(found)))
    if not len(found.defectors):
        return page
    *head, questions = page.head
    assert isinstance(questions, Table)
    reach, _, envy = questions.rows
    rows = (reach, _answer_less(found), envy)
    return replace(
        page,
        verdict=f"{page.verdict} But the plan does not hold if agents keep what they withhold.",
        tone="bad",
        head=(*head, replace(questions, rows=rows)),
    )


def _answer_less(found: KeptPlan) -> tuple[str, Mark, str]:
    """Return whether an agent that keeps the rest could give less, as a row of the questions."""
    less = found.given - found.responses
    first = rank(less, count_named(len(found.defectors), NAMED)).tolist()
    write = choose_writer(found)
    said = [f"{found.plan.name(agent)} by {write(less[agent])}" for agent in first]
    if len(found.defectors) > len(first):
        said.append(f"{len(found.defectors) - len(first):,} more")
    answer = Mark(f"yes: {', '.join(said)}", "bad")
    return "Could an agent give less, if it keeps the rest?", answer, "not stable"
