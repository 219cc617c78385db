"""Section 5.1: the optimum and the equilibria of linear games by linear and convex programs.

Section 5.2 stands in structure.py, what the appendix says of multiplicative weights in weights.py.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from fedaccord.audit import Answer, audit
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.stable import solve_stable
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.reproduce import structure, weights
from fedaccord.reproduce.claims import Claims, Finding, Setting, judged, not_so
from fedaccord.reproduce.draws import (
    discovery_game,
    equal_games,
    gram_benefits,
    tight_requirements,
    unequal_games,
)
from fedaccord.reproduce.oracle import (
    ExactGame,
    Fractions,
    bound_optimum,
    mix,
    to_floats,
    write_amounts,
)

CLAIMS = Claims()
SEED = 5
# How many small games, and how many agents the larger ones have, quick and full.
GAMES = (45, 400)
LARGER = (60, 200)

INDEFINITE = ExactGame.of([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1])


# LP 1.


@CLAIMS.add(
    "lp-1",
    claim="A linear program, LP 1, finds the optimum of a linear game",
    place="Section 5.1, LP 1",
    paper="The least sum of contributions with W theta >= mu and theta >= 0 is the social optimum.",
    minutes=(0.1, 0.5),
)
def lp_1(setting: Setting) -> Finding:
    """Compare HiGHS with all corners of small games, and prove its totals of larger ones."""
    allowed = setting.expected["tolerance"]
    games = small_games(GAMES[setting.full])
    errors = [optimum_error(game) for game in games]
    agents = LARGER[setting.full]
    gaps = [proved_gap(game) for game in larger_games(agents)]
    worst, gap = max(errors), max(gaps)
    parts = {
        "totals of small games are right": worst <= allowed,
        "totals of larger games are proved": gap <= allowed,
    }
    return judged(
        all(parts.values()),
        f"In {len(games)} games of three or four agents the least total by HiGHS is off by at most "
        f"{worst:.0e} of the exact one, found by listing all corners of the feasible set in "
        f"fractions. In {len(gaps)} games of {agents} agents prices for the requirements prove, "
        f"again in fractions, that no total is smaller by more than {gap:.0e} of it."
        + not_so(parts),
        evidence={
            "games": len(games),
            "worst_error": worst,
            "larger_games": len(gaps),
            "agents": agents,
            "worst_gap": gap,
            "seed": SEED,
        },
    )


def small_games(count: int) -> list[ExactGame]:
    """Draw games of which half have equal requirements."""
    half = count // 2
    return equal_games(half, seed=SEED) + unequal_games(count - half, seed=SEED)


def larger_games(agents: int) -> list[LinearGame]:
    """Draw four games of random discovery with unequal requirements."""
    rng = np.random.default_rng(SEED)
    sizes = (agents // 2, agents, agents, 2 * agents)
    return [discovery_game(rng, agents, points) for points in sizes]


def optimum_error(exact: ExactGame) -> float:
    """Tell how far the solver's least total is from the exact one, relative to it."""
    solution = solve_optimal(exact.game(), method="highs")
    short = -min(exact.slack([Fraction(t) for t in solution.allocation.contributions.tolist()]))
    return max(relative_error(solution.total, exact.optimal_total), float(short))


def proved_gap(game: LinearGame) -> float:
    """Tell how far apart the bounds are that the solver's allocation and prices prove."""
    solution = solve_optimal(game, method="highs")
    lower, upper = bound_optimum(
        game, solution.allocation.contributions, solution.certificate["prices"]
    )
    return float((upper - lower) / upper)


# CP 1.


