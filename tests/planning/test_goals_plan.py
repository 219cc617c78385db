"""Plans for several goals with safety margins: sure enough in worlds that are known."""

import json
from itertools import product

import numpy as np
import pytest
from commands import run
from known_hospitals import BENEFITS, CURVES, NAMES, designed, noise_at

from fedaccord._io.table import write_table
from fedaccord.allocation import Allocation
from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.whole import solve_whole
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.goals import Goal, GoalsGame
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.measures import fit_goals
from fedaccord.planning.goals import plan_goals

GOALS = {"sensitivity": [0.82, 0.82, 0.80, 0.80], "specificity": [0.8, 0.8, 0.8, 0.8]}
WORTH = {"sensitivity": BENEFITS, "specificity": np.where(np.eye(4) == 1, 1.0, BENEFITS / 2)}
SCATTER = 0.008


def write_pilots(path, seed, goals=GOALS):
    """Write pilots of two measures whose curves are known."""
    rng = np.random.default_rng(seed)
    given = designed(np.full(4, 3000.0), 2)
    rows = []
    for name, worth in WORTH.items():
        promised = predict_accuracies(CURVES, given @ worth.T)
        reached = promised + noise_at(promised, 2_000) * rng.standard_normal(promised.shape)
        rows += [
            [n, NAMES[i], float(given[n, i]), name, round(float(reached[n, i]), 4), goals[name][i],
             2000, 3000]
            for n in range(len(given))
            for i in range(4)
        ]  # fmt: skip
    columns = ["pilot", "agent", "contribution", "measure", "value", "goal", "validation", "limit"]
    write_table(path, columns, rows)
    return path


def test_plans_keep_their_promise_in_the_true_world(tmp_path):
    rng = np.random.default_rng(0)
    kept = []
    for seed in range(3):
        measured = fit_goals(write_pilots(tmp_path / "m.csv", seed), resamples=40, seed=seed)
        plan = plan_goals(measured, probability=0.9)
        assert measured.estimate_all(plan.contributions) >= 0.9
        ok = np.ones(500, dtype=bool)
        for name, worth in WORTH.items():
            truth = predict_accuracies(CURVES, worth @ plan.contributions)
            runs = truth + SCATTER * rng.standard_normal((500, 4))
            ok &= (runs >= GOALS[name]).all(axis=1)
        kept.append(ok.mean())
    assert np.mean(kept) > 0.75


def test_small_plans_are_less_sure_where_small_runs_scatter_more(tmp_path):
    rng = np.random.default_rng(5)
    given = designed(np.full(4, 3000.0), 8)
    plan = np.array([500.0, 0.0, 400.0, 300.0])

    def scatter(totals):
        return 0.02 * np.sqrt(1_200 / totals)[:, None]

    def run(contributions, worth):
        expected = predict_accuracies(CURVES, contributions @ worth.T)
        scale = scatter(contributions.sum(axis=1))
        return expected + scale * rng.standard_normal(expected.shape)

    worlds = {name: predict_accuracies(CURVES, worth @ plan) for name, worth in WORTH.items()}
    goals = {name: np.round(reached - 0.035, 3) for name, reached in worlds.items()}
    rows = [
        [n, NAMES[i], int(given[n, i]), name, round(float(value), 5), float(goals[name][i]), 3000]
        for name, worth in WORTH.items()
        for n, values in enumerate(run(given, worth))
        for i, value in enumerate(values)
    ]
    columns = ["pilot", "agent", "contribution", "measure", "value", "goal", "limit"]
    write_table(tmp_path / "m.csv", columns, rows)
    measured = fit_goals(tmp_path / "m.csv", resamples=40)
    many = np.tile(plan, (4_000, 1))
    kept = [(run(many, worth) >= goals[name]).all(axis=1) for name, worth in WORTH.items()]
    # Pilots have 4,300 samples on average, and scatter by half as much as the plan.
    assert measured.estimate_all(plan) == pytest.approx(np.mean(kept[0] & kept[1]), abs=0.08)


def test_a_plan_is_stable_for_its_targets_and_dearer_than_without_margin(tmp_path):
    measured = fit_goals(write_pilots(tmp_path / "m.csv", 1), resamples=40)
    plans = [plan_goals(measured, probability=p) for p in (0.5, 0.95)]
    totals = [plan.total for plan in plans]
    assert totals == sorted(totals)
    for plan in plans[:1]:
        assert check(plan.game, plan.allocation).stable is Answer.TRUE
        assert (plan.game.needs >= measured.game.needs - 1e-9).all()


def test_goals_that_no_margin_makes_sure_are_refused(tmp_path):
    hard = {**GOALS, "specificity": [0.90, 0.90, 0.86, 0.87]}
    measured = fit_goals(write_pilots(tmp_path / "m.csv", 1, hard), resamples=40)
    with pytest.raises(UnreachableError):
        plan_goals(measured, probability=0.99)
    with pytest.raises(InputError, match="probability must be"):
        plan_goals(measured, probability=1)


