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
from fedaccord.federation import Config, Solo, train
from fedaccord.federation.history import History
from fedaccord.federation.streams import derived_seed

HERE = Path(__file__).parent
SEEDS = (1000, 1001, 1002)
TRIALS = 20
LEVELS = (1.0, 0.75, 0.5, 0.25)


def main() -> None:
    started = time.perf_counter()
    config = Config.default()
    rows = [summary(level, solo_runs(config, level)) for level in LEVELS]
    result = {
        "command": "python experiments/digits/solo.py",
        "agents": list(config.build(seed=SEEDS[0]).names),
        "requirement": config.agents.requirement,
        "seeds": SEEDS,
        "trials": len(SEEDS) * TRIALS,
        "levels": rows,
        "seconds": round(time.perf_counter() - started),
    }
    for row in rows:
        print(json.dumps(row))
    replace_file(HERE / "results" / "solo.json", json.dumps(result, indent=1) + "\n")


def solo_runs(config: Config, level: float) -> list[History]:
    """Train every agent alone on a part of its points."""
    shared = config.algorithms["FedAvg"]
    agents = len(config.agents.mixtures)
    alone = Solo(
        rounds=shared.rounds,
        batch_size=agents * shared.batch_size,
        learning_rate=shared.learning_rate,
        evaluate_every=1,
    )
    found = []
    for seed in SEEDS:
        source = config.build(seed=seed)
        brought = [round(level * int(points)) for points in source.points]
        for trial in range(TRIALS):
            own = derived_seed(seed, "trial", trial)
            found.append(train(source.deal(trial), alone, contributions=brought, seed=own))
    return found


def summary(level: float, runs: list[History]) -> dict[str, object]:
    """Say what the mean curves reach, and how often single runs do."""
    curves = np.mean([run.accuracy for run in runs], axis=0)
    reached = curves >= runs[0].requirements
    passage = np.where(reached.any(axis=0), reached.argmax(axis=0) + 1, 0)
    satisfied = np.mean([run.satisfied for run in runs], axis=0)
    return {
        "level": level,
        "accuracy": curves[-1].round(3).tolist(),
        "satisfied": satisfied.round(2).tolist(),
        "satisfied_on_average": round(float(satisfied.mean()), 2),
        "round_of_passage_of_the_mean_curve": passage.tolist(),
    }


if __name__ == "__main__":
    main()
