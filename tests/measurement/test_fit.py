"""Fits to pilots: right without noise, unsure where pilots say nothing, doubtful where due."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import optimize

from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.measured import LearningCurve, MeasuredGame, predict_accuracies, read_curves
from fedaccord.measurement.curve_fit import CURVE, CurveModel, Task, least_squares
from fedaccord.measurement.diagnostics import estimate_unbounded_worth
from fedaccord.measurement.fit import Measurement, Unreachable, fit_curves
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.pilots import PilotTable

BENEFITS = np.array([[1, 0.5, 0.2], [0.3, 1, 0.6], [0.1, 0.4, 1.0]])
CURVES = read_curves(
    [
        LearningCurve(0.05, 2.2, 40, 0.45),
        LearningCurve(0.04, 3.0, 60, 0.5),
        LearningCurve(0.06, 1.6, 20, 0.4),
    ]
)
AGENTS = ["University", "City", "Rural"]


def design(size: int, most: float = 800.0) -> np.ndarray:
    """All together at five levels; each with little, and each with much, beside the others."""
    rows = [np.full(size, most * level) for level in (0.1, 0.2, 0.35, 0.6, 1.0)]
    for agent in range(size):
        for mine, theirs in ((0.02, 0.3), (0.8, 0.03)):
            row = np.full(size, most * theirs)
            row[agent] = most * mine
            rows.append(row)
    return np.array(rows)


def pilots(
    given: np.ndarray | None = None,
    *,
    noise: float = 0.0,
    seed: int = 0,
    benefits: np.ndarray = BENEFITS,
    curves: np.ndarray = CURVES,
    **rest,
) -> PilotTable:
    given = np.repeat(design(len(benefits)), 3, axis=0) if given is None else given
    reached = predict_accuracies(curves, given @ benefits.T)
    reached = reached + noise * np.random.default_rng(seed).standard_normal(reached.shape)
    defaults = {"goals": np.full(len(benefits), 0.8), "validation": np.full(len(benefits), 400)}
    return PilotTable(AGENTS[: len(benefits)], given, reached.clip(0, 1), **{**defaults, **rest})


@pytest.fixture(scope="module")
def sound() -> Measurement:
    return fit_curves(pilots(noise=0.02, validation=np.full(3, 400)), seed=1)


def kinds(measurement: Measurement) -> set[str]:
    return {doubt.kind for doubt in measurement.doubts}


# The arithmetic of the fit.


def some_model() -> tuple[CurveModel, np.ndarray]:
    model = CurveModel(design(3), 1, 300.0)
    found = np.array([[-3.0, -2.0, 4.0, -0.7, -1.0, -0.5], [-2.0, -1.5, 2.0, -0.3, 0.2, -3.0]])
    return model, found


def test_slopes_are_those_of_differences() -> None:
    model, found = some_model()
    errors, slopes = model.slopes(found)
    assert errors == pytest.approx(model.errors(found))
    for place in range(found.shape[1]):
        step = np.zeros(found.shape[1])
        step[place] = 1e-5
        differences = (model.errors(found + step) - model.errors(found - step)) / 2e-5
        assert slopes[:, :, place] == pytest.approx(differences, rel=1e-6, abs=1e-10)


def test_parameters_and_curves_say_the_same() -> None:
    model, found = some_model()
    samples = model.benefits(found) @ model.contributions.T
    said = predict_accuracies(model.curves(found)[:, None], samples)
    assert 1 - said == pytest.approx(model.errors(found).clip(max=1))
    assert model.benefits(found)[:, 1].tolist() == [1, 1]


def test_fits_of_many_tables_are_those_of_another_solver() -> None:
    """scipy's least_squares, one table at a time and without derivatives, finds the same."""
    model, found = some_model()
    rng = np.random.default_rng(5)
    errors = model.errors(found) + 0.02 * rng.standard_normal((2, len(model.contributions)))
    root = rng.normal(size=(6, 6)) / 3 + np.eye(6)
    precision = np.linalg.inv(root @ root.T)
    scatter = np.full_like(errors, 0.02)
    centre = found + 0.3 * rng.standard_normal(found.shape)
    task = Task(model, errors, scatter, centre, np.stack([precision] * 2))
    ours, sums = least_squares(task, centre)
    half = np.linalg.cholesky(precision).T
    for row in range(2):

        def residuals(x: np.ndarray, row: int = row) -> np.ndarray:
            gaps = (model.errors(x[None])[0] - errors[row]) / 0.02
            return np.concatenate([gaps, half @ (x - centre[row])])

        theirs = optimize.least_squares(residuals, centre[row], xtol=1e-12, ftol=1e-12)
        assert sums[row] == pytest.approx(2 * theirs.cost, abs=1e-3)
        assert ours[row] == pytest.approx(theirs.x, abs=0.02)


