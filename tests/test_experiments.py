"""Experiments: configs follow their calibration, and results are of the configs that lie there."""

import json
from pathlib import Path

import pytest

from fedaccord.federation.config import Config

BLUM = Path(__file__).parents[1] / "experiments" / "blum2021"


def read(name: str):
    return json.loads((BLUM / "results" / name).read_text())


def test_bands_and_goal_are_those_that_solo_learning_chose() -> None:
    chosen = read("calibration.json")["chosen"]
    agents = Config.load(BLUM / "emnist.toml").agents
    assert list(agents.hard) == chosen["hard"]
    assert list(agents.easy) == chosen["easy"]
    assert agents.requirement == chosen["goal"]


def test_the_committed_audit_is_of_the_committed_config() -> None:
    config, found = Config.load(BLUM / "emnist.toml"), read("emnist.json")
    assert found["algorithms"].keys() == config.algorithms.keys()
    for name, algorithm in config.algorithms.items():
        result = found["algorithms"][name]
        assert result["settings"] == algorithm.to_dict()
        assert [level["level"] for level in result["levels"]] == list(config.audit.levels)
        assert result["all_satisfied"]["trials"] == config.audit.trials


@pytest.mark.parametrize("name", ["FedAvg", "MW-FED"])
def test_every_committed_share_has_its_trials_and_an_interval(name: str) -> None:
    for level in read("emnist.json")["algorithms"][name]["levels"]:
        assert level["trials"] >= 30
        assert level["low"] <= level["p"] <= level["high"]
