"""Runs made by an engine and kept in a store: what is kept is not made again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fedaccord.errors import FedaccordError
from fedaccord.federation.defection.design import chosen
from fedaccord.federation.history import History
from fedaccord.federation.runs.engines import ENGINES, Engine, RunError, Source
from fedaccord.federation.runs.store import Outcome, Run, RunStore, package_versions

EngineMaker = Callable[..., Engine]
# Told how many runs are finished, of how many.
Count = Callable[[int, int], None]


@contextlib.contextmanager
def workplace(
    source: Source,
    *,
    engine: str | EngineMaker,
    workers: int | None,
    store: RunStore | str | Path | None,
) -> Iterator[tuple[Engine, RunStore]]:
    """Open what makes runs and what keeps them; both are closed in the end, unless given open.

    source: a federation, or what deals one to each trial.
    engine: "local", "flower", "ray", or what makes an engine of a source and workers=.
    workers: how many runs at a time.
    store: a file of finished runs, or a RunStore.
    """
    make_engine = engine if callable(engine) else ENGINES[chosen("engine", engine, tuple(ENGINES))]
    with contextlib.ExitStack() as stack:
        # First, for whatever is wrong with it is to leave no new file behind.
        machine = stack.enter_context(make_engine(source, workers=workers))
        kept = store if isinstance(store, RunStore) else stack.enter_context(RunStore(store))
        yield machine, kept


def outcomes_of(
    runs: Sequence[Run], engine: Engine, store: RunStore, *, progress: Count | None = None
) -> list[Outcome]:
    """Make the runs that are not in the store, keep each at once, and give what came of all.

    runs: in the order in which they are begun.
    engine: makes them.
    store: keeps them.
    progress: told how many are finished, of how many.
    """
    tell = progress or (lambda done, of: None)
    found = {run.key: store.get(run) for run in runs}
    missing = {run.key: run for run in runs if found[run.key] is None}
    tell(len(found) - len(missing), len(found))
    try:
        for finished in engine.finished(list(missing.values())):
            run, history = finished.run, finished.history
            check_is_asked_for(run, history)
            found[run.key] = store.put(run, Outcome.of(history, package_versions()), history)
            missing.pop(run.key)
            tell(len(found) - len(missing), len(found))
        check_none_is_lost(len(missing))
    except RunError as error:
        raise with_remedy(error, store) from error
    return [outcome for run in runs if (outcome := found[run.key]) is not None]


def check_is_asked_for(run: Run, history: History) -> None:
    """Refuse what an engine gives for a run if it is not of that run."""
    asked = (run.seed, run.contributions, run.algorithm.to_dict())
    given = (history.seed, tuple(history.contributions.tolist()), history.algorithm)
    if asked != given or (history.unique > history.contributions).any():
        raise RunError(
            f"an engine gave another run than was asked for: seed {given[0]} and contributions "
            f"{given[1]} for seed {asked[0]} and {asked[1]}"
        )


def check_none_is_lost(lost: int) -> None:
    """Refuse to go on without runs that an engine has not given back, or never took."""
    if lost:
        runs = "run" if lost == 1 else "runs"
        raise RunError(f"{lost} {runs} did not come back from the workers; start again")


def with_remedy(error: RunError, store: RunStore) -> FedaccordError:
    """Add to an error what is safe, and how to go on."""
    if store.path is None:
        return error
    return RunError(
        f"{error}; the runs finished before are safe in {store.path}, and the same command goes "
        "on from there"
    )
