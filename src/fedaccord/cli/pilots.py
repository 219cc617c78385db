"""The command pilots: which pilots to run first, and which next."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.app import Wording, add_wording, app, complain_of, present
from fedaccord.cli.destinations import Written, check_destination
from fedaccord.cli.options import (
    RESULTS,
    Address,
    AsJson,
    CacheFolder,
    EngineName,
    Goals,
    HistogramsFile,
    Limits,
    Results,
    SheetName,
    Workers,
    read_config,
)
from fedaccord.cli.plan import (
    AlgorithmName,
    Judgement,
    Probability,
    Training,
    check_wanted,
    fit_pilots,
    prepare_pilots,
)
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import override
from fedaccord.planning.basis import Wanted, set_limits
from fedaccord.report.terminal import complain, emit_text, interruptible, progress
from fedaccord.wording import count

if TYPE_CHECKING:
    from fedaccord._io.rows import Rows
    from fedaccord.measurement.fit import Measurement
    from fedaccord.measurement.to_run import Members, PilotList
    from fedaccord.planning.next_pilots import NextPilots

Subject = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAMES",
        help="HISTOGRAMS.csv, a table agent,limit, or City=1200,Rural=800 (name=samples it has). "
        "For the next pilots: PILOTS.csv. To train pilots: CONFIG.toml.",
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of first pilots. Default: 2 k + 5 for k agents."),
]
Next = Annotated[
    int | None,
    typer.Option(
        "--next", metavar="N", help="For PILOTS.csv: number of next pilots. Default: 2 k + 5."
    ),
]
Save = Annotated[
    str | None,
    typer.Option(
        metavar="PILOTS.(csv|xlsx)",
        help="Write the table to fill in to this file. Default: CSV on standard output.",
    ),
]
Nvflare = Annotated[
    str | None,
    typer.Option(
        metavar="CROSS_VAL.json",
        help="NVFlare's cross-site evaluation: write its models as finished pilots.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Random seed of the fit (PILOTS.csv) or of the training (CONFIG.toml). Default: 0, "
        "or the config's.",
    ),
]


@app.command()
@add_wording
def pilots(
    wording: Wording,
    subject: Subject,
    budget: Budget = None,
    more: Next = None,
    goal: Goals = None,
    limit: Limits = None,
    probability: Probability = 0.95,
    judged: Judgement = "true",
    histograms: HistogramsFile = None,
    nvflare: Nvflare = None,
    sheet: SheetName = None,
    seed: Seed = None,
    save: Save = None,
    algorithm: AlgorithmName = None,
    results: Results = RESULTS,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
) -> int:
    """Write a table of pilots to run. Fill it in, and give it to 'fedaccord plan'.

    A pilot is a trial training with chosen contributions. Before any pilot, give the agents and
    how many samples each has. After the first pilots, give PILOTS.csv: the command then writes the
    next pilots as rows to append to that table. It chooses those that should make the plan most
    certain. With a CONFIG.toml, the command trains the pilots of its federation itself and writes
    their accuracies, or the values of the goals in the config.
    """
    _check_save(save, subject, histograms, nvflare)
    check_wanted(probability, judged)
    limits = Wanted.read(limit, "--limit")
    training = Training(algorithm, budget, results, workers, engine, address, cache)
    if subject.endswith(".toml"):
        if limit:
            raise InputError("--limit is for tables: a CONFIG.toml says what each agent has")
        if nvflare is not None:
            raise InputError("--nvflare is for agents without a CONFIG.toml: leave one of them out")
        _refuse_strays(more, goal, histograms)
        return _train(subject, training, seed, save=save, as_json=as_json)
    if (stray := replace(training, budget=None).find_stray()) is not None:
        raise InputError(f"{stray} is for a federation, a CONFIG.toml; leave it out")
    rows = _read_file(subject, sheet)
    if rows is None or not _is_pilots(rows):
        _refuse_strays(more, goal, histograms)
        members = _read_members(subject, rows, limits)
        if nvflare is not None:
            return _import_pilots(nvflare, members, budget, save=save, as_json=as_json)
        chosen = _choose_first(members, budget)
        return _show(chosen, None, wording, save=save, as_json=as_json)
    if nvflare is not None:
        raise InputError(
            f"{subject} has pilots already, and --nvflare needs the agents and how many samples "
            "each has"
        )
    if budget is not None:
        raise InputError(f"{subject} has pilots already: --next {budget} chooses that many more")
    goals = Wanted.read(goal, "--goal")
    seed = seed or 0
    measured = fit_pilots(rows, goals, histograms=histograms, seed=seed)
    measured = set_limits(measured, limits)
    chosen, found = _choose_next(
        rows, measured, more, probability=probability, judged=judged, seed=seed
    )
    return _show(chosen, found, wording, save=save, as_json=as_json)


def _check_save(
    save: str | None, subject: str, histograms: str | None, nvflare: str | None
) -> None:
    if save is not None:
        finished = nvflare is not None or subject.endswith(".toml")
        written = Written.PILOTS if finished else Written.PILOTS_TO_RUN
        kept = (subject, histograms, nvflare)
        check_destination(save, (".csv", ".xlsx"), keep=kept, written=written)


def _choose_next(
    rows: Rows, measured: Measurement, more: int | None, **wanted: Any
) -> tuple[PilotList, NextPilots]:
    """Return the pilots to run next, as rows to append and with what they are for."""
    from fedaccord.measurement.design import check_budget, whole_design
    from fedaccord.planning.next_pilots import choose_next_pilots, list_next_pilots
    from fedaccord.planning.plan import make_plan

    budget = check_budget(whole_design(measured.table.size) if more is None else more)
    with progress("choosing pilots"), interruptible():
        found = choose_next_pilots(make_plan(measured, **wanted), budget)
    return list_next_pilots(found, rows), found


def _train(
    path: str, training: Training, seed: int | None, *, save: str | None, as_json: bool
) -> int:
    """Train the pilots of a federation, and write what came of them."""
    if as_json:
        raise InputError("--json lists pilots to run; those of a CONFIG.toml are written as CSV")
    from fedaccord.federation.pilots import run_goal_pilots, run_pilots
    from fedaccord.federation.runs.trials import PILOTS

    chosen = override(read_config(path).audit, seed=seed).seed
    with prepare_pilots(path, training, chosen) as (source, algorithm, how):
        measured = any(client.goals for client in source.deal(PILOTS).clients)
        make = run_goal_pilots if measured else run_pilots
        table = make(source, algorithm, **how)
    if save is None:
        emit_text(table.to_csv())
    else:
        table.save(save)
        complain(f"{count(len(table), 'pilot')} written to {save}")
    command = "solve" if measured else "plan"
    complain(f"'fedaccord {command} {save or 'TABLE.csv'}' plans from this table")
    return 0


def _read_file(subject: str, sheet: str | None) -> Rows | None:
    """Return the rows of a file; None where agents are named on the command line."""
    # A list of many agents is longer than any name of a file; pathlib raises an error there.
    if "=" in subject and not os.path.exists(subject):
        if sheet is not None:
            raise InputError("--sheet names a sheet of a workbook, an .xlsx file; leave it out")
        return None
    if not os.path.exists(subject) and not Path(subject).suffix:
        raise InputError(
            f'there is no file "{subject}"; agents are named with how many samples each has, as '
            "City=1200,Rural=800"
        )
    from fedaccord._io.table import read_rows

    return read_rows(subject, sheet=sheet)


def _is_pilots(rows: Rows) -> bool:
    from fedaccord._io.kinds import PILOTS

    return rows.kind is PILOTS


def _refuse_strays(more: int | None, goal: list[str] | None, histograms: str | None) -> None:
    """Refuse options that mean something for the next pilots only."""
    given = {"--next": more, "--goal": goal, "--histograms": histograms}
    for option, value in given.items():
        if value is not None:
            raise InputError(
                f"{option} is for the next pilots, after a PILOTS.csv; leave it out, and use "
                "--budget for the number of first pilots"
            )


def _read_members(subject: str, rows: Rows | None, limits: Wanted | None) -> Members:
    from fedaccord.measurement.to_run import Members

    members = Members.from_text(subject) if rows is None else Members.from_rows(rows)
    complain_of(members.notes)
    if limits is not None:
        members = members.with_limits(
            limits.check_whole("--limit").among(members.agents, members.limits.tolist())
        )
    return members


def _choose_first(members: Members, budget: int | None) -> PilotList:
    from fedaccord.measurement.to_run import PilotList

    return PilotList.first(members, budget)


def _import_pilots(
    path: str, members: Members, budget: int | None, *, save: str | None, as_json: bool
) -> int:
    """Write the models of a cross-site evaluation as pilots."""
    from fedaccord.measurement.nvflare_files import read_nvflare_pilots

    if budget is not None or as_json:
        stray = "--json" if as_json else "--budget"
        raise InputError(f"{stray} is for pilots to run; leave it out with --nvflare")
    table = read_nvflare_pilots(path, members)
    complain_of(table.notes)
    if save is None:
        emit_text(table.to_csv())
        return 0
    table.save(save)
    pilots, agents = count(len(table), "pilot"), count(table.size, "agent")
    goal = "" if table.has_goals else " --goal 0.8"
    emit_text(f"{save} has {pilots} of {agents}. Plan with: fedaccord plan {save}{goal}")
    return 0


def _show(
    chosen: PilotList,
    found: NextPilots | None,
    wording: Wording,
    *,
    save: str | None,
    as_json: bool,
) -> int:
    """Write the table to fill in, and say how to run the pilots."""
    from fedaccord.report.pilots import list_instructions, show_pilots

    if save is not None:
        chosen.save(save)
    if save is not None or as_json:
        return present(
            record=chosen.to_dict if found is None else found.to_dict,
            parts=lambda: show_pilots(chosen, found, save or ""),
            as_json=as_json,
            wording=wording,
            names=chosen.members.agents,
        )
    emit_text(chosen.to_csv())
    for sentence in list_instructions(chosen, found):
        complain(sentence, chosen.members.agents)
    return 0
