"""The verdicts on pages of games: what came of solving or checking, and which agents decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Answer, Check
from fedaccord.equilibria.result import Solution, SolvedGame, Status
from fedaccord.games.base import Game
from fedaccord.games.goals import has_curves
from fedaccord.report.games import TONES, has_costs
from fedaccord.report.games_chances import describe_chances
from fedaccord.report.model import Mark, Tone, rank
from fedaccord.wording import (
    capitalize_first,
    count,
    count_named,
    count_samples,
    format_amount,
    join_with_and,
    lower_first,
    name_few,
    pluralize,
)

# The most agents that a sentence names.
NAMES = 3
WORDS = {Answer.TRUE: "yes", Answer.FALSE: "no", Answer.BORDERLINE: "too close to call"}

CHECKED = {
    "optimal": "every agent is satisfied",
    "stable": "no agent could give less",
    "envy-free": "no agent envies another",
}


# Who matters most.


@dataclass(frozen=True)
class Envy:
    """An envious agent.

    agent: who envies.
    other: whose burden is the smallest that it envies.
    pairs: how many it envies, as far as they are listed.
    """

    agent: int
    other: int
    pairs: int


def find_worst_envy(found: Check, most: int) -> list[Envy]:
    """Return the agents with the most to gain from another's burden, the most first."""
    if not found.envy:
        return []
    first, second = np.array(found.envy, dtype=np.intp).T
    given = found.contributions
    # Within each agent the smallest burden comes first.
    order = np.lexsort((given[second], first))
    first, second = first[order], second[order]
    agents, start, pairs = np.unique(first, return_index=True, return_counts=True)
    others = second[start]
    worst = rank(given[agents] - given[others], most)
    return [Envy(int(agents[n]), int(others[n]), int(pairs[n])) for n in worst.tolist()]


def is_off(found: Check, amounts: Vector) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say of each agent whether an amount of its counts at the check's tolerance."""
    return np.asarray(amounts > found.tolerance * found.scale)


def mark_off(found: Check, agent: int) -> Mark:
    """Return how far an agent is from what it needs."""
    allowed = found.tolerance * found.scale
    if found.short[agent] > allowed:
        if not np.isfinite(found.short[agent]):
            return Mark("no amount is enough", "bad")
        return Mark(f"{format_amount(found.short[agent])} short", "bad")
    if found.spare[agent] > allowed:
        return Mark(f"{format_amount(found.spare[agent])} spare", "unsure")
    return Mark("exact" if found.contributions[agent] else "gives 0", "good")


# Verdicts.


def choose_concept(solutions: Mapping[str, Solution]) -> str:
    """Return the concept that a page is about: stable, or the first there is."""
    return "stable" if "stable" in solutions else next(iter(solutions))


def name_plan(concept: str) -> str:
    """Name the plan of a concept: the cheapest, the stable, the envy-free."""
    return "cheapest plan" if concept == "optimal" else f"{concept} plan"


def judge_solutions(
    game: Game, solutions: Mapping[str, Solution], checks: Mapping[str, Check]
) -> tuple[str, Tone]:
    """Return what came of solving, by concept, and whether that is good news."""
    concept = choose_concept(solutions)
    solution, found = solutions[concept], checks.get(concept)
    if solution.contributions is None or found is None:
        return _explain_no_plan(concept, solution, solutions)
    claimed = {"optimal": found.feasible, "stable": found.stable, "envy-free": found.envy_free}
    answer = claimed[solution.concept]
    if answer is Answer.FALSE:
        said = found.sentence()
        return f"The {concept} plan that was found does not hold: {lower_first(said)}", "bad"
    asked = f"asks for {_describe_total(game, solution.contributions)}"
    sure = ""
    alone = _compare_with_alone(game, solution.contributions)
    if found.prospects is not None:
        sure, alone = capitalize_first(describe_chances(found.prospects)), ""
    idle = int((found.contributions == 0).sum())
    agents = count(game.size, "agent")
    clauses = [
        f"The {name_plan(concept)} {asked}{alone}",
        sure,
        f"{idle:,} of {agents} {pluralize(idle, 'gives', 'give')} nothing" if idle else "",
        _describe_stability(concept, found),
    ]
    if solution.status is not Status.OPTIMAL:
        clauses.append(_describe_unproved(solution))
    doubts = [_describe_doubt(name, other) for name, other in solutions.items() if name != concept]
    said = ". ".join(filter(None, clauses)) + "."
    tone = judge_tone(found, good=not any(doubts))
    if solution.status is not Status.OPTIMAL or answer is Answer.BORDERLINE:
        tone = "unsure"
    return " ".join(filter(None, [said, *doubts])), tone


