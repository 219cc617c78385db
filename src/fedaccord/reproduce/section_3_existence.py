"""Section 3: when envy-free allocations and stable equilibria exist."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.audit import Answer, audit
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_envy_free, solve_stable
from fedaccord.games import catalog
from fedaccord.games.base import Certified, Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame
from fedaccord.reproduce import draws
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.oracle import (
    ExactGame,
    Listing,
    Whole,
    pad,
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
    """Let everybody give what the largest contributor gives, or as much of it as it can."""
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
        report = audit(game, given)
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
    """List the feasible allocations of two agents who may give one sample together.

    Each with whether whoever gives would rather have the other's amount. In steps of 1/steps; with
    t of the one and 1 - t of the other the utility is 3/4 - t (1 - t)/8, so between the steps there
    are no more.
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
        stable = audit(game, last, tolerance=1e-8).stable is Answer.TRUE
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
    """Say whether those who give, each with exactly its requirement, make an equilibrium.

    Solved in fractions of the very numbers that the game holds.
    """
    exact = ExactGame.of(game.dense_benefits.tolist(), game.requirements.tolist())
    giving = np.flatnonzero(theta > 1e-8 * theta.max()).tolist()
    rows = [[exact.benefits[i][j] for j in giving] for i in giving]
    amounts = solve_exactly(rows, [exact.requirements[i] for i in giving])
    return amounts is not None and exact.is_stable(pad(amounts, giving, game.size))
