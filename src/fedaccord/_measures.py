"""The measures of a model that goals can be in: which way each goes, and its range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fedaccord._checks import suggest
from fedaccord.errors import InputError


class Measure(NamedTuple):
    """A number that says how good a model is.

    rises: whether more data raises it; losses and errors fall.
    low, high: the range in which a goal makes sense.
    """

    rises: bool
    low: float
    high: float


MEASURES: Mapping[str, Measure] = {
    "accuracy": Measure(True, 0.0, 1.0),
    "balanced accuracy": Measure(True, 0.0, 1.0),
    "AUC": Measure(True, 0.0, 1.0),
    "sensitivity": Measure(True, 0.0, 1.0),
    "specificity": Measure(True, 0.0, 1.0),
    "C-index": Measure(True, 0.0, 1.0),
    "R2": Measure(True, 0.0, 1.0),
    "log loss": Measure(False, 0.0, np.inf),
    "Brier": Measure(False, 0.0, 2.0),
    "MAE": Measure(False, 0.0, np.inf),
}


def read_measure(measure: object, title: str) -> str:
    """Return a measure as MEASURES spells it; capitals do not count."""
    names = {name.casefold(): name for name in MEASURES}
    if not isinstance(measure, str) or measure.casefold() not in names:
        meant = suggest(measure, list(MEASURES)) or f"; give one of {', '.join(MEASURES)}"
        raise InputError(f"the measure {measure!r} of {title} is not known{meant}")
    return names[measure.casefold()]