def judge_tone(found: Check, *, good: bool = True) -> Tone:
    """All is well only where no agent could give less, envies another, or is better off alone.

    Where pilots measured the game, it is also necessary to know how likely agents are to reach
    their goals.
    """
    flawed = Answer.FALSE in (found.stable, found.envy_free) or not found.rational
    return "plain" if flawed or not good or describe_unexamined(found) else "good"


def describe_unexamined(found: Check) -> str:
    """Return what a check of a game that was measured leaves out; nothing of other games."""
    if found.prospects is not None or not has_curves(found.game):
        return ""
    return (
        "Not examined: how likely agents are to reach their goals in one run. This game comes "
        "without pilots."
    )


def _describe_doubt(concept: str, solution: Solution) -> str:
    """Return what is not known, or not to be had, of a plan that the verdict is not about."""
    name = name_plan(concept)
    if solution.contributions is None:
        if solution.status is Status.NONE_EXISTS:
            return f"It is proved that there is no {name}."
        return f"No {name} was found." if solution.status is Status.FAILED else ""
    if solution.status is not Status.LIMIT:
        return ""
    return f"The {name} is not proved to be the cheapest of its kind."


# What proves a plan.


def describe_proofs(found: SolvedGame) -> Iterator[str]:
    """Return what proves each plan, and what the check finds; what is not proved is not claimed."""
    for concept, solution in found.solutions.items():
        check = found.checks.get(concept)
        proved = check is not None and check.verdicts[concept] is Answer.TRUE
        holds = f" The check finds that {CHECKED[concept]}." if proved else ""
        total = "total cost" if (found.game.costs != 1).any() else "total"
        yield f"{concept}: {_describe_proof(concept, solution, total)}.{holds}"


def _describe_proof(concept: str, solution: Solution, total: str) -> str:
    """Return what proves that no plan of its kind is cheaper, or that nothing does."""
    kind = "plan" if concept == "optimal" else f"{concept} plan"
    confirmed = solution.certificate.get("confirmed")
    if solution.status is Status.OPTIMAL:
        least = f"that no {kind} has a smaller {total}"
        if confirmed:
            return f"{confirmed} confirms {least}"
        if solution.method == "exhaustive":
            return f"a search of all whole numbers finds {least}"
        if "prices" in solution.certificate:
            return f"prices prove, up to rounding, {least}"
        return f"the bounds of the method {solution.method} prove, up to rounding, {least}"
    if solution.status is Status.NONE_EXISTS and confirmed:
        return f"{confirmed} confirms that there is no {kind}"
    return lower_first(solution.status.value).rstrip(".")


def _describe_total(game: Game, given: Vector) -> str:
    if not has_costs(game):
        return count_samples(float(given.sum()))
    return f"{count_samples(float(given.sum()))} at a cost of {format_amount(game.total(given))}"


def _compare_with_alone(game: Game, given: Vector) -> str:
    """Compare a total with the total of everybody going alone."""
    helpless = int((~np.isfinite(game.alone)).sum())
    if helpless:
        whom = "one agent" if helpless == 1 else count(helpless, "agent")
        return f", and {whom} could not do without the others"
    priced = has_costs(game)
    alone = game.total(game.alone)
    saved = alone - game.total(given)
    alone_all = f"the agents would {'pay' if priced else 'need'} alone"
    if abs(saved) <= 1e-9 * max(alone, 1.0):
        return f", the same as {alone_all}"
    word = ("less" if saved > 0 else "more") if priced else ("fewer" if saved > 0 else "more")
    return f", {format_amount(abs(saved))} {word} than {alone_all}"


