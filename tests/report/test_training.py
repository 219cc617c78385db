"""Runs of training as tables, sentences, figures and a page."""

import dataclasses

import numpy as np
import pytest
from reading import cells, legend, shown, table, texts, ticks
from training_results import four_agents, history, many_agents

from fedaccord.federation.history import History
from fedaccord.report import training
from fedaccord.report.model import Mark
from fedaccord.report.training import (
    MOST_LINES,
    draws_chart,
    find_furthest,
    list_agents,
    train_page,
    training_chart,
)


def ended(final: list[float], *, diverged: bool = False, names: tuple[str, ...] = ()) -> History:
    clients = names or tuple(f"agent {n}" for n in range(len(final)))
    ones = np.ones((3, len(clients)), dtype=np.int64)
    accuracy = np.full((3, len(clients)), np.nan)
    accuracy[-1] = final
    return History(
        clients=clients,
        requirements=np.full(len(clients), 0.7),
        contributions=100 * ones[0],
        algorithm={"kind": "fedavg"},
        seed=0,
        samples=1000 * ones,
        unique=np.cumsum(10 * ones, axis=0),
        loss=0.5 * ones,
        accuracy=accuracy,
        diverged=diverged,
        seconds=1.0,
    )


def test_a_history_says_of_everybody_what_its_goal_is_and_whether_it_is_reached() -> None:
    text = shown(list_agents(ended([0.7, 0.6])).table("terminal"), width=80)
    rows = cells(text)
    assert rows[0] == ["goal", "first", "in", "samples", "of", "them"]
    assert rows[1] == [
        *("agent", "goal", "accuracy", "reached"),
        *("round", "given", "used", "draws"),
    ]
    assert ["agent", "0", "0.700", "0.700", "yes", "3", "100", "30", "3,000"] in rows
    assert ["agent", "1", "0.700", "0.600", "no", "-", "100", "30", "3,000"] in rows
    assert ["all", "200", "60", "6,000"] in rows


@pytest.mark.parametrize(
    ("final", "words"),
    [
        ([0.8, 0.8], "After 3 rounds of FedAvg, all agents reach their goals."),
        (
            [0.8, 0.696],
            "After 3 rounds of FedAvg, 1 of 2 agents reach their goals. "
            "Missed: agent 1 (0.696, short by 0.004).",
        ),
        ([0.8, 0.6996], "Missed: agent 1 (short by 0.0004)."),
        (
            [0.6, 0.5],
            "0 of 2 agents reach their goals. "
            "Missed: agent 0 (0.600, short by 0.100), agent 1 (0.500, short by 0.200).",
        ),
        ([0.6] * 9, "agent 2 (0.600, short by 0.100) and 6 more."),
    ],
)
def test_a_sentence_says_who_misses_its_goal_and_by_how_much(
    final: list[float], words: str
) -> None:
    assert words in shown(training.describe_run(ended(final), "FedAvg"))


def test_a_run_that_diverged_is_not_called_satisfied() -> None:
    lost = ended([float("nan")] * 2, diverged=True)
    text = shown(training.describe_run(lost, "FedAvg"), list_agents(lost).table("terminal"))
    assert "diverged in round 3" in text
    assert "so no agent reaches its goal." in text
    assert ["agent", "0", "0.700", "-", "no", "-", "100", "30", "3,000"] in cells(text)


def test_who_left_before_training_diverged_is_counted() -> None:
    text = training.describe_run(ended([0.9, float("nan")], diverged=True), "RELEASE").text
    assert "only 1 of 2 agents, which left before, reaches its goal" in text


def test_of_many_agents_those_furthest_from_their_goal_are_shown() -> None:
    final = [0.9] * 40
    final[33] = 0.1
    text = shown(list_agents(ended(final)).table("terminal"))
    assert cells(text)[3][:2] == ["agent", "33"]
    assert "and 25 more; all" in text


def test_a_run_says_who_is_satisfied_and_shows_everybody():
    page = train_page(four_agents(), "FedAvg", command="fedaccord train")
    assert page.verdict == (
        "After 6 rounds of FedAvg, 3 of 4 agents reach their goals. Missed: agent 3 (0.750, short "
        "by 0.050)."
    )
    assert page.tone == "bad"
    found = table(page, "Agents after the last round")
    assert found.rows[0] == ("agent 0", 0.8, 0.9, Mark("yes", "good"), 6, 60, 21, 21)
    assert found.rows[3][2:5] == (0.75, Mark("no", "bad"), None)
    assert found.footer == (("all", None, None, None, None, 240, 183, 315),)
    assert [picture.name for picture in page.pictures()] == ["training", "draws"]
    assert dict(page.facts)["Random seed"] == "7"


def test_settings_that_are_not_used_and_times_too_short_to_tell_are_not_written_as_none_and_zero():
    settings = {"kind": "FedAvg", "goal_points": None}
    quick = dataclasses.replace(four_agents(), seconds=0.2, algorithm=settings)
    facts = dict(train_page(quick, "FedAvg").facts)
    assert facts["Training took"] == "less than 1 s"
    assert facts["Algorithm"] == "kind FedAvg"


def test_a_run_in_which_all_draw_alike_has_no_picture_of_that():
    page = train_page(history([[0.9, 0.9]], brought=[60, 0], samples=[[5, 0]]), "FedAvg")
    assert [picture.name for picture in page.pictures()] == ["training"]
    assert page.tone == "good"
    assert "The agents gave 60 samples. Training used 5 of them, in 5 draws." in texts(page)


