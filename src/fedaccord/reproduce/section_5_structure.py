"""Section 5.2: who gives in a stable equilibrium of a linear game, and whether anybody envies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from fedaccord.check import Answer, check
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.equilibria.structure import (
    core_set,
    everyone_must_contribute,
    is_diagonally_dominant,
    strictly_dominant_own_benefits,
)
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.draws import (
    equal_games,
    psd_benefits,
    tight_requirements,
    unequal_requirements,
)
from fedaccord.reproduce.oracle import (
    HALF,
    ONE,
    ZERO,
    ExactGame,
    Fractions,
    Listing,
    average,
    linear_utility,
    list_givers,
    mix,
    pad,
    solve_exactly,
    to_floats,
)

CLAIMS = Claims()
SEED = 52
GAMES = (60, 600)

OVERLAP = (("1", "0.7", "0.7"), ("0.7", "1", "0.2"), ("0.7", "0.2", "1"))
UNEQUAL = ExactGame.of(OVERLAP, ["2.4", "1.9", "1.9"])
DOMINANT = ExactGame.of(
    [["1", "0.45", "0.45"], ["0.45", "0.5", 0], ["0.45", 0, "0.5"]], ["0.5"] * 3
)
# Q = (0.6, 0.4; 1, 0): the second agent's samples are worth more to the first than its own.
ENVIOUS = ExactGame.of([["0.52", "0.6"], ["0.6", "1"]], ["0.5", "0.2"])
TWINS = ExactGame.of([[1, 1], [1, 1]], [1, 1])
HALVES = ExactGame.of([["1", "0.5"], ["0.5", "1"]], ["0.5", "0.5"])


def is_solved_wrong(exact: ExactGame) -> bool:
    """Return whether the solver's equilibrium is not one, or costs more than the cheapest."""
    solution = solve_stable(exact.game())
    given = solution.allocation.contributions
    slack = exact.game().apply(given) - exact.game().requirements
    wrong = float(np.abs(np.minimum(given, slack)).max())
    total = float(exact.stable_total)
    return wrong > 1e-9 or abs(solution.total - total) > 1e-9 * total


# Theorem 5.


@dataclass(frozen=True)
class Structure:
    """What Theorem 5 says of one game, in fractions.

    optimal: whether every equilibrium is socially optimal among its contributors.
    padded: whether every optimum of the contributors is, with zeros for the others, the cheapest
        equilibrium of all.
    idle: whether somebody gives nothing.
    several: whether the contributors have several optima.
    """

    optimal: bool
    padded: bool
    idle: bool
    several: bool


def measure_structure(exact: ExactGame) -> Structure:
    """Take the cheapest equilibria, corners and their mean, and list the optima of who gives."""
    cheapest = [theta for theta in exact.equilibria if sum(theta) == exact.stable_total]
    optimal = extended = True
    several = False
    # At the mean all give who do so in some cheapest equilibrium, and have a choice if several do.
    for theta in (*cheapest, average(cheapest)):
        core = list_givers(theta)
        part = exact.restrict(core)
        optimal &= part.optimal_total == sum(theta)
        wide = [pad(best, core, exact.size) for best in part.optima]
        extended &= all(exact.is_stable(w) and sum(w) == exact.stable_total for w in wide)
        several |= len(wide) > 1
    return Structure(optimal, extended, len(list_givers(cheapest[0])) < exact.size, several)


@CLAIMS.measure("theorem-5")
def theorem_5(setting: Setting) -> Measured:
    """List equilibria and optima of games with equal requirements in fractions; one without."""
    games = equal_games(GAMES[setting.full], seed=SEED)
    found = [measure_structure(game) for game in games]
    return Measured(
        games=len(games),
        optimal_among_givers=sum(s.optimal for s in found),
        optima_are_equilibria=sum(s.padded for s in found),
        somebody_idle=sum(s.idle for s in found),
        several_optima=sum(s.several for s in found),
        one_total=sum(len({sum(theta) for theta in game.equilibria}) == 1 for game in games),
        solver_disagrees=sum(is_solved_wrong(game) for game in games),
        core_set_agrees=sum(core_set(solve_stable(g.game())).socially_optimal for g in games),
        unequal_game_optimal=measure_structure(UNEQUAL).optimal,
        seed=SEED,
        words={"unequal": UNEQUAL, "optimal": UNEQUAL.stable_total == UNEQUAL.optimal_total},
    )


# The corollary.


