"""Closed forms of the totals of the catalogue's games."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Answers:
    """The least totals that are known of a game; None where one is not known.

    optimal, stable, envy_free: the least total of each kind.
    stable_exists: whether there is a stable equilibrium at all.
    envy_free_attained: whether some envy-free allocation has the least total, which is an infimum.
    source: where the paper proves it or says so, or how it follows.
    """

    optimal: float | None = None
    stable: float | None = None
    envy_free: float | None = None
    stable_exists: bool = True
    envy_free_attained: bool = True
    source: str = ""


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find where a function that falls from above zero to below crosses it."""
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


# The flower.


def linear_flower(petals: int, strategies: str) -> Answers:
    """Return the flower's totals with linear utilities (Appendix E).

    Core only: sqrt(b). Stable: core 0, every petal 1 / (2 - 1/sqrt(b)). Envy-free: all one half.
    Integers: a petal that gives has exactly 1 and nobody else reaches its group, so all petals
    give 1; then a petal envies the idle core, so the core gives 1 too.
    """
    root = math.isqrt(petals)
    source = "Appendix E, linear utilities; the exact values follow from the symmetry shown there"
    if strategies == "integer":
        return Answers(root, petals, petals + 1, source=source)
    stable = petals * root / (2 * root - 1)
    return Answers(root, stable, (petals + 1) / 2, source=source)


def coverage_flower(petals: int, strategies: str) -> Answers:
    """Return the flower's totals with random coverage (Appendix E).

    With m whole samples of the core a petal misses a share (1/sqrt(b)) r^m + 1 - 1/sqrt(b) of its
    points, r = 1 - 1/b, and may miss 1 - 1/b: so r^m <= 1 - 1/sqrt(b), and between whole numbers
    randomized rounding is linear.
    """
    root = math.isqrt(petals)
    source = "Appendix E, random coverage; the equations are solved to the last digit"
    if strategies == "integer":
        return Answers(root + 1, petals, petals, source=source)

    def missed(exponent: int) -> Callable[[float], float]:
        def excess(amount: float) -> float:
            miss = 1 - amount / petals
            return miss**exponent / root + (1 - 1 / root) * miss - (1 - 1 / petals)

        return excess

    stable = petals * find_root(missed(root), 0, 1)
    envy_free = (petals + 1) * find_root(missed(root + 1), 0, 1)
    return Answers(coverage_flower_core(petals), stable, envy_free, source=source)


def coverage_flower_core(petals: int) -> float:
    """Return what the core alone must give over the reals, by randomized rounding."""
    root = math.isqrt(petals)
    keep = 1 - 1 / petals
    whole = math.floor(math.log(1 - 1 / root) / math.log(keep))
    return whole + (keep**whole - (1 - 1 / root)) * petals / keep**whole


# Two agents and K4.


def two_agents(strategies: str) -> Answers:
    """Return the totals of two agents uniform on the same two points (Theorem 7).

    (1 - theta_1/2)(1 - theta_2/2) = 1/2 is the set of equilibria; the sum is least at its ends.
    Agents that are alike must give alike to be free of envy: 2 - sqrt(2) each.
    """
    source = "Theorem 7 and Appendix H"
    if strategies == "integer":
        return Answers(1, 1, 2, source=source)
    return Answers(1, 1, 4 - 2 * math.sqrt(2), source=source)


def complete_graph(strategies: str) -> Answers:
    """Return the totals of K4 (Theorem 8): a perfect matching, or over the reals all alike.

    All alike at theta each edge misses (2 p^3 + p)/3 of its points, p = 1 - theta/3.
    """
    if strategies == "integer":
        return Answers(2, 2, 2, source="Theorem 8 and Appendix H")
    kept = find_root(lambda x: 2 * (1 - x) ** 3 + (1 - x) - 2.4, 0, 1)
    total = 18 * kept
    source = "beyond the paper: all agents alike, found optimal by global search"
    return Answers(total, total, total, source=source)


# The cycle of Theorem 3.


def find_cycle_threshold(d: int, requirement: Fraction) -> int:
    """Return m(mu): the least m with 1 - (1/2)(1 - 1/d)^m >= mu, in Fractions."""
    missed, m = Fraction(1, 2), 0
    while 1 - missed < requirement:
        missed *= 1 - Fraction(1, d)
        m += 1
    return m


