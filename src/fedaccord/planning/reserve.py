"""How many samples the others should hold in reserve, in case one agent does not deliver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Matrix, Vector, check_real, frozen
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame

# What is short by less than this part of a requirement is rounding.
ROUNDING = 1e-9
# The numbers of the largest linear program: a solver takes about 10 seconds for so many.
MOST_CELLS = 4_000_000


@dataclass(frozen=True)
class Shortfall:
    """An agent that falls short if another fails, whatever the reserves give.

    failing: who does not deliver.
    agent: who falls short then.
    missing: by how many effective samples.
    """

    failing: str
    agent: str
    missing: float


@dataclass(frozen=True, eq=False)
class Reserve:
    """Reserves, and who falls short in spite of them.

    samples: how many samples each agent holds in reserve, in whole samples.
    shortfalls: who falls short if one agent fails; none if the reserves do for any of them.
    """

    samples: Vector
    shortfalls: tuple[Shortfall, ...]

    @property
    def total(self) -> float:
        """How many samples are held in all."""
        return float(self.samples.sum())


def choose_reserve(
    game: LinearGame, contributions: Vector, *, delivered: float = 0.0, cover: float = 1.0
) -> Reserve:
    """Choose the least reserves that replace any one agent that fails.

        minimise    sum(r)
        subject to  utility_j(theta without i's missing samples, plus r of the others)
                        >= requirement_j       for all i that contribute and all j other than i
                    0 <= r <= limits - theta

    where i's missing samples are (1 - delivered) theta_i. Then r is rounded up to whole samples.
    No more than cover times what is missing is ever called, from each in proportion to its reserve:
    agents that are short by that rule are listed. Where no reserves within the limits do,
    everything that agents have left is held.

    game: with what each agent needs, its margin included.
    contributions: theta, the plan.
    delivered: the part of its contribution that an agent delivers before it fails.
    cover: how many samples may be called for each that is missing.
    """
    check_real("cover", cover, above=0)
    check_real("delivered", delivered, least=0, below=1, expected="at least 0 and below 1")
    _check_size(game, game.size)
    theta = np.asarray(contributions, dtype=float)
    if theta.shape != (game.size,):
        raise InputError(f"{game.size} agents need one contribution each; got {theta.size}")
    benefits = np.asarray(game.benefits @ np.eye(game.size))
    # Who has no limit is asked to hold as much as all contribute, and no more.
    most = np.where(np.isfinite(game.limits), game.limits, theta + theta.sum())
    spare = np.maximum(most - theta, 0.0)
    failing = [i for i in range(game.size) if theta[i] > 0]
    cases = [(i, *_needs(game, benefits, theta, i, delivered)) for i in failing]
    _check_size(game, sum(int(np.count_nonzero(needs)) for _, needs, _ in cases))
    least = _solve(benefits, cases, spare)
    held = np.floor(spare) if least is None else np.minimum(np.ceil(least), np.floor(spare))
    short = []
    for i, needs, missing in cases:
        called = np.where(np.arange(game.size) == i, 0.0, held)
        called *= min(1.0, cover * missing / max(called.sum(), 1.0))
        lack = needs - benefits @ called
        for j in np.flatnonzero(lack > ROUNDING * game.requirements):
            short.append(Shortfall(game.name(i), game.name(int(j)), float(lack[j])))
    return Reserve(frozen(held), tuple(short))


def _check_size(game: LinearGame, rows: int) -> None:
    if rows * game.size > MOST_CELLS:
        raise InputError(
            f"{game.size:,} agents that need each other are too many to find reserves for: plan "
            "without a reserve, or merge agents that are alike"
        )


def hold_reserve(
    game: LinearGame, plan: Allocation, *, delivered: float = 0.0, cover: float = 1.0
) -> Allocation:
    """Return a plan with the reserves that `choose_reserve` finds for it.

    game: with what each agent needs.
    plan: the contributions.
    delivered: the part of its contribution that an agent delivers before it fails.
    cover: how many samples may be called for each that is missing.
    """
    own = plan.ordered_for(game.agents)
    found = choose_reserve(game, own.contributions, delivered=delivered, cover=cover)
    return Allocation(own.contributions, own.agents, reserve=found.samples)


def _needs(
    game: LinearGame, benefits: Matrix, theta: Vector, i: int, delivered: float
) -> tuple[Vector, float]:
    """Return how much each lacks when one fails, none of the one itself, and what it owes."""
    left = theta.copy()
    left[i] *= delivered
    needs = np.maximum(game.requirements - benefits @ left, 0.0)
    # The one that fails is not helped.
    needs[i] = 0.0
    return needs, float(theta[i] - left[i])


def _solve(
    benefits: Matrix, cases: list[tuple[int, Vector, float]], spare: Vector
) -> Vector | None:
    """Return the least reserves, before rounding; None where none within the limits do."""
    from scipy.optimize import linprog

    rows, bounds = [], []
    for i, needs, _ in cases:
        for j in np.flatnonzero(needs > 0):
            # The solver's tolerance is absolute: rows are counted in own samples.
            row = benefits[j] / benefits[j, j]
            row[i] = 0.0
            rows.append(row)
            bounds.append(needs[j] / benefits[j, j])
    if not rows:
        return np.zeros(len(spare))
    found = linprog(
        np.ones(len(spare)),
        A_ub=-np.array(rows),
        b_ub=-np.array(bounds),
        bounds=[(0.0, float(most)) for most in spare],
    )
    # Solvers give 30.0000000001 for 30, which is not 31.
    return None if found.status or found.x is None else np.round(found.x, 6)
