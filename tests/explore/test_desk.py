"""Answers of the app without a browser."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord import Allocation, LinearGame, check, fit_curves, solve_stable
from fedaccord.check import Answer
from fedaccord.equilibria.solve import solve_all
from fedaccord.errors import InputError
from fedaccord.explore.desk import KEPT, Desk, Subject
from fedaccord.explore.state import State
from fedaccord.explore.take import take_away
from fedaccord.explore.view import VIEWS, make_view, show_payments
from fedaccord.games.files import read_game
from fedaccord.measurement.pilots import PilotTable
from fedaccord.planning.members import drop_unknown
from fedaccord.report.html import parts_html
from fedaccord.report.kept import make_kept_section
from fedaccord.report.model import Mark, Table
from fedaccord.report.proposal_offers import describe_kept_probability, list_offers
from fedaccord.report.proposal_plans import LOCKED, LOST
from fedaccord.report.proposal_verdicts import describe_certainty
from fedaccord.report.renaming import Renaming

GAME = LinearGame(
    [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]],
    [1440, 1440, 930],
    agents=("University", "City", "Rural"),
)


def test_a_plan_stands_though_there_is_none_to_compare_with(monkeypatch):
    desk = Desk(Subject(GAME))
    answer = desk._answer

    def refuse(problem):
        if not problem.left:
            raise InputError("there is no plan with all")
        return answer(problem)

    monkeypatch.setattr(desk, "_answer", refuse)
    found = desk.answer(State.read("left=1"))
    assert found.whole is None and found.contributions == pytest.approx([1440, 0])


def test_answers_are_forgotten_when_there_are_many():
    desk = Desk(Subject(GAME))
    for number in range(KEPT + 20):
        desk.answer(State.read(f"keep=0:{number / 1000}"))
    assert len(desk._answers) <= KEPT


@pytest.mark.parametrize("share", [0.29, 0.57, 0.58, 0.25])
def test_a_part_of_whole_samples_is_what_it_says(share):
    whole = GAME.replace(strategies="integer")
    desk = Desk(Subject(whole))
    state = State.read(f"give=0:100&cut=0:{share}")
    assert desk.answer(state).put(state)[0] == np.floor(round(100 * share, 6))


def test_an_audit_that_fails_is_not_said_to_be_stopped(tmp_path):
    watch = pytest.importorskip("fedaccord.explore.watch")
    auditor = watch.Auditor(str(tmp_path / "x.sqlite"), ["audit", str(tmp_path / "none.toml")])
    auditor.resume()
    auditor._process.wait(60)
    said = watch.Watch(auditor, State())._describe(())
    assert "failed (exit code 2)" in said and "stopped" not in said


@pytest.fixture(scope="module")
def measured():
    return Desk(Subject(fit_curves(pilots(), resamples=40)))


@pytest.mark.parametrize(("query", "size"), [("left=1", 3), ("like=2", 5), ("left=0&like=0", 4)])
def test_a_plan_with_other_members_is_as_well_known_as_one_with_all(measured, query, size):
    state = State.read(query)
    parts = list(VIEWS["plans"](measured, state))
    assert "There are no intervals, because there are no pilots." not in parts
    heads = next(
        p for p in parts if isinstance(p, Table) and "plan, and would" in p.caption
    ).columns
    assert "P(goal)" in heads and "alone, same target" in heads
    # It has the probability that was asked for.
    for asked in (0.9, 0.95, 0.98):
        sure = state.put(probability=asked)
        found = measured.answer(sure)
        assert len(found.contributions) == size
        verdict = make_view(measured, found, sure).verdict
        assert "does not hold" not in verdict.text and verdict.tone != "bad"
        assert found.plan.everyone.value >= asked


def take(desk, query):
    """Return the view of a state, and the label and the view of each state that it offers."""
    state = State.read(query)
    view = make_view(desk, desk.answer(state), state)
    offered = [(one.label, State.read(state.put(**one.changes).query)) for one in view.offers]
    return view, [(label, s, make_view(desk, desk.answer(s), s)) for label, s in offered]


@pytest.fixture(scope="module")
def network(request):
    path = request.config.rootpath / "docs/how-to/network/pilots.csv"
    return Desk(Subject(fit_curves(PilotTable.load(path))))


@pytest.mark.parametrize("query", ["probability=0.9999", "limit=0:800,1:200,2:600&probability=.99"])
def test_the_highest_probability_is_offered_and_reached(network, query):
    view, ((label, state, taken),) = take(network, query)
    assert view.verdict.tone == "bad" and taken.verdict.tone != "bad" and not taken.offers
    assert f"Plan for {state.probability:g}, the highest" in label
    assert "o stable plan reaches the required" in view.verdict.text
    assert f"The highest probability found is {state.probability:g}." in parts_html(view.folds)
    assert network.answer(state).plan.everyone.value >= state.probability
    # One more in the last digit is too much.
    digits = len(f"{state.probability:g}") - 2
    more = state.put(probability=state.probability + 0.1**digits)
    # No plan is certain.
    assert (
        more.probability > 1 - 1e-9 or network.answer(more).plan.everyone.value < more.probability
    )


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("goal=0:0.99", ["Lower the goal of Harbour to "]),
        ("goal=0:0.9&limit=0:500", ["Lower the goal of Harbour", "Raise the limit of Harbour"]),
        ("limit=0:300,1:100,2:300", ["Lower the goals of Harbour, Hill and Mill"]),
    ],
)
def test_changes_that_make_a_plan_possible_are_offered(network, query, labels):
    view, offers = take(network, query)
    assert view.verdict.tone == "bad" and len(offers) == len(labels)
    for (label, state, taken), wanted in zip(offers, labels, strict=True):
        assert label.startswith(wanted) and taken.verdict.tone != "bad"
        assert network.answer(state).plan.everyone.value >= 0.95


def test_a_locked_agent_is_unlocked_if_it_has_to_give_more():
    _, offers = take(Desk(Subject(GAME)), "lock=1:200")
    assert [label for label, *_ in offers] == [
        "Lower the requirement of City to 992",
        "Unlock City, with a limit of 1,200",
    ]
    assert all(view.verdict.tone == "good" for *_, view in offers)


def test_the_plan_of_agents_that_keep_their_data_is_offered_with_its_probability(network):
    _, ((label, state, taken),) = take(network, "keep=0:1")
    given = network.answer(state).put(state)
    found = network.check(network.answer(state), state)
    assert given[0] == 0 and (given == np.round(given)).all()
    said = f"probability {found.everyone.value:.2f}"
    assert label == f"Take the plan for agents that keep their data ({said})"
    # The table says the same, and nothing is offered once the plan is taken.
    assert f"reach their goals with {said}." in parts_html(VIEWS["members"](network, state))
    assert f"with {said}" in taken.verdict.text and not taken.offers


@pytest.mark.parametrize("query", ["", "plan=optimal", "keep=0:1", "keep=0:1&give=0:0"])
def test_the_plans_and_bounds_on_the_screen_are_those_of_the_saved_game(network, tmp_path, query):
    state = State.read(query)
    answer, path = network.answer(state), tmp_path / "game.json"
    answer.save_game(path, answer.put(state), state.keep)
    shown, printed = network.solve_each(state), solve_all(read_game(path))
    for name, solution in shown.solutions.items():
        assert solution.contributions.tolist() == printed.solutions[name].contributions.tolist()
        assert solution.bounds == printed.solutions[name].bounds


@pytest.mark.parametrize("given", ["", "&give=0:0", "&give=0:0,1:301,2:865"])
@pytest.mark.parametrize("worth", [1, 0.5])
def test_a_saved_game_counts_what_agents_keep(network, tmp_path, given, worth):
    state = State.read(f"keep=0:{worth}{given}")
    answer = network.answer(state)
    found, path = network.check(answer, state), tmp_path / "game.json"
    answer.save_game(path, answer.put(state), state.keep)
    again = check(read_game(path), answer.put(state))
    assert again.everyone.value == pytest.approx(found.everyone.value, abs=1e-6)
    assert again.feasible is found.feasible
    assert solve_stable(read_game(path)).contributions.tolist() == [0, 301, 865]


def test_a_saved_game_without_pilots_counts_what_agents_keep(tmp_path):
    state, path = State.read("keep=1:1"), tmp_path / "game.json"
    answer = Desk(Subject(GAME)).answer(state)
    answer.save_game(path, answer.find_kept_plan(), state.keep)
    assert check(read_game(path), answer.find_kept_plan()).stable is Answer.TRUE
    answer.save_game(path, answer.start, state.keep)
    assert check(read_game(path), answer.start).spare.tolist() == pytest.approx([0, 1200, 0])


def test_the_plan_of_agents_that_keep_their_data_is_not_called_one_that_fails(network):
    state = State.read("keep=0:1&give=0:0,1:301,2:865")
    view = make_view(network, network.answer(state), state)
    assert view.verdict.tone == "unsure"
    assert view.verdict.text == (
        "This is the stable plan for agents that keep their data. "
        "All agents reach their goals with probability 0.92 instead of 0.95."
    )
    said = parts_html(VIEWS["members"](network, state))
    assert "does not hold" not in said and "The numbers shown are the plan for" in said
    other = parts_html(VIEWS["members"](network, State.read("keep=0:1&give=0:700")))
    assert "What follows is about the plan, and not about the numbers shown." in other


def test_a_plan_that_leaves_those_that_keep_their_data_short_is_not_offered():
    desk = Desk(Subject(GAME.replace(limits=[300, 1200, 600])))
    # With no more than this, all agents need each other's samples, and then none gives any.
    view, offers = take(desk, "keep=0:1,1:1,2:1")
    assert view.verdict.tone == "bad" and not offers
    assert desk.answer(State.read("keep=0:1,1:1,2:1")).kept.rest.contributions.tolist() == [0, 0, 0]


def test_why_the_plan_of_agents_that_keep_their_data_has_no_probability():
    desk = Desk(Subject(GAME))
    _, ((label, state, taken),) = take(desk, "keep=0:1")
    assert label == "Take the plan for agents that keep their data"
    # By hand: City and Rural give for themselves, with 0.1 of the other's samples.
    rural = (930 - 144) / 0.99
    wanted = [0, 1440 - 0.1 * rural, rural]
    assert desk.answer(state).put(state).tolist() == pytest.approx(wanted)
    assert taken.verdict.tone == "good"
    said = "A game without pilots has no probabilities, so there is none for the last column."
    assert said in parts_html(VIEWS["members"](desk, state))
    # If no plan exists for them, there is nothing to take.
    state, none = State.read("keep=0:1"), solve_stable(GAME.replace(limits=[1, 1, 1]))
    answer = desk.answer(state)
    lacking = replace(answer, kept=replace(answer.kept, stable=none, rest=None))
    found = desk.check(answer, state)
    assert not list(list_offers(lacking, found, state))
    (said,) = describe_kept_probability(lacking, found, state)
    assert said == "So there is no plan for them to take, and no probability."


def test_payments_of_another_plan_than_the_one_shown_say_so_in_the_heading():
    desk = Desk(Subject(GAME))
    for query, heading in {
        "plan=payments": "Who pays whom",
        "plan=payments&give=0:100": "Who pays whom in the optimal plan",
        "": "Who pays whom in the optimal plan",
        "lock=0:500&give=1:9": "Who pays whom in the optimal plan with the lock",
        "lock=0:300,1:1200&give=2:9": "Who pays whom in the optimal plan with the locks",
        # Where the numbers shown are those of the optimal plan, they have the payments.
        "lock=1:500": "Who pays whom",
        "plan=optimal": "Who pays whom",
    }.items():
        parts = list(VIEWS["payments"](desk, State.read(query)))
        (first,) = [p.heading for p in parts if getattr(p, "heading", "").startswith("Who pays")]
        assert first == heading


# Five agents that need parts of samples of each other: elevenths, thirteenths and more.
FIVE = LinearGame(
    [
        [1, 0.8, 0.5, 0.3, 0.4],
        [0.8, 1, 0.5, 0.3, 0.4],
        [0.5, 0.5, 1, 0.6, 0.2],
        [0.3, 0.2, 0.6, 1, 0.7],
        [0.4, 0.4, 0.1, 0.7, 1],
    ],
    [1500, 1500, 1000, 1200, 600],
    agents=("Abbey", "Birch", "Cedar", "Dale", "Elm"),
    limits=[1500, 1500, 900, 1300, 500],
    costs=[1, 1, 2, 1, 3],
)


@pytest.fixture(scope="module")
def five():
    return Desk(Subject(FIVE))


@pytest.mark.parametrize("query", ["", "keep=3:1", "keep=3:1&taken", "like=3", "lock=0:850"])
def test_saved_contributions_hold_where_those_on_the_screen_do(five, tmp_path, query):
    state = State.read(query.removesuffix("&taken"))
    if query.endswith("taken"):
        (offer,) = make_view(five, five.answer(state), state).offers
        # What a button takes is an address first.
        state = State.read(state.put(**offer.changes).query)
    answer, renaming = five.answer(state), Renaming(five.subject.words, five.subject.names)
    for kind in ("plan.csv", "game.json"):
        (tmp_path / kind).write_bytes(take_away(five, answer, state, renaming, kind))
    saved = Allocation.load(tmp_path / "plan.csv")
    assert saved.contributions.tolist() == answer.put(state).tolist()
    found, shown = check(read_game(tmp_path / "game.json"), saved), five.check(answer, state)
    assert found.answers == shown.answers and found.feasible is Answer.TRUE
    assert {i for i, _ in found.envy} == {i for i, _ in shown.envy}


def test_a_locked_number_and_an_address_have_all_digits(five):
    start = five.answer(State()).start
    assert not (start == np.round(start, 6)).all()
    lock = State().put_number("lock", 0, float(start[0]))
    again = State.read(lock.query)
    assert again == lock and again.lock[0][1] == start[0]


def test_the_table_of_kept_data_lists_what_the_button_takes(five):
    state = State.read("keep=3:1")
    answer = five.answer(state)
    (offer,) = make_view(five, answer, state).offers
    table = next(p for p in make_kept_section(answer.kept).parts if isinstance(p, Table))
    listed = [row[table.columns.index("stable if they keep")] for row in table.rows]
    # By hand: Abbey and Birch give 10,000 / 13 each, and Cedar 3,000 / 13.
    assert listed == pytest.approx([10_000 / 13] * 2 + [3_000 / 13, 0, 0], abs=0.01)
    assert [number for _, number in offer.changes["give"]] == pytest.approx(listed, abs=0.01)
    assert answer.kept.responses[0] == answer.start[0]


@pytest.mark.parametrize(
    "query", ["lock=2:750", "lock=2:750&limit=3:850", "limit=3:850&lock=2:750"]
)
def test_an_agent_below_its_limit_is_not_carried(five, query):
    state, plain = State.read(query), State.read("lock=2:750")
    answer = five.answer(state)
    assert answer.start[3] < 500
    view = make_view(five, answer, state)
    assert view.verdict == make_view(five, five.answer(plain), plain).verdict
    assert "carry" not in str(view.verdict) and view.verdict.tone == "good"


def test_twins_envy_each_other_and_a_tie_of_numbers_with_dust_is_decided(five):
    like = five.check(five.answer(State.read("like=3")), State.read("like=3"))
    assert (like.envy, like.borderline) == (((5, 3),), ())
    # By hand: City's 703.125 + 0.6 * 1,228.125 are just the 1,440 that University needs.
    optimal, desk = State.read("plan=optimal"), Desk(Subject(GAME))
    found = desk.check(desk.answer(optimal), optimal)
    assert (0, 1) in found.envy and not found.borderline


def test_what_is_enough_is_rounded_up(five):
    state = State.read("lock=0:850")
    answer = five.answer(state)
    needed = five.check(answer, state).needed[0]
    assert 794.1 < needed < 794.2
    assert "794.2 would be enough" in make_view(five, answer, state).verdict.text
    assert "794.2 is enough" in five.check(answer, state).explain(0)


def test_a_goal_just_above_1_is_not_taken_for_a_percentage(network):
    for goal, said in (("1.2", "between 0 and 1"), ("85", "did you mean 0.85?")):
        with pytest.raises(InputError) as refused:
            network.answer(State.read(f"goal=0:{goal}"))
        assert said in str(refused.value)


def test_where_samples_cost_more_for_some_the_cost_is_told(five, network):
    (total, cost, *_), (first, second, *_) = (
        make_view(desk, desk.answer(State()), State()).figures for desk in (five, network)
    )
    assert (total[0], cost[0]) == ("samples in all", "cost in all") != (first[0], second[0])
    assert cost[1] == "2,236.4"
    none = State.read("lock=0:600,3:700")
    shown = dict(make_view(five, five.answer(none), none).figures)
    assert shown["samples in all"] == "2,278.9" and shown["cost in all"] == "2,589.5"


def test_a_locked_agent_gives_no_more_than_its_limit(five, network):
    for desk, limit in ((five, "1,500"), (network, "2,400")):
        said = f"{desk.subject.names[0]} gives 5,000, and its limit is {limit}: lower the contr"
        with pytest.raises(InputError, match=said):
            desk.answer(State.read("lock=0:5000"))
    with pytest.raises(InputError, match="Harbour gives 5,000, and its limit is 2,400: lower"):
        state = State.read("give=0:5000")
        network.check(network.answer(state), state)
    # The limit may be raised too.
    assert five.answer(State.read("lock=0:2000&limit=0:2000")).start[0] == 2000


def test_a_page_with_payments_has_its_title_once(five):
    state = State.read("plan=payments")
    answer, renaming = five.answer(state), Renaming(five.subject.words, five.subject.names)
    page = take_away(five, answer, state, renaming, "report.html").decode()
    assert len(re.findall(r"<h[12][^>]*>\s*Who pays whom: 5 agents", page)) == 1
    assert page.count("they add up to zero, and no group") == 1


def test_payments_for_the_same_plan_are_the_same_with_a_lock_as_with_a_limit(five):
    lock, limit = (five.share(State.read(f"plan=payments&{q}=0:600")) for q in ("lock", "limit"))
    assert lock.contributions == pytest.approx(limit.contributions)
    assert lock.payments == pytest.approx(limit.payments, abs=1e-6)
    # At more than the limit would lead to, the lock decides the plan.
    state = State.read("plan=payments&lock=0:1400")
    assert five.share(state).contributions[0] == pytest.approx(1400)


def test_without_a_single_change_that_helps_all_locks_are_offered(five):
    view, ((label, state, taken),) = take(five, "lock=0:600,3:700")
    said = "No single change of one limit or one requirement was found that makes a plan possible."
    assert said in view.parts and label == "Take back the locks of Abbey and Dale"
    assert state == State() and taken.verdict.tone != "bad"


def test_coalitions_are_not_all_well_if_agents_stay_short(five):
    shown = VIEWS["coalitions"](five, State.read("lock=0:600,3:700"))
    mark = next(part for part in shown if isinstance(part, Mark))
    assert mark.tone == "unsure" and mark.text.endswith("better off. Abbey and Dale stay short.")


def test_what_is_assumed_of_an_agent_that_joined_is_said(measured):
    (said,) = measured.plan(State.read("like=1")).assumed
    assert said == "No pilot measured City 2: its data are assumed to be like City's."
    changed = measured.change(State.read("like=1&goal=4:0.7&limit=0:900&left=3"))
    assert changed.names == ("University", "City", "Rural", "City 2")
    assert changed.numbers == (0, 1, 2, 4) and changed.basis.goals[3] == 0.7
    assert changed.basis.table.limits[0] == changed.unlocked[0] == 900


def test_without_a_stable_plan_the_other_plans_are_shown():
    desk = Desk(Subject(GAME))
    shown = {
        plan: parts_html(list(VIEWS["plans"](desk, State.read(f"lock=1:200&plan={plan}"))))
        for plan in ("stable", "envy-free")
    }
    said = "Proved: no stable plan exists. At its limit City stays short"
    assert said in shown["stable"] and said not in shown["envy-free"]
    for text in shown.values():
        assert "2,067" in text or "2,066.7" in text
        assert "of this kind" not in text
    coalitions = list(VIEWS["coalitions"](desk, State.read("lock=1:200")))
    assert "City stays alone, short of its requirement." in parts_html(coalitions)


def test_a_computation_that_fails_leaves_nothing_under_way():
    page = pytest.importorskip("fedaccord.explore.page")
    said, cleared = [], []
    visit = SimpleNamespace(
        refuse=said.append,
        busy=SimpleNamespace(text="working …"),
        body=SimpleNamespace(content="another tab"),
        extra=SimpleNamespace(clear=lambda: cleared.append("extra")),
        offers=SimpleNamespace(clear=lambda: cleared.append("offers")),
        frame=SimpleNamespace(classes=lambda remove: cleared.append(remove)),
    )
    page.Visit._fail(visit, ValueError("no such number"))
    assert said == ["This failed: no such number"]
    assert sorted(cleared) == ["extra", "offers", "waits"]
    assert visit.busy.text == "" and visit.body.content == ""


def test_agents_that_are_not_there_are_left_out_and_named():
    state, said = drop_unknown(State.read("lock=9:500,1:200&left=7&like=0&give=3:10"), 3)
    assert state == State.read("lock=1:200&like=0&give=3:10")
    assert said == (
        "The address speaks of agent 7 and agent 9, but the numbers of the agents end at 3."
    )
    assert drop_unknown(state, 3) == (state, "")


def test_a_page_says_which_file_to_open_again():
    files = (("Explored", "pilots of May.json, SHA-256 abc"),)
    desk, state = Desk(Subject(GAME, files=files)), State.read("give=0:100")
    renaming = Renaming(desk.subject.words, desk.subject.names)
    page = take_away(desk, desk.answer(state), state, renaming, "report.html").decode()
    words = re.sub("<[^>]*>", "", page)
    assert "fedaccord explore &#39;pilots of May.json&#39;, at the address /?give=0%3A100" in words


@pytest.mark.parametrize("query", ["lock=1:500,0:1566.666667", "lock=1:500.5", "lock=0:1566.7"])
def test_a_lock_on_a_part_of_a_sample_leaves_a_plan_or_a_reason(query):
    desk, state = Desk(Subject(GAME)), State.read(query)
    near = desk.follow(state, desk.answer(State.read("lock=1:500")))
    assert all(near.contributions[agent] == number for agent, number in state.lock)
    answer = desk.answer(state)
    assert "the minimum of" not in make_view(desk, answer, state).verdict.text
    assert answer.contributions is not None or "stays short" in " ".join(answer.said)


def test_margins_have_not_grown_until_a_probability_that_is_missed(network):
    state = State.read("lock=0:0,2:0")
    answer = network.answer(state)
    view = make_view(network, answer, state)
    assert "does not hold" in view.verdict.text and "have grown" not in parts_html(view.parts)
    # The locks are the cause: without them a plan reaches 0.95.
    assert "With the locks, no stable plan reaches the required 0.95." in view.verdict.text
    state = State.read("lock=1:50")
    assert "have grown until" in parts_html(make_view(network, network.answer(state), state).parts)


def test_the_table_of_stable_plans_knows_of_the_envy_that_the_screen_shows(network):
    state = State.read("like=2")
    answer = network.answer(state)
    (option,) = (one for one in answer.plan.tradeoffs if one.chosen)
    envy = network.check(answer, state).judged.envy
    assert option.envious == tuple(sorted({i for i, _ in envy})) != ()


def test_agents_that_keep_data_are_compared_with_their_own_plan(network, tmp_path):
    state = State.read("cut=2:0.25&keep=2:1")
    answer = network.answer(state)
    found, path = network.check(answer, state), tmp_path / "game.json"
    answer.save_game(path, answer.put(state), state.keep)
    own = solve_stable(read_game(path)).contributions
    assert found.plan.contributions.tolist() == own.tolist() != answer.start.tolist()
    view = make_view(network, answer, state)
    assert "With the plan for agents that keep their data, the pr" in parts_html(view.folds)


def test_a_headline_says_that_the_others_carry_an_agent_that_joined(network):
    state = State.read("like=2")
    answer = network.answer(state)
    assert answer.contributions[3] == 0
    carried = "Mill 2 gives nothing, and the others carry it."
    assert carried in make_view(network, answer, state).verdict.text


def test_a_plan_that_is_less_sure_is_no_price_to_compare_with(network):
    state = State.read("lock=0:300,1:100&probability=0.8")
    answer = network.answer(state)
    assert describe_certainty(answer, network.check(answer, state)) == ""


def test_payments_say_what_locks_and_kept_data_mean_for_them(five, network):
    said = [list(show_payments(five, State.read(query))) for query in ("", "lock=0:600&keep=3:1")]
    assert LOCKED not in said[0] and LOST not in said[0]
    assert LOCKED in said[1] and LOST in said[1]
    unsure = [part.text for part in show_payments(network, State()) if isinstance(part, Mark)]
    assert any("do not yet show which agents pay" in text for text in unsure)
