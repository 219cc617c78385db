"""Games of agents that keep what they withhold, against their utility written down directly."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import ndtr
from strategies import eighths, linear_games

from fedaccord import all_equilibria, solve_stable
from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.errors import InputError
from fedaccord.games.chances import Chances
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.kept import ALL, KeptData, ignore_goals, keep_data
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.games.measured import LearningCurve, MeasuredGame, predict_accuracies

CURVE = LearningCurve(floor=0.05, height=2.6, head=50, pace=0.52)
NOTHING = (Status.NONE_EXISTS, Status.INFEASIBLE)


# The utility of an agent that keeps data, and the definition of stable, word by word.


def kept_utility(game, worth, holdings, agent, theta):
    """Give u_i: what others give, what the agent gives, and what its kept samples are worth."""
    row = [Fraction(w) for w in game.dense_benefits[agent].tolist()]
    others = sum(row[j] * theta[j] for j in range(game.size) if j != agent)
    own = theta[agent] + Fraction(worth[agent]) * (holdings[agent] - theta[agent])
    return others + row[agent] * own


def reaches(game, worth, holdings, agent, theta):
    need = Fraction(float(game.requirements[agent]))
    return kept_utility(game, worth, holdings, agent, theta) >= need


def list_stable(game, worth, holdings, *, whom=None):
    """List all whole allocations that are stable, by trying every one and every smaller amount.

    whom: those who must reach their requirements; all where left out.
    """
    agents = range(game.size)
    whom = agents if whom is None else whom

    def is_stable(theta):
        for agent in whom:
            if not reaches(game, worth, holdings, agent, theta):
                return False
        return all(
            not reaches(game, worth, holdings, agent, [*theta[:agent], less, *theta[agent + 1 :]])
            for agent in agents
            for less in range(int(game.minimums[agent]), theta[agent])
            if agent in whom
        ) and all(theta[i] == game.minimums[i] for i in agents if i not in whom)

    ranges = [
        range(int(least), int(min(held, most)) + 1)
        for least, held, most in zip(game.minimums, holdings, game.limits, strict=True)
    ]
    return {theta for theta in product(*ranges) if is_stable(list(theta))}


def random_case(rng):
    """Draw a small whole game, kept worths (0 and 1 often) and holdings."""
    k = int(rng.integers(1, 4))
    benefits = rng.integers(0, 9, (k, k)) / 8
    benefits[np.diag_indices(k)] = rng.integers(4, 9, k) / 8
    needs = rng.integers(0, 41, k) / 8
    holdings = rng.integers(0, 6, k)
    minimums = np.where(rng.random(k) < 0.2, np.minimum(1, holdings), 0)
    worth = np.where(rng.random(k) < 0.25, rng.integers(0, 2, k), rng.integers(0, 9, k) / 8)
    game = LinearGame(benefits, needs, strategies="integer", minimums=minimums)
    return game, worth.tolist(), holdings.tolist()


def test_the_definition_is_first_shown_games_with_known_answers():
    one = LinearGame([[1.0]], [4.0], strategies="integer")
    assert list_stable(one, [0], [6]) == {(4,)}
    # 3 given and 3 kept at a half are 4.5; with 2 they are 4.
    assert list_stable(one, [Fraction(1, 2)], [6]) == {(2,)}
    assert list_stable(one, [1], [6]) == {(0,)}
    assert list_stable(one, [1], [3]) == set()
    assert list_stable(one, [Fraction(1, 2)], [3]) == set()


def test_solvers_find_the_equilibria_of_600_games_in_which_data_are_kept():
    rng = np.random.default_rng(20261117)
    some = none = 0
    for _ in range(600):
        game, worth, holdings = random_case(rng)
        expected = list_stable(game, worth, holdings)
        changed = keep_data(game, worth, holdings)
        found = {tuple(map(int, theta)) for theta in all_equilibria(changed)}
        assert found == expected, (game.to_dict(), worth, holdings)
        cheapest = solve_stable(changed)
        if expected:
            some += 1
            assert cheapest.status is Status.OPTIMAL
            assert cheapest.total == min(map(sum, expected))
        else:
            none += 1
            assert cheapest.status in NOTHING
    # Both answers are common, so that neither is right by chance.
    assert some > 100 and none > 100


def test_the_check_agrees_with_the_definition_on_every_allocation():
    rng = np.random.default_rng(7)
    for _ in range(60):
        game, worth, holdings = random_case(rng)
        expected = list_stable(game, worth, holdings)
        changed = keep_data(game, worth, holdings)
        for theta in product(*(range(int(n) + 1) for n in holdings)):
            answer = check(changed, theta).stable
            assert (answer is Answer.TRUE) == (theta in expected), (theta, worth, holdings)


def test_the_rest_settles_without_keepers_that_fall_short():
    rng = np.random.default_rng(3)
    tried = 0
    while tried < 60:
        game, worth, holdings = random_case(rng)
        keepers = KeptData.read(game, worth, holdings).keepers
        if not 0 < len(keepers) < game.size:
            continue
        tried += 1
        rest = ignore_goals(keep_data(game, worth, holdings), keepers)
        whom = [i for i in range(game.size) if i not in keepers]
        expected = list_stable(game, worth, holdings, whom=whom)
        assert {tuple(map(int, t)) for t in all_equilibria(rest)} == expected


# Theorems.


@st.composite
def kept_cases(draw, **frame):
    game = draw(linear_games(**frame))
    k = game.size
    worth = draw(st.lists(eighths(0, 7), min_size=k, max_size=k))
    holdings = draw(st.lists(st.integers(0, 40).map(lambda n: n / 8), min_size=k, max_size=k))
    theta = draw(st.lists(st.integers(0, 16).map(lambda n: n / 8), min_size=k, max_size=k))
    return game, np.array(worth), np.array(holdings), np.array(theta)


@given(kept_cases())
def test_utilities_differ_from_those_of_the_definition_by_what_is_kept(case):
    game, worth, holdings, theta = case
    changed = keep_data(game, worth, holdings)
    given_ = np.minimum(theta, holdings)
    slack = changed.utilities(given_) - changed.requirements
    exact = [Fraction(t) for t in given_.tolist()]
    held = [Fraction(n) for n in holdings.tolist()]
    for agent in range(game.size):
        reached = kept_utility(game, worth.tolist(), held, agent, exact)
        missing = float(reached) - game.requirements[agent]
        if changed.requirements[agent] > 0:
            assert slack[agent] == pytest.approx(missing, abs=1e-12)
        else:
            # What is kept suffices by itself.
            assert missing >= -1e-12 and slack[agent] >= 0


@given(kept_cases())
def test_a_kept_worth_of_nothing_leaves_the_game_as_it_is(case):
    game, _, holdings, _ = case
    assert keep_data(game, 0.0).to_dict() == game.to_dict()
    limited = game.replace(limits=holdings)
    assert keep_data(limited, 0.0).to_dict() == limited.to_dict()
    # Nobody gives more than it holds.
    assert keep_data(game, 0.0, holdings).to_dict() == limited.to_dict()


@settings(max_examples=200)
@given(kept_cases(), st.integers(0, 7), st.integers(0, 7))
def test_the_more_kept_samples_are_worth_the_less_an_agent_gives(case, low, high):
    game, _, holdings, theta = case
    low, high = sorted((low / 8, high / 8))
    before = keep_data(game, low, holdings).best_responses(theta)
    after = keep_data(game, high, holdings).best_responses(theta)
    can = before <= holdings + 1e-12
    assert (after[can] <= before[can] + 1e-9).all()
    # An agent that cannot reach its requirement with all it holds cannot by keeping it, either.
    assert (after[~can] > holdings[~can] - 1e-9).all()


def test_best_responses_are_those_worked_out_by_hand():
    game = LinearGame([[1, 0.5], [0.5, 1]], [80, 60], limits=[100, 100])
    # The others supply 20 of 80: of the own 60 a half is kept, (60 - 50) / (1 - 1/2).
    assert game.best_responses(np.array([60.0, 40]))[0] == 60
    assert keep_data(game, 0.5).best_responses(np.array([60.0, 40]))[0] == pytest.approx(20)
    assert keep_data(game, [0.6, 0]).best_responses(np.array([60.0, 40]))[0] == pytest.approx(0)
    assert solve_stable(keep_data(game, 0.5)).allocation.contributions == pytest.approx([60, 0])


def test_an_agent_with_a_kept_worth_of_one_gives_nothing_whatever_the_others_do():
    game = LinearGame([[1, 0.5], [0.5, 1]], [80, 60], agents=["City", "Rural"])
    changed = keep_data(game, {"City": 1.0}, {"City": 50, "Rural": 100})
    assert changed.limits.tolist() == [0, 100]
    for theta in ([0, 0], [0, 60], [0, 100]):
        assert changed.responses_within(np.array(theta, dtype=float))[0] == 0
    # City lacks 30, which are 60 samples of Rural; and 60 are what Rural needs.
    assert solve_stable(changed).allocation.contributions == pytest.approx([0, 60])
    short = keep_data(game, {"City": 1.0}, {"City": 40, "Rural": 100})
    assert solve_stable(short).status in NOTHING
    rest = ignore_goals(short, np.array([0]))
    assert solve_stable(rest).allocation.contributions == pytest.approx([0, 60])
    # A hair below one is one: beyond, what giving adds is rounding.
    assert keep_data(game, ALL, 50).limits.tolist() == [0, 0]


def test_a_keeper_that_must_give_something_gives_just_that():
    game = LinearGame([[1, 0], [0.5, 1]], [10, 10], minimums=[4, 0])
    changed = keep_data(game, [1, 0], [10, 10])
    assert solve_stable(changed).allocation.contributions == pytest.approx([4, 8])
    assert changed.utilities(np.array([4.0, 8]))[0] >= changed.requirements[0]
    assert solve_stable(keep_data(game, [1, 0], [9, 10])).status in NOTHING


# Measured games.


def test_what_is_kept_is_a_longer_head_start():
    benefits = np.array([[1, 0.4], [0.3, 1]])
    game = MeasuredGame(benefits, [CURVE, CURVE], [0.85, 0.8], margins=[0.01, 0], limits=[600, 500])
    worth, holdings = np.array([0.6, 0.25]), np.array([600.0, 500])
    changed = keep_data(game, worth)
    assert isinstance(changed, MeasuredGame)
    theta = np.array([120.0, 310])
    effective = benefits @ theta + worth * (holdings - theta)
    assert changed.accuracies(theta) == pytest.approx(CURVE.accuracy(effective))
    assert changed.goals.tolist() == game.goals.tolist()
    assert changed.requirements == pytest.approx(
        np.maximum(game.requirements - worth * holdings, 0), abs=1e-9
    )
    keeper = keep_data(game, [1, 0])
    given_ = np.array([0.0, 310])
    assert keeper.accuracies(given_)[0] == pytest.approx(CURVE.accuracy(600 + 0.4 * 310))


def test_the_chances_of_a_measured_game_follow():
    rng = np.random.default_rng(1)
    worlds, k = 5, 2
    curves = np.broadcast_to(CURVE.row, (worlds, k, 4)).copy()
    curves[..., 2] += rng.random((worlds, k))
    benefits = np.eye(k) + rng.random((worlds, k, k)) * (1 - np.eye(k))
    chances = Chances(np.array([0.85, 0.8]), np.full((worlds, k), 0.01), benefits, curves)
    game = MeasuredGame(benefits[0], curves[0], [0.85, 0.8], limits=[600, 500], chances=chances)
    changed = keep_data(game, [0.6, 0])
    assert changed.chances is not None
    theta = np.array([120.0, 310])
    effective = benefits @ theta + np.array([0.6 * (600 - 120), 0])
    expected = predict_accuracies(curves, effective)
    assert changed.chances.accuracies(theta) == pytest.approx(expected)
    # At a quarter of its contribution the agent keeps the rest.
    effective[:, 0] += (0.25 - 1) * 120 * (1 - 0.6)
    ahead = predict_accuracies(curves, effective) - chances.goals
    left = ndtr(ahead / 0.01).mean(axis=0)
    assert changed.chances.could_cut(theta, 0.25)[0] == pytest.approx(left[0])
    # The game that was given stays as it was.
    assert game.chances is not None
    assert (game.chances.curves == curves).all()


def test_goals_of_some_agents_can_be_ignored():
    game = MeasuredGame(np.eye(2), [CURVE, CURVE], [0.85, 0.8], margins=[0.01, 0.01])
    rest = ignore_goals(game, np.array([1]))
    assert rest.goals.tolist() == [0.85, 0.0]
    assert rest.requirements[1] == 0 < rest.requirements[0]


# Other ways to give a game, and what is refused.


def test_sparse_games_and_discovery_games_become_the_same_linear_game():
    dense = LinearGame([[1, 0.5], [0.5, 1]], [8, 6], limits=[10, 10])
    loose = LinearGame(sparse.csr_array(dense.dense_benefits), [8, 6], limits=[10, 10])
    first, second = keep_data(dense, 0.5), keep_data(loose, 0.5)
    assert sparse.issparse(second.benefits)
    assert first.to_dict() == second.to_dict()
    assert loose.dense_benefits.tolist() == dense.dense_benefits.tolist()
    rows = [[0.5, 0.5, 0], [0, 0.5, 0.5]]
    found = keep_data(DiscoveryGame(rows, [1, 1], limits=[4, 4]), 0.5)
    assert type(found) is LinearGame
    assert found.dense_benefits.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert found.requirements.tolist() == [0, 0]


def test_numbers_are_those_a_person_wrote():
    game = LinearGame([[1.0]], [0.7], limits=[3], strategies="integer")
    # In doubles 0.1 * 3 is 0.30000000000000004, and 0.7 less that is not 0.4.
    changed = keep_data(game, 0.1)
    assert changed.requirements.tolist() == [0.4]
    assert changed.own_benefits.tolist() == [0.9]


@pytest.mark.parametrize(
    ("worth", "holdings", "said"),
    [
        (1.5, 10, "the kept worth of City must be a number from 0 to 1; got 1.5"),
        ([0.5, -0.1], 10, "the kept worth of Rural must be a number from 0 to 1; got -0.1"),
        ([0.5, float("nan")], 10, "the kept worth of Rural must be a number from 0 to 1; got nan"),
        ({"Citi": 0.5}, 10, "Citi is not among the agents; did you mean City?"),
        (0.5, None, "City keeps data, and how many samples it holds is not known"),
        (0.5, [10, 1], "the holdings of Rural must be a number of samples, at least its minimum"),
        ([0.5], 10, r"kept worths must be one number, or one per agent, 2; got shape \(1,\)"),
        ("much", 10, "kept worths must be numbers"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(worth, holdings, said):
    game = LinearGame(np.eye(2), [8, 6], agents=["City", "Rural"], minimums=[0, 2])
    with pytest.raises(InputError, match=said):
        keep_data(game, worth, holdings)


def test_other_utility_models_are_refused():
    with pytest.raises(InputError, match="kept data needs a linear or measured game"):
        keep_data(CoverageGame([[1.0]], [0.8]), 0.5, 10)


def test_holdings_matter_only_to_agents_that_keep_data():
    game = LinearGame(np.eye(2), [8, 6])
    changed = keep_data(game, [0.5, 0], [10, np.inf])
    assert changed.limits.tolist() == [10, np.inf]
    assert KeptData.read(game, [0.95, 1], 10).reluctant.tolist() == [0]
