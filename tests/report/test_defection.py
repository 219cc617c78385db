"""Audits of defection as tables, sentences, a figure and a page."""

from dataclasses import replace
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
from fedaccord.report.defection import plot_defection
from fedaccord.report.defection_page import audit_page
from fedaccord.report.defection_verdicts import choose_tone, describe_audit, find_least_level
from fedaccord.report.model import Mark, Picture, Table

NAMES = ("north", "south", "west")
HOSTILE = "[bold]\x1b[31mx\u202e" + "y" * 60


def show_levels(found: DefectionAudit) -> Table:
    """Return the table of levels of a terminal, which comes after the three questions."""
    return [part for part in defection.show_audit(found) if isinstance(part, Table)][1]


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
                ((0,), outcome(True, s if whole else True)),
                ((1,), outcome(s if harm and not whole else True, s)),
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
            "The tables say how often a defector reaches its goal (accuracy 0.80) at the end of "
            "training. Numbers are fractions of the runs in 4 trials, with 95 % intervals in "
            "brackets.",
            "The others give all of their data. Models are judged on the agents' own validation "
            "samples.",
        ),
        (
            {"requirements": (0.875, 0.875), "stopped": True},
            "The tables say how often a defector reaches its goal (accuracy 0.875) at the end of "
            "training. Numbers are fractions of the runs in up to 4 trials, with 95 % intervals in "
            "brackets.",
            "The others give all of their data. Models are judged on the agents' own validation "
            "samples.",
        ),
        (
            {"requirements": (0.8, 0.7), "protocol": "P2"},
            "The tables say how often a defector reaches its goal at the end of training. Numbers "
            "are fractions of the runs in 4 trials, with 95 % intervals in brackets.",
            "The others give all that the plan asks of them. Models are judged on the agents' own "
            "validation samples.",
        ),
    ],
)
def test_above_the_tables_stands_what_their_numbers_are(
    options: Any, first: str, second: str
) -> None:
    assert defection.explain_shares(audited(**options)) == (first, second)


def test_while_it_runs_an_audit_says_its_result_its_goal_and_its_trials() -> None:
    found = audited(requirements=(0.875, 0.875))
    mark, first, second, levels = defection.show_progress(found)
    assert mark == Mark(describe_audit(found), choose_tone(found))
    assert (first, second) == defection.explain_shares(found)
    assert "accuracy 0.875" in first and "in 4 trials" in first
    assert levels == defection.list_levels(found)


def test_an_audit_is_a_table_of_levels_and_algorithms() -> None:
    rows = cells(shown(show_levels(audited())))
    assert rows[0] == ["a", "random", "agent", "gives", "FedAvg"]
    assert row(rows, "25", "%")[0] == "0.75"
    assert row(rows, "different", "samples", "used", "at", "100", "%") == ["20"]
    assert row(rows, "draws", "at", "100", "%") == ["200"]
    assert not any("diverged" in cells for cells in rows)


def test_each_agent_has_a_column() -> None:
    found = audited()
    rows = cells(shown(defection._list_agents_across(found, found.curves[0])))
    assert rows[0] == ["all", "the", "others"]
    assert rows[1] == ["FedAvg,", "gives", "north", "south", "reach", "theirs"]
    assert row(rows, "25", "%")[:3] == ["1.00", "0.50", "1.00"]
    # Nobody is "the others" when nobody cuts.
    assert row(rows, "100", "%") == ["1.00", "1.00", "-"]
    assert not any(cells[0] == "plan" for cells in rows)


