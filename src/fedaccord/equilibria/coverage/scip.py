"""Exact optima and equilibria of small real coverage games, by SCIP's branch and bound.

Randomized rounding is linear between whole numbers: with lambda_j a point of the simplex of which
at most two neighbours are positive (SOS2),

    theta_j = sum_n n lambda_jn,      p_jx = sum_n lambda_jn (1 - q_jx)^n,

and the chance E_x that nobody draws x is a chain of products of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Deadline
from fedaccord.errors import MissingExtraError
from fedaccord.games.coverage import CoverageGame

# Feasibility tolerance asked of SCIP, what its bounds are widened by for it, relatively, and the
# relative gap at which it may stop.
FEASIBILITY = 1e-9
WIDENING = 1e-7
GAP = 1e-8

# p_jx, by the agent and the rate: the chance that an agent's samples miss a point of that rate.
Factor: TypeAlias = tuple[int, float]


@dataclass(frozen=True)
class ScipAnswer:
    """What SCIP found: a bound on all totals (inf or -inf where none), and its best point."""

    bound: float
    contributions: Vector | None
    status: str


def is_available() -> bool:
    """Return whether pyscipopt can be imported."""
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
    kind: Literal["feasible", "stable", "envy-free"] = "feasible",
    sense: Literal["minimize", "maximize"] = "minimize",
    margin: float = 0.0,
) -> ScipAnswer:
    """Find the least or greatest total of an allocation of a kind, nobody giving more than `most`.

    margin: by how much sum_x q_ix E_x must exceed its goal after a swap for i not to envy j. At
        zero, ties count as no envy: a relaxation, whose bound holds for all envy-free allocations.
    """
    model = _Model(game, most, deadline)
    for i in range(game.size):
        model.satisfy(i)
        if kind == "stable":
            model.stabilise(i)
        elif kind == "envy-free":
            for j in range(game.size):
                if i != j:
                    model.forbid_envy(i, j, margin)
    return model.optimise(sense)


class _Model:
    """One SCIP model of a coverage game."""

    def __init__(self, game: CoverageGame, most: Vector, deadline: Deadline) -> None:
        try:
            from pyscipopt import Model, quicksum
        except ImportError:
            raise MissingExtraError("pyscipopt", "solvers") from None
        self.game, self.most, self.sum = game, most, quicksum
        self.goals = 2 * (1 - game.requirements)
        self.scip = Model()
        self.scip.hideOutput()
        self.scip.setParam("misc/catchctrlc", False)
        self.scip.setParam("numerics/feastol", FEASIBILITY)
        # Tightening further would leave the range of a SoPlex built without exact arithmetic.
        self.scip.setParam("constraints/nonlinear/tightenlpfeastol", False)
        self.scip.setParam("limits/gap", GAP)
        self.scip.setParam("limits/time", max(deadline.left, 0.01))
        self.add = self.scip.addCons
        self.columns = _columns(game)
        self.chains: dict[tuple[Factor, ...], Any] = {}
        self.parts: list[list[Any]] = []
        self.given: list[Any] = []
        for j in range(game.size):
            self._add_agent(j)

    def _add_agent(self, agent: int) -> None:
        steps = range(int(np.ceil(self.most[agent])) + 1)
        parts = [self.scip.addVar(lb=0.0, ub=1.0) for _ in steps]
        self.add(self.sum(parts) == 1)
        if len(parts) > 2:
            self.scip.addConsSOS2(parts, [float(n + 1) for n in steps])
        theta = self.scip.addVar(lb=float(self.game.minimums[agent]), ub=float(self.most[agent]))
        self.add(theta == self.sum(n * part for n, part in zip(steps, parts, strict=True)))
        self.parts.append(parts)
        self.given.append(theta)

    def product(self, factors: tuple[Factor, ...]) -> Any:
        """Return a variable for a product of p's; chains that begin alike share their beginning."""
        if factors not in self.chains:
            variable = self.scip.addVar(lb=0.0, ub=1.0)
            agent, rate = factors[-1]
            if len(factors) > 1:
                self.add(variable == self.product(factors[:-1]) * self.product(factors[-1:]))
            else:
                powers = [float((1 - rate) ** n) for n in range(len(self.parts[agent]))]
                terms = zip(powers, self.parts[agent], strict=True)
                self.add(variable == self.sum(v * p for v, p in terms))
            self.chains[factors] = variable
        return self.chains[factors]

    def loss(self, agent: int, other: int | None = None) -> Any:
        """Return sum_x q_ix E_x of an agent, as it is or after a swap with another."""
        trade = {} if other is None else {agent: other, other: agent}
        row = self.game.weights[[agent]]
        terms = []
        for x, weight in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            factors = sorted((trade.get(j, j), q) for j, q in self.columns[x])
            terms.append(weight * self.product(tuple(factors)))
        return self.sum(terms)

    def satisfy(self, agent: int) -> None:
        """Require u_i >= mu_i."""
        self.add(self.loss(agent) <= self.goals[agent])

    def stabilise(self, agent: int) -> None:
        """Require that an agent above its minimum has no utility to spare (z = 1: it gives)."""
        giving = self.scip.addVar(vtype="B")
        least = float(self.game.minimums[agent])
        self.add(self.given[agent] - least <= float(self.most[agent] - least) * giving)
        self.add(self.goals[agent] - self.loss(agent) <= self.goals[agent] * (1 - giving))

    def forbid_envy(self, agent: int, other: int, margin: float) -> None:
        """Require that an agent gives no more than another (y = 1), or would rather not swap."""
        below = self.scip.addVar(vtype="B")
        room = float(self.most[agent] - self.game.minimums[other])
        self.add(self.given[agent] - self.given[other] <= room * (1 - below))
        self.add(self.loss(agent, other) >= (self.goals[agent] + margin) * (1 - below))

    def optimise(self, sense: Literal["minimize", "maximize"]) -> ScipAnswer:
        """Solve, and widen the bound by what tolerances may have hidden."""
        terms = zip(self.game.costs.tolist(), self.given, strict=True)
        self.scip.setObjective(self.sum(c * t for c, t in terms), sense)
        self.scip.optimize()
        sign = 1.0 if sense == "maximize" else -1.0
        best = float(self.scip.getDualbound())
        bound = best + sign * WIDENING * max(1.0, abs(best)) if abs(best) < 1e19 else sign * np.inf
        found = None
        if self.scip.getNSols() > 0:
            found = np.array([self.scip.getVal(t) for t in self.given])
            found = np.clip(found, self.game.minimums, self.most)
        return ScipAnswer(bound, found, str(self.scip.getStatus()))


def _columns(game: CoverageGame) -> list[list[Factor]]:
    result: list[list[Factor]] = [[] for _ in range(game.points)]
    places = zip(game.rows.tolist(), game.distributions.indices.tolist(), strict=True)
    for (j, x), q in zip(places, game.distributions.data.tolist(), strict=True):
        result[x].append((j, q))
    return result
