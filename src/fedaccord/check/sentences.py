"""What a check says, in sentences: the verdict, and why each agent gives what it gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.check.result import Answer, Check
from fedaccord.games.base import has_goals
from fedaccord.wording import (
    capitalize_first,
    count,
    count_named,
    count_whole,
    format_amount_with_digits,
    format_beside,
    format_enough,
    format_requested,
    format_samples,
    format_uncertain,
    join_with_and,
    name_few,
)

if TYPE_CHECKING:
    from fedaccord.games.base import Game
    from fedaccord.games.chances import Prospects

# The most digits that a number gets beyond the usual, to tell it from another.
DIGITS = 8
# The most agents that a sentence names, and how far a probability must fall to be named.
NAMES, FALL = 3, 0.01
# Said of an agent whose limit is 0: it has nothing, or does not want to give any.
NOTHING = "Its limit is 0, so it could not go alone"


def describe_check(found: Check) -> str:
    """Return in one sentence whether an allocation is feasible, stable and envy-free."""
    if found.feasible is Answer.FALSE:
        agent = int(np.argmax(found.short))
        allowed = found.tolerance * found.scale
        over = np.flatnonzero(found.contributions > found.game.limits + allowed)
        if over.size:
            return f"Not feasible: {_name_over(found, over.tolist())}."
        under = np.flatnonzero(found.contributions < found.game.minimums - allowed)
        if under.size:
            return f"Not feasible: {found.game.name(int(under[0]))} gives less than it must."
        amount = format_amount_with_digits(found.short[agent])
        return (
            f"Not feasible: {found.game.name(agent)} is short by {amount} "
            f"sample{'s' * (amount != '1')}{_name_goal(found, agent, ' of its goal {}')}"
            f"{_others(found, found.short, 'is short', 'are short')}."
        )
    if found.stable is Answer.FALSE:
        agent = int(np.argmax(found.spare))
        return (
            f"Feasible but not stable: {found.game.name(agent)} could give "
            f"{_count_less(found.spare[agent])} and still reach its "
            f"requirement{_others(found, found.spare, 'could give less', 'could give less')}."
        )
    if Answer.BORDERLINE in (found.feasible, found.stable):
        return "Too close to call: a utility is only known to within an interval."
    envy = {
        Answer.TRUE: "and no agent envies another",
        Answer.FALSE: f"but {_count(len({i for i, _ in found.envy}))} another",
        Answer.BORDERLINE: "and whether an agent envies another is too close to call",
    }
    return f"Feasible and stable, {envy[found.envy_free]}."


def _name_over(found: Check, over: list[int]) -> str:
    """Return which agents give more than their limits."""
    if len(over) == 1:
        return f"{found.game.name(over[0])} gives more than its limit"
    names = name_few([found.game.name(agent) for agent in over], NAMES)
    return f"{names} give more than their limits"


def _count(agents: int) -> str:
    return "one agent envies" if agents == 1 else f"{agents:,} agents envy"


def _others(found: Check, amounts: Vector, one: str, many: str) -> str:
    """Return how many more agents are as the worst one is."""
    more = int((amounts > found.tolerance * found.scale).sum()) - 1
    if more <= 0:
        return ""
    return f"; 1 other agent {one} too" if more == 1 else f"; {more:,} other agents {many} too"


def _count_less(amount: float) -> str:
    """Return how many samples an agent need not give: 1 sample less, 210 samples less."""
    shown = format_amount_with_digits(amount)
    return f"{shown} sample{'s' * (shown != '1')} less"


def explain_agent(found: Check, agent: int) -> str:
    """Explain an agent's number to its data manager, without a full stop at the end."""
    if found.prospects is not None:
        return _explain_chances(found, found.prospects, agent)
    if found.kept is not None and found.kept[agent] > 0:
        return _explain_kept(found, agent, float(found.kept[agent]))
    return _explain_need(found, agent)


