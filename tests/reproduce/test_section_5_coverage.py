"""Coverage games: each row's verdict, and that a subtly wrong package does not get it."""

import dataclasses
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from claim_rows import assert_comes_out, quick_row, row

from fedaccord.equilibria.solve import solve_stable
from fedaccord.games.coverage import CoverageGame
from fedaccord.reproduce import appendix_rounding as rounding
from fedaccord.reproduce import section_5_coverage as coverage
from fedaccord.reproduce.claims import Verdict
from fedaccord.reproduce.oracle import ExactGame, is_stable_when_rounded, round_at_random

HOLDS, CORRECTED, FAILS = Verdict.HOLDS, Verdict.CORRECTED, Verdict.FAILS

EXPECTED = {
    "theorem-7": HOLDS,
    "theorem-8": HOLDS,
    "linear-envy-free-set": CORRECTED,
    "coverage-hardness": CORRECTED,
    "rounding-derivatives": HOLDS,
}


@pytest.fixture
def few(monkeypatch):
    """The first few of the games that the rows are about: enough to see a fault."""
    for module in (coverage, coverage, rounding):
        monkeypatch.setattr(module, "GAMES", (6, 6))
    return monkeypatch


def verdict(id, **expected):
    """The verdict of a row, which says what failed if it fails, and corrects only what it must."""
    finding = row(id, **expected).finding
    assert bool(finding.correction) == (finding.verdict is CORRECTED)
    assert ("Not so: " in finding.measured) == (finding.verdict is FAILS)
    return finding.verdict


# The verdicts.


@pytest.mark.parametrize("id", EXPECTED)
def test_each_claim_on_coverage_comes_out_as_found_by_hand(id) -> None:
    assert_comes_out(id, EXPECTED[id])


@pytest.mark.parametrize("id", EXPECTED)
def test_a_few_games_suffice_so_that_planted_faults_are_what_changes_verdicts(few, id) -> None:
    assert verdict(id) is EXPECTED[id]


def test_the_same_seed_gives_the_same_evidence(few) -> None:
    for id in ("linear-envy-free-set", "coverage-hardness", "rounding-derivatives"):
        assert row(id).to_dict()["evidence"] == row(id).to_dict()["evidence"]


def test_without_rounding_theorem_7_loses_its_example_and_theorem_8_keeps_it() -> None:
    evidence = quick_row("theorem-7").finding.evidence
    assert evidence["smooth_distance_from_requirement"] < 1e-15
    assert evidence["smooth_stable"] == evidence["mixtures"]
    evidence = quick_row("theorem-8").finding.evidence
    assert evidence["smooth_envy"] == evidence["envy"]


# Utilities by listing draws, against answers by hand.


def test_accuracies_by_listing_draws_are_those_worked_out_by_hand() -> None:
    utility = coverage.list_accuracy([(0, 1), (1, 2)])
    # Nobody draws: half right. One draw of the first agent: one of its points is seen for sure,
    # and the second agent's point 1 in half of the cases.
    assert [utility(i, (0, 0)) for i in (0, 1)] == [Fraction(1, 2)] * 2
    assert [utility(i, (1, 0)) for i in (0, 1)] == [Fraction(3, 4), Fraction(5, 8)]


def test_stable_in_fractions_sees_who_could_give_less() -> None:
    utility = round_at_random(coverage.list_accuracy(coverage.TWO))
    needs, one, none = [Fraction(3, 4)] * 2, Fraction(1), Fraction(0)
    assert is_stable_when_rounded(utility, needs, (one, none))
    assert not is_stable_when_rounded(utility, needs, (one, Fraction(1, 8)))
    assert not is_stable_when_rounded(utility, [needs[0] + Fraction(1, 99)] * 2, (one, none))
    # One point only: a second sample adds nothing, so that one of two can go.
    level = round_at_random(coverage.list_accuracy([(0,)]))
    assert is_stable_when_rounded(level, [one], (one,))
    assert not is_stable_when_rounded(level, [one], (Fraction(2),))


# Theorem 7.


