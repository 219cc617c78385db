"""What a comparison of algorithms says, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedaccord.federation.config.sections import PLANS

if TYPE_CHECKING:
    from fedaccord.frontier.result import Contender, Frontier, Reached

COUNTS = ("none", "one", "two", "all three")


def conclusion(frontier: Frontier) -> str:
    """Say who reaches all three goals; if nobody does, who comes nearest."""
    goals = frontier.goals
    asked = (
        f"all satisfied in at least {_percent(goals.satisfied)} of runs, a contributor that gives "
        f"{_percent(goals.level)} of what is asked in at most {_percent(goals.cut)}, at most "
        f"{_percent(goals.samples)} of {frontier.baseline}'s samples"
    )
    counts = {c.name: sum(r.reached for r in frontier.reached(c)) for c in frontier.contenders}
    best = max(counts.values())
    names = [name for name, count in counts.items() if count == best]
    reach = f"{listed(names)} {'reaches' if len(names) == 1 else 'reach'}"
    if best == 3:
        sure = [n for n in names if all(r.sure for r in frontier.reached(frontier.contender(n)))]
        return f"{reach} all three goals, {_doubt(names, sure)}: {asked}."
    if best == 0:
        return f"Nobody reaches any of the three goals: {asked}."
    return f"Nobody reaches all three goals: {asked}. {reach} {COUNTS[best]} of them."


def _doubt(names: list[str], sure: list[str]) -> str:
    if not sure:
        return "by what was seen, though not beyond the doubt that intervals leave"
    if len(sure) == len(names):
        return "and so do all intervals"
    return f"and of {listed(sure)} so do all intervals"


def verdict(frontier: Frontier, contender: Contender) -> str:
    """Say which goals a contender reaches, and whether its intervals leave any doubt."""
    found = frontier.reached(contender)
    count = sum(one.reached for one in found)
    which = "all three goals" if count == 3 else f"{COUNTS[count]} of the three goals"
    return f"{contender.name} reaches {which}: {'; '.join(_clause(frontier, r) for r in found)}."


def _clause(frontier: Frontier, found: Reached) -> str:
    goals = frontier.goals
    words = {
        "satisfied": "all are satisfied in {} of runs",
        "cut": f"a contributor that gives {_percent(goals.level)} of what is asked is in {{}}",
        "samples": f"it uses {{}} of {frontier.baseline}'s samples",
    }[found.goal]
    bound = f"{'at least' if found.goal == 'satisfied' else 'at most'} {_percent(found.bound)}"
    if found.value is None:
        return f"nothing is asked of anybody, so nobody can cut (goal {bound})"
    said = words.format(_percent(found.value))
    if found.low is None or found.high is None:
        return f"{said} (goal {bound}: {_answer(found)})"
    return f"{said} ({_ends(found.low, found.high)}goal {bound}: {_answer(found)})"


def _answer(found: Reached) -> str:
    word = "reached" if found.reached else "missed"
    return word if found.sure else f"{word}, not surely"


def _ends(low: float, high: float) -> str:
    if _percent(low) == _percent(high):
        return ""
    return f"{100 * low:.0f} to {_percent(high)}; "


def provenance(frontier: Frontier) -> str:
    """Say what chose the plans, and what they were judged by."""
    trials = "trial 0" if frontier.trials == 1 else f"trials 0 to {frontier.trials - 1:,}"
    given = [c.name for c in frontier.contenders if c.plan not in PLANS]
    taken = f" (that of {listed(given)} was given)" if given else ""
    return (
        f"Plans were made on trials of their own{taken}. Everything here is counted on {trials} of "
        f"seed {frontier.seed}, which chose nothing."
    )


def harm(frontier: Frontier, contender: Contender) -> str:
    """Say what a cut does to the others, where they are satisfied less often for it; or nothing."""
    level = frontier.goals.level
    then = contender.others("P2", level)
    if not then.trials:
        return ""
    full = contender.all_satisfied
    if then.high >= full.low or then.p >= full.p:
        return ""
    return (
        f"Under {contender.name} the others pay for a cut too: when a contributor gives "
        f"{_percent(level)} of what is asked, all the others are satisfied in "
        f"{_percent(then.p)} of runs ({100 * then.low:.0f} to {_percent(then.high)})."
    )


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "less than 1 %"
    return f"{100 * share:.0f} %"


def listed(names: list[str]) -> str:
    """Put names one after the other, with an and before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
