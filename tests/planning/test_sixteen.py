"""Sixteen agents with goals of their own: what is committed belongs together."""

import json
from pathlib import Path

import numpy as np
import pytest

from fedaccord.allocation import Allocation
from fedaccord.federation.config.load import Config
from fedaccord.measurement.design import pilot_design
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.pilots import PilotTable

SIXTEEN = Path(__file__).parents[2] / "experiments" / "sixteen"


@pytest.fixture(scope="module")
def pilots():
    return PilotTable.load(SIXTEEN / "pilots.csv")


@pytest.fixture(scope="module")
def plan():
    return json.loads((SIXTEEN / "results" / "plan.json").read_text(encoding="utf-8"))


def test_the_pilots_are_those_of_the_design_and_of_the_config(pilots):
    config = Config.load(SIXTEEN / "sixteen.toml")
    assert pilots.goals.tolist() == list(config.agents.requirement)
    assert len(set(config.agents.requirement)) > 10
    assert (pilots.size, len(pilots)) == (16, 111)
    design = pilot_design([int(n) for n in pilots.limits], budget=74)
    assert pilots.contributions[:74].tolist() == [list(map(float, row)) for row in design]


def test_the_committed_plan_is_of_the_committed_pilots(pilots, plan):
    measured = fit_curves(pilots, seed=3)
    given = np.array(plan["contributions"])
    saved = Allocation.load(SIXTEEN / "results" / "plan.csv")
    assert saved.contributions.tolist() == given.tolist()
    reached = measured.game.accuracies(given)
    assert reached == pytest.approx(plan["accuracy"]["values"], abs=1e-6)
    assert (reached > pilots.goals).all()


def test_one_that_wants_too_much_is_told_the_nearest_goal_that_the_page_names(pilots):
    measured = fit_curves(pilots.with_goals({"70% hard 1": 0.75}), seed=3)
    (missed,) = measured.unreachable
    page = (SIXTEEN / "README.md").read_text(encoding="utf-8")
    assert f'"{missed.sentence}."' in " ".join(page.split())
