"""Section 3: which utilities are well-behaved, and what that does to best responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.games import catalog
from fedaccord.games.base import Certified, Game, Refuted
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame
from fedaccord.reproduce import draws
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.oracle import (
    HALF,
    ONE,
    ZERO,
    Utility,
    cycle_worlds,
    learnt_utility,
    replace_amount,
    round_at_random,
    utility_of,
)

CLAIMS = Claims()
SEED = 20210306
# How many random games, and places in each, quick and full.
GAMES = (24, 240)
PLACES = (20, 100)

# Everybody's utility under real contributions.
Utilities: TypeAlias = Callable[[Vector], Vector]


# The definition, on the paper's games.


@CLAIMS.measure("definition-well-behaved")
def definition_well_behaved(setting: Setting) -> Measured:
    """Compare the verdict and its constants with difference quotients in fractions."""
    wrong, slopes, constants = [], 0, {}
    games = {
        "k4": catalog.build("k4"),
        "two-agents": catalog.build("two-agents"),
        "flower-linear": catalog.build("flower", petals=4),
        "pac-cycle": catalog.build("pac-cycle", strategies="real", requirement="9/10"),
    }
    for name, game in games.items():
        utility = _learn_cycle() if name == "pac-cycle" else utility_of(game)
        verdict = game.well_behaved()
        if not isinstance(verdict, Certified):
            wrong.append(name)
            continue
        own, cross, tried = _find_slopes(utility, verdict.box, 60 if setting.full else 6)
        slopes += tried
        constants[name] = [float(verdict.own.min()), float(verdict.cross.max())]
        # At least and at most as certified, and the least and the greatest are attained.
        if np.abs(own - verdict.own).max() > 1e-9 or np.abs(cross - verdict.cross).max() > 1e-9:
            wrong.append(name)
    refuted = catalog.build("pac-cycle", strategies="real").well_behaved()
    return Measured(
        constants=constants,
        quotients=slopes,
        differ=wrong,
        seed=SEED,
        words={
            "k4": constants.get("k4", [0.0, 0.0]),
            "cycle_refuted": isinstance(refuted, Refuted) and _adds_nothing(refuted),
        },
    )


def _learn_cycle() -> Utility:
    """Return the utility of the cycle of Theorem 3, by every world, rounded at random."""
    return round_at_random(learnt_utility(cycle_worlds(1)))


def _find_slopes(utility: Utility, box: Vector, count: int) -> tuple[Vector, Vector, int]:
    """Return each agent's least own and greatest other rate at the box's corners and inside it."""
    sides = [Fraction(side).limit_denominator(10**9) for side in box.tolist()]
    agents, random = len(sides), np.random.default_rng(SEED)
    inside = [
        [side * int(n) / 64 for side, n in zip(sides, random.integers(0, 64, agents), strict=True)]
        for _ in range(count)
    ]
    corners: list[list[Fraction]] = [list(sides), [Fraction(0)] * agents]
    own, cross = np.full(agents, np.inf), np.zeros(agents)
    for place in corners + inside:
        for i, j in product(range(agents), repeat=2):
            rate = _quotient(utility, i, j, place, sides[j])
            if i == j:
                own[i] = min(own[i], rate)
            else:
                cross[i] = max(cross[i], rate)
    return own, cross, len(corners + inside) * agents**2


def _quotient(
    utility: Utility, agent: int, giver: int, place: Sequence[Fraction], side: Fraction
) -> float:
    """Return what a thousandth of the giver's side adds to the agent, within the box."""
    step = side / 1000
    low = min(place[giver], side - step)
    before, after = (replace_amount(place, giver, low + more) for more in (ZERO, step))
    return float((utility(agent, after) - utility(agent, before)) / step)


def _adds_nothing(refuted: Refuted) -> bool:
    """Return whether at the witness more of the agent's own samples leave its utility as it is."""
    utility, agent = _learn_cycle(), refuted.agent
    place = [Fraction(t) for t in refuted.witness.tolist()]
    more = replace_amount(place, agent, ONE if place[agent] < 1 else HALF)
    return utility(agent, more) == utility(agent, place)


# Utilities in floats, written a second time, and their rates.


def _linear(game: LinearGame) -> Utilities:
    rows = game.dense_benefits.tolist()
    return lambda theta: np.array(
        [sum(w * t for w, t in zip(row, theta, strict=True)) for row in rows]
    )


def _coverage(table: Matrix) -> Utilities:
    def utilities(theta: Vector) -> Vector:
        low = np.floor(theta)[:, None]
        part = theta[:, None] - low
        missed = (1 - part) * (1 - table) ** low + part * (1 - table) ** (low + 1)
        return np.asarray(1 - 0.5 * (table @ missed.prod(axis=0)))

    return utilities


def _rates(utilities: Utilities, place: Vector, giver: int, step: float) -> Vector:
    """Return what everybody gains from one giver's samples, per sample."""
    more = np.array(place)
    more[giver] += step
    return np.asarray((utilities(more) - utilities(place)) / step)


