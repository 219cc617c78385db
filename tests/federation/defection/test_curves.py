"""Audits as plain values, and back."""

import json
from pathlib import Path

import pytest
from training_results import audit, lenient, strict, two_algorithms

from fedaccord.federation.defection.curves import DefectionAudit

COMMITTED = Path(__file__).parents[3] / "experiments" / "digits" / "results" / "audit.json"


@pytest.mark.parametrize(
    "found",
    [
        two_algorithms(),
        audit({"FedAvg": strict}, names=("north", "south"), protocol="P2", asked=[0, 9], width=0.2),
        # Nobody contributes, so that some shares are of no trial at all.
        audit({"FedAvg": lenient}, names=("north",), protocol="P2", asked=[0]),
    ],
    ids=["P1", "P2", "nobody"],
)
def test_an_audit_comes_back_from_its_json(found):
    written = json.dumps(found.to_dict(), allow_nan=False)
    again = DefectionAudit.from_dict(json.loads(written))
    assert repr(again) == repr(found)
    assert (again.clients, again.requirements) == (found.clients, found.requirements)
    assert (again.versions, again.width, again.seed) == (found.versions, found.width, found.seed)
    assert json.dumps(again.to_dict(), allow_nan=False) == written


def test_the_committed_audit_comes_back():
    values = json.loads(COMMITTED.read_text(encoding="utf-8"))
    found = DefectionAudit.from_dict(values)
    assert found.to_dict() == values
    assert found.clients == ("65% hard", "60% hard", "60% easy", "65% easy")
    assert found.curve("MW-FED").at(0.25).at_end.clients["65% hard"].p == pytest.approx(21 / 36)


def test_what_a_cut_does_to_the_others_is_counted_among_contributors_too():
    """Nothing is asked of north: its cut is none, and harms nobody."""

    def shared_fate(level, defector, client, trial):
        return level == 1 or defector == 0

    found = audit(
        {"FedAvg": shared_fate}, names=("north", "south", "west"), protocol="P2", asked=[0, 9, 9]
    )
    point = found.curves[0].at(0.25).at_end
    assert point.others.p == pytest.approx(1 / 3)
    assert point.others_of_contributors.p == 0
    assert point.others_of_contributors.trials == 4


def test_means_of_samples_have_intervals_where_trials_tell_of_them():
    one, several = two_algorithms(trials=1).curves[0], two_algorithms(trials=4).curves[0]
    assert one.samples_interval is None and one.draws_interval is None
    assert several.samples_interval == (180, 180)
    assert several.draws_interval == (300, 300)
