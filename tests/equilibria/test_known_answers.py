"""Every answer that is known in advance: from the paper, or by hand beside it.

The numbers stand here as numbers, apart from the closed forms of the catalogue. Totals are met to
1e-6, whole numbers exactly; where a solver proves only an interval, it must hold the known total,
and the allocation found must attain it.
"""

import json
import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from commands import run, write

from fedaccord.check import Answer, check
from fedaccord.equilibria.coverage.cuts import smooth_bound
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.equilibria.economics import support_payments
from fedaccord.equilibria.general.exhaustive import all_envy_free, all_equilibria
from fedaccord.equilibria.general.stable import small_real_equilibria
from fedaccord.equilibria.result import Deadline, Status
from fedaccord.equilibria.solve import (
    price_of_fairness,
    price_of_stability,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.equilibria.structure import (
    core_set,
    everyone_must_contribute,
    is_diagonally_dominant,
    strictly_dominant_own_benefits,
)
from fedaccord.errors import InputError
from fedaccord.games import catalog

EXACT = 1e-6


@pytest.fixture
def solve(tmp_path):
    """Solve a game of the catalogue on the command line and give its JSON."""

    def through_the_command_line(name, *concepts, **parameters):
        chosen = [w for k, v in parameters.items() for w in ("--parameter", f"{k}={v}")]
        printed = run("catalog", name, *chosen)
        assert printed.code == 0, printed.stderr
        path = write(tmp_path / "game.json", printed.stdout)
        asked = [word for concept in concepts for word in ("--concept", concept)]
        solved = run("solve", path, *asked, "--json", "--time-limit", "30")
        assert solved.stdout, solved.stderr
        return json.loads(solved.stdout)

    return through_the_command_line


def assert_total(answer, total, *, proved=True, tolerance=EXACT):
    """Insist that the total is met, and that the bounds hold it; proved: that they are tight."""
    assert answer["total"] == pytest.approx(total, rel=tolerance)
    assert answer["lower_bound"] <= total * (1 + tolerance)
    assert answer["upper_bound"] >= total * (1 - tolerance)
    assert answer["upper_bound"] == pytest.approx(total, rel=tolerance)
    if proved:
        assert answer["status"] == "optimal"
        assert answer["lower_bound"] == pytest.approx(total, rel=2 * tolerance)


def assert_totals(answers, optimal, stable, envy_free, **options):
    found = answers["solutions"]
    assert_total(found["optimal"], optimal, **options)
    assert_total(found["stable"], stable, **options)
    assert_total(found["envy-free"], envy_free, **options)
    assert found["optimal"]["audit"]["feasible"] is True
    assert found["stable"]["audit"]["stable"] is True
    assert found["envy-free"]["audit"]["envy_free"] == "true"


def assert_solution(solution, total, *, tolerance=EXACT):
    assert_total(
        solution.to_dict(), total, proved=solution.status is Status.OPTIMAL, tolerance=tolerance
    )


def test_the_check_of_totals_objects_to_a_wrong_one():
    right = {"total": 2.0, "lower_bound": 2.0, "upper_bound": 2.0, "status": "optimal"}
    assert_total(right, 2.0)
    for wrong in (
        {"total": 2.00001},
        {"total": 1.99999},
        {"lower_bound": 2.00001},
        {"upper_bound": 1.99999},
        {"upper_bound": 2.1},
        {"lower_bound": 1.9},
        {"status": "limit"},
    ):
        with pytest.raises(AssertionError):
            assert_total({**right, **wrong}, 2.0)


# The flower with linear utilities: Theorem 4 and Appendix E.

LINEAR_FLOWER = [
    (4, 2, 8 / 3, 2.5),
    (9, 3, 27 / 5, 5.0),
    (16, 4, 9.142857143, 8.5),
    (100, 10, 52.631578947, 50.5),
]


@pytest.mark.parametrize(("petals", "optimal", "stable", "envy_free"), LINEAR_FLOWER)
def test_the_linear_flower(petals, optimal, stable, envy_free, solve):
    answers = solve("flower", petals=petals)
    assert_totals(answers, optimal, stable, envy_free)
    root = math.isqrt(petals)
    found = answers["solutions"]
    core_only = [root] + [0] * petals
    assert found["optimal"]["contributions"] == pytest.approx(core_only, abs=1e-6)
    petals_only = [0] + [1 / (2 - 1 / root)] * petals
    assert found["stable"]["contributions"] == pytest.approx(petals_only, abs=1e-6)
    for price, expected in (
        ("price_of_stability", petals / (2 * root - 1)),
        ("price_of_fairness", (petals + 1) / (2 * root)),
    ):
        assert answers[price]["lower"] == pytest.approx(expected, rel=1e-5)
        assert answers[price]["upper"] == pytest.approx(expected, rel=1e-5)


def test_all_halves_are_envy_free_on_the_linear_flower():
    game = catalog.build("flower", petals=16)
    assert check(game, [0.5] * 17).envy_free is Answer.TRUE
    assert check(game, [0.49] * 17).envy_free is Answer.FALSE


def test_simultaneous_best_response_on_the_flower_cycles_and_other_orders_settle():
    game = catalog.build("flower", petals=16)
    together = best_response_dynamics(game, order="simultaneous")
    assert together.ending is Ending.CYCLED
    assert together.period == 2
    assert np.array_equal(together.contributions[1], np.ones(17))
    assert np.array_equal(together.contributions[2], np.zeros(17))
    for options in ({"order": "sequential"}, {"order": "simultaneous", "damping": 0.5}):
        path = best_response_dynamics(game, **options)
        assert path.ending is Ending.CONVERGED
        assert path.last.sum() == pytest.approx(9.142857143, rel=1e-6)


@pytest.mark.parametrize("petals", [4, 16, 100])
def test_the_least_payment_that_stabilises_the_flowers_optimum(petals):
    # The core alone would stop at 1, so it is paid for all it gives beyond that.
    payments = support_payments(solve_optimal(catalog.build("flower", petals=petals)))
    assert payments.total == pytest.approx(math.isqrt(petals) - 1, abs=1e-6)
    assert payments.per_agent[0] == pytest.approx(payments.total)


# The flower with random coverage.

COVERAGE_FLOWER = [
    (4, 2.444444444, 2.833989511, 2.775518005, 2.409420840),
    (9, 3.457031250, 5.629295292, 5.300043031, 3.442474596),
    (16, 4.465540741, 9.433569671, 8.848283047, 4.457525016),
]


@pytest.mark.parametrize(("petals", "optimal", "stable", "envy_free", "smooth"), COVERAGE_FLOWER)
def test_the_coverage_flower(petals, optimal, stable, envy_free, smooth, solve):
    answers = solve("flower", model="coverage", petals=petals)
    assert_totals(answers, optimal, stable, envy_free)
    assert answers["solutions"]["stable"]["contributions"][0] == 0
    game = catalog.build("flower", model="coverage", petals=petals)
    bound = smooth_bound(game, Deadline(20.0), upper=petals).lower
    assert bound <= smooth * (1 + 1e-9)
    assert bound == pytest.approx(smooth, rel=1e-6)
    pos, pof = answers["price_of_stability"], answers["price_of_fairness"]
    assert pos["lower"] * (1 - EXACT) <= stable / optimal <= pos["upper"] * (1 + EXACT)
    assert pof["lower"] * (1 - EXACT) <= envy_free / optimal <= pof["upper"] * (1 + EXACT)


def test_the_coverage_flower_with_a_hundred_petals():
    game = catalog.build("flower", model="coverage", petals=100)
    optimal = solve_optimal(game, time_limit=20)
    assert optimal.bounds.lower >= 10.483283066 * (1 - EXACT)
    assert_solution(optimal, 10.484538021)
    assert_solution(solve_stable(game), 53.294818560)
    assert_solution(solve_envy_free(game, time_limit=20), 51.203097326)


@pytest.mark.slow
def test_the_coverage_flower_with_ten_thousand_petals():
    game = catalog.build("flower", model="coverage", petals=10_000)
    optimal = solve_optimal(game)
    assert optimal.bounds.lower >= 100.498333283 * (1 - EXACT)
    assert_solution(optimal, 100.498345784)
    assert_solution(solve_stable(game), 5031.412265527)
    # The lower bound of the envy-free total is proved to about 1e-5 at this size.
    envy_free = solve_envy_free(game)
    assert envy_free.total == pytest.approx(5006.818652536, rel=EXACT)
    assert envy_free.bounds.lower <= 5006.818652536
    assert check(game, envy_free.allocation).envy_free is Answer.TRUE


@pytest.mark.parametrize("petals", [4, 9, 16])
def test_the_coverage_flower_over_integers(petals, solve):
    answers = solve("flower", model="coverage", petals=petals, strategies="integer")
    found = answers["solutions"]
    assert [found[c]["total"] for c in ("optimal", "stable", "envy-free")] == [
        math.isqrt(petals) + 1,
        petals,
        petals,
    ]
    assert {found[c]["status"] for c in found} == {"optimal"}


@pytest.mark.parametrize("petals", [4, 9, 16])
def test_the_linear_flower_over_integers(petals, solve):
    found = solve("flower", petals=petals, strategies="integer")["solutions"]
    assert [found[c]["total"] for c in ("optimal", "stable", "envy-free")] == [
        math.isqrt(petals),
        petals,
        petals + 1,
    ]


def test_totals_over_reals_and_integers_are_never_compared():
    # The real equilibrium of four petals, 2.834, is cheaper than the integer optimum, 3.
    real = catalog.build("flower", model="coverage", petals=4)
    whole = real.replace(strategies="integer")
    stable, optimal = solve_stable(real), solve_optimal(whole)
    assert stable.total < optimal.total
    with pytest.raises(InputError, match="real and integer"):
        price_of_stability(stable, optimal)


@pytest.mark.parametrize("model", ["linear", "coverage"])
def test_the_prices_grow_as_the_root_of_the_size(model):
    few, many = (catalog.answers("flower", model=model, petals=b) for b in (10_000, 90_000))
    for concept in ("stable", "envy_free"):
        ratio = (getattr(many, concept) / many.optimal) / (getattr(few, concept) / few.optimal)
        assert math.log(ratio) / math.log(9) == pytest.approx(0.5, abs=0.01)


# Two agents uniform on two points: Theorem 7.


def test_two_agents(solve):
    assert_totals(solve("two-agents"), 1, 1, 4 - 2 * math.sqrt(2))


def test_two_agents_have_the_papers_utilities_between_their_equilibria():
    game = catalog.build("two-agents")
    for alpha in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
        expected = 0.75 - alpha * (1 - alpha) / 8
        assert game.utilities(np.array([alpha, 1 - alpha])) == pytest.approx([expected] * 2)


def test_the_equilibria_of_two_agents_are_a_curve():
    game = catalog.build("two-agents")
    for first in (0.0, 0.2, 2 - math.sqrt(2), 0.8, 1.0):
        second = 2 * (1 - 0.5 / (1 - first / 2))
        on_the_curve = check(game, [first, second])
        assert on_the_curve.stable is Answer.TRUE
        even = abs(first - second) < 1e-9
        assert (on_the_curve.envy_free is Answer.TRUE) == even
        for off in (0.999, 1.001):
            assert check(game, [first * off, second * off]).stable is Answer.FALSE
    assert check(game, [1, 0]).stable is Answer.TRUE
    assert check(game, [1, 0]).envy == ((0, 1),)


def test_the_integer_equilibria_of_two_agents():
    game = catalog.build("two-agents", strategies="integer")
    assert {tuple(e) for e in all_equilibria(game)} == {(1, 0), (0, 1)}


# The complete graph on four vertices: Theorem 8.

MATCHINGS = {(1, 0, 1, 0, 0, 0), (0, 1, 0, 1, 0, 0), (0, 0, 0, 0, 1, 1)}


def exact(game, agent, contributions):
    return game.exact_utility(agent, [Fraction(c) for c in contributions])


def test_the_matching_on_k4_has_the_papers_utilities():
    game = catalog.build("k4")
    matching = [1, 0, 1, 0, 0, 0]
    assert [exact(game, i, matching) for i in range(6)] == [
        Fraction(2, 3) if given else Fraction(11, 18) for given in matching
    ]
    swapped = [0, 1, 1, 0, 0, 0]
    assert exact(game, 0, swapped) == Fraction(5, 9)
    assert check(game, matching).envy_free is Answer.TRUE


def test_a_mixture_of_two_matchings_on_k4_is_envious():
    game = catalog.build("k4")
    mixed = [Fraction(9, 10), Fraction(1, 10)] * 2 + [Fraction(0)] * 2
    assert exact(game, 1, mixed) == Fraction(46, 75)
    swapped = list(mixed)
    swapped[1], swapped[5] = swapped[5], swapped[1]
    assert exact(game, 1, swapped) == Fraction(1087, 1800)
    found = check(game, [float(m) for m in mixed])
    # Edges 2 and 4, counted from 1, envy 5 and 6; nobody else envies anybody.
    assert set(found.envy) == {(1, 4), (1, 5), (3, 4), (3, 5)}
    assert found.envy_free is Answer.FALSE
    assert found.feasible is Answer.TRUE


def test_k4_over_integers():
    game = catalog.build("k4", strategies="integer")
    assert solve_optimal(game).total == 2
    stars = {
        tuple(int(vertex in edge) for edge in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)])
        for vertex in range(4)
    }
    assert {tuple(e) for e in all_equilibria(game)} == MATCHINGS | stars
    # Twice a matching: after a swap the giver has one end left, 1 - (1 + 4/9 + 1)/6 = 16/27.
    twice = {tuple(2 * given for given in matching) for matching in MATCHINGS}
    envy_free = {tuple(e) for e in all_envy_free(game, up_to=6)}
    assert envy_free == MATCHINGS | twice | {(1,) * 6}
    assert solve_envy_free(game).total == 2


