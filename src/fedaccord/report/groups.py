"""Groups that could give less together, for a terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedaccord.check import Answer, Check
from fedaccord.groups import BlockingGroup
from fedaccord.report.model import Column, Mark, Records, Section, Table, Tone
from fedaccord.wording import count, format_part, format_uncertain, join_with_and

# A terminal lists this many groups; JSON lists all.
SHOWN = 20


def describe_groups(found: Check, groups: Sequence[BlockingGroup], size: int) -> str:
    """Return in one sentence whether any group of up to a size could give less together.

    found: the check of the plan.
    groups: those that were found.
    size: the most members that were looked for.
    """
    keep = " and keep its safety margin" if found.has_margins else ""
    keep = keep if found.with_margin is None else " and keep the plan's safety margin"
    if groups:
        alone = sum(len(group.agents) == 1 for group in groups)
        more = len(groups) - alone
        could = f"{count(more, 'group')} of up to {count(size, 'agent')}"
        if not alone:
            return f"{could} could give less together{keep}."
        could = f"{count(alone, 'single agent')}{f' and {could}' if more else ''}"
        return f"{could} could give less{keep}."
    if found.judged.stable is Answer.TRUE:
        none = f"No group of agents, of any size, could give less together{keep}"
        return f"{none}: the plan is stable."
    short = "" if found.judged.feasible is Answer.TRUE else ", but not all agents are satisfied"
    return f"No group of up to {count(size, 'agent')} could give less together{keep}{short}."


def mark_groups(found: Check, groups: Sequence[BlockingGroup], size: int) -> Mark:
    """Return the same with a tone: where agents miss their goals, nothing is well.

    found: the check of the plan.
    groups: those that were found.
    size: the most members that were looked for.
    """
    tone: Tone = "good" if found.judged.feasible is Answer.TRUE else "plain"
    if groups:
        # If all agents reach their goals, the verdict on a plan with probabilities is no worse.
        tone = "unsure" if found.prospects is not None and tone == "good" else "bad"
    return Mark(describe_groups(found, groups, size), tone)


def describe_pair(found: Check) -> Iterator[Mark]:
    """Return how likely two agents that give less together are still to reach their goals.

    That a plan is stable promises only that such agents lose their safety margin.
    """
    pair = found.boldest_pair
    if pair is None or found.with_margin is None:
        return
    names = join_with_and([found.game.name(agent) for agent in pair.agents])
    yield Mark(
        f"But without the margin a group may still reach its goals. {names} are the likeliest pair:"
        f" if both give {format_part(pair.level)} of their contributions, both reach their goals "
        f"with probability {format_uncertain(pair.probability)}.",
        "unsure",
    )


def show_groups(
    found: Check, groups: Sequence[BlockingGroup], size: int
) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of the groups that could give less together.

    found: the check of the plan.
    groups: those that were found.
    size: the most members that were looked for.
    """
    yield ""
    yield mark_groups(found, groups, size)
    yield from describe_pair(found)
    if groups:
        yield list_groups(groups).table("terminal")
    if len(groups) > SHOWN:
        yield f"and {len(groups) - SHOWN:,} more; --json lists all of them"


def list_groups(groups: Sequence[BlockingGroup]) -> Records:
    """List groups, with how much less all members could give at once and what that saves."""
    return Records(
        "Groups that could give less together",
        (
            Column("group", lambda n: join_with_and(groups[n].names)),
            Column("each gives less", lambda n: groups[n].less),
            Column("saved in all", lambda n: groups[n].saved),
        ),
        range(len(groups)),
        range(min(len(groups), SHOWN)),
    )


def make_groups_section(found: Check, groups: Sequence[BlockingGroup], size: int) -> Section:
    """Return the section of a page on the groups that could give less together.

    found: the check of the plan.
    groups: those that were found.
    size: the most members that were looked for.
    """
    verdict = mark_groups(found, groups, size)
    table = (list_groups(groups).table("page"),) if groups else ()
    parts = (verdict, *describe_pair(found), *table)
    return Section("Groups that could give less together", parts)
