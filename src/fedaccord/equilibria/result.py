"""Solution, its Status and its bounds: what every solver returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, get_args

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord._lazy import Displayed
from fedaccord.allocation import Allocation
from fedaccord.check import Answer, Check
from fedaccord.errors import InputError, UnsolvedError
from fedaccord.games.base import Game

Concept: TypeAlias = Literal["optimal", "stable", "envy-free"]
CONCEPTS: tuple[Concept, ...] = get_args(Concept)
# Which of several equilibria: the best, or the worst.
Select: TypeAlias = Literal["cheapest", "costliest"]
AnyGame = TypeVar("AnyGame", bound=Game)
# The lower and the upper corner of a set of allocations.
Box: TypeAlias = tuple[Vector, Vector]


class Status(Enum):
    """How a solver ended; the value is the sentence a user reads."""

    OPTIMAL = "Solved: no plan of this kind has a smaller total, up to the tolerance."
    LIMIT = "Not proved: a cheaper plan of this kind may exist, with a total between the bounds."
    INFEASIBLE = (
        "There is no plan: even if all agents give all they can, one agent misses its requirement."
    )
    NONE_EXISTS = "Proved: no plan of this kind exists."
    NOT_ATTAINED = "No plan has the least total: totals come as close to the bound as you like."
    FAILED = "No plan was found. This does not prove that there is none."

    @property
    def key(self) -> str:
        """The word used in JSON."""
        return self.name.lower().replace("_", "-")

    def __bool__(self) -> NoReturn:
        raise TypeError("a Status has no truth value; compare it, as in status is Status.OPTIMAL")


@dataclass(frozen=True)
class Interval:
    """Numbers from lower to upper, both included."""

    lower: float
    upper: float

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def relative_gap(self) -> float:
        """How far apart the ends are, relative to the upper one."""
        return 0.0 if self.upper == self.lower else (self.upper - self.lower) / abs(self.upper)

    def to_dict(self) -> dict[str, float | None]:
        """Return the ends; None where one is unknown."""
        ends = {"lower": self.lower, "upper": self.upper}
        return {key: end if np.isfinite(end) else None for key, end in ends.items()}


@dataclass(frozen=True)
class Price(Displayed, Interval):
    """A ratio of totals, between lower and upper.

    note: what to know about it, such as that both totals are zero.
    """

    note: str = ""


@dataclass(frozen=True, eq=False)
class Solution(Displayed):
    """What a solver claims; check(solution.game, solution.allocation) proves or refutes it.

    game, concept, method, options: what was asked.
    status: how it ended.
    bounds: an interval that holds the least total of any allocation of this kind.
    contributions: the allocation found, or None.
    certificate: what backs the claim, by name: dual prices, witnesses, counts.
    note: one more sentence for the user, where there is something to say.
    """

    game: Game
    concept: Concept
    method: str
    status: Status
    bounds: Interval
    contributions: Vector | None = None
    certificate: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.contributions is not None:
            object.__setattr__(self, "contributions", frozen(_tidy(self.contributions)))

    @property
    def allocation(self) -> Allocation:
        """The allocation found; raises the status's sentence where there is none."""
        if self.contributions is None:
            raise UnsolvedError(" ".join(filter(None, (self.status.value, self.note))))
        return Allocation(self.contributions, self.game.agents)

    @property
    def total(self) -> float:
        """What the allocation found costs; infinite where there is none."""
        return np.inf if self.contributions is None else self.game.total(self.contributions)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what computed this."""
        from importlib.metadata import version

        return {name: version(name) for name in ("fedaccord", "numpy", "scipy")}

    def __repr__(self) -> str:
        return (
            f"Solution({self.concept}, {self.status.key}, total {self.total:.6g} in "
            f"[{self.bounds.lower:.6g}, {self.bounds.upper:.6g}], by {self.method})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the solution for machines; the same for the same input, seconds aside."""
        given = self.contributions
        ends = self.bounds.to_dict()
        return {
            "status": self.status.key,
            "contributions": None if given is None else given.tolist(),
            "total": None if given is None else self.total,
            "lower_bound": ends["lower"],
            "upper_bound": ends["upper"],
            "method": self.method,
            "note": self.note,
            "seconds": self.seconds,
        }


def _tidy(contributions: Vector) -> Vector:
    """Take the solvers' rounding noise off whole numbers, zero among them."""
    nearest = np.round(contributions)
    noise = 1e-12 * float(np.abs(contributions).max(initial=0.0))
    # Adding zero turns a negative zero into zero.
    return np.where(np.abs(contributions - nearest) <= noise, nearest, contributions) + 0.0


