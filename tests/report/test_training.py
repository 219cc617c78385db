"""Runs and audits as tables and sentences, whatever came of them."""

import io
from typing import Any

import numpy as np
import pytest
from commands import assert_visible
from rich.console import Console

from fedaccord.federation.curves import DefectionAudit, summed_up
from fedaccord.federation.defection import Known, Progress
from fedaccord.federation.history import History
from fedaccord.federation.intervals import Proportion
from fedaccord.federation.pretraining import Draw
from fedaccord.federation.store import Outcome
from fedaccord.report import live, training

HOSTILE = "[bold]\x1b[31mx\u202e" + "y" * 60


def shown(*parts: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part, soft_wrap=True)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def history(final: list[float], *, diverged: bool = False, names: tuple[str, ...] = ()) -> History:
    clients = names or tuple(f"client {n}" for n in range(len(final)))
    ones = np.ones((3, len(clients)), dtype=np.int64)
    accuracy = np.full((3, len(clients)), np.nan)
    accuracy[-1] = final
    return History(
        clients=clients,
        requirements=np.full(len(clients), 0.7),
        contributions=100 * ones[0],
        algorithm={"kind": "fedavg"},
        seed=0,
        samples=1000 * ones,
        unique=np.cumsum(10 * ones, axis=0),
        loss=0.5 * ones,
        accuracy=accuracy,
        diverged=diverged,
        seconds=1.0,
    )


# Histories.


def test_a_history_says_of_everybody_what_it_wants_and_has() -> None:
    rows = cells(shown(training.history_table(history([0.7, 0.6]))))
    assert ["client", "0", "0.700", "0.700", "yes", "3", "100", "30", "3,000"] in rows
    assert ["client", "1", "0.700", "0.600", "no", "-", "100", "30", "3,000"] in rows
    assert ["all", "200", "60", "6,000"] in rows


@pytest.mark.parametrize(
    ("final", "words"),
    [
        ([0.8, 0.8], "After 3 rounds of FedAvg everybody is satisfied."),
        ([0.8, 0.6], "After 3 rounds of FedAvg 1 of 2 are satisfied; client 1 is not."),
        ([0.6] * 2, "0 of 2 are satisfied; client 0, client 1 are not."),
        ([0.6] * 9, "0 of 9 are satisfied; client 0, client 1, client 2 and 6 more are not."),
    ],
)
def test_a_sentence_says_who_is_not_satisfied(final: list[float], words: str) -> None:
    assert words in shown(training.history_sentence(history(final), "FedAvg"))


def test_a_run_that_diverged_is_not_called_satisfied() -> None:
    lost = history([float("nan")] * 2, diverged=True)
    text = shown(training.history_sentence(lost, "FedAvg"), training.history_table(lost))
    assert "diverged in round 3" in text
    assert "nobody is satisfied" in text
    assert ["client", "0", "0.700", "-", "no", "-", "100", "30", "3,000"] in cells(text)


def test_of_many_clients_those_furthest_from_their_goal_are_shown() -> None:
    final = [0.9] * 40
    final[33] = 0.1
    text = shown(training.history_table(history(final)))
    assert cells(text)[2][:2] == ["client", "33"]
    assert "and 25 more; all" in text


# Audits.


def outcome(*satisfied: bool) -> Outcome:
    few = tuple(10 for _ in satisfied)
    return Outcome(
        accuracies=tuple(0.9 if s else 0.1 for s in satisfied),
        satisfied=satisfied,
        first_passage=tuple(int(s) for s in satisfied),
        samples=tuple(100 for _ in satisfied),
        unique=few,
        diverged=False,
        seconds=1.0,
        versions="",
    )


def audited(
    *,
    names: tuple[str, str] = ("north", "south"),
    algorithm: str = "FedAvg",
    protocol: str = "P1",
    full: tuple[int, int] = (10, 10),
    levels: tuple[float, ...] = (1.0, 0.25),
) -> DefectionAudit:
    """Four trials: all are satisfied, but for the south in half of the trials it cuts in."""
    trials = {
        level: [
            [(0, outcome(True, True)), (1, outcome(True, level == 1 or n % 2 == 0))]
            for n in range(4)
        ]
        for level in (1.0, *levels)
    }
    curve = summed_up(algorithm, {}, full, clients=names, levels=levels, trials=trials)
    return DefectionAudit(
        protocol=protocol,
        defectors="each",
        clients=names,
        curves=(curve,),
        trials=4,
        width=None,
        seed=0,
        versions=(),
        reused=0,
        seconds=1.0,
    )


