"""What comes back from clients, and whether it can be used.

A model that is not finite, or a count that cannot be, is not used. A reply may come from somebody
who means ill. So nothing in it is believed, and its words are cut before they are shown.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import is_real, is_whole
from fedaccord.federation.algorithms.base import MOST_SAMPLES
from fedaccord.federation.remote.protocol import (
    ACCURACY,
    EXAMPLES,
    GOAL_ACCURACY,
    LABEL_COUNTS,
    LOSS,
    POINTS,
    clip,
)

Arrays = dict[str, NDArray[Any]]
Metrics = Mapping[str, Any]

# More points, or more classes, than this are a slip or a joke.
MOST_POINTS = 10**12
MOST_CLASSES = 100_000


class Unusable(Exception):
    """A reply that is dropped; the text says why, as the end of a sentence on the client."""


class NotFinite(Unusable):
    """A reply that is dropped because training diverged there, or somebody wants it to look so."""


@dataclass(frozen=True)
class Remark:
    """Something a coordinator should know of a client.

    round: in which round; 0 before the first.
    client: its name; "node" and its id where it has none.
    text: what happened, as a sentence that begins with the name.
    """

    round: int
    client: str
    text: str


@dataclass(frozen=True)
class Introduction:
    """What a client says of itself.

    name: what it is called.
    points: how many points it could bring.
    label_counts: how many points of each class, if it was asked and allowed to say.
    registered: whether the server knows it by that name, and not by what it says.
    """

    name: str
    points: int
    label_counts: tuple[int, ...] | None = None
    registered: bool = False


@dataclass(frozen=True)
class Update:
    """What a client made of a round.

    arrays: its model, or its gradient.
    samples: how many samples count: what it was allotted, or what it says it used, if less.
    claimed: how many it says it used.
    loss: mean over them, NaN if it does not say.
    content: the reply, with the samples that count.
    """

    arrays: Arrays = field(repr=False)
    samples: int
    claimed: int
    loss: float
    content: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Evaluation:
    """What a client measured.

    accuracy: on all its validation points; NaN if that was not asked for.
    tested: on the points of the goal test; NaN if that was not asked for.
    content: the reply.
    """

    accuracy: float
    tested: float
    content: Any = field(default=None, repr=False)


def read_points(metrics: Metrics) -> tuple[int, tuple[int, ...] | None]:
    """Return how many points a client says it has, and of each class if it says so."""
    points: Any = metrics.get(POINTS)
    if not (is_whole(points) and 0 <= points <= MOST_POINTS):
        raise Unusable(f"its {POINTS} is {clip(points)}, which cannot be")
    counts = metrics.get(LABEL_COUNTS)
    if counts is None:
        return points, None
    if not (
        isinstance(counts, list)
        and len(counts) <= MOST_CLASSES
        and all(isinstance(n, int) and n >= 0 for n in counts)
    ):
        raise Unusable(f"its {LABEL_COUNTS} are not counts")
    return points, tuple(counts)


def read_loss(metrics: Metrics) -> float:
    """Return the mean loss that a client reports; NaN if it reports none."""
    loss = read_number(metrics, LOSS) if LOSS in metrics else math.nan
    if LOSS in metrics and not math.isfinite(loss):
        raise NotFinite(f"its {LOSS} is {loss}")
    return loss


def check_names(found: Any, sent: Arrays) -> None:
    """Refuse arrays that are not named like those that a client was sent."""
    if found.keys() != sent.keys():
        odd = clip(min(found.keys() ^ sent.keys(), key=str))
        raise Unusable(f"its arrays are not those it was sent: {odd} is on one side only")


def check_finite_array(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array that a client sent, or refuse it where it has values that are not finite."""
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise NotFinite(f"{name} has values that are not finite")
    return values


def read_accuracies(
    metrics: Metrics, *, whole: bool, tested: bool, weighted_by: str = EXAMPLES
) -> tuple[float, float]:
    """Return the accuracies that the server requested: on all points, and on the goal test's.

    metrics: what it reports.
    whole: whether the server requested the accuracy on all samples.
    tested: whether it requested that on the goal test's samples.
    weighted_by: the metric that says on how many points.
    """
    if read_number(metrics, weighted_by) == 0:
        raise Unusable("it has no validation samples; give it some")
    read_count(metrics, weighted_by)
    return (
        _read_accuracy(metrics, ACCURACY) if whole else math.nan,
        _read_accuracy(metrics, GOAL_ACCURACY) if tested else math.nan,
    )


def read_number(metrics: Metrics, what: str) -> float:
    """Return a metric that must be one number."""
    if what not in metrics:
        raise Unusable(f"it does not say its {what}")
    value: Any = metrics[what]
    if not is_real(value):
        raise Unusable(f"its {what} is {reprlib.repr(value)} and not one number")
    return float(value)


def read_count(metrics: Metrics, what: str) -> int:
    """Return a metric that must be a number of samples."""
    number = read_number(metrics, what)
    if not (math.isfinite(number) and number == int(number) and 1 <= number <= MOST_SAMPLES):
        raise Unusable(f"its {what} is {number:g}, which cannot be")
    return int(number)


def _read_accuracy(metrics: Metrics, what: str) -> float:
    value = read_number(metrics, what)
    if not math.isfinite(value):
        raise NotFinite(f"its {what} is {value}")
    if not 0 <= value <= 1:
        raise Unusable(f"its {what} is {value:g}, and not between 0 and 1")
    return value
