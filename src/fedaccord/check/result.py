"""What a check of an allocation found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from fedaccord._checks import Indices, Vector, frozen
from fedaccord._lazy import Displayed
from fedaccord.errors import InputError
from fedaccord.games.base import Game, has_goals

if TYPE_CHECKING:
    from fedaccord.games.chances import Estimate, Prospects

# The most digits that a number gets beyond the usual, to tell it from another.
DIGITS = 8
# The probability that is asked for unless another is given.
PROBABILITY = 0.95
# Of a measured game, an agent that could give this part less, or a single sample, is not said to:
# that is the rounding of a plan, and no fit knows samples so well.
ROUNDING = 0.01


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


class BoldPair(NamedTuple):
    """Two agents that give part of their contributions, while all others give theirs.

    agents: their numbers.
    level: the part that they give.
    probability: that both reach their goals in one run.
    """

    agents: tuple[int, int]
    level: float
    probability: float


@dataclass(frozen=True, eq=False)
class Check(Displayed):
    """What was found, agent by agent.

    Of a measured game, feasible, stable and envy_free are about averages: the curves as fitted, and
    the goals without safety margins. The probabilities are in everyone, satisfied and defection.

    game, contributions, tolerance: what was checked, and how finely.
    utilities: what each agent reaches.
    needed: f_i, the least each agent could give while the others stay.
    short, spare: how many samples each agent is below or above that.
    envy: pairs (i, j): i would rather have j's smaller burden, and would still be satisfied.
    borderline: pairs too close to call.
    feasible, stable, envy_free: the three verdicts.
    prospects: how likely agents are to reach their goals; None where only averages are known.
    probability: that all agents reach their goals, as the caller asked.
    plan: the same prospects under a plan to compare with; None where there is none.
    with_margin: the check against the plan's targets, which are goals plus safety margins.
    doubts: what speaks against trusting the probabilities, a sentence each.
    required: the answers that must be yes for the proposal to hold; the usual ones if empty.
    locked: agents whose limit is a number that somebody fixed, and not all that they have.
    kept: how many samples each agent keeps and learns from by itself; None where they are lost.
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
    prospects: Prospects | None = None
    probability: float = PROBABILITY
    plan: Prospects | None = None
    with_margin: Check | None = None
    doubts: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    locked: tuple[int, ...] = ()
    kept: Vector | None = None

    @property
    def everyone(self) -> Estimate | None:
        """The probability that all agents reach their goals in one run, if it is known."""
        return None if self.prospects is None else self.prospects.everyone

    @property
    def satisfied(self) -> Vector | None:
        """The probability that each agent reaches its goal in one run, if it is known."""
        return None if self.prospects is None else self.prospects.satisfied

    @property
    def defection(self) -> dict[float, Vector]:
        """By level, the probability that each reaches its goal if it alone gives that part."""
        return {} if self.prospects is None else self.prospects.defection

    @property
    def has_margins(self) -> bool:
        """Whether the game itself asks for more than its goals, with safety margins."""
        return self.game.has_margins

    @property
    def judged(self) -> Check:
        """The check that says who could give less: with the plan's margins where they are known."""
        return self if self.with_margin is None else self.with_margin

    @cached_property
    def could_give_less(self) -> Vector:
        """How many samples each could keep, and still have what it needs with the plan's margin.

        Of a measured game, what may be rounding counts as nothing.
        """
        spare = self.judged.spare
        if self.prospects is None:
            return frozen(np.where(spare > self.tolerance * self.scale, spare, 0.0))
        rounding = np.maximum(1.0, ROUNDING * self.contributions)
        return frozen(np.where(spare > rounding, spare, 0.0))

    @cached_property
    def boldest_pair(self) -> BoldPair | None:
        """The two contributors most likely to reach their goals if both give the least level.

        None where probabilities are not known, or fewer than two agents give anything.
        """
        if self.prospects is None or (self.contributions > 0).sum() < 2:
            return None
        chances, level = self.prospects.chances, min(self.prospects.defection)
        alone = self.prospects.defection[level]
        giving = np.flatnonzero(self.contributions > 0)
        # Two are no more likely to reach their goals than the less likely of them that cuts alone.
        order = giving[np.argsort(-alone[giving], kind="stable")].tolist()
        best = BoldPair((order[0], order[1]), level, -1.0)
        for place, second in enumerate(order):
            if alone[second] <= best.probability:
                break
            for first in order[:place]:
                pair, given = [first, second], np.array(self.contributions)
                given[pair] *= level
                reached = chances.satisfied(given)[:, pair].prod(axis=1)
                # Both are of the same run, which fails or not.
                probability = float(reached.mean()) / chances.finishing
                if probability > best.probability:
                    best = BoldPair((min(pair), max(pair)), level, probability)
        return best

    @property
    def answers(self) -> dict[str, Answer]:
        """What was found, by the word that `--require` has for it.

        sure: all agents reach their goals with the probability asked for.
        stable, envy-free: with the plan's safety margins, where there is a plan to compare with.
        """
        known = {"feasible": self.feasible, "stable": self.stable, "envy-free": self.envy_free}
        if self.prospects is None:
            return known
        if self.with_margin is not None:
            envied = bool(self.with_margin.envy)
            known["stable"] = to_answer(not self.could_give_less.any(), self.could_give_less.any())
            known["envy-free"] = to_answer(not envied and not self.with_margin.borderline, envied)
        sure = self.prospects.everyone.value >= self.probability
        return {"sure": to_answer(sure, not sure), **known}

    @property
    def usual(self) -> tuple[str, ...]:
        """The answers that must be yes unless others are required.

        Of a measured game: all agents reach their goals with the probability asked for, and none
        could give less and keep the plan's safety margin.
        """
        return ("feasible" if self.prospects is None else "sure", "stable")

    @property
    def failing(self) -> tuple[str, ...]:
        """The answers that must be yes and are not."""
        answers = self.answers
        return tuple(n for n in self.required or self.usual if answers[n] is not Answer.TRUE)

    @property
    def holds(self) -> Answer:
        """Whether all answers that must be yes are."""
        answers = [self.answers[name] for name in self.failing]
        return to_answer(not answers, Answer.FALSE in answers)

    @property
    def carried(self) -> list[int]:
        """The agents whose limits keep them from what they need, so that the others give more.

        Of a measured game with safety margins in which all agents are sure enough: by the plan that
        the allocation is compared with, if there is one.
        """
        if self.prospects is None or not self.judged.has_margins or "sure" in self.failing:
            return []
        given = self.contributions if self.plan is None else self.plan.contributions
        limits = self.game.limits
        # A contribution that is fixed may be more than a plan would ask.
        full = (given >= limits) & (limits > self.game.minimums) & (limits < self.judged.alone)
        return np.flatnonzero(full & (self.could_give_less == 0)).tolist()

    @cached_property
    def alone(self) -> Vector:
        """What each agent would have to give on its own."""
        return self.game.alone

    @property
    def empty_handed(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which agents have no samples of their own, so that none could go alone: limit 0."""
        free = ~np.isin(np.arange(self.game.size), self.locked)
        return np.asarray((self.game.limits == 0) & free)

    @cached_property
    def saved(self) -> Vector:
        """What collaboration saves each agent: its stand-alone need less what it gives."""
        return frozen(self.alone - self.contributions)

    @property
    def rational(self) -> bool:
        """Whether nobody gives more than it would need alone (individual rationality)."""
        return bool((self.saved >= -self.tolerance * self.scale).all())

    @property
    def better_alone(self) -> Indices:
        """The agents that give more than they would need alone, the most first."""
        more = np.where(self.saved < -self.tolerance * self.scale, -self.saved, 0.0)
        order = np.argsort(-more, kind="stable")
        return order[: int((more > 0).sum())]

    @property
    def binding(self) -> frozenset[int]:
        """The goals that bind: an agent with any less would miss them. None of other games."""
        game = self.game
        if not has_goals(game):
            return frozenset()
        spare = game.slacks(self.contributions)[game.binding_goals(self.contributions)]
        binds = spare < 1 if game.is_integer else spare <= self.tolerance * self.scale
        binds &= (spare >= -self.tolerance * self.scale) & (self.contributions > game.minimums)
        return frozenset(game.binding_goals(self.contributions)[binds].tolist())

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
        found = (
            f"feasible {self.feasible.value}, stable {self.stable.value}, "
            f"envy-free {self.envy_free.value}"
        )
        if self.everyone is None:
            return f"Check({found})"
        return f"Check({found}, P(all reach their goals) {self.everyone.value:.2f}): {self.verdict}"

    @property
    def verdict(self) -> str:
        """What was found, in a sentence; of a measured game in two or three."""
        from fedaccord.check.sentences import describe_prospects

        return self.sentence() if self.prospects is None else describe_prospects(self)

    def sentence(self) -> str:
        """Return in one sentence whether the allocation is feasible, stable and envy-free."""
        from fedaccord.check.sentences import describe_check

        return describe_check(self)

    def explain(self, agent: int | str) -> str:
        """Explain an agent's number to its data manager, without a full stop at the end.

        agent: its number or its name.
        """
        from fedaccord.check.sentences import explain_agent

        return explain_agent(self, _index(self.game, agent))

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
            **self._list_goals(),
            **({} if self.prospects is None else self._list_chances(self.prospects)),
        }

    def _list_goals(self) -> dict[str, Any]:
        """Return what a game of several goals, or of harm, has beyond others."""
        game = self.game
        harm = {} if game.is_monotone else {"better_alone": self.better_alone.tolist()}
        if not has_goals(game):
            return harm
        reached, slacks = game.reached(self.contributions), game.slacks(self.contributions)
        goals = [
            {
                "agent": int(game.owners[n]),
                "name": goal.name,
                "target": goal.target,
                "reaches": float(reached[n]),
                "spare": float(slacks[n]),
                "binds": n in self.binding,
            }
            for n, goal in enumerate(game.goals)
        ]
        return {**harm, "goals": goals}

    def _list_chances(self, prospects: Prospects) -> dict[str, Any]:
        plan = None
        if self.plan is not None:
            given = self.plan.contributions
            plan = {
                "contributions": given.tolist(),
                "difference": (self.contributions - given).tolist(),
                "everyone": self.plan.everyone.to_dict(),
                "satisfied": self.plan.satisfied.tolist(),
            }
        return {
            "verdict": self.verdict,
            "holds": self.holds.json,
            "answers": {name: answer.json for name, answer in self.answers.items()},
            "probability": self.probability,
            "judged": prospects.chances.judged,
            "everyone": prospects.everyone.to_dict(),
            "satisfied": prospects.satisfied.tolist(),
            "defection": {f"{lv:g}": part.tolist() for lv, part in prospects.defection.items()},
            "needed": _finite(self.needed),
            "could_give_less": _finite(self.could_give_less),
            "alone_as_sure": None if self.with_margin is None else _finite(self.judged.alone),
            "plan": plan,
            "doubts": list(self.doubts),
        }


def to_answer(yes: bool | np.bool_, no: bool | np.bool_) -> Answer:
    """Return yes, no, or too close to call where it is neither."""
    return Answer.TRUE if yes else Answer.FALSE if no else Answer.BORDERLINE


def _index(game: Game, agent: int | str) -> int:
    if isinstance(agent, str):
        names = game.agents if game.agents is not None else ()
        if agent not in names:
            raise InputError(f"there is no agent called {agent!r} in this game")
        return names.index(agent)
    if not 0 <= agent < game.size:
        raise InputError(f"agents are numbered from 0 to {game.size - 1}; got {agent}")
    return int(agent)


def _finite(values: Vector) -> list[float | None]:
    return [v if np.isfinite(v) else None for v in values.tolist()]
