"""Numbers of a scenario as text, as an address has them."""

from __future__ import annotations

import re
from typing import Any

from fedaccord.planning.what_if import Numbers

# The most agents that a list of agents names.
MOST_NAMED = 1000


def write_value(value: Any) -> str:
    """Return a value of a scenario as text: numbers of agents are 0:500,2:30.

    Numbers have all their digits, since a contribution that is rounded down may be too little.
    """
    if isinstance(value, tuple):
        return ",".join(
            f"{item[0]}:{write_value(float(item[1]))}" if isinstance(item, tuple) else str(item)
            for item in value
        )
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)


# Readers raise a ValueError that says what is wrong.


def read_numbers(text: str, most: float = 1e15) -> Numbers:
    """Return the numbers of agents, or raise a ValueError.

    text: as `write_value` writes them.
    most: the largest number that is allowed.
    """
    found = {}
    for part in filter(None, text.split(",")):
        agent, _, value = part.partition(":")
        if not re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", value) or value.count(".") > 1:
            raise ValueError(f"{part[:40]!r} is not an agent's number, a colon and an amount")
        number = float(value)
        if not 0 <= number <= most:
            raise ValueError(f"{value[:40]} is not a number from 0 to {most:g}")
        found[_read_agent(agent)] = number
    return tuple(sorted(found.items()))


def read_agents(text: str) -> tuple[int, ...]:
    """Return agents by their numbers, or raise a ValueError."""
    found = tuple(_read_agent(part) for part in text.split(",") if part)
    if len(found) > MOST_NAMED:
        raise ValueError(f"{len(found):,} agents are too many")
    return found


def _read_agent(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise ValueError(f"{text[:40]!r} is not the number of an agent")
    return int(text)


def read_probability(text: str) -> float:
    """Return a probability, or raise a ValueError."""
    if not 0 < float(text) < 1:
        raise ValueError(f"a probability must be between 0 and 1, such as 0.95; got {text[:40]}")
    return float(text)
