"""What `solve` and `plan` print of agents that keep the samples they withhold."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, write

from fedaccord.equilibria.result import Status
from fedaccord.games.kept import KeptData, keep_data
from fedaccord.games.linear import LinearGame
from fedaccord.planning.kept import KeptPlan, plan_for_kept_data
from fedaccord.planning.plan import make_plan
from fedaccord.report.kept import (
    REMEDY,
    add_kept_section,
    describe_kept,
    describe_kept_plan,
    find_missing,
    list_kept_plan,
    list_kept_verdict,
    show_kept_plan,
)
from fedaccord.report.model import Mark
from fedaccord.report.plan_page import plan_page

GAME = {
    "model": "linear",
    "requirements": [80, 70],
    "benefits": [[1, 0.5], [0.5, 1]],
    "agents": ["City", "Rural"],
    "limits": [100, 100],
}


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return write(tmp_path / "game.json", GAME)


def solve(game: Path, *options: str) -> dict:
    return json.loads(run("solve", game, "--concept", "stable", "--json", *options).stdout)


def test_a_kept_worth_of_nothing_changes_no_plan(game: Path) -> None:
    plain, kept = solve(game), solve(game, "--kept-worth", "0")
    assert kept["solutions"]["stable"]["contributions"] == [60, 40]
    assert "kept" not in plain
    assert kept["kept"] == {
        "worth": [0, 0],
        "holdings": [100, 100],
        "gains_nothing": [],
        "gains_little": [],
    }
    assert "Agents keep the samples" in run("solve", game, "--kept-worth", "0").stdout


def test_plans_are_those_of_agents_that_keep_data(game: Path) -> None:
    found = solve(game, "--kept-worth", "0.25")
    # 3/4 a + b/2 = 80 - 25 and a/2 + 3/4 b = 70 - 25.
    assert found["solutions"]["stable"]["contributions"] == pytest.approx([60, 20])
    some = solve(game, "--kept-worth", "Rural=0.25")
    # a + b/2 = 80 and a/2 + 3/4 b = 45.
    assert some["solutions"]["stable"]["contributions"] == pytest.approx([75, 10])


def test_an_agent_that_gains_nothing_is_named_with_what_would_help(game: Path) -> None:
    result = run("solve", game, "--concept", "stable", "--kept-worth", "City=1")
    assert result.code == 0
    assert "City gains nothing by sharing (kept worth 1)" in result.stdout
    assert "earn by delivering samples, or payments" in result.stdout
    assert "falls short" not in result.stdout


def test_the_others_settle_without_an_agent_that_falls_short(game: Path) -> None:
    options = ("--kept-worth", "City=1", "--holdings", "City=40")
    result = run("solve", game, "--concept", "stable", *options)
    assert "If City keeps its data, the others settle on this plan:" in result.stdout
    assert "City then falls short by 5, and nothing that it could give" in result.stdout
    found = solve(game, *options)
    assert found["solutions"]["stable"]["status"] == "none-exists"
    assert found["kept"]["rest"] == {"contributions": [0, 70], "missing": {"City": 5}}


def test_holdings_can_be_a_table_with_exceptions(game: Path, tmp_path: Path) -> None:
    table = tmp_path / "held.csv"
    table.write_text("hospital,samples\nRural,90\nCity,70\n")
    held = ("--kept-worth", "0.5", "--holdings", str(table))
    assert solve(game, *held)["kept"]["holdings"] == [70, 90]
    assert solve(game, *held, "--holdings", "Rural=95")["kept"]["holdings"] == [70, 95]
    assert solve(game, "--kept-worth", "0.5", "--holdings", "80")["kept"]["holdings"] == [80, 80]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--holdings", "5"], "--holdings needs --kept-worth"),
        (["--kept-worth", "2"], "the kept worth of City must be a number from 0 to 1; got 2"),
        (["--kept-worth", "Citi=1"], "Citi is not among the agents; did you mean City?"),
        (["--kept-worth", "much"], '--kept-worth "much" must be a number, or read NAME=X'),
        (["--kept-worth", "1", "--holdings", "City=x"], '--holdings "City=x" must be a number'),
        (["--kept-worth", "1", "--holdings", "none.csv"], "none.csv"),
    ],
)
def test_what_makes_no_sense_is_refused(game: Path, options: list[str], said: str) -> None:
    assert_refused(run("solve", game, *options), said)


def test_other_games_and_games_without_limits_are_refused(tmp_path: Path) -> None:
    cover = {"model": "coverage", "requirements": [0.8], "distributions": [[1.0]], "limits": [9]}
    path = write(tmp_path / "cover.json", cover)
    assert_refused(run("solve", path, "--kept-worth", "1"), "needs a linear or measured game")
    open_game = {key: value for key, value in GAME.items() if key != "limits"}
    path = write(tmp_path / "open.json", open_game)
    assert_refused(run("solve", path, "--kept-worth", "0.5"), "how many samples it holds")


def test_sentences_name_agents_that_hardly_gain() -> None:
    game = LinearGame(np.eye(3), [8, 6, 5], agents=["City", "Rural", "Coast"], limits=[9, 9, 9])
    said = list(describe_kept(game, KeptData.read(game, [0.95, 0.5, 0])))
    assert said[0] == (
        "City hardly gains by sharing (kept worth 0.95 or more): a shared sample adds at most 5 % "
        "of a sample to what its owner has."
    )
    assert said[1] == REMEDY
    both = list(describe_kept(game, KeptData.read(game, [1, 1, 0.2])))
    assert both[0].startswith("City and Rural gain nothing by sharing (kept worth 1): they give")
    many = LinearGame(np.eye(9), np.ones(9), limits=np.full(9, 2))
    assert "agent 5 and 3 more agents gain nothing" in " ".join(
        describe_kept(many, KeptData.read(many, 1))
    )
    assert list(describe_kept(game, KeptData.read(game, 0.5))) == []


def test_what_is_missing_is_told_from_what_the_others_supply() -> None:
    game = LinearGame([[1, 0.5], [0.5, 1]], [80, 70], limits=[100, 100])
    kept = KeptData.read(game, [1, 0], [40, 100])
    changed = keep_data(game, kept.worth, kept.holdings)
    assert find_missing(changed, kept, np.array([0.0, 70])) == {0: 5}
    assert find_missing(changed, kept, np.array([0.0, 80])) == {0: 0}


# Plans.


def planned(worth, holdings=None) -> KeptPlan:
    game = LinearGame([[1, 0.5], [0.5, 1]], [80, 70], agents=["City", "Rural"], limits=[100, 100])
    plan = make_plan(game)
    found = plan_for_kept_data(plan, worth, holdings)
    assert found is not None
    return found


def test_the_verdict_names_the_agent_that_would_give_least() -> None:
    assert " ".join(list_kept_verdict(planned(0))) == (
        "The plan holds even if agents keep what they withhold."
    )
    assert " ".join(list_kept_verdict(planned([0.5, 0]))) == (
        "The plan does not hold if agents keep what they withhold: City would give 20 instead "
        "of 60."
    )
    assert " ".join(list_kept_verdict(planned([0.1, 0.5]))) == (
        "The plan does not hold if agents keep what they withhold: Rural would give 0 instead "
        "of 40. 1 other agent would give less too."
    )


def test_what_is_stable_then_is_said() -> None:
    assert list(describe_kept_plan(planned(0.25))) == [
        "If all agents keep what they withhold, the cheapest stable plan is in the last column: "
        "the agents share 80 samples instead of 100. That is no saving: they also train on the "
        "samples that they keep."
    ]
    # City has 50 of its own by keeping 100, and gets 35 of Rural's 70: it needs 80.
    said = list(describe_kept_plan(planned([0.5, 0])))[-1]
    assert said.endswith(
        "If City keeps what it withholds, the cheapest stable plan is in the last column: the "
        "agents share 70 samples instead of 100. That is no saving: it also trains on the samples "
        "that it keeps."
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.NONE_EXISTS, "there is no stable plan. This is proved."),
        (Status.INFEASIBLE, "no plan reaches all requirements, even if all agents give all"),
        (Status.FAILED, "no stable plan was found. This does not prove that there is none."),
    ],
)
def test_that_no_plan_is_stable_then_is_a_sentence(status, said) -> None:
    found = planned(0.25)
    lost = dataclasses.replace(found.stable, status=status, contributions=None)
    (first, *_) = describe_kept_plan(dataclasses.replace(found, stable=lost, rest=None))
    assert first.startswith(f"If all agents keep what they withhold, {said}")
    # City's samples are worth two of Rural's: without them the agents share more, not less.
    game = LinearGame([[1, 0], [2, 1]], [50, 100], agents=["City", "Rural"], limits=[100, 100])
    dearer = plan_for_kept_data(make_plan(game), [0.5, 0], None)
    assert list(describe_kept_plan(dearer))[-1].endswith("share 100 samples instead of 50.")
    # With kept worth 1/2, Rural has 50 of its own and 30 from City's 60; it needs 70.
    assert next(describe_kept_plan(planned(0.5))) == (
        "If the others keep to the plan, Rural gains nothing by sharing: the samples of the others "
        "and its own are enough."
    )
    short = list(describe_kept_plan(planned([1, 0], [40, 100])))
    assert short[-1] == (
        "The others then give 70 samples in all, and City misses its target, whatever it gives."
    )
    none = list(describe_kept_plan(planned(1, 70)))
    assert (
        none[-1] == "Then no agent shares anything, and City misses its target, whatever it gives."
    )


def test_terminals_and_pages_show_the_same_table() -> None:
    found = planned([0.5, 1])
    first, verdict, last, _, table, *said = show_kept_plan(found, iter(["first", "last"]))
    assert (first, last) == ("first", "last")
    section = add_kept_section(plan_page(found.plan), found).sections[-1]
    assert section.parts[0] == verdict
    assert [row[0] for row in section.parts[1].rows] == ["City", "Rural"]
    assert column(section.parts[1], "would give") == [20, 0]
    assert column(table, "would give") == ["20", "0"]
    assert list(section.parts[2:]) == said
    assert said[0].startswith("Rural gains nothing by sharing (kept worth 1)")


def column(table, head):
    return [row[table.columns.index(head)] for row in table.rows]


def test_the_table_has_the_stable_plan_of_agents_that_all_keep() -> None:
    # 3/4 a + b/2 = 80 - 25 and a/2 + 3/4 b = 70 - 25.
    table = list_kept_plan(planned(0.25)).table("page")
    assert column(table, "stable if all keep") == pytest.approx([60, 20])


def test_the_head_of_the_page_says_that_the_plan_does_not_hold() -> None:
    found = planned([0.5, 0])
    plain = plan_page(found.plan)
    page = add_kept_section(plain, found)
    assert page.tone == "bad"
    assert page.verdict.endswith("But the plan does not hold if agents keep what they withhold.")
    reach, less, envy = page.head[-1].rows
    assert (reach, envy) == (plain.head[-1].rows[0], plain.head[-1].rows[2])
    assert (less[1], less[2]) == (Mark("yes: City by 40", "bad"), "not stable")
    holds = add_kept_section(plain, planned(0))
    assert (holds.verdict, holds.tone, holds.head) == (plain.verdict, plain.tone, plain.head)


def test_the_command_plan_says_what_agents_would_do(game: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    result = run("plan", game, "--kept-worth", "0.5", "--report", page)
    assert result.code == 0
    assert "City would give 20 instead of 60. 1 other agent would give less too." in result.stdout
    assert "If agents keep what they withhold" in page.read_text()
    data = json.loads(run("plan", game, "--kept-worth", "City=0.5", "--json").stdout)
    assert data["kept"]["would_give"] == [20, 40]
    assert data["kept"]["worth"] == [0.5, 0]
    assert "kept" not in json.loads(run("plan", game, "--json").stdout)
    assert "withhold" not in run("plan", game).stdout


def test_the_command_plan_refuses_kept_data_of_unknown_amount(tmp_path: Path) -> None:
    open_game = {key: value for key, value in GAME.items() if key != "limits"}
    path = write(tmp_path / "open.json", open_game)
    assert_refused(run("plan", path, "--kept-worth", "0.5"), "how many samples it holds")
