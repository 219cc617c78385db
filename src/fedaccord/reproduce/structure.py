"""Section 5.2: who gives in a stable equilibrium of a linear game, and whether anybody envies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from fedaccord.audit import Answer, audit
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.stable import solve_stable
from fedaccord.equilibria.structure import (
    core_set,
    everyone_must_contribute,
    is_diagonally_dominant,
    strictly_dominant_own_benefits,
)
from fedaccord.reproduce.claims import Claims, Finding, Setting, judged, not_so, weighed
from fedaccord.reproduce.draws import (
    equal_games,
    equal_requirements,
    psd_benefits,
    tight_requirements,
    unequal_requirements,
)
from fedaccord.reproduce.oracle import (
    ExactGame,
    Fractions,
    list_givers,
    mix,
    pad,
    solve_exactly,
    to_floats,
    write_amounts,
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


def solver_error(exact: ExactGame, *, tolerance: float = 1e-9) -> bool:
    """Say whether the solver's equilibrium is not one, or costs more than the cheapest."""
    solution = solve_stable(exact.game())
    given = solution.allocation.contributions
    slack = exact.game().apply(given) - exact.game().requirements
    wrong = float(np.abs(np.minimum(given, slack)).max())
    total = float(exact.stable_total)
    return wrong > tolerance or abs(solution.total - total) > tolerance * total


# Theorem 5.


@dataclass(frozen=True)
class Structure:
    """What Theorem 5 says of one game, in fractions.

    optimal: whether every equilibrium is socially optimal among those who give.
    padded: whether every optimum of those who give is, with zeros for the others, the cheapest
        equilibrium of all.
    idle: whether somebody gives nothing.
    several: whether those who give have several optima.
    """

    optimal: bool
    padded: bool
    idle: bool
    several: bool


def structure_of(exact: ExactGame) -> Structure:
    """Take the cheapest equilibria, corners and their mean, and list the optima of who gives."""
    cheapest = [theta for theta in exact.equilibria if sum(theta) == exact.stable_total]
    optimal = extended = True
    several = False
    # At the mean all give who do so in some cheapest equilibrium, and have a choice if several do.
    mean = tuple(sum(each, Fraction(0)) / len(cheapest) for each in zip(*cheapest, strict=True))
    for theta in (*cheapest, mean):
        core = list_givers(theta)
        part = exact.restrict(core)
        optimal &= part.optimal_total == sum(theta)
        wide = [pad(best, core, exact.size) for best in part.optima]
        extended &= all(exact.is_stable(w) and sum(w) == exact.stable_total for w in wide)
        several |= len(wide) > 1
    return Structure(optimal, extended, len(list_givers(cheapest[0])) < exact.size, several)


@CLAIMS.add(
    "theorem-5",
    claim="Those who give in an optimal stable equilibrium are socially optimal among themselves",
    place="Section 5.2, Theorem 5, and Appendix F",
    paper="For symmetric positive semidefinite W and one requirement mu for all, an optimal stable "
    "equilibrium is a social optimum of those who give, and any social optimum of theirs is, with "
    "zeros for the others, an optimal stable equilibrium of all.",
    minutes=(0.1, 0.5),
)
def theorem_5(setting: Setting) -> Finding:
    """List equilibria and optima of games with equal requirements in fractions; one without."""
    games = equal_games(GAMES[setting.full], seed=SEED)
    found = [structure_of(game) for game in games]
    alike = sum(len({sum(theta) for theta in game.equilibria}) == 1 for game in games)
    wrong = sum(solver_error(game) for game in games)
    cores = sum(core_set(solve_stable(game.game())).socially_optimal for game in games)
    without = structure_of(UNEQUAL)
    parts = {
        "givers of all games are socially optimal": all(s.optimal for s in found),
        "all optima of givers are equilibria": all(s.padded for s in found),
        "all equilibria of a game have one total": alike == len(games),
        "the solver finds the cheapest equilibria": not wrong,
        "the solver's givers are socially optimal": cores == len(games),
        "givers have several optima somewhere": any(s.several for s in found),
        "somebody gives nothing somewhere": any(s.idle for s in found),
    }
    return judged(
        all(parts.values()),
        f"In {sum(s.optimal for s in found)} of {len(games)} games with equal requirements the "
        "equilibria are socially optimal among those who give, and in "
        f"{sum(s.padded for s in found)} all optima of theirs are equilibria of all, exactly, by "
        f"listing corners in fractions; somebody gives nothing in {sum(s.idle for s in found)}, "
        f"and {sum(s.several for s in found)} have several such optima. {excess_text()}"
        + not_so(parts),
        evidence={
            "games": len(games),
            "optimal_among_givers": sum(s.optimal for s in found),
            "optima_are_equilibria": sum(s.padded for s in found),
            "somebody_idle": sum(s.idle for s in found),
            "several_optima": sum(s.several for s in found),
            "one_total": alike,
            "solver_disagrees": wrong,
            "core_set_agrees": cores,
            "unequal_game_optimal": without.optimal,
            "seed": SEED,
        },
    )


