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
    "pilot": ("pilots", "run", "experiment"),
    "agent": (
        *("agents", "hospital", "site", "client", "member", "centre", "center"),
        *("institution", "clinic", "name"),
    ),
    "label": ("labels", "class", "diagnosis", "category"),
    "contribution": ("contributions", "cases", "samples", "n", "patients", "given", "gives"),
    "reserve": ("reserves",),
    "count": ("counts", "cases", "samples", "n", "patients"),
    "validation": ("validation size", "validation points", "validation cases"),
    "limit": ("limits", "available", "max", "maximum"),
    "minimum": ("minimums", "min"),
    "need": ("needs", "needed"),
    "cost": ("costs", "price"),
    "accuracy": ("accuracies", "acc"),
    "goal": ("goals", "target", "target accuracy"),
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
# What a line is called that sums up the others.
# Headings of numbers that are no counts of a label.
NO_LABELS = frozenset(("nr", "id", "number", "index", "beds", "year"))
TOTALS = frozenset(("total", "totals", "sum", "all", "overall", "gesamt", "summe"))