@CLAIMS.measure("corollary-1")
def corollary_1(setting: Setting) -> Measured:
    """Try equilibria in which all give, with equal and with unequal requirements."""
    equal = [
        game for game in equal_games(3 * GAMES[setting.full], seed=SEED) if has_all_giving(game)
    ]
    drawn = draw_giving_games(GAMES[setting.full])
    right, optimal = (
        [game.stable_total == game.optimal_total for game in games] for games in (equal, drawn)
    )
    agrees = sum(best == has_prices(game) for best, game in zip(optimal, drawn, strict=True))
    positive, ratio = solve_price(UNEQUAL)
    return Measured(
        equal_games=len(equal),
        equal_optimal=sum(right),
        unequal_games=len(drawn),
        unequal_optimal=sum(optimal),
        worst_ratio=max(float(g.stable_total / g.optimal_total) for g in drawn),
        prices_decide=agrees,
        example_ratio=ratio,
        solver_disagrees=sum(is_solved_wrong(game) for game in equal),
        seed=SEED,
        words={"dear": len(optimal) - sum(optimal), "unequal": UNEQUAL, "all_give": positive},
    )


def has_all_giving(exact: ExactGame) -> bool:
    """Return whether some equilibrium that is a corner has no zeros."""
    return any(min(theta) > 0 for theta in exact.equilibria)


def draw_giving_games(count: int) -> list[ExactGame]:
    """Draw games with a positive equilibrium planted and W regular, so that it is the only one."""
    rng = np.random.default_rng(SEED)
    games: list[ExactGame] = []
    while len(games) < count:
        benefits = psd_benefits(rng, len(games))
        if solve_exactly(benefits, [ONE] * len(benefits)) is None:
            continue
        needs = tight_requirements(rng, benefits, least=1)
        games.append(ExactGame.of(benefits, needs))
    return games


def has_prices(exact: ExactGame) -> bool:
    """Return whether W y = 1 has a solution y >= 0, for regular W."""
    prices = solve_exactly(exact.benefits, [ONE] * exact.size)
    return prices is not None and min(prices) >= 0


def solve_price(exact: ExactGame) -> tuple[bool, float]:
    """Solve for the equilibrium and the optimum; give whether all give, and the price."""
    stable, optimal = solve_stable(exact.game()), solve_optimal(exact.game())
    given = stable.allocation.contributions
    exactly = float(exact.stable_total / exact.optimal_total)
    ratio = stable.total / optimal.total
    return bool(given.min() > 0) and has_all_giving(exact), min(ratio, exactly)


# Diagonal dominance.


@CLAIMS.measure("diagonal-dominance")
def diagonal_dominance(setting: Setting) -> Measured:
    """Try dominance as printed and in the right units, with equal and unequal requirements."""
    count = GAMES[setting.full]
    equal = list(draw_dominant_games(count, equal=True))
    unequal = list(draw_dominant_games(count, equal=False))
    unit = list(draw_dominant_games(count, equal=False, unit=True))
    dear = [
        float(g.stable_total / g.optimal_total)
        for g in draw_printed_games(count)
        if not is_costless(g)
    ]
    ratio = solve_price(DOMINANT)[1]
    fails = is_diagonally_dominant(DOMINANT.game()) and ratio > 1 and not has_all_giving(DOMINANT)
    return Measured(
        games=count,
        all_give=sum(all(min(theta) > 0 for theta in game.equilibria) for game in equal),
        costless=sum(map(is_costless, equal + unequal)),
        of=2 * count,
        recognised=sum(everyone_must_contribute(game.game()) for game in equal),
        unit_diagonal_costless=sum(map(is_costless, unit)),
        unit_diagonal_somebody_idle=sum(not has_all_giving(game) for game in unit),
        printed_condition_dear=len(dear),
        printed_condition_worst=max(dear, default=1.0),
        example_ratio=ratio,
        solver_disagrees=sum(is_solved_wrong(game) for game in equal + unequal),
        seed=SEED,
        words={"fails": fails, "dominant": DOMINANT, "alone": HALVES.game().alone[0]},
    )


def is_costless(exact: ExactGame) -> bool:
    """Return whether every equilibrium is socially optimal."""
    return all(sum(theta) == exact.optimal_total for theta in exact.equilibria)