@CLAIMS.add(
    "cp-1",
    claim="A convex program, CP 1, finds the cheapest stable equilibrium of a linear game",
    place="Section 5.1, the theorem with CP 1",
    paper="LP 1 with theta'W theta - mu'theta <= 0 added computes an optimal stable equilibrium; "
    "for symmetric positive semidefinite W that is a convex program.",
    minutes=(0.2, 1),
)
def cp_1(setting: Setting) -> Finding:
    """Compare the feasible set of CP 1 with the equilibria, and a conic solver with all of them."""
    count = GAMES[setting.full]
    games = small_games(count) + games_with_choice(count // 3)
    points, alike, inside = compared_sets(games)
    choice = sum(len({sum(theta) for theta in game.equilibria}) > 1 for game in games)
    found = [(game, solve_stable(game.game(), method="cp1")) for game in games]
    solved = [(game, s) for game, s in found if s.contributions is not None]
    errors = [relative_error(s.total, game.stable_total) for game, s in solved]
    regrets = [regret_of(s) for _, s in solved]
    ours = max(relative_error(solve_stable(g.game()).total, g.stable_total) for g in games)
    agents = LARGER[setting.full] // 2
    larger = [convex_program_gap(agents, seed) for seed in range(3)]
    worst, rough = max(errors + [e for e, _ in larger]), max(regrets + [r for _, r in larger])
    lost = len(games) - len(solved)
    parts = {
        "feasible for CP 1 and stable are the same": alike == points,
        "no point has room to spare": inside == 0,
        "some games have equilibria of different totals": choice > 0,
        "the conic solver's totals are right": worst <= setting.expected["tolerance"],
        "its contributions are, roughly": rough <= setting.expected["contributions"],
        "it seldom gives up": lost <= setting.expected["given_up"] * len(games),
        "best responses find the same totals": ours <= setting.expected["polished"],
    }
    return judged(
        all(parts.values()),
        f"At {alike} of {points} points of {len(games)} games of three or four agents, feasible "
        "for CP 1 and stable are the same, in exact fractions. In these games, of which "
        f"{choice} have equilibria of different totals, and in 3 of {agents} agents a conic "
        f"solver's total is off by at most {worst:.0e} of the cheapest equilibrium's. Beware: of "
        f"the points {inside or 'none'} leave the added constraint room to spare, and so a solver "
        f"has no interior to work in: contributions are off by up to {rough:.0e} of the largest "
        f"one, and the number of games on which it gave up is {lost}. Best responses, polished, "
        f"find the same totals to {ours:.0e}." + not_so(parts),
        evidence={
            "games": len(games),
            "points": points,
            "feasible_just_if_stable": alike,
            "strictly_inside": inside,
            "with_different_totals": choice,
            "worst_total_error": worst,
            "worst_contribution_error": rough,
            "median_contribution_error": float(np.median(regrets)) if regrets else None,
            "given_up": lost,
            "larger_games": [{"total_error": e, "contribution_error": r} for e, r in larger],
            "worst_total_error_of_best_response": ours,
            "seed": SEED,
        },
    )


def relative_error(total: float, exact: Fraction) -> float:
    """Tell how far a total is from the exact one, relative to it."""
    return abs(total - float(exact)) / float(exact)


def compared_sets(games: list[ExactGame]) -> tuple[int, int, int]:
    """Try feasible points: how many, at how many CP 1 and stability agree, how many lie inside."""
    points = alike = inside = 0
    for game in games:
        tried = [*game.corners]
        tried += [mix(a, b, Fraction(1, 3)) for a, b in combinations(game.corners, 2)]
        for theta in tried:
            value = added_constraint(game, theta)
            points += 1
            alike += (value <= 0) == game.is_stable(theta)
            inside += value < 0
    return points, alike, inside


def added_constraint(exact: ExactGame, theta: Fractions) -> Fraction:
    """Give theta'W theta - mu'theta, which CP 1 wants to be at most zero."""
    parts = zip(theta, exact.utilities(theta), exact.requirements, strict=True)
    return sum((t * u - need * t for t, u, need in parts), Fraction(0))


def convex_program_gap(agents: int, seed: int) -> tuple[float, float]:
    """Compare CP 1 with least squares in a larger game; give its error and its regret."""
    rng = np.random.default_rng([SEED, seed])
    rows = rng.dirichlet(np.full(agents // 2, 0.3), size=agents)
    game = DiscoveryGame(rows, np.full(agents, 0.05))
    printed, total = solve_stable(game, method="cp1"), least_potential(game)
    if printed.contributions is None:
        return np.inf, np.inf
    return abs(printed.total - total) / total, regret_of(printed)


def regret_of(solution: Solution) -> float:
    """Give how far a solver says that it is from best responses; infinite where it says nothing."""
    return float(solution.certificate.get("regret", np.inf))


def least_potential(game: DiscoveryGame) -> float:
    """Give the total of every equilibrium of a game with equal requirements, by least squares.

    The rows of Q sum to one, so the potential is 1/2 |Q'theta - mu 1|^2 less mu^2 n / 2, and at an
    equilibrium, where theta'W theta = mu sum(theta), it is -mu sum(theta) / 2.
    """
    from scipy.optimize import nnls

    need, points = float(game.requirements[0]), game.distributions.shape[1]
    distance: float = nnls(game.distributions.T.toarray(), np.full(points, need))[1]
    return float(points * need**2 - distance**2) / need


# The stable set.


@CLAIMS.add(
    "linear-stable-set",
    claim="The stable equilibria of a linear game are a convex set",
    place="Section 5.1, before CP 1",
    paper="With W symmetric and positive semidefinite the set of stable equilibria is convex.",
    minutes=(0.1, 0.5),
)
def linear_stable_set(setting: Setting) -> Finding:
    """Mix equilibria of games that have several, and try each mixture in fractions."""
    games = games_with_choice(GAMES[setting.full])
    mixtures = [(game, theta) for game in games for theta in mixtures_of(game.equilibria)]
    exact = sum(game.is_stable(theta) for game, theta in mixtures)
    audited = sum(audited_stable(game, theta) for game, theta in mixtures)
    # (0, 1, 0) and (1, 0, 1), of totals 1 and 2.
    first, second, *_ = INDEFINITE.equilibria
    needed = not INDEFINITE.is_stable(mix(first, second, Fraction(1, 2)))
    parts = {
        "all mixtures are equilibria": exact == len(mixtures),
        "the audit says the same": audited == len(mixtures),
        "it takes a positive semidefinite W": needed,
    }
    return judged(
        all(parts.values()),
        f"In {len(games)} games with several equilibria, {exact} of {len(mixtures)} mixtures of "
        f"two are equilibria in exact fractions, and {audited} by the audit. It takes a positive "
        f"semidefinite W: with the indefinite one of {INDEFINITE:W} the equilibria "
        f"{write_amounts(first)} and {write_amounts(second)} have a middle that "
        f"{'is none' if needed else 'is one too'}." + not_so(parts),
        evidence={
            "games": len(games),
            "mixtures": len(mixtures),
            "stable": exact,
            "audited_stable": audited,
            "indefinite_middle_stable": not needed,
            "seed": SEED,
        },
    )


def games_with_choice(count: int) -> list[ExactGame]:
    """Draw games of few points with an equilibrium planted, until so many have several."""
    rng = np.random.default_rng(SEED)
    games: list[ExactGame] = []
    while len(games) < count:
        benefits = gram_benefits(rng, int(rng.integers(3, 5)), 2)
        needs = tight_requirements(rng, benefits)
        exact = ExactGame.of(benefits, needs)
        if min(needs) > 0 and len(exact.equilibria) > 1:
            games.append(exact)
    return games


def mixtures_of(points: list[Fractions]) -> list[Fractions]:
    """Mix every two of the points, a quarter to three, evenly, and three to a quarter."""
    shares = [Fraction(n, 4) for n in (1, 2, 3)]
    return [mix(a, b, share) for a, b in combinations(points, 2) for share in shares]


def audited_stable(exact: ExactGame, theta: Fractions) -> bool:
    """Ask the audit."""
    return audit(exact.game(), to_floats(theta)).stable is Answer.TRUE


CLAIMS.include_all(structure.CLAIMS, weights.CLAIMS)
