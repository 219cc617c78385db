"""Envy-free linear allocations against a program for every ranking and reason."""

import numpy as np
import pytest
from linear_games import (
    PAPER_LIKE,
    TWINS,
    envy_free_infimum,
    flower,
    optimum,
    random_game,
    weak_orders,
)

from fedaccord.check import Answer, check
from fedaccord.equilibria.linear.envy_free import find_envious_pairs, find_forced_pairs
from fedaccord.equilibria.result import Status, equal_allocation
from fedaccord.equilibria.solve import solve_envy_free
from fedaccord.games.linear import LinearGame

STAR = np.eye(5)
STAR[0, 1:] = STAR[1:, 0] = 0.5
OPEN = np.eye(5)
OPEN[0, 1] = 0.5
OPEN[2:, 0] = 0.5


def verify(solution, infimum, attained):
    """Check a claim against the infimum of envy-free totals."""
    assert solution.bounds.lower <= infimum * (1 + 1e-6) + 1e-9
    assert solution.total >= infimum * (1 - 1e-6) - 1e-9
    if solution.status in (Status.OPTIMAL, Status.NOT_ATTAINED):
        assert solution.bounds.lower == pytest.approx(infimum, rel=2e-6, abs=1e-9)
    if solution.status is Status.NOT_ATTAINED:
        assert not attained
    assert check(solution.game, solution.allocation).envy_free is Answer.TRUE


def test_the_enumeration_knows_what_is_known():
    assert envy_free_infimum(LinearGame(TWINS, [1, 1])) == pytest.approx((1.0, True))
    value, attained = envy_free_infimum(flower(4).restrict([0, 1, 2, 3]))
    assert value > 1.5
    assert attained
    assert len(weak_orders(3)) == 13
    assert len(weak_orders(4)) == 75
    # Agent 0 helps agent 2, whose samples are dear; it would envy agent 1 at the least total.
    game = LinearGame(OPEN[:3, :3], [1, 0.5, 1], costs=[1, 1, 3])
    value, attained = envy_free_infimum(game)
    assert value == pytest.approx(3.0)
    assert not attained
    assert solve_envy_free(game).status is Status.NOT_ATTAINED


def test_the_check_objects_to_planted_faults():
    solution = solve_envy_free(LinearGame(PAPER_LIKE, [1, 1, 1]))
    value, attained = envy_free_infimum(solution.game)
    verify(solution, value, attained)
    for wrong in (0.9 * value, 1.1 * value):
        with pytest.raises(AssertionError):
            verify(solution, wrong, attained)


@pytest.mark.parametrize("seed", range(24))
def test_the_least_total_is_that_of_the_enumeration(seed):
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    size = 4 if seed % 8 == 0 else 3
    game = random_game(rng, size, kind=kind, equal=seed % 2 == 0, costs=seed % 5 == 0)
    solution = solve_envy_free(game)
    assert solution.status in (Status.OPTIMAL, Status.NOT_ATTAINED)
    verify(solution, *envy_free_infimum(game))


@pytest.mark.parametrize("seed", [*range(12), 67])
def test_limits_and_minimums_that_forbid_swaps_are_heeded(seed):
    rng = np.random.default_rng(100 + seed)
    game = random_game(rng, 3, kind=("any", "symmetric", "psd")[seed % 3], boxed=True)
    while optimum(game) is None:
        game = random_game(rng, 3, boxed=True)
    verify(solve_envy_free(game), *envy_free_infimum(game))


def test_a_limit_may_make_an_unequal_allocation_free_of_envy():
    # Twins must give alike, unless one cannot take the burden of the other.
    game = LinearGame(TWINS, [1, 1], costs=[1, 2])
    assert solve_envy_free(game).contributions == pytest.approx([0.5, 0.5])
    limited = game.replace(limits=[None, 0.25])
    assert envy_free_infimum(limited)[0] == pytest.approx(1.0)
    solution = solve_envy_free(limited)
    assert solution.total == pytest.approx(1.0)
    assert solution.contributions == pytest.approx([1.0, 0.0], abs=1e-6)


def test_refining_keeps_to_a_burden_that_limits_refuse():
    # Agent 1 must stay above the limit of agent 0; a program without that would lower it into envy.
    game = LinearGame(
        [[0.91, 0.51, 0.14], [0.51, 0.5, 0.35], [0.14, 0.35, 0.5]], [1, 0, 0.5],
        limits=[1.32, None, 1.11],
    )  # fmt: skip
    solution = solve_envy_free(game)
    assert solution.status in (Status.OPTIMAL, Status.NOT_ATTAINED)
    verify(solution, *envy_free_infimum(game))


def test_an_infimum_that_is_not_attained_is_called_so():
    game = LinearGame(OPEN, [1, 0.5, 1, 1, 1])
    solution = solve_envy_free(game)
    assert solution.status is Status.NOT_ATTAINED
    assert solution.bounds.lower == pytest.approx(3.0, abs=1e-6)
    assert 3.0 < solution.total < 3.01
    assert check(game, solution.allocation).envy_free is Answer.TRUE
    assert "as close to 3 as you like" in solution.note


