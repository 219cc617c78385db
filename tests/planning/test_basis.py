"""What a plan is made from: which file it is, and the numbers that options name."""

import pytest

from fedaccord._io.table import read_rows
from fedaccord.errors import InputError
from fedaccord.planning.basis import (
    Source,
    Wanted,
    read_histograms,
    read_linear_game,
    read_pilots,
)

PILOTS = "pilot,agent,contribution,accuracy\n1,A,50,0.5\n1,B,70,0.6\n"
HISTOGRAMS = "agent,ill,well,need\nA,10,20,30\nB,20,10,40\n"


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


# Options.


def test_one_number_is_for_all_and_names_come_before_it():
    wanted = Wanted.read(["0.8", "B=0.9"], "--goal")
    assert wanted.among(["A", "B", "C"], [0.1, 0.2, 0.3]) == [0.8, 0.9, 0.8]
    named = Wanted.read(["B=0.9"], "--goal")
    assert named.among(["A", "B", "C"], [0.1, 0.2, 0.3]) == [0.1, 0.9, 0.3]
    assert Wanted.read(None, "--goal") is None


def test_names_of_options_are_composed_and_have_plain_spaces():
    assert Wanted.read(["Sankt\u00a0Ko\u0308ln=5"], "--limit").named == {"Sankt Köln": 5}


def test_names_may_have_the_sign_in_them():
    assert Wanted.read(["a=b=0.5"], "--goal").named == {"a=b": 0.5}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["x"], "must be a number, or read NAME=X"),
        (["=0.5"], "must be a number, or read NAME=X"),
        (["inf"], "must be a number, or read NAME=X"),
        (["0.5", "0.6"], "has two numbers for all"),
        (["A=0.5", "A=0.6"], "names A twice"),
    ],
)
def test_what_is_no_number_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        Wanted.read(given, "--goal")


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("A=1200", "--limit", 1200),
        ("A=1 000", "--limit", 1000),
        ("A=1'000", "--need", 1000),
        ("A=1.250,5", "--need", 1250.5),
        ("A=0,85", "--goal", 0.85),
        ("A=85 %", "--goal", 0.85),
        ("A=0.850", "--goal", 0.85),
        ("A=50%", "--kept-worth", 0.5),
    ],
)
def test_options_follow_the_rules_for_numbers_in_tables(text, option, value):
    assert Wanted.read([text], option).named == {"A": value}


@pytest.mark.parametrize(
    ("text", "option", "words"),
    [
        ("A=1.200", "--limit", "can be 1200 or 1.2: write 1200 or 1.2"),
        ("A=1.000", "--limit", "can be 1000 or 1: write 1000 or 1$"),
        ("1,000", "--need", "can be 1000 or 1: write 1000 or 1$"),
        ("A=1 00", "--limit", "no separators, as 1700"),
        ("A=50%", "--limit", "write a number of samples"),
        ("A=0.85 %", "--goal", "write 85 % or 0.85"),
    ],
)
def test_a_number_that_can_mean_two_things_is_refused_with_a_remedy(text, option, words):
    with pytest.raises(InputError, match=rf'^{option} "{text}".*{words}'):
        Wanted.read([text], option)


# Files.


def test_files_are_told_apart_by_what_they_hold(tmp_path):
    pilots, labels = write(tmp_path / "p.csv", PILOTS), write(tmp_path / "h.csv", HISTOGRAMS)
    assert [Source.read(path).kind for path in (None, "x.toml", "x.json", pilots, labels)] == [
        "config",
        "config",
        "game",
        "pilots",
        "histograms",
    ]
    with pytest.raises(InputError, match="neither a table of pilots"):
        Source.read(write(tmp_path / "x.csv", "a,b\n1,2\n"))
    with pytest.raises(InputError, match="--sheet names a sheet"):
        Source.read("x.json", "first")


def test_a_missing_goal_is_named_by_the_heading_of_the_table(tmp_path):
    text = (
        "pilot,agent,contribution,accuracy,Target accuracy\n"
        "1,A,10,0.7,0.8\n1,B,10,0.7,\n2,A,20,0.8,\n2,B,5,0.8,\n"
    )
    rows = read_rows(write(tmp_path / "p.csv", text))
    with pytest.raises(InputError, match=r"B has no goal in .*: fill in the column 'Target acc"):
        read_pilots(rows, None, note=lambda notes: None)


def test_every_pilot_table_has_goals_in_the_end(tmp_path):
    rows = read_rows(write(tmp_path / "p.csv", PILOTS))
    with pytest.raises(InputError, match=r"p\.csv has no goals: add a column goal.* --goal 0\.8"):
        read_pilots(rows, None, note=lambda notes: None)
    with pytest.raises(InputError, match=r'B has no goal in .*p\.csv: .* --goal "B=0\.8"'):
        read_pilots(rows, Wanted.read(["A=0.8"], "--goal"), note=lambda notes: None)
    rows = read_rows(write(tmp_path / "p.csv", PILOTS))
    table = read_pilots(rows, Wanted.read(["0.8", "A=0.7"], "--goal"), note=lambda notes: None)
    assert table.goals.tolist() == [0.7, 0.8]


def test_needs_of_histograms_are_those_of_the_option(tmp_path):
    told = []
    rows = read_rows(write(tmp_path / "h.csv", HISTOGRAMS.replace("agent", "Hospital")))
    game, assumed = read_histograms(rows, Wanted.read(["A=99"], "--need"), note=told.extend)
    assert game.alone.tolist() == [99, 40] and assumed
    assert any("Hospital" in note for note in told)


def test_plans_are_made_of_linear_games_and_goals_of_measured_ones(tmp_path):
    linear = write(
        tmp_path / "g.json",
        '{"model": "linear", "requirements": [5, 5], "benefits": [[1, 0], [0, 1]]}',
    )
    assert read_linear_game(linear, None).size == 2
    with pytest.raises(InputError, match="--goal is for accuracies"):
        read_linear_game(linear, Wanted.read(["0.8"], "--goal"))
    other = write(
        tmp_path / "c.json",
        '{"model": "coverage", "requirements": [0.5], "distributions": [[0.5, 0.5]]}',
    )
    with pytest.raises(InputError, match="is a coverage game"):
        read_linear_game(other, None)
