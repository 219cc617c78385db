"""Linear and mixed-integer programs by HiGHS, with one shape of answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Vector


@dataclass(frozen=True, eq=False)
class Outcome:
    """What HiGHS said.

    x: the point found, or None.
    bound: a proved lower bound on the cost; minus infinity where there is none.
    duals: prices of the inequality rows (linear programs only).
    solved, infeasible: whether it claims an optimum, or that there is no point.
    message: its own words.
    """

    x: Vector | None
    bound: float
    duals: Vector
    solved: bool
    infeasible: bool
    message: str


def linear_program(
    cost: Vector,
    low: Vector,
    high: Vector,
    *,
    rows: Any = None,
    most: Vector | None = None,
    equal_rows: Any = None,
    equals: Vector | None = None,
    method: str = "highs",
    seconds: float = np.inf,
    tolerance: float = 1e-7,
) -> Outcome:
    """Minimise cost'x subject to rows x <= most, equal_rows x = equals, low <= x <= high."""
    from scipy.optimize import linprog

    solve: Any = linprog
    # Tolerances are absolute: costs are given in units of the largest.
    unit = float(np.abs(cost).max(initial=0.0)) or 1.0
    result = solve(
        cost / unit, A_ub=rows, b_ub=most, A_eq=equal_rows, b_eq=equals,
        bounds=np.column_stack([low, high]), method=method,
        options={"time_limit": max(seconds, 0.1), "primal_feasibility_tolerance": tolerance},
    )  # fmt: skip
    solved = result.status == 0 and result.x is not None
    return Outcome(
        x=np.asarray(result.x, dtype=np.float64) if solved else None,
        bound=float(result.fun) * unit if solved else -np.inf,
        duals=result.ineqlin.marginals * unit if solved and rows is not None else np.zeros(0),
        solved=solved,
        infeasible=result.status == 2,
        message=str(result.message),
    )


def mixed_program(
    cost: Vector,
    low: Vector,
    high: Vector,
    *,
    rows: Sequence[tuple[Any, Any, Any]],
    whole: Any,
    seconds: float,
    gap: float,
) -> Outcome:
    """Minimise cost'x subject to least <= rows x <= most for each block, low <= x <= high.

    rows: blocks (matrix, least, most).
    whole: true where a variable must be a whole number.
    gap: relative distance between bound and cost to stop at.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    solve: Any = milp
    # HiGHS stops at an absolute distance of 1e-6 too: in units of the smallest cost that is little.
    sizes = np.abs(cost[cost != 0])
    unit = float(sizes.min(initial=np.inf)) / 1e3 if sizes.size else 1.0
    result = solve(
        cost / unit,
        constraints=[LinearConstraint(matrix, least, most) for matrix, least, most in rows],
        bounds=Bounds(low, high),
        integrality=np.asarray(whole, dtype=np.int64),
        options={"time_limit": max(seconds, 0.1), "mip_rel_gap": gap},
    )
    solved = result.status == 0 and result.x is not None
    # Without whole variables HiGHS solves a linear program and reports no bound but its value.
    value = result.mip_dual_bound if result.mip_dual_bound is not None else result.fun
    known = result.x is not None and value is not None
    return Outcome(
        x=None if result.x is None else np.asarray(result.x, dtype=np.float64),
        bound=float(value) * unit if known else -np.inf,
        duals=np.zeros(0),
        solved=solved,
        infeasible=result.status == 2,
        message=str(result.message),
    )
