"""Learning curves: what they say, backwards and forwards."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedaccord.errors import InputError
from fedaccord.games.measured import LearningCurve, find_needs, predict_accuracies, read_curves

curves = st.builds(
    LearningCurve,
    floor=st.floats(0, 0.5),
    height=st.floats(0.1, 20),
    head=st.floats(0, 1000),
    pace=st.floats(0.1, 2),
)


def test_known_values() -> None:
    curve = LearningCurve(floor=0.1, height=2, head=100, pace=0.5)
    # 1 - 0.1 - 2 / sqrt(400) = 0.8
    assert curve.accuracy(300) == pytest.approx(0.8)
    assert curve.need(0.8) == pytest.approx(300)
    assert curve.best == pytest.approx(0.9)
    assert curve.accuracy([0, 300, math.inf]) == pytest.approx([0.7, 0.8, 0.9])


def test_a_goal_that_is_reached_at_once_needs_nothing() -> None:
    curve = LearningCurve(0.1, 2, 100, 0.5)
    assert curve.need(0.7) == pytest.approx(0, abs=1e-9)
    assert curve.need(0.5) == 0
    assert LearningCurve(0.1, 2, 0, 0.5).need(0.0) == 0


def test_a_goal_at_or_above_the_best_needs_more_than_there_is() -> None:
    curve = LearningCurve(0.25, 2, 100, 0.5)
    assert curve.need([0.75, 0.8, 1.0]).tolist() == [math.inf] * 3
    assert math.isfinite(curve.need(0.7499))


def test_accuracies_are_never_below_nothing() -> None:
    curve = LearningCurve(0.1, 50, 0, 0.5)
    assert curve.accuracy([0, 1, 100]).tolist() == [0, 0, 0]


@example(LearningCurve(floor=0.0, height=0.1015625, head=0.0, pace=0.1015625), 0.125)
@given(curves, st.floats(0.01, 0.99))
def test_the_need_is_the_least_that_reaches_the_goal(curve: LearningCurve, goal: float) -> None:
    need = curve.need(goal)
    if math.isinf(need):
        assert curve.accuracy(1e12) < goal + 1e-9
        return
    assert curve.accuracy(need) >= goal - 1e-9
    if need > 1:
        assert curve.accuracy(0.9 * need) < goal


@given(curves)
def test_more_samples_never_hurt(curve: LearningCurve) -> None:
    reached = curve.accuracy(np.geomspace(1e-3, 1e6, 30))
    assert (np.diff(reached) >= -1e-12).all()
    assert (reached <= curve.best + 1e-12).all()


@given(st.lists(curves, min_size=1, max_size=4))
def test_many_curves_at_once_are_each_curve_by_itself(some: list[LearningCurve]) -> None:
    rows = read_curves(some)
    at = np.linspace(1, 900, len(some))
    assert predict_accuracies(rows, at) == pytest.approx(
        [curve.accuracy(n) for curve, n in zip(some, at, strict=True)]
    )
    goals = np.linspace(0.4, 0.8, len(some))
    assert find_needs(rows, goals) == pytest.approx(
        [curve.need(g) for curve, g in zip(some, goals, strict=True)]
    )


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *(("floor", v) for v in (-0.1, 1.0, math.nan, "0.1", None, True)),
        *(("height", v) for v in (0, -1, math.inf)),
        *(("head", v) for v in (-1, math.nan)),
        *(("pace", v) for v in (0, -0.5, math.nan)),
    ],
)
def test_parts_that_make_no_curve_are_refused_by_name(part: str, value: object) -> None:
    parts = {"floor": 0.1, "height": 1.0, "head": 10.0, "pace": 0.5}
    with pytest.raises(InputError, match=f"the {part} of a learning curve must be"):
        LearningCurve(**{**parts, part: value})


def test_curves_come_as_rows_too() -> None:
    curve = LearningCurve(0.1, 2, 100, 0.5)
    assert read_curves([[0.1, 2, 100, 0.5]]).tolist() == [curve.row.tolist()]
    with pytest.raises(InputError, match="floor, height, head, pace"):
        read_curves([[0.1, 2, 100]])