def test_of_whom_nothing_is_asked_has_nothing_to_cut() -> None:
    found = audited(protocol="P2", full=(0, 1200))
    rows = cells(shown(defection._list_agents_across(found, found.curves[0])))
    assert row(rows, "plan", "asks") == ["-", "1,200"]
    assert row(rows, "100", "%") == ["1.00", "1.00", "-"]
    assert row(rows, "25", "%")[:2] == ["-", "0.50"]
    table = cells(shown(show_levels(found)))
    assert table[0][:4] == ["a", "random", "contributor", "gives"]
    assert row(table, "25", "%")[0] == "0.50"


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        (
            {},
            "Under FedAvg, a random agent that gives 25 % of its data reaches its goal in 75 % of "
            "runs. The 95 % interval is ",
            " % (4 trials of 2 agents). If it gives all, it reaches its goal in 100 % of runs.",
        ),
        (
            {"levels": (1.0, 0.5, 0.05)},
            "Under FedAvg, a random agent that gives 5 % of",
            "% of runs.",
        ),
        ({"levels": (1.0, 0.33)}, "Under FedAvg, a random agent that gives 33 % of", "% of runs."),
        (
            {"levels": (0.125,)},
            "Under FedAvg, a random agent that gives 12.5 % of its data reaches its goal in 75 % "
            "of runs. The 95 % interval is ",
            " % (4 trials of 2 agents).",
        ),
        (
            {"levels": (1.0,)},
            "Under FedAvg, a random agent that gives all of its data reaches its goal in 100 % of "
            "runs. The 95 % interval is ",
            "to 100 % (4 trials of 2 agents).",
        ),
        (
            {"protocol": "P2"},
            "Under FedAvg, a random agent that gives 25 % of what the plan asks of it reaches its "
            "goal in 75 % of runs. The 95 % interval is ",
            " % (4 trials of 2 agents). If it gives all, it reaches its goal in 100 % of runs.",
        ),
        (
            {"protocol": "P2", "full": (0, 10), "harm": True},
            "Under FedAvg, a random contributor that gives 25 % of what the plan asks of it "
            "reaches its goal in 50 % of runs. The 95 % interval is ",
            " % (4 trials of 1 agent). If it gives all, it reaches its goal in 100 % of runs.",
        ),
        (
            {"protocol": "P2", "full": (0, 0)},
            "Under FedAvg, the plan asks nothing of any agent.",
            "the plan asks nothing of any agent.",
        ),
        ({"algorithm": "mine", "defectors": "random"}, "Under mine, a random agent", "4 trials)."),
        (
            {"harm": True},
            "Under FedAvg, a random agent that gives 25 % of its data reaches its goal in 75 %",
            "4 trials of 2 agents). If it gives all, it reaches its goal in 100 % of runs. If it "
            "defects, all the others reach their goals in 75 % of runs, instead of 100 %.",
        ),
    ],
)
def test_a_sentence_compares_with_full_contribution(options: Any, start: str, end: str) -> None:
    (sentence,) = defection.compare_levels(audited(**options))
    assert sentence.startswith(start)
    assert end in sentence
    assert sentence.endswith(end) or end == "4 trials)."


def test_that_full_contribution_does_not_satisfy_all_is_said_first() -> None:
    first, second = defection.compare_levels(audited(poor=True))
    assert first == (
        "Under FedAvg, all agents reach their goals in only 25 % of runs, even if all give all of "
        "their data."
    )
    # Five of eight: the north in all trials, the south in one.
    assert "reaches its goal in 75 % of runs" in second
    assert "If it gives all, it reaches its goal in 62 % of runs." in second


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
        "Yes under FedAvg: all 3 agents can give less; 25 % is enough for each of them. "
        "No under MW-FED: no agent can give 50 % or less of its data."
    )


def test_the_verdict_against_a_plan_is_about_what_is_asked():
    found = audit({"FedAvg": strict}, names=NAMES, protocol="P2", asked=[0, 9, 9])
    assert describe_audit(found) == (
        "No under FedAvg: no agent can give 50 % or less of what the plan asks of it."
    )
    nothing = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 0, 0])
    assert describe_audit(nothing) == (
        "The plan asks nothing of any agent, so no agent can give less."
    )
    assert audit_page(nothing).tone == "plain"


