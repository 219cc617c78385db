"""Section 2.2: the canonical utilities, against every sample that could be drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from fedaccord.games import catalog
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.games.pac.exact import PacGame
from fedaccord.games.pac.worlds import World
from fedaccord.reproduce import draws
from fedaccord.reproduce.claims import Claims, Finding, Setting, judged, not_so, weighed
from fedaccord.reproduce.oracle import (
    Amounts,
    PlainWorld,
    Utility,
    coverage_utility,
    cycle_worlds,
    learnt_utility,
    list_samples,
    read_rows,
    ring_utility,
    round_at_random,
)

CLAIMS = Claims()
SEED = 20210305
# How many random games, quick and full.
GAMES = (12, 120)
# How many draws of a Monte Carlo check, quick and full; and how many standard errors it may be off.
DRAWS = (20_000, 400_000)
MOST_ERRORS = 4.5


def _counts(random: np.random.Generator, agents: int, most: int = 2) -> list[int]:
    return [int(n) for n in random.integers(0, most + 1, agents)]


# Random discovery.


@CLAIMS.add(
    "random-discovery",
    claim="Random discovery gives linear utilities u = QQ'theta with a symmetric PSD matrix",
    place="Section 2.2, Random Discovery",
    paper="An agent who is rewarded q_ix every time anybody draws x has the expected reward "
    "q_i Q' theta, so that W = QQ' is symmetric and positive semidefinite.",
    minutes=(0.01, 0.1),
)
def random_discovery(setting: Setting) -> Finding:
    """Compare u = QQ'theta with the mean reward over every sample, and look at W."""
    random = np.random.default_rng(SEED)
    wrong, tried, eigenvalues, diagonal = [], 0, [], []
    for number in range(GAMES[setting.full]):
        agents, points = int(random.integers(2, 4)), int(random.integers(2, 4))
        table = draws.distributions(random, agents, points)
        game = DiscoveryGame(table, np.ones(agents))
        matrix = game.dense_benefits
        eigenvalues.append(float(np.linalg.eigvalsh(matrix).min()))
        diagonal += np.diagonal(matrix).tolist()
        if (matrix != matrix.T).any() or eigenvalues[-1] < -1e-12:
            wrong.append(number)
        for _ in range(3):
            theta = _counts(random, agents)
            tried += agents
            given = game.utilities(np.array(theta, dtype=float))
            for agent in range(agents):
                mean = _mean_reward(read_rows(table.tolist()), agent, theta)
                exact = game.exact_utility(agent, [Fraction(t) for t in theta])
                if exact != mean or abs(given[agent] - float(mean)) > 1e-12:
                    wrong.append(number)
    single = sum(abs(value - 1) < 1e-12 for value in diagonal)
    return judged(
        not wrong,
        f"In {GAMES[setting.full]} random games the mean reward over every sample that could be "
        f"drawn, in exact fractions, is QQ'theta for all of {tried} utilities ({len(wrong)} "
        f"differ); QQ' is symmetric and its least eigenvalue {min(eigenvalues):.1g}. Its diagonal "
        f"is sum of q_ix^2, and so 1 only for agents with a single point ({single} of "
        f"{len(diagonal)} here): the unit diagonal that the paper goes on to assume is a matter of "
        "units, and the same for all only if all these sums are equal, as in its flower.",
        evidence={
            "games": GAMES[setting.full],
            "utilities": tried,
            "differ": wrong,
            "least_eigenvalue": min(eigenvalues),
            "diagonal_one": [single, len(diagonal)],
            "seed": SEED,
        },
    )


def _mean_reward(table: Sequence[Sequence[Fraction]], agent: int, theta: Amounts) -> Fraction:
    """Add up q_ix over all that was drawn, for every sample there is, weighted by its chance."""
    world: PlainWorld = (
        Fraction(1),
        [[(x, None, q) for x, q in enumerate(row) if q] for row in table],
    )
    return sum(
        (
            chance * sum(table[agent][x] for x, _ in drawn)
            for drawn, chance in list_samples(world, theta)
        ),
        Fraction(0),
    )


# Random coverage.


