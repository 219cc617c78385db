"""Games that once got a wrong answer or a claim too many; each is named for the trap in it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fedaccord import (
    Answer,
    CoverageGame,
    DiscoveryGame,
    FunctionGame,
    InputError,
    LinearGame,
    Status,
    check,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.games import catalog
from fedaccord.games.base import Game
from fedaccord.games.files import game_from_dict, read_game
from fedaccord.games.pac.sampled import SampledPacGame


def test_tiny_costs_do_not_end_an_integer_program_early():
    flower = catalog.build("flower", model="coverage", petals=16, strategies="integer")
    cheap = solve_optimal(flower.replace(costs=np.full(17, 1e-7)))
    assert cheap.status is Status.OPTIMAL
    assert cheap.total == pytest.approx(5e-7)


def test_one_huge_cost_does_not_hide_the_costliest_equilibrium():
    benefits = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1.0]]
    game = LinearGame(benefits, [1, 1, 1, 0.0], costs=[1, 1, 1, 1e8])
    assert solve_stable(game, select="costliest").total == pytest.approx(2)


def test_a_few_samples_of_envy_count_beside_needs_of_a_hundred_thousand():
    game = LinearGame(
        [[1, 0.43, 0.97], [0.56, 1, 0.24], [0.89, 0.23, 1]],
        [78833, 108612, 105409],
        strategies="integer",
    )
    found = solve_envy_free(game)
    assert check(game, found.contributions).envy_free is Answer.TRUE


def test_a_limit_too_low_is_infeasible_in_any_unit():
    assert solve_optimal(LinearGame([[1e-12]], [2e-12], limits=[1])).status is Status.INFEASIBLE


@pytest.mark.parametrize("solve", [solve_optimal, solve_stable, solve_envy_free])
def test_limits_that_just_suffice_are_no_obstacle(solve):
    game = CoverageGame(np.full((1, 5), 0.2), [0.6], limits=[1])
    assert solve(game).total == pytest.approx(1)


def test_all_near_ties_of_a_large_game_are_looked_at():
    size = 2100
    benefits = sparse.lil_array(sparse.eye_array(size))
    benefits[0, 1], benefits[0, 2] = 0.5, 0.500001
    need, given = np.full(size, 0.5), np.full(size, 0.5)
    need[0], given[0] = 1.250001, 1.0
    game = LinearGame(benefits.tocsr(), need)
    assert check(game, given).envy_free is Answer.FALSE
    assert check(game.restrict(range(100)), given[:100]).envy_free is Answer.FALSE


def test_a_hair_above_a_limit_does_not_hide_envy():
    game = LinearGame([[1, 1], [1, 1]], [1, 1], limits=[2, 0.7])
    assert check(game, [0.7, 0.3]).envy_free is Answer.FALSE
    assert check(game, [0.7 + 1e-9, 0.3]).envy_free is not Answer.TRUE


def test_a_hardly_smaller_burden_is_borderline():
    assert (
        check(LinearGame([[1, 1], [1, 1]], [1, 1]), [0.7, 0.69995]).envy_free is Answer.BORDERLINE
    )


def test_estimates_prove_nothing_not_even_that_limits_are_too_low():
    worlds = catalog.build("pac-cycle", d=2, requirement="3/4").worlds
    for seed in range(3):
        game = SampledPacGame(
            worlds, [0.87] * 3, draws=50, seed=seed, limits=[1] * 3, strategies="integer"
        )
        assert solve_optimal(game).status in (Status.LIMIT, Status.FAILED)


def test_a_slack_of_a_hundred_millionth_is_still_a_slack():
    s = 2**-0.5
    game = LinearGame([[1, 0, s], [0, 1, s], [s, s, 1]], [1, 1, 2**0.5 - 5e-8])
    assert solve_stable(game).total == pytest.approx(2)


def test_some_limited_and_some_not_is_an_ordinary_game():
    certain = [["p", 1, 1]]
    game = game_from_dict(
        {
            "model": "pac",
            "requirements": ["2/3", 0.55],
            "strategies": "integer",
            "limits": [None, 1],
            "worlds": [
                {"prior": "1/3", "samples": [certain, certain]},
                {"prior": "2/3", "samples": [certain, [["p", 0, 1]]]},
            ],
        }
    )
    assert solve_optimal(game).status is Status.OPTIMAL


@pytest.mark.parametrize("wrong", [-5, 77, 10**9])
@pytest.mark.parametrize("model", [DiscoveryGame, CoverageGame])
def test_a_damaged_sparse_matrix_is_refused(model, wrong):
    matrix = sparse.csr_matrix(([0.5, 0.5, 1.0], [1, 0, 0], [0, 2, 3]), shape=(2, 2))
    matrix.indices[0] = wrong
    with pytest.raises(InputError, match="damaged"):
        model(matrix, [0.75, 0.75])


def test_half_precision_in_a_file_is_refused(tmp_path: Path):
    np.savez(
        tmp_path / "half.npz",
        format=np.array(b"csr"), shape=np.array([2, 2]), data=np.array([0.5, 0.5, 1.0], "f2"),
        indices=np.array([0, 1, 0]), indptr=np.array([0, 2, 3]),
    )  # fmt: skip
    text = {"model": "discovery", "requirements": [1, 1], "distributions": "half.npz"}
    (tmp_path / "game.json").write_text(json.dumps(text))
    with pytest.raises(InputError, match="half-precision"):
        read_game(tmp_path / "game.json")


@pytest.mark.parametrize(
    "options", [{"tolerance": -1}, {"tolerance": float("nan")}, {"time_limit": None}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InputError):
        solve_stable(LinearGame(np.eye(2), [1, 1]), **options)


def test_needs_of_zero_end_at_once():
    game = FunctionGame(lambda theta: np.array([theta.sum(), theta.sum()]), [0, 0])
    assert solve_stable(game, time_limit=20).total == 0


def test_infinite_utilities_are_refused():
    with pytest.raises(InputError, match="finite"):
        FunctionGame(lambda theta: theta + np.inf, [1, 1])


class Root(Game):
    """A model without exact utilities."""

    model = "root"

    def utilities(self, contributions):
        return np.sqrt(contributions)

    def _responses(self, contributions):
        return self.requirements**2

    def _model_arguments(self, keep=None):
        return {}

    def to_dict(self):
        return {}


def test_a_model_without_exact_utilities_solves_over_whole_numbers():
    game = Root([2.0, 1.5], strategies="integer")
    assert solve_stable(game).contributions.tolist() == [4, 3]


def test_no_rounding_noise_is_handed_out():
    game = LinearGame([[1, 0.6, 0.7], [0.6, 1, 0.1], [0.7, 0.1, 1]], [1440, 1440, 930])
    assert solve_stable(game).contributions.tolist() == [300, 1200, 600]


def test_an_explanation_never_contradicts_itself():
    game = LinearGame(np.eye(1), [1544.31], agents=["Zentrum"])
    sentence = check(game, [1544.31]).explain("Zentrum")
    assert "gives 1,544.3" in sentence
    assert "With 1,544 it would fall short" in sentence


@pytest.mark.slow
def test_an_interrupt_ends_a_compiled_solver_at_once(tmp_path: Path):
    rng = np.random.default_rng(0)
    benefits = rng.uniform(0, 1, (100, 100))
    np.fill_diagonal(benefits, 1)
    text = {"model": "linear", "requirements": [10] * 100, "benefits": benefits.tolist()}
    (tmp_path / "game.json").write_text(json.dumps(text))
    command = [sys.executable, "-m", "fedaccord", "solve", "game.json", "--concept", "stable"]
    process = subprocess.Popen(
        [*command, "--time-limit", "100"], cwd=tmp_path, env=os.environ, stdout=subprocess.PIPE
    )
    time.sleep(8)
    assert process.poll() is None, "the game was too easy to interrupt"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 130)
