"""Make a plan of what pilots measured, or of a game as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.check.decide import find_envy
from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.equilibria.whole import is_whole_equilibrium, round_box, round_equilibrium
from fedaccord.errors import InputError
from fedaccord.games.chances import Judged
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, nearest_goals, predict_accuracies
from fedaccord.measurement.fit import Measurement, Unreachable
from fedaccord.planning.margins import Aim, MarginSearch, Reseeded, find_surer, reseed_total
from fedaccord.planning.probabilities import (
    Chances,
    Estimate,
    Estimates,
    lower_goals,
    spread,
    spread_of,
)
from fedaccord.planning.result import Certainty, Outcome, Plan, Tradeoff
from fedaccord.planning.selection import (
    MOST_AGENTS,
    Equilibria,
    continue_equilibria,
    find_equilibria,
    find_optimal_totals,
    follow_equilibria,
)

if TYPE_CHECKING:
    from fedaccord.planning.remedies import Change
    from fedaccord.planning.restore import Reached

__all__ = ["LEVELS", "Outcome", "Plan", "Prefer", "make_plan"]

Prefer: TypeAlias = Literal["total", "firm"]

LEVELS = (0.75, 0.5, 0.25)
# The probabilities whose price a plan lists, besides the requested one.
CERTAINTIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# Of more equilibria than this, only the cheapest are weighed against each other.
MOST_WEIGHED = 64
# Up to this many agents the least totals of all resamples are found.
MOST_RESAMPLED = 40
# No plan is made where an agent needs this many times what it had in any pilot; and no room for
# chance is sought beyond this many times, where curves are guesses and samples hardly help.
FARTHEST, FARTHEST_AIM = 100.0, 10.0
TIDY = 1e-6
# Differences of burdens below this part of the largest are no reason for envy, as in a check.
ENVY = 1e-6
# More effective samples than anybody has.
PLENTY = 1e12


def make_plan(
    subject: Measurement | LinearGame,
    *,
    probability: float = 0.95,
    judged: Judged = "true",
    prefer: Prefer = "total",
    levels: Sequence[float] = LEVELS,
    seed: int = 0,
    time_limit: float = 60.0,
    assumed: Sequence[str] = (),
) -> Plan:
    """Plan who gives how much, so that nobody could give less and all reach their goals.

    Targets are z times an agent's noise above its goal, with the least z at which

        P(all agents reach their goals in one run) >= probability

    over what the curves may be, by the resamples of the fit, and over how a run turns out. The plan
    is the cheapest for these margins: unequal multiples of noise may have a cheaper one.

    subject: what pilots measured; or a game as it is, of which no probability is known.
    probability: that all reach their goals in one run.
    judged: "true" where an agent's goal is about the model's accuracy on its distribution;
        "measured" where it is about one measurement on its validation points, which scatters more.
    prefer: which equilibrium: "total" for the cheapest, "firm" for the one whose contributors are
        least able to cut to the lowest level.
    levels: the parts of its contribution that an agent might cut to.
    seed: of single runs that are drawn, and of orders of best response in large games.
    time_limit: seconds for each solver.
    assumed: sentences on what was assumed in making the game.
    """
    options = _check_options(probability, judged, prefer, levels, seed)
    return _Planner(subject, options, time_limit, tuple(assumed)).plan()


def _check_options(
    probability: float, judged: str, prefer: str, levels: Sequence[float], seed: int
) -> dict[str, Any]:
    if not 0 < probability < 1:
        raise InputError(
            f"probability must be above 0 and below 1, such as 0.95; got {probability:g}: no "
            "number of samples makes a goal certain"
        )
    if judged not in get_args(Judged):
        raise InputError(f'judged must be "true" or "measured"; got {judged!r}')
    if prefer not in get_args(Prefer):
        raise InputError(f'prefer must be "total" or "firm"; got {prefer!r}')
    given = sorted({float(level) for level in levels}, reverse=True)
    if not given or not all(0 <= level < 1 for level in given):
        raise InputError(f"levels must be parts, at least 0 and below 1; got {list(levels)}")
    if seed < 0:
        raise InputError(f"seed must be a whole number of 0 or more; got {seed}")
    return {
        "probability": probability,
        "judged": judged,
        "prefer": prefer,
        "levels": tuple(given),
        "seed": seed,
    }


@dataclass(frozen=True, eq=False)
class _Planner:
    """Holds what all steps of planning share."""

    subject: Measurement | LinearGame
    options: dict[str, Any]
    time_limit: float
    assumed: tuple[str, ...]

    @property
    def measurement(self) -> Measurement | None:
        return self.subject if isinstance(self.subject, Measurement) else None

    @cached_property
    def chances(self) -> Chances | None:
        if self.measurement is None:
            return None
        return Chances.of(self.measurement, self.options["judged"])

    def plan(self) -> Plan:
        if missed := _find_unreachable(self.subject):
            return self._describe_unreachable(missed)
        game = self.subject.game if isinstance(self.subject, Measurement) else self.subject
        bare = round_box(game)
        solutions = self._solve(bare)
        found = self._find_aims(bare, solutions["stable"])
        if isinstance(found, str):
            return self._describe_none(bare, solutions, found)
        aim, certainties, seen = found
        plan = self._describe(bare, solutions, aim)
        surest = max((one.everyone for one in seen), default=None)
        reseeded = self._reseed(plan, aim, seen)
        return replace(plan, certainties=certainties, reseeded=reseeded, surest=surest)

    # Without a plan.

    def _describe_unreachable(self, missed: tuple[Unreachable, ...]) -> Plan:
        game = _lower_goals(self.subject, missed)
        return Plan(
            game,
            game,
            Outcome.UNREACHABLE,
            self.options,
            unreachable=missed,
            nearest=self._estimate_nearest(game),
            reason="; ".join(one.sentence for one in missed),
            **self._find_remedies(),
            measurement=self.measurement,
            assumed=self.assumed,
        )

    def _describe_none(self, bare: LinearGame, solutions: dict[str, Solution], reason: str) -> Plan:
        return Plan(
            bare,
            bare,
            Outcome.UNSTABLE,
            self.options,
            solutions=solutions,
            alone=self._estimate_alone(bare),
            nearest=self._estimate_nearest(bare),
            totals={name: Estimate(s.total) for name, s in solutions.items()},
            reason=reason,
            **(self._find_remedies() if solutions["stable"].contributions is None else {}),
            measurement=self.measurement,
            assumed=self.assumed,
        )

    def _find_remedies(self) -> dict[str, Any]:
        """Return who stands in the way of a plan, and which changes would make one possible."""
        from fedaccord.planning.remedies import Impasse, find_blocking, find_changes

        known = None
        if self.measurement is not None:
            known = FARTHEST_AIM * np.maximum(_find_tried(self.measurement), 1.0)
        game = Impasse.of(self.subject, known)
        changes = find_changes(game, time_limit=self.time_limit)
        blocking = find_blocking(game)
        return {"blocking": blocking, **self._verify(changes, blocking)}

    def _verify(self, changes: tuple[Change, ...], blocking: tuple[int, ...]) -> dict[str, Any]:
        """Return the changes after which a plan has the requested probability, or what comes near.

        changes: after which there is a plan on average.
        blocking: the agents that stay short though they give all they can.
        """
        from fedaccord.planning.restore import (
            lower_together,
            pick_single,
            rate_changes,
            restore_changes,
            suggest_goals,
        )

        if self.measurement is None:
            return {"changes": changes}
        frame = (self.measurement, self._attempt)
        probability = self.options["probability"]
        goals = suggest_goals(changes, self.measurement, blocking)
        if verified := restore_changes(changes, *frame, probability, goals=goals):
            return {"changes": verified}
        together = lower_together(*frame, probability)
        if together is not None:
            single = pick_single(together, *frame)
            return {"together": together} if single is None else {"changes": (single,)}
        return {"changes": rate_changes(changes, *frame)}

    def _attempt(self, measurement: Measurement) -> Reached:
        """Return what the best plan for another measurement comes to."""
        from fedaccord.planning.restore import Reached

        if measurement.unreachable:
            return Reached(0.0)
        planner = replace(self, subject=measurement)
        found = planner._find_aims(round_box(measurement.game), levels=())
        if isinstance(found, str):
            return Reached(0.0)
        return Reached(found[0].everyone, float(found[0].contributions.sum()))

    # With one.

    def _solve(self, bare: LinearGame) -> dict[str, Solution]:
        from fedaccord.equilibria.solve import solve_envy_free, solve_optimal, solve_stable

        stable = solve_stable(bare, time_limit=self.time_limit)
        optimal = solve_optimal(bare, time_limit=self.time_limit)
        return {
            "optimal": _tighten(optimal, stable),
            "stable": stable,
            "envy-free": solve_envy_free(bare, time_limit=self.time_limit),
        }

    def _find_aims(
        self,
        bare: LinearGame,
        stable: Solution | None = None,
        levels: Sequence[float] = CERTAINTIES,
    ) -> tuple[Aim, tuple[Certainty, ...], tuple[Aim, ...]] | str:
        """Choose the equilibrium and the margin, and price other certainties; or say why not.

        Also return the plans of all margins that were tried.
        """
        reasons: list[str] = []
        known = np.zeros((0, bare.size))

        def aim_at(z: float, game: LinearGame, *, thorough: bool = False) -> Aim | None:
            nonlocal known
            if far := self._explain_too_far(game, FARTHEST_AIM if z else FARTHEST):
                reasons.append(far)
                return None
            found = None if thorough else continue_equilibria(game, known)
            if found is None:
                found = find_equilibria(
                    game,
                    time_limit=self.time_limit,
                    seed=self.options["seed"],
                    cheapest=stable if game is bare else None,
                )
                if game.size > MOST_AGENTS:
                    known = found.contributions
            if not len(found):
                reasons.append(found.reason)
                return None
            return self._make_aim(z, game, found)

        if self.measurement is None or not isinstance(bare, MeasuredGame):
            aim = aim_at(0.0, bare)
            return reasons[0] if aim is None else (aim, (), ())
        search = MarginSearch(bare, self.measurement.noise(self.options["judged"]), aim_at)
        asked = self.options["probability"]
        aim = search.find(asked)
        if aim is None:
            return reasons[0]
        if aim.z and bare.size > MOST_AGENTS:
            # On the way there only equilibria like those without a margin were looked at.
            best = aim_at(aim.z, aim.game, thorough=True)
            if best is not None and best.everyone >= min(asked, aim.everyone):
                aim = best
        certainties = tuple(
            self._price(level, aim if level == asked else search.find(level))
            for level in sorted({*levels, asked} if levels else ())
        )
        if levels and self.chances is not None:
            # What another seed could ask for, unless a plan as sure was seen already.
            surer = find_surer(aim, self.chances.everyone(aim.contributions))
            if surer > max(one.everyone for one in search.seen):
                search.find(surer)
        return aim, certainties, search.seen

    def _reseed(self, plan: Plan, aim: Aim, seen: tuple[Aim, ...]) -> Reseeded | None:
        """Return what the total could be with another seed; None where no probability is met."""
        if self.chances is None or plan.outcome is not Outcome.PLANNED or not seen:
            return None
        if not aim.contributions.any():
            return None
        return reseed_total(aim, seen, self.chances.everyone(aim.contributions))

    def _make_aim(self, z: float, game: LinearGame, found: Equilibria) -> Aim:
        chosen = self._choose(game, found)
        given = round_equilibrium(game, found.contributions[chosen])
        everyone = np.nan if self.chances is None else self.chances.everyone(given).mean()
        return Aim(z, game, found, chosen, given, float(everyone))

    def _price(self, level: float, aim: Aim | None) -> Certainty:
        if aim is None or aim.everyone < level:
            return Certainty(level)
        given = frozen(aim.contributions)
        return Certainty(level, given, aim.game.total(given), aim.everyone, self._find_cut(given))

    def _explain_too_far(self, game: LinearGame, farthest: float) -> str:
        """Return why, where an agent needs so much more than the pilots had that no curve tells."""
        if self.measurement is None:
            return ""
        times = game.requirements / np.maximum(_find_tried(self.measurement), 1.0)
        agent = int(np.argmax(times))
        if times[agent] <= farthest:
            return ""
        return (
            f"{game.name(agent)} would need {times[agent]:,.0f} times as many samples as the "
            "pilots had. Its goal is too close to the most it can reach to say how many: lower the "
            "goal, or run pilots with more samples."
        )

    def _choose(self, game: LinearGame, found: Equilibria) -> int:
        """Return the place of the equilibrium that is preferred; the cheapest comes first."""
        if self.options["prefer"] == "total":
            return 0
        rows = found.contributions[:MOST_WEIGHED]
        if self.chances is None:
            loose = [-(_find_own_part(game, row) or 0.0) for row in rows]
        else:
            loose = [self._find_cut(row) or 0.0 for row in rows]
        return int(np.argmin(np.round(loose, 9)))

    def _find_cut(self, given: Vector) -> float | None:
        """Return the mean chance of a contributor that gives the least level."""
        giving = given > 0
        if self.chances is None or not giving.any():
            return None
        return float(self.chances.could_cut(given, self.options["levels"][-1])[giving].mean())

    def _describe(self, bare: LinearGame, solutions: dict[str, Solution], aim: Aim) -> Plan:
        sure = self.chances is None or aim.everyone >= self.options["probability"]
        integer = is_whole_equilibrium(aim.game, aim.contributions)
        return Plan(
            aim.game,
            bare,
            Outcome.PLANNED if sure else Outcome.LESS_SURE,
            self.options,
            contributions=frozen(aim.contributions),
            whole=integer,
            z=aim.z,
            alone=self._estimate_alone(bare),
            with_margin=self._estimate_alone(aim.game),
            solutions=solutions,
            tradeoffs=tuple(self._list_tradeoffs(aim)),
            complete=aim.equilibria.complete and len(aim.equilibria) <= MOST_WEIGHED,
            nearest=self._estimate_nearest(bare),
            measurement=self.measurement,
            assumed=self.assumed,
            **self._compare_concepts(bare, solutions),
            **self._estimate_contributions(aim),
            **self._estimate_chances(aim, sure=sure),
        )

    def _estimate_nearest(self, game: LinearGame) -> Estimates | None:
        if self.measurement is not None:
            drawn, limits = self.measurement.resamples, self.measurement.table.limits
            values = nearest_goals(self.measurement.benefits, self.measurement.curves, limits)
            return spread(values, nearest_goals(drawn.benefits, drawn.curves, limits))
        return Estimates(game.nearest_goals()) if isinstance(game, MeasuredGame) else None

    def _estimate_alone(self, game: LinearGame) -> Estimates:
        if self.chances is None or not isinstance(game, MeasuredGame):
            return Estimates(game.alone)
        return spread(game.alone, self.chances.needs(game.margins))

    def _compare_concepts(self, bare: LinearGame, solutions: dict[str, Solution]) -> dict[str, Any]:
        """Return the plans without margins: what each gives, their costs, what stability does."""
        from fedaccord.equilibria.solve import price_of_fairness, price_of_stability

        optimal, stable = solutions["optimal"], solutions["stable"]
        prices = {
            "price of stability": price_of_stability(stable, optimal),
            "price of fairness": price_of_fairness(solutions["envy-free"], optimal),
        }
        totals = {name: Estimate(solution.total) for name, solution in solutions.items()}
        shares: dict[str, Any] = {"prices": prices, "totals": totals}
        given = stable.contributions
        if given is None:
            return shares
        shares["stable"] = Estimates(given)
        if self.chances is None or bare.size > MOST_RESAMPLED:
            return shares
        needs = self.chances.needs(np.zeros(bare.size))
        box = (bare.minimums, bare.limits)
        drawn = follow_equilibria(self.chances.benefits, needs, *box, given)
        least = find_optimal_totals(self.chances.benefits, needs, *box, bare.costs)
        # Best response comes to rest as well where somebody is short at its limit: that is no plan.
        has = np.einsum("bij,bj->bi", self.chances.benefits, drawn)
        drawn[(has < needs * (1 - TIDY)).any(axis=1)] = np.nan
        costs = drawn @ bare.costs
        # All intervals are over the same worlds, or the cheapest plan might seem to cost more.
        least[np.isnan(costs)] = np.nan
        shares["stable"] = spread(given, drawn)
        totals["stable"] = spread_of(stable.total, costs)
        totals["optimal"] = spread_of(optimal.total, least)
        shares["price_of_stability"] = _estimate_ratio(stable.total, optimal.total, costs, least)
        shares["goals_missed"] = float(np.isnan(costs).mean())
        return shares

    def _estimate_contributions(self, aim: Aim) -> dict[str, Any]:
        """Return the plan before rounding, with intervals, and what it costs."""
        game, real = aim.game, aim.real
        if self.chances is None or game.size > MOST_RESAMPLED:
            return {"real": Estimates(real), "total": Estimate(game.total(real))}
        margins = game.margins if isinstance(game, MeasuredGame) else np.zeros(game.size)
        needs = self.chances.needs(margins)
        drawn = follow_equilibria(self.chances.benefits, needs, game.minimums, game.limits, real)
        total = spread_of(game.total(real), drawn @ game.costs)
        missed = float(np.isnan(drawn).any(axis=1).mean())
        return {"real": spread(real, drawn), "total": total, "aims_missed": missed}

    def _estimate_chances(self, aim: Aim, *, sure: bool) -> dict[str, Any]:
        """Return what the whole plan leads to: accuracies, and how sure they are."""
        game, given = aim.game, aim.contributions
        if not isinstance(game, MeasuredGame):
            return {}
        expected = game.accuracies(given)
        if self.chances is None:
            return {"accuracy": Estimates(expected)}
        runs = self.chances.runs(given, np.random.default_rng(self.options["seed"]))
        everyone = self.chances.everyone(given)
        levels = self.options["levels"]
        probability = self.options["probability"]
        lowered = None if sure else lower_goals(runs, self.chances.goals, probability)
        return {
            "accuracy": spread(expected, self.chances.accuracies(given)),
            "runs": spread(expected, runs),
            "satisfied": frozen(self.chances.satisfied(given).mean(axis=0)),
            "everyone": spread_of(float(everyone.mean()), everyone),
            "error": float(everyone.std()) / len(everyone) ** 0.5,
            "cuts": {level: self.chances.could_cut(given, level) for level in levels},
            "others": self._find_others(given),
            "ceiling": self._find_ceiling(game),
            "attainable": lowered,
        }

    def _find_others(self, given: Vector) -> Vector | None:
        """Return how likely all others are to reach their goals if one gives the least level."""
        if self.chances is None or not 1 < len(given) <= MOST_RESAMPLED:
            return None
        return self.chances.others_reach(given, self.options["levels"][-1])

    def _find_ceiling(self, game: LinearGame) -> Estimate | None:
        if self.chances is None or not np.isfinite(game.limits).all():
            return None
        everyone = self.chances.everyone(game.limits)
        return spread_of(float(everyone.mean()), everyone)

    def _list_tradeoffs(self, aim: Aim) -> list[Tradeoff]:
        rows = aim.equilibria.contributions[:MOST_WEIGHED]
        return [
            self._make_tradeoff(aim.game, row, chosen=n == aim.chosen) for n, row in enumerate(rows)
        ]

    def _make_tradeoff(self, game: LinearGame, given: Vector, *, chosen: bool) -> Tradeoff:
        everyone = None if self.chances is None else float(self.chances.everyone(given).mean())
        allowed = 0.0 if game.is_integer else ENVY * game.scale_of(given)
        pairs, _ = find_envy(game, given, game.best_responses(given), allowed)
        envious = {i for i, _ in pairs}
        return Tradeoff(
            frozen(np.array(given)),
            game.total(given),
            everyone,
            self._find_cut(given),
            _find_own_part(game, given),
            tuple(sorted(envious)),
            chosen,
        )


def _find_tried(measurement: Measurement) -> Vector:
    """Return the most effective samples that each agent had in any pilot."""
    tried = (measurement.table.contributions @ measurement.benefits.T).max(axis=0)
    # The fits also know of samples of agents that have left since.
    pairs = zip(measurement.fits, measurement.benefits, strict=True)
    fitted = [(fit.model.contributions @ worth).max() for fit, worth in pairs]
    return np.asarray(np.maximum(tried, fitted))


def _tighten(optimal: Solution, stable: Solution) -> Solution:
    """Return the cheapest plan that was found; a stable one may be cheaper where time ran out.

    One that is proved optimal stays: a total below it would differ by rounding only.
    """
    if optimal.status is Status.OPTIMAL or stable.total >= optimal.total:
        return optimal
    bounds = Interval(min(optimal.bounds.lower, stable.total), stable.total)
    return replace(optimal, bounds=bounds, contributions=stable.contributions, method=stable.method)


def _estimate_ratio(stable: float, optimal: float, costs: Vector, least: Vector) -> Estimate:
    """Return a price with its interval; where nobody needs anything it is one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = np.where(least > 0, costs / least, np.where(costs > 0, np.nan, 1.0))
    price = max(1.0, stable / optimal) if optimal > 0 else 1.0
    return spread_of(price, np.maximum(drawn, 1.0))


