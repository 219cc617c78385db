"""Checks of what pilots measured: probabilities, the plan to compare with, and faults."""

import dataclasses
import re
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_hospitals import CURVES, pilots
from scipy.stats import norm

from fedaccord import Allocation, LinearGame, check, fit_curves, make_plan, read_game, write_game
from fedaccord.check import Answer
from fedaccord.check.decide import count_whole, refuse_excess
from fedaccord.check.sentences import describe_carried, describe_hurt
from fedaccord.errors import InputError
from fedaccord.games.measured import LearningCurve, MeasuredGame
from fedaccord.report.games_chances import describe_total, judge_tone
from fedaccord.report.games_page import check_page

NAMES = ("North", "South")
TABLE = pilots(
    names=NAMES,
    goals=[0.8, 0.8],
    curves=CURVES[:2],
    benefits=np.array([[1.0, 0.4], [0.3, 1.0]]),
    repeats=1,
    limit=3_000.0,
)
MEASURED = fit_curves(TABLE, resamples=60)
PLAN = make_plan(MEASURED)
GIVEN = np.array(PLAN.contributions)


def sampled(contributions, runs=40):
    """Draw runs of every resample one by one, and say which agents reach their goals."""
    rng = np.random.default_rng(0)
    drawn = MEASURED.resamples
    met = []
    for world in range(len(drawn)):
        for agent in range(2):
            has = sum(drawn.benefits[world, agent, j] * contributions[j] for j in range(2))
            promised = LearningCurve(*drawn.curves[world, agent]).accuracy(has)
            scatter = drawn.training[world, agent] * rng.standard_normal(runs)
            met.append(promised + scatter >= MEASURED.goals[agent])
    return np.array(met).reshape(len(drawn), 2, runs)


@pytest.mark.parametrize("part", [1.0, 0.8, 0.6])
def test_probabilities_are_those_of_runs_drawn_one_by_one(part):
    given = np.round(part * GIVEN)
    found, met = check(MEASURED, given), sampled(given)
    assert found.everyone.value == pytest.approx(met.all(axis=1).mean(), abs=0.02)
    assert found.satisfied == pytest.approx(met.mean(axis=(0, 2)), abs=0.02)


def test_measured_once_a_goal_takes_more_luck():
    """By the formula, with the scatter of one measurement on the agent's validation points."""
    found = check(MEASURED, GIVEN, judged="measured")
    drawn = MEASURED.resamples
    noise = np.sqrt(drawn.training**2 + MEASURED.measurement_noise**2)
    expected = norm.cdf((MEASURED.accuracies(GIVEN) - MEASURED.goals) / noise)
    assert found.everyone.value == pytest.approx(expected.prod(axis=1).mean(), abs=1e-9)
    assert found.everyone.value < check(MEASURED, GIVEN).everyone.value


def test_the_plan_holds_with_the_very_same_numbers():
    found = check(MEASURED, PLAN.allocation, plan=PLAN)
    assert found.everyone.value == PLAN.everyone.value
    assert (found.satisfied == PLAN.satisfied).all()
    for level, chances in PLAN.cuts.items():
        assert (found.defection[level] == chances).all()
    assert found.holds is Answer.TRUE and not found.could_give_less.any()
    # It is the plan, so there is no other probability to compare with.
    assert "probability 0.95." in found.verdict and "(the plan" not in found.verdict
    assert "required" not in found.verdict
    assert "No agent could give less" in found.verdict


def test_on_average_the_safety_margin_is_room_and_not_stable():
    found = check(MEASURED, PLAN.allocation, plan=PLAN)
    assert found.feasible is Answer.TRUE and found.stable is Answer.FALSE
    assert found.answers["stable"] is Answer.TRUE


def test_too_little_is_not_sure_enough_and_the_weakest_is_named():
    given = np.round(np.array([1.0, 0.2]) * GIVEN)
    found = check(MEASURED, given, plan=PLAN)
    assert found.answers["sure"] is Answer.FALSE and found.holds is Answer.FALSE
    worst = NAMES[int(np.argmin(sampled(given).mean(axis=(0, 2))))]
    assert f"{worst} is the least likely" in found.verdict


