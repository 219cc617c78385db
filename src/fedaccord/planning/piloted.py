"""From a federation to a measured game: its pilots, made or found, and the curves they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from fedaccord._lazy import imported
from fedaccord.games.fitting import RESAMPLES, Measurement, fit_curves
from fedaccord.games.histograms import Histograms

if TYPE_CHECKING:
    from fedaccord.federation.algorithms import Algorithm
    from fedaccord.federation.engines import Engine, Source
    from fedaccord.federation.store import RunStore
    from fedaccord.pilots import PilotTable


def from_federation(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None = None,
    goals: ArrayLike | None = None,
    seed: int = 0,
    store: RunStore | str | Path | None = None,
    workers: int | None = None,
    engine: str | Callable[..., Engine] = "local",
    progress: Callable[[int, int], None] | None = None,
    histograms: Histograms | None = None,
    resamples: int = RESAMPLES,
) -> Measurement:
    """Make the pilots that are missing, and measure what everybody's samples are worth to whom.

    Every finished pilot is kept at once: the same call goes on where it was stopped. A goal that
    no learning curve can end at is refused before anything is trained; what the pilots show to be
    out of reach stands in the measurement's `unreachable`, with the nearest goal that is not.

    source: a federation, or what deals one to each trial.
    algorithm: whose plan is to be made.
    budget: how many pilots, 3 (2 k + 5) where left out; those in the store cost nothing, and what
        else it has of the same source and algorithm comes on top.
    goals: the accuracy each client wants, one for all or one each; the source's where left out.
    seed: of pilots and resamples.
    store: a file of finished runs, or a RunStore.
    workers: how many runs at a time.
    engine: where the runs are made: "local", "flower", "ray", or what makes an engine.
    progress: told how many pilots are finished, of how many.
    histograms: of the clients' labels, by which cross-benefits are guessed where the pilots leave
        them open.
    resamples: how often pilots are drawn anew, to see how sure the fit is.
    """
    # Plans from a table of pilots need nothing that trains.
    table: PilotTable = imported("fedaccord.federation.piloting").run_pilots(
        source,
        algorithm,
        budget=budget,
        goals=goals,
        seed=seed,
        store=store,
        workers=workers,
        engine=engine,
        progress=progress,
    )
    prior = None if histograms is None else histograms.hints_for(table.agents)
    return fit_curves(table, seed=seed, resamples=resamples, prior=prior)
