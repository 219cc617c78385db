"""Proposals side by side, the numbers that matter, and charts for a page that changes."""

import json

import numpy as np
import pytest

from fedaccord import LinearGame, make_plan, share_costs
from fedaccord.charts import Chart, Line
from fedaccord.planning.proposals import propose
from fedaccord.planning.what_if import Changed
from fedaccord.report.html import parts_html
from fedaccord.report.live import chart_options, draw_figures, tradeoff_options
from fedaccord.report.model import Mark, Table
from fedaccord.report.proposals import compare_proposals, list_figures, proposal_page, show_agents

BENEFITS = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
GAME = LinearGame(BENEFITS, [1440, 1440, 930], agents=["University", "City", "Rural"])


@pytest.fixture(scope="module")
def sides():
    found = {}
    for name, game, numbers in (
        ("all", GAME, (0, 1, 2)),
        ("without City", GAME.without(1), (0, 2)),
    ):
        proposal = propose(Changed(game, numbers), game, "stable", time_limit=60)
        found[name] = proposal, proposal.check(proposal.start, 0.95)
    return found


def test_the_numbers_that_matter(sides):
    proposal, found = sides["all"]
    figures = dict(list_figures(found, proposal))
    # 2,100 of 3,810 cases, and 2,100 / 1,931.25 times the least cost.
    assert figures == {
        "samples in all": "2,100",
        "alone, in all": "3,810",
        "saved": "45 %",
        "times the optimal cost": "1.09",
    }


def test_what_fails_saves_nothing(sides):
    proposal, _ = sides["all"]
    found = proposal.check(proposal.put([(0, 200.0)]), 0.95)
    assert dict(list_figures(found, proposal)) == {"samples in all": "2,000"}


def test_who_could_not_go_alone_has_nothing_to_compare_with():
    # University may give 1,300, and would need 1,440 alone.
    game = GAME.replace(limits=[1300, np.inf, np.inf])
    proposal = propose(Changed(game, (0, 1, 2)), game, "stable", time_limit=60)
    found = proposal.check(proposal.start, 0.95)
    assert "saved" not in dict(list_figures(found, proposal))
    assert "Alone it would need 1,440, more than its limit of 1,300" in found.explain(0)


def test_two_proposals_side_by_side(sides):
    parts = list(compare_proposals(sides))
    assert [part.text.partition(":")[0] for part in parts if isinstance(part, Mark)] == [
        "All",
        "Without City",
    ]
    given = next(part for part in parts if isinstance(part, Table))
    rows = {row[0]: row[1:] for row in given.rows}
    assert rows["City"] == (pytest.approx(1200), None, None)
    # University gives 300 in one and 1,440 in the other.
    assert rows["University"][2] == pytest.approx(300 - 1440)
    # Alone with Rural, University gives all that it needs, and Rural nothing.
    assert rows["University"][1] == pytest.approx(1440)


def test_agents_have_a_sentence_each(sides):
    html = parts_html(list(show_agents(sides["all"][1])))
    assert html.count("<li>") == 3 and "No agent envies another." in html


def test_a_page_has_payments_where_there_are_any(sides):
    page = proposal_page(sides["all"][1], share_costs(GAME), command="x")
    assert [section.heading for section in page.sections][-1].startswith("Who pays whom")
    alone = proposal_page(sides["all"][1], None, command="x")
    assert "Who pays whom" not in " ".join(section.heading for section in alone.sections)


def test_parts_are_escaped():
    html = parts_html([Mark("<script>", "bad"), Table("<b>", ("&",), (("<i>",),)), "<img>"])
    assert "<script>" not in html and "<b>" not in html and "<i>" not in html
    assert "&lt;img&gt;" in html and "&lt;i&gt;" in html
    assert "<b>" not in draw_figures([("<b>", "<i>")]).replace("<div><b>", "")


def test_charts_are_plain_values():
    line = Line("a", (1.0, 2.0), (0.5, 0.6), low=(0.4, 0.5), high=(0.6, 0.7))
    chart = Chart("n", "t", "agents", "y", "alt", (line, Line("b", (1.5,), (0.5,))), percent=True)
    options = json.loads(json.dumps(chart_options(chart, str.upper, dark=True)))
    kinds = [one["type"] for one in options["series"]]
    # A line with two intervals, and a single point.
    assert kinds == ["line", "line", "line", "scatter"]
    assert options["xAxis"]["name"] == "AGENTS" and options["yAxis"]["max"] == 1


def test_the_chosen_equilibrium_stands_out():
    plan = make_plan(LinearGame([[1, 1.2], [1.2, 1]], [100, 100]))
    for chosen in (None, 1):
        data = tradeoff_options(plan, chosen, dark=False)["series"][0]["data"]
        stands_out = [one["itemStyle"]["borderWidth"] > 0 for one in data]
        wanted = [one.chosen if chosen is None else n == 1 for n, one in enumerate(plan.tradeoffs)]
        assert stands_out == wanted
        assert np.isfinite([one["value"] for one in data]).all()
