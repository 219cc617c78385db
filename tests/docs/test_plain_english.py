"""README, pages, help and errors keep the mechanical rules of plain English."""

from pathlib import Path

import pytest
from plain_english import faults_of_page, faults_of_source, prose

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fedaccord"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").rglob("README.md")),
]
PARTS = [*sorted(SOURCE.glob("*.py")), *sorted(p for p in SOURCE.iterdir() if p.is_dir())]


def title(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_page_keeps_the_rules(page):
    assert faults_of_page(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=title)
def test_a_how_to_page_answers_one_question(page):
    assert len(page.read_text(encoding="utf-8").split()) <= 2000


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("part", PARTS, ids=title)
def test_strings_and_docstrings_keep_the_rules(part):
    files = [part] if part.is_file() else sorted(part.rglob("*.py"))
    faults = [
        f"{title(file)}, {fault}"
        for file in files
        for fault in faults_of_source(file.read_text(encoding="utf-8"))
    ]
    assert faults == []


# The checker is first shown texts that break the rules.

GOOD = """# A page

An agent that gives less still reaches its goal.

```text
who cuts is satisfied so often
```

| a table | WIDE |
""".replace("WIDE", "wide " * 30)


def test_a_good_page_passes():
    assert faults_of_page(GOOD) == []


@pytest.mark.parametrize(
    "planted",
    [
        "Who cuts is satisfied.",
        "This is how often who gives less is satisfied.",
        "The agents are drawn anew.",
        "A client is told its quota.",
        "Nothing is asked for.",
        "Three agents, one of whom gives nothing.",
        "Draw so many samples.",
        "Whoever gives less is short.",
        "Let everybody give all.",
        "The file lies beside it.",
        "An agent who wants more gives more.",
        "The file is there and is not written over.",
        "The name is no folder.",
        "Each coalition plays its cheapest plan.",
        "An agent does so in 92 % of runs (95 % interval 44 to 99, 4 trials).",
        "A phrase that is broken over two lines: the\nagents, one of\nwhom gives nothing.",
        "A long line. " * 8,
    ],
)
def test_a_page_that_breaks_a_rule_is_caught(planted):
    assert len(faults_of_page(GOOD + "\n" + planted + "\n")) == 1


def test_code_on_a_page_is_not_judged():
    assert faults_of_page("The column `so many` is `anew`, as [here](docs/anew.md).\n") == []
    assert prose(GOOD).count("\n") == GOOD.count("\n")


def test_so_many_that_is_good_english():
    assert faults_of_page("There are so many agents here as there; so much that it fails.\n") != []
    assert faults_of_page("It is so much that nothing fits.\n") == []


@pytest.mark.parametrize(
    ("planted", "line"),
    [
        ('def f():\n    """Give the agents."""\n', 1),
        ('def f():\n    """Tell whether it is."""\n', 1),
        ('def f(x):\n    raise ValueError(f"{x} is wrong; save it anew")\n', 2),
        ('HELP = "How often who cuts is satisfied"\n', 1),
    ],
)
def test_a_string_that_breaks_a_rule_is_caught(planted, line):
    assert [fault for fault in faults_of_source(planted) if fault.startswith(f"line {line}:")]


def test_good_source_passes():
    assert faults_of_source('def f():\n    """Return the agents, as `anew` says."""\n') == []
