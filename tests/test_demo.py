"""The demo at a small scale: the game it makes of pilots, and the way to its page."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def demo():
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("demo", ROOT / "demo" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def curves(benefits, alone, *, pace=0.7, goal=0.8, spread=0.0, points=120):
    """Accuracies of agents who learn by a power law: what a perfect set of pilots would see.

    benefits: what a point of j is worth to i.
    alone: how many own points bring i to the goal.
    spread: by how much two trials are above and below that.
    """
    worth, needed = np.array(benefits), np.array(alone, dtype=float)
    agents = len(needed)
    counts = np.rint(np.multiply.outer((0.2, 0.4, 0.6, 0.8), [points] * agents)).astype(int)
    own = counts[:, :, None] * worth.T[None]
    accuracy = 1 - (1 - goal) * (own / needed) ** -pace
    found = np.stack([accuracy + spread, accuracy - spread], axis=2)
    names = tuple(f"agent {n}" for n in range(agents))
    source = SimpleNamespace(
        names=names,
        points=np.full(agents, points),
        requirements=np.full(agents, goal),
    )
    return source, counts, found


def test_the_game_is_what_perfect_pilots_show(demo):
    benefits = [[1.0, 0.5, 0.8], [0.7, 1.0, 0.25], [0.9, 1.2, 1.0]]
    game = demo.game_of(*curves(benefits, [50.5, 80.5, 99.5]))
    assert game.benefits == pytest.approx(np.array(benefits))
    assert game.alone.tolist() == [51, 81, 100]
    assert game.limits.tolist() == [120, 120, 120]
    assert game.strategies == "integer"


def test_runs_that_scatter_ask_for_a_margin(demo):
    alone, spread = np.array([50.5, 80.5]), 0.02
    game = demo.game_of(*curves([[1, 0.5], [0.5, 1]], alone, spread=spread))
    # One run above and one below by s: a standard deviation of s times the root of two. The goal
    # is an error of 0.2, and errors fall with the 0.7th power of the points.
    aim = 0.2 - 1.645 * spread * 2**0.5
    assert game.alone.tolist() == np.ceil(alone * (0.2 / aim) ** (1 / 0.7)).tolist()
    assert game.benefits == pytest.approx(np.array([[1, 0.5], [0.5, 1]]))


def test_pilots_let_one_agent_alone_give(demo, monkeypatch):
    asked = []

    def train(federation, algorithm, *, contributions, seed):
        asked.append((federation, seed, tuple(contributions)))
        return SimpleNamespace(final=np.array([0.1, 0.2]) * len(asked))

    monkeypatch.setattr(demo, "train", train)
    source = SimpleNamespace(names=("a", "b"), points=np.array([10, 20]), deal=lambda trial: trial)
    counts, found = demo.pilots(source, None, 3)
    assert counts.tolist() == [[2, 4], [4, 8], [6, 12], [8, 16]]
    assert found.shape == (4, 2, 3, 2)
    assert found[0, 1, 0].tolist() == pytest.approx([0.2, 0.4])
    given = {brought for _, _, brought in asked}
    assert given == {(n, 0) for n in (2, 4, 6, 8)} | {(0, n) for n in (4, 8, 12, 16)}
    # The pilots of a trial share its deal and its seed.
    assert len({(trial, seed) for trial, seed, _ in asked}) == 3


@pytest.mark.slow
def test_the_demo_ends_with_a_table_and_a_page(demo, tmp_path, monkeypatch, capsys):
    # The neediest gives all it needs, which is enough for the others.
    near = np.array(
        [[1, 0.9, 0.9, 0.9], [0.95, 1, 0.9, 0.9], [0.9] * 2 + [1, 0.9], [0.9] * 3 + [1]]
    )
    _, counts, found = curves(near, [79.5, 70.5, 50.5, 45.5])
    monkeypatch.setattr(demo, "pilots", lambda source, algorithm, times: (counts, found))
    demo.main(tmp_path, trials=2)
    plan = (tmp_path / "plan.csv").read_text().splitlines()
    assert plan == ["agent,contribution", "65% hard,80.0", *(f"{n},0.0" for n in OTHERS)]
    assert json.loads((tmp_path / "game.json").read_text())["requirements"] == [80, 71, 51, 46]
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    assert ["all", "248", "80"] in rows
    hard = next(row for row in rows if row[:2] == ["65%", "hard"])
    assert hard[2:4] == ["80", "80"] and hard[-4:-2] in (["0", "of"], ["1", "of"], ["2", "of"])
    easy = next(row for row in rows if row[:2] == ["65%", "easy"])
    assert easy[2:4] == ["46", "0"] and easy[-1] == "-"
    assert f"The whole story: {tmp_path / 'report.html'}" in said.replace("\n", "")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("asks for 80 points", "alone the agents would need 248", "rough plan"):
        assert words in page
    for title in ("Who should give how much", "Who is satisfied", "Could anybody give less"):
        assert title in page


OTHERS = ("60% hard", "60% easy", "65% easy")


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
