"""Plans in which some give all they have: what they aim at is lowered to what they reach there.

The first pilots are those of `fedaccord plan experiments/digits/frontier.toml --algorithm
EQ-PLAN`. With limits of 60 each, the plan of the committed comparison takes all of two agents.
Rounding must not make the solver prove that there is no such plan.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord import PilotTable, fit_curves, make_plan
from fedaccord.check import Answer, check
from fedaccord.planning.result import Outcome
from fedaccord.report.plan_contributions import describe_bare

PILOTS = Path(__file__).with_name("digits_pilots.csv")


def test_a_plan_that_takes_all_of_two_agents_is_found():
    plan = make_plan(fit_curves(PilotTable.load(PILOTS), seed=1), seed=1, judged="measured")
    given = plan.allocation.contributions
    assert (given == plan.game.limits).sum() >= 1 and (given <= plan.game.limits).all()
    assert plan.everyone.value >= 0.9


# A limit that the plan keeps.


def draw(seed):
    """Return the measurement of a random federation without limits."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    benefits = rng.uniform(0, 1, (size, size))
    np.fill_diagonal(benefits, 1)
    ends = ([0.03, 1.8, 20.0, 0.38], [0.1, 2.6, 60.0, 0.5])
    table = pilots(
        seed,
        names=tuple("ABCDEF"[:size]),
        goals=np.round(rng.uniform(0.78, 0.84, size), 2),
        curves=rng.uniform(*ends, (size, 4)),
        benefits=benefits,
        validation=800,
        repeats=1,
    )
    return rng, fit_curves(limited(table, np.full(size, np.inf)), resamples=30)


def limited(table, limits):
    return replace(table, limits=limits)


@pytest.mark.parametrize("seed", [0, 2, 5, 11])
def test_limits_that_a_plan_keeps_leave_a_plan(seed):
    rng, found = draw(seed)
    probability = float(rng.choice([0.8, 0.9, 0.95]))
    given = make_plan(found, probability=probability).allocation.contributions
    one = np.arange(len(given)) == rng.integers(len(given))
    for some, times in ((one, 1.0), (one, rng.uniform(1, 1.5)), (rng.random(len(given)) < 0.5, 1)):
        limits = np.where(some, np.ceil(given * times), np.inf)
        again = make_plan(
            replace(found, table=limited(found.table, limits)), probability=probability
        )
        assert again.outcome is Outcome.PLANNED and again.everyone.value >= probability
        assert (again.contributions <= limits).all()
        assert check(again.game, again.real.values).stable is Answer.TRUE


def test_a_plan_within_a_limit_needs_no_stable_plan_without_a_margin():
    # The last agent needs 261 on average, and 254 where the others leave room for chance.
    _, found = draw(17)
    plan = make_plan(found, probability=0.9)
    given = plan.contributions
    limits = np.array([np.inf, np.inf, np.inf, given[3]])
    assert 0 < given[3] < plan.stable.values[3] - 5
    again = make_plan(replace(found, table=limited(found.table, limits)), probability=0.9)
    assert again.solutions["stable"].contributions is None and again.stable is None
    assert again.contributions == pytest.approx(given, abs=1) and again.z > 0
    assert again.contributions[3] <= given[3] and again.everyone.value >= 0.9
    said = list(describe_bare(again))
    assert said[0].startswith("Without a safety margin, there is no stable plan within the limits.")
    assert all(one.contributions is not None for one in again.certainties if one.probability <= 0.9)
