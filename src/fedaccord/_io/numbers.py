"""Numbers as people write them in tables: thousands, decimals, per cent, withheld counts."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from fedaccord._checks import as_numbers
from fedaccord._io.kinds import TYPES, Type
from fedaccord.errors import InputError

# Spaces and quotes that stand between thousands, a minus that is no hyphen, and signs of no width.
PLAINER = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-", "\uff05": "%"}
    | dict.fromkeys("\u200b\u200e\u2060\ufeff", "")
)
# Almost every cell: what is read as such goes fast, and to the same number.
PLAIN = re.compile(r"[0-9]{1,30}")
GROUPED = re.compile(
    r"[+-]?[1-9][0-9]{0,2}(?:(?P<group>[ '.,])[0-9]{3})(?P<more>(?:(?P=group)[0-9]{3})*)"
    r"(?:(?P<mark>[.,])[0-9]+)?"
)
DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+(?P<mark>[.,])[0-9]*|(?P<bare>[.,])[0-9]+)(?:[eE][+-]?[0-9]+)?"
)
# A count that was withheld because it is small, as <11.
SUPPRESSED = re.compile(r"(<=|≤|<(?!=|\s*0+\*?$))\s*([0-9]{1,6})\*?")
# A bound on a count in words.
SAID_BOUND = re.compile(
    r"(?:(?P<below>unter|under|below|less than|fewer than|weniger als)"
    r"|(?:höchstens|at most|up to|bis zu|max\.?)) ?(?P<number>[0-9]{1,6})",
    re.IGNORECASE,
)
# What is only a bound, as <0.8.
BOUND = re.compile(r"[<>≤≥]=?\s*[0-9.,]+\s*%?")
# A date that a spreadsheet made of a number, as 03.04.2026, Apr 03 or 3. Mai.
MONTH = "(?:jan|feb|mar|mär|mrz|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\\W0-9]*"
DATE = re.compile(
    r"[0-9]{1,2}([./-])[0-9]{1,2}\1(?:[0-9]{4}|[0-9]{2})?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    rf"|{MONTH}[. -]*[0-9]{{1,4}}|[0-9]{{1,4}}[. -]*{MONTH}\.?",
    re.IGNORECASE,
)
# A number in thousands, millions or per mille; three digits behind a mark may be thousands.
SCALED = re.compile(
    r"(?P<number>[+-]?[0-9]+(?:[.,](?P<part>[0-9]+))?) ?"
    r"(?:(?P<k>k|tsd\.?|thousand)|(?P<m>m|mio\.?|million)|(?P<mille>‰|per ?mille?|promille)"
    r"|(?P<cent>per ?cent|pct\.?|prozent))",
    re.IGNORECASE,
)
SCALES = {"k": 3, "m": 6, "mille": -3, "cent": -2}
# A number in which a letter stands for the digit that looks like it.
LOOKALIKE = re.compile(
    r"(?=.*[OolI])[0-9OolI]*[0-9][0-9OolI]*(?:[.,][0-9OolI]+)?|[Oo][.,][0-9OolI]+"
)
DIGITS = str.maketrans("OolI", "0011")
# Two numbers and what stands between them, as 600-800 or 5 to 10.
RANGE = re.compile(r"[0-9][0-9.,' ]*%? ?(?:-|–|—|to|bis) ?[0-9][0-9.,' ]*%?", re.IGNORECASE)
# A count from 0 or 1 on, as 1-10, and a number that is negative in accounts, as (240) or 240-.
SMALL = re.compile(r"[01] ?(?:-|–|—|to|bis) ?([0-9]{1,6})", re.IGNORECASE)
NEGATIVE = re.compile(r"\(([0-9][0-9.,]*)\)|([0-9][0-9.,]*) ?-")
MARKS = {".": "a point", ",": "a comma"}


class Exact(str):
    """A number that a workbook holds as such, so that its text can mean one thing only."""

    __slots__ = ()


class Shown(Exact):
    """A number that a workbook shows so that it looks like another.

    code: how the cell is shown.
    scaled: whether it is shown in thousands or millions; if not, with three decimals.
    """

    __slots__ = ("code", "scaled")
    code: str
    scaled: bool


class Date(str):
    """A date that a workbook holds in a cell, often what became of a number like 1.5."""

    __slots__ = ()


class Merged(str):
    """An empty cell of a workbook that is merged with another.

    above: what the first of the merged cells holds, if it stands in the same column.
    left: what it holds, if it stands in a column to the left.
    """

    __slots__ = ("above", "left")
    above: str
    left: str


class Suspicion(str):
    """A note on a table that speaks against trusting what is made from it."""

    __slots__ = ()


@dataclass
class Marks:
    """What points and commas mean in a file, and the cell that shows it.

    roles: by the mark, whether it stands before decimals or between thousands, and where.
    columns: those in which a mark stands before decimals.
    """

    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    columns: set[str] = field(default_factory=set)

    def learn(self, text: str, kind: Type, column: str, describe: Callable[[], str]) -> None:
        """Take note of what a cell shows, or raise an InputError where another shows otherwise.

        text: the cell.
        kind: of its column.
        column: its column.
        describe: says what it is and where it stands.
        """
        if isinstance(text, Exact):
            return
        text = text.translate(PLAINER).rstrip("% ")
        if (found := GROUPED.fullmatch(text)) and found["mark"] != found["group"]:
            single = not found["more"] and not found["mark"]
            if found["group"] in MARKS and (kind == "share" or not single):
                self._note(found["group"], "decimals" if single else "thousands", text, describe)
            if found["mark"]:
                self._note(found["mark"], "decimals", text, describe)
                self.columns.add(column)
        elif found := DECIMAL.fullmatch(text):
            self._note(found["mark"] or found["bare"], "decimals", text, describe)
            self.columns.add(column)

    def _note(self, mark: str, role: str, text: str, describe: Callable[[], str]) -> None:
        others = [r for m, (r, _) in self.roles.items() if m != mark]
        if self.roles.get(mark, ("",))[0] == role and "decimals" not in others:
            return
        here = f'{describe()} reads "{text}"'
        before = {m: (r, where) for m, (r, where) in self.roles.items() if m == mark and r != role}
        if role == "decimals":
            before |= {m: v for m, v in self.roles.items() if m != mark and v[0] == "decimals"}
        for other, (its_role, where) in before.items():
            raise InputError(
                f"{here}, with {MARKS[mark]} for {role}, and {where}, with {MARKS[other]} for "
                f"{its_role}: write all numbers one way"
            )
        self.roles.setdefault(mark, (role, here))

    def clean(self, text: str, kind: Type, column: str, what: str) -> str:
        """Return a number with a point for decimals and nothing between thousands.

        text: the cell; what is no number comes back as it is.
        kind: of its column.
        column: its column.
        what: what it is and where it stands, for messages.
        """
        found = GROUPED.fullmatch(text)
        if found is None or found["mark"] == found["group"]:
            return text.replace(",", ".") if DECIMAL.fullmatch(text) else text
        group = found["group"]
        single = group in MARKS and not found["more"] and not found["mark"]
        if single and self._is_decimal(text, group, kind, column, what):
            return text.replace(",", ".")
        return text.replace(group, "").replace(",", ".")

    def _is_decimal(self, text: str, mark: str, kind: Type, column: str, what: str) -> bool:
        """Return whether a mark before three digits is that of decimals; refuse where unclear."""
        role = self.roles.get(mark, ("",))[0]
        other = self.roles.get("," if mark == "." else ".", ("",))[0]
        shown = kind == "amount" and column in self.columns
        if kind == "share" or (role == "decimals" and shown):
            return True
        if role == "thousands" or (not role and other == "decimals"):
            return False
        whole, part = text.split(mark)
        if kind == "count" and part.strip("0"):
            if role == "decimals":
                raise InputError(
                    f'{what} reads "{text}", and {self.roles[mark][1]}, with {MARKS[mark]} for '
                    f"decimals: write {whole}{part}, or the whole number that is meant"
                )
            # Only one of the two readings is a whole number.
            return False
        decimal = f"{whole}.{part.rstrip('0')}".rstrip(".")
        remedy = f"write {whole}{part}" if kind == "count" else f"write {whole}{part} or {decimal}"
        remedy += "" if kind == "count" or part.endswith("0") else "0"
        raise InputError(
            f'{what} reads "{text}", which can be {whole}{part} or {decimal}: {remedy}'
        )


def read_number(
    text: str, what: str, marks: Marks, *, kind: Type = "amount", column: str = ""
) -> float:
    """Read a number, or raise an InputError that says how to write it.

    text: the cell.
    what: what it is and where it stands, for messages.
    marks: what points and commas mean in the file.
    kind: of its column.
    column: its name.
    """
    if PLAIN.fullmatch(text) or isinstance(text, Exact):
        return float(text)
    plainer = marks.clean(text.translate(PLAINER), kind, column, what)
    value = math.nan
    # Numbers of samples are no parts of others.
    if "/" not in plainer or (kind != "count" and column != "need"):
        with contextlib.suppress(InputError):
            value = float(as_numbers([plainer], what)[0])
    if math.isnan(value):
        raise InputError(f'{what} reads "{shorten(text)}": {_find_remedy(text, column)}')
    return value


def read_share(text: str, what: str, marks: Marks, *, column: str = "") -> float:
    """Read a share of one, or one in per cent with its sign, or raise an InputError.

    text: the cell.
    what: what it is and where it stands, for messages.
    marks: what points and commas mean in the file.
    column: its name.
    """
    plainer = re.sub(r"(?<=[0-9]) */ *(?=[0-9])", "/", text.translate(PLAINER))
    value = read_number(plainer.rstrip("% "), what, marks, kind="share", column=column)
    if not plainer.endswith("%"):
        return value
    if 0 < value < 1:
        raise InputError(
            f'{what} reads "{text}", less than one in a hundred: write {to_share(1e4 * value):g} % '
            f"or {value:g}"
        )
    return to_share(value)


def to_share(percent: float) -> float:
    """Return a share that is in per cent, as the decimal number that it is.

    87.4 / 100 would be off in the last place.
    """
    return float(Decimal(repr(percent)).scaleb(-2))


ERROR = "an error of the spreadsheet; correct its formula"


def _find_remedy(text: str, column: str) -> str:
    if text.startswith("#"):
        return ERROR
    if SUPPRESSED.fullmatch(text):
        return "a count that is withheld cannot be used here; write the number itself"
    is_count = column == "count" or bool(column and column not in TYPES)
    if said := SAID_BOUND.fullmatch(text):
        sign = "<" if said["below"] else "≤"
        if is_count:
            return f"write {sign}{said['number']}, without the word"
    if is_count and (worded := re.fullmatch(r"([<≤]\s?[0-9]+)\s*[^\W\d].*", text)):
        return f"write {worded[1]}, without the words"
    if said or BOUND.fullmatch(text):
        empty = ", or leave the cell empty" if column != "contribution" and not is_count else ""
        return f"a bound cannot be used; write the number itself{empty}"
    if DATE.fullmatch(text):
        return "it is a date; format the cell as a number and type the number again"
    if scaled := SCALED.fullmatch(text.translate(PLAINER)):
        number = Decimal(scaled["number"].replace(",", ".")).scaleb(SCALES[scaled.lastgroup or ""])
        return "write it in full" if len(scaled["part"] or "") == 3 else f"write {number:f}"
    if is_count and (small := SMALL.fullmatch(text)):
        most = int(small[1]) + 1
        return f"write <{most} if the count is withheld because it is small, or the number itself"
    if RANGE.fullmatch(text.translate(PLAINER)):
        return "a range cannot be used; write one number"
    if found := NEGATIVE.fullmatch(text):
        digits = found[1] or found[2]
        return f"it can mean -{digits}; write {digits} if that is meant"
    if LOOKALIKE.fullmatch(text):
        return (
            f"it has a letter in place of a digit; write {text.translate(DIGITS)} if that is meant"
        )
    # What follows in brackets, or after a sign, is how far the number is sure.
    text = re.split(r"(?<=[0-9%])\s*[±(\[]", text, maxsplit=1)[0]
    numbers = re.findall(r"[0-9]+(?:[.,][0-9]+)?", text)
    if len(numbers) == 1:
        return f"write the number alone, as {numbers[0].replace(',', '.')}"
    if re.search(r"[0-9][^\W\d_]", text):
        return "write it in digits alone, as 1700"
    if numbers:
        return "write it with a point for decimals and no separators, as 1700 or 0.85"
    if column == "accuracy":
        return 'write a number, or "failed" where training failed; leave it empty if not measured'
    if column == "contribution":
        return "write a number (0 if there is none)"
    if is_count:
        return (
            "write a number, 0 where there is none, or a bound such as <11 where the count is "
            "withheld because it is small"
        )
    return "write a number, or leave the cell empty where there is none"


def find_middle(bound: re.Match[str]) -> float:
    """Return the middle of what a count can be that was withheld: 5 for <11, of 0 to 10."""
    most = int(bound[2]) - (bound[1] == "<")
    return max(most, 0) / 2


def shorten(text: str) -> str:
    """Return a cell for messages, which may be of any length."""
    return text if len(text) <= 40 else text[:37] + "..."
