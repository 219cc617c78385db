"""The paper's score of difficulty: whether it is about the points, and what its spread can be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.estimates import Estimate, estimate_mean, resample
from fedaccord.reproduce.experiment import Data, Experiment, set_up

if TYPE_CHECKING:
    from fedaccord.federation.data.dataset import Dataset
    from fedaccord.federation.data.difficulty import Trials

CLAIMS = Claims()

PERMUTATIONS = 400
HALVINGS = 50


@dataclass(frozen=True)
class Small:
    """The paper's procedure on a pool so small that some hundred trials can tell its points apart.

    Of T trials and n points scored, at most T / (T + n) of the scores' variance is about points.

    pool: how many points are scored.
    points: how many of them a trial draws.
    trials: how many.
    fresh: how many networks are then trained on the harder half of the points, and on the easier.
    holdout: on how many other points a trial is measured; the fresh networks on others again.
    options: of the training.
    """

    pool: int
    points: int
    trials: int
    fresh: int
    holdout: int
    options: Mapping[str, Any]


DIGITS = Small(
    pool=100,
    points=50,
    trials=400,
    fresh=30,
    holdout=500,
    options={
        "batch_size": 16, "learning_rate": 0.005, "target": 0.6, "cap": 300, "look_every": 1
    },
)  # fmt: skip
# 200 images of 47 classes are too few to learn 60 % from.
IMAGES = Small(
    pool=400,
    points=200,
    trials=400,
    fresh=12,
    holdout=500,
    options={
        "batch_size": 16, "learning_rate": 0.002, "target": 0.3, "cap": 600, "look_every": 5
    },
)  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """What the scores of a small pool tell.

    seen: the standard deviation of the scores.
    by_chance: what it is if trials have nothing to do with their points, with its middle 95 %.
    halves: the correlation of scores from one half of the trials with scores from the other.
    longer: how many batches longer networks take to learn from the harder half of the points.
    easier: how many they take to learn from the easier half.
    """

    seen: float
    by_chance: Estimate
    halves: float
    longer: Estimate
    easier: float


@CLAIMS.measure("difficulty")
def difficulty(setting: Setting) -> Measured:
    """Run the procedure on a small pool; at full scale also as printed, with fewer trials."""
    place = set_up(setting, "difficulty.toml")
    small = IMAGES if setting.full else DIGITS
    made, spread = _score_small_pool(place, small)
    times = made.times
    if setting.full:
        # As the paper's, on its division of the points.
        pools = place.building.pools
        assert pools.validation is not None
        options = {"seed": place.config.pools.seed, **place.config.difficulty.options}
        times = _run_trials(
            *(place, "difficulty", "trials of difficulty", pools.agents, pools.validation),
            **options,
        ).times
    return judge_difficulty(spread, times, small, place.data, setting.expected)


def _run_trials(
    place: Experiment, name: str, what: str, pool: Dataset, holdout: Dataset, **options: Any
) -> Trials:
    """Run trials and keep them, or take those that are kept.

    name: of the file.
    what: its name in progress messages.
    """
    from fedaccord.federation.data.difficulty import run_trials

    return run_trials(
        *(pool, place.building.model),
        holdout=holdout,
        path=place.keep(name),
        progress=lambda done, of: place.setting.tell(what, done, of),
        **options,
    )


def _score_small_pool(place: Experiment, small: Small) -> tuple[Trials, Spread]:
    """Score a small pool, and train fresh networks on its harder and on its easier half."""
    from fedaccord.federation.data.difficulty import mean_by_point
    from fedaccord.federation.data.pretraining import Bands, Scores

    sizes = (small.pool, small.holdout, small.holdout)
    pool, holdout, others = place.building.data.split(*sizes, seed=1, rest=False)
    options = {"trials": small.trials, "points": small.points, "seed": 0, **small.options}
    made = _run_trials(
        *(place, "difficulty-small", "trials on a small pool", pool, holdout), **options
    )
    values, counts = mean_by_point(len(pool), made.members, made.times)
    scores = Scores(values, counts, pool.sha256, {})
    hard, easy = Bands(hard=(50, 100), easy=(0, 50)).pools(scores)
    slow, quick = (
        _run_trials(
            *(place, f"difficulty-{name}", f"learning the {name} points", pool.take(half), others),
            **{**options, "trials": small.fresh, "points": len(half), "seed": 1},
        ).times
        for name, half in (("harder", hard), ("easier", easy))
    )
    # Both were trained from the same starts, one by one.
    longer = estimate_mean(slow - quick)
    return made, measure_spread(made, small.pool, longer, float(quick.mean()))


def measure_spread(made: Trials, pool: int, longer: Estimate, easier: float) -> Spread:
    """Compare the spread of the scores with what it is when times are dealt to trials at random.

    made: the trials.
    pool: how many points they score.
    longer, easier: how long fresh networks take.
    """
    from fedaccord.federation.data.difficulty import mean_by_point

    random, count = np.random.default_rng(0), len(made.times)
    dealt = [
        np.nanstd(mean_by_point(pool, made.members, random.permutation(made.times))[0])
        for _ in range(PERMUTATIONS)
    ]
    low, middle, high = np.quantile(dealt, (0.025, 0.5, 0.975))
    halves = []
    for _ in range(HALVINGS):
        order = random.permutation(count)
        both = [
            mean_by_point(pool, [made.members[t] for t in some], made.times[some])[0]
            for some in (order[: count // 2], order[count // 2 :])
        ]
        first, second = np.array(both)[:, ~np.isnan(both).any(axis=0)]
        if first.std() > 0 and second.std() > 0:
            halves.append(np.corrcoef(first, second)[0, 1])
    return Spread(
        seen=float(np.nanstd(mean_by_point(pool, made.members, made.times)[0])),
        by_chance=Estimate(float(middle), float(low), float(high)),
        halves=float(np.mean(halves)) if halves else math.nan,
        longer=longer,
        easier=easier,
    )


def judge_difficulty(
    spread: Spread, times: Vector, small: Small, data: Data, expected: Mapping[str, Any]
) -> Measured:
    """Judge whether the score is about points, and whether it can spread as the paper says.

    A score is the mean of the n trials that a point is in, each of m points:

        deviation of the scores <= deviation of the trials * sqrt(1 / n + 1 / m)

    where 1 / n is the noise of averaging, and 1 / m what is left for the points themselves if all
    that trials differ by is their points.

    spread: what the small pool tells.
    times: batches of single trials.
    small: how large the small pool was.
    """
    each = expected["trials"] * expected["points"] / expected["pool"]
    factor = math.sqrt(1 / each + 1 / expected["points"])
    varied = resample(times, lambda some: float(some.std(ddof=1) / some.mean()))
    # In the paper's unit: what scores could spread by, around its own mean.
    most = Estimate(
        *(factor * expected["mean"] * v for v in (varied.value, varied.low, varied.high))
    )
    mean = estimate_mean(times)
    too_wide = most.high < expected["sd"]
    enough = {name: expected[name] for name in ("tolerance", "widest")}
    return Measured(
        **vars(spread),
        trials={"count": len(times), "mean": mean, "variation": varied},
        range_of_single_trials=[float(times.min()), float(times.max())],
        range_of_the_papers_scores=[expected["least"], expected["most"]],
        scores_could_spread_by=most,
        pool=small,
        words={
            "data": data,
            "each": each,
            "low": expected["least"] / expected["mean"],
            "high": expected["most"] / expected["mean"],
            "shortest": float(times.min() / mean.value),
            "longest": float(times.max() / mean.value),
            "too_wide": too_wide,
            "needed": expected["sd"] / factor,
            "varied": varied.value * expected["mean"],
            "few": not too_wide and mean.holds(expected["mean"]),
            "as_printed": most.value >= expected["sd"] and mean.agrees(expected["mean"], **enough),
        },
    )
