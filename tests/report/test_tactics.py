"""What an audit says of defectors that do more than give less."""

import dataclasses
import math

import pytest
from training_results import two_algorithms

from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.intervals import KeptWorth, wilson
from fedaccord.report.tactics import describe_tactics, show_going_on


def audit_with(**options):
    plain = two_algorithms()
    kept = {**vars(plain.options), **options}
    return dataclasses.replace(plain, options=AuditOptions(**kept))


def going_on(worth: KeptWorth):
    """An audit in which every defector that trains on with all it has reaches its goal."""
    found = audit_with(kept_data=True)
    curves = []
    for curve in found.curves:
        levels = []
        for point in curve.levels:
            outside = dataclasses.replace(point.at_end, random=wilson(3, 4))
            kept = dataclasses.replace(point.at_end, random=wilson(4, 4))
            levels.append(dataclasses.replace(point, outside=outside, kept=kept))
        worths = dict.fromkeys(found.clients[:2], worth)
        curves.append(dataclasses.replace(curve, levels=tuple(levels), kept_worth=worths))
    return dataclasses.replace(found, curves=tuple(curves))


def test_a_plain_audit_says_nothing_of_tactics():
    assert describe_tactics(two_algorithms()) == ""
    assert list(show_going_on(two_algorithms())) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"group": 2}, "2 agents defect together; they succeed if all of them reach their goals."),
        ({"filler": "noise"}, "A defector fills its contribution up with noise."),
        ({"filler": "copies", "detect_copies": True}, "hashes and does not count them."),
        ({"kept_data": True}, "and use the better model."),
    ],
)
def test_each_tactic_has_its_sentence(options, words):
    assert describe_tactics(audit_with(**options)).endswith(words)


def test_the_table_has_the_three_shares_of_every_level():
    table, worths, said = show_going_on(going_on(KeptWorth(0.3, 0.1, 0.5, 9)))
    found = going_on(KeptWorth(0.3, 0.1, 0.5, 9))
    assert len(table.rows) == sum(len(curve.levels) for curve in found.curves)
    for row in table.rows:
        assert row[3].startswith("0.75") and row[4].startswith("1.00")
    assert [row[0] for row in worths.rows] == list(found.clients[:2])
    assert worths.rows[0][1] == "0.30 [0.10, 0.50]"
    assert said.endswith("a reason to share.")


def test_a_worth_that_no_trial_bounds_is_not_known():
    unknown = KeptWorth(math.nan, -math.inf, math.inf, 4)
    _, worths, said = show_going_on(going_on(unknown))
    assert {row[1] for row in worths.rows} == {"not known"}
    assert "not known" in said
