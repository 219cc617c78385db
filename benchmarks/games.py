"""Speed, memory and exactness of the solvers, as ratios taken in one interleaved run.

Every row is measured against something else measured in between its own repetitions, because
machines are noisy: another solver, or reading the same data once from memory. Run it with

    make bench            (or: python benchmarks/games.py [--only ROW ...] [--quick])

It prints a table and replaces benchmarks/results/games.json. One row is measured only if it is
asked for, --only ten-million: a game of ten million agents from a file, which takes up to half an
hour, 12 GiB of memory and 6 GiB of disk.
"""

from __future__ import annotations

import os

# One core: what is compared is algorithms, not threads. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import contextlib
import functools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import (
    clock,
    compare,
    compare_seconds,
    in_child,
    interleaved,
    machine,
    measure_rows,
    parse_rows,
    take_turns,
    write_ratio,
)
from numba import njit
from rich.console import Console
from rich.table import Table
from scipy import sparse

from fedaccord import (
    CoverageGame,
    DiscoveryGame,
    LinearGame,
    read_game,
    solve_optimal,
    solve_stable,
)
from fedaccord.equilibria.linear.kernels import sweep_gram
from fedaccord.equilibria.linear.optimal import certify
from fedaccord.games.linear import relative_regret

RESULTS = Path(__file__).parent / "results" / "games.json"
POINTS_AN_AGENT = 50
SEED = 20211
SWEEP_NOTE = (
    "Where Q' theta is larger than the core's own cache, each entry of Q fetches a line of 64 "
    "bytes to read and write 8 of them, and the line goes back later; an entry itself takes 12 "
    "bytes. Prefetching the lines of the next agents, huge pages, and single precision did not "
    "save time. Agents taken in blocks would all answer the same plan, and the potential might "
    "then rise."
)
# So many numbers fit a core's first cache.
NEAR_PLACES = 2_048
# How often what takes seconds or minutes is measured.
REPEATS = 3
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
    row = compare_seconds(
        f"stable k={agents} dense against CP 1 (cvxpy + Clarabel)",
        seconds["ours"],
        seconds["cp1"],
        faster=True,
        regret=mine,
        against_regret=theirs,
        digits_more_exact=float(np.log10(max(theirs, 1e-300) / max(mine, 1e-17))),
        goal="ratio >= 100 and 4 digits more exact",
    )
    exact = theirs / max(mine, 1e-17) >= 1e4
    return [{**row, "met": bool(row["ratio"] >= 100 and exact)}]


def _read_rows(matrix: Any) -> Callable[[], float]:
    """Return the task of reading a matrix once, and compile it."""
    read_once(matrix.indices[:0], matrix.data[:0])
    return functools.partial(read_once, matrix.indices, matrix.data)


def _solve_in_turn(
    solve: Callable[[], Any], matrix: Any, rounds: int
) -> tuple[dict[str, list[float]], Any]:
    """Solve and read the matrix in turn; give the seconds and a plan."""
    found: list[Any] = []

    def keep() -> None:
        found[:] = [solve()]

    return interleaved({"solve": keep, "read": _read_rows(matrix)}, rounds), found[0]


def _sparse_row(agents: int, points: int, equal: bool) -> dict[str, Any]:
    """Solve one large sparse game, and read its data once, in turn."""
    warm_up()
    game = discovery(agents, points, equal=equal)
    solve = functools.partial(solve_stable, game, tolerance=1e-6, time_limit=600)
    seconds, solution = _solve_in_turn(solve, game.distributions, REPEATS)
    kind = "equal" if equal else "unequal"
    return compare_seconds(
        f"stable k={agents:,} n={points:,} sparse QQ', {kind} requirements",
        seconds["solve"],
        seconds["read"],
        faster=False,
        nonzeros=int(game.distributions.nnz),
        sweeps=solution.certificate["sweeps"],
        regret=relative_regret(game, solution.contributions),
        peak_gib=_peak(),
    )


def _peak() -> float:
    """Return the most memory that this process has held so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _forget_peak() -> None:
    """Begin to measure the most memory again, where the system lets us."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _write_large(agents: int, path: Path) -> None:
    """Draw a game and write it, the matrix not compressed, which would take ten minutes."""
    game = discovery(agents, agents, equal=False)
    matrix = path.with_suffix(".npz")
    sparse.save_npz(matrix, game.distributions, compressed=False)
    data = {
        "model": "discovery",
        "requirements": game.requirements.tolist(),
        "distributions": matrix.name,
    }
    path.write_text(json.dumps(data), encoding="utf-8")