def together(utility):
    """Rounding by one coin for all agents, who would then never be rounded up both."""

    def expected(agent, theta):
        share = theta[0]
        return share * utility(agent, (1, 0)) + (1 - share) * utility(agent, (0, 1))

    return expected


def test_theorem_7_needs_agents_who_round_independently(few) -> None:
    few.setattr(coverage, "round_at_random", together)
    assert verdict("theorem-7") is FAILS


def test_theorem_7_is_judged_by_the_printed_number(few) -> None:
    assert verdict("theorem-7", drop="1/4") is FAILS
    assert verdict("theorem-7", middle="3/4") is FAILS


def test_theorem_7_is_not_confirmed_by_utilities_without_rounding(few) -> None:
    def smooth(game, agent, theta):
        value = game.smooth_utilities(np.array([float(t) for t in theta]))[agent]
        return Fraction(value).limit_denominator(1000)

    few.setattr(CoverageGame, "exact_utility", smooth)
    assert verdict("theorem-7") is FAILS


# Theorem 8.


def test_theorem_8_needs_the_points_in_the_middle_of_edges(few) -> None:
    few.setattr(coverage, "K4", coverage.EDGES)
    assert verdict("theorem-8") is FAILS


def test_theorem_8_needs_its_edges_in_the_order_of_the_figure(few) -> None:
    order = (0, 4, 2, 3, 1, 5)
    few.setattr(coverage, "K4", tuple(coverage.K4[edge] for edge in order))
    assert verdict("theorem-8") is FAILS


@pytest.mark.parametrize(
    ("key", "value"),
    [("matched", "3/4"), ("idle", "0.6111"), ("swapped", "3/5"), ("mixed", "0.6133")],
)
def test_theorem_8_is_judged_by_the_printed_numbers(few, key, value) -> None:
    assert verdict("theorem-8", **{key: value}) is FAILS


def test_theorem_8_is_not_confirmed_by_swaps_in_which_the_other_keeps_its_amount(few) -> None:
    def one_sided(theta, i, j):
        return [theta[j] if agent == i else amount for agent, amount in enumerate(theta)]

    few.setattr(coverage, "swap", one_sided)
    assert verdict("theorem-8") is FAILS


def test_theorem_8_hears_an_audit_that_sees_other_envy(few) -> None:
    real = coverage.check

    def blind(game, theta):
        found = real(game, theta)
        return dataclasses.replace(found, envy=found.envy[1:])

    few.setattr(coverage, "check", blind)
    assert verdict("theorem-8") is FAILS


# Envy-free sets of linear games.


def test_the_linear_case_needs_no_correction_if_the_example_has_no_envy(few) -> None:
    real = coverage.is_gap
    few.setattr(coverage, "is_gap", lambda exact, *ends: exact.size > 2 and real(exact, *ends))
    assert verdict("linear-envy-free-set") is HOLDS


def test_mixtures_of_equal_allocations_have_no_envy(few) -> None:
    alike = ExactGame.of([["1", "0.5"], ["0.5", "1"]], [1, 1])
    few.setattr(coverage, "draw_unequal_equilibria", lambda count: [alike])
    assert verdict("linear-envy-free-set") is FAILS


def test_swaps_in_which_the_other_keeps_its_amount_are_another_notion(few) -> None:
    def one_sided(exact, theta):
        kept = {i: [min(theta) if n == i else t for n, t in enumerate(theta)] for i in range(2)}
        return [
            (i, 1 - i)
            for i in range(2)
            if theta[i] > theta[1 - i] and exact.utilities(kept[i])[i] >= exact.requirements[i]
        ]

    few.setattr(coverage, "draw_unequal_equilibria", lambda count: [])
    assert verdict("linear-envy-free-set") is CORRECTED
    few.setattr(ExactGame, "envy", one_sided)
    assert verdict("linear-envy-free-set") is HOLDS


# Convex minimisation.


def test_a_convex_function_with_half_the_price_has_other_minima(few) -> None:
    real = coverage.minimise
    few.setattr(
        coverage,
        "minimise",
        lambda incidence, needs, start: real(incidence, (1 + needs) / 2, start),
    )
    assert verdict("coverage-hardness") is FAILS


