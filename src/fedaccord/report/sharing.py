"""Who pays whom: tables, sentences and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fedaccord.games.chances import Estimates
from fedaccord.report.games import ROWS, SHOWN, list_game_facts
from fedaccord.report.model import (
    AGAINST,
    FEW,
    Column,
    Estimated,
    Listing,
    Mark,
    Page,
    Records,
    Section,
    Table,
    Tone,
    choose_rows,
    keep_finite,
    list_run_facts,
    mark_doubts,
    name_rows,
)
from fedaccord.sharing.result import ROUNDING, Contract, CostShares, Group, choose_writer
from fedaccord.wording import count, format_accuracy, join_with_and, name_alone

HONESTY = (
    "The prices do not make agents honest: an agent that overstates its costs, or what its samples "
    "are worth to the others, may be paid more. Measure what you can, as pilots do."
)
TARGETS = (
    "The payments are for the same targets as the plan. A target is a goal plus a safety margin. "
    "An agent that gives its limit may have a smaller margin."
)
RULES = {
    "prices": "each agent pays the price of its requirement, and is paid the price of its samples",
    "marginal": "each agent bears what its membership adds to the cost of the others",
    "shapley": "each agent bears what it adds to the cost, on average over all orders of joining",
    "nucleolus": "costs are divided so that the group that saves least saves as much as possible",
}
# When to take which contract.
CHOICES = {
    "prices": "Start with prices: no group saves noticeably by leaving, and no outside money is "
    "needed.",
    "marginal": "Take marginal if agents could misstate their costs and a funder covers the "
    "deficit.",
    "shapley": "Take shapley if each agent should bear the cost that it adds, and no group would "
    "leave.",
    "nucleolus": "Take nucleolus if, under the contract prices, a group saves hardly anything by "
    "staying.",
}


# On a terminal.


def show_shares(found: CostShares) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows: who pays whom, why, and what other contracts say."""
    yield Mark(found.verdict, judge_shares(found))
    yield from mark_doubts(found.doubts)
    if not found.is_certain:
        yield found.promise
    yield from _show(list_payments(found))
    yield describe_money(found)
    yield from _explain(found)
    yield ""
    if len(found.contracts) > 1:
        yield from _show(list_contracts(found))
        yield from (describe_contract(found, contract) for contract in found.contracts.values())
        yield advise_contract(found)
        yield ""
    if found.accuracy is not None:
        yield from _show(list_accuracy(found))
    yield from describe_splitting(found)
    yield from found.notes
    yield HONESTY


def _show(records: Records) -> Iterator[str | Table]:
    """Return a table for a terminal, under its title."""
    yield f"{records.caption}:"
    yield records.table("terminal")


def judge_shares(found: CostShares) -> Tone:
    """Return whether the verdict is good news: it is proved, and pilots say who pays."""
    if not (found.is_proved and found.is_certain) or found.doubts:
        return "unsure"
    return "plain" if found.contracts["prices"].payments.low is None else "good"


def describe_money(found: CostShares) -> str:
    """Return the unit of money, what a payment below zero means, and for which targets it is."""
    same = bool((found.game.costs == 1).all())
    unit = (
        "The unit of money is the cost of one sample"
        if same
        else ("Money is in the unit of the game's costs")
    )
    said = f"{unit}. An agent with a payment below zero is paid."
    return f"{said} {TARGETS}" if found.game.has_margins else said


def _explain(found: CostShares) -> list[str]:
    few = found.game.size <= FEW
    return [found.explain(agent) for agent in range(found.game.size * few)]


def advise_contract(found: CostShares) -> str:
    """Return when to take which of the contracts."""
    return " ".join(sentence for rule, sentence in CHOICES.items() if rule in found.contracts)


def describe_contract(found: CostShares, contract: Contract) -> str:
    """Return what a contract does, whether a group would leave, and what is left to fund."""
    said = f"Contract {contract.rule}: {RULES[contract.rule]}."
    if contract.leaver is not None:
        names = _name_group(found, contract.leaver)
        bears = found.write_burden(contract.leaver.bears, len(contract.leaver.agents))
        said += (
            f" It drives a group out: {names} {bears} and "
            f"would pay {found.write(contract.leaver.alone)} without the others."
        )
    elif contract.closest is not None:
        said += f" {_describe_saving(found, contract.closest)}"
    elif not contract.leaver_known:
        said += " Whether a group would rather leave was not checked."
    if contract.deficit > ROUNDING * found.prices.total:
        added, cost = found.write(contract.deficit), found.write(found.prices.total)
        of = f" of the total cost of {cost}"
        if contract.deficit > found.prices.total:
            of = f", more than the plan costs ({cost})"
        said += (
            " No agent gains by misstating its costs or its requirement. But a funder has to pay "
            f"{added}{of}."
            if contract.rule == "marginal"
            else f" {added} is left to fund."
        )
    return said


def _describe_saving(found: CostShares, closest: Group) -> str:
    names = _name_group(found, closest)
    if closest.saving <= ROUNDING * found.prices.total:
        return f"No group saves by leaving, but {names} would pay the same without the others."
    verb = "saves" if len(closest.agents) == 1 else "save"
    return f"Every group saves by staying. {names} {verb} least: {found.write(closest.saving)}."


def _name_group(found: CostShares, group: Group) -> str:
    return join_with_and([found.game.name(agent) for agent in group.agents])


