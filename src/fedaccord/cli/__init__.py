"""The command line: arguments and printing."""

from __future__ import annotations

from typing import NoReturn

# Importing a module of commands is what adds them to the app.
from fedaccord.cli import defection as defection
from fedaccord.cli import flower as flower
from fedaccord.cli import frontier as frontier
from fedaccord.cli import games as games
from fedaccord.cli import planning as planning
from fedaccord.cli import reproduction as reproduction
from fedaccord.cli import training as training
from fedaccord.cli.base import app


def main() -> NoReturn:
    """Run the command line."""
    app()
    raise SystemExit
