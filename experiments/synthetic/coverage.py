"""How near measured games come to the true ones, and whether their intervals cover the truth.

Federations are made up whose learning curves and benefits are known. Pilots of them are drawn with
the scatter of runs and of validation points, a game is fitted to the pilots, and its needs, its
cheapest stable plan and that plan's total are compared with the true ones.

    python experiments/synthetic/coverage.py [REPETITIONS]

Repetitions that are in results/coverage.jsonl are not made again; results/coverage.json has the
summary. 200 repetitions, 40 of the cells with 16 agents, take about ten minutes on a quiet core.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr

from fedaccord import LinearGame, PilotTable, fit_curves, solve_stable
from fedaccord._checks import Matrix, Vector
from fedaccord._io.files import replace_file
from fedaccord.games.chances import Chances
from fedaccord.games.measured import find_needs
from fedaccord.measurement.design import pilot_design
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.margins import Aim, MarginSearch
from fedaccord.planning.probabilities import spread, spread_of
from fedaccord.planning.selection import (
    MOST_AGENTS,
    continue_equilibria,
    find_equilibria,
    follow_equilibria,
)

HERE = Path(__file__).parent
REPETITIONS = 200
# What each agent has, and how far two runs differ beside what the validation points explain.
POINTS, RUN_SCATTER = 1000, 0.01
# The probability that plans promise.
PROMISED = 0.9


@dataclass(frozen=True)
class Cell:
    """A kind of federation and what is spent on measuring it.

    agents: how many.
    pilots: how many trainings.
    validation: points that each agent measures on.
    curve: "power", as is fitted; or "exponential", to which no fitted curve is equal.
    """

    agents: int
    pilots: int
    validation: int = 400
    curve: str = "power"


CELLS = {
    "4 agents, 39 pilots": Cell(4, 39),
    "4 agents, 117 pilots, 2000 validation points": Cell(4, 117, validation=2000),
    "4 agents, 13 pilots": Cell(4, 13),
    "16 agents, 111 pilots": Cell(16, 111),
    "16 agents, 37 pilots": Cell(16, 37),
    "4 agents, 39 pilots, other curves": Cell(4, 39, curve="exponential"),
    "4 agents, 39 pilots, 2000 validation points": Cell(4, 39, validation=2000),
}


@dataclass(frozen=True, eq=False)
class Truth:
    """A federation that is known.

    benefits: W.
    needs: the effective samples at which each reaches its goal.
    goals: accuracies.
    floors, heads, paces: of the curves.
    curve: as in Cell.
    """

    benefits: Matrix
    needs: Vector
    goals: Vector
    floors: Vector
    heads: Vector
    paces: Vector
    curve: str

    @classmethod
    def drawn(cls, agents: int, curve: str, rng: np.random.Generator) -> Truth:
        """Make one up: what samples are worth differs from federation to federation and in it."""
        level = rng.uniform(0.15, 0.6) * np.sqrt(3 / (agents - 1))
        benefits = np.minimum(level * np.exp(0.4 * rng.standard_normal((agents, agents))), 0.95)
        np.fill_diagonal(benefits, 1.0)
        return cls(
            benefits=benefits,
            needs=rng.uniform(300, 900, agents),
            goals=rng.uniform(0.78, 0.85, agents),
            floors=rng.uniform(0.03, 0.08, agents),
            heads=np.exp(rng.uniform(np.log(10), np.log(100), agents)),
            paces=rng.uniform(0.3, 0.75, agents),
            curve=curve,
        )

    def accuracies(self, contributions: Matrix) -> Matrix:
        """Return what the agents reach on average; their goals at their needs, on either curve."""
        samples = contributions @ self.benefits.T
        span = 1 - self.goals - self.floors
        ratio = (self.heads + samples) / (self.heads + self.needs)
        if self.curve == "power":
            above = span * ratio**-self.paces
        else:
            above = span * np.exp(1.2 * self.paces * (1 - ratio**0.5))
        return np.clip(1 - self.floors - above, 0.02, 0.999)

    def everyone(self, contributions: Vector) -> float:
        """Return the probability that all true accuracies of one run reach their goals."""
        ahead = self.accuracies(contributions[None])[0] - self.goals
        return float(ndtr(ahead / RUN_SCATTER).prod())

    def game(self) -> LinearGame:
        """Return the game that pilots are to find."""
        return LinearGame(self.benefits, self.needs, limits=np.full(len(self.needs), POINTS))


def measured_runs(truth: Truth, given: Matrix, validation: int, rng: np.random.Generator) -> Matrix:
    """Draw the accuracies of runs: every run has its own luck and fresh validation points."""
    mean = truth.accuracies(given)
    lucky = np.clip(mean + RUN_SCATTER * rng.standard_normal(mean.shape), 0, 1)
    return rng.binomial(validation, lucky) / validation


def measure(cell: Cell, seed: int, *, resamples: int = 200) -> tuple[Truth, Measurement]:
    """Make up a federation, draw its pilots and fit them."""
    rng = np.random.default_rng([cell.agents, cell.pilots, cell.validation, seed])
    truth = Truth.drawn(cell.agents, cell.curve, rng)
    design = pilot_design([POINTS] * cell.agents, budget=cell.pilots)
    given = np.array([[float(points) for points in row] for row in design])
    table = PilotTable(
        [f"agent {i}" for i in range(cell.agents)],
        given,
        measured_runs(truth, given, cell.validation, rng),
        goals=truth.goals,
        validation=np.full(cell.agents, cell.validation),
        limits=np.full(cell.agents, POINTS),
    )
    return truth, fit_curves(table, seed=seed, resamples=resamples)


def repetition(cell: Cell, seed: int, *, resamples: int = 200) -> dict[str, Any]:
    """Compare one measured game with the true one; what it has no answer to is null."""
    truth, found = measure(cell, seed, resamples=resamples)
    known = solve_stable(truth.game())
    needs = find_needs(found.curves, truth.goals)
    row: dict[str, Any] = {
        "seed": seed,
        "unreachable": len(found.unreachable),
        "need_error": _number(np.median(np.abs(needs / truth.needs - 1))),
        "needs": _share(truth.needs, spread(needs, found.needs())),
    }
    row.update(keep_promise(truth, found))
    plan = None if found.unreachable else solve_stable(found.game)
    if known.contributions is None or plan is None or plan.contributions is None:
        return {**row, "known": known.contributions is not None, "error": None}
    theirs, total = np.asarray(known.contributions), known.total
    box = (np.zeros(cell.agents), np.full(cell.agents, float(POINTS)))
    drawn = follow_equilibria(
        found.resamples.benefits, found.needs(), *box, np.asarray(plan.contributions)
    )
    interval = spread_of(plan.total, drawn.sum(axis=1))
    given = spread(np.asarray(plan.contributions), drawn)
    expected = found.accuracies(theirs)
    rng = np.random.default_rng([seed, 1])
    runs = expected + np.hypot(
        found.resamples.training, found.measurement_noise
    ) * rng.standard_normal(expected.shape)
    once = measured_runs(truth, theirs, cell.validation, rng)
    return {
        **row,
        "known": True,
        "error": plan.total / total - 1,
        "total": bool(interval.low <= total <= interval.high),
        "width": _number((interval.high - interval.low) / total),
        "contributions": _share(theirs, given),
        "accuracies": _share(truth.accuracies(theirs), spread(expected[0], expected)),
        "runs": _share(once, spread(expected[0], runs)),
    }


def keep_promise(truth: Truth, found: Measurement) -> dict[str, float | None]:
    """Compare the probability that a plan promises with the true one; null without a plan."""
    aim = None if found.unreachable else find_aim(found)
    if aim is None:
        return {"promised": None, "kept": None}
    return {"promised": aim.everyone, "kept": truth.everyone(aim.contributions)}


def find_aim(found: Measurement) -> Aim | None:
    """Choose the margin of a plan as the planner does, without prices and comparisons."""
    chances = Chances.of(found)
    start = find_equilibria(found.game)

    def aim_at(z: float, game: LinearGame) -> Aim | None:
        few = game.size <= MOST_AGENTS
        plans = find_equilibria(game) if few else continue_equilibria(game, start.contributions)
        if plans is None or not len(plans):
            return None
        given = np.ceil(plans.contributions[0] - 1e-6)
        return Aim(z, game, plans, 0, given, float(chances.everyone(given).mean()))

    return MarginSearch(found.game, found.noise(), aim_at).find(PROMISED)


def _share(values: Vector, intervals: Any) -> float:
    """Return the share of values that lie in their intervals, up to the solvers' tolerance."""
    inside = (intervals.low <= values + 1e-6) & (values <= intervals.high + 1e-6)
    return float(np.mean(inside))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the repetitions of one cell."""
    whole = [row for row in rows if row["error"] is not None]
    planned = [row for row in rows if row["promised"] is not None]
    errors = np.abs([row["error"] for row in whole])
    widths = [np.inf if row["width"] is None else row["width"] for row in whole]
    return {
        "repetitions": len(rows),
        "without_answer": len(rows) - len(whole),
        "error_of_total": {
            name: round(float(np.quantile(errors, part)), 4)
            for name, part in (("median", 0.5), ("90 %", 0.9), ("95 %", 0.95))
        },
        "bias_of_total": round(float(np.mean([row["error"] for row in whole])), 4),
        "within_5_percent": round(float(np.mean(errors <= 0.05)), 4),
        "width_of_total": round(float(np.median(widths)), 4),
        "promised": _mean(planned, "promised"),
        "kept": _mean(planned, "kept"),
        "coverage": {
            "needs": _mean(rows, "needs"),
            **{name: _mean(whole, name) for name in ("contributions", "total")},
            **{name: _mean(whole, name) for name in ("accuracies", "runs")},
        },
    }


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return round(float(np.mean([row[name] for row in rows])), 4)


def main(repetitions: int = REPETITIONS) -> None:
    kept = HERE / "results" / "coverage.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    rows = [json.loads(line) for line in lines]
    have = {(row["cell"], row["seed"]) for row in rows}
    started = time.process_time()
    for name, cell in CELLS.items():
        # Sixteen agents are sixteen curves, and take ten times as long.
        for seed in range(repetitions if cell.agents == 4 else repetitions // 5):
            if (name, seed) not in have:
                rows.append({"cell": name, **repetition(cell, seed)})
                with kept.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                write_summary(rows)
    print(f"{time.process_time() - started:.0f} s")


def write_summary(rows: list[dict[str, Any]]) -> None:
    """Write what is known so far, of every cell that has been begun."""
    parts = {name: [row for row in rows if row["cell"] == name] for name in CELLS}
    cells = {name: summary(part) for name, part in parts.items() if part}
    text = json.dumps(
        {"command": "python experiments/synthetic/coverage.py", "cells": cells}, indent=1
    )
    replace_file(HERE / "results" / "coverage.json", text + "\n")
    replace_file(HERE / "results" / "coverage.md", table(cells))


def table(cells: dict[str, Any]) -> str:
    """Return the summary for people."""
    covered = ("needs", "contributions", "total", "accuracies", "runs")
    lines = [
        "| federation | repetitions | error of the total: median, 90 % | within 5 % | "
        f"width of its interval | promised | kept | {' | '.join(covered)} |",
        "|-" * (7 + len(covered)) + "|",
    ]
    for name, cell in cells.items():
        error = cell["error_of_total"]
        shares = " | ".join(f"{cell['coverage'][key]:.3f}" for key in covered)
        lines.append(
            f"| {name} | {cell['repetitions']} | {100 * error['median']:.1f} %, "
            f"{100 * error['90 %']:.1f} % | {cell['within_5_percent']:.2f} | "
            f"{100 * cell['width_of_total']:.0f} % | {cell['promised']:.3f} | {cell['kept']:.3f} | "
            f"{shares} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
