"""What a visitor has set, as one value that is also an address."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode

from fedaccord.errors import InputError

# Numbers of some agents, by the agent's place in the file.
Numbers: TypeAlias = tuple[tuple[int, float], ...]

PLANS = ("stable", "optimal", "envy-free", "payments")
# What only changes how a state is shown, and not the plan.
SHOWN = ("give", "cut", "keep", "view", "adjust", "other", "theme", "large")
VIEWS = ("agents", "plans", "choice", "certainty", "members", "payments", "coalitions", "compare")
ADJUSTED = ("give", "goal", "limit", "cost")
THEMES = ("auto", "light", "dark")
# The longest address that is read, and the most agents that can join.
LONGEST, MOST_JOINED = 20_000, 10


@dataclass(frozen=True)
class State:
    """What a visitor has set; everything else follows from the file.

    plan: stable, optimal, envy-free or payments; or the number of an equilibrium, from 1.
    probability: that all agents reach their goals, as asked for; None for the usual one.
    goal, limit, cost: in place of the file's. A limit that is infinite is none.
    lock: contributions that the plan must keep.
    left: agents that left.
    like: agents that joined, each with data like an agent's; they are numbered after the others.
    give: contributions in place of the plan's.
    cut: the part of its contribution that an agent gives.
    keep: what a sample is worth to an agent that keeps it.
    view: what is shown of the state.
    adjust: what the sliders change.
    other: the address of a state to compare with.
    theme: light, dark, or auto for what the browser prefers.
    large: whether type is large, for a projector.
    """

    plan: str = "stable"
    probability: float | None = None
    goal: Numbers = ()
    limit: Numbers = ()
    cost: Numbers = ()
    lock: Numbers = ()
    left: tuple[int, ...] = ()
    like: tuple[int, ...] = ()
    give: Numbers = ()
    cut: Numbers = ()
    keep: Numbers = ()
    view: str = "agents"
    adjust: str = "give"
    other: str = ""
    theme: str = "auto"
    large: bool = False

    @property
    def problem(self) -> State:
        """The part of the state that decides the plan."""
        usual = State()
        return replace(self, **{name: getattr(usual, name) for name in SHOWN})

    @property
    def equilibrium(self) -> int | None:
        """The number of the equilibrium that was chosen, from 0; None where a concept was."""
        return int(self.plan) - 1 if self.plan.isdigit() else None

    def put(self, name: str, agent: int, value: float | None) -> State:
        """Return the state with one number of an agent; None takes it back.

        name: of the field.
        agent: whose number it is.
        """
        numbers = dict(getattr(self, name))
        numbers.pop(agent, None)
        if value is not None:
            numbers[agent] = value
        return replace(self, **{name: tuple(sorted(numbers.items()))})

    def choose(self, plan: str) -> State:
        """Return the state with another plan as the proposal; what is locked stays."""
        return replace(self, plan=plan, give=(), cut=())

    def toggle_left(self, agent: int) -> State:
        """Return the state in which an agent has left, or is back."""
        left = set(self.left) ^ {agent}
        return replace(self, left=tuple(sorted(left)))

    # As an address.

    @property
    def query(self) -> str:
        """The state as the query of an address; what is usual is left out."""
        usual = State()
        return urlencode(
            [
                (field.name, _write(getattr(self, field.name)))
                for field in fields(self)
                if getattr(self, field.name) != getattr(usual, field.name)
            ]
        )

    @classmethod
    def read(cls, query: str) -> State:
        """Read the query of an address, or raise an InputError; what is not known is passed over.

        query: as `query` writes it.
        """
        if len(query) > LONGEST:
            raise InputError(f"this address has {len(query):,} letters; use at most {LONGEST:,}")
        given = dict(parse_qsl(query, keep_blank_values=True))
        found: dict[str, Any] = {
            field.name: READERS[field.name](field.name, given[field.name])
            for field in fields(cls)
            if field.name in given
        }
        return cls(**found)


def _write(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(
            f"{item[0]}:{item[1]:.10g}" if isinstance(item, tuple) else str(item) for item in value
        )
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _read_numbers(name: str, text: str) -> Numbers:
    found: dict[int, float] = {}
    for part in filter(None, text.split(",")):
        agent, _, value = part.partition(":")
        number = _read_number(name, value)
        if number < 0 or (math.isinf(number) and name != "limit"):
            raise InputError(f"{name} in the address has {value}; give a number of 0 or more")
        found[_read_agent(name, agent)] = number
    return tuple(sorted(found.items()))


def _read_number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InputError(f'{name} in the address has "{text[:40]}"; give a number')
    return number


def _read_agent(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise InputError(f'{name} in the address has "{text[:40]}"; give the number of an agent')
    return int(text)


def _read_agents(name: str, text: str) -> tuple[int, ...]:
    return tuple(_read_agent(name, part) for part in filter(None, text.split(",")))


def _read_joined(name: str, text: str) -> tuple[int, ...]:
    found = _read_agents(name, text)
    if len(found) > MOST_JOINED:
        raise InputError(f"{len(found)} agents join in this address; use at most {MOST_JOINED}")
    return found


def _read_probability(name: str, text: str) -> float:
    number = _read_number(name, text)
    if not 0 < number < 1:
        raise InputError(f"{name} in the address must be above 0 and below 1; got {number:g}")
    return number


def _read_plan(name: str, text: str) -> str:
    if text in PLANS or (text.isascii() and text.isdigit() and 0 < len(text) < 5 and int(text)):
        return text
    raise InputError(f'{name} in the address must be one of {", ".join(PLANS)}; got "{text[:40]}"')


def _among(known: Iterable[str]) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text not in known:
            raise InputError(
                f'{name} in the address must be one of {", ".join(known)}; got "{text[:40]}"'
            )
        return text

    return read


READERS: Mapping[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(("goal", "limit", "cost", "lock", "give", "cut", "keep"), _read_numbers),
    "plan": _read_plan,
    "probability": _read_probability,
    "left": _read_agents,
    "like": _read_joined,
    "view": _among((*VIEWS, "audit")),
    "adjust": _among(ADJUSTED),
    "other": lambda _, text: text,
    "theme": _among(THEMES),
    "large": lambda _, text: text == "True",
}
