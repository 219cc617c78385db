"""The page of a plan says what the plan says: the verdict, every number, and nothing else."""

import csv
import dataclasses
import io
import re
import sys
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from known_hospitals import NAMES, pilots
from report.plans import HOSTILE

from fedaccord.check import check
from fedaccord.games.chances import Estimate, Estimates
from fedaccord.games.linear import LinearGame
from fedaccord.measurement.diagnostics import Doubt
from fedaccord.measurement.fit import fit_curves
from fedaccord.planning.plan import make_plan
from fedaccord.planning.result import Certainty, Outcome, Plan
from fedaccord.report.games_page import check_page
from fedaccord.report.html import table_csv
from fedaccord.report.model import Card, Fold, Listing, Mark, Picture, Section, Table
from fedaccord.report.plan import list_doubts, show_plan
from fedaccord.report.plan_alternatives import describe_tradeoffs
from fedaccord.report.plan_contributions import (
    describe_contributions,
    describe_falls,
    list_certainties,
    list_contributions,
)
from fedaccord.report.plan_page import (
    list_symbols,
    plan_page,
    plot_learning,
    plot_prospects,
    plot_tradeoffs,
)
from fedaccord.wording import format_interval, format_samples

pytest.importorskip("matplotlib")

FOUND = "How the numbers were found"
TWINS = LinearGame([[1.0, 1.1], [1.1, 1.0]], [100.0, 95.0], agents=["Left", "Right"])


@cache
def measured(names=NAMES):
    return fit_curves(pilots(names=names), resamples=60)


@cache
def planned():
    return make_plan(measured())


def parts(page, kind):
    """List the parts of a kind, in order."""
    found, waiting = [], [*page.head, *page.sections]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Section | Fold):
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
    assert f"{page.verdict} {page.head[0]}" == planned().verdict
    assert page.verdict.count(". ") == 1 and len(page.verdict.split()) <= 25
    cards = parts(page, Card)
    assert [card.title for card in cards] == list(NAMES)
    for agent, card in enumerate(cards):
        said = planned().explain(agent)
        assert all(text in said for word, text in card.entries[:3])


def test_shares_on_the_page_are_those_of_the_plan():
    plan = planned()
    page = plan_page(plan)
    found = rows(table(page, "Samples that each agent gives in the plan"))
    bare = rows(table(page, "Samples that each agent gives without a safety margin"))
    for agent, name in enumerate(NAMES):
        assert float(found[name][2]) == plan.contributions[agent]
        # What one would need alone is rounded up: with one sample less it falls short.
        for shown, need in ((found[name][5], plan.game.alone), (bare[name][1], plan.bare.alone)):
            assert float(shown) - 1 < need[agent] <= float(shown)
    assert float(found["all"][2]) == plan.contributions.sum()
    assert float(found["all"][8]) == pytest.approx(plan.everyone.value, abs=5e-3)


def test_accuracies_and_chances_on_the_page_are_those_of_the_plan():
    plan = planned()
    found = rows(table(plan_page(plan), "Accuracies under the plan"))
    for agent, name in enumerate(NAMES):
        assert float(found[name][1]) == plan.goals[agent]
        assert float(found[name][3]) == pytest.approx(plan.accuracy.values[agent], abs=5e-4)
        assert float(found[name][-1]) == pytest.approx(plan.satisfied[agent], abs=0.01)
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
    """Give a plan with these doubts, whatever it has of its own."""
    found = dataclasses.replace(plan.measurement)
    vars(found)["doubts"] = doubts
    # Without an interval of its total, a plan has no doubt about its division.
    total = Estimate(plan.total.value)
    return dataclasses.replace(plan, measurement=found, total=total, reseeded=None)


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
    for heading in ("What accuracy each agent can expect", "The learning curves"):
        assert heading not in headings(page)
    assert any("Labels are all that counts." in p.items for p in parts(page, Listing))
    assert any(mark.text.startswith("Nothing was measured") for mark in parts(page, Mark))


