"""A linear game from a game file or from pilots, for commands that need its benefits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.app import complain_of
from fedaccord.cli.plan import check_wanted, fit_pilots
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.rows import RowGame
from fedaccord.planning.basis import Source, Wanted, read_linear_game
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from fedaccord._io.table import Rows
    from fedaccord.equilibria.result import Solution
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.measures import GoalsMeasurement

Subject = Annotated[
    str, typer.Argument(metavar="GAME.json|PILOTS.csv", help="The game, or the pilots.")
]
Probability = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="For pilots: probability that all agents reach their goals. Default: 0.95.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.")]


@dataclass(frozen=True)
class PilotOptions:
    """What a user may say about pilots; None where an option was not given."""

    goal: list[str] | None
    probability: float | None
    histograms: str | None
    sheet: str | None
    seed: int
    harm: float | None = None


def read_benefits(subject: str, options: PilotOptions) -> LinearGame | RowGame:
    """Return the game of a file, or the game that a plan from pilots is made for.

    Raises an UnreachableError where pilots leave no plan.

    subject: GAME.json, or a table of pilots.
    options: what the user said about pilots.
    """
    if options.seed < 0:
        raise InputError(f"--seed must be a whole number of 0 or more; got {options.seed}")
    check_wanted(0.95 if options.probability is None else options.probability, "true")
    source = Source.read(subject, options.sheet)
    goals = Wanted.read(options.goal, "--goal")
    if source.rows is not None and source.kind == "measures":
        refuse_for_goals({"--goal": options.goal, "--histograms": options.histograms})
        probability = 0.95 if options.probability is None else options.probability
        _, solution = plan_measures(source.rows, probability, options.harm, options.seed)
        assert isinstance(solution.game, RowGame)
        return solution.game
    if options.harm is not None:
        raise InputError("--harm is for pilots with several measures; leave it out")
    if source.kind == "game":
        for name in ("probability", "histograms"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} is for a table of pilots; leave it out")
        with progress(f"reading {subject}"):
            return read_linear_game(subject, goals, several=True)
    if source.rows is None or source.kind != "pilots":
        raise InputError(
            f"{subject} is neither a game nor a table of pilots; for anything else, 'fedaccord "
            "plan' makes the game with --save-game"
        )
    return _plan(source.rows, goals, options)


def refuse_for_goals(given: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing for pilots with several measures.

    given: their values by their names; None where an option was not given.
    """
    for option, value in given.items():
        if value:
            raise InputError(
                f"{option} is for pilots with accuracies, and this table has measures: leave it out"
            )


def plan_measures(
    rows: Rows, probability: float, harm: float | None, seed: int, time_limit: float = 60.0
) -> tuple[GoalsMeasurement, Solution]:
    """Return the fit to pilots with several measures, and the plan with safety margins.

    The plan is stable; where no stable plan is found, the cheapest one.

    rows: of the table.
    probability: that one run reaches all goals.
    harm: from which probability harm counts; None for no harm.
    seed: of the resamples.
    time_limit: seconds for the plan.
    """
    from fedaccord.measurement.measures import fit_goals
    from fedaccord.planning.goals import plan_goals

    with progress("fitting learning curves"):
        measured = fit_goals(rows, certainty=harm, seed=seed)
    with progress("planning"), interruptible():
        try:
            return measured, plan_goals(measured, probability=probability, time_limit=time_limit)
        except UnreachableError as error:
            cheapest = plan_goals(
                measured, probability=probability, concept="optimal", time_limit=time_limit
            )
            complain(f"{error}; this is the cheapest plan, which payments or pledges must hold")
            return measured, cheapest


def _plan(rows: Any, goals: Wanted | None, options: PilotOptions) -> LinearGame:
    from fedaccord.planning.plan import make_plan

    prior = None
    if options.histograms is not None:
        from fedaccord.measurement.histograms import Histograms

        prior = Histograms.load(options.histograms)
        complain_of(prior.notes)
    measured = fit_pilots(rows, goals, prior=prior, seed=options.seed)
    with progress("planning"), interruptible():
        plan = make_plan(measured, probability=options.probability or 0.95, seed=options.seed)
    if plan.contributions is None:
        raise UnreachableError(f"there is no plan: {plan.reason}")
    return plan.game
