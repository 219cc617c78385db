"""Which equilibrium: all of a small linear game, and some of a large one.

An equilibrium of u = W theta has contributors S, which give more than they must:

    W_SS x_S = (mu - W low)_S,   theta = low + x,   x_S > 0,   W theta >= mu,   theta <= high

Nobody among S has anything to spare, so an agent that gives up to its limit has exactly
what it needs. For each resample, the plan is the equilibrium that is most like the chosen one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from fedaccord._checks import Indices, Matrix, Vector, frozen
from fedaccord.equilibria.result import Deadline, Solution, Status
from fedaccord.games.linear import LinearGame, relative_regret

# Up to this many agents every set of contributors is tried: 4,096 of them.
MOST_AGENTS = 12
# What counts as nothing, relative to the largest need.
FINE = 1e-9
# In larger games one equilibrium is looked for from this many orders of best response.
ORDERS = 16
# Above this many agents there is only the one that a solver gives.
MOST_ORDERED = 200
SWEEPS = 2_000
# After this many sweeps of best response the rest is solved for.
JUMP = 8


@dataclass(frozen=True, eq=False)
class Equilibria:
    """Equilibria of a game, the cheapest first.

    contributions: one row each.
    complete: whether these are all, but for mixtures of them where a game has a continuum.
    reason: why there is none, in a sentence, where there is none.
    """

    contributions: Matrix
    complete: bool
    reason: str = ""

    def __len__(self) -> int:
        return len(self.contributions)


def find_equilibria(
    game: LinearGame,
    *,
    time_limit: float = 60.0,
    seed: int = 0,
    cheapest: Solution | None = None,
) -> Equilibria:
    """List the stable equilibria of a linear game over the reals: all of a small one, else some.

    game: what the agents want.
    time_limit: seconds for the solver that looks for the cheapest of a large game.
    seed: of the orders in which agents move, where not all equilibria are listed.
    cheapest: what that solver has found already.
    """
    from fedaccord.equilibria.solve import solve_stable

    deadline = Deadline(time_limit)
    small = game.size <= MOST_AGENTS
    if small:
        box = (game.minimums, game.limits)
        listed = list_equilibria(game.dense_benefits, game.requirements, *box)
        if len(listed):
            return Equilibria(frozen(_drop_repeats(listed, game.costs)), complete=True)
    solution = cheapest or solve_stable(game, time_limit=time_limit)
    if solution.contributions is None:
        return Equilibria(np.zeros((0, game.size)), small, _explain_none(solution))
    found = [solution.contributions]
    if not small and game.size <= MOST_ORDERED:
        found += _search_orders(game, np.random.default_rng(seed), deadline)
    return Equilibria(frozen(_drop_repeats(np.array(found), game.costs)), complete=small)


def continue_equilibria(game: LinearGame, known: Matrix) -> Equilibria | None:
    """Follow equilibria of a game into one that is a little different; None where none is left.

    game: the other game, with limits.
    known: equilibria of the first, one row each.
    """
    box = (game.minimums, game.limits)
    rows = [
        follow_equilibria(game.dense_benefits[None], game.requirements[None], *box, row)[0]
        for row in known
    ]
    # Best response also comes to rest where an agent is short of what it needs, at its limit.
    found = [row for row in rows if not np.isnan(row).any() and game.is_feasible(row)]
    if not found:
        return None
    return Equilibria(frozen(_drop_repeats(np.array(found), game.costs)), complete=False)


def _explain_none(solution: Solution) -> str:
    if solution.status is Status.INFEASIBLE:
        said = "Even if all agents give all they can, one agent is not satisfied."
    elif solution.status is Status.NONE_EXISTS:
        said = (
            "Within the limits, every plan that satisfies all agents asks some agent for more than "
            "it needs."
        )
    else:
        said = solution.status.value
    return " ".join(filter(None, (said, solution.note)))


def list_equilibria(benefits: Matrix, needs: Vector, minimums: Vector, limits: Vector) -> Matrix:
    """List every equilibrium of a small linear game that its contributors determine.

    benefits: W, k x k.
    needs: mu; nothing is listed where one is infinite.
    minimums, limits: the box that contributions lie in.
    """
    k = len(needs)
    if not np.isfinite(needs).all():
        return np.zeros((0, k))
    found = [
        list_with_contributors(benefits, needs, minimums, limits, np.array(sets, dtype=np.intp))
        for size in range(k + 1)
        if (sets := list(combinations(range(k), size)))
    ]
    return np.concatenate(found)


def list_with_contributors(
    benefits: Matrix, needs: Vector, minimums: Vector, limits: Vector, sets: Indices
) -> Matrix:
    """Return the equilibria among whose contributors are exactly these, a row of sets each."""
    scale = float(np.abs(needs).max(initial=0.0)) or 1.0
    sets, extra = solve_sets(benefits, needs - benefits @ minimums, sets)
    given = np.tile(minimums, (len(sets), 1))
    np.put_along_axis(given, sets, np.take_along_axis(given, sets, axis=1) + extra, axis=1)
    with np.errstate(invalid="ignore"):
        slack = given @ benefits.T - needs
        exact = np.abs(np.take_along_axis(slack, sets, axis=1)) <= FINE * scale
        good = (extra > FINE * scale).all(axis=1) & exact.all(axis=1)
        good &= (slack >= -FINE * scale).all(axis=1) & (given <= limits + FINE * scale).all(axis=1)
    return np.minimum(given[good], limits)


def solve_sets(benefits: Matrix, left: Vector, sets: Indices) -> tuple[Indices, Matrix]:
    """Return what contributors give beyond their minimums if each has exactly what it needs.

    Where W_SS is singular many equilibria have the same contributors, and those at the ends of
    them have fewer: such sets are left out.

    left: what each needs beyond what the minimums give it.
    sets: contributors, a row each; the rows that are kept are returned with what they give.
    """
    blocks = benefits[sets[:, :, None], sets[:, None, :]]
    regular = np.linalg.slogdet(blocks)[0] != 0
    sets, blocks = sets[regular], blocks[regular]
    return sets, np.linalg.solve(blocks, left[sets][:, :, None])[:, :, 0]


def _search_orders(game: LinearGame, rng: np.random.Generator, deadline: Deadline) -> list[Vector]:
    """Look for equilibria by best response, agents moving in orders drawn at random."""
    found = []
    benefits = game.dense_benefits
    for _ in range(ORDERS):
        if deadline.passed:
            break
        order = rng.permutation(game.size)
        theta = np.array(game.minimums)
        settle(benefits, game.requirements, game.minimums, game.limits, theta, order)
        if (
            relative_regret(game, theta) <= FINE
            and (game.apply(theta) >= game.requirements * (1 - FINE)).all()
        ):
            found.append(theta)
    return found


def settle(
    benefits: Matrix, needs: Vector, low: Vector, high: Vector, theta: Vector, order: Indices
) -> None:
    """Let agents move to their best responses in turn until nobody does; changes theta."""
    own, turns = benefits.diagonal().tolist(), order.tolist()
    rows, wants = list(benefits), needs.tolist()
    least, most = low.tolist(), high.tolist()
    allowed = FINE * 0.1 * (float(needs.max()) or 1.0)
    last = np.inf
    for sweep in range(SWEEPS):
        moved = 0.0
        for i in turns:
            now = float(theta[i])
            wanted = now + (wants[i] - float(rows[i] @ theta)) / own[i]
            wanted = min(max(wanted, least[i]), most[i])
            moved = max(moved, abs(wanted - now))
            theta[i] = wanted
        if moved <= allowed:
            return
        if sweep % JUMP == JUMP - 1:
            # Moves that get smaller lead to where nobody within its bounds would move.
            rest = _find_rest(benefits, needs, low, high, theta) if moved < last else None
            if rest is not None:
                theta[:] = rest
            last = moved


def _find_rest(
    benefits: Matrix, needs: Vector, low: Vector, high: Vector, theta: Vector
) -> Vector | None:
    """Return the equilibrium in which the same agents are within their bounds; None without one."""
    free = np.flatnonzero((theta > low) & (theta < high))
    if not len(free):
        return None
    block = benefits[np.ix_(free, free)]
    if np.linalg.slogdet(block)[0] == 0:
        return None
    rest = np.array(theta)
    rest[free] += np.linalg.solve(block, (needs - benefits @ theta)[free])
    response = np.clip(rest + (needs - benefits @ rest) / benefits.diagonal(), low, high)
    within = (rest >= low).all() and (rest <= high).all()
    close = np.abs(response - rest).max() <= FINE * (float(needs.max()) or 1.0)
    return rest if within and close else None


def _drop_repeats(rows: Matrix, costs: Vector) -> Matrix:
    """Put the cheapest first, and leave out those that differ from another by rounding alone."""
    rows = rows[np.argsort(rows @ costs, kind="stable")]
    allowed = 1e-6 * float(rows.max(initial=0.0))
    kept: list[int] = []
    for n, row in enumerate(rows):
        if not kept or (np.abs(rows[kept] - row).max(axis=1) > allowed).all():
            kept.append(n)
    return rows[kept]


# What an equilibrium may be off by, relative to the largest need.
LOOSE = 1e-6


def follow_equilibria(
    benefits: Matrix, needs: Matrix, minimums: Vector, limits: Vector, chosen: Vector
) -> Matrix:
    """Return the equilibrium of each of many games that is most like a chosen one.

    Where the contributors are the same, theirs; elsewhere what best response from the chosen one
    leads to, in which somebody may be short at its limit. NaN where that does not settle, or
    where a need is out of reach and nothing limits what is given.

    benefits: B x k x k, a game each.
    needs: B x k, infinite where a goal is out of reach.
    minimums, limits: of all games alike.
    chosen: the equilibrium to follow.
    """
    result = np.full(needs.shape, np.nan)
    contributors = np.flatnonzero(chosen > minimums + FINE * (float(chosen.max()) or 1.0))
    for b in np.flatnonzero((np.isfinite(needs) | np.isfinite(limits)).all(axis=1)).tolist():
        if np.isfinite(needs[b]).all():
            same = list_with_contributors(
                benefits[b], needs[b], minimums, limits, contributors[None]
            )
            if len(same):
                result[b] = same[0]
                continue
        theta = settle_within(benefits[b], needs[b], minimums, limits, chosen)
        if theta is not None:
            result[b] = theta
    return result


def settle_within(
    benefits: Matrix, needs: Vector, minimums: Vector, limits: Vector, start: Vector
) -> Vector | None:
    """Return where best response comes to rest within the limits; None where it does not.

    benefits, needs, minimums, limits: of one game; a need may be infinite where there is a limit.
    start: where to begin.
    """
    # Whoever cannot reach its goal gives all it can, whatever the others give.
    least = np.where(np.isfinite(needs), minimums, limits)
    wanted = np.where(np.isfinite(needs), needs, 0.0)
    theta = np.clip(start, least, limits)
    settle(benefits, wanted, least, limits, theta, np.argsort(-start, kind="stable"))
    response = theta + (wanted - benefits @ theta) / benefits.diagonal()
    off = np.abs(np.clip(response, least, limits) - theta).max()
    return theta if off <= LOOSE * (float(wanted.max()) or 1.0) else None


def find_optimal_totals(
    benefits: Matrix, needs: Matrix, minimums: Vector, limits: Vector, costs: Vector
) -> Vector:
    """Return the least cost that satisfies everybody in each of many games; NaN where none does.

    benefits: B x k x k, a game each.
    needs: B x k.
    minimums, limits, costs: of all games alike.
    """
    totals = np.full(len(needs), np.nan)
    for b in np.flatnonzero(np.isfinite(needs).all(axis=1)).tolist():
        # Solvers have absolute tolerances: they are given needs of about one.
        unit = float(needs[b].max()) or 1.0
        box = list(zip((minimums / unit).tolist(), (limits / unit).tolist(), strict=True))
        found = linprog(costs, A_ub=-benefits[b], b_ub=-needs[b] / unit, bounds=box)
        if found.status == 0:
            totals[b] = unit * float(found.fun or 0.0)
    return totals
