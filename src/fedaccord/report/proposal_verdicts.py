"""Whether a proposal holds, in a verdict with all that speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Answer, Check
from fedaccord.check.sentences import (
    describe_hurt,
    describe_required,
    list_carried,
    list_hurt,
    list_success,
    tells_envy,
)
from fedaccord.games.chances import Prospects
from fedaccord.planning.proposals import SMALL, Proposal
from fedaccord.planning.result import Outcome
from fedaccord.planning.sentences import describe_defection, warn_of_defection
from fedaccord.planning.what_if import Scenario
from fedaccord.report.games_chances import describe_chances, judge_tone
from fedaccord.report.games_verdicts import Sentence, judge_plan, tell_envy
from fedaccord.report.kept import list_kept_verdict
from fedaccord.report.model import Fold, Mark, Tone
from fedaccord.report.plan import list_doubts
from fedaccord.report.sharing import judge_shares
from fedaccord.sharing.result import CostShares
from fedaccord.sharing.result import list_verdict as list_promises
from fedaccord.wording import (
    capitalize_first,
    count,
    count_samples,
    format_amount,
    format_beside,
    format_enough,
    format_requested,
    format_samples,
    join_with_and,
    lower_first,
    pluralize,
)

# How many agents a sentence about a change names.
CHANGED = 4
# The most words of a headline.
WORDS = 25
# What is said where a number could be misread.
LOST = "This assumes that an agent loses the samples it withholds."
HOLDS = "An agent without a limit is assumed to hold as many samples as it would need alone."
INSTEAD = "The numbers shown are those of the optimal plan"
ALONE = "The numbers are what each agent would need alone, up to its limit."
SURPLUS = "In that plan no agent falls short, because some give more than they need."
UNKEPT = "If no agent keeps its data:"
LESS_SURE = (
    "The {} plan has the same safety margins as the stable plan, and is less sure.",
    "For a plan that holds, choose the stable plan.",
)


@dataclass(frozen=True)
class Verdict:
    """A verdict in sentences: the first says what was found and why, and caveats follow."""

    sentences: tuple[Sentence, ...]
    tone: Tone

    @classmethod
    def of(cls, said: Iterable[Sentence | str], tone: Tone) -> Verdict:
        """Return a verdict of sentences; empty texts are left out.

        said: the sentences; a text is one that cannot be shorter.
        tone: of the verdict.
        """
        whole = (Sentence(one) if isinstance(one, str) else one for one in said if one)
        return cls(tuple(whole), tone)

    def add(self, *said: str, tone: Tone | None = None) -> Verdict:
        """Return the verdict with further sentences, and perhaps another tone."""
        return Verdict.of((*self.sentences, *said), tone or self.tone)

    @property
    def text(self) -> str:
        """All sentences."""
        return " ".join(one.text for one in self.sentences)

    @property
    def tells_envy(self) -> bool:
        """Whether a sentence says who envies another."""
        return any(one.tells_envy for one in self.sentences)


def list_warnings(proposal: Proposal, found: Check) -> tuple[list[str], list[str]]:
    """Return the warnings and the doubts about the numbers that agents give, as on a plan's page.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    plan = proposal.plan
    if plan is None:
        return [], list(found.doubts)
    assumed = list(plan.assumed)
    given = plan.contributions
    if given is None:
        return assumed, list(found.doubts)
    if warn_of_defection(plan) and np.array_equal(found.contributions, given):
        assumed.append(describe_defection(plan))
    return assumed, list(list_doubts(plan))


def fold_verdict(verdict: Verdict, names: Sequence[str]) -> tuple[Mark, tuple[Fold, ...]]:
    """Return a headline of at most 25 words, and a fold with the rest; none where there is no rest.

    verdict: in sentences, of which the first matters most.
    names: of all agents. A name counts as one word.
    """
    if _count_words(verdict.text, names) <= WORDS:
        return Mark(verdict.text, verdict.tone), ()
    first, *rest = verdict.sentences
    head = first.text
    hidden: list[str] = []
    if _count_words(head, names) > WORDS or (rest and first.yields):
        short = [one for one in first.shorter if _count_words(one, names) <= WORDS]
        if short:
            head, hidden = short[-1], [head]
    while rest and _count_words(longer := f"{head} {rest[0].text}", names) <= WORDS:
        head = longer
        rest.pop(0)
    hidden += [one.text for one in rest]
    folds = (Fold("Details", (" ".join(hidden),)),) if hidden else ()
    return Mark(head, verdict.tone), folds


