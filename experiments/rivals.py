"""Choose the settings of the rivals in a comparison, on a seed that no comparison uses.

    python experiments/rivals.py CONFIG [TRIALS]

Each rival of CONFIG has a list of values for one setting. They are tried in order until all agents
reach their goals in every trial; else the value is taken with which they do so most often, and of
equals the one whose worst agent is furthest above its goal on average. All else is as in CONFIG.
Trials are of seed 1001. Writes results/rivals-settings.json next to CONFIG; the chosen values
belong into CONFIG by hand.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._io.files import replace_file
from fedaccord.federation import Algorithm, Config, train
from fedaccord.federation.config.build import Building
from fedaccord.federation.scoring import Scored

SEED, TRIALS = 1001, 12
# The setting of each rival and its values; "times" that of FedAvg in the config.
VALUES: dict[str, tuple[str, tuple[float, ...]]] = {
    "afl": ("ascent", (0.1, 0.03, 0.3)),
    "q-ffl": ("learning_rate", (0.1, 0.3, 1.0, 3.0)),
    "fedprox": ("learning_rate times", (1, 0.3, 3)),
    "ditto": ("learning_rate times", (1, 0.3, 3)),
    "maxfl": ("thresholds", (0.5, 1.0, 0.7, 0.3)),
    "on-demand": ("rate", (0.05, 0.02, 0.15)),
    "fedce": ("exponent", (1.0, 0.5, 2.0)),
}


def main(path: Path, trials: int) -> None:
    config = Config.load(path)
    source: Any = Building(config, cache=path.parent / "results" / "cache").source(SEED)
    judged = config.frontier.scored_on
    if judged is not None:
        source = Scored(source, judged)
    started = time.perf_counter()
    rivals = {name: one for name, one in config.algorithms.items() if one.kind in VALUES}
    base = config.algorithms["FedAvg"].learning_rate
    chosen = {name: choose(source, one, base, trials) for name, one in rivals.items()}
    result = {
        "command": f"python experiments/rivals.py {path.parent.name}/{path.name} {trials}",
        "seed": SEED,
        "trials": trials,
        "scored_on": judged,
        "chosen": chosen,
        "seconds": round(time.perf_counter() - started),
    }
    replace_file(
        path.parent / "results" / "rivals-settings.json", json.dumps(result, indent=1) + "\n"
    )


def choose(source: Any, rival: Algorithm, base: float, trials: int) -> dict[str, Any]:
    """Return the best value of a rival's setting, and what was seen with each that was tried."""
    setting, values = VALUES[rival.kind]
    if setting == "learning_rate times":
        setting, values = "learning_rate", tuple(round(base * value, 6) for value in values)
    tried: list[dict[str, Any]] = []
    for value in values:
        given: Any = (value,) * len(source.names) if setting == "thresholds" else value
        margins = find_margins(source, dataclasses.replace(rival, **{setting: given}), trials)
        worst = margins.min(axis=1)
        share = float((worst >= 0).mean())
        seen = {"value": value, "all": share, "worst_margin": round(float(worst.mean()), 4)}
        print(rival.name, setting, json.dumps(seen), flush=True)
        tried.append(seen)
        if share == 1:
            break
    best = max(tried, key=lambda one: (one["all"], one["worst_margin"]))
    return {"setting": setting, "value": best["value"], "tried": tried}


def find_margins(source: Any, algorithm: Algorithm, trials: int) -> np.ndarray:
    """Return how far above its goal each agent ends, by trial."""
    found = []
    for trial in range(trials):
        federation = source.deal(trial)
        history = train(federation, algorithm, seed=trial)
        reached = history.accuracy[-1] if history.scored is None else history.scored
        found.append(reached - federation.requirements)
    return np.array(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else TRIALS)