def test_a_run_that_diverged_has_a_page_without_a_picture_of_nothing():
    page = train_page(history([[np.nan, np.nan]]), "FedAvg")
    assert page.tone == "bad" and "diverged" in page.verdict
    assert page.pictures() == []
    assert table(page, "Agents").rows[0][2] is None


def test_of_many_agents_those_furthest_from_their_goals_come_first():
    found = table(train_page(many_agents(), "MW-FED"), "Agents after the last round, furthest")
    assert len(found.rows) == 400
    assert [row[0] for row in found.rows[:3]] == ["agent 0", "agent 1", "agent 2"]
    assert found.rows[-1][0] == "agent 399"


def named(chart, start):
    (found,) = [line for line in chart.lines if line.name.startswith(start)]
    return found


def test_each_agent_has_a_line_over_the_rounds_in_which_it_was_looked_at():
    chart = training_chart(four_agents())
    assert [line.name for line in chart.lines] == ["agent 0", "agent 1", "agent 2", "agent 3"]
    assert chart.lines[0].x == (2, 4, 6)
    assert chart.lines[0].y == pytest.approx((0.58, 0.74, 0.9))
    assert chart.goal == 0.8 and chart.percent
    assert "agent 3 has 0.750" in chart.alt and "3 of 4 agents reach it" in chart.alt


def test_where_goals_differ_accuracy_is_counted_from_each_own_goal():
    chart = training_chart(history([[0.5, 0.5], [0.9, 0.7]], goals=[0.8, 0.75]))
    assert chart.lines[0].y == pytest.approx((-30, 10))
    assert chart.lines[1].y == pytest.approx((-25, -5))
    assert chart.goal == 0 and not chart.percent
    assert "The goal is 0.75 to 0.8" in chart.alt


def test_of_many_agents_the_spread_is_shown_and_who_is_furthest_below_its_goal():
    run = many_agents()
    chart = training_chart(run)
    median, most, least, own = chart.lines
    assert (median.y[-1], median.low[-1], median.high[-1]) == pytest.approx((0.8, 0.7, 0.9))
    assert (most.y[-1], least.y[-1]) == pytest.approx((1.0, 0.6))
    assert most.of == least.of == median.name
    assert own.name == "furthest below its goal: agent 0" and not own.of
    assert "between 0.600 and 1.000" in chart.alt and "200 of 400 agents reach it" in chart.alt


def test_up_to_eight_agents_have_a_line_each():
    assert len(training_chart(many_agents(MOST_LINES)).lines) == MOST_LINES
    assert len(training_chart(many_agents(MOST_LINES + 1)).lines) == 4


def test_who_has_reached_its_goal_is_called_close_to_it():
    run = history(np.full((2, 9), 0.9))
    assert training_chart(run).lines[-1].name == "closest to its goal: agent 0"


def test_the_furthest_is_so_from_its_own_goal():
    assert find_furthest(history([[0.7, 0.8]], goals=[0.7, 0.95])) == 1


def test_a_spread_is_only_of_rounds_in_which_all_were_looked_at():
    seen = np.full((3, 9), 0.5)
    seen[1, 4] = np.nan
    assert training_chart(history(seen)).lines[0].x == (1, 3)


def test_training_that_diverged_has_a_chart_that_says_so():
    chart = training_chart(history([[0.5, 0.6], [np.nan, np.nan]]))
    assert chart.alt == "Training diverged, so there is no accuracy at the end."
    assert chart.lines[0].y == (0.5,)


def test_draws_add_up_over_the_rounds():
    chart = draws_chart(history([[0.5, 0.5], [0.6, 0.6]], samples=[[1, 4], [2, 0]]))
    assert [line.y for line in chart.lines] == [(1, 3), (4, 4)]
    assert "agent 1 has the most draws, 4. agent 0 has the fewest, 3." in chart.alt
    assert "All agents together have 7." in chart.alt


def test_draws_of_many_agents_are_a_spread():
    chart = draws_chart(many_agents())
    assert [named(chart, start).y[-1] for start in ("median", "the agent with the most draws")] == [
        160,
        280,
    ]


def test_training_has_the_goal_as_a_line_and_starts_below_the_lowest():
    ax = training.plot_training(four_agents())
    heights = [line.get_ydata() for line in ax.lines]
    assert any(np.allclose(values, 0.8) for values in heights)
    assert "goal 80 %" in [text.get_text() for text in ax.texts]
    assert 0.3 < ax.get_ylim()[0] < 0.51
    assert {"60 %", "80 %", "100 %"} <= set(ticks(ax, "y"))


def test_goals_that_differ_are_one_line_at_nothing():
    ax = training.plot_training(history([[0.5, 0.5], [0.9, 0.7]], goals=[0.8, 0.75]))
    assert any(np.allclose(line.get_ydata(), 0) for line in ax.lines)
    low, high = ax.get_ylim()
    assert low < -30 and high > 10


def test_four_hundred_agents_are_four_lines():
    ax = training.plot_training(many_agents())
    assert len(legend(ax)) == 4
    assert "furthest below its goal: agent 0" in legend(ax)


def test_training_that_diverged_at_once_is_drawn():
    ax = training.plot_training(history([[np.nan, np.nan]]))
    assert "nothing to show" in [text.get_text() for text in ax.texts]