def test_a_required_probability_near_one_can_be_told_from_that_of_the_proposal():
    found = check(MEASURED, np.full(2, 2_500.0), probability=0.95)
    assert 0.99 < found.everyone.value < 1
    asked = 1 - (1 - found.everyone.value) / 2
    asked = float(f"{asked:.{2 + int(-np.log10(1 - asked))}f}")
    verdict = dataclasses.replace(found, probability=asked).verdict
    numbers = r"with probability (\S+?)(?:\. The required .* is | instead of )(\S+?)[.,] "
    told, required = re.search(numbers, verdict).groups()
    assert float(told) <= found.everyone.value < float(required) == asked


def test_a_proposal_that_fails_twice_says_so_in_its_first_sentence():
    given = np.array([0.0, 2_000.0])
    found = check(MEASURED, given, plan=PLAN)
    assert found.failing == ("sure", "stable") and found.could_give_less[1] > 0
    first, second = found.verdict.split(". ")[:2]
    assert re.fullmatch(
        r"The proposal does not hold: all agents reach their goals with probability \S+ instead of "
        r"0\.95, and South could give less",
        first,
    )
    assert second == "With the plan, the probability is 0.95"
    lacking = check(MEASURED, np.round(0.6 * GIVEN), plan=PLAN)
    assert lacking.failing == ("sure",) and "instead of" not in lacking.verdict


def test_a_check_never_reads_as_if_all_were_certain():
    found = check(MEASURED, GIVEN, plan=PLAN)
    everyone = dataclasses.replace(found.prospects.everyone, low=0.6, high=1.0)
    prospects = types.SimpleNamespace(everyone=everyone)
    said = describe_total(found, prospects)
    assert "agents reach their goals is from 0.60 to above 0.99." in said


def test_the_agents_that_a_proposal_hurts_are_named_the_most_hurt_first():
    """By runs drawn one by one, under the plan and under the proposal."""
    given = np.round(np.array([1.0, 0.2]) * GIVEN)
    before, now = (sampled(one).mean(axis=(0, 2)) for one in (GIVEN, given))
    verdict = check(MEASURED, given, plan=PLAN).verdict
    told = re.search(
        r" Compared with the plan, P\(goal\) falls most for (\w+) \(from (?:above )?(\S+) to "
        r"(\S+)\)(?:, then for (.*?))?\. ",
        verdict,
    )
    expected = [n for n in np.argsort(now - before) if before[n] - now[n] > 0.02]
    rest = re.split(", | and ", told[4]) if told[4] else []
    assert [told[1], *rest] == [NAMES[n] for n in expected]
    worst = expected[0]
    assert [float(told[2]), float(told[3])] == pytest.approx([before[worst], now[worst]], abs=0.02)


def test_a_limit_that_the_check_does_not_know_is_hinted_at():
    limited = dataclasses.replace(TABLE, limits=[np.round(0.4 * GIVEN[0]), 3_000.0])
    saved = np.array(make_plan(fit_curves(limited, resamples=60)).contributions)
    hint = "If a limit holds an agent back, give the same --limit to check."
    assert saved[0] < GIVEN[0] and hint in check(MEASURED, saved, plan=PLAN).verdict
    # Neither where no agent gives less, nor where too little is given.
    for other in (1.5 * GIVEN, 0.5 * GIVEN):
        assert hint not in check(MEASURED, np.round(other), plan=PLAN).verdict


def test_nobody_is_hurt_by_what_lowers_no_probability():
    for each in (GIVEN, GIVEN + 100, GIVEN - [1, 0]):
        assert "falls most" not in check(MEASURED, each, plan=PLAN).verdict
    # Without a plan there is nothing to compare with.
    assert "falls most" not in check(MEASURED, np.floor(GIVEN / 5)).verdict


SHORT = fit_curves(dataclasses.replace(TABLE, limits=np.array([3_000.0, 300.0])), resamples=60)
CARRIES = make_plan(SHORT)


@pytest.mark.parametrize("game", [SHORT, CARRIES.game], ids=["with the plan", "alone"])
def test_the_others_carry_an_agent_whose_limit_is_too_low_and_all_is_not_well(game):
    said = (
        "South has a limit of 300. This is too low for a full safety margin, so North gives more."
    )
    plan = CARRIES if game is SHORT else None
    found = check(game, CARRIES.allocation, plan=plan)
    assert CARRIES.contributions[1] == 300 and CARRIES.contributions[0] > GIVEN[0]
    assert found.carried == [1] and found.answers["sure"] is Answer.TRUE
    assert found.verdict.count(said) == 1 and judge_tone(found) == "unsure"
    page = check_page(found)
    assert page.sections[0].parts[0].items.count(said) == 1 and page.tone == "unsure"