def _compare_rates(
    utilities: Utilities, verdict: Certified, random: np.random.Generator, places: int
) -> float:
    """Return how far measured rates are from the constants certified, or below zero.

    Own rates are least, and others' greatest, at the places tried: in the last cell of the box, at
    zero, and at random. Rates near a millionth are as good as differences.
    """
    box, agents = verdict.box, len(verdict.box)
    own, cross, least = np.full(agents, np.inf), np.zeros(agents), 0.0
    for number, giver in product(range(places + 2), range(agents)):
        place, step = np.array(random.uniform(0, 1, agents) * box), 1e-4
        if number == 0:
            # Just below the giver's side, with a step that reaches it.
            place, below = np.array(box), max(np.ceil(box[giver]) - 1, 0.0)
            step = float(box[giver] - below) / 2
            place[giver] -= step
        elif number == 1:
            place = np.zeros(agents)
        step = min(step, float(np.floor(place[giver]) + 1 - place[giver]))
        if step < 1e-6 or place[giver] + step > box[giver] + 1e-12:
            continue
        rates = _rates(utilities, place, giver, step)
        own[giver] = min(own[giver], rates[giver])
        rates[giver] = 0.0
        cross, least = np.maximum(cross, rates), min(least, float(rates.min()))
    pairs = ((own, verdict.own), (cross, verdict.cross))
    return max(-least, *(float((abs(a - b) / (b + 1e-6)).max()) for a, b in pairs))


# The canonical examples.


