"""Section 3.3 and Appendix D: three agents in a ring, who have no stable equilibrium."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from fedaccord.audit import Answer, audit
from fedaccord.equilibria.general.exhaustive import all_equilibria
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import (
    price_of_fairness,
    price_of_stability,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.games import catalog
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.oracle import (
    HALF,
    ONE,
    Amounts,
    Listing,
    Whole,
    cycle_worlds,
    learnt_utility,
    ring_utility,
)

CLAIMS = Claims()


@CLAIMS.measure("theorem-3")
def theorem_3(setting: Setting) -> Measured:
    """Go through all eight allocations, by the construction, the printed utility and the audit."""
    game = catalog.build("pac-cycle")
    learnt = Listing.of(game, learnt_utility(cycle_worlds(1)))
    printed = Listing.of(game, _printed_cycle)
    same = all(learnt.utilities(t) == printed.utilities(t) for t in learnt.allocations)
    agree = all(
        (report.feasible is Answer.TRUE) == learnt.is_feasible(theta)
        and (report.stable is Answer.TRUE) == learnt.is_stable(theta)
        and (report.envy_free is Answer.TRUE) == learnt.is_envy_free(theta)
        for theta in learnt.allocations
        for report in [audit(game, theta)]
    )
    found: dict[str, Any] = {
        "feasible": len(learnt.list_all(learnt.is_feasible)),
        "equilibria": len(learnt.list_all(learnt.is_stable)),
        "optimal": learnt.least(learnt.is_feasible),
        "envy_free": learnt.least(learnt.is_envy_free),
    }
    stable, optimal, fair = solve_stable(game), solve_optimal(game), solve_envy_free(game)
    return Measured(
        **found,
        audits_agree=agree,
        utilities_agree=same,
        real_none=_real_cycle_has_none(),
        words={
            "of_two": learnt.list_all(lambda theta: sum(theta) >= 2)
            == learnt.list_all(learnt.is_feasible),
            "as_expected": found == {name: setting.expected[name] for name in found},
            "none_proved": stable.status is Status.NONE_EXISTS
            and math.isinf(price_of_stability(stable, optimal).lower),
            "same_totals": (optimal.total, fair.total) == (found["optimal"], found["envy_free"]),
            "fairness": price_of_fairness(fair, optimal).upper,
        },
    )


def _printed_cycle(agent: int, theta: Amounts) -> Fraction:
    """Return 1 if the agent or its predecessor gives a sample, else 1/2."""
    return ONE if theta[agent] == 1 or theta[agent - 1] == 1 else HALF


def _real_cycle_has_none() -> bool:
    """Say whether no real allocation is stable, at a requirement of 1.

    An agent needs 0 if its predecessor gives 1, and 1 otherwise: so everybody gives 0 or 1, unlike
    its predecessor, which three in a ring cannot. Responses are asked at many places.
    """
    game = catalog.build("pac-cycle", strategies="real")
    places = [0.0, 0.25, 0.5, 0.9, 0.999, 1.0]
    for theta in product(places, repeat=3):
        wanted = game.best_responses(np.array(theta))
        if wanted.tolist() != [0.0 if theta[i - 1] == 1 else 1.0 for i in range(3)]:
            return False
    alternating = [t for t in product((0, 1), repeat=3) if all(t[i] != t[i - 1] for i in range(3))]
    return not alternating and solve_stable(game).status is Status.NONE_EXISTS


@CLAIMS.measure("theorem-3-general")
def theorem_3_general(setting: Setting) -> Measured:
    """List all allocations for many d and mu, and compare with the parity of m."""
    cases = _list_cases(*setting.expected["full" if setting.full else "quick"])
    # Rings that are not as claimed, by d and mu: in the list of all allocations, by the search for
    # equilibria, and where the larger requirement does not add one to m.
    failures: dict[str, list[str]] = {"listed": [], "searched": [], "steps": []}
    idle = resting = 0
    for d, requirement, m in cases:
        listing = Listing(ring_utility(d), (requirement,) * 3)
        claimed = [] if m % 2 else [(m // 2,) * 3]
        totals = listing.least(listing.is_feasible), listing.least(listing.is_envy_free)
        stable = listing.list_all(listing.is_stable)
        right = {
            "listed": (stable, *totals) == (claimed, -(-3 * m // 2), 3 * -(-m // 2)),
            "searched": m > setting.expected["solved_up_to"]
            or _search_ring(d, requirement) == claimed,
            "steps": threshold(d, (1 - Fraction(1, d)) * requirement + Fraction(1, d)) == m + 1,
        }
        for name in failures:
            failures[name] += [] if right[name] else [f"{d}, {requirement}"]
        # Somebody has more than it needs and gives nothing.
        lazy = [
            theta
            for theta in listing.list_all(listing.is_feasible)
            if any(t == 0 and theta[i - 1] > m for i, t in enumerate(theta))
        ]
        idle, resting = idle + len(lazy), resting + sum(map(listing.is_stable, lazy))
    # Every world and every sample, d = 2, up to 4 samples.
    learnt, printed = learnt_utility(cycle_worlds(2)), ring_utility(2)
    places = [theta for theta in product(range(3), repeat=3) if sum(theta) <= 4]
    agrees = all(learnt(i, theta) == printed(i, theta) for theta in places for i in range(3))
    rounding, tried = _count_float_errors()
    return Measured(
        cases=len(cases),
        odd=sum(m % 2 for _, _, m in cases),
        failures=failures,
        givers_of_nothing=idle,
        givers_of_nothing_stable=resting,
        float_errors=rounding,
        words={"construction_agrees": agrees, "tried": tried},
    )


def threshold(d: int, requirement: Fraction) -> int:
    """Return m(mu), the least number of samples that satisfies an agent."""
    m = 0
    while ring_utility(d)(0, [m, 0, 0]) < requirement:
        m += 1
    return m


def _list_cases(largest_d: int, largest_m: int) -> list[tuple[int, Fraction, int]]:
    """List (d, mu, m): requirements that m samples meet exactly, and ones between two of these."""
    cases = []
    for d in range(2, largest_d + 1):
        exact = [ring_utility(d)(0, [m, 0, 0]) for m in range(largest_m + 1)]
        for m in range(1, largest_m + 1):
            cases += [(d, exact[m], m), (d, (exact[m - 1] + exact[m]) / 2, m)]
    return cases


def _search_ring(d: int, requirement: Fraction) -> list[Whole]:
    """Return the equilibria that the search finds."""
    game = catalog.build("pac-cycle", d=d, requirement=str(requirement))
    return [tuple(int(t) for t in theta) for theta in all_equilibria(game)]


def _count_float_errors() -> tuple[int, int]:
    """Count thresholds that ceil(log(2 (1 - mu)) / log(1 - 1/d)) gets wrong, and all tried."""
    wrong, tried = 0, list(product(range(2, 12), range(1, 21)))
    for d, m in tried:
        requirement = float(ring_utility(d)(0, [m, 0, 0]))
        wrong += math.ceil(math.log(2 * (1 - requirement)) / math.log(1 - 1 / d)) != m
    return wrong, len(tried)
