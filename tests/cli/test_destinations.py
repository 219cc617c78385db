"""A command replaces a file that it could have written itself, and refuses any other."""

import json

import pytest
from commands import TWO_HOSPITALS, assert_refused, run, write

from fedaccord.allocation import Allocation
from fedaccord.cli.destinations import Written, check_replaced
from fedaccord.errors import InputError
from fedaccord.federation.history import COLUMNS
from fedaccord.measurement.measures import MEASURED
from fedaccord.measurement.pilots import PilotTable

NAMES = "City=1200,Rural=800"
FILLED = "pilot,agent,contribution,accuracy\n1,City,900,0.8\n1,Rural,700,failed\n"


@pytest.mark.parametrize("name", ["list.csv", "list.xlsx"])
def test_a_list_of_pilots_is_written_again_until_an_accuracy_stands_in_it(tmp_path, name):
    path = tmp_path / name
    for _ in range(2):
        assert run("pilots", NAMES, "--save", path).code == 0
    write(tmp_path / "filled.csv", FILLED)
    assert_refused(
        run("pilots", NAMES, "--save", tmp_path / "filled.csv"),
        "filled.csv holds 2 accuracies: save under another name",
    )
    assert (tmp_path / "filled.csv").read_text() == FILLED


def test_a_plan_replaces_a_plan_and_no_other_table(tmp_path):
    game, plan = write(tmp_path / "game.json", TWO_HOSPITALS), tmp_path / "plan.csv"
    for _ in range(2):
        assert run("solve", game, "--concept", "stable", "--save", plan).code == 0
    for text, said in (
        (FILLED, "plan.csv holds 2 accuracies"),
        ("agent,limit\nCity,9\n", "which is another table, with the columns agent and limit: save"),
        ("{", "which is not a table of this command: save under another name"),
    ):
        write(plan, text)
        assert_refused(run("solve", game, "--concept", "stable", "--save", plan), said)
        assert plan.read_text() == text


def test_a_json_plan_or_game_replaces_its_own_kind_and_no_other_file(tmp_path):
    game, plan = write(tmp_path / "game.json", TWO_HOSPITALS), tmp_path / "plan.json"
    for _ in range(2):
        assert run("solve", game, "--concept", "stable", "--save", plan).code == 0
        check_replaced(game, Written.GAME, "--save-game")
    shares = json.loads(run("share", game, "--json").stdout)
    assert "contributions" in shares
    for held in (json.dumps(TWO_HOSPITALS), json.dumps(shares), '{"model": [1]}', "[1, 2]", "{"):
        write(plan, held)
        refused = "plan.json, which is not a plan: save under another name"
        assert_refused(run("solve", game, "--concept", "stable", "--save", plan), refused)
        assert plan.read_text() == held
    write(plan, '{"contributions": [1, 1]}')
    with pytest.raises(InputError, match="which is not a game: save under another name"):
        check_replaced(plan, Written.GAME, "--save-game")
    for held in ('{"contributions": [1, 1]}', "agent,contribution\nA,1\n"):
        other = write(tmp_path / ("a.csv" if held.startswith("agent") else "a.json"), held)
        assert_refused(run("catalog", "k4", "--save", other), "which is not a game")
        assert other.read_text() == held
    for _ in range(2):
        assert run("catalog", "k4", "--save", tmp_path / "k4.json").code == 0
    write(plan, {"model": [1]})
    with pytest.raises(InputError, match="which is not a game"):
        check_replaced(plan, Written.GAME, "--save-game")


def test_what_commands_write_they_replace(tmp_path):
    trained, plan = tmp_path / "trained.csv", tmp_path / "plan.csv"
    PilotTable(["A", "B"], [[9, 8]], [[0.5, 0.6]], goals=[0.5, 0.5]).save(trained)
    check_replaced(trained, Written.PILOTS, "--save")
    Allocation([1, 2], agents=("A", "B"), reserve=[0, 1]).save(plan)
    check_replaced(plan, Written.PLAN, "--save")
    assert MEASURED in Written.PILOTS.value and COLUMNS in Written.HISTORY.value


def test_pilots_that_are_trained_do_not_replace_those_that_people_filled_in(tmp_path):
    with pytest.raises(InputError, match="holds 2 accuracies"):
        check_replaced(write(tmp_path / "filled.csv", FILLED), Written.PILOTS, "--save")
