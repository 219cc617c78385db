"""fedaccord check of proposals to measured agents: probabilities, exit codes and dirty tables."""

import json
import re
import unicodedata
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from commands import TWO_HOSPITALS, assert_refused, run, write
from known_hospitals import CURVES, pilots
from scipy.stats import norm

from fedaccord import check, read_game
from fedaccord.allocation import Allocation

NAMES = ("North", "South", "Mill")
P_ALL = re.compile(r"reach their goals (?:in a run )?with probability (\d\.\d+)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with pilots, the plan made from them, and the game that was planned for."""
    here = tmp_path_factory.mktemp("network")
    benefits = np.array([[1.0, 0.4, 0.2], [0.3, 1.0, 0.2], [0.2, 0.3, 1.0]])
    options = {"names": NAMES, "goals": [0.8, 0.8, 0.78], "curves": CURVES[:3]}
    pilots(**options, benefits=benefits, repeats=1, limit=2_500.0).save(here / "pilots.csv")
    made = run("plan", here / "pilots.csv", "--save", here / "plan.csv",
               "--save-game", here / "game.json", "--json")  # fmt: skip
    assert made.code == 0
    write(here / "plan.json", made.stdout)
    return here


def propose(path: Path, *amounts: object) -> Path:
    """Write a proposal as a CSV file or as a workbook, by the file's name."""
    rows = [("agent", "contribution"), *zip(NAMES, amounts, strict=False)]
    if path.suffix == ".csv":
        return write(path, "".join(f"{name},{amount}\n" for name, amount in rows))
    return write_workbook(path, rows)


def write_workbook(path: Path, rows, title: str = "proposal") -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(list(row))
    book.save(path)
    return path


# What it says.


@pytest.mark.parametrize("against", ["pilots.csv", "game.json"])
def test_the_plan_holds_with_the_probability_that_plan_printed(folder, against):
    planned = json.loads((folder / "plan.json").read_text())
    result = run("check", folder / against, folder / "plan.csv", "--json")
    found = json.loads(result.stdout)
    assert found["contributions"] == planned["contributions"]
    assert result.code == 0 and found["holds"] is True
    assert found["everyone"]["value"] == planned["everyone"]["value"]
    assert found["satisfied"] == planned["satisfied"]
    assert found["plan"]["difference"] == [0, 0, 0]


def test_what_is_printed_is_what_plan_prints(folder):
    told = run("plan", folder / "pilots.csv").stdout
    result = run("check", folder / "pilots.csv", folder / "plan.csv")
    assert P_ALL.search(result.stdout)[1] == P_ALL.search(told)[1]
    for word in (
        "with probability 0.95.",
        "is the least likely",
        "No agent could give less",
        "with 25 %",
        "the same as the plan",
        "Without a safety margin",
    ):
        assert word in result.stdout


def test_options_are_those_of_plan(folder, tmp_path):
    options = ["--goal", "0.76", "--probability", "0.8", "--judged", "measured", "--seed", "3"]
    plan = tmp_path / "plan.csv"
    told = run("plan", folder / "pilots.csv", *options, "--save", plan, "--json")
    result = run("check", folder / "pilots.csv", plan, *options, "--json")
    planned, found = json.loads(told.stdout), json.loads(result.stdout)
    assert result.code == told.code == 0
    assert found["everyone"]["value"] == planned["everyone"]["value"]
    assert (found["probability"], found["judged"]) == (0.8, "measured")


@pytest.mark.parametrize("basis", ["pilots.csv", "game.json"])
def test_a_limit_from_now_on_may_lie_below_what_pilots_used(folder, basis):
    given = Allocation.load(folder / "plan.csv").contributions
    rows = [line.split(",") for line in (folder / "pilots.csv").read_text().splitlines()[1:]]
    assert max(float(row[2]) for row in rows if row[1] == "North") > given[0]
    same = run("plan", folder / basis, "--limit", f"North={given[0]:.0f}", "--json")
    assert same.code == 0
    assert json.loads(same.stdout)["contributions"] == pytest.approx(given.tolist(), abs=1)
    limit = ("--limit", f"North={given[0] / 4:.0f}")
    low = run("plan", folder / basis, *limit)
    if basis == "game.json":
        assert low.code == 1 and "North cannot give enough" in low.stdout
    else:
        # With wider safety margins the others give enough for North, and the plan checks out.
        assert run("plan", folder / basis, *limit, "--save", folder / "low.csv").code == low.code
        assert run("check", folder / basis, folder / "low.csv", *limit).code == low.code == 0
    above = run("check", folder / basis, folder / "plan.csv", "--limit", "North=9")
    assert_refused(above, "North gives", "and its limit is 9")


def test_limits_of_unknown_agents_and_in_saved_pilots_are_refused(folder, tmp_path):
    wrong = run("plan", folder / "game.json", "--limit", "Norht=5")
    assert_refused(wrong, "Norht", "did you mean North?")
    saved = run("plan", folder / "pilots.csv", "--limit", "5", "--save-pilots", tmp_path / "p.csv")
    assert_refused(saved, "--save-pilots", "leave --limit out")


def test_a_failed_proposal_names_the_limit_to_plan_with(folder, tmp_path):
    given = Allocation.load(folder / "plan.csv").contributions.astype(int)
    low = propose(tmp_path / "low.csv", given[0], 5, given[2])
    result = run("check", folder / "game.json", low)
    assert "If South can give at most 5 samples, plan again: " in result.stdout
    assert "--limit" not in run("check", folder / "game.json", folder / "plan.csv").stdout


def test_groups_lose_their_margin_and_may_still_reach_their_goals(folder):
    """The likeliest pair is the best of all pairs, each by the formula."""
    result = run("check", folder / "game.json", folder / "plan.csv", "--groups", "2")
    assert "could give less together and keep the plan's safety margin" in result.stdout
    chances = read_game(folder / "game.json").chances
    given = Allocation.load(folder / "plan.csv").ordered_for(NAMES).contributions
    expected = {}
    for pair in combinations(range(3), 2):
        cut = np.array(given)
        cut[list(pair)] *= 0.25
        ahead = (chances.accuracies(cut) - chances.goals) / chances.noise(cut.sum())
        expected[pair] = norm.cdf(ahead[:, list(pair)]).prod(axis=1).mean() * chances.finishing
    found = check(read_game(folder / "game.json"), given).boldest_pair
    assert found.agents == max(expected, key=expected.get)
    assert found.probability == pytest.approx(max(expected.values()), abs=1e-9)
    names = " and ".join(NAMES[agent] for agent in found.agents)
    assert f"{names} are the likeliest pair: if both give 25 %" in result.stdout


def test_a_game_knows_the_probability_it_was_planned_for(folder, tmp_path):
    plan, game = tmp_path / "plan.csv", tmp_path / "game.json"
    run("plan", folder / "pilots.csv", "--probability", "0.7", "--save", plan, "--save-game", game)
    assert run("check", game, plan).code == 0
    higher = run("check", game, plan, "--probability", "0.9")
    assert higher.code == 1 and "The required probability is 0.90." in higher.stdout


def test_too_little_exits_with_one_and_names_the_weakest(folder, tmp_path):
    given = Allocation.load(folder / "plan.csv").contributions
    low = propose(tmp_path / "low.csv", *np.round(0.5 * given).astype(int))
    result = run("check", folder / "game.json", low)
    assert result.code == 1 and "The required probability is 0.95.\n" in result.stdout


def test_too_much_is_sure_and_not_stable_and_require_chooses(folder, tmp_path):
    given = Allocation.load(folder / "plan.csv").contributions
    much = propose(tmp_path / "much.csv", *(given + 300).astype(int))
    assert run("check", folder / "game.json", much).code == 1
    assert run("check", folder / "game.json", much, "--require", "sure").code == 0
    assert run("check", folder / "game.json", much, "--require", "sure,feasible").code == 0
    assert run("check", folder / "game.json", much, "--require", "stable").code == 1


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.6])
@pytest.mark.parametrize("words", ["sure", "stable", "feasible", "envy-free", "sure,stable"])
def test_the_first_sentence_the_json_and_the_exit_code_agree(folder, tmp_path, factor, words):
    given = Allocation.load(folder / "plan.csv").contributions
    proposal = propose(tmp_path / "proposal.csv", *np.ceil(factor * given).astype(int))
    asked = ("check", folder / "game.json", proposal, "--require", words)
    page = tmp_path / "page.html"
    result = run(*asked, "--report", page)
    record = json.loads(run(*asked, "--json").stdout)
    expected = all(record["answers"][word] is True for word in words.split(","))
    assert (result.code == 0) == expected == (record["holds"] is True)
    assert result.stdout.startswith("The proposal does not hold") == (not expected)
    assert ("The proposal does not hold" in page.read_text()) == (not expected)