def test_amounts_that_forget_rounding_are_no_equilibrium(few) -> None:
    few.setattr(coverage, "find_amounts", lambda logs, sizes: logs / -np.log(1 - 1 / sizes))
    assert verdict("coverage-hardness") is FAILS


def test_a_solver_that_is_a_thousandth_off_is_noticed(few) -> None:
    def off(game):
        found = solve_stable(game)
        return dataclasses.replace(found, contributions=np.array(found.contributions) * 1.001)

    few.setattr(coverage, "solve_stable", off)
    assert verdict("coverage-hardness") is FAILS


def test_starts_that_end_apart_show_that_sets_are_dependent(few) -> None:
    same = np.array([[1.0, 1, 0], [1, 1, 0], [0, 1, 1]]), np.array([0.75, 0.75, 0.75])
    few.setattr(coverage, "draw_set_game", lambda number: same)
    assert verdict("coverage-hardness") is FAILS


def test_a_convex_set_would_not_refute_that_other_sets_make_games_hard(few) -> None:
    # At a share of one the mixture is a matching, which nobody envies.
    assert verdict("coverage-hardness", share="1") is HOLDS


def test_k4_and_the_flower_have_independent_sets_and_theorem_7_has_not() -> None:
    flower = coverage.entry_sets("flower", model="coverage", petals=16)
    k4, two = (coverage.entry_sets(name) for name in ("k4", "two-agents"))
    for (incidence, needs), agents, rank in ((k4, 6, 6), (flower, 17, 17), (two, 2, 1)):
        assert (needs.size, np.linalg.matrix_rank(incidence)) == (agents, rank)


def test_a_step_without_a_solution_fails_the_row_and_raises_nothing(few) -> None:
    def singular(*arguments):
        raise np.linalg.LinAlgError("Singular matrix")

    few.setattr(coverage, "minimise", singular)
    assert verdict("coverage-hardness") is FAILS


def test_with_rounding_left_out_who_gives_half_as_much_has_too_little() -> None:
    game = coverage.build_entry("two-agents")
    assert coverage.is_smooth_stable(game, np.array([0.25, 0.75]))
    assert not coverage.is_smooth_stable(game, np.array([0.25, 0.8]))
    assert not coverage.is_smooth_stable(game, np.array([0.25, 0.7]))


# Derivatives.


def test_derivatives_of_the_smooth_form_are_not_those_of_rounding(few) -> None:
    def smooth(game, theta):
        rows = game.distributions.toarray()
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(rows < 1, np.log1p(-rows), 0.0)
        unseen = np.exp(logs.T @ theta)
        return -0.5 * (rows * unseen) @ logs.T

    few.setattr(CoverageGame, "jacobian", smooth)
    assert verdict("rounding-derivatives") is FAILS


def test_left_derivatives_in_place_of_right_ones_are_noticed(few) -> None:
    real = CoverageGame.jacobian
    few.setattr(
        CoverageGame, "jacobian", lambda game, theta: real(game, np.maximum(theta - 1e-9, 0))
    )
    assert verdict("rounding-derivatives") is FAILS


def test_a_power_one_too_high_is_not_the_printed_formula(few) -> None:
    real = rounding.compute_marginal
    few.setattr(
        rounding,
        "compute_marginal",
        lambda rows, theta, i, j, whole: real(rows, theta, i, j, whole + 1),
    )
    assert verdict("rounding-derivatives") is FAILS


def test_utilities_rounded_by_one_coin_have_other_derivatives(few) -> None:
    def one_coin(utility):
        def expected(agent, theta):
            low = [int(t) for t in theta]
            parts = sorted(
                {Fraction(t) - n for t, n in zip(theta, low, strict=True)}
                | {Fraction(0), Fraction(1)}
            )
            total = Fraction(0)
            for a, b in pairwise(parts):
                counts = [n + (Fraction(t) - n > a) for t, n in zip(theta, low, strict=True)]
                total += (b - a) * utility(agent, counts)
            return total

        return expected

    few.setattr(rounding, "round_at_random", one_coin)
    assert verdict("rounding-derivatives") is FAILS
