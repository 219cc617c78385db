"""How claims are checked, kept and told, with claims that are made up."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from fedaccord._io.files import json_text
from fedaccord.charts import Chart, Line
from fedaccord.errors import ExactnessError, InputError, MissingExtraError, UnsolvedError
from fedaccord.reproduce import claims, run
from fedaccord.reproduce.claims import (
    Claim,
    Claims,
    Finding,
    Measured,
    Row,
    Setting,
    Unavailable,
    Verdict,
    fill,
    is_met,
)
from fedaccord.reproduce.estimates import Estimate

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
    monkeypatch.setattr(run, "all_claims", lambda: claims)
    monkeypatch.setattr(run, "expected_numbers", lambda: {"two": {"price": 2}})
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
    row = run.check_claim(claim("one", raising(error)), Setting(False, {}, Path()))
    assert row.finding.verdict is verdict
    assert str(error) in row.finding.measured


@pytest.mark.parametrize("error", [ZeroDivisionError(), InputError("the disk is full")])
def test_a_fault_of_the_program_or_the_disk_is_not_taken_for_a_verdict(error):
    with pytest.raises(type(error)):
        run.check_claim(claim("one", raising(error)), Setting(False, {}, Path()))


def test_every_row_is_told_when_it_is_finished_with_all_that_is_known(known):
    told = []
    found = run.reproduce(finished=lambda row, so_far: told.append((row, so_far)))
    assert [row.claim.id for row, _ in told] == ["one", "two", "three"]
    assert [so_far.count(Verdict.CORRECTED) for _, so_far in told] == [1, 2, 3]
    assert [so_far.count(Verdict.NOT_RUN) for _, so_far in told] == [2, 1, 0]
    assert list(found.rows) == ["one", "two", "three"]


def test_a_check_gets_its_own_numbers_of_the_paper_and_the_scale(known):
    seen = []
    known["two"] = claim("two", lambda setting: seen.append(setting) or FOUND)
    run.reproduce(["two"], full=True, folder="here", workers=2)
    (setting,) = seen
    assert (setting.full, setting.expected) == (True, {"price": 2})
    assert (setting.folder, setting.workers) == (Path("here"), 2)


def test_rows_that_are_not_asked_for_are_not_run(known):
    known["one"] = claim("one", raising(AssertionError("must not be run")))
    found = run.reproduce(["three"])
    verdicts = [row.finding.verdict for row in found.rows.values()]
    assert verdicts == [Verdict.NOT_RUN, Verdict.NOT_RUN, Verdict.CORRECTED]
    assert (
        found.sentence()
        == "Of 3 claims of the paper, 1 holds with a correction and 2 were not run."
    )


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("tow", "no claim 'tow'; did you mean two? 'fedaccord reproduce --list' lists them"),
        ("xyz", "no claim 'xyz'; 'fedaccord reproduce --list' lists them"),
    ],
)
def test_an_unknown_id_is_refused_with_those_that_are_near(known, id, words):
    for ask in (run.reproduce, lambda only: run.minutes(only, full=False)):
        with pytest.raises(InputError, match=re.escape(words)):
            ask([id])


def test_the_cost_is_that_of_the_claims_asked_for(known):
    assert run.minutes(None, full=False) == 3
    assert run.minutes(["two", "one"], full=True) == 120


def test_rows_of_an_earlier_result_stay_until_they_are_run_again(known):
    earlier = json.loads(json_text(run.reproduce(["one", "two"]).to_dict()))
    known["two"] = claim("two", lambda setting: Finding(Verdict.FAILS, "Not so."))
    found = run.reproduce(["two"], earlier=earlier)
    verdicts = [row.finding.verdict for row in found.rows.values()]
    assert verdicts == [Verdict.CORRECTED, Verdict.FAILS, Verdict.NOT_RUN]


@pytest.mark.parametrize(
    ("key", "value"), [("scale", "full"), ("versions", "Python 2"), ("machine", "abacus")]
)
def test_rows_made_otherwise_are_not_mixed_in(known, key, value):
    earlier = {**run.reproduce(["one"]).to_dict(), key: value}
    assert run.reproduce(["two"], earlier=earlier).count(Verdict.NOT_RUN) == 2


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
    claims.add("two", claim="a", place="b", paper="c")(lambda setting: FOUND)
    assert list(claims) == ["one", "two"]


@pytest.mark.parametrize("wrong", [{"y": (1.0,)}, {"low": (1.0, 1.0)}, {"low": (1,), "high": (2,)}])
def test_a_line_needs_as_many_of_everything(wrong):
    with pytest.raises(InputError, match="the line PoS needs"):
        Line(**{"name": "PoS", "x": (1.0, 2.0), "y": (1.0, 2.0), **wrong})


# The sentences.


def test_sentences_are_filled_in_with_evidence_and_words():
    known = {"games": [1, 2], "left": 0, "gap": 0.25, "prices": {"k4": 1.5, "ring": None}}
    sentence = "{games:count} games, {left:or none} left, {gap:.0%}; {prices[k4]:.2g or none}"
    assert fill(sentence, known) == "2 games, none left, 25%; 1.5"
    assert fill("{prices[ring]:.2g or none}", known) == "none"


def test_numbers_are_written_as_the_sentences_ask() -> None:
    known = {"gap": 0.25, "right": False, "rows": [1, 2], "shares": (Fraction(1, 2), Fraction(1))}
    sentence = "{gap:g %} {right:is|is not} {rows:list}, {rows:.1f list}, {shares:amounts}"
    assert fill(sentence, known) == "25 % is not 1, 2, 1.0, 2.0, (1/2, 1)"
    assert fill("{rows:there are {gap:.0%}|none}", known) == "there are 25%"


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("right", True),
        ("not right", False),
        ("not differ", True),
        ("worst <= expected[tolerance]", True),
        ("worst < 0.1", False),
        ("share.low > 0 and worst >= 0.1", True),
        ("share.low > 0 and right != games", False),
        ("games == right > 0", True),
        ("games == right > 5", False),
        ("numbers[1] == 1e-3", True),
    ],
)
def test_conditions_are_read_in_what_was_measured(condition, met) -> None:
    known = {
        **{"right": 5, "games": 5, "differ": [], "worst": 0.1, "numbers": [1, 1e-3]},
        **{"expected": {"tolerance": 0.1}, "share": Estimate(0.5, 0.1, 0.9)},
    }
    assert is_met(condition, known) is met


@pytest.mark.parametrize("condition", ["missing", "games = 5", "games == 5 6", "right.missing"])
def test_a_condition_that_is_a_slip_is_not_taken_for_one_that_is_met(condition) -> None:
    with pytest.raises((KeyError, ValueError, AttributeError)):
        is_met(condition, {"games": 5, "right": True})


def test_the_conditions_decide_the_verdict_and_name_what_is_not_so(monkeypatch) -> None:
    texts = {
        **{"claim": "", "measured": "It is {share}.", "correction": "At most {most:g}."},
        **{"holds": {"a": "right", "c": "share <= expected[most]"}, "refuted": {"b": "other"}},
        "shown": {"Too few to show {most:g}.": "enough"},
    }
    monkeypatch.setattr(claims, "read_texts", lambda: {"one": texts})

    def find(right=True, other=True, enough=True, limit=1):
        words = {"most": 2.0, "right": right, "other": other, "enough": enough}
        found = Measured(share=Fraction(1, 3), words=words).find("one", {"most": limit})
        assert found.evidence == {"share": "1/3"}
        return found.verdict, found.measured, found.correction

    assert find() == (Verdict.CORRECTED, "It is 1/3.", "At most 2.")
    assert find(other=False) == (Verdict.HOLDS, "It is 1/3. Not so: b.", "")
    assert find(right=False, limit=0) == (Verdict.FAILS, "It is 1/3. Not so: a; c.", "")
    assert find(enough=False) == (Verdict.FAILS, "It is 1/3. Too few to show 2.", "")
    texts["refuted"] = "other"
    assert find() == (Verdict.CORRECTED, "It is 1/3.", "At most 2.")
    assert find(other=False) == (Verdict.HOLDS, "It is 1/3.", "")
    del texts["refuted"]
    assert find() == (Verdict.HOLDS, "It is 1/3.", "")


def test_every_claim_of_the_paper_has_its_sentences_and_a_check():
    known = run.all_claims()
    assert list(known) == list(claims.read_texts())
    assert len(known) == 50
    assert all(texts["measured"] for texts in claims.read_texts().values())


@pytest.mark.parametrize("id", claims.read_texts())
def test_every_claim_of_the_paper_can_fail_and_is_corrected_just_if_it_can_be_refuted(id) -> None:
    texts = claims.read_texts()[id]
    said = {"claim", "place", "paper", "minutes", "measured", "correction"}
    assert texts.keys() <= said | {"holds", "shown", "refuted"}
    assert texts.get("holds") or texts.get("shown")
    assert ("refuted" in texts) == ("correction" in texts)
