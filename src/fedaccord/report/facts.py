"""What stands at the end of the pages of training: settings, and what they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from fedaccord.report.facts_games import run_facts
from fedaccord.report.training import span

Facts: TypeAlias = tuple[tuple[str, str], ...]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Write settings with their names, one after the other, without those that are not used."""
    known = ((name, value) for name, value in settings.items() if value is not None)
    return ", ".join(f"{name} {value}" for name, value in known)


def took(seconds: float) -> str:
    """Write a time for people; nothing takes no time at all."""
    return span(seconds) if seconds >= 1 else "less than 1 s"


def surroundings() -> Facts:
    """Say with what, on what and when a page is made."""
    return tuple(run_facts())
