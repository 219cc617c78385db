"""Pages of audits, runs and what comes before: the verdict, the tables, the words, the facts."""

import dataclasses

import numpy as np
import pytest
from training_results import (
    HOSTILE,
    audit,
    draws,
    four_agents,
    history,
    lenient,
    many_agents,
    scores,
    strict,
    two_algorithms,
    weights,
)

from fedaccord.federation.data.difficulty import Bands
from fedaccord.federation.data.pretraining import Draw
from fedaccord.report.answers import least_enough
from fedaccord.report.model import Listing, Mark, Picture, Section, Table
from fedaccord.report.pages_training import (
    audit_page,
    audit_tone,
    audit_verdict,
    difficulty_page,
    pretrain_page,
    search_page,
    train_page,
)

NAMES = ("north", "south", "west")


def parts(page, kind):
    """List the parts of one kind, at whatever depth."""
    found = []

    def look(sections):
        for section in sections:
            found.extend(part for part in section.parts if isinstance(part, kind))
            look([part for part in section.parts if isinstance(part, Section)])

    look(page.sections)
    return found


def table(page, start):
    (found,) = [part for part in parts(page, Table) if part.caption.startswith(start)]
    return found


def texts(page):
    items = [item for listing in parts(page, Listing) for item in listing.items]
    return " ".join([page.verdict, *parts(page, str), *items])


# Audits of defection.


def test_the_verdict_of_an_audit_begins_with_the_answer_for_each_algorithm():
    assert audit_verdict(two_algorithms()) == (
        "Yes under FedAvg: 3 of 3 agents could give less; 3 would get by with 25 %. "
        "No under MW-FED: nobody could give 50 % or less of its data. "
        "A random agent that brings 25 % of its data reaches its goal in 100 % of runs under "
        "FedAvg and 0 % under MW-FED; when everybody gives in full, all reach theirs in 100 % of "
        "runs under both algorithms."
    )


def test_the_verdict_against_a_plan_is_about_what_is_asked():
    found = audit({"FedAvg": strict}, names=NAMES, protocol="P2", asked=[0, 9, 9])
    assert audit_verdict(found).startswith(
        "No under FedAvg: nobody could give 50 % or less of what is asked of it. "
        "A random contributor that brings 25 % of what is asked of it reaches its goal in 0 % of "
        "runs under FedAvg; when"
    )
    nothing = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 0, 0])
    assert audit_verdict(nothing) == "Nothing is asked of anybody, so nobody could give less."
    assert audit_page(nothing).tone == "plain"


def test_of_many_algorithms_the_lowest_and_the_highest_are_read_aloud():
    rules = {"first": lenient, "second": lenient, "third": strict, "fourth": lenient}
    verdict = audit_verdict(audit(rules, names=NAMES))
    assert verdict.startswith("Yes under 3 of 4 algorithms, no under 1 of 4 algorithms. A random")
    assert "0 % of runs under third and 100 % under" in verdict
    assert "second" not in verdict


def test_a_verdict_without_cuts_is_about_full_contribution():
    verdict = audit_verdict(audit({"FedAvg": lenient}, names=NAMES, levels=(1.0,)))
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
    assert audit_tone(audit({"FedAvg": rule}, names=NAMES, trials=trials)) == tone


def test_algorithms_that_differ_leave_the_tone_open():
    assert audit_tone(two_algorithms(trials=12)) == "unsure"


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
    assert least_enough(found.curves[0], "north") == least


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
    assert audit_verdict(found).startswith(words)


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


# Runs of training.


def test_a_run_says_who_is_satisfied_and_shows_everybody():
    page = train_page(four_agents(), "FedAvg", command="fedaccord train")
    assert page.verdict == (
        "After 6 rounds of FedAvg 3 of 4 agents are satisfied; agent 3 is not (0.750, short by "
        "0.050)."
    )
    assert page.tone == "bad"
    found = table(page, "Agents after the last round")
    assert found.rows[0] == ("agent 0", 0.8, 0.9, Mark("yes", "good"), 6, 60, 21, 21)
    assert found.rows[3][2:5] == (0.75, Mark("no", "bad"), None)
    assert found.footer == (("all", None, None, None, None, 240, 183, 315),)
    assert [picture.name for picture in page.pictures()] == ["training", "draws"]
    assert dict(page.facts)["Seed of the run"] == "7"


def test_settings_that_are_not_used_and_times_too_short_to_tell_are_not_written_as_none_and_zero():
    settings = {"kind": "FedAvg", "goal_points": None}
    quick = dataclasses.replace(four_agents(), seconds=0.2, algorithm=settings)
    facts = dict(train_page(quick, "FedAvg").facts)
    assert facts["Training took"] == "less than 1 s"
    assert facts["Algorithm"] == "kind FedAvg"


