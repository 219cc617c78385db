"""Groups that could give less together, against every group and every reduction of it.

The brute force here knows nothing of the theorem: it tries all groups and all that they could give
instead, over whole numbers by listing, over the reals by a linear program or on a grid.
"""

import sys
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from coverage_games import coverage_games
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pac_worlds import cycle_worlds
from scipy.optimize import linprog
from strategies import discovery_games, eighths, framed_games, linear_games

from fedaccord import all_equilibria, solve_optimal, solve_stable
from fedaccord.check import Answer, check
from fedaccord.errors import InputError
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import LearningCurve, MeasuredGame
from fedaccord.games.pac.sampled import SampledPacGame
from fedaccord.groups import (
    find_blocking_group,
    find_blocking_groups,
    list_blocking_groups,
)
from fedaccord.reproduce.oracle import ExactGame, to_floats, utility_of

MANY, SOME = settings(max_examples=100), settings(max_examples=60)
CURVE = LearningCurve(floor=0.05, height=2.6, head=50, pace=0.52)

# The definition, group by group.


def groups_of(size):
    """List every group, small ones first."""
    return chain.from_iterable(combinations(range(size), n) for n in range(1, size + 1))


def whole_reductions(group, theta, minimums):
    """List all that a group could give which is less for some and more for none."""
    ranges = [range(int(minimums[i]), int(theta[i]) + 1) for i in group]
    now = tuple(int(theta[i]) for i in group)
    return (after for after in product(*ranges) if after != now)


def reduced(theta, group, after, *, alone=False):
    """Give theta with other amounts of a group, the others as they are or gone."""
    amounts = dict(zip(group, after, strict=True))
    return [amounts.get(j, 0 if alone else t) for j, t in enumerate(theta)]


def blocks(utility, needs, theta, group, after, **how):
    """Say whether all of a group are satisfied after they reduced together."""
    trial = reduced(theta, group, after, **how)
    return all(utility(i, trial) >= needs[i] for i in group)


def whole_blocking(game, theta, utility=None, *, strict=False):
    """List (group, its amounts, whether it left) of every group that blocks an allocation."""
    utility = utility or utility_of(game)
    needs = [Fraction(str(mu)) for mu in game.requirements.tolist()]
    theta = [int(t) for t in theta]
    return [
        (group, after, alone)
        for group in groups_of(game.size)
        for after in whole_reductions(group, theta, game.minimums)
        if not strict or all(a < theta[i] for i, a in zip(group, after, strict=True))
        for alone in (False, True)
        if blocks(utility, needs, theta, group, after, alone=alone)
    ]


def largest_cut(game, theta, group, *, every=False):
    """Give the most that a group of a linear game can give less, by a linear program.

    every: the most that every member can give less at once, in place of the sum.
    """
    members, others = [*group], [j for j in range(game.size) if j not in group]
    given = np.asarray(theta, dtype=float)
    needs = game.requirements - game.dense_benefits[:, others] @ given[others]
    # The cuts d_i, and t below all of them.
    rows = np.column_stack([game.dense_benefits[np.ix_(members, members)], np.zeros(len(members))])
    right = game.dense_benefits[np.ix_(members, members)] @ given[members] - needs[members]
    below = np.column_stack([-np.eye(len(members)), np.ones(len(members))])
    room = [(0, given[i] - game.minimums[i]) for i in members]
    goal = [0.0] * len(members) + [-1.0] if every else [-1.0] * len(members) + [0.0]
    answer = linprog(
        goal,
        A_ub=np.vstack([rows, below]),
        b_ub=[*np.maximum(right, 0), *[0.0] * len(members)],
        bounds=[*room, (0, None)],
        method="highs",
    )
    assert answer.status == 0, answer.message
    return -answer.fun


def grid_blocking(game, theta, *, step=0.02, levels=(0.0, 0.3, 0.7, 0.98)):
    """List (group, its levels) of the groups that block on a grid of levels of theta."""
    found = []
    for group in groups_of(game.size):
        members = [*group]
        for parts in product((*levels, 1.0), repeat=len(group)):
            for alone in (False, True):
                trial = np.zeros(game.size) if alone else np.array(theta, dtype=float)
                trial[members] = np.asarray(parts) * theta[members]
                cut = (theta[members] - trial[members]).max()
                enough = game.utilities(trial) >= game.requirements * (1 - 1e-9)
                if cut > 0.9 * step * theta.max() and enough[members].all():
                    found.append((group, parts, alone))
    return found


