"""Whether chosen next pilots narrow a plan more than as many pilots of the design.

Federations are invented as in coverage.py. Each runs one round of the design. Then it runs more
pilots in two ways: those that `fedaccord pilots PILOTS.csv --next N` chooses, and the next N of the
design. The total of the cheapest stable plan is compared with the true one, with the same chance
of runs for both ways.

    python experiments/synthetic/next_pilots.py [REPETITIONS]

Repetitions that are in results/next_pilots.jsonl are not made again; results/next_pilots.md has the
summary. 60 repetitions take about five minutes on a quiet core.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from coverage import POINTS, Truth, measured_runs

from fedaccord import Measurement, PilotTable, fit_curves, make_plan, solve_stable
from fedaccord._checks import Matrix, Vector
from fedaccord._io.files import replace_file
from fedaccord.measurement.design import pilot_design
from fedaccord.planning.next_pilots import choose_next_pilots
from fedaccord.planning.probabilities import spread_of
from fedaccord.planning.selection import follow_equilibria

HERE = Path(__file__).parent
REPETITIONS, VALIDATION = 60, 400
# Seeds begin here: the rule was chosen on others (from 3000 and from 5000 on).
FIRST_SEED = 7000


@dataclass(frozen=True)
class Cell:
    """A kind of federation and its pilots.

    agents: how many.
    first, more: how many pilots before and after the choice.
    curve: as in coverage.py.
    part: of the repetitions that are made.
    """

    agents: int
    first: int
    more: int
    curve: str = "power"
    part: float = 1.0


CELLS = {
    "4 agents, 13 + 8 pilots": Cell(4, 13, 8),
    "4 agents, 13 + 8 pilots, other curves": Cell(4, 13, 8, "exponential", 0.4),
    "8 agents, 21 + 10 pilots": Cell(8, 21, 10, part=0.2),
}
WAYS = ("before", "design", "chosen")


@dataclass(frozen=True, eq=False)
class Trial:
    """One federation, whose pilots are run in two ways.

    truth: what it is.
    seed: of its runs.
    """

    truth: Truth
    seed: int

    def fit(self, given: Matrix) -> Measurement:
        """Run pilots and fit them; the chance of each depends on its place alone."""
        k = len(self.truth.goals)
        chances = [np.random.default_rng([self.seed, n]) for n in range(len(given))]
        reached = [
            measured_runs(self.truth, row[None], VALIDATION, chance)[0]
            for row, chance in zip(given, chances, strict=True)
        ]
        table = PilotTable(
            [f"agent {i}" for i in range(k)],
            given,
            np.array(reached),
            goals=self.truth.goals,
            validation=np.full(k, VALIDATION),
            limits=np.full(k, POINTS),
        )
        return fit_curves(table, seed=self.seed)

    def judge(self, found: Measurement, total: float) -> dict[str, float] | None:
        """Return the error of the stable total and the width of its interval, by the true one."""
        plan = None if found.unreachable else solve_stable(found.game)
        if plan is None or plan.contributions is None:
            return None
        k = len(self.truth.goals)
        box = (np.zeros(k), np.full(k, float(POINTS)))
        given: Vector = np.asarray(plan.contributions)
        drawn = follow_equilibria(found.resamples.benefits, found.needs(), *box, given)
        interval = spread_of(plan.total, drawn.sum(axis=1))
        if interval.low is None or interval.high is None:
            return None
        return {
            "error": plan.total / total - 1,
            "width": (interval.high - interval.low) / total,
            "held": float(interval.low <= total <= interval.high),
        }


def repetition(cell: Cell, seed: int) -> dict[str, Any] | None:
    """Compare two ways to go on; None where there is nothing to compare."""
    truth = Truth.drawn(cell.agents, cell.curve, np.random.default_rng([cell.agents, seed]))
    known = solve_stable(truth.game())
    design = np.array(
        pilot_design([POINTS] * cell.agents, budget=cell.first + cell.more), dtype=float
    )
    trial = Trial(truth, seed)
    first = design[: cell.first]
    before = trial.fit(first)
    plan = make_plan(before, seed=seed)
    if known.contributions is None or plan.contributions is None:
        return None
    found = choose_next_pilots(plan, cell.more)
    ways = {
        "before": before,
        "design": trial.fit(design),
        "chosen": trial.fit(np.concatenate([first, np.array(found.contributions, float)])),
    }
    judged = {name: trial.judge(fit, known.total) for name, fit in ways.items()}
    if None in judged.values():
        return None
    return {"seed": seed, "expected": found.widths[-1], "doubts": len(plan.doubts), **judged}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the repetitions of one cell, in pairs."""
    errors = {name: np.abs([row[name]["error"] for row in rows]) for name in WAYS}
    gain = errors["chosen"] - errors["design"]
    widths = {name: np.array([row[name]["width"] for row in rows]) for name in WAYS}
    return {
        "repetitions": len(rows),
        "mean_error": {name: round(float(errors[name].mean()), 4) for name in WAYS},
        "within_5_percent": {name: round(float((errors[name] <= 0.05).mean()), 3) for name in WAYS},
        "width": {name: round(float(np.median(widths[name])), 3) for name in WAYS},
        "held": {name: round(float(np.mean([r[name]["held"] for r in rows])), 3) for name in WAYS},
        "chosen_minus_design": round(float(gain.mean()), 4),
        "standard_error": round(float(gain.std(ddof=1) / len(gain) ** 0.5), 4),
        "expected_width": round(float(np.median([row["expected"] for row in rows])), 3),
        "found_width": round(float(np.median(widths["chosen"] / widths["before"])), 3),
    }


def main(repetitions: int = REPETITIONS) -> None:
    kept = HERE / "results" / "next_pilots.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    have = {(row["cell"], row["seed"]) for row in rows}
    for name, cell in CELLS.items():
        for seed in range(FIRST_SEED, FIRST_SEED + round(repetitions * cell.part)):
            if (name, seed) not in have:
                rows.append({"cell": name, "seed": seed, **(repetition(cell, seed) or {})})
                with kept.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        write_summary(rows)


def write_summary(rows: list[dict[str, Any]]) -> None:
    """Write what is known so far, of every cell that has been begun."""
    parts = {name: [r for r in rows if r["cell"] == name and "chosen" in r] for name in CELLS}
    cells = {name: summary(part) for name, part in parts.items() if len(part) > 1}
    replace_file(HERE / "results" / "next_pilots.md", table(cells))


def table(cells: dict[str, Any]) -> str:
    """Return the summary for people."""
    lines = [
        "| federation | repetitions | mean error of the total: before, design, chosen | "
        "chosen minus design | within 5 % | width of the interval | its 95 % held | "
        "expected and found width, of that before |",
        "|-" * 8 + "|",
    ]
    for name, cell in cells.items():
        three = {
            key: ", ".join(f"{cell[key][way]:{form}}" for way in WAYS)
            for key, form in (("within_5_percent", ".2f"), ("width", ".2f"), ("held", ".2f"))
        }
        errors = ", ".join(f"{100 * cell['mean_error'][way]:.1f} %" for way in WAYS)
        gain = f"{100 * cell['chosen_minus_design']:.1f} ± {100 * cell['standard_error']:.1f} %"
        lines.append(
            f"| {name} | {cell['repetitions']} | {errors} | {gain} | "
            f"{three['within_5_percent']} | {three['width']} | {three['held']} | "
            f"{cell['expected_width']:.2f}, {cell['found_width']:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
