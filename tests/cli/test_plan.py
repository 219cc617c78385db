"""fedaccord plan: what it prints, its exit codes, the files it writes, and bad input."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import TWO_HOSPITALS, assert_refused, assert_visible, run, write
from federation.tiny import tiny_audit
from known_hospitals import CURVES, pilots
from processes import PATIENCE, until

from fedaccord.allocation import Allocation
from fedaccord.measurement.pilots import PilotTable

HISTOGRAMS = """agent,healthy,mild,severe,need
University,300,500,200,1440
City,800,100,100,1440
Rural,100,700,200,930
"""
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pilots") / "pilots.csv"
    pilots().save(path)
    return path


def two(path: Path, **options) -> Path:
    """Save pilots of two hospitals, which are fitted sooner."""
    usual = {"names": ("North", "South"), "goals": [0.8, 0.8], "curves": CURVES[:2]}
    benefits = np.array([[1.0, 0.4], [0.3, 1.0]])
    pilots(**{**usual, "benefits": benefits, **options}).save(path)
    return path


# What it prints.


@pytest.mark.parametrize("content", ["pilots", "histograms"])
def test_a_file_that_comes_through_a_pipe_is_planned_from(tmp_path, content):
    path = two(tmp_path / "pilots.csv", repeats=1)
    if content == "histograms":
        path = write(tmp_path / "histograms.csv", HISTOGRAMS)
    read, end = os.pipe()
    try:
        os.write(end, path.read_bytes())
        os.close(end)
        piped = run("plan", f"/dev/fd/{read}")
    finally:
        os.close(read)
    given = run("plan", path)
    assert piped == replace(given, stderr=given.stderr.replace(str(path), f"/dev/fd/{read}"))
    assert piped.code in (0, 1) and piped.stdout


def test_a_plan_from_pilots_is_told_saved_and_found_stable(table, tmp_path):
    plan, game = tmp_path / "plan.csv", tmp_path / "game.json"
    result = run("plan", table, "--save", plan, "--save-game", game)
    assert result.code == 0 and result.stderr == ""
    assert result.stdout.startswith("The plan asks ")
    for word in ("alone", "optimal", "stable", "envy-free", "P(goal)", "with 25 %", "[0.8"):
        assert word in result.stdout
    given = Allocation.load(plan)
    assert given.agents == ("University", "City", "Rural", "Coast")
    for name, amount in zip(given.agents, given.contributions, strict=True):
        assert f"{name} gives {f'{amount:,.0f}' if amount else 'nothing'}" in result.stdout
    checked = run("check", game, plan)
    assert checked.code == 0 and "with probability 0.95." in checked.stdout
    solved = run("solve", game, "--concept", "stable", "--json")
    assert json.loads(solved.stdout)["solutions"]["stable"]["contributions"] is not None


@pytest.mark.parametrize("options", [(), ("--reserve",), ("--goal", "0.999")])
def test_samples_that_cost_more_have_a_row_of_costs(tmp_path, options):
    path = two(tmp_path / "pilots.csv", costs=[3.0, 1.0], repeats=1)
    page = tmp_path / "page.html"
    result = run("plan", str(path), "--report", str(page), *options)
    assert result.code in (0, 1)
    assert page.exists()
    assert ("total cost" in result.stdout) is (result.code == 0)


def test_json_has_the_numbers_and_nothing_else(table):
    result = run("plan", table, "--json")
    data = json.loads(result.stdout)
    assert result.code == 0 and data["outcome"] == "planned"
    assert data["everyone"]["value"] >= 0.95
    assert len(data["contributions"]) == 4


def test_goals_are_those_of_the_options_before_those_of_the_file(table):
    result = run("plan", table, "--goal", "0.75", "--goal", "City=0.78", "--json")
    assert json.loads(result.stdout)["goals"] == [0.75, 0.78, 0.75, 0.75]


def test_pilots_can_be_saved_and_planned_from_again(table, tmp_path):
    again = tmp_path / "again.csv"
    first = run("plan", table, "--save-pilots", again, "--json", "--goal", "0.75")
    assert PilotTable.load(again).goals.tolist() == [0.75] * 4
    second = run("plan", again, "--json")
    assert json.loads(first.stdout)["contributions"] == json.loads(second.stdout)["contributions"]


def test_histograms_beside_pilots_are_a_guide(tmp_path):
    path = two(tmp_path / "pilots.csv")
    beside = write(tmp_path / "labels.csv", "agent,a,b\nNorth,10,20\nSouth,20,10\n")
    assert run("plan", path, "--histograms", beside).code == 0
    short = write(tmp_path / "one.csv", "agent,a,b\nNorth,10,20\n")
    assert_refused(run("plan", path, "--histograms", short), "South has pilots and no histogram")


@pytest.mark.parametrize("option", ["--limit", "--need"])
def test_histograms_whose_rows_are_labels_are_refused(tmp_path, option):
    path = write(tmp_path / "turned.csv", "hospital,North,South\nflu,50,90\nok,30,70\n")
    said = f"North is an agent, and a column of {path}: swap rows and columns"
    assert_refused(run("plan", path, option, "North=40"), said)


def test_explore_says_how_to_open_a_plan_from_histograms(table):
    refused = run("explore", table, "--histograms", "histograms.csv")
    assert_refused(refused, "explore takes no --histograms: ", "--save-game game.json', and open")


def test_a_plan_from_histograms_says_what_it_assumes(tmp_path):
    path = write(tmp_path / "labels.csv", HISTOGRAMS)
    result = run("plan", path)
    assert result.code == 0 and "This assumes that" in result.stdout
    assert "No training was run" in result.stdout
    assert "P(goal)" not in result.stdout
    loud = run("plan", write(tmp_path / "bare.csv", "agent,a,b\nX,5,9\nY,9,5\n"))
    assert loud.code == 0 and loud.stdout.count("assumes that") == 2


def test_needs_come_by_option(tmp_path):
    path = write(tmp_path / "labels.csv", "agent,a,b\nX,5,9\nY,9,5\n")
    data = json.loads(run("plan", path, "--need", "50", "--need", "Y=70", "--json").stdout)
    assert data["without_margin"]["alone"]["values"] == [50, 70]


def test_a_game_is_planned_for_as_it_is(tmp_path):
    data = json.loads(run("plan", write(tmp_path / "g.json", TWO_HOSPITALS), "--json").stdout)
    # Whole samples: one alone supplies half of what the other needs, so each gives one.
    assert data["contributions"] in ([1, 1], [1.0, 1.0])


# Without a plan.


def test_a_goal_out_of_reach_is_told_before_anything_else(table, tmp_path):
    before = "agent,contribution\nlast year,1\n"
    plan = write(tmp_path / "plan.csv", before)
    result = run("plan", table, "--goal", "University=0.97", "--save", plan)
    assert result.code == 1
    assert result.stdout.startswith("There is no plan. University cannot reach its goal of 0.97")
    assert "out of reach" in result.stdout
    assert plan.read_text() == before
    assert result.stdout.count("University cannot reach its goal of 0.97") == 1
    assert f"there is no plan, so {plan} was not written" in result.stderr


def test_a_probability_that_cannot_be_had_ends_with_one(tmp_path):
    path = two(tmp_path / "p.csv", limit=(900.0, 900.0), validation=200)
    result = run("plan", path, "--probability", "0.999")
    assert result.code == 1 and "This plan reaches" in result.stdout


def test_a_plan_that_misses_the_requested_probability_is_saved_only_when_asked_for(tmp_path):
    path = two(tmp_path / "p.csv", limit=(900.0, 900.0), validation=200)
    before = "agent,contribution\nlast year,1\n"
    plan = write(tmp_path / "plan.csv", before)
    result = run("plan", path, "--probability", "0.999", "--save", plan)
    assert result.code == 1 and plan.read_text() == before
    assert f"the plan misses the requested probability of 0.999, so {plan}" in result.stderr
    had = result.stderr.split("ask for --probability ")[1].split()[0]
    again = run("plan", path, "--probability", had, "--save", plan)
    assert again.code == 0 and "last year" not in plan.read_text()


def test_a_measured_game_whose_goal_is_too_high_ends_with_one(table, tmp_path):
    game = tmp_path / "game.json"
    run("plan", table, "--save-game", game)
    result = run("plan", game, "--goal", "0.999")
    assert result.code == 1 and "there is no plan" in result.stderr


# Bad input.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("who,size\nA,3\n", "is neither a table of pilots"),
        ("who,size\nA,3\nB,4\n", "no column 'agent': rename 'who' in line 1 to agent if it"),
        ("Essai,Lieu,Cas,Succès\n1,A,5,0.5\n", "in line 1 to pilot, agent, contribution and acc"),
        ("pilot,agent,contribution,accuracy\n", "nothing below"),
        ("pilot,agent,contribution,accuracy,goal\n1,A,nan,0.5,0.5\n", "contribution of A"),
        ("pilot,agent,contribution,accuracy,goal\n1,A,5,85,0.5\n", "0.85"),
        ("pilot,agent,contribution,accuracy\n1,A,5,0.5\n", "has no goals: add a column goal"),
        ("pilot,agent,contribution,accuracy,goal\n1,A,5,0.5,1.0\n", "the goal of A in line 2 of"),
        ("pilot,agent,contribution,accuracy,goal\n1,A,5,,0.5\n", "has an accuracy yet"),
        ("pilot,agent,contribution,accuracy,goal\n1,A,5,failed,0.5\n", "no accuracy in any pilot"),
    ],
)
def test_files_at_fault_are_refused_in_a_sentence(tmp_path, text, words):
    assert_refused(run("plan", write(tmp_path / "f.csv", text)), words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--goal", "high"], '--goal "high" must be a number'),
        (["--goal", "nan"], "must be a number"),
        (["--goal", "0.7", "--goal", "0.8"], "two numbers for all"),
        (["--goal", "North=0.7", "--goal", "North=0.8"], "names North twice"),
        (["--goal", "Nord=0.7"], "Nord is not among the agents; did you mean North?"),
        (["--goal", "80"], "0.8"),
        (["--goal", "1.0"], "the goal of North is 1"),
        (["--probability", "1"], "probability must be above 0 and below 1"),
        (["--probability", "95"], "probability must be above 0 and below 1"),
        (["--prefer", "cheap"], 'prefer must be "total" or "firm"'),
        (["--need", "5"], "--need is for label histograms"),
        (["--budget", "5"], "--budget is for a federation"),
        (["--algorithm", "FedAvg"], "--algorithm is for a federation"),
        (["--engine", "ray"], "--engine is for a federation"),
        (["--seed", "-1"], "--seed must be"),
        (["--time-limit", "0"], "--time-limit must be"),
        (["--save", "plan.txt"], "--save needs a file that ends in"),
        (["--save-game", "nowhere/g.json"], "is missing or not writable"),
        (["--save", "same.csv", "--save-pilots", "same.csv"], "two options name the same file"),
    ],
)
def test_options_at_fault_are_refused_in_a_sentence(tmp_path, monkeypatch, options, words):
    path = two(tmp_path / "pilots.csv", repeats=1)
    monkeypatch.chdir(tmp_path)
    assert_refused(run("plan", path, *options), words)


def test_what_is_planned_from_is_not_overwritten(tmp_path):
    path = two(tmp_path / "pilots.csv", repeats=1)
    before = path.read_text()
    assert_refused(run("plan", path, "--save", path), "would overwrite")
    assert path.read_text() == before


def test_histograms_beside_the_pilots_are_not_overwritten(tmp_path):
    path = two(tmp_path / "pilots.csv", repeats=1)
    labels = write(tmp_path / "labels.csv", "agent,a,b\nNorth,5,6\nSouth,7,8\n")
    before = labels.read_text()
    for option in ("--save", "--save-pilots"):
        result = run("plan", path, "--histograms", labels, option, labels)
        assert_refused(result, f"{option} would overwrite", "labels.csv, which this command reads")
    assert labels.read_text() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--probability", "1"), "--probability must be above 0 and below 1"),
        (("--prefer", "cheap"), '--prefer must be "total"'),
        (("--goal", "=0.8"), "NAME=X"),
    ],
)
def test_no_pilot_is_trained_for_options_at_fault(tmp_path, options, words):
    config = write(tmp_path / "tiny.toml", tiny_audit(trials=2))
    kept = tmp_path / "runs.sqlite"
    assert_refused(run("plan", config, "--results", kept, "--budget", 1, *options), words)
    assert not kept.exists()


def test_options_that_mean_nothing_to_histograms_are_refused(table, tmp_path):
    path = write(tmp_path / "labels.csv", HISTOGRAMS)
    assert_refused(run("plan", path, "--goal", "0.8"), "have no accuracies")
    swapped = run("plan", path, "--histograms", table)
    assert_refused(swapped, "pilots.csv has the pilots, swap the two files")
    assert_refused(run("plan", path, "--save-pilots", tmp_path / "p.csv"), "no pilots")


def test_names_that_mean_harm_do_none(tmp_path):
    names = ("<script>alert(1)</script>", "\x1b[31mred [bold]x")
    result = run("plan", two(tmp_path / "pilots.csv", names=names))
    assert result.code in (0, 1)
    assert_visible(result.stdout)
    assert "[bold]x gives" in result.stdout


def test_one_agent_and_limits_of_nothing_are_answered(tmp_path):
    alone = two(tmp_path / "one.csv", names=("A",), goals=[0.8], benefits=np.eye(1),
                curves=CURVES[:1], repeats=3)  # fmt: skip
    assert run("plan", alone).code == 0
    nothing = tmp_path / "zero.csv"
    text = alone.read_text().replace(",3000\n", ",0\n")
    assert_refused(run("plan", write(nothing, text)), "of A in line 2 of", "above its limit of 0")
    PilotTable.load(alone)
    save_game = tmp_path / "game.json"
    run("plan", alone, "--save-game", save_game)
    game = json.loads(save_game.read_text())
    result = run("plan", write(save_game, json.dumps({**game, "limits": [0]})))
    assert result.code == 1 and "There is no plan. A cannot reach its target" in result.stdout


def test_many_agents_of_histograms_are_planned_for(tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(400, np.full(6, 1 / 6), size=1_500)
    rows = [f"site {n},{','.join(map(str, row))}" for n, row in enumerate(counts.tolist())]
    text = "\n".join(["agent,a,b,c,d,e,f", *rows])
    result = run("plan", write(tmp_path / "many.csv", text), "--time-limit", "5")
    assert result.code == 0 and "1,500 agents" in result.stdout
    assert result.stdout.count("\n") < 60


def test_plans_from_pilots_need_no_torch(tmp_path):
    path = two(tmp_path / "pilots.csv", repeats=1)
    code = (
        "import sys\nsys.modules['torch'] = None\n"
        f"from fedaccord.cli import app\nsys.argv = ['fedaccord', 'plan', {str(path)!r}]\napp()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "plan" in done.stdout


# From a federation.


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in the current folder, where results go."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "tiny.toml", tiny_audit(trials=1))


def test_a_federation_is_planned_for_and_its_pilots_are_kept(tiny):
    arguments = ("plan", tiny, "--budget", 9, "--workers", 1, "--json")
    first = run(*arguments, "--save-pilots", "pilots.csv")
    assert first.code in (0, 1)
    assert "9 pilots of FedAvg to train.\n" in first.stderr
    assert len(PilotTable.load("pilots.csv")) == 9
    second = run(*arguments)
    assert "minus the runs already in fedaccord.sqlite" in second.stderr
    mine, again = json.loads(first.stdout), json.loads(second.stdout)
    assert mine["agents"] == ["north", "south"]
    assert mine["contributions"] == again["contributions"]


def test_a_goal_of_one_is_told_before_anything_is_trained(tiny):
    result = run("plan", tiny, "--goal", "1")
    assert result.code == 1
    assert "there is no plan" in result.stderr and "north" in result.stderr
    assert "pilots" not in result.stderr


@pytest.mark.slow
def test_an_interrupt_says_what_is_kept(tiny):
    with subprocess.Popen(
        [sys.executable, "-m", "fedaccord", "plan", str(tiny), "--budget", "900", "--workers", "1"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: kept_runs() >= 3 or process.poll() is not None, "no pilot is finished")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout) == (130, "")
    assert f"interrupted: {kept_runs()} finished runs are stored in fedaccord.sqlite" in stderr


def kept_runs() -> int:
    """Count the runs in the file that the command may be writing."""
    try:
        store = sqlite3.connect("file:fedaccord.sqlite?mode=ro", uri=True)
        with contextlib.closing(store):
            return int(store.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


# Tables as people have them.


def test_a_hospital_without_cases_goes_from_histograms_to_a_plan_that_holds(tmp_path):
    text = "Hospital;clear;ill;Need\nNorth;500;250;400\nSouth;100;<11;300\nEmpty;;;100\n"
    path, game, plan = (tmp_path / name for name in ("h.csv", "game.json", "plan.csv"))
    result = run("plan", write(path, text), "--save", plan, "--save-game", game)
    assert result.code == 0
    assert "Agents without samples (Empty)" in result.stdout
    assert "1 count in" in result.stdout and '"<11" was read as 5' in result.stderr
    assert "'Hospital' is read as agent" in result.stderr
    assert json.loads(game.read_text())["limits"] == [None, None, 0]
    found = run("check", game, plan)
    assert found.code == 0 and "Empty gives 0" in found.stdout


def test_a_hospital_without_cases_in_any_pilot_is_noted_unless_its_limit_is_zero(tmp_path):
    text = "pilot,agent,contribution,accuracy,limit\n1,a,50,0.5,90\n1,b,0,0.4,\n"
    result = run("plan", write(tmp_path / "p.csv", text))
    assert "b gives nothing in any pilot" in result.stderr
    assert "the limit 0" in result.stderr
    result = run("plan", write(tmp_path / "p.csv", text.replace("0.4,", "0.4,0")))
    assert "gives nothing" not in result.stderr


def test_files_that_were_swapped_get_the_command_that_takes_them(tmp_path):
    game = write(tmp_path / "game.json", json.dumps(TWO_HOSPITALS))
    histograms = write(tmp_path / "h.csv", HISTOGRAMS)
    offer = write(tmp_path / "offer.csv", "site,cases\na,5\n")
    listed = write(tmp_path / "offer.json", '{"contributions": [5, 6]}')
    pilots = write(tmp_path / "p.csv", "pilot,agent,contribution,accuracy\n1,a,5,0.5\n")
    for command, words in (
        (("plan", offer), "'fedaccord check PILOTS.csv"),
        (("plan", listed), "to check contributions, run 'fedaccord check GAME.json FILE'"),
        (("plan", pilots, "--goal", "0.4", "--histograms", offer), "table of label histograms is"),
        (("plan", pilots, "--goal", "0.4", "--histograms", game), "is JSON and not a table"),
        (("check", game, histograms), "'fedaccord plan"),
        (("check", game, pilots), "is a table of pilots"),
        (("check", game, game), "'fedaccord solve"),
        (("check", offer, game), "is a table of contributions: give the pilots or the game first"),
        (("solve", histograms), "'fedaccord plan"),
        (("plan", game, "--sheet", "1"), "--sheet names a sheet of a workbook"),
        (("check", game, offer, "--sheet", "1"), "has no sheets"),
    ):
        assert_refused(run(*command), words)


def test_a_workbook_goes_through_plan_and_check(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Site", "clear", "ill", "need"], ["A", 500, 250, 400], ["B", 100, 200, 300]):
        book.active.append(row)
    book.save(tmp_path / "h.xlsx")
    game, plan = tmp_path / "game.json", tmp_path / "plan.xlsx"
    assert run("plan", tmp_path / "h.xlsx", "--save", plan, "--save-game", game).code == 0
    assert run("check", game, plan).code == 0


@pytest.mark.parametrize("text", ["95%", "95 %", "0,95"])
def test_a_probability_may_be_in_per_cent(tmp_path, text):
    path = tmp_path / "p.csv"
    path.write_text("agent,ok,ill\nA,5,4\nB,7,1\n", encoding="utf-8")
    assert run("plan", path, "--probability", text).stdout == run("plan", path).stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [("95", "did you mean 0.95, or 95%?"), ("0.95 %", "write 95 % or"), ("high", '"high"')],
)
def test_a_probability_gets_a_remedy(text, said):
    assert_refused(run("plan", "--probability", text), "--probability", said)


def test_a_limit_of_the_command_line_is_whole_as_in_tables(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("pilot,agent,contribution,accuracy,goal\n1,Hill,9,0.5,0.4\n1,B,8,0.5,0.4\n")
    said = '--limit "Hill=1500.5": write a whole number'
    assert_refused(run("plan", path, "--limit", "Hill=1500.5"), said)
    assert_refused(run("pilots", "Hill=90,B=8", "--limit", "Hill=1500.5"), said)