def test_k4_over_reals(solve):
    answers = solve("k4")
    assert_totals(answers, 1.6718329411, 1.6718329411, 1.6718329411)
    stable = answers["solutions"]["stable"]["contributions"]
    assert stable == pytest.approx([1.6718329411 / 6] * 6, rel=1e-6)


# The cycle without an equilibrium: Theorem 3.


def test_the_simple_cycle(solve):
    answers = solve("pac-cycle")
    found = answers["solutions"]
    assert found["optimal"]["total"] == 2
    assert found["envy-free"]["contributions"] == [1, 1, 1]
    assert found["stable"]["status"] == "none-exists"
    assert found["stable"]["contributions"] is None
    assert answers["price_of_fairness"] == pytest.approx({"lower": 1.5, "upper": 1.5})
    assert answers["price_of_stability"] == {"lower": None, "upper": None}


def test_the_simple_cycles_sets():
    game = catalog.build("pac-cycle")
    feasible = {t for t in product((0, 1), repeat=3) if game.is_feasible(np.array(t, float))}
    assert feasible == {(1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)}
    assert all_equilibria(game) == []
    assert [tuple(e) for e in all_envy_free(game, up_to=3)] == [(1, 1, 1)]
    for theta in product((0, 1), repeat=3):
        assert check(game, theta).stable is Answer.FALSE