@dataclass(frozen=True, eq=False)
class SolvedGame(Displayed):
    """What was found for each concept that the caller chose.

    game: what was solved.
    solutions: by concept, in the order of CONCEPTS.
    checks: by concept, where an allocation was found.
    price_of_stability, price_of_fairness: None where a solution they need was not asked for.
    staying: who stays where agents harm each other; None where nobody would give less alone.
    """

    game: Game
    solutions: Mapping[str, Solution]
    checks: Mapping[str, Check]
    price_of_stability: Price | None
    price_of_fairness: Price | None
    staying: Staying | None = None

    @property
    def main_concept(self) -> str:
        """The concept to explain and to save: stable, or the first that the caller chose."""
        return "stable" if "stable" in self.solutions else next(iter(self.solutions))

    @property
    def prices(self) -> dict[str, Price | None]:
        """The prices by their names in JSON."""
        return {
            "price_of_stability": self.price_of_stability,
            "price_of_fairness": self.price_of_fairness,
        }

    def is_answered(self, concept: str) -> bool:
        """Return whether a concept got an answer that the check does not refute."""
        if concept not in self.checks:
            return self.solutions[concept].status is not Status.FAILED
        return self.checks[concept].verdicts[concept] is not Answer.FALSE

    def to_dict(self) -> dict[str, Any]:
        """Return what was found, for machines."""
        return {
            "solutions": {
                concept: {
                    **solution.to_dict(),
                    "audit": self.checks[concept].to_dict() if concept in self.checks else None,
                }
                for concept, solution in self.solutions.items()
            },
            **{name: price and price.to_dict() for name, price in self.prices.items()},
            **({} if self.staying is None else {"staying": self.staying.to_dict()}),
        }


@dataclass(frozen=True, eq=False)
class Staying:
    """The agents that are no worse off together than alone, after those that are have left.

    agents: who stays, by number in the whole game.
    left: who leaves, in that order.
    solution: the stable plan of those who stay; its game is theirs.
    """

    agents: tuple[int, ...]
    left: tuple[int, ...]
    solution: Solution

    def to_dict(self) -> dict[str, Any]:
        """Return who stays and who leaves, for machines."""
        return {
            "agents": list(self.agents),
            "left": list(self.left),
            "solution": self.solution.to_dict(),
        }


class Deadline:
    """A time limit that parts of a solver share.

    seconds: the limit.
    clock: what tells the time, in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.started = clock()
        self.limit = seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    @property
    def left(self) -> float:
        """Seconds left, zero at least."""
        return max(0.0, self.limit - self.elapsed)

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self.elapsed >= self.limit


def limit_work(seconds: float) -> Deadline:
    """Return a limit of computing time: what it allows does not depend on a busy machine."""
    return Deadline(seconds, time.thread_time)


@dataclass(frozen=True, eq=False)
class Claim(Generic[AnyGame]):
    """Puts what a solver found into a Solution, with the status that its bounds allow.

    game, concept: what is asked.
    tolerance: relative distance between the bounds that counts as solved.
    deadline: when to stop.
    costliest: whether the costliest equilibrium is looked for, and bounds hold the greatest total.
    """

    game: AnyGame
    concept: Concept
    tolerance: float
    deadline: Deadline
    costliest: bool = False

    @property
    def select(self) -> Select:
        """Which of several equilibria is looked for."""
        return "costliest" if self.costliest else "cheapest"

    def solution(
        self,
        method: str,
        status: Status,
        bounds: Interval,
        contributions: Vector | None = None,
        *,
        certificate: Mapping[str, Any] | None = None,
        note: str = "",
    ) -> Solution:
        """Claim just this."""
        options: dict[str, Any] = {"tolerance": self.tolerance}
        if self.concept == "stable":
            options["select"] = self.select
        return Solution(
            self.game, self.concept, method, status, bounds, contributions,
            certificate=certificate or {}, options=options, note=note,
        )  # fmt: skip

    def is_closed(self, lower: float, best: Vector) -> bool:
        """Return whether an allocation's total is as near a lower bound as the tolerance asks."""
        upper = self.game.total(best)
        return upper - lower <= self.tolerance * upper

    def bounded(self, method: str, lower: float, best: Vector, **rest: Any) -> Solution:
        """Claim an allocation and a lower bound on the least total."""
        upper = self.game.total(best)
        return self.enclosed(method, Interval(min(lower, upper), upper), best, **rest)

    def enclosed(self, method: str, bounds: Interval, best: Vector | None, **rest: Any) -> Solution:
        """Claim bounds on the least total, and the allocation that shows the upper one, if any."""
        closed = best is not None and bounds.relative_gap <= self.tolerance
        found = Status.FAILED if best is None else Status.LIMIT
        return self.solution(method, Status.OPTIMAL if closed else found, bounds, best, **rest)

    def among(
        self, method: str, best: Vector, lower: float, upper: float = np.inf, **rest: Any
    ) -> Solution:
        """Claim an equilibrium among others whose totals lie between lower and upper."""
        if not self.costliest:
            return self.bounded(method, lower, best, **rest)
        total = self.game.total(best)
        closed = self.is_closed(self.mirror(best, lower, upper), best)
        status = Status.OPTIMAL if closed else Status.LIMIT
        return self.solution(method, status, Interval(total, max(upper, total)), best, **rest)

    def mirror(self, best: Vector, lower: float, upper: float) -> float:
        """Return the bound that counts, mirrored at the total where the costliest is wanted."""
        return 2 * self.game.total(best) - upper if self.costliest else lower

    def none_exists(self, method: str, note: str = "", **rest: Any) -> Solution:
        """Claim a proof that there is no such allocation."""
        bounds = Interval(np.inf, np.inf)
        return self.solution(method, Status.NONE_EXISTS, bounds, note=note, **rest)

    def failed(self, method: str, note: str, *, lower: float = 0.0, **rest: Any) -> Solution:
        """Say why nothing was found, and nothing proved impossible."""
        bounds = Interval(lower, np.inf)
        return self.solution(method, Status.FAILED, bounds, note=note, **rest)

    def one_sided(self, method: str, lower: float, best: Vector, **rest: Any) -> Solution:
        """Claim an equilibrium of which it is not known whether there is a better one."""
        total = self.game.total(best)
        ends = (total, np.inf) if self.costliest else (min(lower, total), total)
        return self.solution(method, Status.LIMIT, Interval(*ends), best, **rest)

    def better(self, found: list[Vector]) -> Vector:
        """Return the one of several equilibria that is wanted."""
        return (max if self.costliest else min)(found, key=self.game.total)


