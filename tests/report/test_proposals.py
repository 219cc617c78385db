"""Proposals side by side, the numbers that matter, and charts for a page that changes."""

import dataclasses
import json

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord import LinearGame, check, fit_curves, make_plan, share_costs
from fedaccord.charts import Chart, Line
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_all
from fedaccord.explore.state import State
from fedaccord.planning.probabilities import Estimate
from fedaccord.planning.proposals import keep_data, propose, propose_planned
from fedaccord.planning.what_if import Changed, Scenario, apply_scenario
from fedaccord.report.games_verdicts import Sentence, describe_proofs
from fedaccord.report.html import parts_html
from fedaccord.report.kept import list_kept_plan
from fedaccord.report.live import chart_options, draw_figures, tradeoff_options
from fedaccord.report.model import Mark, Table
from fedaccord.report.plan import list_doubts
from fedaccord.report.plan_contributions import list_contributions
from fedaccord.report.proposal_changes import describe_changes
from fedaccord.report.proposal_members import (
    judge_groups,
    offer_conditions,
    offer_levels,
    warn_of_carried,
)
from fedaccord.report.proposal_plans import explain_plans
from fedaccord.report.proposal_sides import compare_proposals, name_sides
from fedaccord.report.proposal_verdicts import (
    Verdict,
    describe_broken,
    fold_verdict,
    judge_payments,
    judge_proposal,
    judge_shown,
    list_warnings,
)
from fedaccord.report.proposals import (
    WAITING,
    describe_moves,
    fold_doubts,
    list_figures,
    proposal_page,
    show_agents,
    show_proposal,
)

BENEFITS = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
GAME = LinearGame(BENEFITS, [1440, 1440, 930], agents=["University", "City", "Rural"])


def read(shown):
    """Return a verdict of a view or a page with the rest of it, which is folded."""
    if isinstance(shown, Mark | Verdict):
        return shown.text
    folds = [*getattr(shown, "folds", ()), *getattr(shown, "head", ())]
    text = getattr(shown.verdict, "text", shown.verdict)
    assert len(text.split()) <= 25
    rest = [part.parts[0] for part in folds if getattr(part, "summary", "") == "Details"]
    return " ".join([text, *rest])


@pytest.fixture(scope="module")
def sides():
    found = {}
    for name, game, numbers in (
        ("all", GAME, (0, 1, 2)),
        ("without City", GAME.without(1), (0, 2)),
    ):
        proposal = propose(Changed(game, numbers), game, "stable", time_limit=60)
        found[name] = proposal, proposal.check(proposal.start, 0.95), Scenario()
    return found


def test_the_numbers_that_matter(sides):
    proposal, found, _ = sides["all"]
    figures = dict(list_figures(found, proposal))
    # 2,100 of 3,810 cases, and 2,100 / 1,931.25 times the least cost.
    assert figures == {
        "samples in all": "2,100",
        "alone, in all": "3,810",
        "saved": "45 %",
        "times the optimal cost": "1.09",
        "agents that envy another": "none",
    }


def test_a_proposal_with_other_margins_is_not_compared_with_the_optimal_cost(sides):
    proposal, found, _ = sides["all"]
    dearer = dataclasses.replace(proposal, optimal=np.full(3, 800.0))
    assert not any("optimal" in name for name in dict(list_figures(found, dearer)))


def test_a_plan_is_not_compared_with_an_optimal_plan_that_is_less_sure():
    measured = fit_curves(pilots(), resamples=40)
    # The optimal plan is as sure with the usual costs, and not where the samples of one are dear.
    for cost, compared in ((1.0, True), (30.0, False)):
        changed = apply_scenario(measured, Scenario(cost=((0, cost),)))
        proposal = propose_planned(changed, make_plan(changed.basis), time_limit=20)
        found = proposal.check(proposal.start, 0.95)
        least = proposal.check(np.ceil(proposal.optimal), 0.95)
        assert (least.everyone.value > found.everyone.value - 0.001) is compared
        named = any("optimal" in name for name in dict(list_figures(found, proposal)))
        assert named is compared


def test_what_fails_saves_nothing(sides):
    proposal, _, _ = sides["all"]
    found = proposal.check(proposal.put(Scenario(give=((0, 200.0),))), 0.95)
    assert dict(list_figures(found, proposal)) == {
        "samples in all": "2,000",
        "agents that envy another": "none",
    }


def test_who_could_not_go_alone_is_named_as_in_a_plan():
    # University may give 1,300, and would need 1,440 alone.
    game = GAME.replace(limits=[1300, np.inf, np.inf])
    proposal = propose(Changed(game, (0, 1, 2)), game, "stable", time_limit=60)
    found = proposal.check(proposal.start, 0.95)
    figures = dict(list_figures(found, proposal))
    assert figures["alone, in all (an agent has too few)"] == "3,810"
    assert f"the agents give {figures['saved']} fewer" in make_plan(game).verdict
    # A sum with a part that is missing is missing too.
    none = GAME.replace(limits=[0, np.inf, np.inf])
    empty = propose(Changed(none, (0, 1, 2)), none, "stable", time_limit=60)
    figures = dict(list_figures(empty.check(empty.start, 0.95), empty))
    assert figures["alone, in all (an agent cannot go alone)"] == "-" and "saved" not in figures
    assert "Alone it would need 1,440, more than its limit of 1,300" in found.explain(0)


