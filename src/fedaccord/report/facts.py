"""What stands at the end of the pages of training: settings, and what they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from fedaccord.report.facts_games import run_facts

Facts: TypeAlias = tuple[tuple[str, str], ...]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Write settings with their names, one after the other."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def surroundings() -> Facts:
    """Say with what, on what and when a page is made."""
    return tuple(run_facts())
