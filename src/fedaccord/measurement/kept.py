"""What samples are worth to an agent that keeps them, from runs in which it trained on them.

An agent gives theta of its n samples, gets a model that rests on e effective samples, trains it
further on all its own, and reaches the accuracy a. On its learning curve phi that takes
phi^-1(a) effective samples, so that each of its n - theta kept samples was worth

    kappa = (phi^-1(a) - e) / (n - theta)

of one that it gives. Two things are not known exactly: the mean accuracy, of which there are a few
runs, and the curve, of which there are resamples. The interval is that of kappa over both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from fedaccord._checks import Matrix, Vector, as_numbers, check_real
from fedaccord.errors import InputError
from fedaccord.games.chances import TAIL
from fedaccord.games.kept import ALL
from fedaccord.games.measured import LearningCurve, find_needs, read_curves

# Errors of a mean are taken at this many of its quantiles, all equally likely; where the error of
# a second mean goes with the first in part, at fewer of each.
QUANTILES, PAIRED_QUANTILES = 401, 41


@dataclass(frozen=True)
class WorthOfKept:
    """What a kept sample is worth to its owner, as a part of one that it gives.

    value: kappa, from 0 to 1.
    low, high: the ends of its 95 % interval, from 0 to 1.
    raw: kappa before it was moved into that range; inf where the accuracy is beyond the curve.
    """

    value: float
    low: float
    high: float
    raw: float

    @property
    def may_be_all(self) -> bool:
        """Whether a kept sample may be worth as much as a given one, by the interval."""
        return self.high >= ALL

    def to_dict(self) -> dict[str, float | None]:
        """Return the numbers for machines; null stands for infinity."""
        raw = self.raw if math.isfinite(self.raw) else None
        return {"value": self.value, "low": self.low, "high": self.high, "raw": raw}


def worth_of_kept(
    curve: LearningCurve | ArrayLike,
    accuracies: ArrayLike,
    *,
    kept: float,
    effective: float | None = None,
    received: ArrayLike | None = None,
    noise: float | None = None,
    curves: Any = None,
    effectives: ArrayLike | None = None,
) -> WorthOfKept:
    """Return what kept samples were worth to an agent, with its interval.

    What the model rests on without them is `effective`, or the samples that its accuracy in the
    same runs stands for, `received`. The latter takes out most of what the curve is off by there.

    curve: the agent's learning curve, as fitted, or its four numbers (floor, height, head, pace).
    accuracies: what it reached after training on its own samples, one number per run.
    kept: how many samples it kept, n - theta.
    effective: the effective samples behind the model that it received, (W theta)_i.
    received: the accuracy of that model, one number per run, in the same order.
    noise: the standard deviation of the accuracy from run to run, if it is known; found from the
        runs where left out.
    curves: resamples of the curve, B rows of four numbers; none where the curve is certain.
    effectives: the effective samples in each resample; those of the fit where left out.
    """
    check_real("kept", kept, above=0)
    after = _read_accuracies(accuracies, "accuracies")
    before = None if received is None else _read_accuracies(received, "received")
    if (effective is None) == (before is None):
        raise InputError("give either effective or received, and not both")
    if before is not None and len(before) != len(after):
        raise InputError(
            f"received must have one accuracy per run, {len(after)}; got {len(before)}"
        )
    fitted = (
        curve.row[None]
        if isinstance(curve, LearningCurve)
        else read_curves(as_numbers(curve, "curve")[None])
    )
    drawn = fitted if curves is None else read_curves(curves)
    base = None if effective is None else np.array([check_real("effective", effective, least=0)])
    bases = base if effectives is None else _read_effectives(effectives, len(drawn))
    raw = float(_find_worths(fitted, _mean(after), _mean(before), base, kept)[0, 0])
    ends = _spread_means(after, before, noise)
    worths = _find_worths(drawn, *ends, None if before is not None else bases, kept)
    low, high = np.quantile(worths, [TAIL, 1 - TAIL], method="inverted_cdf")
    return WorthOfKept(_clip(raw), _clip(low), _clip(high), raw)


def _find_worths(
    curves: Matrix, after: Vector, before: Vector | None, base: Vector | None, kept: float
) -> Matrix:
    """Return kappa for each curve, a row each, and each pair of mean accuracies."""
    reached = find_needs(curves[:, None, :], after[None, :])
    if before is not None:
        start = find_needs(curves[:, None, :], before[None, :])
        # Beyond the curve both are infinite, and nothing is known of what lies between.
        start = np.where(np.isinf(start), 0.0, start)
    else:
        assert base is not None
        start = np.broadcast_to(base[:, None], (len(curves), 1))
    return np.asarray((reached - start) / kept)


def _mean(runs: Vector | None) -> Any:
    return None if runs is None else np.array([runs.mean()])


def _spread_means(
    after: Vector, before: Vector | None, noise: float | None
) -> tuple[Vector, Vector | None]:
    """Return equally likely values of the two means, together as the runs go together."""
    number = len(after)
    if noise is not None:
        check_real("noise", noise, least=0)
    elif number < 2:
        raise InputError(
            "one run does not say how far runs scatter: give more runs, or their noise"
        )
    freedom = math.inf if noise is not None else number - 1
    if before is None:
        return after.mean() + _error(after, noise) * _quantiles(freedom, QUANTILES), None
    both = _quantiles(freedom, PAIRED_QUANTILES)
    first, second = (part.ravel() for part in np.meshgrid(both, both))
    together = _correlate(after, before)
    mixed = together * first + math.sqrt(1 - together**2) * second
    return (
        after.mean() + _error(after, noise) * first,
        before.mean() + _error(before, noise) * mixed,
    )


def _quantiles(freedom: float, number: int) -> Vector:
    shares = (np.arange(number) + 0.5) / number
    return np.asarray(stdtrit(min(freedom, 1e6), shares), dtype=np.float64)


def _error(runs: Vector, noise: float | None) -> float:
    """Return the standard error of the mean of runs."""
    spread = float(runs.std(ddof=1)) if noise is None else noise
    return spread / math.sqrt(len(runs))


def _correlate(first: Vector, second: Vector) -> float:
    if len(first) < 3 or first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))


def _clip(worth: float) -> float:
    return float(min(max(worth, 0.0), 1.0))


def _read_accuracies(values: ArrayLike, what: str) -> Vector:
    array = np.atleast_1d(as_numbers(values, what))
    if array.ndim != 1 or not len(array) or not ((array >= 0) & (array <= 1)).all():
        raise InputError(f"{what} must be one or more numbers from 0 to 1, one per run")
    return array


def _read_effectives(values: ArrayLike, number: int) -> Vector:
    array = as_numbers(values, "effectives")
    if array.shape != (number,) or not (array >= 0).all():
        raise InputError(f"effectives must be {number} numbers of 0 or more, one per curve")
    return array