def test_no_probability_that_rests_on_pilots_is_certain(monkeypatch):
    measured = fit_curves(pilots(), resamples=40)
    plan = make_plan(measured)
    proposal = propose_planned(Changed(measured, (0, 1, 2, 3)), plan, time_limit=60)
    found = proposal.check(proposal.start, 0.95)
    monkeypatch.setattr(type(found.prospects), "everyone", Estimate(1.0, 0.51, 1.0))
    figures = dict(list_figures(found, proposal))
    assert figures["P(all reach their goals)"] == "> 0.99"
    assert figures["its 95 % interval"] == "0.51 to > 0.99"


def test_a_proof_is_named_only_where_there_is_one():
    solved = solve_all(GAME)
    for concept, said in zip(solved.solutions, describe_proofs(solved), strict=True):
        kind = "plan" if concept == "optimal" else f"{concept} plan"
        assert said.startswith(f"{concept}: exact arithmetic confirms that no {kind} has a smaller")
    claimed = {
        ("prices",): "prices prove, up to rounding, that no stable plan has a smaller total. The",
        (): "the bounds of the method best-response prove, up to rounding, that no stable plan",
    }
    for kept, proof in claimed.items():
        assert proof in prove_stable(solved, certificate=dict.fromkeys(kept))
    limit = prove_stable(solved, status=Status.LIMIT)
    assert "not proved: a cheaper plan of this kind may exist" in limit
    assert "confirms" not in limit and "The check finds that no agent could give less." in limit


def test_a_check_that_refutes_a_plan_finds_nothing_for_it():
    solved = solve_all(GAME)
    short = {**solved.checks, "stable": check(GAME, [300, 1200, 500])}
    said = list(describe_proofs(dataclasses.replace(solved, checks=short)))
    assert ["The check finds" in one for one in said] == [True, False, True]


def prove_stable(solved, **changes):
    """Return what is said to prove the stable plan if its solution were another."""
    altered = dataclasses.replace(solved.solutions["stable"], method="best-response", **changes)
    solutions = {**solved.solutions, "stable": altered}
    return list(describe_proofs(dataclasses.replace(solved, solutions=solutions)))[1]


def test_a_verdict_with_a_locked_free_rider_is_not_good():
    game = LinearGame([[1, 1.2], [1.2, 1]], [100, 100], agents=["A", "B"])
    changed = apply_scenario(game, Scenario(lock=((0, 0.0),)))
    proposal = propose(changed, changed.basis, "stable", time_limit=60)
    carries = dataclasses.replace(proposal, free=np.array([100.0, 0.0]))
    found = proposal.check(proposal.start, 0.95)
    assert judge_proposal(proposal, found, Scenario()).tone == "good"
    verdict = judge_proposal(carries, found, Scenario())
    assert verdict.tone == "unsure"
    said = "But the others carry A. It gives 100 fewer than it would without the lock, and the"
    assert f"{said} others give 100 more." in verdict.text
    (said_of_b,) = describe_broken(carries, Scenario(only=((1, 0.0),)))
    why = "because A gives less than it would without its lock or limit."
    assert said_of_b == f"B gives nothing, {why}"
    page = proposal_page(carries, found, Scenario(), None)
    assert page.tone == "unsure" and said in read(page)


def test_a_verdict_says_once_that_others_carry_an_agent():
    table = pilots(limit=np.array([3_000.0, 3_000.0, 100.0, 3_000.0]))
    measured = fit_curves(table, resamples=40)
    plan = make_plan(measured)
    changed = apply_scenario(measured, Scenario())
    proposal = propose_planned(changed, plan, time_limit=20)
    found = proposal.check(proposal.start, 0.95)
    assert found.carried == [2]
    for verdict in (
        judge_proposal(proposal, found, Scenario()),
        proposal_page(proposal, found, Scenario(), None),
    ):
        text = read(verdict)
        assert text.count("so the others give more.") == 1 and "Rural has a limit of 100" in text
    # What changes against the plan without a lock is said in its place.
    held = dataclasses.replace(changed, scenario=Scenario(limit=((2, 100.0),)))
    free = proposal.start + np.array([0.0, -200.0, 300.0, 0.0])
    carries = dataclasses.replace(proposal, changed=held, free=free)
    for text in (
        judge_proposal(carries, found, Scenario()).text,
        read(proposal_page(carries, found, Scenario(), None)),
    ):
        assert text.count("carry") == 1 and "But the others carry Rural. It gives 300 fewer" in text
    assert judge_proposal(carries, found, Scenario()).tone == "unsure"


def test_a_verdict_says_why_an_agent_gives_nothing(sides):
    changed = apply_scenario(GAME, Scenario())
    proposal = propose(changed, GAME, "stable", time_limit=60)
    scenario = Scenario(cut=((2, 0.0),), only=((1, 2.0),))
    verdict = judge_proposal(proposal, proposal.check(proposal.put(scenario), 0.95), scenario)
    # By hand: City lacks 1,440 - 0.6 * 300, University 1,440 - 300 and Rural 930 - 0.7 * 300.
    assert "City falls 1,260 samples short" in verdict.text and verdict.tone == "bad"
    assert "City gives nothing, because Rural gives less than the plan asks." in verdict.text
    gone = apply_scenario(GAME, Scenario(left=(2,)))
    without = propose(gone, gone.basis, "stable", time_limit=60)
    (said,) = describe_broken(without, Scenario(only=((1, 2.0),)))
    assert said == "City gives nothing, because Rural does not take part."