# What is found.


def test_without_noise_the_truth_is_found() -> None:
    """Validation sets so large that nothing thought beforehand counts beside the pilots."""
    found = fit_curves(pilots(validation=np.full(3, 1e9)), resamples=20)
    truth = MeasuredGame(BENEFITS, CURVES, [0.8] * 3)
    assert found.game.requirements == pytest.approx(truth.requirements, rel=0.02)
    assert found.benefits == pytest.approx(BENEFITS, abs=0.02)
    theta = np.array([[200.0, 300, 400], [50, 50, 700]])
    assert found.game.accuracies(theta) == pytest.approx(truth.accuracies(theta), abs=1e-3)


def test_the_order_of_agents_and_pilots_does_not_matter() -> None:
    table = pilots(noise=0.02)
    order, rows = [2, 0, 1], np.random.default_rng(1).permutation(len(table))
    turned = PilotTable(
        [AGENTS[i] for i in order],
        table.contributions[rows][:, order],
        table.accuracies[rows][:, order],
        goals=table.goals[order],
        validation=table.validation[order],
    )
    one, other = fit_curves(table, resamples=100), fit_curves(turned, resamples=100)
    assert_same_within_chance(one, other, order)


def test_the_unit_of_samples_does_not_matter() -> None:
    """Thousands of samples instead of samples: needs a thousandth, worth and accuracy the same."""
    table = pilots(noise=0.02)
    scaled = PilotTable(
        table.agents,
        table.contributions / 1000,
        table.accuracies,
        goals=table.goals,
        validation=table.validation,
    )
    one, other = fit_curves(table, resamples=5), fit_curves(scaled, resamples=5)
    assert 1000 * other.game.requirements == pytest.approx(one.game.requirements, rel=1e-4)
    assert other.benefits == pytest.approx(one.benefits, rel=1e-4)
    assert 1000 * other.needs() == pytest.approx(one.needs(), rel=1e-3)


def test_the_same_seed_gives_the_same_and_another_does_not(sound: Measurement) -> None:
    again = fit_curves(sound.table, seed=1)
    assert np.array_equal(again.resamples.curves, sound.resamples.curves)
    assert np.array_equal(again.resamples.benefits, sound.resamples.benefits)
    other = fit_curves(sound.table, seed=2)
    assert not np.array_equal(other.resamples.curves, sound.resamples.curves)
    assert_same_within_chance(sound, other, [0, 1, 2])


def assert_same_within_chance(one: Measurement, other: Measurement, order: list[int]) -> None:
    """Both centres are means of what chains visited, and differ by a part of what is not known."""
    given = one.table.contributions
    before = predict_accuracies(one.curves, given @ one.benefits.T)[:, order]
    after = predict_accuracies(other.curves, given[:, order] @ other.benefits.T)
    unsure = np.array([one.accuracies(row).std(axis=0) for row in given])[:, order]
    assert np.sqrt((((after - before) / unsure) ** 2).mean()) < 0.35
    assert other.game.requirements == pytest.approx(one.game.requirements[order], rel=0.1)


def test_sound_pilots_raise_no_doubt(sound: Measurement) -> None:
    assert sound.doubts == ()
    assert sound.unreachable == ()


def test_resamples_predict_at_once_what_their_games_do_one_by_one(sound: Measurement) -> None:
    theta = np.array([100.0, 300.0, 250.0])
    games = list(sound.games)
    assert len(games) == len(sound.resamples) > 0
    at_once = sound.accuracies(theta)
    assert at_once == pytest.approx(np.array([game.accuracies(theta) for game in games]))
    assert sound.needs() == pytest.approx(np.array([game.requirements for game in games]))
    each = np.tile(theta, (len(games), 1)) * np.linspace(0.5, 2, len(games))[:, None]
    assert sound.accuracies(each) == pytest.approx(
        np.array([game.accuracies(row) for game, row in zip(games, each, strict=True)])
    )


