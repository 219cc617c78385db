"""--report on the commands about training: the page is there, and nothing else changes."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from commands import assert_refused, run, run_process, write
from federation.tiny import tiny_audit

NAMES = ("<script>north</script>", "south")
COMMANDS = {
    "train": ["train"],
    "audit": ["audit", "--workers", "1"],
    "difficulty": ["difficulty"],
    "pretrain": ["pretrain"],
    "search": ["search", "--draws", "2", "--epochs", "1"],
}
# What stands on each page, and nowhere else.
WORDS = {
    "train": "Which agents reach their goals after training with FedAvg",
    "audit": "Can an agent give less and still reach its goal?",
    "difficulty": "How hard the samples are",
    "pretrain": "What the network knows before federated training",
    "search": "Which learning rate and batch size",
}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A config in the current folder, where results go."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "tiny.toml", tiny_audit(trials=1, names=NAMES))


def page(path="page.html"):
    return Path(path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_its_page_and_says_where(name, tiny, monkeypatch):
    command, *options = COMMANDS[name]
    typed = [command, str(tiny), *options, "--json", "--report", "page.html"]
    monkeypatch.setattr(sys, "argv", ["fedaccord", *typed])
    result = run(*typed)
    assert result.code == 0
    assert json.loads(result.stdout)
    assert "fedaccord: the page is in page.html.\n" in result.stderr
    html = page()
    assert WORDS[name] in html
    assert f"fedaccord {command} {tiny}" in re.sub("</?span>", "", html)
    assert "<script>north" not in html
    assert ("&lt;script&gt;north&lt;/script&gt;" in html) == (name in ("train", "audit"))


def test_the_page_changes_neither_what_is_printed_nor_what_is_saved(tiny):
    without = run("train", tiny, "--save", "a.csv")
    beside = run("train", tiny, "--save", "b.csv", "--report", "page.html")
    assert beside.stdout == without.stdout
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert without.stderr == "" and beside.stderr == "fedaccord: the page is in page.html.\n"


def test_the_exit_code_is_that_of_the_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = write(tmp_path / "high.toml", tiny_audit(trials=1, names=NAMES, requirement=1.0))
    assert run("train", config, "--report", "page.html").code == 1
    assert "0 of 2 agents reach their goals" in page()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("report", "word"),
    [("page.txt", ".html"), ("none/page.html", "none"), ("folder.html", "not a report")],
)
def test_a_page_that_cannot_be_written_is_refused_before_any_work(
    name, report, word, tiny, monkeypatch
):
    def worked(*arguments):
        raise AssertionError("work was begun")

    Path("folder.html").mkdir()
    for module in ("train", "options"):
        monkeypatch.setattr(f"fedaccord.cli.{module}.prepare_building", worked)
    command, *options = COMMANDS[name]
    assert_refused(run(command, tiny, *options, "--report", report), word)


@pytest.mark.parametrize("name", ["train", "audit"])
def test_without_the_extra_a_page_is_refused_before_any_work(name, tiny, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    write(
        hidden / "sitecustomize.py",
        "import sys\nsys.modules['matplotlib'] = None\n",
    )
    path = os.pathsep.join([str(hidden), str(Path(__file__).parents[2] / "src")])
    result = run_process(name, tiny, "--report", "page.html", env={"PYTHONPATH": path})
    assert_refused(result, "report", "pip install")
    assert not Path("page.html").exists() and not Path("fedaccord.sqlite").exists()


def test_a_fault_while_drawing_leaves_the_old_page(tiny, monkeypatch):
    def broken(page):
        raise OSError(28, "No space left on device")

    write(Path("page.html"), "the old page")
    monkeypatch.setattr("fedaccord.report.html.page_html", broken)
    result = run("train", tiny, "--report", "page.html")
    assert result.code == 2
    assert result.stdout == "" and "cannot write" in result.stderr
    assert page() == "the old page"
    assert sorted(path.name for path in Path().iterdir()) == ["page.html", "tiny.toml"]


def test_nobody_need_listen_for_the_page_to_be_written(tiny):
    read, write_end = os.pipe()
    os.close(read)
    result = run_process("train", tiny, "--json", "--report", "page.html", stdout=write_end)
    os.close(write_end)
    assert result.code == 141
    assert "all agents reach their goals" in page()


def test_kept_runs_make_the_same_page_again(tiny, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fedaccord", "audit"])
    command = ["audit", tiny, "--workers", "1", "--report"]
    first, second = run(*command, "a.html"), run(*command, "b.html")
    assert first.stdout == second.stdout
    assert "there already" in second.stderr

    def verdict(path):
        return page(path).partition('class="word"')[2].partition("</div>")[0]

    assert "50\u00a0% is enough for" in verdict("a.html")
    assert verdict("a.html") == verdict("b.html")
