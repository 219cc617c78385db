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
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.oracle import (
    HALF,
    ONE,
    ZERO,
    Amounts,
    PlainWorld,
    Rows,
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


def _draw_counts(random: np.random.Generator, agents: int, most: int = 2) -> list[int]:
    return [int(n) for n in random.integers(0, most + 1, agents)]


def _is_different(game: Any, agent: int, theta: Amounts, value: Fraction) -> bool:
    """Return whether a game's utility is not a value: in fractions, or by much in doubles."""
    given = game.utilities(np.array([float(t) for t in theta]))[agent]
    exact = game.exact_utility(agent, [Fraction(t) for t in theta])
    return bool(exact != value or abs(given - float(value)) > 1e-12)


# Random discovery.


@CLAIMS.measure("random-discovery")
def random_discovery(setting: Setting) -> Measured:
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
        rows = read_rows(table.tolist())
        for _ in range(3):
            theta = _draw_counts(random, agents)
            tried += agents
            for agent in range(agents):
                if _is_different(game, agent, theta, _mean_reward(rows, agent, theta)):
                    wrong.append(number)
    single = sum(abs(value - 1) < 1e-12 for value in diagonal)
    return Measured(
        games=GAMES[setting.full],
        utilities=tried,
        differ=wrong,
        least_eigenvalue=min(eigenvalues),
        diagonal_one=[single, len(diagonal)],
        seed=SEED,
    )


def _mean_reward(table: Rows, agent: int, theta: Amounts) -> Fraction:
    """Add up q_ix over all that was drawn, for every sample there is, weighted by its chance."""
    rewards = (
        chance * sum(table[agent][x] for x, _ in drawn)
        for drawn, chance in list_samples(_label(table, [None] * len(table[0]), ONE), theta)
    )
    return sum(rewards, ZERO)


def _label(table: Rows, labels: Sequence[Any], prior: Fraction) -> PlainWorld:
    """Return the world in which points have some labels."""
    return prior, [[(x, labels[x], q) for x, q in enumerate(row) if q] for row in table]


# Random coverage.


@CLAIMS.measure("random-coverage")
def random_coverage(setting: Setting) -> Measured:
    """Compare the formula with every labelling and every sample, and on the flower with draws."""
    random = np.random.default_rng(SEED)
    wrong, tried = [], 0
    for number in range(GAMES[setting.full]):
        agents, points = int(random.integers(2, 4)), int(random.integers(2, 4))
        table = draws.distributions(random, agents, points)
        game = CoverageGame(table, np.full(agents, 0.5))
        rows = read_rows(table.tolist())
        # Labels are coin flips: a world for each labelling, all alike in likelihood.
        flips = [_label(rows, flip, HALF**points) for flip in product((-1, 1), repeat=points)]
        formula, learnt = coverage_utility(rows), learnt_utility(flips)
        theta = _draw_counts(random, agents)
        for agent in range(agents):
            tried += 1
            value = learnt(agent, theta)
            if value != formula(agent, theta) or _is_different(game, agent, theta, value):
                wrong.append(number)
    return Measured(
        games=GAMES[setting.full],
        utilities=tried,
        differ=wrong,
        draws=DRAWS[setting.full],
        standard_errors=_flower_by_drawing(DRAWS[setting.full]),
        seed=SEED,
        words={"most_errors": MOST_ERRORS},
    )


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


@CLAIMS.measure("pac-utilities")
def pac_utilities(setting: Setting) -> Measured:
    """Check the example and random classes, and whether any consistent function will do."""
    wrong, tried, falls = _compare_learners(GAMES[setting.full])
    return Measured(
        utilities=tried,
        differ=wrong,
        falls=falls,
        careless_function=_careless_function(),
        likeliest_function=_likeliest_function(),
        likeliest_labels=_likeliest_labels(),
        seed=SEED,
        words={"games": GAMES[setting.full], "example": _example_holds()},
    )


def _game(worlds: Sequence[PlainWorld], agents: int, **options: Any) -> PacGame:
    made = [World(prior, samples) for prior, samples in worlds]
    return PacGame(made, [0.0] * agents, **options)


def _example_holds() -> bool:
    """Two points with the same label always: one agent draws either, the other the second."""
    worlds = [_label([[HALF, HALF], [ZERO, ONE]], [label, label], HALF) for label in (-1, 1)]
    plain, game = learnt_utility(worlds), _game(worlds, 2)
    return all(
        plain(agent, theta)
        == game.exact_utility(agent, [Fraction(t) for t in theta])
        == (ONE if any(theta) else HALF)
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
    weights = random.integers(1, 5, 3).tolist()
    labels = random.integers(0, 2, (3, 3)).tolist()
    priors = [Fraction(weight, sum(weights)) for weight in weights]
    return [_label(table, *pair) for pair in zip(labels, priors, strict=True)]


# Functions by their labels, as likely as they are to be the target: the other agent draws the first
# point only, and the agent asks about the second only.
Targets: TypeAlias = Mapping[str, Fraction]


def _before_and_after(
    targets: Targets, rule: Callable[[Targets], str]
) -> tuple[Fraction, Fraction]:
    """Return an agent's accuracy without a sample and with another's, if a rule picks the function.

    targets: all there are.
    rule: picks one of those that agree with the sample.
    """

    def right(left: Targets) -> Fraction:
        said = rule(left)
        assert said in left
        return sum((p for target, p in left.items() if target[1] == said[1]), ZERO)

    seen = [{t: p for t, p in targets.items() if t[0] == label} for label in "+-"]
    return right(targets), sum((right(left) for left in seen if left), ZERO)


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
    worlds: list[PlainWorld] = [
        (prior, [[("second", target[1], ONE)], [("first", target[0], ONE)]])
        for target, prior in SPLIT.items()
    ]
    game = _game(worlds, 2)
    before, after = (game.exact_utility(0, [ZERO, Fraction(n)]) for n in (0, 1))
    return before, after


# Real contributions.


@CLAIMS.measure("randomized-rounding")
def randomized_rounding(setting: Setting) -> Measured:
    """Compare real utilities with the mean over all roundings, in coverage and PAC games."""
    random = np.random.default_rng(SEED)
    wrong, tried = [], 0
    for number in range(GAMES[setting.full]):
        game, plain = _rounding_case(random, number)
        for quarters in random.integers(0, 11, (4, game.size)).tolist():
            theta = [Fraction(n, 4) for n in quarters]
            for agent in range(game.size):
                tried += 1
                if _is_different(game, agent, theta, round_at_random(plain)(agent, theta)):
                    wrong.append(number)
        at = _draw_counts(random, game.size)
        for agent in range(game.size):
            if game.exact_utility(agent, [Fraction(n) for n in at]) != plain(agent, at):
                wrong.append(number)
    # One sample, and none or two with equal chances.
    alone = coverage_utility([[HALF, HALF]])
    once, spread = alone(0, [1]), (alone(0, [0]) + alone(0, [2])) / 2
    linear = LinearGame([[1, 0.5], [0.25, 1]], [1, 1]).utilities(np.array([0.5, 1.5]))
    return Measured(
        games=GAMES[setting.full],
        utilities=tried,
        differ=wrong,
        same_mean=[float(once), float(spread)],
        seed=SEED,
        words={"linear": abs(linear[0] - 1.25) <= 1e-15},
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
