"""fedaccord pilots: the tables it writes, how they go into a plan, and bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, assert_visible, run, write
from known_hospitals import CURVES, noise_at, pilots

from fedaccord._io.table import read_rows, write_table
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.design import pilot_design
from fedaccord.measurement.pilots import PilotTable

HISTOGRAMS = "hospital;clear;ill;goal;validation\nNorth;1.200;<11;0,8;400\nSouth;800;40;0,8;400\n"
WORTH = np.array([[1.0, 0.4], [0.3, 1.0]])
NETWORK = Path(__file__).parents[2] / "docs" / "how-to" / "network" / "pilots.csv"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pilots") / "pilots.csv"
    usual = {"names": ("North", "South"), "goals": [0.8, 0.8], "curves": CURVES[:2]}
    pilots(**usual, benefits=WORTH, repeats=1).save(path)
    return path


def fill_in(path: Path, *, worth=WORTH, curves=CURVES[:2]) -> None:
    """Run the pilots of a table, whose column accuracy is empty, and write what they reach."""
    rows = read_rows(path)
    heads = rows.cells[0]
    places = [heads.index(name) for name in ("pilot", "contribution", "accuracy")]
    pilot, given, accuracy = places
    runs: dict[str, list[list[str]]] = {}
    for row in rows.cells[1:]:
        runs.setdefault(row[pilot], []).append(row)
    random = np.random.default_rng(0)
    for lines in runs.values():
        promised = predict_accuracies(curves, worth @ [float(row[given]) for row in lines])
        noise = noise_at(promised, 400) * random.standard_normal(len(lines))
        for row, reached in zip(lines, promised + noise, strict=True):
            row[accuracy] = f"{reached:.3f}"
    write_table(path, heads, rows.cells[1:])


# First pilots.


def test_first_pilots_are_csv_on_standard_output_and_words_beside_it():
    result = run("pilots", "City=1200,Rural=800,Spa=0", "--budget", 6)
    assert result.code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "pilot,agent,contribution,accuracy,goal,validation,limit"
    assert lines[1:4] == ["1,City,1200,,,,1200", "1,Rural,800,,,,800", "1,Spa,0,,,,0"]
    design = pilot_design([1200, 800, 0], budget=6)
    assert [int(line.split(",")[2]) for line in lines[1:]] == [n for row in design for n in row]
    for word in (
        "between 0 and 1",
        "Spa has no samples: contribution 0, and an accuracy",
        "fedaccord plan FILE",
    ):
        assert word in result.stderr
    assert_visible(result.stderr)


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_table_goes_from_histograms_through_pilots_into_a_plan(tmp_path, suffix):
    """The whole way: what the command writes is filled in and planned from."""
    histograms = write(tmp_path / "histograms.csv", HISTOGRAMS)
    path = tmp_path / f"pilots.{suffix}"
    result = run("pilots", histograms, "--budget", 14, "--save", path)
    assert result.code == 0
    assert f"14 pilots to run with 2 agents. The table to fill in is {path}." in result.stdout
    assert "withheld" in result.stderr
    assert_refused(run("plan", path), "no pilot in", "has an accuracy yet")
    fill_in(path)
    table = PilotTable.load(path)
    assert len(table) == 14 and table.goals.tolist() == [0.8, 0.8]
    assert table.limits.tolist() == [1205, 840]
    planned = run("plan", path)
    assert planned.stdout.startswith("The plan asks")


def test_words_are_those_of_the_user(tmp_path):
    histograms = write(tmp_path / "histograms.csv", HISTOGRAMS)
    words = ("--agent-word", "hospital", "--sample-word", "case")
    result = run("pilots", histograms, *words, "--save", tmp_path / "pilots.csv")
    assert "with 2 hospitals" in result.stdout and "its cases" in result.stdout
    assert "agent" not in result.stdout.replace("pilots.csv", "")
    assert "every hospital takes" in run("pilots", histograms, *words).stderr


def test_more_agents_can_be_named_than_a_file_name_has_letters(tmp_path):
    names = ",".join(f"hospital {n}=100" for n in range(300))
    for _ in range(2):
        done = run("pilots", names, "--budget", 1, "--save", tmp_path / "pilots.csv")
        assert done.code == 0, done.stderr
    assert len((tmp_path / "pilots.csv").read_text().splitlines()) == 301


def test_json_has_the_design():
    result = run("pilots", "a=50,b=60", "--budget", 3, "--json")
    found = json.loads(result.stdout)
    assert found["agents"] == ["a", "b"] and found["pilots"] == ["1", "2", "3"]
    assert found["contributions"][0] == [50, 60]


# Next pilots.


def test_next_pilots_are_rows_of_the_same_table_and_narrow_the_plan(table, tmp_path):
    path = tmp_path / "next.csv"
    result = run("pilots", table, "--next", 4, "--save", path)
    assert result.code == 0
    assert "Without a safety margin, the stable plan now asks for " in result.stdout
    assert "expected to make the interval of the stable plan's total" in result.stdout
    first, more = read_rows(table), read_rows(path)
    assert more.cells[0] == first.cells[0]
    numbers = [int(row[0]) for row in first.cells[1:]]
    assert [int(row[0]) for row in more.cells[1::2]] == [max(numbers) + n for n in range(1, 5)]
    fill_in(path)
    joined = tmp_path / "joined.csv"
    joined.write_text(table.read_text() + "".join(path.read_text().splitlines(True)[1:]))
    before, after = (json.loads(run("plan", t, "--json").stdout) for t in (table, joined))
    totals = [p["without_margin"]["totals"]["stable"] for p in (before, after)]
    widths = [total["high"] - total["low"] for total in totals]
    assert widths[1] < widths[0]


def test_next_pilots_follow_the_headings_of_their_table(table, tmp_path):
    text = table.read_text().replace("pilot,agent,contribution", "Run,Hospital,Cases")
    own = write(tmp_path / "own.csv", text)
    result = run("pilots", own, "--next", 2)
    assert result.stdout.startswith("Run,Hospital,Cases,accuracy")
    assert "narrower" in result.stderr and "Append the rows" in result.stderr
    found = json.loads(run("pilots", own, "--next", 2, "--json").stdout)
    assert len(found["why"]) == len(found["expected_widths"]) == 2


def test_a_half_filled_table_is_planned_from_and_says_what_is_missing(table, tmp_path):
    text = table.read_text() + "40,North,100,,,,\n40,South,50,,,,\n41,North,1,,,,\n41,South,2,,,,\n"
    half = write(tmp_path / "half.csv", text)
    lines = table.read_text().count("\n")
    result = run("plan", half)
    assert result.stdout == run("plan", table).stdout
    assert (
        f"2 pilots in {half}, the first on line {lines + 1}, have no accuracy yet" in result.stderr
    )


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("City,Rural",), ('no file "City,Rural"', "City=1200,Rural=800")),
        (("missing.csv",), ("cannot read missing.csv",)),
        (("a=1.000,b=5",), ("can be 1000 or 1: write 1000",)),
        (("a=5,b=6", "--budget", "0"), ("the budget must be 1 to",)),
        (("a=5,b=6", "--next", "3"), ("--next is for the next pilots", "--budget")),
        (("a=5,b=6", "--goal", "0.8"), ("--goal is for the next pilots",)),
        (("a=5,b=6", "--sheet", "x"), ("--sheet names a sheet",)),
        (("a=5,b=6", "--save", "x.json"), ("ends in .csv or .xlsx",)),
        (("a=5,b=6", "--probability", "2"), ("above 0 and below 1",)),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(arguments, words):
    assert_refused(run("pilots", *arguments), *words)


def test_a_table_of_pilots_takes_no_budget_and_other_tables_no_next(table, tmp_path):
    assert_refused(run("pilots", table, "--budget", 3), "--next 3 chooses that many more")
    assert_refused(run("pilots", table, "--next", 0), "the budget must be 1 to")
    proposal = write(tmp_path / "plan.csv", "agent,contribution\nNorth,5\n")
    assert_refused(
        run("pilots", proposal), "is a table of contributions", "fedaccord check GAME.json"
    )
    before = table.read_bytes()
    assert_refused(run("pilots", table, "--next", 2, "--save", table), "which this command reads")
    assert table.read_bytes() == before


# An agent that has no samples and wants the model.


def test_an_agent_without_samples_goes_from_a_name_to_a_plan_that_holds(tmp_path):
    path, plan, game = (tmp_path / name for name in ("pilots.csv", "plan.csv", "game.json"))
    assert run("pilots", "North=3000,South=3000,Spa=0", "--budget", 18, "--save", path).code == 0
    worth = np.array([[1.0, 0.4, 0], [0.3, 1.0, 0], [0.6, 0.5, 1.0]])
    fill_in(path, worth=worth, curves=CURVES[[0, 1, 0]])
    goals = ("--goal", "0.8", "--goal", "Spa=0.75")
    result = run("plan", path, *goals, "--save", plan, "--save-game", game)
    assert result.code == 0 and "Spa gives nothing" in result.stdout
    assert plan.read_text().splitlines()[3] in ("Spa,0", "Spa,0.0")
    assert run("check", game, plan).code == 0
    more = run("pilots", path, *goals, "--next", 3)
    given = [line.split(",") for line in more.stdout.splitlines()[1:]]
    assert {row[2] for row in given if row[1] == "Spa"} == {"0"}


def test_limits_of_first_and_next_pilots(tmp_path):
    first = run("pilots", "City=1200,Rural=800", "--limit", "City=100", "--json")
    given = json.loads(first.stdout)["contributions"]
    assert max(row[0] for row in given) == 100 and max(row[1] for row in given) == 800
    more = run("pilots", NETWORK, "--limit", "Hill=50", "--next", "4", "--json")
    assert more.code == 0, more.stderr
    place = json.loads(more.stdout)["agents"].index("Hill")
    assert max(row[place] for row in json.loads(more.stdout)["contributions"]) <= 50


@pytest.mark.parametrize("subject", ["City=1200,Rural=800", NETWORK])
def test_a_limit_without_a_number_names_the_agent_and_the_remedy(subject):
    refused = run("pilots", subject, "--limit", "City=")
    assert_refused(refused, "has no number for City: write it after the equals sign")
