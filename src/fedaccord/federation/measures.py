"""Measures of a model: what each is on some points, and how far chance in the points moves it.

Outputs are what the model says of each point: of two classes the probability of class 1, which is
the positive one; of more classes one row of probabilities; of an amount the amount; of a time until
an event the risk, which is higher where the event comes sooner. Labels of times are pairs: the
time, and 1 if the event took place or 0 if that is all that is known.

Values are those of scikit-learn and lifelines, found faster: they are measured in every round. A
value is NaN where the points do not define it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from fedaccord._checks import Vector
from fedaccord.measurement.noise import deviate_auc_of_counts

Labels: TypeAlias = NDArray[Any]
Function: TypeAlias = Callable[[Labels, Vector], float]

# A threshold on the probability of class 1, where none is given.
HALF = 0.5
# How often points are drawn again where no formula is known.
RESAMPLES = 200
# Of two halves that differ this little, the logarithm is that of this.
LEAST_CHANCE = 1e-15


def find_outputs(scores: NDArray[Any]) -> Vector:
    """Return probabilities: of class 1 if there are two classes, else of each class.

    scores: of each point, one per class; a single one, of an amount or a risk, stays as it is. NaN
        where the best score is not finite.
    """
    wide = np.asarray(scores, dtype=np.float64)
    if wide.shape[1] == 1:
        return np.where(np.isfinite(wide[:, 0]), wide[:, 0], np.nan)
    with np.errstate(invalid="ignore"):
        found = expit(wide[:, 1] - wide[:, 0]) if wide.shape[1] == 2 else softmax(wide, axis=1)
    found[~np.isfinite(wide.max(axis=1))] = np.nan
    return np.asarray(found)


# Values.


def _choose(outputs: Vector) -> NDArray[Any]:
    """Return the class of each point; of classes with equal scores the first, as training does."""
    return outputs > HALF if outputs.ndim == 1 else outputs.argmax(axis=1)


def find_accuracy(labels: Labels, outputs: Vector) -> float:
    """Return the share of points whose class is found."""
    return float((_choose(outputs) == labels).mean()) if len(labels) else np.nan


def find_recalls(labels: Labels, outputs: Vector) -> tuple[Vector, NDArray[Any]]:
    """Return the share of each class that is found, and how many points each class has."""
    classes, counts = np.unique(labels, return_counts=True)
    right = _choose(outputs) == labels
    return np.array([right[labels == one].mean() for one in classes]), counts


def find_balanced_accuracy(labels: Labels, outputs: Vector) -> float:
    """Return the mean over classes of the share that is found."""
    return float(find_recalls(labels, outputs)[0].mean()) if len(labels) else np.nan


def find_sensitivity(labels: Labels, outputs: Vector, threshold: float = HALF) -> float:
    """Return the share of positive points whose output is at least the threshold."""
    positive = outputs[labels == 1]
    return float((positive >= threshold).mean()) if len(positive) else np.nan


def find_specificity(labels: Labels, outputs: Vector, threshold: float = HALF) -> float:
    """Return the share of negative points whose output is below the threshold."""
    negative = outputs[labels != 1]
    return float((negative < threshold).mean()) if len(negative) else np.nan


def _place(points: Vector, among: Vector) -> Vector:
    """Return for each point the share of others that it is above; a tie counts half."""
    ordered = np.sort(among)
    below = ordered.searchsorted(points, "left") + ordered.searchsorted(points, "right")
    return np.asarray(below / (2 * len(among)))


def find_auc(labels: Labels, outputs: Vector) -> float:
    """Return how often a positive point is above a negative one; a tie counts half."""
    positive, negative = outputs[labels == 1], outputs[labels != 1]
    if not (len(positive) and len(negative)):
        return np.nan
    return float(_place(positive, negative).mean())


def _losses(labels: Labels, outputs: Vector) -> Vector:
    """Return minus the logarithm of the probability of each point's class."""
    if outputs.ndim == 1:
        chances = np.where(labels == 1, outputs, 1 - outputs)
    else:
        chances = outputs[np.arange(len(labels)), labels]
    return np.asarray(-np.log(np.maximum(chances, LEAST_CHANCE)))


def _squares(labels: Labels, outputs: Vector) -> Vector:
    """Return the squared distance of each point's probabilities from its class.

    Of two classes one probability counts, so that the score lies in 0 to 1, and of more classes in
    0 to 2.
    """
    if outputs.ndim == 1:
        return np.asarray((outputs - labels) ** 2)
    return np.asarray(((outputs - np.eye(outputs.shape[1])[labels]) ** 2).sum(axis=1))


def _distances(labels: Labels, outputs: Vector) -> Vector:
    return np.abs(outputs - labels)


def find_r2(labels: Labels, outputs: Vector) -> float:
    """Return the share of the variance of amounts that the outputs explain."""
    total = ((labels - labels.mean()) ** 2).sum() if len(labels) else 0.0
    return float(1 - ((labels - outputs) ** 2).sum() / total) if total > 0 else np.nan