@pytest.mark.parametrize(("concept", "keeper"), [("stable", 2), ("optimal", 0)])
def test_a_verdict_counts_that_an_agent_keeps_its_data(concept, keeper):
    changed = apply_scenario(GAME, Scenario())
    proposal = propose(changed, GAME, concept, time_limit=60)
    plan, scenario = make_plan(GAME), Scenario(keep=((keeper, 1.0),))
    kept = keep_data(proposal, plan, scenario.keep, time_limit=60)
    found = kept.check(kept.put(scenario), 0.95)
    less = f"{GAME.name(keeper)} would give 0 instead of {int(proposal.start[keeper]):,}."
    said = f"The plan does not hold if agents keep what they withhold: {less}"
    verdict = judge_proposal(kept, found, scenario)
    page = proposal_page(kept, found, scenario, None)
    for text, tone in ((verdict.text, verdict.tone), (page.verdict, page.tone)):
        assert said in text and tone == "bad" and "Members" not in text
    assert page.sections[-1].heading == "If agents keep what they withhold"
    # One thing is said: not also that the plan holds.
    counted = kept.check(kept.put(scenario), 0.95, scenario.keep)
    alone = judge_proposal(kept, counted, scenario)
    assert alone.text.startswith(said) and "The plan holds" not in alone.text
    assert f"This assumes that {GAME.name(keeper)} keeps" in alone.text
    # Nothing that is kept is worth anything: the plan holds as before.
    useless = keep_data(proposal, plan, ((keeper, 0.0),), time_limit=60)
    same = proposal.check(proposal.start, 0.95)
    assert "does not hold if" not in judge_proposal(useless, same, scenario).text
    # Without a plan for agents that keep data, and with payments, it is said what is assumed.
    lost = "This assumes that an agent loses the samples it withholds."
    assert lost in judge_proposal(proposal, found, scenario).text
    paid = judge_payments(share_costs(GAME), scenario)
    assert lost in paid.text and paid.tone == "unsure"


def test_a_page_with_payments_keeps_all_of_their_verdict():
    changed = apply_scenario(GAME, Scenario())
    proposal, shares = propose(changed, GAME, "optimal", time_limit=60), share_costs(GAME)
    scenario = Scenario(keep=((1, 1.0),))
    found = proposal.check(proposal.start, 0.95, scenario.keep)
    page = proposal_page(proposal, found, scenario, shares, concept="optimal")
    wanted = judge_payments(shares, scenario)
    assert page.tone == wanted.tone
    assert all(one in read(page) for one in wanted.text.rstrip(".").split(". "))


def test_a_cut_by_an_agent_that_keeps_its_data_leaves_only_the_others_short():
    changed = apply_scenario(GAME, Scenario())
    proposal = propose(changed, GAME, "stable", time_limit=60)
    scenario = Scenario(cut=((1, 0.25),), keep=((1, 1.0),))
    kept = keep_data(proposal, make_plan(GAME), scenario.keep, time_limit=60)
    found = kept.check(kept.put(scenario), 0.95, scenario.keep)
    short = "University falls 540 samples short of what it needs and Rural by 90, while City could"
    counts = "This assumes that City keeps 1,140, and that it learns from these samples."
    page = proposal_page(kept, found, scenario, None)
    for text in (judge_proposal(kept, found, scenario).text, read(page)):
        assert short in text and counts in text and "loses" not in text
    assert "With what it keeps and what the others give, it has enough" in found.explain("City")


def test_groups_are_not_well_if_an_agent_keeps_its_data():
    changed = apply_scenario(GAME, Scenario())
    proposal = propose(changed, GAME, "stable", time_limit=60)
    for keep, tone, head in (((), "good", "No group"), (((1, 1.0),), "plain", "If no agent keeps")):
        found = proposal.check(proposal.start, 0.95, keep)
        (verdict,) = judge_groups(proposal, found, Scenario(keep=keep))
        assert verdict.tone == tone and verdict.text.startswith(head)
    assert not list(judge_groups(proposal, found, Scenario(cut=((0, 0.5),))))


def test_a_page_says_who_gives_only_if_another_does(sides):
    changed = apply_scenario(GAME, Scenario())
    proposal = propose(changed, GAME, "stable", time_limit=60)
    scenario = Scenario(only=((1, 2.0),))
    found = proposal.check(proposal.put(scenario), 0.95)
    condition, follows = proposal_page(proposal, found, scenario, None).sections[-1].parts
    assert condition == "City gives only if Rural gives."
    assert follows.tone == "bad" and follows.text.startswith("If Rural gave nothing: ")
    assert "City falls 1,260 samples short" in follows.text


def leave(*agents):
    """Return the verdict and the check after agents left."""
    whole = propose(apply_scenario(GAME, Scenario()), GAME, "stable", time_limit=60)
    changed = apply_scenario(GAME, Scenario(left=agents))
    found = propose(changed, changed.basis, "stable", time_limit=60)
    proposal = dataclasses.replace(found, whole=whole)
    checked = proposal.check(proposal.start, 0.95)
    page = proposal_page(proposal, checked, changed.scenario, None)
    mark = judge_proposal(proposal, checked, changed.scenario)
    assert page.tone == mark.tone
    assert all(one in read(page) for one in mark.text.rstrip(".").split(". "))
    return mark, parts_html(list(show_agents(checked)))


