"""Exact optima and equilibria of small real coverage games, by SCIP's branch and bound.

Randomized rounding is linear between whole numbers: with lambda_j a point of the simplex of which
at most two neighbours are positive (SOS2),

    theta_j = sum_n n lambda_jn,      p_jx = sum_n lambda_jn (1 - q_jx)^n,

and the chance E_x that nobody draws x is a chain of products of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from fedaccord._arrays import Vector
from fedaccord.equilibria.base import Deadline
from fedaccord.errors import MissingExtraError
from fedaccord.games.coverage import CoverageGame

# Feasibility tolerance asked of SCIP, and what its bounds are widened by for it, relatively.
FEASIBILITY = 1e-9
WIDENING = 1e-7


@dataclass(frozen=True)
class ScipAnswer:
    """What SCIP found: a bound on all totals (inf or -inf where none), and its best point."""

    bound: float
    contributions: Vector | None
    status: str


def is_available() -> bool:
    """Say whether pyscipopt can be imported."""
    try:
        import pyscipopt  # noqa: F401
    except ImportError:
        return False
    return True


def solve_scip(
    game: CoverageGame,
    deadline: Deadline,
    *,
    most: Vector,
    stable: bool = False,
    sense: Literal["minimize", "maximize"] = "minimize",
    gap: float = 1e-8,
) -> ScipAnswer:
    """Find the least or greatest total of a feasible (or stable) allocation below `most`.

    Stability is put in binaries: z_i = 0 forces the minimum, z_i = 1 forces u_i = mu_i.
    """
    try:
        from pyscipopt import Model, quicksum
    except ImportError:
        raise MissingExtraError("pyscipopt", "solvers") from None
    model = Model()
    model.hideOutput()
    model.setParam("numerics/feastol", FEASIBILITY)
    model.setParam("limits/gap", gap)
    model.setParam("limits/time", max(deadline.left, 0.01))
    given, misses = [], {}
    for j in range(game.size):
        theta, chances = _agent(model, quicksum, game, j, float(most[j]))
        given.append(theta)
        misses.update(chances)
    unseen = _products(model, game, misses)
    goals = 2 * (1 - game.requirements)
    for i in range(game.size):
        row = game.weights[[i]].tocoo()
        loss = quicksum(w * unseen[x] for x, w in zip(row.col, row.data, strict=True))
        model.addCons(loss <= goals[i])
        if stable:
            giving = model.addVar(vtype="B")
            room = float(most[i] - game.minimums[i])
            model.addCons(given[i] - float(game.minimums[i]) <= room * giving)
            model.addCons(goals[i] - loss <= goals[i] * (1 - giving))
    model.setObjective(quicksum(c * t for c, t in zip(game.costs, given, strict=True)), sense)
    model.optimize()
    best = float(model.getDualbound())
    widening = WIDENING * max(1.0, abs(best)) * (1 if sense == "maximize" else -1)
    bound = best + widening if abs(best) < 1e19 else -np.inf if sense == "minimize" else np.inf
    found = None
    if model.getNSols() > 0:
        found = np.array([model.getVal(t) for t in given])
        found = np.clip(found, game.minimums, most)
    return ScipAnswer(bound, found, str(model.getStatus()))


def _agent(
    model: Any, quicksum: Any, game: CoverageGame, agent: int, most: float
) -> tuple[Any, dict[tuple[int, float], Any]]:
    """Add one agent: its theta, and its p for each of its different rates."""
    steps = range(int(np.ceil(most)) + 1)
    parts = [model.addVar(lb=0.0, ub=1.0) for _ in steps]
    model.addCons(quicksum(parts) == 1)
    if len(parts) > 2:
        model.addConsSOS2(parts, [float(n + 1) for n in steps])
    theta = model.addVar(lb=float(game.minimums[agent]), ub=most)
    model.addCons(theta == quicksum(n * part for n, part in zip(steps, parts, strict=True)))
    chances = {}
    for rate in np.unique(game.distributions[[agent]].data):
        chance = model.addVar(lb=0.0, ub=1.0)
        powers = [float((1 - rate) ** n) for n in steps]
        model.addCons(chance == quicksum(v * p for v, p in zip(powers, parts, strict=True)))
        chances[agent, float(rate)] = chance
    return theta, chances


def _products(model: Any, game: CoverageGame, misses: dict[tuple[int, float], Any]) -> list[Any]:
    """Add E_x as chains of products; chains that begin alike share their beginning."""
    columns = game.distributions.tocsc().tocoo()
    entries = sorted(zip(columns.col, columns.row, columns.data, strict=True))
    chains: dict[tuple[tuple[int, float], ...], Any] = {}
    result: list[Any] = [1.0] * game.points
    for x, column in groupby(entries, key=lambda entry: entry[0]):
        key: tuple[tuple[int, float], ...] = ()
        for _, j, rate in column:
            longer = (*key, (int(j), float(rate)))
            if longer not in chains:
                factor = misses[int(j), float(rate)]
                if key:
                    product = model.addVar(lb=0.0, ub=1.0)
                    model.addCons(product == chains[key] * factor)
                    chains[longer] = product
                else:
                    chains[longer] = factor
            key = longer
        result[int(x)] = chains[key]
    return result
