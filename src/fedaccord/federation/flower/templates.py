"""The app that `fedaccord flower init` writes: a folder's name made into names, files made once."""

from __future__ import annotations

import importlib.util
import json
import keyword
import os
import re
import sys
import unicodedata
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from fedaccord._io.folders import write_folder
from fedaccord.errors import InputError

# Where each file of the template goes.
FILES = {
    "README.md": "README.md",
    "pyproject.toml.txt": "pyproject.toml",
    "plan.csv": "plan.csv",
    "gitignore": ".gitignore",
    "config.toml": ".flwr/config.toml",
    "package/__init__.py.txt": "{{package}}/__init__.py",
    "package/client_app.py.txt": "{{package}}/client_app.py",
    "package/server_app.py.txt": "{{package}}/server_app.py",
    "package/task.py.txt": "{{package}}/task.py",
}
# Files of the app that are hidden, and must be new all the same.
HIDDEN = (".flwr", ".gitignore")
# Flower takes no longer name of an app.
LONGEST = 32


@dataclass(frozen=True)
class App:
    """An app that was written.

    folder: where it is.
    project: its name in pyproject.toml.
    package: its Python package.
    """

    folder: Path
    project: str
    package: str


def write_app(folder: str | Path) -> App:
    """Write a Flower app into a folder, all of it or nothing, and never over a file.

    folder: which is made if need be; hidden files in it, such as .git, do not matter.
    """
    if not str(folder).strip():
        raise InputError("the app has no folder; name a new one, such as my-app, or . for this one")
    root = Path(os.path.abspath(folder))
    project, package = app_names(root.name)
    texts = _fill_templates(root, project, package)
    write_folder(folder, texts, what="an app", hidden=HIDDEN)
    return App(root, project, package)


def app_names(name: str) -> tuple[str, str]:
    """Return the names of an app and its Python package, as near to a folder's as they may be."""
    letters = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    words = re.findall("[a-z0-9]+", letters)
    if not words:
        raise InputError(
            f'the folder\'s name, "{name}", has no letter from a to z and no digit for the name of '
            "a Python package; choose another name"
        )
    if words[0][0].isdigit():
        words.insert(0, "app")
    project = "-".join(words)[:LONGEST].rstrip("-")
    if _is_taken(project.replace("-", "_")):
        project = project[: LONGEST - 4] + "-app"
    return project, project.replace("-", "_")


def _is_taken(package: str) -> bool:
    """Return whether a package of that name would hide another, such as torch, or cannot be."""
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        return True
    found = importlib.util.find_spec(package)
    # A folder without Python files, such as the one to be filled, has no origin.
    return found is not None and found.origin is not None


def _fill_templates(root: Path, project: str, package: str) -> dict[str, str]:
    """Return the text of each file, by its place in the app."""
    authority = str(root / "keys" / "ca.crt")
    try:
        authority.encode()
    except UnicodeEncodeError:
        raise InputError(f"the path {root} is not UTF-8, as Flower's config must be") from None
    # A string of JSON is one of TOML.
    values = {
        "project": project,
        "package": package,
        "authority": json.dumps(authority, ensure_ascii=False).replace("\x7f", "\\u007f"),
    }
    template = resources.files("fedaccord.federation.flower") / "template"
    return {
        _fill(place, values): _fill((template / source).read_text(encoding="utf-8"), values)
        for source, place in FILES.items()
    }


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text
