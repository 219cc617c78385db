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


def read_workflow(name: str) -> str:
    return (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()


@pytest.mark.parametrize("name", ["tests", "wheels"])
def test_workflows_try_every_supported_python_and_system(name: str) -> None:
    text = read_workflow(name)
    for pythons in (found := re.findall(r"python: \[(.*)\]", text)):
        assert pythons == ", ".join(f'"{version}"' for version in PYTHONS)
    assert found
    assert f">={PYTHONS[0]}" == PROJECT["requires-python"]
    assert set(re.findall(r"(\w+)-latest", text)) == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("name", ["tests", "wheels", "site"])
def test_workflows_name_actions_by_major_version_so_that_fixes_arrive(name: str) -> None:
    tags = re.findall(r"uses: \S+@(\S+)", read_workflow(name))
    assert tags and all(re.fullmatch(r"v\d+", tag) for tag in tags)


def test_workflows_do_what_every_change_must_pass_and_publish_the_built_site() -> None:
    tests, site = read_workflow("tests"), read_workflow("site")
    assert "- run: .ci/run\n" in tests
    # What they run by name is there.
    for line in re.findall(r"run: (.*)", tests + site + read_workflow("wheels")):
        for target in re.findall(r"^make (\w+)$", line):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        for path in re.findall(r"\btests/\w+", line):
            assert (ROOT / path).is_dir()
        for extra in re.findall(r"\.\[([\w,]+)\]", line):
            assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"])
    for text in (tests, site):
        assert "- run: make docs\n" in text and "path: build/site\n" in text


def test_files_that_pages_name_are_there() -> None:
    pages = [ROOT / "SECURITY.md", *(ROOT / ".github").rglob("*.yml")]
    for page in pages:
        for name in re.findall(r"\bdocs/[\w/.-]+\.(?:md|json)", page.read_text()):
            assert (ROOT / name).is_file(), f"{page.name} names {name}"
