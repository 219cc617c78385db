"""A state is an address, and an address a state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import InputError
from fedaccord.explore.state import ADJUSTED, LONGEST, PLANS, THEMES, VIEWS, State


def numbers(most):
    values = st.floats(0, most).map(lambda value: float(f"{value:.10g}"))
    return st.dictionaries(st.integers(0, 60), values, max_size=4).map(
        lambda found: tuple(sorted(found.items()))
    )


STATES = st.builds(
    State,
    plan=st.sampled_from(PLANS) | st.integers(1, 64).map(str),
    probability=st.none() | st.integers(1, 99).map(lambda n: n / 100),
    **{name: numbers(1e6) for name in ("goal", "limit", "cost", "lock", "give")},
    **{name: numbers(1.0) for name in ("cut", "keep")},
    only=st.dictionaries(st.integers(0, 9), st.integers(0, 9).map(float), max_size=3).map(
        lambda found: tuple(sorted(found.items()))
    ),
    left=st.sets(st.integers(0, 9)).map(lambda found: tuple(sorted(found))),
    like=st.lists(st.integers(0, 9), max_size=4).map(tuple),
    view=st.sampled_from(VIEWS),
    adjust=st.sampled_from(ADJUSTED),
    other=st.text(max_size=20),
    theme=st.sampled_from(THEMES),
    large=st.booleans(),
)


@given(STATES)
def test_there_and_back(state):
    assert State.read(state.query) == state
    assert State.read(f"?token=x&{state.query}") == state


@given(STATES, st.sampled_from(["give", "lock", "cut"]), st.integers(0, 60))
def test_a_number_is_put_and_taken_back(state, name, agent):
    put = state.put_number(name, agent, 0.5)
    assert dict(getattr(put, name))[agent] == 0.5
    taken = put.put_number(name, agent, None)
    assert agent not in dict(getattr(taken, name))
    assert taken == state.put_number(name, agent, None)


@given(STATES, STATES)
def test_what_is_shown_does_not_change_the_problem(state, other):
    moved = state.put(give=other.give, cut=other.cut, only=other.only, view=other.view)
    assert moved.problem == state.problem
    assert state.put_number("lock", 0, 7.25).problem != state.put_number("lock", 0, None).problem


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        State.read(text)
    except InputError:
        return


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("give=0:x", "not an agent's number, a colon and an amount"),
        ("give=3", "not an agent's number, a colon and an amount"),
        ("give=0:-1", "not a number from 0"),
        ("give=0:nan", "not an agent's number, a colon and an amount"),
        ("give=a:1", "not the number of an agent"),
        ("cut=0:2", "from 0 to 1"),
        ("plan=best", "must be one of stable"),
        ("probability=1", "must be between 0 and 1"),
        (f"other={'x' * LONGEST}", "letters; use at most"),
    ],
)
def test_what_is_wrong_is_named(query, said):
    with pytest.raises(InputError, match=said):
        State.read(query)
