"""Difficulty, pre-training and the search as tables, figures and pages."""

import numpy as np
import pytest
from matplotlib.colors import same_color
from reading import cells, legend, shown, table, ticks
from training_results import draws, scores, weights

from fedaccord.errors import InputError
from fedaccord.federation.data.pretraining import Bands
from fedaccord.federation.data.search import Draw
from fedaccord.report import preparation, style
from fedaccord.report.model import Mark
from fedaccord.report.preparation import (
    difficulty_page,
    list_search,
    pretrain_page,
    search_page,
)


def test_a_search_is_listed_with_what_diverged() -> None:
    draws = [Draw(0.001, 8, 0.81234, 1200), Draw(0.01, 4, float("nan"), 9)]
    rows = cells(shown(list_search(draws).table("terminal")))
    assert ["1.00e-03", "8", "1,200", "0.8123"] in rows
    assert ["1.00e-02", "4", "9", "diverged"] in rows


def test_difficulty_is_summed_up_for_all_points_and_for_the_bands():
    page = difficulty_page(scores(), Bands(hard=(50, 100), easy=(0, 50)))
    assert page.verdict.startswith("Of all samples, 49 % count as hard and 51 % count as easy. ")
    assert "The scores of 99 samples go from 0.001 to 10; " in page.verdict
    rows = {row[0]: row[1:] for row in table(page, "Scores of all samples").rows}
    assert [rows[name][0] for name in ("all", "hard", "easy")] == [99, 49, 50]
    assert rows["hard"][3] > rows["easy"][4]
    assert sum(row[2] for row in page.pictures()[0].data.rows) == 99
    assert difficulty_page(scores()).verdict.startswith("The scores of 99 samples go from")


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"good_enough": False, "accuracy": 0.7, "until": 0.9}, "an accuracy of 0.700, less than"),
        ({"method": "trials", "capped": 3, "trials": 10}, "3 of 10 trials ended before"),
    ],
)
def test_what_makes_scores_doubtful_is_said(known, words):
    page = difficulty_page(scores(**known))
    assert page.tone == "unsure" and words in page.verdict.partition("Doubt: ")[2]
    assert difficulty_page(scores(good_enough=True)).tone == "plain"


def test_pretraining_says_how_accurate_the_network_is():
    page = pretrain_page(weights((10, 0.4), (20, 0.577), until=0.5))
    assert page.verdict == (
        "After 20 batches on 200 samples, the network's accuracy on the validation pool is 0.577. "
        "Every federation of this config starts from these weights."
    )
    assert page.tone == "plain" and len(page.pictures()) == 1
    missed = pretrain_page(weights((20, 0.4), until=0.9))
    assert missed.tone == "unsure" and "That is below the target of 0.9: use more" in missed.verdict
    # One point is no curve.
    assert missed.pictures() == []
    assert "accuracy is not known" in pretrain_page(weights()).verdict


def test_a_search_names_the_best_choice_and_lists_all():
    page = search_page(draws(), seed=5)
    assert page.verdict == (
        "Use a learning rate of 0.003 with batches of 64: the best of 4 choices. Its accuracy on "
        "the validation pool is 0.900."
    )
    rows = table(page, "Choices tried").rows
    assert rows[2] == ("2.00e-06", 512, 4, 0.1)
    assert rows[3][-1] == Mark("diverged", "bad")
    assert page.pictures()[0].data.rows[2][0] == 2e-6
    assert dict(page.facts)["Seed"] == "5"
    lost = search_page([Draw(1.0, 8, float("nan"), 1)])
    assert (
        lost.verdict == "All of 1 choice diverged. Use smaller learning rates."
        and lost.tone == "bad"
    )


def test_the_bands_of_difficulty_are_told_apart_and_all_points_are_there():
    ax = preparation.plot_difficulty(scores(), Bands(hard=(80, 100), easy=(0, 20)))
    # 99 points have a score; the bands hold the first and the last of them.
    assert legend(ax) == ["easy samples: 20", "hard samples: 19", "neither: 60"]
    assert sum(patch.get_height() for patch in ax.patches) == 99
    assert ax.get_xscale() == "log"
    hard = [p for p in ax.patches if same_color(p.get_facecolor(), style.SERIES[1])]
    assert min(patch.get_x() for patch in hard if patch.get_height()) > 1


def test_scores_that_are_alike_have_an_ordinary_axis_and_one_bar():
    alike = scores()
    values = np.where(np.isnan(alike.values), np.nan, 3.0)
    ax = preparation.plot_difficulty(type(alike)(values, alike.counts, alike.pool, {}))
    assert ax.get_xscale() == "linear"
    assert [patch.get_height() for patch in ax.patches] == [99]


def test_no_scores_are_refused_in_a_sentence():
    none = scores()
    empty = type(none)(np.full(100, np.nan), none.counts, none.pool, {})
    with pytest.raises(InputError, match="no sample has a score yet"):
        preparation.plot_difficulty(empty)


def test_pretraining_shows_what_was_to_be_reached():
    ax = preparation.plot_pretraining(weights((10, 0.4), (20, 0.6), until=0.9))
    assert "goal 90 %" in [text.get_text() for text in ax.texts]
    assert list(ax.lines[0].get_xdata()) == [10, 20]


def test_every_batch_size_has_a_marker_of_its_own_and_what_diverged_lies_at_the_bottom():
    ax = preparation.plot_search(draws())
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
    assert legend(preparation.plot_search([Draw(1e-3, 64, 0.5, 9)])) == ["batches of 64"]
