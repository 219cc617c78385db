"""Section 5.3 and Appendix H: sets of allocations that are not convex."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_stable
from fedaccord.games import catalog
from fedaccord.games.coverage import CoverageGame
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.draws import set_benefits, unequal_requirements
from fedaccord.reproduce.oracle import (
    HALF,
    ONE,
    Amounts,
    ExactGame,
    PlainWorld,
    Utility,
    is_stable_when_rounded,
    list_envy,
    list_samples,
    mix,
    round_at_random,
    swap,
    to_floats,
)

CLAIMS = Claims()
SEED = 53
GAMES = (40, 300)

# What doubles may be off where fractions would be equal.
SLIP = 1e-12
# Who owns which points: the two agents of Theorem 7, and the edges of K4 with its vertices 0 to 3
# and the middles of the edges after them.
TWO = ((0, 1), (0, 1))
EDGES = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3))
K4 = tuple((*ends, 4 + edge) for edge, ends in enumerate(EDGES))
MATCHINGS = ((0, 2), (1, 3), (4, 5))


# Utilities from the story itself.


def list_accuracy(sets: Sequence[Sequence[int]]) -> Utility:
    """Return an agent's expected accuracy by listing everything that can be drawn, point by point.

    Every agent draws uniformly from its set; of an agent's points those that anybody drew are
    classified rightly, and half of the others.
    """

    world: PlainWorld = (ONE, [[(x, None, Fraction(1, len(own))) for x in own] for own in sets])

    def utility(agent: int, counts: Amounts) -> Fraction:
        unseen = sum(
            chance * sum((point, None) not in drawn for point in sets[agent])
            for drawn, chance in list_samples(world, counts)
        )
        return 1 - HALF * unseen / len(sets[agent])

    return utility


def is_smooth_stable(game: CoverageGame, theta: Vector) -> bool:
    """Return whether all have just what they need, and less after giving half as much.

    With (1 - q)^theta in place of rounding.
    """
    reached = np.abs(game.smooth_utilities(theta) - game.requirements).max() <= SLIP
    less = [np.where(np.arange(game.size) == i, theta / 2, theta) for i in np.flatnonzero(theta)]
    short = [
        game.smooth_utilities(cut)[i] < game.requirements[i] - SLIP
        for i, cut in zip(np.flatnonzero(theta), less, strict=True)
    ]
    return bool(reached and all(short))


def build_entry(name: str, **options: Any) -> CoverageGame:
    """Return a coverage game of the catalogue."""
    game = catalog.build(name, **options)
    assert isinstance(game, CoverageGame)
    return game


# Theorem 7.


@CLAIMS.measure("theorem-7")
def theorem_7(setting: Setting) -> Measured:
    """List what can be drawn at mixtures of the two equilibria, in fractions."""
    need, ends, drop, wanted = (
        Fraction(setting.expected[key]) for key in ("requirement", "ends", "drop", "middle")
    )
    game, plain = build_entry("two-agents"), round_at_random(list_accuracy(TWO))
    steps = 40 if setting.full else 8
    shares = [Fraction(n, steps) for n in range(steps + 1)]
    listed = [(plain(0, (a, 1 - a)), plain(1, (a, 1 - a))) for a in shares]
    said = [tuple(game.exact_utility(i, (a, 1 - a)) for i in (0, 1)) for a in shares]
    printed = [ends - a * (1 - a) * drop for a in shares]
    stable = [is_stable_when_rounded(plain, (need, need), (a, 1 - a)) for a in shares]
    mixtures = [to_floats((a, 1 - a)) for a in shares]
    audited = [check(game, theta).stable is Answer.TRUE for theta in mixtures]
    level = max(float(np.abs(game.smooth_utilities(t) - float(need)).max()) for t in mixtures)
    return Measured(
        mixtures=len(shares),
        as_printed=sum(u == s == (p, p) for u, s, p in zip(listed, said, printed, strict=True)),
        middle=listed[steps // 2][0],
        stable=[a for a, yes in zip(shares, stable, strict=True) if yes],
        smooth_distance_from_requirement=level,
        smooth_stable=sum(is_smooth_stable(game, theta) for theta in mixtures),
        words={
            "wanted": wanted,
            "ends_stable": stable == [True, *[False] * (steps - 1), True],
            "audits_agree": audited == stable,
            "audited": sum(audited),
            "level": max(level, 2.0**-53),
        },
    )


# Theorem 8.


@CLAIMS.measure("theorem-8")
def theorem_8(setting: Setting) -> Measured:
    """List what can be drawn on K4 at matchings and their mixture, in fractions."""
    need, game = Fraction(setting.expected["requirement"]), build_entry("k4")
    plain, needs = round_at_random(list_accuracy(K4)), [need] * 6
    share = Fraction(setting.expected["share"])
    numbers = compute_numbers(plain, share)
    exact = compute_numbers(lambda i, theta: game.exact_utility(i, [*map(Fraction, theta)]), share)
    mixture = mix_matchings(share)
    pairs = list_envy(plain, needs, mixture)
    # With (1 - q)^theta in place of rounding, in doubles.
    smooth = list_envy(
        lambda i, theta: game.smooth_utilities(to_floats(theta))[i],
        game.requirements.tolist(),
        mixture,
    )
    free = [
        all(plain(i, theta) >= need for i in range(6)) and not list_envy(plain, needs, theta)
        for theta in map(matching, MATCHINGS)
    ]
    audits = [check(game, to_floats(theta)) for theta in (*map(matching, MATCHINGS), mixture)]
    *matched, report = audits
    return Measured(
        numbers=numbers,
        matchings_envy_free=sum(free),
        envy=[[i + 1, j + 1] for i, j in pairs],
        smooth_envy=[[i + 1, j + 1] for i, j in smooth],
        words={
            "as_printed": numbers == {key: Fraction(setting.expected[key]) for key in numbers},
            "package_agrees": exact == numbers,
            "audits_agree": all(one.envy_free is Answer.TRUE for one in matched),
            "enough": all(plain(i, mixture) >= need for i in range(6)),
            "pairs": write_pairs(pairs),
            "audited": write_pairs(report.envy),
            "smooth": write_pairs(smooth),
        },
    )


def matching(edges: Sequence[int]) -> list[Fraction]:
    """Let the edges of a matching give one sample each."""
    return [Fraction(int(edge in edges)) for edge in range(6)]


def mix_matchings(share: Fraction) -> list[Fraction]:
    """Mix the first two matchings."""
    return list(mix(matching(MATCHINGS[0]), matching(MATCHINGS[1]), share))


def compute_numbers(utility: Utility, share: Fraction) -> dict[str, Fraction]:
    """Return the numbers of the proof, by name; edges are counted from zero."""
    first, mixture = matching(MATCHINGS[0]), mix_matchings(share)
    return {
        "matched": utility(0, first),
        "idle": utility(1, first),
        "swapped": utility(0, swap(first, 0, 1)),
        "mixed": utility(1, mixture),
        "mixed_swapped": utility(1, swap(mixture, 1, 5)),
    }


def write_pairs(pairs: Sequence[tuple[int, int]]) -> str:
    """Name edges who envy others, counted from one."""
    return ", ".join(f"{i + 1} of {j + 1}" for i, j in pairs) or "none"


# What non-convexity means for algorithms.


@CLAIMS.measure("coverage-hardness")
def coverage_hardness(setting: Setting) -> Measured:
    """Find equilibria of agents uniform on sets by convex minimisation, from several starts."""
    count, agents = GAMES[setting.full] // 2, 20_000 if setting.full else 2_000
    flower = entry_sets("flower", model="coverage", petals=16)
    games = [entry_sets("k4"), flower, *(draw_set_game(n) for n in range(count))]
    found = [find_convex_equilibrium(*game) for game in games]
    spread, regret, apart = (max(column) for column in zip(*found, strict=True))
    large = solve_stable(make_ring(agents))
    proved = large.status is Status.OPTIMAL
    return Measured(
        games=len(games),
        k4=found[0],
        k4_envy_free_set_convex=not has_envy_between(Fraction(setting.expected["share"])),
        spread_over_starts=spread,
        worst_regret=regret,
        worst_distance_from_solver=apart,
        agents_in_the_ring=agents,
        ring_total=large.total,
        ring_proved=proved and check(large.game, large.allocation).stable is Answer.TRUE,
        seed=SEED,
        words={"worst_of_k4": max(found[0]), "flower": flower[1].size, "count": count},
    )


def has_envy_between(share: Fraction) -> bool:
    """Return whether a mixture of two envy-free matchings of K4 has envy, by the check."""
    game = build_entry("k4")
    points = (*map(matching, MATCHINGS[:2]), mix_matchings(share))
    answers = [check(game, to_floats(theta)).envy_free for theta in points]
    return answers == [Answer.TRUE, Answer.TRUE, Answer.FALSE]


def entry_sets(name: str, **options: Any) -> tuple[Matrix, Vector]:
    """Return the incidence and the requirements of a game of the catalogue with uniform agents."""
    game = build_entry(name, **options)
    return (game.distributions.toarray() > 0).astype(float), game.requirements


def draw_set_game(number: int) -> tuple[Matrix, Vector]:
    """Draw sets of points, linearly independent, and requirements; give the incidence of both."""
    rng = np.random.default_rng([SEED, number])
    while True:
        agents, points = int(rng.integers(3, 7)), int(rng.integers(6, 12))
        incidence = (rng.random((agents, points)) < 0.4).astype(float)
        if (incidence.sum(axis=1) > 1).all() and np.linalg.matrix_rank(incidence) == agents:
            return incidence, rng.uniform(0.6, 0.9, agents)


def find_convex_equilibrium(incidence: Matrix, needs: Vector) -> tuple[float, float, float]:
    """Minimise from four starts: how far they end apart, from best responses, and from the solver.

    All are infinite where a step of Newton's has no solution.
    """
    sizes = incidence.sum(axis=1)
    starts = np.random.default_rng(SEED).uniform(0, 2, (4, len(needs)))
    try:
        ends = np.array([minimise(incidence, needs, start) for start in starts])
    except np.linalg.LinAlgError:
        return np.inf, np.inf, np.inf
    amounts = find_amounts(ends, sizes)
    game = CoverageGame(incidence / sizes[:, None], needs)
    best = np.array([game.best_responses(theta) for theta in amounts])
    largest = float(amounts.max())
    spread = float(np.ptp(amounts, axis=0).max()) / largest
    regret = float(np.abs(best - amounts).max()) / largest
    total = float(amounts[0].sum())
    return spread, regret, abs(solve_stable(game).total - total) / total


def minimise(incidence: Matrix, needs: Vector, start: Vector) -> Vector:
    """Minimise sum_x exp(-sum of s_j over the owners j of x) + sum_i 2 b_i (1 - mu_i) s_i, s >= 0.

    Projected Newton: those at zero whom the slope keeps there rest, the others take a step that is
    halved until the function falls.
    """
    price = 2 * incidence.sum(axis=1) * (1 - needs)

    def value(s: Vector) -> float:
        return float(np.exp(-incidence.T @ s).sum() + price @ s)

    s = np.array(start)
    for _ in range(200):
        unseen = np.exp(-incidence.T @ s)
        slope = price - incidence @ unseen
        free = (s > 0) | (slope < 0)
        curve = (incidence[free] * unseen) @ incidence[free].T
        move = np.zeros(len(s))
        move[free] = np.linalg.solve(curve + 1e-12 * np.eye(int(free.sum())), slope[free])
        step = 1.0
        while step > 1e-12 and value(np.maximum(s - step * move, 0.0)) > value(s):
            step /= 2
        after = np.maximum(s - step * move, 0.0)
        if np.abs(after - s).max() <= 1e-15:
            break
        s = after
    return s


def find_amounts(logs: Matrix, sizes: Vector) -> Matrix:
    """Turn s_i = -ln p_i into theta_i, p_i(theta) = (1 - 1/b)^floor(theta) (1 - fraction/b)."""
    keep = 1 - 1 / sizes
    whole = np.floor(logs / -np.log(keep) + 1e-12)
    return np.asarray(whole + sizes * (1 - np.exp(-logs) / keep**whole))


def make_ring(agents: int) -> CoverageGame:
    """Make agents in a ring, each uniform on two points of its own and one of either neighbour."""
    from scipy import sparse

    at = np.arange(agents)
    rows = np.concatenate([at, at, at, at])
    columns = np.concatenate([at, (at + 1) % agents, agents + 2 * at, agents + 2 * at + 1])
    rates = np.full(4 * agents, 0.25)
    matrix = sparse.csr_array((rates, (rows, columns)), shape=(agents, 3 * agents))
    return CoverageGame(matrix, 0.6 + 0.2 * (at % 3) / 2)


# Linear games, with which they are compared.


@CLAIMS.measure("linear-envy-free-set")
def linear_envy_free_set(setting: Setting) -> Measured:
    """Mix envy-free allocations of linear games, in fractions."""
    example = ExactGame.of([["1", "0.5"], ["0.5", "1"]], ["1", "0.5"])
    found = [has_gap(game) for game in draw_unequal_equilibria(GAMES[setting.full])]
    return Measured(
        games=len(found),
        mixtures_with_envy=sum(found),
        example_refutes=is_gap(example, (ONE, 0 * ONE), (ONE, ONE)),
        seed=SEED,
    )


def is_gap(exact: ExactGame, first: Sequence[Fraction], second: Sequence[Fraction]) -> bool:
    """Return whether two allocations are envy-free and their middle is not, by check too."""
    middle = mix(first, second, HALF)
    exactly = [exact.is_feasible(t) and not exact.envy(t) for t in (first, second, middle)]
    audited = [check(exact.game(), to_floats(t)).envy_free for t in (first, second, middle)]
    return exactly == [a is Answer.TRUE for a in audited] == [True, True, False]


def draw_unequal_equilibria(count: int) -> list[ExactGame]:
    """Draw games of equal sets, no two the same, whose equilibrium is not the same for all."""
    rng = np.random.default_rng(SEED)
    games: list[ExactGame] = []
    while len(games) < count:
        benefits = set_benefits(rng, 3, int(rng.integers(5, 9)))
        exact = ExactGame.of(benefits, unequal_requirements(rng, 3))
        apart = all(benefits[i][j] < 1 for i, j in permutations(range(3), 2))
        if apart and len(set(exact.equilibria[0])) > 1:
            games.append(exact)
    return games


def has_gap(exact: ExactGame) -> bool:
    """Look for an equal allocation whose middle with the equilibrium has envy, by doubling."""
    stable = exact.equilibria[0]
    level = max(exact.requirements)
    for _ in range(8):
        if is_gap(exact, stable, [level] * exact.size):
            return True
        level *= 2
    return False