# The brute force, first shown what it must object to.


def test_listing_finds_who_could_give_less():
    game = LinearGame([[1, 0.5], [0.5, 1]], [12, 12], strategies="integer")
    assert whole_blocking(game, [8, 8]) == []
    # Alone the first gives less; the second may go along, and gives what it gave.
    pair = [((0, 1), (8, 8), False), ((0, 1), (8, 8), True)]
    assert whole_blocking(game, [9, 8]) == [((0,), (8,), False), *pair]
    assert whole_blocking(game, [9, 8], strict=True) == [((0,), (8,), False)]
    assert {group for group, *_ in whole_blocking(game, [10, 10])} == {(0,), (1,), (0, 1)}
    # Whoever has enough alone can leave.
    assert ((0,), (12,), True) in whole_blocking(game, [13, 8])
    # A pair that gives as much as it did is none that gives less.
    assert ((0, 1), (10, 10), False) not in whole_blocking(game, [10, 10])


def test_the_program_and_the_grid_find_who_could_give_less():
    game = LinearGame([[1, 0.5], [0.5, 1]], [12, 12])
    assert largest_cut(game, [8, 8], (0, 1)) == pytest.approx(0)
    assert largest_cut(game, [10, 10], (0, 1)) == pytest.approx(4)
    assert largest_cut(game, [10, 10], (0, 1), every=True) == pytest.approx(2)
    assert largest_cut(game, [10, 10], (0,)) == pytest.approx(3)
    assert grid_blocking(game, np.array([8.0, 8])) == []
    assert {group for group, *_ in grid_blocking(game, np.array([10.0, 10]))} == {
        (0,),
        (1,),
        (0, 1),
    }


# The theorem: a stable allocation has no blocking group.


def assert_no_whole_group(game, utility=None):
    equilibria = all_equilibria(game)
    for theta in equilibria:
        assert whole_blocking(game, theta, utility) == []
        assert find_blocking_groups(game, theta, size=game.size) == ()
    return len(equilibria)


@MANY
@given(linear_games(strategies="integer"))
def test_no_group_blocks_an_equilibrium_of_a_whole_linear_game(game):
    assert_no_whole_group(game)


@SOME
@given(framed_games(linear_games(strategies="integer"), whole=True))
def test_no_group_blocks_an_equilibrium_within_limits_and_minimums(game):
    assert_no_whole_group(game)


@SOME
@given(coverage_games(most_agents=3, most_points=3, highest=0.8, strategies="integer"))
def test_no_group_blocks_an_equilibrium_of_a_whole_coverage_game(game):
    assume(game.alone.max() <= 8)
    assert assert_no_whole_group(game) > 0  # an exact potential makes one exist


def roots(benefits):
    """Give u_i = sum_j W_ij sqrt(theta_j)."""
    return lambda theta: benefits @ np.sqrt(theta)


@st.composite
def function_games(draw, **frame):
    k = draw(st.integers(1, 3))
    benefits = np.array(draw(st.lists(eighths(0, 8), min_size=k * k, max_size=k * k)))
    benefits = benefits.reshape(k, k)
    benefits[np.diag_indices(k)] = 1.0
    needs = draw(st.lists(eighths(2, 20), min_size=k, max_size=k))
    return FunctionGame(roots(benefits), needs, **frame)


@SOME
@given(function_games(strategies="integer"))
def test_no_group_blocks_an_equilibrium_of_a_whole_function_game(game):
    assert_no_whole_group(game, lambda agent, theta: game.utilities(np.array(theta))[agent])


@MANY
@given(st.one_of(linear_games(most_agents=4), discovery_games()))
def test_no_group_blocks_an_equilibrium_of_a_real_linear_game(game):
    exact = [to_floats(theta) for theta in ExactGame.of_game(game).equilibria]
    found = solve_stable(game)
    for theta in [*exact, *([] if found.contributions is None else [found.contributions])]:
        scale = max(1.0, theta.max(initial=0))
        for group in groups_of(game.size):
            assert largest_cut(game, theta, group) <= 1e-5 * scale
        assert find_blocking_groups(game, theta, size=game.size) == ()


