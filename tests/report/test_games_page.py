"""Pages of games say what results say: the verdict, every number, and nothing that is not so."""

import dataclasses
import html
import re

import numpy as np
import pytest
from report.plans import HOSTILE, flower, hospitals, ring, solution, solved
from scipy.stats import norm

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Interval, Price, Status
from fedaccord.equilibria.solve import solve_all, solve_stable
from fedaccord.games.catalog.entries import ENTRIES, build
from fedaccord.games.chances import Chances
from fedaccord.games.function import FunctionGame
from fedaccord.games.goals import Goal, GoalsGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import LearningCurve, MeasuredGame
from fedaccord.games.pac.sampled import SampledPacGame
from fedaccord.games.signed import SignedGame
from fedaccord.report.catalog import catalog_page
from fedaccord.report.games import ROWS, SHOWN, format_price
from fedaccord.report.games_page import check_page, solve_page
from fedaccord.report.games_verdicts import (
    answer_questions,
    find_worst_envy,
    judge_plan,
    judge_solutions,
)
from fedaccord.report.model import Listing, Mark, Picture, Section, Table, rank
from fedaccord.wording import format_amount


def parts(page, kind):
    """List the parts of a kind, in order."""
    found = []
    waiting = list(page.sections)
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Section):
            waiting = [*part.parts, *waiting]
        if isinstance(part, kind):
            found.append(part)
    return found


def table(page, caption):
    return next(t for t in parts(page, Table) if t.caption.startswith(caption))


def words(page):
    """Give all that stands on a page outside tables and figures."""
    listed = [item for listing in parts(page, Listing) for item in listing.items]
    return "\n".join([page.title, page.verdict, *parts(page, str), *listed])


def picture_names(page):
    return [picture.name for picture in parts(page, Picture)]


# Verdicts.


def verdict(concept, given, status=Status.OPTIMAL, game=None, **rest):
    """Say what comes of one plan of the hospitals."""
    game = game or hospitals()[0]
    claim = solution(game, concept, given, status, **rest)
    found = {} if given is None else {concept: check(game, given)}
    return judge_solutions(game, {concept: claim}, found)


STABLE = [300, 1200, 600]


def test_all_is_well_only_if_no_agent_is_better_off_alone_and_chances_are_known():
    harm = SignedGame([[1, -0.2], [0.5, 1]], [1, 1])
    found = check(harm, solve_stable(harm).allocation)
    assert found.stable is found.envy_free is Answer.TRUE and len(found.better_alone)
    assert judge_plan(found)[1] == "plain"
    curve = LearningCurve(0.05, 2.0, 50, 0.4)
    measured = MeasuredGame([[1, 0.3], [0.3, 1]], [curve] * 2, [0.8, 0.8])
    goals = [Goal(i, "AUC", [1 - 0.7 * i, 0.3 + 0.7 * i], measure="auc", at_least=0.8, curve=curve)
             for i in range(2)]  # fmt: skip
    for game in (measured, GoalsGame(goals)):
        found = check(game, solve_stable(game).allocation)
        assert found.stable is Answer.TRUE
        page = check_page(found)
        assert page.tone == "plain" and "Not examined: how likely agents" in words(page)


def test_a_stable_plan_is_good_news():
    said, tone = verdict("stable", STABLE)
    assert said == (
        "The stable plan asks for 2,100 samples, 1,710 fewer than the agents would need alone. No "
        "agent could give less, and no agent envies another."
    )
    assert tone == "good"


def test_the_cheapest_plan_says_who_could_give_less():
    said, tone = verdict("optimal", [1228.125, 703.125, 0])
    assert said == (
        "The cheapest plan asks for 1,931.3 samples, 1,878.8 fewer than the agents would need "
        "alone. 1 of 3 agents gives nothing. University could give 210 samples less, and one "
        "agent envies another."
    )
    assert tone == "plain"


