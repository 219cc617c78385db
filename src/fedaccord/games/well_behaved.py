"""Verdicts on well-behavedness, the condition under which an equilibrium must exist.

Utilities are well-behaved on the product of [0, C_i] when for every agent i there are c1 >= 0 and
c2 > 0 such that throughout the box

    du_i / dtheta_i >= c2      and      0 <= du_i / dtheta_j <= c1   for all j != i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fedaccord._checks import Vector


@dataclass(frozen=True, eq=False)
class Certified:
    """Proved: the constants hold on the whole box.

    own: c2, the least rate at which an agent's own samples raise its utility.
    cross: c1, the greatest rate at which another's samples raise it.
    box: C, the upper corner of the box.
    """

    own: Vector
    cross: Vector
    box: Vector

    def __str__(self) -> str:
        return (
            f"well-behaved: an own sample adds at least {self.own.min():.3g}, another's at most "
            f"{self.cross.max():.3g}; over the reals, without limits, a stable equilibrium exists"
        )


@dataclass(frozen=True, eq=False)
class Refuted:
    """Disproved: at the witness an agent's own samples add nothing.

    agent: the agent whose condition fails.
    witness: the contributions at which it fails.
    why: the failure in words.
    """

    agent: int
    witness: Vector
    why: str

    def __str__(self) -> str:
        return f"not well-behaved: {self.why}; an equilibrium may still exist"


@dataclass(frozen=True)
class Unknown:
    """Neither proved nor disproved."""

    why: str

    def __str__(self) -> str:
        return f"not known to be well-behaved: {self.why}"


WellBehaved: TypeAlias = Certified | Refuted | Unknown
