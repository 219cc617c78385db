"""Each concept of a game is solved once, and best responses are computed once for an audit."""

import pytest

from fedaccord import LinearGame, check, solve_envy_free, solve_optimal, solve_stable
from fedaccord.equilibria import solve
from fedaccord.equilibria.result import CONCEPTS
from fedaccord.equilibria.solve import solve_all, solve_envy_free_given
from fedaccord.games.base import Game

HOSPITALS = LinearGame(
    [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]],
    [1440, 1440, 930],
    agents=["University", "City", "Rural"],
)


@pytest.fixture
def solves(monkeypatch):
    """Count the calls of the solvers of the optimum and of the equilibrium."""
    calls = []
    for solver in (solve_optimal, solve_stable):

        def counted(*given, solver=solver, **options):
            calls.append(solver.__name__)
            return solver(*given, **options)

        monkeypatch.setattr(solve, solver.__name__, counted)
    return calls


def test_each_concept_is_solved_once(solves):
    solved = solve_all(HOSPITALS)
    assert sorted(solves) == ["solve_optimal", "solve_stable"]
    assert [*solved.solutions] == [*CONCEPTS] == [*solved.checks]


def test_an_envy_free_plan_alone_still_needs_the_other_two(solves):
    solve_all(HOSPITALS, concepts=["envy-free"])
    assert sorted(solves) == ["solve_optimal", "solve_stable"]


def test_known_solutions_do_not_change_the_answer():
    known = [solve_optimal(HOSPITALS), solve_stable(HOSPITALS)]
    alone, helped = solve_envy_free(HOSPITALS), solve_envy_free_given(known, HOSPITALS)
    assert helped.total == pytest.approx(alone.total, rel=1e-12)
    assert helped.status is alone.status


def test_solutions_of_another_game_are_not_taken_for_known(solves):
    other = LinearGame([[1.0]], [1.0])
    known = [solve_optimal(other), solve_stable(other)]
    solution = solve_envy_free_given(known, HOSPITALS)
    assert sorted(solves) == ["solve_optimal", "solve_stable"]
    assert solution.total == pytest.approx(1993.4210526)


def test_prices_need_both_of_their_solutions():
    some = solve_all(HOSPITALS, concepts=["optimal", "stable"])
    assert 2100 / 1931.25 in some.price_of_stability
    assert some.price_of_fairness is None
    assert solve_all(HOSPITALS, concepts=["stable"]).prices == {
        "price_of_stability": None,
        "price_of_fairness": None,
    }


def test_an_audit_computes_best_responses_once(monkeypatch):
    calls = []
    plain = Game.best_responses

    def counted(game, contributions):
        calls.append(1)
        return plain(game, contributions)

    monkeypatch.setattr(Game, "best_responses", counted)
    check(HOSPITALS, [300, 1200, 600])
    assert len(calls) == 1
