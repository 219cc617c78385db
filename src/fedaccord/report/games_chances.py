"""A proposal to agents of a measured game: how sure it is, who could give less, and the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Answer, Check
from fedaccord.check.sentences import describe_success, list_rest
from fedaccord.games.base import Game, is_measured
from fedaccord.report.model import (
    Column,
    Mark,
    Place,
    Records,
    Table,
    Tone,
    choose_rows,
    keep_finite,
    name_rows,
    tabulate_questions,
)
from fedaccord.report.terminal import shorten_name
from fedaccord.wording import (
    capitalize_first,
    count,
    count_named,
    count_samples,
    format_accuracy,
    format_beside,
    format_difference,
    format_part,
    format_range,
    format_requested,
    format_samples,
    format_short_probability,
    format_uncertain,
    join_with_and,
    name_alone,
    name_few,
)

if TYPE_CHECKING:
    from fedaccord.games.chances import Prospects

# The most agents that a sentence names.
NAMES = 3
# The head of the column of what agents could keep.
LESS = "could give less by"
# Up to this many agents a page lists all; of more, those least likely to reach their goals.
ROWS = 500
JUDGED = {
    "true": "A goal counts as reached when the true accuracy of the model reaches it.",
    "measured": "A goal counts as reached when one measurement reaches it.",
}


def judge_tone(found: Check) -> Tone:
    """Return good where the proposal holds, unsure where it is merely not stable.

    One that holds only because less is required of it than usual is neither.
    """
    if found.failing:
        return "bad" if "sure" in found.failing else "unsure"
    if found.carried:
        return "unsure"
    answers = found.answers
    return "good" if all(answers[name] is Answer.TRUE for name in found.usual) else "plain"


def show_proposal(found: Check, prospects: Prospects) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows of a proposal: how sure it is, by agent, and the plan."""
    yield Mark(describe_success(found, prospects), judge_tone(found))
    yield from list_rest(found, prospects)
    yield from (Mark(f"Doubt: {sentence}", "unsure") for sentence in found.doubts)
    yield list_prospects(found, prospects).table("terminal")
    yield describe_total(found, prospects)
    yield describe_average(found)
    yield from suggest_limit(found)
    yield from list_symbols(found, prospects).values()


def describe_chances(prospects: Prospects) -> str:
    """Return how likely all agents are to reach their goals."""
    value = format_uncertain(prospects.everyone.value)
    return f"all agents reach their goals with probability {value}"


def describe_total(found: Check, prospects: Prospects) -> str:
    """Return what all agents give, compared with the plan, and how sure the probability is."""
    total = float(found.contributions.sum())
    compared = ""
    if found.plan is not None:
        more = total - float(found.plan.contributions.sum())
        than = f"{format_samples(abs(more))} {'more' if more > 0 else 'fewer'} than the plan"
        compared = f", {than if more else 'the same as the plan'}"
    everyone = prospects.everyone
    if everyone.low is None or everyone.high is None:
        return f"The proposal asks for {count_samples(total)} in all{compared}."
    ends = format_range(everyone.low, everyone.high, format_uncertain)
    return (
        f"The proposal asks for {count_samples(total)} in all{compared}. Given the pilots, the "
        f"95 % interval of the probability that all agents reach their goals is {ends}."
    )


def describe_average(found: Check) -> str:
    """Return what the check finds of the goals themselves, without a safety margin."""
    short, spare = found.short > 0, found.spare > 0
    reach = "every agent reaches its goal"
    if short.any():
        names = _name_first(found, np.where(np.isfinite(found.short), found.short, np.inf))
        falls = "falls short of its goal" if short.sum() == 1 else "fall short of their goals"
        reach = f"{names} {falls}"
    less = "No agent could then give less."
    if spare.any():
        worst = int(np.argmax(found.spare))
        amount = format_samples(found.spare[worst])
        still = "keep its safety margin" if found.has_margins else "reach its goal"
        less = f"{found.game.name(worst)} could then give {amount} fewer samples and still {still}"
        more = int(spare.sum()) - 1
        less += f", and {count(more, 'other agent')} could give less too." if more else "."
    if found.with_margin is not None and not found.could_give_less.any() and spare.any():
        less += " These spare samples are the safety margin."
    basis = f"Without a safety margin, {reach} on average."
    if found.has_margins:
        basis = f"With its safety margin, {reach}."
    return f"{basis} {less} {_describe_envy(found)}".rstrip()


