"""Payments for agents with several goals, and with samples that harm."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord import Goal, GoalsGame, SignedGame, share_costs
from fedaccord.equilibria.programs import linear_program
from fedaccord.errors import UnsolvedError
from fedaccord.games.chances import Estimates
from fedaccord.games.goals import Worlds
from fedaccord.games.rows import RowGame
from fedaccord.sharing.costs import GroupCosts, list_groups


def make_game(seed: int, size: int = 4, *, harm: bool = False) -> GoalsGame:
    random = np.random.default_rng(seed)
    goals = []
    for agent in range(size):
        for number in range(int(random.integers(1, 4))):
            row = random.uniform(-0.4 if harm else 0.0, 1.0, size)
            row[agent] = 1.0
            goals.append(Goal(agent, f"goal {number}", row, float(random.uniform(5, 50))))
    return GoalsGame(goals)


def cost_by_hand(game: RowGame, members: list[int]) -> float:
    inside = np.isin(game.owners, members)
    found = linear_program(
        game.costs[members], game.minimums[members], game.limits[members],
        rows=-game.rows[inside][:, members], most=-game.needs[inside],
    )  # fmt: skip
    return float("inf") if found.x is None else float(game.costs[members] @ found.x)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_group_costs_are_those_of_one_program_each(seed: int, harm: bool) -> None:
    game = make_game(seed, harm=harm)
    for group, cost in zip(list_groups(game.size)[1:], GroupCosts(game).values[1:], strict=True):
        assert cost == pytest.approx(cost_by_hand(game, np.flatnonzero(group).tolist()), rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_without_harm_no_group_would_pay_less_alone(seed: int) -> None:
    game = make_game(seed)
    found = share_costs(game)
    shares = found.contracts["prices"].shares.values
    assert shares.sum() == pytest.approx(cost_by_hand(game, [*range(game.size)]), rel=1e-6)
    assert found.payments.sum() == pytest.approx(0.0, abs=1e-6 * shares.sum())
    for count in range(1, game.size):
        for group in itertools.combinations(range(game.size), count):
            assert shares[[*group]].sum() <= cost_by_hand(game, [*group]) * (1 + 1e-6)
    assert found.is_proved and found.contracts["prices"].leaver is None


def test_amounts_are_zero_or_more_than_rounding() -> None:
    for seed in range(40):
        game = make_game(seed, size=6, harm=True)
        tight = game.replace(limits=np.full(6, 0.6 * game.needs.max()))
        try:
            found = share_costs(tight).contracts["prices"]
        except UnsolvedError:
            continue
        amounts = np.abs([found.shares.values, found.payments.values])
        assert ((amounts == 0) | (amounts > 1e-9 * amounts.sum())).all()


def test_one_goal_each_is_shared_as_the_linear_game() -> None:
    from fedaccord import LinearGame

    benefits = np.array([[1, 0.5, 0.2], [0.3, 1, 0.4], [0.1, 0.6, 1]])
    needs = [30.0, 40.0, 20.0]
    goals = [Goal(i, "accuracy", benefits[i], needs[i]) for i in range(3)]
    one, other = share_costs(GoalsGame(goals)), share_costs(LinearGame(benefits, needs))
    assert one.payments == pytest.approx(other.payments, abs=1e-6)
    assert one.prices.requirements == pytest.approx(other.prices.requirements, abs=1e-9)


def test_with_harm_the_group_that_would_leave_is_named() -> None:
    # C's samples harm A and B, who need nothing of C; C needs its own samples alone.
    game = SignedGame([[1, 0, -1], [0, 1, -1], [0, 0, 1]], [10, 10, 10], agents=["A", "B", "C"])
    found = share_costs(game)
    alone = {name: cost_by_hand(game, [n]) for n, name in enumerate("ABC")}
    assert alone == {"A": 10, "B": 10, "C": 10}
    assert found.prices.total == pytest.approx(50)
    assert not found.is_proved
    assert found.contracts["prices"].leaver is not None
    assert "would pay" in found.verdict and "without the others" in found.verdict


def test_goals_out_of_reach_leave_nothing_to_share() -> None:
    game = GoalsGame([Goal(0, "AUC", [1, 1], 30), Goal(1, "AUC", [1, 1], 30)], limits=[10, 10])
    with pytest.raises(UnsolvedError, match="within the limits"):
        share_costs(game)


def scatter_worlds(game: GoalsGame, count: int, seed: int = 0) -> Worlds:
    random = np.random.default_rng(seed)
    rows = game.rows * random.uniform(0.7, 1.3, (count, *game.rows.shape))
    return Worlds(rows, game.needs * random.uniform(0.8, 1.2, (count, len(game.needs))))


def make_world(game: GoalsGame, worlds: Worlds, number: int) -> GoalsGame:
    rows, needs = worlds.benefits[number], worlds.needs[number]
    goals = [
        Goal(goal.agent, goal.name, row, float(need))
        for goal, row, need in zip(game.goals, rows, needs, strict=True)
    ]
    return GoalsGame(goals, limits=game.limits)


@pytest.mark.parametrize("harm", [False, True])
def test_intervals_are_those_of_the_worlds_shared_one_by_one(harm: bool) -> None:
    game = make_game(3, harm=harm)
    worlds = scatter_worlds(game, 40)
    found = share_costs(game.replace(worlds=worlds)).contracts["prices"]
    each = [share_costs(make_world(game, worlds, n)).contracts["prices"] for n in range(40)]
    for name in ("payments", "shares"):
        drawn = np.sort([getattr(one, name).values for one in each], axis=0)
        estimate = getattr(found, name)
        # Of 40 sorted numbers, 2.5 % are the first, and 97.5 % are the 39th.
        assert estimate.low == pytest.approx(drawn[0], abs=1e-6 * found.shares.values.sum())
        assert estimate.high == pytest.approx(drawn[38], abs=1e-6 * found.shares.values.sum())


@pytest.mark.parametrize("hopeless, said", [(3, "leave these out"), (9, "no intervals")])
def test_worlds_without_a_plan_are_counted(hopeless: int, said: str) -> None:
    game = make_game(3).replace(limits=np.full(4, 200.0))
    worlds = scatter_worlds(game, 12)
    needs = np.array(worlds.needs)
    needs[:hopeless, 0] = 1e4
    needs[0, 0] = np.inf
    found = share_costs(game.replace(worlds=Worlds(worlds.benefits, needs)))
    (note,) = (note for note in found.notes if "resamples" in note)
    assert note.startswith(f"In {hopeless} of 12 resamples") and said in note
    assert (found.contracts["prices"].payments.low is None) == (hopeless == 9)


def test_a_part_of_a_game_keeps_the_worlds_of_its_goals() -> None:
    game = make_game(5)
    worlds = scatter_worlds(game, 8)
    part = game.replace(worlds=worlds).restrict([3, 1])
    held = [g for agent in (3, 1) for g in game.goals_of(agent)]
    assert part.worlds is not None
    assert np.array_equal(part.worlds.needs, worlds.needs[:, held])
    assert np.array_equal(part.worlds.benefits, worlds.benefits[:, held][:, :, [3, 1]])


@pytest.mark.parametrize(
    ("low", "high", "certain"),
    [
        ([-5, -9, 0, 0], [20, -1, 0, 0], False),  # one is paid for sure, and nobody knows by whom
        ([2, -9, 0, 0], [20, 5, 0, 0], True),
        ([0, 0, 0, 0], [0, 0, 0, 0], True),
        ([-4, 0, 0, 0], [0, 3, 0, 0], False),
    ],
)
def test_pilots_are_certain_if_they_name_a_payer(low, high, certain) -> None:
    found = share_costs(make_game(3))
    paid = found.contracts["prices"]
    payments = Estimates(paid.payments.values, np.array(low, float), np.array(high, float))
    contract = replace(paid, payments=payments)
    changed = replace(found, contracts={**found.contracts, "prices": contract})
    assert changed.is_certain == certain
