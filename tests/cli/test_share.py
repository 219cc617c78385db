"""fedaccord share and fedaccord coalitions: numbers, files, pages, exit codes and faults."""

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from commands import TWO_HOSPITALS, assert_refused, run, run_process, write

from fedaccord.sharing.many import Optima

ROOT = Path(__file__).parents[2]
HOSPITALS = ROOT / "docs" / "tutorial" / "hospitals.json"
PILOTS = ROOT / "docs" / "how-to" / "network" / "pilots.csv"
BOTH = pytest.mark.parametrize("command", ["share", "coalitions"])


def hospitals(**changes):
    return {**json.loads(HOSPITALS.read_text(encoding="utf-8")), **changes}


def test_share_prints_a_sentence_for_each_agent():
    result = run("share", HOSPITALS)
    assert result.code == 0
    assert "City gives 703 and pays 647. It bears 1,350 in all, and would pay 1,440 alone. " in (
        result.stdout
    )
    assert "a funder has to pay 1,532 of the total cost of 1,931" in result.stdout
    assert "do not make agents honest" in result.stdout


def test_share_as_json_has_every_contract():
    result = run("share", HOSPITALS, "--json")
    found = json.loads(result.stdout)
    assert found["exact"] is True and found["gap"] == 0
    assert found["contracts"]["prices"]["payments"]["values"] == [-1228.125, 646.875, 581.25]
    assert list(found["contracts"]) == ["prices", "marginal", "shapley", "nucleolus"]
    assert found["alone"] == [1440, 1440, 930]


def test_share_saves_a_table_that_check_reads(tmp_path):
    saved = tmp_path / "payments.csv"
    assert run("share", HOSPITALS, "--save", saved).code == 0
    rows = list(csv.DictReader(saved.read_text(encoding="utf-8").splitlines()))
    assert [float(row["payment"]) for row in rows] == [-1228.125, 646.875, 581.25]
    assert run("check", HOSPITALS, saved, "--require", "feasible").code == 0


@BOTH
def test_a_page_has_the_verdict_and_the_tables(command, tmp_path):
    page = tmp_path / "page.html"
    result = run(command, HOSPITALS, "--report", page, "--agent-word", "hospital")
    assert result.code == 0
    text = page.read_text(encoding="utf-8")
    assert "University" in text and "hospitals" in text
    assert ("Who pays whom" if command == "share" else "Who should federate with whom") in text


def test_pilots_give_intervals(tmp_path):
    result = run("share", PILOTS, "--json", "--report", tmp_path / "page.html")
    payments = json.loads(result.stdout)["contracts"]["prices"]["payments"]
    low, value, high = payments["low"], payments["values"], payments["high"]
    assert all(a <= b <= c for a, b, c in zip(low, value, high, strict=True))
    assert sum(value) == pytest.approx(0, abs=1e-6)
    assert json.loads(result.stdout)["accuracy"] is not None


@pytest.mark.parametrize("limit", [300, 1_200])
def test_payments_are_for_the_plan_itself_from_pilots_and_from_its_game(limit, tmp_path):
    game, limited = tmp_path / "game.json", ("--limit", f"Mill={limit}")
    planned = run("plan", PILOTS, *limited, "--save-game", game, "--json")
    assert planned.code == 0
    given = json.loads(planned.stdout)["contributions"]
    first, second = (
        json.loads(run("share", *subject, "--json").stdout)
        for subject in ((PILOTS, *limited), (game,))
    )
    assert first["contributions"] == second["contributions"] == given
    # With the lower limit, Mill has a smaller safety margin than the others.
    assert (given[2] == limit) is (limit == 300)
    for key in ("verdict", "doubts", "alone"):
        assert first[key] == second[key]
    for end in ("low", "values", "high"):
        one, other = (found["contracts"]["prices"]["payments"][end] for found in (first, second))
        assert one == pytest.approx(other, abs=1e-6)
    assert "do not yet show which agents pay" in first["verdict"]
    shown = run("share", game).stdout
    assert "The payments are for the same targets as the plan." in shown