def test_the_closed_relaxation_is_not_taken_for_an_answer():
    solution = solve_envy_free(LinearGame(STAR, np.ones(5)))
    assert solution.status is Status.OPTIMAL
    assert solution.total == pytest.approx(10 / 3, rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_forced_pairs_cut_off_no_envy_free_allocation(seed):
    rng = np.random.default_rng(seed)
    game = random_game(rng, 3, kind=("any", "symmetric")[seed % 2], boxed=seed % 3 == 0)
    # Few values make ties, twins and dominance common.
    benefits = np.round(game.dense_benefits * 2) / 2 + np.eye(3) / 2
    game = LinearGame(benefits, np.round(game.requirements), **{
        "limits": game.limits, "minimums": game.minimums,
    })  # fmt: skip
    forced = find_forced_pairs(game)
    found = 0
    for _ in range(400):
        theta = np.clip(rng.integers(0, 9, 3) / 4, game.minimums, game.limits)
        if check(game, theta).envy_free is Answer.TRUE:
            found += 1
            for i, j in forced:
                assert theta[i] <= theta[j] + 1e-9
    assert found or optimum(game) is None or len(forced) <= 6


def test_forced_pairs_are_found():
    assert find_forced_pairs(LinearGame(TWINS, [1, 1])) == {(0, 1), (1, 0)}
    assert find_forced_pairs(LinearGame(TWINS, [1, 2])) == {(0, 1), (1, 0)}
    assert find_forced_pairs(LinearGame(np.eye(2), [1, 2])) == {(0, 1)}
    assert find_forced_pairs(LinearGame(np.eye(2), [1, 2], limits=[3, 2])) == set()
    assert find_forced_pairs(LinearGame(np.eye(2), [1, 2], minimums=[1, 0])) == set()


def test_envious_pairs_are_those_of_the_audit():
    rng = np.random.default_rng(8)
    seen = 0
    for _ in range(60):
        game = random_game(rng, 3, kind="any", equal=True)
        theta = rng.integers(0, 9, 3) / 4 + rng.random(3)
        found = check(game, theta)
        if found.feasible is Answer.TRUE and not found.borderline:
            assert tuple(find_envious_pairs(game, theta, 1e-6)) == found.envy
            seen += len(found.envy)
    assert seen > 10


@pytest.mark.parametrize("seed", range(12))
def test_the_equal_allocation_is_free_of_envy_and_the_least_of_its_kind(seed):
    rng = np.random.default_rng(seed)
    whole = {"strategies": "integer"} if seed % 4 == 3 else {}
    game = random_game(rng, 3, boxed=seed % 2 == 0 and not whole, **whole)
    equal = equal_allocation(game)
    if optimum(game) is None:
        assert equal is None
        return
    assert check(game, equal).envy_free is Answer.TRUE
    level = equal.max()
    if level > game.minimums.max():
        less = level - 1 if whole else level * (1 - 1e-6)
        assert not game.is_feasible(np.clip(np.full(3, less), game.minimums, game.limits))


def test_whole_equilibria_are_not_taken_for_envy_free(monkeypatch):
    # Theorem 6 is about the reals: whole contributors may have something to spare.
    game = LinearGame([[1, 0.9], [0.9, 1]], [2, 2], strategies="integer")
    assert check(game, [2, 1]).stable is Answer.TRUE
    assert check(game, [2, 1]).envy == ((0, 1),)
    monkeypatch.setattr("fedaccord.equilibria.solve.EXHAUSTIVE_LIMIT", 0.5)
    monkeypatch.setattr("fedaccord.equilibria.solve.PAIRS_LIMIT", 1)
    assert solve_envy_free(game).contributions.tolist() == [2, 2]
    real = game.replace(strategies="real")
    assert solve_envy_free(real).method in ("stable", "equal")
    assert check(real, solve_envy_free(real).allocation).envy_free is Answer.TRUE


def test_large_whole_games_are_counted_without_overflow():
    k = 151
    game = LinearGame(np.eye(k), np.full(k, 1e6), strategies="integer")
    solution = solve_envy_free(game, time_limit=3)
    assert check(game, solution.allocation).envy_free is Answer.TRUE


def test_without_time_the_equal_allocation_stands():
    game = LinearGame(PAPER_LIKE, [2.4, 1.9, 1.9])
    solution = solve_envy_free(game, time_limit=1e-6)
    assert check(game, solution.allocation).envy_free is Answer.TRUE
    assert solution.bounds.lower <= envy_free_infimum(game)[0] + 1e-9


@pytest.mark.parametrize("short", [1e-3, 2e-4, 5e-5, 5e-6])
def test_no_bound_cuts_off_an_allocation_that_hides_in_the_margin(short):
    # At (1, 0) agent 0 would be short by this little after a swap: free of envy, and cheapest.
    game = LinearGame([[1, 1 - short], [1, 1]], [1, 1], costs=[1, 5])
    assert check(game, [1, 0]).envy_free is Answer.TRUE
    solution = solve_envy_free(game)
    assert solution.bounds.lower <= 1.0 + 1e-6
    if solution.status is Status.OPTIMAL:
        assert solution.total == pytest.approx(1.0, rel=1e-5)