def _explain_kept(found: Check, agent: int, kept: float) -> str:
    """Explain the number of an agent that keeps samples and learns from them."""
    allowed = found.tolerance * found.scale
    tell = format_amount_with_digits
    said = (
        f"{found.game.name(agent)} gives {tell(found.contributions[agent])} and keeps {tell(kept)}"
    )
    if found.short[agent] > allowed:
        has = f"it falls {tell(found.short[agent])} short"
    elif found.spare[agent] > allowed:
        enough = format_enough(found.needed[agent])
        has = f"it has enough, and would still have enough if it gave {enough}"
    else:
        has = "it has what it needs"
    alone = _explain_alone(found, agent, tell)
    return f"{said}. {alone}. With what it keeps and what the others give, {has}"


def _explain_need(found: Check, agent: int) -> str:
    given, needed, alone = (
        float(part[agent]) for part in (found.contributions, found.needed, found.alone)
    )
    allowed = found.tolerance * found.scale
    least = math.ceil(given - allowed)  # 300.0000001 is 300
    # Numbers that differ are not to read alike.
    told = (given, needed, alone, *([least - 1.0] if given >= 10 else []))
    digits = _choose_digits(*told, tie=allowed)
    tell = partial(format_amount_with_digits, more=digits)
    said = [f"{found.game.name(agent)} gives {tell(given)}", _explain_alone(found, agent, tell)]
    if found.short[agent] > allowed:
        least_enough = format_enough(needed, more=digits)
        reach = f"it needs {least_enough}" if np.isfinite(needed) else "no amount is enough"
        said.append(f"Given what the others give, {reach}, so it falls short")
    elif found.spare[agent] > allowed or needed < given - allowed:
        enough = format_enough(needed, more=digits)
        said.append(f"Given what the others give, {enough} is enough")
        if found.spare[agent] <= allowed:
            must = tell(float(found.game.minimums[agent]))
            bound = f"must give {must} to take part"
            bound = f"is locked at {must}" if agent in found.locked else bound
            said.append(f"But it {bound}")
    elif given == 0:
        said.append("The others already supply all it needs" if alone > 0 else "It needs nothing")
    else:
        if given > alone + allowed:
            said.append("The others' samples harm it")
        else:
            said.append(f"The others supply {_part(given, alone, allowed)} of what it needs")
        less = f"With {tell(least - 1.0)}" if given >= 10 else "With any less"
        said.append(f"{less} it would fall short")
    if binding := _name_goal(found, agent, "Its goal {} asks most of it"):
        said.append(binding)
    if envied := [j for i, j in found.envy if i == agent]:
        said.append(f"It envies {found.game.name(envied[0])}, which gives less")
    return ". ".join(said)


def _name_goal(found: Check, agent: int, clause: str) -> str:
    """Return a clause with the goal that asks most of an agent; nothing where it has one goal."""
    game = found.game
    if not has_goals(game) or len(game.goals_of(agent)) < 2:
        return ""
    asks = found.needed[agent] > 0
    goal = int(game.binding_goals(found.contributions)[agent])
    return clause.format(f'"{game.goals[goal].name}"') if asks else ""


def _choose_digits(*values: float, tie: float) -> int:
    """Return how many digits more than usual numbers need, so that those that differ read so."""
    known = sorted({value for value in values if math.isfinite(value)})
    apart = [(a, b) for a, b in pairwise(known) if b - a > tie]
    for digits in range(DIGITS):
        tell = partial(format_amount_with_digits, more=digits)
        if all(_read(tell(a)) < _read(tell(b)) for a, b in apart):
            return digits
    return 0


def _read(text: str) -> float:
    return float(text.replace(",", ""))


