"""The paper's definitions taken word by word, in exact fractions: slow, and apart from all solvers.

Utilities are written down anew here, so that whatever is checked against them is checked against
another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import floor
from typing import Any, TypeAlias

Amounts: TypeAlias = Sequence[int | Fraction]
# The utility of an agent under an allocation.
Utility: TypeAlias = Callable[[int, Amounts], Fraction]
# How likely a world is, and per agent the (point, label, probability) that it may draw there.
PlainWorld: TypeAlias = tuple[Fraction, list[list[tuple[Any, Any, Fraction]]]]
Whole: TypeAlias = tuple[int, ...]

HALF = Fraction(1, 2)


# Utilities.


def fractions(rows: Any) -> list[list[Fraction]]:
    """Read a table of numbers that a person wrote: 0.1 is a tenth."""
    return [[Fraction(str(value)) for value in row] for row in rows]


def linear_utility(benefits: Sequence[Sequence[Fraction]]) -> Utility:
    """Give u_i(theta) = sum_j W_ij theta_j."""

    def utility(agent: int, theta: Amounts) -> Fraction:
        return sum((w * t for w, t in zip(benefits[agent], theta, strict=True)), Fraction(0))

    return utility


def coverage_utility(distributions: Sequence[Sequence[Fraction]]) -> Utility:
    """Give u_i(theta) = 1 - 1/2 sum_x q_ix prod_j (1 - q_jx)^theta_j for whole theta."""

    def utility(agent: int, theta: Amounts) -> Fraction:
        error = Fraction(0)
        for point, chance in enumerate(distributions[agent]):
            if not chance:
                continue
            unseen = chance
            for row, count in zip(distributions, theta, strict=True):
                if row[point]:
                    unseen *= (1 - row[point]) ** int(count)
            error += unseen
        return 1 - error / 2

    return utility


def rounded_coverage(distributions: Sequence[Sequence[Fraction]]) -> Utility:
    """Give the coverage utility of real contributions, agents being rounded independently.

    So the mean of the product over agents is the product of the means: much quicker than a list of
    all outcomes.
    """

    def utility(agent: int, theta: Amounts) -> Fraction:
        error = Fraction(0)
        for point, chance in enumerate(distributions[agent]):
            if not chance:
                continue
            unseen = chance
            for row, amount in zip(distributions, theta, strict=True):
                if row[point] and amount:
                    low, miss = floor(amount), 1 - row[point]
                    part = Fraction(amount) - low
                    unseen *= (1 - part) * miss**low + part * miss ** (low + 1)
            error += unseen
        return 1 - error / 2

    return utility


def rounded_at_random(utility: Utility) -> Utility:
    """Extend a utility of whole contributions to real ones, as Appendix A says.

    Every agent's amount becomes one of the two whole numbers around it, independently of the
    others', with itself as the mean; the expectation is taken over all of these outcomes.
    """

    def expected(agent: int, theta: Amounts) -> Fraction:
        outcomes = []
        for amount in theta:
            low = floor(amount)
            part = Fraction(amount) - low
            outcomes.append([(low, 1 - part), (low + 1, part)] if part else [(low, Fraction(1))])
        total = Fraction(0)
        for drawn in product(*outcomes):
            chance = Fraction(1)
            for _, share in drawn:
                chance *= share
            total += chance * utility(agent, [amount for amount, _ in drawn])
        return total

    return expected


def samples(world: PlainWorld, counts: Amounts) -> Iterator[tuple[list[tuple[Any, Any]], Fraction]]:
    """Give every way in which the agents' draws may come out, with its probability."""
    each = [draws for draws, m in zip(world[1], counts, strict=True) for _ in range(int(m))]
    for drawn in product(*each):
        chance = Fraction(1)
        for _, _, share in drawn:
            chance *= share
        yield [(point, label) for point, label, _ in drawn], chance


def learnt_utility(worlds: Sequence[PlainWorld]) -> Utility:
    """Give the expected accuracy of the best classifier, over every world and every sample.

    The classifier sees the sample and says of each point the label that is likeliest then.
    """

    def utility(agent: int, counts: Amounts) -> Fraction:
        scores: dict[Any, dict[Any, Fraction]] = {}
        for world in worlds:
            for seen, chance in samples(world, counts):
                # What was seen, and not in which order, is all that matters to anybody.
                key = tuple(sorted(map(str, seen)))
                for point, label, share in world[1][agent]:
                    labels = scores.setdefault((key, point), {})
                    weight = world[0] * chance * share
                    labels[label] = labels.get(label, Fraction(0)) + weight
        return sum((max(labels.values()) for labels in scores.values()), Fraction(0))

    return utility