def find_c_index(labels: Labels, outputs: Vector) -> float:
    """Return how often the event comes sooner where the risk is higher; a tie counts half.

    A pair counts if one had the event, and the other had it later or was seen without it until
    then.
    """
    times, events = labels[:, 0], labels[:, 1] > 0
    later = (times[:, None] < times) | ((times[:, None] == times) & ~events)
    pairs = events[:, None] & later
    if not pairs.any():
        return np.nan
    higher = outputs[:, None] > outputs
    ties = outputs[:, None] == outputs
    return float((higher + 0.5 * ties)[pairs].mean())


def _mean_of(points: Callable[[Labels, Vector], Vector]) -> Function:
    return lambda labels, outputs: float(points(labels, outputs).mean()) if len(labels) else np.nan


# How far chance moves a value: the standard deviation over draws of as many points.


def _binomial(value: float, count: float) -> float:
    """Return the deviation of a share of some points; a share of 0 or 1 may be half a point off."""
    least = 0.5 / count
    share = min(max(value, least), 1 - least)
    return float(np.sqrt(share * (1 - share) / count))


def _deviate_accuracy(labels: Labels, outputs: Vector) -> float:
    return _binomial(find_accuracy(labels, outputs), len(labels))


def _deviate_balanced(labels: Labels, outputs: Vector) -> float:
    recalls, counts = find_recalls(labels, outputs)
    each = [_binomial(*pair) for pair in zip(recalls.tolist(), counts.tolist(), strict=True)]
    return float(np.linalg.norm(each) / len(each))


def _deviate_sensitivity(labels: Labels, outputs: Vector, threshold: float = HALF) -> float:
    return _binomial(find_sensitivity(labels, outputs, threshold), int((labels == 1).sum()))


def _deviate_specificity(labels: Labels, outputs: Vector, threshold: float = HALF) -> float:
    return _binomial(find_specificity(labels, outputs, threshold), int((labels != 1).sum()))


def deviate_auc(labels: Labels, outputs: Vector) -> float:
    """Return the standard deviation of an AUC (DeLong, DeLong and Clarke-Pearson, 1988).

        var  =  var(share of negatives below each positive) / positives
              + var(share of positives above each negative) / negatives

    Where it is 0, or a class has one point, that of Hanley and McNeil stands in: classes that are
    apart by chance do not make an AUC certain.
    """
    positive, negative = outputs[labels == 1], outputs[labels != 1]
    above, below = _place(positive, negative), _place(negative, positive)
    if min(len(above), len(below)) > 1:
        found = above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below)
        if found > 0:
            return float(np.sqrt(found))
    return deviate_auc_of_counts(float(above.mean()), len(above), len(below))


def _deviate_mean_of(points: Callable[[Labels, Vector], Vector]) -> Function:
    def deviate(labels: Labels, outputs: Vector) -> float:
        found = points(labels, outputs)
        return float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.nan

    return deviate


def deviate_by_bootstrap(
    function: Function, labels: Labels, outputs: Vector, *, resamples: int = RESAMPLES
) -> float:
    """Return the standard deviation of any measure over draws of the points with replacement.

    function: the measure.
    labels, outputs: of the points.
    resamples: how often points are drawn; draws that do not define the measure are left out.
    """
    random = np.random.default_rng(0)
    rows = random.integers(len(labels), size=(resamples, len(labels)))
    found = np.array([function(labels[some], outputs[some]) for some in rows])
    found = found[np.isfinite(found)]
    return float(found.std(ddof=1)) if len(found) > 1 else np.nan


@dataclass(frozen=True)
class Known:
    """How a measure is found.

    value: the measure.
    deviation: its standard deviation by chance in the points; by bootstrap where there is none.
    classes: which classes it needs points of: 1 and others ("both"), 1 ("positive"), others
        ("negative"), any (""). All but the last are about two classes.
    thresholded: whether it depends on a threshold.
    labels: what it is about: "classes", "amounts" or "times".
    """

    value: Callable[..., float]
    deviation: Callable[..., float] | None
    classes: str = ""
    thresholded: bool = False
    labels: str = "classes"


KNOWN = {
    "accuracy": Known(find_accuracy, _deviate_accuracy),
    "balanced accuracy": Known(find_balanced_accuracy, _deviate_balanced),
    "AUC": Known(find_auc, deviate_auc, "both"),
    "sensitivity": Known(find_sensitivity, _deviate_sensitivity, "positive", True),
    "specificity": Known(find_specificity, _deviate_specificity, "negative", True),
    "log loss": Known(_mean_of(_losses), _deviate_mean_of(_losses)),
    "Brier": Known(_mean_of(_squares), _deviate_mean_of(_squares)),
    "R2": Known(find_r2, None, labels="amounts"),
    "MAE": Known(_mean_of(_distances), _deviate_mean_of(_distances), labels="amounts"),
    "C-index": Known(find_c_index, None, labels="times"),
}
