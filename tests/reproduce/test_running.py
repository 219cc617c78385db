"""How claims are checked, kept and told, with claims that are made up."""

import json
import math
import re
from pathlib import Path

import pytest

from fedaccord._io.json import json_text
from fedaccord.charts import Chart, Line
from fedaccord.errors import ExactnessError, InputError, MissingExtraError, UnsolvedError
from fedaccord.reproduce import running
from fedaccord.reproduce.claims import Claim, Claims, Finding, Row, Setting, Unavailable, Verdict

CHART = Chart(
    "prices", "Prices", "k", "price", "PoS 2 at 4.", lines=(
        Line("PoS", (4.0, 9.0), (2.0, math.nan), (1.5, 1.0), (2.5, 4.0)),
        Line("root", (4.0, 9.0), (2.0, 3.0), reference=True),
    ), logarithmic=True,
)  # fmt: skip
FOUND = Finding(Verdict.CORRECTED, "Two games.", "It needs two.", {"games": 2}, (CHART,))


def claim(id: str, check=lambda setting: FOUND) -> Claim:
    return Claim(id, f"{id} is so", "Section 1", f"That {id} is so", check, (1.0, 60.0), "Words")


def raising(error: BaseException):
    def check(setting: Setting) -> Finding:
        raise error

    return check


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Claim]:
    """Three claims instead of the paper's, and no numbers of the paper."""
    claims = {id: claim(id) for id in ("one", "two", "three")}
    monkeypatch.setattr(running, "all_claims", lambda: claims)
    monkeypatch.setattr(running, "expected_numbers", lambda: {"two": {"price": 2}})
    return claims


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (Unavailable("there is no EMNIST here"), Verdict.NOT_RUN),
        (MissingExtraError("torch", "train"), Verdict.NOT_RUN),
        (UnsolvedError("no allocation was found"), Verdict.FAILS),
        (ExactnessError("too many agents"), Verdict.FAILS),
    ],
)
def test_a_check_that_cannot_run_says_so_and_one_that_breaks_down_fails(error, verdict):
    row = running.checked(claim("one", raising(error)), Setting(False, {}, Path()))
    assert row.finding.verdict is verdict
    assert str(error) in row.finding.measured


@pytest.mark.parametrize("error", [ZeroDivisionError(), InputError("the disk is full")])
def test_a_fault_of_the_program_or_the_disk_is_not_taken_for_a_verdict(error):
    with pytest.raises(type(error)):
        running.checked(claim("one", raising(error)), Setting(False, {}, Path()))


def test_every_row_is_told_when_it_is_finished_with_all_that_is_known(known):
    told = []
    found = running.reproduce(finished=lambda row, so_far: told.append((row, so_far)))
    assert [row.claim.id for row, _ in told] == ["one", "two", "three"]
    assert [so_far.count(Verdict.CORRECTED) for _, so_far in told] == [1, 2, 3]
    assert [so_far.count(Verdict.NOT_RUN) for _, so_far in told] == [2, 1, 0]
    assert list(found.rows) == ["one", "two", "three"]


def test_a_check_gets_its_own_numbers_of_the_paper_and_the_scale(known):
    seen = []
    known["two"] = claim("two", lambda setting: seen.append(setting) or FOUND)
    running.reproduce(["two"], full=True, folder="here", workers=2)
    (setting,) = seen
    assert (setting.full, setting.expected) == (True, {"price": 2})
    assert (setting.folder, setting.workers) == (Path("here"), 2)


def test_rows_that_are_not_asked_for_are_not_run(known):
    known["one"] = claim("one", raising(AssertionError("must not be run")))
    found = running.reproduce(["three"])
    verdicts = [row.finding.verdict for row in found.rows.values()]
    assert verdicts == [Verdict.NOT_RUN, Verdict.NOT_RUN, Verdict.CORRECTED]
    assert found.sentence() == "Of 3 claims of the paper 1 holds with a correction, 2 were not run."


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("tow", "no claim 'tow'; did you mean two? 'fedaccord reproduce --list' lists them"),
        ("xyz", "no claim 'xyz'; 'fedaccord reproduce --list' lists them"),
    ],
)
def test_an_unknown_id_is_refused_with_those_that_are_near(known, id, words):
    for ask in (running.reproduce, lambda only: running.minutes(only, full=False)):
        with pytest.raises(InputError, match=re.escape(words)):
            ask([id])


def test_the_cost_is_that_of_the_claims_asked_for(known):
    assert running.minutes(None, full=False) == 3
    assert running.minutes(["two", "one"], full=True) == 120


def test_rows_of_an_earlier_result_stay_until_they_are_run_again(known):
    earlier = json.loads(json_text(running.reproduce(["one", "two"]).to_dict()))
    known["two"] = claim("two", lambda setting: Finding(Verdict.FAILS, "Not so."))
    found = running.reproduce(["two"], earlier=earlier)
    verdicts = [row.finding.verdict for row in found.rows.values()]
    assert verdicts == [Verdict.CORRECTED, Verdict.FAILS, Verdict.NOT_RUN]


@pytest.mark.parametrize(
    ("key", "value"), [("scale", "full"), ("versions", "Python 2"), ("machine", "abacus")]
)
def test_rows_made_otherwise_are_not_mixed_in(known, key, value):
    earlier = {**running.reproduce(["one"]).to_dict(), key: value}
    assert running.reproduce(["two"], earlier=earlier).count(Verdict.NOT_RUN) == 2


def test_a_row_is_the_same_after_it_was_written_and_read():
    row = Row(claim("one"), FOUND, 1.25)
    data = json.loads(json_text(row.to_dict()))
    again = Row.from_dict(row.claim, data)
    assert again.to_dict()["charts"][0]["lines"][1] == row.to_dict()["charts"][0]["lines"][1]
    assert math.isnan(again.finding.charts[0].lines[0].y[1])
    assert json_text(again.to_dict()) == json_text(row.to_dict())


def test_no_two_claims_share_an_id():
    claims = Claims()
    claims.add("one", claim="a", place="b", paper="c")(lambda setting: FOUND)
    with pytest.raises(ValueError, match="one is there already"):
        claims.add("one", claim="a", place="b", paper="c")(lambda setting: FOUND)
    others = [Claims({id: claim(id) for id in ids}) for ids in (["two"], ["three", "one"])]
    with pytest.raises(ValueError, match="one is there already"):
        claims.include_all(*others)
    assert list(claims) == ["one", "two", "three"]


@pytest.mark.parametrize("wrong", [{"y": (1.0,)}, {"low": (1.0, 1.0)}, {"low": (1,), "high": (2,)}])
def test_a_line_needs_as_many_of_everything(wrong):
    with pytest.raises(InputError, match="the line PoS needs"):
        Line(**{"name": "PoS", "x": (1.0, 2.0), "y": (1.0, 2.0), **wrong})
