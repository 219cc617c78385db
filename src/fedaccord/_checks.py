"""One check per kind of value that a user gives, and the conversions of numbers.

Every check takes what the value is called, for messages, and the value. It returns the value as
it is used, or raises the sentence "WHAT must be EXPECTED; got VALUE".
"""

from __future__ import annotations

import difflib
import math
import os
import re
import reprlib
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
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
# What rounding may leave below or above a whole number.
TIDY = 1e-6
# A fraction is read from at most this many characters.
LONGEST = 100_000
# Comparing spellings takes time: more names than this are not looked through, nor longer ones.
CLOSEST_AMONG = 1_000
CLOSEST_LENGTH = 100
# A misspelling is of a word of so many letters, and so much like it.
SLIP_LENGTH, SLIP_LIKENESS = 4, 0.8
# How umlauts are written where a keyboard has none; casefold() does the same for ß.
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
# Spaces that do not break or are thin, as programs put them into names.
SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), " ")


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Return whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_plain(value: Any) -> Any:
    """Return the Python number that a NumPy number stands for, and anything else as it is."""
    return value.item() if isinstance(value, np.number) else value


def check_whole(
    what: str, value: Any, *, least: int = 1, most: float = math.inf, expected: str | None = None
) -> int:
    """Return a whole number within bounds, or raise an InputError.

    what: what it is called, for messages.
    value: what was given.
    least, most: the bounds.
    expected: what it must be, for messages; said by the bounds where left out.
    """
    value = as_plain(value)
    if not is_whole(value) or not least <= value <= most:
        bounds = f"of {least} or more" if math.isinf(most) else f"from {least} to {most}"
        raise InputError(f"{what} must be {expected or f'a whole number {bounds}'}; got {value!r}")
    return int(value)


def check_real(
    what: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    expected: str | None = None,
) -> float:
    """Return a finite number within the bounds that are given, or raise an InputError.

    what: what it is called, for messages.
    value: what was given.
    above, least, most, below: the bounds.
    expected: what it must be, for messages; said by the bounds where left out.
    """
    value = as_plain(value)
    fits = (
        is_real(value)
        # Whole numbers can be beyond what a float holds.
        and abs(value) <= sys.float_info.max
        and (above is None or value > above)
        and (least is None or value >= least)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if not fits:
        bounds = {"above": above, "at least": least, "at most": most, "below": below}
        said = " and ".join(
            f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None
        )
        raise InputError(f"{what} must be {expected or f'a number {said}'.rstrip()}; got {value!r}")
    return float(value)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_workers(workers: object, *, here: bool = True) -> int:
    """Return a number of workers, or raise an InputError.

    workers: what was given.
    here: whether they are to work on this machine, which needs a core for each.
    """
    workers = check_whole("workers", workers)
    if here and workers > cores():
        most = cores()
        there = "1 core" if most == 1 else f"{most} cores"
        raise InputError(
            f"{workers} workers requested, but this machine has {there}: use {most} or fewer"
        )
    return workers


def check_choice(what: str, value: object, known: Sequence[str], *, hint: bool = False) -> str:
    """Return one of a few words, or raise an InputError that lists them.

    what: what it is called, for messages.
    value: what was given.
    known: the words there are.
    hint: whether to suggest the closest of them.
    """
    if value not in known:
        meant = suggest(value, known) if hint else ""
        raise InputError(f"{what} must be one of {', '.join(known)}; got {value!r}{meant}")
    return str(value)


def check_known(given: Iterable[str], known: Iterable[str], complaint: str) -> None:
    """Raise an InputError at a name that is not known, with the closest that is.

    given: the names to check.
    known: those there are.
    complaint: how the sentence begins that a wrong name ends.
    """
    names = list(known)
    for name in given:
        if name not in names:
            hint = suggest(name, names) or f"; there are {', '.join(names)}"
            raise InputError(f"{complaint} '{name}'{hint}")


def find_closest(name: object, known: Sequence[str]) -> str | None:
    """Return the name that somebody probably meant, if one is close; Sued is Süd, or SÜD."""
    folded = {_fold(other): other for other in known[:CLOSEST_AMONG]}
    found = difflib.get_close_matches(_fold(str(name))[:CLOSEST_LENGTH], list(folded), n=1)
    return folded[found[0]] if found else None


def _fold(name: str) -> str:
    return clean_name(name).casefold().translate(UMLAUTS)


def find_slip(name: str, known: Sequence[str]) -> str | None:
    """Return the name of which another is likely a misspelling, if there is one.

    Unlike close names, "type A" and "type B", or "Site 1" and "Site 2", are two things.
    """
    near = find_closest(name, known)
    if near is None:
        return None
    # Between letters 0 and 1 are likely letters too.
    one, other = (
        re.sub(r"(?<=[^\W\d])[01](?=[^\W\d])", lambda digit: "ol"[int(digit[0])], _fold(text))
        for text in (name, near)
    )
    words, others = one.split(), other.split()
    if len(words) == len(others):
        apart = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
        if any(max(map(len, pair)) < SLIP_LENGTH for pair in apart):
            return None
    alike = difflib.SequenceMatcher(None, one, other).ratio() >= SLIP_LIKENESS
    alike = alike or sorted(one) == sorted(other)
    return near if alike and re.findall(r"\d", one) == re.findall(r"\d", other) else None


def suggest(name: object, known: Sequence[str]) -> str:
    """Return the question whether the closest name was meant; nothing where none is close."""
    meant = find_closest(name, known)
    return f"; did you mean {meant}?" if meant else ""


def fill_in(
    named: Mapping[str, float], agents: Sequence[str], otherwise: Sequence[float], whom: str
) -> Vector:
    """Return a number for each agent, or raise an InputError at a name that is none.

    named: numbers by name.
    agents: the names there are.
    otherwise: the numbers of those who are not named.
    whom: what the agents are called, for messages.
    """
    # A letter with an accent may be written as one sign or as two.
    wanted = {clean_name(name): number for name, number in named.items()}
    cleaned = list(map(clean_name, agents))
    for name in wanted:
        if name not in cleaned:
            known = ", ".join(agents[:20]) + ("..." if len(agents) > 20 else "")
            meant = suggest(name, agents) or f"; they are: {known}"
            raise InputError(f"{name} is not among {whom}{meant}")
    pairs = zip(cleaned, otherwise, strict=True)
    return np.array([wanted.get(name, own) for name, own in pairs], dtype=float)


def clean_name(text: str) -> str:
    """Return a name with its letters composed and plain spaces, as most keyboards write it."""
    return unicodedata.normalize("NFC", text).translate(SPACES)


def frozen(array: AnyArray) -> AnyArray:
    """Make an array read-only, and return it."""
    array.setflags(write=False)
    return array


def round_bounds(minimums: Vector, limits: Vector) -> tuple[Vector, Vector]:
    """Return the least and the most whole numbers within bounds, up to rounding."""
    return np.ceil(minimums - TIDY), np.floor(limits + TIDY)


def round_wide_bounds(minimums: Vector, limits: Vector) -> tuple[Vector, Vector]:
    """Return the same; bounds stay as they are that have no whole number between them."""
    least, most = round_bounds(minimums, limits)
    narrow = least > most
    return np.where(narrow, minimums, least), np.where(narrow, limits, most)


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
            f"{what} must be numbers in a regular list; got {_shorten(values)}"
        ) from None


