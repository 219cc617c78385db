"""Section 2.1: each definition on examples examples, against lists of everything, in fractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from fedaccord.check import Answer, check
from fedaccord.equilibria.general.exhaustive import all_envy_free, all_equilibria
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import (
    price_of_fairness,
    price_of_stability,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.games import catalog
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.pac.exact import PacGame
from fedaccord.reproduce import draws
from fedaccord.reproduce.claims import Claims, Measured, Setting, fill
from fedaccord.reproduce.oracle import Listing, Whole, cycle_worlds, learnt_utility, utility_of

CLAIMS = Claims()
SEED = 20210304
# How many random games, quick and full.
GAMES = (12, 150)
# Of each game at most this many allocations are checked, quick and full.
AUDITED = (25, 400)
TOTALS = (
    "{pac-cycle:or none} in the cycle of Theorem 3, {two-agents:or none} for the two agents of "
    "Theorem 7, {k4:or none} in K4, {flower-linear:or none} in the linear flower with 4 petals, "
    "{flower-coverage:or none} in the same flower with coverage"
)


@dataclass(frozen=True, eq=False)
class Example:
    """A whole-number game and the list of all its allocations."""

    name: str
    game: Game
    listing: Listing

    def least(self, kind: str) -> Any:
        """Return the least total of the feasible, stable or envy_free allocations, if any."""
        return self.listing.least(getattr(self.listing, f"is_{kind}"))

    def some(self, most: int) -> list[Whole]:
        """Take some of the allocations: of the stable and of the envy-free ones the cheapest.

        Up to a third each; the rest is taken at random from all.
        """
        chosen = dict.fromkeys(
            self.listing.list_all(self.listing.is_stable)[: most // 3]
            + self.listing.list_all(self.listing.is_envy_free)[: most // 3]
        )
        everything = list(self.listing.allocations)
        random = np.random.default_rng(SEED)
        chosen.update(dict.fromkeys(everything[n] for n in random.permutation(len(everything))))
        return list(chosen)[:most]


def _paper_games() -> dict[str, Game]:
    """Return the paper's own games, small, over whole numbers."""
    return {
        "pac-cycle": catalog.build("pac-cycle"),
        "two-agents": catalog.build("two-agents", strategies="integer"),
        "k4": catalog.build("k4", strategies="integer"),
        "flower-linear": catalog.build("flower", petals=4, strategies="integer"),
        "flower-coverage": catalog.build(
            "flower", petals=4, model="coverage", strategies="integer"
        ),
    }


def _games(count: int) -> dict[str, Game]:
    """Return the paper's games and some random ones."""
    random = np.random.default_rng(SEED)
    games = _paper_games()
    for number in range(count):
        agents = int(random.integers(2, 4))
        draw = draws.linear_game if number % 2 else draws.coverage_game
        games[f"random {number}"] = draw(random, agents, strategies="integer")
    return games


@cache
def _listings(count: int) -> dict[str, Listing]:
    """List what several rows need; the games, which remember results, are made again."""
    learnt = learnt_utility(cycle_worlds(1))
    return {
        name: Listing.of(game, learnt if isinstance(game, PacGame) else None)
        for name, game in _games(count).items()
    }


def _list_examples(count: int) -> list[Example]:
    listings = _listings(count)
    return [Example(name, game, listings[name]) for name, game in _games(count).items()]


def _compare_totals(
    setting: Setting, solve: Callable[..., Any], kind: str
) -> tuple[list[Example], dict[str, Any], dict[str, Any]]:
    """Compare a solver with the lists, and the lists with the numbers expected of the paper's.

    Return the games, the evidence, and the words for it.
    """
    examples = _list_examples(GAMES[setting.full])
    wrong, least = [], {}
    for one in examples:
        least[one.name] = one.least(kind)
        solution = solve(one.game)
        total = solution.total if np.isfinite(solution.total) else None
        proved = Status.NONE_EXISTS if least[one.name] is None else Status.OPTIMAL
        if total != least[one.name] or solution.status is not proved:
            wrong.append(one.name)
    paper = {name: least[name] for name in _paper_games()}
    evidence = {
        "games": len(examples),
        "allocations": sum(len(one.listing.allocations) for one in examples),
        "differ": wrong,
        "least_totals": paper,
        "seed": SEED,
    }
    unlike = _list_unlike(paper, setting.expected["totals"])
    return examples, evidence, {"totals": fill(TOTALS, paper), "unlike": unlike}