def test_the_cycle_over_the_unit_cube_has_no_equilibrium_but_nearly_one(solve):
    found = solve("pac-cycle", strategies="real")["solutions"]
    assert found["stable"]["status"] == "none-exists"
    assert_total(found["optimal"], 2, proved=False)
    assert_total(found["envy-free"], 3, proved=False)
    assert found["optimal"]["audit"]["feasible"] is True
    assert found["envy-free"]["audit"]["envy_free"] == "true"
    game = catalog.build("pac-cycle", strategies="real")
    for epsilon in (0.1, 0.001, 1e-5):
        theta = np.full(3, 1 - epsilon)
        assert np.abs(game.best_responses(theta) - theta).max() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("requirement", ["0.6", "3/4", "7/8", "0.995"])
def test_below_certainty_the_cycle_has_one_equilibrium(requirement):
    game = catalog.build("pac-cycle", strategies="real", requirement=requirement)
    expected = 1 - math.sqrt(2 * (1 - float(Fraction(requirement))))
    enclosed = small_real_equilibria(game)
    assert enclosed.complete
    assert len(enclosed.found) == 1
    stable = solve_stable(game)
    assert stable.contributions == pytest.approx([expected] * 3, abs=1e-6)
    assert_total(stable.to_dict(), 3 * expected)