def read_fraction(text: str) -> Fraction:
    """Read a number such as "0.7", "1/3" or "2e-5"; raises ValueError as Fraction does."""
    if len(text) <= LONGEST and re.fullmatch(r"\d+/\d+", text):
        # Python refuses to read or write more than 4,300 digits at once; decimals do not.
        top, bottom = map(Decimal, text.split("/"))
        return Fraction(int(top), int(bottom))
    # Fraction("1e999999999") would set out to write down a billion digits.
    if len(text) > 1000 or re.search(r"[eE][-+]?[\d_]{4,}", text):
        raise ValueError(f"{_shorten(text)} is out of range")
    return Fraction(text)


def write_fraction(number: Fraction) -> str:
    """Write a fraction as "1/3", however many digits it has."""
    return f"{Decimal(number.numerator):f}/{Decimal(number.denominator):f}"


def _shorten(value: object) -> str:
    # reprlib looks at the first few items only: values may be millions, or nested without end.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_finite(
    array: Vector, what: str, name_of: Callable[[int], str], otherwise: str = ""
) -> None:
    """Refuse NaN, infinities, negatives and scales that double precision cannot square.

    otherwise: what else to do about a negative number.
    """
    for bad, why, remedy in (
        (np.isnan(array), "not a number", "fill in the missing value"),
        (np.isinf(array), "infinite", "give a finite number"),
        (array < 0, "negative", f"give a number that is zero or more{otherwise}"),
        (array > LARGEST, "too large", f"rescale the units to stay below {LARGEST:g}"),
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
    if value < 0:
        return -simplest_fraction(-value)
    # Up to half way to the next float on either side, less a trillionth of that: at half way
    # rounding may go either way. All three floats are whole numbers of the lower gap.
    part, whole = 10**12, 2 * 10**12
    exact, below, above = (
        n.as_integer_ratio()
        for n in (value, math.nextafter(value, 0.0), math.nextafter(value, math.inf))
    )
    unit = max(exact[1], below[1], above[1])
    middle, under, over = (n * (unit // d) for n, d in (exact, below, above))
    low = whole * middle - (part - 1) * (middle - under)
    high = whole * middle + (part - 1) * (over - middle)
    return _simplest_between(low, high, whole * unit)


def _simplest_between(low: int, high: int, unit: int) -> Fraction:
    """Return the fraction of the least denominator between low / unit and high / unit, above zero.

    Its continued fraction is that which both ends share, followed by the least whole number that
    fits.
    """
    before, last = (0, 1), (1, 0)
    low_unit = high_unit = unit
    while True:
        floor = -(-low // low_unit)
        fits = floor * high_unit <= high
        floor = floor if fits else low // low_unit
        before, last = last, (floor * last[0] + before[0], floor * last[1] + before[1])
        if fits:
            return Fraction(*last)
        low, low_unit, high, high_unit = (
            high_unit, high - floor * high_unit, low_unit, low - floor * low_unit,
        )  # fmt: skip


def exact_numbers(values: Any) -> list[Fraction]:
    """Read a one-dimensional array as Fractions."""
    return [simplest_fraction(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]
