"""Audits of defection as tables, sentences, a figure and a page."""

from typing import Any

import pytest
from commands import assert_visible
from matplotlib.colors import same_color
from reading import cells, legend, parts, row, shown, table, texts, ticks
from training_results import audit, lenient, strict, two_algorithms

from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.curves import DefectionAudit, sum_up
from fedaccord.federation.runs.store import Outcome
from fedaccord.report import defection
from fedaccord.report.defection import (
    audit_page,
    choose_tone,
    describe_audit,
    find_least_level,
    plot_defection,
)
from fedaccord.report.model import Mark, Table

NAMES = ("north", "south", "west")
HOSTILE = "[bold]\x1b[31mx\u202e" + "y" * 60


def show_levels(found: DefectionAudit) -> Table:
    """Return the first table of a terminal."""
    return next(part for part in defection.show_audit(found) if isinstance(part, Table))


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
    curve = sum_up(algorithm, {}, full, **shown)
    return DefectionAudit(
        options=AuditOptions(levels, trials=4, protocol=protocol, defectors=defectors),
        clients=names,
        curves=(curve,),
        versions=(),
        source="",
        requirements=requirements,
        reused=0,
        run_seconds=1.0,
        seconds=1.0,
    )


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
    assert defection.explain_shares(audited(**options)) == (first, second)


def test_an_audit_is_a_table_of_levels_and_algorithms() -> None:
    rows = cells(shown(show_levels(audited())))
    assert rows[0] == ["a", "random", "agent", "brings", "FedAvg"]
    assert row(rows, "25", "%")[0] == "0.75"
    assert row(rows, "different", "points", "used,", "all", "in", "full") == ["20"]
    assert row(rows, "samples", "drawn,", "all", "in", "full") == ["200"]
    assert not any("diverged" in cells for cells in rows)


def test_each_agent_has_a_column() -> None:
    found = audited()
    rows = cells(shown(defection._list_agents_across(found, found.curves[0])))
    assert rows[0] == ["all", "the", "others"]
    assert rows[1] == ["FedAvg,", "brings", "north", "south", "reach", "theirs"]
    assert row(rows, "25", "%")[:3] == ["1.00", "0.50", "1.00"]
    # Nobody is "the others" when nobody cuts.
    assert row(rows, "100", "%") == ["1.00", "1.00", "-"]
    assert not any(cells[0] == "asked" for cells in rows)


def test_of_whom_nothing_is_asked_has_nothing_to_cut() -> None:
    found = audited(protocol="P2", full=(0, 1200))
    rows = cells(shown(defection._list_agents_across(found, found.curves[0])))
    assert row(rows, "asked") == ["-", "1,200"]
    assert row(rows, "100", "%") == ["1.00", "1.00", "-"]
    assert row(rows, "25", "%")[:2] == ["-", "0.50"]
    table = cells(shown(show_levels(found)))
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
    (sentence,) = defection.compare_levels(audited(**options))
    assert sentence.startswith(start)
    assert end in sentence
    assert sentence.endswith(end) or end.endswith("(")


def test_that_full_contribution_does_not_satisfy_all_is_said_first() -> None:
    first, second = defection.compare_levels(audited(poor=True))
    assert first == (
        "Under FedAvg all agents reach their goals in only 25 % of runs even when everybody "
        "brings everything."
    )
    # Five of eight: the north in all trials, the south in one.
    assert "in 62 % of runs with all of its data and in 75 % with 25 % of it" in second


def test_names_in_heads_are_shown_as_they_are_written_and_cut() -> None:
    found = audited(names=(HOSTILE, "south"), algorithm=HOSTILE + "z")
    parts = (show_levels(found), defection._list_agents_across(found, found.curves[0]))
    text = shown(*parts, *defection.compare_levels(found))
    assert_visible(text)
    assert text.count("[bold]") == 4
    tables = shown(*parts)
    assert all(len(line) <= 100 for line in tables.splitlines())


