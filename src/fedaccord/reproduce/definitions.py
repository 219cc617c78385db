"""Section 2.1: each definition on worked examples, against lists of everything, in fractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from fedaccord.audit import Answer, audit
from fedaccord.equilibria.all_concepts import price_of_fairness, price_of_stability
from fedaccord.equilibria.envy_free import solve_envy_free
from fedaccord.equilibria.general.exhaustive import all_envy_free, all_equilibria
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.stable import solve_stable
from fedaccord.games import catalog
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.pac.exact import PacGame
from fedaccord.reproduce import canonical, draws
from fedaccord.reproduce.claims import Claims, Finding, Setting, judged, not_so, weighed
from fedaccord.reproduce.oracle import (
    Listing,
    Whole,
    cycle_worlds,
    learnt_utility,
    linear_utility,
    read_rows,
)

CLAIMS = Claims()
SEED = 20210304
# How many random games, quick and full.
GAMES = (12, 150)
# Of each game at most this many allocations are audited, quick and full.
AUDITED = (25, 400)


@dataclass(frozen=True, eq=False)
class Worked:
    """A whole-number game and the list of all its allocations."""

    name: str
    game: Game
    listing: Listing

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


def _listing(game: Game) -> Listing:
    if isinstance(game, PacGame):
        return Listing.of(game, learnt_utility(cycle_worlds(1)))
    return Listing.of(game)


def _paper_games() -> dict[str, Game]:
    """The paper's own games, small, over whole numbers."""
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
    """Give the paper's games and some random ones."""
    random = np.random.default_rng(SEED)
    games = _paper_games()
    for number in range(count):
        agents = int(random.integers(2, 4))
        draw = draws.linear_game if number % 2 else draws.coverage_game
        games[f"random {number}"] = draw(random, agents, strategies="integer")
    return games


@cache
def _listings(count: int) -> dict[str, Listing]:
    """List what several rows need; the games themselves, with all they remember, are made anew."""
    return {name: _listing(game) for name, game in _games(count).items()}


def _worked(count: int) -> list[Worked]:
    listings = _listings(count)
    return [Worked(name, game, listings[name]) for name, game in _games(count).items()]


def _totals(listing: Listing) -> dict[str, Any]:
    kinds = {
        "optimal": listing.is_feasible,
        "stable": listing.is_stable,
        "envy_free": listing.is_envy_free,
    }
    return {name: listing.least(kind) for name, kind in kinds.items()}


def _sizes(worked: Sequence[Worked]) -> tuple[int, int]:
    """How many games there are, and allocations in all."""
    return len(worked), sum(len(one.listing.allocations) for one in worked)


def _found_total(total: float) -> float | None:
    return total if np.isfinite(total) else None


def _least_totals(
    setting: Setting, solve: Callable[..., Any], kind: str
) -> tuple[dict[str, bool], dict[str, Any], list[Worked]]:
    """Compare a solver with the lists, and the lists with the numbers expected of the paper's.

    Give what must be so, the evidence, and the games.
    """
    worked = _worked(GAMES[setting.full])
    wrong, least = [], {}
    for one in worked:
        least[one.name] = _totals(one.listing)[kind]
        solution = solve(one.game)
        proved = Status.NONE_EXISTS if least[one.name] is None else Status.OPTIMAL
        if _found_total(solution.total) != least[one.name] or solution.status is not proved:
            wrong.append(one.name)
    paper = {name: least[name] for name in _paper_games()}
    games, allocations = _sizes(worked)
    evidence = {
        "games": games,
        "allocations": allocations,
        "differ": wrong,
        "least_totals": paper,
        "seed": SEED,
    }
    unlike = _unlike(paper, setting.expected["totals"])
    parts = {
        "the solver finds the least total of every list": not wrong,
        f"the totals of {_named(unlike)} are those expected": not unlike,
    }
    return parts, evidence, worked


def _unlike(found: Mapping[str, float | None], expected: Mapping[str, float]) -> list[str]:
    """Name the games whose numbers are not those expected; 0 is expected where there is none."""
    return [
        name
        for name in {**found, **expected}
        if abs((found.get(name, -1.0) or 0.0) - expected.get(name, -2.0)) > 1e-9
    ]


def _named(games: Sequence[str]) -> str:
    return ", ".join(games) or "the paper's games"