def test_nobody_is_carried_that_has_enough_could_give_less_or_fails():
    assert check(MEASURED, PLAN.allocation, plan=PLAN).carried == []
    # If North gives all it has, South could give less than its limit.
    assert check(CARRIES.game, [3_000, 300]).carried == []
    # If all agents are too unlikely to reach their goals, nobody carries anybody.
    assert check(SHORT, [600, 300], plan=CARRIES).carried == []


def test_many_that_are_carried_are_counted():
    game = LinearGame(
        np.eye(5), np.ones(5), agents=tuple("ABCDE"), limits=[7] * 5, minimums=[7, 0, 0, 0, 0]
    )
    assert describe_carried(game, []) == ""
    assert describe_carried(game, [0]) == (
        "A is fixed at 7. This is too low for a full safety margin, so the others give more."
    )
    assert describe_carried(game, range(5)) == (
        "A is fixed at 7, B has a limit of 7, C has a limit of 7 and 2 "
        "other agents are limited too. These limits are too low for full safety margins, so the "
        "others give more."
    )


def test_of_many_that_are_hurt_three_are_named():
    plan, prospects = (
        types.SimpleNamespace(satisfied=np.array(each))
        for each in ([0.9, 0.9, 0.9, 0.9, 0.9], [0.5, 0.895, 0.3, 0.4, 0.2])
    )
    five = types.SimpleNamespace(game=LinearGame(np.eye(5), np.ones(5), agents=tuple("ABCDE")))
    five.plan, five.prospects = plan, prospects
    assert describe_hurt(five) == (
        "Compared with the plan, P(goal) falls most for E (from 0.90 to 0.20), then for C and D."
    )


def test_an_agent_that_needs_nothing_reads_so():
    found = check(MEASURED, [GIVEN[0], 3_000.0])
    assert found.needed[0] == 0
    said = found.explain("North")
    assert "With these contributions of the others, it reaches its goal on average without" in said
    assert f"with {check(MEASURED, GIVEN).needed[0]:,.0f} samples." in check(
        MEASURED, GIVEN
    ).explain("North")


def test_that_each_is_sure_is_not_that_all_are():
    found = check(MEASURED, GIVEN)
    between = (found.everyone.value + found.satisfied.min()) / 2
    assert found.everyone.value < between < found.satisfied.min()
    assert check(MEASURED, GIVEN, probability=between).answers["sure"] is Answer.FALSE


def test_an_equal_split_that_succeeds_as_often_is_not_called_infeasible():
    """Planted: by the plan's targets the split is short, by its goals it is not."""
    half = np.full(2, np.ceil(GIVEN.sum() / 2) + 40)
    found = check(MEASURED, half, plan=PLAN)
    assert found.everyone.value >= 0.95
    assert check(PLAN.game, half).feasible is Answer.FALSE or (half == GIVEN).all()
    assert found.feasible is Answer.TRUE and found.answers["sure"] is Answer.TRUE


@pytest.mark.parametrize("agent", [0, 1])
def test_what_an_agent_could_keep_back_is_exactly_its_room_above_the_target(agent):
    given = np.array(GIVEN)
    given[agent] += 200
    found = check(MEASURED, given, plan=PLAN)
    assert found.holds is Answer.FALSE and found.answers["sure"] is Answer.TRUE
    kept = found.could_give_less[agent]
    assert kept == pytest.approx(200, abs=2)
    assert f"{NAMES[agent]} could give {kept:.0f} fewer samples" in found.verdict
    spare = np.flatnonzero(found.could_give_less)
    who = NAMES[spare[0]] if spare.size == 1 else "2 agents"
    failed = f"The proposal does not hold: {who} could give less. All agents reach their goals"
    assert found.verdict.startswith(failed) and found.to_dict()["verdict"] == found.verdict
    for less, reached in ((kept, True), (kept + 1, False)):
        left = np.array(given)
        left[agent] -= less
        target = (PLAN.game.goals + PLAN.game.margins)[agent]
        assert (PLAN.game.accuracies(left)[agent] >= target - 1e-9) is np.True_ or not reached
        assert reached or PLAN.game.accuracies(left)[agent] < target


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(0, 1_400), st.integers(0, 1_400)), st.integers(0, 1))
def test_more_samples_never_make_it_less_likely(start, agent):
    more = np.array(start, dtype=float)
    more[agent] += 100
    before, after = (check(MEASURED, np.array(x, dtype=float)) for x in (start, more))
    assert after.everyone.value >= before.everyone.value - 1e-12
    assert (after.satisfied >= before.satisfied - 1e-12).all()


