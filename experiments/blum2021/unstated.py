"""Ask which choices that the paper leaves open move its figure of defection.

    python experiments/blum2021/unstated.py --cost
    python experiments/blum2021/unstated.py --workers 2 --minutes 120
    python experiments/blum2021/unstated.py --try

Each of seven choices has two values: that of emnist.toml, and another one that fits the paper's
text as well. Sixteen settings combine them so that no main effect is confused with another one,
or with what two choices do together (a fractional design of resolution IV). In each trial, all
settings have the same seed, and each of the four agents defects to 25 % in a run of its own, under
FedAvg and under MW-FED. FedAvg has no use for some choices, so settings share its runs.

Every finished run is kept in --store, so the same command continues. It makes one trial of all
settings after the other and stops when the minutes are over. Only complete trials count. Results
go to results/unstated.json and results/unstated.md. --try trains two settings for a few rounds,
and writes nothing but its runs.
"""

import argparse
import functools
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedaccord._io.files import replace_file
from fedaccord._machine import machine, versions
from fedaccord.federation.config.build import Building
from fedaccord.federation.config.load import Config
from fedaccord.federation.defection.curves import cut
from fedaccord.federation.runs.execute import Source, open_executor
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.reproduce.estimates import Estimate, estimate_mean
from fedaccord.wording import format_duration

HERE = Path(__file__).parent
# No other experiment uses its partitions.
SEED = 17
LEVEL = 0.25
FEDAVG, MW_FED = "FedAvg", "MW-FED"
# The goals that calibrate.py found for two pairs of bands; ours is the first.
BANDS = (((55, 65), (65, 75), 0.73), ((50, 60), (60, 70), 0.77))
# Of a core of this project's machine, for a run of each algorithm with our values.
SECONDS = {FEDAVG: 11, MW_FED: 18}
# What the paper has, at full contribution and at 25 %.
PAPER = {"FedAvg, all reach": 1.0, "FedAvg": 0.94, "MW-FED": 0.45}


@dataclass(frozen=True)
class Choice:
    """A choice that the paper does not state.

    name: what it is about.
    ours, other: its values, for a reader.
    mw_fed_only: whether FedAvg has no use for it, or trains the same whatever it is.
    """

    name: str
    ours: str
    other: str
    mw_fed_only: bool = False


CHOICES = (
    Choice("goal", "as calibrated", "0.03 higher", mw_fed_only=True),
    Choice("bands", "easy 55-65, hard 65-75, goal 0.73", "easy 50-60, hard 60-70, goal 0.77"),
    Choice("factor c", "2", "1.2", mw_fed_only=True),
    Choice("batch", "64 in 250 rounds", "128 in 125 rounds"),
    Choice("learning rate", "0.002", "0.001"),
    Choice("samples of a goal test", "100", "all 400", mw_fed_only=True),
    Choice("pre-training", "75 batches", "40 batches"),
)
Setting = tuple[bool, ...]  # which choices have their other value


def make_design() -> list[Setting]:
    """Return the settings: four choices in all combinations, the others as products of three."""
    rows = []
    for a, b, c, d in itertools.product((-1, 1), repeat=4):
        rows.append(tuple(sign > 0 for sign in (a, b, c, d, a * b * c, b * c * d, a * c * d)))
    return rows


def find_goal(setting: Setting) -> float:
    """Return the accuracy that agents want."""
    return round(BANDS[setting[1]][2] + 0.03 * setting[0], 2)


def write_toml(setting: Setting, rounds: int | None = None) -> str:
    """Return a setting as a config over emnist.toml.

    rounds: fewer than usual, to try things out.
    """
    _, bands, slow, batch, rate, test, pretrained = setting
    easy, hard, _ = BANDS[bands]
    return f"""
extends = "emnist.toml"
[agents]
requirement = {find_goal(setting)}
easy = {list(easy)}
hard = {list(hard)}
[pretraining]
batches = {40 if pretrained else 75}
[training]
rounds = {rounds or (125 if batch else 250)}
batch_size = {128 if batch else 64}
learning_rate = {0.001 if rate else 0.002}
[algorithms.{MW_FED}]
factor = {1.2 if slow else 2.0}
goal_points = {400 if test else 100}
"""


def share_fedavg(setting: Setting) -> Setting:
    """Return the setting whose runs of FedAvg are those of a setting."""
    return tuple(on and not choice.mw_fed_only for on, choice in zip(setting, CHOICES, strict=True))