def cycle_worlds(d: int) -> list[PlainWorld]:
    """Give the worlds of Theorem 3: agent i draws ((2i + z_ij) d + j, z_(i-1)j), j uniform."""
    worlds: list[PlainWorld] = []
    for bits in product((0, 1), repeat=3 * d):
        draws = [
            [
                ((2 * i + bits[i * d + j]) * d + j, bits[(i - 1) % 3 * d + j], Fraction(1, d))
                for j in range(d)
            ]
            for i in range(3)
        ]
        worlds.append((Fraction(1, 8**d), draws))
    return worlds


def ring_utility(d: int) -> Utility:
    """Give 1 - 1/2 (1 - 1/d)^(theta_i + theta_(i-1)), as Appendix D prints it of these worlds."""

    def utility(agent: int, theta: Amounts) -> Fraction:
        return 1 - HALF * (1 - Fraction(1, d)) ** (int(theta[agent]) + int(theta[agent - 1]))

    return utility


# Definitions.


@dataclass(frozen=True, eq=False)
class Listing:
    """Every whole-number allocation that matters, and what the definitions say of each.

    A stable one gives nobody more than its stand-alone need, and the cheapest of each kind costs at
    most what equal shares or going alone do: so all up to that total are listed.

    utility: what each agent gets.
    requirements: what each wants.
    limits: the most that each may give; no limit where left out.
    up_to: the total up to which to list them, where that above is more than is wanted.
    """

    utility: Utility
    requirements: tuple[Fraction, ...]
    limits: Whole | None = None
    up_to: int | None = None

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.requirements)

    @cached_property
    def most(self) -> int:
        """The total up to which all allocations are listed."""
        if self.up_to is not None:
            return self.up_to
        if self.limits is not None:
            return sum(self.limits)
        alone = sum(self._first(i, [i]) for i in range(self.size))
        level = max(self._first(i, range(self.size)) for i in range(self.size))
        return max(alone, self.size * level)

    def _first(self, agent: int, givers: Sequence[int]) -> int:
        """Give the least amount that satisfies an agent if these givers give it each."""
        count = 0
        while (
            self.utility(agent, [count * (j in givers) for j in range(self.size)])
            < (self.requirements[agent])
        ):
            count += 1
        return count

    @cached_property
    def utilities(self) -> dict[Whole, tuple[Fraction, ...]]:
        """Everybody's utility under each allocation."""
        return {
            theta: tuple(self.utility(i, theta) for i in range(self.size))
            for theta in self._allocations(self.size, self.most)
        }

    def _allocations(self, agents: int, total: int) -> Iterator[Whole]:
        if agents == 0:
            yield ()
            return
        limit = total if self.limits is None else min(total, self.limits[agents - 1])
        for last in range(limit + 1):
            for rest in self._allocations(agents - 1, total - last):
                yield (*rest, last)

    def enough(self, agent: int, theta: Whole) -> bool:
        """Say whether an agent reaches its requirement: u_i(theta) >= mu_i."""
        return self.utilities[theta][agent] >= self.requirements[agent]

    def feasible(self, theta: Whole) -> bool:
        """Say whether everybody does."""
        return all(self.enough(i, theta) for i in range(self.size))

    def stable(self, theta: Whole) -> bool:
        """Say whether nobody who gives less alone would still reach its requirement."""
        return self.feasible(theta) and not any(
            self.enough(i, (*theta[:i], less, *theta[i + 1 :]))
            for i in range(self.size)
            for less in range(theta[i])
        )

    def envy(self, theta: Whole) -> tuple[tuple[int, int], ...]:
        """Give the pairs (i, j) where i would still be satisfied with j's smaller amount.

        The swap counts only if it leads to an allocation that is allowed.
        """
        found = []
        for i, j in product(range(self.size), repeat=2):
            if theta[j] < theta[i]:
                other = list(theta)
                other[i], other[j] = theta[j], theta[i]
                swapped = tuple(other)
                if swapped in self.utilities and self.enough(i, swapped):
                    found.append((i, j))
        return tuple(found)

    def envy_free(self, theta: Whole) -> bool:
        """Say whether everybody reaches its requirement and nobody envies anybody."""
        return self.feasible(theta) and not self.envy(theta)

    def all_of(self, kind: Callable[[Whole], bool]) -> list[Whole]:
        """List the allocations of a kind, the cheapest first."""
        return sorted(filter(kind, self.utilities), key=lambda theta: (sum(theta), theta))

    def least(self, kind: Callable[[Whole], bool]) -> int | None:
        """Give the least total of an allocation of a kind; None where there is none."""
        return min((sum(theta) for theta in self.utilities if kind(theta)), default=None)