def test_an_envy_free_plan_speaks_of_envy_first():
    said, _ = verdict("envy-free", [900, 900, 900])
    assert said == (
        "The envy-free plan asks for 2,700 samples, 1,110 fewer than the agents would need "
        "alone. No agent envies another, but Rural could give 690 samples less, "
        "and 2 other agents could give less too."
    )


def test_a_plan_that_is_not_proved_says_how_far_it_might_be_off():
    said, tone = verdict("stable", STABLE, Status.LIMIT, bounds=(1900, 2100))
    assert said.endswith(". A cheaper one may exist, but none below 1,900.")
    assert tone == "unsure"
    said, tone = verdict("stable", STABLE, Status.LIMIT, bounds=(0, np.inf))
    assert said.endswith(". It is not known how far it is from the cheapest of its kind.")
    assert tone == "unsure"


def test_a_least_total_that_is_not_attained_is_not_claimed():
    said, tone = verdict("envy-free", [900, 900, 900], Status.NOT_ATTAINED, bounds=(1993.5, 2700))
    assert said.endswith(
        ". Such plans come as close to 1,993.5 samples as you like, but none reaches it."
    )
    assert tone == "unsure"


def test_a_proof_that_there_is_none_says_so_and_what_there_is():
    game, claims, checks, _ = hospitals()
    claims["stable"] = solution(game, "stable", None, Status.NONE_EXISTS)
    del checks["stable"]
    said, tone = judge_solutions(game, claims, checks)
    assert said == (
        "It is proved that no stable plan exists: in every plan, some agent is short or could "
        "give less. The cheapest plan asks for 1,931.3 samples."
    )
    assert tone == "bad"
    said, tone = verdict("envy-free", None, Status.NONE_EXISTS)
    assert said == (
        "It is proved that no envy-free plan exists: in every plan, some agent is short or "
        "envies another."
    )


def test_a_game_without_any_plan_says_what_to_do():
    note = "City cannot reach its requirement: raise a limit, or lower the requirement."
    said, tone = verdict("stable", None, Status.INFEASIBLE, note=note)
    assert said == f"There is no plan, even if all agents give all they can: {note}"
    assert tone == "bad"


def test_a_solver_that_failed_claims_nothing():
    said, tone = verdict("stable", None, Status.FAILED, note="Give it more time.")
    assert said == ("No stable plan was found, and none was proved impossible (Give it more time).")
    assert tone == "unsure"


def test_a_plan_that_the_audit_refutes_is_bad_news():
    said, tone = verdict("stable", [900, 900, 900])
    assert said.startswith(
        "The stable plan that was found does not hold: feasible but not stable: "
    )
    assert "Rural could give 690 samples less" in said
    assert tone == "bad"


def test_what_is_too_close_to_call_is_not_called():
    game, claims, checks, _ = hospitals()
    unsure = dataclasses.replace(
        checks["stable"], stable=Answer.BORDERLINE, envy_free=Answer.BORDERLINE
    )
    said, tone = judge_solutions(game, {"stable": claims["stable"]}, {"stable": unsure})
    assert said.endswith(
        ". Whether an agent could give less is too close to call, and whether an agent "
        "envies another is too close to call."
    )
    assert tone == "unsure"


def test_a_stable_plan_with_envy_says_who_many_envy():
    game = build("twins")
    said, tone = verdict("stable", [1, 0], game=game)
    assert said == (
        "The stable plan asks for 1 sample, 1 fewer than the agents would need alone. 1 of 2 "
        "agents gives nothing. No agent could give less, but one agent envies another."
    )
    assert tone == "plain"


def test_where_samples_have_costs_the_verdict_counts_both():
    game = hospitals()[0].replace(costs=[2, 1, 1])
    said, _ = verdict("stable", STABLE, game=game)
    # Alone 2 * 1440 + 1440 + 930 = 5250; the plan 600 + 1200 + 600 = 2400.
    assert (
        "asks for 2,100 samples at a cost of 2,400, 2,850 less than the agents would pay alone"
        in said
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1440, 1440, 930], "3,810 samples, the same as the agents would need alone"),
        ([2000, 1440, 930], "4,370 samples, 560 more than the agents would need alone"),
    ],
)
def test_going_alone_may_be_as_good_or_better(given, words):
    assert words in verdict("optimal", given)[0]