@dataclass(frozen=True)
class Task:
    """The runs of an algorithm in a trial: all agents in full, then one after the other cut.

    setting: what they are made with.
    algorithm: its name.
    trial: which draw of samples and of chance.
    rounds: as of `write_toml`.
    """

    setting: Setting
    algorithm: str
    trial: int
    rounds: int | None = None

    @property
    def seconds(self) -> float:
        """How long it takes, roughly: a goal test on all samples is as long as training."""
        tests = self.algorithm == MW_FED and self.setting[5]
        rounds = 0.5 if self.setting[3] else 1.0
        more = SECONDS[MW_FED] - SECONDS[FEDAVG] if self.algorithm == MW_FED else 0
        return 5 * (SECONDS[FEDAVG] + more * rounds * (4 if tests else 1))

    def complete(self, store: RunStore, cache: Path, workers: int) -> list[Outcome]:
        """Make the runs that the store does not have, and return all of them."""
        toml = write_toml(self.setting, self.rounds)
        algorithm = Config.parse(toml, folder=HERE).algorithms[self.algorithm]
        fingerprint, full = identify_source(toml, cache)
        given = [full, *(cut(full, i, LEVEL) for i in range(len(full)))]
        runs = [Run(fingerprint, algorithm, one, SEED, self.trial) for one in given]
        found = [outcome for run in runs if (outcome := store.get(run)) is not None]
        if len(found) == len(runs):
            return found
        with open_executor(build_source(toml, cache), workers=workers, store=store) as executor:
            return executor.execute_all(runs)


def build_source(toml: str, cache: Path) -> Source:
    """Return what deals samples to the agents of a config; it holds all images."""
    return Building(Config.parse(toml, folder=HERE), cache=cache).source(SEED)


@functools.cache
def identify_source(toml: str, cache: Path) -> tuple[str, tuple[int, ...]]:
    """Return the fingerprint of a config's source, and how many samples each agent has."""
    source = build_source(toml, cache)
    return source.fingerprint, tuple(int(n) for n in source.points)


def list_tasks(trial: int, settings: Sequence[Setting], rounds: int | None = None) -> list[Task]:
    """Return the tasks of a trial, each once."""
    both = [
        Task(*pair, trial, rounds)
        for one in settings
        for pair in ((share_fedavg(one), FEDAVG), (one, MW_FED))
    ]
    return list(dict.fromkeys(both))


Results = dict[Task, list[Outcome]]


def make_trials(
    trials: int, complete: Callable[[Task], list[Outcome]], deadline: float
) -> Iterator[Results]:
    """Yield complete trials until a time is over; the current task is ended first.

    trials: how many at most.
    complete: makes a task's runs, or reads them.
    deadline: when to stop, as time.monotonic has it.
    """
    for trial in range(trials):
        made: Results = {}
        for task in list_tasks(trial, make_design()):
            if time.monotonic() >= deadline:
                return
            made[task] = complete(task)
        yield made


# What came of it.

RESPONSES = ("FedAvg, all reach", "FedAvg", "MW-FED, all reach", "MW-FED", "FedAvg - MW-FED")


def measure_trial(made: Results, trial: int) -> NDArray[np.float64]:
    """Return what is measured in a trial: a row per setting, a column per response."""
    rows = []
    for setting in make_design():
        seen = []
        for one, name in ((share_fedavg(setting), FEDAVG), (setting, MW_FED)):
            full, *less = made[Task(one, name, trial)]
            goal = find_goal(setting)
            # By accuracies, since settings with other goals share runs of FedAvg.
            seen.append(float(all(value >= goal for value in full.accuracies)))
            seen.append(np.mean([run.accuracies[i] >= goal for i, run in enumerate(less)]))
        rows.append([*seen, seen[1] - seen[3]])
    return np.array(rows, dtype=np.float64)


def estimate_effects(trials: NDArray[np.float64]) -> dict[str, dict[str, Estimate]]:
    """Estimate what each choice changes, on average over all values of the others.

    Each trial has all settings, so a trial's contrast is one independent value, whatever settings
    have in common.

    trials: by trial, setting and response.
    """
    signs = np.where(np.array(make_design()), 1.0, -1.0)
    contrasts = np.einsum("sc,tsr->tcr", signs, trials) / (len(signs) / 2)
    return {
        choice.name: {name: estimate_mean(contrasts[:, c, r]) for r, name in enumerate(RESPONSES)}
        for c, choice in enumerate(CHOICES)
    }


def _plain(found: Estimate) -> dict[str, float | None]:
    """Return an estimate as JSON; one trial has no interval."""
    ends = (found.low, found.high) if np.isfinite(found.low) else (None, None)
    return {"value": found.value, "low": ends[0], "high": ends[1]}


