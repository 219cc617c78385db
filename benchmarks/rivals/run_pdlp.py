"""PDLP, the first-order solver of OR-tools, in a process that solves one linear program.

It runs in an environment of its own, which has no fedaccord:

    python run_pdlp.py PROGRAM.npz TOLERANCE ANSWER.npz

The program is: minimise cost'x subject to A x >= right and x >= 0, with A as sparse rows. The
answer has the points x and y, how long the solver took, and its version.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np
from ortools.pdlp import solvers_pb2
from ortools.pdlp.python import pdlp
from scipy import sparse


def main() -> None:
    """Solve the program, and write the answer."""
    source, tolerance, target = sys.argv[1:]
    given = np.load(source)
    program = pdlp.QuadraticProgram()
    program.objective_vector = given["cost"]
    program.constraint_matrix = sparse.csc_matrix(
        (given["data"], given["indices"], given["indptr"]), shape=tuple(given["shape"])
    )
    program.constraint_lower_bounds = given["right"]
    program.constraint_upper_bounds = np.full(given["right"].size, np.inf)
    program.variable_lower_bounds = np.zeros(given["cost"].size)
    program.variable_upper_bounds = np.full(given["cost"].size, np.inf)
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_relative = criteria.eps_optimal_absolute = float(tolerance)
    parameters.termination_criteria.time_sec_limit = 3600.0
    begin, worked = time.perf_counter(), time.process_time()
    result = pdlp.primal_dual_hybrid_gradient(program, parameters)
    seconds, worked = time.perf_counter() - begin, time.process_time() - worked
    np.savez(
        target,
        x=result.primal_solution,
        y=result.dual_solution,
        seconds=seconds,
        cpu_seconds=worked,
        rounds=result.solve_log.iteration_count,
        version=version("ortools"),
    )


if __name__ == "__main__":
    main()
