"""What another seed could make of the total of a plan."""

import dataclasses
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.pilots import PilotTable
from fedaccord.measurement.posterior import CHAINS
from fedaccord.planning.margins import APART, Reseeded, find_error, reseed_total
from fedaccord.planning.plan import make_plan
from fedaccord.report.plan import show_plan
from fedaccord.report.plan_contributions import describe_contributions
from fedaccord.report.plan_page import plan_page

NETWORK = Path(__file__).parents[2] / "docs/how-to/network/pilots.csv"


@cache
def planned():
    return make_plan(fit_curves(pilots(), resamples=60))


def aim(everyone, total, limit=np.inf):
    game = SimpleNamespace(limits=np.array([limit]))
    return SimpleNamespace(everyone=everyone, contributions=np.array([float(total)]), game=game)


def worlds(error):
    """Return probabilities whose mean has a standard error, in chains that all agree."""
    half = error * np.sqrt(10 * CHAINS)
    return 0.95 + half * np.repeat([1.0, -1.0], 5 * CHAINS)


SEEN = (aim(0.90, 800), aim(0.95, 1000), aim(0.97, 1300), aim(0.99, 2000))


def test_a_steeper_price_of_certainty_makes_the_total_less_settled():
    flat = (aim(0.90, 980), aim(0.95, 1000), aim(0.99, 1050))
    steep = reseed_total(SEEN[1], SEEN, worlds(0.005))
    calm = reseed_total(flat[1], flat, worlds(0.005))
    assert steep.low < 1000 < steep.high and steep.change > 5 * calm.change
    assert steep.is_much and not calm.is_much
    assert steep.away == pytest.approx(APART * 0.005)


def test_where_no_plan_is_surer_there_may_be_none():
    found = reseed_total(SEEN[1], SEEN[:3], worlds(0.01))
    assert found.high is None and found.is_much
    assert "There may even be no plan with probability 0.95." in found.describe("0.95")


def test_worlds_of_one_chain_are_not_taken_for_independent_ones():
    chains = np.tile(np.linspace(0.8, 1.0, CHAINS), 10)
    assert find_error(chains) > 3 * chains.std() / np.sqrt(len(chains))
    assert find_error(np.full(200, 0.9)) == pytest.approx(0)
    assert find_error(np.array([0.5, 0.7])) == pytest.approx(0.1 / np.sqrt(2))


def test_where_limits_bind_the_change_may_be_larger():
    full = (SEEN[0], aim(0.95, 1000, limit=1000), *SEEN[2:])
    assert " or more with" in reseed_total(full[1], full, worlds(0.005)).describe("0.95")
    assert "by about " in reseed_total(SEEN[1], SEEN, worlds(0.005)).describe("0.95")


@pytest.mark.parametrize("much", [True, False])
def test_a_plan_says_once_how_far_another_seed_could_change_its_total(much):
    total = float(planned().contributions.sum())
    reseeded = Reseeded(total * (0.8 if much else 0.99), total, total, 0.01)
    plan = dataclasses.replace(planned(), reseeded=reseeded)
    said = reseeded.describe("0.95")
    doubts = [one.sentence for one in plan.doubts if one.kind == "unsettled-total"]
    assert len(doubts) == much and all(one.startswith(said) for one in doubts)
    for place in ("terminal", "page"):
        assert (said in list(describe_contributions(plan, place))) == (not much)
    text = [getattr(part, "text", part) for part in show_plan(plan)]
    assert sum(said in part for part in text if isinstance(part, str)) == 1
    assert plan_page(plan).tone == "unsure" or not much


def test_the_total_of_few_agents_hardly_depends_on_the_seed():
    table = PilotTable.load(NETWORK)
    totals = [make_plan(fit_curves(table, seed=seed)).contributions.sum() for seed in range(5)]
    assert max(totals) < 1.02 * min(totals)


def test_a_plan_from_pilots_knows_it():
    found = planned().reseeded
    assert found.low <= planned().contributions.sum()
    assert planned().to_dict()["total_reseeded"]["low"] == found.low


@pytest.mark.parametrize("seed", [1, 2])
def test_no_plan_is_said_to_be_missing_that_can_be_made(seed):
    measured = fit_curves(pilots(seed=seed), resamples=60)
    plan = make_plan(measured, probability=0.99)
    surer = 1 - (1 - plan.everyone.value) / 4
    assert make_plan(measured, probability=surer).contributions is not None
    assert plan.reseeded.high is not None
    assert "no plan" not in plan.reseeded.describe("0.99")


def test_a_requested_probability_near_one_is_not_said_to_be_one():
    sure = {**planned().options, "probability": 0.9999999}
    reseeded = Reseeded(10.0, None, 12.0, 0.01)
    plan = dataclasses.replace(planned(), reseeded=reseeded, options=sure)
    said = [one.sentence for one in plan.doubts if one.kind == "unsettled-total"]
    assert "no plan with probability 0.9999999." in said[0]