def test_of_many_algorithms_the_lowest_and_the_highest_are_read_aloud():
    rules = {"first": lenient, "second": lenient, "third": strict, "fourth": lenient}
    found = audit(rules, names=NAMES)
    assert describe_audit(found) == "Yes under 3 of 4 algorithms, no under 1 of 4 algorithms."
    seldom = audit(rules | {"third": lambda *_: False}, names=NAMES, levels=(1.0,))
    verdict = describe_audit(seldom)
    assert "0 % of runs under third and 100 % under" in verdict
    assert "second" not in verdict


def test_a_verdict_without_cuts_is_about_full_contribution():
    verdict = describe_audit(audit({"FedAvg": lenient}, names=NAMES, levels=(1.0,)))
    assert verdict == (
        "All agents reach their goals in 100 % of runs under FedAvg, if all give in full."
    )


@pytest.mark.parametrize(
    ("rule", "trials", "tone"),
    [
        # Giving less goes unpunished.
        (lenient, 12, "bad"),
        # A defector misses its goal, and all reach theirs otherwise.
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
    found = table(audit_page(two_algorithms()), "How often a defector still")
    assert found.columns == ("a random agent gives", "FedAvg", "MW-FED")
    rows = {row[0]: row[1:] for row in (*found.rows, *found.footer)}
    assert rows["100 %"] == ("1.00 [0.51,\u00a01.00]", "1.00 [0.51,\u00a01.00]")
    assert rows["25 %"][1].startswith("0.00 [0.00,")
    assert rows["all reach their goals at 100 %"] == ("1.00 [0.51,\u00a01.00]",) * 2
    assert rows["different samples used at 100 %"] == ("180", "180")
    assert rows["draws at 100 %"] == ("300", "300")
    assert "runs that diverged" not in rows


def test_each_agent_is_told_apart_with_what_it_could_bring():
    page = audit_page(two_algorithms(trials=12))
    rows = table(page, "FedAvg: per cent").rows
    assert rows[0] == ("north", 0.8, 60, 100, 100, 100, Mark("yes, 25 % is enough", "bad"))
    rows = table(page, "MW-FED: per cent").rows
    assert rows[0] == ("north", 0.8, 60, 100, 0, 0, Mark("no, 50 % is not enough", "good"))
    assert "all 3 agents can give less; 25 % is enough for each of them." in texts(page)
    assert (
        "No agent can give 50 % or less of its data; levels between 50 and 100 % were not tried."
    ) in texts(page)
    assert "there, and at every higher level tried," in texts(page)


def test_what_a_cut_does_to_the_others_is_shown():
    def harmful(level, defector, client, trial):
        return level == 1 or client == defector

    found = table(audit_page(audit({"FedAvg": harmful}, names=NAMES)), "How often all the others")
    shares = {row[0]: row[1][:4] for row in found.rows}
    assert shares == {"100 %": "1.00", "50 %": "0.00", "25 %": "0.00"}
    alone = audit_page(audit({"FedAvg": lenient}, names=("north",)))
    assert not any(
        part.caption.startswith("How often all the others") for part in parts(alone, Table)
    )


def test_of_whom_nothing_is_asked_gives_nothing_and_is_explained():
    page = audit_page(audit({"FedAvg": strict}, names=NAMES, protocol="P2", asked=[0, 9, 9]))
    rows = table(page, "FedAvg: per cent").rows
    assert rows[0] == ("north", 0.8, 0, 100, None, None, "not asked to give")
    assert table(page, "FedAvg: per cent").columns[2] == "samples in the plan"
    assert "The plan asks nothing of some agents" in texts(page)
    assert "of some agents" not in texts(audit_page(two_algorithms()))


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
        (set(), (1.0, 0.5), "misses its goal even in full"),
        ({0.5}, (1.0, 0.5), "misses its goal even in full"),
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
    assert page.verdict == "Not clear under FedAvg: for 3 of 3 agents it is not clear."
    assert "Doubt: under FedAvg the trials do not show for every agent" in texts(page)
    assert "For 3 of 3 agents it is not clear." in texts(page)
    assert page.tone != "good"


def test_the_only_one_of_whom_something_is_asked_is_named():
    found = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 9, 0])
    assert describe_audit(found) == "Yes under FedAvg: south can give less; 25 % is enough."