def test_a_verdict_says_who_left_and_what_it_costs():
    # University gives 1,440 instead of 300, all that it needs, and Rural nothing instead of 600.
    verdict, _ = leave(1)
    text = verdict.text
    assert "City left. Without it, the others give 540 samples more in all than with it." in text
    alone = "University gives what it would need alone, 1,140 samples more than before."
    assert alone in verdict.text
    # City needs 1,440 of its own, and gave 1,200 with all.
    needs = "Alone, City needs 1,440 samples for the same requirement, 240 samples more than with"
    assert needs in text
    assert verdict.tone == "unsure"
    verdict, agents = leave(1, 2)
    text = verdict.text
    assert "City and Rural left. Without them, University gives 1,140 samples more than" in text
    assert verdict.tone == "unsure" and "env" not in verdict.text + agents


def test_without_a_plan_the_verdict_does_not_contradict_itself():
    scenario = Scenario(lock=((1, 200.0),))
    changed = apply_scenario(GAME, scenario)
    free = propose(apply_scenario(GAME, Scenario()), GAME, "stable", time_limit=60)
    proposal = propose(changed, changed.basis, "stable", time_limit=60)
    plan = make_plan(changed.basis)
    proposal = dataclasses.replace(proposal, plan=plan, free=free.contributions)
    found = proposal.check(proposal.start, 0.95)
    view = show_proposal(proposal, found, scenario, concept="stable")
    better = (
        "University would be better off alone: it gives 2,066.7, and alone it would need 1,440."
    )
    assert "optimal plan instead. In that plan no agent falls short" in read(view)
    assert better in read(view) and view.verdict.tone == "bad"
    # The page opens with the same verdict.
    page = proposal_page(proposal, found, scenario, None)
    assert (page.verdict, page.tone) == (view.verdict.text, view.verdict.tone)
    assert not list(warn_of_carried(proposal, scenario))
    # Who keeps its data is not short.
    keeps = dataclasses.replace(scenario, keep=((1, 1.0),))
    found = proposal.check(proposal.start, 0.95, keeps.keep)
    kept = show_proposal(proposal, found, keeps, concept="stable").verdict.text
    assert kept.startswith("If no agent keeps its data: there is no stable plan.")
    cut = dataclasses.replace(keeps, cut=((1, 0.25),))
    found = proposal.check(proposal.put(cut), 0.95, keeps.keep)
    view = show_proposal(proposal, found, cut, concept="stable")
    assert view.note.startswith("If no agent keeps its data: ")
    assert "City falls" not in view.verdict.text and "loses" not in view.verdict.text


def test_a_verdict_says_what_more_certainty_takes():
    measured = fit_curves(pilots(), resamples=40)
    changed = apply_scenario(measured, Scenario())
    usual, sure = (
        propose_planned(changed, make_plan(measured, probability=p), time_limit=20)
        for p in (0.95, 0.98)
    )
    more = int(sure.start.sum() - usual.start.sum())
    proposal = dataclasses.replace(sure, usual=usual)
    verdict = judge_proposal(proposal, proposal.check(proposal.start, 0.98), Scenario())
    said = f"This plan takes {more:,} samples more than the plan for probability 0.95."
    assert more > 0 and said in verdict.text
    # Other numbers than the plan's have no such price.
    moved = judge_proposal(proposal, proposal.check(proposal.start + 9, 0.98), Scenario())
    assert "takes" not in moved.text
    same = judge_proposal(
        dataclasses.replace(usual, usual=usual), usual.check(usual.start, 0.95), Scenario()
    )
    assert "takes" not in same.text


def lock(agent, number, game=GAME):
    """Return the proposal with an agent locked at a number, its check and its scenario."""
    scenario = Scenario(lock=((agent, float(number)),))
    changed = apply_scenario(game, scenario)
    proposal = propose(changed, changed.basis, "stable", time_limit=60)
    return proposal, proposal.check(proposal.start, 0.95), scenario


def test_a_lock_on_more_than_enough_is_told():
    # Of University's 1,440, City's 1,000 and Rural's less than 930 are the rest.
    proposal, found, scenario = lock(0, 1_000)
    needed = found.judged.needed[0]
    assert 0 < needed < 900
    said = f"University is locked at 1,000; {np.ceil(10 * needed) / 10:.1f} would be enough."
    assert said in judge_proposal(proposal, found, scenario).text
    assert "But it is locked at 1,000" in found.explain(0) and "take part" not in found.explain(0)
    figures = dict(list_figures(found, proposal))
    # It has more than the lock, and nobody holds too few.
    assert figures["alone, in all"] == "3,810" and "saved" in figures
    assert figures["times the optimal cost with the lock"] == "1.00"
    # A lock on what it gives anyway, or on less, is not too much.
    for number in (300, 200):
        assert "is locked at" not in judge_proposal(*lock(0, number)).text


def test_where_samples_cost_more_for_some_the_cost_is_compared():
    game = GAME.replace(costs=[1.0, 3.0, 1.0])
    changed = apply_scenario(game, Scenario())
    proposal = propose(changed, game, "stable", time_limit=60)
    figures = dict(list_figures(proposal.check(proposal.start, 0.95), proposal))
    # 300 + 3 * 1,200 + 600 = 4,500 instead of 1,440 + 3 * 1,440 + 930 = 6,690.
    assert figures["saved of the cost"] == "33 %" and "saved" not in figures
    proofs = " ".join(describe_proofs(solve_all(game)))
    assert "has a smaller total cost." in proofs and "smaller total." not in proofs


def test_what_an_agent_can_do_is_offered():
    assert next(iter(offer_levels(0.1).values())) == "gives its contribution"
    assert offer_levels(0.1)[0.1] == "gives 10 %" and offer_levels(1.0)[0.0] == "gives nothing"
    assert offer_conditions(1, "ABC") == {
        -1.0: "in any case",
        0.0: "only if A gives",
        2.0: "only if C gives",
    }