def test_rounding_is_not_shown_as_money(monkeypatch):
    def leave_rounding(benefits, needs, *rest):
        return Optima(np.zeros(len(needs)), np.full(needs.shape, 1e-13), np.zeros(needs.shape))

    monkeypatch.setattr("fedaccord.sharing.share.solve_many", leave_rounding)
    found = json.loads(run("share", PILOTS, "--json").stdout)["contracts"]["prices"]
    assert found["shares"]["low"] == [0, 0, 0] and found["shares"]["high"] == [0, 0, 0]


def test_pilots_are_shared_in_the_whole_samples_of_the_plan(tmp_path):
    saved, plan = tmp_path / "payments.csv", json.loads(run("plan", PILOTS, "--json").stdout)
    assert run("share", PILOTS, "--save", saved).code == 0
    rows = list(csv.DictReader(saved.read_text(encoding="utf-8").splitlines()))
    assert [float(row["contribution"]) for row in rows] == plan["contributions"]
    grouped = json.loads(run("coalitions", PILOTS, "--json").stdout)
    assert grouped["chosen"]["costs"] == plan["contributions"]
    assert grouped["chosen"]["total"] == sum(plan["contributions"])


def test_coalitions_of_the_hospitals():
    result = run("coalitions", HOSPITALS)
    assert result.code == 0
    assert "One coalition of all agents holds" in result.stdout
    assert "University gives 300 with City and Rural, against 1,440 on its own." in result.stdout
    found = json.loads(run("coalitions", HOSPITALS, "--json").stdout)
    assert found["chosen"]["coalitions"] == [[0, 1, 2]]
    assert found["core_count"] == 2 and found["complete"] is True


def test_coalitions_have_the_doubts_of_the_pilots_and_are_not_all_well(tmp_path):
    asked, page = (PILOTS, "--goal", "Mill=0.75"), tmp_path / "page.html"
    doubts = [one["sentence"] for one in json.loads(run("plan", *asked, "--json").stdout)["doubts"]]
    assert any("According to its curve, Mill needs" in one for one in doubts)
    shown = run("coalitions", *asked, "--report", page)
    found = json.loads(run("coalitions", *asked, "--json").stdout)
    text = page.read_text(encoding="utf-8")
    assert set(found["doubts"]) <= set(doubts) and "According to its curve, Mill needs" in " ".join(
        found["doubts"]
    )
    for one in found["doubts"]:
        assert f"Doubt: {one}" in shown.stdout and (shown.stdout + shown.stderr).count(one) == 1
    cheapest = run("coalitions", *asked, "--plans", "cheapest", "--json")
    assert json.loads(cheapest.stdout)["doubts"] == found["doubts"]
    assert "Doubt: According to its curve, Mill needs" in text
    assert "Not certain" in text and "All is well" not in text
    assert run("plan", *asked, "--save-game", game := tmp_path / "game.json").code == 0
    assert json.loads(run("coalitions", game, "--json").stdout)["doubts"] == found["doubts"]
    assert json.loads(run("coalitions", HOSPITALS, "--json").stdout)["doubts"] == []


def test_an_agent_that_nobody_can_serve_stays_alone(tmp_path):
    game = hospitals(limits=[100, 100, None], agents=["A", "B", "C"])
    path = write(tmp_path / "game.json", game)
    result = run("coalitions", path)
    assert result.code == 0
    assert "stays alone, short of its requirement" in result.stdout
    assert run("share", path).code == 0


def test_there_is_nothing_to_share_where_limits_leave_no_plan(tmp_path):
    path = write(tmp_path / "game.json", hospitals(limits=[100, 100, 100]))
    result = run("share", path)
    assert result.code == 1 and result.stdout == ""
    assert "There is nothing to share. There is no plan" in result.stderr


