"""A plan: who gives how much, how sure it is that all reach their goals, and who could cut."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fedaccord._checks import Vector
from fedaccord._lazy import Displayed
from fedaccord.equilibria.result import Price, Solution
from fedaccord.equilibria.whole import round_up
from fedaccord.errors import UnsolvedError
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.diagnostics import Doubt, doubt_beyond_pilots
from fedaccord.measurement.fit import Measurement, Unreachable
from fedaccord.planning.probabilities import Estimate, Estimates
from fedaccord.wording import format_requested, name_few

if TYPE_CHECKING:
    from fedaccord.allocation import Allocation
    from fedaccord.check import Check
    from fedaccord.planning.margins import Reseeded
    from fedaccord.planning.remedies import Change

# A total is known well if its interval is no wider than this part of it.
NARROW = 0.5
# An interval no wider than this part of the total is no reason to doubt the division.
SMALL = 0.05
# The doubts about a plan whose parts are not known well: its total is, or not either.
DIVISION = "The total is fairly certain, but its division among the agents is not. "
WHOLE = "Both the total and its division among the agents are uncertain. "
LEAST = "It is least certain how much {} should give."
NEXT = "Run more pilots: fedaccord pilots --next chooses them."


class Outcome(Enum):
    """What came of planning; the value is the sentence a user reads."""

    PLANNED = "There is a plan with the requested probability."
    LESS_SURE = "There is a plan, but none with the requested probability."
    UNREACHABLE = "There is no plan: a goal is out of reach."
    UNSTABLE = "There is no plan in which all agents reach their goals and none could give less."

    @property
    def key(self) -> str:
        """The word used in JSON."""
        return self.name.lower().replace("_", "-")

    def __bool__(self) -> NoReturn:
        raise TypeError("an Outcome has no truth value; compare it, as in outcome is ...PLANNED")


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """One of the equilibria that a plan could be.

    contributions: what each agent gives, before rounding.
    total: what that costs.
    everyone: the probability that one run satisfies all; None where nothing was measured.
    cut: the mean probability that a contributor that gives the least level is satisfied; None
        where nothing was measured, or nobody gives anything.
    own_part: the mean part of what contributors need that they give themselves; the larger it is,
        the sooner a cut is felt.
    envious: the agents that would rather have another's burden.
    chosen: whether it is the plan.
    """

    contributions: Vector
    total: float
    everyone: float | None
    cut: float | None
    own_part: float | None
    envious: tuple[int, ...]
    chosen: bool

    @property
    def contributors(self) -> tuple[int, ...]:
        """The agents that give anything."""
        return tuple(np.flatnonzero(self.contributions > 0).tolist())

    @property
    def largest(self) -> int:
        """The agent that gives most."""
        return int(np.argmax(self.contributions))

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "contributions": self.contributions.tolist(),
            "total": self.total,
            "everyone": self.everyone,
            "cut": self.cut,
            "own_part": self.own_part,
            "envious": list(self.envious),
            "chosen": self.chosen,
        }


@dataclass(frozen=True, eq=False)
class Certainty:
    """What it takes that all agents reach their goals with a probability.

    probability: the one asked for.
    contributions: what each agent gives, in whole samples; None where no stable plan was found that
        has the probability.
    total: what that costs.
    everyone: the probability that one run satisfies all, at least the one asked for.
    cut: the mean probability that a contributor that gives only the least level of its contribution
        reaches its goal.
    """

    probability: float
    contributions: Vector | None = None
    total: float | None = None
    everyone: float | None = None
    cut: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        return {**vars(self), "contributions": _list(self.contributions)}


@dataclass(frozen=True, eq=False)
class Plan(Displayed):
    """Who gives how much, and how sure that is.

    Intervals hold what they are about with a probability of 95 %, where there are pilots to tell
    them from; without pilots there are none.

    game: what the plan is an equilibrium of: goals with margins, limits in whole samples.
    bare: the same without margins; where a goal is out of reach, the goals lowered to what is not.
    outcome: what came of planning.
    options: probability, judged, prefer, levels and seed, as asked.
    contributions: the plan in whole samples; None where there is none.
    whole: whether nobody could give even one sample less; otherwise it is merely rounded up.
    z: how many times its noise everybody aims above its goal.
    alone: what each would need alone to reach its goal on average.
    with_margin: what each would need alone to reach its target.
    solutions: the cheapest, the cheapest stable and the cheapest envy-free plan of the bare game.
    stable: the stable one of these, with intervals.
    totals: their costs, by concept.
    prices: of stability and of fairness, by name, as proved for the game as fitted.
    price_of_stability: with the interval that the pilots leave.
    goals_missed: the part of the resamples in which no stable plan like this meets all goals;
        intervals of it, of totals and of prices are over the others.
    real: the plan before it was rounded.
    total: what that costs.
    aims_missed: the part of the resamples in which what the agents aim at is out of reach;
        intervals of the plan and its total are over the others.
    accuracy: what each is expected to reach under the plan.
    runs: the same, with intervals for a single run.
    satisfied: the probability that each reaches its goal in one run.
    everyone: the probability that all do; the interval is over what the curves may be.
    error: the standard error of that probability, for want of more resamples.
    cuts: by level, the probability that each reaches its goal though it gives only that part.
    others: the probability that all other agents reach their goals if an agent alone gives only the
        least level; None where it is not known, or there are too many agents.
    tradeoffs: the equilibria to choose from, the cheapest first.
    complete: whether these are all there are.
    reseeded: what the total could be with another seed; None where there is nothing to tell it.
    certainties: what other probabilities that all agents reach their goals would take.
    surest: the highest probability that all agents reach their goals, of all plans that were tried;
        None without pilots.
    nearest: the accuracy each would reach if all gave as much as they can.
    unreachable: agents whose goals are out of reach.
    ceiling: the probability that all are satisfied if all give as much as they can; None where
        nothing limits somebody.
    attainable: goals that can be had with the probability asked for, where those asked for cannot.
    reason: why there is no plan, where there is none.
    blocking: the agents that then stay short though they give all they can.
    changes: single changes that would make a plan possible, the smallest first. From pilots, each
        was verified at the requested probability, or tells the probability it leads to.
    together: where no single change is enough, the highest goals that hold together with the
        requested probability; None where none were looked for or found.
    reserve: how many samples each agent holds in reserve, if the options ask for reserves.
    uncovered: agents whose failure the reserves cannot make up for.
    measurement: what the pilots say; None without pilots.
    assumed: sentences on what the game takes for granted.
    """

    game: LinearGame
    bare: LinearGame
    outcome: Outcome
    options: Mapping[str, Any]
    contributions: Vector | None = None
    whole: bool = False
    z: float = 0.0
    alone: Estimates | None = None
    with_margin: Estimates | None = None
    solutions: Mapping[str, Solution] = field(default_factory=dict)
    stable: Estimates | None = None
    totals: Mapping[str, Estimate] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    price_of_stability: Estimate | None = None
    goals_missed: float = 0.0
    real: Estimates | None = None
    total: Estimate | None = None
    aims_missed: float = 0.0
    accuracy: Estimates | None = None
    runs: Estimates | None = None
    satisfied: Vector | None = None
    everyone: Estimate | None = None
    error: float | None = None
    cuts: Mapping[float, Vector] = field(default_factory=dict)
    others: Vector | None = None
    tradeoffs: tuple[Tradeoff, ...] = ()
    complete: bool = True
    reseeded: Reseeded | None = None
    certainties: tuple[Certainty, ...] = ()
    surest: float | None = None
    nearest: Estimates | None = None
    unreachable: tuple[Unreachable, ...] = ()
    ceiling: Estimate | None = None
    attainable: Vector | None = None
    reason: str = ""
    blocking: tuple[int, ...] = ()
    changes: tuple[Change, ...] = ()
    together: Vector | None = None
    reserve: Vector | None = None
    uncovered: tuple[str, ...] = ()
    measurement: Measurement | None = None
    assumed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        given = "no plan" if self.contributions is None else f"total {self.contributions.sum():g}"
        sure = (
            "" if self.everyone is None else f", P(all reach their goals) {self.everyone.value:.2f}"
        )
        return f"Plan({self.outcome.key}, {self.game.size} agents, {given}{sure}): {self.verdict}"

    @property
    def size(self) -> int:
        """How many agents there are."""
        return self.game.size

    def name(self, agent: int) -> str:
        """What an agent is called."""
        return self.game.name(agent)

    @property
    def goals(self) -> Vector | None:
        """The accuracy each agent wants; None where the game knows of none."""
        if self.measurement is not None:
            return self.measurement.goals
        return self.bare.goals if isinstance(self.bare, MeasuredGame) else None

    @property
    def margins(self) -> Vector | None:
        """By how much each aims above its goal; None where there is no accuracy to aim at."""
        return self.game.margins if isinstance(self.game, MeasuredGame) else None

    @property
    def aims(self) -> Vector:
        """The accuracy each aims at, its goal and its margin; the goals alone without margins."""
        goals = np.zeros(self.size) if self.goals is None else self.goals
        return goals if self.margins is None else goals + self.margins

    @property
    def recipients(self) -> tuple[int, ...]:
        """The agents that take part without samples to give."""
        return tuple(np.flatnonzero(self.game.limits == 0).tolist())

    @cached_property
    def alone_as_sure(self) -> Estimates:
        """The whole samples each would need alone for the same target."""
        found = self.with_margin or Estimates(self.game.alone)
        ends = (None if end is None else round_up(end) for end in (found.low, found.high))
        return Estimates(round_up(found.values), *ends)

    @property
    def allocation(self) -> Allocation:
        """The plan in whole samples; raises the reason where there is none."""
        from fedaccord.allocation import Allocation

        if self.contributions is None:
            raise UnsolvedError(self.verdict)
        return Allocation(self.contributions, self.game.agents, reserve=self.reserve)

    def with_reserve(self) -> Plan:
        """Return the plan with the least reserves that replace any one agent that fails."""
        from fedaccord.planning.reserve import choose_reserve

        if self.contributions is None:
            return self
        found = choose_reserve(self.game, self.contributions)
        failing = tuple(dict.fromkeys(one.failing for one in found.shortfalls))
        return replace(self, reserve=found.samples, uncovered=failing)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What speaks against trusting the fit, the targets beyond pilots, and the division."""
        said = [*self._doubts_of_fit]
        unsure = self.unsure_agents
        if self.reseeded is not None and self.reseeded.is_much:
            change = self.reseeded.describe(format_requested(self.options["probability"]))
            remedy = "" if unsure else f" {NEXT}"
            said.append(Doubt(None, "unsettled-total", f"{change}{remedy}"))
        if self.total is not None and unsure:
            width = (self.total.high or 0.0) - (self.total.low or 0.0)
            settled = self.reseeded is None or not self.reseeded.is_much
            known = settled and width <= NARROW * self.total.value
            sentence = DIVISION if known else WHOLE
            names = name_few([self.name(agent) for agent in unsure])
            said.append(
                Doubt(None, "uncertain-division", f"{sentence}{LEAST.format(names)} {NEXT}")
            )
        return tuple(said)

    @property
    def _doubts_of_fit(self) -> tuple[Doubt, ...]:
        if self.measurement is None:
            return ()
        known = self.measurement.doubts
        if self.contributions is None:
            return known
        named = {doubt.agent for doubt in known if doubt.kind == "extrapolation"}
        needs = self.game.requirements
        above = doubt_beyond_pilots(self.measurement, needs, targets=self.aims)
        return (*known, *(doubt for doubt in above if doubt.agent not in named))

    @property
    def unsure_agents(self) -> tuple[int, ...]:
        """The agents whose numbers are not known well, the widest intervals first.

        An agent's number is not known well if its interval is wider than the number itself, and
        not small compared with the total.
        """
        real = self.real
        if real is None or real.low is None or real.high is None or self.size == 1:
            return ()
        if self.total is None or self.total.low is None or not real.values.any():
            return ()
        widths = real.high - real.low
        wide = (widths > real.values) & (widths > SMALL * real.values.sum())
        return tuple(i for i in np.argsort(-widths, kind="stable").tolist() if wide[i])

    @cached_property
    def found(self) -> Check | None:
        """What the check, which trusts no solver, says of the plan before it was rounded."""
        from fedaccord.check import check

        return None if self.real is None else check(self.game, self.real.values)

    @property
    def highest_probability(self) -> float | None:
        """The highest probability that a plan was found to reach, rounded down.

        It has three digits, or as many as tell it from certainty. None where a plan reaches the
        requested probability, or there is no plan at all.
        """
        if self.outcome is not Outcome.LESS_SURE or self.surest is None:
            return None
        digits = max(3, math.ceil(-math.log10(max(1 - self.surest, 1e-6))))
        best = math.floor(10**digits * self.surest) / 10**digits
        return best if 0 < best < self.options["probability"] else None

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        from fedaccord.planning.sentences import write_verdict

        return write_verdict(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What has to be so for the numbers to be right, a sentence each."""
        from fedaccord.planning.sentences import list_assumptions

        return list_assumptions(self)

    def explain(self, agent: int) -> str:
        """Explain an agent's number to its data manager in a sentence or two."""
        from fedaccord.planning.sentences import write_explanation

        return write_explanation(self, agent)

    def save(self, path: str | Path) -> None:
        """Write the plan as ALLOCATION.csv or ALLOCATION.json, for check, train and audit."""
        self.allocation.save(path)

    def save_game(self, path: str | Path) -> None:
        """Write GAME.json with the targets of the plan, and all that check and solve need."""
        from fedaccord.games.files import write_game

        write_game(self.saved_game, path)

    @property
    def saved_game(self) -> LinearGame:
        """The game of the plan as it is saved, over whole numbers if the plan is an equilibrium."""
        game = self.doubted_game
        # So that a check of the plan finds it stable.
        return game.replace(strategies="integer") if self.whole else game

    @property
    def doubted_game(self) -> LinearGame:
        """The game of the plan, with what was asked of it and what speaks against the fit."""
        game = self.game
        if not isinstance(game, MeasuredGame) or game.chances is None:
            return game
        known = {name: self.options[name] for name in ("judged", "probability")}
        doubts = tuple(doubt.sentence for doubt in self._doubts_of_fit)
        return game.replace(chances=game.chances.replace(**known, doubts=doubts))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan for machines; the same for the same input and seed."""
        given = self.contributions
        return {
            "outcome": self.outcome.key,
            "verdict": self.verdict,
            "options": {**self.options, "levels": list(self.options["levels"])},
            "agents": [self.name(i) for i in range(self.size)],
            "goals": _list(self.goals),
            "contributions": _list(given),
            "whole_equilibrium": self.whole,
            "z": self.z,
            "margins": _list(self.margins),
            "without_margin": self._without_margin(),
            "alone_as_sure": _dict(self.with_margin),
            "before_rounding": _dict(self.real),
            "total": _dict(self.total),
            **({} if self.reseeded is None else {"total_reseeded": self.reseeded.to_dict()}),
            "resamples_left_out": self.aims_missed,
            "accuracy": _dict(self.accuracy),
            "accuracy_of_a_run": _dict(self.runs),
            "satisfied": _list(self.satisfied),
            "everyone": _dict(self.everyone),
            "standard_error": self.error,
            "cuts": {f"{level:g}": _list(chances) for level, chances in self.cuts.items()},
            **({} if self.others is None else {"others_if_one_gives_least": _list(self.others)}),
            "tradeoffs": {
                "complete": self.complete,
                "equilibria": [tradeoff.to_dict() for tradeoff in self.tradeoffs],
            },
            "certainties": [certainty.to_dict() for certainty in self.certainties],
            "nearest_goals": _dict(self.nearest),
            "unreachable": [vars(one) for one in self.unreachable],
            "everyone_at_limits": _dict(self.ceiling),
            "attainable_goals": _list(self.attainable),
            **({"changes": [one.to_dict() for one in self.changes]} if self.changes else {}),
            **({} if self.together is None else {"goals_together": _list(self.together)}),
            **({} if self.reserve is None else {"reserve": _list(self.reserve)}),
            **({"uncovered": list(self.uncovered)} if self.uncovered else {}),
            "doubts": [vars(doubt) for doubt in self.doubts],
            "pooling": None if self.measurement is None else self.measurement.pooling.to_dict(),
            "assumptions": list(self.assumptions),
            "sentences": [] if given is None else [self.explain(i) for i in range(self.size)],
        }

    def _without_margin(self) -> dict[str, Any]:
        return {
            "alone": _dict(self.alone),
            "stable": _dict(self.stable),
            "solutions": {name: s.to_dict() for name, s in self.solutions.items()},
            "totals": {name: total.to_dict() for name, total in self.totals.items()},
            "prices": {name: price.to_dict() for name, price in self.prices.items()},
            "price_of_stability": _dict(self.price_of_stability),
            "resamples_left_out": self.goals_missed,
        }


def _list(values: Vector | None) -> list[float] | None:
    return None if values is None else values.tolist()


def _dict(estimate: Estimate | Estimates | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_dict()
