"""Random numbers: every purpose has a stream of its own, so that one use never shifts another.

The seed, a client's name and the number of its earlier draws decide which of its samples it draws.
So a client needs no memory: wherever it runs, and even if it restarts, it draws the same samples.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

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
    """Return a seed for a purpose, below 2**63."""
    return int(stream(seed, purpose, *place).integers(2**63))


class Draws:
    """The draws of one client: shuffled passes through the samples it gives.

        sample t  =  pass[t // contribution][t % contribution]

    The samples of a smaller contribution are a subset of those of a larger one. If a run calls for
    more samples, the client draws these once it has drawn all earlier ones, and before it draws any
    again; later passes go through all of them.

    name: the client's; the draws depend on it.
    points: how many samples it has.
    contribution: how many of them it gives, theta.
    seed: of the run.
    drawn: how many samples it drew before.
    changes: contributions that were called for later, each as (draws before, samples).
    """

    def __init__(
        self,
        name: str,
        points: int,
        contribution: int,
        *,
        seed: int,
        drawn: int = 0,
        changes: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._name = name
        self._order = draw_contribution(name, points, points, seed=seed)
        self._brought = self._order[:contribution]
        self._random = stream(seed, "draws", name)
        self._left: Indices = self._brought[:0]
        # How many points were never drawn; they come before all others.
        self._unseen = len(self._brought)
        self.drawn = 0
        for before, brought in changes:
            self._pass_over(before - self.drawn)
            self.resize(brought)
        self._pass_over(drawn - self.drawn)

    @property
    def unique(self) -> int:
        """How many different samples were drawn so far: a pass has every sample once."""
        return len(self._brought) - self._unseen

    def draw(self, count: int) -> Indices:
        """Draw the next samples, as positions among all samples of the client."""
        if count > len(self._left):
            if not len(self._brought):
                raise InputError(f"{self._name} gives no samples, so none can be drawn from it")
            more = math.ceil((count - len(self._left)) / len(self._brought))
            again = [self._random.permutation(self._brought) for _ in range(more)]
            self._left = np.concatenate([self._left, *again])
        chosen, self._left = self._left[:count], self._left[count:]
        self._count(count)
        return chosen

    def resize(self, brought: int) -> None:
        """Bring another number of points from now on; what was drawn before cannot be taken back.

        brought: how many, all points that were drawn among them.
        """
        if brought == len(self._brought):
            return
        more, fewer = self._order[len(self._brought) : brought], self._brought[brought:]
        if self._unseen > len(self._left):
            # The first pass has not begun: new points come after it, and not in it.
            self._left = self._random.permutation(self._brought)
        first, again = np.split(self._left, [self._unseen])
        kept = first[~np.isin(first, fewer)]
        if len(kept) + len(fewer) != len(first):
            raise InputError(f"{self._name} cannot take back samples that it has drawn already")
        self._left = np.concatenate([kept, more, again])
        self._brought = self._order[:brought]
        self._unseen += len(more) - len(fewer)

    def _pass_over(self, count: int) -> None:
        """Skip samples that were drawn before."""
        if not len(self._brought):
            return
        ahead = min(count, len(self._left))
        self.draw(ahead)
        # Replay the shuffles of finished passes to restore the generator's state.
        passes, rest = divmod(count - ahead, len(self._brought))
        for _ in range(passes):
            self._random.permutation(self._brought)
        self._count(count - ahead - rest)
        self.draw(rest)

    def _count(self, count: int) -> None:
        self.drawn += count
        self._unseen = max(0, self._unseen - count)


def draw_contribution(name: str, points: int, contribution: int, *, seed: int) -> Indices:
    """Draw which of its samples a client gives; of a smaller contribution the first of them.

    name: the client's.
    points: how many it has.
    contribution: how many of them it gives, theta.
    seed: of the run.
    """
    chosen: Indices = stream(seed, "points", name).permutation(points)[:contribution]
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