@BOTH
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.json"], "nowhere.json"),
        ([HOSPITALS, "--probability", "0.9"], "--probability is for a table of pilots"),
        ([HOSPITALS, "--histograms", "h.csv"], "--histograms is for a table of pilots"),
        ([HOSPITALS, "--goal", "0.9"], "--goal is for accuracies"),
        ([HOSPITALS, "--sheet", "one"], "--sheet"),
        ([HOSPITALS, "--time-limit", "0"], "--time-limit"),
        ([HOSPITALS, "--seed", "-1"], "--seed"),
        ([HOSPITALS, "--report", "page.txt"], ".html"),
        ([PILOTS, "--probability", "1"], "--probability"),
        ([PILOTS, "--goal", "Nowhere=0.9"], "Nowhere"),
        ([ROOT / "pyproject.toml"], "neither a game nor a table of pilots"),
        ([], "Missing argument"),
    ],
)
def test_faults_are_sentences(command, arguments, words):
    assert_refused(run(command, *arguments), words)


@BOTH
def test_other_games_are_refused(command):
    path = ROOT / "tests" / "golden" / "inputs" / "coverage.json"
    assert_refused(run(command, path), "coverage")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--orders", "3"], "--orders"),
        (["--save", "payments.json"], ".csv or .xlsx"),
        (["--save", "nowhere/payments.csv"], "nowhere"),
    ],
)
def test_faults_of_share(arguments, words):
    assert_refused(run("share", HOSPITALS, *arguments), words)


def test_share_does_not_overwrite_what_it_reads():
    assert_refused(run("share", PILOTS, "--save", PILOTS), "which this command reads")


@BOTH
def test_goals_that_pilots_cannot_reach_exit_with_one(command):
    result = run(command, PILOTS, "--goal", "0.9999")
    assert result.code == 1 and result.stdout == ""
    assert "no plan" in result.stderr or "there is no" in result.stderr


def test_forty_one_agents_are_too_many_for_coalitions(tmp_path):
    size = 41
    benefits = [[1.0 if i == j else 0.1 for j in range(size)] for i in range(size)]
    game = {"model": "linear", "requirements": [1] * size, "benefits": benefits}
    path = write(tmp_path / "game.json", game)
    assert_refused(run("coalitions", path), "up to 40 agents")
    assert run("share", path).code == 0


@pytest.mark.parametrize("command", ["share", "coalitions", "plan", "solve", "check"])
def test_a_game_is_read_from_a_pipe(command, tmp_path):
    proposal = write(tmp_path / "plan.json", {"contributions": [1, 1, 1]})
    more = (proposal,) if command == "check" else ()
    out, into = os.pipe()
    os.write(into, HOSPITALS.read_bytes())
    os.close(into)
    piped = run_process(command, "/dev/fd/0", *more, "--json", stdin=out)
    os.close(out)
    named = run(command, HOSPITALS, *more, "--json")
    assert piped.code == named.code, piped.stderr
    drop = r'"seconds": [^,}]*'
    assert re.sub(drop, "", piped.stdout) == re.sub(drop, "", named.stdout)


@pytest.mark.parametrize("command", ["share", "coalitions", "plan", "solve", "check"])
def test_a_game_with_an_agent_whose_samples_are_worth_nothing_to_it_is_bad_input(command, tmp_path):
    proposal = write(tmp_path / "plan.json", {"contributions": [1, 1]})
    game = write(tmp_path / "game.json", {**TWO_HOSPITALS, "benefits": [[0, 1], [0, 1]]})
    more = (proposal,) if command == "check" else ()
    assert_refused(run(command, game, *more), "site A gains nothing from its own samples")


@pytest.mark.parametrize("command", ["share", "coalitions", "solve"])
def test_a_limit_is_that_of_a_game_with_this_limit(command, tmp_path):
    game = write(tmp_path / "game.json", hospitals(limits=[300, None, None]))
    limited = run(command, HOSPITALS, "--limit", "University=300", "--json")
    drop = r'"seconds": [^,}]*'
    expected = run(command, game, "--json")
    assert re.sub(drop, "", limited.stdout) == re.sub(drop, "", expected.stdout)
    assert limited.stdout != run(command, HOSPITALS, "--json").stdout
