"""Pages about games: plans that were solved for, a plan that was checked, the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.audit import Answer, Audit
from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.games.base import Game
from fedaccord.report.facts_games import audit_facts, game_facts, run_facts
from fedaccord.report.model import Cell, Listing, Mark, Page, Part, Section, Table, Tone
from fedaccord.report.overlap import why_nothing
from fedaccord.report.pages_catalog import catalog_page
from fedaccord.report.pictures_games import (
    allocations_picture,
    burdens_picture,
    envy_picture,
    envy_table,
    finite,
    overlap_picture,
    prices_picture,
    spare_picture,
    spare_table,
)
from fedaccord.report.tables import ENVY
from fedaccord.report.words_checks import check_answers, check_verdict
from fedaccord.report.words_games import (
    chosen_concept,
    has_costs,
    is_off,
    price_value,
    ranked,
    solve_verdict,
)
from fedaccord.wording import capitalize_first, count, format_amount

__all__ = ["catalog_page", "check_page", "solve_page"]

# Tables list this many agents; of more, only the SHOWN that matter most.
ROWS = 2_000
SHOWN = 500
# Up to this many agents each have a sentence; of more, those TOLD who give most.
SENTENCES = 36
TOLD = 12

STATUS_TONES: Mapping[Status, Tone] = {
    Status.OPTIMAL: "good",
    Status.LIMIT: "unsure",
    Status.NOT_ATTAINED: "unsure",
    Status.INFEASIBLE: "bad",
    Status.NONE_EXISTS: "bad",
    Status.FAILED: "bad",
}
REST = "--json prints every number, and --save writes the plan for all agents."


# Plans that were solved for.


def solve_page(
    game: Game,
    solutions: Mapping[str, Solution],
    audits: Mapping[str, Audit],
    prices: Mapping[str, Interval | None],
    *,
    command: str = "",
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Make a page of the plans of a game: who gives how much, what is proved, and who would cut.

    game: what was solved.
    solutions: what was found, by concept.
    audits: what the audit says of each plan, by concept.
    prices: the prices of stability and fairness by name, None where one was not asked for.
    command: what was typed.
    files: facts about the files that were read.
    """
    verdict, tone = solve_verdict(game, solutions, audits)
    chosen = chosen_concept(solutions)
    sections = [
        _allocations_section(game, solutions, chosen),
        _reasons_section(audits.get(chosen), f"Why each gives what it gives in the {chosen} plan"),
        _proofs_section(game, solutions),
        _defection_section(audits),
        _envy_section(audits),
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
            *game_facts(game),
            ("Solved by", "; ".join(_methods(solutions))),
            *audit_facts(next(iter(audits.values()), None)),
            *run_facts(),
        ),
        command=command,
    )


def _methods(solutions: Mapping[str, Solution]) -> Iterator[str]:
    for concept, solution in solutions.items():
        yield f"{concept} by {solution.method} in {solution.seconds:.2g} s"


def _allocations_section(game: Game, solutions: Mapping[str, Solution], chosen: str) -> Section:
    parts: list[Part] = [
        "Alone is what each would have to give if nobody else gave anything. The optimal plan has "
        "the least total, the stable one the least of those in which nobody could give less, the "
        "envy-free one the least of those in which nobody would rather have another's share."
    ]
    missing = [
        f"There is no {concept} plan to show: {solution.status.value}"
        for concept, solution in solutions.items()
        if solution.contributions is None
    ]
    parts += [*missing, allocations_picture(game, solutions)]
    if game.size > ROWS:
        parts.append(f"The table lists the {SHOWN:,} agents who give most. {REST}")
    parts.append(_allocations_table(game, solutions, chosen))
    return Section("Who gives how much", tuple(parts))


def _listed(size: int, weights: Vector) -> Indices:
    return np.arange(size) if size <= ROWS else ranked(weights, SHOWN)


def _allocations_table(game: Game, solutions: Mapping[str, Solution], chosen: str) -> Table:
    found = {c: s.contributions for c, s in solutions.items() if s.contributions is not None}
    columns: dict[str, Vector] = {"alone": game.alone, **found}
    if chosen in found:
        columns[f"{chosen} saves"] = game.alone - found[chosen]
    weights = np.max([*found.values()], axis=0) if found else game.requirements
    shown = _listed(game.size, weights)
    frame = _frame(game)
    rows = tuple(
        (
            game.name(i),
            *(finite(c[i]) for c in columns.values()),
            *(finite(v[i]) for v in frame.values()),
        )
        for i in shown.tolist()
    )
    return Table(
        caption="Samples that each agent gives, alone and under each plan",
        columns=("agent", *columns, *frame),
        rows=rows,
        footer=_sums(game, columns, len(shown)),
    )


