"""What one needs to know of a game and a run to trust them, or to repeat them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import numpy as np

from fedaccord._machine import machine, versions
from fedaccord.audit import Audit
from fedaccord.games.base import Game
from fedaccord.report.games import has_costs
from fedaccord.wording import count


def game_facts(game: Game) -> Iterator[tuple[str, str]]:
    """Say what game it is, and whether anything in it is drawn at random."""
    kind = "whole numbers of samples" if game.is_integer else "real numbers of samples"
    yield "Game", f"{game.model}, {count(game.size, 'agent')}, {kind}"
    limited = int(np.isfinite(game.limits).sum())
    bound = int((game.minimums > 0).sum())
    frame = [
        f"{count(limited, 'agent')} with a limit" if limited else "",
        f"{count(bound, 'agent')} with a minimum" if bound else "",
        "samples cost some more than others" if has_costs(game) else "",
    ]
    if any(frame):
        yield "Limits and costs", ", ".join(filter(None, frame))
    estimated = getattr(game, "estimated", "")
    if estimated:
        yield "Seed", f"{estimated.rstrip('.')}, seed {getattr(game, 'seed', 0)}"
    else:
        yield "Seed", "none: nothing here is drawn at random"


def audit_facts(found: Audit | None) -> Iterator[tuple[str, str]]:
    """Say how finely plans were checked."""
    if found is not None:
        fine = (
            "decided exactly"
            if found.tolerance == 0
            else f"what is below {found.tolerance:g} of the largest contribution counts as nothing"
        )
        yield "Checked by", f"the audit, which trusts no solver; {fine}"


def run_facts() -> Iterator[tuple[str, str]]:
    """Say what a page was made with, where and when."""
    yield "Versions", versions()
    yield "Machine", machine()
    yield "Date", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
