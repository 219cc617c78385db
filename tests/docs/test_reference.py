"""The reference of configs and commands says what the code has: every key, default and option."""

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer.main

from fedaccord.cli import app
from fedaccord.federation.algorithms import ALGORITHMS
from fedaccord.federation.algorithms.base import Algorithm, Solo
from fedaccord.federation.config.load import PLANS, SECTIONS
from fedaccord.federation.data.difficulty import trial_scores
from fedaccord.federation.data.pretraining import loss_scores
from fedaccord.federation.history import COLUMNS
from fedaccord.federation.runs.store import SCHEMA

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = "\n".join(
    (REFERENCE / name).read_text(encoding="utf-8")
    for name in ("config.md", "config-audits.md", "training-commands.md")
)
COMMANDS = ("audit", "frontier", "train", "difficulty", "pretrain", "search", "merge")


def part(heading, text=PAGE):
    """Give what stands under a heading, up to the next."""
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"the page has no heading {heading}"
    return found[1]


def find_options(usage):
    """Give the options of a command's usage, those that WORDING stands for among them."""
    own = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", usage))
    return own | {"--title", "--agent-word", "--sample-word"} if "[WORDING]" in usage else own


def keys(heading, text=PAGE):
    """Give the keys of a section's table, each with the default that the page states, or None."""
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\|", part(heading, text), re.MULTILINE)
    return {key: tomllib.loads(f"x = {default}")["x"] if default else None for key, default in rows}


def defaults(section):
    """Give the fields of a settings class with their defaults, as TOML has them."""
    given = {field.name: field.default for field in dataclasses.fields(section)}
    return {key: list(v) if isinstance(v, tuple) else v for key, v in given.items()}


@pytest.mark.parametrize("name", [name for name in SECTIONS if name != "difficulty"])
def test_every_section_has_its_keys_and_defaults_on_the_page(name):
    assert keys(f"[{name}]") == defaults(SECTIONS[name])


def test_difficulty_has_the_defaults_of_its_two_methods_on_the_page():
    """Where the two methods or the command differ, the page has the default in words."""
    page = keys("[difficulty]")
    assert page.keys() == defaults(SECTIONS["difficulty"]).keys()
    methods = (loss_scores, trial_scores)
    own = [
        {
            k: p.default
            for k, p in inspect.signature(m).parameters.items()
            if p.default is not p.empty
        }
        for m in methods
    ]
    for key, default in page.items():
        if key not in ("method", "scores", "batch_size", "holdout"):
            assert default is not None
            assert [found[key] for found in own if key in found] in ([default], [default] * 2), key
    assert "64 for loss, 16 for trials" in part("[difficulty]")
    assert [found["batch_size"] for found in own] == [64, 16]


def test_what_algorithms_share_is_on_the_page():
    assert keys("[training]") == defaults(Algorithm)
    solo = defaults(Solo)
    assert f"{solo['rounds']} for solo" in part("[training]")
    assert f"{solo['batch_size']} for solo" in part("[training]")


def test_what_algorithms_have_of_their_own_is_on_the_page():
    own = {
        k: v for _, place in ALGORITHMS.values() for k, v in defaults(resolve_name(place)).items()
    }
    shared = defaults(Algorithm)
    expected = {"kind": None, "plan": PLANS[0]}
    expected |= {k: v for k, v in own.items() if k not in shared}
    assert keys("[algorithms.NAME]") == expected


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_on_the_page(name):
    command = typer.main.get_command(app).commands[name]
    options = {o for p in command.params for o in p.opts if o.startswith("--")} - {"--help"}
    usage = re.search(
        rf"^    fedaccord {name} (.*?)(?=^    fedaccord|^\S)", part("Commands"), re.M | re.S
    )
    assert find_options(usage[1]) == options


def test_the_columns_of_files_are_on_the_page():
    files = part("Files")
    named = set(re.findall(r"`(\w+)`", files))
    columns = set(re.findall(r'^    "?(\w+)"? (?:TEXT|INTEGER|REAL)', SCHEMA, re.MULTILINE))
    assert set(COLUMNS) <= named
    assert columns <= named
    assert {"key", "history_digest", "run"} <= columns


# The checker is first shown pages that lie.


def test_a_page_that_lies_is_caught():
    text = PAGE.replace("| `trials` | `20` |", "| `trials` | `21` |")
    assert keys("[audit]", text) != defaults(SECTIONS["audit"])
    text = PAGE.replace("| `width` | |", "| `wide` | |")
    assert keys("[audit]", text) != defaults(SECTIONS["audit"])
    assert keys("[audit]") == defaults(SECTIONS["audit"])