def test_a_saved_game_gives_the_same_probabilities(tmp_path):
    write_game(PLAN.game, tmp_path / "game.json")
    saved = read_game(tmp_path / "game.json")
    found = check(saved.replace(margins=None, strategies="integer"), GIVEN, plan=PLAN)
    assert found.everyone.value == PLAN.everyone.value and found.holds is Answer.TRUE


def test_the_same_for_machines():
    data = check(MEASURED, GIVEN + np.array([0, 50]), plan=PLAN).to_dict()
    assert data["plan"]["difference"] == [0, 50]
    assert data["answers"]["sure"] is True and data["holds"] is False
    assert set(data["defection"]) == {"0.75", "0.5", "0.25"}
    assert "everyone" not in check(LinearGame([[1]], [1]), [1]).to_dict()


def test_repr_and_sentences_say_how_sure_it_is():
    found = check(MEASURED, GIVEN, plan=PLAN)
    assert f"P(all reach their goals) {PLAN.everyone.value:.2f}" in repr(found)
    said = found.explain("North")
    assert "as in the plan" in said and "Alone it would need" in said


def test_doubts_of_the_fit_come_along():
    few = fit_curves(pilots(repeats=1, limit=600.0), resamples=10)
    found = check(few, np.full(4, 100.0))
    assert found.doubts == tuple(doubt.sentence for doubt in few.doubts) != ()


def test_doubts_that_a_game_was_saved_with_come_along():
    chances = PLAN.game.chances.replace(doubts=("Few pilots.",))
    assert check(PLAN.game.replace(chances=chances), GIVEN).doubts == ("Few pilots.",)


# What is refused.


@pytest.mark.parametrize(
    ("contributions", "sentence"),
    [
        ([100.5, 100], "North gives 100.5, and this game's contributions are whole numbers"),
        ([100, 3_600], "South gives 3,600, and its limit is 3,000"),
        ([4_000, 3_600], "North gives 4,000, and its limit is 3,000; South gives 3,600, and its"),
        ([100], "the game has 2 agents, the allocation 1"),
    ],
)
def test_contributions_that_cannot_be_are_refused(contributions, sentence):
    with pytest.raises(InputError, match=sentence):
        check(MEASURED, contributions)


def test_a_name_that_is_misspelt_is_refused():
    with pytest.raises(InputError, match="did you mean North"):
        check(MEASURED, Allocation([100, 100], ["Nort", "South"]))


def test_a_game_without_pilots_has_no_probabilities():
    game = LinearGame([[1]], [1])
    for options in ({"probability": 0.9}, {"judged": "true"}, {"plan": PLAN}):
        with pytest.raises(InputError, match="no pilots to tell probabilities from"):
            check(game, [1], **options)


def test_options_and_plans_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="judged must be"):
        check(MEASURED, GIVEN, judged="kindly")
    with pytest.raises(InputError, match="probability must be above 0 and below 1"):
        check(MEASURED, GIVEN, probability=1.0)
    other = dataclasses.replace(PLAN, game=PLAN.game.replace(agents=["East", "West"]))
    with pytest.raises(InputError, match="of other agents"):
        check(MEASURED, GIVEN, plan=other)


def test_a_limit_that_rounding_left_below_a_whole_number_is_that_number():
    curves = [(0.05, 2.0, 10.0, 0.5)] * 2
    limits = [0.29 * 100, 50.0]
    game = MeasuredGame(np.eye(2), curves, [0.6, 0.6], limits=limits, minimums=[0.0, 30 + 1e-12])
    whole = count_whole(game)
    assert whole.limits.tolist() == [29, 50] and whole.minimums.tolist() == [0, 30]
    refuse_excess(whole, [29, 50])
