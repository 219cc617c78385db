"""Figures of training show what the results say, on axes that matplotlib's own state ignores."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from training_results import (
    HOSTILE,
    audit,
    draws,
    four_agents,
    history,
    many_agents,
    scores,
    strict,
    two_algorithms,
    weights,
)

from fedaccord.errors import InputError
from fedaccord.federation.data.difficulty import Bands
from fedaccord.federation.data.pretraining import Draw
from fedaccord.report import figures_training as figures
from fedaccord.report.drawing import figure_of

EVERY = {
    "defection": lambda ax=None: figures.plot_defection(two_algorithms(), ax),
    "training": lambda ax=None: figures.plot_training(four_agents(), ax),
    "many": lambda ax=None: figures.plot_training(many_agents(), ax),
    "draws": lambda ax=None: figures.plot_draws(four_agents(), ax),
    "difficulty": lambda ax=None: figures.plot_difficulty(scores(), Bands(), ax),
    "pretraining": lambda ax=None: figures.plot_pretraining(weights((10, 0.4), (20, 0.6)), ax),
    "search": lambda ax=None: figures.plot_search(draws(), ax),
}


def weak(level, defector, client, trial):
    """Who cuts is satisfied, but for the first agent."""
    return level == 1 or not client == defector == 0


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(ax, axis):
    figure_of(ax).draw_without_rendering()
    labels = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    return [label.get_text() for label in labels]


@pytest.mark.parametrize("name", EVERY)
def test_a_figure_is_drawn_on_the_axes_given_or_on_its_own(name):
    given = Figure().add_subplot()
    assert EVERY[name](given) is given
    own = EVERY[name]()
    assert figure_of(own) is not figure_of(given)
    assert own.has_data() and given.has_data()
    assert plt.get_fignums() == []


def test_the_curve_has_a_tick_for_every_level_and_a_dashed_line_of_the_same_colour():
    found = audit({"FedAvg": weak, "MW-FED": weak}, names=("north", "south"))
    ax = figures.plot_defection(found)
    assert ticks(ax, "x") == ["25 %", "50 %", "100 %"]
    names = ["FedAvg", "FedAvg, worst off: north", "MW-FED", "MW-FED, worst off: north"]
    assert sorted(legend(ax)) == names
    first, second = (bars.lines[0] for bars in ax.containers)
    dashed = {line.get_label(): line for line in ax.lines if line.is_dashed()}
    assert list(dashed) == [names[1], names[3]]
    assert same_color(first.get_color(), dashed[names[1]].get_color())
    assert same_color(second.get_color(), dashed[names[3]].get_color())
    assert not same_color(first.get_color(), second.get_color())


def test_the_shares_of_the_curve_are_where_they_belong():
    ax = figures.plot_defection(audit({"MW-FED": strict}, names=("north", "south")))
    (bars,) = ax.containers
    heights = bars.lines[0].get_ydata()
    assert list(heights) == [0, 0, 1]
    low, high = ax.get_ylim()
    assert low <= 0 and high >= 1


def test_training_has_the_goal_as_a_line_and_starts_below_the_lowest():
    ax = figures.plot_training(four_agents())
    heights = [line.get_ydata() for line in ax.lines]
    assert any(np.allclose(values, 0.8) for values in heights)
    assert "goal 80 %" in [text.get_text() for text in ax.texts]
    assert 0.3 < ax.get_ylim()[0] < 0.51
    assert {"60 %", "80 %", "100 %"} <= set(ticks(ax, "y"))


def test_goals_that_differ_are_one_line_at_nothing():
    ax = figures.plot_training(history([[0.5, 0.5], [0.9, 0.7]], goals=[0.8, 0.75]))
    assert any(np.allclose(line.get_ydata(), 0) for line in ax.lines)
    low, high = ax.get_ylim()
    assert low < -30 and high > 10


def test_four_hundred_agents_are_four_lines():
    ax = figures.plot_training(many_agents())
    assert len(legend(ax)) == 4
    assert "furthest below its goal: agent 0" in legend(ax)


def test_training_that_diverged_at_once_is_drawn():
    ax = figures.plot_training(history([[np.nan, np.nan]]))
    assert "nothing to show" in [text.get_text() for text in ax.texts]


def test_the_bands_of_difficulty_are_told_apart_and_all_points_are_there():
    ax = figures.plot_difficulty(scores(), Bands(hard=(80, 100), easy=(0, 20)))
    # 99 points have a score; the bands hold the first and the last of them.
    assert legend(ax) == ["easy points: 20", "hard points: 19", "neither: 60"]
    assert sum(patch.get_height() for patch in ax.patches) == 99
    assert ax.get_xscale() == "log"
    hard = [p for p in ax.patches if same_color(p.get_facecolor(), figures.style.SERIES[1])]
    assert min(patch.get_x() for patch in hard if patch.get_height()) > 1


def test_scores_that_are_alike_have_an_ordinary_axis_and_one_bar():
    alike = scores()
    values = np.where(np.isnan(alike.values), np.nan, 3.0)
    ax = figures.plot_difficulty(type(alike)(values, alike.counts, alike.pool, {}))
    assert ax.get_xscale() == "linear"
    assert [patch.get_height() for patch in ax.patches] == [99]


def test_no_scores_are_refused_in_a_sentence():
    none = scores()
    empty = type(none)(np.full(100, np.nan), none.counts, none.pool, {})
    with pytest.raises(InputError, match="no point has a score yet"):
        figures.plot_difficulty(empty)


def test_pretraining_shows_what_was_to_be_reached():
    ax = figures.plot_pretraining(weights((10, 0.4), (20, 0.6), until=0.9))
    assert "goal 90 %" in [text.get_text() for text in ax.texts]
    assert list(ax.lines[0].get_xdata()) == [10, 20]


def test_every_batch_size_has_a_marker_of_its_own_and_what_diverged_lies_at_the_bottom():
    ax = figures.plot_search(draws())
    assert set(legend(ax)) == {
        "batches of 4",
        "batches of 8",
        "batches of 64",
        "batches of 512",
        "diverged",
    }
    markers = [line.get_marker() for line in ax.lines]
    assert len(set(markers)) == len(markers)
    assert (ax.lines[-1].get_xdata()[0], ax.lines[-1].get_ydata()[0]) == (9e-3, 0)
    assert ax.get_xscale() == "log"
    assert not any("mathdefault" in text for text in ticks(ax, "x"))


def test_a_search_of_one_choice_is_drawn():
    assert legend(figures.plot_search([Draw(1e-3, 64, 0.5, 9)])) == ["batches of 64"]


def test_names_that_mean_harm_are_text_and_fit():
    ax = figures.plot_training(history(np.full((3, 4), 0.7), names=HOSTILE))
    shown = legend(ax)
    assert shown[0] == HOSTILE[0] and shown[2] == HOSTILE[2]
    assert len(shown[1]) < 60 and shown[1].endswith("…")
    assert "\x1b" not in shown[3] and "\u202e" not in shown[3]
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    figure_of(ax).draw_without_rendering()
    curve = figures.plot_defection(two_algorithms(names=HOSTILE))
    figure_of(curve).draw_without_rendering()


def test_figures_and_pages_of_training_are_found_in_the_package():
    from fedaccord import report

    for name in ("defection", "training", "draws", "difficulty", "pretraining", "search"):
        assert getattr(report, f"plot_{name}") is getattr(figures, f"plot_{name}")
    for name in ("audit", "train", "difficulty", "pretrain", "search"):
        assert callable(getattr(report, f"{name}_page"))
        assert f"{name}_page" in dir(report)
