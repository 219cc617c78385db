"""From an answer to what is shown of it: tables and sentences of the reports, and nothing new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from fedaccord.charts import Chart
from fedaccord.errors import FedaccordError
from fedaccord.explore.desk import Desk
from fedaccord.explore.state import State
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import has_chances
from fedaccord.report import proposal_members as members
from fedaccord.report import proposal_plans as plans
from fedaccord.report import proposal_verdicts as verdicts
from fedaccord.report import proposals
from fedaccord.report.html import parts_html
from fedaccord.report.kept import NEEDS
from fedaccord.report.model import Part
from fedaccord.report.plan_alternatives import explain_no_plan
from fedaccord.report.plan_contributions import describe_contributions, list_contributions
from fedaccord.report.proposal_offers import list_offers
from fedaccord.report.proposal_sides import compare_proposals, name_sides
from fedaccord.report.renaming import Renaming

Shown: TypeAlias = "Part | Chart"


def make_view(desk: Desk, answer: Proposal, state: State) -> proposals.View:
    """Return what the screen shows of a proposal.

    desk: checks it.
    answer: the plan.
    state: what the visitor has set.
    """
    try:
        found = desk.check(answer, state)
    except FedaccordError as error:
        if not answer.settled:
            return proposals.WAITING
        fault = answer.said or (verdicts.say_fault(error).text,)
        said = verdicts.Verdict.of(fault, "bad")
        verdict, folds = verdicts.fold_verdict(said, answer.changed.every)
        lacks, offers = explain_no_plan(answer.plan, "page"), list_offers(answer, None, state)
        return proposals.View(verdict, "", (), tuple(lacks), folds, tuple(offers))
    moved = state.problem != State() and state.concept == "stable"
    opened, paid = desk.known(State()) if moved else None, desk.find_payments(answer, state)
    return proposals.show_proposal(
        answer, found, state, concept=state.concept, opened=opened, shares=paid
    )


def show_plans(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the optimal, the stable and the envy-free plan side by side, with proofs."""
    found, answer = desk.solve_each(state), desk.answer(state)
    if answer.contributions is None:
        yield verdicts.say_fault(verdicts.name_kind(" ".join(answer.said), state.concept))
    if has_chances(desk.change(state.problem).basis):
        yield plans.MARGINS
    if answer.kept is not None:
        yield NEEDS
    yield from plans.explain_plans(found)
    plan = desk.plan(state.stable) if isinstance(desk.subject.basis, Measurement) else None
    if plan is not None and plan.contributions is not None:
        yield list_contributions(plan).table("page")
        yield from describe_contributions(plan, "page")


def show_choice(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the stable plans to choose from."""
    yield from plans.explain_choice(desk.plan(state.stable))


def show_certainty(desk: Desk, state: State) -> Iterator[Shown]:
    """Return what each probability costs, with the proposal among them."""
    found = desk.check(desk.answer(state), state)
    yield from plans.explain_certainty(desk.plan(state.stable), found)


def show_members(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who could give less together, and what agents do that keep their data."""
    answer = desk.answer(state)
    found = desk.check(answer, state)
    yield from members.warn_of_carried(answer, state)
    yield from members.judge_conditions(answer, found, state)
    yield from members.judge_groups(answer, found, state)
    yield from members.explain_kept(answer, found, state)


def show_payments(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who pays whom for the cheapest plan."""
    answer, shares = desk.answer(state), desk.share(state.problem)
    yield from [plans.LOST] * bool(state.keep)
    told = state.plan == "payments"
    yield from plans.explain_payments(shares, answer, answer.put(state), told=told)


def show_coalitions(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who should federate with whom."""
    found, game = desk.find_coalitions(state), desk.need_game(state)
    yield from members.explain_coalitions(found, game, desk.answer(state), state)


def show_both(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the proposal next to the one that was kept."""
    if not state.other:
        yield "Press the scales at the top to keep a state; then change something."
        return
    sides, found = {"now": state, "kept": State.read(state.other)}, {}
    if sides["kept"] == state.put(other="", view="agents"):
        yield "This state is kept to compare with. Now change something."
    names = name_sides(sides["now"], sides["kept"], desk.change(state.problem).every)
    for (when, one), name in zip(sides.items(), names, strict=True):
        found[f"{when}: {name}"] = (now := desk.answer(one)), desk.check(now, one), one, one.concept
    yield from compare_proposals(found)


VIEWS: Mapping[str, Callable[[Desk, State], Iterable[Shown]]] = {
    "plans": show_plans,
    "choice": show_choice,
    "certainty": show_certainty,
    "members": show_members,
    "payments": show_payments,
    "coalitions": show_coalitions,
    "compare": show_both,
}


def draw(parts: Iterable[Shown], renaming: Renaming) -> str:
    """Return parts as HTML, in the user's words; charts are drawn elsewhere."""
    return parts_html([renaming.part(part) for part in parts if not isinstance(part, Chart)])
