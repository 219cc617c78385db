"""EQ-FED with earned models: the reserve, on paper where it is known, and in training."""

import numpy as np
import pytest
from federation.formulas import Formula, Paper
from federation.small import small_federation
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.earned import Earned, call_reserve
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.eqfed.reserve import OTHERS, spread_reserve
from fedaccord.federation.eqfed.seek import seek_equilibrium

EVERY = np.ones((3, 3))


def earned(benefits):
    """Tell accuracies by effective samples, and none to a client that does not deliver."""

    def rule(run):
        theta = np.array(run.algorithm.commitment)
        given = np.array(run.contributions)
        held = np.array(run.algorithm.reserve or np.zeros_like(theta))
        out = given < theta
        called = call_reserve(theta - given, held, np.zeros_like(theta), out)
        return np.where(out, 0.0, np.array(benefits) @ (given + called) / 1000).tolist()

    return rule


def sought(paper, rule, **options):
    engine = Formula(paper, rule)
    settings = {"budget": 100_000, "trials": 2, "checks": 1, "levels": (0.25,), "step": 0.01}
    return seek_equilibrium(paper, Earned(passes=1), engine=engine, **{**settings, **options})


def test_the_reserve_replaces_what_would_be_missing():
    """300 are needed in all, of anybody's: whoever gives a quarter must be replaced."""
    found = sought(Paper([300, 300, 300], [0.3, 0.3, 0.3]), earned(EVERY))
    assert found.algorithm.commitment == found.contributions
    reserve = np.array(found.algorithm.reserve)
    theta = np.array(found.contributions)
    spare = theta.sum() - 300
    gaps = [reserve.sum() - reserve[i] - (0.75 * n - spare) for i, n in enumerate(theta) if n > 9]
    assert min(gaps) >= -1
    # An eighth of the largest pledge is how finely it is found.
    assert min(gaps) <= max(theta) / 8 + 3
    assert found.plan.reserve.tolist() == reserve.tolist()
    rows = [row for row in found.story if row.phase == "reserve"]
    assert rows[0].reserve is not None
    assert found.to_dict()["story"][-2]["reserve"] == list(rows[-1].reserve)
    # Verifying sees that all the others do, and the one that gives less does not.
    for cut in found.verified.cuts:
        assert (cut.satisfied.p, cut.others.p) == (0, 1)


def test_where_the_others_do_without_there_is_no_reserve():
    """Each needs its own points alone."""
    found = sought(Paper([400, 400], [0.3, 0.3]), earned(np.eye(2)))
    assert found.algorithm.reserve == (0, 0)


def test_where_nothing_is_left_all_that_is_left_is_held():
    found = sought(Paper([300, 20, 0], [0.3, 0.3, 0.3]), earned(EVERY))
    assert sum(found.algorithm.reserve) == 320 - found.total
    short = [row for row in found.story if row.phase == "reserve"]
    assert len(short) == 1
    assert short[0].chance < OTHERS


def test_where_the_budget_is_spent_the_whole_reserve_is_held():
    paper, rule = Paper([300, 300, 300], [0.3, 0.3, 0.3]), earned(EVERY)
    plenty = sought(paper, rule, checks=1)
    before = sum(row.phase != "reserve" for row in plenty.story)
    assert before
    runs = plenty.runs - sum(row.trials for row in plenty.story if row.phase == "reserve")
    tight = sought(paper, rule, budget=runs + 1)
    held = np.array(tight.algorithm.reserve)
    assert all(held.sum() - held[i] >= n for i, n in enumerate(tight.contributions))


cases = st.integers(1, 5).flatmap(
    lambda k: st.tuples(
        st.lists(st.integers(0, 30), min_size=k, max_size=k).filter(any),
        st.lists(st.integers(0, 30), min_size=k, max_size=k),
        st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    )
)


@given(cases)
def test_a_reserve_is_within_what_is_left_and_replaces_its_part(case):
    theta, left, part = case
    held = spread_reserve(tuple(theta), np.add(theta, left).tolist(), part)
    assert all(0 <= r <= most for r, most in zip(held, left, strict=True))
    does = all(sum(held) - held[i] >= part * n for i, n in enumerate(theta) if n)
    possible = all(sum(left) - left[i] >= part * n for i, n in enumerate(theta) if n)
    assert does == possible
    if does and sum(held):
        # One less in all would not do for somebody.
        fewer = sum(held) - 1
        parts = [fewer * n / sum(left) for n in left]
        assert any(fewer - parts[i] < part * n + 1 for i, n in enumerate(theta) if n)


def test_a_reserve_that_is_there_already_is_refused():
    with pytest.raises(InputError, match="EARNED has a reserve already; leave it out"):
        sought_with(Earned(reserve=(1, 1, 1)))


def sought_with(algorithm):
    return seek_equilibrium(small_federation(), algorithm, budget=40, trials=2)


def test_fewer_passes_leave_no_schedule_that_is_too_soon():
    assert Earned(passes=10, fresh_by=0.2).repeated(4) == Earned(passes=4, fresh_by=0.25)
    assert Earned(passes=10, fresh_by=0.5).repeated(4) == Earned(passes=4, fresh_by=0.5)
    assert Earned(passes=10).repeated(4) == Earned(passes=4)
    assert Earned(passes=10, fresh_by=0.2).repeated(0.5) == Earned(passes=0.5)
    assert Pledged(passes=10).repeated(2.5) == Pledged(passes=2.5)


def test_in_training_the_search_ends_with_a_plan_and_its_reserve():
    federation = small_federation((40, 40, 40), requirement=0.25)
    algorithm = Earned(rounds=200, batch_size=4, passes=4, learning_rate=0.03, evaluate_every=2)
    found = seek_equilibrium(federation, algorithm, budget=300, trials=2, checks=2, levels=(0.25,))
    assert found.algorithm.reserve is not None
    limits = np.add(found.contributions, found.algorithm.reserve)
    assert (limits <= 40).all()
    assert found.verified is not None


def test_other_algorithms_have_no_reserve():
    algorithm = FedAvg(rounds=60, batch_size=8, learning_rate=0.05)
    federation = small_federation((40, 40, 40), requirement=0.25)
    found = seek_equilibrium(federation, algorithm, budget=60, trials=2, checks=1)
    assert found.plan.reserve is None
    assert not [row for row in found.story if row.phase == "reserve"]
