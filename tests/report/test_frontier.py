"""Comparisons of algorithms as tables, figures and a page; and what is shown on the way."""

import json
from dataclasses import replace

import pytest
from frontiers import contender, frontier, shared_fate, three
from reading import cells, shown, table, texts
from training_results import HOSTILE, lenient, strict

from fedaccord.federation.defection.intervals import wilson
from fedaccord.frontier.result import Frontier
from fedaccord.report import frontier as tables
from fedaccord.report import frontier_figures as figures

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from fedaccord.report import style
from fedaccord.report.frontier import frontier_page
from fedaccord.report.model import Listing

# Tables.


def test_the_first_table_has_the_shares_that_goals_are_about():
    found = cells(shown(tables.list_goals(three()).table("terminal")))
    pledged = next(row for row in found if row[0] == "PLEDGED")
    assert pledged == [
        *("PLEDGED", "measured", "1.00", "[0.84,", "1.00]"),
        *("0.00", "[0.00,", "0.16]", "0.00", "[0.00,", "0.16]", "3", "of", "4"),
    ]
    mw = next(row for row in found if row[0] == "MW-FED")
    # Who cuts is alone with it.
    assert mw[5] == "0.00" and mw[8] == "1.00" and mw[-3:] == ["3", "of", "4"]


def test_what_it_takes_is_counted_against_the_baseline():
    found = cells(shown(tables.list_costs(three()).table("terminal")))
    assert ["FedAvg", "180", "100", "%", "300", "-"] in found
    assert ["PLEDGED", "80", "44", "%", "300", "39"] in found


def test_who_is_asked_for_nothing_has_a_dash():
    found = cells(shown(tables._list_asked_across(three())))
    assert ["PLEDGED", "40", "40", "-", "80"] in found
    assert ["available", "60", "60", "60", "180"] in found


def test_of_many_agents_the_first_are_shown_and_the_others_summed():
    names = [f"agent {n}" for n in range(40)]
    one = contender("FedAvg", lenient, asked=[n % 2 for n in range(40)], names=names, trials=1)
    many = frontier(one, names=names, points=(1,) * 40)
    text = shown(tables._list_asked_across(many), width=400)
    assert "25 others" in text and "agent 14" in text and "agent 15" not in text
    # Of 40 agents every second is asked for a point: 7 of the first 15.
    assert cells(text)[2][-2:] == ["13", "20"]


def test_contributors_have_tables_of_their_own_only_where_somebody_gives_nothing():
    assert tables.choose_kinds(three()) == [
        *(("P2", "random"), ("P2", "contributors"), ("P2", "others")),
        *(("P1", "random"), ("P1", "contributors"), ("P1", "others")),
    ]
    everybody = frontier(contender("FedAvg", lenient))
    assert tables.choose_kinds(everybody) == [
        *(("P2", "random"), ("P2", "others"), ("P1", "random"), ("P1", "others"))
    ]
    alone = frontier(contender("FedAvg", lenient, asked=(6,), names=("north",)), names=("north",))
    assert tables.choose_kinds(alone) == [("P2", "random"), ("P1", "random")]


def test_the_tables_of_levels_tell_a_random_agent_from_a_contributor():
    random = cells(shown(tables.list_levels(three(), "P2", "random")))
    among = cells(shown(tables.list_levels(three(), "P2", "contributors")))
    # Of west nothing is asked: it is satisfied whatever it gives.
    assert next(row for row in random if row[0] == "PLEDGED")[4] == "0.33"
    assert next(row for row in among if row[0] == "PLEDGED")[4] == "0.00"
    others = cells(shown(tables.list_levels(three(), "P2", "others")))
    assert others[0][-4:] == ["50", "%", "25", "%"]