def test_a_run_in_which_all_draw_alike_has_no_picture_of_that():
    page = train_page(history([[0.9, 0.9]], brought=[60, 0], samples=[[5, 0]]), "FedAvg")
    assert [picture.name for picture in page.pictures()] == ["training"]
    assert page.tone == "good"
    assert "The agents brought 60 points; 5 of them were used, in 5 draws." in texts(page)


def test_a_run_that_diverged_has_a_page_without_a_picture_of_nothing():
    page = train_page(history([[np.nan, np.nan]]), "FedAvg")
    assert page.tone == "bad" and "diverged" in page.verdict
    assert page.pictures() == []
    assert table(page, "Agents").rows[0][2] is None


def test_of_many_agents_those_furthest_from_their_goals_come_first():
    found = table(train_page(many_agents(), "MW-FED"), "Agents after the last round, furthest")
    assert len(found.rows) == 400
    assert [row[0] for row in found.rows[:3]] == ["agent 0", "agent 1", "agent 2"]
    assert found.rows[-1][0] == "agent 399"


# Beforehand.


def test_difficulty_is_summed_up_for_all_points_and_for_the_bands():
    page = difficulty_page(scores(), Bands(hard=(50, 100), easy=(0, 50)))
    assert page.verdict.startswith("Of the points 49 % count as hard and 51 % count as easy: the ")
    assert "99 points have scores from 0.001 to 10, " in page.verdict
    rows = {row[0]: row[1:] for row in table(page, "Scores of all points").rows}
    assert [rows[name][0] for name in ("all", "hard", "easy")] == [99, 49, 50]
    assert rows["hard"][3] > rows["easy"][4]
    assert sum(row[2] for row in page.pictures()[0].data.rows) == 99
    assert difficulty_page(scores()).verdict.endswith("on average.")


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"good_enough": False, "accuracy": 0.7, "until": 0.9}, "an accuracy of 0.700, less than"),
        ({"method": "trials", "capped": 3, "trials": 10}, "3 of 10 trials ended without"),
    ],
)
def test_what_makes_scores_doubtful_is_said(known, words):
    page = difficulty_page(scores(**known))
    assert page.tone == "unsure" and words in page.verdict.partition("This is not certain: ")[2]
    assert difficulty_page(scores(good_enough=True)).tone == "plain"


def test_pretraining_says_how_accurate_the_network_is():
    page = pretrain_page(weights((10, 0.4), (20, 0.577), until=0.5))
    assert page.verdict == (
        "After 20 batches on 200 points the network's accuracy on the validation pool is 0.577. "
        "Every federation of this config starts from it."
    )
    assert page.tone == "plain" and len(page.pictures()) == 1
    missed = pretrain_page(weights((20, 0.4), until=0.9))
    assert missed.tone == "unsure" and "It was to reach 0.9, and did not: give" in missed.verdict
    # One point is no curve.
    assert missed.pictures() == []
    assert "accuracy is not known" in pretrain_page(weights()).verdict


def test_a_search_names_the_best_choice_and_lists_all():
    page = search_page(draws(), seed=5)
    assert page.verdict == (
        "Use a learning rate of 0.003 with batches of 64, the best of 4 choices: its accuracy on "
        "the validation pool is 0.900."
    )
    rows = table(page, "What was tried").rows
    assert rows[2] == ("2.00e-06", 512, 4, 0.1)
    assert rows[3][-1] == Mark("diverged", "bad")
    assert page.pictures()[0].data.rows[2][0] == 2e-6
    assert dict(page.facts)["Seed"] == "5"
    lost = search_page([Draw(1.0, 8, float("nan"), 1)])
    assert (
        lost.verdict == "All of 1 choice diverged: try smaller learning rates."
        and lost.tone == "bad"
    )


# All of them.


def pages():
    return {
        "audit": audit_page(two_algorithms(names=HOSTILE)),
        "train": train_page(history(np.full((3, 4), 0.7), names=HOSTILE), "<b>FedAvg</b>"),
        "difficulty": difficulty_page(scores(), Bands()),
        "pretrain": pretrain_page(weights((10, 0.4), (20, 0.6))),
        "search": search_page(draws()),
    }


@pytest.mark.parametrize("name", ["audit", "train", "difficulty", "pretrain", "search"])
def test_a_page_is_html_in_which_names_are_text(name):
    html = pages()[name].html()
    assert "<script>alert" not in html and "<b>FedAvg" not in html
    assert "\x1b" not in html and "\u202e" not in html
    if name in ("audit", "train"):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "y" * 200 in html


def test_pictures_tell_their_numbers_to_who_cannot_see_them():
    for page in pages().values():
        for picture in parts(page, Picture):
            assert len(picture.alt) > 40 and any(c.isdigit() for c in picture.alt)
            assert picture.data.rows


def test_a_page_keeps_to_what_it_is_given():
    found = two_algorithms()
    before = dataclasses.replace(found)
    assert audit_page(found).verdict == audit_page(found).verdict
    assert found == before
