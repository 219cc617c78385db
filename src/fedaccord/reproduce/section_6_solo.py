"""The paper's agents alone: how long they take, and what part of their data they need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.reproduce.claims import Claims, Measured, Setting, Unavailable
from fedaccord.reproduce.estimates import Estimate, estimate_mean, resample
from fedaccord.reproduce.experiment import Data, set_up
from fedaccord.wording import join_with_and, pluralize

if TYPE_CHECKING:
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.defection.solo import SoloCurves

CLAIMS = Claims()

# Of digits: all points, and parts down to a quarter.
LEVELS = (1.0, 0.75, 0.5, 0.25)


def train_digits_alone(config: Config) -> Config:
    """Return the built-in federation with its agents alone, as many samples a round as together."""
    from fedaccord.federation.algorithms.base import Solo

    shared = config.algorithms["FedAvg"]
    solo = Solo(
        rounds=shared.rounds,
        batch_size=len(config.agents.mixtures) * shared.batch_size,
        learning_rate=shared.learning_rate,
        evaluate_every=1,
    )
    audit = dataclasses.replace(config.audit, levels=LEVELS)
    return dataclasses.replace(config, algorithms={"Solo": solo}, audit=audit)


@CLAIMS.measure("solo-curves")
def solo_curves_claim(setting: Setting) -> Measured:
    """Train the agents alone with all their points."""
    place = set_up(setting, "solo-curves.toml", train_digits_alone)
    found = place.train_alone("training alone", levels=(1.0,))
    hard = np.array([mixture >= 0.5 for mixture in place.config.agents.mixtures])
    return judge_curves(found, hard, place.data, setting.expected)


def judge_curves(
    found: SoloCurves, hard: NDArray[np.bool_], data: Data, expected: Mapping[str, Any]
) -> Measured:
    """Judge whether hard agents take several times as long, on the averaged curves.

    found: the curves with all points.
    hard: which agents are hard ones.
    """
    runs, goal = found.accuracy[1.0], float(found.requirements[0])
    rounds = dict(zip(found.clients, find_passages(found.mean(1.0), found), strict=True))
    ratio = resample(runs, lambda some: compare_times(some.mean(axis=0), found, hard))
    never = [name for name, n in rounds.items() if not n]
    wanted = expected["times_as_long"]
    near = ratio.agrees(wanted, tolerance=expected["tolerance"], widest=expected["widest"])
    return Measured(
        times_as_long=ratio,
        rounds_to_goal=rounds,
        final_accuracy=dict(zip(found.clients, found.mean(1.0)[-1].tolist(), strict=True)),
        goal=goal,
        trials=len(runs),
        words={
            "data": data,
            "reached": ", ".join(
                f"{name} {f'in round {n}' if n else 'not at all'}" for name, n in rounds.items()
            ),
            "rounds": found.rounds[-1],
            "never": never and f"{join_with_and(never)} {pluralize(len(never), 'does', 'do')}",
            "few": ratio.holds(wanted),
            "nearly": near and not never,
        },
        charts=(chart_curves(found, goal),),
    )


def find_passages(mean: Vector, found: SoloCurves) -> list[int]:
    """Return the round in which each averaged curve first reaches the goal; 0 for never."""
    reached = np.asarray(mean >= found.requirements)
    first: Any = found.rounds[reached.argmax(axis=0)]
    ever: Any = reached.any(axis=0)
    return [int(n) if some else 0 for n, some in zip(first, ever, strict=True)]


def compare_times(mean: Vector, found: SoloCurves, hard: NDArray[np.bool_]) -> float:
    """Return the quotient of the mean rounds to the goal; who never gets there has all of them."""
    rounds = np.array([n or int(found.rounds[-1]) for n in find_passages(mean, found)])
    return float(rounds[hard].mean() / rounds[~hard].mean())


def chart_curves(found: SoloCurves, goal: float) -> Chart:
    """Chart the averaged curves of the agents, with the goal."""
    mean, rounds = found.mean(1.0), tuple(found.rounds.tolist())
    ends = ", ".join(
        f"{name} ends at {value:.3f}" for name, value in zip(found.clients, mean[-1], strict=True)
    )
    return Chart(
        name="solo-curves",
        title="Alone with all their samples: accuracy averaged over the runs",
        x="round of training alone",
        y="accuracy on the agent's own validation samples",
        alt=f"{ends}; the goal is {goal:g}.",
        lines=tuple(
            Line(name, rounds, tuple(mean[:, i].tolist())) for i, name in enumerate(found.clients)
        ),
        percent=True,
        goal=goal,
    )


@CLAIMS.measure("solo-levels")
def solo_levels_claim(setting: Setting) -> Measured:
    """Train the agents alone with parts of their points, and average over them."""
    place = set_up(setting, "solo-levels.toml", train_digits_alone)
    found = place.train_alone("training alone with less")
    return judge_levels(found, place.data, setting.expected)


def judge_levels(found: SoloCurves, data: Data, expected: Mapping[str, Any]) -> Measured:
    """Judge whether the average over the agents misses the goal with half of the data or less."""
    goal, most = float(found.requirements[0]), expected["too_little"]
    peaks = {level: estimate_peak(runs.mean(axis=2)) for level, runs in found.accuracy.items()}
    # Single runs: how many end at their goal.
    single = {
        level: float((runs[:, -1] >= found.requirements).mean())
        for level, runs in found.accuracy.items()
    }
    short = all(peaks[level].high < goal for level in find_low_levels(most, found))
    return Measured(
        goal=goal,
        highest={f"{level:g}": top for level, top in peaks.items()},
        single_runs_at_goal={f"{level:g}": share for level, share in single.items()},
        trials=len(found.accuracy[1.0]),
        words={
            "data": data,
            "levels": "; ".join(
                f"{100 * level:g} % of the samples: {top:.3f}, {100 * single[level]:.0f} % of "
                "single runs at their goal"
                for level, top in peaks.items()
            ),
            "half_short": short,
            "all_reach": not short or peaks[1.0].value >= goal,
        },
        charts=(chart_levels(found, goal),),
    )


def find_low_levels(most: float, found: SoloCurves) -> list[float]:
    """Return the levels that are said to be too little, and refuse runs without any."""
    few = [level for level in found.accuracy if level <= most]
    if not few or 1.0 not in found.accuracy:
        raise Unavailable(
            f"runs alone with all the samples and with {100 * most:g} % of them or fewer are "
            "needed: name such levels in the config's section audit"
        )
    return few


def estimate_peak(runs: Vector) -> Estimate:
    """Estimate the highest point of an averaged curve, from runs with a column per look."""
    return estimate_mean(runs[:, int(runs.mean(axis=0).argmax())])


def chart_levels(found: SoloCurves, goal: float) -> Chart:
    """Chart the curves averaged over agents and runs, by the part of the data."""
    rounds = tuple(found.rounds.tolist())
    means = {level: found.mean(level).mean(axis=1) for level in found.accuracy}
    ends = ", ".join(f"{100 * level:g} % ends at {m[-1]:.3f}" for level, m in means.items())
    return Chart(
        name="solo-levels",
        title="Alone with a part of their samples: accuracy averaged over the agents",
        x="round of training alone",
        y="accuracy, averaged over the agents",
        alt=f"By the part of its samples, the average {ends}; the goal is {goal:g}.",
        lines=tuple(
            Line(f"{100 * level:g} % of the samples", rounds, tuple(m.tolist()))
            for level, m in means.items()
        ),
        percent=True,
        goal=goal,
    )


@CLAIMS.measure("solo-half")
def solo_half_claim(setting: Setting) -> Measured:
    """Look at each agent by itself in the runs with half of the points or fewer."""
    place = set_up(setting, "solo-levels.toml", train_digits_alone)
    found = place.train_alone("training alone with less")
    return judge_half(found, place.data, setting.expected)


def judge_half(found: SoloCurves, data: Data, expected: Mapping[str, Any]) -> Measured:
    """Judge agent by agent whether the averaged curve stays below the goal."""
    goal, few = float(found.requirements[0]), find_low_levels(expected["too_little"], found)
    tops = {
        (level, name): estimate_peak(found.accuracy[level][:, :, i])
        for level in few
        for i, name in enumerate(found.clients)
    }
    close = [
        f"{name} with {100 * level:g} %" for (level, name), t in tops.items() if t.high >= goal
    ]
    average_below = all(
        estimate_peak(found.accuracy[level].mean(axis=2)).high < goal for level in few
    )
    return Measured(
        goal=goal,
        highest={f"{name}, {level:g}": top for (level, name), top in tops.items()},
        not_clearly_below=close,
        trials=len(found.accuracy[max(few)]),
        words={
            "data": data,
            "half": max(few),
            "tops": ", ".join(f"{name} {tops[max(few), name]:.3f}" for name in found.clients),
            "close": f"{join_with_and(close)} {pluralize(len(close), 'is', 'are')}",
            "average_below": average_below or not close,
        },
    )
