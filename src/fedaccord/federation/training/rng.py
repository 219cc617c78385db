"""Random numbers: every purpose has a stream of its own, so that one use never shifts another.

Which of its points a client draws is decided by the seed, its name and how many it drew before. So
a client needs no memory. Wherever it runs, and if it was started anew in between, it draws the
points it would have drawn anyway.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from fedaccord._checks import Indices
from fedaccord.errors import InputError


def stream(seed: int, purpose: str, *place: int | str) -> np.random.Generator:
    """Return the random stream of a purpose, the same for the same seed, purpose and place.

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


def derive_seed(seed: int, purpose: str, *place: int | str) -> int:
    """Return a seed of its own to a purpose, below 2**63."""
    return int(stream(seed, purpose, *place).integers(2**63))


class Draws:
    """The samples of one client: shuffled passes through the points it brings.

        sample t  =  pass[t // contribution][t % contribution]

    Who brings fewer points brings a part of what it would bring otherwise.

    name: the client's; other names draw otherwise.
    points: how many it has.
    contribution: how many of them it brings, theta.
    seed: of the run.
    drawn: how many samples it drew before.
    """

    def __init__(
        self, name: str, points: int, contribution: int, *, seed: int, drawn: int = 0
    ) -> None:
        self._name = name
        self._brought: Indices = stream(seed, "points", name).permutation(points)[:contribution]
        self._random = stream(seed, "draws", name)
        self._left: Indices = self._brought[:0]
        self.drawn = 0
        if contribution:
            # Replay the shuffles of finished passes to restore the generator's state.
            for _ in range(drawn // contribution):
                self._random.permutation(self._brought)
            self.drawn = drawn - drawn % contribution
            self.draw(drawn % contribution)

    @property
    def unique(self) -> int:
        """How many different points were drawn so far: a pass has every point once."""
        return min(self.drawn, len(self._brought))

    def draw(self, count: int) -> Indices:
        """Draw the next so many samples, as places among all the client's points."""
        if count > len(self._left):
            if not len(self._brought):
                raise InputError(f"{self._name} brings no points; let it draw none, or bring some")
            more = math.ceil((count - len(self._left)) / len(self._brought))
            again = [self._random.permutation(self._brought) for _ in range(more)]
            self._left = np.concatenate([self._left, *again])
        chosen, self._left = self._left[:count], self._left[count:]
        self.drawn += count
        return chosen


def draw_goal_rows(name: str, points: int, count: int, *, seed: int, round_number: int) -> Indices:
    """Draw the validation points that the goal test of a round looks at.

    name: the client's.
    points: how many validation points it has.
    count: how many to look at, all where it has fewer.
    seed: of the run.
    round_number: counted from 1.
    """
    random = stream(seed, "validation", name, round_number)
    return random.choice(points, min(count, points), replace=False)