def test_the_verdict_of_an_audit_begins_with_the_answer_for_each_algorithm():
    assert describe_audit(two_algorithms()) == (
        "Yes under FedAvg: 3 of 3 agents could give less; 3 would get by with 25 %. "
        "No under MW-FED: nobody could give 50 % or less of its data. "
        "A random agent that brings 25 % of its data reaches its goal in 100 % of runs under "
        "FedAvg and 0 % under MW-FED; when everybody gives in full, all reach theirs in 100 % of "
        "runs under both algorithms."
    )


def test_the_verdict_against_a_plan_is_about_what_is_asked():
    found = audit({"FedAvg": strict}, names=NAMES, protocol="P2", asked=[0, 9, 9])
    assert describe_audit(found).startswith(
        "No under FedAvg: nobody could give 50 % or less of what is asked of it. "
        "A random contributor that brings 25 % of what is asked of it reaches its goal in 0 % of "
        "runs under FedAvg; when"
    )
    nothing = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 0, 0])
    assert describe_audit(nothing) == "Nothing is asked of anybody, so nobody could give less."
    assert audit_page(nothing).tone == "plain"


def test_of_many_algorithms_the_lowest_and_the_highest_are_read_aloud():
    rules = {"first": lenient, "second": lenient, "third": strict, "fourth": lenient}
    verdict = describe_audit(audit(rules, names=NAMES))
    assert verdict.startswith("Yes under 3 of 4 algorithms, no under 1 of 4 algorithms. A random")
    assert "0 % of runs under third and 100 % under" in verdict
    assert "second" not in verdict


def test_a_verdict_without_cuts_is_about_full_contribution():
    verdict = describe_audit(audit({"FedAvg": lenient}, names=NAMES, levels=(1.0,)))
    assert verdict.startswith("A random agent that brings all of its data reaches its goal in 100")


@pytest.mark.parametrize(
    ("rule", "trials", "tone"),
    [
        # Giving less goes unpunished.
        (lenient, 12, "bad"),
        # Who cuts misses its goal, and all reach theirs otherwise.
        (strict, 12, "good"),
        # The same, but in too few trials to be sure.
        (strict, 2, "unsure"),
        # Nobody is ever satisfied: no plan to recommend.
        (lambda level, d, i, trial: False, 12, "bad"),
        # Who cuts is satisfied in every second trial.
        (lambda level, d, i, trial: level == 1 or trial % 2 == 0, 12, "unsure"),
        # A quarter is not enough, but half is.
        (lambda level, d, i, trial: level >= 0.5 or i != d, 12, "bad"),
        # A quarter is enough where half is not: nothing to build on.
        (lambda level, d, i, trial: level != 0.5 or i != d, 12, "unsure"),
    ],
)
def test_the_tone_is_good_only_where_cuts_are_felt_and_all_are_satisfied_otherwise(
    rule, trials, tone
):
    assert choose_tone(audit({"FedAvg": rule}, names=NAMES, trials=trials)) == tone


def test_algorithms_that_differ_leave_the_tone_open():
    assert choose_tone(two_algorithms(trials=12)) == "unsure"


def test_levels_stand_beside_algorithms_with_intervals_and_totals():
    found = table(audit_page(two_algorithms()), "Share of runs in which the agent")
    assert found.columns == ("a random agent brings", "FedAvg", "MW-FED")
    rows = {row[0]: row[1:] for row in (*found.rows, *found.footer)}
    assert rows["100 %"] == ("1.00 [0.51,\u00a01.00]", "1.00 [0.51,\u00a01.00]")
    assert rows["25 %"][1].startswith("0.00 [0.00,")
    assert rows["everybody satisfied at 100 %"] == ("1.00 [0.51,\u00a01.00]",) * 2
    assert rows["different points used, all in full"] == ("180", "180")
    assert rows["samples drawn, all in full"] == ("300", "300")
    assert "runs that diverged" not in rows