@CLAIMS.add(
    "random-coverage",
    claim="Random coverage has utilities 1 - 1/2 sum_x q_ix prod_j (1 - q_jx)^theta_j",
    place="Section 2.2, Random Coverage",
    paper="With labels that are independent coin flips the best classifier is right on every point "
    "seen and right half of the time elsewhere, which gives this expected accuracy.",
    minutes=(0.01, 0.3),
)
def random_coverage(setting: Setting) -> Finding:
    """Compare the formula with every labelling and every sample, and on the flower with draws."""
    random = np.random.default_rng(SEED)
    wrong, tried = [], 0
    for number in range(GAMES[setting.full]):
        agents, points = int(random.integers(2, 4)), int(random.integers(2, 4))
        table = draws.distributions(random, agents, points)
        game = CoverageGame(table, np.full(agents, 0.5))
        rows = read_rows(table.tolist())
        formula, learnt = coverage_utility(rows), learnt_utility(_coin_flips(rows))
        theta = _counts(random, agents)
        given = game.utilities(np.array(theta, dtype=float))
        for agent in range(agents):
            tried += 1
            value = learnt(agent, theta)
            exact = game.exact_utility(agent, [Fraction(t) for t in theta])
            if not value == formula(agent, theta) == exact or abs(given[agent] - value) > 1e-12:
                wrong.append(number)
    off = _flower_by_drawing(DRAWS[setting.full])
    return judged(
        not wrong and off <= MOST_ERRORS,
        f"In {GAMES[setting.full]} random games all {tried} utilities equal the accuracy of the "
        "best classifier over every labelling and every sample, in exact fractions "
        f"({len(wrong)} differ). On the flower with 16 petals the mean of {DRAWS[setting.full]:,} "
        f"drawn samples is within {off:.1f} standard errors of the formula for every agent.",
        evidence={
            "games": GAMES[setting.full],
            "utilities": tried,
            "differ": wrong,
            "draws": DRAWS[setting.full],
            "standard_errors": off,
            "seed": SEED,
        },
    )


def _coin_flips(table: Sequence[Sequence[Fraction]]) -> list[PlainWorld]:
    """Give a world for each labelling of the points, all alike in likelihood."""
    points = len(table[0])
    return [
        (
            Fraction(1, 2**points),
            [[(x, labels[x], q) for x, q in enumerate(row) if q] for row in table],
        )
        for labels in product((-1, 1), repeat=points)
    ]


def _flower_by_drawing(count: int) -> float:
    """Draw samples in the flower with 16 petals; give the largest deviation in standard errors.

    The core gives 3 samples and each petal 1; what is averaged is the share of an agent's points
    that somebody drew.
    """
    game = catalog.build("flower", petals=16, model="coverage")
    assert isinstance(game, CoverageGame)
    given = np.array([3.0] + [1.0] * 16)
    table = np.repeat(game.distributions.toarray(), game.copies.astype(int), axis=1)
    random = np.random.default_rng(SEED)
    seen = np.zeros((count, table.shape[1]), dtype=bool)
    for agent, amount in enumerate(given.astype(int)):
        own = np.flatnonzero(table[agent])
        for _ in range(amount):
            seen[np.arange(count), own[random.integers(0, own.size, count)]] = True
    accuracy = 0.5 + 0.5 * (seen @ table.T)
    error = accuracy.std(axis=0, ddof=1) / np.sqrt(count)
    return float((np.abs(accuracy.mean(axis=0) - game.utilities(given)) / error).max())


# PAC learning.


@CLAIMS.add(
    "pac-utilities",
    claim="In PAC learning utility is the expected accuracy of a consistent classifier",
    place="Section 2.2, General PAC Learning",
    paper="Labels may depend on each other: with two points that always have the same label, one "
    "seen point tells both. Utility is the expected accuracy of any consistent function.",
    minutes=(0.02, 0.3),
)
def pac_utilities(setting: Setting) -> Finding:
    """Check the example and random classes, and whether any consistent function will do."""
    example = _example_holds()
    wrong, tried, falls = _compare_learners(GAMES[setting.full])
    careless, likeliest, by_point = _careless_function(), _likeliest_function(), _likeliest_labels()
    steady = by_point[0] <= by_point[1]
    parts = {
        "a sample of either agent lifts everybody's accuracy from 1/2 to 1 in the example": example,
        "the likeliest label of every point is as right after another's sample as before": steady,
        "the likeliest function loses by another's sample": likeliest[1] < likeliest[0],
    }
    return weighed(
        example and not wrong and not falls and steady,
        careless[1] < careless[0],
        f"In the paper's example a sample of either agent lifts everybody's accuracy from 1/2 to "
        f"1. In {GAMES[setting.full]} random hypothesis classes {tried} utilities of the best "
        f"classifier equal the mean over every target and every sample ({len(wrong)} differ), and "
        "they and those of the worst consistent function fell with more samples "
        f"{falls} times. But Section 2.1 takes utilities that never fall, and then not any "
        "consistent function will do: when another agent adds a sample, one that picks badly goes "
        f"from {careless[0]} to {careless[1]}, and even the likeliest function of all may go from "
        f"{likeliest[0]} to {likeliest[1]}, where the likeliest label of every point is right "
        f"{by_point[0]} of the time before and {by_point[1]} after.{not_so(parts)}",
        correction="Give every point the label that is likeliest given the sample (the optimal "
        "classifier of Theorem 3), or take the worst consistent function; then utility is well "
        "defined and never falls when anybody gives more.",
        evidence={
            "utilities": tried,
            "differ": wrong,
            "falls": falls,
            "careless_function": [str(value) for value in careless],
            "likeliest_function": [str(value) for value in likeliest],
            "likeliest_labels": [str(value) for value in by_point],
            "seed": SEED,
        },
    )


