"""Claims about linear games, confirmed in exact arithmetic or taken back.

Solvers work in doubles and within tolerances. What they claim of a small game is compared with what
branch and bound finds in fractions: the claim stands where both agree and the check does not refute
the allocation; where they differ, what was found exactly is returned instead; where the search does
not end in time, the claim becomes bounds that are proved.

In larger games the optimum, and the equilibrium of a potential, come with prices and gaps that
prove their bounds up to rounding, and these stand. The proof of a mixed-integer program cannot be
read, and its tolerances are absolute: what it claims of a large game is taken back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector, exact_numbers, simplest_fraction
from fedaccord.check import Answer, check
from fedaccord.equilibria.linear.envy_free import find_forced_pairs, make_pair_rows
from fedaccord.equilibria.linear.optimal import is_tame, normalise, round_bound
from fedaccord.equilibria.programs import (
    Alternative,
    Least,
    Program,
    Row,
    Undecided,
    bound_by_prices,
    least_total,
    linear_program,
    to_floats,
)
from fedaccord.equilibria.result import (
    Claim,
    Concept,
    Deadline,
    Interval,
    Select,
    Solution,
    Status,
    limit_work,
    stable_box,
)
from fedaccord.games.base import ROUNDING
from fedaccord.games.linear import LinearGame
from fedaccord.games.rows import ExactRow, RowGame

# A goal: whole benefits, and what they must add up to.
WholeRow: TypeAlias = tuple[list[int], Fraction]

# Up to this many agents every claim is confirmed; up to the second number, those of mixed-integer
# programs.
AGENTS = 10
MIXED_AGENTS = 24
# What the search may take: nodes, and seconds of what is left; for what was found or claimed at
# least the last.
NODES = 3_000
SECONDS = 5.0
LEAST_SECONDS = 0.3

# Bounds may be off by this much, relatively, for rounding; and so may what is at rest.
ROUNDED = 1e-9
AT_REST = 1e-12

# Numbers that may come to more bits than this are searched in doubles first.
LONG = 600

CLAIMS = (Status.OPTIMAL, Status.NONE_EXISTS, Status.NOT_ATTAINED)


def confirm(claim: Claim[LinearGame], solution: Solution, method: str = "auto") -> Solution:
    """Return the solution of a linear game if it is confirmed, and what can be proved otherwise.

    The certificate of a claim that is confirmed says by what.

    claim: what was asked.
    method: the method that the caller chose.
    """
    game, claims = claim.game, solution.status in CLAIMS
    if solution.method in ("exhaustive", "limits"):
        return solution
    mixed = solution.method == "milp"
    if game.size > (MIXED_AGENTS if mixed else AGENTS):
        if claims and mixed:
            return _withdraw(claim, solution, None)
        return solution
    if not claims and method != "auto":
        return solution
    seconds = min(SECONDS, claim.deadline.left)
    failed = solution.status is Status.FAILED
    share = limit_work(seconds if failed else max(LEAST_SECONDS, seconds))
    program = program_of(game, claim.concept, claim.select)
    if claims and _is_confirmed_by_doubles(claim, solution, program, share):
        return _mark_confirmed(solution, "arithmetic with bounded rounding")
    least = least_total(program, share, nodes=NODES // 10 if game.is_integer else NODES)
    if not least.complete and game.is_integer:
        # Narrowing boxes of whole numbers often ends where programs do not.
        searched = _search_boxes(claim, limit_work(share.limit))
        if searched.status in (Status.OPTIMAL, Status.NONE_EXISTS, Status.INFEASIBLE):
            same = solution.status is searched.status and solution.total == searched.total
            agrees = same and not is_refuted(solution, 0.0)
            return _mark_confirmed(solution if agrees else searched)
    if least.complete:
        return _mark_confirmed(_compare(claim, solution, least, replace=method == "auto"))
    return _withdraw(claim, solution, least) if claims else solution


def solve_exactly(claim: Claim[LinearGame]) -> Solution | None:
    """Solve a small game whose numbers are too far apart for the tolerances of other solvers.

    None where it is not one, or the search does not end.
    """
    game = claim.game
    if game.size > AGENTS or game.is_integer or is_tame(game):
        return None
    program = program_of(game, claim.concept, claim.select)
    least = least_total(program, limit_work(min(SECONDS, claim.deadline.left)), nodes=NODES)
    return _mark_confirmed(report(claim, least)) if least.complete else None


def _mark_confirmed(solution: Solution, by: str = "exact arithmetic") -> Solution:
    """Write into the certificate what confirmed the claim, where the solution claims something."""
    if solution.status not in CLAIMS:
        return solution
    certificate = {**solution.certificate, "confirmed": by}
    return dataclasses.replace(solution, certificate=certificate)


def is_refuted(solution: Solution, tolerance: float) -> bool:
    """Return whether the check refutes that the allocation is of the kind it claims to be."""
    if solution.contributions is None:
        return False
    found = check(solution.game, solution.contributions, tolerance=tolerance)
    return found.verdicts[solution.concept] is Answer.FALSE


def _search_boxes(claim: Claim[LinearGame], deadline: Deadline) -> Solution:
    """Search whole numbers by dividing boxes."""
    from fedaccord.equilibria.general.exhaustive import (
        exhaustive_envy_free,
        exhaustive_optimal,
        exhaustive_stable,
    )

    if claim.concept == "stable":
        return exhaustive_stable(claim.game, select=claim.select, deadline=deadline)
    search = exhaustive_optimal if claim.concept == "optimal" else exhaustive_envy_free
    return search(claim.game, deadline=deadline)


def _is_confirmed_by_doubles(
    claim: Claim[LinearGame], solution: Solution, program: Program, deadline: Deadline
) -> bool:
    """Return whether a search in doubles, whose rounding is bounded, proves a claim.

    It is quicker where numbers have many digits.
    """
    longest = max(row.terms[0][1].bit_length() for row in program.rows) * claim.game.size
    if claim.game.is_integer or longest < LONG or solution.status is Status.NOT_ATTAINED:
        return False
    try:
        least = least_total(program, deadline, nodes=NODES, rounded=True)
    except Undecided:
        return False
    if not least.complete or math.isinf(least.value):
        return least.complete and solution.status is Status.NONE_EXISTS
    return (
        not is_refuted(solution, min(claim.tolerance, 1e-6))
        and _holds(solution.bounds, float(least.value))
        and not _is_wrong(claim, solution, float(least.value))
    )


def _holds(bounds: Interval, value: float) -> bool:
    return bounds.lower * (1 - ROUNDED) <= value <= bounds.upper * (1 + ROUNDED)


def _compare(
    claim: Claim[LinearGame], solution: Solution, least: Least, *, replace: bool
) -> Solution:
    """Return the solution where it agrees with an exact one, and the exact one where not.

    replace: whether another's answer may take the place of the one found; where not, what was found
        stays, if it is of the kind, with bounds that hold.
    """
    exists, value = not math.isinf(least.value), float(least.value)
    if solution.contributions is None or is_refuted(solution, min(claim.tolerance, 1e-6)):
        agrees = solution.status is Status.NONE_EXISTS and not exists
        return solution if agrees else report(claim, least)
    low, high = solution.bounds.lower, solution.bounds.upper
    holds = _holds(solution.bounds, value)
    wrong = {
        Status.OPTIMAL: _is_wrong(claim, solution, value),
        Status.NOT_ATTAINED: least.point is not None,
        # A limit claims nothing but its bounds; a program's may be for its tolerance only.
        Status.LIMIT: solution.method == "milp"
        or (not holds if exists else _is_wrong(claim, solution, value)),
    }[solution.status]
    if wrong and replace and (found := report(claim, least)).status is not Status.FAILED:
        return found
    status = Status.LIMIT if wrong else solution.status
    if exists and not holds:
        low, high = min(low, value), max(high, value)
    return dataclasses.replace(solution, status=status, bounds=Interval(low, high))


def _is_wrong(claim: Claim[LinearGame], solution: Solution, value: float) -> bool:
    """Return whether a total is not the least there is.

    Stable allocations are at rest up to the tolerance, and their totals to within ten of it. One
    that is at rest up to rounding counts, even if there is none so cheap exactly: benefits such as
    1 / sqrt(2) are rounded too, and with them the equilibria of singular games come and go.
    """
    beyond = solution.total - value
    if claim.concept != "stable":
        return abs(beyond) > claim.tolerance * value
    allowed = 10 * claim.tolerance * (solution.total if math.isinf(value) else value)
    beyond = -beyond if claim.costliest else beyond
    if beyond > allowed:
        return True
    given = np.array(solution.contributions)
    wanted = np.maximum(claim.game.best_responses(given), claim.game.minimums)
    rounded = (np.abs(wanted - given) <= AT_REST * given.max()).all()
    return bool(beyond < -allowed and not rounded)


def report(claim: Claim[Any], least: Least) -> Solution:
    """Claim what a complete search found."""
    if math.isinf(least.value):
        return claim.none_exists(
            "exact", "For every choice of contributors, some agent is short or could give less."
        )
    value = float(least.value)
    for point in _in_doubles(least.point):
        bounds = Interval(value, max(value, claim.game.total(point)))
        solution = claim.solution("exact", Status.OPTIMAL, bounds, point)
        if not is_refuted(solution, min(claim.tolerance, 1e-6)):
            return solution
    if least.near is None:
        note = "There is one, but rounded to doubles it is none: change the units of the benefits."
        return claim.failed("exact", note, lower=value)
    near, said = to_floats(least.near), f"Totals come as close to {value:.9g} as you like."
    solution = claim.solution(
        "exact", Status.LIMIT if least.point else Status.NOT_ATTAINED,
        Interval(value, max(value, claim.game.total(near))), near,
        note=f"{said} This plan keeps a margin.",
    )  # fmt: skip
    if is_refuted(solution, min(claim.tolerance, 1e-6)):
        note = f"{said} The plan that was found keeps too small a margin to be checked."
        return claim.failed("exact", note, lower=value)
    return solution


def _in_doubles(point: Sequence[Fraction | float] | None) -> Iterator[Vector]:
    """Yield contributions rounded to the nearest doubles, then to the next ones above."""
    if point is None:
        return
    nearest = to_floats(point)
    yield nearest
    below = np.array([Fraction(n) < t for n, t in zip(nearest.tolist(), point, strict=True)])
    yield np.where(below, np.nextafter(nearest, np.inf), nearest)


def _withdraw(claim: Claim[LinearGame], solution: Solution, least: Least | None) -> Solution:
    """Claim no more than bounds that are proved, by a search that did not end or by prices."""
    game = claim.game
    if least is not None:
        bound = float(least.bound)
    elif claim.costliest:
        bound = game.total(stable_box(game)[1])
    else:
        bound = _bound_relaxation(claim)
    found = [] if solution.contributions is None else [np.array(solution.contributions)]
    found = [] if is_refuted(solution, claim.tolerance) else found
    if least is not None and least.point is not None:
        found.append(to_floats(least.point))
    if not found:
        lower = 0.0 if claim.costliest else bound
        return claim.failed(solution.method, "What the solver said was not confirmed.", lower=lower)
    best = claim.better(found)
    return claim.among(
        solution.method, best, bound, bound, certificate=solution.certificate, note=solution.note
    )


def _bound_relaxation(claim: Claim[LinearGame]) -> float:
    """Bound totals from below by prices of rows that all allocations obey.

    The rows are the requirements, and pairs whom envy puts in order. Totals of whole numbers of
    equal costs are rounded up.
    """
    game, scaled = claim.game, normalise(claim.game)
    order = sorted(find_forced_pairs(game)) if claim.concept == "envy-free" else []
    rows = sparse.csr_array(
        sparse.vstack([scaled.benefits, -make_pair_rows(scaled, order, "order")])
    )
    least = np.concatenate([scaled.needs, np.zeros(len(order))])
    result = linear_program(
        scaled.costs, scaled.low, scaled.high, rows=-rows, most=-least,
        seconds=max(1.0, claim.deadline.left), tolerance=1e-9,
    )  # fmt: skip
    if result.x is None:
        return float(game.costs @ game.minimums)
    bound = bound_by_prices(scaled.costs, rows, least, -result.duals, scaled.low, scaled.high)
    return round_bound(game, bound * float(game.costs.max()) * scaled.unit)


# What allocations of a concept obey: linear rows and, for each agent or pair, one of a few
# alternatives. An agent gives its least or has nothing to spare; i gives no more than j, or would
# be short after a swap.


class _Writer:
    """Writes rows over contributions as rows over variables in whole numbers."""

    def __init__(self, amount: Fraction, whole: bool) -> None:
        self.amount, self.whole = amount, whole

    def in_whole_numbers(self, benefits: Sequence[Fraction], need: Fraction) -> WholeRow:
        """Return a goal with whole benefits; over the reals with a whole need too."""
        own = 1 if self.whole else (need / self.amount).denominator
        scale = math.lcm(*(w.denominator for w in benefits), own)
        return [int(w * scale) for w in benefits], need * scale

    def row(
        self, weights: Iterable[tuple[int, Fraction | int]], least: Fraction | int, *,
        strict: bool = False,
    ) -> Row:  # fmt: skip
        """Return sum of weight * theta_j >= (or >) least; the sharpest such row of whole theta."""
        terms = [(j, w) for j, w in weights if w]
        right = least / self.amount
        scale = math.lcm(*(w.denominator for _, w in terms))
        if not self.whole:
            scale = math.lcm(scale, right.denominator)
        whole = [int(w * scale) for _, w in terms]
        right *= scale
        common = math.gcd(*whole) if self.whole else math.gcd(*whole, int(right))
        right /= common
        if self.whole:
            right = Fraction(math.floor(right) + 1 if strict else math.ceil(right))
            strict = False
        return Row(
            tuple((j, w // common) for (j, _), w in zip(terms, whole, strict=True)),
            int(right), strict,
        )  # fmt: skip


def program_of(
    game: LinearGame | RowGame, concept: Concept, select: Select = "cheapest"
) -> Program:
    """Write down what the allocations of a concept must obey."""
    k, goals = game.size, _list_goals(game)
    low, costs = exact_numbers(game.minimums), exact_numbers(game.costs)
    high = [simplest_fraction(n) if np.isfinite(n) else None for n in game.limits.tolist()]
    if not game.is_integer:
        goals = [[(row, _reach(row, need, high)) for row, need in own] for own in goals]
    if concept == "stable" and game.is_monotone:
        # Nobody gives more than alone, as the others' samples only help.
        alone = [max(need / row[i] for row, need in own) for i, own in enumerate(goals)]
        if game.is_integer:
            alone = [Fraction(math.ceil(a)) for a in alone]
        most = [max(a, least) for a, least in zip(alone, low, strict=True)]
        high = [m if h is None else min(m, h) for m, h in zip(most, high, strict=True)]
    start = low if select == "cheapest" else [h or Fraction(0) for h in high]
    amount = Fraction(1, math.lcm(*(t.denominator for t in start)))
    unit = Fraction(1, math.lcm(*(c.denominator for c in costs)))
    writer = _Writer(amount, game.is_integer)
    # In whole numbers once, as each of these goes into many rows.
    whole = [[writer.in_whole_numbers(*goal) for goal in own] for own in goals]
    rows = [writer.row([(j, 1)], low[j]) for j in range(k)]
    rows += [writer.row([(j, -1)], -h) for j, h in enumerate(high) if h is not None]
    rows += [writer.row(enumerate(row), need) for own in whole for row, need in own]
    choices: list[tuple[Alternative, ...]] = []
    if concept == "stable":
        choices = [_rest(writer, i, whole[i], low[i]) for i in range(k)]
    elif concept == "envy-free":
        forced = find_forced_pairs(game) if isinstance(game, LinearGame) else set()
        rows += [writer.row([(j, 1), (i, -1)], 0) for i, j in sorted(forced)]
        choices = [
            _no_envy(writer, i, j, whole[i], low, high)
            for i, j in permutations(range(k), 2)
            if (i, j) not in forced
        ]
    return Program(
        costs=tuple(int(c / unit) for c in costs),
        start=tuple(int(t / amount) for t in start),
        step=1 if select == "cheapest" else -1,
        rows=tuple(rows), choices=tuple(choices), whole=game.is_integer,
        amount=amount, money=amount * unit,
    )  # fmt: skip


def _list_goals(game: LinearGame | RowGame) -> list[list[ExactRow]]:
    """Return the goals of each agent in fractions; of a linear game each has one."""
    if isinstance(game, RowGame):
        return game.exact_rows
    pairs = zip(game.exact_benefits, game.exact_requirements, strict=True)
    return [[(row, need)] for row, need in pairs]


def _reach(
    benefits: Sequence[Fraction], need: Fraction, high: Sequence[Fraction | None]
) -> Fraction:
    """Return what an agent needs, or what all limits give it where that is less by rounding."""
    most = Fraction(0)
    for weight, limit in zip(benefits, high, strict=True):
        if weight < 0 or (weight and limit is None):
            return need
        most += weight * (limit or 0)
    return most if most < need <= most * (1 + Fraction(ROUNDING)) else need


def _rest(
    writer: _Writer, agent: int, goals: Sequence[WholeRow], low: Fraction
) -> tuple[Alternative, ...]:
    """Return the ways to be at rest: give the least, or more with nothing to spare at one goal.

    In whole numbers nothing is less than one own sample.
    """
    found: list[Alternative] = [(writer.row([(agent, -1)], -low),)]
    for benefits, need in goals:
        weights = [(j, -w) for j, w in enumerate(benefits)]
        if not writer.whole:
            found.append((writer.row(weights, -need),))
            continue
        tight = writer.row(weights, -need - benefits[agent], strict=True)
        found.append((tight, writer.row([(agent, 1)], low + 1)))
    return tuple(found)


def _no_envy(
    writer: _Writer, i: int, j: int, goals: Sequence[WholeRow],
    low: Sequence[Fraction], high: Sequence[Fraction | None],
) -> tuple[Alternative, ...]:  # fmt: skip
    """Return the ways not to envy j: give no more, miss a goal after a swap, or cannot swap.

    They are if i gives more than j's limit, or j less than i's minimum.
    """
    found: list[Alternative] = [(writer.row([(j, 1), (i, -1)], 0),)]
    for benefits, need in goals:
        if benefits[j] >= benefits[i]:
            continue
        swapped = list(benefits)
        swapped[i], swapped[j] = benefits[j], benefits[i]
        short = writer.row(((n, -w) for n, w in enumerate(swapped)), -need, strict=True)
        found.append((short, writer.row([(i, 1), (j, -1)], 0)))
    theirs, mine = high[j], high[i]
    if theirs is not None and (mine is None or mine > theirs):
        found.append((writer.row([(i, 1)], theirs, strict=True),))
    if low[j] < low[i]:
        found.append((writer.row([(j, -1)], -low[i], strict=True),))
    return tuple(found)
