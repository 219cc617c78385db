"""Speed, memory and exactness of the solvers, as ratios taken in one interleaved run.

Every row is measured against something else measured in between its own repetitions, because
machines are noisy: another solver, or reading the same data once from memory. Run it with

    make bench            (or: python benchmarks/games.py [--only ROW ...] [--quick])

It prints a table and replaces benchmarks/results/games.json.
"""

from __future__ import annotations

import os

# One core: what is compared is algorithms, not threads. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import json
import multiprocessing
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table
from scipy import sparse

from fedaccord import CoverageGame, DiscoveryGame, LinearGame, solve_optimal, solve_stable
from fedaccord._io.files import replace_file
from fedaccord.equilibria.linear.best_response import relative_regret
from fedaccord.equilibria.linear.kernels import sweep_gram
from fedaccord.equilibria.linear.optimal import certify

RESULTS = Path(__file__).parent / "results" / "games.json"
POINTS_AN_AGENT = 50
SEED = 20211
# What LP 1 is certified to.
LP_GAP = 1e-3
# OR-tools and scipy in an environment of their own: OR-tools brings its own HiGHS.
PDLP_PYTHON = Path(__file__).parents[1] / ".venv-pdlp" / "bin" / "python"
PDLP_TOLERANCES = (2e-4, 1.75e-4, 1.5e-4, 1.25e-4, 1e-4, 5e-5)
# PDLP's time counts only if its certified gap is at least this share of ours.
COMPARABLE = 0.8


