"""How far pilots scatter by training and by measuring, and what that changes in a plan.

    python experiments/scatter.py

For each committed table of pilots: the standard deviation of a run's true accuracy (with the
interval that holds it with 95 %), the standard deviation that measuring adds at the goal, and how
many samples a plan asks for where runs are judged by one measurement, and by their true accuracy,
both with the same probability that all agents reach their goals. The table is printed and written
to experiments/scatter.md; it takes about half a minute.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from fedaccord import PilotTable, fit_curves, make_plan
from fedaccord._io.files import replace_file
from fedaccord.measurement.fit import Measurement

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A table of pilots and what is asked of its plans.

    name: what people call it.
    pilots: where the table is.
    probability: that all agents reach their goals.
    goal: of all agents; None where the table has goals.
    """

    name: str
    pilots: str
    probability: float
    goal: float | None = None


CASES = (
    Case("digits", "digits/pilots.csv", 0.75, goal=0.75),
    Case("EMNIST, sixteen agents", "sixteen/pilots.csv", 0.95),
    Case("heart", "heart/pilots.csv", 0.9),
)


def describe(case: Case) -> str:
    """Return the row of one table of pilots."""
    table = PilotTable.load(HERE / case.pilots)
    found = fit_curves(table if case.goal is None else table.with_goals(case.goal), seed=3)
    goals = "its own" if case.goal is None else f"{case.goal:g}"
    cells = [case.name, goals, *_describe_scatter(found), f"{case.probability:g}"]
    return " | ".join(["", *cells, *_describe_plans(found, case.probability), ""]).strip()


def _describe_scatter(found: Measurement) -> list[str]:
    """Return training, its interval, and measuring, each over all agents."""
    drawn = np.sqrt((found.resamples.training**2).mean(axis=1))
    low, high = np.quantile(drawn, [0.025, 0.975])
    measuring = found.measurement_noise
    return [
        f"{np.sqrt((found.training_noise**2).mean()):.4f} [{low:.4f}, {high:.4f}]",
        f"{found.training_noise.min():.4f} to {found.training_noise.max():.4f}",
        f"{measuring.min():.3f} to {measuring.max():.3f}",
    ]


def _describe_plans(found: Measurement, probability: float) -> list[str]:
    """Return what plans ask for, judged by measurement and by true accuracy."""
    cells = []
    for judged in ("measured", "true"):
        plan = make_plan(found, probability=probability, judged=judged, seed=3)
        if plan.contributions is None or plan.everyone is None:
            cells.append("no plan")
            continue
        cells.append(f"{plan.contributions.sum():,.0f} (P {plan.everyone.value:.2f})")
    return cells


def main() -> None:
    """Print and write the table."""
    heads = (
        "pilots of",
        "goals",
        "training, all agents [95 %]",
        "training, single agents",
        "measuring",
        "probability asked",
        "samples asked, judged by one measurement",
        "samples asked, judged by true accuracy",
    )
    lines = [f"| {' | '.join(heads)} |", "|-" * len(heads) + "|", *map(describe, CASES)]
    text = "\n".join(lines)
    print(text)
    replace_file(HERE / "scatter.md", text + "\n")


if __name__ == "__main__":
    main()
