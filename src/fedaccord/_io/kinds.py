"""The kinds of tables that commands read: their columns and headings, and what each is for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fedaccord._checks import find_slip

Type = Literal["name", "count", "amount", "share"]

# What the cells of each column are: names, whole counts, any amounts, or shares of one.
TYPES: Mapping[str, Type] = {
    "pilot": "name",
    "agent": "name",
    "label": "name",
    "contribution": "count",
    "reserve": "count",
    "count": "count",
    "validation": "count",
    "limit": "count",
    "minimum": "count",
    "need": "amount",
    "cost": "amount",
    "accuracy": "share",
    "goal": "share",
}
# The headings that mean a column, besides its own name, in small letters and with single spaces.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "pilot": (
        *("pilots", "run", "experiment", "lauf", "pilot no", "pilot nr", "pilot number"),
        *("run no", "run nr", "run number"),
    ),
    "agent": (
        *("agents", "hospital", "site", "client", "member", "centre", "center"),
        *("institution", "clinic", "name", "klinik", "krankenhaus", "standort"),
        *("agent name", "hospital name", "site name", "client name", "centre name"),
        *("center name", "clinic name", "name of hospital", "name of site"),
    ),
    "label": ("labels", "class", "diagnosis", "category", "klasse", "diagnose"),
    "contribution": (
        *("contributions", "cases", "samples", "n", "patients", "given", "gives"),
        *("cases given", "fälle", "patienten", "anzahl", "anzahl fälle", "beitrag"),
        *("number of cases", "number of samples", "number of patients", "no. of cases"),
    ),
    "reserve": ("reserves",),
    "count": (
        *("counts", "cases", "samples", "n", "patients", "fälle", "patienten", "anzahl"),
        *("anzahl fälle", "number of cases", "number of samples", "number of patients"),
        "no. of cases",
    ),
    "validation": (
        *("validation size", "validation points", "validation cases", "n val", "test cases"),
        *("validierung", "testfälle"),
    ),
    "limit": (
        *("limits", "available", "max", "maximum", "capacity", "grenze", "obergrenze"),
        *("verfügbar", "verfügbare"),
    ),
    "minimum": ("minimums", "min"),
    "need": ("needs", "needed", "required", "requirement", "requirements", "bedarf", "benötigt"),
    "cost": ("costs", "price", "kosten"),
    "accuracy": ("accuracies", "acc", "genauigkeit"),
    "goal": ("goals", "target", "target accuracy", "ziel"),
}
# What an agent has one of: the field that keeps it, and what it is where nothing is said.
OWN: Mapping[str, tuple[str, float]] = {
    "need": ("needs", math.nan),
    "goal": ("goals", math.nan),
    "validation": ("validation", math.nan),
    "limit": ("limits", math.inf),
    "minimum": ("minimums", 0.0),
    "cost": ("costs", 1.0),
}
# What stands for the accuracy of a training that failed.
FAILED = frozenset(("failed", "fail", "diverged"))
# Headings of numbers that are no counts of a label.
NO_LABELS = frozenset(
    (
        *("nr", "no.", "#", "id", "hospital id", "site id", "number", "index", "year", "jahr"),
        *("beds", "betten", "phone", "phone number", "telephone", "telefon", "tel", "fax"),
        *("postcode", "postal code", "zip", "zip code", "plz"),
    )
)
NO_LABEL = re.compile(r"(?:nummer|\bnumber|\bnr|\bid|datum|\bdate)\.?$|unnamed: ?[0-9]+$")
# Headings of texts for people.
COMMENTS = re.compile(r"(?:comment|note|remark|kommentar|bemerkung|anmerkung|hinweis)(?:s|e|en)?$")
# Headings of samples that have no label, and of those that other columns count already.
UNLABELLED = re.compile(r"(?:un|not |non ?)label?led$|(?:without|ohne) label$")
AGAIN = re.compile(r"(?:of which|of these|of those|thereof|davon|darunter)\b")
# A name of shares in per cent, unlike ">50 % stenosis".
PERCENT = re.compile(
    r"(?:^|[^0-9\s])\s*%[)\]]?$|^%(?: |[0-9]+$)|\b(?:in per ?cent|in prozent|pct\.?)$",
    re.IGNORECASE,
)
# Words that are like a heading, and can be labels.
NO_SLIPS = frozenset(
    (
        *("goat", "gout", "coal", "goals", "cyst", "cast", "coat", "coast", "most", "host", "post"),
        *("costa", "lost", "seed", "weed", "feed", "reed", "deed", "knead", "need", "mint", "mine"),
        *("mind", "mini", "mix", "boat", "lime", "viel", "spiel", "tiel", "kiel"),
    )
)
# The shortest heading of which others are likely misspellings: "goat" is a label, and no goal.
LEAST_LETTERS = 4
# Columns of numbers of samples or of prices, and what a heading may say of that besides: what is
# counted, or the unit, as in "max cases", "cases available" or "cost per case (EUR)".
COUNTED = ("validation", "limit", "minimum", "need", "cost")
NOUN = "(?:cases|samples|patients|fälle|patienten)"
BESIDES = re.compile(
    rf"^{NOUN} | {NOUN}$| (?:per|pro|je) (?:case|sample|patient|fall)$"
    rf"| ?[(\[](?:{NOUN}|n|€|eur|euro|\$|usd)[)\]]$"
)
# What a contribution is counted in, as in "contribution (cases)".
UNIT = re.compile(rf" ?[(\[]{NOUN}[)\]]$")
# What a heading says of numbers in per cent.
CENT = re.compile(
    r"\s*(\(%\)|\[%\]|in %|%|\bin per ?cent|\(in per ?cent\)|\(per ?cent\)|\bin prozent)$"
)
# What a line is called that has the mean of the others, or the sum of some.
MEANS = frozenset(
    ("mean", "average", "avg", "avg.", "median", "mittelwert", "durchschnitt", "subtotal")
)
# What a line is called that sums up the others.
TOTALS = frozenset(
    (
        *("total", "totals", "grandtotal", "sum", "all", "overall", "σ", "∑"),
        *("gesamt", "gesamtsumme", "insgesamt", "summe", "zusammen"),
        *("somme", "totale", "totaal", "totaux", "suma"),
    )
)


@dataclass(frozen=True)
class TableKind:
    """A kind of table: its columns, and what it is for.

    title: what it is called in messages.
    needed: the columns it must have.
    own: the columns it may have.
    example: its first line.
    use: the command that takes it, with the file as {path}.
    amounts: columns that hold any amounts in it, not whole counts.
    labels: whether every other column holds the counts of a label.
    also: headings that mean a column in this kind of table only.
    """

    title: str
    needed: tuple[str, ...]
    own: tuple[str, ...]
    example: str
    use: str
    amounts: tuple[str, ...] = ()
    labels: bool = False
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def type_of(self, column: str) -> Type:
        """Return what the cells of a column are."""
        return "amount" if column in self.amounts else TYPES.get(column, "count")

    def headings(self, column: str) -> tuple[str, ...]:
        """Return the headings that mean a column, its own name first."""
        return (column, *SYNONYMS[column], *self.also.get(column, ()))

    def find_column(self, heading: str) -> str | None:
        """Return the column that a heading means, if there is one."""
        words = simplify(heading).rstrip(".:")
        known = (*self.needed, *self.own)
        if UNIT.search(words) and UNIT.sub("", words) in self.headings("contribution"):
            words = "contribution"
        found = next((column for column in known if words in self.headings(column)), None)
        bare = BESIDES.sub("", BESIDES.sub("", words, count=1), count=1).rstrip(".")
        counted = (column for column in known if column in COUNTED)
        return found or next((name for name in counted if bare in self.headings(name)), None)

    def find_misspelt(self, heading: str, among: Iterable[str]) -> str | None:
        """Return the column of which a heading is likely a misspelling, if there is one.

        among: the columns that it may mean.
        """
        for column in among:
            known = [words for words in self.headings(column) if len(words) >= LEAST_LETTERS]
            if find_slip(simplify(heading), known):
                return column
        return None


PILOTS = TableKind(
    "a table of pilots",
    ("pilot", "agent", "contribution", "accuracy"),
    ("goal", "validation", "limit", "minimum", "cost"),
    "pilot,agent,contribution,accuracy",
    "'fedaccord plan {path}' reads it",
)
HISTOGRAMS = TableKind(
    "a table of label histograms",
    ("agent",),
    ("label", "count", "need", "goal", "validation", "limit", "minimum", "cost"),
    "agent,<label>,<label>,... (or agent,label,count)",
    "'fedaccord plan {path}' reads it, alone or as --histograms {path} with a table of pilots",
    labels=True,
)
PROPOSAL = TableKind(
    "a table of contributions",
    ("contribution",),
    ("agent", "reserve"),
    "agent,contribution",
    "'fedaccord check PILOTS.csv {path}' reads it, and so does 'fedaccord check GAME.json {path}'",
    amounts=("contribution", "reserve"),
)
MEMBERS = TableKind(
    "a list of agents",
    ("agent", "limit"),
    ("goal", "validation", "minimum", "cost"),
    "agent,limit",
    "'fedaccord pilots {path}' reads it",
    also={"limit": SYNONYMS["count"][1:]},
)


def find_meant(heading: str, among: Iterable[str]) -> str | None:
    """Return the column of histograms that a label may mean: it is misspelt, or one letter off.

    heading: the label.
    among: the columns that it may mean.
    """
    word, free = simplify(heading), list(among)
    # 'chest cases' is a label, and no slip for 'test cases'.
    if word in NO_SLIPS or re.search(NOUN, word):
        return None
    near = (column for column in free if _is_one_off(word, column))
    return HISTOGRAMS.find_misspelt(heading, free) or next(near, None)


def _is_one_off(one: str, other: str) -> bool:
    """Return whether one edit turns a word into another, that keeps the first letter."""
    if one[:1] != other[:1] or one == other:
        return False
    if sorted(one) == sorted(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 2
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    short, long = sorted((one, other), key=len)
    dropped = (long[:n] + long[n + 1 :] for n in range(len(long)))
    return len(long) == len(short) + 1 and short in dropped


def has_no_counts(heading: str) -> bool:
    """Return whether a heading is that of numbers that count no samples, as of a telephone."""
    words = simplify(heading)
    return bool({words, words.rstrip(".")} & NO_LABELS or NO_LABEL.search(words))


def is_comment(heading: str) -> bool:
    """Return whether a heading is that of texts for people, and never a label."""
    return COMMENTS.match(simplify(heading).rstrip(".:")) is not None


def simplify(heading: str) -> str:
    """Return a heading in small letters, with single spaces and no sign of per cent."""
    words = re.sub(r"[\s_\-]+", " ", heading).strip().casefold()
    return CENT.sub("", words)


def is_in_percent(heading: str) -> bool:
    """Return whether a heading says that its numbers are in per cent."""
    return "%" in heading or CENT.search(heading.strip().casefold()) is not None
