"""Results in notebooks: the tables of the command line as HTML, pandas frames, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from fedaccord._lazy import imported
from fedaccord.report.model import Cell, Column, Estimated, Mark, Records, Table
from fedaccord.report.terminal import plain, show_stages
from fedaccord.wording import NOTHING

if TYPE_CHECKING:
    from fedaccord.allocation import Allocation
    from fedaccord.equilibria.result import Price
    from fedaccord.federation.defection.curves import DefectionAudit
    from fedaccord.federation.defection.intervals import Proportion
    from fedaccord.frontier.result import Frontier
    from fedaccord.measurement.fit import Measurement

# By class: the module and function that show a result, and those that list it.
SHOWN = {
    "Check": ("games", "show_check"),
    "Solution": ("games", "show_solution"),
    "SolvedGame": ("games", "show_solutions"),
    "Plan": ("plan", "show_plan"),
    "CostShares": ("sharing", "show_shares"),
    "Coalitions": ("coalitions", "show_coalitions"),
    "DefectionAudit": ("defection", "show_audit"),
    "Frontier": ("frontier", "show_frontier"),
}
LISTED = {
    "Check": ("games", "list_needs"),
    "Solution": ("games", "list_solution"),
    "SolvedGame": ("games", "list_solved"),
    "Plan": ("plan_contributions", "list_contributions"),
    "CostShares": ("sharing", "list_payments"),
    "Coalitions": ("coalitions", "list_gains"),
    "History": ("training", "list_agents"),
    "DefectionAudit": ("notebook", "list_curves"),
    "Frontier": ("notebook", "list_contenders"),
    "Measurement": ("notebook", "list_fits"),
    "Price": ("notebook", "list_price"),
    "Allocation": ("notebook", "list_contributions"),
}
ENDS = ("from", "to")


def _find(result: object, table: dict[str, tuple[str, str]]) -> Callable[[Any], Any] | None:
    place = table.get(type(result).__name__)
    if place is None:
        return None
    module, name = place
    found: Callable[[Any], Any] = getattr(imported(f"fedaccord.report.{module}"), name)
    return found


def _list(result: object) -> Records:
    listed = _find(result, LISTED)
    if listed is None:
        raise TypeError(f"a {type(result).__name__} has no table")
    records: Records = listed(result)
    return records


# As HTML.


def write_html(result: object) -> str:
    """Return what a terminal shows of a result as HTML, in which nothing of a name is markup."""
    show = _find(result, SHOWN)
    parts = [_list(result).table("terminal")] if show is None else show(result)
    return f"<div>{''.join(map(_write_part, parts))}</div>"


def _write_part(part: object) -> str:
    if isinstance(part, Table):
        return _write_table(part)
    text = _write(part.text if isinstance(part, Mark) else str(part))
    return f"<p><strong>{text}</strong></p>" if isinstance(part, Mark) else f"<p>{text}</p>"


def _write_table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{_write(head)}</th>' for head in table.columns)
    body = "".join(_write_row(table, row) for row in table.rows)
    sums = "".join(_write_row(table, row) for row in table.footer)
    caption = f"<caption>{_write(table.caption)}</caption>" if table.caption else ""
    return (
        f"<table>{caption}<thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody><tfoot>{sums}</tfoot></table>"
    )


def _write_row(table: Table, row: tuple[Cell, ...]) -> str:
    cells = [_write_cell(cell) for cell in row] + [""] * (len(table.columns) - len(row))
    rest = "".join(f"<td>{cell}</td>" for cell in cells[1:])
    return f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>'


def _write_cell(cell: Cell) -> str:
    if isinstance(cell, Mark):
        return f"<strong>{_write(cell.text)}</strong>"
    return _write(NOTHING if cell is None else str(cell))


def _write(text: str) -> str:
    return "<br>".join(escape(plain(line)) for line in text.split("\n"))


# As frames.


def make_frame(result: object) -> Any:
    """Return a result's table as a pandas DataFrame: every row, and every number in full."""
    pandas = imported("pandas")
    records = _list(result)
    size = getattr(getattr(result, "game", None), "size", None)
    things = records.page if size is None else range(size)
    columns = [column for column in records.columns if column.where in (None, "page")]
    return pandas.DataFrame({h: v for c in columns for h, v in _list_values(c, things)})


