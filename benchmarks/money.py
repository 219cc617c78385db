"""How long payments, shares and coalitions take, and how often Shapley shares drive a group out.

    python benchmarks/money.py [--only ROW ...]

It prints a table and replaces benchmarks/results/money.json. Times are ratios to a fixed piece of
work, measured in turn, and the payments' is a ratio to the part that LP 1 takes.
"""

from __future__ import annotations

import os

# One core: what is compared is algorithms, not threads. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from games import discovery
from measuring import (
    clock,
    compare,
    compare_seconds,
    interleaved,
    machine,
    summarize,
    take_turns,
    write_ratio,
    yardstick,
)
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
# How often each task is timed.
REPEATS = 3


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


def payments(agents: int) -> dict[str, Any]:
    """Time payments of a large game, and the part of that which its cheapest plan takes."""
    game = discovery(agents, agents, equal=False)
    plans: list[float] = []

    def solve(*arguments: Any, **options: Any) -> Any:
        took, found = clock(lambda: solve_optimal(*arguments, **options))
        plans[-1] += took
        return found

    def share() -> Any:
        plans.append(0.0)
        return clock(lambda: share_costs(game))

    with mock.patch("fedaccord.sharing.prices.solve_optimal", solve):
        turns = take_turns({"share": share}, REPEATS)["share"]
    took, found = [seconds for seconds, _ in turns], turns[-1][1]
    return {
        "seconds": statistics.median(took), "LP 1": statistics.median(plans),
        **compare(took, plans), "all_seconds": {"ours": took, "against": plans},
        "gap": found.prices.gap, "sum": float(found.payments.sum()),
    }  # fmt: skip


def against_yardstick(work: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """Time a task and the fixed piece of work in turn; give the figures and what the task found."""
    found: list[Any] = []

    def keep() -> None:
        found[:] = [work()]

    seconds = interleaved({"task": keep, "yardstick": yardstick}, REPEATS)
    row = compare_seconds("", seconds["task"], seconds["yardstick"], faster=False)
    del row["row"]
    return row, found[0]


def shares(agents: int) -> dict[str, Any]:
    """Time all contracts of a game."""
    row, found = against_yardstick(lambda: share_costs(dense(agents)))
    return {**row, "contracts": list(found.contracts), "exact": found.prices.exact}


def coalitions(subject: Callable[[], Any]) -> dict[str, Any]:
    """Time the search of all groupings."""
    row, found = against_yardstick(lambda: find_coalitions(subject()))
    return {
        **row, "core": found.core_count, "individual": found.individual_count,
        "complete": found.complete,
    }  # fmt: skip


def drive_out(
    draw: Callable[[int, int], LinearGame], games: int = 300, parts: int = 5
) -> dict[str, Any]:
    """Count the games of 3 to 6 agents in which Shapley shares drive a group out.

    Their share of all games is the ratio, and its spread is over parts of the games.
    """
    out = []
    for seed in range(games):
        costs = GroupCosts(draw(3 + seed % 4, seed))
        closest = find_closest(shapley_value(costs.values), costs)
        out.append(closest is not None and closest.bears > closest.alone * (1 + 1e-9))
    shares = np.array(out).reshape(parts, -1).mean(axis=1).tolist()
    spread = summarize(shares, "ratio")["ratio_spread"]
    return {
        "games": games, "driven out": sum(out), "ratio": sum(out) / games, "ratio_spread": spread,
    }  # fmt: skip


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
    text = {"command": "make bench", "machine": machine(), "rows": found}
    replace_file(RESULTS, json.dumps(text, indent=1) + "\n")
    table = Table("row", "seconds", "ratio [min, max]", "result")
    for name, row in found.items():
        seconds = f"{row['seconds']:.3g}" if "seconds" in row else ""
        rest = {k: v for k, v in row.items() if "seconds" not in k and "ratio" not in k}
        shown = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in rest.items())
        table.add_row(name, seconds, write_ratio(row), ", ".join(shown))
    Console().print(table)


if __name__ == "__main__":
    main()
