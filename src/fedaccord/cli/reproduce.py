"""The command reproduce: the claims of the paper."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from fedaccord._checks import check_workers, cores
from fedaccord._io.files import json_text, read_json, replace_file
from fedaccord._lazy import imported
from fedaccord.cli.app import Interrupted, app, check_report, command_line, present
from fedaccord.cli.options import (
    Address,
    AsJson,
    EngineName,
    PartOption,
    ReportFile,
    Workers,
    choose_engine,
)
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.report.terminal import complain, show_stages
from fedaccord.wording import count, format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fedaccord.reproduce.claims import Claim, Row
    from fedaccord.reproduce.run import Reproduction

# What the files of each scale are called, so that one does not take the other's place.
STEMS = {False: "reproduction", True: "reproduction-full"}

Full: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Run on EMNIST, which takes hours. The same command continues after an interruption.",
    ),
]


@app.command()
def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="Run on digits, which takes minutes. The default.")
    ] = False,
    full: Full = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Check only this claim. Repeatable.")
    ] = None,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Folder for the page, its figures and finished runs."),
    ] = "reproduction",
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    part: PartOption = None,
    claims: Annotated[bool, typer.Option("--list", help="List the claims and exit.")] = False,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Check the claims of the paper "One for One, or All for All", and write a page of results.

    The exit code is 0 if no checked claim fails, and 1 otherwise.
    """
    from fedaccord.reproduce import run as running
    from fedaccord.reproduce.claims import Verdict

    if claims:
        return _list_claims(running.all_claims(), as_json=as_json)
    if quick and full:
        raise InputError("--quick and --full exclude each other; use one of them")
    minutes = running.minutes(only, full=full)
    place = _choose_place(engine, workers, address)
    check_report(report)
    if part is not None:
        _make_part(part, out, only, full=full, place=place)
    folder = _make_folder(_read_out(out))
    result = folder / f"{STEMS[full]}.json"
    page = _page_file(report, result)
    ids = list(dict.fromkeys(only or running.all_claims()))
    complain(_describe_cost(len(ids), minutes, folder))
    with _work_in(folder), show_stages() as tell:
        found = running.reproduce(
            only,
            full=full,
            folder=folder,
            **place,
            earlier=_read_earlier(result, full=full),
            tell=tell,
            finished=lambda row, so_far: _save_row(row, so_far, result),
        )
    if page is not None:
        _write_page(found, page, result)
    code = present(
        record=found.to_dict,
        parts=lambda: _parts(found),
        as_json=as_json,
        success=all(found.rows[id].finding.verdict is not Verdict.FAILS for id in ids),
    )
    complain(f"the result is in {result}" + (f", the page in {page}" if page else ""))
    return code


def _choose_place(engine: str, workers: int | None, address: str | None) -> dict[str, Any]:
    """Return where runs are made and how many at a time, or raise an InputError."""
    if engine == "local" and address is None:
        # Without importing engines: most claims need no training, and none of its extra.
        return {"workers": check_workers(cores() if workers is None else workers)}
    maker, workers = choose_engine(engine, workers, address)
    return {"engine": maker, "workers": workers}


def _make_part(
    part: str, out: str, only: list[str] | None, *, full: bool, place: dict[str, Any]
) -> NoReturn:
    """Make a part of the training in a folder next to --out; raise OnlyPart at the end."""
    from fedaccord.federation.runs.parts import Part
    from fedaccord.reproduce.run import make_part

    one, whole = Part.parse(part), _read_out(out)
    if not whole.name:
        raise InputError(f"--part needs --out with a name of its own; got --out {out}")
    own = _make_folder(one.name_file(whole))
    with _work_in(own), show_stages() as tell:
        raise make_part(one, only, full=full, folder=whole, tell=tell, **place)


def _list_claims(claims: Mapping[str, Claim], *, as_json: bool) -> int:
    keys = ("id", "part", "claim", "place", "paper")
    listed = [{key: getattr(claim, key) for key in keys} for claim in claims.values()]
    from fedaccord.report.paper import claims_table

    return present(
        record=lambda: {"claims": listed},
        parts=lambda: [claims_table(claims)],
        as_json=as_json,
    )


def _read_out(out: str) -> Path:
    if not out.strip():
        raise InputError("--out is empty; name a folder, such as --out reproduction")
    return Path(out)


def _make_folder(folder: Path) -> Path:
    """Make the folder for the results, or say why that fails before any time goes into them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to --out {folder}: {error.strerror or error}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"cannot write to --out {folder}: the folder is not writable; name another"
        )
    return folder


@contextlib.contextmanager
def _work_in(folder: Path) -> Iterator[None]:
    """Lock the folder against another process, whose rows would be lost; Ctrl-C says what is kept.

    Without fcntl, on Windows, nothing is locked.
    """
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"another process uses {folder}; wait for it, or name another --out"
                ) from None
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted: finished rows and runs are stored in {folder}; the same "
                "command continues from there"
            ) from None


def _page_file(report: str | None, result: Path) -> Path | None:
    """Return where the page goes; None, saying why, where it cannot be drawn."""
    if report is not None:
        return Path(report)
    try:
        imported("fedaccord.report.html")
    except MissingExtraError as error:
        complain(f"no page can be written: {error}")
        return None
    page, figures = result.with_suffix(".html"), _figures_folder(result)
    if page.is_dir() or (figures.exists() and not figures.is_dir()):
        raise InputError(
            f"{page} or {figures} already exists and is not a file of this "
            "command; name another --out"
        )
    return page


def _describe_cost(claims: int, minutes: float, folder: Path) -> str:
    time = (
        f"about {format_duration(60 * math.ceil(minutes))}" if minutes > 1 else "less than a minute"
    )
    return (
        f"{count(claims, 'claim')} to check; this takes {time} on two cores. Training runs "
        f"are stored in {folder} and reused."
    )


def _read_earlier(path: Path, *, full: bool) -> dict[str, Any] | None:
    """Read the rows that are there already; a result that was made otherwise is set aside."""
    from fedaccord.reproduce.run import is_continued

    if not path.exists():
        return None
    found = read_json(path)
    if is_continued(found, full=full):
        return found
    aside = path.with_suffix(".earlier.json")
    path.replace(aside)
    complain(f"{path} comes from other versions or another machine; it was moved to {aside}")
    return None


def _save_row(row: Row, so_far: Reproduction, path: Path) -> None:
    """Write what is known, so that nothing that comes later can lose it."""
    from fedaccord.report.paper import row_line

    replace_file(path, json_text(so_far.to_dict()) + "\n")
    complain(row_line(row))


def _figures_folder(result: Path) -> Path:
    return result.with_name(result.stem.replace("reproduction", "figures"))


def _write_page(found: Reproduction, page: Path, result: Path) -> None:
    from fedaccord.report.paper import reproduction_page

    made = reproduction_page(found, command=command_line())
    made.save(page)
    figures = _figures_folder(result)
    figures.mkdir(exist_ok=True)
    made.save_pictures(figures)


def _parts(found: Reproduction) -> list[RenderableType]:
    from fedaccord.report.paper import rows_table

    return [rows_table(found), found.sentence()]