def suggest_limit(found: Check) -> Iterator[str]:
    """Return how to plan with what an agent gives, if the proposal fails for want of its samples.

    It is the agent that gives the most fewer samples than in the plan.
    """
    if found.plan is None or found.answers["sure"] is Answer.TRUE:
        return
    fewer = found.plan.contributions - found.contributions
    agent = int(np.argmax(fewer))
    if fewer[agent] <= 0:
        return
    name = found.game.name(agent)
    limit = f"{name}={found.contributions[agent]:.0f}"
    limit = limit if name.isalnum() else f'"{limit}"'
    yield (
        f"If {name} can give at most {count_samples(found.contributions[agent])}, plan again: run "
        f"fedaccord plan with the pilots and --limit {limit}."
    )


def _describe_envy(found: Check) -> str:
    """Return who envies whom, and who else would if there were no safety margin."""
    # Pairs that envy with the plan's margins also envy without them.
    certain = dict(reversed(found.judged.envy))
    others = {i: j for i, j in reversed(found.envy) if i not in certain}
    if not certain and not others:
        return "No agent envies another." if found.game.size > 1 else ""
    said = [f"{_name_pairs(found, certain, 'envies')}."] if certain else []
    if others:
        said.append(f"Without the margin, {_name_pairs(found, others, 'would envy')}.")
    return " ".join(said)


def _name_pairs(found: Check, envied: dict[int, int], verb: str) -> str:
    """Name the first agents with the one that each envies, and count the others."""
    pairs = sorted(envied.items())
    first = pairs[: count_named(len(pairs), NAMES)]
    # Agents that envy the same agent share a clause.
    whom = {j: [found.game.name(i) for i, k in first if k == j] for _, j in first}
    named = [
        f"{join_with_and(who)} {_agree(verb, len(who))} {found.game.name(j)}"
        for j, who in whom.items()
    ]
    rest = len(pairs) - len(first)
    more = f"{count(rest, 'other agent')} {_agree(verb, rest)} another"
    return join_with_and([*named, more] if rest else named)


def _agree(verb: str, number: int) -> str:
    """Return a verb for one agent or several: envies, envy, would envy."""
    return "envy" if verb == "envies" and number > 1 else verb


def _name_first(found: Check, amounts: Vector) -> str:
    """Name the agents with the largest amounts, and count the others."""
    order = [i for i in np.argsort(-amounts, kind="stable").tolist() if amounts[i] > 0]
    return name_few([found.game.name(i) for i in order], NAMES)


def list_symbols(found: Check, prospects: Prospects, place: Place = "terminal") -> dict[str, str]:
    """Explain each column of the table, by its head."""
    symbols = {
        "P(goal)": "P(goal): the probability that an agent reaches its goal in one run. The last "
        f"row has the probability that all agents do. {JUDGED[prospects.chances.judged]}",
    }
    if place == "terminal":
        level = format_part(max(prospects.defection))
        symbols["P(goal) with"] = (
            f"P(goal) with {level}: P(goal) of an agent that gives {level} of its contribution."
        )
    basis = "its goal and safety margin" if found.has_margins else "its goal on average"
    often = basis if found.has_margins else "its goal in about half of all runs"
    needs = f"Needs: what the agent must give to reach {often}, if the others give as proposed."
    alone = (
        f"to reach {basis}" if found.with_margin is None else "for the same target as in the plan"
    )
    whose = capitalize_first(name_alone(_has_target(found)))
    none = "; an agent that has no samples cannot go alone" if found.empty_handed.any() else ""
    return {
        **symbols,
        "needs": needs,
        "alone": f"{whose}: what it would need without the others {alone}{none}.",
        **_explain_spare(found, place),
    }


def _explain_spare(found: Check, place: Place) -> dict[str, str]:
    if place == "terminal" and not found.could_give_less.any():
        return {}
    keep = (
        "keep its safety margin" if found.with_margin is not None else "reach its goal on average"
    )
    less = f"{capitalize_first(LESS)}: how many fewer samples it could give and still {keep}"
    return {"less": f"{less}. A single sample, or 1 % of its contribution, counts as rounding."}


def _pick(values: Vector) -> Callable[[int], float | None]:
    return lambda agent: keep_finite(values[agent])


_Samples = partial(Column, write=format_samples)
# A column of probabilities.
list_chance = partial(Column, write=format_short_probability)


def _has_target(found: Check) -> bool:
    """Return whether the need is for a target, a goal plus a safety margin."""
    return found.with_margin is not None or found.has_margins


def list_alone(found: Check) -> Vector:
    """Return what each would need alone, NaN of agents without samples of their own."""
    return np.where(found.empty_handed, np.nan, found.judged.alone)


