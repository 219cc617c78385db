"""PAC games over finite worlds: exact utilities, responses, well-behavedness, bad input."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pac_worlds import (
    cycle_worlds,
    find_cycle_threshold,
    plain_bayes_utility,
    plain_worst_utility,
    random_worlds,
)

from fedaccord.check import Answer, check
from fedaccord.errors import ExactnessError, InputError, UnreachableError
from fedaccord.games.base import Certified, Refuted, Unknown
from fedaccord.games.pac import posteriors
from fedaccord.games.pac.exact import PacGame
from fedaccord.games.pac.worlds import World, merge_worlds

HALF = Fraction(1, 2)


def fractions(*values):
    return [Fraction(v) for v in values]


def noisy_worlds(chance=Fraction(3, 4)):
    """One agent, one point, whose label is mostly 0 or mostly 1."""
    return [
        World(HALF, [[("x", 0, chance), ("x", 1, 1 - chance)]]),
        World(HALF, [[("x", 0, 1 - chance), ("x", 1, chance)]]),
    ]


class TestTheCycleOfThePaper:
    def test_an_agent_is_certain_when_it_or_its_predecessor_gives(self):
        game = PacGame(cycle_worlds(), [1, 1, 1], strategies="integer")
        for theta in product((0, 1), repeat=3):
            expected = [1 if theta[i] or theta[i - 1] else HALF for i in range(3)]
            assert [game.exact_utility(i, fractions(*theta)) for i in range(3)] == expected

    @pytest.mark.parametrize("d", [1, 2])
    def test_the_general_formula_holds_on_a_grid(self, d):
        game = PacGame(cycle_worlds(d), [HALF] * 3, strategies="integer")
        for theta in product(range(4), repeat=3):
            for i in range(3):
                formula = 1 - HALF * (1 - Fraction(1, d)) ** (theta[i] + theta[i - 1])
                assert game.exact_utility(i, fractions(*theta)) == formula

    @pytest.mark.slow
    def test_the_general_formula_holds_for_512_worlds(self):
        game = PacGame(cycle_worlds(3), [HALF] * 3, strategies="integer")
        for theta in [(1, 0, 2), (2, 1, 0), (1, 1, 1), (2, 2, 1)]:
            formula = 1 - HALF * Fraction(2, 3) ** (theta[1] + theta[0])
            assert game.exact_utility(1, fractions(*theta)) == formula

    def test_real_contributions_are_rounded_at_random(self):
        game = PacGame(cycle_worlds(), [1, 1, 1])
        a, b, c = fractions("1/3", "2/7", "9/10")
        assert game.exact_utility(1, [a, b, c]) == HALF * (1 + a + b - a * b)
        np.testing.assert_allclose(
            game.utilities(np.array([1 / 3, 2 / 7, 0.9])),
            [float(HALF * (1 + x + y - x * y)) for x, y in ((a, c), (b, a), (c, b))],
            rtol=1e-15,
        )

    @given(st.floats(0.5, 0.999), st.lists(st.floats(0, 0.99), min_size=3, max_size=3))
    def test_best_responses_have_the_closed_form(self, requirement, theta):
        game = PacGame(cycle_worlds(), [requirement] * 3)
        given = np.array(theta)
        before = np.roll(given, 1)
        expected = np.maximum(1 - 2 * (1 - requirement) / (1 - before), 0)
        np.testing.assert_allclose(game.best_responses(given), expected, atol=1e-12)

    def test_responses_jump_exactly_where_the_predecessor_gives_a_whole_sample(self):
        game = PacGame(cycle_worlds(), [1, 1, 1])
        assert game.best_response(1, np.array([1.0, 0.0, 0.0])) == 0
        assert game.best_response(1, np.array([np.nextafter(1, 0), 0.0, 0.0])) == 1

    @pytest.mark.parametrize("requirement", ["3/4", "7/8", "9/10", "15/16", "63/64"])
    def test_stand_alone_needs_are_exact_at_thresholds(self, requirement):
        game = PacGame(cycle_worlds(2), [requirement] * 3, strategies="integer")
        assert game.alone.tolist() == [find_cycle_threshold(Fraction(requirement), 2)] * 3

    def test_the_jacobian_is_the_difference_across_the_cell(self):
        game = PacGame(cycle_worlds(), [0.9] * 3)
        theta = np.array([0.25, 0.5, 0.75])
        expected = np.zeros((3, 3))
        for i in range(3):
            expected[i, i] = (1 - theta[i - 1]) / 2
            expected[i, i - 1] = (1 - theta[i]) / 2
        np.testing.assert_allclose(game.jacobian(theta), expected, atol=1e-15)

    def test_at_a_whole_number_the_jacobian_looks_to_the_right(self):
        game = PacGame(cycle_worlds(2), [0.9] * 3)
        assert game.jacobian(np.array([1.0, 0.0, 0.0]))[0, 0] == pytest.approx(1 / 8)

    def test_the_whole_equilibrium_is_stable_by_audit_and_its_neighbours_are_not(self):
        game = PacGame(cycle_worlds(2), [Fraction(7, 8)] * 3, strategies="integer")
        assert check(game, [1, 1, 1]).stable is Answer.TRUE
        assert check(game, [2, 1, 1]).stable is Answer.FALSE
        assert check(game, [1, 0, 1]).feasible is Answer.FALSE


class TestUtilitiesEqualPlainEnumeration:
    @settings(max_examples=40)
    @given(random_worlds(), st.tuples(st.integers(0, 2), st.integers(0, 2)))
    def test_bayes(self, worlds, counts):
        game = PacGame(worlds, [0, 0])
        for agent in (0, 1):
            expected = plain_bayes_utility(worlds, agent, counts)
            assert game.exact_utility(agent, fractions(*counts)) == expected

    @settings(max_examples=40)
    @given(
        random_worlds(points=3, deterministic=True), st.tuples(st.integers(0, 2), st.integers(0, 2))
    )
    def test_worst_consistent(self, worlds, counts):
        game = PacGame(worlds, [0, 0], classifier="worst")
        for agent in (0, 1):
            expected = plain_worst_utility(worlds, agent, counts)
            assert game.exact_utility(agent, fractions(*counts)) == expected

    @settings(max_examples=20)
    @given(random_worlds(agents=3), st.lists(st.integers(0, 3), min_size=3, max_size=3))
    def test_more_samples_never_hurt(self, worlds, counts):
        game = PacGame(worlds, [0, 0, 0])
        for giver in range(3):
            more = [m + (j == giver) for j, m in enumerate(counts)]
            for agent in range(3):
                before = game.exact_utility(agent, fractions(*counts))
                assert game.exact_utility(agent, fractions(*more)) >= before

    @settings(max_examples=20)
    @given(random_worlds(points=3, deterministic=True))
    def test_the_worst_hypothesis_is_never_better_than_the_bayes_classifier(self, worlds):
        bayes = PacGame(worlds, [0, 0])
        worst = bayes.replace(classifier="worst")
        for counts in product(range(3), repeat=2):
            for agent in (0, 1):
                theta = fractions(*counts)
                assert worst.exact_utility(agent, theta) <= bayes.exact_utility(agent, theta)

    def test_numbers_beyond_64_bits_stay_exact(self):
        prime = 2**61 - 1
        chance = Fraction(prime // 2, prime)
        worlds = noisy_worlds(chance)
        game = PacGame(worlds, [0.5])
        for m in range(4):
            assert game.exact_utility(0, [Fraction(m)]) == plain_bayes_utility(worlds, 0, (m,))

    def test_rows_that_share_a_hash_are_still_told_apart(self, monkeypatch):
        monkeypatch.setattr(posteriors, "_hashes", lambda rows: np.zeros(len(rows), dtype=int))
        worlds = cycle_worlds(1)
        game = PacGame(worlds, [1, 1, 1])
        for counts in product((0, 1), repeat=3):
            assert game.exact_utility(0, fractions(*counts)) == plain_bayes_utility(
                worlds, 0, counts
            )


class TestWorstConsistent:
    def test_a_world_says_nothing_on_points_it_never_shows(self):
        # World 1 never shows "b": its hypotheses may label it either way, so one is wrong on it.
        worlds = [
            World(HALF, [[("a", 0, HALF), ("b", 0, HALF)]]),
            World(HALF, [[("a", 0, 1)]]),
            World(0, [[("a", 1, 1)]]),
        ]
        game = PacGame(worlds, [0.5], classifier="worst")
        # Seeing "a" only: in world 0 the hypothesis that labels "b" 1 is right half of the time,
        # if label 1 exists at all; it does not once the impossible world is dropped.
        assert game.exact_utility(0, [Fraction(1)]) == 1
        worlds[1:] = [
            World(Fraction(1, 4), [[("a", 0, 1)]]),
            World(Fraction(1, 4), [[("a", 1, 1)]]),
        ]
        game = PacGame(worlds, [0.5], classifier="worst")
        assert game.exact_utility(0, [Fraction(1)]) == plain_worst_utility(worlds, 0, (1,))

    def test_labels_alone_do_not_help_the_next_agent_of_the_cycle(self):
        game = PacGame(cycle_worlds(), [1, 1, 1], classifier="worst")
        assert game.utilities(np.array([1.0, 0, 0])).tolist() == [1, 0, 0]

    def test_noisy_labels_are_refused_with_the_point_and_the_remedy(self):
        with pytest.raises(InputError, match=r"world 0 point 'x' has the labels .* \"bayes\""):
            PacGame(noisy_worlds(), [0.6], classifier="worst")


class TestResponses:
    @settings(max_examples=30)
    @given(
        random_worlds(),
        st.lists(st.fractions(0, 3, max_denominator=4), min_size=2, max_size=2),
        st.integers(0, 20),
    )
    def test_a_response_is_enough_and_anything_less_is_not(self, worlds, theta, step):
        free = PacGame(worlds, [0, 0])
        lowest = free.exact_utility(0, fractions(0, 0))
        top = free.exact_utility(0, fractions(3, 0))
        requirement = float(lowest + (top - lowest) * Fraction(step, 20))
        game = PacGame(worlds, [requirement, 0], limits=[100, 100])
        response = game.exact_response(0, theta)
        assert response is not None
        assert game.exact_utility(0, [response, theta[1]]) >= game.exact_requirements[0]
        if response:
            less = response - Fraction(1, 10**9)
            assert game.exact_utility(0, [less, theta[1]]) < game.exact_requirements[0]

    def test_integer_responses_are_the_real_ones_rounded_up(self):
        real = PacGame(noisy_worlds(), [Fraction(7, 10)])
        whole = real.replace(strategies="integer")
        assert whole.alone[0] == np.ceil(real.alone[0])

    def test_a_noisy_majority_has_the_binomial_value(self):
        # The majority of three labels is the likelier one in 27/32 of the cases.
        majority = Fraction(27, 32)
        expected = majority * Fraction(3, 4) + (1 - majority) * Fraction(1, 4)
        assert PacGame(noisy_worlds(), [0.7]).exact_utility(0, [Fraction(3)]) == expected

    def test_swaps_are_judged_exactly(self):
        game = PacGame(cycle_worlds(), [1, 1, 1], strategies="integer", limits=[1, 1, 1])
        for theta in product((0, 1), repeat=3):
            fair = check(game, theta).envy_free is Answer.TRUE
            assert fair == (theta == (1, 1, 1))


class TestUnreachableRequirements:
    def test_worlds_an_agent_cannot_tell_apart_bound_its_utility(self):
        # Agent a only ever sees point 0; its label is decided by what agent b sees.
        worlds = [
            {"prior": "1/2", "samples": [[[0, "u", "1/2"], [0, "v", "1/2"]], [[1, 0, 1]]]},
            {"prior": "1/2", "samples": [[[0, "u", "1/2"], [0, "v", "1/2"]], [[2, 0, 1]]]},
        ]
        with pytest.raises(UnreachableError, match=r"requirement of a is 0\.6.*at most 0\.5"):
            PacGame(worlds, [0.6, 0.5], agents=["a", "b"])
        assert PacGame(worlds, [0.5, 0.5], agents=["a", "b"]).alone.tolist() == [0, 0]

    def test_a_limit_that_is_only_approached_is_unreachable(self):
        with pytest.raises(UnreachableError, match=r"agent 0 is 0\.75.*never reach"):
            PacGame(noisy_worlds(), [0.75])
        with pytest.raises(UnreachableError, match="never reach"):
            PacGame(cycle_worlds(2), [1, 1, 1])

    def test_a_limit_that_one_sample_reaches_is_reachable(self):
        assert PacGame(cycle_worlds(1), [1, 1, 1]).alone.tolist() == [1, 1, 1]

    def test_with_a_limit_an_agent_may_need_the_others(self):
        worlds = [
            World(Fraction(1, 4), [[(f"p{x}", z ^ x, 1)], [(f"q{z}", 0, 1)]])
            for x in (0, 1)
            for z in (0, 1)
        ]
        # One own sample shows x and the label, so it suffices alone; nothing is refused.
        assert PacGame(worlds, [1, 1]).alone[0] == 1
        hidden = [
            World(Fraction(1, 2), [[("p", z, Fraction(3, 4)), ("p", 1 - z, Fraction(1, 4))], b])
            for z, b in ((0, [("q0", 0, 1)]), (1, [("q1", 0, 1)]))
        ]
        # 3/4 is only approached by own samples, and reached with one sample of the other.
        game = PacGame(hidden, [Fraction(3, 4), 1], limits=[5, 5])
        assert game.alone.tolist() == [np.inf, 0]
        assert game.best_response(0, np.array([0.0, 1.0])) == 0
        with pytest.raises(UnreachableError):
            PacGame(hidden, [Fraction(3, 4), 1])
        with pytest.raises(UnreachableError, match=r"at most 0\.75"):
            PacGame(hidden, [Fraction(4, 5), 1], limits=[5, 5])

    def test_a_table_too_large_says_so(self, monkeypatch):
        monkeypatch.setattr(posteriors, "LARGEST_TABLE", 100)
        game = PacGame(cycle_worlds(2), [HALF] * 3)
        with pytest.raises(ExactnessError, match="SampledPacGame"):
            game.utilities(np.array([2.0, 2.0, 2.0]))

    def test_too_many_samples_say_so(self, monkeypatch):
        monkeypatch.setattr(posteriors, "MOST_SAMPLES", 10)
        game = PacGame(noisy_worlds(Fraction(51, 100)), [0.5099])
        with pytest.raises(ExactnessError, match="more than 10 samples"):
            _ = game.alone


class TestWellBehaved:
    @pytest.mark.parametrize("side", [0.25, 0.5, 0.9])
    def test_the_cycle_is_certified_below_one(self, side):
        verdict = PacGame(cycle_worlds(), [0.6] * 3).well_behaved([side] * 3)
        assert isinstance(verdict, Certified)
        np.testing.assert_allclose(verdict.own, (1 - side) / 2)
        np.testing.assert_allclose(verdict.cross, 0.5)

    def test_the_cycle_is_refuted_at_one_where_the_predecessor_gives_all(self):
        verdict = PacGame(cycle_worlds(), [1] * 3).well_behaved()
        assert isinstance(verdict, Refuted)
        assert verdict.witness[verdict.agent - 1] == 1
        assert "add nothing" in str(verdict)

    def test_the_general_cycle_is_certified_on_its_own_box(self):
        game = PacGame(cycle_worlds(2), [Fraction(7, 8)] * 3)
        verdict = game.well_behaved()
        assert isinstance(verdict, Certified)
        # u falls short of 1 by (1/2)^(s+1): the least own slope is between 1 and 2 beside 2.
        np.testing.assert_allclose(verdict.own, 1 / 2 * (1 / 2) ** 3 / 2)

    def test_the_constants_hold_at_random_places(self):
        game = PacGame(cycle_worlds(2), [Fraction(7, 8)] * 3)
        verdict = game.well_behaved([1.5, 2, 0.5])
        assert isinstance(verdict, Certified)
        generator = np.random.default_rng(0)
        for _ in range(30):
            slopes = game.jacobian(generator.random(3) * [1.5, 2, 0.5])
            assert (np.diag(slopes) >= verdict.own - 1e-12).all()
            off = slopes - np.diag(np.diag(slopes))
            assert (off.max(axis=1) <= verdict.cross + 1e-12).all()

    def test_a_large_box_is_left_open(self):
        game = PacGame(cycle_worlds(2), [0.9] * 3)
        assert isinstance(game.well_behaved([100] * 3), Unknown)
        assert isinstance(game.well_behaved([1, 2]), Unknown)


class TestWorlds:
    def test_a_game_survives_its_own_dict(self):
        game = PacGame(
            cycle_worlds(2), [0.9] * 3, classifier="worst", strategies="integer", limits=[4, 5, 6]
        )
        data = game.to_dict()
        assert data.pop("model") == "pac"
        again = PacGame(**data)
        assert again.to_dict() == game.to_dict()
        assert again.worlds == game.worlds
        assert data["worlds"][0]["prior"] == "1/64"

    def test_mappings_and_strings_are_read_too(self):
        world = World("0.5", [{("x", 0): "1/8", ("x", 1): 0.875}])
        assert world.samples == ((("x", 0, Fraction(1, 8)), ("x", 1, Fraction(7, 8))),)

    def test_probabilities_rounded_by_hand_are_rescaled(self):
        world = World(1, [[(0, 0, 0.333333333), (1, 0, 0.333333333), (2, 0, 0.333333333)]])
        assert [p for _, _, p in world.samples[0]] == [Fraction(1, 3)] * 3

    def test_worlds_nobody_can_tell_apart_are_one(self):
        worlds = [*cycle_worlds(1), *cycle_worlds(1)]
        halved = [World(w.prior / 2, w.samples) for w in worlds]
        assert len(merge_worlds(halved)) == 8
        assert PacGame(halved, [1] * 3).utilities(np.zeros(3)).tolist() == [0.5] * 3

    def test_restricting_keeps_the_data_of_those_who_stay(self):
        game = PacGame(cycle_worlds(), [1, 1, 1], agents=["a", "b", "c"]).without(2)
        assert game.agents == ("a", "b")
        assert game.utilities(np.array([1.0, 0.0])).tolist() == [1, 1]
        assert game.utilities(np.array([0.0, 1.0])).tolist() == [0.5, 1]

    @pytest.mark.parametrize(
        ("worlds", "sentence"),
        [
            ([], "at least one world"),
            ("worlds", "must be a list"),
            ([{"prior": 1}], 'world 0 must be an object with a "prior" and "samples"'),
            ([{"prior": 1, "samples": []}], "world 0 must give samples of 1 agents"),
            ([{"prior": 1, "samples": "x"}], "must be a list with one list per agent"),
            ([{"prior": 1, "samples": [[]]}], "samples of site in world 0 must be a list of"),
            ([{"prior": 1, "samples": [[[0, 1]]]}], r"must be \[point, label, probability\]"),
            ([{"prior": 1, "samples": [[[0, 1, 0.5]]]}], "site in world 0 sum to 0.5, not 1"),
            ([{"prior": 0.5, "samples": [[[0, 1, 1]]]}], "priors of the worlds sum to 0.5, not 1"),
            ([{"prior": 2, "samples": [[[0, 1, 1]]]}], "prior of world 0 is 2"),
            ([{"prior": 1, "samples": [[[0, 1, -1], [0, 0, 2]]]}], "lies between 0 and 1"),
            ([{"prior": 1, "samples": [[[0, 1, "a"]]]}], 'a number or a string such as "1/8"'),
            ([{"prior": 1, "samples": [[[0, 1, "1/0"]]]}], 'a number or a string such as "1/8"'),
            ([{"prior": float("nan"), "samples": [[[0, 1, 1]]]}], "must be a number"),
            ([{"prior": True, "samples": [[[0, 1, 1]]]}], "must be a number"),
            ([{"prior": 1, "samples": [[[0.5, 1, 1]]]}], "whole number or a string"),
            ([{"prior": 1, "samples": [[[0, None, 1]]]}], "a label of site in world 0 is None"),
        ],
    )
    def test_bad_worlds_get_a_sentence(self, worlds, sentence):
        with pytest.raises(InputError, match=sentence):
            PacGame(worlds, [0.5], agents=["site"])

    def test_a_wrong_classifier_gets_a_sentence(self):
        with pytest.raises(InputError, match='classifier must be "bayes" or "worst"'):
            PacGame(noisy_worlds(), [0.5], classifier="best")


def test_fractions_of_thousands_of_digits_are_written_and_read():
    priors = np.random.default_rng(0).dirichlet(np.ones(700)).tolist()
    worlds = [
        {"prior": prior, "samples": [[[0, n % 2, 1]], [[1, n // 2 % 2, 1]]]}
        for n, prior in enumerate(priors)
    ]
    # Priors of doubles add up to one but for rounding, and are divided by what they add up to.
    game = PacGame(worlds, [0.6, 0.6])
    assert game.worlds[0].prior.denominator > 10**4300
    again = PacGame(game.to_dict()["worlds"], [0.6, 0.6])
    assert again.worlds == game.worlds
