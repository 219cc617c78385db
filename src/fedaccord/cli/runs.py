"""What commands that make many runs share: where runs are made, and the file that keeps them."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord._lazy import imported
from fedaccord._machine import checked_workers, cores
from fedaccord.cli.app import Interrupted
from fedaccord.cli.configs import building_of
from fedaccord.cli.options import CACHE
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fedaccord.federation.config.load import Config
    from fedaccord.federation.runs.engines import Engine, Source


def chosen_engine(
    name: str, workers: int | None, address: str | None
) -> tuple[Callable[..., Engine], int | None]:
    """Give what makes the engine, and its workers, if it can be had.

    name: of the engine.
    workers: how many runs at a time, as it was asked for.
    address: of a Ray cluster.
    """
    engines = imported("fedaccord.federation.runs.engines").ENGINES
    if name not in engines:
        raise InputError(f"--engine must be one of {', '.join(engines)}; got {name!r}")
    if name == "ray":
        imported("fedaccord.federation.runs.ray").check_request(workers, address)
        return partial(engines[name], address=address), workers
    if address is not None:
        raise InputError("--address is that of a Ray cluster: leave it out, or add --engine ray")
    if workers is not None:
        checked_workers(workers)
    return engines[name], cores() if workers is None and name == "local" else workers


def source_of(config: Config, seed: int, *, results: str, cache: str | None) -> Source:
    """Give a config's federation.

    config: read from a file, or the built-in one.
    seed: of its deals.
    results: the file that keeps runs.
    cache: the folder for scores and weights; beside the results where it is None.
    """
    return building_of(config, cache or Path(results).parent / CACHE).source(seed)


@contextmanager
def kept_on_interrupt(results: str) -> Iterator[None]:
    """Have Ctrl-C say how many runs a file keeps, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        # Counted in the file itself: a run may have been committed and not yet been told of.
        count = _count(results)
        runs = "run is" if count == 1 else "runs are"
        raise Interrupted(
            f"interrupted: {count:,} finished {runs} kept in {results}; the same command goes on "
            "from there"
        ) from None


def complain_of_versions(versions: Sequence[str]) -> None:
    """Say so where runs that are compared were not all made with the same versions."""
    if len(versions) > 1:
        complain(
            f"the runs were made with {len(versions)} different versions: {'; '.join(versions)}"
        )


def some_runs(count: int) -> str:
    """Say how many runs there are."""
    return "1 run" if count == 1 else f"{count:,} runs"


def kept_in_all(results: str) -> str:
    """Say at the end how many runs a file keeps."""
    count = _count(results)
    return f"{some_runs(count)} {'is' if count == 1 else 'are'} kept in {results}"


def _count(results: str) -> int:
    with imported("fedaccord.federation.runs.store").RunStore(results) as store:
        return len(store)
