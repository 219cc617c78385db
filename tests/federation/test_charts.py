"""Charts of audits and runs: what each line shows, and what is said to who cannot see it."""

import numpy as np
import pytest
from training_results import audit, four_agents, history, lenient, many_agents, strict

from fedaccord.federation.charts import (
    MOST_LINES,
    defection_chart,
    defector,
    draws_chart,
    furthest,
    training_chart,
    worst_off,
)

NAMES = ("north", "south", "west")


def named(chart, start):
    (found,) = [line for line in chart.lines if line.name.startswith(start)]
    return found


def west_fails(level, defector, client, trial):
    """West misses its goal in every second trial that it cuts in."""
    return not (level < 1 and client == defector == 2 and trial % 2)


# Defection.


def test_a_line_has_the_shares_of_the_random_agent_with_their_intervals():
    chart = defection_chart(audit({"FedAvg": west_fails}, names=NAMES, trials=4))
    line = chart.lines[0]
    assert (line.name, line.x) == ("FedAvg", (25.0, 50.0, 100.0))
    # Two of twelve runs fail: west's in two of four trials.
    assert line.y == pytest.approx((10 / 12, 10 / 12, 1))
    assert all(low < y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert chart.percent and chart.goal is None


def test_the_worst_off_has_a_line_of_its_own_that_belongs_to_the_algorithms():
    line = defection_chart(audit({"FedAvg": west_fails}, names=NAMES)).lines[1]
    assert (line.name, line.of) == ("FedAvg, worst off: west", "FedAvg")
    assert line.y == (0.5, 0.5, 1)
    assert line.low == ()


def test_who_cannot_see_the_curve_is_told_its_numbers():
    found = audit({"FedAvg": lenient, "MW-FED": strict}, names=NAMES)
    alt = defection_chart(found).alt
    assert alt.startswith("FedAvg: satisfied in 100 % with 100 %, 100 % with 50 %, 100 % with 25 %")
    assert "MW-FED: satisfied in 100 % with 100 %, 0 % with 50 %, 0 % with 25 %" in alt


def test_against_a_plan_only_contributors_count():
    def south_fails(level, defector, client, trial):
        return level == 1 or not client == defector == 1

    found = audit({"FedAvg": south_fails}, names=NAMES, protocol="P2", asked=[0, 30, 30])
    chart = defection_chart(found)
    # North, of whom nothing is asked, is satisfied at any level, and does not count.
    assert [line.y for line in chart.lines] == [(0.5, 0.5, 1), (0, 0, 1)]
    assert "a random contributor" in chart.x and "what is asked of it" in chart.x
    assert chart.name == "defection-from-plan"
    assert worst_off(found.curves[0]) == "south"


def test_of_whom_nothing_is_asked_nobody_is_the_worst_off():
    found = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 0, 0])
    assert worst_off(found.curves[0]) is None
    chart = defection_chart(found)
    assert chart.lines == () and chart.alt == "Nothing is asked of anybody."


def test_where_all_fare_alike_nobody_has_a_line_of_its_own():
    for names in (["north"], NAMES):
        assert len(defection_chart(audit({"FedAvg": strict}, names=names)).lines) == 1


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ({}, "a random agent"),
        ({"protocol": "P2"}, "a random agent"),
        ({"protocol": "P2", "asked": [0, 30, 30]}, "a random contributor"),
        ({"asked": [0, 30, 30]}, "a random agent"),
    ],
)
def test_who_gives_less_is_a_contributor_where_not_all_are(options, who):
    assert defector(audit({"FedAvg": lenient}, names=NAMES, **options)) == who


# Training.


def test_each_agent_has_a_line_over_the_rounds_in_which_it_was_looked_at():
    chart = training_chart(four_agents())
    assert [line.name for line in chart.lines] == ["agent 0", "agent 1", "agent 2", "agent 3"]
    assert chart.lines[0].x == (2, 4, 6)
    assert chart.lines[0].y == pytest.approx((0.58, 0.74, 0.9))
    assert chart.goal == 0.8 and chart.percent
    assert "agent 3 has 0.750" in chart.alt and "3 of 4 reach it" in chart.alt


def test_where_goals_differ_accuracy_is_counted_from_each_own_goal():
    chart = training_chart(history([[0.5, 0.5], [0.9, 0.7]], goals=[0.8, 0.75]))
    assert chart.lines[0].y == pytest.approx((-30, 10))
    assert chart.lines[1].y == pytest.approx((-25, -5))
    assert chart.goal == 0 and not chart.percent
    assert "the goal is 0.75 to 0.8" in chart.alt


def test_of_many_agents_the_spread_is_shown_and_who_is_furthest_below_its_goal():
    run = many_agents()
    chart = training_chart(run)
    median, most, least, own = chart.lines
    assert (median.y[-1], median.low[-1], median.high[-1]) == pytest.approx((0.8, 0.7, 0.9))
    assert (most.y[-1], least.y[-1]) == pytest.approx((1.0, 0.6))
    assert most.of == least.of == median.name
    assert own.name == "furthest below its goal: agent 0" and not own.of
    assert "between 0.600 and 1.000" in chart.alt and "200 of 400 reach it" in chart.alt


def test_up_to_eight_agents_have_a_line_each():
    assert len(training_chart(many_agents(MOST_LINES)).lines) == MOST_LINES
    assert len(training_chart(many_agents(MOST_LINES + 1)).lines) == 4


def test_who_has_reached_its_goal_is_called_close_to_it():
    run = history(np.full((2, 9), 0.9))
    assert training_chart(run).lines[-1].name == "closest to its goal: agent 0"


def test_the_furthest_is_so_from_its_own_goal():
    assert furthest(history([[0.7, 0.8]], goals=[0.7, 0.95])) == 1


def test_a_spread_is_only_of_rounds_in_which_all_were_looked_at():
    seen = np.full((3, 9), 0.5)
    seen[1, 4] = np.nan
    assert training_chart(history(seen)).lines[0].x == (1, 3)


def test_training_that_diverged_has_a_chart_that_says_so():
    chart = training_chart(history([[0.5, 0.6], [np.nan, np.nan]]))
    assert chart.alt == "Training diverged: there is no accuracy at its end."
    assert chart.lines[0].y == (0.5,)


def test_draws_add_up_over_the_rounds():
    chart = draws_chart(history([[0.5, 0.5], [0.6, 0.6]], samples=[[1, 4], [2, 0]]))
    assert [line.y for line in chart.lines] == [(1, 3), (4, 4)]
    assert "agent 1 has drawn 4 samples, the most, and agent 0 3, the fewest" in chart.alt
    assert "all together 7." in chart.alt


def test_draws_of_many_agents_are_a_spread():
    chart = draws_chart(many_agents())
    assert [named(chart, start).y[-1] for start in ("median", "who draws most")] == [160, 280]
