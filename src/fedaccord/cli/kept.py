"""The options for agents that keep the samples they withhold; solve and plan share them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedaccord._checks import Vector
    from fedaccord.games.base import Game
    from fedaccord.games.kept import KeptData

KeptWorths = Annotated[
    list[str] | None,
    typer.Option(
        "--kept-worth",
        metavar="X|NAME=X",
        help="What a sample is worth to an agent that keeps it, from 0 to 1; 'audit --kept-data' "
        "measures it. Repeatable.",
    ),
]
Holdings = Annotated[
    list[str] | None,
    typer.Option(
        "--holdings",
        metavar="FILE|N|NAME=N",
        help="With --kept-worth: the samples that each agent has. Default: the limits.",
    ),
]
# A number as people write it, and not the name of a file.
NUMBER = r"[+-]?[0-9.,][0-9.,' \u00a0\u202f’]*(?:[eE][+-]?[0-9]+)?%?"


def read_kept(
    game: Game, kept_worth: Sequence[str] | None, holdings: Sequence[str] | None = None
) -> KeptData:
    """Return what the options say of kept data.

    game: whose agents the options name.
    kept_worth, holdings: the texts of the options.
    """
    from fedaccord.games.kept import KeptData
    from fedaccord.planning.basis import Wanted

    worth = Wanted.read(kept_worth, "--kept-worth")
    if worth is None:
        raise InputError("--holdings needs --kept-worth; add that, or leave --holdings out")
    names = [game.name(agent) for agent in range(game.size)]
    held = _read_holdings(game, names, holdings)
    return KeptData.read(game, worth.among(names, [0.0] * game.size), held)


def _read_holdings(
    game: Game, names: list[str], given: Sequence[str] | None
) -> Vector | list[float]:
    from fedaccord.allocation import Allocation
    from fedaccord.planning.basis import Wanted

    held: Vector | list[float] = game.limits
    numbers = []
    for text in given or ():
        if "=" in text or re.fullmatch(NUMBER, text):
            numbers.append(text)
            continue
        read = Allocation.load(text).ordered_for(game.agents)
        if len(read) != game.size:
            raise InputError(
                f"{text} has {len(read)} agents and the game has {game.size}: give one line each"
            )
        held = read.contributions
    wanted = Wanted.read(numbers, "--holdings")
    return held if wanted is None else wanted.among(names, list(held))


def describe_option(game: Game, kept: KeptData) -> list[tuple[str, str]]:
    """Return the fact of a page that says which agents keep data."""
    named = [
        f"{game.name(agent)} {kept.worth[agent]:g}"
        for agent in range(game.size)
        if kept.worth[agent] > 0
    ]
    return [("Kept worth of a withheld sample", ", ".join(named) or "0 for all agents")]