def _list_values(column: Column, things: Iterable[int]) -> Iterator[tuple[str, list[object]]]:
    cells = [column.cell(thing) for thing in things]
    yield column.head, [_read(cell) for cell in cells]
    for end, name in zip(("low", "high"), column.ends or (), strict=False):
        yield f"{column.head} {name}", [getattr(cell, end, None) for cell in cells]


def _read(cell: Cell | Estimated) -> object:
    if isinstance(cell, Estimated):
        return cell.value
    return cell.text if isinstance(cell, Mark) else cell


# Tables that only notebooks show.


def _share(head: str, share: Callable[[int], Proportion]) -> Column:
    def cell(n: int) -> Estimated | None:
        found = share(n)
        return Estimated(found.p, found.low, found.high) if found.trials else None

    return Column(head, cell, ends=ENDS, write="{:.2f}".format)


def list_curves(audit: DefectionAudit) -> Records:
    """List how often a defector and the others reach their goals, by algorithm and level."""
    points = [(curve, point) for curve in audit.curves for point in curve.levels]
    return Records(
        "How often a defector, and all the others, reach their goals",
        (
            Column("algorithm", lambda n: points[n][0].algorithm),
            Column("contribution", lambda n: points[n][1].level),
            _share("defector", lambda n: audit.defector_share(points[n][1].judged)),
            _share("all others", lambda n: points[n][1].judged.others),
        ),
        range(len(points)),
    )


def list_contenders(frontier: Frontier) -> Records:
    """List how often agents reach their goals under each algorithm, and what that takes."""
    found, level = frontier.contenders, frontier.goals.level
    return Records(
        "Algorithms with their plans",
        (
            Column("algorithm", lambda n: found[n].name),
            Column("plan", lambda n: found[n].plan),
            _share("all reach their goals", lambda n: found[n].all_satisfied),
            _share(
                "defector",
                lambda n: found[n].defector("P2", level, contributors=True),
            ),
            _share("all others", lambda n: found[n].others("P2", level)),
            Column(f"samples, of {frontier.baseline}'s", lambda n: frontier.share(found[n])[0]),
        ),
        range(len(found)),
    )


def list_fits(measurement: Measurement) -> Records:
    """List what was found for each agent: its goal, the best it could reach, and the scatter."""
    goals, best = measurement.goals, 1 - measurement.curves[:, 0]
    noise = measurement.noise()
    return Records(
        f"Learning curves from {len(measurement.table)} pilots",
        (
            Column("agent", lambda i: measurement.agents[i]),
            Column("goal", lambda i: float(goals[i]), write="{:.3g}".format),
            Column("best accuracy", lambda i: float(best[i]), write="{:.3f}".format),
            Column("scatter of a run", lambda i: float(noise[i]), write="{:.4f}".format),
        ),
        range(len(goals)),
    )


def list_price(price: Price) -> Records:
    """List the two ends of a price, and its note."""
    columns = (
        Column("at least", lambda _: price.lower),
        Column("at most", lambda _: price.upper),
        Column("note", lambda _: price.note),
    )
    return Records("Price", columns[: 2 + bool(price.note)], range(1))


def list_contributions(allocation: Allocation) -> Records:
    """List who gives how much."""
    given, names = allocation.contributions, allocation.agents
    return Records(
        "Who gives how much",
        (
            Column("agent", lambda i: str(i) if names is None else names[i], sums=("all",)),
            Column("contribution", lambda i: float(given[i]), sums=(float(given.sum()),)),
        ),
        range(len(given)),
    )


# Progress.


@contextmanager
def show_progress() -> Iterator[Callable[..., None]]:
    """Show a bar; what is yielded takes what functions report, and draws how far they are."""
    with show_stages() as tell:
        yield lambda *news: tell(*_read_news(*news))


def _read_news(*news: Any) -> tuple[str, int, int]:
    """Return what is under way, how much of it is done, and of how much."""
    if len(news) == 2:
        return "training pilots", *news
    (now,) = news
    at = getattr(now, "audit", None) or now
    planning = getattr(at, "planning", False)
    what = getattr(now, "what", "") or ("finding plans" if planning else "training runs")
    return what, min(at.done, at.total), at.total