@CLAIMS.measure("well-behaved-linear")
def well_behaved_linear(setting: Setting) -> Measured:
    """Compare the constants with rates at random places, on random boxes."""
    random, off, games = np.random.default_rng(SEED), 0.0, GAMES[setting.full]
    for number in range(games):
        agents = int(random.integers(2, 7))
        game = (draws.unit_game if number % 2 else draws.linear_game)(random, agents)
        verdict = game.well_behaved(random.uniform(0.1, 10, agents))
        if not isinstance(verdict, Certified):
            off = np.inf
            break
        off = max(off, _compare_rates(_linear(game), verdict, random, PLACES[setting.full] // 4))
    return Measured(games=games, worst=off, seed=SEED)


@CLAIMS.measure("well-behaved-coverage")
def well_behaved_coverage(setting: Setting) -> Measured:
    """Compare the constants with rates, and look for a box that is not well-behaved."""
    random, games = np.random.default_rng(SEED), GAMES[setting.full]
    off, weakest, wrong = 0.0, np.inf, []
    for number in range(games):
        agents = int(random.integers(2, 6))
        game, box = _draw_coverage_case(random, agents, number)
        verdict = game.well_behaved(box)
        if not isinstance(verdict, Certified):
            wrong.append(number)
            continue
        utilities = _coverage(game.distributions.toarray())
        off = max(off, _compare_rates(utilities, verdict, random, PLACES[setting.full]))
        weakest = min(weakest, float(verdict.own.min()))
        # u_i(C_i + 1, C) - u_i(C), what one more own sample adds at the corner.
        printed = [_rates(utilities, verdict.box, i, 1.0)[i] for i in range(agents)]
        if (np.array(printed) > verdict.own + 1e-12).any() or min(printed) <= 0:
            wrong.append(number)
    flat, steep = _sure_points()
    return Measured(
        games=games,
        not_certified=wrong,
        worst=off,
        least_own_rate=weakest,
        seed=SEED,
        words={"flat": flat, "steep": steep},
    )


def _draw_coverage_case(
    random: np.random.Generator, agents: int, number: int
) -> tuple[CoverageGame, Vector | None]:
    """Draw distributions without a certain point and a box, or any and no box."""
    points, needs = int(random.integers(2, 8)), random.uniform(0.5, 0.95, agents)
    if number % 3 == 0:
        table = draws.distributions(random, agents, points)
        return CoverageGame(table, needs), None
    table = 0.9 * random.dirichlet(np.full(points, 0.5), agents) + 0.1 / points
    box = random.uniform(0.1, 6, agents) if number % 3 == 1 else None
    return CoverageGame(table, needs), box


def _sure_points() -> tuple[bool, float]:
    """Return whether two agents on one point are refuted on [0, 2]^2; give c2 at their needs."""
    game = CoverageGame([[1.0], [1.0]], [0.75, 0.75])
    refuted, alone = game.well_behaved([2.0, 2.0]), game.well_behaved()
    flat = (
        isinstance(refuted, Refuted)
        and not _rates(_coverage(np.ones((2, 1))), np.array([0.25, 1.0]), 0, 0.5)[0]
    )
    own = alone.own.min() if isinstance(alone, Certified) else 0.0
    measured = _rates(_coverage(np.ones((2, 1))), np.array([0.25, 0.5]), 0, 0.25)[0]
    return flat, float(own) if abs(own - measured) < 1e-12 else 0.0


@CLAIMS.measure("well-behaved-pac")
def well_behaved_pac(setting: Setting) -> Measured:
    """Compare verdicts on boxes up to 1 with rates in fractions, and with the printed utility."""
    game, learnt = catalog.build("pac-cycle", strategies="real"), _learn_cycle()
    wrong, constants = [], {}
    for side in map(Fraction, setting.expected["sides"]):
        verdict = game.well_behaved([float(side)] * 3)
        least = _quotient(learnt, 0, 0, [side, side, side], side)
        most = _quotient(learnt, 0, 2, [ZERO] * 3, side)
        if side == 1:
            right = isinstance(verdict, Refuted) and least == 0 and _adds_nothing(verdict)
        else:
            right = (
                isinstance(verdict, Certified)
                and max(
                    *abs(verdict.own - least),
                    *abs(verdict.cross - most),
                    abs(least - float(1 - side) / 2),
                )
                <= 1e-12
            )
            constants[str(side)] = least
        if not right:
            wrong.append(str(side))
    printed = all(
        learnt(i, theta) == (1 + theta[i] + theta[i - 1] - theta[i] * theta[i - 1]) / 2
        for theta in product([Fraction(n, 4) for n in range(5)], repeat=3)
        for i in range(3)
    )
    return Measured(least_own_rates=constants, differ=wrong, printed_utility=printed)


# What it does to best responses.


@CLAIMS.measure("fixed-point-lemma")
def fixed_point_lemma(setting: Setting) -> Measured:
    """Measure how far responses move, whether they stay in the box, and find the fixed point."""
    random, games = np.random.default_rng(SEED), GAMES[setting.full]
    worst, largest, wrong, pairs = 0.0, 0.0, [], 0
    for number in range(games):
        game, utilities = _draw_lemma_case(random, number)
        verdict = game.well_behaved()
        if not isinstance(verdict, Certified):
            wrong.append(number)
            continue
        for _ in range(PLACES[setting.full]):
            one, other = _draw_pair(random, verdict.box)
            ratio, inside = _measure_move(game, verdict, one, other)
            worst, pairs = max(worst, ratio), pairs + 1
            if not (inside and _is_least(utilities, game, one)):
                wrong.append(number)
        fixed = _find_fixed_point(game)
        off = np.abs(game.best_responses(fixed) - fixed).max() / fixed.max()
        largest = max(largest, float(off))
        if (fixed > verdict.box + 1e-9).any():
            wrong.append(number)
    # In the cycle a neighbour gives a millionth less than one.
    cycle, step = catalog.build("pac-cycle", strategies="real"), 2.0**-20
    moved = [cycle.best_response(0, np.array([0.0, 0.0, amount])) for amount in (1.0, 1.0 - step)]
    return Measured(
        games=games,
        pairs=pairs,
        share_of_bound=worst,
        distance_from_fixed=largest,
        failures=wrong,
        jump=abs(moved[1] - moved[0]) / step,
        seed=SEED,
    )


def _draw_lemma_case(random: np.random.Generator, number: int) -> tuple[Game, Utilities]:
    agents = int(random.integers(2, 6))
    if number % 2:
        game = draws.linear_game(random, agents)
        return game, _linear(game)
    table = random.dirichlet(np.full(4, 0.7), agents)
    return CoverageGame(table, random.uniform(0.55, 0.9, agents)), _coverage(table)


def _find_fixed_point(game: Game) -> Vector:
    """Follow best responses, half of the way at a time, or one agent after the other."""
    for options in ({"damping": 0.5}, {"order": "sequential"}, {"damping": 0.1}):
        path = best_response_dynamics(game, tolerance=1e-10, **options)
        if path.ending is Ending.CONVERGED:
            break
    return path.last


def _draw_pair(random: np.random.Generator, box: Vector) -> tuple[Vector, Vector]:
    """Draw two allocations in the box that differ in one contribution, or in all."""
    one = random.uniform(0, 1, len(box)) * box
    other = random.uniform(0, 1, len(box)) * box
    if random.random() < 0.7:
        place = int(random.integers(len(box)))
        other, moved = np.array(one), other[place]
        other[place] = moved
    # Near zero nobody's need is met by the others, and responses move freely.
    scale = 10 ** -random.uniform(0, 2)
    return one * scale, other * scale


def _measure_move(game: Game, verdict: Certified, one: Vector, other: Vector) -> tuple[float, bool]:
    """Return the largest share of (c1/c2) e that a response moves, and whether all stay inside."""
    first, second = game.best_responses(one), game.best_responses(other)
    change = np.abs(one - other)
    allowed = verdict.cross / verdict.own * (change.sum() - change)
    # Below this a change drowns in the rounding of the responses.
    real = allowed > 1e-6
    share = np.abs(first - second)[real] / allowed[real]
    inside = (np.minimum(first, second) >= 0) & (np.maximum(first, second) <= verdict.box + 1e-9)
    return float(share.max(initial=0.0)), bool(inside.all())


def _is_least(utilities: Utilities, game: Game, theta: Vector) -> bool:
    """Return whether each response satisfies its agent, and a little less does not."""
    for agent, need in enumerate(game.best_responses(theta).tolist()):
        place = np.array(theta)
        place[agent] = need
        if utilities(place)[agent] < game.requirements[agent] - 1e-9:
            return False
        place[agent] = need - 1e-5
        if need > 1e-5 and utilities(place)[agent] >= game.requirements[agent]:
            return False
    return True
