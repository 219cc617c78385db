"""Linear games: each row's verdict, and that a subtly wrong package does not get it."""

import dataclasses
import sys
from fractions import Fraction

import numpy as np
import pytest
from claim_rows import assert_comes_out, quick_row, row

from fedaccord.check import Answer
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.reproduce import appendix_weights as weights
from fedaccord.reproduce import draws
from fedaccord.reproduce import section_5_linear as linear
from fedaccord.reproduce import section_5_structure as structure
from fedaccord.reproduce.claims import Verdict
from fedaccord.reproduce.oracle import ExactGame

HOLDS, CORRECTED, FAILS = Verdict.HOLDS, Verdict.CORRECTED, Verdict.FAILS

EXPECTED = {
    "lp-1": HOLDS,
    "cp-1": HOLDS,
    "linear-stable-set": HOLDS,
    "theorem-5": HOLDS,
    "corollary-1": CORRECTED,
    "diagonal-dominance": CORRECTED,
    "theorem-6": HOLDS,
    "lp-1-equilibrium": CORRECTED,
    "multiplicative-weights": CORRECTED,
    "mw-fed-linear": CORRECTED,
}
# In tests of one row without cvxpy there is nothing to be seen of CP 1.
NEEDS = {"cp-1": "cvxpy"}


@pytest.fixture
def few(monkeypatch):
    """The first few of the games that the rows are about: enough to see a fault."""
    for module in (linear, structure, weights):
        monkeypatch.setattr(module, "GAMES", (10, 10))
    monkeypatch.setattr(linear, "LARGER", (20, 20))
    return monkeypatch


def verdict(id):
    """The verdict of a row, which says what failed if it fails, and corrects only what it must."""
    finding = row(id).finding
    assert bool(finding.correction) == (finding.verdict is CORRECTED)
    assert ("Not so: " in finding.measured) == (finding.verdict is FAILS)
    return finding.verdict


def altered(solve, **changes):
    """A solver whose answers are changed: each change is a function of the solution."""

    def solved(game, **options):
        solution = solve(game, **options)
        return dataclasses.replace(
            solution, **{name: change(solution) for name, change in changes.items()}
        )

    return solved


def more(factor):
    """Contributions multiplied by a factor."""
    return altered(solve_optimal, contributions=lambda s: np.array(s.contributions) * factor)


def other_prices(solution):
    """Prices of which the largest is 5 % too high, as nobody who needs less would pay it."""
    prices = np.array(solution.certificate["prices"])
    prices[np.argmax(prices)] *= 1.05
    return {**solution.certificate, "prices": prices}


# The verdicts.


@pytest.mark.parametrize("id", EXPECTED)
def test_each_claim_on_linear_games_comes_out_as_found_by_hand(id) -> None:
    if id in NEEDS:
        pytest.importorskip(NEEDS[id])
    assert_comes_out(id, EXPECTED[id])


@pytest.mark.parametrize("id", EXPECTED)
def test_a_few_games_suffice_so_that_planted_faults_are_what_changes_verdicts(few, id) -> None:
    if id in NEEDS:
        pytest.importorskip(NEEDS[id])
    assert verdict(id) is EXPECTED[id]


def test_charts_have_as_many_points_as_there_are_measurements() -> None:
    (gaps,) = quick_row("multiplicative-weights").finding.charts
    assert [len(line.x) for line in gaps.lines] == [4, 4]
    assert list(gaps.lines[0].y) == sorted(gaps.lines[0].y, reverse=True)
    (saved,) = quick_row("mw-fed-linear").finding.charts
    assert {len(line.x) for line in saved.lines} == {weights.GAMES[0]}


def test_the_same_seed_gives_the_same_evidence(few) -> None:
    for id in ("lp-1", "corollary-1", "multiplicative-weights"):
        assert row(id).to_dict()["evidence"] == row(id).to_dict()["evidence"]