def test_without_a_plan_the_page_says_which_goals_are_out_of_reach():
    plan = make_plan(measured().with_goals([0.97, 0.82, 0.8, 0.8]))
    page = plan_page(plan)
    assert page.tone == "bad" and headings(page)[0] == "What stands in the way"
    found = rows(table(page, "Goals, and what can be reached"))
    assert found["University"][2] == "out of reach" and found["City"][2] == "within reach"
    # One number has one rounding: down, in the verdict, the page and the terminal alike.
    (missed,) = plan.unreachable
    for hair in (1e-4, 6e-4, 9e-4):
        nearest = np.array(plan.nearest.values)
        nearest[missed.agent] = 0.88 + hair
        near = dataclasses.replace(
            plan,
            nearest=Estimates(nearest),
            unreachable=(dataclasses.replace(missed, nearest=0.88 + hair),),
        )
        assert "it reaches 0.880." in near.verdict
        assert (
            rows(table(plan_page(near), "Goals, and what can be reached"))["University"][3]
            == "0.88"
        )
        terminal = next(part for part in show_plan(near) if isinstance(part, Table))
        assert rows(terminal)["University"][2] == "0.880"
    assert "Who gives how much" not in headings(page)
    # Of a plan that there is not, nothing is told.
    found = next(part for part in parts(page, Section) if part.heading == FOUND)
    assert len(found.parts) == 1 and "The plan is" not in page.html()
    told = next(part for part in parts(plan_page(planned()), Section) if part.heading == FOUND)
    assert "The plan is an equilibrium" in told.parts[1]


def test_equilibria_are_told_with_who_gives_and_who_envies():
    plan = make_plan(TWINS)
    page = plan_page(plan)
    found = table(page, "The equilibria")
    assert len(found.rows) == len(plan.tradeoffs) == 3
    assert [isinstance(row[0], Mark) for row in found.rows] == [t.chosen for t in plan.tradeoffs]
    assert "tradeoffs" in [picture.name for picture in page.pictures()]


def test_the_plan_is_called_the_cheapest_or_the_one_that_deters_as_it_is():
    cheap, firm = make_plan(TWINS), make_plan(TWINS, prefer="firm")
    assert describe_tradeoffs(cheap).startswith("3 stable plans were found. This is the cheapest.")
    assert "--prefer firm" in describe_tradeoffs(cheap)
    assert "This is the one in which defectors lose most." in describe_tradeoffs(firm)
    assert "--prefer" not in describe_tradeoffs(firm, hint=False)


def test_a_plan_with_margins_is_said_to_be_the_cheapest_for_equal_ones():
    plan = make_plan(measured())
    most = NAMES[int(np.argmax(plan.contributions))]
    said = f"for {most}, which gives most, may make the plan cheaper"
    assert describe_tradeoffs(plan).endswith(f"{said}: try --limit.")
    assert describe_tradeoffs(plan, hint=False).endswith(f"{said}.")
    assert "cheaper" not in describe_tradeoffs(make_plan(TWINS))


def test_a_lower_limit_is_suggested_only_for_an_agent_that_can_give_less():
    plan = make_plan(measured())
    given, most = plan.contributions, int(np.argmax(plan.contributions))
    limited = plan.game.replace(limits=np.full(plan.size, given.max() + 1))
    said = describe_tradeoffs(dataclasses.replace(plan, game=limited))
    assert f"A smaller limit for {NAMES[most]}, which gives most" in said
    full = plan.game.replace(limits=given)
    assert "cheaper" not in describe_tradeoffs(dataclasses.replace(plan, game=full))
    missed = dataclasses.replace(plan, game=limited, outcome=Outcome.LESS_SURE)
    assert "cheaper" not in describe_tradeoffs(missed)
    fixed = plan.game.replace(minimums=np.where(given == given.max(), given, 0.0))
    assert "cheaper" not in describe_tradeoffs(dataclasses.replace(plan, game=fixed))


