"""Decide whether an allocation is feasible, stable and envy-free, trusting no solver.

Of a game that was measured by pilots, a check also says how likely agents are to reach their goals,
and compares the allocation with a plan that somebody else made.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, frozen
from fedaccord.allocation import Allocation
from fedaccord.check.result import PROBABILITY, Answer, Check, to_answer
from fedaccord.errors import InputError
from fedaccord.games.base import Game, is_measured
from fedaccord.games.envy import find_envy
from fedaccord.wording import count, format_samples

if TYPE_CHECKING:
    from fedaccord.games.chances import Chances, Judged
    from fedaccord.games.measured import MeasuredGame

# The most agents that a message names.
NAMES = 3


class Measured(Protocol):
    """What a check reads of a Measurement."""

    @property
    def game(self) -> MeasuredGame:
        """The game as fitted, without margins."""

    @property
    def doubts(self) -> tuple[Any, ...]:
        """What speaks against trusting the fit; each has a sentence."""


class Planned(Protocol):
    """What a check reads of a plan: a Plan, or a Solution of a measured game."""

    @property
    def game(self) -> Game:
        """The game with the plan's safety margins."""

    @property
    def contributions(self) -> Vector | None:
        """What each agent gives; None where there is no plan."""


def check(
    game: Game | Measured,
    allocation: Allocation | ArrayLike,
    *,
    tolerance: float = 1e-6,
    probability: float | None = None,
    judged: Judged | None = None,
    plan: Planned | None = None,
) -> Check:
    """Check whether an allocation is feasible, stable and envy-free.

        short_i = max(0, f_i - theta_i)     spare_i = max(0, theta_i - f_i)
        i envies j  <=>  theta_i > theta_j  and  u_i(theta with i and j swapped) >= mu_i

    Of a Measurement, or of a game that was saved with its chances, the check has the probabilities
    that agents reach their goals. Contributions to a Measurement are whole numbers of samples, and
    no agent gives more than its limit.

    game: what the agents want, or what pilots measured.
    allocation: who gives how much; an Allocation with names is matched by name.
    tolerance: what counts as nothing, relative to the largest contribution. Integer games are
        decided exactly and ignore it.
    probability: that all agents reach their goals, as asked for; the game's own, or 0.95.
    judged: "true" or "measured", as in `make_plan`; the game's own, or "true".
    plan: a plan of the same agents to compare with, as `make_plan` gives.
    """
    if isinstance(game, Game):
        return _add_chances(_check(game, allocation, tolerance), probability, judged, plan)
    whole = count_whole(game.game)
    refuse_excess(whole, allocation)
    found = _check(whole, allocation, tolerance)
    doubts = tuple(doubt.sentence for doubt in game.doubts)
    return dataclasses.replace(_add_chances(found, probability, judged, plan), doubts=doubts)


def count_whole(game: MeasuredGame) -> MeasuredGame:
    """Return a game over whole numbers of samples."""
    limits, minimums = np.floor(game.limits), np.ceil(game.minimums)
    return game.replace(strategies="integer", limits=limits, minimums=minimums)


def _add_chances(
    found: Check, probability: float | None, judged: Judged | None, plan: Planned | None
) -> Check:
    """Return a check with its probabilities, if the game has any."""
    chances = found.game.chances if is_measured(found.game) else None
    if chances is None:
        if (probability, judged, plan) != (None, None, None):
            raise InputError(
                "this game has no pilots to tell probabilities from: check a Measurement, or a "
                "game that was saved with its chances"
            )
        return found
    if judged is not None:
        chances = chances.replace(judged=_check_judged(judged))
    asked = probability if probability is not None else chances.probability
    asked = PROBABILITY if asked is None else asked
    if not 0 < asked < 1:
        raise InputError(f"probability must be above 0 and below 1, as 0.95; got {asked:g}")
    return dataclasses.replace(
        found,
        prospects=chances.prospects(found.contributions),
        probability=asked,
        doubts=chances.doubts,
        **_compare(found, chances, plan),
    )


def _check_judged(judged: Judged) -> Judged:
    from fedaccord.games.chances import Judged as Known

    if judged not in get_args(Known):
        raise InputError(f'judged must be "true" or "measured"; got {judged!r}')
    return judged