def test_a_row_without_its_extra_is_not_run(few) -> None:
    few.setitem(sys.modules, "cvxpy", None)
    found = row("cp-1").finding
    assert found.verdict is Verdict.NOT_RUN
    assert "cvxpy" in found.measured


# Exact answers by corners, against answers by hand.


def test_corners_of_a_game_worked_out_by_hand() -> None:
    game = ExactGame.of([["1", "0.5"], ["0.5", "1"]], [1, "0.5"])
    third = Fraction(1, 3)
    assert set(game.corners) == {(1, 0), (Fraction(0), Fraction(2))}
    assert (game.optimal_total, game.equilibria) == (1, [(1, 0)])
    assert game.envy((1, 1)) == []
    assert game.envy((Fraction(1), Fraction(1, 2))) == [(0, 1)]
    assert not game.is_stable((2 * third, 2 * third))


def test_the_example_of_an_optimum_without_zeros_is_right_by_hand() -> None:
    # u = (1/2 + 1/4 + 1/4, the same, 3/8 + 3/8 + 1/3), and 2/3 + 2/3 is as cheap and tight.
    assert weights.SPARE.utilities(weights.POSITIVE) == (1, 1, Fraction(13, 12))
    assert weights.SPARE.utilities((Fraction(2, 3), Fraction(2, 3), Fraction(0))) == (1, 1, 1)


def test_all_who_are_short_rise_alike_until_they_have_enough() -> None:
    # All rise to 5/9, where the first has (1 + 2 * 0.4) * 5/9 = 1; then the others to 1 - 2/9.
    assert weights.rise_equally(weights.EARLY) == (Fraction(5, 9), Fraction(7, 9), Fraction(7, 9))


# LP 1.


def test_lp_1_is_not_said_to_find_totals_that_are_a_thousandth_too_large(few) -> None:
    few.setattr(linear, "solve_optimal", more(1.001))
    assert verdict("lp-1") is FAILS


def test_lp_1_is_not_said_to_find_totals_that_leave_somebody_short(few) -> None:
    few.setattr(linear, "solve_optimal", more(1 - 1e-6))
    assert verdict("lp-1") is FAILS


def test_prices_that_prove_nothing_do_not_prove_totals_of_larger_games(few) -> None:
    few.setattr(linear, "draw_small_games", lambda count: draws.equal_games(2, seed=1))
    assert verdict("lp-1") is HOLDS
    few.setattr(linear, "solve_optimal", altered(solve_optimal, certificate=other_prices))
    assert verdict("lp-1") is FAILS


# CP 1 and the stable set.


def test_cp_1_is_not_said_to_find_the_cheapest_where_it_finds_the_costliest(few) -> None:
    pytest.importorskip("cvxpy")

    def costliest(game, method="auto", **options):
        if method != "cp1":
            return solve_stable(game, **options)
        found = solve_stable(game, select="costliest", **options)
        return dataclasses.replace(found, certificate={"regret": 0.0})

    few.setattr(linear, "solve_stable", costliest)
    assert verdict("cp-1") is FAILS


def test_cp_1_with_half_the_square_is_another_program(few) -> None:
    pytest.importorskip("cvxpy")

    def halved(exact, theta):
        parts = zip(theta, exact.utilities(theta), exact.requirements, strict=True)
        return sum(t * u / 2 - need * t for t, u, need in parts)

    few.setattr(linear, "evaluate_constraint", halved)
    assert verdict("cp-1") is FAILS


def test_a_conic_solver_that_always_gives_up_fails_the_row_and_raises_nothing(few) -> None:
    pytest.importorskip("cvxpy")

    def lost(game, method="auto", **options):
        found = solve_stable(game, **options)
        if method != "cp1":
            return found
        return dataclasses.replace(
            found, status=Status.FAILED, contributions=None, certificate={"status": "failed"}
        )

    few.setattr(linear, "solve_stable", lost)
    assert verdict("cp-1") is FAILS


