"""What speaks against trusting a measured game, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from fedaccord.games.fitting import Measurement

Kind: TypeAlias = Literal[
    "too-few-pilots",
    "negative-transfer",
    "saturation-below-goal",
    "extrapolation",
    "poor-fit",
    "flat",
]


@dataclass(frozen=True)
class Doubt:
    """A reason not to trust a fit.

    agent: the place of the agent it is about; None where it is about all.
    kind: one of a few words.
    sentence: the reason, for people.
    """

    agent: int | None
    kind: Kind
    sentence: str


def doubts_of(measurement: Measurement) -> tuple[Doubt, ...]:
    """List what speaks against trusting a measurement.

    measurement: the fit to judge.
    """
    return ()