def excess_text() -> str:
    """Say what the game with unequal requirements shows."""
    stable, optimal = UNEQUAL.stable_total, UNEQUAL.optimal_total
    says = "socially optimal" if stable == optimal else "not socially optimal"
    return (
        "Equal requirements, which the theorem asks for and the introduction's summary leaves "
        f"out, are essential: with {UNEQUAL:mu} the equilibrium "
        f"{write_amounts(UNEQUAL.equilibria[0])}, of {stable} in all, is {says} ({optimal})."
    )


# The corollary.


@CLAIMS.add(
    "corollary-1",
    claim="An equilibrium in which everybody gives is socially optimal",
    place="Section 5.2, Corollary 1 and the sentence before it",
    paper="Any equilibrium in which all agents have non-zero contributions is socially optimal. "
    "(No condition on requirements is repeated.)",
    minutes=(0.1, 0.5),
)
def corollary_1(setting: Setting) -> Finding:
    """Try equilibria in which all give, with equal and with unequal requirements."""
    equal = [game for game in equal_games(3 * GAMES[setting.full], seed=SEED) if all_give(game)]
    right = sum(game.stable_total == game.optimal_total for game in equal)
    drawn = [(game, prices_exist(game)) for game in giving_games(GAMES[setting.full])]
    optimal = [game.stable_total == game.optimal_total for game, _ in drawn]
    agrees = sum(is_best == priced for is_best, (_, priced) in zip(optimal, drawn, strict=True))
    ratios = [float(game.stable_total / game.optimal_total) for game, _ in drawn]
    counter = solved_prices(UNEQUAL)
    refuted = counter[0] and counter[1] > 1 + 1e-9
    wrong = sum(solver_error(game) for game in equal)
    parts = {
        "all are optimal with equal requirements": right == len(equal) > 0,
        "prices decide what is optimal": agrees == len(drawn),
        "the solver finds the cheapest equilibria": not wrong,
    }
    return weighed(
        all(parts.values()),
        refuted,
        f"With equal requirements {right} of {len(equal)} equilibria in which all give are "
        f"optimal, exactly. With unequal ones {len(optimal) - sum(optimal)} of {len(optimal)} are "
        f"not, and cost up to {max(ratios):.2f} times the optimum; W = {UNEQUAL:W} with "
        f"requirements of {UNEQUAL:mu} has the equilibrium "
        f"{write_amounts(UNEQUAL.equilibria[0])}, which costs {counter[1]:.4f} times the optimum. "
        f"In {agrees} of {len(drawn)} games with unequal requirements it is optimal just if "
        "W y = 1 has a solution y >= 0." + not_so(parts),
        "It holds if all requirements are equal, as in Theorem 5. For any requirements, "
        "an equilibrium in which all give is optimal exactly if some prices y >= 0 have W y = 1.",
        evidence={
            "equal_games": len(equal),
            "equal_optimal": right,
            "unequal_games": len(drawn),
            "unequal_optimal": sum(optimal),
            "worst_ratio": max(ratios),
            "prices_decide": agrees,
            "example_ratio": counter[1],
            "solver_disagrees": wrong,
            "seed": SEED,
        },
    )


def all_give(exact: ExactGame) -> bool:
    """Say whether some equilibrium that is a corner has no zeros."""
    return any(min(theta) > 0 for theta in exact.equilibria)


def giving_games(count: int) -> list[ExactGame]:
    """Draw games with a positive equilibrium planted and W regular, so that it is the only one."""
    rng = np.random.default_rng(SEED)
    games: list[ExactGame] = []
    while len(games) < count:
        benefits = psd_benefits(rng, len(games))
        if solve_exactly(benefits, equal_requirements(len(benefits))) is None:
            continue
        needs = tight_requirements(rng, benefits, least=1)
        games.append(ExactGame.of(benefits, needs))
    return games


def prices_exist(exact: ExactGame) -> bool:
    """Say whether W y = 1 has a solution y >= 0, for regular W."""
    prices = solve_exactly(exact.benefits, equal_requirements(exact.size))
    return prices is not None and min(prices) >= 0


def solved_prices(exact: ExactGame) -> tuple[bool, float]:
    """Solve for the equilibrium and the optimum; give whether all give, and the price."""
    stable, optimal = solve_stable(exact.game()), solve_optimal(exact.game())
    given = stable.allocation.contributions
    exactly = float(exact.stable_total / exact.optimal_total)
    ratio = stable.total / optimal.total
    return bool(given.min() > 0) and all_give(exact), min(ratio, exactly)


