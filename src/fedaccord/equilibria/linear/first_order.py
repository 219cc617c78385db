"""LP 1 by a first-order method: the primal-dual hybrid gradient method, anchored and restarted.

It reads W, or Q, a few times each round and keeps a few vectors, so it fits games of any size. What
it finds is certified (optimal.py), so its own rounding never counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.equilibria.linear.optimal import certify
from fedaccord.equilibria.result import Claim, Interval, Solution
from fedaccord.games.linear import DiscoveryGame, LinearGame

# Rounds between two certificates.
CHECK_EVERY = 40
# The least tolerance for which single precision is tried first.
SINGLE = 5e-4
# Double precision takes over where the gap is still above this share after so many rounds.
STALLED, PATIENCE = 0.9, 400


@dataclass(frozen=True, eq=False)
class _Program:
    """min c'x  s.t.  A x >= b, low <= x <= high, scaled for a first-order method.

    give and prices turn scaled primal and dual points into theta and y.
    """

    forward: Any
    backward: Any
    cost: Vector
    right: Vector
    low: Vector
    high: Vector
    give: Any
    prices: Any


def _explicit_program(game: LinearGame) -> _Program:
    """Scale W to a unit diagonal from both sides."""
    side = 1 / np.sqrt(game.own_benefits)
    matrix = sparse.csr_array(
        sparse.diags_array(side) @ sparse.csr_array(game.benefits) @ sparse.diags_array(side)
    )
    transposed = sparse.csr_array(matrix.T)
    return _Program(
        forward=lambda x: matrix @ x,
        backward=lambda y: transposed @ y,
        cost=side * game.costs, right=side * game.requirements,
        low=game.minimums / side, high=game.limits / side,
        give=lambda x: side * x, prices=lambda y: side * y,
    )  # fmt: skip


def _lifted_program(game: DiscoveryGame, kind: type[np.floating[Any]]) -> _Program:
    """Write Q Q' theta >= mu as r <= Q' theta, Q r >= mu: far better conditioned than Q Q'.

    Units are the largest stand-alone need and the largest cost, which suit single precision too.
    """
    k, n = game.distributions.shape
    unit, price = float(game.alone.max()) or 1.0, float(game.costs.max())
    side = 1 / np.sqrt(game.own_benefits)
    rows = sparse.diags_array(side) @ game.distributions
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=0)).ravel())
    lengths[lengths == 0] = 1.0
    matrix = sparse.csr_array(rows @ sparse.diags_array(1 / np.sqrt(lengths))).astype(kind)
    transposed = sparse.csr_array(matrix.T)
    link = (1 / lengths).astype(kind)

    def join(first: Vector, second: Vector) -> Any:
        return np.concatenate([first, second]).astype(kind, copy=False)

    return _Program(
        forward=lambda x: join(transposed @ x[:k] - link * x[k:], matrix @ x[k:]),
        backward=lambda y: join(matrix @ y[:n], transposed @ y[n:] - link * y[:n]),
        cost=join(side * game.costs / price, np.zeros(n)),
        right=join(np.zeros(n), side * game.requirements / unit),
        low=join(game.minimums / side / unit, np.zeros(n)),
        high=join(game.limits / side / unit, np.full(n, np.inf)),
        give=lambda x: unit * side * x[:k], prices=lambda y: price * side * y[n:],
    )  # fmt: skip


def first_order_optimal(claim: Claim[LinearGame]) -> Solution:
    """Approach LP 1 by the primal-dual hybrid gradient method, anchored and restarted.

    Each step mixes the reflected PDHG step with the anchor it last restarted from (Halpern's
    iteration); restarts come when the step has shrunk enough. Stops when a certificate proves the
    relative tolerance. Certificates are computed in double precision. For three digits of a large
    game, single precision is enough between them, and it halves what each step reads.
    """
    game = claim.game
    single = isinstance(game, DiscoveryGame) and claim.tolerance >= SINGLE
    program = _make_program(game, np.float32 if single else np.float64)
    state = _Halpern(program)
    best: Vector | None = None
    lower, upper, prices, rounds = 0.0, np.inf, np.zeros(game.size), 0
    before = np.inf
    while True:
        for _ in range(CHECK_EVERY):
            state.step()
        rounds += CHECK_EVERY
        trial = program.prices(state.y)
        feasible, bounds = certify(game, program.give(state.x), trial)
        if bounds.lower > lower:
            lower, prices = bounds.lower, trial
        if feasible is not None and bounds.upper < upper:
            best, upper = feasible, bounds.upper
        closed = best is not None and upper - lower <= claim.tolerance * upper
        if closed or claim.deadline.passed:
            break
        if single and rounds % PATIENCE == 0:
            if upper - lower > STALLED * before:
                single, program = False, _make_program(game, np.float64)
                state = _Halpern(program, state.x, state.y)
            before = upper - lower
    return claim.enclosed(
        "first-order", Interval(min(lower, upper), upper), best,
        certificate={"prices": prices, "rounds": rounds},
    )  # fmt: skip


def _make_program(game: LinearGame, kind: type[np.floating[Any]]) -> _Program:
    """Scale LP 1 to numbers of a kind, lifted where W = Q Q'."""
    if isinstance(game, DiscoveryGame):
        return _lifted_program(game, kind)
    return _explicit_program(game)


