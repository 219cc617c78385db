"""What a plan says: the result first, in short sentences, with nothing that contradicts another."""

import dataclasses
import re
from functools import cache

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord.games.linear import LinearGame
from fedaccord.measurement.fit import fit_curves
from fedaccord.planning.plan import make_plan
from fedaccord.planning.probabilities import Estimate
from fedaccord.planning.result import Outcome
from fedaccord.planning.sentences import (
    find_carried,
    find_driver,
    find_lowered,
    list_warnings,
    write_sheet,
)
from fedaccord.report.plan import list_doubts, show_plan
from fedaccord.report.plan_contributions import describe_contributions
from fedaccord.report.plan_page import answer_questions, plan_page
from fedaccord.wording import format_uncertain

MOST_WORDS = 25


@cache
def measured(**options):
    return fit_curves(pilots(**options), resamples=60)


@cache
def plans():
    """Give a plan of every outcome."""
    tight = measured(limit=1_000.0, validation=400, repeats=1)
    return [
        make_plan(measured()),
        make_plan(measured(), prefer="firm"),
        make_plan(tight, judged="measured"),
        make_plan(measured().with_goals([0.97, 0.82, 0.8, 0.8])),
        make_plan(LinearGame([[1.0, 0.5], [0.5, 1.0]], [10.0, 10.0])),
        make_plan(LinearGame(np.eye(2), [50.0, 50.0], limits=[20.0, 20.0])),
        make_plan(LinearGame([[1.0, 1.0], [1.0, 1.0]], [3.0, 2.0], limits=[2.0, 1.0])),
    ]


def split(text):
    return re.split(r"(?<=[.!?]) (?=[A-Z])", text)


def test_every_outcome_is_among_the_plans():
    assert {plan.outcome for plan in plans()} == set(Outcome)


@pytest.mark.parametrize("number", range(7))
def test_no_sentence_of_a_verdict_is_long(number):
    for sentence in split(plans()[number].verdict):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        assert len(words) <= MOST_WORDS, sentence


@pytest.mark.parametrize("number", range(7))
def test_the_result_comes_first(number):
    first = ("The plan asks", "There is no plan", "No stable plan")
    assert plans()[number].verdict.startswith(first)


def test_a_defectors_chance_is_stated_once_and_next_to_that_of_the_plan():
    plan = plans()[0]
    giving = plan.contributions > 0
    chance, full = plan.cuts[0.25][giving].mean(), plan.satisfied[giving].mean()
    said = f"probability {format_uncertain(chance)} on average. With its whole contribution, the"
    assert plan.verdict.count(f"{said} probability is {format_uncertain(full)}.") == 1
    assert "give less" not in plan.verdict
    assert ("the plan hardly deters agents" in plan.verdict) == (chance >= 0.5)


def test_a_single_contributor_is_named():
    plan = make_plan(fit_curves(pilots(names=("A",), goals=[0.8], benefits=np.eye(1),
                     curves=[[0.05, 2.0, 60.0, 0.4]], repeats=3), resamples=30))  # fmt: skip
    assert "If A gives only 25 % of its contribution, it reaches its goal" in plan.verdict


def test_nothing_reads_as_certain():
    assert format_uncertain(1.0) == "above 0.99" and format_uncertain(0.0) == "below 0.01"
    assert format_uncertain(0.5) == "0.50" and format_uncertain(None) == "unknown"


@pytest.mark.parametrize("number", range(7))
def test_warnings_are_all_that_the_terminal_and_the_page_warn_of(number):
    plan = plans()[number]
    warnings = list_warnings(plan)
    beware = [one for one in warnings if one.startswith("Beware: ")]
    assert beware == re.findall(r"Beware: .*?\.(?= |$)", plan.verdict)
    doubts = tuple(one for one in warnings if one not in beware)
    assert list_doubts(plan) == doubts
    assert set(doubts) <= {one.sentence for one in plan.doubts}


def test_that_a_plan_hardly_deters_is_a_warning():
    plan = plans()[0]
    loose = dataclasses.replace(plan, cuts={0.25: np.full(plan.size, 0.8)})
    firm = dataclasses.replace(plan, cuts={0.25: np.full(plan.size, 0.2)})
    assert list_warnings(loose)[0].startswith("Beware: an agent that gives 25 % probably still")
    assert not any("Beware" in one for one in list_warnings(firm))


def restate(plan, value, probability, outcome, low=None, high=None):
    """Return a plan with another probability, and another requested one."""
    options = {**plan.options, "probability": probability}
    everyone = Estimate(value, low, high)
    return dataclasses.replace(
        plan, everyone=everyone, options=options, outcome=outcome, ceiling=None
    )


