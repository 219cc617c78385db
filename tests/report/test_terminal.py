"""What is printed, and what stands in for what must not be."""

import pytest

from fedaccord.report.terminal import complain, emit_text, plain


def test_invisible_characters_are_shown_by_their_escapes() -> None:
    assert plain("a\x1b[2J\r\n\u202e\u2028b\x00\ud83d") == r"a\x1b[2J\r\n\u202e\u2028b\x00\ud83d"


@pytest.mark.parametrize("name", ["Zürich 病院", "می\u200cخواهم", "👩\u200d⚕️", "[b]<i>:x:", ""])
def test_visible_characters_and_joiners_are_left_alone(name: str) -> None:
    assert plain(name) == name


def test_a_complaint_is_one_sentence_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    complain("it broke\nbadly")
    complain("is it cut short?")
    assert capsys.readouterr() == (
        "",
        "fedaccord: it broke\\nbadly.\nfedaccord: is it cut short?\n",
    )


def test_text_ends_in_one_newline(capsys: pytest.CaptureFixture[str]) -> None:
    emit_text("a")
    emit_text("b\n")
    assert capsys.readouterr().out == "a\nb\n"
