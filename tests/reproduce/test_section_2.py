"""The definitions: each row's verdict, and that a subtly wrong package does not get it."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from claim_rows import assert_comes_out, quick_row, row, verdict

from fedaccord.equilibria.result import Price, Status
from fedaccord.games.base import Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import DiscoveryGame
from fedaccord.games.pac.exact import PacGame
from fedaccord.reproduce import oracle
from fedaccord.reproduce import section_2_definitions as definitions
from fedaccord.reproduce import section_2_utilities as models
from fedaccord.reproduce.claims import Verdict

HOLDS, CORRECTED, FAILS = Verdict.HOLDS, Verdict.CORRECTED, Verdict.FAILS

EXPECTED = {
    "definition-optimal": HOLDS,
    "definition-stable": HOLDS,
    "definition-envy-free": HOLDS,
    "price-of-stability": HOLDS,
    "price-of-fairness": CORRECTED,
    "random-discovery": HOLDS,
    "random-coverage": HOLDS,
    "pac-utilities": CORRECTED,
    "randomized-rounding": HOLDS,
}


@pytest.fixture
def few(monkeypatch):
    """The first few of the games that the rows are about: enough to see a fault."""
    monkeypatch.setattr(definitions, "GAMES", (2, 2))
    monkeypatch.setattr(definitions, "AUDITED", (10, 10))
    monkeypatch.setattr(models, "GAMES", (4, 4))
    monkeypatch.setattr(models, "DRAWS", (2000, 2000))
    return monkeypatch


@pytest.mark.parametrize("id", EXPECTED)
def test_each_definition_comes_out_as_found_by_hand(id) -> None:
    assert_comes_out(id, EXPECTED[id])


def test_the_same_seed_gives_the_same_evidence(few) -> None:
    first, second = (row("random-coverage").to_dict()["evidence"] for _ in range(2))
    assert first == second


# Planted faults.


def one_more(solve):
    """Let a solver ask one sample too much of the first agent."""

    def faulty(game, **options):
        solution = solve(game, **options)
        if solution.contributions is None:
            return solution
        given = np.array(solution.contributions)
        given[0] += 1
        return dataclasses.replace(solution, contributions=given)

    return faulty


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("definition-optimal", "solve_optimal"),
        ("definition-stable", "solve_stable"),
        ("definition-envy-free", "solve_envy_free"),
    ],
)
def test_a_solver_that_asks_one_sample_too_much_is_noticed(id, name, few) -> None:
    few.setattr(definitions, name, one_more(getattr(definitions, name)))
    assert verdict(id) is FAILS


def test_a_total_that_the_paper_does_not_have_is_noticed(few) -> None:
    totals = {"pac-cycle": 2, "two-agents": 1, "k4": 3, "flower-linear": 2, "flower-coverage": 3}
    assert verdict("definition-optimal", totals=totals) is FAILS


def test_an_equilibrium_that_the_cycle_does_not_have_is_noticed(few) -> None:
    totals = {"pac-cycle": 2, "two-agents": 1, "k4": 2, "flower-linear": 4, "flower-coverage": 4}
    found = row("definition-stable", totals=totals).finding
    assert found.verdict is FAILS
    assert found.measured.endswith(" Not so: the totals of pac-cycle are those expected.")


def test_a_total_that_nobody_expects_or_that_is_missing_is_noticed() -> None:
    found = {"one": 2.0, "two": None, "three": None}
    assert definitions._list_unlike(found, {"one": 2, "two": 0, "four": 0}) == ["three", "four"]
    assert definitions._list_unlike(found, {"one": 1, "two": 1, "three": 0}) == ["one", "two"]


def test_a_price_that_the_paper_does_not_have_is_noticed_and_told(few) -> None:
    prices = {"pac-cycle": 0, "two-agents": 1, "k4": 1, "flower-linear": 2, "flower-coverage": 1}
    found = row("price-of-stability", prices=prices, real_flower=2.0).finding
    assert found.verdict is FAILS
    assert found.measured.endswith(
        " Not so: the prices of flower-coverage are those expected; over the reals the flower's is "
        "2."
    )


def test_an_audit_that_is_wrong_about_the_real_flower_only_is_noticed_and_told(few) -> None:
    check = definitions.check

    def lenient(game, theta):
        report = check(game, theta)
        return report if game.is_integer else dataclasses.replace(report, stable=report.feasible)

    few.setattr(definitions, "check", lenient)
    found = row("definition-stable").finding
    assert found.verdict is FAILS
    assert found.measured.endswith(" Not so: the check finds the optimal allocation unstable.")
    assert sum(found.evidence["real_flower"].values()) == 4


def test_stable_and_envy_free_allocations_are_both_among_those_audited() -> None:
    utility = oracle.linear_utility([[Fraction(1), Fraction(1)]] * 2)
    listing = oracle.Listing(utility, (Fraction(9), Fraction(9)))
    chosen = definitions.Example("two", None, listing).some(6)
    assert len(chosen) == 6
    assert sum(map(listing.is_stable, chosen)) >= 2
    assert sum(map(listing.is_envy_free, chosen)) >= 2


def test_a_response_that_rounds_ties_up_is_noticed(few) -> None:
    def careless(self, agent, needed, contributions):
        return float(np.floor(needed) + 1) if needed > 0 else needed

    # Ties are rare: all the random games of a quick check.
    few.setattr(definitions, "GAMES", (12, 12))
    few.setattr(Game, "_whole_response", careless)
    assert verdict("definition-stable") is FAILS


def test_an_audit_that_overlooks_what_an_agent_could_spare_is_noticed(few) -> None:
    check = definitions.check

    def lenient(game, theta):
        report = check(game, theta)
        return dataclasses.replace(report, stable=report.feasible)

    few.setattr(definitions, "check", lenient)
    assert verdict("definition-stable") is FAILS


def test_a_swap_that_leaves_the_other_as_it_was_is_noticed(few) -> None:
    def half_a_swap(self, contributions, agent, others):
        result = []
        for other in others:
            swapped = np.array(contributions)
            swapped[agent] = contributions[other]
            result.append(self.utilities(swapped)[agent])
        return np.array(result)

    few.setattr(CoverageGame, "swapped_utilities", half_a_swap)
    assert verdict("definition-envy-free") is FAILS


@pytest.mark.parametrize("name", ["stability", "fairness"])
def test_a_price_that_is_a_little_off_is_noticed(name, few) -> None:
    price = getattr(definitions, f"price_of_{name}")

    def dearer(above, below):
        found = price(above, below)
        return Price(found.lower * 1.001, found.upper * 1.001)

    few.setattr(definitions, f"price_of_{name}", dearer)
    assert verdict(f"price-of-{name}") is FAILS


def test_the_price_of_the_costliest_equilibrium_is_noticed(few) -> None:
    solve = definitions.solve_stable

    def costliest(game):
        # K4 has stars of three beside the matchings of two.
        return dataclasses.replace(solve(game, select="costliest"), options={})

    few.setattr(definitions, "solve_stable", costliest)
    assert verdict("price-of-stability") is FAILS


def test_a_solver_that_says_that_the_bound_is_attained_is_noticed(few) -> None:
    solve = definitions.solve_envy_free

    def certain(game):
        solution = solve(game)
        attained = solution.status is Status.NOT_ATTAINED
        return dataclasses.replace(solution, status=Status.OPTIMAL) if attained else solution

    few.setattr(definitions, "solve_envy_free", certain)
    assert verdict("price-of-fairness") is FAILS


def test_fairness_needs_no_correction_if_a_least_total_exists(few) -> None:
    few.setattr(definitions, "_least_on_grid", lambda steps: Fraction(3))
    found = row("price-of-fairness").finding
    assert found.verdict is HOLDS
    assert found.measured.endswith(" Not so: ever finer steps come nearer, and none arrives.")


def test_benefits_that_are_a_little_off_are_noticed(few) -> None:
    apply = DiscoveryGame.apply
    few.setattr(DiscoveryGame, "apply", lambda self, theta: (1 + 1e-9) * apply(self, theta))
    assert verdict("random-discovery") is FAILS


def test_points_that_are_added_up_instead_of_covered_are_noticed(few) -> None:
    def added(self, agent, contributions):
        table = self.distributions.toarray()
        seen = np.minimum(np.array([float(c) for c in contributions]) @ table, 1)
        return Fraction(str(round(0.5 + 0.5 * float(table[agent] @ seen), 12)))

    few.setattr(CoverageGame, "exact_utility", added)
    assert verdict("random-coverage") is FAILS


def test_the_flower_by_drawing_notices_a_utility_that_is_off(few) -> None:
    few.setattr(models, "DRAWS", (20_000, 20_000))
    utilities = CoverageGame.utilities
    assert models._flower_by_drawing(20_000) < models.MOST_ERRORS
    few.setattr(CoverageGame, "utilities", lambda self, theta: utilities(self, theta) + 2e-3)
    assert models._flower_by_drawing(20_000) > models.MOST_ERRORS


def test_the_worst_classifier_in_place_of_the_best_is_noticed(few) -> None:
    game = models._game
    few.setattr(
        models, "_game", lambda worlds, agents, **_: game(worlds, agents, classifier="worst")
    )
    assert verdict("pac-utilities") is FAILS


def test_a_utility_that_falls_with_more_samples_is_noticed(few) -> None:
    exact = PacGame.exact_utility

    def tired(self, agent, contributions):
        value = exact(self, agent, contributions)
        return value - Fraction(1, 1000) if sum(contributions) > 4 else value

    few.setattr(PacGame, "exact_utility", tired)
    assert verdict("pac-utilities") is FAILS


def test_any_classifier_would_do_if_the_careless_one_did_not_lose(few) -> None:
    few.setattr(models, "_careless_function", lambda: (Fraction(1, 10), Fraction(9, 10)))
    assert verdict("pac-utilities") is HOLDS


def test_the_likeliest_function_may_lose_and_the_likeliest_label_does_not() -> None:
    # Before: + with 7 + 4 + 4 of 20. After: 7 of the 7 where the first is +, else the 5 that say -.
    evidence = quick_row("pac-utilities").finding.evidence
    assert evidence["likeliest_function"] == ["3/4", "3/5"]
    assert evidence["likeliest_labels"] == ["3/4", "3/4"]


def test_the_likeliest_function_in_place_of_the_likeliest_labels_is_noticed(few) -> None:
    few.setattr(models, "_likeliest_labels", models._likeliest_function)
    found = row("pac-utilities").finding
    assert found.verdict is FAILS
    assert "Not so: the likeliest label of every point" in found.measured


def test_the_smooth_reading_of_fractions_is_noticed(few) -> None:
    few.setattr(CoverageGame, "utilities", CoverageGame.smooth_utilities)
    assert verdict("randomized-rounding") is FAILS


# The lists themselves, by hand.


def test_a_list_of_two_agents_who_need_one_sample_between_them() -> None:
    utility = oracle.linear_utility([[Fraction(1), Fraction(1)]] * 2)
    listing = oracle.Listing(utility, (Fraction(1), Fraction(1)))
    assert listing.list_all(listing.is_feasible) == [(0, 1), (1, 0), (0, 2), (1, 1), (2, 0)]
    assert listing.list_all(listing.is_stable) == [(0, 1), (1, 0)]
    assert listing.list_all(listing.is_envy_free) == [(1, 1)]
    assert listing.envy((2, 0)) == ((0, 1),)


def test_a_swap_beyond_a_limit_is_no_envy() -> None:
    utility = oracle.linear_utility([[Fraction(1), Fraction(1)]] * 2)
    listing = oracle.Listing(utility, (Fraction(1), Fraction(1)), limits=(1, 0))
    assert listing.list_all(listing.is_envy_free) == [(1, 0)]


def test_rounding_at_random_takes_the_mean_over_independent_draws() -> None:
    product = oracle.round_at_random(lambda agent, theta: Fraction(theta[0] * theta[1]))
    assert product(0, [Fraction(1, 2), Fraction(3, 2)]) == Fraction(3, 4)
    square = oracle.round_at_random(lambda agent, theta: Fraction(theta[0] ** 2))
    assert square(0, [Fraction(1, 2)]) == Fraction(1, 2)


def test_both_ways_to_round_coverage_are_the_same() -> None:
    table = [[Fraction(1, 4), Fraction(3, 4)], [Fraction(1), Fraction(0)]]
    theta = [Fraction(7, 4), Fraction(1, 3)]
    slow = oracle.round_at_random(oracle.coverage_utility(table))
    for agent in range(2):
        assert oracle.coverage_utility(table)(agent, theta) == slow(agent, theta)


def test_one_sample_in_the_ring_tells_two_agents_their_labels() -> None:
    utility = oracle.learnt_utility(oracle.cycle_worlds(1))
    assert [utility(agent, (1, 0, 0)) for agent in range(3)] == [1, 1, Fraction(1, 2)]
