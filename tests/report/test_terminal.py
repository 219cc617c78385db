"""What is printed, what stands in for what must not be, and what is shown while work goes on."""

import io
from typing import Any

import pytest
from reading import cells, shown
from rich.console import Console

from fedaccord.federation.defection.audit import Known
from fedaccord.federation.defection.intervals import Proportion
from fedaccord.federation.runs.execute import Progress
from fedaccord.frontier.compare import Stage
from fedaccord.report import Mark, Table, terminal
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


# Progress.


def progress(**options: Any) -> Progress:
    known = (
        Known("FedAvg", 1.0, Proportion(1.0, 0.6, 1.0, 5), stopped=True),
        Known("FedAvg", 0.25, Proportion(0.5, 0.2, 0.8, 4), stopped=False),
        Known("MW-FED", 1.0, Proportion(float("nan"), 0.0, 1.0, 0), stopped=False),
        Known("MW-FED", 0.25, Proportion(0.0, 0.0, 0.8, 1), stopped=False),
    )
    usual = {
        "done": 30,
        "reused": 10,
        "total": 80,
        "running": 2,
        "seconds": 12.0,
        "left": 75.0,
        "planning": False,
        "known": known,
    }
    return Progress(**{**usual, **options})


def test_the_display_has_what_is_known_so_far_and_the_time_left() -> None:
    text = shown(terminal.draw_audit(progress()))
    words = "30 of 80 runs (10 were there already), about 1 min 15 s left"
    assert text.splitlines()[1] == words
    estimated = shown(terminal.draw_audit(progress(estimated=True)))
    assert estimated.splitlines()[1] == words.replace("80", "about 80")
    rows = cells(text)
    assert ["brings", "FedAvg", "MW-FED"] in rows
    assert ["100", "%", "1.00", "(5", "trials,", "enough)", "-"] in rows
    assert ["25", "%", "0.50", "(4", "trials)", "0.00", "(1", "trial)"] in rows


def test_the_display_makes_nothing_up_before_anything_is_known() -> None:
    text = shown(terminal.draw_audit(progress(done=0, reused=0, total=0, left=None, known=())))
    assert "0 of 0 runs" in text
    assert "left" not in text
    assert "already" not in text
    planning = shown(terminal.draw_audit(progress(planning=True)))
    assert "30 of 80 plans" in planning


class Terminal(Console):
    """A terminal that keeps what is shown on it."""

    kept = io.StringIO()

    def __init__(self, **options: Any) -> None:
        super().__init__(file=self.kept, force_terminal=True, width=80)


def test_on_a_terminal_progress_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "Console", Terminal)
    Terminal.kept = io.StringIO()
    told_otherwise: list[Progress] = []
    with terminal.show_live(terminal.draw_audit, told_otherwise.append) as show:
        show(progress())
    assert told_otherwise == []
    with terminal.show_count("scoring points") as told:
        told(3, 10)
    text = Terminal.kept.getvalue()
    assert "30 of 80 runs" in text
    assert "scoring points" in text
    # The cursor is hidden and must come back.
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def test_off_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told_otherwise: list[Progress] = []
    with terminal.show_live(terminal.draw_audit, told_otherwise.append) as show:
        show(now := progress())
    assert told_otherwise == [now]
    with terminal.show_count("scoring points") as told:
        told(3, 10)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, which the test changes."""
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def test_the_log_of_a_long_job_says_every_ten_minutes_how_far_it_is(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.show_stages() as tell:
        for minute in range(60):
            clock[0] = 60.0 * minute
            # The first hundred were stored before.
            tell("auditing defection", 100 + minute, 160)
        clock[0] += 600
        tell("auditing defection", 160, 160)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"fedaccord: auditing defection: {100 + m} of 160 done, about {60 - m} min 00 s left."
        for m in (10, 20, 30, 40, 50)
    ]


def test_the_log_counts_each_stage_by_itself_and_says_nothing_without_news(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    log = terminal.Log()
    for seconds, what, done in [
        (0, "pilots", 0),
        (599, "pilots", 5),
        (700, "audit", 5),
        (1299, "audit", 6),
        (2000, "more", 6),
        (2700, "more", 6),
        (2701, "more", 7),
    ]:
        clock[0] = float(seconds)
        log.tell(what, done, 10)
    assert capsys.readouterr().err == ("fedaccord: more: 7 of 10 done, about 35 min 03 s left.\n")


def test_audits_and_comparisons_say_in_a_log_how_far_they_are(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    from fedaccord.cli import audit, frontier
    from fedaccord.federation.config.sections import AuditOptions

    news, stages = audit._News("none.sqlite", AuditOptions()), frontier._News()
    for seconds, done in ((0.0, 0), (900.0, 20)):
        clock[0] = seconds
        now = progress(done=done, total=80)
        news.announce(now)
        stages.announce(Stage("auditing FedAvg: 3", done, 80, now))
    assert capsys.readouterr().err.splitlines() == [
        "fedaccord: 80 runs to make.",
        "fedaccord: auditing FedAvg: up to 80 runs.",
        "fedaccord: making runs: 20 of 80 done, about 45 min 00 s left.",
        "fedaccord: auditing FedAvg: 20 of 80 done, about 45 min 00 s left.",
    ]


def test_a_stage_shows_what_is_under_way_and_how_far():
    text = shown(terminal.draw_stage(Stage("pilots of PLEDGED", 7, 39)))
    assert "pilots of PLEDGED" in text and "7 of 39 runs" in text


def test_off_a_terminal_stages_are_told_otherwise(capsys):
    told = []
    with terminal.show_live(terminal.draw_stage, told.append) as show:
        show(Stage("pilots", 1, 2))
    assert [stage.what for stage in told] == ["pilots"]


def test_a_terminal_that_knows_few_signs_is_shown_spaces_for_those_that_do_not_break():
    cells = ("0.00 [0.00,\u00a00.79]", Mark("not clear, 0.00 [0.00,\u00a00.79]", "unsure"))
    text = shown(Table("t", ("a\u00a0head", "b"), (cells,)))
    assert "\u00a0" not in text
    assert "a head" in text and text.count("[0.00, 0.79]") == 2