def _frame(game: Game) -> dict[str, Vector]:
    """Give what else a game says of its agents, such as limits if it has any."""
    frame = {"requirement": game.requirements}
    if np.isfinite(game.limits).any():
        frame["limit"] = game.limits
    if game.minimums.any():
        frame["minimum"] = game.minimums
    if has_costs(game):
        frame["cost of a sample"] = game.costs
    return frame


def _sums(game: Game, columns: Mapping[str, Vector], shown: int) -> tuple[tuple[Cell, ...], ...]:
    sums: list[Cell] = [finite(float(values.sum())) for values in columns.values()]
    name = "all" if shown == game.size else f"all {game.size:,} agents"
    rows: list[tuple[Cell, ...]] = [(name, *sums)]
    if has_costs(game):
        costs: list[Cell] = [_cost(game, values) for values in columns.values()]
        rows.append(("total cost", *costs))
    return tuple(rows)


def _cost(game: Game, values: Vector) -> float | None:
    return game.total(values) if np.isfinite(values).all() else None


def _reasons_section(found: Audit | None, heading: str) -> Section | None:
    """Explain each agent's number to its data manager."""
    if found is None:
        return None
    game = found.game
    few = game.size <= SENTENCES
    agents = np.arange(game.size) if few else ranked(found.contributions, TOLD)
    sentences = Listing(tuple(f"{found.explain(int(i))}." for i in agents))
    if few:
        return Section(heading, (sentences,))
    rest = (
        f"The {TOLD} who give most; in Python, audit(game, plan).explain(name) gives the sentence "
        "of any other."
    )
    return Section(heading, (rest, sentences))


def _proofs_section(game: Game, solutions: Mapping[str, Solution]) -> Section:
    total = "total cost" if has_costs(game) else "total"
    rows = tuple(
        (
            concept,
            finite(solution.total),
            _bound(solution.bounds.lower, solution.total),
            _bound(solution.bounds.upper, solution.total),
            Mark(solution.status.key, STATUS_TONES[solution.status]),
            solution.method,
        )
        for concept, solution in solutions.items()
    )
    said: dict[str, list[str]] = {}
    for concept, solution in solutions.items():
        words = " ".join(filter(None, (solution.status.value, solution.note)))
        said.setdefault(words, []).append(concept)
    return Section(
        "What is proved",
        (
            "The least total of any plan of its kind lies between the two bounds; where they "
            "agree, the plan is proved to be the cheapest.",
            Table(
                "Totals and their proved bounds",
                ("plan", total, "at least", "at most", "status", "method"),
                rows,
            ),
            Listing(
                tuple(f"{capitalize_first(', '.join(who))}: {words}" for words, who in said.items())
            ),
        ),
    )


def _bound(bound: float, total: float) -> float | None:
    """Give a bound, or the total if they differ by rounding alone: they should read alike."""
    return finite(total if abs(bound - total) <= 1e-12 * abs(total) else bound)


def _defection_section(audits: Mapping[str, Audit]) -> Section | None:
    if not audits:
        return None
    intro = (
        "A plan holds if nobody could give less while the others keep to it and still reach its "
        "requirement. That is asked of every agent by code that trusts no solver."
    )
    said = Listing(
        tuple(f"{capitalize_first(plan)}: {found.sentence()}" for plan, found in audits.items())
    )
    parts = (part for plan, found in audits.items() for part in _defection_parts(found, plan))
    return Section("Who would give less, and by how much", (intro, said, *parts))


def _defection_parts(found: Audit, plan: str) -> Iterator[Part]:
    picture = spare_picture(found, plan)
    if picture is None:
        return
    yield picture
    off = np.maximum(found.short, found.spare)
    number = int(is_off(found, off).sum())
    if number > ROWS:
        yield f"The table lists the {SHOWN:,} furthest off of {number:,}. {REST}"
    if number > len(picture.data.rows):
        shown = ranked(off, number if number <= ROWS else SHOWN)
        yield spare_table(found, shown, f"Those who are off under the {plan} plan, the worst first")


def _envy_section(audits: Mapping[str, Audit]) -> Section | None:
    if not audits:
        return None
    intro = (
        "An agent envies another if it gives more, and would still reach its requirement after "
        "the two changed places."
    )
    said = Listing(
        tuple(f"{capitalize_first(plan)}: {_envy_sentence(a)}" for plan, a in audits.items())
    )
    parts = (part for plan, found in audits.items() for part in _envy_parts(found, plan))
    return Section("Who envies whom", (intro, said, *parts))


