"""How far pilots scatter by training and by measuring, and how this changes a plan.

    python experiments/scatter.py

Each committed table of pilots has a row in the result:

- the standard deviation of a run's true accuracy in runs of a usual size, with its 95 % interval;
- the rate r at which more samples make it smaller: its variance falls as samples^-r;
- the standard deviation that measuring adds at the goal;
- how many samples a plan asks for if one measurement judges a run, and if its true accuracy does.

Both plans have the same probability that all agents reach their goals. The script prints the table
and writes it to experiments/scatter.md. It takes about half a minute.
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
# Of the fits and plans.
SEED = 3


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
    found = fit_curves(table if case.goal is None else table.with_goals(case.goal), seed=SEED)
    goals = "its own" if case.goal is None else f"{case.goal:g}"
    cells = [case.name, goals, *_describe_scatter(found), f"{case.probability:g}"]
    return " | ".join(["", *cells, *_describe_plans(found, case.probability), ""]).strip()


def _describe_scatter(found: Measurement) -> list[str]:
    """Return training, its interval, its size and rate, and measuring, each over all agents."""
    drawn = np.sqrt((found.resamples.training**2).mean(axis=1))
    low, high = np.quantile(drawn, [0.025, 0.975])
    measuring = found.measurement_noise
    return [
        f"{np.sqrt((found.training_noise**2).mean()):.4f} [{low:.4f}, {high:.4f}]",
        f"{found.training_noise.min():.4f} to {found.training_noise.max():.4f}",
        f"{found.fading.usual:,.0f}",
        f"{found.fading.rate:.2f}",
        f"{measuring.min():.3f} to {measuring.max():.3f}",
    ]


def _describe_plans(found: Measurement, probability: float) -> list[str]:
    """Return what plans ask for, judged by measurement and by true accuracy."""
    cells = []
    for judged in ("measured", "true"):
        plan = make_plan(found, probability=probability, judged=judged, seed=SEED)
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
        "in runs of samples",
        "rate",
        "measuring",
        "probability asked",
        "samples asked, judged by one measurement",
        "samples asked, judged by true accuracy",
    )
    lines = [f"| {' | '.join(heads)} |", "|-" * len(heads) + "|", *map(describe, CASES)]
    note = (
        f"The fits have the seed {SEED}. `fedaccord plan` uses 0 unless `--seed` is set, so it\n"
        "asks for slightly different numbers of samples from the same pilots with the same "
        "probability."
    )
    text = "\n".join([*lines, "", note])
    print(text)
    replace_file(HERE / "scatter.md", text + "\n")


if __name__ == "__main__":
    main()
