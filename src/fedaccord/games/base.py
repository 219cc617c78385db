"""Game: what the agents want, and what every utility model must be able to answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import (
    Indices,
    Matrix,
    Vector,
    as_numbers,
    check_finite,
    exact_numbers,
    frozen,
)
from fedaccord.errors import ExactnessError, InputError

if TYPE_CHECKING:
    from fedaccord.games.goals import GoalsGame
    from fedaccord.games.measured import MeasuredGame

Strategies: TypeAlias = Literal["real", "integer"]

# A float utility this close to its requirement, or a response this close to a whole number, is
# decided in exact arithmetic; further away, rounding errors cannot change the answer.
NEAR = 1e-9
# What sums of doubles may be off by, relative to their value.
ROUNDING = 1e-13


class Game(ABC):
    """k agents. Each wants utility u_i(theta) >= mu_i and to give as little as it can.

    A game never changes: make another with `replace` or `restrict`. Its strategy space is the box
    minimums <= theta <= limits, over the reals or the integers.

    requirements: mu, the utility each agent wants.
    agents: names; numbered where left out.
    strategies: "real" or "integer" contributions.
    limits: the most each agent can give; no limit where left out or None.
    minimums: the least each agent must give to take part; zero where left out.
    costs: what one sample costs each agent; one where left out.
    """

    model: ClassVar[str]
    requirements: Vector
    agents: tuple[str, ...] | None
    strategies: Strategies
    limits: Vector
    minimums: Vector
    costs: Vector

    def __init__(
        self,
        requirements: ArrayLike,
        *,
        agents: Sequence[str] | None = None,
        strategies: Strategies = "real",
        limits: Sequence[float | None] | ArrayLike | None = None,
        minimums: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        values = as_numbers(requirements, "requirements")
        if values.ndim != 1:
            raise InputError(f"requirements must be one list; got shape {values.shape}")
        if len(values) == 0:
            raise InputError("a game needs at least one agent; requirements is empty")
        self.requirements = frozen(values)
        self.agents = _read_names(agents, len(values))
        if strategies not in ("real", "integer"):
            raise InputError(f'strategies must be "real" or "integer"; got {strategies!r}')
        self.strategies = strategies
        check_finite(values, "the requirement", self.name)
        self.limits = self._per_agent(_drop_none(limits), "limits", np.inf)
        self.minimums = self._per_agent(minimums, "minimums", 0.0)
        self.costs = self._per_agent(costs, "costs", 1.0)
        if (self.costs == 0).any():
            free = self.name(int(np.argmax(self.costs == 0)))
            raise InputError(f"the cost of {free} is zero: give every agent a cost above zero")
        self._check_box()

    def _per_agent(self, values: ArrayLike | None, what: str, default: float) -> Vector:
        if values is None:
            return frozen(np.full(self.size, default))
        array = as_numbers(values, what)
        if array.shape != (self.size,):
            raise InputError(
                f"{what} must have one number per agent, {self.size}; got shape {array.shape}"
            )
        limitless = np.isposinf(array) & (what == "limits")
        check_finite(np.where(limitless, 0, array), f"the {what[:-1]}", self.name)
        return frozen(array)

    def _check_box(self) -> None:
        if self.strategies == "integer":
            for what, values in (("limit", self.limits), ("minimum", self.minimums)):
                whole = np.isinf(values) | (values == np.floor(values))
                if not whole.all():
                    agent = int(np.argmin(whole))
                    raise InputError(
                        f"the {what} of {self.name(agent)} is {values[agent]:g}, and strategies "
                        'are integer: give a whole number or strategies "real"'
                    )
        if (self.minimums > self.limits).any():
            agent = int(np.argmax(self.minimums > self.limits))
            raise InputError(
                f"the minimum of {self.name(agent)} ({self.minimums[agent]:g}) is above its limit "
                f"({self.limits[agent]:g}): lower one or raise the other"
            )

    # What an agent is and what it may do.

    @property
    def has_margins(self) -> bool:
        """Whether agents want more than their goals, with safety margins."""
        return bool(np.any(getattr(self, "margins", 0.0)))

    @property
    def size(self) -> int:
        """How many agents there are, k."""
        return len(self.requirements)

    @property
    def is_integer(self) -> bool:
        """Whether contributions are whole numbers."""
        return self.strategies == "integer"

    def name(self, agent: int) -> str:
        """Return what an agent is called."""
        return self.agents[agent] if self.agents is not None else f"agent {agent}"

    def total(self, contributions: Vector) -> float:
        """Return what an allocation costs: sum of costs[i] * contributions[i]."""
        return float(self.costs @ contributions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} agents, {self.strategies} strategies)"

    # What every model answers.

    @abstractmethod
    def utilities(self, contributions: Vector) -> Vector:
        """Return every agent's utility u_i(theta)."""

    @abstractmethod
    def _responses(self, contributions: Vector) -> Vector:
        """Return f_i(theta) over the reals: the least own amount that satisfies i; inf if none."""

    @abstractmethod
    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        """Return the constructor's own arguments, for all agents or for those to keep."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""

    def jacobian(self, contributions: Vector) -> Matrix:
        """Return the right-hand derivatives du_i / dtheta_j as a k x k array."""
        raise ExactnessError(f"{type(self).__name__} has no derivatives")

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return u_i(theta) in exact arithmetic, every float read as its simplest fraction."""
        raise ExactnessError(f"{type(self).__name__} has no exact utilities")

    def well_behaved(self, box: ArrayLike | None = None) -> WellBehaved:
        """Return whether utilities are well-behaved for theta_i in [0, C_i]; default C = alone."""
        return Unknown("this utility model comes with no bounds on its derivatives")

    def _response(self, agent: int, contributions: Vector) -> float:
        return float(self._responses(contributions)[agent])

    def _swapped_utility(self, contributions: Vector, agent: int, other: int) -> float:
        swapped = np.array(contributions)
        swapped[[agent, other]] = swapped[[other, agent]]
        return float(self.utilities(swapped)[agent])

    def swapped_utilities(self, contributions: Vector, agent: int, others: Indices) -> Vector:
        """Return the agent's utility after swapping its contribution with each of the others."""
        return np.array([self._swapped_utility(contributions, agent, int(j)) for j in others])

    @property
    def is_monotone(self) -> bool:
        """Whether nobody's utility falls when anybody gives more."""
        return True

    @property
    def utility_doubt(self) -> float:
        """How far a utility given may be from the true one; zero unless utilities are estimates."""
        return 0.0

    def swaps(
        self, contributions: Vector, agents: Indices, gap: float = 0.0
    ) -> tuple[Indices, Indices, Vector]:
        """Return pairs (i, j) of these agents with helpers who give less, and u_i after each swap.

        gap: by how much less; pairs whose swap leaves i short by over a hundredth of it, in its own
            samples, may be left out.
        """
        first: list[Indices] = []
        second: list[Indices] = []
        after: list[Vector] = []
        for agent in agents.tolist():
            others = self.helpers(agent)
            others = others[contributions[others] < contributions[agent] - gap]
            first.append(np.full(others.size, agent, dtype=np.intp))
            second.append(others)
            after.append(self.swapped_utilities(contributions, agent, others))
        if not first:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0)
        return np.concatenate(first), np.concatenate(second), np.concatenate(after)

    def helpers(self, agent: int) -> Indices:
        """Return the agents whose samples can matter to one agent, itself included."""
        return np.arange(self.size)

    def own_rates(self, agents: Indices, contributions: Vector) -> Vector:
        """Return what one of an agent's own samples adds to its utility, on average over them."""
        utility = self.utilities(contributions)
        rates = []
        for agent in agents.tolist():
            given = contributions[agent]
            other = np.array(contributions)
            other[agent] = 0.0 if given > 0 else 1.0
            change = utility[agent] - self.utilities(other)[agent]
            rates.append(change / (given if given > 0 else -1.0))
        return np.array(rates)

    def response_bounds(self, contributions: Vector) -> tuple[Vector, Vector]:
        """Return lower and upper bounds on best responses; equal wherever utilities are exact."""
        needed = self.best_responses(contributions)
        return needed, needed

    # What follows for every model.

    def best_responses(self, contributions: Vector) -> Vector:
        """Return f_i(theta): the least own contribution that satisfies i while the others stay.

            f_i(theta) = min { x >= 0 : u_i(x, theta_-i) >= mu_i },   x integer in integer games

        Limits and minimums are not applied: what an agent needs does not depend on what it may
        give. Infinite where no own amount suffices.
        """
        needed = self._responses(contributions)
        if self.is_integer:
            return np.array(
                [self._whole_response(i, float(f), contributions) for i, f in enumerate(needed)]
            )
        return needed

    def best_response(self, agent: int, contributions: Vector) -> float:
        """Return f_i(theta) of one agent."""
        needed = self._response(agent, contributions)
        return self._whole_response(agent, needed, contributions) if self.is_integer else needed

    def _whole_response(self, agent: int, needed: float, contributions: Vector) -> float:
        """Round a real response up to a whole one, deciding exactly where rounding might err."""
        if not np.isfinite(needed):
            return needed
        nearest = round(needed)
        if abs(needed - nearest) > NEAR * max(1.0, needed):
            return float(np.ceil(needed))
        # Real responses never exceed whole ones, so the answer is the nearest or the next.
        trial = np.array(contributions)
        trial[agent] = nearest
        return float(nearest if self._is_enough(agent, trial) else nearest + 1)

    def _is_enough(self, agent: int, contributions: Vector) -> bool:
        """Return whether whole contributions satisfy an agent; by floats if there is no better."""
        try:
            exact = self.exact_utility(agent, _Whole(contributions))
        except ExactnessError:
            utility = float(self.utilities(contributions)[agent])
            return bool(utility >= self.requirements[agent] * (1 - NEAR))
        return exact >= self.exact_requirements[agent]

    @cached_property
    def exact_requirements(self) -> list[Fraction]:
        """The requirements as Fractions."""
        return exact_numbers(self.requirements)

    @cached_property
    def alone(self) -> Vector:
        """Stand-alone needs: what each agent would give if nobody else gave anything."""
        return frozen(self.best_responses(np.zeros(self.size)))

    @cached_property
    def most_at_rest(self) -> Vector:
        """The most that agents give in an equilibrium.

        There theta_i = max(f_i(theta), minimum_i), and what i needs only falls as others give more:
        f_i(theta) <= f_i(0), the stand-alone need.
        """
        return frozen(np.minimum(np.maximum(self.alone, self.minimums), self.limits))

    def responses_within(self, contributions: Vector) -> Vector:
        """Return best responses moved into the strategy space."""
        return np.clip(self.best_responses(contributions), self.minimums, self.limits)

    def scale_of(self, contributions: Vector) -> float:
        """Return the largest contribution, or at zero the largest stand-alone need; never zero."""
        if contributions.any():
            return float(contributions.max())
        return float(self.alone[np.isfinite(self.alone)].max(initial=0.0)) or 1.0

    def satisfied(self, contributions: Vector) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for every agent whether u_i(theta) >= mu_i; exactly so in integer games."""
        slack = self.utilities(contributions) - self.requirements
        # Over the reals a requirement is met up to the rounding of its sum.
        rounding = 0.0 if self.is_integer else ROUNDING * self.requirements
        result: np.ndarray[Any, np.dtype[np.bool_]] = slack >= -rounding
        if self.is_integer:
            scale = np.maximum(1.0, np.abs(self.requirements))
            for i in np.flatnonzero(np.abs(slack) <= NEAR * scale):
                result[i] = self._is_enough(int(i), contributions)
        return result

    def is_feasible(self, contributions: Vector) -> bool:
        """Return whether every agent reaches its requirement."""
        return bool(self.satisfied(contributions).all())

    def short_at_limits(self) -> int | None:
        """Return an agent that is certainly short whatever everybody gives; None where none is.

        Without a limit an agent can meet its own requirement alone. One with a limit is certainly
        short if it is when all limits are reached and nobody without a limit helps it.
        """
        limited = np.isfinite(self.limits)
        if not limited.any():
            return None
        alone = np.where(np.isfinite(self.alone), self.alone, 0.0)
        corner = np.where(limited, self.limits, np.maximum(alone, self.minimums))
        slack = self.utilities(corner) - self.requirements
        near = NEAR * np.maximum(1.0, self.requirements) if self.is_integer else 0.0
        for agent in np.flatnonzero(limited & (slack < near)).tolist():
            helped = not limited[self.helpers(agent)].all()
            if not helped and self._is_short(agent, corner, float(slack[agent])):
                return int(agent)
        return None

    def _is_short(self, agent: int, contributions: Vector, slack: float) -> bool:
        """Return whether an agent is short; over the reals, by more than rounding."""
        try:
            reached = self.exact_utility(agent, exact_numbers(contributions))
        except ExactnessError:
            return bool(slack < -NEAR * self.requirements[agent])
        need = self.exact_requirements[agent]
        return reached < (need if self.is_integer else need * (1 - Fraction(ROUNDING)))

    def replace(self, **changes: Any) -> Self:
        """Make the same game with other requirements, agents, strategies, limits or costs."""
        return type(self)(**{**self._model_arguments(), **self._frame(), **changes})

    def restrict(self, keep: Sequence[int] | Indices) -> Self:
        """Make the game among some of the agents, the others gone with their data."""
        chosen = np.asarray(keep, dtype=np.intp)
        return type(self)(**self._model_arguments(chosen), **self._frame(chosen))

    def without(self, agent: int) -> Self:
        """Make the game without one agent."""
        return self.restrict(np.delete(np.arange(self.size), agent))

    def _frame(self, keep: Indices | None = None) -> dict[str, Any]:
        chosen = slice(None) if keep is None else keep
        names = self.agents
        if names is not None and keep is not None:
            names = tuple(names[i] for i in keep)
        return {
            "requirements": self.requirements[chosen],
            "agents": names,
            "strategies": self.strategies,
            "limits": self.limits[chosen],
            "minimums": self.minimums[chosen],
            "costs": self.costs[chosen],
        }

    def _frame_dict(self) -> dict[str, Any]:
        """Return the part of GAME.json that all models share, defaults left out."""
        result: dict[str, Any] = {"requirements": self.requirements.tolist()}
        if self.agents is not None:
            result["agents"] = list(self.agents)
        result["strategies"] = self.strategies
        if np.isfinite(self.limits).any():
            result["limits"] = [None if np.isinf(n) else n for n in self.limits.tolist()]
        if self.minimums.any():
            result["minimums"] = self.minimums.tolist()
        if (self.costs != 1).any():
            result["costs"] = self.costs.tolist()
        return result


# What serves every model asks here, and imports no model that it may not need.


def is_measured(game: Game) -> TypeGuard[MeasuredGame]:
    """Return whether agents want an accuracy, and learning curves say what that takes."""
    return game.model == "measured"


def has_goals(game: Game) -> TypeGuard[GoalsGame]:
    """Return whether each agent has a list of goals."""
    return game.model == "goals"


class _Whole(Sequence[Fraction]):
    """Whole contributions read as Fractions one by one: most models look at few of them."""

    def __init__(self, contributions: Vector) -> None:
        self._values = contributions

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [Fraction(int(c)) for c in self._values[place]]
        return Fraction(int(self._values[place]))


def _read_names(agents: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    if agents is None:
        return None
    agents = agents if isinstance(agents, str) else list(agents)
    if isinstance(agents, str) or not all(isinstance(name, str) for name in agents):
        raise InputError("agents must be a list of names, one per requirement")
    if len(agents) != size:
        raise InputError(f"{size} requirements came with {len(agents)} agent names")
    if len(set(agents)) != size:
        seen: set[str] = set()
        twice = next(n for n in agents if n in seen or seen.add(n))  # type: ignore[func-returns-value]
        raise InputError(f"two agents are called {twice!r}: give each its own name")
    return tuple(agents)


def _drop_none(limits: Any) -> Any:
    if limits is None or np.ndim(limits) == 0 or isinstance(limits, np.ndarray):
        return limits
    return [np.inf if n is None else n for n in limits]


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


def find_least(enough: Callable[[int], bool], most: float = math.inf) -> tuple[int, int | None]:
    """Find by doubling and halving the least whole number that is enough, where zero is not.

    Returns the number before it and itself; where none is enough, the last one tried and None.

    enough: whether a number is enough; larger ones then are, too.
    most: from where on doubling stops.
    """
    low, high = 0, 1
    while not enough(high):
        if high >= most:
            return high, None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high