def _listed_totals(totals: Mapping[str, Any]) -> str:
    words = {
        "pac-cycle": "in the cycle of Theorem 3",
        "two-agents": "for the two agents of Theorem 7",
        "k4": "in K4",
        "flower-linear": "in the linear flower with 4 petals",
        "flower-coverage": "in the same flower with coverage",
    }
    return ", ".join(f"{totals[key] or 'none'} {word}" for key, word in words.items())


@CLAIMS.add(
    "definition-optimal",
    claim="The optimal solution is the feasible allocation with the least total",
    place="Section 2.1, Definition 1",
    paper="Among all allocations that satisfy everybody, one with the least sum of contributions.",
    minutes=(0.05, 0.5),
)
def definition_optimal(setting: Setting) -> Finding:
    """Compare the solver with a list of all allocations, and over the reals with prices by hand."""
    parts, evidence, _ = _least_totals(setting, solve_optimal, "optimal")
    root = int(setting.expected["flower_root"])
    solution = solve_optimal(catalog.build("flower", petals=root * root))
    bound = _bound_by_hand(solution.game, root)
    parts["over the reals the total is that bound"] = abs(solution.total - bound) <= 1e-9 * bound
    parts[f"the bound is {root}"] = bound == root
    return judged(
        all(parts.values()),
        f"In {evidence['games']} games the solver's total is the least of a list of all "
        f"{evidence['allocations']:,} allocations worth looking at, in exact fractions "
        f"({len(evidence['differ'])} differ): {_listed_totals(evidence['least_totals'])}. Over the "
        f"reals the flower with {root**2} "
        f"petals takes {solution.total:.6g}, and a price of 1 on one petal a group proves that no "
        f"allocation takes less than {bound:.6g}.{not_so(parts)}",
        evidence={**evidence, "real_flower": solution.total, "bound_by_hand": bound},
    )


def _bound_by_hand(game: Game, root: int) -> float:
    """Bound the flower's optimum by weak duality: mu'y / max(W'y), y = 1 on one petal a group."""
    assert isinstance(game, LinearGame)
    prices = np.zeros(game.size)
    prices[1::root] = 1.0
    return float(game.requirements @ prices / (game.benefits.T @ prices).max())


@CLAIMS.add(
    "definition-stable",
    claim="In a stable equilibrium nobody can give less alone and still reach its requirement",
    place="Section 2.1, Definition 2",
    paper="A feasible allocation from which no agent can lower its own contribution, the others "
    "staying, and keep its utility at its requirement or above.",
    minutes=(0.05, 1),
)
def definition_stable(setting: Setting) -> Finding:
    """Compare audit and search with every lower contribution tried."""
    parts, evidence, worked = _least_totals(setting, solve_stable, "stable")
    audited, wrong, listed = 0, [], 0
    for one in worked:
        equilibria = one.listing.list_all(one.listing.is_stable)
        listed += len(equilibria)
        found = [tuple(int(t) for t in theta) for theta in all_equilibria(one.game)]
        if sorted(found) != sorted(equilibria):
            wrong.append(one.name)
        for theta in one.some(AUDITED[setting.full]):
            audited += 1
            verdict = audit(one.game, theta).stable
            if verdict is not (Answer.TRUE if one.listing.is_stable(theta) else Answer.FALSE):
                wrong.append(f"{one.name} at {theta}")
    real, cuts = _real_flower_is_stable()
    parts = {**parts, "search and audits agree with the lists": not wrong, **real}
    return judged(
        all(parts.values()),
        f"Every smaller contribution of every agent was tried in {evidence['games']} games: the "
        f"{listed} equilibria so found are exactly those of the search, and {audited:,} audits "
        f"agree with it ({len(wrong)} differ). The least totals: "
        f"{_listed_totals(evidence['least_totals'])}. Over the reals the flower with 4 petals "
        f"rests at 2/3 from each petal: all of {cuts} cuts, down to a millionth, leave somebody "
        f"short; in its optimal allocation the core can cut 1 of its 2.{not_so(parts)}",
        evidence={
            **evidence,
            "equilibria": listed,
            "audited": audited,
            "audits_differ": wrong,
            "real_flower": real,
        },
    )


