"""The demo at a small scale: what it says of a plan, and the way to its page."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from frontiers import three
from rich.console import Console

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo():
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("demo", ROOT / "demo" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_introduction_says_who_is_who(demo):
    source = SimpleNamespace(names=("Ada", "Ben"), points=[120, 120], requirements=[0.8, 0.8])
    said = demo.introduction(source, (0.65, 0.6))
    assert (
        "120 handwritten digits each. Of these, 65 % of Ada's and 60 % of Ben's are hard." in said
    )
    assert "reads 80 % of their own digits right" in said


def a_plan():
    return SimpleNamespace(
        contributions=np.array([40.0, 40, 0]),
        game=SimpleNamespace(alone=np.array([69.5, 60, 50])),
        satisfied=np.array([0.97, 0.99, 1.0]),
        name=lambda agent: ("north", "south", "west")[agent],
    )


def test_the_table_has_what_each_needs_alone_and_what_the_plan_asks(demo):
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        console.print(demo.sheet_of(a_plan()))
    rows = [line.split() for line in capture.get().splitlines()]
    assert ["north", "70", "40", "97", "%"] in rows
    assert ["west", "50", "0", "100", "%"] in rows
    assert ["all", "180", "80"] in rows


def test_the_verdict_says_what_was_asked_and_what_came_of_it(demo):
    """PLEDGED takes 80 of 180 points; if one agent defects, none is satisfied."""
    assert demo.sum_up(three(), "PLEDGED") == (
        "In the audit, the plan asked for 80 digits, 44 % of what FedAvg takes: all agents reached "
        "their goals in 100 % of runs. An agent that gave 25 % of its pledge reached its goal in "
        "0 % of runs, and all the others reached theirs in 0 %. Under FedAvg, such an agent "
        "reached its goal in 100 %."
    )


def test_one_run_tells_what_the_defector_and_the_others_got(demo):
    def run(final, unique, contributions):
        return SimpleNamespace(
            clients=("Ada", "Ben", "Cleo"),
            requirements=np.full(3, 0.8),
            final=np.array(final),
            satisfied=np.array(final) >= 0.8,
            unique=np.array([unique]),
            contributions=np.array(contributions),
        )

    honest = run([0.85, 0.9, 0.81], [40, 0, 0], [40, 0, 0])
    defecting = run([0.33, 0.84, 0.79], [10, 25, 5], [10, 0, 0])
    assert demo.tell_defection(a_plan(), honest, defecting, 0) == (
        "Ada gave 25 % of its pledge. The server sent it no further model, and it missed its goal. "
        "The others drew 30 digits of their reserve, and 1 of 2 reached theirs."
    )


@pytest.mark.slow
def test_the_demo_ends_with_a_table_and_a_page(demo, tmp_path, monkeypatch, capsys):
    # Wide enough for tables to stay in one piece; and a machine of one core, for so little.
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(demo, "cores", lambda: 1)
    demo.main(tmp_path, pilots=13, trials=1)
    plan = (tmp_path / "plan.csv").read_text().splitlines()
    assert plan[0] == "agent,contribution"
    assert [row.partition(",")[0] for row in plan[1:]] == ["Ada", "Ben", "Cleo", "Dan"]
    asked = [float(row.partition(",")[2]) for row in plan[1:]]
    assert 0 < sum(asked) < 4 * 120 and max(asked) <= 120
    assert json.loads((tmp_path / "game.json").read_text())["model"] == "measured"
    said = capsys.readouterr().out
    for step in ("1. Pilots", "2. The plan", "3. Training", "4. The audit"):
        assert step in said
    assert "In the audit, the plan asked for " in said
    assert f"The whole story is in {tmp_path / 'report.html'}" in said.replace("\n", "")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The server sent it no further model" in said.replace("\n", " ")
    for title in ("The answers", "Who gives how much"):
        assert title in page
    for fact in ("Comparison: ", "Training: "):
        assert f"<dt>{fact}" in page


def test_what_the_demo_writes_is_neither_committed_nor_left_by_make_clean():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    (clean,) = [
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if line.startswith("\trm -rf .m")
    ]
    for name in ("game.json", "plan.csv", "report.html"):
        assert f"/demo/{name}" in ignored
        assert f"demo/{name}" in clean.split()