def random_distributions(agents: int, points: int, seed: int = SEED) -> Any:
    """Draw agents with 50 points each, weights exponential, rows summing to one."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, points, size=(agents, POINTS_AN_AGENT)).astype(np.int32)
    weights = rng.exponential(size=columns.shape)
    weights /= weights.sum(axis=1, keepdims=True)
    starts = np.arange(0, columns.size + 1, POINTS_AN_AGENT, dtype=np.int32)
    matrix = sparse.csr_array((weights.ravel(), columns.ravel(), starts), shape=(agents, points))
    matrix.sum_duplicates()
    return matrix


def discovery(agents: int, points: int, *, equal: bool, seed: int = SEED) -> DiscoveryGame:
    """Make a random discovery game; requirements equal, or uniform between a half and one of it."""
    rng = np.random.default_rng(seed + 1)
    level = 1 / POINTS_AN_AGENT
    need = np.full(agents, level) if equal else rng.uniform(level / 2, level, agents)
    return DiscoveryGame(random_distributions(agents, points, seed), need)


@njit(cache=True)
def read_once(index: Any, value: Any) -> float:  # pragma: no cover
    """Read a sparse matrix once from memory."""
    total = 0.0
    for p in range(value.size):
        total += value[p] * (index[p] & 1)
    return total


def clock(task: Callable[[], Any]) -> tuple[float, Any]:
    """Time a task once."""
    begin = time.perf_counter()
    result = task()
    return time.perf_counter() - begin, result


def interleaved(tasks: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Time each task in turn, so that a slow minute of the machine falls on all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            seconds[name].append(clock(task)[0])
    return seconds


def warm_up() -> None:
    """Compile the kernels outside of what is timed."""
    solve_stable(discovery(200, 200, equal=True))
    solve_stable(LinearGame(np.eye(3) + 0.1, np.ones(3)))
    matrix = random_distributions(10, 10)
    read_once(matrix.indices, matrix.data)


def row_cp1(quick: bool) -> list[dict[str, Any]]:
    """Stable equilibrium at k = 1,000 against CP 1 by cvxpy and Clarabel."""
    agents = 200 if quick else 1_000
    game = discovery(agents, agents, equal=True)
    dense = LinearGame(game.dense_benefits, game.requirements)
    ours: dict[str, Any] = {}

    def solve(name: str, **options: Any) -> None:
        ours[name] = solve_stable(dense, time_limit=600, **options)

    tasks = {"ours": lambda: solve("ours"), "cp1": lambda: solve("cp1", method="cp1")}
    seconds = interleaved(tasks, 1 if quick else 3)
    mine, theirs = (relative_regret(dense, ours[n].contributions) for n in ("ours", "cp1"))
    ratio = statistics.median(seconds["cp1"]) / statistics.median(seconds["ours"])
    return [
        {
            "row": f"stable k={agents} dense against CP 1 (cvxpy + Clarabel)",
            "seconds": statistics.median(seconds["ours"]),
            "against_seconds": statistics.median(seconds["cp1"]),
            "ratio": ratio,
            "all_seconds": seconds,
            "regret": mine,
            "against_regret": theirs,
            "digits_more_exact": float(np.log10(max(theirs, 1e-300) / max(mine, 1e-17))),
            "goal": "ratio >= 100 and 4 digits more exact",
            "met": bool(ratio >= 100 and theirs / max(mine, 1e-17) >= 1e4),
        }
    ]


def _sparse_row(agents: int, points: int, equal: bool) -> dict[str, Any]:
    """Solve one large sparse game; time reading its data once before and after."""
    warm_up()
    game = discovery(agents, points, equal=equal)
    data = game.distributions
    stream = [clock(lambda: read_once(data.indices, data.data))[0] for _ in range(3)]
    worked = time.process_time()
    seconds, solution = clock(lambda: solve_stable(game, tolerance=1e-6, time_limit=600))
    worked = time.process_time() - worked
    stream += [clock(lambda: read_once(data.indices, data.data))[0] for _ in range(3)]
    kind = "equal" if equal else "unequal"
    return {
        "row": f"stable k={agents:,} n={points:,} sparse QQ', {kind} requirements",
        "nonzeros": int(data.nnz),
        "seconds": seconds,
        "cpu_seconds": worked,
        "load": os.getloadavg()[0],
        "against_seconds": statistics.median(stream),
        "ratio": seconds / statistics.median(stream),
        "sweeps": solution.certificate["sweeps"],
        "regret": relative_regret(game, solution.contributions),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def in_child(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a process of its own, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, arguments)


def rows_sparse(quick: bool) -> list[dict[str, Any]]:
    """Sparse games at growing sizes, to a relative regret of 1e-6, with the growth of time."""
    sizes = (2_000, 4_000) if quick else (25_000, 100_000, 250_000, 1_000_000)
    rows = []
    for equal in (False, True):
        group = [in_child(_sparse_row, size, size, equal) for size in sizes]
        logs = np.log([[r["nonzeros"], r["cpu_seconds"]] for r in group])
        exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
        for row in group:
            row["growth_exponent_in_nonzeros"] = exponent
        last = group[-1]
        last["goal"] = "1M within 60 s of processor time, < 8 GiB"
        last["met"] = bool(
            last["cpu_seconds"] <= 60 and last["peak_gib"] < 8 and last["regret"] <= 1e-6
        )
        rows += group
    return rows


def row_rank_deficient(quick: bool) -> list[dict[str, Any]]:
    """Twice as many agents as points: plain best response stalls, momentum does not."""
    agents = 1_000 if quick else 10_000
    row = in_child(_sparse_row, agents, agents // 2, True)
    row["row"] = f"stable k={agents:,} n={agents // 2:,} rank-deficient"
    return [row]


def row_lp(quick: bool) -> list[dict[str, Any]]:
    """LP 1 at k = 100,000 to a certified relative gap of 1e-3, and PDLP to the same gap."""
    agents = 2_000 if quick else 100_000
    game = discovery(agents, agents, equal=False)
    data = game.distributions
    stream = [clock(lambda: read_once(data.indices, data.data))[0] for _ in range(3)]
    seconds, solution = clock(
        lambda: solve_optimal(game, method="first-order", tolerance=LP_GAP, time_limit=600)
    )
    stream += [clock(lambda: read_once(data.indices, data.data))[0] for _ in range(3)]
    rows = [
        {
            "row": f"LP 1 k={agents:,} first-order, certified",
            "seconds": seconds,
            "against_seconds": statistics.median(stream),
            "ratio": seconds / statistics.median(stream),
            "certified_gap": solution.bounds.relative_gap,
            "rounds": solution.certificate["rounds"],
            "goal": "a certified 1e-3 within 60 s",
            "met": bool(seconds <= 60 and solution.bounds.relative_gap <= LP_GAP),
        }
    ]
    if not PDLP_PYTHON.exists():
        Console(stderr=True).print(
            f"no PDLP to compare with: install ortools and scipy into {PDLP_PYTHON.parents[1]}"
        )
        return rows
    return [*rows, _row_pdlp(game)]


def _row_pdlp(game: DiscoveryGame) -> dict[str, Any]:
    """Solve LP 1 by PDLP and by our method in turn, in processes of their own.

    A turn of both takes minutes, so a large game gets one, and processor time is compared: it
    depends less on what else the machine does. PDLP does not know our certificate. So it gets the
    loosest of a few tolerances at which its answer is certified, and only runs with that tolerance
    count.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unit = float(game.alone.max())
        _write_lp(game, unit, folder / "program.npz")
        for tolerance in PDLP_TOLERANCES:
            theirs = [_run_pdlp(game, unit, tolerance, folder)]
            if theirs[0]["certified_gap"] <= LP_GAP:
                break
        ours = []
        for turn in range(1 if game.size >= 100_000 else 3):
            if turn:
                theirs.append(_run_pdlp(game, unit, tolerance, folder))
            ours.append(in_child(_run_first_order, game.size))
    ratio = statistics.median(
        a["cpu_seconds"] / b["cpu_seconds"] for a, b in zip(theirs, ours, strict=True)
    )
    return {
        "row": f"LP 1 k={game.size:,} first-order against PDLP, processor time",
        "seconds": statistics.median(run["cpu_seconds"] for run in ours),
        "against_seconds": statistics.median(run["cpu_seconds"] for run in theirs),
        "ratio": ratio,
        "all_runs": {"first-order": ours, "pdlp": theirs},
        "pdlp_tolerance": tolerance,
        "certified_gap": max(run["certified_gap"] for run in ours),
        "against_certified_gap": max(run["certified_gap"] for run in theirs),
        "load": os.getloadavg()[0],
        "goal": "half of PDLP's time to the same gap",
        "met": bool(ratio >= 2 and theirs[0]["certified_gap"] >= COMPARABLE * LP_GAP),
    }