def _describe_stability(concept: str, found: Check) -> str:
    """Return whether anybody could give less, and whether an agent envies another."""
    stable = {
        Answer.TRUE: "no agent could give less",
        Answer.BORDERLINE: "whether an agent could give less is too close to call",
    }.get(found.stable, "")
    if not stable:
        worst, others = int(np.argmax(found.spare)), int(is_off(found, found.spare).sum()) - 1
        more = f", and {count(others, 'other agent')} could give less too" if others > 0 else ""
        less = count_samples(found.spare[worst])
        stable = f"{found.game.name(worst)} could give {less} less{more}"
    envious = len({i for i, _ in found.envy})
    envy = {
        Answer.TRUE: "no agent envies another",
        Answer.FALSE: "one agent envies another"
        if envious == 1
        else f"{envious:,} agents envy another",
        Answer.BORDERLINE: "whether an agent envies another is too close to call",
    }[found.envy_free]
    first, second = (envy, stable) if concept == "envy-free" else (stable, envy)
    differ = {found.stable, found.envy_free} == {Answer.TRUE, Answer.FALSE}
    # A name keeps its own first letter.
    named = found.game.name(int(np.argmax(found.spare)))
    first = first if first.startswith(named) else capitalize_first(first)
    return f"{first}, {'but' if differ else 'and'} {second}"


def _describe_unproved(solution: Solution) -> str:
    """Return what is not proved of a plan's total."""
    low = solution.bounds.lower
    if solution.status is Status.NOT_ATTAINED:
        near = f"Such plans come as close to {count_samples(low)} as you like"
        return f"{near}, but none reaches it"
    if not np.isfinite(low) or low <= 0:
        return "It is not known how far it is from the cheapest of its kind"
    return f"A cheaper one may exist, but none below {format_amount(low)}"


def _explain_no_plan(
    concept: str, solution: Solution, solutions: Mapping[str, Solution]
) -> tuple[str, Tone]:
    """Say why there is no plan, and what there is instead."""
    kind = "" if concept == "optimal" else f"{concept} "
    if solution.status is Status.INFEASIBLE:
        note = solution.note or "raise a limit or lower a requirement."
        return f"There is no plan, even if all agents give all they can: {note}", "bad"
    if solution.status is Status.NONE_EXISTS:
        reason = {
            "stable": ": in every plan, some agent is short or could give less",
            "envy-free": ": in every plan, some agent is short or envies another",
        }.get(concept, "")
        return (
            f"It is proved that no {kind}plan exists{reason}{_describe_instead(solutions)}.",
            "bad",
        )
    note = f" ({solution.note.rstrip('.')})" if solution.note else ""
    said = f"No {kind}plan was found, and none was proved impossible{note}"
    return f"{said}{_describe_instead(solutions)}.", "unsure"


def _describe_instead(solutions: Mapping[str, Solution]) -> str:
    optimal = solutions.get("optimal")
    if optimal is None or optimal.contributions is None:
        return ""
    total = _describe_total(optimal.game, optimal.contributions)
    return f". The cheapest plan asks for {total}"


# A plan that was checked.


@dataclass(frozen=True)
class Sentence:
    """A sentence of a verdict, with what may stand for it in a headline.

    text: the sentence.
    shorter: sentences that say less, from the shortest to the longest; each has its reason.
    reason: the sentence without its beginning, which says whether a plan holds.
    yields: whether it makes room for other sentences, though it is short enough itself.
    tells_envy: whether it says who envies another.
    """

    text: str
    shorter: tuple[str, ...] = ()
    reason: str = ""
    yields: bool = False
    tells_envy: bool = False