def _count_words(text: str, names: Sequence[str]) -> int:
    """Return how many words a text has, in which a name counts as one."""
    for name in sorted((name for name in names if " " in name), key=len, reverse=True):
        text = text.replace(name, "name")
    return len(text.split())


def name_kind(said: str, concept: str) -> str:
    """Return a sentence of a solver that says of which kind the plan is.

    said: the sentence, which knows of plans "of this kind".
    concept: stable, optimal or envy-free.
    """
    for plan in ("no plan", "a cheaper plan"):
        kind = f"{plan.split()[0]} {'cheaper ' * ('cheaper' in plan)}{concept} plan"
        said = said.replace(f"{plan} of this kind", kind)
    return said


def lacks_plan(proposal: Proposal, scenario: Scenario) -> bool:
    """Return whether there is no plan, and no numbers were put in its place."""
    return proposal.contributions is None and proposal.settled and not scenario.replaces


def judge_shown(proposal: Proposal, found: Check, scenario: Scenario, concept: str) -> Verdict:
    """Return the verdict that a screen and a page begin with.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's.
    concept: stable, optimal or envy-free.
    """
    if lacks_plan(proposal, scenario):
        return judge_no_plan(proposal, found, concept)
    lacking = proposal.contributions is None and proposal.settled
    # What the check compares with is the stable plan.
    other = concept != "stable" and found.prospects is not None and not scenario.replaces
    plan = "the stable plan" if other and not lacking else "the plan"
    plan = plan if found.kept is None else "the plan for agents that keep their data"
    verdict = judge_proposal(proposal, found, scenario, plan)
    warnings, doubts = list_warnings(proposal, found)
    known = proposal.settled or found.prospects is None
    if verdict.tone == "good" and (warnings or doubts or not known):
        # As on the page of a plan, all is well only where nothing is doubted.
        verdict = replace(verdict, tone="unsure" if doubts else "plain")
    if lacking:
        # The numbers were put in the place of other numbers, and not of a plan.
        tone: Tone = "bad" if verdict.tone == "bad" else "unsure"
        first, rest = verdict.sentences[0], verdict.sentences[1:]
        none = add_unkept(f"There is no {concept} plan.", found)
        return Verdict.of((none, first.reason or capitalize_first(first.text), *rest), tone)
    if other and "sure" in found.failing:
        return verdict.add(LESS_SURE[0].format(concept), LESS_SURE[1])
    envy = concept == "envy-free" and found.game.size > 1 and not verdict.tells_envy
    return verdict.add(tell_envy(found.judged)) if envy else verdict


def judge_payments(shares: CostShares, scenario: Scenario) -> Verdict:
    """Return the verdict on payments; it is not good if agents keep what they withhold.

    shares: who pays whom.
    scenario: who keeps its data.
    """
    return doubt_if_kept(Verdict.of(list_promises(shares), judge_shares(shares)), scenario)


def doubt_if_kept(verdict: Verdict, scenario: Scenario) -> Verdict:
    """Return a verdict that takes no account of kept samples; it is not good if agents keep some.

    verdict: of a plan in which agents lose what they withhold.
    scenario: who keeps its data.
    """
    return verdict.add(LOST, tone="unsure") if scenario.keep else verdict


def judge_proposal(
    proposal: Proposal, found: Check, scenario: Scenario, plan: str = "the plan"
) -> Verdict:
    """Return the verdict on a proposal; it is not good if some agents carry others.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's.
    plan: what the plan that the check compares with is called.
    """
    if kept := _judge_kept(proposal, found, scenario):
        return kept
    if found.prospects is None:
        said, tone = judge_plan(found)
        # As with pilots, no agent falls short where one could give less.
        tone = "unsure" if tone == "bad" and found.feasible is Answer.TRUE else tone
        return _add_caveats(Verdict((said,), tone), proposal, found, scenario)
    if found.feasible is Answer.TRUE and proposal.is_kept_plan(found.contributions):
        return _add_caveats(_judge_kept_plan(found, found.prospects), proposal, found, scenario)
    first, *rest = list_success(found, found.prospects, plan)
    sure: tuple[Sentence | str, ...] = (
        Sentence(first, tells_envy=tells_envy(found)),
        *rest,
        _name_hurt(found),
        *_describe_highest(proposal, found),
        describe_hurt(found, plan),
        *_describe_idle(proposal, found),
    )
    return _add_caveats(Verdict.of(sure, judge_tone(found)), proposal, found, scenario)


