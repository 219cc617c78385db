"""How long payments, shares and coalitions take, and how often Shapley shares drive a group out.

    python benchmarks/money.py [--only ROW ...]

It prints a table and replaces benchmarks/results/money.json. Rows that are compared are measured in
turn in one process.
"""

from __future__ import annotations

import os

# One core: what is compared is algorithms, not threads. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from games import discovery
from rich.console import Console
from rich.table import Table

from fedaccord import (
    CoalitionTable,
    LinearGame,
    find_coalitions,
    share_costs,
    solve_optimal,
    tabulate_mean_estimation,
)
from fedaccord._io.files import replace_file
from fedaccord.sharing.costs import GroupCosts
from fedaccord.sharing.result import find_closest
from fedaccord.sharing.values import shapley_value

RESULTS = Path(__file__).parent / "results" / "money.json"
SEED = 20211


def dense(agents: int, seed: int = SEED, *, most: float = 0.6) -> LinearGame:
    """Draw a game in which all agents help each other."""
    rng = np.random.default_rng(seed)
    benefits = rng.uniform(0, most, (agents, agents))
    np.fill_diagonal(benefits, 1.0)
    return LinearGame(benefits, rng.uniform(100, 1000, agents))


def thin(agents: int, seed: int) -> LinearGame:
    """Draw a game in which half of the pairs do not help each other."""
    rng = np.random.default_rng(seed)
    benefits = rng.random((agents, agents)) * rng.integers(0, 2, (agents, agents))
    np.fill_diagonal(benefits, 1.0)
    return LinearGame(benefits, rng.uniform(100, 1000, agents))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def payments(agents: int) -> dict[str, Any]:
    """Time payments of a large game, and the part of that which its cheapest plan takes."""
    game = discovery(agents, agents, equal=False)
    plans: list[float] = []

    def solve(*arguments: Any, **options: Any) -> Any:
        took, found = seconds(lambda: solve_optimal(*arguments, **options))
        plans.append(took)
        return found

    with mock.patch("fedaccord.sharing.prices.solve_optimal", solve):
        took, found = seconds(lambda: share_costs(game))
    return {
        "seconds": took, "LP 1": sum(plans), "ratio": took / sum(plans),
        "gap": found.prices.gap, "sum": float(found.payments.sum()),
    }  # fmt: skip


def shares(agents: int) -> dict[str, Any]:
    """Time all contracts of a game."""
    took, found = seconds(lambda: share_costs(dense(agents)))
    return {"seconds": took, "contracts": list(found.contracts), "exact": found.prices.exact}


def coalitions(subject: Callable[[], Any]) -> dict[str, Any]:
    """Time the search of all groupings."""
    took, found = seconds(lambda: find_coalitions(subject()))
    return {
        "seconds": took, "core": found.core_count, "individual": found.individual_count,
        "complete": found.complete,
    }  # fmt: skip


def drive_out(draw: Callable[[int, int], LinearGame], games: int = 300) -> dict[str, Any]:
    """Count the games of 3 to 6 agents in which Shapley shares drive a group out."""
    out = 0
    for seed in range(games):
        costs = GroupCosts(draw(3 + seed % 4, seed))
        closest = find_closest(shapley_value(costs.values), costs)
        out += closest is not None and closest.bears > closest.alone * (1 + 1e-9)
    return {"games": games, "driven out": out}


def mixed_table(agents: int = 12) -> CoalitionTable:
    return CoalitionTable(np.random.default_rng(SEED).random((2**agents, agents)))


ROWS: dict[str, Callable[[], dict[str, Any]]] = {
    "payments of 100,000 agents": lambda: payments(100_000),
    "all contracts of 12 agents": lambda: shares(12),
    "all contracts of 16 agents": lambda: shares(16),
    "sampled shares of 40 agents": lambda: shares(40),
    "coalitions of 12 agents, linear": lambda: coalitions(lambda: dense(12)),
    "coalitions of 12 agents, mean estimation": lambda: coalitions(
        lambda: tabulate_mean_estimation(np.random.default_rng(SEED).integers(1, 60, 12))
    ),
    "coalitions of 12 agents, random costs": lambda: coalitions(mixed_table),
    "coalitions of 12 agents, all costs equal": lambda: coalitions(
        lambda: CoalitionTable(np.ones((2**12, 12)))
    ),
    "coalitions of 20 agents, merged and split": lambda: coalitions(lambda: dense(20)),
    "Shapley shares, all agents help": lambda: drive_out(
        lambda agents, seed: dense(agents, seed, most=1.0)
    ),
    "Shapley shares, half of the pairs help": lambda: drive_out(thin),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=list(ROWS), metavar="ROW")
    chosen = parser.parse_args().only or list(ROWS)
    kept = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else {}
    found = {**kept, **{name: ROWS[name]() for name in chosen}}
    replace_file(RESULTS, json.dumps({"machine": platform.platform(), "rows": found}, indent=1))
    table = Table("row", "result")
    for name, row in found.items():
        shown = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
        table.add_row(name, ", ".join(shown))
    Console().print(table)


if __name__ == "__main__":
    main()