def test_the_stable_set_is_not_said_to_be_convex_where_w_is_indefinite(few) -> None:
    few.setattr(linear, "draw_games_with_choice", lambda count: [linear.INDEFINITE])
    assert verdict("linear-stable-set") is FAILS


def test_an_audit_that_calls_a_mixture_unstable_is_heard(few) -> None:
    few.setattr(linear, "is_audited_stable", lambda exact, theta: theta[0] > 0)
    assert verdict("linear-stable-set") is FAILS


# Theorem 5 and its corollary.


def test_theorem_5_does_not_hold_for_unequal_requirements(few) -> None:
    few.setattr(structure, "equal_games", draws.unequal_games)
    assert verdict("theorem-5") is FAILS


def test_theorem_5_is_not_confirmed_by_a_solver_that_gives_the_optimum(few) -> None:
    def optimum(game, **options):
        return dataclasses.replace(solve_optimal(game), concept="stable")

    few.setattr(structure, "solve_stable", optimum)
    assert verdict("theorem-5") is FAILS


def test_theorem_5_is_not_confirmed_where_those_who_give_have_no_choice(few) -> None:
    drawn = draws.equal_games
    few.setattr(
        structure,
        "equal_games",
        lambda count, seed: [g for g in drawn(count, seed=seed) if len(g.equilibria) == 1],
    )
    assert verdict("theorem-5") is FAILS


def test_the_corollary_needs_no_correction_where_its_counter_example_is_none(few) -> None:
    equal = ExactGame.of(structure.UNEQUAL.benefits, [1, 1, 1])
    few.setattr(structure, "UNEQUAL", equal)
    assert verdict("corollary-1") is HOLDS


def test_the_corrected_corollary_fails_for_unequal_requirements(few) -> None:
    few.setattr(structure, "equal_games", lambda count, seed: structure.draw_giving_games(count))
    assert verdict("corollary-1") is FAILS


def test_prices_that_always_exist_do_not_decide_what_is_optimal(few) -> None:
    few.setattr(structure, "has_prices", lambda exact: True)
    assert verdict("corollary-1") is FAILS


# Diagonal dominance and Theorem 6.


def test_dominance_as_printed_does_not_pass_for_dominance_in_the_right_units(few) -> None:
    few.setattr(
        structure, "draw_dominant_games", lambda count, **kind: structure.draw_printed_games(count)
    )
    assert verdict("diagonal-dominance") is FAILS


def test_dominance_needs_no_correction_where_the_diagonal_is_one(few) -> None:
    unit = ExactGame.of([["1", "0.45", "0.45"], ["0.45", "1", 0], ["0.45", 0, "1"]], [1, 1, 1])
    few.setattr(structure, "DOMINANT", unit)
    assert verdict("diagonal-dominance") is HOLDS


def test_a_test_of_dominance_that_misses_games_is_noticed(few) -> None:
    few.setattr(
        structure, "everyone_must_contribute", lambda game: bool((game.own_benefits == 1).all())
    )
    assert verdict("diagonal-dominance") is FAILS


def test_dominance_with_a_unit_diagonal_is_seen_to_need_equal_requirements() -> None:
    evidence = quick_row("diagonal-dominance").finding.evidence
    assert evidence["unit_diagonal_somebody_idle"] > 0
    assert evidence["unit_diagonal_costless"] == evidence["games"]


def test_theorem_6_fails_where_another_sample_is_worth_as_much_as_an_own_one(few) -> None:
    drawn = structure.draw_own_games
    few.setattr(structure, "draw_own_games", lambda count: [*drawn(count), structure.TWINS])
    few.setattr(structure, "strictly_dominant_own_benefits", lambda game: True)
    assert verdict("theorem-6") is FAILS


def test_theorem_6_is_not_confirmed_by_an_audit_that_sees_envy(few) -> None:
    class Envious:
        envy_free = Answer.BORDERLINE

    few.setattr(structure, "check", lambda game, theta: Envious())
    assert verdict("theorem-6") is FAILS