def test_two_proposals_side_by_side(sides):
    parts = list(compare_proposals({name: (*side, "stable") for name, side in sides.items()}))
    assert [part.text.partition(".")[0] for part in parts if isinstance(part, Mark)] == [
        "All",
        "Without City",
    ]
    given = next(part for part in parts if isinstance(part, Table))
    rows = {row[0]: row[1:] for row in given.rows}
    assert rows["City"] == (pytest.approx(1200), None, None)
    # University gives 300 in one and 1,440 in the other.
    assert rows["University"][2] == pytest.approx(300 - 1440)
    # Alone with Rural, University gives all that it needs, and Rural nothing.
    assert rows["University"][1] == pytest.approx(1440)


def test_a_page_says_what_was_changed(sides):
    scenario = State.read(
        "lock=1:500&goal=0:1200&limit=2:1e999&keep=0:0.5&cut=1:0.25&left=2&like=0"
    )
    proposal = propose(apply_scenario(GAME, scenario), GAME, "stable", time_limit=60)
    said = describe_changes(proposal, scenario.put(only=((0, 1.0),), probability=0.99))
    assert said == (
        "Changed: City is locked at 500; Rural has no limit; the requirement of University is "
        "1,200; City gives 25 % of its contribution; University keeps its data (worth 0.5 of "
        "shared data); Rural left; University 2 joined; University gives only if City gives; the "
        "requested probability is 0.99."
    )
    plain = propose(apply_scenario(GAME, Scenario()), GAME, "stable", time_limit=60)
    assert describe_changes(plain, Scenario()) == ""
    scenario = Scenario(give=((0, 325.0),))
    found = plain.check(plain.put(scenario), 0.95)
    assert "Changed: University gives 325." in proposal_page(plain, found, scenario, None).head


def test_sides_have_the_names_of_what_differs():
    for now, kept, names in (
        ("", "plan=optimal", ("as opened", "optimal plan")),
        ("lock=1:500", "lock=1:500&probability=0.99", ("stable plan", "0.99")),
        ("lock=1:500", "probability=0.99", ("City locked at 500", "0.99")),
        ("plan=2", "plan=payments", ("stable plan 2", "optimal plan with payments")),
        (
            "cut=0:0.25&left=2",
            "like=0",
            ("University gives 25 %, Rural left", "one like University"),
        ),
        ("plan=envy-free&give=0:9", "give=0:9", ("envy-free plan", "stable plan")),
    ):
        sides = State.read(now), State.read(kept)
        assert name_sides(*sides, GAME.agents) == names


def test_a_quantity_has_one_row_and_agents_have_probabilities():
    measured = fit_curves(pilots(), resamples=40)
    sides = {}
    for name, scenario in (("a", Scenario()), ("b", Scenario(limit=((0, 300.0),)))):
        changed = apply_scenario(measured, scenario)
        proposal = propose_planned(changed, make_plan(changed.basis), time_limit=20)
        sides[name] = proposal, proposal.check(proposal.start, 0.95), scenario, "stable"
    _, chances, short = (part for part in compare_proposals(sides) if isinstance(part, Table))
    assert chances.caption == "P(goal) of each agent" and len(chances.rows) == 4
    rows = {row[0]: row[1:] for row in short.rows}
    assert None not in (*rows["alone"], *rows["times the optimal cost"])


def test_what_solvers_leave_over_is_no_difference(sides):
    proposal, found, scenario = sides["all"]
    given = found.contributions * (1 + 1e-14)
    other = (proposal, proposal.check(given, 0.95), scenario, "stable")
    parts = compare_proposals({"one": (*sides["all"], "stable"), "other": other})
    rows = next(part for part in parts if isinstance(part, Table)).rows
    assert [str(row[-1]) for row in rows] == ["0.0"] * 3


def test_agents_have_a_sentence_each(sides):
    html = parts_html(list(show_agents(sides["all"][1])))
    assert html.count("<li>") == 3 and "No agent envies another." in html


def test_a_page_has_payments_where_there_are_any(sides):
    page = proposal_page(*sides["all"], share_costs(GAME), command="x")
    # As on the screen, the verdict is about the payments.
    assert page.title.startswith("Who pays whom") and "hold" in page.verdict
    assert [section.heading for section in page.sections][-1].startswith("How much each")
    alone = proposal_page(*sides["all"], None, command="x")
    assert "Who pays whom" not in " ".join(section.heading for section in alone.sections)


def test_parts_are_escaped():
    html = parts_html([Mark("<script>", "bad"), Table("<b>", ("&",), (("<i>",),)), "<img>"])
    assert "<script>" not in html and "<b>" not in html and "<i>" not in html
    assert "&lt;img&gt;" in html and "&lt;i&gt;" in html
    assert "<b>" not in draw_figures([("<b>", "<i>")]).replace("<div><b>", "")


def test_charts_are_plain_values():
    line = Line("a", (1.0, 2.0), (0.5, 0.6), low=(0.4, 0.5), high=(0.6, 0.7))
    chart = Chart("n", "t", "agents", "y", "alt", (line, Line("b", (1.5,), (0.5,))), percent=True)
    options = json.loads(json.dumps(chart_options(chart, str.upper, dark=True)))
    kinds = [one["type"] for one in options["series"]]
    # A line with two intervals, and a single point.
    assert kinds == ["line", "line", "line", "scatter"]
    assert options["xAxis"]["name"] == "AGENTS" and options["yAxis"]["max"] == 1


