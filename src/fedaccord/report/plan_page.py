"""The page of a plan: what a coordinator shows to the people who have to agree to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fedaccord.charts import Chart
from fedaccord.planning.result import Outcome, Plan
from fedaccord.planning.sentences import (
    describe_interval,
    find_carried,
    find_lowered,
    list_verdict,
    write_everyone,
    write_requested,
    write_sheet,
)
from fedaccord.report.drawing import picture_of
from fedaccord.report.games import list_check_facts, list_game_facts
from fedaccord.report.model import (
    Card,
    Fold,
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Section,
    Table,
    Tone,
    list_run_facts,
    tabulate_questions,
)
from fedaccord.report.overlap import picture_overlap
from fedaccord.report.plan import DOUBTS, TONES, list_doubts
from fedaccord.report.plan_alternatives import (
    describe_tradeoffs,
    explain_no_plan,
    list_tradeoffs,
    mean_cut,
)
from fedaccord.report.plan_contributions import (
    COLUMNS,
    FIRM,
    LOOSE,
    ROWS,
    choose_agents,
    describe_bare,
    describe_contributions,
    describe_falls,
    list_bare,
    list_certainties,
    list_chances,
    list_contributions,
    list_cuts,
)
from fedaccord.report.plan_figures import (
    LOW,
    chart_certainty,
    chart_cuts,
    picture_contributions,
    picture_curve,
    picture_prospects,
    picture_tradeoffs,
    plot_learning,
    plot_prospects,
    plot_tradeoffs,
)
from fedaccord.wording import (
    ALONE,
    ALONE_FOR_GOAL,
    ALONE_FOR_TARGET,
    count,
    format_beside,
    format_part,
    join_with_and,
)

__all__ = ["plan_page", "plot_learning", "plot_prospects", "plot_tradeoffs"]

# Up to this many agents have a box and a curve each; of more, the agents that give most.
SHEETS = 36
CURVES = 8


def plan_page(plan: Plan, *, command: str = "", files: Sequence[tuple[str, str]] = ()) -> Page:
    """Make a page of a plan: the verdict, who gives what and why, and how sure all of it is.

    plan: what was planned.
    command: what was typed.
    files: facts about the files that were read.
    """
    sections = [
        _reach_section(plan),
        _contributions_section(plan),
        _certainty_section(plan),
        _less_section(plan),
        _chances_section(plan),
        _tradeoffs_section(plan),
        _sheets_section(plan),
        _legend_section(plan),
        _bare_section(plan),
        _curves_section(plan),
        _assumptions_section(plan),
        _method_section(plan),
    ]
    said = list_verdict(plan)
    # Who carries whom belongs to the verdict.
    first = 3 if find_carried(plan) else 2
    return Page(
        title=f"How much each agent should give: a plan for {count(plan.size, 'agent')}",
        verdict=" ".join(said[:first]),
        tone=_choose_tone(plan),
        sections=tuple(section for section in sections if section is not None),
        facts=(*files, *_list_facts(plan)),
        command=command,
        head=(
            *_warn(plan),
            *_list_rest(said[first:]),
            *_list_doubts(plan),
            tabulate_questions(answer_questions(plan)),
        ),
    )


def _list_rest(sentences: list[str]) -> Iterator[Part]:
    """Return what follows the two sentences of the verdict."""
    if sentences:
        yield " ".join(sentences)


def _choose_tone(plan: Plan) -> Tone:
    """All is well only where nothing speaks against the fit, and a defector would lose."""
    if plan.outcome is not Outcome.PLANNED:
        return TONES[plan.outcome]
    if list_doubts(plan) or plan.measurement is None or find_carried(plan):
        return "unsure"
    return "good" if (mean_cut(plan) or 0.0) < LOOSE else "plain"


def _warn(plan: Plan) -> Iterator[Part]:
    """Say that a plan misses the requested probability, if it does."""
    if plan.outcome is Outcome.LESS_SURE:
        yield Mark(
            f"This plan misses the requested probability: {write_everyone(plan)} instead of "
            f"{write_requested(plan)}.",
            "bad",
        )


def _list_doubts(plan: Plan) -> Iterator[Part]:
    if plan.measurement is None:
        yield Mark(
            "Nothing was measured: the plan is as good as the numbers it was given.", "unsure"
        )
    if sentences := list_doubts(plan):
        open_ = "one question" if len(sentences) == 1 else f"{len(sentences):,} questions"
        yield Mark(f"The pilots leave {open_} open.", "unsure")
        shown = sentences[:DOUBTS]
        more = len(sentences) - len(shown)
        rest = (f"And {count(more, 'more doubt')}; --json lists them.",) if more else ()
        yield Listing((*shown, *rest))


# Without a plan.


def _reach_section(plan: Plan) -> Section | None:
    if plan.contributions is not None:
        return None
    parts: list[Part] = []
    if plan.unreachable:
        parts.append(
            "The table has the accuracy that each agent would reach if all agents gave as much as "
            "they can, with its 95 % interval. No plan reaches a goal above that."
        )
    elif plan.reason:
        parts.append(plan.reason)
    parts += explain_no_plan(plan, "page")
    return Section("What stands in the way", tuple(parts)) if parts else None


# Who gives what.


def _contributions_section(plan: Plan) -> Section | None:
    if plan.contributions is None:
        return None
    parts: list[Part] = [_describe_plan(plan), picture_contributions(plan)]
    if plan.size > ROWS:
        parts.append(f"The table lists the {ROWS:,} agents that give most; --save writes all.")
    parts.append(list_contributions(plan).table("page"))
    parts.append(Listing(tuple(describe_contributions(plan, "page"))))
    return Section("Who gives how much", tuple(parts))


def _describe_plan(plan: Plan) -> str:
    if plan.measurement is None:
        rounded = "" if plan.whole else ", apart from rounding up to whole samples"
        return (
            "No agent can give less than the plan asks and still reach its requirement, while the "
            f"others keep to the plan{rounded}."
        )
    short = plan.margins is not None and bool(
        (plan.margins < plan.z * plan.measurement.noise(plan.options["judged"]) - 1e-9).any()
    )
    less = " An agent that cannot reach its target gives its limit." if short else ""
    whole = "" if plan.whole else ", apart from rounding up to whole samples"
    return (
        "Results vary from run to run. So each agent's target is its goal plus a safety margin."
        f"{less} No agent can give less than the plan asks and still expect its target, while the "
        f"others keep to the plan{whole}."
    )


# How sure it is.


def _certainty_section(plan: Plan) -> Section | None:
    chart = chart_certainty(plan)
    if chart is None:
        return None
    where = "The plan is one row of this table."
    if plan.outcome is Outcome.LESS_SURE:
        where = (
            f"No stable plan reaches the requested {write_requested(plan)}. The plan of this page "
            f"reaches {write_everyone(plan)}."
        )
    intro = f"More certainty takes more samples. {where}"
    table = list_certainties(plan).table("page")
    falls = filter(None, [describe_falls(plan)])
    return Section("The price of certainty", (intro, _picture_low(chart), table, *falls))


def _picture_low(chart: Chart) -> Picture:
    """Make a picture of a chart that leaves room for a table on the same sheet of paper."""
    return replace(picture_of(chart), size=LOW)


def _less_section(plan: Plan) -> Section | None:
    if not plan.cuts or plan.contributions is None or plan.satisfied is None:
        return None
    agents = choose_agents(plan, most=ROWS, few=ROWS)
    giving = [i for i in agents if plan.contributions[i] > 0]
    if not giving:
        return None
    shown = [i for i in choose_agents(plan, most=CURVES, few=CURVES) if i in set(giving)]
    intro = (
        "The plan includes a safety margin, so an agent that gives less may still be lucky. The "
        "table has the probability that an agent reaches its goal if it alone gives part of its "
        "contribution. The agent saves samples but is less certain to reach its goal. The last "
        "column has the probability that all other agents still reach their goals."
    )
    table = list_cuts(plan, giving).table("page")
    chart = _picture_low(chart_cuts(plan, shown))
    legend = (
        f"A cross marks a probability of {LOOSE:.2f} or more: the agent probably reaches its goal "
        f"anyway, so the plan hardly deters it. A tick marks {FIRM:.2f} or less: the agent has a "
        "strong reason to keep to the plan. A question mark marks a probability between these two."
    )
    return Section("What an agent gains by giving less", (intro, chart, table, legend))


def _chances_section(plan: Plan) -> Section | None:
    if plan.satisfied is None or plan.everyone is None or plan.goals is None:
        return None
    asked = write_requested(plan)
    said = (
        "All agents reach their goals in a run with probability "
        f"{write_everyone(plan)} (requested: {asked})."
    )
    parts: list[Part] = [
        " ".join([said, *describe_interval(plan)]),
        picture_prospects(plan),
        list_chances(plan).table("page"),
    ]
    if plan.ceiling is not None:
        parts.append(
            "If all agents gave all that their limits allow, the probability would be "
            f"{format_beside(plan.ceiling.value, plan.options['probability'])}."
        )
    return Section("What accuracy each agent can expect", tuple(parts))


# Which equilibrium.


def _tradeoffs_section(plan: Plan) -> Section | None:
    if not plan.tradeoffs:
        return None
    heading = "Other stable plans"
    said = describe_tradeoffs(plan, hint=False)
    if len(plan.tradeoffs) == 1:
        return Section(heading, (said,))
    intro = (
        "There are several plans in which no agent could give less. Where agents have much the "
        "same data, each can rely on the others, and a defector hardly loses. With fewer and "
        "larger contributors a defector loses at once, but the burden is heavier and some agents "
        "may envy others."
    )
    table = list_tradeoffs(plan).table("page")
    return Section(heading, (intro, said, picture_tradeoffs(plan), table))


# A box for each agent.


def _sheets_section(plan: Plan) -> Section | None:
    if plan.contributions is None:
        return None
    few = plan.size <= SHEETS
    agents = range(plan.size) if few else choose_agents(plan)
    intro = "On paper, each agent has its own box, which you can cut out."
    if not few:
        intro += " Here are the agents that give most; --json has the sentences of all."
    cards = tuple(_make_card(plan, agent) for agent in agents)
    return Section("Agent by agent", (intro, *cards))


def _make_card(plan: Plan, agent: int) -> Card:
    sheet = write_sheet(plan, agent)
    less = sheet.less or "It gives nothing, so it cannot give less."
    if plan.measurement is None and sheet.less == "" and np.asarray(plan.contributions)[agent]:
        less = "It would miss its requirement."
    entries = (
        ("What we ask", sheet.asks),
        ("Why", sheet.why),
        ("What it gets", sheet.gets),
        ("What if it gave less", less),
    )
    return Card(plan.name(agent), tuple(entry for entry in entries if entry[1]))


def _legend_section(plan: Plan) -> Section | None:
    if plan.contributions is None:
        return None
    rows = tuple(list_symbols(plan))
    return Section(
        "Words and symbols", (Table("What they mean", ("word or symbol", "meaning"), rows),)
    )


# Plans of the theory.


def _bare_section(plan: Plan) -> Section | None:
    if not plan.solutions:
        return None
    what = (
        "Three plans of the theory. In the optimal plan the total is least. In the stable plan no "
        "agent could give less. In the envy-free plan no agent envies another that gives less."
    )
    average = (
        " All three reach the goals only on average: they have no safety margin, so about half of "
        "the runs miss a goal."
        if plan.measurement is not None
        else ""
    )
    parts = (
        what + average,
        list_bare(plan).table("page"),
        Listing(tuple(describe_bare(plan))),
    )
    summary = "The optimal, the stable and the envy-free plan"
    return Section("Plans without a safety margin", (Fold(summary, parts),))


# What it rests on.


def _curves_section(plan: Plan) -> Section | None:
    measurement = plan.measurement
    if measurement is None:
        return None
    agents = choose_agents(plan, most=CURVES, few=CURVES)
    intro = (
        "Each figure has the accuracies of an agent in the pilots, and the curve through them. "
        "Samples of other agents are counted at what they are worth to the agent. The band holds "
        "95 % of the curves that fit the pilots."
    )
    parts: list[Part] = [intro]
    if len(agents) < plan.size:
        parts.append(f"Here are the {len(agents)} agents that give most.")
    parts += [picture_curve(plan, measurement, agent, n + 1) for n, agent in enumerate(agents)]
    overlap = picture_overlap(plan.game)
    if overlap is not None:
        parts += ["What a sample of one agent is worth to another, as fitted:", overlap]
    return Section("The learning curves", tuple(parts))


def _assumptions_section(plan: Plan) -> Section:
    intro = "The numbers are right if all of this is true:"
    parts: list[Part] = [intro, Listing(plan.assumptions)]
    if plan.measurement is not None and not list_doubts(plan):
        parts.insert(0, "The pilots do not contradict the fit.")
    return Section("What is assumed", tuple(parts))


def _method_section(plan: Plan) -> Section:
    if plan.measurement is None:
        said = (
            "The game was taken as it is. The cheapest, the cheapest stable and the cheapest "
            "envy-free plan were found before rounding. The plan was chosen among the equilibria "
            "and rounded to whole samples."
        )
        return Section("How the numbers were found", (said,))
    number = len(plan.measurement.resamples)
    lower = " below their limits" if find_lowered(plan) else ""
    fineness = (
        ()
        if plan.error is None
        else (
            f"With another {number:,} resamples, the probability could change by "
            f"{max(_find_change(plan, plan.error), 0.001):.3f}.",
        )
    )
    fitted = (
        "For each agent, a learning curve was fitted to "
        f"{count(len(plan.measurement.table), 'pilot')}. The fit also gives what a sample of "
        f"another agent is worth to it. Then {number:,} curves that also fit the pilots were "
        "drawn from the posterior. Intervals go from 2.5 % to 97.5 % of these curves."
    )
    if plan.contributions is None:
        return Section("How the numbers were found", (fitted,))
    return Section(
        "How the numbers were found",
        (
            fitted,
            f"Each agent's target is above its goal by {plan.z:.2f} times its scatter. The "
            f"multiple is the same for all agents{lower}. It is the smallest multiple with which "
            f"all agents reach their goals with probability {write_requested(plan)}. The plan is "
            "an equilibrium at these targets in whole samples. Needs and plans are rounded up to "
            "whole samples.",
            *fineness,
        ),
    )


def _find_change(plan: Plan, error: float) -> float:
    """Return by how much the probability could change with other resamples."""
    return 2 * error if plan.reseeded is None else plan.reseeded.away


def _list_facts(plan: Plan) -> Iterator[tuple[str, str]]:
    measurement = plan.measurement
    yield from (fact for fact in list_game_facts(plan.game) if fact[0] != "Seed")
    if measurement is not None:
        pilots = count(len(measurement.table), "pilot")
        yield "Pilots", f"{pilots}, {count(len(measurement.resamples), 'resample')}"
    yield "Seed", str(plan.options["seed"])
    yield "Requested", f"probability {plan.options['probability']:g}, {plan.options['prefer']}"
    yield from list_check_facts(plan.found)
    yield from list_run_facts()


# What a plan answers in words: the three questions, and what its words mean.


def answer_questions(plan: Plan) -> Iterator[tuple[str, Mark, str]]:
    """Return whether all reach their goals, whether any could give less, and whether any envies."""
    margin = " and keep its safety margin" if plan.z > 0 else ""
    reach, less, envy = (
        "Do all agents reach their goals?",
        f"Could an agent give less{margin}?",
        "Does an agent envy another?",
    )
    if plan.contributions is None:
        nothing = Mark("there is no plan", "bad")
        yield reach, nothing, "not feasible"
        yield less, nothing, "not stable"
        yield envy, nothing, "not envy-free"
        return
    yield reach, _answer_reach(plan), _name_certainty(plan)
    yield less, _answer_less(plan), "stable"
    envious = next((t.envious for t in plan.tradeoffs if t.chosen), ())
    names = [plan.name(agent) for agent in envious]
    kept = ", with the safety margins" if plan.z > 0 else ""
    said = join_with_and(names) if len(names) <= COLUMNS else f"{len(names):,} agents do"
    answer = Mark(f"yes: {said}", "bad") if names else Mark(f"no{kept}", "good")
    yield envy, answer, "not envy-free" if names else "envy-free"


def _answer_reach(plan: Plan) -> Mark:
    if plan.everyone is None:
        return Mark("on average, by the numbers of the game", "unsure")
    asked = write_requested(plan)
    said = f"with probability {write_everyone(plan)}; {asked} was requested"
    return Mark(said, TONES[plan.outcome])


def _name_certainty(plan: Plan) -> str:
    if plan.everyone is None:
        return "feasible"
    planned = plan.outcome is Outcome.PLANNED
    return "probability high enough" if planned else "probability too low"


def _answer_less(plan: Plan) -> Mark:
    rounded = "" if plan.whole else ", apart from rounding up"
    cut = mean_cut(plan)
    if cut is None or cut < LOOSE:
        return Mark(f"no{rounded}", "good")
    lucky = "an agent that gives less may lose only its margin, and still reach its goal"
    return Mark(f"no{rounded}; but {lucky}", "unsure")


def list_symbols(plan: Plan) -> Iterator[tuple[str, str]]:
    """Return the words and symbols of a plan's page, each with what it means."""
    measured = plan.measurement is not None
    least = format_part(min(plan.options["levels"]))
    if plan.goals is not None:
        yield "goal", "the accuracy that an agent wants"
    if plan.z > 0:
        yield "target", "an agent's goal plus a safety margin"
        less = "; less for an agent that cannot give more" if find_lowered(plan) else ""
        yield "safety margin", f"{plan.z:.2f} times the scatter of the agent's runs{less}"
        yield ALONE_FOR_TARGET, "what an agent would need without the others for its target"
        yield ALONE_FOR_GOAL, "what an agent would need without the others, with no safety margin"
    else:
        yield ALONE, "what an agent would need without the others"
    yield "contribution", "how many samples an agent gives"
    if measured:
        yield "P(goal)", "the probability that an agent reaches its goal in one run"
        yield "P(all)", "the probability that all agents reach their goals in the same run"
        yield (
            f"P(goal) with {least}",
            f"P(goal) of an agent that alone gives {least} of its contribution",
        )
        if plan.others is not None:
            yield (
                f"P(all others) with {least}",
                "the probability that all other agents reach their goals if this agent gives "
                f"{least} of its contribution",
            )
        yield "from, to", "the ends of the 95 % interval, over the curves that fit the pilots"
        yield (
            "resample",
            "a curve for each agent, drawn from the curves that fit the pilots",
        )
    yield "contributor", "an agent that gives something"
    yield "defector", "an agent that gives less than the plan asks"
    yield "equilibrium", "a plan in which no agent could give less and still expect its target"
    yield (
        (
            "probability high enough",
            "all agents reach their goals with the requested probability",
        )
        if measured
        else ("feasible", "all agents reach their goals")
    )
    yield "stable", "no agent could give less while the others keep to the plan"
    yield "envy-free", "no agent would be better off with the contribution of another"
    yield "optimal", "no plan that reaches the goals has a smaller total"
    if plan.prices:
        yield "price of stability", "the total of the stable plan, divided by that of the optimal"
        yield "price of fairness", "the total of the envy-free plan, divided by the optimal"
    yield "–", "there is no such number"