def test_the_fit_lies_amidst_its_resamples(sound: Measurement) -> None:
    below = (sound.needs() < sound.game.requirements).mean(axis=0)
    assert ((below > 0.3) & (below < 0.7)).all()


@pytest.mark.parametrize("noise", [0.02, 0.06])
def test_the_noise_of_runs_is_found(noise: float) -> None:
    table = pilots(np.repeat(design(3), 20, axis=0), noise=noise, validation=[np.nan] * 3)
    found = fit_curves(table, resamples=5)
    # Accuracies scatter alike here; the fit has them scatter as a share of so many does.
    assert found.noise("measured") == pytest.approx(noise, rel=0.25)


def test_no_run_scatters_less_than_its_validation_points() -> None:
    found = fit_curves(pilots(noise=0.001, validation=np.full(3, 100)), resamples=5)
    assert (found.noise("measured") >= np.sqrt(0.8 * 0.2 / 100) - 1e-12).all()


def test_more_pilots_make_intervals_narrower() -> None:
    def width(times: int) -> float:
        table = pilots(np.repeat(design(3), times, axis=0), noise=0.02)
        low, high = np.quantile(fit_curves(table).needs(), [0.025, 0.975], axis=0)
        return float(np.median((high - low) / low))

    # Nine times the pilots: a third of the width, if not less where few leave a tail.
    assert width(18) < 0.55 * width(2)


# Where pilots say little.


def test_one_agent_alone_is_a_curve() -> None:
    given = np.geomspace(10, 3000, 12)[:, None]
    table = pilots(given, benefits=np.ones((1, 1)), curves=CURVES[:1], noise=0.005)
    found = fit_curves(table)
    true = LearningCurve(*CURVES[0]).need(0.8)
    low, high = np.quantile(found.needs(), [0.005, 0.995])
    assert low < true < high
    assert found.benefits.tolist() == [[1.0]]
    assert found.doubts == ()


def test_identical_pilots_leave_everything_open_and_say_so() -> None:
    given = np.tile([[300.0, 200.0, 100.0]], (12, 1))
    found = fit_curves(pilots(given, noise=0.02))
    assert "too-few-pilots" in kinds(found)
    assert found.doubts[0].agent is None
    worth = found.resamples.benefits[:, 0, 1]
    assert np.quantile(worth, 0.975) > 5 * np.quantile(worth, 0.025)
    # What was seen is known all the same.
    seen = found.accuracies(given[0])
    assert seen.std(axis=0).max() < 0.02


def test_where_nothing_is_known_resamples_spread_as_far_as_what_was_thought() -> None:
    """Agents that never gave anything: their worth is as open afterwards as it was before."""
    given = np.repeat(design(3), 3, axis=0)
    given[:, 2] = 0.0
    found = fit_curves(pilots(given, noise=0.02), resamples=400)
    logs = np.log(found.resamples.benefits[:, 0, 2])
    before = np.sqrt(1.2**2 + 0.7**2)
    # Part of it is common to all others, of whom one was seen.
    assert 0.7 <= logs.std() <= before * 1.1
    flat = [d for d in found.doubts if d.kind == "flat"]
    assert {d.agent for d in flat} >= {0, 1, 2}
    assert any("Rural gave nothing" in d.sentence for d in flat)


def test_pilots_with_nothing_at_all_are_taken_in() -> None:
    given = np.concatenate([np.zeros((3, 3)), np.repeat(design(3), 2, axis=0)])
    found = fit_curves(pilots(given, noise=0.01), resamples=20)
    start = predict_accuracies(CURVES, np.zeros(3))
    assert found.game.accuracies(np.zeros(3)) == pytest.approx(start, abs=0.03)


