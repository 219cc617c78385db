"""Skip tests that need an extra which is not installed; where all are installed, skip nothing."""

import re
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from fedaccord._lazy import EXTRAS

# Packages of extras that are not installed. Tests that hide a package do not change this.
ABSENT = {
    package: extra
    for package, extra in {**EXTRAS, "cvxpy": "solvers", "pyscipopt": "solvers"}.items()
    if find_spec(package) is None
}


def find_absent_extra(error: BaseException) -> str | None:
    """Return the extra whose absence caused an error or is quoted by it, or None."""
    return next(filter(None, map(_read_extra, map(str, _list_causes(error)))), None)


def skip_if_absent(message: str) -> None:
    """Skip the test if a command's message asks for an extra that is not installed.

    message: what the command wrote to stderr.
    """
    extra = _read_extra(message)
    if extra is not None:
        pytest.skip(f"the extra {extra} is not installed")


def mark_skipped(report: pytest.CollectReport | pytest.TestReport, error: BaseException) -> None:
    """Turn the report of a failure into that of a skip if an extra is not installed."""
    extra = find_absent_extra(error)
    if extra is not None:
        report.outcome = "skipped"
        path, line, _ = getattr(report, "location", None) or (report.nodeid, None, "")
        report.longrepr = (path, (line or 0) + 1, f"Skipped: the extra {extra} is not installed")


def _read_extra(message: str) -> str | None:
    asked = re.findall(r"install it with: pip install 'fedaccord\[(\w+)\]'", message)
    # Python names the package in one of two ways, the second where a test has hidden it.
    packages = re.findall(r"No module named '(\w+)|import of (\w+) halted", message)
    extras = [*asked, *(ABSENT.get(first or second) for first, second in packages)]
    return next((extra for extra in extras if extra in ABSENT.values()), None)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
