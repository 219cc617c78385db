"""Arguments and options that several commands have, each defined once."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from fedaccord.errors import InputError

# Where finished runs, and scores and start weights, are kept unless an option names a place.
RESULTS = "fedaccord.sqlite"
CACHE = "fedaccord.cache"

# Input.

GameFile = Annotated[str, typer.Argument(metavar="GAME.json", help="The game.")]
ConfigFile = Annotated[
    str | None,
    typer.Argument(metavar="CONFIG.toml", help="The federation. Default: handwritten digits."),
]

# Output.

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, every number in full.")]
ReportFile = Annotated[
    str | None,
    typer.Option(
        "--report", metavar="FILE.html", help="Write a page there that opens in any browser."
    ),
]

# Where runs are made, and what keeps them.

Workers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Runs at a time. Default: one per core, here or on Ray."),
]
EngineName = Annotated[
    str, typer.Option(help="Where runs are made: local, flower (its simulation) or ray.")
]
Address = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Of a Ray cluster: auto, host:port or ray://host:port."),
]
Results = Annotated[str, typer.Option(metavar="FILE.sqlite", help="Keeps every finished run.")]
CacheFolder = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="FOLDER",
        help=f"Keeps scores and start weights that took long. Default: {CACHE}.",
    ),
]

# How defection is audited.

Trials = Annotated[int | None, typer.Option(metavar="N", help="How often everything is done.")]
Defectors = Annotated[str | None, typer.Option(help="each agent in every trial, or one at random.")]
AuditSeed = Annotated[int | None, typer.Option(metavar="N", help="Of deals and runs.")]


def check_time_limit(seconds: float) -> None:
    """Refuse a limit that is no time."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"--time-limit must be a number of seconds above 0; got {seconds:g}")