def _ten_million_row(agents: int) -> dict[str, Any]:
    """Write a game of 50 entries an agent, read it, and solve it, all in this process."""
    warm_up()
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.json"
        wrote, _ = clock(lambda: _write_large(agents, path), time.perf_counter)
        peaks["made and written"] = _peak()
        size = path.with_suffix(".npz").stat().st_size / 2**30
        _forget_peak()
        read, game = clock(lambda: read_game(path), time.perf_counter)
        peaks["read"] = _peak()
    solve = functools.partial(solve_stable, game, tolerance=1e-6, time_limit=1800)
    worked, (taken, solution) = clock(lambda: clock(solve, time.perf_counter))
    peaks["solved"] = _peak()
    reading = {"read": _read_rows(game.distributions)}
    again = interleaved(reading, REPEATS, time.perf_counter)["read"]
    return {
        "row": f"stable k={agents:,} n={agents:,} from an npz file",
        "nonzeros": int(game.distributions.nnz),
        "file_gib": size,
        "write_seconds": wrote,
        "read_seconds": read,
        "seconds": taken,
        "cpu_seconds": worked,
        "against_seconds": statistics.median(again),
        # On the clock, and solved once: the spread is that of reading Q once.
        **compare([taken] * REPEATS, again),
        "sweeps": solution.certificate["sweeps"],
        "regret": relative_regret(game, solution.contributions),
        "status": solution.status.key,
        "bounds": [solution.bounds.lower, solution.bounds.upper],
        "total": game.total(solution.contributions),
        "peak_gib_after": peaks,
        "goal": "regret <= 1e-6 within 24 GiB",
        "met": bool(
            relative_regret(game, solution.contributions) <= 1e-6 and max(peaks.values()) < 24
        ),
    }


def row_ten_million(quick: bool) -> list[dict[str, Any]]:
    """Ten million agents, half a billion entries, from a file."""
    return [in_child(_ten_million_row, 10_000 if quick else 10_000_000)]