def test_clear_answers_stand_beside_those_that_are_not():
    def rule(level, defector, client, trial):
        return client != defector or level == 1 or (client == 0 and level == 0.25)

    page = audit_page(audit({"FedAvg": rule}, names=NAMES))
    words = "for 1 of 3 agents it is not clear; no other agent can give 50 % or less of its data"
    assert page.verdict.startswith(f"Not clear under FedAvg: {words}.")
    marks = [row[-1].tone for row in table(page, "FedAvg: per cent").rows]
    assert marks == ["unsure", "good", "good"]


@pytest.mark.parametrize(("protocol", "words"), [("P1", "part of its data"), ("P2", "of a plan")])
def test_protocol_and_satisfied_are_said_in_plain_words(protocol, words):
    page = audit_page(two_algorithms(protocol=protocol))
    assert f"Protocol {protocol}, " in texts(page) and words in texts(page)
    assert "A model that was good enough earlier in training does not count" in texts(page)
    # The made-up agents all reach their goal at some evaluation.
    assert "at 25 % would reach it in 100 % of runs under both algorithms" in texts(page)


def test_an_audit_has_what_is_needed_to_make_it_again():
    page = audit_page(two_algorithms(), command="fedaccord audit x.toml")
    facts = dict(page.facts)
    assert page.command == "fedaccord audit x.toml"
    assert facts["Audit"] == ("protocol P1; 4 trials; each agent defects in every trial; seed 3")
    assert facts["Judged"] == "on the agents' own validation samples"
    assert facts["Runs made with"] == "numpy 2, torch 2"
    assert facts["MW-FED"] == "kind MW-FED, rounds 40"
    assert facts["Computing"] == "1 min 40 s for all runs; 1 min 01 s this time"
    assert "Python" in facts["Versions"] and facts["Machine"] and facts["Date"]
    stopped = dict(audit_page(two_algorithms(width=0.2)).facts)
    assert stopped["Audit"].startswith(
        "protocol P1; 4 trials, fewer once an interval is 0.2 narrow;"
    )


def test_of_four_hundred_agents_those_who_could_give_least_come_first():
    names = tuple(f"hospital {n}" for n in range(400))

    def rule(level, defector, client, trial):
        return level == 1 or client != defector or client == 399

    page = audit_page(audit({"FedAvg": rule}, names=names, trials=1, levels=(1.0, 0.5)))
    rows = table(page, "FedAvg: per cent").rows
    assert len(rows) == 400
    assert rows[0][0] == "hospital 399" and rows[1][0] == "hospital 0"
    assert "1 of 400 agents can give less" in texts(page)


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


def test_bars_and_dashes_are_explained_only_where_they_are_drawn():
    for number, note in ((2, "Bars: 95 % intervals."), (9, "")):
        rules = {f"algorithm {n}": weak for n in range(number)}
        page = audit_page(audit(rules, names=("north", "south")))
        section = next(part for part in page.sections if part.heading == "What a defector gets")
        (picture,) = (part for part in section.parts if isinstance(part, Picture))
        assert picture.note.startswith(note) and bool(picture.note) == bool(note)


def test_the_shares_of_the_curve_are_where_they_belong():
    ax = plot_defection(audit({"MW-FED": strict}, names=("north", "south")))
    (bars,) = ax.containers
    heights = bars.lines[0].get_ydata()
    assert list(heights) == [0, 0, 1]
    low, high = ax.get_ylim()
    assert low <= 0 and high >= 1


# What models are judged on.


