"""The files that a release needs agree with the package and with each other."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))


def test_the_citation_has_the_packages_version_and_license() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text


@pytest.mark.parametrize("name", ["tests", "wheels"])
def test_workflows_try_every_supported_python(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    assert re.search(r"python: \[(.*)\]", text)[1] == ", ".join(f'"{v}"' for v in PYTHONS)
    assert f">={PYTHONS[0]}" == PROJECT["requires-python"]
    # By major version, so that fixes arrive.
    assert all(re.fullmatch(r"v\d+", tag) for tag in re.findall(r"uses: \S+@(\S+)", text))


def test_files_that_pages_name_are_there() -> None:
    pages = [ROOT / "SECURITY.md", *(ROOT / ".github").rglob("*.yml")]
    for page in pages:
        for name in re.findall(r"\bdocs/[\w/.-]+\.(?:md|json)", page.read_text()):
            assert (ROOT / name).is_file(), f"{page.name} names {name}"
