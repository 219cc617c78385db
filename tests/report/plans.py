"""Games with plans worked out by hand, for figures and pages."""

import numpy as np
from scipy import sparse

from fedaccord.check import check
from fedaccord.equilibria.result import Interval, Price, Solution, Status
from fedaccord.games.catalog.entries import build
from fedaccord.games.linear import LinearGame

HOSTILE = ("<script>alert(1)</script>", "x" * 200, "$x$ and $\\frac{", "=cmd()", "\u202etab\there")


def solution(game, concept, given, status=Status.OPTIMAL, bounds=None, **rest):
    """Claim a plan, its total as both bounds unless others are given."""
    values = None if given is None else np.array(given, dtype=float)
    total = np.inf if values is None else game.total(values)
    ends = Interval(*(bounds or (total, total)))
    return Solution(game, concept, "hand", status, ends, values, **rest)


def solved(game, **plans):
    """Claim plans by concept (envy_free for envy-free), and audit them."""
    named = {name.replace("_", "-"): given for name, given in plans.items()}
    claims = {name: solution(game, name, given) for name, given in named.items()}
    checks = {name: check(game, given) for name, given in named.items() if given is not None}
    return claims, checks


def hospitals(names=("University", "City", "Rural")):
    """Give the README's hospitals, their plans and prices.

    Optimal: Rural gives nothing, City and Rural are exactly satisfied:
        0.6 x + y = 1440,  0.7 x + 0.1 y = 930.
    Envy-free: University and City alike, City and Rural exactly satisfied:
        1.6 x + 0.1 z = 1440,  0.8 x + z = 930.
    """
    benefits = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
    game = LinearGame(benefits, [1440, 1440, 930], agents=list(names))
    first = (930 - 144) / (0.7 - 0.06)
    alike = (1440 - 93) / (1.6 - 0.08)
    claims, checks = solved(
        game,
        optimal=[first, 1440 - 0.6 * first, 0],
        stable=[300, 1200, 600],
        envy_free=[alike, alike, 930 - 0.8 * alike],
    )
    total = first + 1440 - 0.6 * first
    prices = {
        "price_of_stability": Price(2100 / total, 2100 / total),
        "price_of_fairness": Price(claims["envy-free"].total / total, np.inf),
    }
    return game, claims, checks, prices


def flower(model="linear"):
    """Give the flower of 16 petals: optimal 4, stable 64/7, envy-free 8.5."""
    game = build("flower", model=model)
    claims, checks = solved(
        game, optimal=[4, *[0] * 16], stable=[0, *[4 / 7] * 16], envy_free=[0.5] * 17
    )
    return game, claims, checks


def ring(size, **frame):
    """Give agents in a ring who gain 0.3 from each neighbour: 1/1.6 each is stable."""
    here = np.arange(size)
    rows = np.tile(here, 3)
    columns = np.concatenate([here, (here + 1) % size, (here - 1) % size])
    values = np.repeat([1.0, 0.3, 0.3], size)
    matrix = sparse.csr_array((values, (rows, columns)), shape=(size, size))
    game = LinearGame(matrix, np.ones(size), **frame)
    claims, checks = solved(game, stable=np.full(size, 1 / 1.6), envy_free=np.ones(size))
    return game, claims, checks
