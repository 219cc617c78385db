"""Draws without a memory: the same samples wherever a client runs, started anew or not."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import InputError
from fedaccord.federation.training import rng as draws
from fedaccord.federation.training.rng import Draws, draw_goal_rows, stream

# How much is drawn in each of some rounds.
rounds = st.lists(st.integers(0, 25), min_size=1, max_size=6)
seeds = st.integers(0, 2**63 - 1)


@st.composite
def clients(draw):
    """Give a client's name, its points and how many of them it brings."""
    points = draw(st.integers(1, 30))
    return draw(st.text(min_size=1, max_size=5)), points, draw(st.integers(1, points))


def written_out(client, seed, count):
    """Give the first samples of a client: pass after pass, each in an order of its own."""
    name, points, contribution = client
    brought = stream(seed, "points", name).permutation(points)[:contribution]
    random = stream(seed, "draws", name)
    passes = [random.permutation(brought) for _ in range(count // contribution + 1)]
    return np.concatenate(passes)[:count].tolist()


def without_a_memory(client, seed, counts):
    """Draw as one who is started anew each round and told how many samples came before."""
    before = itertools.accumulate(counts, initial=0)
    return [
        Draws(*client, seed=seed, drawn=drawn).draw(count).tolist()
        for count, drawn in zip(counts, before, strict=False)
    ]


# Drawn by the loop when it still kept its own draws.
@pytest.mark.parametrize(
    ("client", "seed", "expected"),
    [
        (("client 0", 7, 7), 0, [3, 1, 4, 5, 2, 6, 0, 3, 2, 0, 5, 4, 6, 1, 3, 6, 5]),
        (("client 0", 7, 3), 0, [1, 3, 0, 0, 1, 3, 3, 1, 0, 0, 3, 1, 3, 0, 1, 3, 0]),
        (("client 1", 5, 5), 2**40, [0, 4, 3, 2, 1, 0, 2, 4, 3, 1, 0, 1, 3, 2, 4, 4, 0]),
    ],
)
def test_draws_are_what_they_always_were(client, seed, expected):
    kept = Draws(*client, seed=seed)
    found = [kept.draw(count).tolist() for count in (2, 0, 6, 9)]
    assert list(itertools.chain(*found)) == expected
    assert without_a_memory(client, seed, (2, 0, 6, 9)) == found


@given(clients(), seeds, rounds)
def test_draws_are_shuffled_passes_however_they_are_split(client, seed, counts):
    kept = Draws(*client, seed=seed)
    found = [kept.draw(count).tolist() for count in counts]
    assert list(itertools.chain(*found)) == written_out(client, seed, sum(counts))
    assert kept.drawn == sum(counts)


@given(clients(), seeds, rounds)
def test_who_forgets_all_between_rounds_draws_what_it_would_have_drawn(client, seed, counts):
    kept = Draws(*client, seed=seed)
    assert without_a_memory(client, seed, counts) == [kept.draw(n).tolist() for n in counts]
    again = Draws(*client, seed=seed, drawn=sum(counts))
    assert (again.drawn, again.unique) == (kept.drawn, kept.unique)
    assert again.draw(7).tolist() == kept.draw(7).tolist()


def test_forgetting_how_many_were_drawn_would_be_noticed(monkeypatch):
    class Forgetful(Draws):
        def __init__(self, *client, seed, drawn=0):
            super().__init__(*client, seed=seed)

    client, counts = ("client 0", 7, 7), (3, 3, 3)
    expected = without_a_memory(client, 0, counts)
    monkeypatch.setitem(globals(), "Draws", Forgetful)
    assert without_a_memory(client, 0, counts) != expected


def test_passes_that_are_skipped_without_being_shuffled_would_be_noticed():
    class Unshuffled(Draws):
        def __init__(self, *client, seed, drawn=0):
            super().__init__(*client, seed=seed, drawn=drawn % client[2])

    client = ("client 0", 7, 7)
    expected = written_out(client, 0, 21)[14:]
    assert Draws(*client, seed=0, drawn=14).draw(7).tolist() == expected
    assert Unshuffled(*client, seed=0, drawn=14).draw(7).tolist() != expected


@given(clients(), seeds, rounds)
def test_every_point_that_is_brought_comes_once_before_any_comes_again(client, seed, counts):
    _, points, contribution = client
    kept = Draws(*client, seed=seed)
    drawn = [point for count in counts for point in kept.draw(count).tolist()]
    assert kept.unique == len(set(drawn))
    for start in range(0, len(drawn) - contribution + 1, contribution):
        one_pass = drawn[start : start + contribution]
        assert len(set(one_pass)) == contribution
        assert set(one_pass) <= set(range(points))


@given(clients(), seeds)
def test_who_brings_fewer_brings_a_part(client, seed):
    name, points, contribution = client
    brought = [
        set(Draws(name, points, some, seed=seed).draw(some).tolist())
        for some in range(1, contribution + 1)
    ]
    assert all(fewer < more for fewer, more in itertools.pairwise(brought))


@pytest.mark.parametrize("other", [("client 1", 30, 30, 4), ("client 0", 30, 30, 5)])
def test_another_name_or_seed_draws_otherwise(other):
    *client, seed = other
    mine = Draws("client 0", 30, 30, seed=4).draw(30).tolist()
    assert Draws(*client, seed=seed).draw(30).tolist() != mine
    assert Draws("client 0", 30, 30, seed=4).draw(30).tolist() == mine


def test_who_brings_nothing_draws_nothing():
    nothing = Draws("Hill", 9, 0, seed=1, drawn=0)
    assert nothing.draw(0).tolist() == []
    assert nothing.unique == 0
    with pytest.raises(InputError, match="Hill gives no samples"):
        nothing.draw(1)


# Goal tests


@given(st.text(min_size=1, max_size=5), st.integers(1, 40), st.integers(1, 60), seeds)
def test_a_goal_test_looks_at_different_points_as_many_as_there_are(name, points, count, seed):
    rows = draw_goal_rows(name, points, count, seed=seed, round_number=3).tolist()
    assert len(rows) == len(set(rows)) == min(points, count)
    assert set(rows) <= set(range(points))
    assert draw_goal_rows(name, points, count, seed=seed, round_number=3).tolist() == rows


@pytest.mark.parametrize("forgotten", [None, "name", "round_number"])
def test_goal_tests_of_other_clients_rounds_and_seeds_look_at_other_points(monkeypatch, forgotten):
    def careless(seed, purpose, name, round_number):
        place = {"name": name, "round_number": round_number}
        place.pop(forgotten)
        return stream(seed, purpose, *place.values())

    if forgotten is not None:
        monkeypatch.setattr(draws, "stream", careless)
    places = itertools.product(("Hill", "Harbour"), (1, 2, 3), (0, 1))
    seen = {
        tuple(draw_goal_rows(name, 400, 40, seed=seed, round_number=number))
        for name, number, seed in places
    }
    assert (len(seen) == 12) == (forgotten is None)


# Points that are asked for later.


@st.composite
def growing(draw):
    """Give a client that brings some of its points, and what it is asked to bring later."""
    points = draw(st.integers(1, 20))
    first = draw(st.integers(0, points))
    steps = draw(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=5))
    return ("Hill", points, first), steps


@given(growing(), seeds)
def test_new_points_come_after_the_old_and_before_any_again(client, seed):
    (name, points, brought), steps = client
    kept = Draws(name, points, brought, seed=seed)
    order = stream(seed, "points", name).permutation(points).tolist()
    seen: list[int] = []
    for count, more in steps:
        for place in kept.draw(count if brought else 0).tolist():
            if len(set(seen)) < brought:
                assert place not in seen, "a point was drawn again before all were drawn once"
            seen.append(place)
        assert set(seen) <= set(order[:brought])
        assert kept.unique == len(set(seen))
        brought = min(points, brought + more)
        kept.resize(brought)


@given(growing(), seeds)
def test_who_forgets_all_draws_what_was_asked_for_later_too(client, seed):
    (name, points, first), steps = client
    kept, brought, changes = Draws(name, points, first, seed=seed), first, []
    for count, more in steps:
        count = count if brought else 0
        again = Draws(name, points, first, seed=seed, drawn=kept.drawn, changes=changes)
        assert (again.drawn, again.unique) == (kept.drawn, kept.unique)
        assert again.draw(count).tolist() == kept.draw(count).tolist()
        brought = min(points, brought + more)
        kept.resize(brought)
        changes.append((kept.drawn, brought))


def test_points_that_were_not_drawn_yet_can_be_released():
    kept = Draws("Hill", 9, 3, seed=1)
    first = kept.draw(3).tolist()
    kept.resize(7)
    fourth = kept.draw(1).tolist()
    kept.resize(4)
    assert kept.unique == 4
    assert sorted(kept.draw(4).tolist()) == sorted(first + fourth)
    with pytest.raises(InputError, match="Hill cannot take back samples that it has drawn already"):
        kept.resize(3)