CYCLES = [(d, m) for d in (2, 3) for m in (1, 2)] + [
    (d, m) for d in (4, 5, 7, 10) for m in (1, 2, 3, 6, 7)
]


@pytest.mark.parametrize(("d", "m"), CYCLES)
def test_the_general_cycle_at_exact_thresholds(d, m):
    requirement = 1 - (1 - Fraction(1, d)) ** m / 2
    game = catalog.build("pac-cycle", d=d, requirement=str(requirement))
    assert game.alone.tolist() == [m] * 3
    stable = solve_stable(game)
    if m % 2:
        assert stable.status is Status.NONE_EXISTS
        assert all_equilibria(game) == []
    else:
        assert [tuple(e) for e in all_equilibria(game)] == [(m / 2,) * 3]
        assert stable.total == 3 * m / 2
    assert solve_optimal(game).total == math.ceil(3 * m / 2)
    assert solve_envy_free(game).total == 3 * math.ceil(m / 2)


def test_logarithms_would_miss_exact_thresholds():
    # Why the thresholds are computed in Fractions.
    wrong = 0
    for d, m in product(range(2, 12), range(1, 9)):
        requirement = float(1 - (1 - Fraction(1, d)) ** m / 2)
        wrong += math.ceil(math.log(2 * (1 - requirement)) / math.log(1 - 1 / d)) != m
    assert wrong > 0


