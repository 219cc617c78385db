"""Solvers of coverage games: known answers, brute force, theorems and planted faults."""

from itertools import product

import numpy as np
import pytest
from coverage_games import (
    complete_graph,
    contributions,
    coverage_games,
    flower,
    two_agents,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from solvers import of_games

from fedaccord import solve_envy_free, solve_optimal, solve_stable
from fedaccord.check import Answer, check
from fedaccord.equilibria import coverage
from fedaccord.equilibria.coverage import scip as coverage_scip
from fedaccord.equilibria.coverage.cuts import quick_bound, smooth_bound
from fedaccord.equilibria.coverage.envy_free import equal_allocation
from fedaccord.equilibria.coverage.stable import narrow_box
from fedaccord.equilibria.coverage.sweeps import (
    contributions_of,
    has_convex_form,
    is_determined,
    regret,
    set_misses,
    sweep_responses,
    sweep_uniform,
)
from fedaccord.equilibria.coverage.symmetry import find_symmetry
from fedaccord.equilibria.general.exhaustive import all_envy_free, all_equilibria
from fedaccord.equilibria.result import Claim, Deadline, Status
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.games.coverage import CoverageGame

optimal_coverage = of_games(coverage.optimal_coverage, "optimal")
stable_coverage = of_games(coverage.stable_coverage, "stable")
envy_free_coverage = of_games(coverage.envy_free_coverage, "envy-free")

# The flower with b petals over the reals: optimal, stable, envy-free, and optimal smooth.
FLOWERS = {
    4: (2.444444444, 2.833989511, 2.775518005, 2.409420840),
    9: (3.457031250, 5.629295292, 5.300043031, 3.442474596),
    16: (4.465540741, 9.433569671, 8.848283047, 4.457525016),
    100: (10.484538021, 53.294818560, 51.203097326, 10.483283066),
}


def proved(solution, total, within=1e-6):
    """A solution claimed optimal, with the total expected and bounds around it."""
    assert solution.status is Status.OPTIMAL
    assert solution.total == pytest.approx(total, rel=within)
    assert solution.bounds.upper == pytest.approx(solution.total)
    assert solution.bounds.lower <= total * (1 + 1e-9)
    return True


def whole_allocations(game, most):
    """Every whole allocation of at most `most` each."""
    return (np.array(m, dtype=float) for m in product(range(most + 1), repeat=game.size))


# Known answers.


@pytest.mark.parametrize("petals", FLOWERS)
def test_the_flower_s_equilibrium_is_the_petals_alone(petals):
    solution = stable_coverage(flower(petals))
    assert proved(solution, FLOWERS[petals][1])
    assert solution.contributions[0] == 0
    assert np.ptp(solution.contributions[1:]) < 1e-8
    assert check(flower(petals), solution.allocation).stable is Answer.TRUE


@pytest.mark.parametrize("petals", FLOWERS)
def test_the_flower_s_envy_free_optimum_is_the_equal_allocation(petals):
    solution = envy_free_coverage(flower(petals))
    assert proved(solution, FLOWERS[petals][2])
    assert np.ptp(solution.contributions) == 0
    assert check(flower(petals), solution.allocation).envy_free is Answer.TRUE


@pytest.mark.parametrize("petals", FLOWERS)
def test_the_flower_s_optimum_is_the_core_alone(petals):
    root, r = petals**0.5, 1 - 1 / petals
    whole = np.floor(np.log(1 - 1 / root) / np.log(r))
    formula = whole + (r**whole - (1 - 1 / root)) * petals / r**whole
    assert formula == pytest.approx(FLOWERS[petals][0], abs=1e-8)
    solution = optimal_coverage(flower(petals))
    assert solution.total == pytest.approx(formula, rel=1e-7)
    assert solution.contributions[1:].max() < 1e-7
    assert FLOWERS[petals][3] <= solution.bounds.lower * (1 + 1e-6) <= formula * (1 + 1e-6)
    assert solution.status is (Status.OPTIMAL if petals <= 16 else Status.LIMIT)


@pytest.mark.parametrize("petals", FLOWERS)
def test_the_flower_s_smooth_optimum_bounds_it(petals):
    bound = smooth_bound(flower(petals), Deadline(30), upper=2.0 * petals)
    assert bound.finished
    assert bound.lower == pytest.approx(FLOWERS[petals][3], abs=1e-6)


@pytest.mark.parametrize("petals", [4, 9, 16])
def test_the_flower_over_whole_numbers(petals):
    game = flower(petals, strategies="integer")
    assert proved(optimal_coverage(game), petals**0.5 + 1)
    assert proved(stable_coverage(game), petals)
    assert proved(envy_free_coverage(game), petals)


def test_a_flower_of_ten_thousand_petals():
    game = flower(10_000)
    stable = stable_coverage(game)
    assert proved(stable, 5031.412265527, within=1e-9)
    assert stable.certificate["unique"] is True
    fair = envy_free_coverage(game)
    assert proved(fair, 5006.818652536)


def test_two_agents_have_a_curve_of_equilibria():
    game = two_agents()
    for first in np.linspace(0, 1, 11):
        second = 2 * (1 - 0.5 / (1 - first / 2))
        assert check(game, [first, second]).stable is Answer.TRUE
    assert check(game, [0.5, 0.5]).stable is Answer.FALSE
    assert proved(optimal_coverage(game), 1.0)
    assert proved(stable_coverage(game), 1.0)
    even = 2 - 2**0.5
    costliest = stable_coverage(game, select="costliest")
    assert costliest.total == pytest.approx(2 * even, abs=1e-6)
    fair = envy_free_coverage(game)
    assert proved(fair, 2 * even)
    assert fair.contributions == pytest.approx([even, even], abs=1e-9)
    one_gives = check(game, [1, 0])
    assert (one_gives.stable, one_gives.envy_free) == (Answer.TRUE, Answer.FALSE)


def test_two_agents_over_whole_numbers():
    found = all_equilibria(two_agents(strategies="integer"))
    assert sorted(map(tuple, found)) == [(0, 1), (1, 0)]


def test_the_complete_graph_is_solved_by_equal_shares():
    game = complete_graph()
    for solve in (optimal_coverage, stable_coverage, envy_free_coverage):
        solution = solve(game)
        assert proved(solution, 1.6718329411)
        assert solution.contributions == pytest.approx(np.full(6, 1.6718329411 / 6), abs=1e-5)


def test_the_complete_graph_over_whole_numbers():
    game = complete_graph(strategies="integer")
    matchings = {(1, 0, 1, 0, 0, 0), (0, 1, 0, 1, 0, 0), (0, 0, 0, 0, 1, 1)}
    stars = {(1, 0, 0, 1, 1, 0), (1, 1, 0, 0, 0, 1), (0, 1, 1, 0, 1, 0), (0, 0, 1, 1, 0, 1)}
    assert {tuple(e) for e in all_equilibria(game)} == matchings | stars
    # Among zeros and ones; doubled matchings are envy-free too.
    fair = {tuple(e) for e in all_envy_free(game, up_to=6)}
    assert {e for e in fair if max(e) == 1} == matchings | {(1,) * 6}
    assert fair - matchings - {(1,) * 6} == {tuple(2 * n for n in m) for m in matchings}
    assert proved(optimal_coverage(game), 2)
    assert proved(stable_coverage(game), 2)
    assert proved(stable_coverage(game, select="costliest"), 3)
    assert proved(envy_free_coverage(game), 2)


# Brute force.


@settings(max_examples=25)
@given(coverage_games(most_agents=3, highest=0.8, strategies="integer"))
def test_whole_numbers_agree_with_trying_everything(game):
    most = int(game.alone.max()) + 1
    feasible, stable, fair = [], [], []
    for theta in whole_allocations(game, min(most, 7)):
        found = check(game, theta)
        if found.feasible is Answer.TRUE:
            feasible.append(theta.sum())
        if found.stable is Answer.TRUE:
            stable.append(theta.sum())
        if found.envy_free is Answer.TRUE:
            fair.append(theta.sum())
    if most > 7:
        return
    # Everyone alone is feasible, so no optimum gives an agent more than that total; nor a
    # cheaper envy-free allocation more than the equal one costs. Within the box these are exact.
    optimum = optimal_coverage(game)
    assert optimum.status is Status.OPTIMAL
    assert optimum.total <= min(feasible)
    assert check(game, optimum.allocation).feasible is Answer.TRUE
    assert proved(stable_coverage(game), min(stable))
    assert proved(stable_coverage(game, select="costliest", method="exhaustive"), max(stable))
    envy_free = envy_free_coverage(game)
    assert envy_free.total <= min(fair)
    assert check(game, envy_free.allocation).envy_free is Answer.TRUE


@settings(max_examples=12)
@given(coverage_games(most_agents=3, highest=0.8, strategies="integer"), st.data())
def test_no_whole_allocation_is_below_the_optimum(game, data):
    optimum = optimal_coverage(game)
    theta = np.floor(data.draw(contributions(game.size, most=6)))
    if game.is_feasible(theta):
        assert theta.sum() >= optimum.bounds.lower - 1e-9


@settings(max_examples=15)
@given(coverage_games(highest=0.8), st.data())
def test_real_bounds_hold_for_whatever_is_drawn(game, data):
    optimum = optimal_coverage(game, method="cuts")
    assert check(game, optimum.allocation).feasible is Answer.TRUE
    assert optimum.bounds.lower <= optimum.total * (1 + 1e-9)
    theta = data.draw(contributions(game.size))
    scale = 1.0
    while not game.is_feasible(scale * theta) and scale < 100:
        scale *= 1.1
    if game.is_feasible(scale * theta):
        assert scale * theta.sum() >= optimum.bounds.lower * (1 - 1e-9)
        quick, _ = quick_bound(game, theta)
        assert quick <= scale * theta.sum() * (1 + 1e-9)
        assert quick <= optimum.total * (1 + 1e-9)


def least_pair(game, step=1e-3):
    """The least total of two agents, by walking along one and bisecting the other."""
    best = np.inf
    top = float(np.ceil(game.alone.max())) + 1
    for first in np.arange(0, top, step):
        low, high = -step, top
        if not game.is_feasible(np.array([first, high])):
            continue
        while high - low > 1e-7:
            middle = (low + high) / 2
            if middle >= 0 and game.is_feasible(np.array([first, middle])):
                high = middle
            else:
                low = middle
        best = min(best, first + max(high, 0))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_real_optima_of_two_agents_agree_with_a_walk(seed):
    rng = np.random.default_rng(seed)
    game = CoverageGame(rng.dirichlet(np.ones(3), 2), rng.uniform(0.6, 0.75, 2))
    walked = least_pair(game, step=5e-3)
    solution = optimal_coverage(game)
    assert solution.status is Status.OPTIMAL
    assert solution.bounds.lower <= walked
    assert solution.total <= walked + 1e-6
    assert walked <= solution.total + 2 * 5e-3


# Equilibria.


@settings(max_examples=20)
@given(coverage_games(highest=0.8))
def test_a_real_equilibrium_is_found_and_audited(game):
    solution = stable_coverage(game, method="sweeps")
    assert solution.status in (Status.OPTIMAL, Status.LIMIT)
    assert check(game, solution.allocation).stable is Answer.TRUE
    assert optimal_coverage(game, method="cuts").bounds.lower <= solution.total * (1 + 1e-7)
    low, high = narrow_box(game)
    assert (low <= solution.contributions + 1e-6).all()
    assert (solution.contributions <= high + 1e-6).all()


@pytest.mark.parametrize("seed", range(2))
def test_scip_finds_no_cheaper_equilibrium_than_it_says(seed):
    rng = np.random.default_rng(seed)
    game = CoverageGame(rng.dirichlet(np.ones(3), 3), rng.uniform(0.6, 0.75, 3))
    cheapest = stable_coverage(game, method="scip")
    costliest = stable_coverage(game, method="scip", select="costliest")
    swept = stable_coverage(game, method="sweeps")
    assert check(game, cheapest.allocation).stable is Answer.TRUE
    assert check(game, costliest.allocation).stable is Answer.TRUE
    assert cheapest.total <= swept.total + 1e-6
    assert swept.total <= costliest.total + 1e-6
    assert cheapest.status is costliest.status is Status.OPTIMAL


@settings(max_examples=20)
@given(coverage_games(most_agents=4, strategies="integer"), st.data())
def test_the_potential_moves_by_twice_the_slack(game, data):
    theta = np.floor(data.draw(contributions(game.size)))

    def potential(m):
        return game.copies @ game.unseen(m) + 2 * (1 - game.requirements) @ m

    for i in range(game.size):
        more = theta.copy()
        more[i] += 1
        slack = game.utilities(theta)[i] - game.requirements[i]
        assert potential(more) - potential(theta) == pytest.approx(2 * slack, abs=1e-12)


@settings(max_examples=20)
@given(coverage_games(most_agents=4, highest=0.9, strategies="integer"), st.data())
def test_whole_sweeps_end_at_an_equilibrium_from_anywhere(game, data):
    start = np.floor(data.draw(contributions(game.size)))
    swept = sweep_responses(game, start, 0.0, Deadline(10))
    assert swept.regret == 0
    assert check(game, swept.contributions).stable is Answer.TRUE


def random_sets(agents, points, size, seed):
    """Agents uniform on sets of points drawn at random."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((agents, points))
    for row in matrix:
        row[rng.choice(points, size, replace=False)] = 1 / size
    return CoverageGame(matrix, rng.uniform(0.55, 0.9, agents))


def test_the_convex_form_and_plain_best_responses_agree():
    game = random_sets(30, 60, 5, seed=0)
    convex = sweep_uniform(game, None, 1e-11, Deadline(20))
    plain = sweep_responses(game, None, 1e-11, Deadline(20))
    assert is_determined(game, convex.contributions, 1e-6)
    assert convex.contributions == pytest.approx(plain.contributions, abs=1e-7)


def test_compiled_sweeps_equal_plain_ones():
    from fedaccord.equilibria.coverage import sweeps as coverage_sweeps

    game = random_sets(150, 200, 5, seed=1)
    assert len(game.rows) > coverage_sweeps.SMALL
    whole = game.replace(strategies="integer")
    fast = [
        sweep_uniform(game, None, 1e-11, Deadline(20)),
        sweep_responses(game, None, 1e-11, Deadline(20)),
        sweep_responses(whole, None, 0.0, Deadline(20)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage_sweeps, "SMALL", 10**9)
        slow = [
            sweep_uniform(game, None, 1e-11, Deadline(20)),
            sweep_responses(game, None, 1e-11, Deadline(20)),
            sweep_responses(whole, None, 0.0, Deadline(20)),
        ]
    for one, other in zip(fast, slow, strict=True):
        assert one.contributions == pytest.approx(other.contributions, abs=1e-8)


def test_general_sweeps_handle_certain_points_compiled():
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.ones(60) * 0.3, 40)
    matrix[::8] = 0
    matrix[::8, 5] = 1
    game = CoverageGame(matrix, rng.uniform(0.55, 0.8, 40))
    swept = sweep_responses(game, None, 1e-10, Deadline(30))
    assert swept.is_close(1e-9)
    assert check(game, swept.contributions).stable is Answer.TRUE


def test_a_warm_start_ends_at_the_same_equilibrium():
    game = random_sets(40, 80, 5, seed=2)
    cold = stable_coverage(game)
    warm = stable_coverage(game, start=np.full(40, 3.0))
    assert cold.certificate["unique"] is True
    assert warm.contributions == pytest.approx(cold.contributions, abs=1e-7)


@given(st.lists(st.floats(0, 40), min_size=5, max_size=5))
def test_p_determines_theta(amounts):
    game = flower(4)
    theta = np.array(amounts)
    assert contributions_of(game, set_misses(game, theta)) == pytest.approx(theta, abs=1e-9)


def test_duplicates_are_not_called_determined():
    # Three agents on two points: rows of the incidence cannot be independent.
    game = CoverageGame([[0.5, 0.5]] * 3, [0.8] * 3)
    swept = sweep_uniform(game, None, 1e-10, Deadline(10))
    assert not is_determined(game, swept.contributions, 1e-6)
    solution = stable_coverage(game, method="sweeps")
    assert "unique" not in solution.certificate
    # A cycle of three edges is independent, without any point of one agent alone.
    cycle = CoverageGame([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]], [0.7] * 3)
    swept = sweep_uniform(cycle, None, 1e-10, Deadline(10))
    assert is_determined(cycle, swept.contributions, 1e-6)
    # A cycle of four is not: alternating changes leave every point as it was.
    square = np.eye(4) / 2 + np.roll(np.eye(4), 1, axis=1) / 2
    four = CoverageGame(square, [0.7] * 4)
    swept = sweep_uniform(four, None, 1e-10, Deadline(10))
    assert not is_determined(four, swept.contributions, 1e-6)


def test_bounds_over_all_equilibria_hold_on_the_square():
    square = np.eye(4) / 2 + np.roll(np.eye(4), 1, axis=1) / 2
    game = CoverageGame(square, [0.7] * 4)
    cheapest = stable_coverage(game)
    costliest = stable_coverage(game, select="costliest")
    swept = sweep_uniform(game, None, 1e-10, Deadline(10)).contributions
    logs = -np.log(set_misses(game, swept))
    for shift in np.linspace(-1, 1, 9) * logs.min():
        other = contributions_of(game, np.exp(-(logs + shift * np.array([1, -1, 1, -1]))))
        assert check(game, other).stable is Answer.TRUE
        assert cheapest.bounds.lower - 1e-9 <= other.sum() <= costliest.bounds.upper + 1e-9


# Limits.


def test_a_game_beyond_its_limits_is_infeasible():
    game = two_agents(limits=[0.1, 0.2])
    for solve in (solve_optimal, solve_stable, solve_envy_free):
        assert solve(game).status is Status.INFEASIBLE


def test_limits_can_leave_no_equilibrium():
    # Agent 0 may not give what it needs alone; agent 1 could help, and has no reason to.
    rows = [[0.5, 0.5, 0], [0.5, 0, 0.5]]
    game = CoverageGame(rows, [0.8, 0.5], limits=[1.0, None])
    assert has_convex_form(game)
    assert stable_coverage(game).status is Status.NONE_EXISTS
    uneven = CoverageGame([[0.5, 0.25, 0.25], [0.5, 0, 0.5]], [0.8, 0.5], limits=[1.0, None])
    assert not has_convex_form(uneven)
    assert stable_coverage(uneven).status is Status.NONE_EXISTS
    assert optimal_coverage(game).contributions[1] > 0


def test_limits_that_bind_and_minimums_are_kept():
    game = flower(4, limits=[None, 0.5, None, None, None], minimums=[0.2, 0, 0, 0, 0])
    optimum = optimal_coverage(game)
    assert check(game, optimum.allocation).feasible is Answer.TRUE
    assert optimum.contributions[0] >= 0.2
    fair = envy_free_coverage(game, method="bounds")
    assert check(game, fair.allocation).envy_free is Answer.TRUE
    met = two_agents(limits=[0.4, None])
    stable = stable_coverage(met)
    assert check(met, stable.allocation).stable is Answer.TRUE


def test_costs_choose_among_equilibria():
    cheap_first = stable_coverage(two_agents(costs=[1, 3]))
    assert cheap_first.contributions == pytest.approx([1, 0], abs=1e-6)
    assert proved(cheap_first, 1.0)
    cheap_second = stable_coverage(two_agents(costs=[3, 1]))
    assert cheap_second.contributions == pytest.approx([0, 1], abs=1e-6)


# Envy.


@settings(max_examples=15)
@given(coverage_games(most_agents=3, highest=0.75), st.data())
def test_bounds_on_envy_free_totals_hold_for_whatever_is_drawn(game, data):
    solution = envy_free_coverage(game, method="bounds", deadline=Deadline(1.0))
    assert check(game, solution.allocation).envy_free is Answer.TRUE
    theta = data.draw(contributions(game.size))
    if check(game, theta).envy_free is Answer.TRUE:
        assert theta.sum() >= solution.bounds.lower * (1 - 1e-6)


@settings(max_examples=30)
@given(coverage_games(most_agents=4, highest=0.75, strategies="integer"))
def test_what_symmetry_forces_holds_in_every_whole_envy_free_allocation(game):
    symmetry = find_symmetry(game)
    for theta in whole_allocations(game, 2):
        if check(game, theta).envy_free is Answer.TRUE:
            for members in symmetry.members:
                assert np.ptp(theta[members]) == 0
            for a, b in symmetry.orders:
                first, second = symmetry.members[a][0], symmetry.members[b][0]
                assert theta[first] <= theta[second]


def test_the_flower_has_two_classes_and_the_core_gives_no_more():
    symmetry = find_symmetry(flower(16))
    assert [len(m) for m in symmetry.members] == [1, 16]
    assert symmetry.orders == ((0, 1),)
    # A petal with a requirement of its own is no twin.
    game = flower(16)
    other = game.requirements.copy()
    other[5] += 0.01
    assert len(find_symmetry(game.replace(requirements=other)).members) > 2


def test_the_equal_allocation_is_the_least_level():
    game = complete_graph()
    level = equal_allocation(game)
    assert np.ptp(level) == 0
    assert game.is_feasible(level)
    assert not game.is_feasible(level * (1 - 1e-9))
    whole = equal_allocation(complete_graph(strategies="integer"))
    assert (whole == 1).all()
    easy = CoverageGame([[0.5, 0.5]], [0.4])
    assert (equal_allocation(easy) == 0).all()


# Options, and faults planted on purpose.


def test_unknown_options_are_refused():
    with pytest.raises(InputError, match=r"method must be one of auto, .*, cuts, scip"):
        solve_optimal(two_agents(), method="magic")
    with pytest.raises(InputError, match="cheapest"):
        solve_stable(two_agents(), select="dearest")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="exhaustive"):
        solve_envy_free(two_agents(), method="magic")


def test_without_scip_the_bounds_stand_and_asking_for_it_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    assert not coverage_scip.is_available()
    bounded = optimal_coverage(flower(4))
    assert bounded.status is Status.LIMIT
    assert bounded.bounds.lower == pytest.approx(FLOWERS[4][3], abs=1e-6)
    with pytest.raises(MissingExtraError, match=r"fedaccord\[solvers\]"):
        optimal_coverage(flower(4), method="scip")


def test_a_wrong_bound_is_not_called_optimal():
    game = two_agents()
    claim = Claim(game, "optimal", 1e-6, Deadline(1))
    even = np.full(2, 2 - 2**0.5)
    assert claim.bounded("planted", 1.0, even).status is Status.LIMIT
    assert claim.bounded("planted", even.sum(), even).status is Status.OPTIMAL


def test_regret_sees_an_agent_that_could_give_less():
    game = flower(4)
    theta = stable_coverage(game).contributions.copy()
    assert regret(game, theta) < 1e-8
    theta[0] += 0.01
    assert regret(game, theta) == pytest.approx(0.01, abs=1e-3)


def test_the_time_limit_is_kept():
    game = random_sets(40, 60, 5, seed=4)
    solution = optimal_coverage(game, deadline=Deadline(0.0))
    assert solution.status is Status.LIMIT
    assert solution.bounds.lower <= solution.total
    assert stable_coverage(game, deadline=Deadline(0.0)).status in (Status.FAILED, Status.OPTIMAL)
