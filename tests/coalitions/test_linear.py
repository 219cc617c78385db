"""Tables of stable plans against the solver of each coalition, and coalitions of many agents."""

from itertools import combinations

import numpy as np
import pytest
from linear_games import random_game

from fedaccord import InputError, LinearGame, find_coalitions, solve_stable
from fedaccord.check import check
from fedaccord.coalitions.large import MergeAndSplit, StableCosts
from fedaccord.coalitions.linear import find_stable_costs
from fedaccord.coalitions.table import list_members
from fedaccord.equilibria.result import Deadline


@pytest.mark.parametrize("seed", range(40))
def test_every_coalition_plays_its_cheapest_stable_plan(seed):
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    game = random_game(
        rng, int(rng.integers(2, 5)), kind=kind, boxed=seed % 2 == 1, costs=seed % 4 > 1
    )
    costs = find_stable_costs(game)
    for coalition in range(1, 2**game.size):
        members = list(list_members(coalition))
        smaller = game.restrict(members)
        found = costs[coalition, members]
        expected = solve_stable(smaller)
        if expected.contributions is None:
            assert np.isinf(found).all()
            continue
        assert found.sum() == pytest.approx(expected.total, rel=1e-6, abs=1e-9)
        plan = check(smaller, found / smaller.costs)
        assert plan.verdicts["stable"].name != "FALSE"


def test_twins_share_evenly():
    costs = find_stable_costs(LinearGame(np.ones((2, 2)), [4, 4]))
    np.testing.assert_allclose(costs[3], [2, 2])


def test_limits_may_cut_off_the_even_plan_of_twins():
    """The first can give 1 of the 4 that both need, and no other plan than (1, 3) is stable."""
    costs = find_stable_costs(LinearGame(np.ones((2, 2)), [4, 4], limits=[1, 3]))
    np.testing.assert_allclose(costs[3], [1, 3])


def test_twins_with_other_costs_play_the_cheapest_plan_within_limits():
    game = LinearGame(np.ones((2, 2)), [4, 4], limits=[3, 4], costs=[1, 2])
    np.testing.assert_allclose(find_stable_costs(game)[3], [3, 2])


def sparse_game(size, seed):
    rng = np.random.default_rng(seed)
    benefits = rng.random((size, size)) * (rng.random((size, size)) < 0.25) * 0.6
    np.fill_diagonal(benefits, 1.0)
    return LinearGame(benefits, rng.uniform(100, 1000, size))


def test_no_small_group_leaves_what_merging_and_splitting_comes_to():
    game = sparse_game(14, seed=3)
    merging = MergeAndSplit(StableCosts(game))
    assert merging.run(Deadline(60))
    found = merging.make_grouping(3)
    assert 1 < len(found.coalitions) < 14
    for part in found.coalitions:
        alone = solve_stable(game.restrict(part))
        assert found.costs[[*part]].sum() == pytest.approx(alone.total, rel=1e-6)
    for size in (1, 2, 3):
        for group in combinations(range(14), size):
            given = solve_stable(game.restrict(group)).contributions
            assert not (given < found.costs[[*group]] * (1 - 1e-6)).all()


def test_many_agents_together_hold_against_groups_of_any_size():
    found = find_coalitions(sparse_game(14, seed=3))
    checked = {len(p.coalitions): p.checked for p in found.core}
    assert checked[1] == 14 and set(checked.values()) == {3, 14}
    assert found.individual is None and found.price_of_anarchy is None


def test_a_planted_block_makes_merging_and_splitting_go_on():
    merging = MergeAndSplit(StableCosts(sparse_game(14, seed=3)))
    merging.run(Deadline(60))
    assert merging.find_blocking() is None
    agent = int(merging.current.argmax())
    merging.current[agent] = merging.costs.find((agent,))[0] * 1.01
    assert merging.find_blocking() == (agent,)


def test_a_search_that_runs_out_of_time_claims_no_cycle(monkeypatch):
    """One group leaves, then time is up; agent 12 can never reach its requirement."""
    rng = np.random.default_rng(10)
    benefits = np.eye(13)
    benefits[:6, :6] = rng.random((6, 6)) * (rng.random((6, 6)) < 0.35)
    np.fill_diagonal(benefits, 1.0)
    needs = np.append(rng.uniform(100, 1000, 6), np.full(7, 10.0))
    limits = [*[None] * 12, 5]
    moved, run = [], MergeAndSplit.run

    def run_until_moved(self, deadline):
        class UntilMoved:
            passed = property(lambda _: bool(self.seen))

        settled = run(self, UntilMoved())
        moved.extend(self.seen)
        return settled

    monkeypatch.setattr(MergeAndSplit, "run", run_until_moved)
    found = find_coalitions(LinearGame(benefits, needs, limits=limits))
    assert moved and not found.core
    assert found.cycle == ()


def test_too_many_agents_are_refused():
    with pytest.raises(InputError, match="up to 40 agents"):
        find_coalitions(LinearGame(np.eye(41), np.ones(41)))


def test_groupings_of_whole_samples_are_rounded_as_plans_are():
    game = LinearGame([[1, 0.5], [0.5, 1]], [10, 10], strategies="integer")
    found = find_coalitions(game)
    # Over the reals both give 6 2/3.
    assert found.chosen.costs.tolist() == [7, 7] and found.chosen.total == 14
    assert found.alone.costs.tolist() == [10, 10]
    assert any("whole samples" in note for note in found.notes)


def test_the_cheapest_of_several_stable_plans_is_taken():
    """Either agent gives 1, or both give a third: three stable plans."""
    game = LinearGame([[1, 2], [2, 1]], [1, 1])
    np.testing.assert_allclose(find_stable_costs(game)[3], [1 / 3, 1 / 3])
    np.testing.assert_allclose(find_stable_costs(game.replace(costs=[1, 5]))[3], [1, 0])


@pytest.mark.parametrize(("size", "said"), [(3, "with 1 and 2"), (9, "with all others")])
def test_a_large_coalition_of_all_is_not_listed(size, said):
    benefits = np.full((size, size), 0.5) + 0.5 * np.eye(size)
    found = find_coalitions(LinearGame(benefits, [9.0] * size, agents=[*map(str, range(size))]))
    assert said in found.explain(0)
    whole = found.write_group(found.chosen.coalitions[0])
    assert whole == ("0, 1 and 2" if size == 3 else "all agents")


def test_agents_with_costs_of_their_own_bear_costs_and_do_not_give_samples():
    benefits = [[1, 0.5], [0.5, 1]]
    plain, dear = (LinearGame(benefits, [4, 4], costs=costs) for costs in (None, [1.0, 2.0]))
    assert find_coalitions(plain).what == "gives" and find_coalitions(dear).what == "bears"
    assert "B bears" in find_coalitions(dear.replace(agents=["A", "B"])).explain(1)
