"""Section 3.3 and Appendix D: three agents in a ring, who have no stable equilibrium."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

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
    found = {
        "feasible": len(learnt.list_all(learnt.is_feasible)),
        "equilibria": len(learnt.list_all(learnt.is_stable)),
        "optimal": learnt.least(learnt.is_feasible),
        "envy_free": learnt.least(learnt.is_envy_free),
    }
    stable, optimal, fair = solve_stable(game), solve_optimal(game), solve_envy_free(game)
    fairness = price_of_fairness(fair, optimal).upper
    real = _real_cycle_has_none()
    parts = {
        "those with two givers or more, and no others, are feasible": all(
            learnt.is_feasible(theta) == (sum(theta) >= 2) for theta in learnt.allocations
        ),
        "the printed utility is that of the construction": same,
        "the audit agrees": agree,
        "these numbers are those expected": found == {k: setting.expected[k] for k in found},
        "the search proves that there is no equilibrium": stable.status is Status.NONE_EXISTS
        and math.isinf(price_of_stability(stable, optimal).lower),
        "the solvers find the same totals": (optimal.total, fair.total)
        == (found["optimal"], found["envy_free"]),
        "the price of fairness is that expected": fairness == setting.expected["price_of_fairness"],
        "real contributions do not help": real,
    }
    evidence = {**found, "audits_agree": agree, "utilities_agree": same, "real_none": real}
    return Measured(parts, evidence, {"fairness": fairness})


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


@dataclass
class _Tally:
    """What became of the rings: those that are not as claimed, by d and mu.

    listed, searched: in the list of all allocations, and by the search for equilibria.
    steps: where the larger requirement does not add one to m.
    idle, resting: allocations where somebody has more than it needs and gives nothing, and how many
        of them are stable.
    """

    listed: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    idle: int = 0
    resting: int = 0


@CLAIMS.measure("theorem-3-general")
def theorem_3_general(setting: Setting) -> Measured:
    """List all allocations for many d and mu, and compare with the parity of m."""
    cases = _ring_cases(setting)
    searched = setting.expected["solved_up_to"]
    tally = _Tally()
    for d, requirement, m in cases:
        _look_at_ring(tally, d, requirement, m, search=m <= searched)
    rounding, tried = _float_errors()
    return Measured(
        {
            "the printed utility is that of the construction": _construction_agrees(),
            "equilibria and least totals are as claimed": not tally.listed,
            "the search agrees": not tally.searched,
            "the step adds one to m": not tally.steps,
            "none of those who give nothing is stable": not tally.resting,
        },
        {
            "cases": len(cases),
            "odd": sum(m % 2 for _, _, m in cases),
            "failures": {
                "listed": tally.listed,
                "searched": tally.searched,
                "steps": tally.steps,
            },
            "givers_of_nothing": tally.idle,
            "givers_of_nothing_stable": tally.resting,
            "float_errors": rounding,
        },
        {"searched": searched, "tried": tried},
    )


def _look_at_ring(tally: _Tally, d: int, requirement: Fraction, m: int, *, search: bool) -> None:
    """List all allocations of a ring, and compare with the parity of m."""
    listing, case = Listing(ring_utility(d), (requirement,) * 3), f"{d}, {requirement}"
    claimed = [] if m % 2 else [(m // 2,) * 3]
    totals = listing.least(listing.is_feasible), listing.least(listing.is_envy_free)
    if (listing.list_all(listing.is_stable), *totals) != (claimed, -(-3 * m // 2), 3 * -(-m // 2)):
        tally.listed.append(case)
    if search and not _solver_agrees(d, requirement, claimed):
        tally.searched.append(case)
    if threshold(d, (1 - Fraction(1, d)) * requirement + Fraction(1, d)) != m + 1:
        tally.steps.append(case)
    idle = [
        theta
        for theta in listing.allocations
        if any(t == 0 and theta[i - 1] > m for i, t in enumerate(theta))
        and listing.is_feasible(theta)
    ]
    tally.idle += len(idle)
    tally.resting += sum(map(listing.is_stable, idle))


def threshold(d: int, requirement: Fraction) -> int:
    """Return m(mu), the least number of samples that satisfies an agent."""
    m = 0
    while ring_utility(d)(0, [m, 0, 0]) < requirement:
        m += 1
    return m


def _ring_cases(setting: Setting) -> list[tuple[int, Fraction, int]]:
    """List (d, mu, m): requirements that m samples meet exactly, and ones between two of these."""
    largest_d, largest_m = setting.expected["full" if setting.full else "quick"]
    cases = []
    for d in range(2, largest_d + 1):
        exact = [ring_utility(d)(0, [m, 0, 0]) for m in range(largest_m + 1)]
        for m in range(1, largest_m + 1):
            cases += [(d, exact[m], m), (d, (exact[m - 1] + exact[m]) / 2, m)]
    return cases


def _solver_agrees(d: int, requirement: Fraction, claimed: Sequence[Whole]) -> bool:
    """Say whether the search for equilibria finds just those claimed."""
    game = catalog.build("pac-cycle", d=d, requirement=str(requirement))
    return [tuple(int(t) for t in theta) for theta in all_equilibria(game)] == list(claimed)


def _construction_agrees() -> bool:
    """Compare the printed utility with every world and every sample, d = 2, up to 4 samples."""
    learnt, printed = learnt_utility(cycle_worlds(2)), ring_utility(2)
    places = [theta for theta in product(range(3), repeat=3) if sum(theta) <= 4]
    return all(learnt(i, theta) == printed(i, theta) for theta in places for i in range(3))


def _float_errors() -> tuple[int, int]:
    """Count thresholds that ceil(log(2 (1 - mu)) / log(1 - 1/d)) gets wrong, and all tried."""
    wrong, tried = 0, list(product(range(2, 12), range(1, 21)))
    for d, m in tried:
        requirement = float(ring_utility(d)(0, [m, 0, 0]))
        wrong += math.ceil(math.log(2 * (1 - requirement)) / math.log(1 - 1 / d)) != m
    return wrong, len(tried)
