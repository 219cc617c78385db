"""Every page and figure of training: names are text, and each draws where it is told to."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from reading import legend, parts
from training_results import (
    HOSTILE,
    draws,
    four_agents,
    history,
    many_agents,
    scores,
    two_algorithms,
    weights,
)

from fedaccord import report
from fedaccord.federation.data.pretraining import Bands
from fedaccord.report import (
    audit_page,
    difficulty_page,
    pretrain_page,
    search_page,
    train_page,
)
from fedaccord.report.drawing import figure_of
from fedaccord.report.model import Picture


def pages():
    return {
        "audit": audit_page(two_algorithms(names=HOSTILE)),
        "train": train_page(history(np.full((3, 4), 0.7), names=HOSTILE), "<b>FedAvg</b>"),
        "difficulty": difficulty_page(scores(), Bands()),
        "pretrain": pretrain_page(weights((10, 0.4), (20, 0.6))),
        "search": search_page(draws()),
    }


@pytest.mark.parametrize("name", ["audit", "train", "difficulty", "pretrain", "search"])
def test_a_page_is_html_in_which_names_are_text(name):
    html = pages()[name].html()
    assert "<script>alert" not in html and "<b>FedAvg" not in html
    assert "\x1b" not in html and "\u202e" not in html
    if name in ("audit", "train"):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "y" * 200 in html


def test_pictures_tell_their_numbers_to_who_cannot_see_them():
    for page in pages().values():
        for picture in parts(page, Picture):
            assert len(picture.alt) > 40 and any(c.isdigit() for c in picture.alt)
            assert picture.data.rows


def test_a_page_keeps_to_what_it_is_given():
    found = two_algorithms()
    before = dataclasses.replace(found)
    assert audit_page(found).verdict == audit_page(found).verdict
    assert found == before


EVERY = {
    "defection": lambda ax=None: report.plot_defection(two_algorithms(), ax),
    "training": lambda ax=None: report.plot_training(four_agents(), ax),
    "many": lambda ax=None: report.plot_training(many_agents(), ax),
    "draws": lambda ax=None: report.plot_draws(four_agents(), ax),
    "difficulty": lambda ax=None: report.plot_difficulty(scores(), Bands(), ax),
    "pretraining": lambda ax=None: report.plot_pretraining(weights((10, 0.4), (20, 0.6)), ax),
    "search": lambda ax=None: report.plot_search(draws(), ax),
}


@pytest.mark.parametrize("name", EVERY)
def test_a_figure_is_drawn_on_the_axes_given_or_on_its_own(name):
    given = Figure().add_subplot()
    assert EVERY[name](given) is given
    own = EVERY[name]()
    assert figure_of(own) is not figure_of(given)
    assert own.has_data() and given.has_data()
    assert plt.get_fignums() == []


def test_names_that_mean_harm_are_text_and_fit():
    ax = report.plot_training(history(np.full((3, 4), 0.7), names=HOSTILE))
    shown = legend(ax)
    assert shown[0] == HOSTILE[0] and shown[2] == HOSTILE[2]
    assert len(shown[1]) < 60 and shown[1].endswith("…")
    assert "\x1b" not in shown[3] and "\u202e" not in shown[3]
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    figure_of(ax).draw_without_rendering()
    curve = report.plot_defection(two_algorithms(names=HOSTILE))
    figure_of(curve).draw_without_rendering()


def test_figures_and_pages_of_training_are_found_in_the_package():
    for name in ("defection", "training", "draws", "difficulty", "pretraining", "search"):
        assert callable(getattr(report, f"plot_{name}"))
    for name in ("audit", "train", "difficulty", "pretrain", "search"):
        assert callable(getattr(report, f"{name}_page"))
        assert f"{name}_page" in dir(report)