@st.composite
def measured_games(draw, **frame):
    game = draw(linear_games(**frame))
    goals = draw(st.lists(st.integers(55, 85).map(lambda n: n / 100), min_size=3, max_size=3))
    benefits = np.array(game.dense_benefits)
    benefits[np.diag_indices(game.size)] = 1.0
    return MeasuredGame(benefits, [CURVE] * game.size, goals[: game.size])


@SOME
@given(st.one_of(coverage_games(most_agents=3), measured_games(), function_games()))
def test_no_group_blocks_an_equilibrium_of_other_real_games(game):
    found = solve_stable(game)
    assume(found.contributions is not None and found.contributions.any())
    theta = found.contributions
    assume(check(game, theta).stable is Answer.TRUE)
    assert grid_blocking(game, theta) == []
    assert find_blocking_groups(game, theta, size=game.size) == ()


# What holds of every allocation, stable or not.


@st.composite
def games_and_allocations(draw, games, most=4):
    game = draw(games)
    amounts = st.integers(0, most)
    return game, draw(st.lists(amounts, min_size=game.size, max_size=game.size))


WHOLE = st.one_of(
    linear_games(strategies="integer"),
    coverage_games(most_agents=3, most_points=3, highest=0.8, strategies="integer"),
)


@MANY
@given(games_and_allocations(WHOLE))
def test_the_groups_found_are_those_of_the_definition(drawn):
    game, theta = drawn
    listed = whole_blocking(game, theta, strict=True)
    expected = {group for group, _, alone in listed if not alone}
    found = find_blocking_groups(game, theta, size=game.size)
    assert {group.agents for group in found} == expected
    assert [len(group.agents) for group in found] == sorted(map(len, expected))
    for group in found:
        # The most that all can give less at once, by listing.
        best = 0
        for _, after, _ in (row for row in listed if row[0] == group.agents and not row[2]):
            cuts = [theta[i] - a for i, a in zip(group.agents, after, strict=True)]
            floors = [theta[i] for i in group.agents]
            if all(c == min(max(cuts), f) for c, f in zip(cuts, floors, strict=True)):
                best = max(best, max(cuts))
        assert group.less == best
        assert game.satisfied(group.contributions)[[*group.agents]].all()


@MANY
@given(games_and_allocations(WHOLE))
def test_whoever_gives_less_in_a_group_could_give_as_much_less_alone(drawn):
    game, theta = drawn
    utility = utility_of(game)
    needs = [Fraction(str(mu)) for mu in game.requirements.tolist()]
    for group, after, _ in whole_blocking(game, theta):
        for agent, amount in zip(group, after, strict=True):
            if amount < theta[agent]:
                assert blocks(utility, needs, theta, (agent,), (amount,))


@MANY
@given(games_and_allocations(linear_games(most_agents=4)))
def test_the_groups_found_over_the_reals_are_those_of_a_linear_program(drawn):
    game, theta = drawn
    found = {group.agents: group for group in find_blocking_groups(game, theta, size=game.size)}
    satisfied = game.satisfied(np.array(theta, dtype=float))
    for group in groups_of(game.size):
        if not satisfied[[*group]].all():
            assert group not in found
            continue
        cut = largest_cut(game, theta, group, every=True)
        assert (group in found) == (cut > 1e-4 * max(theta)), (group, cut)
        if group in found:
            # Equal cuts down to nothing are at least as large as the least of unequal ones.
            assert found[group].less >= cut * (1 - 1e-7)
            slack = game.utilities(found[group].contributions) - game.requirements
            assert slack[[*group]].min() >= -1e-9


# The three ways in which it fails: exact numbers.


def test_with_side_payments_an_agent_that_gives_more_can_be_paid_for_it():
    game = LinearGame([[1, 0], [2, 1]], [0, 10])
    assert check(game, [0, 10]).stable is Answer.TRUE
    assert find_blocking_group(game, [0, 10], size=2) is None
    assert check(game, [5, 0]).feasible is Answer.TRUE
    # The second pays 7: both are better off by 2 and 3, and the total falls from 10 to 5.
    costs, payment = np.array([5.0, 0.0]), np.array([-7.0, 7.0])
    assert (np.array([0.0, 10.0]) - (costs + payment)).tolist() == [2, 3]
    assert solve_optimal(game).total == pytest.approx(5)