def list_prospects(found: Check, prospects: Prospects) -> Records:
    """List what each gives, how sure it is of its goal, what it needs, and whom it envies."""
    game, given, judged = found.game, found.contributions, found.judged
    envied = dict(reversed(judged.envy))
    weights = -prospects.satisfied
    alone, alone_as = list_alone(found), name_alone(_has_target(found))

    def envies(agent: int) -> str | None:
        return shorten_name(game.name(envied[agent])) if agent in envied else None

    def cut(level: float, agent: int) -> float | None:
        return float(prospects.defection[level][agent]) if given[agent] else None

    terminal = choose_rows(weights)
    rest = game.size - len(terminal)
    return Records(
        "What each agent gives, and how likely it is to reach its goal",
        (
            *name_rows(
                game.name,
                terminal=(f"and {rest:,} more; all" if rest else "all",),
                page=("all",),
            ),
            *_list_goals(game),
            _Samples("gives", _pick(given), sums=(float(given.sum()),)),
            *_list_plan(found),
            list_chance("P(goal)", _pick(prospects.satisfied), sums=(prospects.everyone.value,)),
            *(
                list_chance(
                    f"P(goal)\nwith {format_part(level)}", partial(cut, level), where="terminal"
                )
                for level in prospects.defection
            ),
            _Samples(
                "needs" if found.has_margins else "needs on average",
                _pick(found.needed),
                short="needs",
            ),
            _Samples(
                alone_as,
                _pick(alone),
                sums=(keep_finite(alone.sum()),),
                short=alone_as.replace(" ", "\n"),
            ),
            _Samples(
                LESS,
                _pick(found.could_give_less),
                short=LESS.replace(" less", "\nless"),
                where=None if found.could_give_less.any() else "page",
            ),
            *([Column("envies", envies)] if envied else []),
        ),
        choose_rows(weights, most=ROWS, few=ROWS),
        terminal,
    )


def _list_goals(game: Game) -> Iterator[Column]:
    if is_measured(game):
        yield Column("goal", _pick(game.goals), write=format_accuracy, where="page")


def _list_plan(found: Check) -> Iterator[Column]:
    """Return the columns that compare the proposal with the plan."""
    if found.plan is None:
        return
    planned = found.plan.contributions
    more = found.contributions - planned
    yield _Samples("plan", _pick(planned), sums=(float(planned.sum()),))
    yield Column(
        "more than the plan",
        _pick(more),
        sums=(float(more.sum()),),
        short="± plan",
        write=format_difference,
    )
    yield list_chance(
        "P(goal), plan",
        _pick(found.plan.satisfied),
        sums=(found.plan.everyone.value,),
        where="page",
    )


# The three questions at the head of a page.


def ask_three(found: Check, prospects: Prospects) -> Table:
    """Return the three questions, with the plan's safety margin where there is a plan."""
    margin = " and keep the plan's safety margin" if found.with_margin is not None else ""
    rows = (
        ("Do all agents reach their goals?", _answer_goals(found, prospects), "sure"),
        (f"Could an agent give less{margin}?", _answer_less(found), "stable"),
        ("Does an agent envy another?", _answer_envy(found), "envy-free"),
    )
    answers = ((question, mark, _name_answer(found, name)) for question, mark, name in rows)
    return tabulate_questions(answers, "proposal")


def _name_answer(found: Check, name: str) -> str:
    """Return what the proposal is; of one that is not sure enough, only what was found."""
    high, low = "probability high enough", "probability too low"
    words = (high, low) if name == "sure" else (name, f"not {name}")
    answer = found.answers[name]
    if name != "sure" and found.answers["sure"] is Answer.FALSE:
        fault, good = {
            "stable": (found.could_give_less.any(), "no agent could give less"),
            "envy-free": (bool(found.judged.envy), "no agent envies another"),
        }[name]
        unsure = name == "envy-free" and bool(found.judged.borderline)
        return words[1] if fault else "too close to call" if unsure else good
    return "too close to call" if answer is Answer.BORDERLINE else words[answer is Answer.FALSE]


def _answer_goals(found: Check, prospects: Prospects) -> Mark:
    sure = found.answers["sure"] is Answer.TRUE
    value = format_beside(prospects.everyone.value, found.probability)
    asked = format_requested(found.probability)
    return Mark(f"with probability {value}; {asked} is required", "good" if sure else "bad")


def _answer_less(found: Check) -> Mark:
    spare = found.could_give_less
    if not spare.any():
        return _deny(found)
    order = np.argsort(-spare, kind="stable")[:3]
    said = ", ".join(
        f"{found.game.name(i)} by {format_samples(spare[i])}" for i in order.tolist() if spare[i]
    )
    return Mark(f"yes: {said}", "bad")


def _answer_envy(found: Check) -> Mark:
    from fedaccord.report.games_verdicts import describe_envy

    if found.judged.envy:
        return Mark(f"yes: {describe_envy(found.judged)}", "bad")
    return _deny(found) if not found.judged.borderline else Mark("too close to call", "unsure")


def _deny(found: Check) -> Mark:
    """Return a no, which is good news only if the proposal is sure enough."""
    if found.answers["sure"] is Answer.TRUE:
        return Mark("no", "good")
    return Mark("no, but the probability is too low", "plain")