def rows_sparse(quick: bool) -> list[dict[str, Any]]:
    """Sparse games at growing sizes, to a relative regret of 1e-6, with the growth of time."""
    sizes = (2_000, 4_000) if quick else (25_000, 100_000, 250_000, 1_000_000)
    rows = []
    for equal in (False, True):
        group = [in_child(_sparse_row, size, size, equal) for size in sizes]
        logs = np.log([[r["nonzeros"], r["seconds"]] for r in group])
        exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
        for row in group:
            row["growth_exponent_in_nonzeros"] = exponent
        last = group[-1]
        last["goal"] = "1M within 60 s of processor time, < 8 GiB"
        last["met"] = bool(
            last["seconds"] <= 60 and last["peak_gib"] < 8 and last["regret"] <= 1e-6
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
    solve = functools.partial(
        solve_optimal, game, method="first-order", tolerance=LP_GAP, time_limit=600
    )
    seconds, solution = _solve_in_turn(solve, game.distributions, REPEATS)
    row = compare_seconds(
        f"LP 1 k={agents:,} first-order, certified",
        seconds["solve"],
        seconds["read"],
        faster=False,
        certified_gap=solution.bounds.relative_gap,
        rounds=solution.certificate["rounds"],
        goal="a certified 1e-3 within 60 s",
    )
    rows = [{**row, "met": row["seconds"] <= 60 and bool(solution.bounds.relative_gap <= LP_GAP)}]
    if not PDLP_PYTHON.exists():
        Console(stderr=True).print(
            f"no PDLP to compare with: install ortools and scipy into {PDLP_PYTHON.parents[1]}"
        )
        return rows
    return [*rows, _row_pdlp(game)]


def _row_pdlp(game: DiscoveryGame) -> dict[str, Any]:
    """Solve LP 1 by PDLP and by our method in turn, in processes of their own.

    Processor time is compared: it depends less on what else the machine does. PDLP does not know
    our certificate. So it gets the loosest of a few tolerances at which its answer is certified.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unit = float(game.alone.max())
        _write_lp(game, unit, folder / "program.npz")
        for tolerance in PDLP_TOLERANCES:
            if _run_pdlp(game, unit, tolerance, folder)["certified_gap"] <= LP_GAP:
                break
        more = take_turns(
            {
                "ours": functools.partial(in_child, _run_first_order, game.size),
                "pdlp": functools.partial(_run_pdlp, game, unit, tolerance, folder),
            },
            REPEATS,
        )
    ours, theirs = more["ours"], more["pdlp"]
    row = compare_seconds(
        f"LP 1 k={game.size:,} first-order against PDLP, processor time",
        [run["cpu_seconds"] for run in ours],
        [run["cpu_seconds"] for run in theirs],
        faster=True,
        all_runs={"first-order": ours, "pdlp": theirs},
        pdlp_tolerance=tolerance,
        certified_gap=max(run["certified_gap"] for run in ours),
        against_certified_gap=max(run["certified_gap"] for run in theirs),
        goal="half of PDLP's time to the same gap",
    )
    comparable = theirs[0]["certified_gap"] >= COMPARABLE * LP_GAP
    return {**row, "met": bool(row["ratio"] >= 2 and comparable)}


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
    solve = functools.partial(solve_stable, game, tolerance=1e-9, time_limit=600)
    seconds, solution = _solve_in_turn(solve, game.distributions, REPEATS)
    given = solution.contributions
    regret = float(np.abs(game.best_responses(given) - given).max() / given.max())
    row = compare_seconds(
        f"uniform coverage stable k={agents:,}, {2 * agents:,} points, 10 each",
        seconds["solve"],
        seconds["read"],
        faster=False,
        regret=regret,
        goal="1e-9 within 10 s",
    )
    return [{**row, "met": row["seconds"] <= 10 and regret <= 1e-9}]


@njit(cache=True, fastmath={"reassoc", "contract"})
def touch(
    pointer: Any, index: Any, value: Any, image: Any, found: Any, written: bool
) -> None:  # pragma: no cover
    """Do what a sweep does in memory: read each row's places of the image, and write them."""
    for i in range(found.size):
        first, last = np.uint64(pointer[i]), np.uint64(pointer[i + 1])
        total = 0.0
        for p in range(first, last):
            total += value[p] * image[np.uint64(index[p])]
        found[i] = total
        if written:
            for p in range(first, last):
                image[np.uint64(index[p])] += value[p] * total * 1e-9


def rows_sweep(quick: bool) -> list[dict[str, Any]]:
    """One full best-response sweep against reading Q once from memory, at two sizes.

    Q' theta fits a core's cache at the smaller size; at the larger one a sweep reads and writes it
    at random places of memory, which no order of the agents avoids. Three rows say what that costs:
    the same loop where all places are in the first cache, where they are read, and where they are
    written too.
    """
    sizes = (5_000,) if quick else (100_000, 1_000_000)
    return [row for agents in sizes for row in _sweep_rows(agents, quick)]


def _sweep_rows(agents: int, quick: bool) -> list[dict[str, Any]]:
    game = discovery(agents, agents, equal=True)
    data = game.distributions
    theta, idle = np.zeros(agents), np.zeros(agents, dtype=np.bool_)
    found, image, totals = np.zeros(agents), np.ones(agents), np.zeros(agents)
    near = (np.arange(data.nnz) % min(agents, NEAR_PLACES)).astype(data.indices.dtype)

    def sweep() -> None:
        sweep_gram(
            data.indptr, data.indices, data.data, game.own_benefits, game.requirements,
            game.minimums, game.limits, theta, found, idle, True,
        )  # fmt: skip

    def touches(index: Any, written: bool) -> Callable[[], None]:
        return lambda: touch(data.indptr, index, data.data, image, totals, written)

    tasks = {
        "one best-response sweep": sweep,
        "of that, all places in the first cache": touches(near, True),
        "of that, places read at random": touches(data.indices, False),
        "of that, places read and written at random": touches(data.indices, True),
        "read": lambda: read_once(data.indices, data.data),
    }
    interleaved(tasks, 1)
    seconds = interleaved(tasks, 3 if quick else 15)
    read = seconds.pop("read")
    rows = [
        compare_seconds(f"{name} k={agents:,} against reading Q once", taken, read, faster=False)
        for name, taken in seconds.items()
    ]
    rows[0] |= {"goal": "within 3 times", "met": rows[0]["ratio"] <= 3, "note": SWEEP_NOTE}
    return rows


ROWS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "cp1": row_cp1,
    "sparse": rows_sparse,
    "rank-deficient": row_rank_deficient,
    "lp": row_lp,
    "coverage": row_coverage,
    "sweep": rows_sweep,
    "ten-million": row_ten_million,
}


def table(rows: list[dict[str, Any]]) -> Table:
    """Lay the rows out for a terminal."""
    result = Table("what", "seconds", "against", "ratio [min, max]", "regret or gap", "goal", "met")
    for row in rows:
        exactness = row.get("regret", row.get("certified_gap"))
        result.add_row(
            row["row"],
            f"{row['seconds']:.3g}",
            f"{row['against_seconds']:.3g}",
            write_ratio(row),
            "" if exactness is None else f"{exactness:.1e}",
            row.get("goal", ""),
            {True: "yes", False: "no"}.get(row.get("met"), ""),
        )
    return result


def main() -> None:
    """Run the rows asked for, keep the others' last results, and write the file."""
    chosen = parse_rows(str(__doc__).splitlines()[0], ROWS, rare=["ten-million"]).parse_args()
    warm_up()
    described = functools.partial(machine, "cvxpy", "clarabel")
    measure_rows(ROWS, chosen, results=RESULTS, seed=SEED, machine=described, table=table)


if __name__ == "__main__":
    sys.exit(main())