def judge_plan(found: Check) -> tuple[Sentence, Tone]:
    """Return in a sentence whether a plan holds, or which agents break it; and its tone."""
    if found.stable is Answer.TRUE:
        envy = {
            Answer.TRUE: "and no agent envies another",
            Answer.FALSE: f"but {describe_envy(found)}",
            Answer.BORDERLINE: "and whether an agent envies another is too close to call",
        }[found.envy_free]
        said = f"every agent reaches its requirement, none could give less, {envy}."
        tells_envy = found.game.size > 1
        if not tells_envy:
            said = f"{found.game.name(0)} reaches its requirement, and could not give less."
        reason = capitalize_first(said)
        if found.holds is Answer.FALSE:
            text = f"The plan does not hold: {said}"
            return Sentence(text, reason=reason, tells_envy=tells_envy), "bad"
        text, short = f"The plan holds: {said}", ("The plan holds.",)
        return Sentence(text, short, reason, yields=True, tells_envy=tells_envy), judge_tone(found)
    if found.stable is Answer.BORDERLINE:
        return Sentence(found.sentence(), reason=found.sentence()), "unsure"
    reasons = [*_describe_excess(found), *_describe_lack(found)]
    less = _list_cuts(found)
    # What is said, from the shortest to the longest.
    told = [", ".join(reasons)] if reasons or not less else []
    if less:
        before = f"{told[0]}, while " if told else "every agent reaches its requirement, but "
        told += [f"{before}{few}" for few in _shorten_cuts(found, less)]
        told.append(f"{before}{join_with_and(less)}{'' if reasons else ' and still reach it'}")
    bare = [capitalize_first(f"{one}.") for one in told]
    if not reasons and found.holds is Answer.TRUE:
        return Sentence(bare[-1], tuple(bare[:-1]), bare[-1]), "plain"
    broken = [f"The plan does not hold: {one}." for one in told]
    return Sentence(broken[-1], tuple(broken[:-1]), bare[-1]), "bad"


def _describe_excess(found: Check) -> Iterator[str]:
    """Name the agents that give more than their limits, and those that give too little."""
    game, given = found.game, found.contributions
    for amounts, words in (
        (given - game.limits, "more than its limit"),
        (game.minimums - given, "less than it must"),
    ):
        off = np.flatnonzero(is_off(found, amounts)).tolist()
        said = [f"{game.name(i)} gives {format_amount(amounts[i])} {words}" for i in off]
        if said:
            yield name_few(said, NAMES)


def _describe_lack(found: Check) -> Iterator[str]:
    """Name those who fall short, the furthest first."""
    many = int(is_off(found, found.short).sum())
    said = []
    for agent in rank(found.short, min(many, NAMES)).tolist():
        name, short = found.game.name(agent), found.short[agent]
        if not np.isfinite(short):
            said.append(f"{name} could not give enough to reach its requirement")
        elif said:
            said.append(f"{name} by {format_amount(short)}")
        else:
            said.append(f"{name} falls {count_samples(short)} short of what it needs")
    if many > NAMES:
        falls = f"fall{'s' * (many == NAMES + 1)} short too"
        said.append(f"{count(many - NAMES, 'other agent')} {falls}")
    if said:
        yield join_with_and(said)


def _list_cuts(found: Check) -> list[str]:
    """List those who could give less, the most first."""
    many = int(is_off(found, found.spare).sum())
    said = [
        f"{found.game.name(agent)} could give {count_samples(found.spare[agent])} less"
        if n == 0 or _repeats_verb(found)
        else f"{found.game.name(agent)} {format_amount(found.spare[agent])}"
        for n, agent in enumerate(rank(found.spare, min(many, NAMES)).tolist())
    ]
    if many > NAMES:
        said.append(f"{count(many - NAMES, 'other agent')} could give less too")
    return said


def _repeats_verb(found: Check) -> bool:
    """Return whether each agent that could give less has its own verb: "agent 1 0.6" is unclear."""
    return found.game.agents is None


