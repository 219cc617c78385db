"""The heart hospitals: what is committed belongs together, and comes from the data."""

import csv
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from federation.real_data import real_file

from fedaccord.allocation import Allocation
from fedaccord.federation.config.build import Building
from fedaccord.federation.config.load import Config
from fedaccord.federation.runs.store import Run
from fedaccord.federation.runs.trials import PILOTS
from fedaccord.federation.training.loop import train
from fedaccord.measurement.design import pilot_design
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.pilots import PilotTable

HEART = Path(__file__).parents[2] / "experiments" / "heart"
DATA = "heart-disease-4-sites.csv"


def read(name):
    return json.loads((HEART / "results" / name).read_text())


@pytest.fixture
def pilots():
    return PilotTable.load(HEART / "pilots.csv")


@pytest.fixture
def config():
    return Config.load(HEART / "heart.toml")


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(v) for key, v in value.items() if key != "seconds"}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def test_pilots_and_histograms_are_of_the_same_hospitals(pilots):
    histograms = Histograms.load(HEART / "histograms.csv")
    assert histograms.agents == pilots.agents
    # What a hospital may bring and what it measures on are all its patients.
    assert histograms.counts.sum(axis=1).tolist() == (pilots.limits + pilots.validation).tolist()


def test_the_pilots_are_those_of_the_design_and_of_the_config(pilots, config):
    assert pilots.goals.tolist() == list(config.agents.requirement)
    design = pilot_design([int(n) for n in pilots.limits], budget=78)
    assert pilots.contributions[:78].tolist() == [list(map(float, row)) for row in design]
    assert len(pilots) == 117


def test_a_plan_of_the_federation_is_the_plan_of_its_pilots():
    assert without_times(read("federation.json")) == without_times(read("pilots.json"))
    plan = Allocation.load(HEART / "results" / "plan.csv")
    assert plan.contributions.tolist() == read("federation.json")["contributions"]


def test_the_audit_is_of_the_plan_and_of_the_configs_algorithm(config):
    found, plan = read("audit.json"), read("federation.json")
    curve = found["algorithms"]["PLEDGED"]
    assert curve["contributions"] == plan["contributions"]
    settings = config.algorithms["PLEDGED"].to_dict()
    kept = {key: value for key, value in curve["settings"].items() if key != "commitment"}
    assert kept == {key: settings[key] for key in kept}
    assert found["protocol"] == "P2"
    assert found["trials"] >= 30
    assert next(iter(config.algorithms)) == "PLEDGED"


def test_histograms_are_counted_from_the_data():
    with real_file(DATA).open(newline="") as file:
        rows = list(csv.DictReader(file))
    counted = Counter((row["site"], row["num"] != "0") for row in rows)
    histograms = Histograms.load(HEART / "histograms.csv")
    for agent, counts in zip(histograms.agents, histograms.counts, strict=True):
        assert counts.tolist() == [counted[agent, False], counted[agent, True]]


def test_a_pilot_comes_out_again(pilots, monkeypatch):
    monkeypatch.setenv("FEDACCORD_DATA", str(real_file(DATA).parent))
    # Only now: where the table is, is settled when the config is read.
    config = Config.load(HEART / "heart.toml")
    source = Building(config, cache=None).source(0)
    brought = tuple(int(n) for n in pilots.contributions[1])
    algorithm = config.algorithms["PLEDGED"].committed(brought)
    run = Run("", algorithm, brought, 0, PILOTS + 1)
    found = train(source.deal(run.trial), algorithm, contributions=brought, seed=run.seed)
    # On another processor a point or two may fall on the other side.
    for mine, kept, points in zip(
        found.final, pilots.accuracies[1], pilots.validation, strict=True
    ):
        assert math.isclose(mine, kept, abs_tol=2.5 / points)
