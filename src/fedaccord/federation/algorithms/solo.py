"""Clients that learn alone: what the others' data is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from fedaccord.federation.algorithms.base import Algorithm


@dataclass(frozen=True, kw_only=True)
class Solo(Algorithm):
    """Everybody learns alone, from the same start, with batches of 256 unless told otherwise."""

    kind = "solo"
    name = "Solo"
    trains_alone = True

    rounds: int = 63
    batch_size: int = 256
