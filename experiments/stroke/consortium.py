"""Plan a stroke network of ten countries, from patients to payments, and audit what it promises.

    python experiments/stroke/consortium.py [STEP ...]

Steps, in order: patients, histograms, calibrate, pilots, harm, plan, coalitions, share, audit.
Without a step, all are done. Every finished training is kept in cache/runs.sqlite, so that the same
command goes on where it was stopped. Results go to results/; each step says what it does.
FEDACCORD_DATA names the folder with stroke-trial-36-countries.csv.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONFIG, CACHE, RESULTS = HERE / "consortium.toml", HERE / "cache", HERE / "results"
PATIENTS, STORE = CACHE / "patients.csv", CACHE / "runs.sqlite"
MEASURES = RESULTS / "measures.csv"
# Goals: what all countries reach together with fewer patients than they have, less some spreads.
SEED, GIVEN, TOGETHER, ALONE, SPREADS = 1001, 40, 60, 30, 2.6
# In a pilot each country gives one of these parts of its patients, drawn at random; in
# every tenth pilot all give all. Small pilots scatter more than any training of the plan would.
PILOTS, PARTS, PILOT_SEED = 200, (0.0, 0.5, 0.5, 1.0, 1.0, 1.0), 4
# Harm counts in the game from this probability on.
CERTAINTY, PROBABILITY = 0.95, 0.8
PLAN = RESULTS / "plan.csv"
GAME = RESULTS / "game.json"


def prepare_patients() -> None:
    """Write the table of patients with one outcome: dead or dependent after six months."""
    source = Path(os.environ["FEDACCORD_DATA"]) / "stroke-trial-36-countries.csv"
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["dead_14_days"]
        row["dead_or_dependent"] = str(int(row.pop("outcome_6_months") in ("1", "2")))
    CACHE.mkdir(exist_ok=True)
    with PATIENTS.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    say(f"{len(rows):,} patients written to {PATIENTS.relative_to(ROOT)}")


def count_outcomes() -> None:
    """Write how many patients of each country fare well and badly."""
    with PATIENTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = load().data.sites
    counts = Counter((row["country"], row["dead_or_dependent"]) for row in rows)
    lines = [[name, counts[name, "0"], counts[name, "1"]] for name in names]
    write_csv("histograms.csv", ["agent", "well", "dead or dependent"], lines)


def calibrate() -> None:
    """Set the goals on a seed of their own, and say how often a country reaches them alone."""
    config = load()
    easy = [dataclasses.replace(goal, target=0.5) for goal in config.agents.goals]
    config = dataclasses.replace(config, agents=dataclasses.replace(config.agents, goals=easy))
    source = config.build(seed=SEED)
    size = len(source.names)
    most = int(source.points[0])
    design = [[GIVEN] * size] * TOGETHER
    design += [[most * (j == i) for j in range(size)] for i in range(size) for _ in range(ALONE)]
    values = run(source, design, SEED).values
    together, rest = values[:TOGETHER], values[TOGETHER:].reshape(size, ALONE, size, -1)
    mean, spread = together.mean(axis=0), together.std(axis=0, ddof=1)
    goals = np.floor(200 * (mean - SPREADS * spread)) / 200
    alone = np.array([rest[i, :, i] for i in range(size)])
    both = (alone >= goals[:, None]).all(axis=2).mean(axis=1)
    head = ["country", "measure", "together", "sd", "goal", "alone", "alone_sd", "reaches_alone"]
    lines = [
        [
            name,
            rule.name or rule.measure,
            *np.round([mean[i, g], spread[i, g], goals[i, g]], 4),
            *np.round([alone[i, :, g].mean(), alone[i, :, g].std(ddof=1), both[i]], 4),
        ]
        for i, name in enumerate(source.names)
        for g, rule in enumerate(source.rules)
    ]
    write_csv("goals.csv", head, lines)
    for g, rule in enumerate(source.rules):
        say(f"target of {rule.measure} = {goals[:, g].tolist()}")
    say(f"All reach their goals in {(together >= goals).all(axis=(1, 2)).mean():.2f} of trainings")


def run_pilots() -> None:
    """Train pilots with random contributions, and write what came of every goal."""
    config = load()
    source = config.build(seed=PILOT_SEED)
    random = np.random.default_rng(PILOT_SEED)
    design = np.rint(random.choice(PARTS, size=(PILOTS, len(source.names))) * source.points)
    design[::10] = source.points
    table = run(source, design.astype(int).tolist(), PILOT_SEED)
    dataclasses.replace(table, values=np.round(table.values, 4)).save(MEASURES)
    say(f"{len(table)} pilots written to {MEASURES.relative_to(ROOT)}")


def find_harm() -> None:
    """List what samples of each country do to each goal of each other, with the probability."""
    from fedaccord import find_harm, fit_goals

    measured = fit_goals(MEASURES, seed=PILOT_SEED)
    lines = [
        [name, one.agent, one.other, *np.round([one.worth, one.error, one.probability], 4)]
        for name, fit in measured.measurements.items()
        for one in find_harm(fit)
    ]
    head = ["measure", "agent", "other", "worth", "standard_error", "probability_of_harm"]
    write_csv("harm.csv", head, lines)


def find_coalitions() -> None:
    """Find who should federate with whom: coalitions in which each plays its cheapest plan."""
    call("coalitions", str(GAME), "--plans", "cheapest", save="coalitions.json")


def make_plan() -> None:
    """Plan who gives how much, so that one training reaches all goals with the probability."""
    options = ["--probability", str(PROBABILITY), "--harm", str(CERTAINTY)]
    options += ["--seed", str(PILOT_SEED), "--save", str(PLAN), "--save-game", str(GAME)]
    call("plan", str(MEASURES), *options, save="plan.json")


def share_costs() -> None:
    """Find who pays whom for the cheapest plan."""
    call("share", str(GAME), "--save", str(RESULTS / "payments.csv"), save="share.json")


def audit() -> None:
    """Train under EARNED with the plan, new deals and seeds; then each contributor defects."""
    options = ["--plan", str(PLAN), "--results", str(STORE), "--workers", "1"]
    call("audit", str(CONFIG), *options, save="audit.json")
    machine = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "seeds": {"goals": SEED, "pilots": PILOT_SEED, "audit": load().audit.seed},
        "trainings": {
            "goals": TOGETHER + ALONE * len(load().data.sites),
            "pilots": PILOTS,
        },
    }
    (RESULTS / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")


def call(command: str, *options: str, save: str) -> None:
    """Run a command of fedaccord twice: for its page and tables, and for JSON in the results."""
    page = CACHE / f"{command}.html"
    line = [sys.executable, "-m", "fedaccord", command, *options]
    say("$ fedaccord " + " ".join(line[3:]).replace(f"{ROOT}/", ""))
    done = subprocess.run([*line, "--json", "--report", str(page)], stdout=subprocess.PIPE)
    if done.returncode > 1 or not done.stdout:
        raise SystemExit(done.returncode)
    found = json.loads(done.stdout)
    (RESULTS / save).write_text(json.dumps(round_all(found), indent=1) + "\n")
    say(f"results/{save} written; exit code {done.returncode}")


def round_all(found: Any) -> Any:
    """Return a record with numbers of six digits."""
    if isinstance(found, float):
        return float(f"{found:.6g}") if math.isfinite(found) else found
    if isinstance(found, dict):
        return {key: round_all(value) for key, value in found.items()}
    return [round_all(value) for value in found] if isinstance(found, list) else found


def run(source: Any, design: list[list[int]], seed: int) -> Any:
    """Return the pilots of a design under EARNED; those in the store are not made again."""
    from fedaccord.federation.pilots import run_goal_pilots

    def tell(done: int, total: int) -> None:
        if done % 50 == 0 or done == total:
            say(f"{done} of {total} trainings")

    algorithm = load().algorithms["EARNED"]
    return run_goal_pilots(
        source, algorithm, design=design, seed=seed, store=STORE, workers=1, progress=tell
    )


def load() -> Any:
    """Return the config; the path of its table is relative to the repository."""
    from fedaccord.federation import Config

    return Config.load(CONFIG)


def write_csv(name: str, head: list[str], lines: list[list[Any]]) -> None:
    """Write a table to the results."""
    with (RESULTS / name).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(head)
        table.writerows(lines)
    say(f"results/{name} written")


def say(sentence: str) -> None:
    """Print at once."""
    print(sentence, flush=True)


STEPS = {
    "patients": prepare_patients,
    "histograms": count_outcomes,
    "calibrate": calibrate,
    "pilots": run_pilots,
    "harm": find_harm,
    "plan": make_plan,
    "coalitions": find_coalitions,
    "share": share_costs,
    "audit": audit,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    wanted = parser.parse_args().steps or list(STEPS)
    for name in wanted:
        if name not in STEPS:
            parser.error(f"there is no step {name}; there are {', '.join(STEPS)}")
    os.chdir(ROOT)
    RESULTS.mkdir(exist_ok=True)
    for name in wanted:
        started = time.process_time()
        say(f"== {name}: {STEPS[name].__doc__}")
        STEPS[name]()
        say(f"   {time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
