"""Pages about games: plans that were solved for, and a plan that was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from fedaccord.check import Check
from fedaccord.check.sentences import describe_first
from fedaccord.equilibria.result import Interval, Solution, Staying
from fedaccord.games.base import Game
from fedaccord.report.check_figures import picture_envy, picture_spare, tabulate_envy
from fedaccord.report.games import (
    ROWS,
    SHOWN,
    format_price,
    list_allocations,
    list_check_facts,
    list_game_facts,
    list_needs,
    list_totals,
    tabulate_needs,
)
from fedaccord.report.games_chances import describe_chances, judge_tone
from fedaccord.report.games_figures import collect_burdens, picture_burdens, picture_prices
from fedaccord.report.games_verdicts import (
    answer_envy,
    answer_questions,
    choose_concept,
    describe_unexamined,
    is_off,
    judge_plan,
    judge_solutions,
    name_plan,
    tell_envy,
)
from fedaccord.report.goals import make_goals_section, tabulate_benefits
from fedaccord.report.model import (
    Listing,
    Page,
    Part,
    Section,
    list_run_facts,
    rank,
    show_doubts,
    tabulate_questions,
)
from fedaccord.report.overlap import explain_no_overlap, picture_overlap
from fedaccord.report.proposal_page import list_proposal_facts, list_sections
from fedaccord.wording import capitalize_first, count, format_amount, name_alone

# Up to this many agents each have a sentence; of more, those TOLD who give most.
SENTENCES = 36
TOLD = 12
DEFECTION = (
    "A plan holds if no agent could give less and still reach its requirement while the others "
    "keep to the plan. Every agent is checked independently of the solver."
)
ENVIES = (
    "An agent envies another if it gives more, and would still reach its requirement after "
    "the two changed places."
)
REST = "--json prints every number, and --save writes the plan for all agents."


# Plans that were solved for.


def solve_page(
    game: Game,
    solutions: Mapping[str, Solution],
    checks: Mapping[str, Check],
    prices: Mapping[str, Interval | None],
    *,
    staying: Staying | None = None,
    chances: str = "",
    command: str = "",
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Make a page of the plans of a game: who gives how much, what is proved, and who would cut.

    game: what was solved.
    solutions: what was found, by concept.
    checks: what the check says of each plan, by concept.
    prices: the prices of stability and fairness by name, None where one was not asked for.
    staying: who stays where agents harm each other, if that is known.
    chances: how likely the plan is to reach all goals, in a sentence, where pilots tell it.
    command: what was typed.
    files: facts about the files that were read.
    """
    verdict, tone = judge_solutions(game, solutions, checks)
    chosen = choose_concept(solutions)
    methods = (f"{c} by {s.method} in {s.seconds:.2g} s" for c, s in solutions.items())
    sections = [
        _answers_section(checks.get(chosen), chosen, chances),
        _allocations_section(game, solutions, chosen),
        make_goals_section(checks.get(chosen), staying if chosen == "stable" else None),
        _reasons_section(checks.get(chosen), f"Why each gives what it gives in the {chosen} plan"),
        _proofs_section(solutions, checks),
        _checks_section(
            "Who would give less, and by how much", DEFECTION, checks, Check.sentence, _spare_parts
        ),
        _checks_section("Who envies whom", ENVIES, checks, answer_envy, _envy_parts),
        _prices_section(game, prices),
        _overlap_section(game),
    ]
    return Page(
        title=f"Who should give how much: {count(game.size, 'agent')}",
        verdict=verdict,
        tone=tone,
        sections=tuple(section for section in sections if section is not None),
        facts=(
            *files,
            *list_game_facts(game),
            ("Solved by", "; ".join(methods)),
            *list_check_facts(next(iter(checks.values()), None)),
            *list_run_facts(),
        ),
        command=command,
    )