def test_probabilities_near_one_can_be_told_apart():
    less = restate(plans()[0], 0.9985, 0.999, Outcome.LESS_SURE)
    assert "with probability 0.999. The nearest plan reaches 0.998." in less.verdict
    cheap = dataclasses.replace(
        restate(plans()[0], 0.99, 0.99999, Outcome.LESS_SURE), surest=0.99966
    )
    both = "This plan reaches 0.99, and the highest probability found is 0.9996."
    assert both in cheap.verdict and "nearest" not in cheap.verdict
    planned = restate(plans()[0], 0.99905, 0.999, Outcome.PLANNED)
    assert "in a run with probability 0.999." in planned.verdict
    answer = next(iter(answer_questions(less)))[1].text
    assert answer == "with probability 0.998; 0.999 was requested"


def test_an_interval_whose_ends_read_alike_is_said_once():
    plan = restate(plans()[0], 0.001, 0.95, Outcome.PLANNED, 0.0, 0.002)
    assert "the 95 % interval of this probability is below 0.01." in plan.verdict
    wide = restate(plans()[0], 0.96, 0.95, Outcome.PLANNED, 0.6, 1.0)
    assert "the 95 % interval of this probability is from 0.60 to above 0.99." in wide.verdict


def test_a_sheet_has_what_is_asked_why_what_it_gets_and_what_if_it_gave_less():
    plan = plans()[0]
    agent = int(np.argmax(plan.contributions))
    sheet = write_sheet(plan, agent)
    assert sheet.asks == f"{plan.name(agent)} gives {plan.contributions[agent]:,.0f} samples."
    assert f"{np.ceil(plan.game.alone[agent] - 1e-6):,.0f} samples to reach its target" in sheet.why
    assert f"{plan.accuracy.values[agent]:.3f}" in sheet.gets
    chance = format_uncertain(plan.cuts[0.25][agent])
    assert "only 25 % of its contribution" in sheet.less and f"be {chance}." in sheet.less
    assert plan.explain(agent) == " ".join(vars(sheet).values())


def test_the_words_that_were_given_up_are_gone():
    text = " ".join(
        [plan.verdict + " ".join(plan.assumptions) for plan in plans()]
        + [plans()[0].explain(i) for i in range(4)]
    )
    for word in (r"\bcuts?\b", r"\baims? at\b", "room for chance", r"\bwho cuts\b", r"\banew\b",
                 "of its share", "as sure"):  # fmt: skip
        assert not re.search(word, text), word


def test_the_agent_at_its_limit_that_determines_the_margin_is_named():
    limits = (1_600.0, 1_600.0, 1_000.0, 1_000.0)
    found = fit_curves(pilots(limit=limits, validation=400, repeats=1), resamples=60)
    plan = make_plan(found, judged="measured")
    driver = find_driver(plan)
    assert plan.contributions[driver] == limits[driver]
    assert plan.satisfied[driver] == plan.satisfied.min()
    for agent in range(plan.size):
        why = write_sheet(plan, agent).why
        assert ("So the other agents have larger safety margins." in why) == (agent == driver)
    for place in ("terminal", "page"):
        said = " ".join(describe_contributions(plan, place))
        assert f"{plan.name(driver)} is the least likely to reach its goal. So the agents" in said


def test_a_plan_in_which_others_carry_an_agent_says_so_and_is_not_good():
    limits = np.array([3_000.0, 3_000.0, 100.0, 3_000.0])
    plan = make_plan(fit_curves(dataclasses.replace(pilots(), limits=limits), resamples=60))
    said = (
        "Rural has a limit of 100. This is too low for a full safety margin, so the others give "
        "more."
    )
    assert find_carried(plan) == [2] and plan.contributions[2] == 100
    assert plan.verdict.count(said) == 1
    first = next(show_plan(plan))
    assert first.tone == "unsure" and said in first.text
    page = plan_page(plan)
    assert page.tone == "unsure" and page.verdict.count(said) == 1
    # Nobody is carried without a limit, nor in a plan that is not sure enough.
    assert find_carried(plans()[0]) == [] and "carry" not in plans()[0].verdict
    nearest = next(one for one in plans() if one.outcome is Outcome.LESS_SURE)
    assert find_lowered(nearest) and find_carried(nearest) == []


def test_no_agent_below_its_limit_determines_the_margin():
    plan = make_plan(measured())
    assert (plan.contributions < plan.game.limits).all() and find_driver(plan) is None
    assert not any("larger" in plan.explain(agent) for agent in range(plan.size))
    assert "least likely" not in " ".join(describe_contributions(plan, "terminal"))


def test_an_agent_without_samples_and_without_a_need_does_not_read_as_if_it_were_served():
    game = LinearGame([[1.0, 0.5], [0.5, 1.0]], [100.0, 0.0], limits=[200.0, 0.0])
    why = write_sheet(make_plan(game), 1).why
    assert "needs no samples" not in why and "the plan does not serve it" in why