def _explain_alone(
    found: Check, agent: int, tell: Callable[[float], str], what: str = "", first: str = ""
) -> str:
    """Return what an agent would need alone, and for what; and whether its limit allows it.

    found: what was found.
    agent: its number.
    tell: writes a number.
    what: for what it would need it.
    first: what else it would need, for less.
    """
    if found.empty_handed[agent]:
        return NOTHING
    alone, limit = float(found.judged.alone[agent]), float(found.game.limits[agent])
    if not math.isfinite(alone):
        return "Alone it could not reach its requirement"
    # A contribution that is fixed, as by a lock, is no limit of the agent's own.
    fixed = agent in found.locked or limit <= found.game.minimums[agent]
    over = "" if fixed or alone <= limit * (1 + 1e-9) else f", more than its limit of {tell(limit)}"
    what = what or (" for the same target" if found.judged.has_margins else "")
    return f"Alone it would need {first}{tell(alone)}{what}{over}"


def _part(given: float, alone: float, allowed: float) -> str:
    """Return what part of what an agent needs comes from the others."""
    if given >= alone - allowed:
        return "nothing"
    percent = 100 * (1 - given / alone)
    if percent < 0.5:
        return "less than 1 %"
    return f"{percent:.0f} %" if percent < 99.5 else "more than 99 %"


# How likely it is that agents reach their goals.


def describe_prospects(found: Check) -> str:
    """Return the verdict on a measured game: how sure it is, and who could give less."""
    if found.prospects is None:
        return ""
    said = describe_success(found, found.prospects)
    return " ".join([said, *list_rest(found, found.prospects)])


def describe_success(found: Check, prospects: Prospects) -> str:
    """Return how likely all agents are to reach their goals, after why a proposal does not hold."""
    said = (*list_success(found, prospects), describe_required(found))
    return " ".join(filter(None, said))


def list_success(found: Check, prospects: Prospects, plan: str = "the plan") -> list[str]:
    """Return why a proposal does not hold, and how likely all agents are to reach their goals.

    found: what was found.
    prospects: of the proposal.
    plan: what the plan that it is compared with is called.
    """
    sure = format_beside(prospects.everyone.value, found.probability)
    planned = usual = ""
    if found.plan is not None and not np.array_equal(found.contributions, found.plan.contributions):
        usual = format_beside(found.plan.everyone.value, found.probability)
        planned = f" ({plan}: {usual})"
    said = f"all agents reach their goals with probability {sure}{planned}."
    if second := _explain_second_failure(found):
        reached = f"probability {sure} instead of {format_requested(found.probability)}"
        both = f"all agents reach their goals with {reached}, and {second}"
        compared = [f"With {plan}, the probability is {usual}."] if planned else []
        return [f"The proposal does not hold: {both}.", *compared]
    if "sure" in found.failing:
        return [f"The proposal does not hold: {said}"]
    said = capitalize_first(said)
    if found.holds is Answer.TRUE:
        return [said]
    if found.holds is Answer.BORDERLINE:
        return ["Whether the proposal holds is too close to call.", said]
    return [f"The proposal does not hold: {_explain_failure(found)}.", said]


def describe_required(found: Check) -> str:
    """Return the required probability where only it is missed; else nothing."""
    if "sure" not in found.failing or _explain_second_failure(found):
        return ""
    return f"The required probability is {format_requested(found.probability)}."


def tells_envy(found: Check) -> bool:
    """Return whether what is said of a proposal's success tells of envy."""
    if "sure" in found.failing:
        return bool(_explain_second_failure(found)) and _fails_by_envy(found)
    return found.holds is Answer.FALSE and _fails_by_envy(found)


def describe_carried(game: Game, agents: Sequence[int]) -> str:
    """Return in two sentences which agents give less than they need by their limits, if any do.

    game: whose limits they are.
    agents: those that the others carry.
    """
    return " ".join(list_carried(game, agents))


