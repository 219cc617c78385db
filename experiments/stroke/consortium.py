"""Plan a stroke network, from patients to payments, and audit what it promises.

    python experiments/stroke/consortium.py [ten|sixteen|hospitals] [STEP ...]

The agents are ten countries, sixteen countries, or the 49 hospitals with at least 100 patients.
Steps, in order: patients, histograms, calibrate, pilots, harm, plan, coalitions, share, audit,
confirm. Without a step, all are done. Every finished training is kept in cache/runs.sqlite, so that
the same command goes on where it was stopped. Results go to results/ for ten countries, and to a
folder in it for the others; each step says what it does. FEDACCORD_DATA names the folder with
stroke-trial-36-countries.csv.
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
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = HERE / "cache"
PATIENTS, STORE = CACHE / "patients.csv", CACHE / "runs.sqlite"
# Goals: what all agents reach together with fewer patients than they have, less some spreads.
SEED, TOGETHER, ALONE = 1001, 60, 30
# In a pilot each agent gives one of these parts of its patients, drawn at random; in
# every tenth pilot all give all. Small pilots scatter more than any training of the plan would.
PARTS, PILOT_SEED = (0.0, 0.5, 0.5, 1.0, 1.0, 1.0), 4
# How many trainings of the plan without defectors follow the audit.
CONFIRM_SEED, CONFIRMED = 6, 200
# Of fewer patients over 75 who fare badly, a sensitivity says too little: the agent wants none.
FEW, NONE = 50, 0.001


@dataclasses.dataclass(frozen=True)
class Study:
    """Who plans, and how.

    config: the file with agents and goals.
    folder: of the results.
    given: patients of each agent in the trainings that set the goals.
    spreads: standard deviations from what these reach to the goals; more for more goals, so that
        all are reached in about nine of ten trainings.
    pilots: how many are trained.
    certainty: the probability from which harm counts in the game. Among more pairs, more would be
        that likely by chance: about one of them is, but for the ten countries.
    probability: that one training reaches all goals.
    """

    config: Path
    folder: Path
    given: int
    spreads: float
    pilots: int
    certainty: float
    probability: float

    @property
    def measures(self) -> Path:
        """The table of pilots."""
        return self.folder / "measures.csv"

    @property
    def plan(self) -> Path:
        """The plan."""
        return self.folder / "plan.csv"

    @property
    def game(self) -> Path:
        """The game of the plan."""
        return self.folder / "game.json"

    def load(self) -> Any:
        """Return the config; the path of its table is relative to the repository."""
        from fedaccord.federation import Config

        return Config.load(self.config)


RESULTS = HERE / "results"
STUDIES = {
    "ten": Study(HERE / "consortium.toml", RESULTS, 40, 2.6, 200, 0.95, 0.8),
    "sixteen": Study(HERE / "sixteen.toml", RESULTS / "sixteen", 40, 2.8, 300, 0.998, 0.8),
    "hospitals": Study(HERE / "hospitals.toml", RESULTS / "hospitals", 16, 3.2, 400, 0.9998, 0.7),
}


def prepare_patients(study: Study) -> None:
    """Write the table of patients with one outcome: dead or dependent after six months."""
    source = Path(os.environ["FEDACCORD_DATA"]) / "stroke-trial-36-countries.csv"
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["dead_14_days"]
        row["hospital"] = f"{row['country']} {row['hospital']}"
        row["dead_or_dependent"] = str(int(row.pop("outcome_6_months") in ("1", "2")))
    CACHE.mkdir(exist_ok=True)
    with PATIENTS.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    say(f"{len(rows):,} patients written to {PATIENTS.relative_to(ROOT)}")


def count_outcomes(study: Study) -> None:
    """Write how many patients of each agent fare well and badly."""
    data = study.load().data
    counts = Counter((row[data.site], row["dead_or_dependent"]) for row in read_patients())
    lines = [[name, counts[name, "0"], counts[name, "1"]] for name in data.sites]
    write_csv(study, "histograms.csv", ["agent", "well", "dead or dependent"], lines)


def calibrate(study: Study) -> None:
    """Set the goals on a seed of their own, and say how often an agent reaches them alone."""
    config = study.load()
    easy = [dataclasses.replace(goal, target=0.5) for goal in config.agents.goals]
    config = dataclasses.replace(config, agents=dataclasses.replace(config.agents, goals=easy))
    source = config.build(seed=SEED)
    size = len(source.names)
    most = int(source.points[0])
    design = [[study.given] * size] * TOGETHER
    design += [[most * (j == i) for j in range(size)] for i in range(size) for _ in range(ALONE)]
    values = run(study, source, design, SEED).values
    together, rest = values[:TOGETHER], values[TOGETHER:].reshape(size, ALONE, size, -1)
    mean, spread = together.mean(axis=0), together.std(axis=0, ddof=1)
    goals = np.floor(200 * (mean - study.spreads * spread)) / 200
    old = Counter(
        row[config.data.site]
        for row in read_patients()
        if float(row["age"]) > 75 and row["dead_or_dependent"] == "1"
    )
    goals[[old[name] < FEW for name in source.names], 1] = NONE
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
        if goals[i, g] > NONE
    ]
    write_csv(study, "goals.csv", [config.data.site, *head[1:]], lines)
    for g, rule in enumerate(source.rules):
        say(f"target of {rule.measure} = {goals[:, g].tolist()}")
    say(f"All reach their goals in {(together >= goals).all(axis=(1, 2)).mean():.2f} of trainings")


def run_pilots(study: Study) -> None:
    """Train pilots with random contributions, and write what came of every goal."""
    source = study.load().build(seed=PILOT_SEED)
    random = np.random.default_rng(PILOT_SEED)
    design = np.rint(random.choice(PARTS, size=(study.pilots, len(source.names))) * source.points)
    design[::10] = source.points
    table = run(study, source, design.astype(int).tolist(), PILOT_SEED)
    goals = np.where(table.goals > NONE, table.goals, np.nan)
    values = np.round(table.values, 4)
    dataclasses.replace(table, values=values, goals=goals).save(study.measures)
    say(f"{len(table)} pilots written to {study.measures.relative_to(ROOT)}")


def find_harm(study: Study) -> None:
    """List what samples of each agent do to each goal of each other, with the probability."""
    from fedaccord import find_harm, fit_goals

    measured = fit_goals(study.measures, seed=PILOT_SEED)
    lines = [
        [name, one.agent, one.other, *np.round([one.worth, one.error, one.probability], 4)]
        for name, fit in measured.measurements.items()
        for one in find_harm(fit)
    ]
    head = ["measure", "agent", "other", "worth", "standard_error", "probability_of_harm"]
    write_csv(study, "harm.csv", head, lines)


def find_coalitions(study: Study) -> None:
    """Find who should federate with whom: coalitions in which each plays its cheapest plan."""
    call(study, "coalitions", str(study.game), "--plans", "cheapest", save="coalitions.json")


def make_plan(study: Study) -> None:
    """Plan who gives how much, so that one training reaches all goals with the probability."""
    options = ["--probability", str(study.probability), "--harm", str(study.certainty)]
    options += ["--seed", str(PILOT_SEED), "--save", str(study.plan)]
    options += ["--save-game", str(study.game)]
    call(study, "plan", str(study.measures), *options, save="plan.json")


def share_costs(study: Study) -> None:
    """Find who pays whom for the cheapest plan."""
    options = ["--probability", str(study.probability), "--harm", str(study.certainty)]
    options += ["--seed", str(PILOT_SEED), "--save", str(study.folder / "payments.csv")]
    call(study, "share", str(study.measures), *options, save="share.json")


def audit(study: Study) -> None:
    """Train under EARNED with the plan, new deals and seeds; then each contributor defects."""
    options = ["--plan", str(study.plan), "--results", str(STORE), "--workers", "1"]
    call(study, "audit", str(study.config), *options, save="audit.json")


def confirm(study: Study) -> None:
    """Train with the plan on further deals, of another seed, without defectors."""
    options = ["--plan", str(study.plan), "--results", str(STORE), "--workers", "1"]
    options += ["--seed", str(CONFIRM_SEED), "--trials", str(CONFIRMED), "--levels", "1"]
    call(study, "audit", str(study.config), *options, save="confirm.json")


def describe_machine(study: Study, seconds: dict[str, float]) -> None:
    """Write seeds, versions, and the most that each step cost: later, runs may be in the store."""
    path, config = study.folder / "machine.json", study.load()
    known = json.loads(path.read_text()).get("processor_seconds", {}) if path.exists() else {}
    machine = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "seeds": {
            "goals": SEED,
            "pilots": PILOT_SEED,
            "audit": config.audit.seed,
            "confirm": CONFIRM_SEED,
        },
        "trainings": {
            "goals": TOGETHER + ALONE * len(config.data.sites),
            "pilots": study.pilots,
            "confirm": CONFIRMED,
        },
        "processor_seconds": known | {n: max(s, known.get(n, 0)) for n, s in seconds.items()},
    }
    path.write_text(json.dumps(machine, indent=1) + "\n")


def call(study: Study, command: str, *options: str, save: str) -> None:
    """Run a command of fedaccord twice: for its page and tables, and for JSON in the results."""
    page = CACHE / f"{study.config.stem}-{Path(save).stem}.html"
    # What is written names files as they lie in the repository.
    local = [one.removeprefix(f"{ROOT}/") for one in (*options, "--json", "--report", str(page))]
    line = [sys.executable, "-m", "fedaccord", command, *local]
    say("$ fedaccord " + " ".join(line[3:-3]))
    done = subprocess.run(line, stdout=subprocess.PIPE)
    if done.returncode > 1 or not done.stdout:
        raise SystemExit(done.returncode)
    found = json.loads(done.stdout)
    (study.folder / save).write_text(json.dumps(round_all(found), indent=1) + "\n")
    say(f"{save} written; exit code {done.returncode}")


def round_all(found: Any) -> Any:
    """Return a record with numbers of six digits."""
    if isinstance(found, float):
        return float(f"{found:.6g}") if math.isfinite(found) else found
    if isinstance(found, dict):
        return {key: round_all(value) for key, value in found.items()}
    return [round_all(value) for value in found] if isinstance(found, list) else found


def run(study: Study, source: Any, design: list[list[int]], seed: int) -> Any:
    """Return the pilots of a design under EARNED; those in the store are not made again."""
    from fedaccord.federation.pilots import run_goal_pilots

    def tell(done: int, total: int) -> None:
        if done % 50 == 0 or done == total:
            say(f"{done} of {total} trainings")

    algorithm = study.load().algorithms["EARNED"]
    return run_goal_pilots(
        source, algorithm, design=design, seed=seed, store=STORE, workers=1, progress=tell
    )


def read_patients() -> list[dict[str, str]]:
    """Return the patients."""
    with PATIENTS.open(newline="") as file:
        return list(csv.DictReader(file))


def write_csv(study: Study, name: str, head: list[str], lines: list[list[Any]]) -> None:
    """Write a table to the results."""
    with (study.folder / name).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(head)
        table.writerows(lines)
    say(f"{name} written")


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
    "confirm": confirm,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", nargs="?", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    given = parser.parse_args()
    wanted = [given.study, *given.steps] if given.study else []
    study = STUDIES[wanted.pop(0) if wanted and wanted[0] in STUDIES else "ten"]
    for name in wanted:
        if name not in STEPS:
            parser.error(f"there is no step {name}; there are {', '.join(STEPS)}")
    os.chdir(ROOT)
    study.folder.mkdir(parents=True, exist_ok=True)
    for name in wanted or STEPS:
        started = sum(os.times()[:4])
        say(f"== {name}: {STEPS[name].__doc__}")
        STEPS[name](study)
        seconds = round(sum(os.times()[:4]) - started)
        say(f"   {seconds} s of processor time")
        describe_machine(study, {name: seconds})


if __name__ == "__main__":
    main()
