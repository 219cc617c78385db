"""The committed comparisons: they are of the configs that lie there, and add up."""

import json
from pathlib import Path

import pytest

from fedaccord.federation.config.load import Config
from fedaccord.frontier.result import Frontier

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
CONFIGS = (
    "digits/frontier.toml",
    "blum2021/frontier.toml",
    "sixteen/sixteen.toml",
    "heart/frontier.toml",
    "stroke/stroke.toml",
)
# What a plan puts into an algorithm's settings: what was pledged, and how many passes it takes.
BY_THE_PLAN = {"commitment", "passes", "reserve"}


@pytest.fixture(scope="module", params=CONFIGS)
def config(request):
    return EXPERIMENTS / request.param


@pytest.fixture(scope="module")
def committed(config):
    return json.loads((config.parent / "results" / "frontier.json").read_text(encoding="utf-8"))


def test_the_committed_comparison_is_of_the_committed_config(config, committed):
    config = Config.load(config)
    plans = {name: Path(plan).name for name, plan in config.plans.items()}
    told = {n: c["plan"] for n, c in committed["contenders"].items()}
    assert told == {n: plan for n, plan in plans.items() if n not in committed["unplanned"]}
    # Only who trains to a plan can be without one.
    assert {plans[n] for n in committed["unplanned"]} <= {"measured", "sought"}
    assert committed["trials"] == config.frontier.trials >= 30
    assert committed["levels"] == list(config.frontier.levels)
    assert committed["seed"] == config.frontier.seed
    for name in told:
        algorithm = config.algorithms[name]
        for protocol in ("P1", "P2"):
            settings = committed["contenders"][name][protocol]["settings"]
            given = {k: v for k, v in settings.items() if k not in BY_THE_PLAN}
            own = json.loads(json.dumps(algorithm.to_dict()))
            asked = {k: v for k, v in own.items() if k not in BY_THE_PLAN}
            assert given == asked


def test_every_share_has_its_trials_and_an_interval(committed):
    for name, one in committed["contenders"].items():
        for protocol in ("P1", "P2"):
            shares = [one[protocol]["all_satisfied"]]
            for level in one[protocol]["levels"]:
                shares += [level, level["contributors"], level["others_of_contributors"]]
            for share in shares:
                assert share["trials"] >= 30, name
                assert share["low"] <= share["p"] <= share["high"]


def test_what_is_said_follows_from_the_numbers(committed):
    assert Frontier.from_dict(committed).to_dict() == committed
