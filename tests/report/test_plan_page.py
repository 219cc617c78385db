"""The page of a plan says what the plan says: the verdict, every number, and nothing else."""

import csv
import dataclasses
import io
import re
from functools import cache

import numpy as np
import pytest
from known_hospitals import NAMES, pilots
from report.plans import HOSTILE

from fedaccord.games.linear import LinearGame
from fedaccord.measurement.diagnostics import Doubt
from fedaccord.measurement.fit import fit_curves
from fedaccord.planning.plan import make_plan
from fedaccord.planning.result import Plan
from fedaccord.report.html import table_csv
from fedaccord.report.model import Listing, Mark, Picture, Section, Table
from fedaccord.report.plan import describe_tradeoffs, show_plan
from fedaccord.report.plan_page import plan_page, plot_learning, plot_prospects, plot_tradeoffs

pytest.importorskip("matplotlib")

TWINS = LinearGame([[1.0, 1.1], [1.1, 1.0]], [100.0, 95.0], agents=["Left", "Right"])


@cache
def measured(names=NAMES):
    return fit_curves(pilots(names=names), resamples=60)


@cache
def planned():
    return make_plan(measured())


def parts(page, kind):
    """List the parts of a kind, in order."""
    found, waiting = [], list(page.sections)
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Section):
            waiting = [*part.parts, *waiting]
        if isinstance(part, kind):
            found.append(part)
    return found


def headings(page):
    return [section.heading for section in page.sections]


def table(page, caption):
    return next(t for t in parts(page, Table) if t.caption.startswith(caption))


def rows(found):
    """Give a table's rows by the name in their first cell."""
    return {row[0]: row for row in csv.reader(io.StringIO(table_csv(found)))}


def test_the_verdict_comes_first_and_everybody_has_a_sentence():
    page = plan_page(planned(), command="fedaccord plan pilots.csv")
    assert page.verdict == planned().verdict
    sentences = [item for part in parts(page, Listing) for item in part.items]
    assert all(planned().explain(agent) in sentences for agent in range(4))


def test_shares_on_the_page_are_those_of_the_plan():
    plan = planned()
    found = rows(table(plan_page(plan), "Samples that each gives"))
    for agent, name in enumerate(NAMES):
        assert float(found[name][1]) == plan.contributions[agent]
        assert float(found[name][4]) == pytest.approx(plan.alone.values[agent], abs=0.5)
    assert float(found["all"][1]) == plan.contributions.sum()


def test_accuracies_and_chances_on_the_page_are_those_of_the_plan():
    plan = planned()
    found = rows(table(plan_page(plan), "Accuracies under the plan"))
    for agent, name in enumerate(NAMES):
        assert float(found[name][1]) == plan.goals[agent]
        assert float(found[name][3]) == pytest.approx(plan.accuracy.values[agent], abs=5e-4)
        assert float(found[name][-1]) == pytest.approx(plan.satisfied[agent], abs=1e-3)
        assert float(found[name][-1]) < 1


def test_who_gives_nothing_cannot_give_less():
    found = rows(table(plan_page(planned()), "P(goal) of an agent"))
    giving = {NAMES[i] for i in np.flatnonzero(planned().contributions)}
    assert set(found) - {"agent"} == giving


def test_every_assumption_is_on_the_page():
    page = plan_page(planned())
    said = [item for part in parts(page, Listing) for item in part.items]
    assert set(planned().assumptions) <= set(said)


def with_doubts(plan, *doubts):
    """Give a plan whose fit has these doubts, whatever it has of its own."""
    found = dataclasses.replace(plan.measurement)
    vars(found)["doubts"] = doubts
    return dataclasses.replace(plan, measurement=found)


def test_doubts_are_told_and_all_is_not_well():
    doubt = Doubt(0, "poor-fit", "The curve of University does not fit.")
    plan = with_doubts(planned(), doubt)
    page = plan_page(plan)
    assert page.tone == "unsure"
    said = [item for part in parts(page, Listing) for item in part.items]
    assert "The curve of University does not fit." in said
    assert any("University does not fit" in str(part) for part in show_plan(plan))


def test_all_is_well_only_where_a_cut_is_felt():
    plan = with_doubts(planned())
    for cut, tone in ((0.1, "good"), (0.7, "plain")):
        tradeoffs = tuple(dataclasses.replace(t, cut=cut) for t in plan.tradeoffs)
        assert plan_page(dataclasses.replace(plan, tradeoffs=tradeoffs)).tone == tone


