"""Training that lasts as long as what its members have promised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, check_choice, check_real, check_whole
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.algorithms.mw_fed import SLACK

ENDS = ("first", "each")


@dataclass(frozen=True)
class PledgeState:
    """How far the pledges are used up.

    shares: each client's part of a round's samples.
    budgets: how many samples each may draw in all.
    drawn: how many it drew.
    rounds: how many rounds there were.
    passed: at how many goal tests, up to the last, everybody had its accuracy.
    """

    shares: Vector
    budgets: Counts
    drawn: Counts
    rounds: int = 0
    passed: int = 0

    @property
    def used_up(self) -> NDArray[np.bool_]:
        """Whose pledge is used up; of who has pledged nothing it is not."""
        return np.asarray((self.shares > 0) & (self.drawn >= self.budgets))


@dataclass(frozen=True, kw_only=True)
class Pledged(Algorithm):
    """Everybody pledges points, and each point is drawn so many times; then training is over.

        samples of i in a round  =  m * B * k * theta_i / sum(theta)
        budget of i              =  passes * min(theta_i, points that i brings)

    where k counts those with a pledge. At full contributions all pledges are used up in the same
    round. If one brings less than its pledge, its budget ends early:

        ends = "first":  training is over for all as soon as one pledge is used up
        ends = "each":   the others go on

    Under "first" nobody can lean on the others' points: who brings a quarter of its pledge ends
    training after a quarter of the rounds, for itself and for all. That makes every cut felt, and
    makes the others pay for it too.

    passes: how many times each pledged point is drawn.
    ends: "first" or "each".
    stop_after: at how many goal tests in a row, at evaluations, everybody must have its accuracy
        for training to end before the pledges are used up; None for never.
    commitment: theta, the points pledged, in the clients' order; what each brings where left out.
    """

    kind = "pledged"
    name = "PLEDGED"
    # Who brings nothing wants its accuracy all the same before training stops at the goal.
    passes_off_idle = False
    tests_at_evaluations = True

    passes: float = 10.0
    ends: str = "first"
    stop_after: int | None = None
    commitment: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Raise an InputError at settings that no training could follow."""
        super().__post_init__()
        check_real("passes", self.passes, above=0)
        check_choice("ends", self.ends, ENDS)
        if self.stop_after is not None:
            check_whole("stop_after", self.stop_after)
        if self.commitment is not None:
            given: object = self.commitment
            listed = isinstance(given, list | tuple) and any(given)
            if not listed or not all(type(n) is int and n >= 0 for n in self.commitment):
                raise InputError(
                    "commitment must be a list of whole numbers of points, not all zero; got "
                    f"{given!r}"
                )
            object.__setattr__(self, "commitment", tuple(self.commitment))

    def committed(self, contributions: Sequence[int]) -> Pledged:
        """Return the algorithm with what clients have pledged, where it does not have it yet."""
        if self.commitment is not None:
            return self
        return dataclasses.replace(self, commitment=tuple(int(n) for n in contributions))

    @property
    def tests_goal(self) -> bool:
        """Whether there are tests of the goal: if training may end at one."""
        return self.stop_after is not None

    def begin(self, contributions: Counts) -> PledgeState:
        """Set out each client's share of a round and its budget."""
        pledged = np.array(contributions if self.commitment is None else self.commitment)
        if pledged.shape != contributions.shape:
            raise InputError(
                f"{len(contributions)} clients need one commitment each; got {len(pledged)}"
            )
        self._check_rounds(pledged)
        budgets = self.passes * np.minimum(pledged, contributions)
        # Parts of a sample: if the first pledge ends it all, none may be through too soon, and if
        # the last does, none too late.
        whole = np.ceil(budgets - SLACK) if self.ends == "first" else np.floor(budgets + SLACK)
        return PledgeState(
            shares=pledged / pledged.sum(),
            budgets=whole.astype(np.int64),
            drawn=np.zeros(len(pledged), dtype=np.int64),
        )

    def _check_rounds(self, pledged: Counts) -> None:
        """Raise an InputError at too few rounds to use up the pledges: a cut would not be felt."""
        total = self.batch_size * self.local_batches * np.count_nonzero(pledged)
        needed = math.ceil(self.passes * int(pledged.sum()) / total - SLACK)
        if needed > self.rounds:
            raise InputError(
                f"{self.name} takes {needed:,} rounds to draw {int(pledged.sum()):,} points "
                f"{self.passes:g} times, and rounds is {self.rounds:,}: let rounds be {needed:,} "
                "or more, or passes fewer"
            )

    def allot(self, state: PledgeState) -> Counts:
        """Keep everybody in step with its share, up to its budget."""
        total = self.batch_size * self.local_batches * np.count_nonzero(state.shares)
        # In all rounds so far, so that shares which are no whole numbers come out even, and
        # rounded down, so that at full contributions nobody is through before the others.
        now, before = (
            np.floor(state.shares * total * rounds + SLACK).astype(np.int64)
            for rounds in (state.rounds + 1, state.rounds)
        )
        return np.asarray(np.clip(now - before, 0, state.budgets - state.drawn))

    def drew(self, state: PledgeState, counts: Counts) -> PledgeState:
        """Take the samples off the budgets."""
        return dataclasses.replace(state, drawn=state.drawn + counts, rounds=state.rounds + 1)

    def weights(self, state: PledgeState, accuracies: Vector, requirements: Vector) -> PledgeState:
        """Count the tests in a row at which everybody had its accuracy."""
        all_pass = bool((accuracies >= requirements).all())
        return dataclasses.replace(state, passed=state.passed + 1 if all_pass else 0)

    def ended(self, state: PledgeState) -> bool:
        """Return whether the pledges are used up, or everybody has what it wants."""
        if state.passed >= (self.stop_after or math.inf):
            return True
        used = state.used_up[state.shares > 0]
        return bool(used.any() if self.ends == "first" else used.all())
