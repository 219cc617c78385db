"""Choose the heterogeneity and the goal of emnist.toml by solo learning alone.

The paper says of its four agents, learning alone: with all their data they reach the goal within
the horizon; with half of it or less they do not; the hard ones take nearly three times as long.
Nothing else is looked at here: no federated run is made. Deals and seeds are those of
CALIBRATION, which no other experiment uses.

    python experiments/blum2021/calibrate.py --workers 2
    python experiments/blum2021/calibrate.py --workers 2 --larger-sets

Every finished run is kept in results/calibration.sqlite (not committed); the summary goes to
results/calibration.json. The second command finds the goal of larger-sets.toml by the same rule,
with the bands as they are, and writes results/larger-sets.json.
"""

import argparse
import dataclasses
import json
import math
import platform
from pathlib import Path

import numpy as np

from fedaccord._io.files import replace_file
from fedaccord.federation.algorithms.base import Solo
from fedaccord.federation.config.build import Building
from fedaccord.federation.config.load import Config
from fedaccord.federation.defection.solo import SoloCurves, solo_curves
from fedaccord.federation.runs.store import RunStore

HERE = Path(__file__).parent
CALIBRATION = 1_000_000
# Percentiles of difficulty that count as easy and as hard.
CANDIDATES = [
    ((45, 55), (55, 65)),
    ((50, 60), (60, 70)),
    ((55, 65), (65, 75)),
    ((60, 70), (70, 80)),
    ((50, 65), (65, 80)),
]
# Ten epochs of 1,600 points in batches of 256.
ALONE = Solo(rounds=63, batch_size=256, learning_rate=0.002, evaluate_every=3)
LEVELS = (1.0, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--larger-sets", action="store_true")
    options = parser.parse_args()
    if options.larger_sets:
        larger_sets(options)
        return
    config = Config.load(HERE / "emnist.toml")
    rows = []
    with RunStore(HERE / "results" / "calibration.sqlite") as store:
        for easy, hard in CANDIDATES:
            curves = learnt_alone(config, easy, hard, store, options)
            rows.append({"easy": easy, "hard": hard, **summary(curves), "seconds": curves.seconds})
            print(json.dumps(rows[-1]), flush=True)
    cost = sum(row.pop("seconds") for row in rows)
    result = {
        "command": f"python experiments/blum2021/calibrate.py --trials {options.trials}",
        "rule": "of the bands whose half-data average misses the goal, the one with times_as_long "
        "nearest to 3; the goal is the highest that all agents' averages reach with all data",
        "chosen": chosen(rows),
        "seed": CALIBRATION,
        "machine": platform.processor() or platform.machine(),
        "cpu_seconds": round(cost),
        "candidates": rows,
    }
    replace_file(HERE / "results" / "calibration.json", json.dumps(result, indent=1) + "\n")


def larger_sets(options) -> None:
    """Find the goal of larger sets: the highest that all agents' averages reach with all data."""
    config = Config.load(HERE / "larger-sets.toml")
    # Ten epochs, as with the smaller sets.
    points = round(config.agents.points * (1 - config.agents.validation))
    alone = dataclasses.replace(ALONE, rounds=math.ceil(10 * points / ALONE.batch_size))
    bands = config.agents.easy, config.agents.hard
    with RunStore(HERE / "results" / "calibration.sqlite") as store:
        curves = learnt_alone(config, *bands, store, options, alone)
    result = {
        "command": f"python experiments/blum2021/calibrate.py --larger-sets --trials "
        f"{options.trials}",
        "seed": CALIBRATION,
        "points": points,
        "rounds": alone.rounds,
        "cpu_seconds": round(curves.seconds),
        **summary(curves),
    }
    replace_file(HERE / "results" / "larger-sets.json", json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


def chosen(rows: list[dict]) -> dict:
    """Apply the rule."""
    fit = [row for row in rows if row["half_data_misses"]]
    return min(fit, key=lambda row: abs(row["times_as_long"] - 3))


def learnt_alone(
    config: Config, easy, hard, store: RunStore, options, alone: Solo = ALONE
) -> SoloCurves:
    """Train every agent alone, with all and with half of its points from these bands."""
    agents = dataclasses.replace(config.agents, easy=easy, hard=hard)
    building = Building(
        dataclasses.replace(config, agents=agents), cache=HERE / "results" / "cache"
    )
    return solo_curves(
        *(building.source(CALIBRATION), alone),
        levels=LEVELS,
        trials=options.trials,
        seed=CALIBRATION,
        workers=options.workers,
        store=store,
    )


def summary(curves: SoloCurves) -> dict[str, object]:
    """Find the goal, and say how far the paper's statements hold at it.

    The paper shows averaged curves, so averages over the trials decide. The goal is the highest
    (in hundredths) that every agent's averaged curve reaches with all its data.
    """
    full, half = curves.mean(1.0), curves.mean(0.5)
    goal = math.floor(100 * full.max(axis=0).min()) / 100
    rounds = curves.rounds[np.argmax(full >= goal, axis=0)]
    return {
        "goal": goal,
        "half_data_averaged_over_agents": round(float(half.mean(axis=1).max()), 3),
        "half_data_misses": bool(half.mean(axis=1).max() < goal),
        "rounds_to_goal": rounds.tolist(),
        "times_as_long": round(float(rounds[:2].mean() / rounds[2:].mean()), 2),
        "accuracy_all": full[-1].round(3).tolist(),
        "accuracy_half": half[-1].round(3).tolist(),
    }


if __name__ == "__main__":
    main()