# Small linear games.


def test_a_continuum_of_equilibria_with_different_totals(solve):
    assert_totals(solve("continuum"), math.sqrt(2), math.sqrt(2), math.sqrt(2))
    game = catalog.build("continuum")
    for share in (0.0, 0.3, 1.0):
        theta = share * np.array([1, 1, 0]) + (1 - share) * np.array([0, 0, math.sqrt(2)])
        assert check(game, theta).stable is Answer.TRUE
    assert check(game, [1, 0, 0]).stable is Answer.FALSE
    assert solve_stable(game, select="costliest").total == pytest.approx(2, rel=EXACT)


def test_an_overlap_lets_two_do_the_work(solve):
    found = solve("overlap", "optimal", "stable")["solutions"]
    assert_total(found["optimal"], 10 / 7)
    assert_total(found["stable"], 5 / 3)
    assert found["optimal"]["contributions"] == pytest.approx([10 / 7, 0, 0], abs=1e-6)
    assert found["stable"]["contributions"] == pytest.approx([0, 5 / 6, 5 / 6], abs=1e-6)
    core = core_set(solve_stable(catalog.build("overlap")))
    assert core.agents.tolist() == [1, 2]
    assert core.applies and core.socially_optimal


def test_unequal_requirements_refute_the_corollary(solve):
    found = solve("unequal", "optimal", "stable")["solutions"]
    assert_total(found["optimal"], 19 / 7)
    assert_total(found["stable"], 3)
    assert found["stable"]["contributions"] == pytest.approx([1, 1, 1], abs=1e-6)
    core = core_set(solve_stable(catalog.build("unequal")))
    assert core.agents.tolist() == [0, 1, 2]
    assert not core.applies and not core.socially_optimal


def test_a_dominant_diagonal_needs_to_be_of_ones(solve):
    answers = solve("dominant-diagonal", "optimal", "stable")
    assert answers["price_of_stability"]["lower"] == pytest.approx(1.8, rel=1e-5)
    assert answers["price_of_stability"]["upper"] == pytest.approx(1.8, rel=1e-5)
    game = catalog.build("dominant-diagonal")
    assert is_diagonally_dominant(game)
    assert not everyone_must_contribute(game)


def test_indefinite_benefits_have_equilibria_of_different_totals(solve):
    assert_totals(solve("indefinite"), 1, 1, 1.5)
    game = catalog.build("indefinite")
    assert check(game, [0, 1, 0]).stable is Answer.TRUE
    assert check(game, [1, 0, 1]).stable is Answer.TRUE
    assert solve_stable(game, select="costliest").total == pytest.approx(2, rel=EXACT)


def test_the_linear_cycle(solve):
    answers = solve("cyclic")
    assert_totals(answers, 1.5, 1.5, 1.5)
    assert answers["solutions"]["stable"]["contributions"] == pytest.approx([0.5] * 3, abs=1e-6)
    game = catalog.build("cyclic")
    assert best_response_dynamics(game, order="sequential").ending is Ending.CYCLED
    damped = best_response_dynamics(game, order="sequential", damping=0.5)
    assert damped.ending is Ending.CONVERGED
    assert damped.last == pytest.approx([0.5] * 3, abs=1e-6)
    whole = solve("cyclic", strategies="integer")["solutions"]
    assert whole["stable"]["status"] == "none-exists"
    assert whole["optimal"]["total"] == 2
    assert whole["envy-free"]["total"] == 3


