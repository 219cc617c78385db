"""Allocations are checked when made, and come back from files as they went in."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.allocation import Allocation
from fedaccord.errors import InputError

amounts = st.one_of(st.floats(1e-99, 1e99), st.just(0.0), st.integers(0, 10**6).map(float))
names = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).map(
    # Tables read names in composed form, and every space as a space.
    lambda name: unicodedata.normalize("NFC", f"x{' '.join(name.split())}x")
)


@given(
    st.lists(st.tuples(names, amounts), min_size=1, max_size=5, unique_by=lambda pair: pair[0]),
    st.booleans(),
    st.sampled_from(["a.json", "a.csv"]),
)
def test_what_is_saved_is_loaded(tmp_path_factory, pairs, named, file):
    path = tmp_path_factory.mktemp("allocation") / file
    agents = [name for name, _ in pairs] if named else None
    allocation = Allocation([amount for _, amount in pairs], agents)
    allocation.save(path)
    assert Allocation.load(path) == allocation
    changed = Allocation([*allocation.contributions[:-1], 0.123], agents)
    assert Allocation.load(path) != changed


def test_an_allocation_cannot_be_changed():
    given = np.array([1.0, 2.0])
    allocation = Allocation(given, ["a", "b"])
    given[0] = 9
    assert allocation.contributions.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        allocation.contributions[0] = 3
    with pytest.raises(AttributeError):
        allocation.agents = None
    assert allocation != Allocation([1, 2])
    assert allocation != "something else"
    assert repr(allocation) == "Allocation(2 agents, total 3)"
    assert len(allocation) == 2


@pytest.mark.parametrize(
    ("contributions", "agents", "words"),
    [
        ([[1, 2]], None, "one list"),
        ([1, 2], ["a"], "2 contributions came with 1 agent names"),
        ([1, np.nan], ["a", "b"], "the contribution of b is not a number"),
        ([1, -2], None, "the contribution of agent 1 is negative"),
        ([1, np.inf], None, "the contribution of agent 1 is infinite"),
        (["x"], None, "contributions must be numbers"),
    ],
)
def test_bad_contributions_are_refused(contributions, agents, words):
    with pytest.raises(InputError, match=words):
        Allocation(contributions, agents)


def test_names_decide_the_order():
    allocation = Allocation([1, 2, 3], ["c", "a", "b"])
    ordered = allocation.ordered_for(("a", "b", "c"))
    assert ordered == Allocation([2, 3, 1], ["a", "b", "c"])
    assert allocation.ordered_for(None) is allocation
    assert Allocation([1, 2, 3]).ordered_for(("a", "b", "c")) == Allocation([1, 2, 3])


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        (["a", "a", "b"], "names a twice"),
        (["a", "b", "d"], "no contribution of c"),
        (["a", "b", "c", "d"], "d is not an agent of the game"),
        (["a", "b", "C"], "C is not a member; did you mean c?"),
    ],
)
def test_names_that_do_not_match_are_named(agents, words):
    with pytest.raises(InputError, match=words):
        Allocation(np.ones(len(agents)), agents).ordered_for(("a", "b", "c"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; save the table again, with its headings and numbers"),
        (
            "agent,amount\na,1\n",
            "no column 'contribution'. Its headings .* are 'agent' and 'amount'. Rename .*: 'contr",
        ),
        (
            "agent,contribution\na,1\nb\n",
            "line 3 of .* has 1 cell, the headings 2: fill in the missing cells",
        ),
        (
            "agent,contribution\na,1\n\nproposed by North on 3 May\n",
            "line 4 of .* it looks like a note; delete it, or fill in the missing cells",
        ),
        (
            "agent,contribution\na,1\n\nproposed by North on 3 May,\n",
            "line 4 of .* looks like a note: delete it, or fill in the missing cells",
        ),
        ("agent,contribution\na,1\n* by mail\n", "line 3 of .* it looks like a note; delete it$"),
        ("agent,contribution\na,many\n", 'contribution of a in line 2 of .* reads "many"'),
        (
            'agent,contribution\n\na,"1,700"\n',
            'of a in line 3 of .* "1,700", .* 1700 or 1.7: write',
        ),
        ("agent,contribution\na,1.500\n", 'reads "1.500", which can be 1500 or 1.5: write 1500 or'),
        ("agent;contribution\na;1,5\nb;1.5\n", "comma for decimals: write all numbers one way"),
        (
            "agent,contribution\na,\n",
            "contribution of a in line 2 of .* is empty: write 0 if it gives nothing, or "
            "delete the line if it is a note$",
        ),
        ("agent,contribution\na,1\nb,2\na,3\n", "line 4 .* repeats a .first in line 2."),
        ("agent,contribution\na,1\n A,3\n", "line 3 .* 'A' and line 2 'a': use the same spelling"),
        ("agent,contribution\na,1\nb,2\nTotal,4\n", "Total in line 4 .* is 4, .* others is 3"),
        ("pilot,agent,contribution\n1,a,2\n", "table of pilots, .*'fedaccord plan"),
        ("agent,label,count\na,x,2\n", "table of label histograms, .*'fedaccord plan"),
        ('{"model": "linear"}', "is JSON and not a table; a game is taken by 'fedaccord solve'"),
        ("contribution\nx\n", 'the contribution in line 2 of .* reads "x"'),
        ("agent,contribution\na,1\nb,1,700\n", "line 3 of .* one number with a comma: write 1700"),
        ("agent,contribution\na,-1\n", r"contribution of a in line 2 of .* is negative \(-1\)"),
        ("agent,contribution\na,600 to 800\n", "a range cannot be used; write one number"),
        ("contribution\n" + "1" * 200_000, "not CSV"),
    ],
)
def test_bad_csv_is_refused_with_a_sentence(tmp_path, text, words):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        Allocation.load(path)


def test_where_only_whole_samples_count_no_fraction_is_offered(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("agent,contribution\na,1.500\n")
    # Half a sample cannot be meant; of 1.000, both readings could be.
    assert Allocation.load(path, whole=True) == Allocation([1500], ["a"])
    path.write_text("agent,contribution\na,1.000\n")
    with pytest.raises(InputError, match=r"which can be 1000 or 1"):
        Allocation.load(path, whole=True)
    path.write_text("agent,contribution\na,150.5\n")
    with pytest.raises(InputError, match=r"of a in line 2 of .* is 150.5: write a whole number"):
        Allocation.load(path, whole=True)
    assert Allocation.load(path) == Allocation([150.5], ["a"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "agent,contribution\na,1\n"),
        ("a.json", '{"contributions": [1], "agents": ["a"]}'),
    ],
)
def test_the_file_that_lacks_an_agent_is_named(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=rf"{name} has no contribution of b; add one \(0 if it"):
        Allocation.load(path).ordered_for(("a", "b"))


def test_csv_may_have_spaces_blank_lines_and_other_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("note, Contribution ,agent\nx, 1/4 , a\n\ny,2,b\n")
    assert Allocation.load(path) == Allocation([0.25, 2], ["a", "b"])


def test_csv_may_have_semicolons_and_empty_columns_at_the_end(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("agent;contribution\nNorth, East;1.5\nb;2;;\n")
    assert Allocation.load(path) == Allocation([1.5, 2], ["North, East", "b"])
    path.write_text('"agent";"contribution";"note, if any"\na;1;x, y\n')
    assert Allocation.load(path) == Allocation([1], ["a"])
    path.write_text('"agent","contribution","note; if any"\na,1,x; y\n')
    assert Allocation.load(path) == Allocation([1], ["a"])


def test_a_misspelt_name_is_told_from_a_missing_one():
    members = ("University", "City", "Rural")
    with pytest.raises(InputError, match=r"^Universty is not a member; did you mean University\?$"):
        Allocation([1, 2, 3], ["Universty", "City", "Rural"]).ordered_for(members)
    with pytest.raises(InputError, match="no contribution of University"):
        Allocation([1, 2, 3], ["Coastal", "City", "Rural"]).ordered_for(members)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "must hold a JSON object"),
        ("{}", '"contributions" list'),
        ('{"contributions": 1}', '"contributions" list'),
        ('{"contributions": [true]}', "no null, true or false"),
        ('{"contributions": [null]}', "no null, true or false"),
        ('{"contributions": [NaN]}', "agent 0 is not a number"),
        ('{"contributions": [1], "agents": "a"}', "list of names"),
        ('{"contributions": [1], "agents": [1]}', "list of names"),
        ('{"contributions": [[1]]}', "one list"),
    ],
)
def test_bad_json_is_refused_with_a_sentence(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        Allocation.load(path)


# Reserves.


@pytest.mark.parametrize("file", ["a.json", "a.csv"])
@pytest.mark.parametrize("agents", [None, ["a", "b"]])
def test_reserves_are_saved_and_loaded(tmp_path, file, agents):
    allocation = Allocation([3, 4], agents, reserve=[0, 7])
    allocation.save(tmp_path / file)
    found = Allocation.load(tmp_path / file)
    assert found == allocation
    assert found.reserve.tolist() == [0, 7]
    assert found != Allocation([3, 4], agents)
    assert found != Allocation([3, 4], agents, reserve=[0, 6])


def test_an_accent_as_a_sign_of_its_own_is_the_same_letter():
    one, two = "Z\u00fcrich", "Zu\u0308rich"
    for ours, theirs in ((one, two), (two, one)):
        ordered = Allocation([3, 5], ["Bern", ours]).ordered_for((theirs, "Bern"))
        assert (ordered.contributions.tolist(), ordered.agents) == ([5, 3], (theirs, "Bern"))


def test_reserves_are_ordered_with_the_contributions():
    allocation = Allocation([3, 4], ["a", "b"], reserve=[0, 7])
    assert allocation.ordered_for(["b", "a"]) == Allocation([4, 3], ["b", "a"], reserve=[7, 0])


def test_an_empty_cell_is_no_reserve(tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text("agent,contribution,reserve\na,3,\nb,4,7\n")
    assert Allocation.load(path).reserve.tolist() == [0, 7]


@pytest.mark.parametrize(
    ("reserve", "words"),
    [
        ([1], "2 contributions came with 1 reserves"),
        ([1, -2], "the reserve of b is negative"),
        ([1, np.nan], "the reserve of b is not a number"),
    ],
)
def test_bad_reserves_are_refused(reserve, words):
    with pytest.raises(InputError, match=words):
        Allocation([1, 2], ["a", "b"], reserve=reserve)


@pytest.mark.parametrize("given", ["5", "[true, 1]", "[null, 1]"])
def test_a_file_with_bad_reserves_is_refused(tmp_path, given):
    path = tmp_path / "plan.json"
    path.write_text(f'{{"contributions": [1, 2], "reserve": {given}}}')
    with pytest.raises(InputError, match='"reserve" in'):
        Allocation.load(path)


def test_whole_contributions_are_written_without_a_decimal_point(tmp_path):
    path = tmp_path / "plan.csv"
    Allocation([1200.0, 0.5], ["A", "B"]).save(path)
    assert path.read_text().splitlines()[1:] == ["A,1200", "B,0.5"]
    assert Allocation.load(path).contributions.tolist() == [1200.0, 0.5]
