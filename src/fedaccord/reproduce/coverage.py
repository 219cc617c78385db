"""Section 5.3 and Appendix H: sets of allocations that are not convex.

Linear games, with which they are compared, stand in envy_sets.py, and the derivatives of Appendix
B, which random coverage needs, in rounding.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from math import floor

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.audit import Answer, audit
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.stable import solve_stable
from fedaccord.games import catalog
from fedaccord.games.coverage import CoverageGame
from fedaccord.reproduce import envy_sets, rounding
from fedaccord.reproduce.claims import Claims, Finding, Setting, judged, not_so, weighed
from fedaccord.reproduce.oracle import HALF, Amounts, Utility, mix, round_at_random, swap, to_floats

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


def drawn_accuracy(sets: Sequence[Sequence[int]]) -> Utility:
    """Give an agent's expected accuracy by listing everything that can be drawn, point by point.

    Every agent draws uniformly from its set; of an agent's points those that anybody drew are
    classified rightly, and half of the others.
    """

    def utility(agent: int, counts: Amounts) -> Fraction:
        each = [points for points, m in zip(sets, counts, strict=True) for _ in range(int(m))]
        chance = Fraction(1)
        for points in each:
            chance /= len(points)
        unseen = sum(
            sum(point not in drawn for point in sets[agent])
            for drawn in (set(draws) for draws in product(*each))
        )
        return 1 - HALF * chance * Fraction(unseen, len(sets[agent]))

    return utility


def is_stable(utility: Utility, theta: Sequence[Fraction], need: Fraction) -> bool:
    """Say whether theta is feasible and nobody can give less, in fractions.

    Utilities rise along straight pieces: who has more than it needs can give less, and who has
    exactly that can if the piece below is level.
    """
    return all(_settled(utility, agent, theta, need) for agent in range(len(theta)))


def _settled(utility: Utility, agent: int, theta: Sequence[Fraction], need: Fraction) -> bool:
    reached = utility(agent, theta)
    if theta[agent] == 0 or reached < need:
        return reached >= need
    below = list(theta)
    below[agent] = Fraction(-floor(-theta[agent]) - 1)
    return reached == need and utility(agent, below) < reached


def envy(utility: Utility, theta: Sequence[Fraction], need: Fraction) -> list[tuple[int, int]]:
    """List the pairs (i, j): i could swap its amount for j's smaller one, in fractions."""
    return [
        (i, j)
        for i, j in permutations(range(len(theta)), 2)
        if theta[i] > theta[j] and utility(i, swap(theta, i, j)) >= need
    ]


def smooth_envy(game: CoverageGame, theta: Vector) -> list[tuple[int, int]]:
    """List the pairs likewise, with (1 - q)^theta in place of rounding, in doubles."""
    return [
        (i, j)
        for i, j in permutations(range(game.size), 2)
        if theta[i] > theta[j]
        and game.smooth_utilities(_swapped(theta, i, j))[i] >= game.requirements[i]
    ]


def smooth_stable(game: CoverageGame, theta: Vector) -> bool:
    """Say likewise whether all have just what they need, and less after giving half as much."""
    reached = np.abs(game.smooth_utilities(theta) - game.requirements).max() <= SLIP
    less = [np.where(np.arange(game.size) == i, theta / 2, theta) for i in np.flatnonzero(theta)]
    short = [
        game.smooth_utilities(cut)[i] < game.requirements[i] - SLIP
        for i, cut in zip(np.flatnonzero(theta), less, strict=True)
    ]
    return bool(reached and all(short))


def _swapped(theta: Vector, i: int, j: int) -> Vector:
    result = np.array(theta)
    result[[i, j]] = theta[[j, i]]
    return result


def coverage_entry(name: str) -> CoverageGame:
    """Give a coverage game of the catalogue."""
    game = catalog.build(name)
    assert isinstance(game, CoverageGame)
    return game


# Theorem 7.


