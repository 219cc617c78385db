"""Runs and audits as tables and sentences, whatever came of them."""

import io
from typing import Any

import numpy as np
import pytest
from commands import assert_visible
from rich.console import Console

from fedaccord.federation.data.pretraining import Draw
from fedaccord.federation.defection.audit import Known
from fedaccord.federation.defection.curves import DefectionAudit, summed_up
from fedaccord.federation.defection.intervals import Proportion
from fedaccord.federation.history import History
from fedaccord.federation.runs.execute import Progress
from fedaccord.federation.runs.store import Outcome
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
    clients = names or tuple(f"agent {n}" for n in range(len(final)))
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


def test_a_history_says_of_everybody_what_its_goal_is_and_whether_it_is_reached() -> None:
    text = shown(training.history_table(history([0.7, 0.6])), width=80)
    rows = cells(text)
    assert rows[0] == ["first", "in", "points", "of", "them", "samples"]
    assert rows[1] == [
        *("agent", "goal", "accuracy", "reached"),
        *("round", "brought", "used", "drawn"),
    ]
    assert ["agent", "0", "0.700", "0.700", "yes", "3", "100", "30", "3,000"] in rows
    assert ["agent", "1", "0.700", "0.600", "no", "-", "100", "30", "3,000"] in rows
    assert ["all", "200", "60", "6,000"] in rows


@pytest.mark.parametrize(
    ("final", "words"),
    [
        ([0.8, 0.8], "After 3 rounds of FedAvg everybody is satisfied."),
        (
            [0.8, 0.696],
            "After 3 rounds of FedAvg 1 of 2 agents are satisfied; "
            "agent 1 is not (0.696, short by 0.004).",
        ),
        ([0.8, 0.6996], "agent 1 is not (short by 0.0004)."),
        (
            [0.6, 0.5],
            "0 of 2 agents are satisfied; "
            "agent 0 (0.600, short by 0.100), agent 1 (0.500, short by 0.200) are not.",
        ),
        ([0.6] * 9, "agent 2 (0.600, short by 0.100) and 6 more are not."),
    ],
)
def test_a_sentence_says_who_misses_its_goal_and_by_how_much(
    final: list[float], words: str
) -> None:
    assert words in shown(training.history_sentence(history(final), "FedAvg"))


def test_a_run_that_diverged_is_not_called_satisfied() -> None:
    lost = history([float("nan")] * 2, diverged=True)
    text = shown(training.history_sentence(lost, "FedAvg"), training.history_table(lost))
    assert "diverged in round 3" in text
    assert "nobody is satisfied" in text
    assert ["agent", "0", "0.700", "-", "no", "-", "100", "30", "3,000"] in cells(text)


def test_who_left_before_training_diverged_is_counted() -> None:
    text = training.history_sentence(history([0.9, float("nan")], diverged=True), "RELEASE").plain
    assert "only 1 of 2 agents, who had left before, is satisfied" in text


def test_of_many_agents_those_furthest_from_their_goal_are_shown() -> None:
    final = [0.9] * 40
    final[33] = 0.1
    text = shown(training.history_table(history(final)))
    assert cells(text)[3][:2] == ["agent", "33"]
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
    defectors: str = "each",
    full: tuple[int, int] = (10, 10),
    levels: tuple[float, ...] = (1.0, 0.25),
    requirements: tuple[float, float] = (0.8, 0.8),
    harm: bool = False,
    poor: bool = False,
    stopped: bool = False,
) -> DefectionAudit:
    """Four trials: all are satisfied, but for the south in half of the trials it cuts in.

    harm: the north is not either, then.
    poor: the south is satisfied in one trial of four when nobody cuts.
    stopped: the last level has one trial fewer.
    """
    trials = {}
    for level in (1.0, *levels):
        whole = level == 1
        south = [(n == 0 if poor else True) if whole else n % 2 == 0 for n in range(4)]
        trials[level] = [
            [
                (0, outcome(True, s if whole else True)),
                (1, outcome(s if harm and not whole else True, s)),
            ]
            for s in south
        ]
    if stopped:
        trials[levels[-1]].pop()
    shown = {"clients": names, "levels": levels, "trials": trials, "drawn": 2}
    curve = summed_up(algorithm, {}, full, **shown)
    return DefectionAudit(
        protocol=protocol,
        defectors=defectors,
        clients=names,
        curves=(curve,),
        trials=4,
        width=None,
        seed=0,
        versions=(),
        source="",
        requirements=requirements,
        reused=0,
        run_seconds=1.0,
        seconds=1.0,
    )


def row(rows: list[list[str]], *start: str) -> list[str]:
    return next(cells[len(start) :] for cells in rows if cells[: len(start)] == list(start))


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        (
            {},
            "Share of 4 trials in which the agent that cut reached its goal (accuracy 0.80 on its "
            "own validation points) at the end of training;",
            "in brackets the 95 % interval. The others bring everything.",
        ),
        (
            {"requirements": (0.875, 0.875), "stopped": True},
            "Share of up to 4 trials in which the agent that cut reached its goal (accuracy 0.875 "
            "on its own validation points) at the end of training;",
            "in brackets the 95 % interval. The others bring everything.",
        ),
        (
            {"requirements": (0.8, 0.7), "protocol": "P2"},
            "Share of 4 trials in which the agent that brought a part of what is asked of it "
            "reached its goal at the end of training;",
            "in brackets the 95 % interval. The others bring all that is asked of them.",
        ),
    ],
)
def test_above_the_tables_stands_what_their_numbers_are(
    options: Any, first: str, second: str
) -> None:
    found = [text.plain for text in training.table_sentences(audited(**options))]
    assert found == [first, second]