def test_accuracies_that_were_not_measured_are_left_out() -> None:
    table = pilots(noise=0.02)
    reached = np.array(table.accuracies)
    reached[::3, 1] = np.nan
    gaps = dataclasses.replace(table, accuracies=reached)
    one, other = fit_curves(table, resamples=2), fit_curves(gaps, resamples=2)
    # Agents share what they have in common, so the others' curves move a little.
    theta = np.full(3, 300.0)
    assert other.game.accuracies(theta) == pytest.approx(one.game.accuracies(theta), abs=0.01)
    assert len(other.fits[1].errors) == len(table) - len(table) // 3
    reached[:, 1] = np.nan
    with pytest.raises(InputError, match="City has no accuracy in any pilot"):
        fit_curves(dataclasses.replace(table, accuracies=reached))


def test_histograms_say_what_few_pilots_leave_open() -> None:
    few = pilots(design(3)[:4], noise=0.02)
    counts = [[90, 10, 0], [80, 20, 0], [0, 5, 95]]
    hint = Histograms(AGENTS, "abc", counts).hints_for(few.agents)
    found, blind = fit_curves(few, prior=hint), fit_curves(few)
    assert found.benefits[0, 1] > 0.7 > 0.1 > found.benefits[0, 2]
    hinted, open_ = (np.log(m.resamples.benefits[:, 0, 1]).std() for m in (found, blind))
    assert hinted < open_
    with pytest.raises(InputError, match="prior must be 3 x 3"):
        fit_curves(few, prior=np.eye(2))


# Doubts, each brought about.


def test_few_pilots_are_doubted() -> None:
    found = fit_curves(pilots(design(3)[:5], noise=0.02), resamples=20)
    assert "too-few-pilots" in kinds(found)
    assert any("5 sets of contributions" in d.sentence for d in found.doubts)


@pytest.mark.parametrize(
    ("failed", "said"), [(1, "1 of 33 pilots failed and has no accuracy."), (2, "have no accurac")]
)
def test_pilots_that_failed_are_counted(failed: int, said: str) -> None:
    table = pilots(noise=0.02)
    reached = np.array(table.accuracies)
    reached[:failed] = np.nan
    found = fit_curves(dataclasses.replace(table, accuracies=reached), resamples=2)
    (doubt,) = (d for d in found.doubts if d.kind == "failed-pilots")
    assert said in doubt.sentence


def test_one_agent_with_few_pilots_is_named() -> None:
    table = pilots(noise=0.02)
    reached = np.array(table.accuracies)
    reached[12:, 1] = np.nan
    found = fit_curves(dataclasses.replace(table, accuracies=reached), resamples=20)
    (doubt,) = (d for d in found.doubts if d.kind == "too-few-pilots")
    assert doubt.agent == 1
    assert "City" in doubt.sentence


def test_samples_that_do_harm_are_named() -> None:
    harmful = np.array(BENEFITS)
    harmful[0, 2] = -0.08
    found = fit_curves(pilots(noise=0.01, benefits=harmful, validation=np.full(3, 2000)))
    (doubt,) = (d for d in found.doubts if d.kind == "negative-transfer")
    assert doubt.agent == 0
    assert "More samples of Rural made University less accurate" in doubt.sentence
    worth, error = estimate_unbounded_worth(found.fits[0], 2)
    assert abs(worth + 0.08) < 4 * error
    assert (found.benefits >= 0).all()


def test_samples_worth_nothing_do_no_harm() -> None:
    useless = np.array(BENEFITS)
    useless[0, 2] = 0.0
    for seed in range(8):
        found = fit_curves(pilots(noise=0.02, benefits=useless, seed=seed), resamples=5)
        assert "negative-transfer" not in kinds(found)


def test_a_goal_just_above_what_can_be_had_is_said_with_all_its_digits():
    said = Unreachable(0, "City", 0.8504, 0.8502).sentence
    assert said.startswith("City wants an accuracy of 0.8504. ")
    assert said.endswith("it would reach 0.850: lower its goal to 0.850 or less")


def test_a_goal_above_the_curve_is_said_with_the_nearest_before_any_plan() -> None:
    table = pilots(noise=0.01, goals=[0.8, 0.99, 0.8])
    found = fit_curves(table, resamples=20)
    (one,) = found.unreachable
    assert (one.agent, one.name, one.goal) == (1, "City", 0.99)
    assert one.nearest == pytest.approx(0.96, abs=0.02)
    assert "City wants an accuracy of 0.99" in one.sentence
    assert any(d.kind == "saturation-below-goal" and d.agent == 1 for d in found.doubts)
    with pytest.raises(UnreachableError, match="City"):
        _ = found.game
    lower = found.with_goals({"City": one.nearest - 0.03})
    assert lower.unreachable == ()
    assert lower.game.goals[1] == pytest.approx(one.nearest - 0.03)


