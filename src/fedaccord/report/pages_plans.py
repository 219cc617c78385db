"""The page of a plan: what a coordinator shows to those who have to agree to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fedaccord._checks import Vector
from fedaccord.planning.result import Outcome, Plan
from fedaccord.report.drawing import NARROW, picture_of
from fedaccord.report.facts_games import audit_facts, game_facts, run_facts
from fedaccord.report.figures_plans import plot_tradeoffs
from fedaccord.report.page import Cell, Listing, Mark, Page, Part, Picture, Section, Table, Tone
from fedaccord.report.pictures_games import burdens_picture, overlap_picture
from fedaccord.report.pictures_plans import (
    LOOSE,
    ROWS,
    chances_table,
    curve_picture,
    cut_mark,
    cuts_chart,
    interval_cells,
    listed_agents,
    prospects_picture,
    shares_of_one,
    shares_table,
    tradeoffs_table,
    tradeoffs_told,
)
from fedaccord.report.plans import (
    doubtful,
    mean_cut,
    shares_sentences,
    shown_agents,
    tradeoffs_sentence,
)
from fedaccord.wording import count, format_part, format_probability

TONES: Mapping[Outcome, Tone] = {
    Outcome.PLANNED: "good",
    Outcome.LESS_SURE: "unsure",
    Outcome.UNREACHABLE: "bad",
    Outcome.UNSTABLE: "bad",
}
# Up to this many agents have a sentence and a curve each; of more, those who give most.
SENTENCES = 36
CURVES = 8


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
        return TONES[plan.outcome]
    if plan.doubts or plan.measurement is None:
        return "unsure"
    return "good" if (mean_cut(plan) or 0.0) < LOOSE else "plain"


# Goals out of reach.


def _reach_section(plan: Plan) -> Section | None:
    if plan.outcome is not Outcome.UNREACHABLE:
        return None
    missed = {one.agent for one in plan.unreachable}
    rows: list[tuple[Cell, ...]] = []
    for agent in [*sorted(missed), *(i for i in range(plan.size) if i not in missed)][:ROWS]:
        near = None if plan.nearest is None else plan.nearest[agent]
        mark = Mark("out of reach", "bad") if agent in missed else Mark("within reach", "good")
        goal = None if plan.goals is None else float(plan.goals[agent])
        most = None if near is None else near.value
        rows.append((plan.name(agent), goal, mark, *shares_of_one(most, *interval_cells(near))))
    heads = ("agent", "goal", "is", "most it can reach", "from", "to")
    return Section(
        "Which goals are out of reach",
        (
            "If everybody gave as much as it can, each would reach so much; from and to are the "
            "ends of the 95 % interval. A goal above that is met by no plan: lower it, or find "
            "somebody who can give more.",
            Table("Goals, and what can be reached", heads, tuple(rows)),
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
    parts: list[Part] = [_intro(plan), burdens_picture(plan.game, given)]
    if plan.size > ROWS:
        parts.append(f"The table lists the {ROWS:,} who give most; --save writes the whole plan.")
    parts.append(shares_table(plan))
    parts.append(Listing(tuple(shares_sentences(plan))))
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
        (plan.margins < plan.z * plan.measurement.noise - 1e-9).any()
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
    agents = range(plan.size) if few else shown_agents(plan)
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
    parts: list[Part] = [said, prospects_picture(plan), chances_table(plan)]
    if plan.ceiling is not None:
        parts.append(
            "If all gave as much as they can, the probability would be "
            f"{format_probability(plan.ceiling.value)}."
        )
    return Section("What each may expect of one run", tuple(parts))


def _cuts_section(plan: Plan) -> Section | None:
    if not plan.cuts or plan.contributions is None or plan.satisfied is None:
        return None
    giving = [i for i in listed_agents(plan) if plan.contributions[i] > 0]
    if not giving:
        return None
    shown = [i for i in shown_agents(plan) if i in set(giving)][:CURVES]
    intro = (
        "The plan leaves room for chance, and who gives less may be lucky. So often an agent that "
        "alone gives only part of its share would reach its goal all the same; no interval is "
        "given, because the probability is over what the curves may be already."
    )
    levels = list(plan.cuts)
    rows: list[tuple[Cell, ...]] = []
    for i in giving:
        cuts = [cut_mark(float(plan.cuts[level][i])) for level in levels]
        reached = shares_of_one(float(plan.satisfied[i]))
        rows.append((plan.name(i), float(plan.contributions[i]), *reached, *cuts))
    heads = ("agent", "gives", "P(goal)", *(f"with {format_part(level)}" for level in levels))
    table = Table("P(goal) of an agent that alone gives part of its share", heads, tuple(rows))
    return Section(
        "What giving less would come to", (intro, picture_of(cuts_chart(plan, shown)), table)
    )


# Which equilibrium.


def _tradeoffs_section(plan: Plan) -> Section | None:
    if not plan.tradeoffs:
        return None
    heading = "Which equilibrium"
    said = tradeoffs_sentence(plan, hint=False)
    if len(plan.tradeoffs) == 1:
        return Section(heading, (said,))
    intro = (
        "Several plans leave nobody able to give less. Where agents have much the same data, each "
        "can rely on the others, and a cut is hardly felt; with fewer and larger contributors it "
        "is felt at once, at the price of a heavier burden and perhaps of envy."
    )
    table = tradeoffs_table(plan)
    picture = Picture(
        "tradeoffs",
        "Equilibria: what each costs, and how soon a cut is felt",
        tradeoffs_told(plan),
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
    agents = shown_agents(plan)[:CURVES]
    intro = (
        "What each agent's accuracy was in the pilots, and the curve through them. Samples of "
        "others are counted at what they are worth to the agent; the band holds 95 % of the "
        "curves that fit pilots drawn anew."
    )
    parts: list[Part] = [intro]
    if len(agents) < plan.size:
        parts.append(f"The {len(agents)} who matter most.")
    parts += [curve_picture(plan, measurement, agent, n + 1) for n, agent in enumerate(agents)]
    overlap = overlap_picture(plan.game)
    if overlap is not None:
        parts += ["What a sample of one is worth to another, as fitted:", overlap]
    return Section("The learning curves", tuple(parts))


def _doubts_section(plan: Plan) -> Section:
    parts: list[Part] = []
    if sentences := doubtful(plan):
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
            *_fineness(plan, number),
        ),
    )


def _fineness(plan: Plan, number: int) -> Iterator[str]:
    if plan.error is not None:
        yield (
            f"Other {number:,} resamples would give a probability that is as much as "
            f"{max(2 * plan.error, 0.001):.3f} off, two standard errors."
        )


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    measurement = plan.measurement
    yield from (fact for fact in game_facts(plan.game) if fact[0] != "Seed")
    if measurement is not None:
        pilots = count(len(measurement.table), "pilot")
        yield "Pilots", f"{pilots}, {count(len(measurement.resamples), 'resample')}"
    yield "Seed", str(plan.options["seed"])
    yield "Asked for", f"probability {plan.options['probability']:g}, {plan.options['prefer']}"
    yield from audit_facts(plan.found)
    yield from run_facts()
