"""Whether an agent could give less, from how often it reached its goal at the levels tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from fedaccord.report.training import POOR, percent_of

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import DefectionAudit, DefectionCurve
    from fedaccord.federation.defection.intervals import Proportion

Word: TypeAlias = Literal["yes", "no", "not clear", "not tried"]
# In which order agents are listed where they are many; levels, at most 1, go on top.
ORDER: dict[Word, float] = {"yes": 0.0, "not clear": 2.0, "no": 4.0, "not tried": 6.0}
# More algorithms than this are counted, not named.
NAMED = 3


@dataclass(frozen=True)
class Answer:
    """Whether an agent could give less.

    word: the answer.
    level: the lowest that is enough where it is yes, and the highest cut that is not where no.
    sure: whether the interval at that level lies on the same side of a half.
    why: what makes it unclear.
    """

    word: Word
    level: float | None = None
    sure: bool = False
    why: str = ""


def answered(curve: DefectionCurve, agent: str) -> Answer:
    """Tell whether an agent could give less, as far as the levels tried tell.

    curve: the algorithm's curve.
    agent: the agent.
    """
    shares = _shares(curve, agent)
    cuts = [level for level in shares if level < 1]
    if not cuts:
        return Answer("not tried")
    least = least_enough(curve, agent)
    if 1 in shares and shares[1].p < POOR:
        return Answer("not clear", why="misses its goal in full too")
    if least is not None and least < 1:
        return Answer("yes", least, sure=shares[least].low > POOR)
    if lucky := [level for level in cuts if shares[level].p >= POOR]:
        why = f"not with {percent_of(cuts[0])}, but with {percent_of(lucky[0])}"
        return Answer("not clear", why=why)
    if 1 not in shares:
        return Answer("not clear", why=f"not with {percent_of(cuts[0])}, and 100 % not tried")
    return Answer("no", cuts[0], sure=shares[cuts[0]].high < POOR)


def least_enough(curve: DefectionCurve, agent: str) -> float | None:
    """Give the lowest level such that there, and at every higher one tried, an agent is satisfied.

    Satisfied in at least half of its runs, that is.

    curve: the algorithm's curve.
    agent: the agent; None is given where not even the highest level tried suffices.
    """
    enough = None
    for level, share in _shares(curve, agent).items():
        if share.p < POOR:
            break
        enough = level
    return enough


def _shares(curve: DefectionCurve, agent: str) -> dict[float, Proportion]:
    """Give how often an agent was satisfied at the levels it was tried at, the highest first."""
    points = sorted(curve.levels, key=lambda point: -point.level)
    found = {point.level: point.at_end.clients[agent] for point in points}
    return {level: share for level, share in found.items() if share.trials}


def answers_of(found: DefectionAudit, curve: DefectionCurve) -> dict[str, Answer]:
    """Give the answers for all agents of whom something is asked."""
    asked = zip(found.clients, curve.contributions, strict=True)
    return {agent: answered(curve, agent) for agent, points in asked if points}


def counted_answers(found: DefectionAudit, curve: DefectionCurve) -> str:
    """Say how many agents could give less, with the levels that this is known of."""
    said = _answer_words(found, curve)[1]
    highest = max((point.level for point in curve.levels if point.level < 1), default=1.0)
    if highest < 1 and not _levels(found, curve, "yes") and _levels(found, curve, "no"):
        said += f"; parts between {100 * highest:g} and 100 % were not tried"
    return f"{said[0].upper()}{said[1:]}."


def _levels(found: DefectionAudit, curve: DefectionCurve, word: Word) -> list[float]:
    every = answers_of(found, curve).values()
    return [answer.level for answer in every if answer.word == word and answer.level is not None]


def _answer_words(found: DefectionAudit, curve: DefectionCurve) -> tuple[Word, str]:
    """Sum up the answers of a curve's agents in a word and a clause."""
    agents = answers_of(found, curve)
    less, not_less = _levels(found, curve, "yes"), _levels(found, curve, "no")
    unclear = sum(answer.word == "not clear" for answer in agents.values())
    what = "its data" if found.protocol == "P1" else "what is asked of it"
    doubt = f"for {unclear:,} of {_agents(len(agents))} it is not clear"
    if less and len(agents) == 1:
        return "yes", f"{next(iter(agents))} could give less, and get by with {percent_of(less[0])}"
    if less:
        low = min(less)
        said = (
            f"{len(less):,} of {_agents(len(agents))} could give less; "
            f"{less.count(low):,} would get by with {percent_of(low)}"
        )
        return "yes", f"{said}; {doubt}" if unclear else said
    if not_less:
        nobody = "nobody else" if unclear else "nobody"
        said = f"{nobody} could give {percent_of(max(not_less))} or less of {what}"
        return ("not clear", f"{doubt}; {said}") if unclear else ("no", said)
    if unclear:
        return "not clear", doubt
    return "not tried", "nobody was let give less"


def _agents(number: int) -> str:
    return f"{number:,} {'agent' if number == 1 else 'agents'}"


def conclusion(found: DefectionAudit, curves: Sequence[DefectionCurve]) -> str:
    """Answer in a sentence whether anybody could give less, algorithm by algorithm.

    found: the audit.
    curves: those in which something is asked of somebody.
    """
    groups: dict[tuple[Word, str], list[str]] = {}
    for curve in curves:
        word, said = _answer_words(found, curve)
        said = said if len(curves) <= NAMED else ""
        groups.setdefault((word, said), []).append(curve.algorithm)
    if {word for word, _ in groups} == {"not tried"}:
        return ""
    if len(curves) > NAMED:
        of = f"of {len(curves):,} algorithms"
        text = ", ".join(f"{word} under {len(names):,} {of}" for (word, _), names in groups.items())
        return f"{text[0].upper()}{text[1:]}."
    clauses = [f"{word} under {_all_of(names)}: {said}." for (word, said), names in groups.items()]
    return " ".join(f"{clause[0].upper()}{clause[1:]}" for clause in clauses)


def _all_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