def test_an_agent_whose_limit_lowers_its_target_is_not_said_to_have_the_same_margin():
    given, noise = planned().contributions, measured().noise("true")
    limits = np.where(given == given.max(), given // 2, np.inf)
    table = dataclasses.replace(measured().table, limits=limits)
    plan = make_plan(dataclasses.replace(measured(), table=table))
    agent = int(given.argmax())
    assert plan.contributions[agent] == limits[agent]
    multiples = plan.margins / noise
    assert multiples[agent] < 0.9 * plan.z
    assert np.delete(multiples, agent) == pytest.approx(np.full(plan.size - 1, plan.z))
    most = int(np.argmax(plan.contributions))
    lower = f" A limit for {NAMES[most]}, which gives most, may make the plan cheaper: try --limit."
    assert describe_tradeoffs(plan).endswith(
        f"Each agent's safety margin is {plan.z:.2f} times the scatter of its runs, but smaller "
        f"for {NAMES[agent]}, which cannot give more.{lower * (most != agent)}"
    )
    name = NAMES[agent]
    moves = "{} gives its limit, so the others may have to give more. Ask {} to show why it"
    for place in ("terminal", "page"):
        assert moves.format(name, name) in " ".join(describe_contributions(plan, place))
        assert "gives its limit" not in " ".join(describe_contributions(planned(), place))
    margin = dict(list_symbols(plan))["safety margin"]
    assert margin.endswith("; less for an agent that cannot give more")
    assert "; less" not in dict(list_symbols(planned()))["safety margin"]
    for one, below in ((plan, True), (planned(), False)):
        method = next(s for s in plan_page(one).sections if s.heading.startswith("How the numbers"))
        text = " ".join(map(str, method.parts))
        assert ("the same for all agents below their limits" in text) == below


def test_a_terminal_says_once_what_counts_as_reached_and_how_sure_the_total_is():
    said = [part for part in show_plan(planned()) if isinstance(part, str)]
    assert " ".join(said).count("--judged measured") == 1
    measured_once = make_plan(measured(), judged="measured")
    said = " ".join(describe_contributions(measured_once, "terminal"))
    assert "when one measurement reaches it." in said and "--judged" not in said
    (total,) = list_contributions(planned()).table("terminal").footer
    found = planned().total
    assert total[2] == format_interval(
        planned().contributions.sum(), found.low, found.high, format_samples
    )


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
    assert "the agents that give most" in str(page.sections)
    text = "".join(str(part) for part in show_plan(plan))
    assert "agent by agent" not in text


def test_of_many_agents_those_that_give_most_have_a_column():
    plan = planned()
    # Of eight agents the last two give, and one more where all have to be surer.
    names = tuple(f"agent {n}" for n in range(8))
    given = np.array([0.0] * 6 + [30, 40.0])
    surer = np.array([0.0, 90] + [0] * 4 + [0, 40])
    many = dataclasses.replace(
        plan,
        game=LinearGame(np.eye(8), np.full(8, 100.0), agents=names),
        contributions=given,
        certainties=(Certainty(0.9, given), Certainty(0.99, surer)),
    )
    heads = list_certainties(many).table("page").columns
    assert heads[2:-1] == ("agent 1", "agent 7", "agent 6")


def test_of_many_agents_those_that_give_most_have_a_curve(monkeypatch):
    monkeypatch.setattr(sys.modules[plan_page.__module__], "CURVES", 1)
    plan = dataclasses.replace(planned(), contributions=np.array([0.0, 10, 300, 20]))
    titles = [picture.title for picture in parts(plan_page(plan), Picture)]
    assert [title for title in titles if "curve of" in title] == [
        f"The learning curve of {plan.name(2)}"
    ]


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


# The head of the page.


def test_doubts_stand_next_to_the_verdict_and_before_every_section():
    doubt = Doubt(0, "poor-fit", "The curve of University does not fit.")
    page = plan_page(with_doubts(planned(), doubt))
    assert [type(part) for part in page.head] == [str, Mark, Listing, Table]
    assert "The curve of University does not fit." in page.head[2].items


def test_the_three_questions_are_answered_as_on_the_page_of_a_check():
    plan = with_doubts(planned())
    rest, questions = plan_page(plan).head
    assert isinstance(rest, str)
    # The plan before it was rounded may be a hair less sure than was asked.
    whole = check(plan.game.replace(strategies="integer"), plan.contributions)
    checked = table(check_page(whole), "The three questions")
    assert (questions.caption, questions.columns[:2]) == (checked.caption, checked.columns[:2])
    assert questions.rows[0][2] == "probability high enough"
    assert [row[2] for row in questions.rows[1:]] == [row[2] for row in checked.rows[1:]]
    assert f"probability {plan.everyone.value:.2f}" in questions.rows[0][1].text


def test_envious_agents_are_named_in_the_answer():
    (*_, questions) = plan_page(make_plan(TWINS)).head
    _, mark, verdict = questions.rows[2]
    envious = next(t.envious for t in make_plan(TWINS).tradeoffs if t.chosen)
    assert envious and mark.text == f"yes: {TWINS.name(envious[0])}" and verdict == "not envy-free"


def test_without_a_plan_no_question_is_answered_with_yes():
    plan = make_plan(measured().with_goals([0.97, 0.82, 0.8, 0.8]))
    (*_, questions) = plan_page(plan).head
    assert [mark.tone for _, mark, _ in questions.rows] == ["bad"] * 3


# Like with like.


def test_the_chart_compares_the_plan_with_going_alone_for_the_same_target():
    plan = planned()
    picture = plan_page(plan).pictures()[0]
    assert picture.data.columns == ("agent", "alone, same target", "plan")
    given = np.array([row[1:] for row in picture.data.rows])
    assert given[:, 0] == pytest.approx(np.ceil(plan.game.alone - 1e-6))
    assert given[:, 1] == pytest.approx(plan.contributions)


def test_the_plans_of_the_theory_are_folded_away_and_last_on_a_terminal():
    page = plan_page(planned())
    (fold,) = parts(page, Fold)
    assert fold.parts[1].columns == (
        "agent",
        "alone, for its goal",
        "from",
        "to",
        "optimal",
        "stable",
        "envy-free",
    )
    heads = [part.columns for part in show_plan(planned()) if isinstance(part, Table)]
    assert heads[0] == ("agent", "goal", "plan", "alone, same target", "P(goal)")
    assert heads[-1] == ("agent", "alone, for its goal", "optimal", "stable", "envy-free")
    assert sum("optimal" in head for head in heads) == 1


def test_every_symbol_of_the_tables_is_in_the_legend():
    page = plan_page(planned())
    legend = {row[0] for row in table(page, "What they mean").rows}
    known = " ".join(legend)
    heads = {head for found in parts(page, Table) for head in found.columns}
    for symbol in ("P(goal)", "P(all)", "target", "alone, same target", "stable", "envy-free"):
        assert symbol in known and any(symbol in head for head in heads | {found.caption
            for found in parts(page, Table)})  # fmt: skip


def test_brackets_are_spoken_of_only_where_there_are_some():
    plan = planned()
    shown = [part for part in show_plan(plan) if isinstance(part, str)]
    assert any("Brackets show" in part for part in shown)
    said = [item for part in parts(plan_page(plan), Listing) for item in part.items]
    assert not any("In brackets" in item for item in said)
    assert not any("brackets" in str(part) for part in show_plan(make_plan(TWINS)))


def test_numbers_of_samples_are_whole_and_never_minus_nothing():
    plan = planned()
    for part in show_plan(plan):
        if isinstance(part, Table) and "plan" in part.columns:
            for row in (*part.rows, *part.footer):
                for cell in row[2:4]:
                    assert re.fullmatch(r"[\d,]+( \[[\d,]+, [\d,∞]+\])?", str(cell))
    text = " ".join(str(part) for part in show_plan(plan))
    assert not re.search(r"(?<![\w.])[-−]0(?![.\d])", text)


def test_the_cards_are_printed_whole_and_as_high_as_their_text():
    css = files("fedaccord.report").joinpath("page.css").read_text(encoding="utf-8")
    printed = css[css.index("@media print") :]
    rule = re.search(r"\.card\{([^}]*)\}", printed)[1]
    assert "break-inside:avoid" in rule
    assert "height" not in rule
    assert '<article class="card"><h3>University</h3>' in plan_page(planned()).html()


def test_a_probability_that_no_plan_has_is_not_called_the_plan():
    plan = planned()
    asked = plan.options["probability"]
    rows = tuple(
        dataclasses.replace(one, contributions=None) if one.probability == asked else one
        for one in plan.certainties
    )
    for certainties, word in ((plan.certainties, "the plan"), (rows, "requested")):
        found = list_certainties(dataclasses.replace(plan, certainties=certainties))
        marks = [row[0] for row in found.table("page").rows if isinstance(row[0], Mark)]
        assert [mark.text for mark in marks] == [f"0.95, {word}"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # All rise, or fall by what rounding does.
        ([[100, 50, 0], [110, 49, 0], [900, 60, 0], [895, 60, 9]], ""),
        (
            [[100, 50, 20], [150, 40, 30]],
            "City gives less at 0.70 than at 0.60: the others' samples then replace more of its "
            "own.",
        ),
        (
            [[100, 50, 20], [190, 40, 10]],
            "City and Rural give less at 0.70 than at 0.60: the others' samples then replace more "
            "of their own.",
        ),
        # A plan that does not exist is passed over, and the larger of two falls is said.
        (
            [[100, 50, 0], [110, 40, 0], None, [0, 190, 0]],
            "University gives less at 0.90 than at 0.70: the plan for 0.90 has fewer contributors.",
        ),
        (
            [[100, 50, 0], [0, 50, 90]],
            "University gives less at 0.70 than at 0.60: the plan for 0.70 has other contributors.",
        ),
        (
            [[100, 50, 0], [40, 50, 90]],
            "University gives less at 0.70 than at 0.60: the plan for 0.70 has more contributors.",
        ),
        ([None, [100, 50, 0]], ""),
    ],
)
def test_an_agent_that_gives_less_where_all_are_surer_gets_a_sentence(rows, said):
    plan = planned()
    certainties = tuple(
        Certainty(0.6 + n / 10, None if row is None else np.array([*row, 70.0]))
        for n, row in enumerate(rows)
    )
    assert describe_falls(dataclasses.replace(plan, certainties=certainties)) == said