def test_twins_split_the_work_as_they_like_but_only_evenly_without_envy(solve):
    answers = solve("twins")
    assert_totals(answers, 1, 1, 1)
    assert answers["solutions"]["envy-free"]["contributions"] == pytest.approx([0.5, 0.5])
    game = catalog.build("twins")
    for first in (0, 0.25, 0.5, 0.75, 1):
        found = check(game, [first, 1 - first])
        assert found.stable is Answer.TRUE
        assert found.envy_free is (Answer.TRUE if first == 0.5 else Answer.FALSE)


def test_a_stable_equilibrium_of_random_discovery_may_be_envious(solve):
    answers = solve("envious-equilibrium")
    assert_totals(answers, 5 / 6, 0.9615384615, 25 / 28)
    stable = answers["solutions"]["stable"]
    assert stable["contributions"] == pytest.approx([0.9615384615, 0], abs=1e-6)
    assert stable["audit"]["stable"] is True
    assert stable["audit"]["envy"] == [[0, 1]]
    assert not strictly_dominant_own_benefits(catalog.build("envious-equilibrium"))


def test_the_star(solve):
    answers = solve("star")
    assert_totals(answers, 2, 4, 10 / 3)
    envy_free = answers["solutions"]["envy-free"]["contributions"]
    assert envy_free == pytest.approx([2 / 3] * 5, rel=1e-6)
    # At 2, where closing the envy-free set would stop, the hub is indifferent, and that is envy.
    at_the_optimum = check(catalog.build("star"), [2, 0, 0, 0, 0])
    assert at_the_optimum.feasible is Answer.TRUE
    assert at_the_optimum.envy == ((0, 1), (0, 2), (0, 3), (0, 4))


def test_an_infimum_that_is_not_attained(solve):
    answers = solve("not-attained")
    found = answers["solutions"]
    assert_total(found["optimal"], 2.5)
    assert_total(found["stable"], 3.125)
    envy_free = found["envy-free"]
    assert envy_free["status"] == "not-attained"
    assert envy_free["lower_bound"] == pytest.approx(3, rel=EXACT)
    assert 3 < envy_free["total"] < 3.001
    assert envy_free["audit"]["envy_free"] == "true"
    assert answers["price_of_fairness"]["lower"] == pytest.approx(1.2, rel=1e-5)


# Sunflowers: beside the paper, by symmetry.


@pytest.mark.parametrize(
    ("name", "optimal", "stable"),
    [
        ("sunflower", 2, 8 / 3),
        ("sunflower-without-core", 8 / 3, 8 / 3),
        ("flower-and-bud", 2, 2),
        ("common-core", 5 / 3, 5 / 3),
    ],
)
def test_sunflowers(name, optimal, stable, solve):
    found = solve(name, "optimal", "stable")["solutions"]
    assert_total(found["optimal"], optimal)
    assert_total(found["stable"], stable)


def test_sunflowers_of_many_shapes_meet_their_closed_forms():
    for petals, shared, own in combinations((3, 4, 5, 7), 3):
        for name in ("sunflower", "sunflower-without-core", "flower-and-bud"):
            shape = {"petals": petals, "shared": shared, "own": own}
            game = catalog.build(name, **shape)
            known = catalog.answers(name, **shape)
            assert_solution(solve_optimal(game), known.optimal)
            assert_solution(solve_stable(game), known.stable)
            spread = catalog.build(name, model="coverage", **shape)
            spread_known = catalog.answers(name, model="coverage", **shape).stable
            if spread_known is not None:
                assert_solution(solve_stable(spread), spread_known)


def test_the_price_of_fairness_of_two_agents():
    game = catalog.build("two-agents")
    price = price_of_fairness(solve_envy_free(game), solve_optimal(game))
    assert price.lower == pytest.approx(4 - 2 * math.sqrt(2), rel=1e-5)