def _allocations_section(game: Game, solutions: Mapping[str, Solution], chosen: str) -> Section:
    parts: list[Part] = [
        f"{capitalize_first(name_alone(game.has_margins))}: what each agent would have to give if "
        "no other agent gave anything. The optimal "
        "plan has the smallest total. The stable plan has the smallest total of the plans in which "
        "no agent could give less. The envy-free plan has the smallest total of the plans in which "
        "no agent envies another."
    ]
    parts += [
        f"There is no {concept} plan to show: {solution.status.value}"
        for concept, solution in solutions.items()
        if solution.contributions is None
    ]
    parts.append(picture_burdens(game, collect_burdens(game, solutions)))
    if game.size > ROWS:
        parts.append(f"The table lists the {SHOWN:,} agents that give most. {REST}")
    parts.append(list_allocations(game, solutions, chosen).table("page"))
    return Section("Who gives how much", tuple(parts))


def _reasons_section(found: Check | None, heading: str) -> Section | None:
    """Explain each agent's number to its data manager."""
    if found is None:
        return None
    game = found.game
    few = game.size <= SENTENCES
    agents = np.arange(game.size) if few else rank(found.contributions, TOLD)
    sentences = Listing(tuple(f"{found.explain(int(i))}." for i in agents))
    if few:
        return Section(heading, (sentences,))
    rest = (
        f"These are the {TOLD} agents that give most. In Python, check(game, plan).explain(name) "
        "returns the sentences of any agent."
    )
    return Section(heading, (rest, sentences))


def _answers_section(found: Check | None, chosen: str, chances: str) -> Section | None:
    """Answer the three questions of the plan that the page is about, with what is doubted."""
    if found is None:
        return None
    parts: list[Part] = [*show_doubts(found.doubts), tabulate_questions(answer_questions(found))]
    parts += filter(None, [chances or describe_unexamined(found)])
    if found.prospects is not None:
        parts.append(f"{capitalize_first(describe_chances(found.prospects))}.")
    return Section(f"The {name_plan(chosen)} in three answers", tuple(parts))


def _proofs_section(solutions: Mapping[str, Solution], checks: Mapping[str, Check]) -> Section:
    said: dict[str, list[str]] = {}
    for concept, solution in solutions.items():
        words = " ".join(filter(None, (solution.status.value, solution.note)))
        said.setdefault(words, []).append(concept)
    intro = (
        "The least total of any plan of its kind lies between the two bounds; where they "
        "agree, the plan is proved to be the cheapest."
    )
    if any(found.prospects is not None for found in checks.values()):
        intro += " P(all) is the probability that all agents reach their goals in one run."
    told = (f"{capitalize_first(', '.join(who))}: {words}" for words, who in said.items())
    totals = list_totals(solutions, checks).table("page")
    return Section("What is proved", (intro, totals, Listing(tuple(told))))


def _checks_section(
    heading: str,
    intro: str,
    checks: Mapping[str, Check],
    say: Callable[[Check], str],
    show: Callable[[Check, str], Iterator[Part]],
) -> Section | None:
    """Say of each plan what the check found, and show it; nothing where there is no plan."""
    if not checks:
        return None
    said = tuple(f"{capitalize_first(plan)}: {say(found)}" for plan, found in checks.items())
    parts = (part for plan, found in checks.items() for part in show(found, plan))
    return Section(heading, (intro, Listing(said), *parts))


def _spare_parts(found: Check, plan: str) -> Iterator[Part]:
    picture = picture_spare(found, plan)
    if picture is None:
        return
    yield picture
    off = np.maximum(found.short, found.spare)
    number = int(is_off(found, off).sum())
    if number > ROWS:
        yield f"The table lists the {SHOWN:,} furthest off of {number:,}. {REST}"
    if number > len(picture.data.rows):
        shown = rank(off, number if number <= ROWS else SHOWN)
        yield tabulate_needs(
            found,
            shown,
            f"Agents that are short or could give less under the {plan} plan, the worst first",
        )


def _envy_parts(found: Check, plan: str) -> Iterator[Part]:
    picture = picture_envy(found, plan)
    if picture is not None:
        yield picture
    elif found.borderline:
        yield tabulate_envy(found)