def test_each_agent_is_told_apart_with_what_it_could_bring():
    page = audit_page(two_algorithms())
    rows = table(page, "FedAvg: per cent").rows
    assert rows[0] == ("north", 0.8, 60, 100, 100, 100, Mark("yes: 25 %", "bad"))
    rows = table(page, "MW-FED: per cent").rows
    assert rows[0] == ("north", 0.8, 60, 100, 0, 0, Mark("not with 50 %", "good"))
    assert "3 of 3 agents could give less; 3 would get by with 25 %." in texts(page)
    assert (
        "Nobody could give 50 % or less of its data; parts between 50 and 100 % were not tried."
    ) in texts(page)
    assert "there, and at every higher level tried," in texts(page)


def test_what_a_cut_does_to_the_others_is_shown():
    def harmful(level, defector, client, trial):
        return level == 1 or client == defector

    found = table(audit_page(audit({"FedAvg": harmful}, names=NAMES)), "What it does to the others")
    shares = {row[0]: row[1][:4] for row in found.rows}
    assert shares == {"100 %": "1.00", "50 %": "0.00", "25 %": "0.00"}
    alone = audit_page(audit({"FedAvg": lenient}, names=("north",)))
    assert not any(part.caption.startswith("What it does") for part in parts(alone, Table))


def test_of_whom_nothing_is_asked_gives_nothing_and_is_explained():
    page = audit_page(audit({"FedAvg": strict}, names=NAMES, protocol="P2", asked=[0, 9, 9]))
    rows = table(page, "FedAvg: per cent").rows
    assert rows[0] == ("north", 0.8, 0, 100, None, None, "gives nothing")
    assert table(page, "FedAvg: per cent").columns[2] == "points asked"
    assert "Of some agents nothing is asked" in texts(page)
    assert "Of some agents" not in texts(audit_page(two_algorithms()))


@pytest.mark.parametrize(
    ("satisfied_at", "levels", "least"),
    [
        ({1.0, 0.5, 0.25}, (1.0, 0.5, 0.25), 0.25),
        ({1.0, 0.5}, (1.0, 0.5, 0.25), 0.5),
        # Luck at a low level is no licence where a higher one does not suffice.
        ({1.0, 0.25}, (1.0, 0.5, 0.25), 1.0),
        (set(), (1.0, 0.5, 0.25), None),
        # The order in which levels were asked for does not matter.
        ({1.0, 0.5}, (0.25, 1.0, 0.5), 0.5),
    ],
)
def test_an_agent_gets_by_with_the_lowest_level_from_which_on_it_is_satisfied(
    satisfied_at, levels, least
):
    found = audit({"FedAvg": lambda level, *_: level in satisfied_at}, names=NAMES, levels=levels)
    assert find_least_level(found.curves[0], "north") == least


@pytest.mark.parametrize(
    ("satisfied_at", "levels", "why"),
    [
        (set(), (1.0, 0.5), "misses its goal in full too"),
        ({0.5}, (1.0, 0.5), "misses its goal in full too"),
        ({1.0, 0.25}, (1.0, 0.5, 0.25), "not with 50 %, but with 25 %"),
        # Where full contribution was not tried, nobody knows.
        (set(), (0.5,), "not with 50 %, and 100 % not tried"),
    ],
)
def test_where_levels_contradict_each_other_nobody_is_called_kept_in_check(
    satisfied_at, levels, why
):
    found = audit({"FedAvg": lambda level, *_: level in satisfied_at}, names=NAMES, levels=levels)
    page = audit_page(found)
    assert table(page, "FedAvg: per cent").rows[0][-1] == Mark(f"not clear: {why}", "unsure")
    assert page.verdict.startswith("Not clear under FedAvg: for 3 of 3 agents it is not clear. ")
    assert "For 3 of 3 agents it is not clear." in texts(page)
    assert page.tone != "good"


def test_the_only_one_of_whom_something_is_asked_is_named():
    found = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 9, 0])
    words = "Yes under FedAvg: south could give less, and get by with 25 %. "
    assert describe_audit(found).startswith(words)


