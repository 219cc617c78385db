"""The README and the pages of docs/ say what is so: their examples run and print what they show."""

import importlib.util
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import marked
import pytest
from documents import WrongPageError, blocks, check_page, same

import fedaccord
import fedaccord.federation
import fedaccord.federation.flower
import fedaccord.federation.nvflare
import fedaccord.report
import fedaccord.reproduce
from fedaccord import read_game

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXPERIMENTS = ROOT / "experiments"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]+)(?:#[^)\s]*)?\)")


def title(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Examples write where they do no harm, and at the width of a pipe."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_example_prints_what_its_page_says(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    if page.name == "nvflare.md":
        pytest.importorskip("nvflare", reason="needs NVFlare (the extra nvflare)")
    copy_linked_tables(page, text, tmp_path)
    check_page(text, title(page), tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_no_page_says_a_line_twice_in_a_row(page):
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.strip()]
    twice = [a for a, b in pairwise(lines) if a == b and len(a.split()) > 3 and a[0] != " "]
    assert not twice


def test_a_page_with_a_doubt_does_not_say_that_there_is_none():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not ("\nDoubt: " in text and "if there are any. Here there are none" in text), page


def copy_linked_tables(page, text, folder):
    """Copy the tables and JSON files that a page links to into the folder its examples run in.

    The README's commands run in the checkout, so its tables keep their folders.
    """
    for link in LINK.findall(text):
        if link.endswith((".csv", ".json")):
            target = folder / (link if page.parent == ROOT else Path(link).name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page.parent / link, target)


def test_the_linked_tables_of_pilots_are_those_of_the_pages(tmp_path):
    guides = DOCS / "how-to"
    for page in ("plan-from-histograms.md", "plan-pilots.md", "plan-more-pilots.md"):
        text = (guides / page).read_text(encoding="utf-8")
        copy_linked_tables(guides / page, text, tmp_path)
        check_page(text, page, tmp_path)
    tables = sorted((guides / "network").iterdir())
    assert [table.name for table in tables] == ["all-pilots.csv", "histograms.csv", "pilots.csv"]
    for table in tables:
        assert (tmp_path / table.name).read_text() == table.read_text()


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert broken == []


def test_every_page_can_be_reached_from_the_readme():
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        waiting += [p for link in links if (p := (page.parent / link).resolve()).suffix == ".md"]
    assert set(PAGES) <= seen


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_fence_is_closed_and_known(page):
    text = page.read_text(encoding="utf-8")
    known = {"python", "console", "json", "csv", "toml", "text", "bash"}
    assert text.count("\n```") == 2 * len(list(blocks(text)))
    assert {block.language for block in blocks(text)} <= known


def figure_script(name):
    """Give the script that draws a figure, as a module."""
    path = DOCS / "figures" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_solve_the_game_that_the_figure_shows():
    """The three hospitals are written out on two pages and in the file that the figure reads."""
    pages = (DOCS / "tutorial" / "three-hospitals.md", DOCS / "how-to" / "reports.md")
    written = [
        json.loads(block.body)
        for page in pages
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.file == "hospitals.json"
    ]
    file = json.loads((DOCS / "tutorial" / "hospitals.json").read_text(encoding="utf-8"))
    assert written == [file] * 2


@pytest.mark.parametrize(
    "package",
    [
        fedaccord,
        fedaccord.federation,
        fedaccord.federation.flower,
        fedaccord.federation.nvflare,
        fedaccord.report,
        fedaccord.reproduce,
    ],
)
def test_the_reference_has_every_public_name_and_no_other(package):
    text = (DOCS / "reference" / "names.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {package.__name__}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(package.__all__)


def words_in(picture):
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "word"),
    [("three_hospitals", "1,200"), ("defection", "MW-FED"), ("frontier", "EQ-FED")],
    ids=lambda w: w,
)
def test_the_figures_are_those_their_scripts_draw(name, word, tmp_path):
    pytest.importorskip("matplotlib")
    fresh = tmp_path / f"{name}.svg"
    figure_script(name).draw(fresh)
    assert word in words_in(fresh)
    assert words_in(fresh) == words_in(DOCS / "figures" / f"{name}.svg")


@pytest.mark.parametrize("name", ["defection", "frontier"])
def test_the_curves_of_a_figure_are_those_of_the_committed_results(name):
    """Curves have no words, so the picture names what it was drawn from."""
    picture = (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    source = figure_script(name).SOURCE
    assert source.is_file()
    assert f"drawn from sha256 {marked.digest(source)}" in picture


def written_share(share):
    return f"{share['p']:.2f} [{share['low']:.2f}, {share['high']:.2f}]"


def shares_in(audit):
    """Give the shares of a committed audit as tables write them, algorithm by algorithm."""
    found = []
    for curve in audit["algorithms"].values():
        points = curve["levels"]
        found += [written_share(point) for point in points]
        found.append(written_share(curve["all_satisfied"]))
    return found


def test_the_readmes_game_is_the_one_that_the_figure_shows():
    game = read_game(DOCS / "tutorial" / "hospitals.json")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = (b.body for b in blocks(text) if "LinearGame(" in b.body)
    namespace = {}
    exec("\n".join(line[4:] for line in code.splitlines() if line[:4] == ">>> "), namespace)
    assert namespace["game"].to_dict() == game.to_dict()


def test_the_audit_of_digits_on_its_page_is_the_committed_one():
    audit = json.loads((EXPERIMENTS / "digits" / "results" / "audit.json").read_text())
    text = (DOCS / "tutorial" / "first-audit.md").read_text(encoding="utf-8")
    (table,) = (b.body for b in blocks(text) if b.body.startswith("$ fedaccord audit\n"))
    first = table.partition("different samples used")[0].partition("gives")[2]
    written = re.findall(r"\d\.\d\d \[[^]]*\]", first)
    assert len(written) == 12
    assert sorted(written) == sorted(shares_in(audit))


def test_the_experiment_on_its_page_is_the_committed_one():
    audit = json.loads((EXPERIMENTS / "blum2021" / "results" / "emnist.json").read_text())
    text = (DOCS / "explanation" / "experiment.md").read_text(encoding="utf-8")
    results = text.partition("## Results")[2].partition("**What holds.**")[0]
    written = re.findall(r"\d\.\d\d \[[^]]*\]", results)
    others = [p["others"] for c in audit["algorithms"].values() for p in c["levels"][1:]]
    expected = [*shares_in(audit), *map(written_share, others)]
    assert sorted(written) == sorted(expected)
    by_agent = audit["algorithms"]["MW-FED"]["levels"][1]["agents"].values()
    row = " | ".join(f"{round(s['p'] * s['trials'])} of {s['trials']}" for s in by_agent)
    assert f"| satisfied | {row} |" in text


# The checker is first shown pages that lie.

HONEST = """
```python
>>> from fedaccord import LinearGame, solve_stable
>>> solve_stable(LinearGame([[1, 0.5], [0.5, 1]], [300, 300])).total
400.0
```

```json game.json
{"model": "linear", "requirements": [300, 300], "benefits": [[1, 0.5], [0.5, 1]]}
```

```csv plan.csv
agent,contribution
agent 0,200
agent 1,200
```

```console
$ fedaccord check game.json plan.csv --require stable,envy-free
Feasible and stable, and no agent envies another.
...
$ echo $?
0
```
"""


def test_an_honest_page_passes(tmp_path):
    assert check_page(HONEST, "page", tmp_path) == 4


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("400.0", "400.1"),
        ("400.0", ""),
        ("400.0\n", "400.0\n401.0\n"),
        ("import LinearGame", "import NoSuchGame"),
        ("Feasible and stable", "Feasible, not stable"),
        ("Feasible and stable, and no agent envies another.\n...\n", ""),
        ("agent 0,200", "agent 0,201"),
        ("$?\n0", "$?\n1"),
    ],
)
def test_a_page_that_lies_is_caught(true, false, tmp_path):
    assert true in HONEST
    with pytest.raises(WrongPageError):
        check_page(HONEST.replace(true, false), "page", tmp_path)


