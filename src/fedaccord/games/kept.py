"""Agents that keep the samples they withhold, and still learn from them: their linear game.

An agent that holds n_i samples and gives theta_i trains on the other n_i - theta_i by itself. Let
one of them be worth kappa_i of a sample that it gives, its *kept worth*. Then it has

    u_i(theta) = sum_{j != i} W_ij theta_j + W_ii (theta_i + kappa_i (n_i - theta_i))

and u_i(theta) >= mu_i is the requirement of another linear game, with the same sums of others:

    sum_{j != i} W_ij theta_j + (1 - kappa_i) W_ii theta_i  >=  mu_i - kappa_i W_ii n_i

With kappa_i = 1 giving adds nothing to u_i, so that in every equilibrium the agent gives the least
it may, and reaches mu_i only if the others supply mu_i - W_ii n_i. That is the agent of a linear
game whose limit is its minimum and to whom all that it holds is known beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import (
    Indices,
    Matrix,
    Vector,
    as_numbers,
    exact_numbers,
    fill_in,
    frozen,
    simplest_fraction,
)
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame, is_sparse
from fedaccord.games.measured import MeasuredGame

# A number for all agents, one for each, or numbers by name.
PerAgent: TypeAlias = float | Mapping[str, float] | ArrayLike

# A kept sample that is worth this much of a given one counts as worth all of it: beyond, rounding
# decides what an agent gains by giving.
ALL = 1 - 1e-9
# From this kept worth on, an agent hardly gains by giving.
NEARLY_ALL = 0.9
HEAD = 2  # the place of the head start among the parts of a curve


@dataclass(frozen=True, eq=False)
class KeptData:
    """What agents hold, and what they can still do with samples that they do not give.

    worth: kappa, what a kept sample is worth to its owner, as a part of one that it gives.
    holdings: n, how many samples each agent holds; inf where that does not matter.
    """

    worth: Vector
    holdings: Vector

    @classmethod
    def read(cls, game: Game, kept_worth: PerAgent, holdings: PerAgent | None = None) -> KeptData:
        """Return kept worths and holdings for the agents of a game, or raise an InputError.

        game: whose agents they are.
        kept_worth: by name, those of the others are 0.
        holdings: by name, those of the others are their limits; all are where left out.
        """
        _check_linear(game)
        worth = _read_numbers(game, kept_worth, "kept worths", np.zeros(game.size))
        wrong = ~((worth >= 0) & (worth <= 1))
        if wrong.any():
            agent = int(np.argmax(wrong))
            raise InputError(
                f"the kept worth of {game.name(agent)} must be a number from 0 to 1; got "
                f"{worth[agent]:g}"
            )
        given = game.limits if holdings is None else holdings
        held = _read_numbers(game, given, "holdings", game.limits)
        wrong = ~(held >= game.minimums)
        if wrong.any():
            agent = int(np.argmax(wrong))
            raise InputError(
                f"the holdings of {game.name(agent)} must be a number of samples, at least its "
                f"minimum of {game.minimums[agent]:g}; got {held[agent]:g}"
            )
        unknown = (worth > 0) & np.isinf(held)
        if unknown.any():
            raise InputError(
                f"{game.name(int(np.argmax(unknown)))} keeps data, and how many samples it holds "
                "is not known: give its holdings, or a limit in the game"
            )
        return cls(frozen(worth), frozen(held))

    @property
    def keepers(self) -> Indices:
        """The agents whose kept samples are worth as much as given ones: they give nothing."""
        return np.flatnonzero(self.worth >= ALL)

    @property
    def reluctant(self) -> Indices:
        """The agents that gain by giving, but little."""
        return np.flatnonzero((self.worth >= NEARLY_ALL) & (self.worth < ALL))


def keep_data(game: Game, kept_worth: PerAgent, holdings: PerAgent | None = None) -> LinearGame:
    """Return the game of agents that keep the samples they withhold and learn from them.

    Its equilibria are theirs. An agent with a kept worth of 1 has its minimum as its limit, and
    where the others leave it short there is no equilibrium; see `ignore_goals`. The optimal plans
    of the game are those among plans in which such agents give no more than that.

    game: linear or measured, as it is where withheld samples are lost.
    kept_worth: kappa, from 0 to 1: what a kept sample is worth to its owner, as a part of one that
        it gives; for all, for each, or by name.
    holdings: how many samples each agent has; the game's limits where left out.
    """
    linear = _check_linear(game)
    kept = KeptData.read(game, kept_worth, holdings)
    return _transform(_without_distributions(linear), kept)


def _check_linear(game: Game) -> LinearGame:
    if not isinstance(game, LinearGame):
        raise InputError("kept data needs a linear or measured game: fit one to pilots")
    return game


def ignore_goals(game: Game, agents: Indices) -> Game:
    """Return the game in which some agents want nothing: what the others do if these fall short."""
    if isinstance(game, MeasuredGame):
        goals, margins = np.array(game.goals), np.array(game.margins)
        goals[agents] = margins[agents] = 0.0
        return game.replace(goals=goals, margins=margins)
    requirements = np.array(game.requirements)
    requirements[agents] = 0.0
    return game.replace(requirements=requirements)


def _transform(game: LinearGame, kept: KeptData) -> LinearGame:
    # Of keepers all but the minimum is known beforehand, and the minimum counts as given.
    keeps = np.isin(np.arange(game.size), kept.keepers)
    factors = [Fraction(1) if keeper else 1 - k for k, keeper in _pairs(kept.worth, keeps)]
    amounts = [
        held - least if keeper else worth * held
        for worth, held, least, keeper in zip(
            exact_numbers(kept.worth),
            _exact_holdings(kept),
            exact_numbers(game.minimums),
            keeps.tolist(),
            strict=True,
        )
    ]
    limits = np.where(keeps, game.minimums, np.minimum(game.limits, kept.holdings))
    if game.is_integer:
        limits = np.floor(limits)
    own = exact_numbers(game.own_benefits)
    head_starts = [w * amount for w, amount in zip(own, amounts, strict=True)]
    diagonal = np.array([float(w * factor) for w, factor in zip(own, factors, strict=True)])
    changes = {"benefits": _with_diagonal(game.benefits, diagonal), "limits": limits}
    if isinstance(game, MeasuredGame):
        return game.replace(**changes, **_lengthen_heads(game, factors, amounts, head_starts))
    needs = [max(m - h, Fraction(0)) for m, h in _pairs(game.requirements, head_starts)]
    return game.replace(**changes, requirements=[float(need) for need in needs])


def _lengthen_heads(
    game: MeasuredGame, factors: list[Fraction], amounts: list[Fraction], heads: list[Fraction]
) -> dict[str, Any]:
    """Return a measured game's curves and chances: what is kept is a longer head start."""
    rows = np.array(game.rows)
    rows[:, HEAD] = [float(head + more) for head, more in _pairs(rows[:, HEAD], heads)]
    if game.chances is None:
        return {"curves": rows}
    factor, amount = (np.array([float(part) for part in parts]) for parts in (factors, amounts))
    curves, benefits = np.array(game.chances.curves), np.array(game.chances.benefits)
    own = benefits.diagonal(axis1=1, axis2=2).copy()
    curves[..., HEAD] += own * amount
    places = np.arange(game.size)
    benefits[:, places, places] = own * factor
    return {"curves": rows, "chances": game.chances.replace(curves=curves, benefits=benefits)}


