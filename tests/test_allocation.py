"""Allocations are checked when made, and come back from files as they went in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.allocation import Allocation
from fedaccord.errors import InputError

amounts = st.one_of(st.floats(1e-99, 1e99), st.just(0.0), st.integers(0, 10**6).map(float))
names = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).map(
    lambda name: f"x{name}x"
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
        (["a", "b", "c", "d"], "names d, who is not in the game"),
        (["a", "b", "C"], "C is not a member; did you mean c?"),
    ],
)
def test_names_that_do_not_match_are_named(agents, words):
    with pytest.raises(InputError, match=words):
        Allocation(np.ones(len(agents)), agents).ordered_for(("a", "b", "c"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; it must start with a line such as agent,contribution"),
        ("agent,amount\na,1\n", "no column 'contribution'; .* starts with agent,contribution"),
        (
            "agent,contribution\na,1\nb\n",
            "line 3 of .* has 1 cells, the first line 2: is the file cut short",
        ),
        ("agent,contribution\na,many\n", 'contribution of a in line 2 of .* reads "many"'),
        (
            'agent,contribution\n\na,"1,700"\n',
            'of a in line 3 of .* "1,700", .* 1700 or 1.7: write',
        ),
        ("agent,contribution\na,1.500\n", 'reads "1.500", which can be 1500 or 1.5: write 1500 or'),
        ("agent;contribution\na;1,5\nb;1.5\n", "comma for decimals: write all numbers one way"),
        ("agent,contribution\na,\n", "contribution of a in line 2 of .* is empty: write 0"),
        ("agent,contribution\na,1\nb,2\na,3\n", "line 4 .* second of a .the first is line 2."),
        ("agent,contribution\na,1\n A,3\n", "line 3 .* 'A' and line 2 'a': write one name one way"),
        ("agent,contribution\na,1\nb,2\nTotal,4\n", "Total in line 4 .* is 4, .* others is 3"),
        ("pilot,agent,contribution\n1,a,2\n", "table of pilots, .*'fedaccord plan"),
        ("agent,label,count\na,x,2\n", "table of label histograms, .*'fedaccord plan"),
        ('{"model": "linear"}', "is JSON and not a table; a game is taken by 'fedaccord solve'"),
        ("contribution\nx\n", 'the contribution in line 2 of .* reads "x"'),
        ("agent,contribution\na,1\nb,1,700\n", "line 3 of .* has 3 cells, the first line 2"),
        ("agent,contribution\na,-1\n", "the contribution of a is negative"),
        ("contribution\n" + "1" * 200_000, "not CSV"),
    ],
)
def test_bad_csv_is_refused_with_a_sentence(tmp_path, text, words):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        Allocation.load(path)


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
