"""Stable groupings by brute force over all groupings, from the definitions."""

import numpy as np
import pytest
from linear_games import random_game

from fedaccord import CoalitionTable, InputError, find_coalitions, tabulate_coalitions
from fedaccord.coalitions.find import find_cycle
from fedaccord.coalitions.linear import tabulate_stable_plans
from fedaccord.coalitions.search import Preferences, find_core
from fedaccord.coalitions.table import list_members
from fedaccord.equilibria.result import Deadline


def groupings(agents):
    """Yield all groupings of some agents."""
    if not agents:
        yield []
        return
    first, rest = agents[0], agents[1:]
    for smaller in groupings(rest):
        yield [[first], *smaller]
        for n, part in enumerate(smaller):
            yield [*smaller[:n], [first, *part], *smaller[n + 1 :]]


def bears(table, part, agent):
    return table.costs[sum(1 << agent for agent in part), agent]


def can_form(table, part):
    return len(part) == 1 or np.isfinite(table.costs[sum(1 << agent for agent in part), part]).all()


def is_blocked(table, grouping):
    """Return whether some group would all be better off in a coalition of its own."""
    now = {agent: bears(table, part, agent) for part in grouping for agent in part}
    return any(
        all(bears(table, list_members(c), i) < now[i] for i in list_members(c))
        for c in range(1, 2**table.size)
    )


def has_mover(table, grouping):
    """Return whether an agent would rather move, and the coalition it joins would not object."""
    for part in grouping:
        for agent in part:
            now = bears(table, part, agent)
            for other in [*(p for p in grouping if p is not part), []]:
                joined = sorted([*other, agent])
                if not can_form(table, joined) or bears(table, joined, agent) >= now:
                    continue
                if all(bears(table, joined, j) <= bears(table, other, j) for j in other):
                    return True
    return False


def brute_force(table):
    """Return the core-stable and the individually stable groupings, and the least total."""
    made = [p for p in groupings(list(range(table.size))) if all(can_form(table, c) for c in p)]
    sort = {tuple(sorted(tuple(sorted(c)) for c in p)): [sorted(c) for c in p] for p in made}
    core = {key for key, p in sort.items() if not is_blocked(table, p)}
    single = {key for key, p in sort.items() if not has_mover(table, p)}
    totals = [sum(bears(table, c, i) for c in p for i in c) for p in sort.values()]
    return core, single, min(totals)