def test_a_page_whose_plain_code_fails_is_caught(tmp_path):
    with pytest.raises(ZeroDivisionError):
        check_page("\n```python\n1 / 0\n```\n", "page", tmp_path)


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("9.142857", "9.142857"),
        ("9.142857142857142", "9.142857142857144"),
        ("[0.3, 1,200]", "[0.3, 1,200]"),
        ('"seconds": 0.5,', '"seconds": 1e-05,'),
        ("a ... c", "a b b c"),
        ("total  12", "total 12"),
    ],
)
def test_outputs_that_agree_are_the_same(page, printed):
    assert same(page, printed)


MEASURED = """
```python measured
>>> print("P 0.94 [0.88, 0.97] yes")
P 0.45 [0.41, 0.62] yes
```
"""


def test_measured_numbers_may_differ_from_the_page(tmp_path):
    assert check_page(MEASURED, "page", tmp_path) == 1


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("62] yes\n```", "62] no\n```"),
        ("P 0.45 [", "P - ["),
        ("P 0.45 [0.41, 0.62]", "P 0.45 [0.41]"),
        ("python measured", "python"),
    ],
)
def test_a_measured_page_that_lies_is_caught(true, false, tmp_path):
    assert true in MEASURED
    with pytest.raises(WrongPageError):
        check_page(MEASURED.replace(true, false), "page", tmp_path)


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("9.142857", "9.142957"),
        ("1200", "1201"),
        ("1,200", "12"),
        ("0.0", "0.5"),
        ("true", "false"),
        ("a ... c", "a b b"),
        ("a b", "a"),
        ("a", "a b"),
        ('"seconds": 0.5, "total": 3', '"seconds": 0.5, "total": 4'),
    ],
)
def test_outputs_that_differ_are_not_the_same(page, printed):
    assert not same(page, printed)
