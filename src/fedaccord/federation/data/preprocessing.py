"""From what a file holds to what a network is given; fitted on training points alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, frozen
from fedaccord.errors import InputError

# Images of bytes become (x / 255 - SHIFT) / SCALE: MNIST's mean and deviation, fixed so that
# weights which were trained before fit every later deal; the paper's authors use the same.
SHIFT, SCALE = 0.1307, 0.3081


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name: what it is called.
    levels: the texts that occur in a text column, whose cells hold their places in this list;
        None for numbers.
    gaps: whether any value is missing (NaN) in the whole table.
    """

    name: str
    levels: tuple[str, ...] | None = None
    gaps: bool = False

    @property
    def features(self) -> int:
        """How many numbers a network is given for a cell."""
        return 1 + self.gaps if self.levels is None else len(self.levels)


def prepared_shape(shape: tuple[int, ...], columns: tuple[Column, ...] | None) -> tuple[int, ...]:
    """Return the shape in which a network is given one point.

    It depends on the whole data set and not on which points train, so that one network fits
    every split.

    shape: the raw shape of a point.
    columns: the columns of a table; None for images.
    """
    if columns is not None:
        return (sum(column.features for column in columns),)
    return (1, *shape) if len(shape) == 2 else shape


@dataclass(frozen=True, eq=False)
class Preparation:
    """How raw points become a network's inputs.

    Images get a channel axis; bytes are scaled by constants to about mean 0 and standard
    deviation 1, floats stay as they are.
    In a table a missing number is replaced by the column's median and a further feature says that
    it was missing; numbers are then shifted and scaled to mean 0 and standard deviation 1; a text
    becomes one feature per level, all zero where it is missing.

    columns: the columns of a table; None for images.
    medians, means, deviations: one per column, from training points; empty for images.
    """

    columns: tuple[Column, ...] | None
    medians: Vector
    means: Vector
    deviations: Vector

    @classmethod
    def fit(cls, inputs: NDArray[Any], columns: tuple[Column, ...] | None) -> Preparation:
        """Take medians, means and deviations from training points, which alone may be given.

        inputs: the raw training points, of all clients together.
        columns: the columns of a table; None for images.
        """
        if columns is None:
            nothing = frozen(np.empty(0))
            return cls(None, nothing, nothing, nothing)
        if len(inputs) == 0:
            raise InputError("there are no training points to take medians and scales from")
        values = np.asarray(inputs, dtype=np.float64)
        # A column of which the training points know nothing is filled with zeros: no information.
        known = ~np.isnan(values)
        medians = np.array(
            [np.median(v[k]) if k.any() else 0.0 for v, k in zip(values.T, known.T, strict=True)]
        )
        filled = np.where(known, values, medians)
        deviations = filled.std(axis=0)
        deviations[deviations < 1e-12 * np.maximum(1, np.abs(medians))] = 1.0
        return cls(columns, frozen(medians), frozen(filled.mean(axis=0)), frozen(deviations))

    def apply(self, inputs: NDArray[Any]) -> NDArray[np.float32]:
        """Turn raw points into a network's inputs."""
        if self.columns is None:
            pixels = inputs.astype(np.float32)
            if inputs.dtype == np.uint8:
                pixels = (pixels / np.float32(255) - np.float32(SHIFT)) / np.float32(SCALE)
            return pixels.reshape(len(inputs), *prepared_shape(inputs.shape[1:], None))
        values = np.asarray(inputs, dtype=np.float64)
        features: list[NDArray[Any]] = []
        for place, column in enumerate(self.columns):
            cells = values[:, place]
            missing = np.isnan(cells)
            if column.levels is not None:
                features.extend(cells == level for level in range(len(column.levels)))
                continue
            filled = np.where(missing, self.medians[place], cells)
            features.append((filled - self.means[place]) / self.deviations[place])
            if column.gaps:
                features.append(missing)
        return np.stack(features, axis=1).astype(np.float32)