def test_with_margins_every_member_and_the_pair_can_give_less():
    targets = LinearGame([[1, 0.5], [0.5, 1]], [15, 15])
    goals = targets.replace(requirements=[12, 12])
    assert check(targets, [10, 10]).stable is Answer.TRUE
    assert find_blocking_groups(targets, [10, 10], size=2) == ()
    groups = find_blocking_groups(goals, [10, 10], size=2)
    assert [group.agents for group in groups] == [(0,), (1,), (0, 1)]
    assert [group.less for group in groups] == pytest.approx([3, 3, 2])
    assert groups[2].contributions == pytest.approx([8, 8])
    assert groups[2].saved == pytest.approx(4)


def test_with_harm_a_pair_can_give_less_where_neither_can_alone():
    game = LinearGame(np.eye(2), [20, 20], strategies="integer")  # for its requirements alone

    def harm(agent, theta):
        return 30 + theta[agent] - 2 * theta[1 - agent]

    found = {(group, alone) for group, _, alone in whole_blocking(game, [10, 10], harm)}
    assert ((0, 1), False) in found
    assert ((0,), False) not in found and ((1,), False) not in found
    with pytest.raises(InputError, match="utilities must not fall when an agent gives more"):
        FunctionGame(lambda theta: 30 + theta - 2 * theta[::-1], [20, 20])


# What is said, and what is refused.


def test_groups_are_described_by_name():
    game = LinearGame([[1, 0.5], [0.5, 1]], [12, 12], agents=["City", "Rural"])
    alone, _, pair = find_blocking_groups(game, [10, 10])
    assert alone.sentence() == "City could give 3 samples less and still reach its requirement."
    assert pair.sentence() == (
        "City and Rural could each give 2 samples less at once, and all of them would still reach "
        "their requirements."
    )
    assert repr(pair).startswith("BlockingGroup(City and Rural could each give 2 samples")
    assert pair.to_dict() == {
        "agents": ["City", "Rural"],
        "less": pytest.approx(2),
        "saved": pytest.approx(4),
    }
    unnamed = find_blocking_group(game.replace(agents=None), [10, 10], size=2)
    assert unnamed is not None and unnamed.to_dict()["agents"] == [0, 1]


def test_minimums_and_those_who_are_short_stay_out():
    game = LinearGame(np.eye(3), [5, 5, 5], minimums=[7, 0, 0])
    groups = find_blocking_groups(game, [7, 6, 4], size=3)
    assert [group.agents for group in groups] == [(1,)]
    # Above its minimum an agent goes down to it and no further.
    pair = find_blocking_group(game, [8, 9, 4], size=2)
    assert pair is not None and pair.agents == (0, 1)
    assert pair.contributions == pytest.approx([7, 5, 4])


def test_a_search_of_too_many_groups_is_refused(monkeypatch):
    game = LinearGame(np.eye(6), np.ones(6))
    assert len(find_blocking_groups(game, np.full(6, 2.0), size=6)) == 63
    monkeypatch.setattr(sys.modules["fedaccord.groups"], "MOST_GROUPS", 20)
    assert len(find_blocking_groups(game, np.full(6, 2.0), size=2)) == 21
    with pytest.raises(InputError, match="ask for groups of up to 2"):
        find_blocking_groups(game, np.full(6, 2.0), size=3)
    # A stable allocation is none, at any size.
    assert find_blocking_groups(game, np.ones(6), size=6) == ()


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_sizes_that_are_none_are_refused(size):
    with pytest.raises(InputError, match="size must be a whole number of 1 or more"):
        find_blocking_group(LinearGame(np.eye(2), [1, 1]), [1, 1], size=size)


def test_estimates_and_a_tolerance_of_nothing_are_refused():
    real = LinearGame(np.eye(2), [1, 1])
    with pytest.raises(InputError, match="need a tolerance above 0"):
        list_blocking_groups(check(real, [2, 2], tolerance=0.0))
    whole = real.replace(strategies="integer")
    assert len(list_blocking_groups(check(whole, [2, 2], tolerance=0.0))) == 3
    sampled = SampledPacGame(cycle_worlds(), [0.6] * 3, draws=20)
    with pytest.raises(InputError, match="the utilities of this game are estimates"):
        find_blocking_group(sampled, [3, 3, 3])
