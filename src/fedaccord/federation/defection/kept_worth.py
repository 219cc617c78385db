"""What a sample that a defector keeps is worth to it, relative to one that it shares.

Runs of one trial differ in what one client gives, so that their differences are its samples' work:

    accuracy(all shared) - accuracy(defects)              theta - g samples, shared
    accuracy(defects, then goes on) - accuracy(defects)   n - g samples, kept

where g of the theta samples pledged are given, of n that the client has. Per sample, the ratio of
the second difference to the first is kappa: 0 if kept samples are worth nothing, 1 if a sample
does as much for its owner when it is kept as when it is shared. Then nobody has a reason to share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord.federation.defection.curves import Trial
from fedaccord.federation.defection.intervals import KeptWorth
from fedaccord.federation.runs.store import Outcome


def measure_kept_worth(
    shared: ArrayLike,
    received: ArrayLike,
    kept: ArrayLike,
    *,
    samples_shared: int,
    samples_kept: int,
    confidence: float = 0.95,
) -> KeptWorth:
    """Return kappa from the accuracies of one client in the runs of some trials.

    The interval is Fieller's, for a ratio of means of which each trial tells both:

        { k : |mean(y - k x)| <= t * sd(y - k x) / sqrt(n) }

    It is unbounded where the trials cannot tell that sharing makes any difference.

    shared: in each trial, its accuracy when it gives all that it pledged.
    received: when it defects, with the model that it gets.
    kept: when it defects and goes on with all its samples.
    samples_shared: by how many samples it gives less, theta - g.
    samples_kept: how many samples it keeps, n - g.
    confidence: how often such intervals hold the true ratio, nearly.
    """
    from scipy.special import stdtrit

    full, cut, own = (np.asarray(a, dtype=float) for a in (shared, received, kept))
    known = np.isfinite(full) & np.isfinite(cut) & np.isfinite(own)
    n = int(known.sum())
    if n < 2 or samples_shared < 1 or samples_kept < 1:
        return KeptWorth(math.nan, -math.inf, math.inf, n)
    x = (full - cut)[known] / samples_shared
    y = (own - cut)[known] / samples_kept
    t = float(stdtrit(n - 1, (1 + confidence) / 2))
    means, spreads = (x.mean(), y.mean()), np.cov(x, y) / n
    value = means[1] / means[0] if means[0] else math.nan
    return KeptWorth(float(value), *_solve_fieller(means, spreads, t), n)


def measure_each(
    names: Sequence[str],
    full: Sequence[Trial],
    defecting: Sequence[Trial],
    *,
    points: Sequence[int],
    contributions: Sequence[int],
    given: Sequence[int],
) -> dict[str, KeptWorth]:
    """Return kappa of every client that defected alone and went on.

    names: of the clients.
    full: the trials in which everybody gives what is asked of it.
    defecting: the same trials with defectors.
    points: how many samples each client has.
    contributions: how many are asked of it.
    given: how many it gives when it defects.
    """
    seen: dict[int, list[tuple[float, float, float]]] = {}
    for whole, trial in zip(full, defecting, strict=False):
        for group, outcome in trial:
            if len(group) == 1 and outcome.kept:
                (i,) = group
                at_full, received = (_judge(run)[i] for run in (whole[0][1], outcome))
                seen.setdefault(i, []).append((at_full, received, outcome.kept[i]))
    return {
        names[i]: measure_kept_worth(
            *zip(*rows, strict=True),
            samples_shared=contributions[i] - given[i],
            samples_kept=points[i] - given[i],
        )
        for i, rows in sorted(seen.items())
    }


def _judge(outcome: Outcome) -> tuple[float, ...]:
    """Return the accuracies that a run is judged by."""
    return outcome.scored or outcome.accuracies


def _solve_fieller(
    means: Sequence[float], spreads: np.ndarray[Any, Any], t: float
) -> tuple[float, float]:
    """Return the ends of { k : (y - k x)^2 <= t^2 Var(y - k x) }; infinite where it is no range."""
    (x, y), (vx, vy, vxy) = means, (spreads[0, 0], spreads[1, 1], spreads[0, 1])
    a, b, c = x * x - t * t * vx, x * y - t * t * vxy, y * y - t * t * vy
    inside = b * b - a * c
    if a <= 0 or inside < 0:
        return -math.inf, math.inf
    root = math.sqrt(inside)
    return (b - root) / a, (b + root) / a


def describe_kept_worth(worths: Sequence[KeptWorth]) -> str:
    """Return what the worth of kept samples means for a coordinator that wants agents to share."""
    known = [one for one in worths if one.known]
    if not known:
        return "What kept samples are worth is not known: sharing made no measurable difference."
    near = sum(one.high >= 1 for one in known)
    if not near:
        return (
            "A kept sample is worth less to its owner than a shared one: agents have a reason to "
            "share."
        )
    return (
        f"For {near} of {len(known)} agents a kept sample may be worth as much as a shared one. "
        "Such an agent has no reason to share: earned models or payments give it one."
    )