def test_intervals_of_several_lines_do_not_cover_each_other():
    ends = {"low": (0.1, 0.2), "high": (0.9, 0.8)}
    one, two = (Line(name, (0.0, 100.0), (0.5, 0.5), **ends) for name in ("A", "<b>"))
    detail = Line("A, worst off", (0.0, 100.0), (0.4, 0.4), of="A")
    long = "runs in which the defector reaches its goal, with 95 % intervals"
    chart = Chart("c", "Shares", "gives", long, "", (one, detail, two))
    options = chart_options(chart, dark=False)
    lines = {line["name"]: line for line in options["series"] if "name" in line}
    places = {name: [p["value"][0] for p in line["data"]] for name, line in lines.items()}
    assert places["A"] == places["A, worst off"] and places["A"][0] < 0 < places["<b>"][0]
    bars = [line["data"][0][0] for line in options["series"] if "name" not in line]
    assert bars == [*places["A"], *places["<b>"]]
    assert lines["A"]["color"] == lines["A, worst off"]["color"] != lines["<b>"]["color"]
    # What was moved says where it belongs, and runs no name.
    assert lines["<b>"]["data"][1]["tooltip"]["formatter"] == "&lt;b&gt;: 0.5 at 100"
    assert options["xAxis"]["min"] < places["A"][0] and options["xAxis"]["max"] > 100
    # The name of an axis has lines that fit a phone.
    assert max(map(len, options["yAxis"]["name"].split("\n"))) <= 44
    assert chart_options(Chart("c", "", "x", "y", "", (one,)), dark=True)["series"][0]["data"] == [
        [0, 0.5],
        [100, 0.5],
    ]


def test_the_chosen_equilibrium_stands_out():
    plan = make_plan(LinearGame([[1, 1.2], [1.2, 1]], [100, 100]))
    for chosen in (None, 1):
        data = tradeoff_options(plan, chosen, dark=False)["series"][0]["data"]
        stands_out = [one["itemStyle"]["borderWidth"] > 0 for one in data]
        wanted = [one.chosen if chosen is None else n == 1 for n, one in enumerate(plan.tradeoffs)]
        assert stands_out == wanted
        assert np.isfinite([one["value"] for one in data]).all()


def test_plans_that_would_cover_each_other_stand_side_by_side():
    # A or B gives all for both: the same total, and the same own part.
    plan = make_plan(LinearGame([[1, 1.2], [1.2, 1]], [100, 100]))
    data = tradeoff_options(plan, None, dark=False)["series"][0]["data"]
    drawn = {(*map(float, one["value"]), *one["symbolOffset"]) for one in data}
    assert len(drawn) == len(data) == 3
    first, second = (one["symbolOffset"][0] for one in data if one["value"][0] > 99)
    assert first == 0 < second


def test_what_leaving_costs_is_told_of_plans_and_not_of_cuts():
    whole = propose(apply_scenario(GAME, Scenario()), GAME, "stable", time_limit=60)
    changed = apply_scenario(GAME, Scenario(left=(2,)))
    found = propose(changed, changed.basis, "stable", time_limit=60)
    proposal = dataclasses.replace(found, whole=whole)
    cut = Scenario(left=(2,), cut=((0, 0.5), (1, 0.5)))
    text = judge_proposal(proposal, proposal.check(proposal.put(cut), 0.95), cut).text
    # The plan for two asks 1,800, and the plan for three asked the same two for 1,500.
    said = "Rural left. In the plan without it, the others give 300 samples more in all than with"
    assert proposal.start.sum() == pytest.approx(1800) and said in text


def test_who_is_carried_is_told_of_plans_and_not_of_cuts():
    game = LinearGame([[1, 1.2], [1.2, 1]], [100, 100], agents=["A", "B"])
    opened, *_ = lock(0, 100, game)
    proposal, _, scenario = lock(0, 0, game)
    proposal = dataclasses.replace(proposal, free=np.array([100.0, 0.0]))
    cut = dataclasses.replace(scenario, cut=((1, 0.25),))
    (planned,) = warn_of_carried(proposal, scenario)
    assert "the others give 100 more" in planned.text
    assert list(warn_of_carried(proposal, cut)) == [planned]
    (moves,) = describe_moves(opened, proposal, proposal.put(cut))
    said = "compared with the plan as opened: A 100 fewer, B 100 more."
    assert moves == f"The plan, {said}"
    assert list(describe_moves(opened, proposal, proposal.start)) == [f"C{said[1:]}"]


def test_no_stable_plan_stays_in_the_verdict_whatever_is_put_in_its_place():
    proposal, _, scenario = lock(1, 200)
    assert proposal.contributions is None
    cut = dataclasses.replace(scenario, cut=((0, 0.5),))
    view = show_proposal(proposal, proposal.check(proposal.put(cut), 0.95), cut, concept="stable")
    assert view.verdict.text.startswith("There is no stable plan. City falls 620 samples")
    assert view.verdict.tone == "bad"
    assert view.note.startswith("Proved: no stable plan exists. At its limit City stays short")
    # Numbers in which all have enough are no stable plan either.
    give = dataclasses.replace(scenario, give=((0, 3000.0), (2, 3000.0)))
    found = proposal.check(proposal.put(give), 0.95)
    mark = show_proposal(proposal, found, give, concept="stable").verdict
    assert mark.text.startswith("There is no stable plan.") and mark.tone != "good"


