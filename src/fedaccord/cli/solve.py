"""The command solve: the cheapest, the cheapest stable and the cheapest envy-free allocation."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_report,
    check_time_limit,
    command_line,
    describe_files,
    present,
)
from fedaccord.cli.destinations import Written, check_destination
from fedaccord.cli.kept import Holdings, KeptWorths, describe_option, read_kept
from fedaccord.cli.options import AsJson, GameFile, Limits, ReportFile, TimeLimit
from fedaccord.cli.plan import Harm, check_wanted
from fedaccord.errors import InputError, UnreachableError
from fedaccord.planning.basis import Wanted, set_limits
from fedaccord.report.model import Mark
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fedaccord._io.rows import Rows
    from fedaccord.equilibria.result import Solution, SolvedGame
    from fedaccord.games.base import Game
    from fedaccord.games.kept import KeptData
    from fedaccord.measurement.measures import GoalsMeasurement
    from fedaccord.report.model import Page, Table


CONCEPTS = ("optimal", "stable", "envy-free")


Probability = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="For pilots with several measures: raise goals by safety margins until one run "
        "reaches all of them with this probability.",
    ),
]


@app.command()
@add_wording
def solve(
    wording: Wording,
    game_file: GameFile,
    concept: Annotated[
        list[str] | None,
        typer.Option(
            help="Plan to find: optimal, stable or envy-free. Repeatable. Default: all three."
        ),
    ] = None,
    limit: Limits = None,
    time_limit: TimeLimit = 60.0,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="ALLOCATION.(json|csv|xlsx)",
            help="Save the stable plan (or the only plan) as a table for 'check'.",
        ),
    ] = None,
    probability: Probability = None,
    harm: Harm = None,
    kept_worth: KeptWorths = None,
    holdings: Holdings = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Find the cheapest plan of a game, the cheapest stable and the cheapest envy-free plan.

    The exit code is 0 if each plan passes the check or is proved not to exist, and 1 otherwise.
    """
    # Solvers bring much along, which other commands do without.
    from fedaccord.equilibria.solve import solve_all

    concepts = _read_concepts(concept)
    check_time_limit(time_limit)
    _check_files(save, concepts, game_file, report)
    with progress(f"reading {game_file}"):
        game, measured = _read_game(game_file, limit, probability, harm, time_limit)
    files = describe_files(report, {"Game file": game_file})
    kept = None
    if kept_worth or holdings:
        game, kept = _keep_data(game, kept_worth, holdings)
        files += describe_option(game, kept)
    stage = partial(_show_stage, time_limit)
    found = solve_all(game, concepts=concepts, time_limit=time_limit, stage=stage)
    if measured is not None:
        found = _add_doubts(found, measured)
    shown = _Shown(found, measured) if kept is None else _KeptShown(found, kept, time_limit)
    main = found.solutions[found.main_concept]
    missing = save is not None and main.contributions is None
    if save is not None and not missing:
        main.allocation.save(save)
    code = present(
        record=shown.make_record,
        parts=shown.make_parts,
        page=partial(shown.make_page, files),
        report=report,
        as_json=as_json,
        wording=wording,
        names=game.agents,
        success=not missing and all(map(found.is_answered, concepts)),
    )
    if missing:
        complain(f"no {main.concept} plan exists or was found, so nothing was saved to {save}")
    return code


def _add_doubts(found: SolvedGame, measured: GoalsMeasurement) -> SolvedGame:
    checks = {name: replace(one, doubts=measured.doubts) for name, one in found.checks.items()}
    return replace(found, checks=checks)


def plan_for_goals(
    rows: Rows,
    path: str,
    wording: Wording,
    *,
    limits: Wanted | None,
    probability: float,
    harm: float | None,
    seed: int,
    time_limit: float,
    saved: Mapping[str, str | None],
    report: str | None,
    as_json: bool,
) -> int:
    """Plan from pilots with several measures, and show the plan as one of a game.

    rows, path: of the table.
    limits, probability, harm, seed, time_limit: as `fit_measures` and `plan_measures` have them.
    saved: files to write, by their options.
    report, as_json: how the plan is shown.
    """
    from fedaccord.cli.linear import fit_measures, plan_measures
    from fedaccord.equilibria.whole import solve_whole
    from fedaccord.games.files import write_game

    try:
        measured = fit_measures(rows, limits, harm, seed)
        plan = plan_measures(measured, probability, time_limit)
    except UnreachableError as error:
        complain(f"there is no plan: {error}")
        return 1
    concepts = ("optimal", "stable") if plan.concept == "stable" else ("optimal",)
    # Patients are whole: the plan and the game that are shown are those that are saved.
    found = solve_whole(plan.game, concepts=concepts, time_limit=time_limit)
    shown = _Shown(found, measured)
    if (to := saved["--save"]) is not None:
        found.solutions[plan.concept].allocation.save(to)
    if (to := saved["--save-game"]) is not None:
        write_game(found.game, to)
    return present(
        record=shown.make_record,
        parts=shown.make_parts,
        page=partial(shown.make_page, describe_files(report, {"Planned from": path})),
        report=report,
        as_json=as_json,
        wording=wording,
        names=plan.game.agents,
    )


