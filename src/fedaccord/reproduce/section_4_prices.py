"""Section 4: what stability and fairness cost in the flower, measured up to many agents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Interval, Solution
from fedaccord.equilibria.solve import (
    PAIRS_LIMIT,
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
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.oracle import Listing, utility_of

CLAIMS = Claims()
# Square roots of the numbers of petals, quick and more in full.
ROOTS = {
    "linear": ((4, 6, 10, 15, 20, 32, 50, 100), (150, 200)),
    "coverage": ((4, 6, 10, 15, 20, 32, 50, 100), (150, 200, 300)),
}
# Exponents are fitted from this many petals on: below, the terms that vanish still count.
FITTED_FROM = 100
CONCEPTS = ("optimal", "stable", "envy_free")


@dataclass(frozen=True)
class Flower:
    """The totals and prices of a flower.

    petals: b, one less than there are agents.
    totals: what was found, by concept.
    stability, fairness: the two prices, as proved intervals.
    sound: whether the check and the definition of the game bear it out, and no bound is above
        what was found.
    """

    petals: int
    totals: dict[str, float]
    stability: Interval
    fairness: Interval
    sound: bool

    @property
    def agents(self) -> int:
        """How many agents there are, k."""
        return self.petals + 1

    def price(self, concept: str) -> Interval:
        """Return the price of a concept."""
        return self.stability if concept == "stable" else self.fairness

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values."""
        return {
            "petals": self.petals,
            **self.totals,
            "price_of_stability": [self.stability.lower, self.stability.upper],
            "price_of_fairness": [self.fairness.lower, self.fairness.upper],
            "sound": self.sound,
        }


@dataclass(frozen=True)
class Exponent:
    """A fitted power of k.

    Nothing is drawn at random here: what the slopes differ by is the curve of the prices, and how
    wide the intervals are is how much of the prices is proved.

    value: the slope of log price against log k.
    low, high: between what it lies, whatever the prices are within their proved intervals.
    last: the slope between the two largest flowers.
    limit: the slope if a term in 1/sqrt(k), which dies out, is fitted as well.
    """

    value: float
    low: float
    high: float
    last: float
    limit: float


# Measuring.


def measure_flower(model: str, root: int) -> Flower:
    """Solve a flower for all three concepts, and have the answers checked."""
    game = catalog.build("flower", petals=root * root, model=model)
    optimal = solve_optimal(game, time_limit=300)
    stable = solve_stable(game, time_limit=300)
    if model == "linear" and game.size > PAIRS_LIMIT:
        fair = solve_envy_free(game, method="equal")
    else:
        fair = solve_envy_free(game, time_limit=300)
    fairness: Interval = price_of_fairness(fair, optimal)
    possible = True
    if model == "linear":
        bound = bound_fairness(game) / optimal.bounds.upper
        # Rounding may put what was found a hair below what is proved, and only a hair.
        possible = bool(bound <= fairness.upper * (1 + 1e-9))
        lower = min(max(fairness.lower, bound), fairness.upper)
        fairness = Interval(lower, fairness.upper)
    return Flower(
        petals=root * root,
        totals=dict(zip(CONCEPTS, (s.total for s in (optimal, stable, fair)), strict=True)),
        stability=price_of_stability(stable, optimal),
        fairness=fairness,
        sound=possible and _is_sound(game, root, optimal, stable, fair),
    )


def _is_sound(game: Game, root: int, optimal: Solution, stable: Solution, fair: Solution) -> bool:
    """Return whether the game is as Theorem 4 says, and the allocations of the kinds claimed."""
    # Of the optimum and the equilibrium a check would also look for envy, which takes long where
    # many swaps are ties, and does not matter here.
    slack = game.utilities(optimal.allocation.contributions) - game.requirements
    given = stable.allocation.contributions
    return (
        bool(slack.min() >= -1e-9)
        and bool(np.abs(game.best_responses(given) - given).max() <= 1e-6)
        and check(game, fair.allocation).envy_free is Answer.TRUE
        and isinstance(game.well_behaved(), Certified)
        and _as_described(game, root)
    )


def _as_described(game: Game, root: int) -> bool:
    """Linear: W_ii = 1, W_ij <= 1/sqrt(b). Coverage: all uniform on sets of b points."""
    if isinstance(game, LinearGame):
        entries = sparse.coo_array(game.benefits)
        off = entries.data[entries.row != entries.col]
        return bool((game.own_benefits == 1).all() and off.max() <= 1 / root)
    assert isinstance(game, CoverageGame)
    uniform = (game.distributions.data == 1 / root**2).all()
    return bool(uniform and np.abs(game.weights.sum(axis=1) - 1).max() < 1e-9)