def _add_caveats(verdict: Verdict, proposal: Proposal, found: Check, scenario: Scenario) -> Verdict:
    carried: list[str] = []
    if verdict.tone == "good" or (found.carried and not found.failing):
        same = np.array_equal(found.contributions, proposal.start)
        carried = compare_with_free(proposal, proposal.start, where="" if same else " in the plan,")
        # What the plan would be without a lock tells more than a limit that was there at first.
        carried = carried or list_carried(found.game, found.carried)
    dearer = describe_better_alone(found)
    costs = proposal.find_costs_of_leaving(proposal.start) or {}
    more = sum(costs.values()) > SMALL * found.scale
    doubtful = verdict.tone in ("good", "plain") and (carried or more or dearer)
    return verdict.add(
        *carried,
        *describe_broken(proposal, scenario),
        *describe_locked(found),
        *describe_leaving(proposal, found),
        *_describe_alone(proposal),
        dearer,
        describe_certainty(proposal, found),
        *describe_keeping(proposal, found, scenario),
        tone="unsure" if doubtful else None,
    )


def describe_locked(found: Check) -> Iterator[str]:
    """Return which agents are locked at more than would be enough for them.

    found: what the check says of the numbers that agents give.
    """
    judged = found.judged
    more = judged.contributions - judged.needed > SMALL * found.scale
    agents = [agent for agent in found.locked if more[agent]]
    for agent in agents[:CHANGED]:
        given, enough = judged.contributions[agent], format_enough(judged.needed[agent])
        said = f"{found.game.name(agent)} is locked at {format_amount(given)}"
        yield f"{said}; {enough} would be enough."


def describe_leaving(proposal: Proposal, found: Check) -> Iterator[str]:
    """Return who left, and what that costs those that stay; nothing where none left.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    # Plan is compared with plan, whatever numbers were put in its place.
    changed, given = proposal.changed, proposal.start
    gone = changed.gone
    if not gone:
        return
    others = [count(len(gone) - CHANGED, "other")] if len(gone) > CHANGED else []
    yield f"{join_with_and([*gone[:CHANGED], *others])} left."
    costs = proposal.find_costs_of_leaving(given)
    if costs is None:
        return
    total, least = sum(costs.values()), SMALL * found.scale
    them = "it" if len(gone) == 1 else "them"
    stay = next(iter(costs)) + " gives" if len(costs) == 1 else "the others give"
    in_all = " in all" if len(costs) > 1 else ""
    without = f"Without {them}, {stay}"
    if not np.array_equal(found.contributions, given):
        without = f"In the plan without {them}, {stay}"
    if abs(total) <= least:
        yield f"{without} as much{in_all} as before."
        return
    yield f"{without} {_compare(total)}{in_all} than with {them}."
    alone = found.judged.alone
    for agent in np.flatnonzero((alone > 0) & (np.abs(given - alone) <= least)).tolist()[:CHANGED]:
        name = changed.names[agent]
        more = f", {_compare(costs[name])} than before" if len(costs) > 1 else ""
        yield f"{name} gives what it would need alone{more}."


def _describe_alone(proposal: Proposal) -> Iterator[str]:
    """Return what agents that left would need alone, and how much more than they gave that is."""
    gone = proposal.changed.gone[:CHANGED]
    whole = proposal.whole
    if whole is None or whole.game is None or whole.contributions is None:
        return
    for agent in (whole.changed.names.index(name) for name in gone if name in whole.changed.names):
        alone, limit = float(whole.game.alone[agent]), float(whole.game.limits[agent])
        if whole.plan is not None:
            # A plan asks for whole samples.
            alone = float(np.ceil(alone * (1 - 1e-9)))
        name, more = whole.changed.names[agent], alone - float(whole.contributions[agent])
        target = "requirement" if whole.plan is None else "target"
        if alone > limit:
            yield f"Alone, {name} falls short: it has a limit of {format_samples(limit)}."
        elif more > SMALL * alone:
            needs = f"Alone, {name} needs {count_samples(alone)} for the same {target}"
            yield f"{needs}, {_compare(more)} than with all."


def _compare(more: float) -> str:
    return f"{count_samples(abs(more))} {'more' if more > 0 else 'fewer'}"


def describe_better_alone(found: Check) -> str:
    """Return which agent gives the most more than it would need alone; nothing where none does.

    found: what the check says of the numbers that agents give.
    """
    better = found.judged.better_alone.tolist()
    # Who keeps samples has them in either case.
    better = [i for i in better if found.kept is None or found.kept[i] == 0]
    if not better:
        return ""
    name, given = found.game.name(better[0]), format_amount(found.contributions[better[0]])
    alone = format_amount(found.judged.alone[better[0]])
    too = f", and so would {count(len(better) - 1, 'other agent')}" if len(better) > 1 else ""
    needs = f"it gives {given}, and alone it would need {alone}"
    return f"{name} would be better off alone{too}: {needs}."


def describe_certainty(proposal: Proposal, found: Check) -> str:
    """Return how many samples more or fewer a plan takes than one for the usual probability.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    usual, given = proposal.usual, proposal.contributions
    if usual is None or usual.plan is None or usual.contributions is None or given is None:
        return ""
    # Other numbers than the plan's have no price of certainty.
    if not np.array_equal(found.contributions, given):
        return ""
    # A plan that is less sure than requested has no price to compare with.
    if usual.plan.outcome is not Outcome.PLANNED:
        return ""
    asked, more = usual.plan.options["probability"], float(given.sum() - usual.contributions.sum())
    if asked == found.probability or not more:
        return ""
    return f"This plan takes {_compare(more)} than the plan for probability {asked:g}."