def test_a_sentence_on_falls_is_below_the_table_on_the_terminal_and_the_page():
    plan = planned()
    first, *rest = plan.certainties
    more = dataclasses.replace(first, contributions=2 * rest[0].contributions)
    for certainties, times in ((plan.certainties, 0), ((more, *rest), 1)):
        changed = dataclasses.replace(plan, certainties=certainties)
        said = [part for part in show_plan(changed) if isinstance(part, str)]
        assert sum(" less at 0.60 than at 0.50: " in part for part in said) == times
        assert plan_page(changed).html().count(" less at 0.60 than at 0.50: ") == times


def test_a_plan_that_misses_the_requested_probability_is_marked_as_such():
    limited = fit_curves(pilots(limit=1_000.0, validation=400), resamples=60)
    plan = make_plan(limited, probability=0.999)
    assert plan.outcome is Outcome.LESS_SURE
    page = plan_page(plan)
    assert page.tone == "bad"
    warning = page.head[0]
    assert warning.tone == "bad" and "misses the requested probability" in warning.text
    assert warning.text.endswith("instead of 0.999.")
    assert "The plan is one row of this table" not in page.html()


def test_the_table_of_giving_less_has_what_it_does_to_the_others():
    plan = planned()
    found = table(plan_page(plan), "P(goal) of an agent that alone gives")
    assert found.columns[-1] == "P(all others) with 25 %"
    shown = dict(zip((row[0] for row in found.rows), (row[-1] for row in found.rows), strict=True))
    for agent in range(plan.size):
        if plan.contributions[agent]:
            value = min(float(plan.others[agent]), 0.99)
            assert shown[plan.name(agent)] == pytest.approx(value, abs=0.0051)
    assert "others" in {column for part in show_plan(plan) if isinstance(part, Table)
                                for column in part.columns}  # fmt: skip
    assert plan.to_dict()["others_if_one_gives_least"] == plan.others.tolist()


