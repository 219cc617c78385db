"""The command that unites the files of parts: merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedaccord.cli.app import app, check_folder
from fedaccord.cli.options import describe_kept
from fedaccord.report.terminal import complain
from fedaccord.wording import join_with_and, pluralize


@app.command()
def merge(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="PART ...", help="Files, or folders, that --part wrote."),
    ],
    into: Annotated[
        str,
        typer.Option(metavar="WHOLE", help="File or folder that gets the runs of all parts."),
    ],
) -> None:
    """Merge the parts that audit, frontier, difficulty or reproduce wrote with --part.

    The order does not matter, and a part that is merged twice counts once.
    """
    from fedaccord.federation.runs.merge import merge_files, merge_folders

    check_folder(into, "--into")
    unite = merge_folders if any(Path(part).is_dir() for part in parts) else merge_files
    found = unite(parts, into)
    complain(f"{describe_kept(found.runs, into)}; {found.added:,} of them are new")
    if found.lacking:
        lacking = found.lacking
        complain(
            f"{pluralize(len(lacking), 'one part is', 'parts are')} missing or unfinished: "
            f"{join_with_and(lacking)}"
        )