def test_a_goal_that_limits_put_out_of_reach_is_said_too() -> None:
    goals, limits = [0.85, 0.75, 0.7], [100.0, 300.0, 300.0]
    found = fit_curves(pilots(noise=0.01, goals=goals, limits=limits), resamples=20)
    best = predict_accuracies(CURVES, BENEFITS @ limits)
    assert (best < goals).tolist() == [True, False, False]
    (one,) = found.unreachable
    assert one.agent == 0
    assert one.nearest == pytest.approx(best[0], abs=0.02)
    assert LearningCurve(*found.curves[0]).best > 0.85


def test_a_need_beyond_all_pilots_is_doubted() -> None:
    given = np.repeat(design(3, most=150.0), 3, axis=0)
    found = fit_curves(pilots(given, noise=0.005, validation=np.full(3, 5000)), resamples=20)
    assert "extrapolation" in kinds(found)
    said = f"to reach its goal of {found.goals[0]:.2f} on average. No pilot had more than"
    assert any(said in d.sentence for d in found.doubts)


def test_a_need_below_all_pilots_is_doubted() -> None:
    given = 2000 + np.repeat(design(3, most=8000.0), 3, axis=0)
    found = fit_curves(pilots(given, noise=0.005, goals=[0.6] * 3), resamples=20)
    assert any("run pilots with less data" in d.sentence for d in found.doubts)


