"""General PAC learning over finite worlds, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Matrix, Vector, as_numbers, frozen
from fedaccord.errors import ExactnessError, InputError, UnreachableError
from fedaccord.games.base import Certified, Game, Refuted, Unknown, WellBehaved, find_least
from fedaccord.games.pac.posteriors import (
    FOREVER,
    BayesPosteriors,
    Posteriors,
    WorstPosteriors,
    round_randomly,
)
from fedaccord.games.pac.worlds import World, merge_worlds, read_labels, read_worlds

Classifier: TypeAlias = Literal["bayes", "worst"]

# Well-behavedness is decided at the corners of unit cells; above this many it is left open.
MOST_CORNERS = 20_000


class PacGame(Game):
    """Agents that want an accurate classifier, learnt from everybody's labelled samples.

    Nature draws a world; agent j then draws theta_j labelled points from its distribution in that
    world; a classifier is learnt from all of them, and u_i is its expected accuracy on a new
    point of agent i. Fractional contributions are rounded at random to a neighbouring whole
    number with the right mean, so utilities are multilinear between whole numbers. All utilities
    and responses are computed exactly.

    worlds: World objects, or dicts {"prior": p, "samples": [[[point, label, p], ...] per agent]}.
    requirements and the rest: see Game.
    classifier: "bayes" labels every point with its likeliest label given the samples; "worst" is
        the least accurate hypothesis among those that agree with all labels seen (see
        WorstPosteriors), for worlds in which every point has one label.
    """

    model: ClassVar[str] = "pac"
    # Between whole numbers utilities are linear in each contribution, and exact_utility is quick.
    is_multilinear: ClassVar[bool] = True

    def __init__(
        self,
        worlds: Any,
        requirements: ArrayLike,
        *,
        classifier: Classifier = "bayes",
        **frame: Any,
    ) -> None:
        super().__init__(requirements, **frame)
        if classifier not in ("bayes", "worst"):
            raise InputError(f'classifier must be "bayes" or "worst"; got {classifier!r}')
        self.classifier = classifier
        self.worlds: tuple[World, ...] = read_worlds(worlds, self.size, self.name)
        if classifier == "worst":
            read_labels(self.worlds, self.name)
        for agent in range(self.size):
            self._check_reachable(agent)

    def _check_reachable(self, agent: int) -> None:
        """Refuse a requirement that neither own samples nor, under limits, all samples meet."""
        if self._is_reachable(agent, self._only(agent, FOREVER)):
            return
        everything = self._utility(agent, [Fraction(FOREVER)] * self.size)
        required = self.exact_requirements[agent]
        if np.isfinite(self.limits[agent]) and everything >= required:
            return
        own = self._utility(agent, self._only(agent, FOREVER))
        reason = (
            f"any number of its own samples gives it at most {float(own):.6g}, because they do not "
            "tell all worlds apart"
            if own < required
            else f"its own samples come as near to {float(own):.6g} as one likes and never reach it"
        )
        raise UnreachableError(
            f"the requirement of {self.name(agent)} is {float(required):.6g}, and {reason}: "
            "lower its requirement"
        )

    @cached_property
    def _posteriors(self) -> Posteriors:
        worlds = merge_worlds(self.worlds)
        if self.classifier == "worst":
            return WorstPosteriors(worlds, read_labels(worlds, self.name))
        return BayesPosteriors(worlds)

    # Utilities.

    def utilities(self, contributions: Vector) -> Vector:
        """Return the expected accuracies u(theta), each rounded once from its exact value."""
        counts = _to_fractions(contributions)
        return np.array([float(self._utility(i, counts)) for i in range(self.size)])

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return u_i(theta) in Fractions."""
        return self._utility(agent, [Fraction(c) for c in contributions])

    def satisfied(self, contributions: Vector) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for every agent whether u_i(theta) >= mu_i, exactly.

        A float utility may round up to its requirement while the agent is samples short of it.
        """
        counts = _to_fractions(contributions)
        required = self.exact_requirements
        return np.array([self._utility(i, counts) >= required[i] for i in range(self.size)])

    def _utility(self, agent: int, counts: Sequence[Fraction]) -> Fraction:
        ends = round_randomly(counts, Fraction(1))
        return sum((p * self._posteriors.utility(agent, m) for m, p in ends), Fraction(0))

    def _swapped_utility(self, contributions: Vector, agent: int, other: int) -> float:
        counts = _to_fractions(contributions)
        counts[agent], counts[other] = counts[other], counts[agent]
        return float(self._utility(agent, counts))

    def jacobian(self, contributions: Vector) -> Matrix:
        """Return the right-hand derivatives: differences of utilities across the unit cell."""
        counts = _to_fractions(contributions)
        return np.array(
            [[float(self._slope(i, j, counts)) for j in range(self.size)] for i in range(self.size)]
        )

    def _slope(self, agent: int, giver: int, counts: Sequence[Fraction]) -> Fraction:
        """Return du_i / dtheta_j to the right, exact because u_i is linear in theta_j on a cell."""
        low, high = list(counts), list(counts)
        low[giver] = Fraction(math.floor(counts[giver]))
        high[giver] = low[giver] + 1
        return self._utility(agent, high) - self._utility(agent, low)

    # Best responses.

    def _is_reachable(self, agent: int, counts: Sequence[Fraction]) -> bool:
        """Return whether some finite number of own samples satisfies the agent, the others given.

        More samples never hurt, so the limit of infinitely many decides, unless it equals the
        requirement. Then one sample decides: m samples attain the limit exactly when, whatever
        they are, an action that is best in every world they leave possible is known; that they
        are all equal is possible, and then they leave the worlds possible that one leaves.
        """
        required = self.exact_requirements[agent]
        trial = list(counts)
        trial[agent] = Fraction(1)
        if self._utility(agent, trial) >= required:
            return True
        trial[agent] = Fraction(FOREVER)
        return self._utility(agent, trial) > required

    def _least_whole(self, agent: int, counts: Sequence[Fraction]) -> int | None:
        """Find the least whole number of own samples that suffices; None where none does."""

        def enough(amount: int) -> bool:
            trial = list(counts)
            trial[agent] = Fraction(amount)
            return self._utility(agent, trial) >= self.exact_requirements[agent]

        if enough(0):
            return 0
        if not self._is_reachable(agent, counts):
            return None
        return find_least(enough)[1]

    def exact_response(self, agent: int, contributions: Sequence[Fraction]) -> Fraction | None:
        """Return f_i(theta) as a Fraction, or None where no own amount suffices."""
        counts = [Fraction(c) for c in contributions]
        whole = self._least_whole(agent, counts)
        if whole is None or whole == 0 or self.is_integer:
            return None if whole is None else Fraction(whole)
        # Between whole - 1, too little, and whole, enough, the utility is linear.
        counts[agent] = Fraction(whole - 1)
        below = self._utility(agent, counts)
        counts[agent] = Fraction(whole)
        rise = self._utility(agent, counts) - below
        return whole - 1 + (self.exact_requirements[agent] - below) / rise

    def _response(self, agent: int, contributions: Vector) -> float:
        response = self.exact_response(agent, _to_fractions(contributions))
        return np.inf if response is None else float(response)

    def _responses(self, contributions: Vector) -> Vector:
        return np.array([self._response(i, contributions) for i in range(self.size)])

    def _whole_response(self, agent: int, needed: float, contributions: Vector) -> float:
        return needed  # exact already

    def _only(self, agent: int, count: int) -> list[Fraction]:
        counts = [Fraction(0)] * self.size
        counts[agent] = Fraction(count)
        return counts

    # Well-behavedness.

    def well_behaved(self, box: ArrayLike | None = None) -> WellBehaved:
        """Decide well-behavedness on the product of [0, C_i], exactly; default C = alone.

        On a unit cell u_i is multilinear, so du_i / dtheta_j does not depend on theta_j there and
        is multilinear in the rest: its extremes over the box lie at whole numbers and at C.
        """
        corner = self.alone if box is None else as_numbers(box, "box")
        if corner.shape != (self.size,) or not np.isfinite(corner).all() or (corner < 0).any():
            return Unknown("the box must have one finite side per agent")
        sides = [[*map(Fraction, range(math.ceil(c))), Fraction(c)] for c in corner.tolist()]
        if math.prod(map(len, sides)) > MOST_CORNERS:
            return Unknown(
                f"the box has more than {MOST_CORNERS:,} corners of unit cells to look at"
            )
        try:
            own, cross, places = self._extreme_slopes(sides)
        except ExactnessError as error:
            return Unknown(str(error))
        for agent, place in enumerate(places):
            if own[agent] <= 0:
                return Refuted(
                    agent,
                    frozen(np.array([float(c) for c in place])),
                    f"where the others give {_format_others(place, agent)}, more samples of "
                    f"{self.name(agent)} from {place[agent]} on add nothing to its utility",
                )
        return Certified(
            frozen(np.array([float(c) for c in own])),
            frozen(np.array([float(c) for c in cross])),
            frozen(np.array(corner)),
        )

    def _extreme_slopes(
        self, sides: list[list[Fraction]]
    ) -> tuple[list[Fraction], list[Fraction], list[tuple[Fraction, ...]]]:
        own = [Fraction(2)] * self.size
        cross = [Fraction(0)] * self.size
        places: list[tuple[Fraction, ...]] = [()] * self.size
        for giver in range(self.size):
            # One slope per cell of the giver: take its lower end.
            cells = sides[giver][:-1] or sides[giver]
            for place in product(*sides[:giver], cells, *sides[giver + 1 :]):
                for agent in range(self.size):
                    slope = self._slope(agent, giver, place)
                    if agent != giver:
                        cross[agent] = max(cross[agent], slope)
                    elif slope < own[agent]:
                        own[agent], places[agent] = slope, place
        return own, cross, places

    # Making other games.

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        worlds = self.worlds if keep is None else tuple(w.restrict(keep) for w in self.worlds)
        return {"worlds": worlds, "classifier": self.classifier}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        result = {"model": "pac", **self._frame_dict()}
        result["worlds"] = [world.to_dict() for world in self.worlds]
        if self.classifier != "bayes":
            result["classifier"] = self.classifier
        return result


def _to_fractions(contributions: Vector) -> list[Fraction]:
    return [Fraction(float(c)) for c in contributions]


def _format_others(place: Sequence[Fraction], agent: int) -> str:
    return ", ".join(f"{float(c):g}" for j, c in enumerate(place) if j != agent)