def test_an_audit_is_a_table_of_levels_and_algorithms() -> None:
    rows = cells(shown(training.curves_table(audited())))
    assert rows[0] == ["a", "random", "agent", "gives", "FedAvg"]
    quarter = next(row for row in rows if row[:2] == ["25", "%"])
    assert quarter[2] == "0.75"
    assert ["points", "used", "then,", "in", "all", "20"] in rows
    assert ["samples", "drawn", "then,", "in", "all", "200"] in rows
    assert not any("diverged" in row for row in rows)


def test_each_agent_has_a_column() -> None:
    rows = cells(shown(training.agents_table(audited().curves[0])))
    assert rows[0][:4] == ["FedAvg,", "given", "north", "south"]
    quarter = next(row for row in rows if row[:2] == ["25", "%"])
    assert quarter[2:5] == ["1.00", "0.50", "1.00"]


def test_who_gives_nothing_is_told_apart_from_contributors() -> None:
    table = training.agents_table(audited(protocol="P2", full=(0, 10)).curves[0])
    rows = cells(shown(table))
    assert rows[0][4:6] == ["a", "contributor"]
    quarter = next(row for row in rows if row[:2] == ["25", "%"])
    assert quarter[4] == "0.50"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {},
            "Under FedAvg a random member that brings 25 % of its data still reaches its goal in ",
        ),
        ({"levels": (1.0, 0.5, 0.05)}, "brings 5 % of its data"),
        ({"levels": (1.0, 0.33)}, "brings 33 % of its data"),
        ({"levels": (0.125,)}, "brings 12.5 % of its data"),
        ({"protocol": "P2"}, "brings 25 % of what is asked of it"),
        ({"algorithm": "mine"}, "Under mine a random member"),
    ],
)
def test_one_sentence_says_what_an_algorithm_comes_to(options: Any, words: str) -> None:
    (sentence,) = training.audit_sentences(audited(**options))
    assert words in sentence.plain
    # Six of eight runs.
    assert "in 75 % of runs (" in sentence.plain
    assert sentence.plain.endswith(" %, 8 runs).")


def test_names_in_heads_are_shown_as_they_are_written_and_cut() -> None:
    found = audited(names=(HOSTILE, "south"), algorithm=HOSTILE + "z")
    parts = (training.curves_table(found), training.agents_table(found.curves[0]))
    text = shown(*parts, *training.audit_sentences(found))
    assert_visible(text)
    assert text.count("[bold]") == 4
    tables = shown(*parts)
    assert all(len(line) <= 100 for line in tables.splitlines())


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s"), (7384, "2 h 03 min")],
)
def test_times_are_written_for_people(seconds: float, words: str) -> None:
    assert training.span(seconds) == words


def test_a_search_is_listed_with_what_diverged() -> None:
    draws = [Draw(0.001, 8, 0.81234, 1200), Draw(0.01, 4, float("nan"), 9)]
    rows = cells(shown(training.search_table(draws)))
    assert ["1.00e-03", "8", "1,200", "0.8123"] in rows
    assert ["1.00e-02", "4", "9", "diverged"] in rows


# While it is going on.


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
    text = shown(live.audit_display(progress()))
    words = "30 of 80 runs (10 were there already), about 1 min 15 s left"
    assert text.splitlines()[1] == words
    rows = cells(text)
    assert ["gives", "FedAvg", "MW-FED"] in rows
    assert ["100", "%", "1.00", "(5", "trials,", "enough)", "-"] in rows
    assert ["25", "%", "0.50", "(4", "trials)", "0.00", "(1", "trial)"] in rows


def test_the_display_makes_nothing_up_before_anything_is_known() -> None:
    text = shown(live.audit_display(progress(done=0, reused=0, total=0, left=None, known=())))
    assert "0 of 0 runs" in text
    assert "left" not in text
    assert "already" not in text
    planning = shown(live.audit_display(progress(planning=True)))
    assert "30 of 80 plans" in planning


class Terminal(Console):
    """A terminal that keeps what is shown on it."""

    kept = io.StringIO()

    def __init__(self, **options: Any) -> None:
        super().__init__(file=self.kept, force_terminal=True, width=80)


def test_on_a_terminal_progress_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "Console", Terminal)
    Terminal.kept = io.StringIO()
    with live.live_audit() as show:
        show(progress())
    with live.counted("scoring points") as told:
        told(3, 10)
    text = Terminal.kept.getvalue()
    assert "30 of 80 runs" in text
    assert "scoring points" in text
    # The cursor is hidden and must come back.
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def test_off_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with live.live_audit() as show:
        show(progress())
    with live.counted("scoring points") as told:
        told(3, 10)
    assert capsys.readouterr() == ("", "")
