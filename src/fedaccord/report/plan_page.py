"""The page of a plan: what a coordinator shows to those who have to agree to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedaccord._checks import Matrix, Vector
from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.probabilities import spread
from fedaccord.planning.result import Outcome, Plan
from fedaccord.report import plan as tables
from fedaccord.report import style
from fedaccord.report.drawing import (
    NARROW,
    finish,
    new_axes,
    picture_of,
    set_axes,
    short,
    styled,
    write_beside,
)
from fedaccord.report.games import has_costs, list_check_facts, list_game_facts
from fedaccord.report.games_figures import (
    WIDTH,
    is_narrow,
    label_rows,
    legend_beside_names,
    narrow_size,
    picture_burdens,
)
from fedaccord.report.model import (
    Cell,
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Section,
    Table,
    Tone,
    keep_finite,
    list_run_facts,
)
from fedaccord.report.overlap import picture_overlap
from fedaccord.wording import (
    count,
    format_part,
    format_percent_tick,
    format_probability,
    format_samples,
    pluralize,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to this many agents have a sentence and a curve each; of more, those who give most.
SENTENCES = 36
CURVES = 8
CURVE = (WIDTH, 3.2)
CURVE_POINTS = 80
# Curves are drawn this far beyond what was tried or is needed.
BEYOND = 1.15
# The most equilibria that are told apart by their numbers.
NUMBERED = 12


def plan_page(plan: Plan, *, command: str = "", files: Sequence[tuple[str, str]] = ()) -> Page:
    """Make a page of a plan: the verdict, who gives what and why, and how sure all of it is.

    plan: what was planned.
    command: what was typed.
    files: facts about the files that were read.
    """
    sections = [
        _reach_section(plan),
        _shares_section(plan),
        _reasons_section(plan),
        _chances_section(plan),
        _certainty_section(plan),
        _cuts_section(plan),
        _tradeoffs_section(plan),
        _curves_section(plan),
        _doubts_section(plan),
        _making_section(plan),
    ]
    return Page(
        title=f"Who should give how much: a plan for {count(plan.size, 'agent')}",
        verdict=plan.verdict,
        tone=_tone(plan),
        sections=tuple(section for section in sections if section is not None),
        facts=(*files, *_facts(plan)),
        command=command,
    )


def _tone(plan: Plan) -> Tone:
    """All is well only where nothing speaks against the fit, and a cut would be felt."""
    if plan.outcome is not Outcome.PLANNED:
        return tables.TONES[plan.outcome]
    if plan.doubts or plan.measurement is None:
        return "unsure"
    return "good" if (tables.mean_cut(plan) or 0.0) < tables.LOOSE else "plain"


# Goals out of reach.


def _reach_section(plan: Plan) -> Section | None:
    if plan.outcome is not Outcome.UNREACHABLE:
        return None
    return Section(
        "Which goals are out of reach",
        (
            "If everybody gave as much as it can, each would reach so much; from and to are the "
            "ends of the 95 % interval. A goal above that is met by no plan: lower it, or find "
            "somebody who can give more.",
            tables.list_reach(plan).table("page"),
            Listing(tuple(f"{one.sentence}." for one in plan.unreachable[:SENTENCES])),
        ),
    )


# Who gives what, and why.


def _shares_section(plan: Plan) -> Section | None:
    if plan.outcome is Outcome.UNREACHABLE:
        return None
    given: dict[str, Vector] = {"alone": plan.bare.alone}
    for name, solution in plan.solutions.items():
        if solution.contributions is not None:
            given[name] = solution.contributions
    if plan.contributions is not None:
        given["plan"] = plan.contributions
    parts: list[Part] = [_intro(plan), picture_burdens(plan.game, given)]
    if plan.size > tables.ROWS:
        parts.append(
            f"The table lists the {tables.ROWS:,} who give most; --save writes the whole plan."
        )
    parts.append(tables.list_shares(plan).table("page"))
    parts.append(Listing(tuple(tables.describe_shares(plan))))
    return Section("Who gives how much", tuple(parts))


def _intro(plan: Plan) -> str:
    rounded = (
        "in whole samples: nobody could give one less and still have what it aims at"
        if plan.whole
        else "rounded up to whole samples"
    )
    alone = "Alone is what each would need if nobody else gave anything"
    if plan.measurement is None:
        return f"The plan is an equilibrium {rounded}. {alone}."
    short = plan.margins is not None and bool(
        (plan.margins < plan.z * plan.measurement.noise(plan.options["judged"]) - 1e-9).any()
    )
    less = ", or as far as its limit lets it" if short else ""
    return (
        f"Single runs scatter, so every agent aims above its goal, by {plan.z:.2f} times its "
        f"scatter{less}. The plan is an equilibrium of what they aim at, {rounded}. {alone} and it "
        "wanted no more than to reach its goal on average, as the optimal, the stable and the "
        "envy-free plan do."
    )


def _reasons_section(plan: Plan) -> Section | None:
    if plan.contributions is None:
        return None
    few = plan.size <= SENTENCES
    agents = range(plan.size) if few else tables.choose_agents(plan)
    parts: list[Part] = []
    if not few:
        parts.append("Those who give most; --json has the sentence of everybody.")
    parts.append(Listing(tuple(plan.explain(agent) for agent in agents)))
    return Section("Why each gives what it gives", tuple(parts))


# How sure it is.


def _chances_section(plan: Plan) -> Section | None:
    if plan.satisfied is None or plan.everyone is None or plan.goals is None:
        return None
    asked = format_probability(plan.options["probability"])
    said = (
        f"In one run all reach their goals with probability "
        f"{format_probability(plan.everyone.value)} (asked: {asked}). The resamples of "
        "the pilots are worlds that may be the true one; among the "
        f"middle 95 % of them it goes from {format_probability(plan.everyone.low or 0.0)} to "
        f"{format_probability(plan.everyone.high or 0.0)}."
    )
    parts: list[Part] = [said, picture_prospects(plan), tables.list_chances(plan).table("page")]
    if plan.ceiling is not None:
        parts.append(
            "If all gave as much as they can, the probability would be "
            f"{format_probability(plan.ceiling.value)}."
        )
    return Section("What each may expect of one run", tuple(parts))


def _cuts_section(plan: Plan) -> Section | None:
    if not plan.cuts or plan.contributions is None or plan.satisfied is None:
        return None
    giving = [
        i
        for i in tables.choose_agents(plan, most=tables.ROWS, few=tables.ROWS)
        if plan.contributions[i] > 0
    ]
    if not giving:
        return None
    shown = [i for i in tables.choose_agents(plan) if i in set(giving)][:CURVES]
    intro = (
        "The plan leaves room for chance, and who gives less may be lucky. So often an agent that "
        "alone gives only part of its share would reach its goal all the same; no interval is "
        "given, because the probability is over what the curves may be already."
    )
    table = tables.list_cuts(plan, giving).table("page")
    return Section(
        "What giving less would come to", (intro, picture_of(chart_cuts(plan, shown)), table)
    )


def _certainty_section(plan: Plan) -> Section | None:
    known = [one for one in plan.certainties if one.contributions is not None]
    if not known:
        return None
    line = Line(
        "all",
        tuple(one.probability for one in known),
        tuple(float(np.asarray(one.contributions).sum()) for one in known),
    )
    most, least = known[-1], known[0]
    chart = Chart(
        "certainty",
        "The price of certainty",
        f"probability that all {plan.words.agents} reach their goals",
        f"{plan.words.samples} asked for in all",
        f"From {plan.words.count_samples(line.y[0])} for {least.probability:g} to "
        f"{plan.words.count_samples(line.y[-1])} for {most.probability:g}.",
        (line,),
    )
    intro = (
        f"To be surer that all {plan.words.agents} reach their goals takes more "
        f"{plan.words.samples}. The plan is one row of this table."
    )
    table = tables.list_certainties(plan).table("page")
    return Section("The price of certainty", (intro, picture_of(chart), table))


# Which equilibrium.


def _tradeoffs_section(plan: Plan) -> Section | None:
    if not plan.tradeoffs:
        return None
    heading = "Which equilibrium"
    said = tables.describe_tradeoffs(plan, hint=False)
    if len(plan.tradeoffs) == 1:
        return Section(heading, (said,))
    intro = (
        "Several plans leave nobody able to give less. Where agents have much the same data, each "
        "can rely on the others, and a cut is hardly felt; with fewer and larger contributors it "
        "is felt at once, at the price of a heavier burden and perhaps of envy."
    )
    table = tables.list_tradeoffs(plan).table("page")
    picture = Picture(
        "tradeoffs",
        "Equilibria: what each costs, and how soon a cut is felt",
        _describe_tradeoffs_picture(plan),
        draw=lambda ax: plot_tradeoffs(plan, ax),
        data=table,
        narrow=NARROW,
    )
    return Section(heading, (intro, said, picture, table))


# What it rests on.


def _curves_section(plan: Plan) -> Section | None:
    measurement = plan.measurement
    if measurement is None:
        return None
    agents = tables.choose_agents(plan)[:CURVES]
    intro = (
        "What each agent's accuracy was in the pilots, and the curve through them. Samples of "
        "others are counted at what they are worth to the agent; the band holds 95 % of the "
        "curves that fit pilots drawn anew."
    )
    parts: list[Part] = [intro]
    if len(agents) < plan.size:
        parts.append(f"The {len(agents)} who matter most.")
    parts += [picture_curve(plan, measurement, agent, n + 1) for n, agent in enumerate(agents)]
    overlap = picture_overlap(plan.game)
    if overlap is not None:
        parts += ["What a sample of one is worth to another, as fitted:", overlap]
    return Section("The learning curves", tuple(parts))


def _doubts_section(plan: Plan) -> Section:
    parts: list[Part] = []
    if sentences := tables.list_doubts(plan):
        parts.append(Mark("There is reason to doubt the fit.", "unsure"))
        parts.append(Listing(sentences))
    elif plan.measurement is not None:
        parts.append("Nothing in the pilots speaks against the fit.")
    else:
        parts.append(Mark("Nothing was measured.", "unsure"))
    parts.append("The numbers are right if this is so:")
    parts.append(Listing(plan.assumptions))
    return Section("Doubts, and what is assumed", tuple(parts))


def _making_section(plan: Plan) -> Section:
    levels = ", ".join(format_part(level) for level in plan.options["levels"])
    if plan.measurement is None:
        said = (
            "The game was taken as it is; the cheapest, the cheapest stable and the cheapest "
            "envy-free plan were found over the reals, and the plan chosen among the equilibria "
            "was put into whole samples."
        )
        return Section("How the numbers were found", (said,))
    number = len(plan.measurement.resamples)
    fineness = (
        ()
        if plan.error is None
        else (
            f"Other {number:,} resamples would give a probability that is as much as "
            f"{max(2 * plan.error, 0.001):.3f} off, two standard errors.",
        )
    )
    return Section(
        "How the numbers were found",
        (
            f"For each agent a learning curve and the worth of the others' samples were fitted to "
            f"{count(len(plan.measurement.table), 'pilot')}; then to {number:,} sets of pilots "
            "drawn anew from the curves, with the scatter that the pilots show. Intervals go from "
            "2.5 to 97.5 % of what comes out over these.",
            "Every agent aims above its goal by the same multiple of its scatter, the least with "
            f"which one run satisfies all with probability "
            f"{format_probability(plan.options['probability'])}; among the equilibria at "
            "these aims the plan was chosen, put into whole samples, and "
            f"cuts to {levels} tried on it. Totals and prices compare plans over the reals.",
            *fineness,
        ),
    )


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    measurement = plan.measurement
    yield from (fact for fact in list_game_facts(plan.game) if fact[0] != "Seed")
    if measurement is not None:
        pilots = count(len(measurement.table), "pilot")
        yield "Pilots", f"{pilots}, {count(len(measurement.resamples), 'resample')}"
    yield "Seed", str(plan.options["seed"])
    yield "Asked for", f"probability {plan.options['probability']:g}, {plan.options['prefer']}"
    yield from list_check_facts(plan.found)
    yield from list_run_facts()


# Pictures.


def picture_prospects(plan: Plan) -> Picture:
    """Picture what accuracies to expect."""
    table = tables.list_chances(plan).table("page")
    told = (
        f"{plan.name(i)} {plan.runs.values[i]:.3f}, goal {plan.goals[i]:g}"
        for i in tables.choose_agents(plan)[:12]
        if plan.runs is not None and plan.goals is not None
    )
    return Picture(
        "prospects",
        "Accuracies to expect, and the goals",
        f"Expected accuracies: {'; '.join(told)}.",
        draw=lambda ax: plot_prospects(plan, ax),
        data=table,
        size=size_prospects(plan),
        narrow=narrow_size(size_prospects(plan)),
    )


def chart_cuts(plan: Plan, agents: Sequence[int]) -> Chart:
    """Chart what giving less would come to for some agents."""
    levels = sorted(plan.cuts)
    reached = np.zeros(plan.size) if plan.satisfied is None else plan.satisfied
    lines = tuple(
        Line(
            plan.name(i),
            tuple(100 * level for level in [*levels, 1.0]),
            (*(float(plan.cuts[level][i]) for level in levels), float(reached[i])),
        )
        for i in agents
    )
    least = levels[0]
    told = "; ".join(
        f"{plan.name(i)} {format_probability(float(plan.cuts[least][i]))}" for i in agents
    )
    return Chart(
        "cuts",
        "Probability to reach the goal in spite of a cut",
        "per cent of its share that an agent gives; the others give all of theirs",
        "probability that it still reaches its goal",
        f"With {format_part(least)} of its share: {told}.",
        lines,
        percent=True,
    )


def _describe_tradeoffs_picture(plan: Plan) -> str:
    """Say what equilibria there are, for those who do not see them."""
    chosen = next(t for t in plan.tradeoffs if t.chosen)
    cut = "" if chosen.cut is None else format_probability(chosen.cut)
    unfelt = f", a cut goes unfelt with probability {cut}" if cut else ""
    low, high, total = (
        format_samples(t.total) for t in (plan.tradeoffs[0], plan.tradeoffs[-1], chosen)
    )
    return (
        f"{len(plan.tradeoffs)} equilibria with totals from {low} to {high}; the plan has "
        f"{total}{unfelt}."
    )


def picture_curve(plan: Plan, measurement: Measurement, agent: int, number: int) -> Picture:
    """Picture an agent's learning curve, with a number for the names of its files."""
    at, bands = compute_band(measurement, agent, find_curve_end(plan, agent))
    table = measurement.table
    tried = table.contributions @ measurement.benefits[agent]
    name = plan.name(agent)
    rows: list[tuple[Cell, ...]] = [
        ("pilot", float(x), keep_finite(float(y)), None, None)
        for x, y in zip(tried, table.accuracies[:, agent], strict=True)
    ]
    rows += [("curve", float(x), *row) for x, row in zip(at, bands.T.tolist(), strict=True)]
    goal, ends = float(measurement.goals[agent]), bands[:, -1]
    return Picture(
        f"curve-{number}",
        f"The learning curve of {name}",
        f"{count(len(table), 'pilot')}; the goal is {goal:g}; with {format_samples(float(at[-1]))} "
        f"samples' worth the curve is at {ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f}).",
        draw=lambda ax: plot_learning(plan, agent, ax=ax),
        data=Table(
            f"Curve and pilots of {name}",
            ("what", "samples' worth", "accuracy", "from", "to"),
            tuple(rows),
        ),
        size=CURVE,
        narrow=(NARROW[0], CURVE[1]),
    )


