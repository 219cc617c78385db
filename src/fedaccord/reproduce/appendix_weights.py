"""Appendix I, connections with prior work: LP 1, multiplicative weights, and MW-FED's rule."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.charts import Chart, Line
from fedaccord.equilibria.solve import solve_optimal
from fedaccord.games import catalog
from fedaccord.games.linear import LinearGame
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.draws import both_games, discovery_game, equal_games
from fedaccord.reproduce.oracle import ZERO, ExactGame, Fractions, average, bound_optimum, to_floats
from fedaccord.reproduce.section_5_structure import UNEQUAL, has_all_giving

CLAIMS = Claims()
SEED = 9
GAMES = (40, 300)

# At (1/2, 1/2, 1/3) nobody gives nothing, and the total of 4/3 is the least; yet the third agent
# has a twelfth to spare.
SPARE = ExactGame.of([["1", "0.5", "0.75"], ["0.5", "1", "0.75"], ["0.75", "0.75", "1"]], [1, 1, 1])
POSITIVE = (Fraction(1, 2), Fraction(1, 2), Fraction(1, 3))
# In its equilibrium all give, (5/17, 15/17, 15/17); but the first is satisfied before the others.
EARLY = ExactGame.of([["1", "0.4", "0.4"], ["0.4", "1", 0], ["0.4", 0, "1"]], [1, 1, 1])
# How near to the optimum each method is asked to come.
METHODS = {"highs": 1e-9, "first-order": 1e-6, "multiplicative-weights": 1e-3}


def measure_spare(benefits: Matrix, needs: Vector, theta: Vector) -> Vector:
    """Return how much less each agent could give while the others stay."""
    slack = benefits @ theta - needs
    return np.asarray(np.clip(slack / np.diag(benefits), 0.0, theta))


def to_arrays(exact: ExactGame) -> tuple[Matrix, Vector]:
    """Return W and mu in doubles."""
    return np.array([to_floats(row) for row in exact.benefits]), to_floats(exact.requirements)


# LP 1 and equilibria.


@CLAIMS.measure("lp-1-equilibrium")
def lp_1_equilibrium(setting: Setting) -> Measured:
    """Look at optima without zeros, and at the optima of games whose equilibria have none."""
    answers = {method: measure_left_over(SPARE, method) for method in METHODS}
    optimal = SPARE.is_feasible(POSITIVE) and sum(POSITIVE) == SPARE.optimal_total
    seen = min(answers["multiplicative-weights"]) > 0.01
    by_optimum = optimal and not SPARE.is_stable(POSITIVE) and seen
    by_needs = has_all_giving(UNEQUAL) and not any(map(UNEQUAL.is_stable, UNEQUAL.optima))
    drawn = equal_games(3 * GAMES[setting.full], seed=SEED)
    games = [game for game in drawn if has_all_giving(game)]
    worst = {
        method: max(measure_left_over(game, method)[1] for game in games) for method in METHODS
    }
    return Measured(
        example={m: {"least": a, "spare": b} for m, (a, b) in answers.items()},
        games=len(games),
        all_optima_stable=sum(
            all(game.is_stable(theta) for theta in (*game.optima, average(game.optima)))
            for game in games
        ),
        worst_spare=worst,
        optimum_without_zeros_refutes=by_optimum,
        unequal_refutes=by_needs,
        seed=SEED,
        words={
            "refuted": by_optimum or by_needs,
            "spare": SPARE,
            "positive": POSITIVE,
            "unequal": UNEQUAL,
            "most_spare": max(worst.values()),
            "worst": ", ".join(
                f"{bound_by_power(value):.0e} ({method})" for method, value in worst.items()
            ),
        },
    )


def bound_by_power(value: float) -> float:
    """Return the least power of ten that is no smaller; 1e-9 for what is rounding alone."""
    return float(10.0 ** np.ceil(np.log10(max(value, 1e-9))))


def measure_left_over(exact: ExactGame, method: str) -> tuple[float, float]:
    """Solve LP 1; give the least contribution and the most anybody could save of the largest."""
    solution = solve_optimal(exact.game(), method=method, tolerance=METHODS[method])
    theta = solution.allocation.contributions
    return float(theta.min()), float(measure_spare(*to_arrays(exact), theta).max() / theta.max())


# Multiplicative weights for LP 1.


@CLAIMS.measure("multiplicative-weights")
def multiplicative_weights(setting: Setting) -> Measured:
    """Solve LP 1 by multiplicative weights, prove the gaps in fractions, and try what packs."""
    goal, agents = setting.expected["gap"], GAMES[setting.full]
    small = both_games(agents, seed=SEED)
    small_gaps = [measure_gap(game.game(), goal, float(game.optimal_total)) for game in small]
    large = discovery_game(np.random.default_rng(SEED), agents, agents)
    chart, large_gaps = measure_convergence(large, solve_optimal(large, method="highs").total, goal)
    flower = catalog.build("flower", petals=100)
    assert isinstance(flower, LinearGame)
    gaps = [*small_gaps, large_gaps[-1], measure_gap(flower, goal, 10.0)]
    # In a packing program all may give nothing; in a covering one anybody may give more.
    corners = [(game, theta) for game in small for theta in game.corners]
    return Measured(
        games=len(gaps),
        worst_gap=max(gaps),
        nothing_feasible=sum(game.is_feasible((ZERO,) * game.size) for game in small),
        corners=len(corners),
        doubled_feasible=sum(g.is_feasible([2 * t for t in theta]) for g, theta in corners),
        convergence=large_gaps,
        seed=SEED,
        words={"largest": flower.size, "small": len(small)},
        charts=(chart,),
    )


def measure_gap(game: LinearGame, tolerance: float, truth: float) -> float:
    """Solve by multiplicative weights; give the gap proved, infinite if it misses the truth."""
    solution = solve_optimal(game, method="multiplicative-weights", tolerance=tolerance)
    given, prices = solution.allocation.contributions, solution.certificate["prices"]
    lower, upper = (float(end) for end in bound_optimum(game, given, prices))
    inside = lower <= truth * (1 + 1e-9) and truth <= upper * (1 + 1e-9)
    return max((upper - lower) / upper, 1 - truth / solution.total) if inside else np.inf


def measure_convergence(game: LinearGame, best: float, goal: float) -> tuple[Chart, list[float]]:
    """Ask for smaller and smaller gaps down to the goal; show how many rounds each takes."""
    rounds, gaps = [], []
    for tolerance in (0.3, 0.1, 0.03, goal):
        solution = solve_optimal(game, method="multiplicative-weights", tolerance=tolerance)
        rounds.append(float(solution.certificate["rounds"]))
        gaps.append(measure_gap(game, tolerance, best))
    slope = tuple(gaps[0] * rounds[0] / n for n in rounds)
    chart = Chart(
        "multiplicative-weights",
        "Multiplicative weights close in on the optimum of LP 1",
        "rounds",
        "gap between the bounds proved, relative",
        f"The gap falls from {gaps[0]:.1%} after {rounds[0]:.0f} rounds to {gaps[-1]:.1%} after "
        f"{rounds[-1]:.0f}.",
        (
            Line(f"{game.size} agents", tuple(rounds), tuple(gaps)),
            Line("one over rounds", tuple(rounds), slope, reference=True),
        ),
        logarithmic=True,
    )
    return chart, gaps


# MW-FED's rule in a linear model of training.


@CLAIMS.measure("mw-fed-linear")
def mw_fed_linear(setting: Setting) -> Measured:
    """Run Algorithm 2 where every sample of j adds W_ij to i; compare it with what it mirrors."""
    expected = setting.expected
    games = both_games(GAMES[setting.full], seed=SEED + 1)
    apart, mw, fed, both = zip(*map(train, games), strict=True)
    limit = rise_equally(EARLY)
    return Measured(
        games=len(games),
        worst_distance_from_equal_rise=max(apart),
        saved_mw_fed=float(np.mean(mw)),
        saved_equal_shares=float(np.mean(fed)),
        no_more_in=sum(a <= b + expected["margin"] for a, b in zip(mw, fed, strict=True)),
        worst_unrest_of_up_and_down=max(both),
        example=limit,
        example_equilibrium=EARLY.equilibria[0],
        seed=SEED,
        words={
            "fewest": expected["nearer"] * len(games),
            "early": EARLY,
            "idle": float(measure_spare(*to_arrays(EARLY), to_floats(limit))[0] / limit[0]),
            "refuted": has_all_giving(EARLY)
            and not EARLY.is_stable(limit)
            and train(EARLY)[1] > 0.01,
        },
        charts=(chart_saved(mw, fed),),
    )


def train(exact: ExactGame) -> tuple[float, float, float, float]:
    """Train by three rules in one game.

    Return how far MW-FED ends from the equal rise, what could be taken back after it and after
    equal shares, and how far from a best response weights end that rise and fall.
    """
    benefits, needs = to_arrays(exact)
    limit = to_floats(rise_equally(exact))
    theta = follow_mw_fed(benefits, needs)
    return (
        float(np.abs(theta - limit).max() / limit.max()),
        measure_saved(benefits, needs, theta),
        measure_saved(benefits, needs, share_equally(benefits, needs)),
        measure_unrest(benefits, needs, follow_up_and_down(benefits, needs)),
    )


def follow_mw_fed(
    benefits: Matrix, needs: Vector, *, batch: float = 1e-4, local: int = 8, factor: float = 2.0
) -> Vector:
    """Follow Algorithm 2, its model replaced by W times all samples so far, until all are content.

    In each round, agent i takes floor(B k w_i / sum w) batches, B on average. Then the weights of
    agents that are not above their requirements are multiplied.

    batch: the size of one, relative to the largest stand-alone need.
    """
    size = len(needs)
    unit = batch * float((needs / np.diag(benefits)).max())
    theta, weight = np.zeros(size), np.full(size, 1 / size)
    while (benefits @ theta < needs).any():
        # An agent that alone is left has all but all of the weight: the floor is of its share.
        theta += unit * np.floor(local * size * weight / weight.sum() + 1e-9)
        weight = np.where(benefits @ theta <= needs, factor * weight, weight)
        weight /= weight.max()
    return theta


def rise_equally(exact: ExactGame) -> Fractions:
    """Let all who are short give alike, without pause, until each has enough, in fractions."""
    theta = [Fraction(0)] * exact.size
    while short := [i for i, slack in enumerate(exact.slack(theta)) if slack < 0]:
        slack = exact.slack(theta)
        times = {i: -slack[i] / sum(exact.benefits[i][j] for j in short) for i in short}
        for i in short:
            theta[i] += min(times.values())
    return tuple(theta)


def share_equally(benefits: Matrix, needs: Vector) -> Vector:
    """Let all give alike until everybody has enough, as FedAvg does."""
    return np.full(len(needs), float((needs / benefits.sum(axis=1)).max()))


def follow_up_and_down(benefits: Matrix, needs: Vector, *, rounds: int = 200_000) -> Vector:
    """Multiply every contribution by exp(rate (mu_i - u_i)), round after round.

    For symmetric W that is descent on the potential, whose minimum is an equilibrium.
    """
    theta = np.array(needs / np.diag(benefits))
    rate = 0.5 / float(benefits.sum(axis=1).max() * theta.max())
    for number in range(rounds):
        theta = theta * np.exp(rate * (needs - benefits @ theta))
        if number % 500 == 499 and measure_unrest(benefits, needs, theta) < 5e-4:
            break
    return theta


def measure_saved(benefits: Matrix, needs: Vector, theta: Vector) -> float:
    """Return which share of the total the agents could take back, each while the others stay."""
    return float(measure_spare(benefits, needs, theta).sum() / theta.sum())


def measure_unrest(benefits: Matrix, needs: Vector, theta: Vector) -> float:
    """Return how far anybody is from its best response, relative to the largest contribution."""
    best = np.maximum(theta - (benefits @ theta - needs) / np.diag(benefits), 0.0)
    return float(np.abs(best - theta).max() / theta.max())


def chart_saved(mw: Sequence[float], fed: Sequence[float]) -> Chart:
    """Draw what could be taken back, game by game, from the least to the most."""
    at = tuple(float(n + 1) for n in range(len(mw)))
    return Chart(
        "mw-fed-linear",
        "What agents could take back after training in linear games",
        "games, each line in its own order",
        "share of all contributions",
        f"On average {np.mean(mw):.0%} after MW-FED and {np.mean(fed):.0%} after equal shares.",
        (
            Line("MW-FED", at, tuple(sorted(mw))),
            Line("equal shares (FedAvg)", at, tuple(sorted(fed))),
        ),
        percent=True,
    )