def test_where_somebody_cannot_go_alone_that_is_said_instead():
    game, claims, checks, _ = hospitals()
    game.__dict__["alone"] = np.array([1440.0, np.inf, 930.0])
    said, _ = judge_solutions(game, {"stable": claims["stable"]}, {"stable": checks["stable"]})
    assert "samples, and one agent could not do without the others. No agent" in said


def test_without_a_stable_concept_the_first_one_is_told():
    game, claims, checks, _ = hospitals()
    del claims["stable"]
    assert judge_solutions(game, claims, checks)[0].startswith("The cheapest plan asks")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2100.0000000000005, "2,100"),
        (1931.25, "1,931.3"),
        (1931.2499999999998, "1,931.3"),
        (3229.0001, "3,229"),
        (2 / 3, "0.6667"),
        (6207837.7, "6,207,838"),
        (0.0, "0"),
        (np.inf, "no finite number"),
        (1e20, "1e+20"),
    ],
)
def test_numbers_are_written_for_people(value, text):
    assert format_amount(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.5, 1.5, "1.5"),
        (1, 2, "from 1 to 2"),
        (1.5, np.inf, "at least 1.5"),
        (np.inf, np.inf, "none"),
        (np.nan, np.nan, "unknown"),
    ],
)
def test_prices_are_written_as_what_is_known(low, high, text):
    assert format_price(Interval(low, high)) == text


def test_the_largest_are_found_in_order_among_few_and_many():
    weights = np.array([3.0, 1, 3, 2, 0] + [0.0] * 50)
    assert rank(weights, 4).tolist() == [0, 2, 3, 1]
    assert rank(weights[:5], 4).tolist() == [0, 2, 3, 1]
    assert rank(np.array([1.0, np.inf, 2.0] + [0.0] * 20), 2).tolist() == [1, 2]


def test_the_most_envious_come_first_with_the_least_burden_they_envy():
    game = LinearGame(np.eye(4), [0.5] * 4)
    found = find_worst_envy(check(game, [1, 3, 0.5, 0.75]), 2)
    assert [(e.agent, e.other, e.pairs) for e in found] == [(1, 2, 3), (0, 2, 2)]


# The page of plans.


@pytest.fixture(scope="module")
def page():
    return solve_page(*hospitals(), command="fedaccord solve 'a b.json' --report p.html")


def test_the_page_shows_every_plan_beside_what_each_needs_alone(page):
    found = table(page, "Samples that each agent gives")
    assert found.columns == (
        "agent", "alone", "optimal", "stable", "envy-free", "stable saves",
        "requirement",
    )  # fmt: skip
    assert found.rows[0] == pytest.approx(
        ("University", 1440, 1228.125, 300, 1347 / 1.52, 1140, 1440)
    )
    ((name, *sums),) = found.footer
    assert name == "all"
    assert sums == pytest.approx([3810, 1931.25, 2100, 1993.421, 1710], abs=1e-3)


def test_the_page_shows_what_is_proved_of_each_plan(page):
    found = table(page, "Totals and their proved bounds")
    assert [row[0] for row in found.rows] == ["optimal", "stable", "envy-free"]
    assert found.rows[1] == ("stable", 2100, 2100, 2100, Mark("optimal", "good"), "hand")
    assert f"Optimal, stable, envy-free: {Status.OPTIMAL.value}" in words(page)


