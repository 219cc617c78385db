"""Dropout by client: masks that depend on nobody else, and clients that need no memory for them."""

from collections import deque

import numpy as np
import pytest
import torch
from federation.small import OwnMean, Uneven, small_federation
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.models.networks import ClientRows, Dropout, dropouts, ready_dropout
from fedaccord.federation.training import loop as steps
from fedaccord.federation.training import loop as training
from fedaccord.federation.training.loop import give_streams, train
from fedaccord.federation.training.rng import Draws, stream

UNITS = 24
NUMBERS = {"north": 0, "south": 1, "west": 2}


class Masked(nn.Module):
    """A model that logs each training row: whose it is, which point, and both of its masks."""

    def __init__(self, seen, chunk) -> None:
        super().__init__()
        self.first, self.layer, self.second = Dropout(128), nn.Linear(4, 3).double(), Dropout(64)
        self.train_chunk = chunk
        self.seen = seen
        seen.clear()

    def forward(self, inputs):
        if self.training:
            masks = [
                drop(torch.ones(len(inputs), UNITS)) == 0 for drop in (self.first, self.second)
            ]
            for place, *mask in zip(
                inputs[:, 0].tolist(), *(m.tolist() for m in masks), strict=True
            ):
                self.seen.append((int(place) // 1000, int(place) % 1000, *map(tuple, mask)))
        return self.layer(inputs)


def marked(numbers=NUMBERS, chunk=None):
    """Give clients of given numbers, in whose points the first column is 1000 number + place."""
    seen, clients = [], []
    for name, number in numbers.items():
        inputs = np.zeros((12 + number, 4))
        inputs[:, 0] = 1000 * number + np.arange(len(inputs))
        points = (inputs, np.arange(len(inputs)) % 3)
        clients.append(Client(name, points, points, requirement=0.9))
    return Federation(clients, lambda: Masked(seen, chunk)), seen


def rows_of(seen, number):
    return [row[1:] for row in seen if row[0] == number]


def settings_of(form):
    return {"form": "local" if form == "local" else "pooled", "batch_size": 4}


def kind_of(form):
    return OwnMean if form == "gradient" else Uneven


FORMS = ["pooled", "gradient", "local"]
counts = st.integers(0, 9)


@st.composite
def changes(draw):
    """Give what others may do that is nothing to the one in the middle: names and contributions."""
    north = draw(st.sampled_from(["north", "Nord", "gone"]))
    west = draw(st.sampled_from(["west", "Ouest", "gone"]))
    names = {north: 0, "south": 1, west: 2}
    names.pop("gone", None)
    order = draw(st.permutations(list(names)))
    brought = [13 if name == "south" else draw(st.integers(1, 12)) for name in order]
    drawn = [None if name == "south" else draw(counts) for name in order]
    return {name: names[name] for name in order}, brought, drawn


def check_masks_of_the_middle_one(form, change, *, rounds, batches, mine, chunk, seed):
    """Check that the middle one's samples and masks are the same with others and other others."""
    numbers, brought, drawn = change
    logs = []
    for members, contributions, others in (
        (NUMBERS, None, [5, None, 5]),
        (numbers, brought, drawn),
    ):
        federation, seen = marked(members, chunk)
        algorithm = kind_of(form)(
            counts=tuple(mine if other is None else other for other in others),
            rounds=rounds,
            local_batches=batches,
            **settings_of(form),
        )
        train(federation, algorithm, contributions=contributions, seed=seed)
        logs.append(rows_of(seen, 1))
    assert len(logs[0]) == rounds * mine
    assert logs[0] == logs[1]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(
    change=changes(),
    rounds=st.integers(1, 3),
    batches=st.integers(1, 3),
    mine=counts,
    chunk=st.sampled_from([None, 1, 4, 7]),
    seed=st.integers(0, 2**40),
)
def test_a_clients_masks_do_not_change_when_others_are_cut_renamed_or_leave(form, **drawn):
    check_masks_of_the_middle_one(form, **drawn)


CUT = ({"west": 2, "Nord": 0, "south": 1}, [3, 2, 13], [2, 1, None])
ALONE = ({"south": 1}, [13], [None])


@pytest.mark.parametrize("change", [CUT, ALONE], ids=["cut", "alone"])
@pytest.mark.parametrize("form", FORMS)
def test_one_stream_for_all_clients_would_be_noticed(monkeypatch, form, change):
    """The fault planted: a stream a place for the whole run, in the order in which rows come."""
    options = {"rounds": 2, "batches": 1, "mine": 6, "chunk": None, "seed": 1}
    check_masks_of_the_middle_one(form, change, **options)

    def shared(model, batch, *, seed):
        for place, module in enumerate(dropouts(model)):
            random = module.stream = module.stream or stream(seed, "dropout", place)
            module.turns = deque([(random, sum(some.rows for some in batch))])

    monkeypatch.setattr(steps, "ready_dropout", shared)
    with pytest.raises(AssertionError):
        check_masks_of_the_middle_one(form, change, **options)


def check_that_no_two_masks_are_alike(form, batches=2):
    """Check that masks differ by client, round, place and row, as 24 units do by chance."""
    federation, seen = marked()
    algorithm = kind_of(form)(
        counts=(8, 8, 8), rounds=4, local_batches=batches, **settings_of(form)
    )
    train(federation, algorithm, seed=3)
    first = [row[2] for row in seen]
    assert len(first) == len(set(first)) == 96
    # At another place another half, of which a quarter is no part by chance: 1 in 4 ** 24.
    second = [row[3] for row in seen]
    both = [
        sum(a and b for a, b in zip(*pair, strict=True)) for pair in zip(first, second, strict=True)
    ]
    assert np.mean(both) == pytest.approx(UNITS / 8, abs=0.8)


@pytest.mark.parametrize("form", FORMS)
def test_masks_differ_by_client_round_place_and_row(form):
    check_that_no_two_masks_are_alike(form)


@pytest.mark.parametrize("forgotten", ["name", "drawn", "place"])
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_forgets_what_it_is_for_would_be_noticed(monkeypatch, form, forgotten):
    def careless(model, batch, *, seed):
        for place, module in enumerate(dropouts(model)):
            module.turns = deque()
            for name, drawn, rows in batch:
                words = {"place": place, "name": name, "drawn": drawn, forgotten: 0}
                module.turns.append((stream(seed, "dropout", *words.values()), rows))

    monkeypatch.setattr(steps, "ready_dropout", careless)
    with pytest.raises(AssertionError):
        check_that_no_two_masks_are_alike(form)


@pytest.mark.parametrize("form", FORMS)
def test_another_seed_has_other_masks(form):
    logs = []
    for seed in (1, 2):
        federation, seen = marked()
        train(federation, kind_of(form)(counts=(8, 8, 8), rounds=2, **settings_of(form)), seed=seed)
        logs.append({row[2] for row in seen})
    assert not logs[0] & logs[1]


def test_a_client_alone_and_one_of_many_are_masked_alike_in_solo_training():
    federation, seen = marked()
    train(federation, Solo(rounds=3, batch_size=5), seed=2)
    # Each of the three starts a log of its own: the last is still there.
    last = rows_of(seen, 2)
    train(federation, FedAvg(rounds=3, batch_size=5), seed=2)
    assert rows_of(seen, 2) == last


# Without a memory


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("form", FORMS)
def test_one_who_is_started_anew_each_round_has_the_masks_of_the_loop(form, chunk):
    federation, seen = marked(chunk=chunk)
    train(federation, kind_of(form)(counts=(5, 8, 3), rounds=4, **settings_of(form)), seed=9)
    expected = rows_of(seen, 1)
    client, found = federation.clients[1], []
    for drawn in range(0, 32, 8):
        model = federation.model().train()
        ready_dropout(model, [ClientRows("south", drawn, 8)], seed=9)
        rows = Draws("south", 13, 13, seed=9, drawn=drawn).draw(8)
        for some in np.split(rows, [3, 6]):
            model(client.inputs[some])
        found += rows_of(seen, 1)
    assert found == expected


# Goal tests


class Looking(nn.Module):
    """A model that logs what it is evaluated on."""

    def __init__(self, seen) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(4, 3).double(), seen
        seen.clear()

    def forward(self, inputs):
        if not self.training:
            self.seen.append([(int(p) // 1000, int(p) % 1000) for p in inputs[:, 0]])
        return self.layer(inputs)


def looked_at(numbers, number, goal_points=4):
    """Give the points of a client that the goal test of each round looked at."""
    marked_ones, _ = marked(numbers)
    seen = []
    federation = Federation(marked_ones.clients, lambda: Looking(seen))
    algorithm = MwFed(rounds=3, batch_size=4, goal_points=goal_points, evaluate_every=9)
    train(federation, algorithm, seed=5)
    # The last round is looked at as a whole before.
    tests = [batch for batch in seen if len(batch) == goal_points * len(numbers)]
    assert len(tests) == 3
    return [[point for whose, point in batch if whose == number] for batch in tests]


@pytest.mark.parametrize(
    "numbers", [{"west": 2, "south": 1}, {"south": 1}, {"Nord": 0, "south": 1}]
)
def test_a_goal_test_looks_at_the_same_points_of_a_client_whoever_else_there_is(numbers):
    expected = looked_at(NUMBERS, 1)
    assert looked_at(numbers, 1) == expected
    assert len({tuple(points) for points in expected}) == 3
    assert looked_at({"Sud": 1}, 1) != expected


def test_goal_tests_that_draw_from_one_stream_would_be_noticed(monkeypatch):
    one = stream(5, "validation")

    def shared(name, points, count, *, seed, round_number):
        return one.choice(points, min(count, points), replace=False)

    monkeypatch.setattr(training, "draw_goal_rows", shared)
    with pytest.raises(AssertionError):
        test_a_goal_test_looks_at_the_same_points_of_a_client_whoever_else_there_is({"south": 1})


# Rows whose turn it is


@pytest.mark.parametrize("cuts", [[9], [1] * 9, [2, 5, 2], [0, 4, 0, 5], [3, 6]])
def test_rows_take_their_bytes_from_their_own_clients_streams_in_turn(cuts):
    layer = Dropout(100)
    ready_dropout(layer, [ClientRows("a", 4, 2), ("b", 0, 0), ("c", 7, 7)], seed=5)
    found = torch.cat([layer.draw(rows, 13) for rows in cuts])
    words = [
        stream(5, "dropout", 0, name, drawn).integers(
            2**64 - 1, size=(rows, 2), dtype=np.uint64, endpoint=True
        )
        for name, drawn, rows in (("a", 4, 2), ("c", 7, 7))
    ]
    expected = np.concatenate(words).view(np.uint8)[:, :13]
    assert found.numpy().tolist() == expected.tolist()


def test_more_rows_than_are_readied_are_refused_and_not_guessed():
    layer = Dropout(128)
    ready_dropout(layer, [ClientRows("south", 0, 5)], seed=0)
    layer(torch.ones(3, 4))
    with pytest.raises(InputError, match="got 3 rows, 1 more than the clients' samples"):
        layer(torch.ones(3, 4))
    ready_dropout(layer, [ClientRows("south", 5, 3)], seed=0)
    layer(torch.ones(3, 4))
    # In evaluation nothing is dropped, so nobody's turn is over.
    assert layer.eval()(torch.ones(3, 4)).tolist() == torch.ones(3, 4).tolist()


def test_the_rows_left_from_one_step_are_not_those_of_the_next():
    layer = Dropout(128)
    ready_dropout(layer, [ClientRows("south", 0, 5)], seed=0)
    ready_dropout(layer, [ClientRows("west", 0, 2)], seed=0)
    found = layer.draw(2, 8)
    ready_dropout(layer, [ClientRows("west", 0, 2)], seed=0)
    assert torch.equal(layer.draw(2, 8), found)
    assert not layer.turns


def test_a_dropout_that_is_used_twice_in_a_pass_is_told_so():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout, self.layer = Dropout(64), nn.Linear(4, 3).double()

        def forward(self, inputs):
            return self.dropout(self.layer(self.dropout(inputs)))

    with pytest.raises(InputError, match="use each Dropout once in a pass"):
        train(small_federation(model=Twice), FedAvg(rounds=1, batch_size=4))


def test_whoever_trains_alone_has_one_stream_a_place_and_no_turns():
    model = nn.Sequential(Dropout(64), nn.Linear(16, 16), Dropout(128))
    give_streams(model, 8)
    for place, layer in enumerate(dropouts(model)):
        words = stream(8, "dropout", place).integers(
            2**64 - 1, size=(6, 2), dtype=np.uint64, endpoint=True
        )
        found = torch.cat([layer.draw(2, 16), layer.draw(4, 16)])
        assert found.numpy().tolist() == words.view(np.uint8).tolist()
