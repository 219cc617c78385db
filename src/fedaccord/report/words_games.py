"""What results of games say, in words: numbers, verdicts, and who matters most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.audit import Answer, Audit
from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.games.base import Game
from fedaccord.report.model import Mark, Tone
from fedaccord.wording import (
    count,
    count_samples,
    format_amount,
    format_range,
    lower_first,
    pluralize,
)

TONES: Mapping[Answer, Tone] = {
    Answer.TRUE: "good",
    Answer.FALSE: "bad",
    Answer.BORDERLINE: "unsure",
}
WORDS = {Answer.TRUE: "yes", Answer.FALSE: "no", Answer.BORDERLINE: "too close to call"}


def price_value(price: Interval) -> str:
    """Return what an interval tells of a price."""
    return format_range(price.lower, price.upper, "{:.4g}".format)


# Who matters most.


def ranked(weights: Vector, most: int) -> Indices:
    """Give the agents with the largest weights, the largest first, ties in order."""
    if len(weights) > 4 * most:
        # A sort of a million agents for the sake of a few would take longer than the rest.
        edge = np.partition(weights, -most)[-most]
        kept = np.flatnonzero(weights >= edge)
        return kept[np.argsort(-weights[kept], kind="stable")][:most]
    return np.argsort(-weights, kind="stable")[:most]


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


def worst_envy(audit: Audit, most: int) -> list[Envy]:
    """Give the agents with the most to gain from another's burden, the most first."""
    if not audit.envy:
        return []
    first, second = np.array(audit.envy, dtype=np.intp).T
    given = audit.contributions
    # Within each agent the smallest burden comes first.
    order = np.lexsort((given[second], first))
    first, second = first[order], second[order]
    agents, start, pairs = np.unique(first, return_index=True, return_counts=True)
    others = second[start]
    worst = ranked(given[agents] - given[others], most)
    return [Envy(int(agents[n]), int(others[n]), int(pairs[n])) for n in worst.tolist()]


def is_off(audit: Audit, amounts: Vector) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say of each agent whether an amount of its counts at the audit's tolerance."""
    return np.asarray(amounts > audit.tolerance * audit.scale)


def off_mark(audit: Audit, agent: int) -> Mark:
    """Say how far an agent is from what it needs."""
    allowed = audit.tolerance * audit.scale
    if audit.short[agent] > allowed:
        if not np.isfinite(audit.short[agent]):
            return Mark("no amount suffices", "bad")
        return Mark(f"{format_amount(audit.short[agent])} short", "bad")
    if audit.spare[agent] > allowed:
        return Mark(f"{format_amount(audit.spare[agent])} spare", "unsure")
    return Mark("exact" if audit.contributions[agent] else "gives 0", "good")


# Verdicts.


def chosen_concept(solutions: Mapping[str, Solution]) -> str:
    """Give the concept that a page is about: stable, or the first there is."""
    return "stable" if "stable" in solutions else next(iter(solutions))


def plan_name(concept: str) -> str:
    """Name the plan of a concept: the cheapest, the stable, the envy-free."""
    return "cheapest plan" if concept == "optimal" else f"{concept} plan"


def solve_verdict(
    game: Game, solutions: Mapping[str, Solution], audits: Mapping[str, Audit]
) -> tuple[str, Tone]:
    """Say in a sentence what came of solving, and whether that is good news.

    game: what was solved.
    solutions: what was found, by concept.
    audits: what the audit says of each plan, by concept.
    """
    concept = chosen_concept(solutions)
    solution, found = solutions[concept], audits.get(concept)
    if solution.contributions is None or found is None:
        return _without_plan(concept, solution, solutions)
    claimed = {"optimal": found.feasible, "stable": found.stable, "envy-free": found.envy_free}
    answer = claimed[solution.concept]
    if answer is Answer.FALSE:
        said = found.sentence()
        return f"The {concept} plan that was found does not hold: {lower_first(said)}", "bad"
    asked = f"asks {_total(game, solution.contributions)} in all"
    alone = _against_alone(game, solution.contributions)
    clauses = [f"The {plan_name(concept)} {asked}{alone}", _idle(found), _holds(concept, found)]
    if solution.status is not Status.OPTIMAL:
        clauses.append(_unproved(solution))
    doubts = [_doubt(name, other) for name, other in solutions.items() if name != concept]
    said = "; ".join(filter(None, clauses)) + "."
    tone = plan_tone(found, good=not any(doubts))
    if solution.status is not Status.OPTIMAL or answer is Answer.BORDERLINE:
        tone = "unsure"
    return " ".join(filter(None, [said, *doubts])), tone


def plan_tone(found: Audit, *, good: bool = True) -> Tone:
    """All is well only where nobody could give less and nobody envies anybody."""
    flawed = Answer.FALSE in (found.stable, found.envy_free)
    return "good" if good and not flawed else "plain"