def _write_lp(game: DiscoveryGame, unit: float, path: Path) -> None:
    """Write LP 1 in its lifted form, Q r >= mu and Q' theta >= r, for run_pdlp.py."""
    rows, points = game.distributions, game.distributions.shape[1]
    share = sparse.diags_array(1 / game.own_benefits) @ rows
    matrix = sparse.csc_array(
        sparse.block_array([[None, share], [rows.T, -sparse.eye_array(points)]])
    )
    np.savez(
        path,
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=matrix.shape,
        cost=np.concatenate([game.costs, np.zeros(points)]),
        right=np.concatenate([game.alone / unit, np.zeros(points)]),
    )


def _run_pdlp(game: DiscoveryGame, unit: float, tolerance: float, folder: Path) -> dict[str, Any]:
    """Solve the program in the folder by PDLP, and certify its answer."""
    answer = folder / "answer.npz"
    script = Path(__file__).parent / "rivals" / "run_pdlp.py"
    command = [PDLP_PYTHON, script, folder / "program.npz", str(tolerance), answer]
    subprocess.run(command, check=True, capture_output=True)
    with np.load(answer) as found:
        theta = found["x"][: game.size] * unit
        prices = np.maximum(found["y"][: game.size], 0.0) / game.own_benefits
        told = {name: found[name].item() for name in ("seconds", "cpu_seconds", "rounds")}
        told["ortools"] = str(found["version"])
    return {**told, "certified_gap": certify(game, theta, prices)[1].relative_gap}


def _run_first_order(agents: int) -> dict[str, Any]:
    """Solve LP 1 by our first-order method."""
    game = discovery(agents, agents, equal=False)
    begin = time.process_time()
    seconds, solution = clock(
        lambda: solve_optimal(game, method="first-order", tolerance=LP_GAP, time_limit=600)
    )
    return {
        "seconds": seconds,
        "cpu_seconds": time.process_time() - begin,
        "rounds": solution.certificate["rounds"],
        "certified_gap": solution.bounds.relative_gap,
    }


def row_coverage(quick: bool) -> list[dict[str, Any]]:
    """Uniform coverage equilibrium at k = 100,000 agents on 200,000 points to 1e-9."""
    agents = 2_000 if quick else 100_000
    rng = np.random.default_rng(SEED)
    columns = np.stack([rng.choice(2 * agents, 10, replace=False) for _ in range(agents)])
    starts = np.arange(0, columns.size + 1, 10)
    data = np.full(columns.size, 0.1)
    matrix = sparse.csr_array((data, columns.ravel(), starts), shape=(agents, 2 * agents))
    game = CoverageGame(matrix, np.full(agents, 0.75))
    small = CoverageGame(matrix[:50][:, :], np.full(50, 0.75))
    solve_stable(small)
    stored = game.distributions
    stream = [clock(lambda: read_once(stored.indices, stored.data))[0] for _ in range(3)]
    seconds, solution = clock(lambda: solve_stable(game, tolerance=1e-9, time_limit=600))
    stream += [clock(lambda: read_once(stored.indices, stored.data))[0] for _ in range(3)]
    given = solution.contributions
    regret = float(np.abs(game.best_responses(given) - given).max() / given.max())
    return [
        {
            "row": f"uniform coverage stable k={agents:,}, {2 * agents:,} points, 10 each",
            "seconds": seconds,
            "against_seconds": statistics.median(stream),
            "ratio": seconds / statistics.median(stream),
            "regret": regret,
            "goal": "1e-9 within 10 s",
            "met": bool(seconds <= 10 and regret <= 1e-9),
        }
    ]


