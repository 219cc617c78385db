"""Rows of claims, checked at quick scale with the numbers expected of them."""

from pathlib import Path

from fedaccord.reproduce.claims import Setting
from fedaccord.reproduce.running import checked, expected_numbers


def row(claims, id, **expected):
    """Check one claim; keywords replace numbers of expected.toml."""
    numbers = {**expected_numbers().get(id, {}), **expected}
    return checked(claims[id], Setting(False, numbers, Path("unused")))


def verdict(claims, id, **expected):
    return row(claims, id, **expected).finding.verdict
