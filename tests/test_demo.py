"""The demo at a small scale: the game it makes of pilots, and the way to its page."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from training_results import audit

from fedaccord import Allocation, solve_envy_free, solve_stable

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
    benefits = [[1.0, 0.5, 0.8], [0.7, 1.0, 0.25], [0.9, 0.6, 1.0]]
    game = demo.game_of(*curves(benefits, [50.5, 80.5, 99.5]))
    assert game.benefits == pytest.approx(np.array(benefits))
    assert game.alone.tolist() == [51, 81, 100]
    assert game.limits.tolist() == [120, 120, 120]
    assert game.strategies == "integer"


def test_nobody_is_taken_to_be_worth_more_to_another_than_its_own_points(demo):
    game = demo.game_of(*curves([[1, 1.3], [0.5, 1]], [50.5, 80.5]))
    assert game.benefits == pytest.approx(np.array([[1, 1], [0.5, 1]]))


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
    # Wide enough for the table to stay in one piece.
    monkeypatch.setenv("COLUMNS", "120")
    # The neediest gives all it needs, which is enough for the others.
    near = np.array(
        [[1, 0.9, 0.9, 0.9], [0.95, 1, 0.9, 0.9], [0.9] * 2 + [1, 0.9], [0.9] * 3 + [1]]
    )
    _, counts, found = curves(near, [79.5, 70.5, 50.5, 45.5])
    monkeypatch.setattr(demo, "pilots", lambda source, algorithm, times: (counts, found))
    demo.main(tmp_path, trials=2)
    plan = (tmp_path / "plan.csv").read_text().splitlines()
    assert plan == ["agent,contribution", "Ada,80.0", *(f"{n},0.0" for n in OTHERS)]
    assert json.loads((tmp_path / "game.json").read_text())["requirements"] == [80, 71, 51, 46]
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    assert ["all", "248", "80"] in rows
    ada, dan = (next(row for row in rows if row[:1] == [name]) for name in ("Ada", "Dan"))
    assert ada[1:3] == ["80", "80"] and ada[-3] in "012" and ada[-2:] == ["of", "2"]
    assert dan[1:3] == ["46", "0"] and dan[-2:] == ["-", "-"]
    assert f"The whole story: {tmp_path / 'report.html'}" in said.replace("\n", "")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in (
        "One agent, Ada, gives all 80 points, as many as it would need alone by the",
        "the other three give nothing",
        "Ada gains nothing by joining",
        "That is not fairness.",
        "Nobody envies another, though",
        "would need 248 points in all",
        "rough plan",
        "For comparison: no plan, everybody brings all 120 points",
        "Without a plan, all bringing all 480 points",
    ):
        assert words in page
    for title in ("Who should give how much", "Who is satisfied", "Could anybody give less"):
        assert title in page
    for fact in ("Pilots: Seed", "Plan: Seed", "Test of the plan: Audit", "No plan: Audit"):
        assert f"<dt>{fact}</dt>" in page
    assert "<dt>Seed</dt>" not in page and "None" not in page.partition('class="made"')[2]


OTHERS = ("Ben", "Cleo", "Dan")


def a_game(demo, alone=(80, 70, 50, 46)):
    names = ("Ada", "Ben", "Cleo", "Dan")
    return demo.LinearGame(np.eye(4), np.array(alone, dtype=float), agents=names)


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (
            [80, 0, 0, 0],
            "One agent, Ada, gives all 80 points, as many as it would need alone by the pilots' "
            "estimate; the other three give nothing.",
        ),
        (
            [0, 60, 0, 0],
            "One agent, Ben, gives all 60 points, and alone would need 70 by the pilots' "
            "estimate; the other three give nothing.",
        ),
        (
            [40, 30, 20, 0],
            "Three agents give 90 points (Ada 40, Ben 30 and Cleo 20), and alone would need 200 "
            "by the pilots' estimate; the other gives nothing.",
        ),
        (
            [40, 30, 20, 10],
            "Four agents give 100 points (Ada 40, Ben 30, Cleo 20 and Dan 10), and alone would "
            "need 246 by the pilots' estimate.",
        ),
    ],
)
def test_who_gives_is_said_for_any_number_of_givers(demo, gives, words):
    game = a_game(demo)
    assert demo.who_gives(game, Allocation(gives, agents=game.agents)) == words


def test_who_gives_all_it_would_need_alone_gains_nothing(demo):
    game = a_game(demo)
    said = demo.gains(game, Allocation([80, 0, 0, 0], agents=game.agents))
    assert said.startswith("Ada gains nothing by joining: it gives what would be needed alone.")
    assert "The other three save 166 points" in said
    said = demo.gains(game, Allocation([40, 30, 0, 0], agents=game.agents))
    assert said.startswith("Everybody gains by joining")


def test_who_envies_is_named_with_the_plan_in_which_nobody_does(demo):
    game = demo.LinearGame(
        np.ones((2, 2)), np.array([80.0, 40]), agents=("Ada", "Ben"), strategies="integer"
    )
    found = {"stable": solve_stable(game), "envy-free": solve_envy_free(game)}
    said = " ".join(demo.fairness(game, found))
    assert found["stable"].contributions.tolist() == [80, 0]
    # All points are worth the same, so that in Ben's place Ada would still have 80 of them.
    assert "Ada would rather be in another's place" in said
    assert "asks for 80 points instead of 80: Ada 40 and Ben 40." in said


@pytest.mark.parametrize(
    ("gives", "failing", "tone"),
    [
        # Stable, and never failing, but Ada would rather be Ben.
        ([80, 0], 0, "plain"),
        ([40, 40], 0, "good"),
        # One run failed.
        ([40, 40], 1, "plain"),
    ],
)
def test_a_plan_is_called_good_only_if_it_never_failed_and_nobody_envies(
    demo, gives, failing, tone
):
    game = demo.LinearGame(np.ones((2, 2)), np.array([80.0, 80]), agents=("Ada", "Ben"))

    def rule(level, defector, client, trial):
        return trial >= failing if level == 1 else client != defector

    found = audit({"FedAvg": rule}, names=game.agents, trials=20, protocol="P2", asked=gives)
    assert demo.tone_of(game, Allocation(gives, agents=game.agents), found) == tone


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
