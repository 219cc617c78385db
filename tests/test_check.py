"""The check against definitions in straight loops, and against planted wrong allocations."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from coverage_games import coverage_games
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies import discovery_games, linear_games

import fedaccord
from fedaccord.allocation import Allocation
from fedaccord.check import Answer, check
from fedaccord.errors import InputError
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import DiscoveryGame, LinearGame

# The package exports a function of the module's name, which hides the module.
module = vars(sys.modules["fedaccord.check"])
TRUE, FALSE, BORDERLINE = Answer.TRUE, Answer.FALSE, Answer.BORDERLINE

# A plain auditor: utilities from the definition in Fractions, every swap and every cut tried.


def plain_utility(game, agent, theta):
    if isinstance(game, CoverageGame):
        rows = [[Fraction(q) for q in row] for row in game.distributions.toarray().tolist()]
        missed = Fraction(0)
        for x, q in enumerate(rows[agent]):
            for row, given in zip(rows, theta, strict=True):
                whole = int(given)
                q *= (1 - row[x]) ** whole * (1 - (given - whole) * row[x])
            missed += q
        return 1 - missed / 2
    benefits = game.dense_benefits.tolist()[agent]
    return sum((Fraction(w) * t for w, t in zip(benefits, theta, strict=True)), Fraction(0))


def plain_verdicts(game, theta):
    """Give feasible, stable in integer games, and the envious pairs, all exactly."""
    theta = [Fraction(t) for t in theta.tolist()]
    needs = [Fraction(str(mu)) for mu in game.requirements.tolist()]
    k = game.size

    def happy(agent, others):
        return plain_utility(game, agent, others) >= needs[agent]

    feasible = all(happy(i, theta) for i in range(k)) and all(
        game.minimums[i] <= t <= game.limits[i] for i, t in enumerate(theta)
    )
    stable = feasible and not any(
        t - 1 >= game.minimums[i] and happy(i, [*theta[:i], t - 1, *theta[i + 1 :]])
        for i, t in enumerate(theta)
    )
    envy = set()
    for i in range(k):
        for j in range(k):
            if theta[i] > theta[j] and theta[i] <= game.limits[j] and theta[j] >= game.minimums[i]:
                swapped = list(theta)
                swapped[i], swapped[j] = theta[j], theta[i]
                if happy(i, swapped):
                    envy.add((i, j))
    return feasible, stable, envy


@st.composite
def boxed(draw, games):
    """Give a game limits and minimums in halves, whole ones if it is integer."""
    game = draw(games)
    step = 1.0 if game.is_integer else 0.5
    low = [
        step * n for n in draw(st.lists(st.integers(0, 2), min_size=game.size, max_size=game.size))
    ]
    more = draw(st.lists(st.integers(0, 6), min_size=game.size, max_size=game.size))
    high = [None if n == 6 else a + step * n for a, n in zip(low, more, strict=True)]
    return game.replace(limits=high, minimums=low)


def allocations(size, step):
    return st.lists(st.integers(0, 6), min_size=size, max_size=size).map(
        lambda counts: np.array(counts) * step
    )


def any_games(**frame):
    plain = st.one_of(
        linear_games(most_agents=4, **frame),
        discovery_games(**frame),
        coverage_games(**frame),
    )
    return st.one_of(plain, boxed(plain))


@settings(max_examples=80)
@given(st.data())
def test_integer_verdicts_are_those_of_the_definitions(data):
    game = data.draw(any_games(strategies="integer"))
    theta = data.draw(allocations(game.size, 1.0))
    feasible, stable, envy = plain_verdicts(game, theta)
    found = check(game, theta)
    assert found.feasible is (TRUE if feasible else FALSE)
    assert found.stable is (TRUE if stable else FALSE)
    assert set(found.envy) == envy
    assert found.borderline == ()
    assert found.envy_free is (TRUE if feasible and not envy else FALSE)


@settings(max_examples=80)
@given(st.data())
def test_real_verdicts_on_short_numbers_are_exact_too(data):
    # Halves and eighths leave no slack between zero and the tolerance: the answer is exact.
    game = data.draw(any_games())
    theta = data.draw(allocations(game.size, 0.5))
    feasible, _, envy = plain_verdicts(game, theta)
    found = check(game, theta, tolerance=1e-9)
    assert found.feasible is (TRUE if feasible else FALSE)
    assert set(found.envy) == envy
    assert found.borderline == ()
    assert found.envy_free is (TRUE if feasible and not envy else FALSE)


def test_the_plain_auditor_objects_to_wrong_verdicts():
    game = LinearGame(np.eye(2), [1, 1], strategies="integer")
    assert plain_verdicts(game, np.array([1.0, 1.0])) == (True, True, set())
    assert plain_verdicts(game, np.array([2.0, 1.0])) == (True, False, {(0, 1)})
    assert plain_verdicts(game, np.array([0.0, 1.0]))[0] is False


@settings(max_examples=60)
@given(st.one_of(linear_games(most_agents=4), discovery_games()))
def test_needs_of_linear_games_are_those_of_the_definition(game):
    theta = np.ones(game.size)
    found = check(game, theta)
    for i in range(game.size):
        rest = sum(game.dense_benefits[i, j] for j in range(game.size) if j != i)
        least = max(0.0, (game.requirements[i] - rest) / game.dense_benefits[i, i])
        assert found.needed[i] == pytest.approx(least, abs=1e-12)
        assert found.short[i] == pytest.approx(max(0.0, least - 1), abs=1e-12)
        assert found.spare[i] == pytest.approx(max(0.0, 1 - least), abs=1e-12)
    assert found.stable is (TRUE if max(np.abs(found.needed - 1)) < 1e-9 else FALSE)


# Planted faults.

FEDERATION = LinearGame([[1, 0.5, 0.2], [0.5, 1, 0.2], [0.2, 0.2, 1]], [3, 2, 4])


def equilibrium():
    return np.linalg.solve(FEDERATION.dense_benefits, FEDERATION.requirements)


def test_an_equilibrium_passes():
    found = check(FEDERATION, equilibrium())
    assert (found.feasible, found.stable, found.envy_free) == (TRUE, TRUE, TRUE)
    assert found.sentence() == "Feasible and stable, and no agent envies another."
    assert found.rational


def test_one_per_cent_too_much_is_not_stable():
    found = check(FEDERATION, equilibrium() * 1.01)
    assert (found.feasible, found.stable) == (TRUE, FALSE)
    assert "Feasible but not stable" in found.sentence()


def test_one_per_cent_too_little_is_not_feasible():
    found = check(FEDERATION, equilibrium() * 0.99)
    assert (found.feasible, found.stable, found.envy_free) == (FALSE, FALSE, FALSE)
    assert "Not feasible" in found.sentence()
    assert "is short by" in found.sentence()


@pytest.mark.parametrize("pair", [[0, 1], [1, 2], [0, 2]])
def test_swapped_contributions_do_not_pass(pair):
    theta = equilibrium()
    theta[pair] = theta[pair[::-1]]
    assert check(FEDERATION, theta).stable is FALSE


@given(st.integers(0, 2), st.sampled_from([-1, 1]), st.floats(3e-6, 0.5))
def test_a_change_above_the_tolerance_is_seen(agent, sign, size):
    theta = equilibrium()
    theta[agent] += sign * size * theta.max()
    assert check(FEDERATION, np.maximum(theta, 0)).stable is FALSE


@given(st.integers(0, 2), st.floats(-5e-7, 5e-7), st.floats(1e-6, 1e6))
def test_a_change_below_the_tolerance_is_nothing_in_any_unit(agent, size, unit):
    game = FEDERATION.replace(requirements=FEDERATION.requirements * unit)
    theta = equilibrium() * unit
    theta[agent] += size * theta.max()
    found = check(game, theta)
    assert (found.feasible, found.stable) == (TRUE, TRUE)


def test_the_tolerance_is_relative_to_the_largest_contribution():
    game = LinearGame(np.eye(2), [1000, 1e-3])
    assert check(game, [1000, 1e-3 + 9e-4]).stable is TRUE
    assert check(game, [1000, 1e-3 + 1.1e-3]).stable is FALSE
    assert check(game, [1000, 1e-3 + 9e-4], tolerance=1e-8).stable is FALSE


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0, 2.0, np.nan])
def test_a_tolerance_out_of_range_is_refused(tolerance):
    with pytest.raises(InputError, match="tolerance must be at least 0 and below 1"):
        check(FEDERATION, [1, 1, 1], tolerance=tolerance)


def test_zero_allocations():
    nobody = LinearGame(np.eye(2), [0, 0])
    found = check(nobody, [0, 0])
    assert (found.feasible, found.stable, found.envy_free) == (TRUE, TRUE, TRUE)
    found = check(FEDERATION, [0, 0, 0])
    assert (found.feasible, found.stable, found.envy_free) == (FALSE, FALSE, FALSE)
    assert found.scale == 4.0
    assert found.short == pytest.approx([3, 2, 4])


# Envy.


def test_envy_has_three_values():
    twins = LinearGame(np.ones((2, 2)), [1, 1])
    assert check(twins, [0.5, 0.5]).envy_free is TRUE
    found = check(twins, [1, 0])
    assert (found.stable, found.envy_free, found.envy) == (TRUE, FALSE, ((0, 1),))
    assert found.sentence() == "Feasible and stable, but one agent envies another."
    # 2 ** -0.5 is no short fraction, so that a tie cannot be settled exactly.
    root = 2**-0.5
    # But a swap that changes no utility leaves nobody short.
    found = check(LinearGame([[root, root], [root, root]], [1, 1]), [np.sqrt(2), 0])
    assert (found.envy_free, found.envy) == (FALSE, ((0, 1),))
    less = root * (1 - 1e-9)
    found = check(LinearGame([[root, less], [root, root]], [1, 1]), [np.sqrt(2), 0])
    assert (found.envy_free, found.borderline) == (BORDERLINE, ((0, 1),))
    assert "too close to call" in found.sentence()


@pytest.mark.parametrize("slack", [3e-6, -3e-6, 1e-4, -1e-4])
def test_a_swap_clearly_on_one_side_is_no_tie(slack):
    # After the swap agent 0 has 0.5 + slack of the 0.5 that it needs.
    game = LinearGame([[1, 0.5 + slack], [0, 1]], [0.5, 0])
    found = check(game, [1, 0])
    assert found.borderline == ()
    assert found.envy == (((0, 1),) if slack > 0 else ())


def test_a_burden_that_exactly_meets_the_need_is_envied_even_of_a_stranger():
    strangers = LinearGame(np.eye(2), [1, 1])
    found = check(strangers, [2, 1])
    assert (found.envy_free, found.envy) == (FALSE, ((0, 1),))
    apart = CoverageGame([[1, 0], [0, 1]], [0.75, 0.75])
    assert check(apart, [1, 0.5]).envy == ((0, 1),)
    assert check(apart, [1, 0.5]).envy_free is FALSE
    root = np.sqrt(2)
    close = check(LinearGame(np.eye(2), [root, root]), [2, root])
    assert (close.envy_free, close.borderline) == (BORDERLINE, ((0, 1),))
    assert check(strangers, [2, 0.9]).envy == ()


def test_a_swap_beyond_limits_or_minimums_is_no_envy():
    game = LinearGame(np.ones((2, 2)), [1, 1])
    assert check(game.replace(limits=[None, 0.5]), [1, 0]).envy == ()
    assert check(game.replace(limits=[None, 1]), [1, 0]).envy == ((0, 1),)
    assert check(game.replace(minimums=[0.5, 0]), [1, 0]).envy == ()


def test_integer_games_ignore_the_tolerance_and_refuse_fractions():
    game = LinearGame([[0.1]], [0.3], strategies="integer")
    assert check(game, [3], tolerance=0.5).stable is TRUE
    assert check(game, [4], tolerance=0.5).stable is FALSE
    assert check(game, [2], tolerance=0.5).feasible is FALSE
    with pytest.raises(InputError, match=r"agent 0 gives 2\.5.*whole numbers: round it up"):
        check(game, [2.5])


@pytest.mark.parametrize(
    ("theta", "words"),
    [([2, 1], "Not feasible: agent 0 gives more than its limit"),
     ([1, 0.2], "Not feasible: agent 1 gives less than it must"),
     ([0.5, 1], "Not feasible: agent 0 is short by 0.5 samples")],
)  # fmt: skip
def test_the_sentence_says_what_is_not_feasible(theta, words):
    game = LinearGame(np.eye(2), [1, 0.1], limits=[1.5, None], minimums=[0, 0.5])
    assert words in check(game, theta).sentence()


def test_rounding_beyond_a_limit_is_not_what_the_sentence_names():
    game = LinearGame(np.eye(2), [1, 1], limits=[1, None])
    found = check(game, [1 + 1e-12, 0.5])
    assert "agent 1 is short" in found.sentence()


def test_minimums_are_no_spare_samples():
    game = LinearGame(np.eye(2), [1, 1], minimums=[2, 0])
    found = check(game, [2, 1])
    assert (found.feasible, found.stable) == (TRUE, TRUE)
    assert found.spare.tolist() == [0, 0]
    assert found.explain(0) == (
        "agent 0 gives 2. Alone it would need 1. Given what the others give, 1 is "
        "enough. But it must give 2 to take part"
    )


def test_giving_more_than_alone_is_not_rational():
    found = check(LinearGame(np.eye(2), [1, 1]), [3, 1])
    assert not found.rational
    assert found.saved.tolist() == [-2, 0]
    assert check(LinearGame(np.eye(2), [1, 1]), [1, 1]).rational


def test_an_agents_number_is_explained_in_a_sentence():
    game = LinearGame([[1, 0.8], [0.8, 1]], [540, 540], agents=["site A", "site B"])
    found = check(game, [300, 300])
    assert found.explain(1) == (
        "site B gives 300. Alone it would need 540. The others supply 44 % of what it "
        "needs. With 299 it would fall short"
    )
    assert check(game, [300.00001, 300]).explain(0).endswith("With 299 it would fall short")
    assert "falls short" in check(game, [200, 300]).explain(0)
    assert "300 is enough" in check(game, [400, 300]).explain(0)


def test_numbers_that_differ_read_differently_in_an_explanation():
    # 0.8 of the other's 300 leaves 698.039; one sample less than that is not 698.
    near = LinearGame([[1, 0.8], [0, 1]], [938.039, 300])
    assert check(near, [698.039, 300]).explain(0) == (
        "agent 0 gives 698.04. Alone it would need 938.04. The others supply 26 % of "
        "what it needs. With 698 it would fall short"
    )
    thousands = LinearGame([[1, 0.8], [0, 1]], [1621.04, 300])
    said = check(thousands, [1381.04, 300]).explain(0)
    assert said.startswith("agent 0 gives 1,381.04. ") and "With 1,381 it would" in said


def test_a_small_share_is_not_nothing_and_a_large_one_not_all():
    game = LinearGame([[1, 0.003], [0, 1]], [713, 300])
    assert "The others supply less than 1 % of what it needs" in check(game, [712.1, 300]).explain(
        0
    )
    assert "The others supply nothing of what it needs" in check(game, [712.1, 300]).explain(1)
    nearly = LinearGame([[1, 1], [0, 1]], [3000, 2999])
    assert "The others supply more than 99 % of" in check(nearly, [1, 2999]).explain(0)


def test_explanations_of_those_who_give_nothing():
    game = LinearGame([[1, 1], [0, 1]], [1, 1])
    assert check(game, [0, 1]).explain(0).endswith(". The others already supply all it needs")
    idle = LinearGame(np.eye(2), [0, 1])
    assert (
        check(idle, [0, 1]).explain(0) == "agent 0 gives 0. Alone it would need 0. It needs nothing"
    )
    without = LinearGame([[1, 0], [1, 1]], [1, 1], limits=[np.inf, 0])
    assert (
        check(without, [1, 0]).explain(1)
        == "agent 1 gives 0. Its limit is 0, so it could not go alone. "
        "The others already supply all it needs"
    )
    assert "It envies agent 1, which gives less" in check(
        LinearGame(np.ones((2, 2)), [1, 1]), [1, 0]
    ).explain(0)


def test_names_are_matched_and_sizes_checked():
    game = LinearGame([[1, 0], [0, 1]], [1, 2], agents=["a", "b"])
    assert check(game, Allocation([2, 1], ["b", "a"])).stable is TRUE
    assert check(game, [2, 1]).stable is FALSE
    with pytest.raises(InputError, match="the game has 2 agents, the allocation 3"):
        check(game, [1, 2, 3])


def test_answers_have_no_truth_value():
    with pytest.raises(TypeError, match="three values"):
        bool(check(FEDERATION, equilibrium()).stable)
    assert [a.json for a in (TRUE, FALSE, BORDERLINE)] == [True, False, "borderline"]


def test_machines_get_no_infinities():
    game = LinearGame(np.eye(2), [1, 1])
    keys = {
        "feasible", "stable", "envy_free", "short", "spare", "envy", "utilities", "alone",
        "rational", "tolerance",
    }  # fmt: skip
    assert set(check(game, [1, 1]).to_dict()) == keys


# Large games: blocks and one witness.


@settings(max_examples=40)
@given(st.one_of(linear_games(most_agents=4), discovery_games()), st.data())
def test_blocks_and_witnesses_change_no_verdict(game, data):
    theta = data.draw(allocations(game.size, 0.5))
    whole = check(game, theta)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(module, "BLOCK", 1)
        blocks = check(game, theta)
        assert (blocks.envy, blocks.borderline) == (whole.envy, whole.borderline)
        patch.setitem(module, "LISTED", 0)
        few = check(game, theta)
    assert few.envy_free is whole.envy_free
    assert set(few.envy) <= set(whole.envy)
    assert {i for i, _ in few.envy} == {i for i, _ in whole.envy}


def test_a_large_game_names_one_witness_an_agent():
    k = 2_500
    game = LinearGame(sparse.eye_array(k), np.ones(k))
    theta = np.ones(k)
    theta[:10] = 2.0
    found = check(game, theta)
    assert found.envy_free is FALSE
    assert [i for i, _ in found.envy] == list(range(10))
    assert check(game, np.ones(k)).envy_free is TRUE


@settings(max_examples=40)
@given(discovery_games(), st.data())
def test_dense_sparse_and_implicit_benefits_get_one_verdict(game, data):
    assume(game.size > 1)
    theta = data.draw(allocations(game.size, 0.5))
    dense = LinearGame(game.dense_benefits, game.requirements)
    thin = LinearGame(sparse.csr_array(game.dense_benefits), game.requirements)
    first = check(dense, theta)
    for other in (thin, game):
        second = check(other, theta)
        assert second.envy == first.envy
        assert (second.feasible, second.stable) == (first.feasible, first.stable)
    assert isinstance(game, DiscoveryGame)


def test_the_old_name_works_and_says_the_new_one():
    game = LinearGame([[1, 0.5], [0.5, 1]], [1, 1])
    with pytest.warns(DeprecationWarning, match=r"fedaccord\.audit.* is now fedaccord\.check"):
        found = fedaccord.audit(game, [1, 1], tolerance=1e-3)
    assert isinstance(found, fedaccord.Audit) and fedaccord.Audit is fedaccord.Check
    assert found.to_dict() == check(game, [1, 1], tolerance=1e-3).to_dict()
