"""What a visitor takes away of exactly this state: the plan, the game, the page to print."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.explore.desk import Answer, Desk
from fedaccord.explore.state import State
from fedaccord.games.files import write_game
from fedaccord.report.model import Page, joined
from fedaccord.report.renaming import Renaming

TAKEN = {
    "plan.csv": "The contributions, plan.csv",
    "plan.xlsx": "The contributions, plan.xlsx",
    "game.json": "The game, game.json",
    "report.html": "The page of this state, report.html",
}


def take_away(
    desk: Desk, answer: Answer, state: State, renaming: Renaming, kind: str
) -> tuple[str, bytes]:
    """Return the name and the content of a file about exactly this state.

    desk: checks the proposal.
    answer: the plan.
    state: what the visitor has set.
    renaming: puts the page into the user's words.
    kind: one of TAKEN.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kind
        if kind.startswith("plan."):
            Allocation(answer.propose(state), answer.changed.names).save(path)
        elif kind == "game.json":
            _write_game(answer, path)
        else:
            renaming.page(make_page(desk, answer, state)).save(path)
        return kind, path.read_bytes()


def _write_game(answer: Answer, path: Path) -> None:
    if answer.plan is not None:
        answer.plan.save_game(path)
    elif answer.game is None:
        raise InputError("there is no game to write: a goal is out of reach")
    else:
        write_game(answer.game, path)


def make_page(desk: Desk, answer: Answer, state: State) -> Page:
    """Return the page of a proposal, with that of the payments where the state has them.

    desk: checks the proposal.
    answer: the plan.
    state: what the visitor has set.
    """
    from fedaccord.report.games_page import check_page

    command = f"fedaccord explore, with the address ?{state.query}" if state.query else ""
    files = desk.subject.files
    page = check_page(desk.check(answer, state), command=command, files=files)
    if state.plan != "payments":
        return page
    from fedaccord.report.sharing import share_page

    money = share_page(desk.share(state), files=files)
    return joined(page.title, page.verdict, page.tone, pages=[page, money], command=command)
