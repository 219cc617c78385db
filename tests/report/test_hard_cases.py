"""What once broke pages, reproduce or configs that extend others."""

import json
import os
from pathlib import Path

import pytest
from commands import TWO_HOSPITALS, assert_refused, run, run_process, write

from fedaccord import LinearGame, check
from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.federation.config.load import Config
from fedaccord.report import plot_chart, plot_spare

pytest.importorskip("matplotlib")


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(Path("game.json"), TWO_HOSPITALS)


def test_a_lone_surrogate_in_a_name_does_no_harm(game):
    names = json.dumps({**TWO_HOSPITALS, "agents": ["\ud800", "b\u0000c"]})
    write(game, names)
    assert run("solve", game, "--report", "page.html").code == 0
    assert "\\ud800" in Path("page.html").read_text()


def test_a_missing_game_is_what_is_told_even_if_the_page_is_there_already(game):
    write(Path("page.html"), "an old page")
    assert_refused(run("solve", "none.json", "--report", "page.html"), "cannot read none.json")


@pytest.mark.parametrize("command", ["train", "difficulty", "pretrain", "search", "audit"])
def test_a_page_does_not_take_the_place_of_the_config(game, command):
    config = write(Path("config.html"), "[audit]\ntrials = 1\n")
    assert_refused(run(command, config, "--report", config), "would overwrite config.html")
    assert config.read_text().startswith("[audit]")


def test_a_page_does_not_take_the_place_of_the_game_saved(game):
    result = run("catalog", "flower", "--save", "flower.html", "--report", "flower.html")
    assert_refused(result, "both name flower.html")


@pytest.mark.parametrize("target", ["missing/page.html", "page.html"])
def test_links_that_lead_nowhere_are_refused_before_any_work_or_replaced(game, target):
    os.symlink(target, "page.html")
    result = run("solve", game, "--report", "page.html")
    if target == "page.html":
        assert result.code in (0, 2) and "Traceback" not in result.stderr
    else:
        assert_refused(result, "is missing or not writable")


def test_settings_of_matplotlib_that_are_none_are_told(game):
    result = run_process("solve", game, "--report", "page.html", env={"MPLBACKEND": "foo"})
    assert result.code in (0, 2)
    assert "Traceback" not in result.stderr


def test_lines_whose_names_begin_with_an_underscore_are_in_the_legend():
    lines = tuple(Line(name, (1.0, 2.0), (n, n + 1.0)) for n, name in enumerate(["_a", "b"]))
    axes = plot_chart(Chart("c", "C", "x", "y", "", lines))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["_a", "b"]


def test_maths_on_other_axes_of_a_figure_stays_maths():
    from matplotlib.figure import Figure

    ours, theirs = Figure().subplots(1, 2)
    theirs.set_title(r"$\alpha^2$")
    plot_spare(check(LinearGame([[1, 0.5], [0.5, 1]], [1, 1]), [1, 1]), ax=ours)
    assert theirs.title.get_parse_math()


@pytest.mark.parametrize(
    "base", ["~nosuchuser/x.toml", "a\\u0000b.toml", "loop.toml", "config.toml"]
)
def test_what_cannot_be_extended_is_told_in_a_sentence(tmp_path, base):
    os.symlink("loop.toml", tmp_path / "loop.toml")
    config = write(tmp_path / "config.toml", f'extends = "{base}"\n')
    with pytest.raises(InputError):
        Config.load(config)


def test_a_chain_of_files_has_an_end(tmp_path):
    write(tmp_path / "0.toml", "")
    for n in range(1, 40):
        write(tmp_path / f"{n}.toml", f'extends = "{n - 1}.toml"\n')
    assert Config.load(tmp_path / "10.toml") == Config.load(tmp_path / "0.toml")
    with pytest.raises(InputError, match="more than 20 files extend one another"):
        Config.load(tmp_path / "39.toml")


def test_reproduce_refuses_a_folder_in_which_another_is_at_work(game):
    fcntl = pytest.importorskip("fcntl")
    Path("out").mkdir()
    with Path("out/.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = run("reproduce", "--only", "theorem-7", "--out", "out")
    assert result.code == 2 and "another process uses out" in result.stderr


@pytest.mark.parametrize("place", ["reproduction.html/a", "figures"])
def test_reproduce_sees_beforehand_that_the_page_cannot_be_written(game, place):
    path = Path("out") / place
    path.parent.mkdir(parents=True)
    path.write_text("in the way")
    assert_refused(run("reproduce", "--only", "theorem-7", "--out", "out"), "already exists")


def test_reproduce_needs_a_folder_with_a_name(game):
    assert_refused(run("reproduce", "--out", ""), "--out is empty")


def test_a_store_that_is_none_is_no_verdict_on_the_paper(game):
    pytest.importorskip("torch")
    Path("out").mkdir()
    Path("out/runs.sqlite").write_bytes(os.urandom(8192))
    result = run("reproduce", "--only", "solo-curves", "--out", "out")
    assert result.code == 2
    assert "runs.sqlite" in result.stderr and "fails" not in result.stderr