@CLAIMS.add(
    "theorem-7",
    claim="The stable equilibria of a coverage game need not be a convex set",
    place="Section 5.3, Theorem 7, and Appendix H.1",
    paper="Two agents uniform on {0, 1} want 3/4. All by one or all by the other is stable, and "
    "between them, at a and 1 - a, both have 3/4 - a(1 - a)/8, which is too little.",
    minutes=(0.1, 0.1),
)
def theorem_7(setting: Setting) -> Finding:
    """List what can be drawn at mixtures of the two equilibria, in fractions."""
    expected = {key: Fraction(setting.expected[key]) for key in ("requirement", "ends", "drop")}
    game, need = coverage_entry("two-agents"), expected["requirement"]
    plain = round_at_random(drawn_accuracy(TWO))
    steps = 40 if setting.full else 8
    shares = [Fraction(n, steps) for n in range(steps + 1)]
    listed = [(plain(0, (a, 1 - a)), plain(1, (a, 1 - a))) for a in shares]
    said = [tuple(game.exact_utility(i, (a, 1 - a)) for i in (0, 1)) for a in shares]
    printed = [expected["ends"] - a * (1 - a) * expected["drop"] for a in shares]
    agree = sum(u == s == (p, p) for u, s, p in zip(listed, said, printed, strict=True))
    stable = [is_stable(plain, (a, 1 - a), need) for a in shares]
    audited = [audit(game, [float(a), float(1 - a)]).stable is Answer.TRUE for a in shares]
    ends = [True, *[False] * (steps - 1), True]
    mixtures = [np.array([float(a), float(1 - a)]) for a in shares]
    smooth = sum(smooth_stable(game, theta) for theta in mixtures)
    level = max(float(np.abs(game.smooth_utilities(t) - float(need)).max()) for t in mixtures)
    middle = listed[steps // 2][0]
    parts = {
        "the utility is the one printed": agree == len(shares),
        "stable are the two ends": stable == ends,
        "the audit says the same": audited == stable,
        f"the middle has {setting.expected['middle']}": (
            middle == Fraction(setting.expected["middle"])
        ),
    }
    return judged(
        all(parts.values()),
        f"At {agree} of {len(shares)} mixtures the utility, by listing all roundings and draws in "
        "fractions, is the one printed for both agents; in the middle it is "
        f"{middle}, and {need} is wanted. Stable are {sum(stable)} of them, by definition, and "
        f"{sum(audited)} by the audit: the two ends. Rounding makes the example: with "
        f"(1 - q)^theta for real theta utilities are {need} to {max(level, 2.0**-53):.0e}, and "
        f"{smooth} of the {len(shares)} mixtures are stable." + not_so(parts),
        evidence={
            "mixtures": len(shares),
            "as_printed": agree,
            "middle": str(middle),
            "stable": [str(a) for a, yes in zip(shares, stable, strict=True) if yes],
            "smooth_distance_from_requirement": level,
            "smooth_stable": smooth,
        },
    )


# Theorem 8.


@CLAIMS.add(
    "theorem-8",
    claim="The envy-free allocations of a coverage game need not be a convex set",
    place="Section 5.3, Theorem 8, and Appendix H.2",
    paper="On the complete graph of four vertices a perfect matching gives 2/3 to its edges and "
    "11/18 to the others, 5/9 after a swap, and all want 0.6: it is envy-free. Nine tenths of one "
    "matching with a tenth of another leave edge 2 satisfied and envying edge 6.",
    minutes=(0.1, 0.1),
)
def theorem_8(setting: Setting) -> Finding:
    """List what can be drawn on K4 at matchings and their mixture, in fractions."""
    need, game = Fraction(setting.expected["requirement"]), coverage_entry("k4")
    plain = round_at_random(drawn_accuracy(K4))
    share = Fraction(setting.expected["share"])
    numbers, exact = graph_numbers(plain, share), exact_numbers(game, share)
    wanted = {key: Fraction(setting.expected[key]) for key in numbers}
    mixture = mixed_matchings(share)
    pairs = envy(plain, mixture, need)
    wanted_pairs = [(i - 1, j - 1) for i, j in setting.expected["envy"]]
    enough = all(plain(i, mixture) >= need for i in range(6))
    free = [
        all(plain(i, matching(m)) >= need for i in range(6)) and not envy(plain, matching(m), need)
        for m in MATCHINGS
    ]
    report = audit(game, to_floats(mixture))
    audited = [audit(game, to_floats(matching(m))).envy_free is Answer.TRUE for m in MATCHINGS]
    smooth = smooth_envy(game, to_floats(mixture))
    parts = {
        "the numbers are those printed": numbers == wanted,
        "the package computes the same": exact == numbers,
        "matchings are envy-free": all(free),
        "the audit says so": all(audited),
        "the mixture gives all enough": enough,
        "envious in it are those expected": pairs == wanted_pairs,
        "the audit names the same": list(report.envy) == pairs,
    }
    return judged(
        all(parts.values()),
        "By listing all roundings and draws in fractions, edges have "
        f"{numbers['matched']} in a matching, {numbers['idle']} outside and {numbers['swapped']} "
        f"after a swap; {sum(free)} of 3 matchings are envy-free. In the mixture edge 2 has "
        f"{numbers['mixed']}, and {numbers['mixed_swapped']} after swapping with edge 6, where "
        f"{need} is wanted. Envious are {pair_text(pairs)}; by the audit "
        f"{pair_text(report.envy)}; and with (1 - q)^theta in place of rounding "
        f"{pair_text(smooth)}." + not_so(parts),
        evidence={
            "numbers": {key: str(value) for key, value in numbers.items()},
            "matchings_envy_free": sum(free),
            "envy": [[i + 1, j + 1] for i, j in pairs],
            "smooth_envy": [[i + 1, j + 1] for i, j in smooth],
        },
    )


def matching(edges: Sequence[int]) -> list[Fraction]:
    """Let the edges of a matching give one sample each."""
    return [Fraction(int(edge in edges)) for edge in range(6)]


def mixed_matchings(share: Fraction) -> list[Fraction]:
    """Mix the first two matchings."""
    return list(mix(matching(MATCHINGS[0]), matching(MATCHINGS[1]), share))


def graph_numbers(utility: Utility, share: Fraction) -> dict[str, Fraction]:
    """Give the numbers of the proof, by name; edges are counted from zero."""
    first, mixture = matching(MATCHINGS[0]), mixed_matchings(share)
    return {
        "matched": utility(0, first),
        "idle": utility(1, first),
        "swapped": utility(0, swap(first, 0, 1)),
        "mixed": utility(1, mixture),
        "mixed_swapped": utility(1, swap(mixture, 1, 5)),
    }


def exact_numbers(game: CoverageGame, share: Fraction) -> dict[str, Fraction]:
    """Give the same numbers as the package computes them."""

    def utility(agent: int, theta: Amounts) -> Fraction:
        return game.exact_utility(agent, [*map(Fraction, theta)])

    return graph_numbers(utility, share)


def pair_text(pairs: Sequence[tuple[int, int]]) -> str:
    """Name edges who envy others, counted from one."""
    return ", ".join(f"{i + 1} of {j + 1}" for i, j in pairs) or "none"


# What non-convexity means for algorithms.


@CLAIMS.add(
    "coverage-hardness",
    claim="As the sets are not convex, optimal equilibria of coverage games are intractable",
    place="Section 5.3, its first paragraph",
    paper="Non-convexity indicates that an optimal stable or an optimal envy-free equilibrium is "
    "intractable.",
    minutes=(0.3, 1),
)
def coverage_hardness(setting: Setting) -> Finding:
    """Find equilibria of agents uniform on sets by convex minimisation, from several starts."""
    near = setting.expected["tolerance"]
    count, agents = GAMES[setting.full] // 2, 20_000 if setting.full else 2_000
    games = [entry_sets("k4"), entry_sets("flower"), *(set_game(n) for n in range(count))]
    found = [convex_equilibrium(*game) for game in games]
    k4, spread, regret, apart = found[0], *(max(column) for column in zip(*found, strict=True))
    bent = has_envy_between(Fraction(setting.expected["share"]))
    large = solve_stable(ring_game(agents))
    proved = large.status is Status.OPTIMAL
    settled = proved and audit(large.game, large.allocation).stable is Answer.TRUE
    parts = {
        "all starts end at one point": spread <= near,
        "it is an equilibrium": regret <= near,
        "it is the solver's": apart <= near,
        "the solver proves its equilibrium of the ring the cheapest": settled,
    }
    return weighed(
        all(parts.values()),
        bent and max(k4) <= near,
        "Where agents are uniform on linearly independent sets (K4 and the flower; not Theorem 7's "
        "two identical ones), stable equilibria minimise a convex function of s_i = -ln "
        "p_i(theta_i), the logarithm of the chance that i misses a point of its own. In K4, whose "
        f"envy-free set {'is not convex' if bent else 'shows no gap'}, in the flower of "
        f"{games[1][1].size} agents and in {count} games of 3 to 6 its minimum from 4 random "
        f"starts is one and the same to {spread:.0e}, everybody's best response to "
        f"{regret:.0e}, and the solver's to {apart:.0e}. With {agents:,} agents in a ring the "
        f"solver finds the equilibrium, of {large.total:,.1f} samples, and "
        f"{'proves' if settled else 'does not prove'} it the cheapest. Nothing here says how hard "
        "the other games are." + not_so(parts),
        "That sets are not convex does not by itself make a game intractable: where agents are "
        "uniform on sets that are linearly independent, the stable equilibrium is the only one, "
        "and convex minimisation finds it, though envy-free sets of such games need not be convex. "
        "For other distributions, and for optimal envy-free allocations, no such form is known, "
        "and they may well be intractable.",
        evidence={
            "games": len(games),
            "k4": list(k4),
            "k4_envy_free_set_convex": not bent,
            "spread_over_starts": spread,
            "worst_regret": regret,
            "worst_distance_from_solver": apart,
            "agents_in_the_ring": agents,
            "ring_total": large.total,
            "ring_proved": settled,
            "seed": SEED,
        },
    )


def has_envy_between(share: Fraction) -> bool:
    """Say whether a mixture of two envy-free matchings of K4 has envy, by the audit."""
    game = coverage_entry("k4")
    points = (*map(matching, MATCHINGS[:2]), mixed_matchings(share))
    answers = [audit(game, to_floats(theta)).envy_free for theta in points]
    return answers == [Answer.TRUE, Answer.TRUE, Answer.FALSE]


def entry_sets(name: str) -> tuple[Matrix, Vector]:
    """Give the incidence and the requirements of a game of the catalogue with uniform agents."""
    options = {"model": "coverage", "petals": 16} if name == "flower" else {}
    game = catalog.build(name, **options)
    assert isinstance(game, CoverageGame)
    return (game.distributions.toarray() > 0).astype(float), game.requirements


def set_game(number: int) -> tuple[Matrix, Vector]:
    """Draw sets of points, linearly independent, and requirements; give the incidence of both."""
    rng = np.random.default_rng([SEED, number])
    while True:
        agents, points = int(rng.integers(3, 7)), int(rng.integers(6, 12))
        incidence = (rng.random((agents, points)) < 0.4).astype(float)
        if (incidence.sum(axis=1) > 1).all() and np.linalg.matrix_rank(incidence) == agents:
            return incidence, rng.uniform(0.6, 0.9, agents)


def coverage_game(incidence: Matrix, needs: Vector) -> CoverageGame:
    """Make the game in which every agent is uniform on its set."""
    return CoverageGame(incidence / incidence.sum(axis=1, keepdims=True), needs)


def convex_equilibrium(incidence: Matrix, needs: Vector) -> tuple[float, float, float]:
    """Minimise from four starts: how far they end apart, from best responses, and from the solver.

    All are infinite where a step of Newton's has no solution.
    """
    sizes = incidence.sum(axis=1)
    starts = np.random.default_rng(SEED).uniform(0, 2, (4, len(needs)))
    try:
        ends = np.array([minimised(incidence, needs, start) for start in starts])
    except np.linalg.LinAlgError:
        return np.inf, np.inf, np.inf
    amounts = amounts_of(ends, sizes)
    game = coverage_game(incidence, needs)
    best = np.array([game.best_responses(theta) for theta in amounts])
    largest = float(amounts.max())
    spread = float(np.ptp(amounts, axis=0).max()) / largest
    regret = float(np.abs(best - amounts).max()) / largest
    total = float(amounts[0].sum())
    return spread, regret, abs(solve_stable(game).total - total) / total


def minimised(incidence: Matrix, needs: Vector, start: Vector) -> Vector:
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


def amounts_of(logs: Matrix, sizes: Vector) -> Matrix:
    """Turn s_i = -ln p_i into theta_i, p_i(theta) = (1 - 1/b)^floor(theta) (1 - fraction/b)."""
    keep = 1 - 1 / sizes
    whole = np.floor(logs / -np.log(keep) + 1e-12)
    return np.asarray(whole + sizes * (1 - np.exp(-logs) / keep**whole))


def ring_game(agents: int) -> CoverageGame:
    """Make agents in a ring, each uniform on two points of its own and one of either neighbour."""
    from scipy import sparse

    at = np.arange(agents)
    rows = np.concatenate([at, at, at, at])
    columns = np.concatenate([at, (at + 1) % agents, agents + 2 * at, agents + 2 * at + 1])
    rates = np.full(4 * agents, 0.25)
    matrix = sparse.csr_array((rates, (rows, columns)), shape=(agents, 3 * agents))
    return CoverageGame(matrix, 0.6 + 0.2 * (at % 3) / 2)


CLAIMS.include_all(envy_sets.CLAIMS, rounding.CLAIMS)
