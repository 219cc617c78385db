"""Sweeps of best responses: every kernel, idle agents, momentum, limits, and polishing."""

import numpy as np
import pytest
from linear_games import PAPER_LIKE, flower, random_game
from scipy import sparse

from fedaccord.equilibria.linear import best_response
from fedaccord.equilibria.linear.best_response import find_fixed_point
from fedaccord.equilibria.linear.kernels import sweep_dense, sweep_explicit, sweep_gram
from fedaccord.equilibria.linear.stable import polish
from fedaccord.equilibria.result import Deadline
from fedaccord.games.linear import DiscoveryGame, LinearGame, relative_regret


def plain_sweep(benefits, need, low, high, theta):
    """Let everybody answer in turn."""
    theta = theta.copy()
    for i in range(len(need)):
        rest = benefits[i] @ theta - benefits[i, i] * theta[i]
        theta[i] = min(max((need[i] - rest) / benefits[i, i], low[i]), high[i])
    return theta


def plain_regret(game, theta):
    """Give the largest distance from a best response within the box, over the largest gift."""
    worst = 0.0
    for i in range(game.size):
        rest = game.dense_benefits[i] @ theta - game.dense_benefits[i, i] * theta[i]
        wanted = (game.requirements[i] - rest) / game.dense_benefits[i, i]
        wanted = min(max(wanted, game.minimums[i]), game.limits[i])
        worst = max(worst, abs(wanted - theta[i]))
    return worst / max(theta)


def random_discovery(seed, agents=12, points=9, **frame):
    rng = np.random.default_rng(seed)
    rows = rng.random((agents, points)) * (rng.random((agents, points)) < 0.4)
    rows[:, 0] += 0.1
    return DiscoveryGame(
        rows / rows.sum(axis=1, keepdims=True), rng.uniform(0.5, 2, agents), **frame
    )


@pytest.mark.parametrize("seed", range(5))
def test_all_kernels_sweep_as_the_plain_loop_does(seed):
    game = random_discovery(seed)
    rng = np.random.default_rng(seed)
    k = game.size
    low, high = rng.uniform(0, 0.2, k), rng.uniform(0.3, 4, k)
    begin = rng.uniform(low, high)
    shared = (game.own_benefits, game.requirements, low, high)
    plain, thin, gram, dense, small = (begin.copy() for _ in range(5))
    found = np.asarray(game.distributions.T @ gram)
    rows, benefits = game.distributions, sparse.csr_array(game.dense_benefits)
    for _ in range(3):
        before, plain = plain, plain_sweep(game.dense_benefits, game.requirements, low, high, plain)
        idle = np.zeros((4, k), dtype=np.bool_)
        moved = [
            sweep_dense(game.dense_benefits, *shared, dense, idle[0], True),
            sweep_explicit(
                benefits.indptr, benefits.indices, benefits.data, *shared, thin, idle[1], True
            ),
            sweep_gram(
                rows.indptr, rows.indices, rows.data, *shared, gram, found, idle[2], True
            ),
            best_response.sweep_dense(game.dense_benefits, *shared, small, idle[3], True),
        ]  # fmt: skip
        for other in (thin, gram, dense, small):
            assert other == pytest.approx(plain, abs=1e-12)
        assert moved == pytest.approx([np.abs(plain - before).max()] * 4, abs=1e-12)
        assert found == pytest.approx(game.distributions.T @ gram)
        assert (idle == idle[0]).all()


def test_idle_agents_are_skipped_until_a_full_sweep():
    benefits = np.array([[1.0, 0.0], [0.0, 1.0]])
    theta, idle = np.zeros(2), np.array([True, False])
    ones = np.ones(2)
    arguments = (benefits, ones, ones, np.zeros(2), np.full(2, 9.0), theta, idle)
    assert sweep_dense(*arguments, False) == 1.0
    assert theta.tolist() == [0, 1]
    assert sweep_dense(*arguments, True) == 1.0
    assert theta.tolist() == [1, 1]
    assert idle.tolist() == [False, False]


