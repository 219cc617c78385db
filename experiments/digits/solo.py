"""What the agents of the built-in digits federation reach alone, with all or part of their data.

The paper says of its four agents, learning alone: with all their data they reach the goal within
the horizon; with half of it or less they do not; the hard ones take nearly three times as long.
The built-in mixtures, goal and learning rate were chosen by these statements and by nothing else:
no federated run is made here, and no audit has these seeds.

    python experiments/digits/solo.py

A round alone has as many samples as a round of the federation. The same agents with twice as many
points to bring, of whom fedaccord reproduce asks whether trends hold with larger sets, get the
highest goal, in hundredths, that all their mean curves reach with all their data. Takes about two
minutes and writes results/solo.json.
"""

import json
import math
import time
from pathlib import Path

import numpy as np

from fedaccord._io.files import replace_file
from fedaccord.federation import Config
from fedaccord.federation.defection.solo import SoloCurves, solo_curves
from fedaccord.reproduce.section_6_defection import double_sets
from fedaccord.reproduce.section_6_solo import train_digits_alone

HERE = Path(__file__).parent
SEEDS = (1000, 1001, 1002)
TRIALS = 20


def main() -> None:
    started = time.perf_counter()
    config = train_digits_alone(Config.default())
    parts = learnt_alone(config, config.audit.levels)
    rows = [summary(level, parts) for level in config.audit.levels]
    result = {
        "command": "python experiments/digits/solo.py",
        "agents": list(parts[0].clients),
        "requirement": config.agents.requirement,
        "seeds": SEEDS,
        "trials": len(SEEDS) * TRIALS,
        "levels": rows,
        "larger_sets": larger_sets(),
        "seconds": round(time.perf_counter() - started),
    }
    for row in rows:
        print(json.dumps(row))
    print(json.dumps(result["larger_sets"]))
    replace_file(HERE / "results" / "solo.json", json.dumps(result, indent=1) + "\n")


def learnt_alone(config: Config, levels: tuple[float, ...]) -> list[SoloCurves]:
    """Train every agent alone on each part of its points."""
    alone = config.algorithms["Solo"]
    return [
        solo_curves(config.build(seed=seed), alone, levels=levels, trials=TRIALS, seed=seed)
        for seed in SEEDS
    ]


def larger_sets() -> dict[str, object]:
    """Find the goal of agents with twice as many points to bring."""
    config = train_digits_alone(double_sets(Config.default()))
    parts = learnt_alone(config, (1.0, 0.5))
    full, half = (
        np.concatenate([part.accuracy[level] for part in parts]).mean(axis=0)
        for level in (1.0, 0.5)
    )
    return {
        "goal": math.floor(100 * full.max(axis=0).min()) / 100,
        "accuracy_all": full[-1].round(3).tolist(),
        "accuracy_half": half[-1].round(3).tolist(),
    }


def summary(level: float, parts: list[SoloCurves]) -> dict[str, object]:
    """Say what the mean curves reach, and how often single runs do."""
    runs, goals = np.concatenate([part.accuracy[level] for part in parts]), parts[0].requirements
    curves = runs.mean(axis=0)
    reached = curves >= goals
    passage = np.where(reached.any(axis=0), reached.argmax(axis=0) + 1, 0)
    satisfied = (runs[:, -1] >= goals).mean(axis=0)
    return {
        "level": level,
        "accuracy": curves[-1].round(3).tolist(),
        "satisfied": satisfied.round(2).tolist(),
        "satisfied_on_average": round(float(satisfied.mean()), 2),
        "round_of_passage_of_the_mean_curve": passage.tolist(),
    }


if __name__ == "__main__":
    main()
