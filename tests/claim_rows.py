"""Rows of claims, checked at quick scale with the numbers expected of them."""

from functools import cache
from pathlib import Path

from fedaccord.reproduce.claims import Setting, Verdict
from fedaccord.reproduce.run import all_claims, check_claim, expected_numbers


def row(id, **expected):
    """Check one claim; keywords replace numbers of expected.toml."""
    numbers = {**expected_numbers().get(id, {}), **expected}
    return check_claim(all_claims()[id], Setting(False, numbers, Path("unused")))


@cache
def quick_row(id):
    """Check one claim as it is, once in a process."""
    return row(id)


def assert_comes_out(id, verdict):
    """Assert that a claim comes out so, with a correction just where the paper needs one."""
    finding = quick_row(id).finding
    assert finding.verdict is verdict
    assert bool(finding.correction) == (verdict is Verdict.CORRECTED)
    assert "Not so" not in finding.measured


def verdict(id, **expected):
    return row(id, **expected).finding.verdict