def pac_cycle(d: int, requirement: Fraction, strategies: str) -> Answers:
    """Return the totals of the cycle of three agents (Section 3.3 and Appendix D).

    Over integers i is satisfied when theta_i + theta_{i-1} >= m. Every two agents are neighbours,
    so an agent that gives more than its successor would still be satisfied after a swap with it:
    in an envy-free allocation all give alike, and ceil(m/2) each is the least. Over [0, 1]^3 with
    d = 1 the same holds of x = -log(1 - theta), and sum(1 - exp(-x)) is concave: its least value
    is at a corner, all alike or two agents and a free rider.
    """
    if strategies == "integer":
        m = find_cycle_threshold(d, requirement)
        return Answers(
            -(-3 * m // 2),
            None if m % 2 else 3 * m // 2,
            3 * -(-m // 2),
            stable_exists=m % 2 == 0,
            source="Theorem 3, Section 3.3 and Appendix D",
        )
    if d > 1:
        return Answers(source="not known with randomized rounding")
    miss = math.sqrt(max(float(2 * (1 - requirement)), 0.0))
    alike = 3 * (1 - min(miss, 1.0))
    if requirement == 1:
        return Answers(2, None, 3, stable_exists=False, source="Theorem 3 and Section 3.3")
    best = min(alike, 2 * (1 - min(miss, 1.0) ** 2))
    return Answers(best, alike, alike, source="beyond the paper: concave over the corners")


# Sunflowers.


def linear_sunflower(petals: int, shared: int, own: int, cores: int) -> Answers:
    """Return a sunflower's totals with random discovery.

    Averaging over the ring's rotations, and over the cores, keeps an optimum optimal and an
    equilibrium one, as the equilibria of W = Q Q' are a convex set, and of one total. So two
    unknowns are left, the amount x of each core and y of each petal, in

        x + a y >= 1       for a core,   a = petals * 2 shared / petal size
        b x + c y >= 1     for a petal,  b = cores * 2 shared / core size
    """
    source = "beyond the paper: two unknowns by symmetry"
    size = 2 * max(cores, 1) * shared + own
    from_petals = Fraction(2 * petals * shared, size)
    from_cores = Fraction(2 * cores, petals)
    among_petals = 1 + Fraction(size - own, size)
    if cores == 0:
        total = float(petals / among_petals)
        return Answers(total, total, total, source=source)
    corners = [
        (x, y)
        for x, y in _corners(from_petals, from_cores, among_petals)
        if min(x, y) >= 0 and x + from_petals * y >= 1 and from_cores * x + among_petals * y >= 1
    ]
    optimal = min(cores * x + petals * y for x, y in corners)
    stable = next(
        cores * x + petals * y
        for x, y in corners
        if (x == 0 or x + from_petals * y == 1)
        and (y == 0 or from_cores * x + among_petals * y == 1)
    )
    return Answers(float(optimal), float(stable), source=source)


def _corners(a: Fraction, b: Fraction, c: Fraction) -> list[tuple[Fraction, Fraction]]:
    """List where two of x + a y = 1, b x + c y = 1, x = 0 and y = 0 meet."""
    zero = Fraction(0)
    corners = [(zero + 1, zero), (1 / b, zero), (zero, 1 / a), (zero, 1 / c)]
    if c != a * b:
        corners.append(((c - a) / (c - a * b), (1 - b) / (c - a * b)))
    return corners


def coverage_sunflower(petals: int, shared: int, own: int, cores: int) -> Answers:
    """Return a sunflower's stable total with random coverage.

    The cores idle, as every point of theirs is seen by two petals; a petal misses p^2 of each
    shared point and p of each own one, p = 1 - theta/n, and may miss 1 - 1/n in all.
    """
    size = 2 * max(cores, 1) * shared + own

    def excess(amount: float) -> float:
        miss = 1 - amount / size
        return (1 - own / size) * miss**2 + own / size * miss - (1 - 1 / size)

    amount = find_root(excess, 0, 1)
    satisfied = (1 - amount / size) ** 2 <= 1 - 1 / (petals * shared)
    source = "beyond the paper: the only equilibrium with idle cores"
    return Answers(None, petals * amount if satisfied or not cores else None, source=source)


def common_core(model: str, agents: int, core: int, own: int) -> Answers:
    """Return the totals of agents that share a core of points and own as many others each.

    Linear: by symmetry all alike is optimal; it is also stable and free of envy. Coverage: all
    alike is stable.
    """
    size = core + own
    source = "beyond the paper: all agents alike"
    if model == "linear":
        total = agents / (1 + (agents - 1) * core / size)
        return Answers(total, total, total, source=source)

    def excess(amount: float) -> float:
        miss = 1 - amount / size
        return core / size * miss**agents + own / size * miss - (1 - 1 / size)

    return Answers(None, agents * find_root(excess, 0, 1), source=source)
