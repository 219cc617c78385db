"""Which equilibrium: all of a small linear game, and some of a large one.

An equilibrium of u = W theta is told by its contributors S, those who give more than they must:

    W_SS x_S = (mu - W low)_S,   theta = low + x,   x_S > 0,   W theta >= mu,   theta <= high

Nobody among S has anything to spare, so whoever gives up to its limit has exactly what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fedaccord._checks import Indices, Matrix, Vector, frozen
from fedaccord.equilibria.linear.best_response import relative_regret
from fedaccord.equilibria.result import Deadline, Solution, Status
from fedaccord.games.linear import LinearGame

# Up to this many agents every set of contributors is tried: 4,096 of them.
MOST_AGENTS = 12
# What counts as nothing, relative to the largest need.
FINE = 1e-9
# In larger games one equilibrium is looked for from this many orders of best response.
ORDERS = 16
# Above this many agents there is only the one that a solver gives.
MOST_ORDERED = 200
SWEEPS = 2_000


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
    from fedaccord.equilibria.stable import solve_stable

    deadline = Deadline(time_limit)
    small = game.size <= MOST_AGENTS
    if small:
        box = (game.minimums, game.limits)
        listed = list_equilibria(game.dense_benefits, game.requirements, *box)
        if len(listed):
            return Equilibria(frozen(_told_apart(listed, game.costs)), complete=True)
    solution = cheapest or solve_stable(game, time_limit=time_limit)
    if solution.contributions is None:
        return Equilibria(np.zeros((0, game.size)), small, _why_none(solution))
    found = [solution.contributions]
    if not small and game.size <= MOST_ORDERED:
        found += _by_orders(game, np.random.default_rng(seed), deadline)
    return Equilibria(frozen(_told_apart(np.array(found), game.costs)), complete=small)


def _why_none(solution: Solution) -> str:
    if solution.status is Status.INFEASIBLE:
        said = "Not even everybody's limit meets every goal."
    elif solution.status is Status.NONE_EXISTS:
        said = (
            "Within the limits there is none in which everybody reaches its goal and nobody could "
        )
        said += "give less."
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
        with_contributors(benefits, needs, minimums, limits, np.array(sets, dtype=np.intp))
        for size in range(k + 1)
        if (sets := list(combinations(range(k), size)))
    ]
    return np.concatenate(found)


def with_contributors(
    benefits: Matrix, needs: Vector, minimums: Vector, limits: Vector, sets: Indices
) -> Matrix:
    """Give the equilibria among whose contributors are exactly these, a row of sets each."""
    left = needs - benefits @ minimums
    blocks = benefits[sets[:, :, None], sets[:, None, :]]
    scale = float(np.abs(needs).max(initial=0.0)) or 1.0
    # Where W_SS is singular many equilibria have the same contributors, and those at the ends of
    # them have fewer.
    regular = np.linalg.slogdet(blocks)[0] != 0
    sets, blocks = sets[regular], blocks[regular]
    given = np.tile(minimums, (len(sets), 1))
    extra = np.linalg.solve(blocks, left[sets][:, :, None])[:, :, 0]
    np.put_along_axis(given, sets, np.take_along_axis(given, sets, axis=1) + extra, axis=1)
    with np.errstate(invalid="ignore"):
        slack = given @ benefits.T - needs
        exact = np.abs(np.take_along_axis(slack, sets, axis=1)) <= FINE * scale
        good = (extra > FINE * scale).all(axis=1) & exact.all(axis=1)
        good &= (slack >= -FINE * scale).all(axis=1) & (given <= limits + FINE * scale).all(axis=1)
    return np.minimum(given[good], limits)


def _by_orders(game: LinearGame, rng: np.random.Generator, deadline: Deadline) -> list[Vector]:
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
    own = benefits.diagonal()
    allowed = FINE * 0.1 * (float(needs.max()) or 1.0)
    for _ in range(SWEEPS):
        moved = 0.0
        for i in order.tolist():
            wanted = theta[i] + (needs[i] - benefits[i] @ theta) / own[i]
            wanted = min(max(wanted, low[i]), high[i])
            moved = max(moved, abs(wanted - theta[i]))
            theta[i] = wanted
        if moved <= allowed:
            return


def _told_apart(rows: Matrix, costs: Vector) -> Matrix:
    """Put the cheapest first, and leave out those that differ from another by rounding alone."""
    rows = rows[np.argsort(rows @ costs, kind="stable")]
    allowed = 1e-6 * float(rows.max(initial=0.0))
    kept: list[int] = []
    for n, row in enumerate(rows):
        if not kept or (np.abs(rows[kept] - row).max(axis=1) > allowed).all():
            kept.append(n)
    return rows[kept]