def test_the_page_of_a_game_calls_a_plan_broken_only_if_the_exit_code_does(tmp_path):
    game = write(tmp_path / "game.json", TWO_HOSPITALS)
    alone = tmp_path / "alone.json"
    Allocation(read_game(game).alone).save(alone)
    for words in ("feasible", "stable"):
        page = tmp_path / f"{words}.html"
        code = run("check", game, alone, "--require", words, "--report", page).code
        assert code == (words == "stable")
        assert ("The plan does not hold" in page.read_text()) == (words == "stable")


def test_names_in_json_match_however_their_letters_are_composed(tmp_path):
    """Tables read Köln in composed letters: a game, its goals and a JSON plan do too."""
    odd, plain = unicodedata.normalize("NFD", "Sankt\u00a0Köln"), "Sankt Köln"
    goal = {"name": "AUC", "requirement": 1}
    games = (
        {**TWO_HOSPITALS, "agents": [odd, "Ulm"]},
        {
            "model": "goals",
            "agents": [odd, "Ulm"],
            "goals": [
                {"agent": plain, **goal, "benefits": [1, 0.5]},
                {"agent": "Ulm", **goal, "benefits": [0.5, 1]},
            ],
        },
    )
    plans = (
        write(tmp_path / "plan.csv", f"agent,contribution\n{plain},1\nUlm,1\n"),
        write(tmp_path / "plan.json", {"contributions": [1, 1], "agents": [odd, "Ulm"]}),
    )
    for data in games:
        game = write(tmp_path / "game.json", data)
        assert read_game(game).agents == (plain, "Ulm")
        for plan in plans:
            assert run("check", game, plan, "--require", "feasible").code == 0