def test_without_pilots_there_are_no_chances_on_the_page():
    page = plan_page(make_plan(TWINS, assumed=["Labels are all that counts."]))
    assert page.tone == "unsure"
    for heading in ("What each may expect of one run", "The learning curves"):
        assert heading not in headings(page)
    assert any("Labels are all that counts." in p.items for p in parts(page, Listing))
    assert Mark("Nothing was measured.", "unsure") in parts(page, Mark)


def test_without_a_plan_the_page_says_which_goals_are_out_of_reach():
    plan = make_plan(measured().with_goals([0.97, 0.82, 0.8, 0.8]))
    page = plan_page(plan)
    assert page.tone == "bad" and headings(page)[0] == "Which goals are out of reach"
    found = rows(table(page, "Goals, and what can be reached"))
    assert found["University"][2] == "out of reach" and found["City"][2] == "within reach"
    assert "Who gives how much" not in headings(page)


def test_equilibria_are_told_with_who_gives_and_who_envies():
    plan = make_plan(TWINS)
    page = plan_page(plan)
    found = table(page, "The equilibria")
    assert len(found.rows) == len(plan.tradeoffs) == 3
    assert [isinstance(row[0], Mark) for row in found.rows] == [t.chosen for t in plan.tradeoffs]
    assert "tradeoffs" in [picture.name for picture in page.pictures()]


def test_the_plan_is_called_the_cheapest_or_the_firmest_as_it_is():
    cheap, firm = make_plan(TWINS), make_plan(TWINS, prefer="firm")
    assert "the cheapest of 3" in describe_tradeoffs(cheap)
    assert "--prefer firm" in describe_tradeoffs(cheap)
    assert "the firmest of 3" in describe_tradeoffs(firm)
    assert "--prefer" not in describe_tradeoffs(firm, hint=False)


def test_a_curve_is_drawn_for_each_with_its_pilots_among_the_numbers():
    page = plan_page(planned())
    curves = [p for p in page.pictures() if p.name.startswith("curve-")]
    assert len(curves) == 4
    kinds = [row[0] for row in curves[0].data.rows]
    assert kinds.count("pilot") == len(planned().measurement.table)


@pytest.mark.parametrize("size", [(7.6, 3.6), (4.4, 3.6)])
def test_figures_draw_at_either_width(size):
    from fedaccord.report.drawing import new_axes

    plan = planned()
    for draw in (
        lambda ax: plot_prospects(plan, ax),
        lambda ax: plot_learning(plan, 1, ax=ax),
        lambda ax: plot_tradeoffs(make_plan(TWINS), ax),
    ):
        ax = draw(new_axes(size))
        assert ax.get_xlabel()


def test_the_goal_and_the_plan_are_where_they_are():
    plan = planned()
    ax = plot_learning(plan, 2)
    marks = {line.get_label(): line for line in ax.get_lines()}
    [x], [y] = marks["the plan"].get_data()
    assert x == pytest.approx(plan.game.apply(plan.contributions)[2])
    assert y == pytest.approx(plan.accuracy.values[2])
    assert set(marks["goal"].get_ydata()) == {0.8}
    assert len(marks["pilots"].get_xdata()) == len(plan.measurement.table)


def test_many_agents_are_told_in_part():
    size = 60
    benefits = 0.01 * np.ones((size, size)) + 0.99 * np.eye(size)
    plan = make_plan(LinearGame(benefits, np.arange(1, size + 1) * 10.0))
    page = plan_page(plan)
    assert "Those who give most" in str(page.sections)
    text = "".join(str(part) for part in show_plan(plan))
    assert "agent by agent" not in text


def test_names_that_mean_harm_are_only_names():
    plan = make_plan(measured(HOSTILE[:4]))
    html = plan_page(plan).html()
    assert "<script>alert" not in html
    said = re.sub("<[^>]+>", "", html)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; gives" in said


def test_pictures_have_words_for_those_who_do_not_see_them():
    for picture in parts(plan_page(planned()), Picture):
        assert len(picture.alt) > 20 and "nan" not in picture.alt


def test_a_plan_says_itself_in_a_line():
    assert repr(planned()).startswith("Plan(planned, 4 agents, total ")
    assert isinstance(planned(), Plan)
