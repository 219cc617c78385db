"""The command check: whether a proposal holds, and how sure it is that agents reach their goals."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._checks import check_whole
from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_report,
    command_line,
    complain_of,
    describe_files,
    present,
)
from fedaccord.cli.options import (
    AsJson,
    Goals,
    HistogramsFile,
    Limits,
    ReportFile,
    SheetName,
    read_probability,
)
from fedaccord.cli.plan import check_wanted, fit_pilots
from fedaccord.errors import InputError, UnreachableError
from fedaccord.planning.basis import Wanted, set_limits
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedaccord._io.rows import Rows
    from fedaccord.allocation import Allocation
    from fedaccord.check import Check
    from fedaccord.games.base import Game
    from fedaccord.games.measured import MeasuredGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.planning.result import Plan
    from fedaccord.report.model import Mark, Page, Table

VERDICTS = ("sure", "feasible", "stable", "envy-free")
# The probability that is asked for unless another is given.
PROBABILITY = 0.95

Subject = Annotated[
    str, typer.Argument(metavar="PILOTS.csv|GAME.json", help="The pilots, or the game.")
]
ProposalFile = Annotated[
    str, typer.Argument(metavar="PROPOSAL.(csv|xlsx|json)", help="The contribution of each agent.")
]
Probability = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        parser=read_probability,
        help="Required probability that all agents reach their goals. Default: the game's, or "
        "0.95.",
    ),
]
Judgement = Annotated[
    str | None,
    typer.Option(
        "--judged",
        help="What counts. true: the model's true accuracy. measured: one measurement.",
    ),
]
Preference = Annotated[
    str | None, typer.Option(help="Which plan to compare with: total or firm, as in plan.")
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Random seed of the fit to pilots.")]
Require = Annotated[
    str | None,
    typer.Option(
        metavar="VERDICTS",
        help="Which answers must be yes: sure,feasible,stable,envy-free. Default: sure,stable if "
        "probabilities are known, else feasible,stable.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        help="Differences below this count as zero, relative to the largest contribution."
    ),
]
Groups = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Also list every group of up to N agents that could give less together.",
    ),
]
PilotsSheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of the pilots, if they are an .xlsx file."),
]


@dataclass(frozen=True)
class Options:
    """What was asked about pilots; None where an option was not given."""

    goal: list[str] | None
    limit: list[str] | None
    histograms: str | None
    prefer: str | None
    seed: int | None
    pilots_sheet: str | None
    probability: float | None
    judged: str | None

    def refuse(self, names: tuple[str, ...], reason: str) -> None:
        """Refuse the first of some options that was given.

        names: of the fields.
        reason: what the options are for.
        """
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(f"--{name.replace('_', '-')} {reason}; leave it out")


@app.command()
@add_wording
def check(
    wording: Wording,
    subject: Subject,
    proposal: ProposalFile,
    goal: Goals = None,
    limit: Limits = None,
    probability: Probability = None,
    judged: Judgement = None,
    prefer: Preference = None,
    histograms: HistogramsFile = None,
    seed: Seed = None,
    require: Require = None,
    tolerance: Tolerance = 1e-6,
    groups: Groups = None,
    sheet: SheetName = None,
    pilots_sheet: PilotsSheet = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Check a proposal: do all agents reach their goals, and could an agent give less?

    For pilots, or a game that 'plan --save-game' wrote, it prints probabilities and compares the
    proposal with the plan. It exits 0 if all agents reach their goals with the required
    probability, and none could give less and keep the plan's safety margin. For other games it
    exits 0 if the proposal is feasible and stable. --require changes which answers must be yes. It
    exits 1 if one of them is no or unknown.
    """
    from fedaccord._io.table import read_rows_or_json
    from fedaccord.allocation import Allocation
    from fedaccord.check import Answer

    options = Options(goal, limit, histograms, prefer, seed, pilots_sheet, probability, judged)
    if groups is not None:
        check_whole("--groups", groups)
    required = None if require is None else _read_verdicts(require)
    for file in (subject, proposal, histograms):
        check_report(report, keep=file)
    asked = PROBABILITY if probability is None else probability
    check_wanted(asked, judged or "true", prefer or "total", 1.0)
    rows = None if subject.endswith(".json") else read_rows_or_json(subject, sheet=pilots_sheet)
    if rows is None or isinstance(rows, dict):
        basis: Game | Measurement = _read_game(subject, options, rows)
    else:
        try:
            basis = _fit(subject, rows, options)
        except UnreachableError as error:
            complain(f"no proposal reaches every goal on average: {error}")
            return 1
    allocation = Allocation.load(proposal, sheet=sheet, whole=_counts_whole(basis))
    complain_of(allocation.notes)
    found = _check(basis, allocation, options, tolerance)
    if required is not None:
        if "sure" in required and found.prospects is None:
            raise InputError("--require sure needs pilots: this game has no probabilities")
        found = dataclasses.replace(found, required=required)
    files = describe_files(
        report, {"Checked against": subject, "Proposal": proposal, "Histograms": histograms}
    )
    return _show(
        found,
        files,
        wording,
        groups=groups,
        report=report,
        as_json=as_json,
        success=found.holds is Answer.TRUE,
    )