def test_clear_answers_stand_beside_those_that_are_not():
    def rule(level, defector, client, trial):
        return client != defector or level == 1 or (client == 0 and level == 0.25)

    page = audit_page(audit({"FedAvg": rule}, names=NAMES))
    words = "for 1 of 3 agents it is not clear; nobody else could give 50 % or less of its data"
    assert page.verdict.startswith(f"Not clear under FedAvg: {words}.")
    marks = [row[-1].tone for row in table(page, "FedAvg: per cent").rows]
    assert marks == ["unsure", "good", "good"]


@pytest.mark.parametrize(("protocol", "words"), [("P1", "part of its data"), ("P2", "of a plan")])
def test_protocol_and_satisfied_are_said_in_plain_words(protocol, words):
    page = audit_page(two_algorithms(protocol=protocol))
    assert f"{protocol}, " in texts(page) and words in texts(page)
    assert "at the last evaluation of training" in texts(page)
    # The made-up agents all reach their goal at some evaluation.
    assert "the shares at 25 % would be 100 % of runs under both algorithms" in texts(page)


def test_an_audit_has_what_is_needed_to_make_it_again():
    page = audit_page(two_algorithms(), command="fedaccord audit x.toml")
    facts = dict(page.facts)
    assert page.command == "fedaccord audit x.toml"
    assert facts["Audit"] == "by P1; 4 trials; each agent cuts in every one; seed 3"
    assert facts["Runs made with"] == "numpy 2, torch 2"
    assert facts["MW-FED"] == "kind MW-FED, rounds 40"
    assert facts["Computing"] == "1 min 40 s for all runs; 1 min 01 s this time"
    assert "Python" in facts["Versions"] and facts["Machine"] and facts["Date"]
    stopped = dict(audit_page(two_algorithms(width=0.2)).facts)
    assert stopped["Audit"].startswith("by P1; 4 trials, fewer where an interval is 0.2 narrow;")


def test_of_four_hundred_agents_those_who_could_give_least_come_first():
    names = tuple(f"hospital {n}" for n in range(400))

    def rule(level, defector, client, trial):
        return level == 1 or client != defector or client == 399

    page = audit_page(audit({"FedAvg": rule}, names=names, trials=1, levels=(1.0, 0.5)))
    rows = table(page, "FedAvg: per cent").rows
    assert len(rows) == 400
    assert rows[0][0] == "hospital 399" and rows[1][0] == "hospital 0"
    assert "1 of 400 agents could give less" in texts(page)


def weak(level, defector, client, trial):
    """Who cuts is satisfied, but for the first agent."""
    return level == 1 or not client == defector == 0


def test_the_curve_has_a_tick_for_every_level_and_a_dashed_line_of_the_same_colour():
    found = audit({"FedAvg": weak, "MW-FED": weak}, names=("north", "south"))
    ax = plot_defection(found)
    assert ticks(ax, "x") == ["25 %", "50 %", "100 %"]
    names = ["FedAvg", "FedAvg, worst off: north", "MW-FED", "MW-FED, worst off: north"]
    assert sorted(legend(ax)) == names
    first, second = (bars.lines[0] for bars in ax.containers)
    dashed = {line.get_label(): line for line in ax.lines if line.is_dashed()}
    assert list(dashed) == [names[1], names[3]]
    assert same_color(first.get_color(), dashed[names[1]].get_color())
    assert same_color(second.get_color(), dashed[names[3]].get_color())
    assert not same_color(first.get_color(), second.get_color())


def test_the_shares_of_the_curve_are_where_they_belong():
    ax = plot_defection(audit({"MW-FED": strict}, names=("north", "south")))
    (bars,) = ax.containers
    heights = bars.lines[0].get_ydata()
    assert list(heights) == [0, 0, 1]
    low, high = ax.get_ylim()
    assert low <= 0 and high >= 1