def list_carried(game: Game, agents: Sequence[int]) -> list[str]:
    """Return the sentences of `describe_carried`."""
    if not agents:
        return []
    said = []
    named = count_named(len(agents), NAMES)
    for agent in agents[:named]:
        limit = float(game.limits[agent])
        # A contribution that is fixed, as by a lock, is no limit of the agent's own.
        fixed = limit <= game.minimums[agent]
        bound = "is fixed at" if fixed else "has a limit of"
        said.append(f"{game.name(agent)} {bound} {format_samples(limit)}")
    if len(agents) > named:
        said.append(f"{len(agents) - named:,} other agents are limited too")
    one = len(agents) == 1
    low = "This is too low for a full safety margin"
    low = low if one else "These limits are too low for full safety margins"
    others = [agent for agent in range(game.size) if agent not in agents]
    give = f"{game.name(others[0])} gives" if len(others) == 1 else "the others give"
    return [f"{join_with_and(said)}.", f"{low}, so {give} more."]


def _explain_failure(found: Check) -> str:
    """Return which required answer is no, other than that all agents reach their goals."""
    if _fails_by_envy(found):
        return f"{_count(len({i for i, _ in found.judged.envy}))} another"
    spare = _find_spare(found)
    if "stable" in found.failing and spare.size:
        who = found.game.name(int(spare[0])) if spare.size == 1 else count(spare.size, "agent")
        return f"{who} could give less"
    return "not all agents reach their goals on average"


def _fails_by_envy(found: Check) -> bool:
    """Return whether envy is the reason that is named for a proposal that fails."""
    if "stable" in found.failing and _find_spare(found).size:
        return False
    return "envy-free" in found.failing and bool(found.judged.envy)


def _find_spare(found: Check) -> Indices:
    """Return the agents that could give less, if only in the game without safety margins."""
    spare = np.flatnonzero(found.could_give_less)
    return spare if spare.size else np.flatnonzero(found.judged.spare)


def _explain_second_failure(found: Check) -> str:
    """Return what else fails where the probability is too low; nothing where nothing does."""
    if "sure" not in found.failing:
        return ""
    answers = found.answers
    others = [n for n in ("stable", "envy-free") if n in found.failing]
    return _explain_failure(found) if any(answers[n] is Answer.FALSE for n in others) else ""


def list_hurt(found: Check) -> list[int]:
    """Return the agents whose probability falls by much against the plan, the most first."""
    if found.plan is None or found.prospects is None:
        return []
    before, now = found.plan.satisfied, found.prospects.satisfied
    order = np.argsort(now - before, kind="stable")[:NAMES].tolist()
    return [i for i in order if before[i] - now[i] > FALL]


def describe_hurt(found: Check, plan: str = "the plan") -> str:
    """Return whose probability falls most against the plan; nothing where none falls by much.

    found: what was found.
    plan: what the plan is called.
    """
    if found.plan is None or found.prospects is None:
        return ""
    before, now = found.plan.satisfied, found.prospects.satisfied
    hurt = list_hurt(found)
    ends = [tuple(format_uncertain(float(one[i])) for one in (before, now)) for i in hurt]
    if not hurt:
        return ""
    first = f"{found.game.name(hurt[0])} (from {ends[0][0]} to {ends[0][1]})"
    rest = join_with_and([found.game.name(i) for i in hurt[1:]])
    then = f", then for {rest}" if rest else ""
    return f"Compared with {plan}, P(goal) falls most for {first}{then}."


def list_rest(found: Check, prospects: Prospects) -> list[str]:
    """Return which agents the others carry, who is hurt, who is least sure, who could give less."""
    carried = describe_carried(found.game, found.carried)
    weakest = prospects.weakest
    chance = format_uncertain(float(prospects.satisfied[weakest]))
    least = f"{found.game.name(weakest)} is the least likely to reach its goal ({chance})."
    return list(filter(None, (carried, describe_hurt(found), least, _describe_spare(found))))


def _describe_spare(found: Check) -> str:
    """Return who could give less, by the plan's margins where there are any."""
    spare = found.could_give_less
    still = "keep the plan's safety margin"
    if found.with_margin is None:
        still = "keep its safety margin" if found.has_margins else "reach its goal on average"
    if not spare.any():
        return f"No agent could give less and still {still}."
    agent, others = int(np.argmax(spare)), int((spare > 0).sum()) - 1
    too = "" if others == 0 else f"; {count(others, 'other agent')} could give less too"
    return (
        f"{found.game.name(agent)} could give {format_samples(spare[agent])} fewer samples and "
        f"still {still}{too}.{_hint_at_limits(found)}"
    )