def test_goals_that_move_together_are_missed_together(tmp_path):
    alike = write_pilots(tmp_path / "m.csv", 4).read_text().splitlines()
    first = [line for line in alike[1:] if ",sensitivity," in line]
    copies = [line.replace(",sensitivity,", ",specificity,") for line in first]
    (tmp_path / "twice.csv").write_text("\n".join([alike[0], *first, *copies]))
    (tmp_path / "once.csv").write_text("\n".join([alike[0], *first]))
    once, twice = (fit_goals(tmp_path / name, resamples=40) for name in ("once.csv", "twice.csv"))
    given = np.full(4, 600.0)
    # The same goal twice is missed as often as once; the bound counts every miss twice.
    assert twice.estimate_all(given) == pytest.approx(once.estimate_all(given), abs=0.02)
    missed = 1 - once.chance_of_all(given)
    assert twice.chance_of_all(given) == pytest.approx(1 - 2 * missed, abs=0.02)
    assert 0.02 < missed < 0.5


def test_plans_are_shown_and_saved_in_whole_samples_and_checked_as_such(tmp_path):
    path, saved = write_pilots(tmp_path / "m.csv", 1), tmp_path / "plan.csv"
    game = tmp_path / "game.json"
    made = run("plan", path, "--save", saved, "--save-game", game, "--json")
    found = json.loads(made.stdout)["solutions"]
    assert made.code == 0 and set(found) == {"optimal", "stable"}
    for one in found.values():
        assert one["contributions"] == [round(amount) for amount in one["contributions"]]
        assert one["lower_bound"] <= one["total"] <= one["upper_bound"]
    assert found["stable"]["audit"]["stable"] is True
    assert Allocation.load(saved).contributions.tolist() == found["stable"]["contributions"]
    # The saved game is in whole samples too, so its check agrees.
    checked = json.loads(run("check", game, saved, "--json").stdout)
    assert checked["feasible"] is True and checked["stable"] is True
    shown = run("plan", path).stdout
    # What agents need alone includes the safety margin.
    assert "alone, same target" in shown and "alone, for its goal" not in shown
    assert "for the same target." in shown and "for its goal." not in shown


def test_goals_remember_whether_they_include_a_margin(tmp_path):
    measured = fit_goals(write_pilots(tmp_path / "m.csv", 1), resamples=10)
    assert not measured.game.has_margins
    raised = measured.make_game(np.full(8, 0.01))
    assert raised.has_margins and raised.restrict([0, 2]).has_margins


def make_pair(needs, limit):
    """Make a game of two agents whose samples are worth half as much to the other."""
    goals = [Goal(0, "a", [1.0, 0.5], needs[0]), Goal(1, "b", [0.5, 1.0], needs[1])]
    return GoalsGame(goals, limits=[limit, limit])


@pytest.mark.parametrize("needs", [(10.3, 7.2), (5.5, 5.5), (12.1, 0.0), (9.9, 14.7)])
def test_whole_plans_claim_no_more_than_a_list_of_all_plans_bears_out(needs):
    def satisfies(x, y):
        return x + 0.5 * y >= needs[0], 0.5 * x + y >= needs[1]

    found = solve_whole(make_pair(needs, 20.5), concepts=("optimal", "stable"), time_limit=20)
    assert found.game.is_integer and found.game.limits.tolist() == [20, 20]
    feasible = [pair for pair in product(range(21), repeat=2) if all(satisfies(*pair))]
    stable = [
        (x, y)
        for x, y in feasible
        if not (x and satisfies(x - 1, y)[0]) and not (y and satisfies(x, y - 1)[1])
    ]
    for concept, kind in {"optimal": feasible, "stable": stable}.items():
        one, least = found.solutions[concept], min(map(sum, kind))
        assert tuple(one.contributions) in kind
        assert one.bounds.lower <= least <= one.bounds.upper
        assert one.status is not Status.OPTIMAL or one.total == least


def test_without_a_stable_plan_in_whole_samples_the_plan_is_in_fractions():
    # Neither agent has a whole sample.
    found = solve_whole(make_pair((1.0, 1.0), 0.9), concepts=("optimal", "stable"), time_limit=20)
    assert not found.game.is_integer
    assert found.solutions["stable"].contributions == pytest.approx([2 / 3, 2 / 3])


def test_the_cheapest_plan_has_its_margins_too(tmp_path):
    measured = fit_goals(write_pilots(tmp_path / "m.csv", 2), resamples=40)
    stable = plan_goals(measured, probability=0.9)
    cheapest = plan_goals(measured, probability=0.9, concept="optimal")
    assert cheapest.concept == "optimal"
    assert measured.estimate_all(cheapest.contributions) >= 0.9
    assert check(cheapest.game, cheapest.allocation).feasible is Answer.TRUE
    assert cheapest.total <= stable.total * 1.1
    with pytest.raises(InputError, match="concept must be one of stable, optimal"):
        plan_goals(measured, concept="fair")
