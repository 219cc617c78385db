"""What `check --groups` prints of groups that could give less together."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run, write

from fedaccord.check import check
from fedaccord.games.linear import LinearGame
from fedaccord.groups import list_blocking_groups
from fedaccord.report.groups import SHOWN, describe_groups, make_groups_section, show_groups

GAME = {
    "model": "linear",
    "requirements": [12, 12, 10],
    "benefits": [[1, 0.5, 0], [0.5, 1, 0], [0, 0.5, 1]],
    "agents": ["City", "Rural", "Coast"],
}


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return write(tmp_path / "game.json", GAME)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return write(tmp_path / "plan.json", {"contributions": [10, 10, 6]})


def test_the_command_lists_groups_by_name(game: Path, plan: Path) -> None:
    result = run("check", game, plan, "--groups", "2")
    assert result.code == 1
    assert "3 single agents and 3 groups of up to 2 agents could give less." in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["City", "and", "Rural", "2", "4"] in lines
    assert ["City", "and", "Coast", "1", "2"] in lines
    assert "City, Rural and Coast" not in result.stdout
    larger = run("check", game, plan, "--groups", "3").stdout
    assert "City, Rural and Coast" in larger


def test_json_has_the_groups_only_where_they_were_asked_for(game: Path, plan: Path) -> None:
    data = json.loads(run("check", game, plan, "--groups", "1", "--json").stdout)
    assert data["groups"] == [
        {"agents": ["City"], "less": 3.0, "saved": 3.0},
        {"agents": ["Rural"], "less": 3.0, "saved": 3.0},
        {"agents": ["Coast"], "less": 1.0, "saved": 1.0},
    ]
    assert "groups" not in json.loads(run("check", game, plan, "--json").stdout)


def test_a_stable_plan_holds_against_groups_of_any_size(game: Path, tmp_path: Path) -> None:
    plan = write(tmp_path / "stable.json", {"contributions": [8, 8, 6]})
    result = run("check", game, plan, "--groups", "2")
    assert result.code == 0
    assert "No group of agents, of any size, could give less together" in result.stdout
    data = json.loads(run("check", game, plan, "--groups", "3", "--json").stdout)
    assert data["groups"] == []


def test_a_plan_that_leaves_everybody_short_has_no_groups_of_the_size_searched() -> None:
    found = check(LinearGame(np.eye(2), [5, 5]), [4, 4])
    groups = list_blocking_groups(found, size=2)
    assert describe_groups(found, groups, 2) == (
        "No group of up to 2 agents could give less together, but not all agents are satisfied."
    )


def test_a_group_of_no_agents_is_refused(game: Path, plan: Path) -> None:
    said = "--groups must be a whole number of 1 or more; got 0"
    assert_refused(run("check", game, plan, "--groups", "0"), said)


def test_a_page_lists_all_groups(game: Path, plan: Path, tmp_path: Path) -> None:
    page = tmp_path / "check.html"
    run("check", game, plan, "--groups", "2", "--report", page)
    assert "3 single agents and 3 groups of up to 2 agents could give less." in page.read_text()
    run("check", game, plan, "--report", page)
    assert "could give less together" not in page.read_text()
    found = check(LinearGame(np.eye(6), np.ones(6)), np.full(6, 2.0))
    section = make_groups_section(found, list_blocking_groups(found, size=6), 6)
    assert len(section.parts[1].rows) == 63
    stable = check(LinearGame(np.eye(2), np.ones(2)), [1, 1])
    assert len(make_groups_section(stable, (), 2).parts) == 1


def test_a_terminal_lists_some_groups_and_counts_the_rest() -> None:
    found = check(LinearGame(np.eye(6), np.ones(6)), np.full(6, 2.0))
    groups = list_blocking_groups(found, size=6)
    parts = list(show_groups(found, groups, 6))
    assert len(parts[2].rows) == SHOWN
    assert parts[-1] == "and 43 more; --json lists all of them"
