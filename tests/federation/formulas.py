"""Federations whose accuracies a formula tells: nobody trains, and the right plan is known."""

from types import SimpleNamespace

import numpy as np
from federation.made_up import AnyEngine

from fedaccord.federation.history import History
from fedaccord.federation.runs.execute import Finished

# So many that chance in counting them does not matter.
COUNTLESS = 10**14


class Paper:
    """A source of federations that are on paper only.

    points: how many points each client has.
    goals: the accuracy each wants.
    validation: how many validation points each has.
    """

    def __init__(self, points, goals, validation=COUNTLESS):
        self.names = tuple(f"site {n}" for n in range(len(points)))
        self.points = np.array(points)
        self.requirements = np.array(goals, dtype=float)
        self.fingerprint = f"on paper {points} {goals} {validation}"
        self._validation = validation

    def deal(self, trial):
        clients = [
            SimpleNamespace(
                validation_labels=range(self._validation),
                counted_points=self._validation,
                has_one_share=True,
                goals=(),
            )
            for _ in self.names
        ]
        return SimpleNamespace(clients=clients, fingerprint=f"deal {trial}")


class Formula(AnyEngine):
    """An engine that answers by a formula.

    paper: the source.
    rule: tells everybody's accuracies from a run; more than one row of them are evaluations in
        rounds of equal length.
    stops_after: as if interrupted from the keyboard after so many runs.
    """

    def __init__(self, paper, rule, stops_after=None):
        self.paper, self.rule, self.stops_after, self.made = paper, rule, stops_after, []

    def finished(self, runs):
        for run in runs:
            if self.stops_after == len(self.made):
                raise KeyboardInterrupt
            self.made.append(run)
            yield Finished(run, self._history(run))

    def _history(self, run):
        accuracy = np.atleast_2d(np.asarray(self.rule(run), dtype=float))
        rounds, clients = accuracy.shape
        brought = np.array(run.contributions)
        return History(
            clients=self.paper.names,
            requirements=self.paper.requirements,
            contributions=brought,
            algorithm=run.algorithm.to_dict(),
            seed=run.seed,
            # Each point is drawn once a round.
            samples=np.tile(brought, (rounds, 1)),
            unique=np.tile(brought, (rounds, 1)),
            loss=np.ones((rounds, clients)),
            accuracy=accuracy,
            diverged=bool(np.isnan(accuracy[-1]).any()),
            seconds=0.0,
        )


def linear(benefits, scale=1000.0):
    """What everybody has is a sum over all that is given: the paper's linear utilities."""
    return lambda run: np.asarray(benefits, dtype=float) @ run.contributions / scale


def noisy(rule, deviation, validation):
    """A formula with chance: in what is learnt, and in how many validation points are right."""

    def drawn(run):
        random = np.random.default_rng(run.seed)
        learnt = np.asarray(rule(run)) + deviation * random.normal()
        return random.binomial(validation, np.clip(learnt, 0, 1)) / validation

    return drawn


def circular(run):
    """Each wants to give where the other does as it does not: no plan is stable."""
    first, second = run.contributions
    return [
        0.9 if first >= 50 or second < 25 else 0.1,
        0.9 if second >= 50 or first >= 25 else 0.1,
    ]