def test_who_has_much_to_spare_at_its_minimum_becomes_idle():
    game = LinearGame(PAPER_LIKE, [1, 1, 1])
    theta, idle = np.array([0.0, 5, 5]), np.zeros(3, dtype=np.bool_)
    ones = np.ones(3)
    sweep_dense(game.benefits, ones, ones, np.zeros(3), np.full(3, 9.0), theta, idle, True)
    assert idle.tolist() == [True, False, False]


@pytest.mark.parametrize("seed", range(8))
def test_fixed_points_have_the_regret_they_claim(seed):
    rng = np.random.default_rng(seed)
    game = random_game(rng, 6, kind="psd", boxed=seed % 2 == 1)
    game = game.replace(requirements=game.requirements + 0.25, limits=None)
    point = find_fixed_point(game, tolerance=1e-8, deadline=Deadline(20))
    assert plain_regret(game, point.contributions) == pytest.approx(point.regret, abs=1e-12)
    assert point.regret <= 1e-8
    # The measure objects to something else.
    assert plain_regret(game, point.contributions * 1.01) > 1e-4
    assert relative_regret(game, point.contributions * 1.01) > 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_dense_sparse_and_implicit_benefits_lead_to_one_equilibrium(seed):
    game = random_discovery(seed, agents=8, points=20)
    dense = LinearGame(game.dense_benefits, game.requirements)
    thin = LinearGame(sparse.csr_array(game.dense_benefits), game.requirements)
    found = [
        find_fixed_point(g, tolerance=1e-10, deadline=Deadline(20)).contributions
        for g in (game, dense, thin)
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-7)
    assert found[2] == pytest.approx(found[0], abs=1e-7)


def test_limits_and_minimums_are_kept():
    game = LinearGame(PAPER_LIKE, [1, 1, 1], limits=[None, 0.5, None], minimums=[0.25, 0, 0])
    point = find_fixed_point(game, tolerance=1e-10, deadline=Deadline(20))
    assert (point.contributions >= game.minimums).all()
    assert (point.contributions <= game.limits).all()
    assert plain_regret(game, point.contributions) <= 1e-10


def chain(agents=60):
    """Neighbours help each other by half: the least eigenvalue is nearly zero."""
    benefits = sparse.diags_array(
        [np.ones(agents), *[np.full(agents - 1, 0.5)] * 2], offsets=[0, 1, -1]
    )
    rng = np.random.default_rng(0)
    return LinearGame(benefits, benefits @ rng.uniform(1, 2, agents))


def test_slow_games_get_momentum_and_arrive():
    game = chain()
    point = find_fixed_point(game, tolerance=1e-7, deadline=Deadline(60))
    assert point.accelerated
    assert plain_regret(game, point.contributions) <= 1e-7


def test_momentum_saves_sweeps(monkeypatch):
    game = chain()
    with_momentum = find_fixed_point(game, tolerance=1e-5, deadline=Deadline(60))
    monkeypatch.setattr(best_response, "SLOW_SMALL", (np.inf, 1))
    without = find_fixed_point(game, tolerance=1e-5, deadline=Deadline(60))
    assert with_momentum.accelerated
    assert not without.accelerated
    assert with_momentum.sweeps < without.sweeps / 3


def test_images_are_the_same_with_and_without_copies_of_rows(monkeypatch):
    rows = np.random.default_rng(0).dirichlet(np.ones(6), 12)
    game = DiscoveryGame(rows, np.ones(12))
    momentum = best_response._Momentum(best_response._Mover(game, None))
    step = np.where(np.arange(12) % 3 == 0, 1.5, 0.0)
    for few in (0.0, 1.0):
        monkeypatch.setattr(best_response, "FEW", few)
        assert momentum._image_of(step) == pytest.approx(rows.T @ step)