def judged_on_both(scored, measured):
    """An audit whose agents reach their goals by one rule on further samples, another on others."""
    trials = {
        level: [
            [
                (
                    (d,),
                    replace(
                        outcome(*(measured(level, d, i, trial) for i in range(2))),
                        scored_satisfied=tuple(scored(level, d, i, trial) for i in range(2)),
                    ),
                )
                for d in range(2)
            ]
            for trial in range(12)
        ]
        for level in (1.0, 0.25)
    }
    shown = {"clients": ("north", "south"), "levels": (1.0, 0.25), "trials": trials, "drawn": 2}
    curve = sum_up("FedAvg", {}, (10, 10), scored=True, **shown)
    base = audited()
    options = replace(base.options, trials=12, scored_on=2000)
    return replace(base, options=options, curves=(curve,))


def test_what_is_judged_on_further_samples_leads_and_a_flipped_verdict_shows():
    found = judged_on_both(strict, lenient)
    page = audit_page(found)
    # By validation samples a defector gets away with it; by further samples it does not.
    assert page.verdict == "No under FedAvg: no agent can give 25 % or less of its data."
    assert page.tone == "good"
    questions = table(page, "The three questions, judged on 2,000 further samples per agent")
    assert [row[0] for row in questions.rows] == [
        "Do all agents reach their goals?",
        "Is 25 % enough for a defector?",
        "Do all the others then reach theirs?",
    ]
    assert "A defector is a random agent that gives 25 % of its data." in texts(page)
    assert questions.rows[1][1].text.startswith("no, 0.00") and questions.rows[1][1].tone == "good"
    both = {row[1]: row[2:] for row in table(page, "Further samples against").rows}
    scored, measured, answer = both["a random agent that gives 25 %"]
    assert (scored[:4], measured[:4], answer) == ("0.00", "1.00", Mark("no, not yes", "unsure"))
    assert both["all agents, in full"][-1] == "yes"
    assert dict(page.facts)["Judged"] == "on 2,000 further samples per agent"
    assert "No agent trains or validates on them" in texts(page)
    assert "--scored-on" not in texts(page)
    assert "judged on 2,000 further samples per agent" in shown(*defection.show_audit(found))
    curve = plot_defection(found).containers[0].lines[0].get_ydata()
    assert list(curve) == [0, 1]


def test_without_further_samples_a_doubt_names_the_remedy():
    page = audit_page(audited())
    assert "Doubt: one measurement on an agent's validation samples decides" in texts(page)
    assert "--scored-on N" in texts(page)
    assert not any(part.caption.startswith("Further samples") for part in parts(page, Table))


@pytest.mark.parametrize(
    ("rule", "answers"),
    [
        (strict, (("yes", "good"), ("no", "good"), ("yes", "good"))),
        (lenient, (("yes", "good"), ("yes", "bad"), ("yes", "good"))),
        (lambda *_: False, (("no", "bad"), ("no", "good"), ("no", "bad"))),
        (
            lambda level, d, i, trial: trial % 2 == 0,
            (("not clear", "unsure"),) * 3,
        ),
    ],
)
def test_the_three_questions_are_answered_with_shares(rule, answers):
    rows = table(audit_page(audit({"FedAvg": rule}, names=NAMES, trials=12)), "The three").rows
    assert [row[0].split()[0] for row in rows] == ["Do", "Is", "Do"]
    for (_, mark), (word, tone) in zip(rows, answers, strict=True):
        assert mark.text.startswith(f"{word}, ") and mark.tone == tone


def test_doubts_about_few_trials_and_runs_that_diverged_stand_next_to_the_verdict():
    found = audited()
    lost = replace(found, curves=(replace(found.curves[0], diverged=3),))
    said = texts(audit_page(lost))
    assert "Doubt: 4 trials leave wide intervals." in said
    assert "Doubt: under FedAvg, 3 runs diverged" in said


def test_an_audit_without_defectors_does_not_speak_of_them():
    page = audit_page(audit({"FedAvg": lenient}, names=NAMES, levels=(1.0,)))
    answers = " ".join(part for part in page.sections[0].parts if isinstance(part, str))
    assert "Yes: in more than half of the runs" in answers
    assert "defector" not in answers