def _real_flower_is_stable() -> tuple[dict[str, bool], int]:
    """Try cuts of the linear flower with 4 petals, in fractions.

    Give what must be so, and how many cuts were tried.
    """
    game = catalog.build("flower", petals=4)
    assert isinstance(game, LinearGame)
    utility = linear_utility(read_rows(game.dense_benefits.tolist()))
    theta = [Fraction(0)] + [Fraction(2, 3)] * 4
    cuts = [Fraction(n, 30) for n in range(1, 21)] + [Fraction(1, 10**n) for n in range(2, 7)]
    left = [
        utility(agent, [t - cut if i == agent else t for i, t in enumerate(theta)])
        for agent in range(1, 5)
        for cut in cuts
    ]
    optimal = audit(game, [2, 0, 0, 0, 0])
    parts = {
        "2/3 from each petal satisfies everybody": all(utility(i, theta) >= 1 for i in range(5)),
        "the audit finds that stable": audit(game, [float(t) for t in theta]).stable is Answer.TRUE,
        "every cut leaves somebody short": max(left) < 1,
        "the audit finds the optimal allocation unstable": optimal.stable is Answer.FALSE,
        "the core can cut just 1 of 2": bool(np.isclose(optimal.spare[0], 1))
        and utility(0, [1, 0, 0, 0, 0]) == 1,
    }
    return parts, len(left)


@CLAIMS.add(
    "definition-envy-free",
    claim="In an envy-free allocation nobody could swap with a smaller contribution and be "
    "satisfied",
    place="Section 2.1, Definition 3",
    paper="A feasible allocation in which no agent, after exchanging contributions with an agent "
    "who gives less, would still reach its requirement; the exchange must be allowed.",
    minutes=(0.05, 1),
)
def definition_envy_free(setting: Setting) -> Finding:
    """Compare audit and search with every swap tried."""
    parts, evidence, worked = _least_totals(setting, solve_envy_free, "envy_free")
    audited, pairs, wrong, listed = 0, 0, [], 0
    for one in worked:
        fair = one.listing.list_all(one.listing.is_envy_free)
        listed += len(fair)
        found = all_envy_free(one.game, up_to=one.listing.most)
        if sorted(tuple(int(t) for t in theta) for theta in found) != sorted(fair):
            wrong.append(one.name)
        for theta in one.some(AUDITED[setting.full]):
            audited += 1
            report, envy = audit(one.game, theta), one.listing.envy(theta)
            pairs += len(envy)
            fits = report.envy == envy
            verdict = Answer.TRUE if one.listing.is_envy_free(theta) else Answer.FALSE
            if report.envy_free is not verdict or not fits:
                wrong.append(f"{one.name} at {theta}")
    parts["search and audits agree with the lists"] = not wrong
    return judged(
        all(parts.values()),
        f"Every swap was tried in {evidence['games']} games: the {listed:,} envy-free allocations "
        f"so found are exactly those of the search, and {audited:,} audits name the same {pairs:,} "
        f"pairs of envious and envied ({len(wrong)} differ). The least totals: "
        f"{_listed_totals(evidence['least_totals'])}.{not_so(parts)}",
        evidence={
            **evidence,
            "envy_free": listed,
            "audited": audited,
            "pairs": pairs,
            "audits_differ": wrong,
        },
    )


# Prices.


def _prices(
    setting: Setting, price: Callable[..., Any], solve: Callable[..., Any], kind: str
) -> tuple[list[str], dict[str, Fraction | None], int]:
    """Compare a price with the quotient of the least totals in the lists."""
    wrong, ratios = [], {}
    worked = _worked(GAMES[setting.full])
    for one in worked:
        totals = _totals(one.listing)
        found = price(solve(one.game), solve_optimal(one.game))
        above, below = totals[kind], totals["optimal"]
        ratio = Fraction(above, below) if above is not None and below else None
        ratios[one.name] = ratio
        right = np.isinf(found.lower) if ratio is None else _is(found, float(ratio))
        if not right:
            wrong.append(one.name)
    return wrong, ratios, len(worked)


def _is(price: Any, value: float) -> bool:
    return bool(abs(price.lower - value) <= 1e-9 and abs(price.upper - value) <= 1e-9)


