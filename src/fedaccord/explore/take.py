"""What a visitor takes away of exactly this state: the plan, the game, the page to print."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shlex import quote

from fedaccord.allocation import Allocation
from fedaccord.explore.desk import Desk
from fedaccord.explore.state import State
from fedaccord.planning.proposals import Proposal
from fedaccord.report.proposals import proposal_page
from fedaccord.report.renaming import Renaming

TAKEN = {
    "plan.csv": "The contributions, plan.csv",
    "plan.xlsx": "The contributions, plan.xlsx",
    "game.json": "The game, game.json",
    "report.html": "The page of this state, report.html",
}


def take_away(desk: Desk, answer: Proposal, state: State, renaming: Renaming, kind: str) -> bytes:
    """Return the content of a file about exactly this state.

    desk: checks the proposal.
    answer: the plan.
    state: what the visitor has set.
    renaming: puts the page into the user's words.
    kind: one of TAKEN.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kind
        if kind.startswith("plan."):
            # With all digits: what is rounded down may be too little.
            Allocation(answer.put(state), answer.changed.names).save(path)
        elif kind == "game.json":
            answer.save_game(path, answer.put(state), state.keep)
        else:
            found, paid = desk.check(answer, state), desk.find_payments(answer, state)
            files = desk.subject.files
            opened = "".join(f" {quote(named.partition(', SHA')[0])}" for _, named in files)
            typed = f"fedaccord explore{opened}, at the address /?{state.query}"
            page = proposal_page(
                answer, found, state, paid, concept=state.concept, command=typed, files=files
            )
            renaming.page(page).save(path)
        return path.read_bytes()
