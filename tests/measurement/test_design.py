"""The design of pilots: it shows every agent, asks for no more than there is, and never changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import InputError
from fedaccord.measurement.design import check_budget, pilot_design, usual_budget

SIZES = st.lists(st.integers(1, 500), min_size=1, max_size=20)


@given(SIZES, st.integers(1, 120))
def test_a_design_asks_for_no_more_than_there_is_and_never_for_nothing(sizes, budget):
    design = np.array(pilot_design(sizes, budget=budget))
    assert design.shape == (budget, len(sizes))
    assert (design >= 0).all()
    assert (design <= sizes).all()
    assert design.any(axis=1).all()


@given(SIZES, st.integers(1, 120), st.integers(1, 120))
def test_a_larger_budget_begins_with_the_pilots_of_a_smaller(sizes, one, other):
    few, many = (pilot_design(sizes, budget=budget) for budget in sorted((one, other)))
    assert many[: len(few)] == few


@pytest.mark.parametrize("agents", [1, 2, 4, 16])
def test_a_whole_design_is_five_pilots_of_all_and_two_of_each(agents):
    whole = 2 * agents + 5
    sizes = [10_000 * (n + 1) for n in range(agents)]
    parts = np.array(pilot_design(sizes, budget=whole)) / sizes
    together = parts[np.ptp(parts, axis=1) < 1e-4]
    if agents > 1:
        assert len(together) == 5
        assert len(np.unique(parts, axis=0)) == whole
    for agent in range(agents):
        others = np.delete(parts, agent, axis=1).min(axis=1, initial=1)
        most = np.delete(parts, agent, axis=1).max(axis=1, initial=0)
        assert ((parts[:, agent] == 0) & (others > 0.1)).any() or agents == 1
        assert ((parts[:, agent] >= 0.35) & (most < 0.11)).any() or agents == 1


@pytest.mark.parametrize(("agents", "times"), [(4, 9), (16, 37)])
def test_many_agents_repeat_their_design_and_few_go_on_at_other_levels(agents, times):
    design = pilot_design([10_000] * agents, budget=2 * agents + 5 + times)
    first, after = design[: 2 * agents + 5], design[2 * agents + 5 :]
    repeated = [pilot in first for pilot in after]
    assert all(repeated) if agents == 16 else sum(repeated) == 1


def test_among_few_agents_each_is_piloted_alone_and_left_out_at_three_levels():
    parts = np.array(pilot_design([10_000] * 4, budget=31)) / 10_000
    for agent in range(4):
        others = np.delete(parts, agent, axis=1)
        alone = parts[(others == 0).all(axis=1), agent]
        without = others[(parts[:, agent] == 0) & (others > 0).all(axis=1)]
        assert sorted(alone) == [0.35, 0.5, 0.7]
        assert sorted(without.mean(axis=1)) == pytest.approx([0.35, 0.5, 0.7])


@pytest.mark.parametrize(("agents", "least"), [(2, 0.1), (4, 0.1), (16, 0.025), (40, 0.01)])
def test_the_more_agents_the_less_each_gives_where_all_give_little(agents, least):
    """Four with a tenth, or forty with a hundredth: as many samples in all."""
    design = np.array(pilot_design([10_000] * agents, budget=2 * agents + 5)) / 10_000
    together = np.sort(design[np.ptp(design, axis=1) < 1e-4][:, 0])
    assert together[0] == pytest.approx(least, rel=0.01)
    assert together[-1] == 1
    if agents <= 4:
        assert together.tolist() == [0.1, 0.2, 0.35, 0.6, 1]


@pytest.mark.parametrize("agents", [2, 4, 16])
def test_few_pilots_tell_every_agent_from_the_others(agents):
    """What a sample of each is worth can only be told if the contributions have full rank."""
    for budget in range(agents + 3, 2 * agents + 6):
        design = np.array(pilot_design([400] * agents, budget=budget))
        assert np.linalg.matrix_rank(design) == agents


def test_the_first_pilots_of_a_small_budget_span_the_most_and_the_least():
    design = np.array(pilot_design([100] * 4, budget=3))
    assert sorted(design[:, 0]) == [10, 35, 100]


@pytest.mark.parametrize("budget", [0, -3, 2.5, True, "many", None, 10**7])
def test_a_budget_is_a_number_of_runs(budget):
    with pytest.raises(InputError, match="training runs"):
        check_budget(budget)
    with pytest.raises(InputError, match="training runs"):
        pilot_design([10, 10], budget=budget)


@pytest.mark.parametrize("points", [[], [0, 0], [10, -1]])
def test_a_design_needs_agents_with_samples(points):
    with pytest.raises(InputError, match="have samples"):
        pilot_design(points, budget=5)


# Agents that have nothing.


@given(st.lists(st.integers(0, 500), min_size=1, max_size=12).filter(any), st.integers(1, 60))
def test_an_agent_without_samples_gives_none_and_the_others_are_as_without_it(sizes, budget):
    sizes = np.array(sizes)
    design = np.array(pilot_design(sizes, budget=budget))
    assert not design[:, sizes == 0].any()
    rest = pilot_design(sizes[sizes > 0], budget=budget)
    assert design[:, sizes > 0].tolist() == [list(row) for row in rest]


def test_one_agent_with_samples_gives_some_in_every_pilot():
    assert {row[0] for row in pilot_design([0, 10], budget=20)} == {0}
    assert all(row[1] for row in pilot_design([0, 10], budget=20))


def test_a_usual_budget_is_the_whole_design_three_times():
    assert usual_budget(5) == 45
