"""General PAC learning over finite worlds too many for exact tables: estimates with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import Indices, Matrix, Vector
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import Game, find_least
from fedaccord.games.pac.exact import PacGame
from fedaccord.games.pac.posteriors import FOREVER, BayesPosteriors, round_randomly
from fedaccord.games.pac.worlds import World, merge_worlds

# Samples are drawn in blocks, of this many at first, so that longer ones begin with shorter ones.
BLOCK = 64
# Own contributions are followed up to this many samples.
MOST_SAMPLES = 2**12
# Fractional contributions are averaged over all ways to round them: at most two to this many.
MOST_FRACTIONS = 10
# Scores of this many (agent, allocation) pairs are kept.
KEPT = 4_000


class SampledPacGame(Game):
    """A PAC game of the Bayes classifier whose utilities are estimated from common random numbers.

    A number of times, a world is drawn and one long sample per agent; every allocation is judged
    on the beginnings of these same samples. The score is the posterior probability of being right,
    whose mean is u_i(theta). Utilities and responses are estimates; `utility_bounds` and
    `response_bounds` hold the truth with the stated confidence, for all agents at one allocation
    together, so a check says "borderline" where the draws do not decide.

    worlds, requirements and the rest: see PacGame.
    draws: how many times everything is drawn.
    seed: the same seed gives the same draws.
    confidence: with what probability bounds hold.
    """

    model: ClassVar[str] = "pac"

    def __init__(
        self,
        worlds: Any,
        requirements: ArrayLike,
        *,
        draws: int = 2_000,
        seed: int = 0,
        confidence: float = 0.99,
        **frame: Any,
    ) -> None:
        super().__init__(requirements, **frame)
        if not 2 <= draws <= 10**7:
            raise InputError(f"draws must lie between 2 and ten million; got {draws}")
        if not 0 < confidence < 1:
            raise InputError(f"confidence must lie between 0 and 1; got {confidence:g}")
        # The exact game checks the worlds, and that each agent can reach its requirement.
        self.worlds: tuple[World, ...] = PacGame(worlds, requirements, **frame).worlds
        self.draws, self.seed, self.confidence = draws, seed, confidence
        self._draw_worlds()
        self._samples: list[NDArray[np.intp]] = [
            np.zeros((draws, 0), dtype=np.intp) for _ in range(self.size)
        ]
        self._kept: dict[tuple[int, tuple[int, ...]], Vector] = {}

    @property
    def estimated(self) -> str:
        """A sentence that says how utilities were estimated."""
        return f"Utilities are estimates from {self.draws:,} draws."

    @property
    def utility_doubt(self) -> float:
        """Hoeffding's half-width, for the utilities of all swaps of one allocation together."""
        risk = (1 - self.confidence) / self.size**2
        return float(np.sqrt(np.log(2 / risk) / (2 * self.draws)))

    def _draw_worlds(self) -> None:
        exact = BayesPosteriors(merge_worlds(self.worlds))
        self._chances = [
            exact.chances[j].astype(np.float64) / exact.scales[j] for j in range(self.size)
        ]
        prior = exact.prior.astype(np.float64)
        self._log_prior = np.log(prior / prior.sum())
        self._points = [exact.point_starts(j) for j in range(self.size)]
        generator = np.random.default_rng([self.seed, self.size])
        self._truth = generator.choice(len(prior), size=self.draws, p=prior / prior.sum())

    # Scores, draw by draw.

    def _sample(self, agent: int, count: int) -> NDArray[np.intp]:
        """Return the first samples of an agent in every draw, as numbers of outcomes."""
        while (have := self._samples[agent].shape[1]) < count:
            # Each block is as long as all before it and has its own stream, named by its start.
            generator = np.random.default_rng([self.seed, self.size, agent, have])
            uniform = generator.random((self.draws, max(have, BLOCK)))
            steps = np.cumsum(self._chances[agent], axis=1)
            # The last possible outcome takes what rounding leaves below one.
            last = np.array([np.flatnonzero(row)[-1] for row in self._chances[agent]])
            drawn = np.empty(uniform.shape, dtype=np.intp)
            for world in np.unique(self._truth):
                rows = self._truth == world
                place = np.searchsorted(steps[world], uniform[rows], side="right")
                drawn[rows] = np.minimum(place, last[world])
            self._samples[agent] = np.hstack([self._samples[agent], drawn])
        return self._samples[agent][:, :count]

    def _log_likelihood(self, agent: int, count: int) -> Matrix:
        """Return the log likelihood of an agent's first samples: draws x worlds."""
        chances = self._chances[agent]
        if count == FOREVER:
            _, kind = np.unique(chances, axis=0, return_inverse=True)
            kind = kind.ravel()
            return np.where(kind[self._truth][:, None] == kind[None, :], 0.0, -np.inf)
        outcomes = chances.shape[1]
        flat = np.arange(self.draws)[:, None] * outcomes + self._sample(agent, count)
        counts = np.bincount(flat.ravel(), minlength=self.draws * outcomes)
        counts = counts.reshape(self.draws, outcomes).astype(np.float64)
        logs = np.log(np.where(chances > 0, chances, 1.0))
        impossible = counts @ (chances == 0).T.astype(np.float64)
        return np.where(impossible > 0, -np.inf, counts @ logs.T)

    def _scores(self, agent: int, counts: tuple[int, ...]) -> Vector:
        """Return, draw by draw, the posterior probability that the agent's next point is right."""
        key = agent, counts
        if key not in self._kept:
            logs = np.tile(self._log_prior, (self.draws, 1))
            for giver, count in enumerate(counts):
                if count:
                    logs += self._log_likelihood(giver, count)
            posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
            posterior /= posterior.sum(axis=1, keepdims=True)
            if len(self._kept) > KEPT:
                self._kept.clear()
            for i in range(self.size):
                by_label = posterior @ self._chances[i]
                best = np.maximum.reduceat(by_label, self._points[i], axis=1)
                self._kept[i, counts] = np.minimum(best.sum(axis=1), 1.0)
        return self._kept[key]

    def _mixed_scores(self, agent: int, contributions: Vector) -> Vector:
        """Average the scores over randomized rounding, draw by draw."""
        if np.count_nonzero(contributions != np.floor(contributions)) > MOST_FRACTIONS:
            raise ExactnessError(
                f"more than {MOST_FRACTIONS} agents give fractions of a sample: too many ways to "
                'round them; use strategies "integer"'
            )
        ends = round_randomly(contributions.tolist(), 1.0)
        return sum((p * self._scores(agent, m) for m, p in ends), np.zeros(self.draws))

    # Utilities and responses.

    def utilities(self, contributions: Vector) -> Vector:
        """Return the estimates of u(theta)."""
        given = np.asarray(contributions, dtype=np.float64)
        return np.array([self._mixed_scores(i, given).mean() for i in range(self.size)])

    def utility_bounds(self, contributions: Vector) -> tuple[Vector, Vector]:
        """Return bounds that hold for all agents together with the stated confidence."""
        given = np.asarray(contributions, dtype=np.float64)
        risk = (1 - self.confidence) / self.size
        scores = [self._mixed_scores(i, given) for i in range(self.size)]
        mean = np.array([s.mean() for s in scores])
        width = np.array([half_width(s, risk) for s in scores])
        return np.maximum(mean - width, 0.0), np.minimum(mean + width, 1.0)

    def satisfied(self, contributions: Vector) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return who has enough, by the estimates."""
        return np.asarray(self.utilities(contributions) >= self.requirements)

    def jacobian(self, contributions: Vector) -> Matrix:
        """Return estimates of the right-hand derivatives: differences across the unit cell."""
        columns = []
        for giver in range(self.size):
            low = np.array(contributions, dtype=np.float64)
            low[giver] = np.floor(low[giver])
            high = np.array(low)
            high[giver] += 1
            columns.append(self.utilities(high) - self.utilities(low))
        return np.array(columns).T

    def _value(self, agent: int, contributions: Vector, sign: int) -> Callable[[int], float]:
        """Return u_i of the own amount: its estimate, or its upper (+1) or lower (-1) bound.

        The risk is divided over agents and over all amounts that may be tried: half for infinitely
        many samples, the rest in proportion to 1/m^2, which sums to pi^2/6. So every bound that a
        search meets holds at once.
        """

        def value(amount: int) -> float:
            trial = np.array(contributions, dtype=np.float64)
            trial[agent] = amount
            scores = self._mixed_scores(agent, trial)
            share = 0.5 if amount == FOREVER else 3 / (math.pi * (amount + 1)) ** 2
            risk = share * (1 - self.confidence) / self.size
            return float(scores.mean()) + sign * (half_width(scores, risk) if sign else 0.0)

        return value

    def _find_crossing(self, agent: int, contributions: Vector, sign: int) -> float:
        """Return the least own amount at which an estimate or bound reaches the requirement.

        True utilities rise, so a bound above the requirement at any amount holds beyond it, and
        one below holds before it, wherever bisection happens to look.
        """
        value, required = self._value(agent, contributions, sign), self.requirements[agent]
        if value(0) >= required:
            return 0.0
        if value(FOREVER) < required:
            return np.inf
        low, high = find_least(lambda amount: value(amount) >= required, MOST_SAMPLES)
        if high is None:
            return np.inf if sign <= 0 else float(low)
        if self.is_integer:
            return float(high)
        below = value(low)
        return float(low + (required - below) / (value(high) - below))

    def _responses(self, contributions: Vector) -> Vector:
        return np.array([self._find_crossing(i, contributions, 0) for i in range(self.size)])

    def _response(self, agent: int, contributions: Vector) -> float:
        return self._find_crossing(agent, contributions, 0)

    def _whole_response(self, agent: int, needed: float, contributions: Vector) -> float:
        return needed

    def response_bounds(self, contributions: Vector) -> tuple[Vector, Vector]:
        """Return bounds on best responses; for all agents together with the stated confidence."""
        low = [self._find_crossing(i, contributions, +1) for i in range(self.size)]
        high = [self._find_crossing(i, contributions, -1) for i in range(self.size)]
        return np.array(low), np.array(high)

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        worlds = self.worlds if keep is None else tuple(w.restrict(keep) for w in self.worlds)
        options = {"draws": self.draws, "seed": self.seed, "confidence": self.confidence}
        return {"worlds": worlds, **options}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it, with how it is to be estimated."""
        return {
            "model": "pac",
            **self._frame_dict(),
            "worlds": [world.to_dict() for world in self.worlds],
            "draws": self.draws,
            "seed": self.seed,
            "confidence": self.confidence,
        }


def half_width(scores: Vector, risk: float) -> float:
    """Bound how far the mean of independent scores in [0, 1] is from its expectation.

    The smaller of Hoeffding's bound and the empirical Bernstein bound of Maurer and Pontil, each
    two-sided at half the risk.
    """
    number = len(scores)
    hoeffding = math.sqrt(math.log(4 / risk) / (2 * number))
    spread = math.log(8 / risk)
    bernstein = math.sqrt(2 * float(scores.var(ddof=1)) * spread / number)
    return min(hoeffding, bernstein + 7 * spread / (3 * (number - 1)))
