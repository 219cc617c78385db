"""--report on the commands about games: the page is written, and nothing else changes."""

import hashlib
import json
import re
import sys
from pathlib import Path

import pytest
from commands import TWO_HOSPITALS, assert_refused, run, run_process, write

from fedaccord.report.model import Page

STABLE = {"contributions": [2 / 3, 2 / 3]}


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return write(tmp_path / "game.json", TWO_HOSPITALS)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Page]:
    """Keep the pages that would be drawn, which takes seconds, and write a word instead."""
    pages: list[Page] = []

    def html(page: Page) -> str:
        pages.append(page)
        return "drawn"

    monkeypatch.setattr(Page, "html", html)
    return pages


def test_a_page_of_plans_is_written_by_a_process_of_its_own(game: Path, tmp_path: Path) -> None:
    report = tmp_path / "plans.html"
    plain = run_process("solve", game, "--concept", "stable", cwd=tmp_path)
    done = run_process("solve", game, "--concept", "stable", "--report", "plans.html", cwd=tmp_path)
    assert (done.code, done.stdout) == (0, plain.stdout)
    assert done.stderr == "fedaccord: the page is in plans.html.\n"
    text = report.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert (
        "The stable plan asks for 1.333 samples, 0.6667 fewer than the agents would need alone"
        in text
    )
    said = re.sub("<[^>]+>", "", text)
    assert f"fedaccord solve {game} --concept stable --report plans.html" in said
    assert list(tmp_path.glob(".plans*")) == []


def test_json_and_a_saved_plan_come_with_the_page(
    game: Path, tmp_path: Path, kept: list[Page]
) -> None:
    report, plan = tmp_path / "p.html", tmp_path / "plan.csv"
    result = run("solve", game, "--json", "--save", plan, "--report", report)
    assert result.code == 0
    assert set(json.loads(result.stdout)["solutions"]) == {"optimal", "stable", "envy-free"}
    assert plan.read_text().startswith("agent,contribution\nsite A,0.66")
    assert report.read_text() == "drawn"
    assert result.stderr == f"fedaccord: the page is in {report}.\n"
    (page,) = kept
    assert page.tone == "good"
    assert "prices" in [picture.name for picture in page.pictures()]


