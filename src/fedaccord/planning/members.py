"""What pilots measured, with other members: some agents left, and others joined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from fedaccord._checks import Indices, frozen
from fedaccord.measurement.curve_fit import AgentFit
from fedaccord.measurement.diagnostics import Doubt
from fedaccord.measurement.fit import Measurement, Resamples
from fedaccord.planning.what_if import (
    Changed,
    Numbers,
    Scenario,
    apply_scenario,
    list_present,
    name_joined,
)
from fedaccord.wording import join_with_and

Changes = TypeVar("Changes", bound=Scenario)
# What a scenario changes of single agents, by their numbers.
OWN = ("goal", "limit", "cost", "lock")


def change_members(measurement: Measurement, scenario: Scenario) -> Changed:
    """Return what pilots measured with all changes of a scenario; or raise an InputError.

    An agent that joins has the learning curve of the agent that it is like. Nothing is fitted
    again, and a plan chooses the safety margins for exactly the agents that take part.

    measurement: what the pilots say.
    scenario: the changes.
    """
    size = len(measurement.agents)
    present = list_present(size, scenario)

    def number(values: Numbers) -> Numbers:
        return tuple((present.index(agent), value) for agent, value in values if agent in present)

    every = name_joined(measurement.agents, scenario.like)
    own: dict[str, Any] = {name: number(getattr(scenario, name)) for name in OWN}
    order = [n if n < size else scenario.like[n - size] for n in present]
    members = _arrange(measurement, order, [every[n] for n in present])
    found = apply_scenario(members, Scenario(**own))
    if isinstance(found.basis, Measurement):
        # A curve that is doubted is doubted once; what goals are out of reach is found by a plan.
        goals = np.array(measurement.goals)
        kept = [place for place, n in enumerate(present) if n < size]
        goals[[order[place] for place in kept]] = found.basis.goals[kept]
        doubts = tuple(_list_doubts(measurement.with_goals(goals), present))
        vars(found.basis).update(doubts=doubts)
    return replace(found, numbers=tuple(present), scenario=scenario, every=tuple(every))


def _arrange(measurement: Measurement, order: Sequence[int], names: Sequence[str]) -> Measurement:
    """Return the fit with its agents in another order, some of them not at all or several times.

    measurement: the fit.
    order: the place in the fit of each agent.
    names: what they are called.
    """
    chosen: Indices = np.array(order)
    first = np.array([place not in order[:n] for n, place in enumerate(order)])
    table, drawn = measurement.table, measurement.resamples
    own = ("goals", "validation", "limits", "minimums", "costs")
    accuracies = np.array(table.accuracies[:, chosen])
    # A pilot in which only agents were measured that left did come to an end.
    ended = np.isnan(accuracies).all(axis=1) & ~np.isnan(table.accuracies).all(axis=1)
    accuracies[ended, 0] = np.nanmax(table.accuracies[ended], axis=1, initial=0.0)
    arranged = replace(
        table,
        agents=tuple(names),
        # A copy gave nothing in any pilot.
        contributions=frozen(np.where(first, table.contributions[:, chosen], 0.0)),
        accuracies=frozen(accuracies),
        places=tuple(tuple(row[place] for place in order) for row in table.places),
        **{name: frozen(getattr(table, name)[chosen]) for name in own},
    )
    return replace(
        measurement,
        table=arranged,
        benefits=frozen(measurement.benefits[np.ix_(chosen, chosen)]),
        curves=frozen(measurement.curves[chosen]),
        training_noise=frozen(measurement.training_noise[chosen]),
        measurement_noise=frozen(measurement.measurement_noise[chosen]),
        resamples=Resamples(
            drawn.benefits[:, chosen][:, :, chosen],
            drawn.curves[:, chosen],
            drawn.training[:, chosen],
        ),
        fits=tuple(_count_as_own(measurement, order, place) for place in range(len(order))),
    )


def _count_as_own(measurement: Measurement, order: Sequence[int], place: int) -> AgentFit:
    """Return the fit of an agent whose pilots have all samples counted as its own.

    So it is known how many effective samples it had, though other agents have left.
    """
    agent = order[place]
    fit = measurement.fits[agent]
    samples = np.zeros((len(fit.model.contributions), len(order)))
    samples[:, place] = fit.model.contributions @ measurement.benefits[agent]
    # What the curve says of these pilots is still what was fitted.
    found = replace(fit, model=replace(fit.model, contributions=frozen(samples)))
    vars(found).update(fitted=fit.fitted)
    return found


def _list_doubts(measurement: Measurement, present: Sequence[int]) -> Iterator[Doubt]:
    """Return the doubts about a fit but for those that name only agents which have left."""
    names = measurement.agents
    gone = [name for n, name in enumerate(names) if n not in present]
    here = _match_names([name for name in names if name not in gone])
    for doubt in measurement.doubts:
        about = doubt.agent is None or doubt.agent in present
        names_gone = bool(gone) and _match_names(gone).search(doubt.sentence)
        if about and (here.search(doubt.sentence) or not names_gone):
            place = None if doubt.agent is None else list(present).index(doubt.agent)
            yield replace(doubt, agent=place)


def _match_names(names: Sequence[str]) -> re.Pattern[str]:
    """Return what finds any of the names, as a whole: that of another agent may begin with it."""
    return re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names))


def drop_unknown(scenario: Changes, size: int) -> tuple[Changes, str]:
    """Return a scenario without what is about agents that are not there, and a sentence on that.

    scenario: the changes.
    size: how many agents there are before any joins.
    """
    known, dropped, kept = size + len(scenario.like), set[int](), dict[str, Any]()
    for name in (*OWN, "give", "cut", "keep", "only"):
        values: Numbers = getattr(scenario, name)
        kept[name] = tuple(pair for pair in values if pair[0] < known)
        dropped |= {agent for agent, _ in values if agent >= known}
    kept["left"] = tuple(agent for agent in scenario.left if agent < known)
    dropped |= {agent for agent in scenario.left if agent >= known}
    if not dropped:
        return scenario, ""
    named = join_with_and([f"agent {agent}" for agent in sorted(dropped)])
    said = f"The address speaks of {named}, but the numbers of the agents end at {known - 1}."
    return replace(scenario, **kept), said


def describe_joined(names: Sequence[str], like: Sequence[int]) -> tuple[str, ...]:
    """Return what is assumed of agents that joined, a sentence each.

    names: of the agents that pilots measured.
    like: the agents that they are like.
    """
    joined = name_joined(names, like)[len(names) :]
    pairs = zip(joined, (names[agent] for agent in like), strict=True)
    return tuple(
        f"No pilot measured {new}: its data are assumed to be like {old}'s." for new, old in pairs
    )
