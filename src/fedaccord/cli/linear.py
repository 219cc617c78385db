"""A linear game from a game file or from pilots, for commands that need its benefits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._checks import check_real
from fedaccord.cli.app import describe_files, gather_options
from fedaccord.cli.options import Goals, HistogramsFile, Limits, SheetName, read_probability
from fedaccord.cli.plan import Harm, check_wanted, fit_pilots
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import Game
from fedaccord.games.rows import RowGame
from fedaccord.planning.basis import Source, Wanted, read_priced_game, set_limits
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from fedaccord._io.rows import Rows
    from fedaccord.equilibria.result import Solution
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.measures import GoalsMeasurement
    from fedaccord.planning.result import Plan

Subject = Annotated[
    str, typer.Argument(metavar="GAME.json|PILOTS.csv", help="The game, or the pilots.")
]
Probability = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        parser=read_probability,
        help="For pilots: probability that all agents reach their goals. Default: 0.95.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.")]


@dataclass(frozen=True)
class Input:
    """The file of a game or of pilots, and what a user may say about it; None where not given."""

    subject: str
    goal: list[str] | None
    limit: list[str] | None
    probability: float | None
    histograms: str | None
    sheet: str | None
    seed: int
    harm: float | None

    def describe(self, report: str | None, what: str) -> list[tuple[str, str]]:
        """Return the facts of a page on the files, as `describe_files` does.

        report: where the page goes.
        what: the page calls the game or the pilots.
        """
        return describe_files(report, {what: self.subject, "Histograms": self.histograms})


# Gives a command `source`, its Input.
add_input = gather_options(
    "source",
    {
        "subject": (Subject, ...),
        "goal": (Goals, None),
        "limit": (Limits, None),
        "probability": (Probability, None),
        "harm": (Harm, None),
        "histograms": (HistogramsFile, None),
        "sheet": (SheetName, None),
        "seed": (Seed, 0),
    },
    Input,
)


def read_benefits(options: Input) -> LinearGame | RowGame:
    """Return the game of a file, or the game that a plan from pilots is made for.

    Raises an UnreachableError where pilots leave no plan.

    options: what the user said.
    """
    found = _read(options)
    return found if isinstance(found, Game) else found.doubted_game


def _read(options: Input) -> LinearGame | RowGame | Plan:
    """Return the game of a file, or the plan from pilots."""
    subject = options.subject
    if options.seed < 0:
        raise InputError(f"--seed must be a whole number of 0 or more; got {options.seed}")
    check_wanted(0.95 if options.probability is None else options.probability, "true")
    source = Source.read(subject, options.sheet)
    goals, limits = Wanted.read(options.goal, "--goal"), Wanted.read(options.limit, "--limit")
    if source.rows is not None and source.kind == "measures":
        refuse_for_goals({"--goal": options.goal, "--histograms": options.histograms})
        probability = 0.95 if options.probability is None else options.probability
        measured = fit_measures(source.rows, limits, options.harm, options.seed)
        game = plan_measures(measured, probability).game
        assert isinstance(game, RowGame)
        return game
    if options.harm is not None:
        raise InputError("--harm is for pilots with several measures; leave it out")
    if source.kind == "game":
        for name in ("probability", "histograms"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} is for a table of pilots; leave it out")
        with progress(f"reading {subject}"):
            game = read_priced_game(subject, goals, source.data)
            return set_limits(game, limits)
    if source.rows is None or source.kind != "pilots":
        raise InputError(
            f"{subject} is neither a game nor a table of pilots; for anything else, 'fedaccord "
            "plan' makes the game with --save-game"
        )
    return _plan(source.rows, goals, limits, options)


def refuse_for_goals(given: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing for pilots with several measures.

    given: their values by their names; None where an option was not given.
    """
    for option, value in given.items():
        if value:
            raise InputError(
                f"{option} is for pilots with accuracies, and this table has measures: leave it out"
            )


def fit_measures(
    rows: Rows, limits: Wanted | None, harm: float | None, seed: int
) -> GoalsMeasurement:
    """Return the fit to pilots with several measures.

    rows: of the table.
    limits: in place of the table's own.
    harm: from which probability harm counts; None for no harm.
    seed: of the resamples.
    """
    from fedaccord.measurement.measures import fit_goals

    if harm is not None:
        check_real("--harm", harm, above=0.5, below=1)
    with progress("fitting learning curves"):
        return set_limits(fit_goals(rows, certainty=harm, seed=seed), limits)


def plan_measures(
    measured: GoalsMeasurement, probability: float, time_limit: float = 60.0
) -> Solution:
    """Return a stable plan with safety margins; where none is found, the cheapest plan.

    measured: the fit.
    probability: that one run reaches all goals.
    time_limit: seconds for the plan.
    """
    from fedaccord.planning.goals import plan_goals

    with progress("planning"), interruptible():
        try:
            return plan_goals(measured, probability=probability, time_limit=time_limit)
        except UnreachableError as error:
            cheapest = plan_goals(
                measured, probability=probability, concept="optimal", time_limit=time_limit
            )
            complain(f"{error}; this is the cheapest plan, which payments or pledges must hold")
            return cheapest


def _plan(rows: Rows, goals: Wanted | None, limits: Wanted | None, options: Input) -> Plan:
    from fedaccord.planning.plan import make_plan

    measured = fit_pilots(rows, goals, histograms=options.histograms, seed=options.seed)
    measured = set_limits(measured, limits)
    with progress("planning"), interruptible():
        plan = make_plan(measured, probability=options.probability or 0.95, seed=options.seed)
    if plan.contributions is None:
        raise UnreachableError(f"there is no plan: {plan.reason}")
    return plan