def _list_unlike(found: Mapping[str, float | None], expected: Mapping[str, float]) -> list[str]:
    """Name the games whose numbers are not those expected; 0 is expected where there is none."""
    return [
        name
        for name in {**found, **expected}
        if abs((found.get(name, -1.0) or 0.0) - expected.get(name, -2.0)) > 1e-9
    ]


@CLAIMS.measure("definition-optimal")
def definition_optimal(setting: Setting) -> Measured:
    """Compare the solver with a list of all allocations, and over the reals with prices by hand."""
    _, evidence, words = _compare_totals(setting, solve_optimal, "feasible")
    root = int(setting.expected["flower_root"])
    game = catalog.build("flower", petals=root * root)
    assert isinstance(game, LinearGame)
    total = solve_optimal(game).total
    # Weak duality: mu'y / max(W'y) bounds the optimum; y is 1 on one petal of each group.
    prices = np.zeros(game.size)
    prices[1::root] = 1.0
    bound = float(game.requirements @ prices / (game.benefits.T @ prices).max())
    return Measured(
        **evidence,
        real_flower=total,
        bound_by_hand=bound,
        words={**words, "petals": root**2, "off": abs(total - bound) / bound},
    )


@CLAIMS.measure("definition-stable")
def definition_stable(setting: Setting) -> Measured:
    """Compare check and search with every lower contribution tried."""
    examples, evidence, words = _compare_totals(setting, solve_stable, "stable")
    audited, wrong, listed = 0, [], 0
    for one in examples:
        equilibria = one.listing.list_all(one.listing.is_stable)
        listed += len(equilibria)
        found = [tuple(int(t) for t in theta) for theta in all_equilibria(one.game)]
        if sorted(found) != sorted(equilibria):
            wrong.append(one.name)
        for theta in one.some(AUDITED[setting.full]):
            audited += 1
            verdict = check(one.game, theta).stable
            if verdict is not (Answer.TRUE if one.listing.is_stable(theta) else Answer.FALSE):
                wrong.append(f"{one.name} at {theta}")
    real, cuts = _real_flower_is_stable()
    return Measured(
        **evidence,
        equilibria=listed,
        audited=audited,
        audits_differ=wrong,
        real_flower=real,
        words={**words, "cuts": cuts, "wrong": "; ".join(what for what in real if not real[what])},
    )


def _real_flower_is_stable() -> tuple[dict[str, bool], int]:
    """Try cuts of the linear flower with 4 petals, in fractions.

    Return what must be so, and how many cuts were tried.
    """
    game = catalog.build("flower", petals=4)
    utility = utility_of(game)
    theta = [Fraction(0)] + [Fraction(2, 3)] * 4
    cuts = [Fraction(n, 30) for n in range(1, 21)] + [Fraction(1, 10**n) for n in range(2, 7)]
    left = [
        utility(agent, [t - cut if i == agent else t for i, t in enumerate(theta)])
        for agent in range(1, 5)
        for cut in cuts
    ]
    optimal = check(game, [2, 0, 0, 0, 0])
    parts = {
        "2/3 from each petal satisfies all agents": all(utility(i, theta) >= 1 for i in range(5)),
        "the check finds that stable": check(game, [float(t) for t in theta]).stable is Answer.TRUE,
        "every reduction leaves an agent short": max(left) < 1,
        "the check finds the optimal allocation unstable": optimal.stable is Answer.FALSE,
        "the core can give just 1 less than 2": bool(np.isclose(optimal.spare[0], 1))
        and utility(0, [1, 0, 0, 0, 0]) == 1,
    }
    return parts, len(left)


@CLAIMS.measure("definition-envy-free")
def definition_envy_free(setting: Setting) -> Measured:
    """Compare check and search with every swap tried."""
    examples, evidence, words = _compare_totals(setting, solve_envy_free, "envy_free")
    audited, pairs, wrong, listed = 0, 0, [], 0
    for one in examples:
        fair = one.listing.list_all(one.listing.is_envy_free)
        listed += len(fair)
        found = all_envy_free(one.game, up_to=one.listing.most)
        if sorted(tuple(int(t) for t in theta) for theta in found) != sorted(fair):
            wrong.append(one.name)
        for theta in one.some(AUDITED[setting.full]):
            audited += 1
            report, envy = check(one.game, theta), one.listing.envy(theta)
            pairs += len(envy)
            verdict = Answer.TRUE if one.listing.is_envy_free(theta) else Answer.FALSE
            if report.envy_free is not verdict or report.envy != envy:
                wrong.append(f"{one.name} at {theta}")
    return Measured(
        **evidence, envy_free=listed, audited=audited, pairs=pairs, audits_differ=wrong, words=words
    )


# Prices.