def _judge_kept(proposal: Proposal, found: Check, scenario: Scenario) -> Verdict | None:
    """Return that a plan does not hold since agents keep their data; None where it is not so.

    That is said of the plan as it is. If numbers were put into it, the check counts what is kept.
    """
    kept = proposal.kept
    if kept is None or not kept.kept.worth[kept.defectors].any():
        return None
    if scenario.replaces or proposal.find_broken(scenario):
        return None
    sure = "every agent reaches its requirement" if found.feasible is Answer.TRUE else ""
    if found.prospects is not None:
        sure = describe_chances(found.prospects)
    gave = f"If all give what the plan asks, {sure}." if sure else ""
    said = (*list_kept_verdict(kept), gave, *describe_keeping(proposal, found, scenario))
    return Verdict.of(said, "bad")


def _describe_highest(proposal: Proposal, found: Check) -> Iterator[str]:
    """Return the required probability where only it is missed, and the highest that a plan has.

    Where a plan without the locks has it, they are named as the cause.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    required, plan = describe_required(found), proposal.plan
    is_plan = np.array_equal(found.contributions, proposal.start)
    if not required or plan is None or plan.highest_probability is None or not is_plan:
        yield required
        return
    hold = ""
    if proposal.free is not None and found.prospects is not None:
        sure = found.prospects.chances.everyone(proposal.free).mean() >= found.probability
        hold = f"with the {name_hold(proposal)}, " * bool(sure)
    asked = format_requested(found.probability)
    yield capitalize_first(f"{hold}no stable plan reaches the required {asked}.")
    yield f"The highest probability found is {plan.highest_probability:g}."


def _name_hurt(found: Check) -> str:
    """Return whose probability falls most against the plan, short enough for a headline."""
    names = [found.game.name(agent) for agent in list_hurt(found)]
    return f"The probability falls most for {join_with_and(names)}." if names else ""


def _describe_idle(proposal: Proposal, found: Check) -> Iterator[str]:
    """Return which agents that joined give nothing, and have enough from the others."""
    changed = proposal.changed
    first = len(changed.every) - len(changed.scenario.like)
    idle = (found.contributions == 0) & (found.judged.alone > 0) & (found.judged.short == 0)
    for place in np.flatnonzero(idle).tolist():
        if changed.numbers[place] >= first:
            yield f"{found.game.name(place)} gives nothing, and the others carry it."


def _judge_kept_plan(found: Check, prospects: Prospects) -> Verdict:
    """Return how sure the plan is that agents agree to if some of them keep data."""
    sure = format_beside(prospects.everyone.value, found.probability)
    fails = "sure" in found.failing
    sure += f" instead of {format_requested(found.probability)}" * fails
    said = (
        "This is the stable plan for agents that keep their data.",
        f"All agents reach their goals with probability {sure}.",
    )
    return Verdict.of(said, "unsure" if fails else judge_tone(found))


def describe_keeping(proposal: Proposal, found: Check, scenario: Scenario) -> Iterator[str]:
    """Return how the samples count that agents keep.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: who keeps its data.
    """
    if found.kept is None:
        yield LOST * bool(scenario.keep)
        return
    keepers = np.flatnonzero(found.kept > 0).tolist()
    said = [f"{found.game.name(i)} keeps {format_amount(found.kept[i])}" for i in keepers[:CHANGED]]
    if len(keepers) > CHANGED:
        said.append(f"{len(keepers) - CHANGED} others keep some too")
    if said:
        learns = "it learns" if len(keepers) == 1 else "they learn"
        yield f"This assumes that {join_with_and(said)}, and that {learns} from these samples."
        unlocked = proposal.changed.unlocked
        if np.isinf(found.game.limits if unlocked is None else unlocked)[keepers].any():
            yield HOLDS


def name_hold(proposal: Proposal, agents: Sequence[int] | None = None) -> str:
    """Return what holds agents to fewer samples than they would give: a lock, limits, or both.

    proposal: the plan.
    agents: their places; all that are locked, or have another limit, where left out.
    """
    changes, find = proposal.changed.scenario, proposal.changed.find
    locked, limited = {*find(changes.lock)}, {*find(changes.limit)} - {*find(changes.lock)}
    if agents is not None:
        locked, limited = locked & {*agents}, limited & {*agents}
    held = (("lock", len(locked)), ("limit", len(limited)))
    return join_with_and([pluralize(number, what) for what, number in held if number])


def compare_with_free(proposal: Proposal, given: Vector, where: str = "") -> list[str]:
    """Return which agents the others carry, and what it costs these; else nothing.

    proposal: the plan.
    given: what each agent gives.
    where: where they do.
    """
    carried = proposal.find_carried(given)
    if carried is None:
        return []
    names = [proposal.changed.names[i] for i in carried.agents]
    it, would = ("It gives", "it would") if len(names) == 1 else ("They give", "they would")
    fewer, more = format_amount(carried.fewer), format_amount(carried.more)
    return [
        f"But{where} the others carry {join_with_and(names)}.",
        f"{it} {fewer} fewer than {would} without the {name_hold(proposal, carried.agents)}, and "
        f"the others give {more} more.",
    ]


def describe_broken(proposal: Proposal, scenario: Scenario) -> Iterator[str]:
    """Return which agents give nothing, because they give only if another does.

    proposal: the plan.
    scenario: what agents give in place of the plan's, and on whom they depend.
    """
    changed = proposal.changed
    for place, other in proposal.find_broken(scenario).items():
        name = changed.every[other] if other < len(changed.every) else f"agent {other}"
        does = "gives less than the plan asks"
        if other not in changed.numbers:
            does = "does not take part"
        elif changed.numbers.index(other) in proposal.list_held():
            does = "gives less than it would without its lock or limit"
        yield f"{changed.names[place]} gives nothing, because {name} {does}."


def say_fault(error: object) -> Mark:
    """Return a fault as a sentence that stands out."""
    said = capitalize_first(str(error)).rstrip(".")
    return Mark(said if said.endswith("?") else f"{said}.", "bad")


def judge_no_plan(proposal: Proposal, found: Check, concept: str) -> Verdict:
    """Return that there is no plan of a kind, why, and what the numbers then are.

    proposal: without a plan.
    found: what the check says of the numbers that stand in its place.
    concept: stable, optimal or envy-free.
    """
    if proposal.plan is not None and proposal.instead is None:
        first, *rest = proposal.said
        return Verdict.of((add_unkept(first, found), *rest, ALONE), "bad")
    reason = [proposal.plan.reason] if proposal.plan is not None and proposal.plan.reason else []
    shown: list[str] = []
    if proposal.instead is not None:
        # Without a stable plan, the optimal one is not stable.
        shown = [f"{INSTEAD}."]
        if concept == "stable":
            shown = [f"{INSTEAD} instead.", SURPLUS]
        shown.append(describe_better_alone(found))
    none = add_unkept(f"There is no {concept} plan.", found)
    why = reason or [name_kind(said, concept) for said in proposal.said]
    return Verdict.of((none, *why, *shown), "bad")


def explain_numbers(proposal: Proposal) -> str:
    """Return what the numbers are that are shown where there is no plan."""
    return ALONE if proposal.instead is None else f"{INSTEAD}."


def add_unkept(said: str, found: Check) -> str:
    """Return what is said of a plan that takes no account of kept samples, and that it does not."""
    return said if found.kept is None or not said else f"{UNKEPT} {lower_first(said)}"