def _read_game(
    path: str,
    limit: list[str] | None,
    probability: float | None,
    harm: float | None,
    time_limit: float,
) -> tuple[Game, GoalsMeasurement | None]:
    """Read a game, or fit one to pilots with several measures, with safety margins."""
    from fedaccord.games.files import read_game

    limits = Wanted.read(limit, "--limit") if limit else None
    if path.lower().endswith((".csv", ".xlsx")):
        from fedaccord._io.table import read_rows
        from fedaccord.cli.linear import fit_measures

        rows = read_rows(path)
        if rows.has_measures:
            check_wanted(0.95 if probability is None else probability, "true")
            measured = fit_measures(rows, limits, harm, 0)
            if probability is None:
                return measured.game, measured
            from fedaccord.planning.goals import plan_goals

            plan = plan_goals(measured, probability=probability, time_limit=time_limit)
            return plan.game, measured
    for option, value in {"--probability": probability, "--harm": harm}.items():
        if value is not None:
            raise InputError(f"{option} is for pilots with several measures; leave it out")
    game = read_game(path)
    return (set_limits(game, limits) if limits else game), None


def _keep_data(
    game: Game, kept_worth: Sequence[str] | None, holdings: Sequence[str] | None
) -> tuple[Game, KeptData]:
    """Return the game of agents that keep what they withhold, and what they keep."""
    from fedaccord.games.kept import keep_data

    kept = read_kept(game, kept_worth, holdings)
    return keep_data(game, kept.worth, kept.holdings), kept


def _check_files(
    save: str | None, concepts: tuple[str, ...], game_file: str, report: str | None
) -> None:
    """Refuse files that cannot be written before any time goes into their content."""
    if save is not None:
        if "stable" not in concepts and len(concepts) > 1:
            raise InputError("--save writes one plan; give one --concept, or include stable")
        suffixes = (".json", ".csv", ".xlsx")
        check_destination(save, suffixes, keep=game_file, what="plan", written=Written.PLAN)
    check_report(report, keep=game_file)


class _Shown:
    """What is shown of the plans of a game.

    found: the plans.
    measured: the fit of the game to pilots with several measures, if it is one.
    """

    def __init__(self, found: SolvedGame, measured: GoalsMeasurement | None = None) -> None:
        self.found = found
        self.measured = measured

    def make_record(self) -> dict[str, Any]:
        given = self.found.solutions[self.found.main_concept].contributions
        if self.measured is None:
            return self.found.to_dict()
        record = {**self.found.to_dict(), "doubts": list(self.measured.doubts)}
        if given is None:
            return record
        chances = {
            "goals": self.measured.chances(given).tolist(),
            "all": self.measured.estimate_all(given),
            "all_at_least": self.measured.chance_of_all(given),
        }
        return {**record, "chances": chances}

    def make_parts(self) -> Iterator[str | Mark | Table]:
        from fedaccord.report.games import show_solutions

        if self.measured is not None and not self.found.checks:
            yield from (Mark(f"Doubt: {said}", "unsure") for said in self.measured.doubts)
        yield from show_solutions(self.found)
        if said := self._describe_chances():
            yield ""
            yield said

    def _describe_chances(self) -> str:
        """Return how likely the plan is to reach all goals; nothing where pilots do not tell it."""
        given = self.found.solutions[self.found.main_concept].contributions
        if self.measured is None or given is None:
            return ""
        return self.measured.describe(given)

    def make_page(self, files: list[tuple[str, str]]) -> Page:
        from fedaccord.report.games_page import solve_page

        found = self.found
        return solve_page(
            found.game,
            found.solutions,
            found.checks,
            found.prices,
            staying=found.staying,
            chances=self._describe_chances(),
            command=command_line(),
            files=files,
        )


class _KeptShown(_Shown):
    """The same of agents that keep the samples they withhold.

    kept: what they keep.
    time_limit: seconds for the plan of the others, where the keepers leave none.
    """

    def __init__(self, found: SolvedGame, kept: KeptData, time_limit: float) -> None:
        super().__init__(found)
        self.kept = kept
        self.rest = _solve_rest(found, kept, time_limit)

    def make_record(self) -> dict[str, Any]:
        from fedaccord.report.kept import kept_record

        return {
            **super().make_record(),
            "kept": kept_record(self.found.game, self.kept, self.rest),
        }

    def make_parts(self) -> Iterator[str | Mark | Table]:
        from fedaccord.report.kept import NEEDS, describe_kept, describe_rest

        game = self.found.game
        yield NEEDS
        yield from (Mark(said, "unsure") for said in describe_kept(game, self.kept))
        yield from super().make_parts()
        if self.rest is not None:
            yield from describe_rest(game, self.kept, self.rest)


def _solve_rest(found: SolvedGame, kept: KeptData, time_limit: float) -> Solution | None:
    """Solve without the requirements of agents that share nothing, where they leave no plan."""
    from fedaccord.equilibria.solve import solve_stable
    from fedaccord.games.kept import ignore_goals

    stable = found.solutions.get("stable")
    if stable is None or stable.contributions is not None or not len(kept.keepers):
        return None
    with progress(f"finding the stable plan of the others (at most {time_limit:g} s)"):
        return solve_stable(ignore_goals(found.game, kept.keepers), time_limit=time_limit)


@contextmanager
def _show_stage(time_limit: float, name: str) -> Iterator[None]:
    """Show what is under way; Ctrl-C ends a solver at once."""
    if name == "check":
        with progress("checking the plans"):
            yield
        return
    with (
        progress(f"finding the {name} plan (at most {time_limit:g} s)"),
        interruptible(),
    ):
        yield


def _read_concepts(given: Sequence[str] | None) -> tuple[str, ...]:
    known = ", ".join(CONCEPTS)
    for name in given or ():
        if not name.strip():
            raise InputError(f"--concept is empty; use one of {known}")
        if name not in CONCEPTS:
            raise InputError(f'--concept "{name}" is not known; use one of {known}')
    return tuple(name for name in CONCEPTS if not given or name in given)
