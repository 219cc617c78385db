"""Figures that pages give of committed results are those of the results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Rows of the page by pilots and validation points, and what the results call them.
CELLS = {
    ("13", "400"): "4 agents, 13 pilots",
    ("39", "400"): "4 agents, 39 pilots",
    ("39", "2,000"): "4 agents, 39 pilots, 2000 validation points",
    ("117", "2,000"): "4 agents, 117 pilots, 2000 validation points",
}


def results(path):
    return json.loads((ROOT / "experiments" / path).read_text(encoding="utf-8"))


def page(path):
    return (ROOT / "docs" / path).read_text(encoding="utf-8")


def coverage_rows(text):
    """Give the rows on how near measured games come: {(pilots, points): figures}."""
    part = text.partition("\n## How near, how surely\n")[2]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {tuple(cells[:2]): cells[2:] for cells in rows if cells[0][0].isdigit()}


def expected_row(cell):
    error = cell["error_of_total"]
    parts = (cell["within_5_percent"], cell["coverage"]["total"])
    near = [f"{100 * error[name]:.1f} %" for name in ("median", "90 %")]
    return [*near, *(f"{100 * share:.0f} %" for share in parts)]


def test_how_near_measured_games_come_is_what_was_measured():
    cells = results("synthetic/results/coverage.json")["cells"]
    rows = coverage_rows(page("explanation/measured-games.md"))
    assert len(rows) >= 3
    for key, figures in rows.items():
        cell = cells[CELLS[key]]
        assert cell["repetitions"] == 200
        assert figures == expected_row(cell)
    missed = [cells[CELLS[key]]["without_answer"] for key in (("13", "400"), ("39", "400"))]
    told = "{} with 13 pilots, {} with 39".format(*missed)
    assert told in " ".join(page("explanation/measured-games.md").split())


def frontier():
    """Return both pages on the frontier."""
    return "\n".join(page(f"explanation/{name}.md") for name in ("frontier", "frontier-harder"))


def test_what_is_told_of_the_heart_hospitals_is_what_was_measured():
    audit = results("heart/results/audit.json")
    told = frontier().partition("## Four real hospitals\n")[2]
    curve = audit["algorithms"]["PLEDGED"]
    (cut,) = (point for point in curve["levels"] if point["level"] == 0.25)
    words = " ".join(told.split())
    assert f"asks for {sum(curve['contributions'])} of 459 patients" in words
    whole, less = curve["all_satisfied"], cut["contributors"]
    for share in (whole, less):
        assert f"[{100 * share['low']:.0f} %, {100 * share['high']:.0f} %]" in words
    assert f"{whole['p'] * audit['trials']:.0f} of {audit['trials']} new trainings" in words
    assert f"in {100 * less['p']:.0f} % of runs" in words


def share_in(share):
    return f"{share['p']:.2f} [{share['low']:.2f}, {share['high']:.2f}]"


@pytest.mark.parametrize(
    ("heading", "file", "rows"),
    [
        ("Digits", "digits/results/frontier.json", 7),
        ("EMNIST", "blum2021/results/frontier.json", 6),
        ("Sixteen agents", "sixteen/results/frontier.json", 4),
        ("The stroke trial", "stroke/results/frontier.json", 7),
    ],
)
def test_a_frontier_on_the_page_is_the_committed_one(heading, file, rows):
    contenders = results(file)["contenders"]
    part = frontier().partition(f"\n## {heading}\n")[2]
    part = part.partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    figures = {cells[0]: cells[1:] for cells in lines if cells[0] in contenders}
    assert len(figures) == rows
    for name, cells in figures.items():
        found = contenders[name]["P2"]
        (cut,) = (level for level in found["levels"] if level["level"] == 0.25)
        shares = (found["all_satisfied"], cut["contributors"], cut["others_of_contributors"])
        asked = found["contributions"]
        assert cells[0] in (" ".join(map(str, asked)), f"{sum(asked):,}")
        assert cells[1:] == list(map(share_in, shares))


def test_earned_models_on_the_page_are_the_committed_ones():
    told = frontier()
    part = told.partition("\n## Sixteen agents\n")[2].partition("\n## ")[0]
    for name, one in results("sixteen/results/earned.json")["contenders"].items():
        (cut,) = (level for level in one["P2"]["levels"] if level["level"] == 0.25)
        shares = (one["P2"]["all_satisfied"], cut["contributors"], cut["others_of_contributors"])
        asked = f"{sum(one['P2']['contributions']):,}"
        assert " | ".join([f"| {name}, scored", asked, *map(share_in, shares)]) in part
    part = told.partition("\n## EMNIST\n")[2].partition("\n## ")[0]
    alone, pairs = (results(f"blum2021/results/earned{which}.json") for which in ("", "-pairs"))
    rows: list[list[str]] = [[] for _ in range(6)]
    for name in ("EARNED", "EARNED with EQ-FED"):
        one = alone["contenders"][name]
        further = one["further"] | pairs["contenders"][name]["further"]
        cut, copies, both = (
            next(level for level in curve["levels"] if level["level"] == 0.25)
            for curve in (one["P2"], further["copies, detected"], further["2 together"])
        )
        shares = (
            one["P2"]["all_satisfied"],
            cut["outside"]["contributors"],
            cut["kept"]["contributors"],
            cut["others_of_contributors"],
            both["outside"]["contributors"],
            copies["outside"]["contributors"],
        )
        for row, share in zip(rows, shares, strict=True):
            row.append(share_in(share))
    for row in rows:
        assert f"| {' | '.join(row)} |" in part


def test_a_row_that_lies_is_caught():
    text = page("explanation/measured-games.md")
    key, figures = next(iter(coverage_rows(text).items()))
    false = text.replace(" | ".join(figures), " | ".join(["0.1 %", *figures[1:]]))
    assert coverage_rows(false)[key] != figures
    assert re.search(r"\d", figures[0])


@pytest.mark.parametrize(
    ("folder", "algorithm", "files"),
    [
        ("heart", "PLEDGED", ("audit-measured.json", "audit.json")),
        ("sixteen", "EQ-PLAN", ("scored-before.json", "scored-measured.json", "scored-true.json")),
    ],
)
def test_plans_before_and_after_are_the_audited_ones(folder, algorithm, files):
    told = (ROOT / "experiments" / folder / "README.md").read_text(encoding="utf-8").splitlines()
    for file in files:
        curve = results(f"{folder}/results/{file}")["algorithms"][algorithm]
        (cut,) = (point for point in curve["levels"] if point["level"] == 0.25)
        (row,) = (line for line in told if line.startswith("| ") and f"results/{file}" in line)
        assert f"| {curve['total_samples']:,.0f} |" in row
        assert share_in(curve["all_satisfied"]) in row and share_in(cut["contributors"]) in row


def test_what_is_told_of_the_rivals_on_emnist_is_what_was_counted():
    found = results("blum2021/results/rivals.json")["contenders"]
    words = " ".join(
        frontier().partition("The [rivals](rivals.md) were compared in four")[2].split()
    )
    every = words.partition("Under ")[2].partition(", the defector")[0].replace(" and ", ", ")
    for name in every.split(", "):
        assert count_cuts(found[name]) == 4
    assert count_cuts(found["Ditto"]) == 1 and "Under Ditto it does in 1 of 4 [0.05, 0.70]" in words
    assert count_cuts(found["FedProx"]) == 0
    assert [round(4 * found[n]["P2"]["all_satisfied"]["p"]) for n in ("FedProx", "Alone")] == [1, 3]


def count_cuts(contender):
    """Return in how many of four trials a defector at a quarter reached its goal."""
    (cut,) = (point for point in contender["P2"]["levels"] if point["level"] == 0.25)
    return round(4 * cut["outside"]["contributors"]["p"])