def test_that_the_others_pay_is_said_where_they_do_and_nowhere_else():
    said = [str(part) for part in tables.show_frontier(three())]
    harmed = [sentence for sentence in said if "harms the others" in sentence]
    assert harmed == [
        "Under PLEDGED, defection harms the others too. When a contributor gives 25 % of what the "
        "plan asks, all the others reach their goals in 0 % of runs. The 95 % interval is from 0 % "
        "to 16 %."
    ]
    assert said[0] == three().conclusion and said[-1] == three().provenance


def test_who_was_not_compared_is_named_with_the_reason():
    found = frontier(contender("FedAvg", lenient), unplanned={"EQ": "There is no plan: too bad."})
    said = [str(part) for part in tables.show_frontier(found)]
    assert "EQ was not compared: There is no plan: too bad." in said
    assert "EQ was not compared" in frontier_page(found).html()


# Figures.


def marks(ax):
    """Give each contender's mark: its place on the axes without the shift, and whether filled."""
    return {
        bars.get_label(): (
            bars[0].get_xdata()[0],
            bars[0].get_ydata()[0],
            to_hex(bars[0].get_markerfacecolor()) != style.PAPER,
        )
        for bars in ax.containers
    }


def test_marks_stand_where_samples_and_cuts_say_and_are_filled_where_all_are_satisfied():
    rare = contender("rare", lambda level, d, i, trial: trial % 2 == 0 and strict(level, d, i, 0))
    found = marks(tables.plot_frontier(frontier(*three().contenders, rare)))
    assert found == {
        "FedAvg": (1, 1, True),
        "MW-FED": (1, 0, True),
        "PLEDGED": (pytest.approx(80 / 180), 0, True),
        "rare": (1, 0, False),
    }


def test_intervals_of_samples_stay_within_the_figure(monkeypatch):
    found = three()
    monkeypatch.setattr(type(found), "share", lambda self, one: (0.96, (0.7, 1.23)))
    for draw in (tables.plot_frontier, tables.plot_satisfied):
        assert draw(found).get_xlim()[1] >= 1.23


def test_intervals_of_samples_that_are_moved_aside_stay_within_the_figure(monkeypatch):
    monkeypatch.setattr(Frontier, "share", lambda self, one: (1.0, (0.5, 1.5)))
    ax = figures.plot_frontier(three())
    right = ax.get_xlim()[1]
    inches = figures.AXIS * 7.6
    assert right * (1 - figures.APART / inches) >= 1.5


def test_the_second_figure_is_filled_where_a_cut_is_felt():
    found = marks(tables.plot_satisfied(three()))
    assert found == {
        "FedAvg": (1, 1, False),
        "MW-FED": (1, 1, True),
        "PLEDGED": (pytest.approx(80 / 180), 1, True),
    }


@pytest.mark.parametrize(
    ("draw", "inside", "outside"),
    [
        (tables.plot_frontier, (0.5, 0.1), [(0.51, 0.05), (0.4, 0.11)]),
        (tables.plot_satisfied, (0.5, 0.95), [(0.51, 0.97), (0.4, 0.94)]),
    ],
)
def test_the_shaded_part_is_where_both_goals_are_met(draw, inside, outside):
    (region,) = [patch for patch in draw(three()).patches if isinstance(patch, Rectangle)]
    box = region.get_bbox()
    assert box.contains(*inside) or box.contains(inside[0] - 1e-9, inside[1])
    assert not any(box.contains(*place) for place in outside)


def test_marks_with_the_same_samples_stand_beside_each_other():
    places = figures.place_satisfied(three())
    first, second, apart = figures._choose_shifts(places, 1.05)
    assert second - first == pytest.approx(figures.APART)
    assert first + second == pytest.approx(0) and apart == 0


def test_no_two_of_many_contenders_look_alike():
    looks = [figures._choose_look(n) for n in range(36)]
    assert len(set(looks)) == 36


def test_what_was_never_tried_is_not_drawn():
    idle = contender("none", lenient, asked=(0, 0, 0))
    found = frontier(contender("FedAvg", lenient), idle)
    assert set(marks(tables.plot_frontier(found))) == {"FedAvg"}
    assert set(marks(tables.plot_satisfied(found))) == {"FedAvg", "none"}


