"""What stands at the end of a page: what it was made with, on and when."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeAlias

from fedaccord._machine import machine, versions

Facts: TypeAlias = tuple[tuple[str, str], ...]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Write settings with their names, one after the other."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def surroundings() -> Facts:
    """Say on what, with what and when a page is made."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (("Versions", versions()), ("Machine", machine()), ("Date", today))
