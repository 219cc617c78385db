"""What must not change is as it was recorded: names, commands, files, numbers, keys and pages."""

import re
from pathlib import Path

import pytest
from golden.cases import CASES
from golden.pinning import RECORDED, Case, differences, made_now, normal, page_text, recorded, shape

EVERY = [
    pytest.param(case, id=case.name, marks=[pytest.mark.slow] * case.slow)
    for case in CASES.values()
]


@pytest.mark.parametrize("case", EVERY)
def test_nothing_has_changed(case: Case) -> None:
    changed = differences(case, recorded(case), made_now(case))
    assert not changed, f"{case.name} has changed:\n" + "\n".join(changed)


def test_every_recorded_file_belongs_to_a_case() -> None:
    files = {str(p.relative_to(RECORDED).with_suffix("")) for p in RECORDED.rglob("*.*")}
    assert files - {"runs"} == set(CASES)


# A change is seen, and told so that it can be read.


def case(**options) -> Case:
    return Case("made-up", lambda folder: None, **options)


def test_a_changed_number_is_told_with_its_place() -> None:
    was = {"solutions": [{"total": 2.0, "name": "a"}]}
    assert differences(case(), was, was) == []
    near = {"solutions": [{"total": 2.0 + 1e-12, "name": "a"}]}
    assert differences(case(), was, near) == []
    now = {"solutions": [{"total": 2.001, "name": "a"}]}
    assert differences(case(), was, now) == ["made-up.solutions[0].total is 2.001; it was 2.0"]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"a": 1}, "made-up.b is gone; it was true"),
        ({"a": 1, "b": True, "c": 3}, "made-up.c is new: 3"),
        ({"a": 1, "b": 1}, "made-up.b is 1; it was true"),
        ({"a": "1", "b": True}, 'made-up.a is "1"; it was 1'),
        ({"a": [1], "b": True}, "made-up.a is [1]; it was 1"),
        ({"a": float("nan"), "b": True}, "made-up.a is NaN; it was 1"),
    ],
)
def test_a_changed_key_or_kind_is_told(now: object, words: str) -> None:
    assert differences(case(), {"a": 1, "b": True}, now) == [words]


def test_where_names_may_be_added_none_may_go() -> None:
    assert differences(case(growing=True), {"x": ["a", "b"]}, {"x": ["b", "c", "a"], "y": []}) == []
    told = differences(case(growing=True), {"x": ["a", "b"]}, {"x": ["b", "c"]})
    assert told == ["made-up.x has no 'a' any more"]


def test_a_name_that_is_gone_is_told_by_itself() -> None:
    told = differences(case(), ["a", "b", "c"], ["a", "c"])
    assert told == ["made-up had 3 entries and has 2; gone: ['b']; new: []"]


def test_a_changed_line_is_told_as_a_diff() -> None:
    told = differences(case(), "one\ntwo\nthree\n", "one\n2\nthree\n")
    assert told[-4:] == [" one", "-two", "+2", " three"]


def test_what_varies_is_taken_out_of_texts(tmp_path: Path) -> None:
    said = f"{tmp_path}/a.csv  \nwith numpy 2.1.3 on 2026-01-02T03:04:05, in 1 min 1.5 s, 8 cores"
    said += "\nSome Xeon(R) CPU, 1 core, Linux"
    wanted = "FOLDER/a.csv\nwith numpy VERSION on DATE, in TIME, N CORES\nMACHINE\n"
    assert normal(said, tmp_path) == wanted


def test_a_page_is_its_words_and_a_shape_its_keys(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<style>p{}</style><h1>Plan</h1><p>A &lt; <b>B</b></p><svg><text>x</text></svg>"
        "<table><tr><td>1</td><td>2</td></tr></table><script>if (a < b) {}</script>"
    )
    words = page_text(page)
    assert re.sub(r"\s+", " ", words) == "Plan A < B [figure] | 1 | | 2 | "
    assert shape({"a": [1, 2.5, 3], "b": None}) == {"a": ["int", "float"], "b": "null"}


def test_only_the_last_digits_of_a_doubles_digits_may_differ_in_text() -> None:
    was = "floor 0.06967761420271847 of 3 agents\n"
    assert differences(case(), was, was.replace("1847", "1780")) == []
    assert differences(case(), was, was.replace("0.0696", "0.0697"))
    assert differences(case(), was, was.replace("3 agents", "4 agents"))
