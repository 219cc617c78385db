"""What commands that make many runs share: where runs are made, and the file that keeps them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._lazy import imported
from fedaccord._machine import checked_workers, cores
from fedaccord.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedaccord.federation.engines import Engine

RESULTS = "fedaccord.sqlite"

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


def chosen_engine(
    name: str, workers: int | None, address: str | None
) -> tuple[Callable[..., Engine], int | None]:
    """Give what makes the engine, and its workers, if it can be had.

    name: of the engine.
    workers: how many runs at a time, as it was asked for.
    address: of a Ray cluster.
    """
    engines = imported("fedaccord.federation.engines").ENGINES
    if name not in engines:
        raise InputError(f"--engine must be one of {', '.join(engines)}; got {name!r}")
    if name == "ray":
        imported("fedaccord.federation.ray_engine").checked_request(workers, address)
        return partial(engines[name], address=address), workers
    if address is not None:
        raise InputError("--address is that of a Ray cluster: leave it out, or add --engine ray")
    if workers is not None:
        checked_workers(workers)
    return engines[name], cores() if workers is None and name == "local" else workers


def kept_so_far(results: str) -> str:
    """Say after Ctrl-C how many runs a file keeps, and how to go on."""
    # Counted in the file itself: a run may have been committed and not yet been told of.
    count = _count(results)
    runs = "run is" if count == 1 else "runs are"
    return (
        f"interrupted: {count:,} finished {runs} kept in {results}; the same command goes on from "
        "there"
    )


def kept_in_all(results: str) -> str:
    """Say at the end how many runs a file keeps."""
    count = _count(results)
    return f"{'1 run is' if count == 1 else f'{count:,} runs are'} kept in {results}"


def _count(results: str) -> int:
    with imported("fedaccord.federation.store").RunStore(results) as store:
        return len(store)