def _envy_parts(found: Audit, plan: str) -> Iterator[Part]:
    picture = envy_picture(found, plan)
    if picture is not None:
        yield picture
    elif found.borderline:
        yield envy_table(found)


def _envy_sentence(found: Audit) -> str:
    envious = len({i for i, _ in found.envy})
    if envious == 1:
        agent, other = found.envy[0]
        whom = found.game.name(other) if len(found.envy) == 1 else f"{len(found.envy):,} others"
        who = f"{found.game.name(agent)} envies {whom}."
    elif envious:
        who = f"{envious:,} agents envy another."
    elif found.borderline:
        who = ENVY[Answer.BORDERLINE]
    else:
        who = ENVY[Answer.TRUE]
    if found.feasible is Answer.FALSE:
        who += " But somebody is short of its requirement, so the plan does not count as envy-free."
    return who


def _prices_section(game: Game, prices: Mapping[str, Interval | None]) -> Section | None:
    named = {name.replace("_", " "): price for name, price in prices.items() if price is not None}
    if not named:
        return None
    parts: list[Part] = [Listing(tuple(_price_sentence(n, p) for n, p in named.items()))]
    picture = prices_picture({name: {game.size: price} for name, price in named.items()})
    if picture is not None:
        parts.append(picture)
    parts.append(
        "The paper's Theorem 4 has games, flowers, whose prices grow like the square root of the "
        f"number of agents, about half of it. Here that root is "
        f"{format_amount(game.size**0.5)}. It is there for comparison, and not a "
        "bound that every game keeps to."
    )
    return Section("What stability and fairness cost", tuple(parts))


def _price_sentence(name: str, price: Interval) -> str:
    note = getattr(price, "note", "")
    value = price_value(price)
    said = f"{capitalize_first(name)}: {value}"
    if np.isfinite(price.upper) and not note:
        kind = "stable" if "stability" in name else "envy-free"
        up_to = "up to " if price.upper > price.lower * (1 + 1e-6) else ""
        more = f"{up_to}{100 * (price.upper - 1):.3g} % more than"
        said += f", so the {kind} plan costs {more if price.upper > 1.00005 else 'as much as'} "
        said += "the optimal one"
    return f"{said} ({note.rstrip('.')})." if note else f"{said}."


def _overlap_section(game: Game) -> Section:
    picture = overlap_picture(game)
    return Section("Whose data overlap", (picture if picture is not None else why_nothing(game),))


# A plan that was checked.


def check_page(audit: Audit, *, command: str = "", files: Sequence[tuple[str, str]] = ()) -> Page:
    """Make a page of what an audit found of a plan.

    audit: what was found.
    command: what was typed.
    files: facts about the files that were read.
    """
    game = audit.game
    verdict, tone = check_verdict(audit)
    sections = (
        Section("What was asked", (_verdicts_table(audit),)),
        Section("What each gives and needs", tuple(_check_parts(audit))),
        _reasons_section(audit, "Agent by agent"),
        Section("Who envies whom", (_envy_sentence(audit), *_envy_parts(audit, "checked"))),
        _overlap_section(game),
    )
    return Page(
        title=f"A plan checked: {count(game.size, 'agent')}",
        verdict=verdict,
        tone=tone,
        sections=tuple(section for section in sections if section is not None),
        facts=(*files, *game_facts(game), *audit_facts(audit), *run_facts()),
        command=command,
    )


def _verdicts_table(audit: Audit) -> Table:
    return Table(
        "The three questions", ("question", "answer", "so the plan is"), tuple(check_answers(audit))
    )


def _check_parts(audit: Audit) -> Iterator[Part]:
    game = audit.game
    picture = spare_picture(audit, "checked")
    if picture is None:
        yield "Nobody is short, and nobody could give less."
        picture = burdens_picture(game, {"alone": audit.alone, "this plan": audit.contributions})
    yield picture
    if game.size > ROWS:
        yield f"The table lists the {SHOWN:,} furthest off. --json prints the numbers of all."
    off = np.maximum(np.where(np.isfinite(audit.short), audit.short, np.inf), audit.spare)
    shown = _listed(game.size, off)
    values = {
        "gives": audit.contributions,
        "needs": audit.needed,
        "short": audit.short,
        "spare": audit.spare,
        "alone": audit.alone,
        "reaches": audit.utilities,
        **_frame(game),
    }
    sums: list[tuple[Cell, ...]] = [("all", finite(float(audit.contributions.sum())))]
    if has_costs(game):
        sums.append(("total cost", _cost(game, audit.contributions)))
    yield Table(
        "What each gives, needs and reaches",
        ("agent", *values),
        tuple((game.name(i), *(finite(v[i]) for v in values.values())) for i in shown.tolist()),
        tuple(sums),
    )