def _prices_section(game: Game, prices: Mapping[str, Interval | None]) -> Section | None:
    named = {name.replace("_", " "): price for name, price in prices.items() if price is not None}
    if not named:
        return None
    parts: list[Part] = [Listing(tuple(_price_sentence(n, p) for n, p in named.items()))]
    picture = picture_prices({name: {game.size: price} for name, price in named.items()})
    if picture is not None:
        parts.append(picture)
    parts.append(
        "In the flower games of the paper's Theorem 4, prices grow like half the square root of "
        f"the number of agents. Here the root is {format_amount(game.size**0.5)}. It is a "
        "comparison, not a bound."
    )
    return Section("What stability and fairness cost", tuple(parts))


def _price_sentence(name: str, price: Interval) -> str:
    note = getattr(price, "note", "")
    value = format_price(price)
    said = f"{capitalize_first(name)}: {value}"
    if np.isfinite(price.upper) and not note:
        kind = "stable" if "stability" in name else "envy-free"
        up_to = "up to " if price.upper > price.lower * (1 + 1e-6) else ""
        more = f"{up_to}{100 * (price.upper - 1):.3g} % more than"
        said += f", so the {kind} plan costs {more if price.upper > 1.00005 else 'as much as'} "
        said += "the optimal one"
    return f"{said}. {note}" if note else f"{said}."


def _overlap_section(game: Game) -> Section:
    if (benefits := tabulate_benefits(game)) is not None:
        return Section("Whose samples help or harm whom", (benefits,))
    picture = picture_overlap(game)
    return Section("Whose data overlap", (picture or explain_no_overlap(game),))


# A plan that was checked.


def check_page(found: Check, *, command: str = "", files: Sequence[tuple[str, str]] = ()) -> Page:
    """Make a page of what a check found of a plan.

    found: what was found.
    command: what was typed.
    files: facts about the files that were read.
    """
    game, prospects = found.game, found.prospects
    said, tone = judge_plan(found)
    verdict = said.text
    facts: list[tuple[str, str]] = []
    if prospects is None:
        sections = [
            Section(
                "What was asked",
                (
                    tabulate_questions(answer_questions(found)),
                    *filter(None, [describe_unexamined(found)]),
                ),
            ),
            Section("What each gives and needs", tuple(_check_parts(found))),
        ]
    else:
        verdict, tone = describe_first(found, prospects), judge_tone(found)
        sections = list_sections(found, prospects)
        facts = list(list_proposal_facts(found, prospects))
    rest = (
        make_goals_section(found),
        _reasons_section(found, "Agent by agent"),
        Section("Who envies whom", tuple(_judge_envy(found))) if game.size > 1 else None,
        _overlap_section(game),
    )
    return Page(
        title=f"A proposal checked: {count(game.size, 'agent')}",
        verdict=verdict,
        tone=tone,
        sections=(*sections, *(section for section in rest if section is not None)),
        facts=(
            *files,
            *facts,
            *list_game_facts(game),
            *list_check_facts(found),
            *list_run_facts(),
        ),
        command=command,
    )


def _judge_envy(found: Check) -> Iterator[Part]:
    """Say and show who envies whom; of a proposal with the plan's safety margins."""
    judged = found.judged
    yield ENVIES
    if judged is not found:
        yield "Here an agent must also keep the plan's safety margin after the two changed places."
    yield answer_envy(found) if judged is found else tell_envy(judged)
    yield from _envy_parts(judged, "checked")


def _check_parts(found: Check) -> Iterator[Part]:
    game = found.game
    picture = picture_spare(found, "checked")
    if picture is None:
        yield "No agent is short, and none could give less."
        picture = picture_burdens(
            game, {name_alone(found.has_margins): found.alone, "this plan": found.contributions}
        )
    yield picture
    if game.size > ROWS:
        yield f"The table lists the {SHOWN:,} furthest off. --json prints the numbers of all."
    yield list_needs(found).table("page")