# Which equilibrium.


def plot_tradeoffs(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw the equilibria that a plan could be: what each costs, against how soon a cut is felt.

    plan: with equilibria to choose from.
    ax: where to draw.
    """
    ax = new_axes((WIDTH, 3.6)) if ax is None else ax
    totals, felt = tradeoff_points(plan)
    with styled():
        for chosen, marker, size, colour, label in (
            (False, "o", 7, style.ALONE, "another equilibrium"),
            (True, "D", 9, style.STABLE, "the plan"),
        ):
            some = [n for n, t in enumerate(plan.tradeoffs) if t.chosen is chosen]
            if some:
                spots = ax.plot(totals[some], felt[some], marker, color=colour, label=label)
                spots[0].set(markersize=size, zorder=3 + chosen)
        for n, (x, y) in enumerate(zip(totals.tolist(), felt.tolist(), strict=True)):
            if len(totals) <= NUMBERED:
                givers = len(plan.tradeoffs[n].contributors)
                said = f"{n + 1}: {givers} {pluralize(givers, 'gives', 'give')}"
                write_beside(ax, x, y, said, by=(9, 4), va="baseline")
        low, high = float(totals.min()), float(totals.max())
        room = 0.12 * (high - low) or 0.05 * high or 1.0
        ax.set_xlim(low - room, high + 2.2 * room)
        ax.set_ylim(-0.04, 1.04)
        level = format_percent_tick(min(plan.options["levels"]))
        top = (
            "mean part of what contributors need that they give themselves"
            if plan.measurement is None
            else f"mean probability that a contributor who cuts to {level} still reaches its goal"
        )
        x = "total cost" if has_costs(plan.game) else "samples in all"
        set_axes(ax, x=x, top=top, percent="y", ticks=5 if is_narrow(ax) else 8, grid="both")
    return finish(ax)


def tradeoff_points(plan: Plan) -> tuple[Vector, Vector]:
    """Return what each equilibrium costs, and how a cut is felt: by chance, or by the own part."""
    measured = plan.measurement is not None
    felt = [t.cut if measured else t.own_part for t in plan.tradeoffs]
    heights = np.array([0.0 if value is None else value for value in felt])
    return np.array([t.total for t in plan.tradeoffs]), heights


# What accuracies to expect.


def size_prospects(plan: Plan) -> tuple[float, float]:
    """Return the width and height in inches that the expected accuracies need."""
    return WIDTH, 1.5 + 0.34 * len(tables.choose_agents(plan))


def plot_prospects(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw the accuracy that each agent may expect of one run under the plan, and its goal.

    plan: made of pilots.
    ax: where to draw.
    """
    ax = new_axes(size_prospects(plan)) if ax is None else ax
    if plan.runs is None or plan.accuracy is None or plan.goals is None:
        raise InputError("this plan knows of no accuracies: make one from pilots")
    shown = tables.choose_agents(plan)
    places = np.arange(len(shown))
    runs, means = plan.runs, plan.accuracy
    with styled():
        for estimates, width, colour, label in (
            (runs, 3, style.SHADES[2], "95 % of single runs"),
            (means, 7, style.SHADES[3], "95 % interval of the mean"),
        ):
            if estimates.low is not None and estimates.high is not None:
                ends = estimates.low[shown], estimates.high[shown]
                ax.hlines(places, *ends, color=colour, linewidth=width, label=label)
        ax.plot(means.values[shown], places, "o", color=style.STABLE, label="expected")
        goals = plan.goals[shown]
        ax.vlines(goals, places - 0.3, places + 0.3, color=style.BAD, linewidth=2.2, label="goal")
        label_rows(ax, (plan.name(i) for i in shown))
        ax.xaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        ax.xaxis.set_major_locator(MaxNLocator(4 if is_narrow(ax) else 7))
        ax.set_xlabel("accuracy on the own validation points")
        ax.grid(axis="x")
        ax.spines["bottom"].set_visible(False)
        legend_beside_names(ax)
    return finish(ax)


# The curves behind it.


def compute_band(measurement: Measurement, agent: int, most: float) -> tuple[Vector, Matrix]:
    """Return effective samples up to the most, and rows of an agent's curve and its 95 % band."""
    at = np.linspace(0, most, CURVE_POINTS)
    fitted = predict_accuracies(measurement.curves[agent][None], at)
    drawn = predict_accuracies(measurement.resamples.curves[:, agent][:, None], at)
    band = spread(fitted, drawn)
    return at, np.array([fitted, band.low, band.high])


def find_curve_end(plan: Plan, agent: int) -> float:
    """Return how many effective samples a figure of an agent's curve should reach."""
    measurement = plan.measurement
    if measurement is None:
        return 1.0
    tried = float((measurement.table.contributions @ measurement.benefits[agent]).max())
    needed = float(plan.game.requirements[agent])
    return BEYOND * max(tried, needed, 1.0)


def plot_learning(plan: Plan, agent: int, *, ax: Axes | None = None) -> Axes:
    """Draw an agent's learning curve with its band, the pilots, the goal, and where the plan is.

    plan: made of pilots.
    agent: whose curve.
    ax: where to draw.
    """
    ax = new_axes(CURVE) if ax is None else ax
    measurement = plan.measurement
    if measurement is None:
        raise InputError("this plan was made without pilots, so that there is no curve to draw")
    at, (fitted, low, high) = compute_band(measurement, agent, find_curve_end(plan, agent))
    table = measurement.table
    goal = float(measurement.goals[agent])
    with styled():
        ax.fill_between(at, low, high, color=style.STABLE, alpha=0.18, linewidth=0)
        ax.plot(at, fitted, color=style.STABLE, label="curve, with its 95 % band")
        tried, known = table.contributions @ measurement.benefits[agent], table.accuracies[:, agent]
        ax.plot(tried, known, "o", color=style.OPTIMAL, markersize=4, alpha=0.8, label="pilots")
        ax.axhline(goal, color=style.INK, linewidth=1, linestyle=(0, (1, 2)), label="goal")
        if plan.contributions is not None and plan.accuracy is not None:
            place = plan.game.apply(plan.contributions)[agent], plan.accuracy.values[agent]
            ax.plot(*place, "D", color=style.BAD, markersize=8, label="the plan", zorder=4)
        least = float(np.nanmin([*known, goal, *low[CURVE_POINTS // 8 :]]))
        ax.set_ylim(max(least - 0.05, 0.0), min(float(np.nanmax([*high, *known])) + 0.04, 1.02))
        ax.set_xlim(0, at[-1])
        ax.yaxis.set_major_locator(MaxNLocator(6))
        who = short(plan.name(agent))
        x, top = f"samples, in samples of {who}", f"accuracy of {who}"
        set_axes(ax, x=x, top=top, percent="y", ticks=4 if is_narrow(ax) else 8)
    return finish(ax)
