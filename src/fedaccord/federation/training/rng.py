"""Random numbers: every purpose has a stream of its own, so that one use never shifts another."""

from __future__ import annotations

import zlib

import numpy as np

from fedaccord.errors import InputError


def stream(seed: int, purpose: str, *place: int | str) -> np.random.Generator:
    """Give the random stream of a purpose, the same for the same seed, purpose and place.

    seed: zero or more.
    purpose: what the numbers are for, such as "draws".
    place: whose they are, such as a client's name.
    """
    given: object = seed
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise InputError(f"a seed must be a whole number, zero or more; got {seed!r}")
    words = (purpose, *place)
    entropy = [seed, *(zlib.crc32(w.encode()) if isinstance(w, str) else w for w in words)]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy)))


def derived_seed(seed: int, purpose: str, *place: int | str) -> int:
    """Give a seed of its own to a purpose, below 2**63."""
    return int(stream(seed, purpose, *place).integers(2**63))