# Diagonal dominance.


@CLAIMS.add(
    "diagonal-dominance",
    claim="If W is diagonally dominant, everybody gives and the price of stability is 1",
    place="Section 5.2, after Corollary 1",
    paper="If, besides what Theorem 5 asks for, the W_ij with j other than i sum to less than W_ii "
    "for every i, nobody's requirement can be met by the others, who give at most 1/mu each; so "
    "all give, and stability costs nothing. (Section 5.1 assumes a unit diagonal, Theorem 5 equal "
    "requirements; neither is repeated.)",
    minutes=(0.1, 0.5),
)
def diagonal_dominance(setting: Setting) -> Finding:
    """Try dominance as printed and in the right units, with equal and unequal requirements."""
    count = GAMES[setting.full]
    equal = list(dominant_games(count, equal=True))
    unequal = list(dominant_games(count, equal=False))
    giving = sum(all(min(theta) > 0 for theta in game.equilibria) for game in equal)
    free = sum(costless(game) for game in equal + unequal)
    said = sum(everyone_must_contribute(game.game()) for game in equal)
    unit = list(dominant_games(count, equal=False, unit=True))
    idle = sum(not all_give(game) for game in unit)
    cheap = sum(costless(game) for game in unit)
    printed = list(printed_games(count))
    dear = [float(g.stable_total / g.optimal_total) for g in printed if not costless(g)]
    ratio = solved_prices(DOMINANT)[1]
    refuted = is_diagonally_dominant(DOMINANT.game()) and ratio > 1 and not all_give(DOMINANT)
    wrong = sum(solver_error(game) for game in equal + unequal)
    parts = {
        "all give where requirements are equal": giving == count,
        "the package says beforehand that they will": said == count,
        "stability costs nothing": free == 2 * count and cheap == count,
        "the solver finds the cheapest equilibria": not wrong,
    }
    return weighed(
        all(parts.values()),
        refuted,
        f"{'Without the unit diagonal it fails' if refuted else 'The example bears it out'}: at "
        f"the dominant W = {DOMINANT:W} contributions in equilibrium are "
        f"{write_amounts(DOMINANT.equilibria[0])}, {ratio:.2f} times the optimum; in {len(dear)} "
        f"of {count} others drawn stability costs more than the optimum, up to "
        f"{max(dear, default=1.0):.2f} times. An agent alone needs mu/W_ii, not 1/mu: "
        f"{HALVES.game().alone[0]:g}, not 2, at mu = 0.5 and W_ii = 1. With W_ij/W_jj in the sum "
        f"all give in {giving} of {count} games with equal requirements, and stability costs "
        f"nothing in {free} of {2 * count} with equal or unequal ones, exactly. With a unit "
        f"diagonal and unequal requirements it costs nothing in {cheap} of {count}, and in {idle} "
        "of them somebody gives nothing." + not_so(parts),
        "Sum W_ij/W_jj over j other than i, and let it be below 1 for every i (the same "
        "if W has a unit diagonal): then stability costs nothing, whatever the requirements, and "
        "if they are equal everybody gives.",
        evidence={
            "games": count,
            "all_give": giving,
            "costless": free,
            "of": 2 * count,
            "recognised": said,
            "unit_diagonal_costless": cheap,
            "unit_diagonal_somebody_idle": idle,
            "printed_condition_dear": len(dear),
            "printed_condition_worst": max(dear, default=1.0),
            "example_ratio": ratio,
            "solver_disagrees": wrong,
            "seed": SEED,
        },
    )


def costless(exact: ExactGame) -> bool:
    """Say whether every equilibrium is socially optimal."""
    return all(sum(theta) == exact.optimal_total for theta in exact.equilibria)


def dominant_games(count: int, *, equal: bool, unit: bool = False) -> Iterator[ExactGame]:
    """Draw games with W_ij/W_jj, j other than i, of sums below one.

    equal: whether all require the same.
    unit: whether own benefits are one, as against unlike.
    """
    rng = np.random.default_rng([SEED, 2 * unit + equal])
    for _ in range(count):
        size = int(rng.integers(3, 5))
        own = [Fraction(4 if unit else int(n), 4) for n in rng.integers(1, 5, size)]
        # Eight parts are shared among size - 1 others, of whom none gets all.
        rows = [[own[i] if i == j else Fraction(0) for j in range(size)] for i in range(size)]
        for i, j in combinations(range(size), 2):
            part = Fraction(int(rng.integers(0, 8)), 8 * (size - 1))
            rows[i][j] = rows[j][i] = min(own[i], own[j]) * part
        yield ExactGame.of(
            rows, equal_requirements(size) if equal else unequal_requirements(rng, size)
        )