@CLAIMS.add(
    "price-of-stability",
    claim="The price of stability is the least stable total over the optimal total",
    place="Section 2.1, Definition 4",
    paper="The minimum, over all stable equilibria, of the sum of contributions, divided by that "
    "of the optimal solution.",
    minutes=(0.05, 0.5),
)
def definition_price_of_stability(setting: Setting) -> Finding:
    """Compare the price with the quotient of totals from the lists."""
    wrong, ratios, games = _prices(setting, price_of_stability, solve_stable, "stable")
    paper = {name: _float(ratios[name]) for name in _paper_games()}
    flower = catalog.build("flower", petals=16)
    real = price_of_stability(solve_stable(flower), solve_optimal(flower))
    nothing = LinearGame([[1, 0], [0, 1]], [0, 0])
    idle = price_of_stability(solve_stable(nothing), solve_optimal(nothing))
    none = sum(ratio is None for ratio in ratios.values())
    unlike = _unlike(paper, setting.expected["prices"])
    parts = {
        "every price is the quotient": not wrong,
        f"the prices of {_named(unlike)} are those expected": not unlike,
        f"over the reals the flower's is {setting.expected['real_flower']:.6g}": abs(
            real.upper - setting.expected["real_flower"]
        )
        <= 1e-6,
        "0/0 is given as 1": _is(idle, 1.0),
    }
    return judged(
        all(parts.values()),
        f"In {games} games the price is the quotient of the least totals in the lists "
        f"({len(wrong)} differ): {_shown(paper['flower-linear'])} for the linear flower with 4 "
        f"petals over whole numbers, {_shown(paper['flower-coverage'])} with coverage; over the "
        f"reals {real.upper:.6g} with 16 petals. It is defined only where an equilibrium exists "
        f"and somebody must give something: where there is none, as in {none} of the games, the "
        f"price is given as infinite; 0/0 is given as 1.{not_so(parts)}",
        evidence={"games": games, "differ": wrong, "prices": paper, "real_flower": real.upper},
    )


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _shown(price: float | None) -> str:
    return "none" if price is None else f"{price:.4g}"


@CLAIMS.add(
    "price-of-fairness",
    claim="The price of fairness is the least envy-free total over the optimal total",
    place="Section 2.1, Definition 5",
    paper="The minimum, over all envy-free allocations, of the sum of contributions, divided by "
    "that of the optimal solution.",
    minutes=(0.05, 0.5),
)
def definition_price_of_fairness(setting: Setting) -> Finding:
    """Compare the price with the lists, and show a linear game in which no minimum exists."""
    wrong, ratios, games = _prices(setting, price_of_fairness, solve_envy_free, "envy_free")
    paper = {name: _float(ratios[name]) for name in _paper_games()}
    bound = float(setting.expected["not_attained"])
    steps = (8, 16, 32, 64) if setting.full else (8, 16, 32)
    grids = {step: _least_on_grid(step) for step in steps}
    nearer = [float(total) - bound for total in grids.values()]
    solution = solve_envy_free(catalog.build("not-attained"))
    unlike = _unlike(paper, setting.expected["prices"])
    parts = {
        "every price is the quotient": not wrong,
        f"the prices of {_named(unlike)} are those expected": not unlike,
        "the solver says that the bound is not attained": solution.status is Status.NOT_ATTAINED,
        f"the solver's bound is {bound:g}": abs(solution.bounds.lower - bound) <= 1e-6,
    }
    counter = {
        "ever finer steps come nearer, and none arrives": min(nearer) > 0
        and all(b <= 0.51 * a for a, b in pairwise(nearer)),
        f"at {bound:g} itself an agent envies another": _has_envy_at_the_bound(),
    }
    first, finest = steps[0], steps[-1]
    return weighed(
        all(parts.values()),
        all(counter.values()),
        f"In {games} whole-number games the price is the quotient of the least totals in the lists "
        f"({len(wrong)} differ): {_shown(paper['pac-cycle'])} for the cycle of Theorem 3. But over "
        "the reals there may be no least total: in a linear game of a hub, a helper and three "
        "leaves, who must give alike to be free of envy, all allocations of up to 2 each in steps "
        f"of 1/{first} to 1/{finest} were tried, and the cheapest envy-free one falls from "
        f"{float(grids[first]):.5g} to {float(grids[finest]):.5g}, always above {bound:g}; at "
        f"{bound:g} itself an agent envies another.{not_so({**parts, **counter})}",
        correction="Read the least total as the greatest lower bound of the totals: envy-free "
        "allocations may come as near to it as one likes without one that has it.",
        evidence={
            "games": games,
            "differ": wrong,
            "prices": paper,
            "least_on_grids": {str(step): float(total) for step, total in grids.items()},
            "solver_bound": solution.bounds.lower,
        },
    )


def _least_on_grid(steps: int) -> Fraction:
    """Give the least envy-free total of the game "not-attained" in steps of 1/steps.

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


def _has_envy_at_the_bound() -> bool:
    """Say whether the limit of cheaper and cheaper allocations is feasible and full of envy."""
    report = audit(catalog.build("not-attained"), [1, 0.5, 0.5, 0.5, 0.5])
    return report.feasible is Answer.TRUE and report.envy_free is Answer.FALSE


# Section 2.2 follows.
CLAIMS.include_all(canonical.CLAIMS)