def test_bounds_that_differ_from_the_total_by_rounding_read_like_it():
    game, claims, checks, prices = hospitals()
    total = claims["stable"].total
    near = Interval(total * (1 - 1e-15), total)
    claims["stable"] = dataclasses.replace(claims["stable"], bounds=near)
    far = Interval(total * 0.9, total)
    claims["optimal"] = dataclasses.replace(claims["optimal"], bounds=far)
    rows = table(solve_page(game, claims, checks, prices), "Totals").rows
    assert rows[1][1] == rows[1][2] == rows[1][3]
    assert rows[0][2] == far.lower


def test_the_page_says_who_would_defect_and_shows_only_plans_with_somebody_off(page):
    said = words(page)
    assert "Optimal: Feasible but not stable: University could give 210 samples less" in said
    assert "Stable: Feasible and stable, and no agent envies another." in said
    assert picture_names(page) == [
        "allocations", "defection-optimal", "defection-envy-free", "envy-optimal", "prices",
        "overlap",
    ]  # fmt: skip


def test_the_page_explains_each_agents_number(page):
    assert (
        "City gives 1,200. Alone it would need 1,440. The others supply 17 % of what "
        "it needs. With 1,199 it would fall short." in words(page)
    )


def test_the_page_says_what_prices_mean_and_what_the_root_is_not(page):
    said = words(page)
    assert "Price of stability: 1.087, so the stable plan costs 8.74 % more" in said
    assert "Price of fairness: at least 1.032." in said
    assert "Here the root is 1.732." in said and "not a bound" in said


