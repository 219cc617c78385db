"""What a plan answers in words: the three questions, and what its words mean."""

from __future__ import annotations

from collections.abc import Iterator

from fedaccord.planning.result import Outcome, Plan
from fedaccord.planning.sentences import find_lowered, write_everyone, write_requested
from fedaccord.report.model import Mark
from fedaccord.report.plan import TONES
from fedaccord.report.plan_alternatives import mean_cut
from fedaccord.report.plan_certainty import LOOSE
from fedaccord.report.plan_contributions import COLUMNS
from fedaccord.wording import ALONE, ALONE_FOR_GOAL, ALONE_FOR_TARGET, format_part, join_with_and


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