def printed_games(count: int) -> Iterator[ExactGame]:
    """Draw positive definite games that are dominant as printed and not in the right units."""
    rng = np.random.default_rng(SEED)
    while count:
        own = [Fraction(int(n), 8) for n in rng.integers(1, 9, 3)]
        rows = [[own[i] if i == j else Fraction(0) for j in range(3)] for i in range(3)]
        for i, j in combinations(range(3), 2):
            rows[i][j] = rows[j][i] = Fraction(int(rng.integers(0, 8)), 16)
        sums = [sum(row) - row[i] for i, row in enumerate(rows)]
        right = [sum(w / own[j] for j, w in enumerate(row)) - 1 for row in rows]
        if all(s < w for s, w in zip(sums, own, strict=True)) and max(right) >= 1:
            count -= 1
            yield ExactGame.of(rows, equal_requirements(3))


# Theorem 6.


@CLAIMS.add(
    "theorem-6",
    claim="If own samples are worth most to everybody, stable equilibria are envy-free",
    place="Section 5.2, Theorem 6, and Appendix G",
    paper="When W_ij < W_ii for all i and j (j other than i), any stable equilibrium is envy-free.",
    minutes=(0.1, 0.5),
)
def theorem_6(setting: Setting) -> Finding:
    """Look for envy in the equilibria of games with W_ij < W_ii, and of some without."""
    games = [*own_games(GAMES[setting.full])]
    points = [(game, theta) for game in games for theta in stable_points(game)]
    envious = sum(bool(game.envy(theta)) for game, theta in points)
    audited = sum(
        audit(game.game(), to_floats(theta)).envy_free is Answer.TRUE for game, theta in points
    )
    said = sum(strictly_dominant_own_benefits(game.game()) is True for game in games)
    wrong = sum(solver_error(game) for game in games if symmetric(game))
    without = {name: envy_without(name) for name in ("discovery", "twins", "whole")}
    parts = {
        "no equilibrium has envy": envious == 0,
        "the audit says the same": audited == len(points),
        "the package sees that own samples are worth most": said == len(games),
        "the solver finds the cheapest equilibria": not wrong,
        "random discovery without the condition has envy": without["discovery"],
        "agents with the same data have envy": without["twins"],
        "there is envy over whole numbers": without["whole"],
    }
    return judged(
        all(parts.values()),
        f"Nobody envies anybody at {len(points) - envious} of {len(points)} equilibria of "
        f"{len(games)} games, symmetric or not, in exact fractions, nor at {audited} by the audit. "
        "The condition does not come by itself: random discovery with W = "
        f"{ENVIOUS:W} has the equilibrium {write_amounts(ENVIOUS.equilibria[0])}, and "
        "its first agent envies the second; two agents with the same data may split the work "
        "unequally; and over whole numbers, which the theorem is not about, (1, 0) is stable at "
        f"W = {HALVES:W} and mu = 0.5, and the first agent envies the second." + not_so(parts),
        evidence={
            "games": len(games),
            "equilibria": len(points),
            "envious": envious,
            "audited_envy_free": audited,
            "condition_recognised": said,
            "solver_disagrees": wrong,
            "envy_without_the_condition": without,
            "seed": SEED,
        },
    )


def own_games(count: int) -> Iterator[ExactGame]:
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


def symmetric(exact: ExactGame) -> bool:
    """Say whether W is its own transpose."""
    return exact.benefits == tuple(zip(*exact.benefits, strict=True))


def stable_points(exact: ExactGame) -> list[Fractions]:
    """Give the equilibria that are corners, and the middles of two that are equilibria too."""
    middles = [mix(a, b, Fraction(1, 2)) for a, b in combinations(exact.equilibria, 2)]
    return exact.equilibria + [theta for theta in middles if exact.is_stable(theta)]


def envy_without(name: str) -> bool:
    """Say whether a game that misses the condition has an equilibrium with envy."""
    if name == "whole":
        return any(HALVES.envy(theta) for theta in whole_equilibria(HALVES, 2))
    exact = ENVIOUS if name == "discovery" else TWINS
    return any(exact.envy(theta) for theta in exact.equilibria)


def whole_equilibria(exact: ExactGame, most: int) -> list[Fractions]:
    """List the equilibria over whole numbers up to a limit."""
    found = []
    for counts in product(range(most + 1), repeat=exact.size):
        theta = tuple(Fraction(n) for n in counts)
        less = [(i, (*theta[:i], n - 1, *theta[i + 1 :])) for i, n in enumerate(theta) if n > 0]
        if exact.is_feasible(theta) and all(exact.slack(cut)[i] < 0 for i, cut in less):
            found.append(theta)
    return found