def test_an_envy_free_plan_says_that_no_agent_envies_another():
    measured = fit_curves(pilots(), resamples=40)
    changed = apply_scenario(measured, Scenario())
    plan = make_plan(measured)
    stable = propose_planned(changed, plan, time_limit=20)
    found = propose(changed, plan.game, "envy-free", time_limit=20)
    fair = dataclasses.replace(found, plan=plan)
    checked = fair.check(fair.start, 0.95)
    view = show_proposal(fair, checked, Scenario(), concept="envy-free")
    assert view.verdict.text.endswith("No agent envies another.")
    assert dict(view.figures)["agents that envy another"] == "none"
    # An agent that gives more than another and needs no more envies it.
    given = stable.start * [1, 1, 1, 0] + [0, 0, 0, 2000]
    checked = stable.check(given, 0.95)
    view = show_proposal(stable, checked, Scenario(give=((3, 2000.0),)), concept="stable")
    assert dict(view.figures)["agents that envy another"] == "2"
    assert "Coast envies" in parts_html(list(view.parts))


def test_envy_that_is_too_close_to_call_is_not_called_none():
    # With the burden of B, A would have just what it needs, in numbers that no fraction tells.
    given = np.array([np.pi, 2.0])
    game = LinearGame([[1, 0.6], [0.1, 1]], [2 + 0.6 * np.pi, 0.5], agents=["A", "B"])
    optimal = propose(Changed(game, (0, 1)), game, "optimal", time_limit=60)
    found = optimal.check(given, 0.95)
    assert found.borderline == ((0, 1),) and not found.envy
    scenario = Scenario(give=tuple(enumerate(given.tolist())))
    view = show_proposal(optimal, found, scenario, concept="optimal")
    assert "too close to call" in parts_html(view.parts)
    assert dict(view.figures)["agents that envy another"] == "too close to call"
    both = dataclasses.replace(found, envy=((1, 0),))
    assert dict(list_figures(both, optimal))["agents that envy another"] == (
        "1, and 1 too close to call"
    )


def test_the_numbers_of_a_state_without_a_plan_say_who_envies_too():
    proposal, found, scenario = lock(1, 200)
    figures = dict(show_proposal(proposal, found, scenario, concept="stable").figures)
    assert figures == {"samples in all": "2,266.7", "agent that envies another": "1"}


def test_an_optimal_plan_that_is_less_sure_says_so_and_has_no_price():
    measured = fit_curves(pilots(), resamples=40)
    for cost, less in ((30.0, True), (1.0, False)):
        scenario = Scenario(cost=((0, cost),))
        changed = apply_scenario(measured, scenario)
        plan = make_plan(changed.basis)
        found = propose(changed, plan.game, "optimal", time_limit=20)
        optimal = dataclasses.replace(found, plan=plan)
        checked = optimal.check(optimal.start, 0.95)
        view = show_proposal(optimal, checked, scenario, concept="optimal")
        assert ("sure" in checked.failing) is less
        said = "The optimal plan has the same safety margins as the stable plan, and is less sure."
        assert (said in read(view)) is less
        assert "(the plan:" not in read(view)
        shown = parts_html(list(explain_plans(solve_all(plan.game))))
        assert ("Price of stability: " in shown) is not less
        assert ("There are no prices: " in shown) is less


def test_a_plan_where_samples_cost_more_for_some_has_its_table():
    changed = apply_scenario(fit_curves(pilots(), resamples=40), Scenario(cost=((0, 9.0),)))
    footer = list_contributions(make_plan(changed.basis)).table("page").footer
    assert [row[0] for row in footer] == ["all", "total cost"]


def test_the_warnings_and_doubts_of_a_plan_are_told():
    measured = fit_curves(pilots(seed=3, validation=300, repeats=1), resamples=40)
    changed = apply_scenario(measured, Scenario())
    plan = make_plan(measured, probability=0.99)
    proposal = propose_planned(changed, plan, time_limit=20)
    found = proposal.check(proposal.start, 0.99)
    warnings, doubts = list_warnings(proposal, found)
    assert doubts == list(list_doubts(plan)) and doubts
    assert len(warnings) == 1 and "Beware: an agent that gives 25 %" in warnings[0]
    view = show_proposal(proposal, found, Scenario(), concept="stable")
    *_, fold = view.folds
    assert fold.summary == f"1 warning, {len(doubts)} doubts"
    assert fold.parts[0].items == (*warnings, *doubts) and view.verdict.tone != "good"
    page = proposal_page(proposal, found, Scenario(), None)
    assert fold in page.head and page.tone == view.verdict.tone
    # Other numbers than the plan's are not those that the plan warns of.
    given = np.floor(proposal.start * 0.9)
    warnings, still = list_warnings(proposal, proposal.check(given, 0.99))
    assert warnings == [] and still == doubts
    # Nor is all well while the plan is looked for.
    waits = dataclasses.replace(proposal, plan=None, settled=False)
    assert judge_shown(waits, found, Scenario(), "stable").tone != "good"
    assert not list(fold_doubts(*lock(0, 500)[:2]))


def test_a_headline_names_whose_probability_falls():
    measured = fit_curves(pilots(), resamples=40)
    plan = make_plan(measured)
    changed = apply_scenario(measured, Scenario())
    proposal = propose_planned(changed, plan, time_limit=60)
    agent = int(np.argmax(plan.contributions))
    scenario = Scenario(cut=((agent, 0.25),))
    found = proposal.check(proposal.put(scenario), 0.95)
    view = show_proposal(proposal, found, scenario, concept="stable")
    assert f"The probability falls most for {plan.name(agent)}" in view.verdict.text
    assert "The required probability is 0.95. Compared with the plan, P(goal)" in read(view)


