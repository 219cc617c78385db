"""PLEDGED: training that lasts as long as the pledges of its clients."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, check_choice, check_real, check_whole
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.algorithms.mw_fed import SLACK

ENDS = ("first", "each")

Kind = TypeVar("Kind", bound="Pledging")


@dataclass(frozen=True)
class PledgeState:
    """How far the pledges are used up.

    shares: each client's part of a round's samples.
    budgets: how many samples each may draw in all.
    drawn: how many it drew.
    rounds: how many rounds there were.
    passed: at how many goal tests in a row, up to the last, all clients reached their goals.
    """

    shares: Vector
    budgets: Counts
    drawn: Counts
    rounds: int = 0
    passed: int = 0

    @property
    def used_up(self) -> NDArray[np.bool_]:
        """Which clients have used up their pledges; clients without a pledge have not."""
        return np.asarray((self.shares > 0) & (self.drawn >= self.budgets))


@dataclass(frozen=True, kw_only=True)
class Pledging(Algorithm):
    """Base of algorithms in which each pledged sample is drawn a fixed number of times.

    passes: how many times each pledged point is drawn.
    stop_after: at how many goal tests in a row, at evaluations, all clients must reach their goals
        for training to end before the pledges are used up; None for never.
    commitment: theta, the pledges, in the clients' order; their contributions where left out.
    """

    # A client without samples also wants its goal before training stops.
    passes_off_idle = False
    tests_at_evaluations = True

    passes: float = 10.0
    stop_after: int | None = None
    commitment: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("passes", self.passes, above=0)
        if self.stop_after is not None:
            check_whole("stop_after", self.stop_after)
        if self.commitment is not None:
            given = check_points("commitment", self.commitment)
            if not any(given):
                raise InputError(f"commitment must be above 0 for some client; got {given!r}")
            object.__setattr__(self, "commitment", given)

    def committed(self: Kind, contributions: Sequence[int]) -> Kind:
        """Return the algorithm with these pledges, unless it has pledges already."""
        if self.commitment is not None:
            return self
        return dataclasses.replace(self, commitment=tuple(int(n) for n in contributions))

    def repeated(self: Kind, passes: float) -> Kind:
        """Return the algorithm with another number of passes."""
        return dataclasses.replace(self, passes=passes)

    @property
    def tests_goal(self) -> bool:
        """Whether the goal is tested: only if training may end at a goal test."""
        return self.stop_after is not None

    def find_pledges(self, contributions: Counts) -> Counts:
        """Return what each client has pledged: the commitment, or what it brings."""
        pledged = np.array(contributions if self.commitment is None else self.commitment)
        if pledged.shape != contributions.shape:
            raise InputError(
                f"{len(contributions)} clients need one commitment each; got {len(pledged)}"
            )
        self._check_rounds(pledged)
        return pledged

    def count_rounds(self, pledged: Counts) -> int:
        """Return how many rounds it takes to use up the pledges."""
        total = self.batch_size * self.local_batches * np.count_nonzero(pledged)
        return math.ceil(self.passes * int(pledged.sum()) / total - SLACK)

    def _check_rounds(self, pledged: Counts) -> None:
        """Raise an InputError if rounds are too few to use up the pledges."""
        # Otherwise defection would have no effect.
        needed = self.count_rounds(pledged)
        if needed > self.rounds:
            raise InputError(
                f"{self.name} takes {needed:,} rounds to draw {int(pledged.sum()):,} samples "
                f"{self.passes:g} times, and rounds is {self.rounds:,}: set rounds to {needed:,} "
                "or more, or use fewer passes"
            )


@dataclass(frozen=True, kw_only=True)
class Pledged(Pledging):
    """Clients pledge samples; each is drawn a fixed number of times, then training is over.

        samples of i in a round  =  m * B * k * theta_i / sum(theta)
        budget of i              =  passes * min(theta_i, samples that i gives)

    where k counts the clients with a pledge. With full contributions, all pledges are used up in
    the same round. If a client gives less than its pledge, its budget ends early:

        ends = "first":  training is over for all as soon as one pledge is used up
        ends = "each":   the others go on

    Under "first", no client can rely on the others' samples: a client that gives a quarter of its
    pledge ends training after a quarter of the rounds, for itself and for all. So every defection
    has an effect, and the others pay for it too.

    ends: "first" or "each".
    """

    kind = "pledged"
    name = "PLEDGED"

    ends: str = "first"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("ends", self.ends, ENDS)

    def begin(self, contributions: Counts) -> PledgeState:
        """Compute each client's part of a round, and its budget."""
        pledged = self.find_pledges(contributions)
        budgets = self.passes * np.minimum(pledged, contributions)
        # Parts of a sample: if the first pledge ends it all, none may be through too soon, and if
        # the last does, none too late.
        whole = np.ceil(budgets - SLACK) if self.ends == "first" else np.floor(budgets + SLACK)
        return PledgeState(
            shares=pledged / pledged.sum(),
            budgets=whole.astype(np.int64),
            drawn=np.zeros(len(pledged), dtype=np.int64),
        )

    def allot(self, state: PledgeState) -> Counts:
        """Keep all clients in step with their parts, up to their budgets."""
        total = self.batch_size * self.local_batches * np.count_nonzero(state.shares)
        # In all rounds so far, so that shares which are no whole numbers come out even, and
        # rounded down, so that with full contributions no client ends before the others.
        now, before = (
            np.floor(state.shares * total * rounds + SLACK).astype(np.int64)
            for rounds in (state.rounds + 1, state.rounds)
        )
        return np.asarray(np.clip(now - before, 0, state.budgets - state.drawn))

    def drew(self, state: PledgeState, counts: Counts) -> PledgeState:
        """Take the samples off the budgets."""
        return dataclasses.replace(state, drawn=state.drawn + counts, rounds=state.rounds + 1)

    def weights(self, state: PledgeState, accuracies: Vector, requirements: Vector) -> PledgeState:
        """Count the goal tests in a row at which all clients reached their goals."""
        all_pass = bool((accuracies >= requirements).all())
        return dataclasses.replace(state, passed=state.passed + 1 if all_pass else 0)

    def ended(self, state: PledgeState) -> bool:
        """Return whether the pledges are used up, or all clients reach their goals."""
        if state.passed >= (self.stop_after or math.inf):
            return True
        used = state.used_up[state.shares > 0]
        return bool(used.any() if self.ends == "first" else used.all())


def check_points(name: str, given: Sequence[int]) -> tuple[int, ...]:
    """Return whole numbers of points, one per client, or raise an InputError."""
    if not isinstance(given, list | tuple) or not all(type(n) is int and n >= 0 for n in given):
        raise InputError(f"{name} must be a list of whole numbers of samples; got {given!r}")
    return tuple(given)
