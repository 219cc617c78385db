"""What an audit of defection comes to: can an agent give less? In words, without tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from fedaccord.report.model import Tone
from fedaccord.wording import (
    capitalize_first,
    count,
    format_level,
    format_percent,
    join_with_and,
)

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
    )
    from fedaccord.federation.defection.intervals import Proportion

Word: TypeAlias = Literal["yes", "no", "not clear", "not tried"]

# The level that the sentences are about, or the closest to it among those tried.
SPOKEN = 0.25
# A share above a half counts as yes, one below as no.
HALF = 0.5
# More algorithms than this are counted, not named, nor read aloud one by one.
NAMED = 3
MEASURED = (
    "Doubt: one measurement on an agent's validation samples decides whether the agent reaches its "
    "goal, so chance counts too. --scored-on N judges on further samples."
)
# With fewer trials than this the page says so next to the verdict.
FEW_TRIALS = 10


def answer_share(share: Proportion) -> Word:
    """Return whether something is so in most runs: not clear where the interval has both."""
    if not share.trials:
        return "not tried"
    if share.low > HALF:
        return "yes"
    return "no" if share.high < HALF else "not clear"


@dataclass(frozen=True)
class CutVerdict:
    """Whether an agent can give less, from how often it reached its goal at the levels tried.

    word: the answer.
    level: with yes, the lowest level that is enough; with no, the highest one that is not.
    sure: whether the interval at that level lies on the same side of a half.
    why: what makes it unclear.
    """

    word: Word
    level: float | None = None
    sure: bool = False
    why: str = ""


def judge_cut(curve: DefectionCurve, agent: str) -> CutVerdict:
    """Return whether an agent can give less, as far as the levels tried show."""
    shares = _find_shares(curve, agent)
    cuts = [level for level in shares if level < 1]
    if not cuts:
        return CutVerdict("not tried")
    least = find_least_level(curve, agent)
    if 1 in shares and shares[1].p < HALF:
        return CutVerdict("not clear", why="misses its goal even in full")
    if least is not None and least < 1:
        return CutVerdict("yes", least, sure=shares[least].low > HALF)
    if lucky := [level for level in cuts if shares[level].p >= HALF]:
        why = f"not with {format_level(cuts[0])}, but with {format_level(lucky[0])}"
        return CutVerdict("not clear", why=why)
    if 1 not in shares:
        return CutVerdict("not clear", why=f"not with {format_level(cuts[0])}, and 100 % not tried")
    return CutVerdict("no", cuts[0], sure=shares[cuts[0]].high < HALF)


def find_least_level(curve: DefectionCurve, agent: str) -> float | None:
    """Return the lowest level at which, and at every higher one tried, an agent reaches its goal.

    It reaches its goal if it does so in at least half of its runs. None where not even the highest
    level tried is enough.
    """
    enough = None
    for level, share in _find_shares(curve, agent).items():
        if share.p < HALF:
            break
        enough = level
    return enough


def _find_shares(curve: DefectionCurve, agent: str) -> dict[float, Proportion]:
    """Return how often an agent reached its goal at each level tried, the highest first."""
    points = sorted(curve.levels, key=lambda point: -point.level)
    found = {point.level: point.judged.clients[agent] for point in points}
    return {level: share for level, share in found.items() if share.trials}


def _judge_cuts(audit: DefectionAudit, curve: DefectionCurve) -> dict[str, CutVerdict]:
    """Return the verdicts for all agents that the plan asks for something."""
    asked = zip(audit.clients, curve.contributions, strict=True)
    return {agent: judge_cut(curve, agent) for agent, points in asked if points}


def find_levels(audit: DefectionAudit, curve: DefectionCurve, word: str) -> list[float]:
    """Return the levels of all agents with the same answer."""
    every = _judge_cuts(audit, curve).values()
    return [found.level for found in every if found.word == word and found.level is not None]


def sum_up_cuts(audit: DefectionAudit, curve: DefectionCurve) -> tuple[Word, str]:
    """Sum up the verdicts on a curve's agents in a word and a clause."""
    agents = _judge_cuts(audit, curve)
    less, not_less = find_levels(audit, curve, "yes"), find_levels(audit, curve, "no")
    unclear = sum(found.word == "not clear" for found in agents.values())
    every = count(len(agents), "agent")
    doubt = f"for {unclear:,} of {every} it is not clear"
    if less and len(agents) == 1:
        only = next(iter(agents))
        return "yes", f"{only} can give less; {format_level(less[0])} is enough"
    if less:
        low = min(less)
        whole = "both agents" if len(agents) == 2 else f"all {every}"
        who = whole if len(less) == len(agents) else f"{len(less):,} of {every}"
        enough = "each" if less.count(low) == len(less) else f"{less.count(low):,}"
        said = f"{who} can give less; {format_level(low)} is enough for {enough} of them"
        return "yes", f"{said}; {doubt}" if unclear else said
    if not_less:
        nobody = "no other agent" if unclear else "no agent"
        said = f"{nobody} can give {format_level(max(not_less))} or less of {name_part(audit)}"
        return ("not clear", f"{doubt}; {said}") if unclear else ("no", said)
    if unclear:
        return "not clear", doubt
    return "not tried", "no level below 100 % was tried"