def watch_momentum(game, mover_at, sweeps=60):
    """Sweep with momentum from the start; return the potential after each sweep that counts."""
    mover = best_response._Mover(game, mover_at)
    momentum = best_response._Momentum(mover)
    potentials = []
    for _ in range(sweeps):
        mover.sweep(True)
        momentum.push()
        if momentum.best is not None:
            theta = momentum.best[1]
            potentials.append(theta @ game.apply(theta) / 2 - game.requirements @ theta)
        assert momentum.image == pytest.approx(
            game.distributions.T @ mover.theta
            if isinstance(game, DiscoveryGame)
            else game.apply(mover.theta),
            abs=1e-10,
        )
        assert (mover.theta >= game.minimums).all()
        assert (mover.theta <= game.limits).all()
    return np.array(potentials)


@pytest.mark.parametrize("seed", range(6))
def test_momentum_never_raises_the_potential_from_sweep_to_sweep(seed):
    game = random_discovery(seed, agents=40, points=25, limits=np.full(40, 3.0))
    games = (game, LinearGame(game.dense_benefits, game.requirements, limits=game.limits))
    begin = np.random.default_rng(seed).uniform(0, 3, 40)
    for one in games:
        potentials = watch_momentum(one, begin)
        assert len(potentials) > 30
        assert (np.diff(potentials) <= 1e-12 * np.abs(potentials[1:])).all()


def test_a_push_goes_to_the_minimum_along_the_steps():
    # Without limits in the way, one more step in the plane of two changes nothing.
    game = LinearGame([[2.0, 1.0], [1.0, 2.0]], [3.0, 3.3])
    mover = best_response._Mover(game, np.array([4.0, 1.0]))
    momentum = best_response._Momentum(mover)
    for _ in range(2):
        mover.sweep(True)
        momentum.push()
    assert mover.theta == pytest.approx(np.linalg.solve(game.benefits, game.requirements))


def test_a_push_that_did_harm_is_taken_back():
    game = random_discovery(0, agents=40, points=25)
    mover = best_response._Mover(game, None)
    momentum = best_response._Momentum(mover)
    for _ in range(3):
        mover.sweep(True)
        momentum.push()
    potential, theta, image = momentum.best
    mover.theta[:], mover.image[:] = theta + 5.0, image + game.distributions.T @ np.full(40, 5.0)
    momentum.push()
    assert mover.theta.tolist() == theta.tolist()
    assert mover.image.tolist() == image.tolist()
    assert momentum.best is None
    # What follows counts again.
    mover.sweep(True)
    momentum.push()
    assert momentum.best[0] <= potential


def test_a_passed_deadline_is_not_called_convergence():
    point = find_fixed_point(flower(16), tolerance=1e-9, deadline=Deadline(0.0))
    assert point.sweeps == 0
    assert point.regret > 0.1


def test_a_start_outside_the_box_is_moved_in():
    game = LinearGame(np.eye(2), [1, 1], limits=[3, 3])
    point = find_fixed_point(game, tolerance=1e-9, deadline=Deadline(5), start=np.array([99.0, 0]))
    assert point.contributions == pytest.approx([1, 1])


def test_polishing_solves_among_contributors():
    game = flower(16)
    rough = find_fixed_point(game, tolerance=1e-3, deadline=Deadline(5)).contributions
    fine = polish(game, rough)
    assert fine[0] == 0
    assert fine[1:] == pytest.approx(4 / 7, abs=1e-14)
    assert relative_regret(game, fine) < 1e-14


def test_polishing_a_singular_game_stays_near():
    game = LinearGame(np.ones((3, 3)), [1, 1, 1])
    near = np.array([0.2, 0.3, 0.5 + 1e-5])
    fine = polish(game, near)
    assert fine.sum() == pytest.approx(1, abs=1e-12)
    assert fine == pytest.approx(near, abs=1e-4)


def test_polishing_never_makes_it_worse():
    rng = np.random.default_rng(5)
    for _ in range(30):
        game = random_game(rng, 5, kind="psd", equal=True)
        theta = rng.random(5)
        assert relative_regret(game, polish(game, theta)) <= relative_regret(game, theta)
