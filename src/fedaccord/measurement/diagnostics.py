"""What speaks against trusting a measured game, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fedaccord._checks import Vector
from fedaccord._io.numbers import Suspicion
from fedaccord.games.measured import find_needs, nearest_goals
from fedaccord.measurement.curve_fit import CURVE
from fedaccord.wording import capitalize_first, count, format_goal, format_part, pluralize

if TYPE_CHECKING:
    from fedaccord.measurement.curve_fit import AgentFit
    from fedaccord.measurement.fit import Measurement

Kind: TypeAlias = Literal[
    "suspect-rows",
    "failed-pilots",
    "unknown-validation",
    "too-few-pilots",
    "negative-transfer",
    "saturation-below-goal",
    "extrapolation",
    "poor-fit",
    "flat",
    "unlike-others",
    "unsettled-total",
    "uncertain-division",
]

# What a doubt of each kind is about, in the words of people.
SUBJECTS: dict[Kind, str] = {
    "suspect-rows": "suspect rows",
    "failed-pilots": "failed pilots",
    "unknown-validation": "how pilots were measured",
    "too-few-pilots": "too few different pilots",
    "negative-transfer": "harm by others' samples",
    "saturation-below-goal": "whether the goal can be reached",
    "extrapolation": "a need beyond all pilots",
    "poor-fit": "the learning curve",
    "flat": "what others' samples are worth",
    "unlike-others": "a curve unlike the others'",
    "unsettled-total": "the total",
    "uncertain-division": "the division",
}

# How often somebody in a sound table of pilots may be accused of doing harm, by chance; and how
# often an agent of not being described by its curve.
HARM_BY_CHANCE, POOR_BY_CHANCE = 0.05, 0.001
# A goal is in doubt when so many of the resamples cannot reach it.
OFTEN_UNREACHABLE = 0.05
# A benefit was not found where the ends of its 95 % interval are further apart than this, in own
# samples, and by more than this factor.
WIDE, FACTOR = 1.0, 10.0
# Without pilots made again, scatter beyond this multiple of what the validation points explain is
# put down to the curve; so is none below this much accuracy.
EXCESS, NOTICEABLE = 2.0, 0.03
# Fewer pilots made again than this do not tell how far runs scatter.
AGAIN = 3
# An accuracy is suspect this many robust standard deviations from its curve, if it makes up more
# than this part of all squares; and the most agents that a doubt names.
FAR, MOST, NAMES = 5.0, 0.5, 3


@dataclass(frozen=True)
class Doubt:
    """A reason not to trust a fit.

    agent: the place of the agent it is about; None where it is about all.
    kind: what is doubted, in a word or three.
    sentence: the reason and the remedy, for people.
    """

    agent: int | None
    kind: Kind
    sentence: str


def find_doubts(measurement: Measurement) -> tuple[Doubt, ...]:
    """List what speaks against trusting a measurement.

    measurement: the fit to judge.
    """
    return (
        *_doubt_rows(measurement),
        *_doubt_failed(measurement),
        *_doubt_validation(measurement),
        *_doubt_too_few(measurement),
        *_doubt_negative(measurement),
        *_doubt_saturation(measurement),
        *_doubt_extrapolation(measurement),
        *_doubt_poor_fit(measurement),
        *_doubt_flat(measurement),
        *_doubt_pooling(measurement),
    )


def _doubt_rows(measurement: Measurement) -> Iterator[Doubt]:
    for note in measurement.table.notes:
        if isinstance(note, Suspicion):
            yield Doubt(None, "suspect-rows", f"{capitalize_first(note)}.")


def _doubt_failed(measurement: Measurement) -> Iterator[Doubt]:
    table = measurement.table
    failed = round((1 - table.finishing) * len(table))
    if failed:
        yield Doubt(
            None,
            "failed-pilots",
            f"{failed:,} of {len(table):,} pilots failed and "
            f"{pluralize(failed, 'has no accuracy', 'have no accuracies')}. The probabilities "
            "assume that later runs fail equally often, and that no agent reaches its goal in a "
            "failed run. If training diverged, try a smaller learning rate.",
        )


def _doubt_validation(measurement: Measurement) -> Iterator[Doubt]:
    """Doubt what is made of accuracies if nobody knows by how much measuring them scatters."""
    unknown = np.flatnonzero(np.isnan(measurement.table.validation)).tolist()
    if unknown:
        whose = (
            "" if len(unknown) == measurement.table.size else f" of {_name(measurement, unknown)}"
        )
        yield Doubt(
            None,
            "unknown-validation",
            f"The pilots do not say on how many validation samples the accuracies{whose} were "
            "measured, so nothing separates the scatter of measuring from that of training. All "
            "of it counts as scatter of training, and a plan may ask for too much. Fill in the "
            "column validation.",
        )


def _name(measurement: Measurement, agents: list[int], last: str = "and") -> str:
    """Return the names of some agents, or of the first few and how many others there are."""
    names = [measurement.agents[agent] for agent in agents[:NAMES]]
    if more := len(agents) - len(names):
        names.append(count(more, "other agent"))
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _doubt_too_few(measurement: Measurement) -> Iterator[Doubt]:
    size = measurement.table.size
    unknowns = CURVE + size - 1
    different = np.array(
        [len(np.unique(fit.model.contributions, axis=0)) for fit in measurement.fits]
    )
    short = different < unknowns
    remedy = f"run about {2 * size + 5}, each with different contributions"
    if short.all() and np.ptp(different) == 0:
        yield Doubt(
            None,
            "too-few-pilots",
            f"The pilots have {count(int(different[0]), 'set')} of contributions, and each "
            f"agent's curve has {unknowns} unknowns: {remedy}.",
        )
        return
    for agent in np.flatnonzero(short).tolist():
        yield Doubt(
            agent,
            "too-few-pilots",
            f"{measurement.agents[agent]} was measured with "
            f"{count(int(different[agent]), 'set')} of contributions, and its curve has "
            f"{unknowns} unknowns: {remedy}.",
        )


def _doubt_negative(measurement: Measurement) -> Iterator[Doubt]:
    from scipy.special import stdtrit

    size = measurement.table.size
    for agent, fit in enumerate(measurement.fits):
        if size == 1:
            return
        share = HARM_BY_CHANCE / (size * (size - 1))
        bound = float(stdtrit(max(fit.freedom, 1.0), share))
        for other in fit.model.others.tolist():
            worth, error = estimate_unbounded_worth(fit, other)
            if worth < bound * error:
                yield Doubt(
                    agent,
                    "negative-transfer",
                    f"More samples of {measurement.agents[other]} made "
                    f"{measurement.agents[agent]} less accurate: each of them cancels the "
                    f"gain from {-worth:.2g} of {measurement.agents[agent]}'s own samples "
                    f"(standard error {error:.1g}). The plan counts them as worth nothing. Plan "
                    f"without {measurement.agents[other]}, or train so that its samples do no "
                    "harm.",
                )


def estimate_unbounded_worth(fit: AgentFit, other: int) -> tuple[float, float]:
    """Return what a sample of another would be worth if that could be less than nothing.

    One step of Newton's from the fit, with that benefit free of what was thought beforehand; and
    its standard error.

    fit: of the agent.
    other: whose samples.
    """
    column = CURVE + int(np.flatnonzero(fit.model.others == other)[0])
    fitted, slopes = fit.model.slopes(fit.found[None])
    scaled = slopes[0] / fit.scatter[:, None]
    worth = float(np.exp(fit.found[column]))
    # By the benefit itself in place of its logarithm.
    scaled[:, column] /= worth
    gaps = (fitted[0] - fit.errors) / fit.scatter
    rest = np.delete(np.arange(len(fit.found)), column)
    root = fit.prior.root[rest]
    prior = np.linalg.inv(root @ root.T)
    curvature = scaled.T @ scaled
    curvature[np.ix_(rest, rest)] += prior
    gradient = scaled.T @ gaps
    gradient[rest] += prior @ (fit.found - fit.prior.centre)[rest]
    inverse = np.linalg.pinv(curvature, hermitian=True)
    return worth - float(inverse[column] @ gradient), float(np.sqrt(inverse[column, column]))


def _doubt_saturation(measurement: Measurement) -> Iterator[Doubt]:
    sure = {found.agent: found for found in measurement.unreachable}
    drawn, table = measurement.resamples, measurement.table
    nearest = nearest_goals(drawn.benefits, drawn.curves, table.limits)
    # An accuracy that only endless data would reach is not reached.
    short = (nearest < table.goals) | (1 - drawn.curves[..., 0] <= table.goals)
    shares = short.mean(axis=0)
    for agent, name in enumerate(measurement.agents):
        if agent in sure:
            yield Doubt(agent, "saturation-below-goal", f"{sure[agent].sentence}.")
        elif shares[agent] >= OFTEN_UNREACHABLE:
            most = "all that all agents can give" if _is_limited(measurement, agent) else "any data"
            yield Doubt(
                agent,
                "saturation-below-goal",
                f"In {format_part(shares[agent])} of the curves that fit the pilots, {name} misses "
                f"its goal of {format_goal(table.goals[agent])} with {most}: run pilots with more "
                "data, or lower the goal.",
            )


def _is_limited(measurement: Measurement, agent: int) -> bool:
    helpers = measurement.benefits[agent] > 0
    return bool(np.isfinite(measurement.table.limits[helpers]).all())


def _doubt_extrapolation(measurement: Measurement) -> Iterator[Doubt]:
    needs = find_needs(measurement.curves, measurement.table.goals)
    for agent, fit in enumerate(measurement.fits):
        name, need = measurement.agents[agent], needs[agent]
        least = (fit.model.contributions @ measurement.benefits[agent]).min()
        if need < least:
            yield Doubt(
                agent,
                "extrapolation",
                f"According to its curve, {name} needs {need:,.0f} of its own samples, or samples "
                "of other agents that are worth as much, to reach its goal of "
                f"{format_goal(measurement.table.goals[agent])} on average. Every pilot had at "
                f"least {least:,.0f}: run pilots with less data.",
            )
    yield from doubt_beyond_pilots(measurement, needs)


def doubt_beyond_pilots(
    measurement: Measurement, needs: Vector, *, targets: Vector | None = None
) -> Iterator[Doubt]:
    """Doubt needs that are beyond what any pilot had.

    measurement: the fit.
    needs: effective samples, agent by agent.
    targets: the accuracies that they are needed for, where these are not the goals.
    """
    goals = measurement.table.goals
    for agent, fit in enumerate(measurement.fits):
        need = needs[agent]
        most = (fit.model.contributions @ measurement.benefits[agent]).max()
        if np.isfinite(need) and need > most:
            toward = f"its goal of {format_goal(goals[agent])} on average"
            if targets is not None and targets[agent] > goals[agent]:
                toward = f"its target of {targets[agent]:.3f}, its goal plus a safety margin"
            yield Doubt(
                agent,
                "extrapolation",
                f"According to its curve, {measurement.agents[agent]} needs {need:,.0f} of its own "
                f"samples, or samples of other agents that are worth as much, to reach {toward}. "
                f"No pilot had more than {most:,.0f}, so this is a guess: run pilots with more "
                "data.",
            )


def _doubt_poor_fit(measurement: Measurement) -> Iterator[Doubt]:
    for agent, fit in enumerate(measurement.fits):
        if (pilot := _find_slip(fit)) is not None:
            yield _doubt_accuracy(measurement, agent, pilot)
            continue
        name, validation = measurement.agents[agent], measurement.table.validation[agent]
        standard = ((fit.errors - fit.fitted) / fit.scatter) ** 2
        squares = float(standard.sum())
        pure, freedom = _compare_repeats(fit)
        left = len(fit.errors) - fit.parameters - freedom
        if freedom >= AGAIN:
            if left >= 1 and _is_too_large((squares - pure) / left, pure / freedom, left, freedom):
                yield Doubt(
                    agent,
                    "poor-fit",
                    f"The accuracies of {name} are further from its curve than runs with the same "
                    "contributions are from each other, so the curve does not fit. Do not rely on "
                    "needs far from any pilot.",
                )
        elif validation > 0:
            noise = float(measurement.noise("measured")[agent])
            times = noise / float(measurement.measurement_noise[agent])
            if times > EXCESS and noise > NOTICEABLE:
                yield Doubt(
                    agent,
                    "poor-fit",
                    f"The accuracies of {name} scatter by {noise:.3f} around its curve, "
                    f"{times:.1f} times what {validation:,.0f} validation samples explain: either "
                    "runs differ, or the curve does not fit. Repeat some pilots to find out.",
                )


def _find_slip(fit: AgentFit) -> int | None:
    """Return the one pilot of an agent that is far from its curve, if there is one."""
    gaps = np.abs(fit.errors - fit.fitted)
    far = int(np.argmax(gaps))
    usual = 1.4826 * float(np.median(gaps))
    alone = gaps[far] ** 2 > MOST * float((gaps**2).sum())
    return far if alone and gaps[far] > max(FAR * usual, NOTICEABLE) else None


def _doubt_accuracy(measurement: Measurement, agent: int, place: int) -> Doubt:
    """Doubt a single accuracy of an agent, by its place among those of the agent."""
    fit, table = measurement.fits[agent], measurement.table
    pilot = int(fit.pilots[place])
    value = table.accuracies[pilot, agent]
    return Doubt(
        None,
        "suspect-rows",
        f"The accuracy of {measurement.agents[agent]} in {table.locate(pilot, agent)} is "
        f"{value:g}, far from its curve ({1 - fit.fitted[place]:.2f} there). Check it: if it is a "
        "slip of typing, correct it; if not, repeat the pilot.",
    )


def _compare_repeats(fit: AgentFit) -> tuple[float, int]:
    """Return the squares of accuracies round the means of equal pilots, and how many are free."""
    _, group = np.unique(fit.model.contributions, axis=0, return_inverse=True)
    group = group.ravel()
    counts = np.bincount(group)
    means = np.bincount(group, fit.errors) / counts
    gaps = (fit.errors - means[group]) / fit.scatter
    return float((gaps**2).sum()), int(len(group) - len(counts))


def _is_too_large(lack: float, pure: float, left: float, freedom: float) -> bool:
    from scipy.special import fdtrc

    if pure <= 0:
        # Pilots made again that agree to the last digit are copies, and tell nothing.
        return False
    return bool(fdtrc(left, freedom, max(lack, 0.0) / pure) < POOR_BY_CHANCE)


def _doubt_flat(measurement: Measurement) -> Iterator[Doubt]:
    low, high = np.quantile(measurement.resamples.benefits, [0.025, 0.975], axis=0)
    for agent, fit in enumerate(measurement.fits):
        name = measurement.agents[agent]
        if measurement.table.limits[agent] == 0:
            # It has no samples, so that nobody need know what they are worth.
            continue
        if not fit.model.contributions[:, agent].any():
            yield Doubt(
                agent,
                "flat",
                f"{name} gave nothing in any pilot in which it was measured, so the pilots do not "
                "show what others' samples are worth next to its own. Run pilots in which it "
                "gives some.",
            )
            continue
        width: Vector = high[agent] - low[agent]
        unknown = (width > WIDE) & (high[agent] > FACTOR * low[agent])
        # Nobody need know the worth of samples that an agent does not have.
        unknown &= measurement.table.limits > 0
        open_ = [int(j) for j in np.argsort(-width) if unknown[j]]
        if open_:
            other = open_[0]
            interval = (
                f"{low[agent, other]:.2g} to {high[agent, other]:.2g} of {name}'s own samples"
            )
            first, remedy = "", f"Run pilots in which {measurement.agents[other]}"
            if open_[1:]:
                first = f"for {measurement.agents[other]}, "
                remedy = "For each of them, run pilots in which it"
            yield Doubt(
                agent,
                "flat",
                f"The pilots do not show what a sample of {_name(measurement, open_, 'or')} is "
                f"worth to {name} ({first}{interval}). {remedy} gives much and the others little.",
            )


def _doubt_pooling(measurement: Measurement) -> Iterator[Doubt]:
    apart = np.flatnonzero(~np.array(measurement.pooling.pooled)).tolist()
    for agent in apart:
        name = measurement.agents[agent]
        yield Doubt(
            agent,
            "unlike-others",
            f"{name} learns unlike the other agents, so its curve rests on its own pilots alone. "
            "Check its data and goal, or run more pilots.",
        )
