"""What the agents of the built-in digits federation reach alone, with all or part of their data.

The paper says of its four agents, learning alone: with all their data they reach the goal within
the horizon; with half of it or less they do not; the hard ones take nearly three times as long.
The built-in mixtures, goal and learning rate were chosen by these statements and by nothing else:
no federated run is made here, and no audit has these seeds.

    python experiments/digits/solo.py

A round alone has as many samples as a round of the federation. Takes about a minute and writes
results/solo.json.
"""

import json
import time
from pathlib import Path

import numpy as np

from fedaccord._files import replace_file
from fedaccord.federation import Config, Solo
from fedaccord.federation.solo import SoloCurves, solo_curves

HERE = Path(__file__).parent
SEEDS = (1000, 1001, 1002)
TRIALS = 20
LEVELS = (1.0, 0.75, 0.5, 0.25)


def main() -> None:
    started = time.perf_counter()
    config = Config.default()
    parts = learnt_alone(config)
    rows = [summary(level, parts) for level in LEVELS]
    result = {
        "command": "python experiments/digits/solo.py",
        "agents": list(parts[0].clients),
        "requirement": config.agents.requirement,
        "seeds": SEEDS,
        "trials": len(SEEDS) * TRIALS,
        "levels": rows,
        "seconds": round(time.perf_counter() - started),
    }
    for row in rows:
        print(json.dumps(row))
    replace_file(HERE / "results" / "solo.json", json.dumps(result, indent=1) + "\n")


def learnt_alone(config: Config) -> list[SoloCurves]:
    """Train every agent alone on each part of its points."""
    shared = config.algorithms["FedAvg"]
    alone = Solo(
        rounds=shared.rounds,
        batch_size=len(config.agents.mixtures) * shared.batch_size,
        learning_rate=shared.learning_rate,
        evaluate_every=1,
    )
    return [
        solo_curves(config.build(seed=seed), alone, levels=LEVELS, trials=TRIALS, seed=seed)
        for seed in SEEDS
    ]


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
