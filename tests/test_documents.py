"""The README and the pages of docs/ say what is so: their examples run and print what they show."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from documents import WrongPageError, blocks, check_page, same

import fedaccord
import fedaccord.federation

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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
    check_page(page.read_text(encoding="utf-8"), title(page), tmp_path)


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


@pytest.fixture(scope="module")
def three_hospitals():
    """The script that draws the figure, as a module."""
    path = DOCS / "figures" / "three_hospitals.py"
    spec = importlib.util.spec_from_file_location("three_hospitals", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_solve_the_game_that_the_figure_shows():
    """The three hospitals are written out on two pages and in the file that the figure reads."""
    pages = (ROOT / "README.md", DOCS / "tutorial" / "three-hospitals.md")
    written = [
        json.loads(block.body)
        for page in pages
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.file == "hospitals.json"
    ]
    file = json.loads((DOCS / "tutorial" / "hospitals.json").read_text(encoding="utf-8"))
    assert written == [file, file]


@pytest.mark.parametrize("package", [fedaccord, fedaccord.federation])
def test_the_reference_has_every_public_name_and_no_other(package):
    text = (DOCS / "reference" / "names.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {package.__name__}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(package.__all__)


def words_in(picture):
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))


def test_the_figure_is_the_one_its_script_draws(three_hospitals, tmp_path):
    pytest.importorskip("matplotlib")
    fresh = tmp_path / "three_hospitals.svg"
    three_hospitals.draw(fresh)
    drawn = words_in(fresh)
    assert "1,200" in drawn
    assert drawn == words_in(DOCS / "figures" / "three_hospitals.svg")


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
Feasible and stable, and nobody envies anybody.
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
        ("Feasible and stable, and nobody envies anybody.\n...\n", ""),
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
