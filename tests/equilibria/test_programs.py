"""Exact least totals of small linear games against lists of corners."""

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedaccord import LinearGame
from fedaccord.equilibria.confirm import program_of
from fedaccord.equilibria.programs import Corner, Program, Row, least_total
from fedaccord.equilibria.result import Deadline

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", FUZZ)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


def find(game, concept, select="cheapest", **limits):
    return least_total(program_of(game, concept, select), Deadline(30.0), **limits)


@pytest.mark.parametrize("number", range(60))
def test_least_totals_are_those_of_corners(fuzz, number):
    game, concept, select = fuzz.draw_game(2, number)
    if not isinstance(game, LinearGame) or (concept == "envy-free" and game.size > 3):
        pytest.skip("no corners to list")
    truth, found = fuzz.find_truth(game, concept, select), find(game, concept, select)
    if game.is_integer and not found.complete:
        pytest.skip("a search among whole numbers need not end")
    assert found.complete
    if truth.value is None:
        assert abs(found.value) == np.inf
        return
    if truth.value != found.value:  # limits that miss a requirement by rounding count as enough
        assert float(found.value) == pytest.approx(float(truth.value), rel=1e-12)
    assert (found.point is not None) == truth.attained


def test_corners_move_to_the_cheapest_point_of_rows():
    # x + 2y >= 4, 3x + y >= 6, at costs 1 and 1: (8/5, 6/5).
    rows = (
        Row(((0, 1),), 0),
        Row(((1, 1),), 0),
        Row(((0, 1), (1, 2)), 4),
        Row(((0, 3), (1, 1)), 6),
    )
    corner = Corner.first(Program((1, 1), (0, 0), 1, rows))
    assert corner.settle(rows)
    assert corner.point == [Fraction(8, 5), Fraction(6, 5)]
    assert not corner.settle((*rows, Row(((0, -1), (1, -1)), -2)))


def test_an_infimum_that_is_not_attained_is_told_from_one_that_is():
    star = np.eye(5)
    star[0, 1:] = star[1:, 0] = 0.5
    found = find(LinearGame(star, np.ones(5)), "envy-free")
    assert found.value == Fraction(10, 3)
    assert found.point == [Fraction(2, 3)] * 5
    chain = np.eye(5)
    chain[0, 1] = chain[2, 0] = chain[3, 0] = chain[4, 0] = 0.5
    found = find(LinearGame(chain, [1, 0.5, 1, 1, 1]), "envy-free")
    assert (found.value, found.point) == (3, None)
    assert 3 < sum(found.near) <= Fraction(3003, 1000)


def test_a_search_cut_short_gives_a_bound():
    game = LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1], strategies="integer")
    short, whole = find(game, "stable", nodes=1), find(game, "stable")
    assert not short.complete
    assert short.bound <= 2
    assert whole.complete
    assert whole.value == np.inf


def test_limits_that_miss_by_rounding_are_enough_and_by_more_are_not():
    game = LinearGame([[0.7]], [2.1], limits=[0.1 * 30 - 4e-16])
    assert find(game, "optimal").complete
    assert find(game, "optimal").value < np.inf
    assert find(game.replace(limits=[2.9999]), "optimal").value == np.inf


@pytest.mark.parametrize("number", range(40))
def test_solvers_claim_nothing_wrong(fuzz, number):
    _, faults, _ = fuzz.judge(5, number)
    assert not faults


@pytest.mark.slow
def test_solvers_claim_nothing_wrong_of_many_games(fuzz):
    for number in range(400):
        _, faults, game = fuzz.judge(6, number)
        assert not faults, (number, game.to_dict())


def test_the_judge_objects_to_wrong_claims(fuzz):
    import dataclasses

    from fedaccord import Status, solve_optimal
    from fedaccord.equilibria.result import Interval

    game = LinearGame([[1, 0.5], [0.5, 1]], [1, 1])
    truth, right = fuzz.find_truth(game, "optimal", "cheapest"), solve_optimal(game)
    assert not fuzz.find_faults(game, right, truth, "cheapest")
    wrong = [
        {"contributions": right.contributions * 0.9},
        {"contributions": right.contributions * 1.1},
        {"bounds": Interval(right.total * 1.01, right.total * 1.02)},
        {"status": Status.INFEASIBLE, "contributions": None},
    ]
    for changes in wrong:
        claimed = dataclasses.replace(right, **changes)
        assert fuzz.find_faults(game, claimed, truth, "cheapest")