def _compare_prices(
    setting: Setting, price: Callable[..., Any], solve: Callable[..., Any], kind: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compare a price with the quotient of the least totals in the lists.

    Return the evidence, and the words for it.
    """
    wrong, ratios = [], {}
    for one in _list_examples(GAMES[setting.full]):
        found = price(solve(one.game), solve_optimal(one.game))
        above, below = one.least(kind), one.least("feasible")
        ratio = above / below if above is not None and below else None
        ratios[one.name] = ratio
        if not (np.isinf(found.lower) if ratio is None else _is(found, ratio)):
            wrong.append(one.name)
    paper = {name: ratios[name] for name in _paper_games()}
    unlike = _list_unlike(paper, setting.expected["prices"])
    none = sum(ratio is None for ratio in ratios.values())
    evidence = {"games": len(ratios), "differ": wrong, "prices": paper}
    return evidence, {"unlike": unlike, "none": none}


def _is(price: Any, value: float) -> bool:
    return bool(abs(price.lower - value) <= 1e-9 and abs(price.upper - value) <= 1e-9)


@CLAIMS.measure("price-of-stability")
def definition_price_of_stability(setting: Setting) -> Measured:
    """Compare the price with the quotient of totals from the lists."""
    evidence, words = _compare_prices(setting, price_of_stability, solve_stable, "stable")
    flower, nothing = catalog.build("flower", petals=16), LinearGame([[1, 0], [0, 1]], [0, 0])
    real, idle = (
        price_of_stability(solve_stable(game), solve_optimal(game)) for game in (flower, nothing)
    )
    off = abs(real.upper - setting.expected["real_flower"])
    words |= {"off": off, "idle": _is(idle, 1.0)}
    return Measured(**evidence, real_flower=real.upper, words=words)


@CLAIMS.measure("price-of-fairness")
def definition_price_of_fairness(setting: Setting) -> Measured:
    """Compare the price with the lists, and show a linear game in which no minimum exists."""
    evidence, words = _compare_prices(setting, price_of_fairness, solve_envy_free, "envy_free")
    bound = float(setting.expected["not_attained"])
    steps = (8, 16, 32, 64) if setting.full else (8, 16, 32)
    grids = {str(step): float(_least_on_grid(step)) for step in steps}
    nearer = [total - bound for total in grids.values()]
    game = catalog.build("not-attained")
    solution, limit = solve_envy_free(game), check(game, [1, 0.5, 0.5, 0.5, 0.5])
    words |= {
        "first": steps[0],
        "finest": steps[-1],
        "coarse": grids[str(steps[0])],
        "fine": grids[str(steps[-1])],
        "bound": bound,
        "off": abs(solution.bounds.lower - bound),
        "not_attained": solution.status is Status.NOT_ATTAINED,
        "nearer": min(nearer) > 0 and all(b <= 0.51 * a for a, b in pairwise(nearer)),
        "envied": limit.feasible is Answer.TRUE and limit.envy_free is Answer.FALSE,
    }
    return Measured(
        **evidence, least_on_grids=grids, solver_bound=solution.bounds.lower, words=words
    )


def _least_on_grid(steps: int) -> Fraction:
    """Return the least envy-free total of the game "not-attained" in steps of 1/steps.

    u_0 = t_0 + t_1/2, u_1 = t_1, u_l = t_l + t_0/2 for the three leaves, who are alike and so, free
    of envy, give alike: three numbers are left. Nothing above 2 is tried, since it costs more than
    4: a hub with more would envy a helper who gives less, and so would a helper a hub who gives 1/2
    or more; if the hub gives less than that, each leaf must give 3/4. Everything is whole in units
    of half a step.
    """
    unit = 2 * steps
    hub, helper, leaf = np.meshgrid(*(2 * np.arange(2 * steps + 1),) * 3, indexing="ij")
    enough = (2 * hub + helper >= 2 * unit) & (2 * helper >= unit)
    enough &= 2 * leaf + hub >= 2 * unit
    # The hub with the helper's amount, the helper with the hub's; and so on for every pair.
    envy = (hub > helper) & (2 * helper + hub >= 2 * unit)
    envy |= (hub > leaf) & (2 * leaf + helper >= 2 * unit)
    envy |= (helper > hub) & (2 * hub >= unit)
    envy |= (helper > leaf) & (2 * leaf >= unit)
    envy |= (leaf > hub) & (2 * hub + leaf >= 2 * unit)
    envy |= (leaf > helper) & (2 * helper + hub >= 2 * unit)
    total = (hub + helper + 3 * leaf)[enough & ~envy]
    return Fraction(int(total.min()), unit)