def _shorten_cuts(found: Check, said: list[str]) -> Iterator[str]:
    """Return the shorter lists of those who could give less, each of which ends with a verb."""
    named = NAMES if _repeats_verb(found) else 1
    for few in range(1, min(len(said), named + 1)):
        yield ", ".join(said[:few])
    if len(said) <= named:
        yield join_with_and(said)


def answer_questions(found: Check) -> Iterator[tuple[str, Mark, str]]:
    """Return the three questions of a check, their answers with who it is, and the verdicts."""
    bounded = bool(np.isfinite(found.game.limits).any() or found.game.minimums.any())
    reach = f"Do all agents reach their requirements{', within limits and minimums' * bounded}?"
    for question, mark, answer, name in (
        (reach, _answer_reach(found), found.feasible, "feasible"),
        ("Could an agent give less?", _answer_less(found), found.stable, "stable"),
        ("Does an agent envy another?", _answer_envy(found), found.envy_free, "envy-free"),
    ):
        verdicts = {Answer.TRUE: name, Answer.FALSE: f"not {name}"}
        if name == "envy-free" and found.game.size == 1:
            continue
        yield question, mark, verdicts.get(answer, WORDS[answer])


def _answer_reach(found: Check) -> Mark:
    said = WORDS[found.feasible]
    if found.feasible is Answer.FALSE:
        off = is_off(found, found.short)
        lacking = [_name_worst(found, found.short, "lacks")] if off.any() else []
        said += f": {', '.join([*_describe_excess(found), *lacking])}"
    return Mark(said, TONES[found.feasible])


def _answer_less(found: Check) -> Mark:
    if is_off(found, found.spare).any():
        return Mark(f"yes: {_name_worst(found, found.spare, 'by')}", "bad")
    if found.stable is Answer.BORDERLINE:
        return Mark(WORDS[found.stable], "unsure")
    if found.stable is Answer.FALSE:
        return Mark("no, but an agent does not get what it needs", "plain")
    return Mark("no", "good")


def _answer_envy(found: Check) -> Mark:
    if found.envy:
        return Mark(f"yes: {describe_envy(found)}", "bad")
    if found.borderline:
        return Mark(WORDS[Answer.BORDERLINE], "unsure")
    if found.feasible is Answer.FALSE:
        return Mark("no, but a plan counts as envy-free only if it is feasible", "plain")
    return Mark("no", "good")


def _name_worst(found: Check, amounts: Vector, verb: str) -> str:
    """Name those with the largest amounts, and count the others."""
    many = int(is_off(found, amounts).sum())
    shown = rank(amounts, count_named(many, NAMES)).tolist()
    said = [f"{found.game.name(i)} {verb} {format_amount(amounts[i])}" for i in shown]
    if many > len(shown):
        said.append(f"{many - len(shown):,} more")
    return ", ".join(said)


def describe_envy(found: Check) -> str:
    """Say who envies whom, the most first; of many agents, how many others envy another."""
    agents, name = len({i for i, _ in found.envy}), found.game.name
    said = []
    for worst in find_worst_envy(found, NAMES):
        whom = name(worst.other) if worst.pairs == 1 else count(worst.pairs, "other")
        said.append(f"{name(worst.agent)} envies {whom}")
    if agents > NAMES:
        others = agents - NAMES
        said.append(f"{count(others, 'other')} {pluralize(others, 'envies', 'envy')} another")
    return join_with_and(said)


def answer_envy(found: Check) -> str:
    """Return who envies whom, and whether the plan can count as envy-free at all."""
    short = "But an agent is short of its requirement, so the plan does not count as envy-free."
    return f"{tell_envy(found)} {short}" if found.feasible is Answer.FALSE else tell_envy(found)


def tell_envy(found: Check) -> str:
    """Return in a sentence who envies whom, or between whom it is too close to call."""
    if found.envy:
        return f"{describe_envy(found)}."
    if found.borderline:
        agent, other = map(found.game.name, found.borderline[0])
        more = len(found.borderline) - 1
        too = f", and so are {count(more, 'other pair')}" if more else ""
        return f"Whether {agent} envies {other} is too close to call{too}."
    return "No agent envies another."