def bound_fairness(game: Game) -> float:
    """Bound from below what any envy-free allocation of the linear flower costs.

    The matrix must have the flower's form: a core, whose samples give v to each petal and who gains
    w from each; petals that gain d from their own and c from their group's samples, and nothing
    from other groups. All requirements are 1. In an envy-free allocation

    (1) petals of a group give alike: they are exchangeable, so that the one that gives more would,
        after a swap, have what the other has;
    (2) petals of two groups give alike: after a swap the larger giver has what the other has and
        c (sqrt(b) - 1)(t - t') >= 0 more;
    (3) the core gives at most as much: otherwise, after a swap with a petal, it has at least what
        the petal has, if w >= v and a + w (b - 1) >= d + c (sqrt(b) - 1).

    With s = d + c (sqrt(b) - 1) a petal then needs v core + s t >= 1 with core <= t, and
    core + b t is least at one of the two ends, core = 0 or core = t. Where the matrix has not that
    form, or an inequality fails, nothing is proved, and the bound is zero.
    """
    assert isinstance(game, LinearGame)
    petals = game.size - 1
    root = math.isqrt(petals)
    matrix = sparse.csr_array(game.benefits)
    core, gains, gives = matrix[0, 0], matrix[0, 1], matrix[1, 0]
    own, group = matrix[1, 1], matrix[1, 2]
    block = np.full((root, root), group)
    np.fill_diagonal(block, own)
    row = sparse.csr_array(np.full((1, petals), 1.0))
    form = sparse.vstack(
        [
            sparse.hstack([sparse.csr_array([[core]]), gains * row]),
            sparse.hstack([gives * row.T, sparse.kron(sparse.eye_array(root), block)]),
        ]
    )
    alike = root * root == petals and abs(matrix - form).max() == 0
    ordered = gains >= gives and core + gains * (petals - 1) >= own + group * (root - 1)
    if not (alike and ordered and (game.requirements == 1).all()):
        return 0.0
    slope = own + group * (root - 1)
    return float(min(petals / slope, (petals + 1) / (gives + slope)))


# Fitting.


def fit_exponent(flowers: Sequence[Flower], concept: str) -> Exponent:
    """Fit price ~ k^exponent by least squares on logarithms.

    The slope is a weighted sum of the log prices, so that the ends of the proved intervals give the
    ends of what it can be.
    """
    late = [flower for flower in flowers if flower.petals >= FITTED_FROM]
    x = np.log([flower.agents for flower in late])
    low = np.log([flower.price(concept).lower for flower in late])
    high = np.log([flower.price(concept).upper for flower in late])
    y = (low + high) / 2
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slope = float(weights @ y)
    spread = float(np.abs(weights) @ (high - low)) / 2
    columns = np.column_stack([np.ones(len(x)), x, np.exp(-x / 2)])
    limit = float(np.linalg.lstsq(columns, y, rcond=None)[0][1])
    last = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
    return Exponent(slope, slope - spread, slope + spread, last, limit)


# Judging.


def _find_largest_error(
    flowers: Sequence[Flower], model: str, expected: Sequence[Sequence[float]]
) -> float:
    """Return the largest relative difference of totals from closed forms and expected numbers."""
    pairs: list[tuple[Flower, Sequence[float | None]]] = []
    for flower in flowers:
        known = catalog.answers("flower", petals=flower.petals, model=model)
        pairs.append((flower, [known.optimal, known.stable, known.envy_free]))
    by_petals = {flower.petals: flower for flower in flowers}
    pairs += [(by_petals[int(petals)], totals) for petals, *totals in expected]
    return max(
        abs(flower.totals[concept] / total - 1) if total else np.inf
        for flower, totals in pairs
        for concept, total in zip(CONCEPTS, totals, strict=True)
    )