def test_accuracies_that_no_curve_describes_are_doubted() -> None:
    table = pilots(noise=0.01)
    broken = np.array(table.accuracies)
    # In every other of the designs everybody is better by far: no curve does that.
    broken[(np.arange(len(table)) // 3) % 2 == 0] += 0.1
    broken = broken.clip(0, 1)
    found = fit_curves(dataclasses.replace(table, accuracies=broken), resamples=20)
    assert "poor-fit" in kinds(found)


@pytest.mark.parametrize(
    ("validation", "whose"),
    [([np.nan] * 3, "accuracies were"), ([400, np.nan, 400], "of City were")],
)
def test_an_unknown_number_of_validation_samples_is_doubted(validation, whose) -> None:
    found = fit_curves(pilots(noise=0.02, validation=validation), resamples=20)
    (doubt,) = (d for d in found.doubts if d.kind == "unknown-validation")
    assert whose in doubt.sentence and "Fill in the column validation." in doubt.sentence


def test_one_accuracy_far_from_its_curve_is_named() -> None:
    """A slip of typing, 0.08 for 0.8; the curve is not blamed for it."""
    table = pilots(noise=0.01)
    reached = np.array(table.accuracies)
    reached[4, 1] /= 10
    places = [[f"row {3 * pilot + agent}" for agent in range(3)] for pilot in range(len(table))]
    for named, said in ((places, "row 13"), ((), "pilot 4")):
        slipped = dataclasses.replace(table, accuracies=reached, places=named)
        (doubt,) = fit_curves(slipped, resamples=20).doubts[:1]
        assert doubt.kind == "suspect-rows"
        assert f"accuracy of City in {said} is {reached[4, 1]:g}, far from" in doubt.sentence


def test_all_agents_whose_worth_is_open_are_named() -> None:
    given = np.tile([[300.0, 200.0, 100.0]], (12, 1)) * np.linspace(0.5, 2, 12)[:, None]
    found = fit_curves(pilots(given, noise=0.02))
    said = [d.sentence for d in found.doubts if d.kind == "flat"]
    assert len(said) == 3
    for name, one in zip(AGENTS, said, strict=True):
        first, second = re.findall(r"sample of (\w+) or (\w+) is", one)[0]
        assert {first, second, name} == set(AGENTS) and f"to {name} (for {first}, " in one
        assert "For each of them, run pilots in which it gives much" in one


def test_scatter_that_validation_does_not_explain_is_doubted() -> None:
    table = pilots(design(3), noise=0.1, validation=np.full(3, 1000))
    found = fit_curves(table, resamples=20)
    assert any(
        d.kind == "poor-fit" and "1,000 validation samples" in d.sentence for d in found.doubts
    )


def test_other_goals_need_no_new_fit(sound: Measurement) -> None:
    other = sound.with_goals([0.7, 0.75, 0.8])
    afresh = fit_curves(sound.table.with_goals([0.7, 0.75, 0.8]), seed=1)
    assert other.game.requirements == pytest.approx(afresh.game.requirements)
    assert other.noise("measured") == pytest.approx(afresh.noise("measured"))
    assert other.resamples.training == pytest.approx(afresh.resamples.training)
    assert other.needs() == pytest.approx(afresh.needs())


def test_without_goals_there_are_curves_and_no_game() -> None:
    found = fit_curves(pilots(noise=0.02, goals=[0.8, np.nan, 0.8]), resamples=10)
    with pytest.raises(InputError, match="City has no goal"):
        _ = found.game
    with pytest.raises(InputError, match="City has no goal"):
        found.needs()
    assert found.unreachable == ()
    assert np.isfinite(found.noise("measured")).all()
    assert found.with_goals(0.8).game.size == 3


def test_sixteen_agents_with_37_pilots_are_fitted() -> None:
    rng = np.random.default_rng(2)
    benefits = rng.uniform(0.02, 0.15, (16, 16))
    np.fill_diagonal(benefits, 1.0)
    given = design(16)
    curves = np.tile(CURVES[0], (16, 1))
    reached = predict_accuracies(curves, given @ benefits.T) + 0.02 * rng.standard_normal((37, 16))
    names = [f"site {i}" for i in range(16)]
    table = PilotTable(names, given, reached.clip(0, 1), goals=[0.75] * 16, validation=[400] * 16)
    found = fit_curves(table, resamples=40)
    theta = np.full(16, 250.0)
    truth = predict_accuracies(curves, benefits @ theta)
    assert found.game.accuracies(theta) == pytest.approx(truth, abs=0.05)
    assert np.abs(found.game.accuracies(theta) - truth).mean() < 0.02


@pytest.mark.parametrize(
    "reached",
    [
        lambda given: np.ones_like(given),
        lambda given: np.zeros_like(given),
        lambda given: np.full_like(given, 0.7),
        lambda given: given / given.max(),
        lambda given: 1 - given / given.max(),
        lambda given: np.random.default_rng(1).random(given.shape),
    ],
    ids=["all right", "all wrong", "all the same", "a straight line", "ever worse", "at random"],
)
@pytest.mark.parametrize("scale", [1e-5, 1e4])
@pytest.mark.parametrize("count", [1, 11])
def test_whatever_was_measured_is_fitted_without_a_fuss(reached, scale: float, count: int) -> None:
    given = scale * design(3)[:count]
    table = PilotTable(AGENTS, given, reached(given), goals=[0.3, 0.6, 0.9])
    found = fit_curves(table, resamples=10)
    assert np.isfinite(found.curves).all()
    assert np.isfinite(found.resamples.curves).all()
    assert (found.noise("measured") > 0).all()
    assert not found.needs().min() < 0
    assert found.doubts
    # Games are made of what is finite, without an error.
    assert len(list(found.games)) == np.isfinite(found.needs()).all(axis=1).sum()


def test_more_agents_than_can_be_fitted_are_refused_at_once() -> None:
    names = [f"agent {n}" for n in range(2_000)]
    table = PilotTable(names, np.ones((3, 2_000)), np.full((3, 2_000), 0.5), goals=[0.6] * 2_000)
    with pytest.raises(InputError, match=r"2,000 agents .* label histograms"):
        fit_curves(table)


def test_a_fit_needs_a_resample(sound: Measurement) -> None:
    with pytest.raises(InputError, match="resamples must be at least 1"):
        fit_curves(sound.table, resamples=0)


def test_parameters_come_in_the_order_that_others_count_on(sound: Measurement) -> None:
    fit = sound.fits[1]
    assert fit.model.others.tolist() == [0, 2]
    assert np.exp(fit.found[CURVE:]) == pytest.approx(sound.benefits[1, [0, 2]])
