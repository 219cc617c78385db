"""Any monotone utilities, given as a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.errors import ExactnessError, FedaccordError, InputError, UnreachableError
from fedaccord.games.base import Game

# Own contributions are doubled up to this before a requirement counts as out of reach.
MOST = 2.0**60
# Utilities may fall by this much, relatively, through rounding in the user's function.
ROUNDING = 1e-12


class FunctionGame(Game):
    """Agents whose utilities are any function of the contributions that never falls in any of them.

    That it never falls is taken on trust and checked wherever responses are computed. Reals are
    found by bisection to the last digits of a double; where the function is flat just below the
    requirement they are only as good as its values. Whole numbers are decided by its values alone,
    so give `exact` where ties matter.

    utilities: takes the contributions, a read-only array, and gives one utility per agent.
    requirements and the rest: see Game.
    exact: takes a list of Fractions and gives a list of Fractions, or takes (agent, list) and
        gives one; used to decide ties.
    """

    model: ClassVar[str] = "function"

    def __init__(
        self,
        utilities: Callable[[Vector], ArrayLike],
        requirements: ArrayLike,
        *,
        exact: Callable[..., Any] | None = None,
        **frame: Any,
    ) -> None:
        super().__init__(requirements, **frame)
        if not callable(utilities):
            raise InputError("utilities must be a function of the contributions")
        if exact is not None and not callable(exact):
            raise InputError("exact must be a function of Fractions")
        self._function = utilities
        self._exact = exact
        needed = self._responses(np.zeros(self.size))
        self._check_rising(needed)
        helpless = np.isinf(needed) & np.isinf(self.limits)
        if helpless.any():
            agent = int(np.argmax(helpless))
            raise UnreachableError(
                f"no amount of its own samples up to {MOST:.3g} gives {self.name(agent)} its "
                f"requirement of {self.requirements[agent]:.6g}: lower it, or give it a limit if "
                "others' samples are to satisfy it"
            )

    def _check_rising(self, needed: Vector) -> None:
        """Refuse a function that falls as one agent alone goes from nothing to its need."""
        nothing = self.utilities(np.zeros(self.size))
        for giver in range(self.size):
            amount = max(1.0, needed[giver]) if np.isfinite(needed[giver]) else 1.0
            after = self.utilities(np.where(np.arange(self.size) == giver, amount, 0.0))
            falls = after < nothing - ROUNDING * np.maximum(1.0, np.abs(nothing))
            if falls.any():
                agent = int(np.argmax(falls))
                raise InputError(
                    f"the utility of {self.name(agent)} falls from {nothing[agent]:.6g} to "
                    f"{after[agent]:.6g} when {self.name(giver)} gives {amount:.6g}: utilities "
                    "must not fall when an agent gives more"
                )

    def utilities(self, contributions: Vector) -> Vector:
        """Call the function, and check that it gives one finite number per agent."""
        given = frozen(np.array(contributions, dtype=np.float64))
        try:
            values = np.asarray(self._function(given), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the utility function failed at contributions {_shorten(given)}: {error}"
            ) from error
        if values.shape != (self.size,):
            raise InputError(
                f"the utility function must give {self.size} numbers, one per agent; got shape "
                f"{values.shape}"
            )
        if not np.isfinite(values).all():
            agent = int(np.argmin(np.isfinite(values)))
            raise InputError(
                f"the utility function gives {self.name(agent)} no finite number ({values[agent]}) "
                f"at contributions {_shorten(given)}: make it defined for all of zero or more"
            )
        return np.array(values)

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return u_i(theta) by the exact function, where there is one."""
        if self._exact is None:
            raise ExactnessError(
                "this FunctionGame has no exact utilities: give it an `exact` function of Fractions"
            )
        values = _call_exact(self._exact, agent, list(contributions))
        if not isinstance(values, (int, Fraction)):
            raise InputError(
                f"the exact utility function must give a Fraction for {self.name(agent)}; got "
                f"{values!r}"
            )
        return Fraction(values)

    def satisfied(self, contributions: Vector) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return who has enough: exactly in integer games with `exact`, else by the function."""
        if self._exact is not None:
            return super().satisfied(contributions)
        return np.asarray(self.utilities(contributions) >= self.requirements)

    # Best responses by doubling and bisection.

    def _responses(self, contributions: Vector) -> Vector:
        return np.array([self._response(i, contributions) for i in range(self.size)])

    def _response(self, agent: int, contributions: Vector) -> float:
        high, low = self._bracket(agent, contributions)
        # Stop at neighbouring doubles, or below the least contribution worth telling from zero.
        while np.isfinite(high) and high - low > self._step_at(high):
            middle = low + (high - low) / 2
            middle = np.floor(middle) if self.is_integer else middle
            enough = self._enough(agent, middle, contributions)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _step_at(self, amount: float) -> float:
        return 1.0 if self.is_integer else max(float(np.spacing(amount)), 1e-300)

    def _bracket(self, agent: int, contributions: Vector) -> tuple[float, float]:
        """Return an own amount that is enough (infinite if none is) and one that is not."""
        if self._enough(agent, 0.0, contributions):
            return 0.0, 0.0
        low, high = 0.0, 1.0
        utility = -np.inf
        while not self._enough(agent, high, contributions):
            if high >= MOST:
                return np.inf, high
            value = self._own(agent, high, contributions)
            if value < utility - ROUNDING * max(1.0, abs(utility)):
                raise InputError(
                    f"the utility of {self.name(agent)} falls from {utility:.6g} to {value:.6g} as "
                    f"its own contribution grows from {low:.6g} to {high:.6g}: utilities must not "
                    "fall when an agent gives more"
                )
            utility, low, high = value, high, 2 * high
        return high, low

    def _own(self, agent: int, amount: float, contributions: Vector) -> float:
        trial = np.array(contributions, dtype=np.float64)
        trial[agent] = amount
        return float(self.utilities(trial)[agent])

    def _enough(self, agent: int, amount: float, contributions: Vector) -> bool:
        if self.is_integer and self._exact is not None:
            trial = [Fraction(int(c)) for c in contributions]
            trial[agent] = Fraction(int(amount))
            return self.exact_utility(agent, trial) >= self.exact_requirements[agent]
        return bool(self._own(agent, amount, contributions) >= self.requirements[agent])

    def _whole_response(self, agent: int, needed: float, contributions: Vector) -> float:
        return needed  # found among whole numbers already

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        if keep is None:
            return {"utilities": self._function, "exact": self._exact}
        function, exact, size = self._function, self._exact, self.size
        chosen = keep.tolist()

        def kept(contributions: Vector) -> Vector:
            full = np.zeros(size)
            full[chosen] = contributions
            values: Vector = np.asarray(function(full), dtype=np.float64)
            return np.asarray(values[chosen])

        if exact is None:
            return {"utilities": kept}

        def kept_exact(agent: int, contributions: Sequence[Fraction]) -> Any:
            full = [Fraction(0)] * size
            for place, amount in zip(chosen, contributions, strict=True):
                full[place] = amount
            return _call_exact(exact, chosen[agent], full)

        return {"utilities": kept, "exact": kept_exact}

    def to_dict(self) -> dict[str, Any]:
        """Refuse: a Python function cannot be written to a file."""
        raise FedaccordError(
            "a game given as a Python function cannot be written to a file: keep the code that "
            "makes it, or use a linear, coverage or pac game"
        )


def _call_exact(exact: Callable[..., Any], agent: int, contributions: list[Fraction]) -> Any:
    """Call an exact function of (contributions), which gives all, or of (agent, contributions)."""
    if _takes_two(exact):
        return exact(agent, contributions)
    return exact(contributions)[agent]


def _takes_two(function: Callable[..., Any]) -> bool:
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    required = [
        p
        for p in signature(function).parameters.values()
        if p.kind in positional and p.default is Parameter.empty
    ]
    return len(required) == 2


def _shorten(given: Vector) -> str:
    text = ", ".join(f"{c:g}" for c in given[:4])
    return f"[{text}{', ...' if len(given) > 4 else ''}]"
