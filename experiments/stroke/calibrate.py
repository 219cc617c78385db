"""Set the goals of stroke.toml: what nearly every training with all countries reaches.

    python experiments/stroke/calibrate.py

A goal is the mean accuracy of FedAvg with all patients, less 2.6 standard deviations between
trials, rounded down to half a hundredth: a country misses it in about one training of 200. For
each country the table also has how often it reaches that goal with its own patients alone. Trials
are of seed 1001, which no comparison uses; accuracies are on all patients that neither train nor
validate. Takes a minute.
"""

import math
from pathlib import Path

import numpy as np

from fedaccord.federation import Config, FedAvg, Federation, train
from fedaccord.federation.scoring import Scored

SEED, TRIALS, SPREADS = 1001, 60, 2.6


def main() -> None:
    config = Config.load(Path(__file__).with_name("stroke.toml"))
    source = Scored(config.build(seed=SEED), "all")
    algorithm = config.algorithms["FedAvg"]
    together, alone = np.transpose([measure(source.deal(t), algorithm, t) for t in range(TRIALS)])
    mean, spread = together.mean(axis=1), together.std(axis=1, ddof=1)
    goals = [math.floor(200 * goal) / 200 for goal in mean - SPREADS * spread]
    print("country  together    sd   goal   alone  reaches the goal alone")
    for i, name in enumerate(source.names):
        own = (alone[i] >= goals[i]).mean()
        numbers = f"{mean[i]:8.3f}  {spread[i]:.3f}  {goals[i]:.3f}  {alone[i].mean():.3f}"
        print(f"{name:7}  {numbers}  {own:.2f}")
    everyone = (together >= np.array(goals)[:, None]).all(axis=0).mean()
    print(f"All reach their goals together in {everyone:.2f} of {TRIALS} trainings.")
    print("requirement =", goals)


def measure(federation: Federation, algorithm: FedAvg, seed: int) -> list[tuple[float, float]]:
    """Return each client's accuracy after training with all, and after training alone."""
    together = train(federation, algorithm, seed=seed).scored
    found = []
    for i, client in enumerate(federation.clients):
        single = Federation([client], model=federation.model, weights=federation.weights)
        found.append((float(together[i]), float(train(single, algorithm, seed=seed).scored[0])))
    return found


if __name__ == "__main__":
    main()
