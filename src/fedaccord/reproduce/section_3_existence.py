"""Section 3 and Appendix D: when envy-free allocations and stable equilibria exist."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Answer, check
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.equilibria.general.exhaustive import all_equilibria
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import (
    price_of_fairness,
    price_of_stability,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.games import catalog
from fedaccord.games.base import Certified, Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame
from fedaccord.reproduce import draws
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.oracle import (
    HALF,
    ONE,
    Amounts,
    ExactGame,
    Listing,
    Whole,
    cycle_worlds,
    learnt_utility,
    pad,
    ring_utility,
    solve_exactly,
    utility_of,
)

CLAIMS = Claims()
SEED = 20210307
# How many random games, quick and full.
GAMES = (40, 400)
# How long best responses are followed.
ROUNDS = 3000
# By which rules, from zero.
WAYS: dict[str, dict[str, Any]] = {
    "all at once": {},
    "half steps": {"damping": 0.5},
    "one by one": {"order": "sequential"},
}


# Theorem 1.


def level(theta: Vector, limits: Vector) -> Vector:
    """Return the allocation in which all give what the largest contributor gives, or can."""
    return np.asarray(np.minimum(np.full(len(theta), theta.max()), limits))


@CLAIMS.measure("theorem-1")
def theorem_1(setting: Setting) -> Measured:
    """Level feasible allocations of random games, with and without limits; try a common budget."""
    games = GAMES[setting.full]
    limited, wrong, unequal = _level_limited_games(games)
    budget = _budget_of_one(60)
    envious = budget == [((1, 0), True), ((0, 1), True)]
    return Measured(
        games=games,
        failures=_level_games(games),
        limited_games=limited,
        limited_failures=wrong,
        budget_of_one=[theta for theta, _ in budget],
        seed=SEED,
        words={"unequal": unequal, "envious": envious},
    )


def _level_games(count: int) -> list[int]:
    """Level a random feasible allocation of each game; return those where the claim fails."""
    random, failures = np.random.default_rng(SEED), []
    for number in range(count):
        agents, whole = int(random.integers(2, 6)), number % 4 > 1
        draw = draws.linear_game if number % 2 else draws.coverage_game
        game: Game = draw(random, agents, strategies="integer" if whole else "real")
        theta = _draw_feasible(game, random)
        given = level(theta, game.limits)
        report = check(game, given)
        right = report.feasible is Answer.TRUE and report.envy_free is Answer.TRUE
        # Whoever was lifted could go back to what it gave.
        lifted = given > theta
        right = right and bool((report.needed[lifted] <= theta[lifted] + 1e-9).all())
        if not right:
            failures.append(number)
    return failures


def _draw_feasible(game: Game, random: np.random.Generator) -> Vector:
    """Draw contributions, and double them until everybody is satisfied."""
    theta = game.alone * random.uniform(0, 1.2, game.size)
    theta = np.ceil(theta) if game.is_integer else theta
    while not game.is_feasible(theta):
        theta = 2 * np.maximum(theta, 0.5)
    return np.asarray(theta)


def _level_limited_games(count: int) -> tuple[int, list[int], int]:
    """Level every feasible allocation of whole-number games with limits, and try all swaps."""
    random = np.random.default_rng(SEED)
    games, failures, unequal = 0, [], 0
    for number in range(count):
        limits = [int(n) for n in random.integers(0, 5, 3)]
        game = draws.linear_game(random, 3, strategies="integer", limits=limits)
        listing = Listing.of(game)
        feasible = listing.list_all(listing.is_feasible)
        if not feasible:
            continue
        games += 1
        levels = {
            tuple(int(t) for t in level(np.array(theta, dtype=float), game.limits))
            for theta in feasible
        }
        unequal += sum(len(set(theta)) > 1 for theta in levels)
        least, found = listing.least(listing.is_envy_free), solve_envy_free(game)
        if not all(map(listing.is_envy_free, levels)) or found.total != least:
            failures.append(number)
    return games, failures, unequal


def _budget_of_one(steps: int) -> list[tuple[Whole, bool]]:
    """List the feasible allocations of two agents that may give one sample together.

    Each with whether the giving agent would rather have the other's amount. In steps of 1/steps;
    with t of the one and 1 - t of the other the utility is 3/4 - t (1 - t)/8, so between the steps
    there are no more.
    """
    game = catalog.build("two-agents")
    utility, needs = utility_of(game), [Fraction(need) for need in game.requirements.tolist()]
    found: list[tuple[Whole, bool]] = []
    for first, second in product(range(steps, -1, -1), repeat=2):
        theta = [Fraction(first, steps), Fraction(second, steps)]
        if sum(theta) > 1 or any(utility(i, theta) < needs[i] for i in (0, 1)):
            continue
        giver = int(second > first)
        envies = first != second and utility(giver, theta[::-1]) >= needs[giver]
        found.append(((first // steps, second // steps), envies))
    return found


# Theorem 2.


@CLAIMS.measure("theorem-2")
def theorem_2(setting: Setting) -> Measured:
    """Certify games, find an equilibrium of each by best response, and prove it."""
    games = _list_games(GAMES[setting.full])
    cycles, failures, exact, settled = [], [], [], Counter[str]()
    worst = 1e-9  # Nothing finer is tried.
    for name, game in games.items():
        paths = {
            way: best_response_dynamics(game, tolerance=1e-10, max_rounds=ROUNDS, **options)
            for way, options in WAYS.items()
        }
        if paths["all at once"].ending is Ending.CYCLED:
            cycles.append(name)
        ends = {way: p.last for way, p in paths.items() if p.ending is Ending.CONVERGED}
        settled.update(ends.keys())
        verdict = game.well_behaved()
        if not ends or not isinstance(verdict, Certified):
            failures.append(name)
            continue
        last = next(reversed(ends.values()))
        worst = max(worst, _find_regret(game, last))
        stable = check(game, last, tolerance=1e-8).stable is Answer.TRUE
        if not stable or (last > verdict.box + 1e-9).any():
            failures.append(name)
        if isinstance(game, LinearGame) and game.size <= 6:
            exact.append(_is_exact(game, last))
    capped = LinearGame([[1, 0.6], [0.6, 1]], [1440, 1440], limits=[None, 800])
    control = solve_stable(capped).status
    return Measured(
        games=len(games),
        exact=[sum(exact), len(exact)],
        cycles=len(cycles),
        settled=settled,
        worst_regret=worst,
        failures=failures,
        with_limits=control.key,
        seed=SEED,
        words={
            "none_with_limits": control is Status.NONE_EXISTS,
            "flower_cycles": "flower" in cycles,
            "rounds": ROUNDS,
            "halves": settled["half steps"],
        },
    )


def _list_games(count: int) -> dict[str, Game]:
    random = np.random.default_rng(SEED)
    games: dict[str, Game] = {
        "flower": catalog.build("flower", petals=16),
        "coverage flower": catalog.build("flower", petals=16, model="coverage"),
        "two agents": catalog.build("two-agents"),
        "k4": catalog.build("k4"),
        "ring": catalog.build("cyclic"),
        "pac cycle": catalog.build("pac-cycle", strategies="real", requirement="9/10"),
    }
    for number in range(count):
        agents = int(random.integers(2, 7))
        if number % 3 == 0:
            games[f"any linear {number}"] = draws.linear_game(random, agents)
        elif number % 3 == 1:
            games[f"unit linear {number}"] = draws.unit_game(random, agents)
        else:
            table = random.dirichlet(np.full(5, 0.7), agents)
            games[f"coverage {number}"] = CoverageGame(table, random.uniform(0.5, 0.9, agents))
    return games


def _find_regret(game: Game, theta: Vector) -> float:
    """Return the largest distance at which an agent is short, or could cut, found by trying.

    Utilities are asked directly: whether a cut of some size leaves an agent satisfied.
    """
    scale, worst = float(theta.max()), 0.0
    for agent, power, sign in product(range(game.size), range(-9, 0), (-1, 1)):
        trial = np.array(theta)
        trial[agent] = max(theta[agent] + sign * 10.0**power * scale, 0.0)
        satisfied = game.utilities(trial)[agent] >= game.requirements[agent]
        if trial[agent] != theta[agent] and satisfied == (sign < 0):
            worst = max(worst, 10.0**power)
    return worst


def _is_exact(game: LinearGame, theta: Vector) -> bool:
    """Return whether the contributors, each with exactly its requirement, make an equilibrium.

    Solved in fractions of the very numbers that the game holds.
    """
    exact = ExactGame.of(game.dense_benefits.tolist(), game.requirements.tolist())
    giving = np.flatnonzero(theta > 1e-8 * theta.max()).tolist()
    rows = [[exact.benefits[i][j] for j in giving] for i in giving]
    amounts = solve_exactly(rows, [exact.requirements[i] for i in giving])
    return amounts is not None and exact.is_stable(pad(amounts, giving, game.size))


# Theorem 3 and Appendix D: three agents in a ring, who have no stable equilibrium.


@CLAIMS.measure("theorem-3")
def theorem_3(setting: Setting) -> Measured:
    """Go through all eight allocations, by the construction, the printed utility and the check."""
    game = catalog.build("pac-cycle")
    learnt = Listing.of(game, learnt_utility(cycle_worlds(1)))
    printed = Listing.of(game, _printed_cycle)
    same = all(learnt.utilities(t) == printed.utilities(t) for t in learnt.allocations)
    agree = all(
        (report.feasible is Answer.TRUE) == learnt.is_feasible(theta)
        and (report.stable is Answer.TRUE) == learnt.is_stable(theta)
        and (report.envy_free is Answer.TRUE) == learnt.is_envy_free(theta)
        for theta in learnt.allocations
        for report in [check(game, theta)]
    )
    found: dict[str, Any] = {
        "feasible": len(learnt.list_all(learnt.is_feasible)),
        "equilibria": len(learnt.list_all(learnt.is_stable)),
        "optimal": learnt.least(learnt.is_feasible),
        "envy_free": learnt.least(learnt.is_envy_free),
    }
    stable, optimal, fair = solve_stable(game), solve_optimal(game), solve_envy_free(game)
    return Measured(
        **found,
        audits_agree=agree,
        utilities_agree=same,
        real_none=_real_cycle_has_none(),
        words={
            "of_two": learnt.list_all(lambda theta: sum(theta) >= 2)
            == learnt.list_all(learnt.is_feasible),
            "as_expected": found == {name: setting.expected[name] for name in found},
            "none_proved": stable.status is Status.NONE_EXISTS
            and math.isinf(price_of_stability(stable, optimal).lower),
            "same_totals": (optimal.total, fair.total) == (found["optimal"], found["envy_free"]),
            "fairness": price_of_fairness(fair, optimal).upper,
        },
    )


def _printed_cycle(agent: int, theta: Amounts) -> Fraction:
    """Return 1 if the agent or its predecessor gives a sample, else 1/2."""
    return ONE if theta[agent] == 1 or theta[agent - 1] == 1 else HALF


def _real_cycle_has_none() -> bool:
    """Return whether no real allocation is stable, at a requirement of 1.

    An agent needs 0 if its predecessor gives 1, and 1 otherwise: so everybody gives 0 or 1, unlike
    its predecessor, which three in a ring cannot. Responses are asked at many places.
    """
    game = catalog.build("pac-cycle", strategies="real")
    places = [0.0, 0.25, 0.5, 0.9, 0.999, 1.0]
    for theta in product(places, repeat=3):
        wanted = game.best_responses(np.array(theta))
        if wanted.tolist() != [0.0 if theta[i - 1] == 1 else 1.0 for i in range(3)]:
            return False
    alternating = [t for t in product((0, 1), repeat=3) if all(t[i] != t[i - 1] for i in range(3))]
    return not alternating and solve_stable(game).status is Status.NONE_EXISTS


@CLAIMS.measure("theorem-3-general")
def theorem_3_general(setting: Setting) -> Measured:
    """List all allocations for many d and mu, and compare with the parity of m."""
    cases = _list_cases(*setting.expected["full" if setting.full else "quick"])
    # Rings that are not as claimed, by d and mu: in the list of all allocations, by the search for
    # equilibria, and where the larger requirement does not add one to m.
    failures: dict[str, list[str]] = {"listed": [], "searched": [], "steps": []}
    idle = resting = 0
    for d, requirement, m in cases:
        listing = Listing(ring_utility(d), (requirement,) * 3)
        claimed = [] if m % 2 else [(m // 2,) * 3]
        totals = listing.least(listing.is_feasible), listing.least(listing.is_envy_free)
        stable = listing.list_all(listing.is_stable)
        right = {
            "listed": (stable, *totals) == (claimed, -(-3 * m // 2), 3 * -(-m // 2)),
            "searched": m > setting.expected["solved_up_to"]
            or _search_ring(d, requirement) == claimed,
            "steps": threshold(d, (1 - Fraction(1, d)) * requirement + Fraction(1, d)) == m + 1,
        }
        for name in failures:
            failures[name] += [] if right[name] else [f"{d}, {requirement}"]
        # Somebody has more than it needs and gives nothing.
        lazy = [
            theta
            for theta in listing.list_all(listing.is_feasible)
            if any(t == 0 and theta[i - 1] > m for i, t in enumerate(theta))
        ]
        idle, resting = idle + len(lazy), resting + sum(map(listing.is_stable, lazy))
    # Every world and every sample, d = 2, up to 4 samples.
    learnt, printed = learnt_utility(cycle_worlds(2)), ring_utility(2)
    places = [theta for theta in product(range(3), repeat=3) if sum(theta) <= 4]
    agrees = all(learnt(i, theta) == printed(i, theta) for theta in places for i in range(3))
    rounding, tried = _count_float_errors()
    return Measured(
        cases=len(cases),
        odd=sum(m % 2 for _, _, m in cases),
        failures=failures,
        givers_of_nothing=idle,
        givers_of_nothing_stable=resting,
        float_errors=rounding,
        words={"construction_agrees": agrees, "tried": tried},
    )


def threshold(d: int, requirement: Fraction) -> int:
    """Return m(mu), the least number of samples that satisfies an agent."""
    m = 0
    while ring_utility(d)(0, [m, 0, 0]) < requirement:
        m += 1
    return m


def _list_cases(largest_d: int, largest_m: int) -> list[tuple[int, Fraction, int]]:
    """List (d, mu, m): requirements that m samples meet exactly, and ones between two of these."""
    cases = []
    for d in range(2, largest_d + 1):
        exact = [ring_utility(d)(0, [m, 0, 0]) for m in range(largest_m + 1)]
        for m in range(1, largest_m + 1):
            cases += [(d, exact[m], m), (d, (exact[m - 1] + exact[m]) / 2, m)]
    return cases


def _search_ring(d: int, requirement: Fraction) -> list[Whole]:
    """Return the equilibria that the search finds."""
    game = catalog.build("pac-cycle", d=d, requirement=str(requirement))
    return [tuple(int(t) for t in theta) for theta in all_equilibria(game)]


def _count_float_errors() -> tuple[int, int]:
    """Count thresholds that ceil(log(2 (1 - mu)) / log(1 - 1/d)) gets wrong, and all tried."""
    wrong, tried = 0, list(product(range(2, 12), range(1, 21)))
    for d, m in tried:
        requirement = float(ring_utility(d)(0, [m, 0, 0]))
        wrong += math.ceil(math.log(2 * (1 - requirement)) / math.log(1 - 1 / d)) != m
    return wrong, len(tried)