def rows_sweep(quick: bool) -> list[dict[str, Any]]:
    """One full best-response sweep against reading Q once from memory, at two sizes.

    Q' theta fits a core's cache at the smaller size; at the larger one a sweep reads it at random
    places of memory, which no order of the agents avoids.
    """
    return [_sweep_row(agents, quick) for agents in ((5_000,) if quick else (100_000, 1_000_000))]


def _sweep_row(agents: int, quick: bool) -> dict[str, Any]:
    game = discovery(agents, agents, equal=True)
    data = game.distributions
    theta, idle = np.zeros(agents), np.zeros(agents, dtype=np.bool_)
    found = np.zeros(agents)

    def sweep() -> None:
        sweep_gram(
            data.indptr, data.indices, data.data, game.own_benefits, game.requirements,
            game.minimums, game.limits, theta, found, idle, True,
        )  # fmt: skip

    sweep()
    seconds = interleaved(
        {"sweep": sweep, "read": lambda: read_once(data.indices, data.data)}, 3 if quick else 15
    )
    ratio = statistics.median(a / b for a, b in zip(seconds["sweep"], seconds["read"], strict=True))
    return {
        "row": f"one best-response sweep k={agents:,} against reading Q once",
        "seconds": statistics.median(seconds["sweep"]),
        "against_seconds": statistics.median(seconds["read"]),
        "ratio": ratio,
        "all_seconds": seconds,
        "goal": "within 3 times",
        "met": bool(ratio <= 3),
    }


ROWS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "cp1": row_cp1,
    "sparse": rows_sparse,
    "rank-deficient": row_rank_deficient,
    "lp": row_lp,
    "coverage": row_coverage,
    "sweep": rows_sweep,
}


def machine() -> dict[str, Any]:
    """Say what ran this."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or "unknown"
    packages = ("fedaccord", "numpy", "scipy", "numba", "cvxpy", "clarabel")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads_used": 1,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """Lay the rows out for a terminal."""
    result = Table("what", "seconds", "against", "ratio", "regret or gap", "goal", "met")
    for row in rows:
        exactness = row.get("regret", row.get("certified_gap"))
        result.add_row(
            row["row"],
            f"{row['seconds']:.3g}",
            f"{row['against_seconds']:.3g}",
            f"{row['ratio']:.3g}",
            "" if exactness is None else f"{exactness:.1e}",
            row.get("goal", ""),
            {True: "yes", False: "no"}.get(row.get("met"), ""),
        )
    return result


def measure_rows(
    measures: dict[str, Callable[[bool], Any]],
    chosen: argparse.Namespace,
    *,
    results: Path,
    seed: int,
    machine: Callable[[], Any],
    table: Callable[[Any], Table],
) -> None:
    """Measure the groups asked for, print them, and put them beside the others in the file."""
    groups: dict[str, Any] = {}
    if results.exists() and not chosen.quick:
        groups = json.loads(results.read_text())["groups"]
    console = Console(width=150)
    for name in chosen.only:
        rows = measures[name](chosen.quick)
        groups[name] = {"machine": machine(), "rows": rows}
        console.print(table(rows))
        if not chosen.quick:
            # Written as they come: a run cut short loses only the row in hand.
            text = {"command": "make bench", "seed": seed, "groups": groups}
            replace_file(results, json.dumps(text, indent=1) + "\n")


def main() -> None:
    """Run the rows asked for, keep the others' last results, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    chosen = parser.parse_args()
    warm_up()
    measure_rows(ROWS, chosen, results=RESULTS, seed=SEED, machine=machine, table=table)


if __name__ == "__main__":
    sys.exit(main())