def test_the_page_says_how_to_repeat_it(page):
    assert page.command == "fedaccord solve 'a b.json' --report p.html"
    facts = dict(page.facts)
    assert facts["Game"] == "linear, 3 agents, real numbers of samples"
    assert facts["Seed"] == "none: nothing here is drawn at random"
    assert facts["Solved by"].startswith("optimal by hand in ")
    assert "fedaccord " in facts["Versions"] and facts["Machine"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", facts["Date"])


def test_every_picture_comes_with_its_numbers_and_words_for_those_who_do_not_see_it(page):
    by_name = {picture.name: picture for picture in parts(page, Picture)}
    assert by_name["allocations"].data.rows[2][3] == 600
    assert "Stable: 2,100 in all, the most by City with 1,200" in by_name["allocations"].alt
    assert by_name["defection-optimal"].data.rows[0][:5] == pytest.approx(
        ("University", 1228.125, 1018.125, 0, 210)
    )
    assert (
        by_name["defection-optimal"].alt
        == "These do not give exactly what they need: University: 210 spare."
    )
    (pair,) = by_name["envy-optimal"].data.rows
    assert pair == pytest.approx(("University", 1228.125, "envies", "City", 703.125))
    assert by_name["prices"].data.rows[0][1:] == pytest.approx(
        (3, 2100 / 1931.25, 2100 / 1931.25, 3**0.5)
    )
    assert "The most is 0.7, from Rural to University." in by_name["overlap"].alt


def test_prices_of_plans_that_cost_the_same_or_do_not_exist_are_told_so():
    game, claims, checks, _ = hospitals()
    prices = {
        "price_of_stability": Price(np.inf, np.inf, "There is no stable plan."),
        "price_of_fairness": Price(1.0, 1.0 + 1e-9),
    }
    said = words(solve_page(game, claims, checks, prices))
    assert "Price of stability: none. There is no stable plan." in said
    assert "Price of fairness: 1, so the envy-free plan costs as much as the optimal one." in said
    nothing = solve_page(game, claims, checks, dict.fromkeys(prices))
    assert "What stability and fairness cost" not in [s.heading for s in nothing.sections]


def test_limits_minimums_costs_and_whole_numbers_are_shown():
    game = hospitals()[0].replace(
        limits=[None, 1300, None], minimums=[10, 0, 0], costs=[2, 1, 1], strategies="integer"
    )
    page = solve_page(game, *solved(game, stable=STABLE), {})
    found = table(page, "Samples that each agent gives")
    assert found.columns[-3:] == ("limit", "minimum", "cost of a sample")
    assert found.rows[0][-3:] == (None, 10, 2)
    assert found.footer[1][:3] == ("total cost", 5250, 2400)
    assert table(page, "Totals").columns[1] == "total cost"
    facts = dict(page.facts)
    assert facts["Game"].endswith("whole numbers of samples")
    assert facts["Limits and costs"] == (
        "1 agent with a limit, 1 agent with a minimum, samples cost some more than others"
    )
    assert facts["Checked"].endswith("decided exactly")


def test_without_any_plan_the_page_still_says_what_is_known():
    game = build("pac-cycle")
    none = solution(game, "stable", None, Status.NONE_EXISTS, bounds=(np.inf, np.inf))
    page = solve_page(game, {"stable": none}, {}, {})
    assert page.tone == "bad"
    assert f"There is no stable plan to show: {Status.NONE_EXISTS.value}" in words(page)
    assert picture_names(page) == ["allocations", "overlap"]
    assert table(page, "Totals").rows[0][1:5] == (None, None, None, Mark("none-exists", "bad"))


def test_a_game_given_as_a_function_says_why_it_has_no_picture():
    game = FunctionGame(lambda theta: theta, [1, 1])
    page = solve_page(game, *solved(game, stable=[1, 1]), {})
    assert "overlap" not in picture_names(page)
    assert "does not say whose data overlap" in words(page)


def test_estimates_come_with_their_seed():
    worlds = [{"prior": "1/2", "samples": [[["x", y, 1]]]} for y in ("plus", "minus")]
    game = SampledPacGame(worlds, [0.9], draws=50, seed=7)
    facts = dict(check_page(check(game, [1])).facts)
    assert facts["Seed"] == "Utilities are estimates from 50 draws, seed 7"


def test_the_flower_page_tells_of_its_core():
    game, claims, checks = flower()
    prices = {"price_of_stability": Price(16 / 7, 16 / 7)}
    page = solve_page(game, claims, checks, prices)
    assert page.verdict.startswith("The stable plan asks for 9.143 samples, 7.857 fewer")
    said = words(page)
    assert "Optimal: Feasible but not stable: core could give 3 samples less" in said
    assert "Optimal: core envies 16 others." in said
    assert "so the stable plan costs 129 % more" in said
    by_name = {picture.name: picture for picture in parts(page, Picture)}
    assert by_name["defection-optimal"].note == "The other 16 give exactly what they need."


# Many agents.


def test_four_hundred_agents_are_all_listed():
    game, claims, checks = ring(400)
    page = solve_page(game, claims, checks, {})
    assert len(table(page, "Samples").rows) == 400
    assert len(table(page, "Agents that are short or could").rows) == 400
    assert "These are the 12 agents that give most" in words(page)


def test_a_million_agents_make_a_page_of_bounded_size():
    game, claims, checks = ring(1_000_000)
    page = solve_page(game, claims, checks, {})
    tables = [*parts(page, Table), *(picture.data for picture in parts(page, Picture))]
    assert max(len(t.rows) for t in tables) <= ROWS
    assert len(table(page, "Samples").rows) == SHOWN
    assert table(page, "Samples").footer[0][0] == "all 1,000,000 agents"
    assert sum(map(len, words(page))) < 10_000
    assert words(page).count("--json prints every number, and --save writes the plan") == 2
    assert "999,999 other agents could give less too" in words(page)
    checked = check_page(checks["envy-free"])
    assert len(table(checked, "What each gives, needs and reaches").rows) == SHOWN


# The page of a plan that was checked.


def test_a_checked_plan_is_judged_and_listed():
    game, *_ = hospitals()
    page = check_page(check(game, [700, 700, 700]), command="fedaccord check g.json p.csv")
    assert page.verdict == (
        "The plan does not hold: City falls 250 samples short of what it needs, while Rural could "
        "give 330 samples less and University 170."
    )
    assert page.tone == "bad"
    envy = Mark("no, but a plan counts as envy-free only if it is feasible", "plain")
    assert table(page, "The three questions").rows == (
        (
            "Do all agents reach their requirements?",
            Mark("no: City lacks 250", "bad"),
            "not feasible",
        ),
        (
            "Could an agent give less?",
            Mark("yes: Rural by 330, University by 170", "bad"),
            "not stable",
        ),
        ("Does an agent envy another?", envy, "not envy-free"),
    )
    found = table(page, "What each gives, needs and reaches")
    assert found.columns[:5] == ("agent", "gives", "needs", "short", "spare")
    assert found.rows[1][:6] == pytest.approx(("City", 700, 950, 250, 0, 1440))
    assert found.footer == (("all", 2100),)
    assert (
        "City gives 700. Alone it would need 1,440. Given what the others give, it "
        "needs 950, so it falls short." in words(page)
    )
    assert "the plan does not count as envy-free" in words(page)
    assert picture_names(page) == ["defection-checked", "overlap"]


def test_a_plan_that_is_feasible_and_not_stable_is_bad_news():
    page = check_page(check(hospitals()[0], [900, 900, 900]))
    assert page.verdict == (
        "The plan does not hold: every agent reaches its requirement, but Rural could give 690 "
        "samples less, University 630 and City 90 and still reach it."
    )
    assert page.tone == "bad"


def test_a_stable_plan_passes_the_check():
    page = check_page(hospitals()[2]["stable"])
    assert page.tone == "good"
    assert "No agent is short, and none could give less." in words(page)
    shown = parts(page, Picture)[0].data
    assert shown.columns == ("agent", "alone", "this plan")
    assert shown.rows[1] == ("City", 1440, 1200)
    assert page.verdict == (
        "The plan holds: every agent reaches its requirement, none could give less, and no "
        "agent envies another."
    )
    assert [row[1:] for row in table(page, "The three questions").rows] == [
        (Mark("yes", "good"), "feasible"),
        (Mark("no", "good"), "stable"),
        (Mark("no", "good"), "envy-free"),
    ]


def test_of_many_who_are_off_a_check_names_three():
    game = ring(40)[0]
    said, _ = judge_plan(check(game, np.ones(40)))
    said = said.text
    assert said.endswith(
        "agent 2 could give 0.6 samples less and 37 other agents could give less too and still "
        "reach it."
    )
    said, _ = judge_plan(check(game, np.zeros(40)))
    said = said.text
    assert said == (
        "The plan does not hold: agent 0 falls 1 sample short of what it needs, agent 1 by 1, "
        "agent 2 by 1 and 37 other agents fall short too."
    )


def test_a_check_says_who_breaks_a_limit_or_a_minimum():
    game = LinearGame(np.eye(2), [0.5, 0.5], limits=[1, None], minimums=[0, 0.75])
    said, tone = judge_plan(check(game, [1.5, 0.5]))
    said = said.text
    assert said == (
        "The plan does not hold: agent 0 gives 0.5 more than its limit, agent 1 gives 0.25 less "
        "than it must, while agent 0 could give 1 sample less."
    )
    assert tone == "bad"
    question, answer, _ = next(answer_questions(check(game, [0.5, 0.5])))
    assert question == "Do all agents reach their requirements, within limits and minimums?"
    assert answer == Mark("no: agent 1 gives 0.25 less than it must", "bad")


def test_a_plan_that_holds_with_envy_or_is_too_close_to_call_is_not_all_well():
    found = check(build("twins"), [1, 0])
    said, tone = judge_plan(found)
    said = said.text
    assert said.endswith("none could give less, but agent 0 envies agent 1.")
    assert tone == "plain"
    close = dataclasses.replace(found, stable=Answer.BORDERLINE, envy=(), borderline=((0, 1),))
    assert judge_plan(close)[1] == "unsure"
    assert [answer.text for _, answer, _ in answer_questions(close)] == [
        "yes", "too close to call", "too close to call",
    ]  # fmt: skip


def test_a_verdict_tells_what_is_not_proved_of_the_other_plans():
    game, claims, checks, _ = hospitals()
    claims["envy-free"] = dataclasses.replace(claims["envy-free"], status=Status.LIMIT)
    said, tone = judge_solutions(game, claims, checks)
    assert said.endswith(" The envy-free plan is not proved to be the cheapest of its kind.")
    assert tone == "plain"
    claims["envy-free"] = solution(game, "envy-free", None, Status.NONE_EXISTS)
    said, _ = judge_solutions(game, claims, checks)
    assert said.endswith(" It is proved that there is no envy-free plan.")
    claims["envy-free"] = solution(game, "envy-free", None, Status.FAILED)
    assert judge_solutions(game, claims, checks)[0].endswith(" No envy-free plan was found.")


# The catalogue.


def test_the_catalogue_lists_every_game_with_what_is_known_of_it():
    page = catalog_page(ENTRIES.values(), command="fedaccord catalog")
    rows = {row[0]: row[1:4] for row in table(page, "Games and their known totals").rows}
    assert list(rows) == list(ENTRIES)
    assert rows["flower"] == pytest.approx((4, 64 / 7, 8.5))
    assert rows["pac-cycle"] == (2, Mark("none exists", "bad"), 3)
    assert rows["not-attained"][2] == Mark("3, never reached", "unsure")
    assert rows["overlap"][2] is None
    names = picture_names(page)
    assert len(set(names)) == len(names)
    prices = next(p for p in parts(page, Picture) if p.name == "prices").data.rows
    flower_b100 = [row for row in prices if row[1] == 101]
    assert [row[2] for row in flower_b100] == pytest.approx([100 / 19, 101 / 20])


def test_one_game_of_the_catalogue_is_shown_with_the_parameters_chosen():
    entry = dataclasses.replace(ENTRIES["star"], parameters={"leaves": 6})
    page = catalog_page([entry])
    assert page.verdict == (
        "Smallest known totals of the game star: optimal 2, stable 6, envy-free 4.667."
    )
    assert "fedaccord catalog star --parameter leaves=6 --save star.json" in words(page)
    (picture,) = parts(page, Picture)
    assert len(picture.data.rows) == 7


# Names.


def test_names_that_mean_harm_stand_on_the_page_as_text():
    names = (HOSTILE[0], HOSTILE[1], HOSTILE[3])
    game, claims, checks, _ = hospitals(names)
    kept = {"optimal": checks["optimal"]}
    text = solve_page(game, {"optimal": claims["optimal"]}, kept, {}).html()
    assert "<script>alert" not in text
    assert html.escape(HOSTILE[0]) in text
    assert HOSTILE[1] in text
    assert "Alone it would need" in text


def test_a_page_of_a_measured_game_says_how_sure_each_plan_is():
    """Against the formula, with one world and the same scatter for all."""
    curves = np.tile([0.05, 2.0, 20.0, 0.45], (1, 2, 1))
    benefits = np.array([[[1.0, 0.5], [0.5, 1.0]]])
    chances = Chances(np.zeros(2), np.full((1, 2), 0.01), benefits, curves)
    goals, margins = [0.8, 0.8], [0.01, 0.01]
    game = MeasuredGame(benefits[0], curves[0], goals, margins=margins, chances=chances)
    found = solve_all(game)
    page = solve_page(game, found.solutions, found.checks, found.prices)
    # Both contributors have exactly their target: one standard deviation above the goal.
    sure = norm.cdf(1) ** 2
    assert f"All agents reach their goals with probability {sure:.2f}" in page.verdict
    proved = next(section for section in page.sections if section.heading == "What is proved")
    assert "P(all) is the probability" in proved.parts[0]
    place = proved.parts[1].columns.index("P(all)")
    assert [row[place] for row in proved.parts[1].rows] == pytest.approx([sure] * 3)
    assert page.sections[0].heading == "The stable plan in three answers"
    assert {"goal", "target"} <= set(page.sections[1].parts[-1].columns)
