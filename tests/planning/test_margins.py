"""The margin: the least that gives a probability, the best where none does."""

from math import erf, sqrt

import numpy as np
import pytest

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_stable
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.margins import FINE, NEAR, Aim, MarginSearch, lower_to_limits
from fedaccord.planning.selection import Equilibria

GAME = MeasuredGame(np.eye(2), [(0.05, 2.0, 10.0, 0.5)] * 2, [0.7, 0.6])
NOISE = np.array([0.01, 0.02])


def found(probability, likely, *, since=0.0, up_to=np.inf, noise=NOISE):
    """Look for a margin where z has a probability that is known, and plans are in an interval."""
    asked = []

    def aimed(z, game):
        asked.append((z, game))
        if not since <= z <= up_to:
            return None
        row = Equilibria(np.zeros((1, 2)), complete=True)
        return Aim(z, game, row, 0, np.zeros(2), likely(z))

    return MarginSearch(GAME, noise, aimed).find(probability), asked


def rising(z):
    return 0.5 * (1 + erf((z - 1) / sqrt(2)))


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.9, 0.95, 0.999])
def test_the_least_margin_that_will_do_is_found(probability):
    aim, _ = found(probability, rising)
    assert aim.everyone >= probability
    assert rising(aim.z - 2 * FINE) < probability


def test_no_margin_is_taken_where_none_is_needed():
    aim, asked = found(0.1, rising)
    assert aim.z == 0 and len(asked) == 1


def test_where_plans_end_too_soon_one_that_comes_near_the_best_is_given():
    aim, _ = found(0.95, rising, up_to=1.3)
    assert rising(1.3) - NEAR - 0.005 <= aim.everyone <= rising(1.3)
    assert rising(aim.z - 2 * FINE) < rising(1.3) - NEAR


def test_a_margin_that_hardly_adds_to_the_probability_is_not_taken():
    # From 2 on there is next to nothing to be had, however far plans go.
    aim, _ = found(0.95, lambda z: min(rising(z), rising(2) + 1e-4 * z))
    assert aim.everyone >= rising(2) - NEAR
    assert aim.z <= 2


def test_where_plans_end_just_in_time_the_least_margin_is_found_all_the_same():
    aim, _ = found(0.95, rising, up_to=2.7)
    assert aim.everyone >= 0.95 and aim.z <= 2.65 + 2 * FINE


def test_where_no_margin_helps_a_plan_is_given_all_the_same():
    aim, _ = found(0.95, lambda z: 0.4)
    assert aim is not None and aim.everyone == 0.4


@pytest.mark.parametrize(("since", "up_to"), [(0.3, np.inf), (1.7, np.inf), (2.8, 3.9), (9, 13)])
@pytest.mark.parametrize("probability", [0.1, 0.97, 0.9999])
def test_plans_that_begin_with_a_margin_are_found_and_the_least_that_will_do(
    since, up_to, probability
):
    aim, _ = found(probability, rising, since=since, up_to=up_to)
    enough = rising(up_to) >= probability
    assert aim.everyone >= (probability if enough else rising(up_to) - NEAR - 0.005)
    if enough:
        assert aim.z <= since + 2 * FINE or rising(aim.z - 2 * FINE) < probability


def test_where_there_is_no_plan_at_all_none_is_given():
    assert found(0.95, rising, up_to=-1)[0] is None


def test_everybody_aims_above_its_goal_by_the_same_multiple_of_its_own_noise():
    aim, asked = found(0.9, rising)
    for z, game in asked:
        assert game.margins == pytest.approx(z * NOISE)
        assert game.goals.tolist() == [0.7, 0.6]
    assert aim.game.requirements == pytest.approx(
        [curve.need(goal + aim.z * noise)
         for curve, goal, noise in zip(GAME.curves, GAME.goals, NOISE, strict=True)]
    )  # fmt: skip


def test_a_margin_beyond_what_a_curve_reaches_is_not_tried():
    # The first goal cannot be aimed above by more than 0.25, 25 times the noise.
    aim, asked = found(0.95, lambda z: 0.3)
    assert all((game.goals + game.margins <= 0.95 + 1e-12).all() for _, game in asked)
    assert aim.z <= 25


def test_without_noise_there_is_nothing_to_leave_room_for():
    aim, asked = found(0.95, lambda z: 0.3, noise=np.zeros(2))
    assert aim.z == 0 and len(asked) == 1


# Those who give all they can.

PAIR = MeasuredGame(
    [[1.0, 0.2], [0.5, 1.0]],
    [(0.05, 2.0, 10.0, 0.5)] * 2,
    [0.7, 0.7],
    limits=[40.0, 400.0],
)


def test_who_gives_all_it_can_aims_at_what_it_reaches():
    # The first needs 54 samples' worth for its goal alone, and has 40 and a fifth of the other's.
    lowered = lower_to_limits(PAIR, np.array([0.1, 0.1]))
    given = solve_stable(lowered).contributions
    assert given[0] == pytest.approx(40, rel=1e-6)
    assert lowered.margins[1] == 0.1 and 0 < lowered.margins[0] < 0.1
    assert lowered.accuracies(given)[0] == pytest.approx(0.7 + lowered.margins[0], abs=1e-6)
    assert check(lowered, given).stable is Answer.TRUE


def test_margins_that_all_can_reach_are_kept():
    free = PAIR.replace(limits=None)
    assert lower_to_limits(free, np.array([0.1, 0.1])).margins.tolist() == [0.1, 0.1]


def test_nobody_aims_below_its_goal():
    poor = PAIR.replace(limits=[10.0, 20.0])
    assert lower_to_limits(poor, np.array([0.1, 0.1])) is None


def test_what_no_curve_reaches_takes_all_there_is_or_is_not_aimed_at():
    lowered = lower_to_limits(PAIR, np.array([0.4, 0.4]))
    assert lowered.accuracies([40.0, 400.0]) == pytest.approx(lowered.goals + lowered.margins)
    assert lower_to_limits(PAIR.replace(limits=[40.0, None]), np.array([0.4, 0.4])) is None


def test_a_game_with_targets_lowered_to_limits_has_an_exact_equilibrium():
    # Two agents are short at their limits, and one of them relies on the other's samples.
    benefits = [[1, 0.03, 0.87], [1.12, 1, 0.08], [0.6, 0.1, 1]]
    curves = [[0.093, 120, 160, 1.1], [0.12, 18, 130, 0.88], [0.17, 14, 110, 0.8]]
    game = MeasuredGame(benefits, curves, [0.757, 0.6445, 0.5546], limits=[224, 99, 184])
    margins = np.array([0.16, 0.19, 0.16])
    lowered = lower_to_limits(game, margins)
    assert (lowered.margins < margins).sum() == 2
    assert solve_stable(lowered).status is Status.OPTIMAL