def _conclude(audit: DefectionAudit, curves: Sequence[DefectionCurve]) -> str:
    """Answer in a sentence for each curve whether any agent can give less."""
    groups: dict[tuple[Word, str], list[str]] = {}
    for curve in curves:
        word, said = sum_up_cuts(audit, curve)
        said = said if len(curves) <= NAMED else ""
        groups.setdefault((word, said), []).append(curve.algorithm)
    if {word for word, _ in groups} == {"not tried"}:
        return ""
    if len(curves) > NAMED:
        of = f"of {len(curves):,} algorithms"
        text = ", ".join(f"{word} under {len(names):,} {of}" for (word, _), names in groups.items())
        return f"{capitalize_first(text)}."
    return " ".join(
        capitalize_first(f"{word} under {join_with_and(names)}: {said}.")
        for (word, said), names in groups.items()
    )


def describe_audit(found: DefectionAudit) -> str:
    """Return whether any agent can give less; without levels, how often all reach their goals."""
    curves = [curve for curve in found.curves if find_spoken_share(found, curve).trials]
    if not curves:
        return "The plan asks nothing of any agent, so no agent can give less."
    if conclusion := _conclude(found, curves):
        return conclusion
    shares = list_shares(curves, [curve.all_judged.p for curve in curves])
    return f"All agents reach their goals in {shares}, if all give in full."


def list_doubts(found: DefectionAudit) -> Iterator[str]:
    """Yield what speaks against taking the verdict for certain."""
    if found.trials < FEW_TRIALS:
        yield f"Doubt: {count(found.trials, 'trial')} leave wide intervals. Use more trials."
    unclear = [c.algorithm for c in found.curves if sum_up_cuts(found, c)[0] == "not clear"]
    if unclear:
        yield (
            f"Doubt: under {join_with_and(unclear)} the trials do not show for every agent whether "
            "it can give less."
        )
    for curve in found.curves:
        verdicts = _judge_cuts(found, curve).values()
        close = sum(not one.sure for one in verdicts if one.word in ("yes", "no"))
        if close and found.trials >= FEW_TRIALS:
            yield (
                f"Doubt: under {curve.algorithm}, the answer is not certain for "
                f"{count(close, 'agent')}: the 95 % interval includes a half."
            )
        if curve.diverged:
            yield (
                f"Doubt: under {curve.algorithm}, {count(curve.diverged, 'run')} diverged; agents "
                "count as missing their goals there."
            )
    if found.scored_on is None:
        yield MEASURED


def list_shares(curves: Sequence[DefectionCurve], shares: Sequence[float]) -> str:
    """Return a share for each algorithm, or for the lowest and the highest of many, in words."""
    pairs = [(c.algorithm, share) for c, share in zip(curves, shares, strict=True)]
    if len({format_percent(share) for share in shares}) == 1 and len(pairs) > 1:
        both = "both algorithms" if len(pairs) == 2 else f"all {len(pairs)} algorithms"
        return f"{format_percent(shares[0])} of runs under {both}"
    if len(pairs) > NAMED:
        ordered = sorted(pairs, key=lambda pair: pair[1])
        pairs = [ordered[0], ordered[-1]]
    first, *rest = pairs
    said = [f"{format_percent(first[1])} of runs under {first[0]}"]
    return join_with_and(said + [f"{format_percent(share)} under {name}" for name, share in rest])


def find_spoken_level(curve: DefectionCurve) -> DefectionLevel:
    """Return the level that sentences are about."""
    return min(curve.levels, key=lambda point: abs(point.level - SPOKEN))


def find_spoken_share(found: DefectionAudit, curve: DefectionCurve) -> Proportion:
    """Return how often a defector reaches its goal at the level that sentences are about."""
    return found.defector_share(find_spoken_level(curve).judged)


def choose_tone(found: DefectionAudit) -> Tone:
    """Return the tone: good where defection surely fails and full contribution is enough."""
    tones = {_choose_curve_tone(found, curve) for curve in found.curves}
    return tones.pop() if len(tones) == 1 else "unsure"


def _choose_curve_tone(found: DefectionAudit, curve: DefectionCurve) -> Tone:
    share = find_spoken_share(found, curve)
    if not share.trials:
        return "plain"
    verdicts = _judge_cuts(found, curve).values()
    if curve.all_judged.high < HALF or any(v.sure for v in verdicts if v.word == "yes"):
        return "bad"
    deterred = all(verdict.word == "no" for verdict in verdicts)
    return "good" if deterred and share.high < HALF < curve.all_judged.low else "unsure"


def name_part(audit: DefectionAudit) -> str:
    """Return what a defector gives a part of."""
    return "its data" if audit.protocol == "P1" else "what the plan asks of it"
