"""Section 5.1: the optimum and the equilibria of linear games by linear and convex programs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.draws import both_games, discovery_game, gram_benefits, tight_requirements
from fedaccord.reproduce.oracle import HALF, ExactGame, Fractions, bound_optimum, mix, to_floats

CLAIMS = Claims()
SEED = 5
# How many small games, and how many agents the larger ones have, quick and full.
GAMES = (45, 400)
LARGER = (60, 200)

INDEFINITE = ExactGame.of([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1])


# LP 1.


@CLAIMS.measure("lp-1")
def lp_1(setting: Setting) -> Measured:
    """Compare HiGHS with all corners of small games, and prove its totals of larger ones."""
    agents = LARGER[setting.full]
    errors = [measure_optimum_error(game) for game in draw_small_games(GAMES[setting.full])]
    gaps = [prove_gap(game) for game in draw_larger_games(agents)]
    return Measured(
        games=len(errors),
        worst_error=max(errors),
        larger_games=len(gaps),
        agents=agents,
        worst_gap=max(gaps),
        seed=SEED,
    )


def draw_small_games(count: int) -> list[ExactGame]:
    """Draw games of which half have equal requirements."""
    return both_games(count, seed=SEED)


def draw_larger_games(agents: int) -> list[LinearGame]:
    """Draw four games of random discovery with unequal requirements."""
    random = np.random.default_rng(SEED)
    sizes = (agents // 2, agents, agents, 2 * agents)
    return [discovery_game(random, agents, points) for points in sizes]


def measure_optimum_error(exact: ExactGame) -> float:
    """Return how far the solver's least total is from the exact one, relative to it."""
    solution = solve_optimal(exact.game(), method="highs")
    short = -min(exact.slack([Fraction(t) for t in solution.allocation.contributions.tolist()]))
    return max(measure_error(solution.total, exact.optimal_total), float(short))


def prove_gap(game: LinearGame) -> float:
    """Return how far apart the bounds are that the solver's allocation and prices prove."""
    solution = solve_optimal(game, method="highs")
    lower, upper = bound_optimum(
        game, solution.allocation.contributions, solution.certificate["prices"]
    )
    return float((upper - lower) / upper)


# CP 1.