def test_a_game_saved_without_resamples_is_judged_by_its_targets(folder, tmp_path):
    """Files of 0.1.0 have margins and nothing more: the plan is an equilibrium of those."""
    data = json.loads((folder / "game.json").read_text())
    del data["chances"]
    old = write(tmp_path / "old.json", data)
    result = run("check", old, folder / "plan.csv")
    assert result.code == 0 and result.stdout.startswith("Feasible and stable")
    assert_refused(run("check", old, folder / "plan.csv", "--probability", "0.9"), "--probability")
    refused = run("check", old, folder / "plan.csv", "--require", "sure")
    assert_refused(refused, "--require sure needs pilots")


def test_solve_says_how_sure_each_plan_is(folder):
    planned = json.loads((folder / "plan.json").read_text())
    solved = json.loads(run("solve", folder / "game.json", "--json").stdout)["solutions"]
    assert solved["stable"]["contributions"] == planned["contributions"]
    assert solved["stable"]["audit"]["everyone"] == planned["everyone"]
    shown = run("solve", folder / "game.json").stdout
    assert "P(all)" in shown and "stable: all agents reach their goals with probability" in shown


def test_words_and_a_page(folder, tmp_path):
    page = tmp_path / "page.html"
    words = ["--agent-word", "hospital", "--sample-word", "case", "--title", "Our network"]
    result = run("check", folder / "pilots.csv", folder / "plan.csv", "--report", page, *words)
    assert "All hospitals reach their goals" in result.stdout and "agent" not in result.stdout
    text = page.read_text(encoding="utf-8")
    for words in ("Our network", "Do all hospitals reach their goals?", "probability high enough",
                  "What a hospital gains by giving less", "alone, same target"):  # fmt: skip
        assert words in text


def test_a_goal_out_of_reach_is_told(folder):
    result = run("check", folder / "pilots.csv", folder / "plan.csv", "--goal", "South=0.999")
    assert result.code == 1 and "no proposal reaches every goal on average: South" in result.stderr


def test_where_there_is_no_plan_it_says_so(folder):
    """A goal that all the data just misses, on average."""
    high = run("plan", folder / "pilots.csv", "--goal", "0.999", "--json")
    nearest = json.loads(high.stdout)["nearest_goals"]["values"][1]
    goal = f"South={nearest + 0.001:.4f}"
    result = run("check", folder / "pilots.csv", folder / "plan.csv", "--goal", goal)
    assert result.code == 1
    assert "There is no plan to compare with" in result.stdout or "on average" in result.stderr