def _hint_at_limits(found: Check) -> str:
    """Return a hint where a limit that the check does not know may be why others give more."""
    if found.plan is None or found.answers["sure"] is not Answer.TRUE:
        return ""
    held = (found.contributions < found.plan.contributions) & (found.could_give_less == 0)
    hint = " If a limit holds an agent back, give the same --limit to check."
    return hint if held.any() else ""


def _explain_chances(found: Check, prospects: Prospects, agent: int) -> str:
    """Explain an agent's number of a measured game in a few sentences, the last without a stop."""
    given = float(found.contributions[agent])
    name = found.game.name(agent)
    said = [f"{name} gives {format_samples(given)}{_compare_contribution(found, agent)}."]
    sure = format_uncertain(float(prospects.satisfied[agent]))
    planned = ""
    before = sure if found.plan is None else format_uncertain(float(found.plan.satisfied[agent]))
    if before != sure:
        planned = f" (the plan: {before})"
    keeps = found.kept is not None and found.kept[agent] > 0
    learns = ", with what it keeps," if keeps else ""
    said.append(f"It reaches its goal{learns} with probability {sure}{planned}.")
    if given > 0:
        least = min(prospects.defection)
        chance = format_uncertain(float(prospects.defection[least][agent]))
        said.append(
            f"If it alone gave only {100 * least:g} % of its contribution, the probability would "
            f"be {chance}."
        )
    said.append(f"With these contributions of the others, {_describe_needed(found, agent)}.")
    said.append(_explain_chances_alone(found, agent) + _explain_help(found, agent))
    return " ".join(said)


def _explain_chances_alone(found: Check, agent: int) -> str:
    """Return what an agent of a measured game would need alone: for its goal, and its target."""
    goal, target = _name_goals(found), float(found.judged.alone[agent])
    if found.empty_handed[agent] or found.with_margin is None:
        if found.empty_handed[agent] or math.isfinite(target):
            return _explain_alone(found, agent, format_samples, f" for {goal}")
        return f"Alone it could not reach {goal}"
    bare = float(found.alone[agent])
    first = f"{format_samples(bare)} for {goal}"
    if math.isfinite(target):
        same = " for the same target as in the plan"
        return _explain_alone(found, agent, format_samples, same, f"{first}, and ")
    if math.isfinite(bare):
        return f"Alone it would need {first}, and could not reach its safety margin"
    return f"Alone it could not reach {goal}"


def _name_goals(found: Check) -> str:
    return "its goal and safety margin" if found.has_margins else "its goal on average"


def _explain_help(found: Check, agent: int) -> str:
    """Return what part of an agent's need the others supply, where it gives just what it needs."""
    given, alone = float(found.contributions[agent]), float(found.judged.alone[agent])
    exact = found.judged.short[agent] <= 1 and not found.could_give_less[agent]
    if found.with_margin is None or not exact or not 0 < given < alone:
        return ""
    return f". The others supply {_part(given, alone, 0.0)} of that"


def _describe_needed(found: Check, agent: int) -> str:
    """Return with how many samples an agent of a measured game reaches its goal."""
    needed = float(found.needed[agent])
    goal = _name_goals(found)
    if not math.isfinite(needed):
        return f"it could not reach {goal}, whatever it gave"
    amount = f"with {count_whole(needed, 'sample')}" if needed else "without giving any samples"
    return f"it reaches {goal} {amount}"


def _compare_contribution(found: Check, agent: int) -> str:
    if found.plan is None:
        return ""
    more = float(found.contributions[agent] - found.plan.contributions[agent])
    if more == 0:
        return ", as in the plan"
    return f", {format_samples(abs(more))} {'more' if more > 0 else 'fewer'} than in the plan"