def summarize(measured: Sequence[NDArray[np.float64]], seconds: float) -> dict:
    """Return all that the study found, as JSON.

    measured: by trial, what `measure_trial` returned.
    seconds: of computing, in all.
    """
    trials = np.array(measured)
    settings = [
        {
            "other": [choice.name for choice, on in zip(CHOICES, setting, strict=True) if on],
            "goal": find_goal(setting),
            **{name: _plain(estimate_mean(trials[:, s, r])) for r, name in enumerate(RESPONSES)},
        }
        for s, setting in enumerate(make_design())
    ]
    effects = estimate_effects(trials)
    return {
        "command": "python experiments/blum2021/unstated.py",
        "seed": SEED,
        "trials": len(trials),
        "level": LEVEL,
        "cpu_seconds": round(seconds),
        "machine": machine(),
        "versions": versions(),
        "choices": {c.name: {"ours": c.ours, "other": c.other} for c in CHOICES},
        "paper": PAPER,
        "effects": {
            name: {key: _plain(one) for key, one in row.items()} for name, row in effects.items()
        },
        "settings": settings,
    }


def _cell(found: dict) -> str:
    if found["low"] is None:
        return f"{found['value']:.2f}"
    text = f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
    return text.replace("-0.00", "0.00")


def write_page(found: dict) -> str:
    """Return the tables of the effects and of the settings in Markdown."""
    head = "| " + " | ".join(RESPONSES) + " |\n"
    line = "|-" * len(RESPONSES) + "|\n"
    effects = "".join(
        f"| {name} | {values['ours']} | {values['other']} | "
        + " | ".join(_cell(found["effects"][name][key]) for key in RESPONSES)
        + " |\n"
        for name, values in found["choices"].items()
    )
    settings = "".join(
        f"| {', '.join(one['other']) or 'none: emnist.toml'} | {one['goal']:.2f} | "
        + " | ".join(_cell(one[key]) for key in RESPONSES)
        + " |\n"
        for one in found["settings"]
    )
    paper = " | ".join(f"{PAPER[key]:.2f}" if key in PAPER else "" for key in RESPONSES)
    return f"""# What the paper leaves open

`{found["command"]}` made these tables from {found["trials"]} trials of seed {found["seed"]}.
*All reach* is the share of trials in which all agents reach their goals if all contribute in full.
The other columns are the shares of defectors that still reach their goals with {LEVEL:.0%} of their
samples, each agent in turn. Brackets are 95 % intervals, each for itself: of many, some miss.

What the other value changes, on average over all values of the other choices:

| choice | ours | other {head}|-|-|-{line}{effects}
All settings, and the paper:

| choices with their other value | goal {head}|-|-{line}| the paper | 0.70 | {paper} |
{settings}"""


def describe_cost(trials: int) -> str:
    """Return how long trials take on an idle core."""
    tasks = list_tasks(0, make_design())
    one = sum(task.seconds for task in tasks)
    return (
        f"A trial has {5 * len(tasks)} runs and takes about {format_duration(one)} of a core; "
        f"{trials} trials take about {format_duration(trials * one)}."
    )


def try_out(complete: Callable[[Task], list[Outcome]], rounds: int) -> None:
    """Make a trial of two settings in a few rounds, and print accuracies and times."""
    design = make_design()
    for task in list_tasks(0, (design[0], design[-1]), rounds):
        started = time.monotonic()
        full, *less = complete(task)
        seen = [f"{run.accuracies[i]:.3f}" for i, run in enumerate(less)]
        other = [c.name for c, on in zip(CHOICES, task.setting, strict=True) if on]
        print(
            f"{task.algorithm}, {', '.join(other) or 'our values'}: in full "
            f"{' '.join(f'{value:.3f}' for value in full.accuracies)}, cut {' '.join(seen)}; "
            f"{time.monotonic() - started:.0f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--store", type=Path, default=HERE / "results" / "unstated.sqlite")
    parser.add_argument("--cost", action="store_true", help="print the cost and stop")
    parser.add_argument("--try", dest="rounds", action="store_const", const=5)
    options = parser.parse_args()
    print(describe_cost(options.trials), flush=True)
    if options.cost:
        return
    deadline = time.monotonic() + 60 * options.minutes
    measured, spent = [], 0.0
    with RunStore(options.store) as store:
        cache = options.store.with_name("cache")

        def complete(task: Task) -> list[Outcome]:
            return task.complete(store, cache, options.workers)

        if options.rounds:
            try_out(complete, options.rounds)
            return
        for trial, made in enumerate(make_trials(options.trials, complete, deadline)):
            measured.append(measure_trial(made, trial))
            spent += sum(run.seconds for runs in made.values() for run in runs)
            found = summarize(measured, spent)
            results = HERE / "results" / "unstated"
            replace_file(results.with_suffix(".json"), json.dumps(found, indent=1) + "\n")
            replace_file(results.with_suffix(".md"), write_page(found))
            print(f"trial {trial + 1} of {options.trials} is complete", flush=True)
    if len(measured) < options.trials:
        print("the time is over; the same command continues")


if __name__ == "__main__":
    main()