def _compare(found: Check, chances: Chances, plan: Planned | None) -> dict[str, Any]:
    """Return the prospects under a plan, and the check against its targets."""
    if plan is None or plan.contributions is None:
        return {}
    if plan.game.agents != found.game.agents or plan.game.size != found.game.size:
        raise InputError("the plan to compare with is of other agents than the game")
    target = plan.game.replace(strategies=found.game.strategies)
    return {
        "plan": chances.prospects(plan.contributions),
        "with_margin": _check(target, found.contributions, found.tolerance),
    }


def _check(game: Game, allocation: Allocation | ArrayLike, tolerance: float) -> Check:
    given = _read_contributions(game, allocation)
    if not 0 <= tolerance < 1:
        raise InputError(f"tolerance must be at least 0 and below 1; got {tolerance:g}")
    if game.is_integer:
        tolerance = 0.0
    allowed = tolerance * game.scale_of(given)
    low, high = game.response_bounds(given)
    inside = bool(
        (given <= game.limits + allowed).all() and (given >= game.minimums - allowed).all()
    )
    feasible = to_answer(
        inside and (given >= high - allowed).all(), (given < low - allowed).any() or not inside
    )
    # Within the strategy space nobody can go below its minimum.
    can_keep = np.maximum(low, game.minimums) >= given - allowed
    can_cut = np.maximum(high, game.minimums) < given - allowed
    stable = to_answer(
        feasible is Answer.TRUE and can_keep.all(), feasible is Answer.FALSE or can_cut.any()
    )
    # Where utilities are exact, both bounds are the best responses themselves.
    needed = low if low is high else game.best_responses(given)
    pairs, close = find_envy(game, given, needed, allowed)
    return Check(
        game=game,
        contributions=given,
        tolerance=tolerance,
        utilities=frozen(game.utilities(given)),
        needed=frozen(needed),
        short=frozen(np.maximum(needed - given, 0.0)),
        spare=frozen(np.maximum(given - np.maximum(needed, game.minimums), 0.0)),
        envy=pairs,
        borderline=close,
        feasible=feasible,
        stable=stable,
        envy_free=to_answer(
            feasible is Answer.TRUE and not pairs and not close,
            feasible is Answer.FALSE or bool(pairs),
        ),
    )


# The name of 0.1.0, in which "audit" meant two things.


def audit(game: Game, allocation: Allocation | ArrayLike, *, tolerance: float = 1e-6) -> Check:
    """Do what `check` does, under its old name."""
    warnings.warn(
        "fedaccord.audit(game, allocation) is now fedaccord.check(game, allocation); the old name "
        "goes in the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    return check(game, allocation, tolerance=tolerance)


def refuse_excess(game: Game, allocation: Allocation | ArrayLike) -> None:
    """Refuse contributions above an agent's limit, at their lines: nobody gives what it lacks.

    game: with the limits.
    allocation: who gives how much.
    """
    if not isinstance(allocation, Allocation):
        allocation = Allocation(allocation)
    given = _read_contributions(game, allocation)
    if (given > game.limits).any():
        over = np.flatnonzero(given > game.limits).tolist()
        said = [
            f"{game.name(agent)} gives {format_samples(given[agent])}, and its limit is "
            f"{format_samples(game.limits[agent])}"
            for agent in over[:NAMES]
        ]
        others = count(len(over) - NAMES, "other agent")
        more = f"; the same is true of {others}" if len(over) > NAMES else ""
        remedy = "lower the contribution or raise the limit"
        if len(over) > 1:
            remedy = "lower the contributions or raise the limits"
        place = allocation.place(game.name(over[0]), over[0])
        raise InputError(f"{place}{'; '.join(said)}{more}: {remedy}")


def _read_contributions(game: Game, allocation: Allocation | ArrayLike) -> Vector:
    """Return the contributions in the game's order, or say which of them cannot be."""
    if not isinstance(allocation, Allocation):
        allocation = Allocation(allocation)
    given = allocation.ordered_for(game.agents).contributions
    if len(given) != game.size:
        raise InputError(
            f"the game has {game.size} agents, the allocation {len(given)}: give one contribution "
            "per agent"
        )
    if game.is_integer and (given != np.floor(given)).any():
        agent = int(np.argmax(given != np.floor(given)))
        raise InputError(
            f"{allocation.place(game.name(agent), agent)}{game.name(agent)} gives "
            f"{given[agent]:g}, and this game's contributions are whole numbers: round it up"
        )
    return given