def test_to_give_more_than_enough_is_named_and_no_alarm():
    changed = apply_scenario(GAME, Scenario())
    proposal, scenario = (
        propose(changed, GAME, "stable", time_limit=60),
        Scenario(give=((0, 325.0),)),
    )
    found = proposal.check(proposal.put(scenario), 0.95)
    verdict = show_proposal(proposal, found, scenario, concept="stable").verdict
    assert "University could give 25 samples less" in verdict.text and verdict.tone == "unsure"


def test_a_verdict_has_25_words_and_the_rest_is_folded():
    short = Verdict.of(["The plan holds."], "good")
    assert fold_verdict(short, ()) == (Mark("The plan holds.", "good"), ())
    # The first sentence is said in short, and is whole in the fold.
    lacks = ", ".join(f"Clinic {n} by {n}" for n in range(4))
    brief = f"The plan does not hold: A lacks {lacks}."
    long = Sentence(f"{brief.rstrip('.')}, while B could give less.", (brief,))
    mark, (fold,) = fold_verdict(Verdict.of([long, "C left."], "bad"), ())
    assert mark == Mark(f"{brief} C left.", "bad")
    assert (fold.summary, fold.parts) == ("Details", (long.text,))
    # A sentence that yields makes room for what was changed.
    holds = Sentence("The plan holds: all are content.", ("The plan holds.",), yields=True)
    said = [holds, "City left.", "word " * 24 + "end."]
    mark, (fold,) = fold_verdict(Verdict.of(said, "good"), ())
    assert mark.text == "The plan holds. City left." and fold.parts[0].startswith(holds.text)
    # A name counts as one word.
    name = "St. Mary and All the Saints. Of the Sea"
    many = [f"{name} left."] * 12
    mark, (fold,) = fold_verdict(Verdict.of([*many, "The end."], "bad"), (name,))
    assert mark.text == " ".join(many) and fold.parts == ("The end.",)


@pytest.mark.parametrize("name", ["A", "A.", "St. A", "A; less, B: C", "B env"])
def test_a_headline_that_a_plan_does_not_hold_has_its_reason(name):
    # Only an agent's own samples help it; each needs 100.
    game = LinearGame(np.eye(4), [100.0] * 4, agents=[name, "Two", "Three", "Four"])
    proposal = propose(apply_scenario(game, Scenario()), game, "stable", time_limit=60)
    given = (50.0, 60.0, 130.0, 120.0)
    scenario = Scenario(give=tuple(enumerate(given)))
    found = proposal.check(proposal.put(scenario), 0.95)
    view = show_proposal(proposal, found, scenario, concept="stable")
    short = f"The plan does not hold: {name} falls 50 samples short of what it needs and Two by 40"
    assert view.verdict == Mark(f"{short}, while Three could give 30 samples less.", "bad")
    assert "while Three could give 30 samples less and Four 20. Three" in view.folds[0].parts[0]
    envy = show_proposal(proposal, found, scenario, concept="envy-free")
    assert envy.folds[0].parts[0].endswith("Three envies Four.")


def test_nothing_red_is_shown_while_a_plan_is_looked_for(sides):
    proposal, _, _ = sides["all"]
    waits = dataclasses.replace(proposal, settled=False)
    short = waits.check(np.array([100.0, 1200.0, 600.0]), 0.95)
    assert show_proposal(waits, short, Scenario(), concept="stable") is WAITING
    none = dataclasses.replace(waits, contributions=None)
    good = waits.check(proposal.start, 0.95)
    assert show_proposal(none, good, Scenario(), concept="stable") is WAITING
    assert show_proposal(waits, good, Scenario(), concept="stable").parts
    # Where nothing is looked for, what fails is told.
    assert show_proposal(proposal, short, Scenario(), concept="stable").verdict.tone == "bad"


def test_a_page_of_other_numbers_than_the_plan_is_a_proposal_checked(sides):
    proposal, found, _ = sides["all"]
    page = proposal_page(proposal, found, Scenario(), None)
    assert page.title == "How much each agent should give: a plan for 3 agents"
    scenario = Scenario(give=((0, 400.0),))
    other = proposal.check(proposal.put(scenario), 0.95)
    assert proposal_page(proposal, other, scenario, None).title == "A proposal checked: 3 agents"


def test_a_large_whole_contribution_stays_what_it_is():
    game = GAME.replace(strategies="integer")
    proposal = propose(apply_scenario(game, Scenario()), game, "stable", time_limit=60)
    for amount in (1e9, 5e12):
        assert proposal.put(Scenario(give=((0, amount),)))[0] == amount


def test_what_agents_that_keep_data_settle_on_is_in_whole_samples():
    measured = fit_curves(pilots(), resamples=40)
    plan = make_plan(measured)
    proposal = propose_planned(apply_scenario(measured, Scenario()), plan, time_limit=20)
    kept = keep_data(proposal, plan, ((0, 0.5), (1, 0.5)), time_limit=60).kept
    exact = kept.stable.contributions
    table = list_kept_plan(kept).table("page")
    shown = np.array([row[table.columns.index("stable if they keep")] for row in table.rows])
    assert not np.allclose(exact, np.round(exact), atol=1e-3)
    assert (shown == np.round(shown)).all() and (shown >= exact - 1e-6).all()
