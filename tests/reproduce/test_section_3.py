"""Existence: each row's verdict, and that a subtly wrong package does not get it."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from claim_rows import assert_comes_out, quick_row, row, verdict

from fedaccord.equilibria.result import Status
from fedaccord.games.base import Certified, Game, Refuted, Unknown
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.pac.exact import PacGame
from fedaccord.reproduce import section_3_existence as existence
from fedaccord.reproduce import section_3_well_behaved as well_behaved
from fedaccord.reproduce.claims import Verdict
from fedaccord.reproduce.oracle import coverage_utility

HOLDS, CORRECTED, FAILS = Verdict.HOLDS, Verdict.CORRECTED, Verdict.FAILS

EXPECTED = {
    "theorem-1": CORRECTED,
    "definition-well-behaved": HOLDS,
    "well-behaved-linear": HOLDS,
    "well-behaved-coverage": CORRECTED,
    "well-behaved-pac": HOLDS,
    "fixed-point-lemma": HOLDS,
    "theorem-2": HOLDS,
    "theorem-3": HOLDS,
    "theorem-3-general": HOLDS,
}


@pytest.fixture
def few(monkeypatch):
    """The first few of the games that the rows are about: enough to see a fault."""
    monkeypatch.setattr(existence, "GAMES", (4, 4))
    monkeypatch.setattr(well_behaved, "GAMES", (8, 8))
    return monkeypatch


@pytest.mark.parametrize("id", EXPECTED)
def test_each_claim_on_existence_comes_out_as_found_by_hand(id) -> None:
    assert_comes_out(id, EXPECTED[id])


def test_the_map_of_the_proof_cycles_in_some_games_that_have_an_equilibrium() -> None:
    evidence = quick_row("theorem-2").finding.evidence
    assert 0 < evidence["cycles"] < evidence["games"]
    assert evidence["settled"]["half steps"] == evidence["games"]


def test_the_same_seed_gives_the_same_evidence(few) -> None:
    first, second = (row("fixed-point-lemma").to_dict()["evidence"] for _ in range(2))
    assert first == second


# Theorem 1.


def test_shares_at_the_mean_of_a_feasible_allocation_are_noticed(few) -> None:
    def mean(theta, limits):
        whole = (theta == np.floor(theta)).all()
        return np.full(len(theta), np.floor(theta.mean()) if whole else theta.mean())

    few.setattr(existence, "level", mean)
    few.setattr(existence, "_level_limited_games", lambda count: (count, [], 0))
    assert verdict("theorem-1") is FAILS


def test_leaving_those_with_limits_as_they_were_is_noticed(few) -> None:
    def timid(theta, limits):
        return np.where(limits < theta.max(), np.minimum(theta, limits), theta.max())

    few.setattr(existence, "GAMES", (40, 40))
    few.setattr(existence, "level", timid)
    assert verdict("theorem-1") is FAILS


def test_theorem_1_needs_no_correction_if_the_budget_leaves_a_fair_allocation(few) -> None:
    few.setattr(existence, "_budget_of_one", lambda steps: [((1, 0), True), ((0, 1), False)])
    assert verdict("theorem-1") is HOLDS


def test_with_a_budget_of_two_the_two_agents_can_share_alike() -> None:
    assert existence._budget_of_one(10) == [((1, 0), True), ((0, 1), True)]
    utility = coverage_utility([[Fraction(1, 2)] * 2] * 2)
    assert utility(0, [Fraction(3, 5)] * 2) >= Fraction(3, 4)


# What is well-behaved.


def altered(verdict_of, **changes):
    """Let a game certify constants that are a little off."""

    def faulty(self, box=None):
        found = verdict_of(self, box)
        if not isinstance(found, Certified):
            return found
        return dataclasses.replace(
            found, **{name: getattr(found, name) * by for name, by in changes.items()}
        )

    return faulty


@pytest.mark.parametrize(
    ("id", "model", "changes"),
    [
        ("definition-well-behaved", CoverageGame, {"own": 1.01}),
        ("definition-well-behaved", PacGame, {"cross": 0.99}),
        ("well-behaved-linear", LinearGame, {"own": 0.99}),
        ("well-behaved-linear", LinearGame, {"cross": 0.99}),
        ("well-behaved-coverage", CoverageGame, {"own": 0.99}),
        ("well-behaved-coverage", CoverageGame, {"cross": 1.01}),
        ("well-behaved-pac", PacGame, {"own": 0.99}),
        ("fixed-point-lemma", LinearGame, {"cross": 0.99}),
        ("fixed-point-lemma", LinearGame, {"own": 1.01}),
    ],
)
def test_constants_that_are_one_per_cent_off_are_noticed(id, model, changes, few) -> None:
    few.setattr(model, "well_behaved", altered(model.well_behaved, **changes))
    assert verdict(id) is FAILS


@pytest.mark.parametrize("id", ["definition-well-behaved", "well-behaved-pac"])
def test_a_cycle_that_is_called_well_behaved_up_to_1_is_noticed(id, few) -> None:
    decide = PacGame.well_behaved

    def blind(self, box=None):
        found = decide(self, box)
        some = np.full(3, 0.5)
        return Certified(some, some, found.witness) if isinstance(found, Refuted) else found

    few.setattr(PacGame, "well_behaved", blind)
    assert verdict(id) is FAILS


def test_a_witness_where_own_samples_do_help_is_noticed(few) -> None:
    decide = PacGame.well_behaved

    def elsewhere(self, box=None):
        found = decide(self, box)
        if isinstance(found, Refuted):
            return Refuted(found.agent, np.array([0.0, 0.5, 0.5]), found.why)
        return found

    few.setattr(PacGame, "well_behaved", elsewhere)
    assert verdict("well-behaved-pac") is FAILS


def test_coverage_needs_no_correction_if_certain_points_do_no_harm(few) -> None:
    few.setattr(well_behaved, "_sure_points", lambda: (False, 0.25))
    found = row("well-behaved-coverage").finding
    assert found.verdict is HOLDS
    assert found.measured.endswith(" Not so: on [0, 2] x [0, 2] it does not.")


def test_a_game_that_is_not_certified_is_noticed(few) -> None:
    few.setattr(
        CoverageGame, "well_behaved", lambda self, box=None: Unknown("it was not looked at")
    )
    for id in ("definition-well-behaved", "well-behaved-coverage", "fixed-point-lemma"):
        assert verdict(id) is FAILS


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_responses_that_are_not_the_least_that_satisfies_are_noticed(share, few) -> None:
    respond = Game.best_responses
    few.setattr(Game, "best_responses", lambda self, theta: share * respond(self, theta))
    assert verdict("fixed-point-lemma") is FAILS


# Theorem 2.


def test_an_equilibrium_that_is_a_thousandth_off_is_noticed(few) -> None:
    follow = existence.best_response_dynamics

    def stray(game, **options):
        path = follow(game, **options)
        return dataclasses.replace(path, contributions=path.contributions * 1.001)

    few.setattr(existence, "best_response_dynamics", stray)
    assert verdict("theorem-2") is FAILS


def test_responses_that_never_settle_are_noticed(few) -> None:
    follow = existence.best_response_dynamics

    def restless(game, **options):
        return dataclasses.replace(follow(game, **options), ending=existence.Ending.LIMIT)

    few.setattr(existence, "best_response_dynamics", restless)
    assert verdict("theorem-2") is FAILS


def test_an_equilibrium_where_limits_leave_none_is_noticed(few) -> None:
    solve = existence.solve_stable

    def hopeful(game, **options):
        return dataclasses.replace(solve(game, **options), status=Status.LIMIT)

    few.setattr(existence, "solve_stable", hopeful)
    found = row("theorem-2").finding
    assert found.verdict is FAILS
    assert found.measured.endswith(" Not so: with that limit there is none.")


# Theorem 3.


def test_a_sample_that_tells_the_predecessor_is_noticed(few) -> None:
    def backwards(agent, theta):
        return Fraction(1) if theta[agent] or theta[(agent + 1) % 3] else Fraction(1, 2)

    few.setattr(existence, "_printed_cycle", backwards)
    assert verdict("theorem-3") is FAILS


def test_a_search_that_gives_up_has_not_proved_that_none_exists(few) -> None:
    solve = existence.solve_stable

    def tired(game, **options):
        return dataclasses.replace(solve(game, **options), status=Status.FAILED)

    few.setattr(existence, "solve_stable", tired)
    assert verdict("theorem-3") is FAILS


def test_an_audit_that_finds_the_cycle_stable_is_noticed(few) -> None:
    check = existence.check

    def lenient(game, theta):
        report = check(game, theta)
        return dataclasses.replace(report, stable=report.feasible)

    few.setattr(existence, "check", lenient)
    found = row("theorem-3").finding
    assert found.verdict is FAILS
    assert found.measured.endswith(" Not so: the check agrees.")


def test_another_number_of_feasible_allocations_is_noticed() -> None:
    assert verdict("theorem-3", feasible=3) is FAILS


def test_one_giver_who_is_enough_and_two_who_are_not_are_noticed(few) -> None:
    def feasible(self, theta):
        # As many as there should be.
        return theta in {(1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1)}

    few.setattr(existence.Listing, "is_feasible", feasible)
    found = row("theorem-3").finding
    assert found.verdict is FAILS
    assert "Not so: allocations with two contributors or more" in found.measured


SMALL = {"quick": [2, 3], "solved_up_to": 2}


def test_a_small_ring_with_more_points_is_as_claimed() -> None:
    assert verdict("theorem-3-general", **SMALL) is HOLDS


def test_an_equilibrium_of_an_odd_ring_is_noticed(monkeypatch) -> None:
    def rounded(game):
        return [game.alone // 2]

    monkeypatch.setattr(existence, "all_equilibria", rounded)
    found = row("theorem-3-general", **SMALL).finding
    assert found.verdict is FAILS
    assert found.measured.endswith(" Not so: the search agrees.")


def test_a_stable_allocation_with_a_giver_of_nothing_is_noticed(monkeypatch) -> None:
    stable = existence.Listing.is_stable

    def lenient(self, theta):
        return stable(self, theta) or (0 in theta and self.is_feasible(theta))

    monkeypatch.setattr(existence.Listing, "is_stable", lenient)
    found = row("theorem-3-general", **SMALL).finding
    assert found.verdict is FAILS
    assert "no allocation in which such an agent gives nothing is stable" in found.measured


def test_a_ring_that_runs_the_other_way_is_noticed(monkeypatch) -> None:
    forwards = existence.ring_utility

    def backwards(d):
        # The sample of the next agent in place of the last one's.
        return lambda i, theta: forwards(d)(0, [theta[i], 0, theta[(i + 1) % 3]])

    monkeypatch.setattr(existence, "ring_utility", backwards)
    found = row("theorem-3-general", **SMALL).finding
    assert found.verdict is FAILS
    assert found.measured.endswith(" Not so: the printed utility is that of the construction.")


@pytest.mark.parametrize(
    ("d", "requirement", "m"), [(2, "3/4", 1), (2, "7/8", 2), (3, "7/9", 2), (3, "8/9", 4)]
)
def test_thresholds_by_hand(d, requirement, m) -> None:
    assert existence.threshold(d, Fraction(requirement)) == m