# The page.


def test_the_page_begins_with_who_reaches_all_goals():
    page = frontier_page(three(), command="fedaccord frontier")
    assert page.verdict == three().conclusion
    assert page.tone == "bad"
    assert [picture.name for picture in page.pictures()] == ["frontier", "satisfied"]
    assert "PLEDGED: a contributor that defects reaches its goal in 0 % of runs, with 44 %" in (
        page.pictures()[0].alt
    )
    questions = table(page, "The questions, judged on the agents' own validation samples")
    assert questions.columns[1:4] == (
        "Do all agents reach their goals?",
        "Does a contributor at 25\u00a0% reach its goal (P2)?",
        "Do all the others then reach theirs?",
    )
    assert "Your criteria are set in [frontier]. All agents reach their goals in at least 95 %" in (
        texts(page)
    )
    assert "Doubt: one measurement on an agent's validation samples decides" in texts(page)
    parts = [part for section in page.sections for part in section.parts]
    assert three().provenance in parts
    listings = [part.items for part in parts if isinstance(part, Listing)]
    assert tuple(three().verdict(one) for one in three().contenders) in listings
    (story,) = listings[-1]
    assert story == ("PLEDGED, measured: The plan asks 80 samples. It took 39 training runs.")
    assert "defection harms the others too" in page.html()


def test_of_many_algorithms_the_verdict_names_a_few():
    names = [f"A{n}" for n in range(20)]
    found = frontier(*(contender(name, lenient, trials=4) for name in names))
    assert found.conclusion == (
        "No algorithm meets all 4 criteria. A0, A1, A2 and 17 more meet 2 of them."
    )


def test_a_comparison_on_further_samples_says_so_and_shows_both():
    def flipped(curve):
        levels = [
            replace(point, scored=replace(point.at_end, contributors=wilson(0, 40)))
            if point.level < 1
            else replace(point, scored=point.at_end)
            for point in curve.levels
        ]
        return replace(curve, levels=tuple(levels), all_scored=curve.all_satisfied)

    base = three()
    one = base.contenders[0]
    scored = replace(one, p1=flipped(one.p1), p2=flipped(one.p2))
    found = frontier(scored, scored_on=2000)
    assert found.reached(scored)[1].value == 0 and base.reached(one)[1].value == 1
    page = frontier_page(found)
    assert table(page, "The questions, judged on 2,000 further samples per agent").rows
    row = next(r for r in table(page, "Further samples against").rows if r[1].startswith("a con"))
    assert (row[2][:4], row[3][:4]) == ("0.00", "1.00") and row[4].text == "no, not yes"
    assert dict(page.facts)["Judged"] == "on 2,000 further samples per agent"
    assert Frontier.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


def test_the_page_is_good_news_only_if_somebody_surely_reaches_all_goals():
    def tone(trials):
        few = contender("few", strict, asked=(40, 40, 0), trials=trials)
        compared = contender("FedAvg", lenient, trials=trials), few
        return frontier_page(frontier(*compared, trials=trials)).tone

    assert (tone(20), tone(80)) == ("unsure", "good")
    assert frontier_page(three(trials=80)).tone == "bad"
    assert frontier_page(frontier(contender("FedAvg", lenient))).tone == "bad"


def test_hostile_names_do_no_harm():
    one = contender(HOSTILE[0], lenient, names=HOSTILE[1:])
    two = contender(HOSTILE[3], shared_fate, names=HOSTILE[1:], asked=(9, 9, 0), plan=HOSTILE[2])
    found = frontier(one, two, names=HOSTILE[1:])
    html = frontier_page(found).html()
    assert "<script>alert" not in html and "\x1b" not in html and "\u202e" not in html
    text = shown(*tables.show_frontier(found))
    assert "\x1b" not in text and "\u202e" not in text
    again = Frontier.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.contenders[0].name == HOSTILE[0]
