"""Rows of claims, checked at quick scale with the numbers expected of them."""

from pathlib import Path

from fedaccord.reproduce.claims import Setting
from fedaccord.reproduce.run import all_claims, check_claim, expected_numbers


def row(id, **expected):
    """Check one claim; keywords replace numbers of expected.toml."""
    numbers = {**expected_numbers().get(id, {}), **expected}
    return check_claim(all_claims()[id], Setting(False, numbers, Path("unused")))


def verdict(id, **expected):
    return row(id, **expected).finding.verdict
