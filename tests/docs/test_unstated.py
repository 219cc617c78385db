"""The study of what the paper leaves open: its design, its settings, and what it concludes."""

import dataclasses
import importlib.util
import itertools
import json
import math
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fedaccord.federation.config.load import Config
from fedaccord.federation.runs.store import Outcome

BLUM = Path(__file__).parents[2] / "experiments" / "blum2021"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("unstated", BLUM / "unstated.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module there.
    sys.modules["unstated"] = module
    spec.loader.exec_module(module)
    return module


def test_no_main_effect_is_confused_with_another_or_with_what_two_choices_do_together(study):
    signs = np.where(np.array(study.make_design()), 1, -1)
    assert signs.shape == (16, len(study.CHOICES))
    assert (signs[0] == -1).all()
    pairs = [signs[:, i] * signs[:, j] for i, j in itertools.combinations(range(7), 2)]
    for effect in signs.T:
        assert effect.sum() == 0
    for one, other in itertools.combinations(signs.T, 2):
        assert one @ other == 0
    assert all(effect @ pair == 0 for effect in signs.T for pair in pairs)


def test_the_first_setting_is_that_of_the_experiment(study):
    ours = Config.parse(study.write_toml(study.make_design()[0]), folder=BLUM)
    assert ours.to_dict() == Config.load(BLUM / "emnist.toml").to_dict()


def test_each_choice_changes_what_it_names_and_keeps_the_passes(study):
    changed = {
        "goal": {"agents"},
        "bands": {"agents"},
        "factor c": {"algorithms"},
        "batch": {"algorithms"},
        "learning rate": {"algorithms"},
        "samples of a goal test": {"algorithms"},
        "pre-training": {"pretraining"},
    }
    ours = Config.load(BLUM / "emnist.toml").to_dict()
    for i, choice in enumerate(study.CHOICES):
        setting = tuple(i == j for j in range(7))
        config = Config.parse(study.write_toml(setting), folder=BLUM)
        theirs = config.to_dict()
        assert {key for key in ours if ours[key] != theirs[key]} == changed[choice.name]
        same = theirs["algorithms"]["FedAvg"] == ours["algorithms"]["FedAvg"]
        if choice.mw_fed_only:
            assert same
        for algorithm in config.algorithms.values():
            assert algorithm.rounds * algorithm.batch_size == 250 * 64


def test_goals_are_those_that_solo_learning_chose_for_the_bands(study):
    found = json.loads((BLUM / "results" / "calibration.json").read_text())["candidates"]
    known = {(tuple(row["easy"]), tuple(row["hard"])): row["goal"] for row in found}
    for easy, hard, goal in study.BANDS:
        assert known[easy, hard] == goal


def test_its_partitions_are_those_of_no_other_experiment(study):
    others = [path for path in BLUM.glob("*.toml") if path.name != "expected.toml"]
    seeds = {Config.load(path).audit.seed for path in others}
    seeds |= {Config.load(path).frontier.seed for path in others}
    assert study.SEED not in seeds | set(range(5))


# Made-up outcomes.


def outcome(accuracies):
    n = len(accuracies)
    return Outcome(tuple(accuracies), (False,) * n, (0,) * n, (0,) * n, (0,) * n, False, 1.0, "")


def made_up(study, trial, effects, random):
    """Make a trial in which MW-FED's defectors succeed with a probability linear in choices."""
    made = {}
    for task in study.list_tasks(trial, study.make_design()):
        share = 0.5 + sum(effects[i] / 2 * (1 if on else -1) for i, on in enumerate(task.setting))
        share = 1.0 if task.algorithm == "FedAvg" else share
        cuts = [[0.9 if random.random() < share else 0.1] * 4 for _ in range(4)]
        made[task] = [outcome([0.9] * 4), *map(outcome, cuts)]
    return made


EFFECTS = (-0.3, -0.2, 0.0, 0.1, 0.0, 0.0, 0.2)


def test_effects_that_are_planted_are_found_and_intervals_hold_them(study):
    random, missed, found = np.random.default_rng(0), 0, None
    for _ in range(40):
        trials = [
            study.measure_trial(made_up(study, trial, EFFECTS, random), trial) for trial in range(8)
        ]
        found = study.estimate_effects(np.array(trials))
        for choice, planted in zip(study.CHOICES, EFFECTS, strict=True):
            assert found[choice.name]["FedAvg"].value == 0
            missed += not found[choice.name]["MW-FED"].holds(planted)
    # 280 intervals of 95 %: 14 are expected to miss.
    assert missed <= 28
    assert found["goal"]["MW-FED"].high < 0 < found["pre-training"]["MW-FED"].low
    assert found["goal"]["FedAvg - MW-FED"].value == -found["goal"]["MW-FED"].value


def test_settings_with_other_goals_share_runs_of_fedavg_and_judge_them_by_their_own(study):
    tasks = study.list_tasks(0, study.make_design())
    assert len(tasks) == len(set(tasks)) == 16 + 8
    made = {task: [outcome([0.745] * 4)] * 5 for task in tasks}
    seen = study.measure_trial(made, 0)
    reached = [study.find_goal(setting) <= 0.745 for setting in study.make_design()]
    assert sum(reached) == 4
    assert (seen[:, 0] == reached).all() and (seen[:, 1] == reached).all()


def test_a_trial_that_the_time_cuts_off_does_not_count(study):
    done = []

    def complete(task):
        done.append(task)
        if len(done) == 30:
            time.sleep(0.3)
        return [outcome([0.9] * 4)] * 5

    trials = list(study.make_trials(8, complete, time.monotonic() + 0.25))
    assert (len(trials), len(done)) == (1, 30)
    assert list(study.make_trials(8, complete, time.monotonic())) == []


def test_the_page_has_all_choices_settings_and_intervals(study):
    random = np.random.default_rng(0)
    trials = [study.measure_trial(made_up(study, t, EFFECTS, random), t) for t in range(3)]
    found = json.loads(json.dumps(study.summarize(trials, 60.0), allow_nan=False))
    page = study.write_page(found)
    assert page.count("\n| ") == 7 + 16 + 3
    assert "| none: emnist.toml | 0.73 |" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    # Both tables have as many cells in every row as in the head.
    assert {line.count("|") for line in rows[:9]} == {9}
    assert {line.count("|") for line in rows[9:]} == {8}
    alone = study.summarize(trials[:1], 60.0)
    assert alone["effects"]["goal"]["MW-FED"]["low"] is None
    assert study.write_page(alone)


def test_the_cost_of_a_trial_is_that_of_its_runs(study):
    tasks = study.list_tasks(0, study.make_design())
    base = study.Task((False,) * 7, "MW-FED", 0)
    assert base.seconds == 5 * 18
    whole = dataclasses.replace(base, setting=(False,) * 5 + (True, False))
    assert whole.seconds == 5 * (11 + 4 * 7)
    assert math.isclose(sum(task.seconds for task in tasks), 2370)
    assert "39 min" in study.describe_cost(8) and "5 h" in study.describe_cost(8)