def describe_splitting(found: CostShares) -> Iterator[str]:
    """Return whether any agent would gain by appearing as two."""
    if found.splitting is None:
        return
    for rule, gains in found.splitting.gains.items():
        agent = int(gains.argmax())
        if gains[agent] > ROUNDING * found.prices.total:
            yield (
                f"Contract {rule}: {found.game.name(agent)} would save {found.write(gains[agent])} "
                "by appearing as two agents."
            )
        else:
            yield f"Contract {rule}: no agent would save anything by appearing as two agents."


# Tables.


def _money(head: str, estimates: Estimates, write: Callable[[float], str]) -> Column:
    def cell(agent: int) -> float | Estimated:
        found = estimates[agent]
        # Adding zero turns a negative zero into zero.
        value = found.value + 0.0
        return value if found.low is None else Estimated(value, found.low, found.high)

    ends = None if estimates.low is None else (f"{head}, from", f"{head}, to")
    total = float(estimates.values.sum())
    return Column(head, cell, sums=(total if abs(total) > 1e-6 else 0.0,), ends=ends,
                  write=write)  # fmt: skip


def list_payments(found: CostShares) -> Records:
    """List what each agent gives, pays, bears in all, and would pay alone."""
    game, contract = found.game, found.contracts["prices"]
    weights = np.abs(found.payments) + contract.shares.values
    page, terminal = choose_rows(weights, most=ROWS, few=SHOWN), choose_rows(weights)
    rest = game.size - len(terminal)
    given = found.contributions
    columns = [
        Column(
            "gives",
            lambda i: float(given[i]),
            sums=(float(given.sum()),),
            write=choose_writer(float(given.sum())),
        ),
        _money("pays", contract.payments, found.write),
        _money("bears in all", contract.shares, found.write),
    ]
    alone = found.alone
    if alone is not None and np.isfinite(alone).any():
        columns.append(
            Column(
                f"pays {name_alone(game.has_margins)}",
                lambda i: keep_finite(alone[i]),
                sums=(keep_finite(alone.sum()),),
                short=f"pays {name_alone(game.has_margins)}".replace(", ", ",\n"),
                write=found.write,
            )
        )
    columns += [
        Column("price of its requirement", lambda i: float(found.prices.requirements[i]),
               where="page"),
        Column("price of its samples", lambda i: float(found.prices.samples[i]), where="page"),
    ]  # fmt: skip
    every = ("all",) if not rest else (f"and {rest:,} more; all",)
    return Records(
        "Who pays whom",
        (*name_rows(game.name, terminal=every, page=("all",)), *columns),
        page,
        terminal,
    )


def list_contracts(found: CostShares) -> Records:
    """List what each agent pays under each contract."""
    weights = np.abs(found.payments)
    page, terminal = choose_rows(weights, most=ROWS, few=SHOWN), choose_rows(weights)
    return Records(
        "Payments under other contracts",
        (
            *name_rows(found.game.name, terminal=("all",), page=("all",)),
            *(
                _money(rule, contract.payments, found.write)
                for rule, contract in found.contracts.items()
            ),
        ),
        page,
        terminal,
    )


def list_accuracy(found: CostShares) -> Records:
    """List how much of the mean accuracy each agent's samples account for."""
    shares = found.accuracy
    assert shares is not None
    ends = None if shares.low is None else ("from", "to")
    return Records(
        "Mean accuracy that each agent's samples add",
        (
            Column("agent", found.game.name, sums=("all",)),
            Column(
                "adds", lambda i: Estimated(*vars(shares[i]).values()) if ends else shares[i].value,
                sums=(float(shares.values.sum()),), ends=ends, write=format_accuracy,
            ),
        ),
        choose_rows(shares.values, most=ROWS, few=SHOWN),
        choose_rows(shares.values),
    )  # fmt: skip


# The page.


def share_page(
    found: CostShares, *, command: str = "", files: Sequence[tuple[str, str]] = ()
) -> Page:
    """Make a page on who pays whom.

    found: the shares.
    command: what was typed.
    files: facts about the files that were read.
    """
    promise = () if found.is_certain else (found.promise,)
    against = tuple(mark_doubts(found.doubts))
    sections = [
        *([Section(AGAINST, against)] if against else []),
        Section(
            "Who pays whom",
            (
                *promise,
                describe_money(found),
                list_payments(found).table("page"),
                *_list(found),
            ),
        ),
        _contracts_section(found),
    ]
    if found.accuracy is not None:
        sections.append(Section("Accuracy", (list_accuracy(found).table("page"),)))
    doubts = (HONESTY, *describe_splitting(found), *found.notes)
    sections.append(Section("What the payments do not promise", (Listing(doubts),)))
    return Page(
        title=f"Who pays whom: {count(found.game.size, 'agent')}",
        verdict=found.verdict,
        tone=judge_shares(found),
        sections=tuple(sections),
        facts=(*files, *list_game_facts(found.game), ("Proof", describe_proof(found)),
               *list_run_facts()),
        command=command,
    )  # fmt: skip


def _list(found: CostShares) -> tuple[Listing, ...]:
    said = _explain(found)
    return (Listing(tuple(said)),) if said else ()


def _contracts_section(found: CostShares) -> Section:
    said = tuple(describe_contract(found, contract) for contract in found.contracts.values())
    table = list_contracts(found).table("page")
    return Section("Other contracts", (advise_contract(found), table, Listing(said)))


def describe_proof(found: CostShares) -> str:
    """Return how the payments were confirmed."""
    if found.prices.exact:
        return "plan and prices prove each other in exact fractions"
    if found.prices.gap <= ROUNDING:
        return "plan and prices prove each other up to rounding"
    if found.is_proved:
        return "every group of agents was checked against its cost alone"
    return f"the prices prove the plan's cost to within {100 * found.prices.gap:.2g} %"