# Dirty proposals.


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ((500, 2_600, 500), (" 3 of ", ": South gives 2,600, and its limit is 2,500")),
        ((500, 500, 10.5), ("4", "Mill", "10.5", "whole")),
        ((500, -3, 500), ("3", "South", "-3")),
        ((500, "some", 500), ("3", "some")),
        ((500, 500), ("no contribution of Mill",)),
    ],
)
def test_amounts_that_cannot_be_are_refused_at_their_line(folder, tmp_path, suffix, amounts, words):
    path = propose(tmp_path / f"dirty{suffix}", *amounts)
    for against in ("pilots.csv", "game.json"):
        assert_refused(run("check", folder / against, path), *words)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_misspelt_name_is_refused_at_its_own_line(folder, tmp_path, suffix):
    path = tmp_path / f"names{suffix}"
    rows = [("agent", "contribution"), ("North", 500), ("Suoth", 500), ("Mill", 500)]
    if suffix == ".csv":
        write(path, "".join(f"{a},{b}\n" for a, b in rows))
    else:
        write_workbook(path, rows)
    refused = run("check", folder / "pilots.csv", path)
    assert_refused(refused, " 3 of ", ": Suoth is not a member; did you mean South?")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_row_of_the_total_is_left_out_and_told(folder, tmp_path, suffix):
    rows = [("hospital", "cases"), ("North", 500), ("South", 500), ("Mill", 500)]
    plain = tmp_path / f"plain{suffix}"
    summed = tmp_path / f"summed{suffix}"
    for path, table in ((plain, rows), (summed, [*rows, ("Total", 1_500)])):
        if suffix == ".csv":
            write(path, "".join(f"{a},{b}\n" for a, b in table))
        else:
            write_workbook(path, table)
    one, two = (run("check", folder / "game.json", path) for path in (plain, summed))
    assert one.stdout == two.stdout and "'Total'" in two.stderr and "'Total'" not in one.stderr


def test_a_workbook_has_sheets_for_pilots_and_proposal(folder, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    for title, name in (("pilots", "pilots.csv"), ("proposal", "plan.csv")):
        sheet = book.create_sheet(title)
        for line in (folder / name).read_text().splitlines():
            sheet.append([_cell(text) for text in line.split(",")])
    path = tmp_path / "all.xlsx"
    book.save(path)
    result = run("check", path, path, "--pilots-sheet", "pilots", "--sheet", "proposal")
    assert result.stdout == run("check", folder / "pilots.csv", folder / "plan.csv").stdout


def _cell(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text or None


def test_swapped_files_get_the_right_advice(folder):
    refused = run("check", folder / "plan.csv", folder / "pilots.csv")
    assert_refused(refused, "give the pilots or the game first")
    refused = run("check", folder / "game.json", folder / "pilots.csv")
    assert_refused(refused, "pilots.csv")
    refused = run("check", folder / "plan.csv", folder / "game.json")
    assert_refused(refused, "give the pilots or the game first")


# Options that do not fit.


@pytest.mark.parametrize(
    "options",
    [["--goal", "0.8"], ["--seed", "1"], ["--prefer", "firm"], ["--pilots-sheet", "a"]],
)
def test_options_for_pilots_are_refused_for_a_game(folder, options):
    refused = run("check", folder / "game.json", folder / "plan.csv", *options)
    assert_refused(refused, options[0], "is for a table of pilots")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--probability", "1"], "--probability must be above 0 and below 1"),
        (["--judged", "kindly"], "--judged must be"),
        (["--prefer", "me"], "--prefer must be"),
        (["--seed", "-1"], "--seed must be"),
        (["--require", "good"], '--require has "good"'),
        (["--goal", "Suoth=0.8"], "Suoth"),
    ],
)
def test_options_that_mean_nothing_are_refused(folder, options, words):
    assert_refused(run("check", folder / "pilots.csv", folder / "plan.csv", *options), words)


def test_histograms_are_no_pilots(folder, tmp_path):
    table = write(tmp_path / "h.csv", "agent,healthy,ill\nNorth,3,4\nSouth,5,6\n")
    refused = run("check", table, folder / "plan.csv")
    assert_refused(refused, "is not a table of pilots", "--save-game")


def test_probabilities_are_refused_for_a_game_that_has_none(tmp_path):
    game = write(tmp_path / "game.json", TWO_HOSPITALS)
    plan = write(tmp_path / "plan.csv", "agent,contribution\nsite A,1\nsite B,1\n")
    assert_refused(run("check", game, plan, "--judged", "true"), "--judged needs pilots")