@CLAIMS.measure("cp-1")
def cp_1(setting: Setting) -> Measured:
    """Compare the feasible set of CP 1 with the equilibria, and a conic solver with all of them."""
    count = GAMES[setting.full]
    games = draw_small_games(count) + draw_games_with_choice(count // 3)
    points, alike, inside = compare_sets(games)
    choice = sum(len({sum(theta) for theta in game.equilibria}) > 1 for game in games)
    found = [(game, solve_stable(game.game(), method="cp1")) for game in games]
    solved = [(game, s) for game, s in found if s.contributions is not None]
    errors = [measure_error(s.total, game.stable_total) for game, s in solved]
    regrets = [read_regret(s) for _, s in solved]
    ours = max(measure_error(solve_stable(g.game()).total, g.stable_total) for g in games)
    agents = LARGER[setting.full] // 2
    larger = [measure_convex_program(agents, seed) for seed in range(3)]
    return Measured(
        games=len(games),
        points=points,
        feasible_just_if_stable=alike,
        strictly_inside=inside,
        with_different_totals=choice,
        worst_total_error=max(errors + [error for error, _ in larger]),
        worst_contribution_error=max(regrets + [regret for _, regret in larger]),
        median_contribution_error=float(np.median(regrets)) if regrets else None,
        given_up=len(games) - len(solved),
        larger_games=[{"total_error": e, "contribution_error": r} for e, r in larger],
        worst_total_error_of_best_response=ours,
        seed=SEED,
        words={"agents": agents, "most_given_up": setting.expected["given_up"] * len(games)},
    )


def measure_error(total: float, exact: Fraction) -> float:
    """Return how far a total is from the exact one, relative to it."""
    return abs(total - float(exact)) / float(exact)


def compare_sets(games: list[ExactGame]) -> tuple[int, int, int]:
    """Try feasible points: how many, at how many CP 1 and stability agree, how many lie inside."""
    points = alike = inside = 0
    for game in games:
        tried = [*game.corners]
        tried += [mix(a, b, Fraction(1, 3)) for a, b in combinations(game.corners, 2)]
        for theta in tried:
            value = evaluate_constraint(game, theta)
            points += 1
            alike += (value <= 0) == game.is_stable(theta)
            inside += value < 0
    return points, alike, inside


def evaluate_constraint(exact: ExactGame, theta: Fractions) -> Fraction:
    """Return theta'W theta - mu'theta, which CP 1 wants to be at most zero."""
    parts = zip(theta, exact.utilities(theta), exact.requirements, strict=True)
    return sum((t * u - need * t for t, u, need in parts), Fraction(0))


def measure_convex_program(agents: int, seed: int) -> tuple[float, float]:
    """Compare CP 1 with least squares in a larger game; give its error and its regret."""
    rng = np.random.default_rng([SEED, seed])
    rows = rng.dirichlet(np.full(agents // 2, 0.3), size=agents)
    game = DiscoveryGame(rows, np.full(agents, 0.05))
    printed, total = solve_stable(game, method="cp1"), find_stable_total(game)
    if printed.contributions is None:
        return np.inf, np.inf
    return abs(printed.total - total) / total, read_regret(printed)


def read_regret(solution: Solution) -> float:
    """Return how far a solver says that it is from best responses; infinite if it does not say."""
    return float(solution.certificate.get("regret", np.inf))


def find_stable_total(game: DiscoveryGame) -> float:
    """Return the total of every equilibrium of a game with equal requirements, by least squares.

    The rows of Q sum to one, so the potential is 1/2 |Q'theta - mu 1|^2 less mu^2 n / 2, and at an
    equilibrium, where theta'W theta = mu sum(theta), it is -mu sum(theta) / 2.
    """
    from scipy.optimize import nnls

    need, points = float(game.requirements[0]), game.distributions.shape[1]
    distance: float = nnls(game.distributions.T.toarray(), np.full(points, need))[1]
    return float(points * need**2 - distance**2) / need


# The stable set.


@CLAIMS.measure("linear-stable-set")
def linear_stable_set(setting: Setting) -> Measured:
    """Mix equilibria of games that have several, and try each mixture in fractions."""
    games = draw_games_with_choice(GAMES[setting.full])
    mixtures = [
        (game, mix(a, b, Fraction(n, 4)))
        for game in games
        for a, b in combinations(game.equilibria, 2)
        for n in (1, 2, 3)
    ]
    # (0, 1, 0) and (1, 0, 1), of totals 1 and 2.
    first, second, *_ = INDEFINITE.equilibria
    return Measured(
        games=len(games),
        mixtures=len(mixtures),
        stable=sum(game.is_stable(theta) for game, theta in mixtures),
        audited_stable=sum(is_audited_stable(game, theta) for game, theta in mixtures),
        indefinite_middle_stable=INDEFINITE.is_stable(mix(first, second, HALF)),
        seed=SEED,
        words={"indefinite": INDEFINITE, "first": first, "second": second},
    )


def draw_games_with_choice(count: int) -> list[ExactGame]:
    """Draw games of few points with a planted equilibrium, until `count` have several."""
    random = np.random.default_rng(SEED)
    games: list[ExactGame] = []
    while len(games) < count:
        benefits = gram_benefits(random, int(random.integers(3, 5)), 2)
        needs = tight_requirements(random, benefits)
        exact = ExactGame.of(benefits, needs)
        if min(needs) > 0 and len(exact.equilibria) > 1:
            games.append(exact)
    return games


def is_audited_stable(exact: ExactGame, theta: Fractions) -> bool:
    """Ask the check."""
    return check(exact.game(), to_floats(theta)).stable is Answer.TRUE
