"""What a visitor has set, as one value that is also an address."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fedaccord.errors import InputError
from fedaccord.planning.scenario_text import (
    read_agents,
    read_numbers,
    read_probability,
    write_value,
)
from fedaccord.planning.what_if import Scenario

PLANS = ("stable", "optimal", "envy-free", "payments")
VIEWS = ("agents", "plans", "choice", "certainty", "members", "payments", "coalitions", "compare")
ADJUSTED = ("give", "goal", "limit", "cost")
THEMES = ("auto", "light", "dark")
# What only changes what is looked at; and what changes no plan.
LOOKS = ("view", "adjust", "other", "theme", "large")
SHOWN = ("give", "cut", "keep", "only", *LOOKS)
# The longest address that is read, and the most agents that can join.
LONGEST, MOST_JOINED = 20_000, 10


@dataclass(frozen=True)
class State(Scenario):
    """What a visitor has set; everything else follows from the file.

    plan: stable, optimal, envy-free or payments; or the number of an equilibrium, from 1.
    probability: that all agents reach their goals, as asked for; None for the usual one.
    view: what is shown of the state.
    adjust: what the sliders change.
    other: the address of a state to compare with.
    theme: light, dark, or auto for what the browser prefers.
    large: whether type is large, for a projector.
    """

    plan: str = "stable"
    probability: float | None = None
    view: str = "agents"
    adjust: str = "give"
    other: str = ""
    theme: str = "auto"
    large: bool = False

    @property
    def problem(self) -> State:
        """The part of the state that decides the plan."""
        return self.put(**{name: getattr(USUAL, name) for name in SHOWN})

    @property
    def numbers(self) -> State:
        """The state without what is looked at: what undo and redo lead to."""
        return self.put(**{name: getattr(USUAL, name) for name in LOOKS})

    @property
    def stable(self) -> State:
        """The same problem, to be solved by the stable plan."""
        return replace(self.problem, plan="stable")

    @property
    def free(self) -> State:
        """The same problem without locks and changed limits."""
        return replace(self.problem, plan=self.concept, lock=(), limit=())

    @property
    def concept(self) -> str:
        """What the plan is: payments are for the optimal one, and equilibria are stable."""
        return {"payments": "optimal"}.get(self.plan, self.plan if self.plan in PLANS else "stable")

    @property
    def equilibrium(self) -> int | None:
        """The number of the equilibrium that was chosen, from 0; None where a concept was."""
        return int(self.plan) - 1 if self.plan.isdigit() else None

    def put(self, **changes: Any) -> State:
        """Return the state with other values."""
        return replace(self, **changes)

    def put_number(self, name: str, agent: int, value: float | None) -> State:
        """Return the state with one number of an agent; None takes it back.

        name: of the field.
        agent: whose number it is.
        """
        numbers = {**dict(getattr(self, name)), agent: value}
        kept = ((a, n) for a, n in sorted(numbers.items()) if n is not None)
        return self.put(**{name: tuple(kept)})

    def choose(self, plan: str) -> State:
        """Return the state with another plan as the proposal; what is locked stays."""
        return replace(self, plan=plan, give=(), cut=())

    def toggle_left(self, agent: int) -> State:
        """Return the state in which an agent has left, or is back."""
        return replace(self, left=tuple(sorted({*self.left} ^ {agent})))

    # As an address.

    @property
    def query(self) -> str:
        """The state as the query of an address; what is usual is left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return urlencode(
            {name: write_value(v) for name, v in values.items() if v != getattr(USUAL, name)}
        )

    @classmethod
    def read(cls, query: str) -> State:
        """Read the query of an address, or raise an InputError; what is not known is passed over.

        query: as `query` writes it.
        """
        if len(query) > LONGEST:
            raise InputError(f"this address has {len(query):,} letters; use at most {LONGEST:,}")
        given = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True))
        try:
            return cls(
                **{name: read(given[name]) for name, read in READERS.items() if name in given}
            )
        except ValueError as error:
            raise InputError(f"this address cannot be read: {error}") from None


USUAL = State()


def _among(*known: str, pattern: str = "") -> Callable[[str], str]:
    def read(text: str) -> str:
        if text in known or (pattern and re.fullmatch(pattern, text)):
            return text
        raise ValueError(f"{text[:40]!r} must be one of {', '.join(known)}")

    return read


READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("goal", "cost", "lock", "give", "only"), read_numbers),
    **dict.fromkeys(("cut", "keep"), lambda text: read_numbers(text, 1.0)),
    "limit": lambda text: read_numbers(text, math.inf),
    "left": read_agents,
    "like": lambda text: read_agents(text)[:MOST_JOINED],
    "plan": _among(*PLANS, pattern="[1-9][0-9]{0,3}"),
    "probability": read_probability,
    "view": _among(*VIEWS),
    "adjust": _among(*ADJUSTED),
    "other": str,
    "theme": _among(*THEMES),
    "large": lambda text: text == "True",
}