class _Halpern:
    """The state of the iteration; x and y are the last PDHG points, which keep to their bounds."""

    def __init__(self, program: _Program, x: Vector | None = None, y: Vector | None = None) -> None:
        self.program = program
        kind = program.right.dtype
        self.x = np.array(program.low if x is None else x, dtype=kind)
        self.y = np.zeros(program.right.size, dtype=kind) if y is None else y.astype(kind)
        self.eta = 0.998 / self._norm()
        length = float(np.linalg.norm(program.right)) or 1.0
        self.weight = (float(np.linalg.norm(program.cost)) or 1.0) / length
        self.total = 0
        self._restart()

    def _norm(self) -> float:
        vector = np.random.default_rng(0).random(self.x.size).astype(self.x.dtype)
        length = 1.0
        for _ in range(30):
            vector = self.program.backward(self.program.forward(vector))
            length = float(np.linalg.norm(vector))
            vector /= length
        # Power iteration approaches the norm from below.
        return float(np.sqrt(length)) * 1.01

    def _restart(self) -> None:
        forward, backward = self.program.forward(self.x), self.program.backward(self.y)
        self.anchor = (self.x, self.y, forward, backward)
        self.at = self.anchor
        self.count, self.initial, self.last = 0, np.inf, np.inf

    def step(self) -> None:
        program, eta, weight = self.program, self.eta, self.weight
        x, y, forward, backward = self.at
        new_x = np.clip(x - eta / weight * (program.cost - backward), program.low, program.high)
        new_forward = program.forward(new_x)
        new_y = np.maximum(y + eta * weight * (program.right - 2 * new_forward + forward), 0.0)
        new_backward = program.backward(new_y)
        dx, dy = x - new_x, y - new_y
        length = weight * (dx @ dx) - 2 * eta * (dy @ (forward - new_forward)) + dy @ dy / weight
        moved = float(np.sqrt(max(length, 0.0)))
        share = (self.count + 1) / (self.count + 2)
        self.at = tuple(
            share * (2 * new - old) + (1 - share) * fixed
            for new, old, fixed in zip(
                (new_x, new_y, new_forward, new_backward), self.at, self.anchor, strict=True
            )
        )
        self.x, self.y = new_x, new_y
        self.count += 1
        self.total += 1
        self._maybe_restart(moved)

    def _maybe_restart(self, moved: float) -> None:
        if self.count == 1:
            self.initial = moved
        shrunk = moved <= 0.2 * self.initial
        stalled = moved <= 0.8 * self.initial and moved > self.last
        if self.count > 1 and (shrunk or stalled or self.count >= 0.36 * self.total):
            dx = float(np.linalg.norm(self.x - self.anchor[0]))
            dy = float(np.linalg.norm(self.y - self.anchor[1]))
            if dx > 0 and dy > 0:
                self.weight = float(np.sqrt(self.weight * dy / dx))
            self._restart()
        else:
            self.last = moved
