"""The columns of our tables: what their cells are, and which other headings mean them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

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
    "pilot": ("pilots", "run", "experiment", "lauf"),
    "agent": (
        *("agents", "hospital", "site", "client", "member", "centre", "center"),
        *("institution", "clinic", "name", "klinik", "krankenhaus", "standort"),
    ),
    "label": ("labels", "class", "diagnosis", "category"),
    "contribution": (
        *("contributions", "cases", "samples", "n", "patients", "given", "gives"),
        *("fälle", "anzahl"),
    ),
    "reserve": ("reserves",),
    "count": ("counts", "cases", "samples", "n", "patients", "fälle", "anzahl"),
    "validation": ("validation size", "validation points", "validation cases", "validierung"),
    "limit": ("limits", "available", "max", "maximum", "grenze"),
    "minimum": ("minimums", "min"),
    "need": ("needs", "needed"),
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
NO_LABELS = frozenset(("nr", "id", "number", "index", "beds", "year"))
# What a line is called that has the mean of the others, or the sum of some.
MEANS = frozenset(
    ("mean", "average", "avg", "avg.", "median", "mittelwert", "durchschnitt", "subtotal")
)
# What a line is called that sums up the others.
TOTALS = frozenset(("total", "totals", "sum", "all", "overall", "gesamt", "summe"))