def test_an_audit_is_a_table_of_levels_and_algorithms() -> None:
    rows = cells(shown(training.curves_table(audited())))
    assert rows[0] == ["a", "random", "agent", "brings", "FedAvg"]
    assert row(rows, "25", "%")[0] == "0.75"
    assert row(rows, "different", "points", "used,", "all", "in", "full") == ["20"]
    assert row(rows, "samples", "drawn,", "all", "in", "full") == ["200"]
    assert not any("diverged" in cells for cells in rows)


@pytest.mark.parametrize(
    ("value", "words"), [(240.0, "240"), (232.5, "232.5"), (1280.0, "1,280"), (0.04, "0")]
)
def test_means_of_counts_are_written_for_people(value: float, words: str) -> None:
    assert training.counted(value) == words


def test_each_agent_has_a_column() -> None:
    found = audited()
    rows = cells(shown(training.agents_table(found, found.curves[0])))
    assert rows[0] == ["all", "the", "others"]
    assert rows[1] == ["FedAvg,", "brings", "north", "south", "reach", "theirs"]
    assert row(rows, "25", "%")[:3] == ["1.00", "0.50", "1.00"]
    # Nobody is "the others" when nobody cuts.
    assert row(rows, "100", "%") == ["1.00", "1.00", "-"]
    assert not any(cells[0] == "asked" for cells in rows)


def test_of_whom_nothing_is_asked_has_nothing_to_cut() -> None:
    found = audited(protocol="P2", full=(0, 1200))
    rows = cells(shown(training.agents_table(found, found.curves[0])))
    assert row(rows, "asked") == ["-", "1,200"]
    assert row(rows, "100", "%") == ["1.00", "1.00", "-"]
    assert row(rows, "25", "%")[:2] == ["-", "0.50"]
    table = cells(shown(training.curves_table(found)))
    assert table[0][:4] == ["a", "random", "contributor", "brings"]
    assert row(table, "25", "%")[0] == "0.50"


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        (
            {},
            "Under FedAvg a random agent reaches its goal in 100 % of runs with all of its data "
            "and in 75 % with 25 % of it (",
            " %, 4 trials x 2 agents).",
        ),
        ({"levels": (1.0, 0.5, 0.05)}, "Under FedAvg", "in 75 % with 5 % of it ("),
        ({"levels": (1.0, 0.33)}, "Under FedAvg", "in 75 % with 33 % of it ("),
        (
            {"levels": (0.125,)},
            "Under FedAvg a random agent reaches its goal in 75 % of runs with 12.5 % of "
            "its data (",
            " %, 4 trials x 2 agents).",
        ),
        (
            {"levels": (1.0,)},
            "Under FedAvg a random agent reaches its goal in 100 % of runs with all of its data (",
            "to 100 %, 4 trials x 2 agents).",
        ),
        (
            {"protocol": "P2"},
            "Under FedAvg a random agent reaches its goal in 100 % of runs with all that is asked "
            "of it and in 75 % with 25 % of it (",
            " %, 4 trials x 2 agents).",
        ),
        (
            {"protocol": "P2", "full": (0, 10), "harm": True},
            "Under FedAvg a random contributor reaches its goal in 100 % of runs with all that is "
            "asked of it and in 50 % with 25 % of it (",
            " %, 4 trials x 1 agent).",
        ),
        (
            {"protocol": "P2", "full": (0, 0)},
            "Under FedAvg nothing is asked of anybody.",
            "nothing is asked of anybody.",
        ),
        ({"algorithm": "mine", "defectors": "random"}, "Under mine a random agent", "4 trials)."),
        (
            {"harm": True},
            "Under FedAvg a random agent reaches its goal in 100 % of runs",
            "4 trials x 2 agents), and then all the others reach theirs in 75 % (100 % when it "
            "brings everything).",
        ),
    ],
)
def test_a_sentence_compares_with_full_contribution(options: Any, start: str, end: str) -> None:
    (sentence,) = training.audit_sentences(audited(**options))
    assert sentence.plain.startswith(start)
    assert end in sentence.plain
    assert sentence.plain.endswith(end) or end.endswith("(")


def test_that_full_contribution_does_not_satisfy_all_is_said_first() -> None:
    first, second = training.audit_sentences(audited(poor=True))
    assert first.plain == (
        "Under FedAvg all agents reach their goals in only 25 % of runs even when everybody "
        "brings everything."
    )
    # Five of eight: the north in all trials, the south in one.
    assert "in 62 % of runs with all of its data and in 75 % with 25 % of it" in second.plain


def test_names_in_heads_are_shown_as_they_are_written_and_cut() -> None:
    found = audited(names=(HOSTILE, "south"), algorithm=HOSTILE + "z")
    parts = (training.curves_table(found), training.agents_table(found, found.curves[0]))
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
    assert ["brings", "FedAvg", "MW-FED"] in rows
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
    told_otherwise: list[Progress] = []
    with live.shown_live(live.audit_display, told_otherwise.append) as show:
        show(progress())
    assert told_otherwise == []
    with live.counted("scoring points") as told:
        told(3, 10)
    text = Terminal.kept.getvalue()
    assert "30 of 80 runs" in text
    assert "scoring points" in text
    # The cursor is hidden and must come back.
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def test_off_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told_otherwise: list[Progress] = []
    with live.shown_live(live.audit_display, told_otherwise.append) as show:
        show(now := progress())
    assert told_otherwise == [now]
    with live.counted("scoring points") as told:
        told(3, 10)
    assert capsys.readouterr() == ("", "")