def _find_own_part(game: LinearGame, given: Vector) -> float | None:
    """Return the mean part of what contributors need that they give themselves."""
    giving = (given > 0) & (game.requirements > 0)
    if not giving.any():
        return None
    parts = game.own_benefits[giving] * given[giving] / game.requirements[giving]
    return float(np.minimum(parts, 1.0).mean())


# Goals out of reach.


def _find_unreachable(subject: Measurement | LinearGame) -> tuple[Unreachable, ...]:
    if isinstance(subject, Measurement):
        return subject.unreachable
    if not isinstance(subject, MeasuredGame):
        return ()
    nearest, aims = subject.nearest_goals(), subject.goals + subject.margins
    short = np.flatnonzero(nearest < aims - TIDY)
    return tuple(
        Unreachable(i, subject.name(i), float(aims[i]), float(nearest[i])) for i in short.tolist()
    )


def _lower_goals(subject: Measurement | LinearGame, missed: tuple[Unreachable, ...]) -> LinearGame:
    """Return the game with goals that can be reached in place of those that cannot."""
    if isinstance(subject, LinearGame):
        return subject
    goals = np.array(subject.goals)
    # Where nothing is limited, the nearest goal takes more data than there are numbers for.
    much = predict_accuracies(subject.curves, np.full(len(goals), PLENTY))
    for one in missed:
        goals[one.agent] = max(min(one.nearest - TIDY, much[one.agent]), TIDY)
    return subject.with_goals(goals).game