def draw_table(seed):
    """Draw costs: real ones, or few whole ones with many ties; some coalitions cannot form."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    costs = rng.random((2**size, size)) + 0.1
    if seed % 2:
        costs = rng.integers(1, 5, costs.shape).astype(float)
    costs[rng.random(2**size) < (0.3 if seed % 3 == 0 else 0.0)] = np.inf
    return CoalitionTable(costs)


@pytest.mark.parametrize("seed", range(330))
def test_stable_groupings_are_those_of_brute_force(seed):
    table = draw_table(seed)
    found = find_coalitions(table)
    core, single, least = brute_force(table)
    assert {p.coalitions for p in found.core} == core
    assert {p.coalitions for p in found.individual} == single
    assert (found.core_count, found.individual_count) == (len(core), len(single))
    assert found.complete
    if np.isfinite(least):
        assert found.cheapest.total == pytest.approx(least)
    for grouping in (*found.core, *found.individual):
        for part in grouping.coalitions:
            for agent in part:
                assert grouping.costs[agent] == bears(table, part, agent)


def test_some_tables_have_no_core_and_their_cycles_are_cycles():
    cycles = 0
    for seed in range(330):
        table = draw_table(seed)
        found = find_coalitions(table)
        assert bool(found.cycle) == (found.core_count == 0)
        for move, following in zip(found.cycle, [*found.cycle[1:], *found.cycle[:1]], strict=True):
            now = {agent: bears(table, part, agent) for part in move.before for agent in part}
            assert all(bears(table, move.group, agent) < now[agent] for agent in move.group)
            assert move.group in following.before
            for part in move.before:
                left = tuple(agent for agent in part if agent not in move.group)
                kept = left in following.before
                assert not left or kept or all((agent,) in following.before for agent in left)
        cycles += bool(found.cycle)
    assert cycles >= 3


def roommates(members):
    """Return costs of three agents that each prefer the next to the one before."""
    table = {(0, 1): [1, 2], (1, 2): [1, 2], (0, 2): [2, 1], (0, 1, 2): [4, 4, 4]}
    return table.get(members, [3])


def test_three_agents_that_chase_each_other_have_no_core():
    found = find_coalitions(tabulate_coalitions(3, roommates, agents=["A", "B", "C"]))
    assert found.core == () and found.complete
    assert "No grouping is core-stable" in found.verdict
    assert {move.group for move in found.cycle} == {(0, 1), (1, 2), (0, 2)}


def test_a_planted_block_is_found():
    """One coalition made better for both of its members unseats a grouping that was stable."""
    costs = np.array(tabulate_coalitions(3, lambda members: [len(members)] * len(members)).costs)
    assert find_coalitions(CoalitionTable(costs)).chosen.coalitions == ((0,), (1,), (2,))
    costs[0b101, [0, 2]] = 0.5
    preferences = Preferences(CoalitionTable(costs))
    assert preferences.list_blocking((1, 2, 4)) == [0b101]
    assert find_coalitions(CoalitionTable(costs)).chosen.coalitions == ((0, 2), (1,))
    assert find_cycle(preferences) == ()


def test_costs_that_differ_by_rounding_are_the_same():
    costs = np.ones((4, 2))
    costs[3] = 1 - 1e-13
    assert find_coalitions(CoalitionTable(costs)).core_count == 2
    costs[3] = 1 - 1e-6
    assert find_coalitions(CoalitionTable(costs)).core_count == 1


def test_a_search_without_time_proves_nothing():
    table = CoalitionTable(np.ones((2**9, 9)))
    found = find_core(Preferences(table), Deadline(0.0))
    assert not found.complete and found.count < 21147
    assert find_core(Preferences(table), Deadline(60)).count == 21147


# Linear games.


@pytest.mark.parametrize("seed", range(60))
def test_all_agents_together_are_stable_in_every_linear_game(seed):
    """More data never hurts, so that no group leaves a stable plan of all: see the page."""
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    game = random_game(rng, int(rng.integers(2, 7)), kind=kind, boxed=seed % 2 == 1)
    found = find_coalitions(game)
    if found.together is not None:
        everyone = (tuple(range(game.size)),)
        assert everyone in {p.coalitions for p in found.core}
        assert everyone in {p.coalitions for p in found.individual}
        assert (found.together.costs <= found.alone.costs * (1 + 1e-9)).all()


# Faults in what is given.


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (np.ones((3, 2)), "2\\^k rows"),
        (np.ones((2**13, 13)), "up to 12 agents"),
        (np.array([[0, 0], [1, 0], [0, 1], [-1, 1.0]]), r"coalition \(0, 1\)"),
        (np.array([[0, 0], [1, 0], [0, np.nan], [1, 1.0]]), r"coalition \(1,\)"),
    ],
)
def test_a_table_that_is_none_is_refused(costs, words):
    with pytest.raises(InputError, match=words):
        CoalitionTable(costs)


def test_other_faults_are_refused():
    with pytest.raises(InputError, match="2 numbers, one per member"):
        tabulate_coalitions(2, lambda members: [1.0])
    with pytest.raises(InputError, match="1 to 12 agents"):
        tabulate_coalitions(0, lambda members: [])
    with pytest.raises(InputError, match="above 0"):
        CoalitionTable(np.ones((4, 2)), weights=[1, 0])
    with pytest.raises(InputError, match="2 agents came with 1"):
        CoalitionTable(np.ones((4, 2)), ("A",))
    with pytest.raises(InputError, match="time_limit"):
        find_coalitions(CoalitionTable(np.ones((4, 2))), time_limit=0)


def test_a_coalition_that_leaves_one_member_short_cannot_form():
    costs = np.array([[0, 0], [2, 0], [0, 2], [1, np.inf]])
    found = find_coalitions(CoalitionTable(costs))
    assert [p.coalitions for p in found.core] == [((0,), (1,))] and found.together is None


def test_tables_of_stable_plans_need_a_linear_game():
    from fedaccord.games.coverage import CoverageGame

    with pytest.raises(InputError, match="coverage"):
        tabulate_stable_plans(CoverageGame([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5]))


def test_a_coalition_of_many_agents_is_not_listed_by_name_for_each_of_them():
    costs = 1.0 / np.array([max(bits.bit_count(), 1) for bits in range(2**6)])
    table = CoalitionTable(np.repeat(costs[:, None], 6, axis=1), agents=list("ABCDEF"))
    found = find_coalitions(table)
    assert found.write_grouping(found.chosen.coalitions) == "all agents"
    assert found.explain(2) == "C bears 0.1667 with all others, against 1 on its own."
    assert found.write_group((0, 1, 2, 3, 4)) == "A, B, C, D and E"
