"""Best-response dynamics: what happens when agents keep adjusting to one another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import SMALLEST, Matrix, Vector, as_numbers, check_finite, frozen
from fedaccord.equilibria.result import Deadline
from fedaccord.errors import InputError
from fedaccord.games.base import Game

Order: TypeAlias = Literal["simultaneous", "sequential"]

# A path may return to where it was only up to rounding; closer than this, relative to the largest
# contribution, two allocations count as the same.
SAME = 1e-12
# Longer cycles than this are not looked for.
LONGEST_CYCLE = 500


class Ending(Enum):
    """How a path of best responses ended; the value is the sentence for it."""

    CONVERGED = "It settles: no agent wants to change its contribution any more."
    CYCLED = "It cycles: the same allocations come back for ever."
    LIMIT = "It was stopped: it neither settled nor came back to where it was."

    def __bool__(self) -> NoReturn:
        raise TypeError("an Ending has no truth value; compare it, as in ending is Ending.CYCLED")


@dataclass(frozen=True, eq=False)
class Path:
    """The allocations that a federation passes through when agents adjust to one another.

    game, order, damping, tolerance: what was run.
    contributions: one row per round, the start first.
    regret: per round, the largest distance of an agent from its best response, in samples.
    ending: how it ended.
    period: how many rounds a cycle takes; zero where there is none.
    """

    game: Game
    order: Order
    damping: float
    tolerance: float
    contributions: Matrix
    regret: Vector
    ending: Ending
    period: int = 0

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return len(self.contributions) - 1

    @property
    def last(self) -> Vector:
        """The allocation reached."""
        return frozen(self.contributions[-1].copy())

    def __repr__(self) -> str:
        return f"Path({self.order}, {self.rounds} rounds, {self.ending.name.lower()})"

    def sentence(self) -> str:
        """Say in plain words how it ended."""
        start = self.contributions[0]
        origin = "zero" if not start.any() else f"a total of {start.sum():,.6g}"
        damped = f", moving {self.damping:.3g} of the way each round," if self.damping != 1 else ""
        subject = f"{self.order.capitalize()} best response from {origin}{damped}"
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds:,} rounds"
        if self.ending is Ending.CONVERGED:
            where = f"an allocation that gives {self.last.sum():,.6g} in all"
            return f"{subject} settles after {rounds} at {where}."
        if self.ending is Ending.CYCLED:
            return f"{subject} cycles between {self.period} allocations and never settles."
        return (
            f"{subject} had not settled after {rounds}: somebody is still "
            f"{self.regret[-1]:.3g} samples from its best response."
        )


def best_response_dynamics(
    game: Game,
    *,
    start: ArrayLike | None = None,
    order: Order = "simultaneous",
    damping: float = 1.0,
    tolerance: float = 1e-9,
    max_rounds: int = 1000,
    deadline: Deadline | None = None,
) -> Path:
    """Let agents move towards their best responses, round after round, and record the path.

        theta_i  <-  (1 - damping) theta_i + damping * clip(f_i(theta), minimum_i, limit_i)

    start: where to begin; at the minimums where left out.
    order: "simultaneous" moves all at once, "sequential" one after the other.
    damping: the part of the way that an agent moves; one half converges where whole steps cycle
        in all of the paper's examples. Integer games need 1.
    tolerance: what counts as settled, relative to the largest contribution; integer games are
        settled when nobody moves at all.
    max_rounds: when to stop.
    deadline: when to stop even so.
    """
    given = _check_start(game, start, order, damping, max_rounds)
    rows, regrets = [given], []
    ending, period = Ending.LIMIT, 0
    for _ in range(max_rounds + 1):
        wanted = game.responses_within(given)
        # Who has no limit and can never have enough stays put.
        wanted = np.where(np.isfinite(wanted), wanted, given)
        regrets.append(float(np.abs(wanted - given).max()))
        allowed = 0.0 if game.is_integer else tolerance * game.scale_of(given)
        if regrets[-1] <= allowed:
            ending = Ending.CONVERGED
            break
        if period := _period(rows, regrets, exactly=game.is_integer):
            ending = Ending.CYCLED
            break
        if len(rows) > max_rounds or (deadline is not None and deadline.passed):
            break
        given = _move(game, given, wanted, order, damping)
        rows.append(given)
    return Path(
        game=game,
        order=order,
        damping=damping,
        tolerance=tolerance,
        contributions=frozen(np.array(rows)),
        regret=frozen(np.array(regrets)),
        ending=ending,
        period=period,
    )


def _check_start(
    game: Game, start: ArrayLike | None, order: str, damping: float, max_rounds: int
) -> Vector:
    if order not in ("simultaneous", "sequential"):
        raise InputError(f'order must be "simultaneous" or "sequential"; got {order!r}')
    if not 0 < damping <= 1:
        raise InputError(f"damping must be above 0 and at most 1; got {damping:g}")
    if game.is_integer and damping != 1:
        raise InputError(
            "damping takes fractions of a sample and this game's contributions are whole numbers: "
            'use damping 1, or strategies "real"'
        )
    if max_rounds < 1:
        raise InputError(f"max_rounds must be at least 1; got {max_rounds}")
    given = np.array(game.minimums) if start is None else as_numbers(start, "start")
    if given.shape != (game.size,):
        raise InputError(f"start must have {game.size} contributions; got shape {given.shape}")
    # The last allocation of a damped path, a fair start for another, may be next to nothing.
    given = np.where((given > 0) & (given < SMALLEST), 0.0, given)
    check_finite(given, "the start", game.name)
    if game.is_integer and (given != np.floor(given)).any():
        agent = int(np.argmax(given != np.floor(given)))
        raise InputError(
            f"the start of {game.name(agent)} is {given[agent]:g}, and this game's contributions "
            "are whole numbers"
        )
    return np.clip(given, game.minimums, game.limits)


def _move(game: Game, given: Vector, wanted: Vector, order: Order, damping: float) -> Vector:
    if order == "simultaneous":
        return np.asarray(given + damping * (wanted - given)) if damping != 1 else wanted
    moved = np.array(given)
    for agent in range(game.size):
        target = game.best_response(agent, moved)
        target = min(max(target, game.minimums[agent]), game.limits[agent])
        if np.isfinite(target):
            moved[agent] += damping * (target - moved[agent])
            if damping == 1:
                moved[agent] = target
    return moved


def _period(rows: list[Vector], regrets: list[float], *, exactly: bool) -> int:
    """Return the period of a cycle that the path has entered, or zero.

    A map that comes back to the very same allocation repeats itself for ever. Over the reals the
    return is judged up to rounding, and a slowly converging path also returns that closely: so
    the cycle must be seen twice over, move far more than it misses by, and not lose regret.
    """
    longest = min(len(rows) - 1 if exactly else (len(rows) - 1) // 2, LONGEST_CYCLE)
    closest = 0.0 if exactly else SAME * max(1e-300, float(rows[-1].max()))
    for period in range(1 if exactly else 2, longest + 1):
        if np.abs(rows[-1] - rows[-1 - period]).max() > closest:
            continue
        if exactly:
            return period
        earlier = (np.abs(rows[-1 - n] - rows[-1 - n - period]).max() for n in range(period + 1))
        apart = max(float(np.abs(rows[-1 - n] - rows[-1]).max()) for n in range(1, period))
        moving = min(regrets[-period:]) >= regrets[-1 - period] * (1 - 1e-6)
        if max(earlier) <= closest and moving and apart > 1e3 * closest:
            return period
    return 0