def _game(worlds: Sequence[PlainWorld], agents: int, **options: Any) -> PacGame:
    made = [World(prior, samples) for prior, samples in worlds]
    return PacGame(made, [0.0] * agents, **options)


def _example_holds() -> bool:
    """Two points with the same label always: one agent draws either, the other the second."""
    half = Fraction(1, 2)
    worlds: list[PlainWorld] = [
        (half, [[(0, label, half), (1, label, half)], [(1, label, Fraction(1))]])
        for label in (-1, 1)
    ]
    plain, game = learnt_utility(worlds), _game(worlds, 2)
    return all(
        plain(agent, theta)
        == game.exact_utility(agent, [Fraction(t) for t in theta])
        == (Fraction(1) if any(theta) else half)
        for theta in product(range(3), repeat=2)
        for agent in range(2)
    )


def _compare_learners(count: int) -> tuple[list[int], int, int]:
    """Compare random hypothesis classes; give those that differ, utilities tried, and falls."""
    random = np.random.default_rng(SEED)
    wrong, tried, falls = [], 0, 0
    for number in range(count):
        worlds = _random_class(random)
        plain = learnt_utility(worlds)
        best, worst = _game(worlds, 2), _game(worlds, 2, classifier="worst")
        for theta in product(range(3), repeat=2):
            amounts = [Fraction(t) for t in theta]
            for agent in range(2):
                tried += 1
                value = best.exact_utility(agent, amounts)
                if value != plain(agent, theta):
                    wrong.append(number)
                for giver in range(2):
                    more = [t + (j == giver) for j, t in enumerate(amounts)]
                    falls += best.exact_utility(agent, more) < value
                    falls += worst.exact_utility(agent, more) < worst.exact_utility(agent, amounts)
    return wrong, tried, falls


def _random_class(random: np.random.Generator) -> list[PlainWorld]:
    """Draw three labellings of three points with their priors, and two agents' distributions."""
    table = read_rows(draws.distributions(random, 2, 3).tolist())
    weights = random.integers(1, 5, 3)
    labels = random.integers(0, 2, (3, 3))
    return [
        (
            Fraction(int(weight), int(weights.sum())),
            [[(x, int(label[x]), q) for x, q in enumerate(row) if q] for row in table],
        )
        for weight, label in zip(weights, labels, strict=True)
    ]


# Functions by their labels, as likely as they are to be the target: the other agent draws the first
# point only, and the agent asks about the second only.
Targets: TypeAlias = Mapping[str, Fraction]


def _before_and_after(
    targets: Targets, rule: Callable[[Targets], str]
) -> tuple[Fraction, Fraction]:
    """Give an agent's accuracy without a sample and with another's, if a rule picks the function.

    targets: all there are.
    rule: picks one of those that agree with the sample.
    """

    def right(left: Targets) -> Fraction:
        said = rule(left)
        assert said in left
        return sum((p for target, p in left.items() if target[1] == said[1]), Fraction(0))

    seen = [{t: p for t, p in targets.items() if t[0] == label} for label in "+-"]
    return right(targets), sum((right(left) for left in seen if left), Fraction(0))


def _careless_function() -> tuple[Fraction, Fraction]:
    """Pick the likeliest while all are left, and the unlikeliest of those that a sample leaves."""
    targets = {"++": Fraction(8, 10), "+-": Fraction(1, 10), "--": Fraction(1, 10)}
    return _before_and_after(
        targets,
        lambda left: (max if len(left) == len(targets) else min)(left, key=left.__getitem__),
    )


