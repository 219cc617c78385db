"""The page and the tables of a proposal to agents of a measured game."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_hospitals import CURVES, pilots

from fedaccord import check, fit_curves, make_plan
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame
from fedaccord.report import check_page, plot_levels
from fedaccord.report.games_chances import (
    ask_three,
    describe_average,
    describe_total,
    list_prospects,
    list_symbols,
)
from fedaccord.report.model import Listing, Mark, Table
from fedaccord.wording import format_samples

NAMES = ("North", "South")
MEASURED = fit_curves(
    pilots(
        names=NAMES,
        goals=[0.8, 0.8],
        curves=CURVES[:2],
        benefits=np.array([[1.0, 0.4], [0.3, 1.0]]),
        repeats=1,
    ),
    resamples=40,
)
PLAN = make_plan(MEASURED)
GIVEN = np.array(PLAN.contributions)


def proposal(*factors, plan=PLAN):
    return check(MEASURED, np.round(GIVEN * factors), plan=plan)


def column(table, head):
    """Return the cells of a column by the name of its row, those of the sums too."""
    place = table.columns.index(head)
    return {row[0]: row[place] for row in (*table.rows, *table.footer) if len(row) > place}


@pytest.mark.parametrize(
    ("factors", "tone", "answers"),
    [
        ((1.0, 1.0), "good", ("probability high enough", "stable")),
        ((1.6, 1.6), "unsure", ("probability high enough", "not stable")),
        ((0.5, 0.5), "bad", ("probability too low", "no agent could give less")),
    ],
)
def test_the_three_answers_are_at_the_head(factors, tone, answers):
    found = proposal(*factors)
    page = check_page(found)
    assert page.tone == tone and len(page.verdict.split()) <= 25
    assert found.verdict == " ".join([page.verdict, *page.sections[0].parts[0].items])
    table = next(part for part in page.sections[0].parts if isinstance(part, Table))
    envied = bool(check(PLAN.game, found.contributions).envy)
    # Of a proposal that fails for another reason, the answers say what was found, and no more.
    fair = "no agent envies another" if tone == "bad" else "envy-free"
    expected = (*answers, "not envy-free" if envied else fair)
    assert tuple(row[2] for row in table.rows) == expected
    # Where a proposal is too small, that no agent could give less is no good news.
    expected_tones = ["bad" if answer.startswith("not ") else "good" for answer in expected]
    if tone == "bad":
        expected_tones = ["bad", "plain", "plain"]
    assert [row[1].tone for row in table.rows] == expected_tones
    failed = {"unsure": "The proposal does not hold: 2 agents could give less. All agents",
              "bad": "The proposal does not hold: all agents", "good": "All agents"}  # fmt: skip
    assert page.verdict.startswith(failed[tone])


def test_envy_has_one_answer_and_envy_without_the_margin_has_names():
    halves = np.array([[1.0, 0.5], [0.5, 1.0]])
    table = pilots(names=NAMES, goals=[0.8, 0.8], curves=[CURVES[0]] * 2, benefits=halves)
    alike = fit_curves(table, resamples=20)
    plan = make_plan(alike)
    # After a change of places, North reaches its goal and misses the plan's target.
    between = (alike.game.alone[0] + plan.game.alone[0]) / 2
    found = check(alike, np.round(between * np.array([1.2, 0.8]) / 1.4), plan=plan)
    assert found.envy == ((0, 1),) and not found.judged.envy
    assert describe_average(found).endswith("Without the margin, North would envy South.")
    assert "no, but" in ask_three(found, found.prospects).rows[2][1].text
    certain = check(alike, np.round(plan.contributions.max() * np.array([3.0, 2.4])), plan=plan)
    assert certain.judged.envy
    assert describe_average(certain).endswith("North envies South.")
    assert "North envies South" in ask_three(certain, certain.prospects).rows[2][1].text


def test_doubts_stand_between_the_verdict_and_the_answers():
    few = fit_curves(pilots(repeats=1, limit=600.0), resamples=10)
    parts = check_page(check(few, np.full(4, 100.0))).sections[0].parts
    rest, head, listing, table = parts[:4]
    assert head == Mark(f"There are {len(few.doubts)} doubts:", "unsure")
    assert listing.items == tuple(doubt.sentence for doubt in few.doubts)
    assert any("is the least likely to reach its goal" in said for said in rest.items)
    assert isinstance(table, Table)


def test_the_table_compares_with_the_plan():
    found = proposal(1.5, 0.9)
    table = list_prospects(found, found.prospects).table("page")
    assert column(table, "gives")["all"] == found.contributions.sum()
    assert column(table, "plan") == {"North": GIVEN[0], "South": GIVEN[1], "all": GIVEN.sum()}
    differences = column(table, "more than the plan")
    assert differences["North"] == np.round(1.5 * GIVEN[0]) - GIVEN[0]
    assert column(table, "P(goal), plan")["all"] == PLAN.everyone.value
    assert column(table, "alone, same target")["South"] == np.ceil(PLAN.game.alone[1] - 1e-9)


def test_an_agent_without_samples_has_no_need_alone_and_adds_to_no_total():
    game = check(MEASURED, GIVEN).game.replace(limits=[np.inf, 0.0])
    found = check(game, [3 * GIVEN.sum(), 0.0])
    for place in ("terminal", "page"):
        shown = column(list_prospects(found, found.prospects).table(place), "alone")
        assert shown["South"] in ("-", None) and shown["all"] in ("-", None)
        assert shown["North"] not in ("-", None)
    assert found.explain("South").endswith("Its limit is 0, so it could not go alone")
    assert "Alone it would need" in found.explain("North")


def test_every_symbol_of_the_table_is_explained():
    found = proposal(1.0, 1.0)
    for place in ("terminal", "page"):
        heads = list_prospects(found, found.prospects).table(place).columns
        said = " ".join(list_symbols(found, found.prospects, place).values()).lower()
        known = {"agent", "goal", "gives", "plan", "± plan", "more than the plan", "envies"}
        for head in set(heads) - known:
            start = head.lower().split(",")[0].removesuffix(" on average")
            assert start in said or start.startswith("p(goal)\nwith"), head


def test_the_terminal_has_how_much_less_each_agent_could_give():
    found = proposal(1.6, 1.6)
    cells = column(list_prospects(found, found.prospects).table("terminal"), "could give\nless by")
    assert (found.could_give_less > 0).all()
    less = [format_samples(spare) for spare in found.could_give_less]
    assert [cells[name] for name in NAMES] == less
    said = list_symbols(found, found.prospects)["less"]
    assert "Could give less by: how many fewer samples" in said
    same = proposal(1.0, 1.0)
    heads = list_prospects(same, same.prospects).table("terminal").columns
    assert not any("less" in head for head in heads) and "less" not in list_symbols(
        same, same.prospects
    )


def test_the_total_says_how_many_more_or_fewer():
    more, same = proposal(1.5, 1.0), proposal(1.0, 1.0)
    assert f"{np.round(1.5 * GIVEN[0]) - GIVEN[0]:,.0f} more than the plan" in describe_total(
        more, more.prospects
    )
    assert "the same as the plan" in describe_total(same, same.prospects)


def test_room_on_average_is_the_margin_only_if_the_plan_leaves_none():
    assert "These spare samples are the safety margin." in describe_average(proposal(1.0, 1.0))
    assert "These spare samples are the safety margin." not in describe_average(proposal(1.6, 1.6))
    assert "fall short of their goals" in describe_average(proposal(0.1, 0.1))


def test_without_a_plan_the_answers_are_on_average():
    found = proposal(1.0, 1.0, plan=None)
    rows = ask_three(found, found.prospects).rows
    assert rows[1][0] == "Could an agent give less?" and rows[1][1].text.startswith("yes")
    assert "plan" not in list_prospects(found, found.prospects).table("terminal").columns


def test_a_page_explains_and_draws():
    page = check_page(proposal(1.2, 0.8))
    assert {picture.name for picture in page.pictures()} >= {"allocations", "levels"}
    assert any(isinstance(part, Listing) for section in page.sections for part in section.parts)
    assert "<svg" in page.html()


def test_the_figure_shows_every_level():
    ax = plot_levels(proposal(1.0, 1.0))
    labels = ax.get_legend_handles_labels()[1]
    assert labels == ["all of it", "75 %", "50 %", "25 %"]
    assert ax._repr_png_().startswith(b"\x89PNG")


def test_an_agent_that_gives_nothing_has_no_probability_with_part_of_it():
    page = check_page(proposal(1.5, 0.0))
    picture = next(one for one in page.pictures() if one.name == "levels")
    first, second = picture.data.rows
    assert second[0] == "South" and second[1] > 0 and second[2:] == (None, None, None)
    assert None not in first
    assert "with 25 %" in picture.alt and "South: " in picture.alt
    assert "with 25 %" not in picture.alt.split("South: ")[1]


def test_a_figure_of_probabilities_needs_some():
    with pytest.raises(InputError, match="knows of no probabilities"):
        plot_levels(check(LinearGame([[1]], [1]), [1]))


def test_a_proposal_of_nothing_has_a_page():
    text = check_page(proposal(0.0, 0.0)).html()
    assert "No agent gives anything" in text


@settings(max_examples=15, deadline=None)
@given(st.tuples(st.integers(0, 3_000), st.integers(0, 3_000)))
def test_any_proposal_can_be_shown(contributions):
    found = check(MEASURED, np.array(contributions, dtype=float), plan=PLAN)
    shown = found._repr_html_()
    assert "nan" not in shown and "inf" not in shown.replace("information", "")
    assert "-0<" not in shown and "−0<" not in shown
