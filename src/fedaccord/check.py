"""Check an allocation against a game, trusting no solver."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Vector, frozen, simplest_fraction
from fedaccord._display import Displayed
from fedaccord.allocation import Allocation
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import NEAR, Game
from fedaccord.wording import format_amount_with_digits

# The most digits that a number gets beyond the usual, to tell it from another.
DIGITS = 8
# Exact arithmetic settles ties only for numbers that a person wrote: ones with short fractions.
SHORT_DENOMINATOR = 10**6
# A burden counts as smaller than another if it is by this many tolerances: nearer than that, what a
# swap would leave somebody short is itself within the tolerance.
SMALLER = 100
# Envy is looked for this many agents at a time, which bounds the memory that takes.
BLOCK = 2_000
# Up to this many agents every pair is listed; above, one witness for each envious agent.
LISTED = 2_000


class Answer(Enum):
    """Yes, no, or too close to call at the tolerance."""

    TRUE = "true"
    FALSE = "false"
    BORDERLINE = "borderline"

    def __bool__(self) -> NoReturn:
        raise TypeError("an Answer has three values; compare it, as in answer is Answer.TRUE")

    @property
    def json(self) -> bool | str:
        """A JSON truth value, or "borderline"."""
        return "borderline" if self is Answer.BORDERLINE else self is Answer.TRUE


@dataclass(frozen=True, eq=False)
class Check(Displayed):
    """What was found, agent by agent.

    game, contributions, tolerance: what was checked, and how finely.
    utilities: what each agent reaches.
    needed: f_i, the least each agent could give while the others stay.
    short, spare: how many samples each agent is below or above that.
    envy: pairs (i, j): i would rather have j's smaller burden, and would still be satisfied.
    borderline: pairs too close to call.
    feasible, stable, envy_free: the three verdicts.
    """

    game: Game
    contributions: Vector
    tolerance: float
    utilities: Vector
    needed: Vector
    short: Vector
    spare: Vector
    envy: tuple[tuple[int, int], ...]
    borderline: tuple[tuple[int, int], ...]
    feasible: Answer
    stable: Answer
    envy_free: Answer

    @cached_property
    def alone(self) -> Vector:
        """What each agent would have to give on its own."""
        return self.game.alone

    @cached_property
    def saved(self) -> Vector:
        """What collaboration saves each agent: its stand-alone need less what it gives."""
        return frozen(self.alone - self.contributions)

    @property
    def rational(self) -> bool:
        """Whether nobody gives more than it would need alone (individual rationality)."""
        return bool((self.saved >= -self.tolerance * self.scale).all())

    @property
    def scale(self) -> float:
        """The largest contribution, which tolerances are relative to; largest need at zero."""
        return self.game.scale_of(self.contributions)

    @property
    def verdicts(self) -> dict[str, Answer]:
        """What was found, by the concept that it speaks of."""
        return {"optimal": self.feasible, "stable": self.stable, "envy-free": self.envy_free}

    @property
    def worst(self) -> int:
        """The agent whose contribution is furthest from its best response."""
        return int(np.argmax(np.maximum(self.short, self.spare)))

    def __repr__(self) -> str:
        return (
            f"Check(feasible {self.feasible.value}, stable {self.stable.value}, "
            f"envy-free {self.envy_free.value})"
        )

    def sentence(self) -> str:
        """Return the verdict in one sentence."""
        if self.feasible is Answer.FALSE:
            agent = int(np.argmax(self.short))
            allowed = self.tolerance * self.scale
            over = np.flatnonzero(self.contributions > self.game.limits + allowed)
            if over.size:
                return f"Not feasible: {self.game.name(int(over[0]))} gives more than its limit."
            under = np.flatnonzero(self.contributions < self.game.minimums - allowed)
            if under.size:
                return f"Not feasible: {self.game.name(int(under[0]))} gives less than it must."
            amount = format_amount_with_digits(self.short[agent])
            return (
                f"Not feasible: {self.game.name(agent)} is short by {amount} "
                f"sample{'s' * (amount != '1')}{self._others(self.short, 'is short', 'are short')}."
            )
        if self.stable is Answer.FALSE:
            agent = int(np.argmax(self.spare))
            return (
                f"Feasible, not stable: {self.game.name(agent)} could give "
                f"{format_amount_with_digits(self.spare[agent])} less and still reach its "
                f"requirement{self._others(self.spare, 'could', 'could')}."
            )
        if Answer.BORDERLINE in (self.feasible, self.stable):
            return "Too close to call: a utility is only known to within an interval."
        envy = {
            Answer.TRUE: "and nobody envies anybody",
            Answer.FALSE: f"but {_count(len({i for i, _ in self.envy}))} another",
            Answer.BORDERLINE: "and whether anybody envies anybody is too close to call",
        }
        return f"Feasible and stable, {envy[self.envy_free]}."

    def _others(self, amounts: Vector, one: str, many: str) -> str:
        """Say how many more agents are as the worst one is."""
        more = int((amounts > self.tolerance * self.scale).sum()) - 1
        if more <= 0:
            return ""
        return f"; 1 other {one} too" if more == 1 else f"; {more:,} others {many} too"

    def explain(self, agent: int | str) -> str:
        """Explain an agent's number to its data manager in one sentence.

        agent: its number or its name.
        """
        agent = _index(self.game, agent)
        given, needed, alone = (
            float(part[agent]) for part in (self.contributions, self.needed, self.alone)
        )
        allowed = self.tolerance * self.scale
        least = math.ceil(given - allowed)  # 300.0000001 is 300
        # Numbers that differ are not to read alike.
        tell = _teller(given, needed, alone, *([least - 1.0] if given >= 10 else []), tie=allowed)
        reason = f"{self.game.name(agent)} gives {tell(given)}: {_alone_clause(tell, alone)}; "
        if self.short[agent] > allowed:
            reach = f"it needs {tell(needed)}" if np.isfinite(needed) else "no amount suffices"
            reason += f"with the others as they are {reach}, so it falls short"
        elif self.spare[agent] > allowed:
            reason += f"with the others as they are {tell(needed)} would do"
        elif needed < given - allowed:
            reason += f"with the others as they are {tell(needed)} would do, but it must give "
            reason += f"{tell(float(self.game.minimums[agent]))} to take part"
        elif given == 0:
            reason += "the others already supply all it needs" if alone > 0 else "it needs nothing"
        else:
            reason += f"the others supply {_share(given, alone, allowed)} of what it needs; "
            less = f"with {tell(least - 1.0)}" if given >= 10 else "with any less"
            reason += f"{less} it would fall short"
        if envied := [j for i, j in self.envy if i == agent]:
            reason += f"; it would rather have the burden of {self.game.name(envied[0])}"
        return reason

    def to_dict(self) -> dict[str, Any]:
        """Return the check for machines."""
        return {
            "feasible": self.feasible.json,
            "stable": self.stable.json,
            "envy_free": self.envy_free.value,
            "short": _finite(self.short),
            "spare": _finite(self.spare),
            "envy": [list(pair) for pair in self.envy],
            "utilities": _finite(self.utilities),
            "alone": _finite(self.alone),
            "rational": self.rational,
            "tolerance": self.tolerance,
        }


def check(game: Game, allocation: Allocation | ArrayLike, *, tolerance: float = 1e-6) -> Check:
    """Check whether an allocation is feasible, stable and envy-free.

        short_i = max(0, f_i - theta_i)     spare_i = max(0, theta_i - f_i)
        i envies j  <=>  theta_i > theta_j  and  u_i(theta with i and j swapped) >= mu_i

    game: what the agents want.
    allocation: who gives how much; an Allocation with names is matched by name.
    tolerance: what counts as nothing, relative to the largest contribution. Integer games are
        decided exactly and ignore it.
    """
    given = _checked_contributions(game, allocation)
    if not 0 <= tolerance < 1:
        raise InputError(f"tolerance must be at least 0 and below 1; got {tolerance:g}")
    if game.is_integer:
        tolerance = 0.0
    allowed = tolerance * game.scale_of(given)
    low, high = game.response_bounds(given)
    inside = bool(
        (given <= game.limits + allowed).all() and (given >= game.minimums - allowed).all()
    )
    feasible = _answer(
        inside and (given >= high - allowed).all(), (given < low - allowed).any() or not inside
    )
    # Within the strategy space nobody can go below its minimum.
    can_keep = np.maximum(low, game.minimums) >= given - allowed
    can_cut = np.maximum(high, game.minimums) < given - allowed
    stable = _answer(
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
        envy_free=_answer(
            feasible is Answer.TRUE and not pairs and not close,
            feasible is Answer.FALSE or bool(pairs),
        ),
    )


# The names of 0.1.0, in which "audit" meant two things.
Audit = Check


def audit(game: Game, allocation: Allocation | ArrayLike, *, tolerance: float = 1e-6) -> Check:
    """Do what `check` does, under its old name."""
    warnings.warn(
        "fedaccord.audit(game, allocation) is now fedaccord.check(game, allocation); the old name "
        "goes in the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    return check(game, allocation, tolerance=tolerance)


def _answer(yes: bool | np.bool_, no: bool | np.bool_) -> Answer:
    return Answer.TRUE if yes else Answer.FALSE if no else Answer.BORDERLINE


def _checked_contributions(game: Game, allocation: Allocation | ArrayLike) -> Vector:
    if not isinstance(allocation, Allocation):
        allocation = Allocation(allocation)
    given = allocation.ordered_for(game.agents).contributions
    if len(given) != game.size:
        raise InputError(f"the game has {game.size} agents, the allocation {len(given)}")
    if game.is_integer and (given != np.floor(given)).any():
        agent = int(np.argmax(given != np.floor(given)))
        raise InputError(
            f"{game.name(agent)} gives {given[agent]:g}, and this game's contributions are whole "
            "numbers: round it up"
        )
    return given


def _count(agents: int) -> str:
    return "one agent envies" if agents == 1 else f"{agents:,} agents envy"


def _index(game: Game, agent: int | str) -> int:
    if isinstance(agent, str):
        names = game.agents if game.agents is not None else ()
        if agent not in names:
            raise InputError(f"there is no agent called {agent!r} in this game")
        return names.index(agent)
    if not 0 <= agent < game.size:
        raise InputError(f"agents are numbered from 0 to {game.size - 1}; got {agent}")
    return int(agent)


def _teller(*values: float, tie: float) -> Callable[[float], str]:
    """Return a way to write these numbers with digits enough that those that differ read so."""
    known = sorted({value for value in values if math.isfinite(value)})
    apart = [(a, b) for a, b in pairwise(known) if b - a > tie]
    for digits in range(DIGITS):
        tell = partial(format_amount_with_digits, more=digits)
        if all(_read(tell(a)) < _read(tell(b)) for a, b in apart):
            return tell
    return format_amount_with_digits


def _read(text: str) -> float:
    return float(text.replace(",", ""))


def _alone_clause(tell: Callable[[float], str], alone: float) -> str:
    if not math.isfinite(alone):
        return "alone no amount would suffice"
    return f"alone it would need {tell(alone)}"


def _share(given: float, alone: float, allowed: float) -> str:
    """Say what part of what an agent needs comes from the others."""
    if given >= alone - allowed:
        return "nothing"
    percent = 100 * (1 - given / alone)
    if percent < 0.5:
        return "less than 1 %"
    return f"{percent:.0f} %" if percent < 99.5 else "more than 99 %"


def _finite(values: Vector) -> list[float | None]:
    return [v if np.isfinite(v) else None for v in values.tolist()]


# Envy by its definition: who would rather have another's smaller burden.


def find_envy(
    game: Game, given: Vector, needed: Vector, allowed: float
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """List the pairs (i, j) where i envies j, and those too close to call.

    Somebody whose burden would satisfy i even if it stayed as it is, theta_j >= f_i, is envied for
    certain, because the swap only adds to what the others give. Below f_i the swap satisfies i only
    if j's samples help i. In large games one witness an agent of the first kind is kept.
    """
    certain: dict[tuple[int, int], None] = {}
    close: dict[tuple[int, int], None] = {}
    exact = _ExactSwaps(game, given)
    gap = SMALLER * allowed
    larger = np.flatnonzero(given > given.min() + gap)
    if game.utility_doubt == 0:
        certain = dict.fromkeys(_lighter_burdens(game, given, needed, allowed, gap, larger))
    if game.size > LISTED:
        larger = np.setdiff1d(larger, [i for i, _ in certain])
    for begin in range(0, larger.size, BLOCK):
        first, second, after = game.swaps(given, larger[begin : begin + BLOCK], gap)
        keep = _may_swap(game, given, first, second, allowed)
        first, second = first[keep], second[keep]
        slack = after[keep] - game.requirements[first]
        near = np.abs(slack) <= _nearness(game, given, first, allowed)
        sure = _pairs(game, first[~near & (slack > 0)], second[~near & (slack > 0)])
        certain.update(dict.fromkeys(sure))
        for pair in zip(first[near].tolist(), second[near].tolist(), strict=True):
            _settle(pair, exact, certain, close)
    for pair in _matching_burdens(game, given, needed, allowed, gap):
        _settle(pair, exact, certain, close)
    if gap > 0 and game.utility_doubt == 0:
        # Lighter by less than the gap: envy, if so little matters.
        everyone = np.arange(game.size)
        for pair in _lighter_burdens(game, given, needed, allowed, allowed, everyone):
            if pair not in certain:
                close[pair] = None
    return tuple(sorted(certain)), tuple(sorted(close))


def has_no_envy(game: Game, given: Vector, tolerance: float) -> bool:
    """Return whether it is certain that nobody envies anybody."""
    allowed = 0.0 if game.is_integer else tolerance * float(given.max())
    return find_envy(game, given, game.best_responses(given), allowed) == ((), ())


def _settle(
    pair: tuple[int, int],
    exact: _ExactSwaps,
    certain: dict[tuple[int, int], None],
    close: dict[tuple[int, int], None],
) -> None:
    """Put a pair too close for floats where exact arithmetic says, if it can say."""
    if pair in certain or pair in close:
        return
    answer = exact.envies(*pair)
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


def _matching_burdens(
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
    """Return how far from zero each agent's slack must be to be told from a tie."""
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
            result.append(simplest_fraction(contribution))
            if result[-1].denominator > SHORT_DENOMINATOR:
                return None
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