def stable_box(game: Game) -> Box:
    """Return a box that holds every equilibrium."""
    most = game.most_at_rest
    if not np.isfinite(most).all():
        agent = int(np.argmax(~np.isfinite(most)))
        raise InputError(
            f"{game.name(agent)} can neither meet its requirement alone nor has a limit, so no "
            "box holds all equilibria: give it a limit"
        )
    return np.array(game.minimums), np.array(most)


def bisect(enough: Callable[[float], bool], low: float, high: float, halvings: int = 100) -> float:
    """Return about the least number that is enough, between one that is not and one that is."""
    for _ in range(halvings):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def least_whole(game: Game, contributions: Vector, agent: int) -> float:
    """Return the least whole number that one agent can give with everybody satisfied."""
    trial = np.array(contributions)
    low, high = float(game.minimums[agent]) - 1, float(contributions[agent])
    while high - low > 1:
        trial[agent] = np.floor((low + high) / 2)
        low, high = (low, trial[agent]) if game.is_feasible(trial) else (trial[agent], high)
    return high


def level_allocation(game: Game, level: float) -> Vector:
    """Return what everybody gives at one level, as far as limits and minimums allow."""
    return np.asarray(np.clip(np.full(game.size, level), game.minimums, game.limits))


def equal_allocation(game: Game) -> Vector | None:
    """Return the least equal contributions that satisfy everybody; None where none do.

    With limits and minimums everybody gives the level moved into its range: an agent that then
    gives less than another cannot take the other's burden, or the other cannot take its.
    """
    if game.is_feasible(level_allocation(game, 0.0)):
        return level_allocation(game, 0.0)
    low, high = 0.0, float(np.ceil(game.alone[np.isfinite(game.alone)].max(initial=1.0)))
    while not game.is_feasible(level_allocation(game, high)):
        if (level_allocation(game, high) == level_allocation(game, 2 * high)).all():
            return None
        low, high = high, 2 * high
    if game.is_integer:
        # Whole numbers from zero are looked for between the two.
        while high - low > 1:
            middle = float((low + high) // 2)
            enough = game.is_feasible(level_allocation(game, middle))
            low, high = (low, middle) if enough else (middle, high)
        return level_allocation(game, high)
    # Two hundred halvings exhaust a double's digits.
    level = bisect(lambda n: game.is_feasible(level_allocation(game, n)), low, high, 200)
    return level_allocation(game, level)
