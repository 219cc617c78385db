"""What plans from pilots promise under EARNED, and what new trainings keep of it.

    python experiments/promises.py heart 50 51
    python experiments/promises.py digits 50 51
    python experiments/promises.py sixteen 50

For each seed there are two plans from as many pilots. "before": the last third of the pilots is
near one rough plan, and the plan is about the true accuracy. "after": as `fedaccord frontier` plans
now. Each plan is trained 40 times on another seed, and 20 times more with each contributor giving a
quarter. heart and digits take minutes on a quiet core, sixteen half an hour.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord import from_federation, make_plan
from fedaccord.federation.config.load import Config
from fedaccord.federation.runs.execute import open_executor
from fedaccord.federation.runs.store import Run
from fedaccord.federation.scoring import Scored
from fedaccord.frontier.from_federation import plan_roughly
from fedaccord.games.chances import Chances
from fedaccord.planning.reserve import hold_reserve

HERE = Path(__file__).parent
CONFIGS = {"digits": "frontier.toml", "heart": "frontier.toml", "sixteen": "earned.toml"}
NAME, LEVEL = "EARNED with plan", 0.25
# Trainings with a whole plan, and with a defector; and how far their seed is from the pilots'.
TRIALS, DEFECTIONS, AWAY = 40, 20, 1000


def compare_plans(case: str, seed: int) -> None:
    """Print what the two plans of a seed promise and keep."""
    config = Config.load(HERE / case / CONFIGS[case])
    asked, algorithm = config.frontier, config.algorithms[NAME]
    for label in ("before", "after"):
        measured = label == "after" and asked.scored_on is None
        judged: Any = "measured" if measured else "true"

        def plan(found: Any, judged: Any = judged) -> Any:
            chosen = {"probability": asked.probability, "judged": judged, "levels": [LEVEL]}
            return make_plan(found, seed=seed, **chosen)

        def aim(found: Any, plan: Any = plan) -> Any:
            given = plan(found).contributions
            return plan_roughly(found) if given is None or not given.any() else given

        how: Any = {"aim": aim} if label == "after" else {}
        with tempfile.TemporaryDirectory() as folder:
            found = from_federation(
                config.build(seed=seed), algorithm, seed=seed, store=Path(folder) / "r.db", **how
            )
        made = plan(found)
        if made.contributions is None:
            print(f"{case}, seed {seed}, {label}: {made.verdict}")
            continue
        held = hold_reserve(made.game, made.allocation, cover=algorithm.cover)  # type: ignore[attr-defined]
        given, chances = made.contributions, Chances.of(found, judged)
        ready = algorithm.committed(given.astype(int).tolist()).reserving(held.reserve)
        reached = train_often(config, ready, given, seed + AWAY, TRIALS)
        cut = []
        for agent in np.flatnonzero(given):
            less = given.copy()
            less[agent] = np.floor(LEVEL * less[agent] + 0.5)
            cut.append(train_often(config, ready, less, seed + AWAY, DEFECTIONS)[:, agent].mean())
        promised, defector = chances.everyone(given), chances.could_cut(given, LEVEL)[given > 0]
        print(
            f"{case}, seed {seed}, {label}: {given.sum():.0f} samples; all reach their goals: "
            f"promised {promised.mean():.2f}, kept {reached.all(axis=1).sum()} of {TRIALS}; "
            f"defector: promised {defector.mean():.2f}, kept {np.mean(cut):.2f}"
        )


def train_often(config: Config, ready: Any, given: Any, seed: int, trials: int) -> Any:
    """Return who reaches its goal, by trial and agent, judged as the frontier judges."""
    source: Any = config.build(seed=seed)
    if config.frontier.scored_on is not None:
        source = Scored(source, config.frontier.scored_on)
    scored, brought = getattr(source, "key", ""), tuple(int(n) for n in given)
    runs = [Run(source.fingerprint, ready, brought, seed, n, scored=scored) for n in range(trials)]
    with open_executor(source, workers=1, store=None) as executor:
        outcomes = executor.execute_all(runs)
    return np.array([one.scored_satisfied if scored else one.satisfied for one in outcomes])


if __name__ == "__main__":
    for number in sys.argv[2:]:
        compare_plans(sys.argv[1], int(number))