def test_the_marks_of_the_table_of_giving_less_are_explained_below_it():
    page = plan_page(planned())
    section = next(s for s in page.sections if s.heading.startswith("What an agent gains"))
    place = next(n for n, part in enumerate(section.parts) if isinstance(part, Table))
    legend = section.parts[place + 1]
    assert "A cross marks a probability of 0.50 or more" in legend
    assert "A tick marks 0.10 or less" in legend
    marks = [cell for row in section.parts[place].rows for cell in row if isinstance(cell, Mark)]
    for mark in marks:
        value = float(mark.text.removeprefix("above ").removeprefix("below "))
        limit = {"bad": value >= 0.495, "good": value <= 0.105}
        assert limit.get(mark.tone, 0.095 <= value <= 0.505)


@pytest.mark.parametrize(
    ("low", "high", "total", "doubt"),
    [
        ([10, 20], [90, 95], (90, 120), "The total is fairly certain, but its division"),
        ([10, 20], [90, 95], (40, 160), "Both the total and its division"),
        ([45, 45], [60, 60], (90, 120), None),  # so is the division
        # at a limit
        ([50, 0], [70, 95], (90, 120), "The total is fairly certain, but its division"),
        ([50, 38], [70, 41], (90, 120), None),
    ],
)
def test_an_unsure_division_is_a_doubt_whether_or_not_the_total_is_certain(low, high, total, doubt):
    ends = (np.array(part, dtype=float) for part in (low, high))
    real, known = Estimates(np.array([60.0, 40.0]), *ends), Estimate(100.0, *total)
    plan = dataclasses.replace(with_doubts(planned()), real=real, total=known)
    assert bool(plan.unsure_agents) is (doubt is not None)
    named = [NAMES[i] for i in plan.unsure_agents]
    assert named == [n for n, wide in zip(NAMES, np.subtract(high, low) > [60, 40], strict=False)
                     if wide]  # fmt: skip
    for said in (list_doubts(plan), [one["sentence"] for one in plan.to_dict()["doubts"]]):
        found = [one for one in said if "division" in one]
        assert len(found) == (doubt is not None)
        assert not found or (found[0].startswith(doubt) and all(n in found[0] for n in named))
    nothing = dataclasses.replace(plan, real=Estimates(real.values), total=Estimate(100.0))
    assert not nothing.unsure_agents