def make_symmetric(own: list[Fraction], others: Iterator[Fraction]) -> list[list[Fraction]]:
    """Return a symmetric matrix with a diagonal, and above it numbers row by row."""
    rows = [[own[i] if i == j else ZERO for j in range(len(own))] for i in range(len(own))]
    for i, j in combinations(range(len(own)), 2):
        rows[i][j] = rows[j][i] = next(others)
    return rows


def draw_dominant_games(count: int, *, equal: bool, unit: bool = False) -> Iterator[ExactGame]:
    """Draw games with W_ij/W_jj, j other than i, of sums below one.

    equal: whether all require the same.
    unit: whether own benefits are one, as against unlike.
    """
    random = np.random.default_rng([SEED, 2 * unit + equal])
    for _ in range(count):
        size = int(random.integers(3, 5))
        own = [Fraction(4 if unit else int(n), 4) for n in random.integers(1, 5, size)]
        # Eight parts are shared among size - 1 others, of whom none gets all.
        parts = (
            min(pair) * Fraction(int(random.integers(0, 8)), 8 * (size - 1))
            for pair in combinations(own, 2)
        )
        rows = make_symmetric(own, parts)
        needs = [ONE] * size if equal else unequal_requirements(random, size)
        yield ExactGame.of(rows, needs)


def draw_printed_games(count: int) -> Iterator[ExactGame]:
    """Draw positive definite games that are dominant as printed and not in the right units."""
    random = np.random.default_rng(SEED)
    while count:
        own = [Fraction(int(n), 8) for n in random.integers(1, 9, 3)]
        rows = make_symmetric(own, (Fraction(int(random.integers(0, 8)), 16) for _ in range(3)))
        sums = [sum(row) - row[i] for i, row in enumerate(rows)]
        right = [sum(w / own[j] for j, w in enumerate(row)) - 1 for row in rows]
        if all(s < w for s, w in zip(sums, own, strict=True)) and max(right) >= 1:
            count -= 1
            yield ExactGame.of(rows, [ONE] * 3)


# Theorem 6.


@CLAIMS.measure("theorem-6")
def theorem_6(setting: Setting) -> Measured:
    """Look for envy in the equilibria of games with W_ij < W_ii, and of some without."""
    games = [*draw_own_games(GAMES[setting.full])]
    points = [(game, theta) for game in games for theta in list_stable_points(game)]
    envious = sum(bool(game.envy(theta)) for game, theta in points)
    audits = (check(game.game(), to_floats(theta)) for game, theta in points)
    whole = Listing(linear_utility(HALVES.benefits), HALVES.requirements, limits=(2, 2))
    return Measured(
        games=len(games),
        equilibria=len(points),
        envious=envious,
        audited_envy_free=sum(report.envy_free is Answer.TRUE for report in audits),
        condition_recognised=sum(
            strictly_dominant_own_benefits(game.game()) is True for game in games
        ),
        solver_disagrees=sum(is_solved_wrong(game) for game in games if is_symmetric(game)),
        envy_without_the_condition={
            "discovery": any(map(ENVIOUS.envy, ENVIOUS.equilibria)),
            "twins": any(map(TWINS.envy, TWINS.equilibria)),
            "whole": any(map(whole.envy, whole.list_all(whole.is_stable))),
        },
        seed=SEED,
        words={"free": len(points) - envious, "envious_game": ENVIOUS, "halves": HALVES},
    )


def draw_own_games(count: int) -> Iterator[ExactGame]:
    """Draw games with W_ij < W_ii, every other one symmetric."""
    rng = np.random.default_rng(SEED)
    for number in range(count):
        size = int(rng.integers(3, 5))
        entries = rng.integers(0, 8, (size, size))
        if number % 2:
            entries = np.tril(entries) + np.tril(entries, -1).T
            np.fill_diagonal(entries, rng.integers(8, 10, size))
        else:
            np.fill_diagonal(entries, entries.max(axis=1) + 1)
        yield ExactGame.of(
            [[Fraction(int(w), 16) for w in row] for row in entries],
            unequal_requirements(rng, size),
        )


def is_symmetric(exact: ExactGame) -> bool:
    """Return whether W is its own transpose."""
    return exact.benefits == tuple(zip(*exact.benefits, strict=True))


def list_stable_points(exact: ExactGame) -> list[Fractions]:
    """Return the equilibria that are corners, and the middles of two that are equilibria too."""
    middles = [mix(a, b, HALF) for a, b in combinations(exact.equilibria, 2)]
    return exact.equilibria + [theta for theta in middles if exact.is_stable(theta)]
