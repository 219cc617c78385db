"""What a check of a plan found, in words: whether it holds, and if not, because of whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedaccord._checks import Vector
from fedaccord.audit import Answer, Audit
from fedaccord.report.model import Mark, Tone
from fedaccord.report.words_games import TONES, WORDS, is_off, plan_tone, ranked
from fedaccord.wording import count, count_samples, format_amount, join_with_and

# The most agents that a sentence names.
NAMES = 3


def check_verdict(found: Audit) -> tuple[str, Tone]:
    """Say in a sentence whether a plan holds and if not, because of whom; and whether that is good.

    found: what the audit says.
    """
    if found.stable is Answer.TRUE:
        envy = {
            Answer.TRUE: "and nobody envies anybody",
            Answer.FALSE: f"but {_envious(found)}",
            Answer.BORDERLINE: "and whether anybody envies anybody is too close to call",
        }[found.envy_free]
        said = "The plan holds: everybody reaches its requirement, nobody could give less, "
        return f"{said}{envy}.", plan_tone(found)
    if found.stable is Answer.BORDERLINE:
        return found.sentence(), "unsure"
    reasons = [*_out_of_bounds(found), *_lacking(found)]
    if cut := _cutting(found):
        calm = f"everybody reaches its requirement, but {cut} and still reach it"
        reasons.append(f"while {cut}" if reasons else calm)
    return f"The plan does not hold: {', '.join(reasons)}.", "bad"


def _out_of_bounds(found: Audit) -> Iterator[str]:
    """Name the first who gives more than its limit, and the first who gives less than it must."""
    game, given = found.game, found.contributions
    for amounts, words in (
        (given - game.limits, "more than its limit"),
        (game.minimums - given, "less than it must"),
    ):
        for agent in np.flatnonzero(is_off(found, amounts))[:1].tolist():
            yield f"{game.name(agent)} gives {format_amount(amounts[agent])} {words}"


def _lacking(found: Audit) -> Iterator[str]:
    """Name those who fall short, the furthest first."""
    many = int(is_off(found, found.short).sum())
    shown = ranked(found.short, min(many, NAMES))
    said = [_lack(found, agent, first=n == 0) for n, agent in enumerate(shown.tolist())]
    if many > NAMES:
        said.append(f"{count(many - NAMES, 'other')} fall{'s' * (many == NAMES + 1)} short too")
    if said:
        yield join_with_and(said)


def _lack(found: Audit, agent: int, *, first: bool) -> str:
    name, short = found.game.name(agent), found.short[agent]
    if not np.isfinite(short):
        return f"no amount that {name} could give would suffice for it"
    return (
        f"{name} falls {count_samples(short)} short of what it needs"
        if first
        else (f"{name} by {format_amount(short)}")
    )


def _cutting(found: Audit) -> str:
    """Name those who could give less, the most first."""
    many = int(is_off(found, found.spare).sum())
    fewer = "fewer" if found.game.is_integer else "less"
    # "agent 1 0.6 less" would not read.
    again = found.game.agents is None
    said = [
        f"{found.game.name(agent)} {'could give ' * (again or n == 0)}"
        f"{format_amount(found.spare[agent])} {fewer}"
        for n, agent in enumerate(ranked(found.spare, min(many, NAMES)).tolist())
    ]
    if many > NAMES:
        said.append(f"{count(many - NAMES, 'other')} could give less too")
    return join_with_and(said)


def check_answers(found: Audit) -> Iterator[tuple[str, Mark, str]]:
    """Give the three questions of a check, their answers with who it is, and the verdicts."""
    yield _reach_answer(found)
    yield _less_answer(found)
    yield _envy_answer(found)


def _verdict_name(answer: Answer, name: str) -> str:
    return {Answer.TRUE: name, Answer.FALSE: f"not {name}"}.get(answer, WORDS[answer])


def _reach_answer(found: Audit) -> tuple[str, Mark, str]:
    game = found.game
    bounded = bool(np.isfinite(game.limits).any() or game.minimums.any())
    question = f"Does everybody reach its requirement{', within limits and minimums' * bounded}?"
    said = WORDS[found.feasible]
    if found.feasible is Answer.FALSE:
        off = is_off(found, found.short)
        lacking = [_named(found, found.short, "lacks")] if off.any() else []
        said += f": {', '.join([*_out_of_bounds(found), *lacking])}"
    return question, Mark(said, TONES[found.feasible]), _verdict_name(found.feasible, "feasible")


def _less_answer(found: Audit) -> tuple[str, Mark, str]:
    question = "Could anybody give less?"
    verdict = _verdict_name(found.stable, "stable")
    if is_off(found, found.spare).any():
        return question, Mark(f"yes: {_named(found, found.spare, 'by')}", "bad"), verdict
    if found.stable is Answer.BORDERLINE:
        return question, Mark(WORDS[found.stable], "unsure"), verdict
    if found.stable is Answer.FALSE:
        return question, Mark("no, but somebody does not get what it needs", "plain"), verdict
    return question, Mark("no", "good"), verdict


def _envy_answer(found: Audit) -> tuple[str, Mark, str]:
    question = "Does anybody envy another?"
    verdict = _verdict_name(found.envy_free, "envy-free")
    if found.envy:
        return question, Mark(f"yes: {_envious(found)}", "bad"), verdict
    if found.borderline:
        return question, Mark(WORDS[Answer.BORDERLINE], "unsure"), verdict
    if found.feasible is Answer.FALSE:
        said = "no, but a plan counts as envy-free only if it is feasible"
        return question, Mark(said, "plain"), verdict
    return question, Mark("no", "good"), verdict


def _named(found: Audit, amounts: Vector, verb: str) -> str:
    """Name those with the largest amounts, and count the others."""
    many = int(is_off(found, amounts).sum())
    shown = ranked(amounts, min(many, NAMES)).tolist()
    said = [f"{found.game.name(i)} {verb} {format_amount(amounts[i])}" for i in shown]
    if many > NAMES:
        said.append(f"{many - NAMES:,} more")
    return ", ".join(said)


def _envious(found: Audit) -> str:
    agents = {i for i, _ in found.envy}
    if len(agents) != 1:
        return f"{len(agents):,} agents envy another"
    agent, other = found.envy[0]
    many = len(found.envy)
    return (
        f"{found.game.name(agent)} envies "
        f"{found.game.name(other) if many == 1 else count(many, 'other')}"
    )
