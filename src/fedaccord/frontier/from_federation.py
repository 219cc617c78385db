"""From a federation to a measured game: its pilots, made or found, and the curves they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._lazy import imported, show_progress
from fedaccord.equilibria.dynamics import best_response_dynamics
from fedaccord.games.measured import MeasuredGame, nearest_goals
from fedaccord.measurement.fit import Measurement, fit_curves
from fedaccord.measurement.histograms import Histograms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fedaccord._checks import Vector
    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.runs.execute import Engine, Source
    from fedaccord.federation.runs.store import RunStore
    from fedaccord.measurement.pilots import PilotTable

# A plan aims above the goals, by about so many standard deviations of one run's accuracy.
MARGIN = 2.0
# How often pilots are aimed at a plan. The plan moves as pilots near it come in: the first is often
# where no pilot has been.
STAGES = 3
# Who wants more than it can have is taken to want this much less than that.
SHORT = 0.005


def from_federation(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None = None,
    goals: ArrayLike | None = None,
    seed: int = 0,
    store: RunStore | str | Path | None = None,
    others: bool = True,
    workers: int | None = None,
    engine: str | Callable[..., Engine] = "local",
    progress: Callable[[int, int], None] | bool | None = None,
    histograms: Histograms | None = None,
    resamples: int | None = None,
    aim: Callable[[Measurement], ArrayLike] | None = None,
) -> Measurement:
    """Make the pilots that are missing, and measure what everybody's samples are worth to whom.

    The last third of the pilots is made near a plan that the others suggest, for what happens
    there matters most. Every finished pilot is kept at once: the same call goes on where it was
    stopped. A goal that no learning curve can end at is refused before anything is trained; what
    the pilots show to be out of reach stands in the measurement's `unreachable`, with the nearest
    goal that is not.

    source: a federation, or what deals one to each trial.
    algorithm: whose plan is to be made.
    budget: how many pilots, 3 (2 k + 5) where left out; those in the store cost nothing, and what
        else it has of the same source and algorithm comes on top.
    goals: the accuracy each client wants, one for all or one each; the source's where left out.
    seed: of pilots and resamples.
    store: a file of finished runs, or a RunStore.
    others: whether what else the store has counts too, on top of the budget.
    workers: how many runs at a time.
    engine: where the runs are made: "local", "flower", "ray", or what makes an engine.
    progress: told how many pilots are finished, of how many; True shows a bar.
    histograms: of the clients' labels, by which cross-benefits are guessed where the pilots leave
        them open.
    resamples: as in `fit_curves`.
    aim: gives the plan that a measurement leads to; the last third is then made in three stages,
        each near the plan of all pilots before it. Where left out, one rough plan will do.
    """

    def fit(table: PilotTable, resamples: int | None) -> Measurement:
        prior = None if histograms is None else histograms.hints_for(table.agents)
        return fit_curves(table, seed=seed, resamples=resamples, prior=prior)

    def aim_near(first: PilotTable) -> ArrayLike:
        return plan_roughly(fit(first, 1)) if aim is None else aim(fit(first, resamples))

    # Plans from a table of pilots need nothing that trains.
    with show_progress(progress) as tell:
        table: PilotTable = imported("fedaccord.federation.pilots").run_pilots(
            source,
            algorithm,
            budget=budget,
            goals=goals,
            aim=aim_near,
            stages=1 if aim is None else STAGES,
            seed=seed,
            store=store,
            others=others,
            workers=workers,
            engine=engine,
            progress=tell,
        )
    return fit(table, resamples)


def plan_roughly(measurement: Measurement) -> Vector:
    """Return contributions near those of a stable plan with a margin: where best responses lead.

    Of a goal that is out of reach, the nearest that is not stands in.

    measurement: of the game.
    """
    limits = measurement.table.limits
    best = nearest_goals(measurement.benefits, measurement.curves, limits) - SHORT
    wanted = np.minimum(measurement.goals + MARGIN * measurement.noise(), best)
    game = MeasuredGame(
        measurement.benefits, measurement.curves, np.maximum(wanted, 0), limits=limits
    )
    return best_response_dynamics(game, order="sequential").last