def test_theorem_6_is_not_confirmed_if_its_condition_is_idle(few) -> None:
    few.setattr(structure, "ENVIOUS", ExactGame.of([["1", "0.6"], ["0.6", "1"]], ["0.5", "0.2"]))
    assert verdict("theorem-6") is FAILS


# LP 1's equilibria and multiplicative weights.


def test_lp_1_needs_no_correction_where_neither_reading_has_a_counter_example(few) -> None:
    with few.context() as one:
        one.setattr(weights, "UNEQUAL", weights.EARLY)
        assert verdict("lp-1-equilibrium") is CORRECTED
    few.setattr(weights, "SPARE", weights.EARLY)
    few.setattr(weights, "POSITIVE", weights.EARLY.equilibria[0])
    assert verdict("lp-1-equilibrium") is CORRECTED
    few.setattr(weights, "UNEQUAL", weights.EARLY)
    assert verdict("lp-1-equilibrium") is HOLDS


def test_optima_are_no_equilibria_where_somebody_gives_nothing(few) -> None:
    few.setattr(weights, "has_all_giving", lambda exact: True)
    assert verdict("lp-1-equilibrium") is FAILS


def test_a_solver_that_leaves_something_to_spare_finds_no_equilibrium(few) -> None:
    few.setattr(weights, "solve_optimal", more(1.03))
    assert verdict("lp-1-equilibrium") is FAILS


def test_weights_that_stop_early_do_not_solve_lp_1(few) -> None:
    def early(game, *, method="auto", tolerance=1e-6):
        return solve_optimal(game, method=method, tolerance=max(tolerance, 0.05))

    few.setattr(weights, "solve_optimal", early)
    assert verdict("multiplicative-weights") is FAILS


def test_wrong_prices_prove_no_gap(few) -> None:
    few.setattr(weights, "solve_optimal", altered(solve_optimal, certificate=other_prices))
    assert verdict("multiplicative-weights") is FAILS


def test_a_program_in_which_all_may_give_nothing_would_pack(few) -> None:
    few.setattr(ExactGame, "is_feasible", lambda exact, theta: min(theta) >= 0)
    few.setattr(weights, "measure_gap", lambda *arguments: 0.0)
    assert verdict("multiplicative-weights") is HOLDS


def test_a_program_in_which_nobody_may_give_much_more_would_not_cover(few) -> None:
    real = ExactGame.is_feasible

    def capped(exact, theta):
        alone = (need / exact.benefits[i][i] for i, need in enumerate(exact.requirements))
        return real(exact, theta) and max(theta) <= Fraction(3, 2) * max(alone)

    few.setattr(ExactGame, "is_feasible", capped)
    few.setattr(weights, "measure_gap", lambda *arguments: 0.0)
    assert verdict("multiplicative-weights") is FAILS


# MW-FED's rule.


def test_equal_shares_do_not_pass_for_mw_fed(few) -> None:
    few.setattr(weights, "follow_mw_fed", weights.share_equally)
    assert verdict("mw-fed-linear") is FAILS


def test_weights_that_never_fall_do_not_end_at_an_equilibrium(few) -> None:
    def up_only(benefits, needs):
        theta = np.full(len(needs), 1e-3)
        while (benefits @ theta < needs).any():
            theta = theta * np.where(benefits @ theta < needs, 1.01, 1.0)
        return theta

    few.setattr(weights, "follow_up_and_down", up_only)
    assert verdict("mw-fed-linear") is FAILS


def test_mw_fed_needs_no_correction_where_all_have_enough_at_once(few) -> None:
    alike = ExactGame.of([["1", "0.4", "0.4"], ["0.4", "1", "0.4"], ["0.4", "0.4", "1"]], [1] * 3)
    few.setattr(weights, "EARLY", alike)
    assert verdict("mw-fed-linear") is HOLDS