def _show(
    found: Check,
    files: list[tuple[str, str]],
    wording: Wording,
    *,
    groups: int | None,
    **options: Any,
) -> int:
    """Write the page if --report names one, print what was found, return the exit code."""
    from fedaccord.groups import list_blocking_groups
    from fedaccord.report.games import show_check
    from fedaccord.report.groups import make_groups_section, show_groups

    # Of a measured game, groups that could give less and keep the plan's safety margins.
    blocking = None if groups is None else list_blocking_groups(found.judged, size=groups)

    def make_page() -> Page:
        from fedaccord.report.games_page import check_page

        page = check_page(found, command=command_line(), files=files)
        if blocking is None or groups is None:
            return page
        section = make_groups_section(found, blocking, groups)
        return dataclasses.replace(page, sections=(*page.sections, section))

    def make_record() -> dict[str, Any]:
        listed = {} if blocking is None else {"groups": [group.to_dict() for group in blocking]}
        return {"contributions": found.contributions.tolist(), **found.to_dict(), **listed}

    def make_parts() -> Iterator[str | Mark | Table]:
        yield from show_check(found)
        if blocking is not None and groups is not None:
            yield from show_groups(found, blocking, groups)

    return present(
        record=make_record,
        parts=make_parts,
        page=make_page,
        wording=wording,
        names=found.game.agents,
        **options,
    )


def _read_verdicts(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in VERDICTS:
            raise InputError(f'--require has "{name}"; use one or more of {", ".join(VERDICTS)}')
    return names


# What to check against.


def _read_game(path: str, options: Options, data: dict[str, Any] | None) -> Game:
    """Read a game, or say which option it has no use for."""
    from fedaccord.games.files import game_of_file, read_game

    options.refuse(
        ("goal", "histograms", "prefer", "seed", "pilots_sheet"), "is for a table of pilots"
    )
    limits = Wanted.read(options.limit, "--limit")
    with progress(f"reading {path}"):
        game = read_game(path) if data is None else game_of_file(path, data)
        game = set_limits(game, limits)
    if _find_measured(game) is None:
        options.refuse(
            ("probability", "judged"),
            "needs pilots, and this game was saved without their resamples",
        )
    return game


def _find_measured(game: Game) -> MeasuredGame | None:
    """Return the game if it carries what probabilities rest on."""
    from fedaccord.games.measured import MeasuredGame

    return game if isinstance(game, MeasuredGame) and game.chances is not None else None


def _counts_whole(basis: Game | Measurement) -> bool:
    """Return whether agents can give whole numbers of samples only."""
    from fedaccord.games.base import Game

    if not isinstance(basis, Game):
        return True
    return basis.is_integer or _find_measured(basis) is not None


def _fit(path: str, rows: Rows, options: Options) -> Measurement:
    """Fit a game to a table of pilots, as `plan` does."""
    from fedaccord._io.kinds import PILOTS, PROPOSAL

    if rows.kind is PROPOSAL:
        raise InputError(
            f"{path} is {PROPOSAL.title}: give the pilots or the game first, then the proposal"
        )
    if rows.kind is not PILOTS:
        raise InputError(
            f"{path} is not a table of pilots (pilot,agent,contribution,accuracy); for any other "
            "table, 'fedaccord plan' makes the game with --save-game, and check takes that"
        )
    seed = options.seed or 0
    if seed < 0:
        raise InputError(f"--seed must be a whole number of 0 or more; got {seed}")
    goals, limits = map(Wanted.read, (options.goal, options.limit), ("--goal", "--limit"))
    measured = fit_pilots(rows, goals, histograms=options.histograms, seed=seed)
    measured = set_limits(measured, limits)
    _ = measured.game  # raises where a goal is out of reach
    return measured


# What comes of it.


def _check(
    basis: Game | Measurement, allocation: Allocation, options: Options, tolerance: float
) -> Check:
    """Check a proposal; of a measured game compare it with the plan."""
    from fedaccord.check import check
    from fedaccord.games.base import Game

    if isinstance(basis, Game) and _find_measured(basis) is None:
        with progress("checking the proposal"):
            return check(basis, allocation, tolerance=tolerance)
    wanted: dict[str, Any] = {"probability": options.probability, "judged": options.judged}
    bare = _drop_margins(basis, allocation) if isinstance(basis, Game) else basis
    # Faults of the proposal are told before any time goes into the plan.
    check(bare, allocation)
    with progress("planning, to compare with"), interruptible():
        plan = _make_plan(basis, options)
    found = check(bare, allocation, tolerance=tolerance, plan=plan, **wanted)
    if plan.contributions is not None:
        return found
    reason = f"There is no plan to compare with. {plan.reason}"
    return dataclasses.replace(found, doubts=(reason, *found.doubts))


def _drop_margins(game: Game, allocation: Allocation) -> Game:
    """Return a saved game with the goals themselves, over whole numbers of samples."""
    from fedaccord.check.decide import count_whole, refuse_excess

    measured = _find_measured(game)
    if measured is None:
        return game
    bare = count_whole(measured.replace(margins=None))
    refuse_excess(bare, allocation)
    return bare


def _make_plan(basis: Game | Measurement, options: Options) -> Plan:
    """Make the plan to compare with; a saved game has its margins."""
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.planning.plan import make_plan

    if isinstance(basis, LinearGame):
        return make_plan(basis)
    assert isinstance(basis, Measurement)
    return make_plan(
        basis,
        probability=options.probability or PROBABILITY,
        judged=options.judged or "true",  # type: ignore[arg-type]
        prefer=options.prefer or "total",  # type: ignore[arg-type]
        seed=options.seed or 0,
    )