# The last two differ at a third point, which nobody draws.
SPLIT = {
    "+++": Fraction(7, 20),
    "--+": Fraction(5, 20),
    "-++": Fraction(4, 20),
    "-+-": Fraction(4, 20),
}


def _likeliest_function() -> tuple[Fraction, Fraction]:
    """Pick the likeliest function, where those of the most likely label are split in two."""
    return _before_and_after(SPLIT, lambda left: max(left, key=left.__getitem__))


def _likeliest_labels() -> tuple[Fraction, Fraction]:
    """Ask the game's best classifier about the same targets."""
    certain = Fraction(1)
    worlds: list[PlainWorld] = [
        (prior, [[("second", target[1], certain)], [("first", target[0], certain)]])
        for target, prior in SPLIT.items()
    ]
    game = _game(worlds, 2)
    before, after = (game.exact_utility(0, [Fraction(0), Fraction(n)]) for n in (0, 1))
    return before, after


# Real contributions.


@CLAIMS.add(
    "randomized-rounding",
    claim="Randomized rounding extends utilities to real contributions and agrees at whole ones",
    place="Section 2.2 and Appendix A",
    paper="A real contribution is rounded to one of the two whole numbers around it with itself as "
    "the mean, and utility is the expectation; this works for whole contributions too.",
    minutes=(0.01, 0.1),
)
def randomized_rounding(setting: Setting) -> Finding:
    """Compare real utilities with the mean over all roundings, in coverage and PAC games."""
    random = np.random.default_rng(SEED)
    wrong, tried, whole = [], 0, 0
    for number in range(GAMES[setting.full]):
        game, plain = _rounding_case(random, number)
        for quarters in random.integers(0, 11, (4, game.size)).tolist():
            theta = [Fraction(n, 4) for n in quarters]
            whole += all(t.denominator == 1 for t in theta)
            given = game.utilities(np.array([float(t) for t in theta]))
            for agent in range(game.size):
                tried += 1
                value = round_at_random(plain)(agent, theta)
                exact = game.exact_utility(agent, theta)
                if exact != value or abs(given[agent] - float(value)) > 1e-12:
                    wrong.append(number)
        at = _counts(random, game.size)
        for agent in range(game.size):
            if game.exact_utility(agent, [Fraction(n) for n in at]) != plain(agent, at):
                wrong.append(number)
    once, spread = _two_readings()
    linear = LinearGame([[1, 0.5], [0.25, 1]], [1, 1])
    same = abs(linear.utilities(np.array([0.5, 1.5]))[0] - 1.25) <= 1e-15
    return judged(
        not wrong and same and once != spread,
        f"In {GAMES[setting.full]} coverage and PAC games {tried} utilities at multiples of 1/4 "
        "equal the mean over all roundings of all agents, in exact fractions, and at whole "
        f"contributions the utility of the whole-number game ({len(wrong)} differ). Linear "
        "utilities do not change. As the paper warns, the mean alone does not fix the utility: one "
        f"sample for sure gives {float(once):.4g}, none or two with equal chances "
        f"{float(spread):.4g}.",
        evidence={
            "games": GAMES[setting.full],
            "utilities": tried,
            "differ": wrong,
            "same_mean": [float(once), float(spread)],
            "seed": SEED,
        },
    )


def _rounding_case(random: np.random.Generator, number: int) -> tuple[Any, Utility]:
    """Draw a coverage game, or every fourth time take the cycle of Theorem 3 with d = 1 or 2."""
    if number % 4 == 3:
        d = 1 if number % 8 == 3 else 2
        game = catalog.build("pac-cycle", d=d, requirement="3/4", strategies="real")
        # By every sample where that is quick.
        return game, learnt_utility(cycle_worlds(1)) if d == 1 else ring_utility(d)
    table = draws.distributions(random, int(random.integers(2, 4)), 3)
    return CoverageGame(table, np.full(len(table), 0.5)), coverage_utility(
        read_rows(table.tolist())
    )


def _two_readings() -> tuple[Fraction, Fraction]:
    """Give an agent's utility at one sample, and at none or two with equal chances."""
    utility = coverage_utility([[Fraction(1, 2)] * 2])
    return utility(0, [1]), (utility(0, [0]) + utility(0, [2])) / 2
