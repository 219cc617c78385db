"""Checks and conversions shared by everything that takes numbers from a user."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord.errors import InputError

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

# Data outside this range is a slip of units far more often than a federation, and squares of it
# leave the range of a double.
LARGEST = 1e100
SMALLEST = 1e-100


def frozen(array: AnyArray) -> AnyArray:
    """Make an array read-only and give it back."""
    array.setflags(write=False)
    return array


def as_numbers(values: ArrayLike | Sequence[Any], what: str) -> NDArray[np.float64]:
    """Turn numbers, Fractions or strings such as "1/3" into floats, or say what is wrong."""
    try:
        if isinstance(values, np.ma.MaskedArray) and values.mask.any():
            raise TypeError("masked")
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            flat = [float(read_fraction(v) if isinstance(v, str) else v) for v in array.ravel()]
            array = np.array(flat, dtype=np.float64).reshape(array.shape)
        if array.dtype.kind not in "fiub":
            raise TypeError
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(
            f"{what} must be numbers in a regular list; got {_shortened(values)}"
        ) from None


def read_fraction(text: str) -> Fraction:
    """Read a number such as "0.7", "1/3" or "2e-5"; raises ValueError as Fraction does."""
    # Fraction("1e999999999") would set out to write down a billion digits.
    if len(text) > 1000 or re.search(r"[eE][-+]?[\d_]{4,}", text):
        raise ValueError(f"{_shortened(text)} is out of range")
    return Fraction(text)


def _shortened(value: object) -> str:
    # reprlib looks at the first few items only: values may be millions, or nested without end.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_finite(array: Vector, what: str, name_of: Callable[[int], str]) -> None:
    """Refuse NaN, infinities, negatives and scales that double precision cannot square."""
    for bad, why, remedy in (
        (np.isnan(array), "not a number", "fill in the missing value"),
        (np.isinf(array), "infinite", "give a finite number"),
        (array < 0, "negative", "give a number that is zero or more"),
        (np.abs(array) > LARGEST, "too large", f"rescale the units to stay below {LARGEST:g}"),
        (
            (array > 0) & (array < SMALLEST),
            "too small",
            f"rescale the units to stay above {SMALLEST:g}, or give zero",
        ),
    ):
        if bad.any():
            place = np.argwhere(bad)[0]
            column = f", column {place[1]}" if array.ndim == 2 else ""
            raise InputError(
                f"{what} of {name_of(int(place[0]))}{column} is {why} "
                f"({array[tuple(place)]!s}): {remedy}"
            )


def simplest_fraction(value: float) -> Fraction:
    """Read a float as the simplest fraction that rounds to it: 0.7 as 7/10, 1/9 as 1/9.

    A float stands for every real within half a unit in its last place; among the rationals there
    the one with the smallest denominator (found by walking the Stern-Brocot tree in continued-
    fraction steps) is what a person wrote, whenever a person wrote a short number.
    """
    if value == int(value):
        return Fraction(int(value))
    # Up to half way to the next float on either side, less a trillionth of that: at half way
    # rounding may go either way.
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    part = (1 - Fraction(1, 10**12)) / 2
    exact = Fraction(value)
    return _simplest_between(
        exact - part * (exact - Fraction(below)), exact + part * (Fraction(above) - exact)
    )


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -_simplest_between(-high, -low)
    # Peel off common integer parts: p/q simplest in [low, high] <=> its continued fraction is
    # the shared prefix followed by the least integer that fits.
    terms: list[int] = []
    while True:
        whole = math.ceil(low)
        if whole <= high:
            terms.append(whole)
            break
        floor = math.floor(low)
        terms.append(floor)
        low, high = 1 / (high - floor), 1 / (low - floor)
    result = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        result = term + 1 / result
    return result


def exact_numbers(values: Any) -> list[Fraction]:
    """Read a one-dimensional array as Fractions."""
    return [simplest_fraction(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]
