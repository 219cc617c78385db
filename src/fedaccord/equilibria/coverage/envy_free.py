"""Envy-free allocations of coverage games: the equal allocation, better ones, and lower bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check.decide import has_no_envy
from fedaccord.equilibria.coverage import scip
from fedaccord.equilibria.coverage.cuts import integer_optimum, quick_bound, smooth_bound
from fedaccord.equilibria.coverage.optimal import (
    cap_by_total,
    cut_work_fits,
    fits_scip,
    optimal_coverage,
)
from fedaccord.equilibria.coverage.stable import fits_exhaustive, stable_coverage
from fedaccord.equilibria.coverage.symmetry import Symmetry, find_symmetry, least_by_class, quotient
from fedaccord.equilibria.result import Claim, Deadline, Solution, Status, equal_allocation
from fedaccord.games.coverage import CoverageGame

# Boxes of class amounts are divided for at most this many classes and seconds.
QUOTIENT_LIMIT = 3
QUOTIENT_SECONDS = 5.0

# SCIP is asked about envy, which takes a product per pair and point, up to this many agents; and
# what it finds must be free of envy by this much, in sum_x q_ix E_x.
SCIP_AGENTS = 5
ENVY_MARGIN = 1e-5

# Allocations of more agents than this are not checked: envy is a matter of pairs.
AUDIT_LIMIT = 20_000


def envy_free_coverage(claim: Claim[CoverageGame], method: str = "auto") -> Solution:
    """Find a cheap envy-free allocation, and bound the least total of one.

    The equal allocation is envy-free (Theorem 1); the optimum and the stable equilibrium may be,
    and are taken where the check says so. From below: the optimum, sharpened by what envy-freeness
    forces on agents that are alike. Small games are settled by SCIP or by trying everything.

    method: "auto", or "bounds" (no SCIP, no enumeration).
    """
    game = claim.game
    best = equal_allocation(game)
    if best is None:
        return claim.failed(
            "equal", "Within the limits, equal contributions do not meet every requirement."
        )
    if game.is_integer and method == "auto" and _searchable(game, best):
        from fedaccord.equilibria.general.exhaustive import exhaustive_envy_free

        found = exhaustive_envy_free(game, deadline=Deadline(claim.deadline.left / 2))
        if found.status is Status.OPTIMAL:
            return found
    return _bound(claim, best, method)


def _searchable(game: CoverageGame, best: Vector) -> bool:
    steps = np.floor(cap_by_total(game, best)) - game.minimums + 1
    return game.size <= 10 and fits_exhaustive(game) and float(np.log(steps).sum()) <= 25


def _bound(claim: Claim[CoverageGame], best: Vector, method: str) -> Solution:
    game, deadline = claim.game, claim.deadline
    symmetry = find_symmetry(game)
    lower, name = game.total(game.minimums), "equal"
    classes = len(symmetry.members)
    if not game.is_integer and classes <= QUOTIENT_LIMIT and classes < max(game.size, 2):
        lower, amounts = _class_bound(claim, symmetry, best)
        if amounts is not None and _is_envy_free(claim, amounts):
            best, name = amounts, "equal by class"
        if claim.is_closed(lower, best):
            return claim.bounded(name, lower, best)
    lower = max(lower, _bound_by_smooth_form(game, symmetry, best, Deadline(deadline.left / 3)))
    if not claim.is_closed(lower, best):
        for title, candidate, bound in _candidates(claim, method):
            lower = max(lower, bound)
            if candidate is None or game.total(candidate) >= game.total(best):
                continue
            if _is_envy_free(claim, candidate):
                best, name = candidate, title
    if method == "auto" and not claim.is_closed(lower, best) and _fits_envy(game):
        return _by_scip(claim, best, lower, name)
    return claim.bounded(name, lower, best)


def _class_bound(
    claim: Claim[CoverageGame], symmetry: Symmetry, best: Vector
) -> tuple[float, Vector | None]:
    """Solve for one amount per class, which every envy-free allocation has."""
    upper = claim.game.total(best)
    gap = 0.4 * claim.tolerance * upper
    share = Deadline(min(claim.deadline.left / 2, QUOTIENT_SECONDS))
    lower, amounts = least_by_class(quotient(claim.game, symmetry), upper, gap, share)
    return lower, None if amounts is None else amounts[symmetry.labels]


def _bound_by_smooth_form(
    game: CoverageGame, symmetry: Symmetry, best: Vector, deadline: Deadline
) -> float:
    """Bound from below by the smooth form with the rows that envy-freeness adds."""
    if not cut_work_fits(game):
        return quick_bound(game, best)[0]
    rows, upper = symmetry.rows(), game.total(best)
    if game.is_integer:
        return integer_optimum(game, deadline, upper=upper, extra=rows).lower
    return smooth_bound(game, deadline, upper=upper, extra=rows).lower


def _candidates(
    claim: Claim[CoverageGame], method: str
) -> Iterator[tuple[str, Vector | None, float]]:
    """Return the optimum and the equilibrium: their names, themselves and bounds on the total.

    The optimum's lower bound is one on every feasible total, so on every envy-free one.
    """
    game = claim.game
    how = "auto" if method == "auto" else "cuts"
    share = Deadline(claim.deadline.left / 3)
    optimum = optimal_coverage(Claim(game, "optimal", claim.tolerance, share), how)
    yield "optimal", optimum.contributions, optimum.bounds.lower
    share = Deadline(claim.deadline.left / 3)
    stable = stable_coverage(Claim(game, "stable", claim.tolerance, share), "sweeps")
    yield "stable", stable.contributions, 0.0
    low, high = np.ceil(game.minimums), np.floor(game.limits)
    if (low > high).any():
        return
    whole = game.replace(strategies="integer", limits=high, minimums=low)
    best = equal_allocation(whole) if whole.short_at_limits() is None else None
    if best is not None and _searchable(whole, best):
        from fedaccord.equilibria.general.exhaustive import exhaustive_envy_free

        share = Deadline(claim.deadline.left / 3)
        yield "whole numbers", exhaustive_envy_free(whole, deadline=share).contributions, 0.0


def _is_envy_free(claim: Claim[CoverageGame], candidate: Vector) -> bool:
    if claim.game.size > AUDIT_LIMIT:
        return False
    feasible = claim.game.is_feasible(candidate)
    return feasible and has_no_envy(claim.game, candidate, claim.tolerance)


def _fits_envy(game: CoverageGame) -> bool:
    free = not (np.isfinite(game.limits).any() or game.minimums.any())
    return free and game.size <= SCIP_AGENTS and not game.is_integer


def _by_scip(claim: Claim[CoverageGame], best: Vector, lower: float, name: str) -> Solution:
    """Let SCIP look for a cheaper one; then bound all by the relaxation where ties are no envy."""
    game = claim.game
    most = cap_by_total(game, best)
    if not fits_scip(game, most):
        return claim.bounded(name, lower, best)
    half = Deadline(claim.deadline.left / 2)
    found = scip.solve_scip(game, half, most=most, kind="envy-free", margin=ENVY_MARGIN)
    if found.contributions is not None:
        candidate = np.where(found.contributions < 1e-9, 0.0, found.contributions)
        cheaper = game.total(candidate) < game.total(best)
        if cheaper and _is_envy_free(claim, candidate):
            best, name = candidate, "scip"
    if not claim.is_closed(lower, best):
        rest = scip.solve_scip(
            game, claim.deadline, most=cap_by_total(game, best), kind="envy-free"
        )
        lower, name = max(lower, rest.bound), "scip"
    return claim.bounded(name, lower, best)