def test_the_page_repeats_what_was_typed(
    game: Path, tmp_path: Path, kept: list[Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ["fedaccord", "solve", str(game), "--report", "a b.html"]
    monkeypatch.setattr(sys, "argv", typed)
    monkeypatch.chdir(tmp_path)
    assert run(*typed[1:]).code == 0
    assert kept[0].command == f"fedaccord solve {game} --report 'a b.html'"


def test_the_page_tells_which_files_it_is_about(
    game: Path, tmp_path: Path, kept: list[Page]
) -> None:
    plan = write(tmp_path / "plan.json", STABLE)
    assert run("solve", game, "--concept", "stable", "--report", tmp_path / "s.html").code == 0
    assert run("check", game, plan, "--report", tmp_path / "c.html").code == 0
    about = [f"game.json, SHA-256 {hashlib.sha256(game.read_bytes()).hexdigest()}"]
    assert dict(kept[0].facts)["Game file"] == about[0]
    about += [f"plan.json, SHA-256 {hashlib.sha256(plan.read_bytes()).hexdigest()}"]
    titles = ("Checked against", "Proposal")
    assert list(kept[1].facts[:2]) == list(zip(titles, about, strict=True))


@pytest.mark.parametrize(
    ("contributions", "code", "tone"),
    [([2 / 3, 2 / 3], 0, "good"), ([1, 1], 1, "bad"), ([0, 0], 1, "bad")],
)
def test_a_checked_plan_gets_a_page_whatever_the_answer(
    contributions: list[float], code: int, tone: str, game: Path, tmp_path: Path, kept: list[Page]
) -> None:
    plan = write(tmp_path / "plan.json", {"contributions": contributions})
    report = tmp_path / "check.html"
    plain = run("check", game, plan)
    result = run("check", game, plan, "--report", report)
    assert (result.code, result.stdout) == (plain.code, plain.stdout)
    assert result.code == code
    assert result.stderr == f"fedaccord: the page is in {report}.\n"
    assert (report.read_text(), kept[0].tone) == ("drawn", tone)


def test_no_stable_plan_gets_a_page_too(tmp_path: Path, kept: list[Page]) -> None:
    game = tmp_path / "cycle.json"
    assert run("catalog", "pac-cycle", "--save", game).code == 0
    save = tmp_path / "plan.csv"
    result = run("solve", game, "--save", save, "--report", tmp_path / "cycle.html")
    # Nothing to save is a no; the page is written all the same.
    assert result.code == 1
    assert "nothing was saved" in result.stderr and "the page is in" in result.stderr
    assert kept[0].verdict.startswith("It is proved that no stable plan exists")


def test_the_catalogue_and_one_game_of_it_get_pages(tmp_path: Path, kept: list[Page]) -> None:
    everything = run("catalog", "--report", tmp_path / "all.html")
    assert everything.code == 0 and "flower" in everything.stdout
    one = run("catalog", "star", "--parameter", "leaves=2", "--report", tmp_path / "one.html")
    assert json.loads(one.stdout)["agents"] == ["hub", "leaf 1", "leaf 2"]
    assert one.stderr == f"fedaccord: the page is in {tmp_path / 'one.html'}.\n"
    assert "optimal 2, stable 2, envy-free 2" in kept[1].verdict


# Reports that cannot be written are refused before any work.


@pytest.fixture
def commands(game: Path, tmp_path: Path) -> list[list[Path | str]]:
    plan = write(tmp_path / "plan.json", STABLE)
    return [["solve", game], ["check", game, plan], ["catalog"], ["catalog", "star"]]


def test_a_report_that_is_no_html_is_refused(
    commands: list[list[Path | str]], tmp_path: Path
) -> None:
    for command in commands:
        result = run(*command, "--report", tmp_path / "report.pdf")
        assert_refused(result, "--report needs a file that ends in .html", "report.pdf")


def test_a_report_in_a_folder_that_is_not_there_is_refused(
    commands: list[list[Path | str]], tmp_path: Path
) -> None:
    for command in commands:
        assert_refused(
            run(*command, "--report", tmp_path / "no" / "r.html"), "is missing or not writable"
        )


def test_a_report_over_the_game_or_the_plan_is_refused(tmp_path: Path) -> None:
    game = write(tmp_path / "game.html", TWO_HOSPITALS)
    plan = write(tmp_path / "plan.html", STABLE)
    assert_refused(run("solve", game, "--report", game), "would overwrite", "game.html")
    assert_refused(run("check", game, plan, "--report", plan), "would overwrite", "plan.html")
    assert_refused(run("check", game, plan, "--report", game), "would overwrite", "game.html")
    assert json.loads(game.read_text()) == TWO_HOSPITALS


def test_an_old_page_survives_a_fault_in_drawing(
    game: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = write(tmp_path / "r.html", "old")

    def fail(page: Page) -> str:
        raise MemoryError

    monkeypatch.setattr(Page, "html", fail)
    result = run("solve", game, "--report", report)
    assert result.code == 2 and "too little memory" in result.stderr
    assert report.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# The user's own title and words.

WORDING = ("--title", "For the board", "--agent-word", "country/countries", "--sample-word", "case")


@pytest.mark.parametrize("command", ["solve", "check"])
def test_pages_and_tables_have_the_users_title_and_words(
    game: Path, tmp_path: Path, kept: list[Page], command: str
) -> None:
    given = [game] if command == "solve" else [game, write(tmp_path / "plan.json", STABLE)]
    done = run(command, *given, *WORDING, "--report", tmp_path / "p.html")
    plain = run(command, *given)
    assert done.stdout.startswith("For the board\n")
    assert re.search(r"^ country +", done.stdout, re.M)
    assert re.search(r"^ agent +", plain.stdout, re.M)
    assert not re.search(r"\b(agents?|samples?)\b", done.stdout)
    assert kept[0].title == "For the board"
    assert "2 countries" in dict(kept[0].facts)["Game"]
    # Machines read the same as ever, how long it took aside.
    own, usual = (run(command, *given, "--json", *some).stdout for some in (WORDING, ()))
    assert re.sub(r'"seconds": .*', "", own) == re.sub(r'"seconds": .*', "", usual)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--agent-word", "", "--agent-word is empty"),
        ("--agent-word", "country/", "--agent-word is empty"),
        ("--sample-word", " ", "--sample-word is empty"),
        ("--sample-word", "c" * 31, "--sample-word has 31 letters; use at most 30"),
        ("--agent-word", "a/b/c", "such as country/countries"),
        ("--agent-word", "<b>", "must be a word"),
        ("--title", "", "--title is empty"),
        ("--title", "t" * 151, "--title has 151 letters; use at most 150"),
        ("--title", "two\nlines", "--title must be one line"),
    ],
)
def test_words_that_are_none_are_refused(game: Path, option: str, value: str, said: str) -> None:
    assert_refused(run("solve", game, option, value), said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("solve", "GAME", "--limit", "Z=3"), "Z is not among the hospitals"),
        (("plan", "ZERO"), "site A gains nothing from its own cases"),
        (("share", "ZERO"), "site A gains nothing from its own cases"),
        (("coalitions", "ZERO"), "site A gains nothing from its own cases"),
        (("check", "ZERO", "GAME"), "site A gains nothing from its own cases"),
        (("pilots", "City"), "hospitals are named with how many cases each has"),
    ],
)
def test_errors_and_messages_follow_the_users_words(arguments, said, tmp_path):
    files = {"GAME": TWO_HOSPITALS, "ZERO": {**TWO_HOSPITALS, "benefits": [[0, 1], [0, 1]]}}
    for name, game in files.items():
        write(tmp_path / f"{name}.json", game)
    typed = [str(tmp_path / f"{one}.json") if one in files else one for one in arguments]
    words = ("--agent-word", "hospital", "--sample-word", "case")
    assert_refused(run(*typed, *words), said)
    # Words are those of one command.
    assert "hospitals" not in run(*typed).stderr and "cases" not in run(*typed).stderr


def test_messages_that_are_no_errors_follow_the_users_words():
    said = run("pilots", "Agent Smith=3,Town=9", "--agent-word", "sample bank/sample banks").stderr
    assert "every sample bank takes as many of its samples" in said