def _chart(flowers: Sequence[Flower], model: str, exponents: dict[str, Exponent]) -> Chart:
    agents = tuple(float(flower.agents) for flower in flowers)
    names = {"stable": "price of stability", "envy_free": "price of fairness"}
    lines = [
        Line(name, agents, tuple(flower.price(concept).upper for flower in flowers))
        for concept, name in names.items()
    ]
    half = Line("√k / 2", agents, tuple(math.sqrt(k) / 2 for k in agents), reference=True)
    last = flowers[-1]
    return Chart(
        name=f"prices-{model}",
        title=f"What stability and fairness cost in the flower with {model} utilities",
        x="agents k",
        y="total over the optimal total",
        alt=f"From {flowers[0].agents} to {last.agents:,} agents the price of stability rises from "
        f"{flowers[0].stability.upper:.3g} to {last.stability.upper:.3g} and the price of fairness "
        f"from {flowers[0].fairness.upper:.3g} to {last.fairness.upper:.3g}, both next to half the "
        f"square root of k; fitted exponents {exponents['stable'].value:.3f} and "
        f"{exponents['envy_free'].value:.3f}.",
        lines=(*lines, half),
        logarithmic=True,
    )


def _measure_flowers(
    setting: Setting, model: str, words: Mapping[str, Any], **evidence: Any
) -> Measured:
    """Measure the flowers of a model and their prices.

    words, evidence: more that is said, and that was measured.
    """
    quick, late = ROOTS[model]
    flowers = [measure_flower(model, root) for root in (*quick, *(late if setting.full else ()))]
    exponents = {concept: fit_exponent(flowers, concept) for concept in ("stable", "envy_free")}
    prices = [
        (flower, price) for flower in flowers for price in (flower.stability, flower.fairness)
    ]
    return Measured(
        flowers=[flower.to_dict() for flower in flowers],
        exponents=exponents,
        least_share_of_root=min(price.lower / math.sqrt(f.agents) for f, price in prices),
        largest_gap=max(price.relative_gap for _, price in prices),
        worst_total=_find_largest_error(flowers, model, setting.expected["totals"]),
        **evidence,
        words={
            "last": flowers[-1],
            "fitted_from": FITTED_FROM,
            "spread": max((e.high - e.low) / 2 for e in exponents.values()),
            "unsound": sum(not flower.sound for flower in flowers),
            "near": _is_near(exponents.values(), setting.expected),
            **words,
        },
        charts=(_chart(flowers, model, exponents),),
    )


def _is_near(exponents: Iterable[Exponent], expected: Mapping[str, Any]) -> bool:
    """Return whether both fits give the expected power, whatever is not proved of prices."""
    half = float(expected["exponent"])
    return all(
        max(abs(e.low - half), abs(e.high - half)) <= expected["tolerance"]
        and abs(e.limit - half) <= expected["limit_tolerance"]
        for e in exponents
    )


# Theorem 4.


@CLAIMS.measure("theorem-4-linear")
def theorem_4_linear(setting: Setting) -> Measured:
    """Measure linear flowers; prove the envy-free totals by symmetry, and small ones by MILP."""
    roots = range(2, 13) if setting.full else (2, 3, 4, 5, 7, 10)
    proofs: Vector = np.array([_program_and_symmetry(root) for root in roots])
    program, symmetry = proofs.T
    agree = bool(np.abs(program - symmetry).max() <= 1e-6 * symmetry.max())
    return _measure_flowers(
        setting,
        "linear",
        {"largest": max(roots) ** 2, "agree": agree},
        by_program=program.tolist(),
        by_symmetry=symmetry.tolist(),
        by_listing=_least_listed(4),
    )


def _least_listed(steps: int) -> float:
    """Try all allocations of the flower with 4 petals in steps of 1/steps, up to all one half.

    Contributions are counted in steps, and so is the requirement.
    """
    utility = utility_of(catalog.build("flower", petals=4))
    listing = Listing(utility, (Fraction(steps),) * 5, up_to=5 * steps // 2)
    least = listing.least(listing.is_envy_free)
    return math.inf if least is None else float(least / steps)


def _program_and_symmetry(root: int) -> tuple[float, float]:
    """Return two proved lower bounds on the envy-free total: by mixed-integer program, by hand."""
    game = catalog.build("flower", petals=root * root)
    return solve_envy_free(game).bounds.lower, bound_fairness(game)


@CLAIMS.measure("theorem-4-coverage")
def theorem_4_coverage(setting: Setting) -> Measured:
    """Measure coverage flowers over the reals, and a small one over whole numbers."""
    flower = catalog.build("flower", petals=16, model="coverage", strategies="integer")
    whole = [solve(flower).total for solve in (solve_optimal, solve_stable, solve_envy_free)]
    return _measure_flowers(setting, "coverage", {}, whole_numbers=whole)