def _pairs(values: Vector, others: Any) -> Any:
    return zip(exact_numbers(values), list(others), strict=True)


def _exact_holdings(kept: KeptData) -> list[Fraction]:
    # Unknown ones are of agents that keep nothing.
    return [simplest_fraction(held) if np.isfinite(held) else Fraction(0) for held in kept.holdings]


def _with_diagonal(benefits: Any, diagonal: Vector) -> Any:
    if is_sparse(benefits):
        matrix = benefits.copy()
        matrix.setdiag(diagonal)
        return matrix
    changed: Matrix = np.array(benefits)
    np.fill_diagonal(changed, diagonal)
    return changed


def _without_distributions(game: LinearGame) -> LinearGame:
    """Return a discovery game as the linear game that it is."""
    if type(game) in (LinearGame, MeasuredGame):
        return game
    return LinearGame(
        game.benefits,
        game.requirements,
        agents=game.agents,
        strategies=game.strategies,
        limits=game.limits,
        minimums=game.minimums,
        costs=game.costs,
    )


def _read_numbers(game: Game, given: PerAgent, what: str, otherwise: Vector) -> Vector:
    if isinstance(given, Mapping):
        names = [game.name(agent) for agent in range(game.size)]
        return fill_in(given, names, otherwise.tolist(), "the agents")
    values = as_numbers(given, what)
    if values.ndim == 0:
        return np.full(game.size, float(values))
    if values.shape != (game.size,):
        raise InputError(
            f"{what} must be one number, or one per agent, {game.size}; got shape {values.shape}"
        )
    return values
