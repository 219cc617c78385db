"""EARNED: the current model goes to those who deliver what they pledged, on schedule."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, check_real, check_whole
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Counts
from fedaccord.federation.algorithms.mw_fed import SLACK, exact_counts
from fedaccord.federation.algorithms.pledged import PledgeState, Pledging, check_points


@dataclass(frozen=True, kw_only=True)
class EarnedState(PledgeState):
    """Who has delivered what, who is behind, and how much of the reserve is called.

    pledged: theta, the points each client pledged.
    brought: how many of them it brings.
    reserve: how many more points it holds in reserve.
    called: how many points of its reserve are called.
    reserve_rounds: the sum of `called` over all rounds so far.
    fresh: how many different points it has delivered.
    idle: whether it drew less than allotted in the last round.
    late: for how many rounds in a row it has been behind.
    out: whether it gets no further model for now.
    """

    pledged: Counts
    brought: Counts
    reserve: Counts
    called: Counts
    reserve_rounds: Counts
    fresh: Counts
    idle: NDArray[np.bool_]
    late: Counts
    out: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Earned(Pledging):
    """The server sends its model only to clients that deliver fresh pledged points on schedule.

        draws of i in a round  =  m * B * k * theta_i / sum(theta), its pledged points first
        points due of i by t   =  min(theta_i, draws of i by t / (fresh_by * passes))

    for `passes * sum(theta) / (m * B * k)` rounds, as under PLEDGED, where k counts those with a
    pledge. A client is behind in a round if it has delivered fewer different points than are due,
    or has made fewer draws than allotted; `grace` of both is allowed. A client that is behind for
    more than `patience` rounds in a row is sent no further model: it keeps the last that it got.
    The others go on. Once it has delivered the points that are due it gets the current model again.

    What such clients still owe, their draws to come over the passes, is called from the reserves of
    the others: from each in proportion to its reserve. A called point is then pledged like any
    other, and drawn as often in a round. A client that pledged nothing, and of whose reserve none
    is called, owes nothing and gets every model.

    With everybody's pledge delivered, training is PLEDGED's with ends = "each", bit by bit.

    fresh_by: the part of all rounds after which every pledged point must have appeared, from
        1 / passes, which is as soon as they are drawn, to 1; 1 / passes where left out.
    grace: the part of its points, and of a round's draws, that a client may fall behind.
    patience: for how many rounds in a row it may be behind.
    cover: how many points are called for each that is missing; above 1 it makes up for points that
        are worth less to the others.
    reserve: how many points each client holds in reserve, in the clients' order; none where left
        out.
    """

    kind = "earned"
    name = "EARNED"
    withholds = True

    fresh_by: float | None = None
    grace: float = 0.0
    patience: int = 0
    cover: float = 1.0
    reserve: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fresh_by is not None:
            least = 1 / self.passes
            expected = f"from {least:.3g}, one pass of {self.passes:g}, to 1"
            check_real("fresh_by", self.fresh_by, least=least - SLACK, most=1, expected=expected)
        check_real("grace", self.grace, least=0, below=1, expected="from 0 to below 1")
        check_whole("patience", self.patience, least=0)
        check_real("cover", self.cover, above=0)
        if self.reserve is not None:
            object.__setattr__(self, "reserve", check_points("reserve", self.reserve))

    def reserving(self, reserve: Sequence[int]) -> Earned:
        """Return the algorithm with what clients hold in reserve, where it does not have it yet."""
        if self.reserve is not None:
            return self
        return dataclasses.replace(self, reserve=tuple(int(n) for n in reserve))

    def repeated(self, passes: float) -> Earned:
        """Return the algorithm with another number of passes; one of them is the soonest."""
        by = self.fresh_by if passes > 1 else None
        return dataclasses.replace(
            self, passes=passes, fresh_by=None if by is None else max(by, 1 / passes)
        )

    def limits(self, contributions: Counts) -> Counts:
        """Return how many different points each client may be asked for: with its reserve."""
        return np.asarray(contributions) + self._reserve(len(contributions))

    def _reserve(self, clients: int) -> Counts:
        held = np.zeros(clients, dtype=np.int64) if self.reserve is None else np.array(self.reserve)
        if len(held) != clients:
            raise InputError(f"{clients} clients need one reserve each; got {len(held)}")
        return held

    def begin(self, contributions: Counts) -> EarnedState:
        """Set out what each client owes, and hold the reserves."""
        pledged = self.find_pledges(contributions)
        clients, brought = len(pledged), np.minimum(pledged, contributions)
        none = np.zeros(clients, dtype=np.int64)
        return EarnedState(
            shares=pledged / pledged.sum(),
            budgets=np.floor(self.passes * brought + SLACK).astype(np.int64),
            drawn=none,
            pledged=pledged,
            brought=brought,
            reserve=self._reserve(clients),
            called=none,
            reserve_rounds=none,
            fresh=none,
            idle=np.zeros(clients, dtype=bool),
            late=none,
            out=np.zeros(clients, dtype=bool),
        )

    def allot(self, state: EarnedState) -> Counts:
        """Return each client's draws of the round, with those that it is behind.

        A client without the current model can draw the points that it owes, or, if it owes none,
        its share: that is its way back.
        """
        (pledge, reserve), (before, reserve_before) = (
            self._plan(state, state.rounds + ahead) for ahead in (1, 0)
        )
        share = pledge - before + reserve - reserve_before
        due = np.minimum(state.pledged, pledge) + np.minimum(state.called, reserve)
        # What it does not have cannot be asked for.
        able = np.minimum(due, state.brought + state.called) - state.fresh
        asked = np.where(state.out & (due > state.fresh), able, np.maximum(share, able))
        most = state.budgets + np.floor(self.passes * state.called + SLACK).astype(np.int64)
        return np.asarray(np.clip(asked, 0, np.maximum(most - state.drawn, 0)))

    def _plan(self, state: EarnedState, rounds: int) -> tuple[Counts, Counts]:
        """Return the draws of pledged and of called points that are due by a round."""
        total = self.batch_size * self.local_batches * np.count_nonzero(state.shares)
        called = state.reserve_rounds + (rounds - state.rounds) * state.called
        rate = total / int(state.pledged.sum())
        return (
            np.floor(state.shares * total * rounds + SLACK).astype(np.int64),
            np.floor(called * rate + SLACK).astype(np.int64),
        )

    def drew(self, state: EarnedState, counts: Counts) -> EarnedState:
        """Count the draws, and record which clients drew less than allotted."""
        asked = self.allot(state)
        return dataclasses.replace(
            state,
            drawn=state.drawn + counts,
            idle=counts < np.ceil((1 - self.grace) * asked - SLACK),
            reserve_rounds=state.reserve_rounds + state.called,
            rounds=state.rounds + 1,
        )

    def delivered(self, state: EarnedState, unique: Counts) -> EarnedState:
        """Compare what was delivered with what is due; call the reserve for those who are out."""
        state = dataclasses.replace(state, fresh=np.asarray(unique))
        late = np.where(self._is_behind(state) | state.idle, state.late + 1, 0)
        out = late > self.patience
        given = np.maximum(state.fresh - state.pledged, 0)
        called = call_reserve(self._owed(state), state.reserve, given, out, cover=self.cover)
        if called.any():
            # A holder that is out owes what was called from it, though others stand in for it now.
            called = np.where(out, np.maximum(state.called, called), called)
        return dataclasses.replace(state, late=late, out=out, called=called)

    def _owed(self, state: EarnedState) -> Counts:
        """Return what is left of each pledge, in points: the draws to come over the passes."""
        left = state.pledged - state.drawn / self.passes
        return np.ceil(np.maximum(left, 0) - SLACK).astype(np.int64)

    def _is_behind(self, state: EarnedState) -> NDArray[np.bool_]:
        passes = 1.0 if self.fresh_by is None else self.fresh_by * self.passes
        due = np.zeros_like(state.fresh)
        plan = self._plan(state, state.rounds)
        for planned, most in zip(plan, (state.pledged, state.called), strict=True):
            due += np.minimum(most, np.floor(planned / passes + SLACK).astype(np.int64))
        allowed = np.floor(self.grace * (state.pledged + state.called) + SLACK)
        return np.asarray(due - state.fresh > allowed)

    def called(self, state: EarnedState) -> Counts:
        """Return how many points of each client's reserve are called now."""
        return state.called

    def left(self, state: EarnedState) -> NDArray[np.bool_]:
        """Return who gets no further model for now."""
        return state.out

    def weights(self, state: EarnedState, accuracies: Vector, requirements: Vector) -> EarnedState:
        """Count the tests in a row at which all who get the model had their accuracy."""
        all_pass = bool((state.out | (accuracies >= requirements)).all())
        return dataclasses.replace(state, passed=state.passed + 1 if all_pass else 0)

    def ended(self, state: EarnedState) -> bool:
        """Return whether the rounds of the pledges are over, or nobody has anything to deliver."""
        if state.passed >= (self.stop_after or math.inf):
            return True
        return state.rounds >= self.count_rounds(state.pledged) or not self.allot(state).any()


def call_reserve(
    owed: Counts,
    reserve: Counts,
    given: Counts,
    out: NDArray[np.bool_],
    *,
    cover: float = 1.0,
) -> Counts:
    """Return how many points of each reserve stand in for what clients still owe.

        sum(called)  =  min(cover * points owed, reserve of those who are not out)

    in proportion to the reserves, so that all holders give the same part of theirs. Points of a
    reserve that were delivered stay, even if those they stood in for come late.

    owed: how many points' worth of draws each still owes of its pledge.
    reserve: the points that each holds in reserve.
    given: the points of it that each has delivered.
    out: who does not deliver.
    cover: how many points stand in for one.
    """
    missing = math.ceil(cover * int(owed[out].sum()) - SLACK) - int(given[out].sum())
    held = np.where(out, 0, reserve)
    total = min(max(missing, 0), int(held.sum()))
    shares = held / max(int(held.sum()), 1)
    return np.maximum(exact_counts(shares, total) if total else np.zeros_like(held), given)