def _idle(found: Audit) -> str:
    """Say how many give nothing, if any do."""
    idle = int((found.contributions == 0).sum())
    if not idle:
        return ""
    return (
        f"{idle:,} of {count(found.game.size, 'agent')} {pluralize(idle, 'gives', 'give')} nothing"
    )


def _doubt(concept: str, solution: Solution) -> str:
    """Say what is not known, or not to be had, of a plan that the verdict is not about."""
    name = plan_name(concept)
    if solution.contributions is None:
        if solution.status is Status.NONE_EXISTS:
            return f"It is proved that there is no {name}."
        return f"No {name} was found." if solution.status is Status.FAILED else ""
    if solution.status is not Status.LIMIT:
        return ""
    return f"That the total of the {name} is the least of its kind is not proved."


def _total(game: Game, given: Vector) -> str:
    if not has_costs(game):
        return count_samples(float(given.sum()))
    return f"{count_samples(float(given.sum()))} at a cost of {format_amount(game.total(given))}"


def has_costs(game: Game) -> bool:
    """Say whether samples cost some agents more than others."""
    return bool((game.costs != 1).any())


def _against_alone(game: Game, given: Vector) -> str:
    """Compare a total with the total of everybody going alone."""
    helpless = int((~np.isfinite(game.alone)).sum())
    if helpless:
        whom = "one agent" if helpless == 1 else count(helpless, "agent")
        return f", and alone no amount would suffice for {whom}"
    priced = has_costs(game)
    alone = game.total(game.alone)
    saved = alone - game.total(given)
    if abs(saved) <= 1e-9 * max(alone, 1.0):
        return f", {'the same' if priced else 'as many'} as going alone"
    word = ("less" if saved > 0 else "more") if priced else ("fewer" if saved > 0 else "more")
    return f", {format_amount(abs(saved))} {word} than going alone"


def _holds(concept: str, found: Audit) -> str:
    """Say whether anybody could give less, and whether anybody envies anybody."""
    spare = is_off(found, found.spare)
    stable = {
        Answer.TRUE: "nobody could give less",
        Answer.FALSE: _could_cut(found, int(spare.sum())),
        Answer.BORDERLINE: "whether anybody could give less is too close to call",
    }[found.stable]
    envious = len({i for i, _ in found.envy})
    envy = {
        Answer.TRUE: "nobody envies anybody",
        Answer.FALSE: "one agent envies another"
        if envious == 1
        else f"{envious:,} agents envy another",
        Answer.BORDERLINE: "whether anybody envies anybody is too close to call",
    }[found.envy_free]
    first, second = (envy, stable) if concept == "envy-free" else (stable, envy)
    differ = {found.stable, found.envy_free} == {Answer.TRUE, Answer.FALSE}
    return f"{first}, {'but' if differ else 'and'} {second}"


def _could_cut(found: Audit, agents: int) -> str:
    worst = int(np.argmax(found.spare))
    more = f", and {count(agents - 1, 'other')} could too" if agents > 1 else ""
    return f"{found.game.name(worst)} could give {format_amount(found.spare[worst])} less{more}"


def _unproved(solution: Solution) -> str:
    """Say what is not proved of a plan's total."""
    low = solution.bounds.lower
    if solution.status is Status.NOT_ATTAINED:
        near = f"such plans come as near to {count_samples(low)} in all as you like"
        return f"{near}, and none has the least"
    if not np.isfinite(low) or low <= 0:
        return "how far it is from the cheapest of its kind is not known"
    proved = f"only that none is below {format_amount(low)}"
    return f"that none of its kind is cheaper is not proved, {proved}"


def _without_plan(
    concept: str, solution: Solution, solutions: Mapping[str, Solution]
) -> tuple[str, Tone]:
    """Say why there is no plan, and what there is instead."""
    kind = "" if concept == "optimal" else f"{concept} "
    if solution.status is Status.INFEASIBLE:
        note = solution.note or "raise a limit or lower a requirement."
        return f"No plan meets every requirement, even at everybody's limit: {note}", "bad"
    if solution.status is Status.NONE_EXISTS:
        reason = {
            "stable": ": whatever the plan, somebody is short or could give less",
            "envy-free": ": whatever the plan, somebody is short or envies another",
        }.get(concept, "")
        return f"It is proved that no {kind}plan exists{reason}{_instead(solutions)}.", "bad"
    note = f" ({solution.note.rstrip('.')})" if solution.note else ""
    said = f"No {kind}plan was found, and none was proved impossible{note}"
    return f"{said}{_instead(solutions)}.", "unsure"


def _instead(solutions: Mapping[str, Solution]) -> str:
    optimal = solutions.get("optimal")
    if optimal is None or optimal.contributions is None:
        return ""
    return f"; the cheapest plan asks {_total(optimal.game, optimal.contributions)} in all"
