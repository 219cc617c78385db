"""Reading settings: each key of a section has a reader that takes its value or says what is wrong.

A section is a frozen dataclass whose fields are made by `key`; `read_section` fills one from a
table of a TOML file. The same readers judge the options of the command line.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from fedaccord.errors import InputError

# Takes what a value is called, for messages, and the value; gives it as it is used.
Reader: TypeAlias = Callable[[str, Any], Any]
Section = TypeVar("Section")


def whole(least: int = 1) -> Reader:
    """Take a whole number, not too small."""

    def read(what: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{what} must be a whole number of {least} or more; got {value!r}")
        return value

    return read


def real(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Reader:
    """Take a number within bounds, those that are given."""
    bounds = {"above": above, "at least": least, "at most": most, "below": below}
    range_text = " and ".join(f"{word} {b:g}" for word, b in bounds.items() if b is not None)

    def read(what: str, value: Any) -> float:
        fits = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            # Whole numbers can be beyond what a float holds.
            and abs(value) <= sys.float_info.max
            and (above is None or value > above)
            and (least is None or value >= least)
            and (most is None or value <= most)
            and (below is None or value < below)
        )
        if not fits:
            raise InputError(f"{what} must be a number {range_text}".rstrip() + f"; got {value!r}")
        return float(value)

    return read


def text(what: str, value: Any) -> str:
    """Take a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be a text in quotes; got {value!r}")
    return value


def choice(*known: str) -> Reader:
    """Take one of a few words."""

    def read(what: str, value: Any) -> str:
        if value not in known:
            suggestion = _meant(value, known)
            raise InputError(f"{what} must be one of {', '.join(known)}; got {value!r}{suggestion}")
        return str(value)

    return read


def listed(one: Reader, length: int | None = None) -> Reader:
    """Take a list of such values, of a given length or at least one."""

    def read(what: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value or length not in (None, len(value)):
            size = "one value or more" if length is None else f"{length} values"
            raise InputError(f"{what} must be a list of {size}, in brackets; got {value!r}")
        return tuple(one(f"each of {what}", entry) for entry in value)

    return read


def distinct(some: Reader) -> Reader:
    """Take a list in which nothing comes twice."""

    def read(what: str, value: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = some(what, value)
        for entry in found:
            if found.count(entry) > 1:
                shown = f"{entry:g}" if isinstance(entry, float) else entry
                raise InputError(f"{what} lists {shown} twice; keep one of them")
        return found

    return read


def one_or_each(one: Reader) -> Reader:
    """Take one value for all, or a list of one each."""
    several = listed(one)

    def read(what: str, value: Any) -> Any:
        return several(what, value) if isinstance(value, list | tuple) else one(what, value)

    return read


def key(reader: Reader, default: Any = None) -> Any:
    """Make a key of a section.

    reader: takes its value.
    default: what it is where the section does not have it.
    """
    return dataclasses.field(default=default, metadata={"reader": reader})


def read_section(section: type[Section], name: str, table: Any) -> Section:
    """Fill a section from a table of a TOML file, or say which key is at fault.

    section: a dataclass whose fields were made by `key`.
    name: what the section is called, such as "training".
    table: what the file has for it.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{name} must be a section, [{name}]; got {table!r}")
    readers = {
        f.name: f.metadata["reader"]
        for f in dataclasses.fields(section)  # type: ignore[arg-type]
    }
    check_known(table, readers, f"[{name}] has no key")
    return section(**{k: readers[k](f"[{name}] {k}", value) for k, value in table.items()})


def check_known(given: Iterable[str], known: Iterable[str], complaint: str) -> None:
    """Refuse a name that is not known, and suggest the closest that is.

    given: the names to check.
    known: those there are.
    complaint: how the sentence begins that a wrong name ends.
    """
    names = list(known)
    for name in given:
        if name not in names:
            hint = _meant(name, names) or f"; there are {', '.join(names)}"
            raise InputError(f"{complaint} '{name}'{hint}")


def check_bands(
    hard: tuple[float, float], easy: tuple[float, float], *, names: tuple[str, str]
) -> None:
    """Refuse bands of percentiles that are reversed or overlap.

    hard, easy: from and to which percentile each goes.
    names: what they are called, for messages.
    """
    for name, (low, high) in zip(names, (hard, easy), strict=True):
        if not 0 <= low < high <= 100:
            raise InputError(
                f"{name} must go from a percentile to a higher one, within 0 to 100; got {low:g} "
                f"to {high:g}"
            )
    if easy[1] > hard[0]:
        raise InputError(
            f"{names[1]} ends at {easy[1]:g} and {names[0]} begins at {hard[0]:g}; no point may be "
            "in both"
        )


def _meant(value: Any, known: Sequence[str]) -> str:
    """Ask whether a known name was meant, if one is close; capitals do not count."""
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(str(value).casefold()[:100], list(folded), n=1)
    return f"; did you mean {folded[close[0]]}?" if close else ""
