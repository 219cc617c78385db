"""Decide whether an allocation is feasible, stable and envy-free, trusting no solver.

Of a game that was measured by pilots, a check also says how likely agents are to reach their goals,
and compares the allocation with a plan that somebody else made.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Vector, frozen, round_bounds, simplest_fraction
from fedaccord.allocation import Allocation
from fedaccord.check.result import PROBABILITY, Answer, Check, to_answer
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import NEAR, ROUNDING, Game, is_measured
from fedaccord.wording import count, format_amount

if TYPE_CHECKING:
    from fedaccord.games.chances import Chances, Judged
    from fedaccord.games.measured import MeasuredGame

# The most agents that a message names, and what to do about a contribution above a limit.
NAMES = 3
LOWER = "lower the contribution or raise the limit"
# Exact arithmetic settles ties only for numbers that a person wrote: ones with short fractions.
# A solver leaves over up to so many units in the last place of even shorter ones.
SHORT_DENOMINATOR, SHORTER_DENOMINATOR, DUST = 10**6, 10**4, 16
# A burden counts as smaller than another if it is by this many tolerances: nearer than that, what a
# swap would leave somebody short is itself within the tolerance.
SMALLER = 100
# Envy is looked for this many agents at a time, which bounds the memory that takes.
BLOCK = 2_000
# Up to this many agents every pair is listed; above, one witness for each envious agent.
LISTED = 2_000


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
    minimums, limits = round_bounds(game.minimums, game.limits)
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
            describe_excess(game.name(agent), given[agent], game.limits[agent])
            for agent in over[:NAMES]
        ]
        others = count(len(over) - NAMES, "other agent")
        more = f"; the same is true of {others}" if len(over) > NAMES else ""
        remedy = LOWER
        if len(over) > 1:
            remedy = "lower the contributions or raise the limits"
        place = allocation.place(game.name(over[0]), over[0])
        raise InputError(f"{place}{'; '.join(said)}{more}: {remedy}")


def describe_excess(name: str, given: float, limit: float) -> str:
    """Return that an agent gives more than its limit, without a full stop at the end."""
    return f"{name} gives {format_amount(given)}, and its limit is {format_amount(limit)}"


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


def find_envy(
    game: Game, given: Vector, needed: Vector, allowed: float
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """List the pairs (i, j) where i envies j, and those too close to call.

    Somebody whose burden would satisfy i even if it stayed as it is, theta_j >= f_i, is envied for
    certain, because the swap only adds to what the others give. Below f_i the swap satisfies i only
    if j's samples help i. In large games one witness an agent of the first kind is kept. Where
    somebody may be harmed, every swap is looked at.
    """
    certain: dict[tuple[int, int], None] = {}
    close: dict[tuple[int, int], None] = {}
    exact = _ExactSwaps(game, given)
    gap, now = SMALLER * allowed, game.utilities(given)
    larger = np.flatnonzero(given > given.min() + gap)
    if game.utility_doubt == 0 and game.is_monotone:
        certain = dict.fromkeys(_lighter_burdens(game, given, needed, allowed, gap, larger))
    if game.size > LISTED:
        larger = np.setdiff1d(larger, [i for i, _ in certain])
    for begin in range(0, larger.size, BLOCK):
        first, second, after = game.swaps(given, larger[begin : begin + BLOCK], gap)
        keep = _may_swap(game, given, first, second, allowed)
        first, second = first[keep], second[keep]
        slack = after[keep] - game.requirements[first]
        near = np.abs(slack) <= _nearness(game, given, first, allowed)
        # An agent that has enough and loses nothing by the swap still has enough.
        kept = (after[keep] >= now[first] * (1 - ROUNDING)) & (given >= needed - allowed)[first]
        sure = _pairs(game, first[~near & (slack > 0)], second[~near & (slack > 0)])
        certain.update(dict.fromkeys(sure))
        for first_one, second_one, same in zip(
            first[near].tolist(), second[near].tolist(), kept[near].tolist(), strict=True
        ):
            _settle((first_one, second_one), exact, certain, close, keeps=same)
    for pair in _match_burdens(game, given, needed, allowed, gap):
        _settle(pair, exact, certain, close)
    if gap > 0 and game.utility_doubt == 0:
        # Lighter by less than the gap: envy, if so little matters.
        everyone = np.arange(game.size)
        for pair in _lighter_burdens(game, given, needed, allowed, allowed, everyone):
            # A swap by more than the gap is settled above where somebody may be harmed.
            slight = game.is_monotone or given[pair[0]] - given[pair[1]] <= gap
            if pair not in certain and slight:
                close[pair] = None
    return tuple(sorted(certain)), tuple(sorted(close))


def has_no_envy(game: Game, given: Vector, tolerance: float) -> bool:
    """Return whether it is certain that no agent envies another."""
    allowed = 0.0 if game.is_integer else tolerance * float(given.max())
    return find_envy(game, given, game.best_responses(given), allowed) == ((), ())


def _settle(
    pair: tuple[int, int],
    exact: _ExactSwaps,
    certain: dict[tuple[int, int], None],
    close: dict[tuple[int, int], None],
    *,
    keeps: bool = False,
) -> None:
    """Put a pair too close for floats where exact arithmetic says, if it can say.

    keeps: whether the first has enough, and its utility stays the same.
    """
    if pair in certain or pair in close:
        return
    answer = exact.envies(*pair)
    if answer is None and keeps and not exact.game.utility_doubt:
        answer = True
    if answer is None:
        close[pair] = None
    elif answer:
        certain[pair] = None


def _pairs(game: Game, first: Indices, second: Indices) -> list[tuple[int, int]]:
    """List pairs; in large games the first of each agent."""
    if game.size > LISTED:
        _, kept = np.unique(first, return_index=True)
        first, second = first[kept], second[kept]
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _lighter_burdens(
    game: Game, given: Vector, needed: Vector, allowed: float, gap: float, agents: Indices
) -> Iterator[tuple[int, int]]:
    """Return pairs (i, j) with f_i <= theta_j < theta_i, the last by more than the gap."""
    low, high = needed[agents] + allowed, given[agents] - gap
    for i, found in _burdens_between(game, given, agents, low, high, allowed):
        yield from ((i, j) for j in (found if game.size <= LISTED else found[:1]))


def _match_burdens(
    game: Game, given: Vector, needed: Vector, allowed: float, gap: float
) -> Iterator[tuple[int, int]]:
    """Return pairs (i, j) with theta_j too close to f_i to say that it satisfies i, or does not.

    Helpers of i are among its swaps anyway; these are the pairs in which j's samples do not matter
    to i. The larger theta_j, the better, so that in large games the largest is enough.
    """
    agents = np.flatnonzero((given > needed + gap) & (given > given.min() + gap))
    low = needed[agents] - allowed
    high = np.minimum(needed[agents] + allowed, given[agents] - gap)
    for i, found in _burdens_between(game, given, agents, low, high, allowed):
        yield from ((i, j) for j in (found if game.size <= LISTED else found[-1:]))


def _burdens_between(
    game: Game, given: Vector, agents: Indices, low: Vector, high: Vector, allowed: float
) -> Iterator[tuple[int, list[int]]]:
    """Return for each agent those with low <= theta_j < high that it may swap with, by theta_j."""
    order = np.argsort(given, kind="stable")
    ranked = given[order]
    begin = np.searchsorted(ranked, low, side="left")
    end = np.searchsorted(ranked, high, side="left")
    some = end > begin
    spans = zip(agents[some].tolist(), begin[some].tolist(), end[some].tolist(), strict=True)
    for i, first, last in spans:
        found = order[first:last]
        may = _may_swap(game, given, np.full(found.size, i), found, allowed)
        yield i, found[may].tolist()


def _may_swap(game: Game, given: Vector, first: Indices, second: Indices, allowed: float) -> Any:
    """Return which swaps stay within limits and minimums, up to what is allowed."""
    under = given[first] <= game.limits[second] + allowed
    return under & (given[second] >= game.minimums[first] - allowed)


def _nearness(game: Game, given: Vector, agents: Indices, allowed: float) -> Vector:
    """Return how far from zero each agent's slack must be, so that it is no tie."""
    if game.is_integer:
        return np.maximum(NEAR * np.maximum(1.0, game.requirements[agents]), game.utility_doubt)
    unique, place = np.unique(agents, return_inverse=True)
    rates = game.own_rates(unique, given)[place] if unique.size else np.zeros(0)
    return np.maximum(allowed * rates, game.utility_doubt)


class _ExactSwaps:
    """Settles ties in exact arithmetic, where the contributions are short fractions."""

    def __init__(self, game: Game, given: Vector) -> None:
        self.game = game
        self.given = given

    @cached_property
    def fractions(self) -> list[Fraction] | None:
        """The contributions as Fractions; None where one is not short, so that none is exact."""
        result = []
        for contribution in self.given.tolist():
            exact = Fraction(contribution).limit_denominator(SHORTER_DENOMINATOR)
            if abs(float(exact) - contribution) > DUST * math.ulp(contribution):
                exact = simplest_fraction(contribution)
            if exact.denominator > SHORT_DENOMINATOR:
                return None
            result.append(exact)
        return result

    def envies(self, agent: int, other: int) -> bool | None:
        """Return whether the agent would still be satisfied after the swap; None if undecided."""
        if self.game.utility_doubt or self.fractions is None:
            return None
        swapped = list(self.fractions)
        swapped[agent], swapped[other] = swapped[other], swapped[agent]
        try:
            return self.game.exact_utility(agent, swapped) >= self.game.exact_requirements[agent]
        except ExactnessError:
            return None
