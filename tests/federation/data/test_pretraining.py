"""Training on one pool is plain minibatch Adam, the same every time, and can be gone on with."""

import contextlib
import dataclasses
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from federation.real_data import real_file
from federation.small import blobs
from torch import nn
from torch.nn.functional import cross_entropy

import fedaccord.federation
from fedaccord._io.npz import save_arrays
from fedaccord.errors import InputError
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.data.dataset import Preparation, load_data
from fedaccord.federation.data.pretraining import PretrainedWeights, pretrain, shuffle_batches
from fedaccord.federation.data.search import search_hyperparameters
from fedaccord.federation.models.networks import model_factory
from fedaccord.federation.runs.resumable import finish
from fedaccord.federation.runs.store import RunStore

TRAIN, VALIDATION = blobs(90, 0.0, seed=1), blobs(60, 0.0, seed=2)


def linear() -> nn.Module:
    return nn.Linear(4, 3)


def deep() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))


def given_start() -> nn.Module:
    # Not zeros: equal classes would then have no gradient, and Adam blows its rounding up.
    model = nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.copy_(torch.arange(12).reshape(3, 4) / 10)
        model.bias.copy_(torch.tensor([0.5, -0.5, 0.2]))
    return model


def same(one: PretrainedWeights, other: PretrainedWeights) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


def test_full_batches_are_plain_adam():
    # A batch of all points has no order to speak of, so a loop written out here must agree.
    found = pretrain(given_start, *TRAIN, batches=5, batch_size=90, learning_rate=0.05)
    model = given_start()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    inputs, labels = torch.tensor(TRAIN[0], dtype=torch.float32), torch.tensor(TRAIN[1])
    for _ in range(5):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    assert found["weight"] == pytest.approx(model.weight.detach().numpy(), abs=1e-5)
    assert found["bias"] == pytest.approx(model.bias.detach().numpy(), abs=1e-5)


def test_every_pass_has_every_point_once():
    batches = shuffle_batches(7, 3, np.random.default_rng(0))
    drawn = np.concatenate([next(batches) for _ in range(14)])
    passes = drawn.reshape(6, 7)
    assert all(sorted(p) == list(range(7)) for p in passes)
    assert len({tuple(p) for p in passes}) == 6


def test_the_seed_decides_everything_and_nothing_else_does():
    one = pretrain(linear, *TRAIN, batches=6, batch_size=8, seed=3)
    torch.manual_seed(99)
    torch.rand(5)
    before = torch.get_rng_state()
    again = pretrain(
        linear,
        *TRAIN,
        batches=6,
        batch_size=8,
        seed=3,
        validation=VALIDATION,
        until=2,
        look_every=1,
    )
    assert torch.equal(before, torch.get_rng_state())
    # Looking at the accuracy on the way does not change what is learnt.
    assert same(one, again)
    assert not same(one, pretrain(linear, *TRAIN, batches=6, batch_size=8, seed=4))
    assert not same(one, pretrain(linear, *TRAIN, batches=7, batch_size=8, seed=3))
    orders = [pretrain(given_start, *TRAIN, batches=6, batch_size=8, seed=s) for s in (3, 4)]
    assert not same(*orders)


def test_training_stops_once_the_accuracy_is_reached():
    found = pretrain(
        *(linear, *TRAIN),
        batches=2_000,
        batch_size=16,
        learning_rate=0.02,
        validation=VALIDATION,
        until=0.8,
        look_every=10,
    )
    assert found.batches < 2_000
    assert found.batches % 10 == 0
    assert [batches for batches, _ in found.record] == list(range(10, found.batches + 1, 10))
    assert all(accuracy < 0.8 for _, accuracy in found.record[:-1])
    scores = VALIDATION[0] @ found["weight"].T + found["bias"]
    assert found.accuracy == pytest.approx((scores.argmax(axis=1) == VALIDATION[1]).mean())
    assert found.accuracy >= 0.8


def test_without_validation_points_nothing_is_claimed():
    found = pretrain(linear, *TRAIN, batches=2)
    assert np.isnan(found.accuracy)
    assert found.record == ()
    with pytest.raises(InputError, match="needs validation samples"):
        pretrain(linear, *TRAIN, until=0.5)


def test_weights_come_back_from_a_file_and_start_a_federation(tmp_path):
    made = pretrain(linear, *TRAIN, batches=3, validation=VALIDATION)
    made.save(tmp_path / "w.npz")
    read = PretrainedWeights.load(tmp_path / "w.npz")
    assert same(made, read)
    assert read.record == made.record
    assert read.provenance == made.provenance
    client = Client(
        "a", (TRAIN[0].astype("f4"), TRAIN[1]), (VALIDATION[0].astype("f4"), VALIDATION[1]), 0.5
    )
    model = Federation([client], linear, weights=read).start()
    assert np.array_equal(model.weight.detach().numpy(), made["weight"])
    with pytest.raises(ValueError, match="read-only"):
        read["weight"][0] = 0
    save_arrays(tmp_path / "own.npz", {"weights/a": np.ones(2)}, {"record": [], "provenance": {}})
    assert list(PretrainedWeights.load(tmp_path / "own.npz")) == ["a"]
    swapped = {"weights/weight": made["weight"].astype(">f4")}
    save_arrays(tmp_path / "swapped.npz", swapped, {"record": [], "provenance": {}})
    again = PretrainedWeights.load(tmp_path / "swapped.npz")["weight"]
    assert again.dtype.isnative and np.array_equal(again, made["weight"])
    np.savez(tmp_path / "other.npz", images=TRAIN[0])
    with pytest.raises(InputError, match="does not hold pre-trained weights"):
        PretrainedWeights.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("array", "notes"),
    [
        ("weights/a", {"record": 5}),
        ("weights/a", {"record": [5]}),
        ("weights/a", {"record": [[1, None]]}),
        ("weights/a", {"record": [[float("inf"), 0.5]]}),
        ("weights/a", {"provenance": 5}),
        ("a", {}),
    ],
)
def test_other_files_are_told_from_weights(tmp_path, array, notes):
    path = tmp_path / "w.npz"
    save_arrays(path, {array: np.ones(2)}, {"record": [], "provenance": {}, **notes})
    with pytest.raises(InputError, match="does not hold pre-trained weights"):
        PretrainedWeights.load(path)
    save_arrays(path, {"weights/a": np.array("x")}, {"record": [], "provenance": {}})
    with pytest.raises(InputError, match="does not hold pre-trained weights"):
        PretrainedWeights.load(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batches": 0}, "batches must be at least 1; got 0"),
        ({"look_every": 0}, "look_every must be at least 1"),
        ({"batch_size": 0}, "a batch must have at least one sample"),
        ({"learning_rate": 0}, "learning rate must be above 0"),
        ({"learning_rate": float("nan")}, "learning rate must be above 0"),
        ({"inputs": TRAIN[0][:0], "labels": TRAIN[1][:0]}, "0 inputs came with 0 labels"),
        ({"labels": TRAIN[1][:5]}, "90 inputs came with 5 labels"),
        ({"learning_rate": 1e38}, "at batch 2 with the learning rate 1e.38; choose a smaller one"),
    ],
)
def test_bad_options_are_refused_with_a_sentence(options, words):
    given = {"inputs": TRAIN[0], "labels": TRAIN[1], **options}
    with pytest.raises(InputError, match=words):
        pretrain(linear, **given)


def test_a_search_tries_the_papers_range_and_puts_the_best_first():
    found = search_hyperparameters(linear, TRAIN, validation=VALIDATION, draws=40, seed=5)
    assert len(found) == 40
    rates = np.array([draw.learning_rate for draw in found])
    assert ((rates >= 1e-6) & (rates <= 1e-2)).all()
    # Log-uniform: about half of the draws lie below the middle, 1e-4.
    assert 10 <= (rates < 1e-4).sum() <= 30
    assert {draw.batch_size for draw in found} == {4, 8, 64, 128, 256, 512}
    accuracies = [draw.accuracy for draw in found]
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[0] > accuracies[-1]
    best = found[0]
    again = pretrain(
        *(linear, *TRAIN),
        batches=best.batches,
        batch_size=best.batch_size,
        learning_rate=best.learning_rate,
        seed=5,
        validation=VALIDATION,
    )
    assert again.accuracy == best.accuracy
    assert set(
        search_hyperparameters(linear, TRAIN, validation=VALIDATION, draws=4, seed=5)
    ) <= set(found)
    with pytest.raises(InputError, match="at least one draw"):
        search_hyperparameters(linear, TRAIN, validation=VALIDATION, draws=0)


class Stopped(BaseException):
    """As if the process had been stopped: no handler of errors may take it for one."""


class Bursting(nn.Module):
    """A model that fails after so many batches, as if the process had been stopped."""

    left = 0

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs):
        Bursting.left -= self.training
        if Bursting.left < 0:
            raise Stopped
        return self.layer(inputs)


def test_a_search_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "search.db"
    options = {"validation": VALIDATION, "draws": 8, "seed": 1}
    Bursting.left = 10**9
    whole = search_hyperparameters(Bursting, TRAIN, **options)
    # One batch short of all: whatever the order of the draws, the last is cut off, and the second
    # call would fail as well if it did the finished ones again.
    short = sum(draw.batches for draw in whole) - 1
    Bursting.left = short
    with pytest.raises(Stopped):
        search_hyperparameters(Bursting, TRAIN, **options, path=path)
    Bursting.left = short
    assert search_hyperparameters(Bursting, TRAIN, **options, path=path) == whole
    with pytest.raises(InputError, match="made with seed = 1, and now seed is 2"):
        search_hyperparameters(Bursting, TRAIN, **{**options, "seed": 2}, path=path)


def test_a_diverged_draw_comes_last(monkeypatch):
    monkeypatch.setattr("fedaccord.federation.data.search.LEARNING_RATES", (1e-4, 1e38))
    found = search_hyperparameters(deep, TRAIN, validation=VALIDATION, draws=6, epochs=20)
    diverged = [np.isnan(draw.accuracy) for draw in found]
    assert any(diverged)
    assert not all(diverged)
    assert diverged == sorted(diverged)


def test_a_finished_piece_is_committed_before_the_next_begins(tmp_path):
    path = tmp_path / "a.db"
    seen = []

    def work(n):
        with sqlite3.connect(path) as other:
            seen.append(other.execute("select count(*) from pieces").fetchone()[0])
        other.close()
        return {"square": n * n}

    told = []
    rows = finish(
        *("pieces", 4, work),
        path=path,
        description={},
        progress=lambda done, of: told.append((done, of)),
    )
    assert rows == [{"square": 0}, {"square": 1}, {"square": 4}, {"square": 9}]
    assert seen == [0, 1, 2, 3]
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert finish("pieces", 2, work, path=path, description={}) == rows[:2]
    assert len(seen) == 4
    assert finish("pieces", 6, work, path=path, description={})[4:] == [
        {"square": 16},
        {"square": 25},
    ]
    assert len(seen) == 6
    (tmp_path / "b.db").write_text("this is a letter, not a database, and long enough to tell")
    with pytest.raises(InputError, match=r"cannot keep results in .*b\.db"):
        finish("pieces", 1, work, path=tmp_path / "b.db", description={})
    with pytest.raises(InputError, match="cannot keep results in"):
        finish("pieces", 1, work, path=tmp_path / "no" / "c.db", description={})


def test_a_file_of_another_kind_is_refused_and_left_as_it_was(tmp_path):
    def work(n):
        return {"n": n}

    audit, other, newer, empty = (tmp_path / f"{name}.db" for name in ("a", "o", "n", "e"))
    RunStore(audit).close()
    for path, statement in ((other, "create table mine (a)"), (newer, None)):
        if statement is None:
            finish("pieces", 1, work, path=path, description={})
            statement = "pragma user_version = 99"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
    for path, words in (
        (audit, "is a database of another program; name another file"),
        (other, "is a database of another program; name another file"),
        (newer, "another version of fedaccord .* layout is 99, not 1"),
    ):
        before = path.read_bytes()
        with pytest.raises(InputError, match=words):
            finish("pieces", 1, work, path=path, description={})
        assert path.read_bytes() == before
    empty.touch()
    assert finish("pieces", 1, work, path=empty, description={}) == [{"n": 0}]
    with pytest.raises(InputError, match="is a database of another program"):
        RunStore(empty)


@pytest.mark.parametrize("table", ["pieces SET result", "work SET description"])
@pytest.mark.parametrize("value", ["'x'", "NULL", "'[1]'", "7", "x'00ff'"])
def test_pieces_that_were_changed_are_refused(table, value, tmp_path):
    path = tmp_path / "a.db"

    def make():
        return finish("pieces", 2, lambda n: {"n": n}, path=path, description={"a": 1})

    assert make() == [{"n": 0}, {"n": 1}]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} = {value}")
    with pytest.raises(InputError, match=r"a.db is damaged: put back a copy"):
        make()


def test_a_draw_is_a_plain_record():
    found = search_hyperparameters(linear, TRAIN, validation=VALIDATION, draws=1)[0]
    assert set(dataclasses.asdict(found)) == {"learning_rate", "batch_size", "accuracy", "batches"}


@pytest.mark.slow
def test_75_batches_of_real_letters_make_the_papers_start():
    letters = load_data("emnist", path=real_file("emnist47.npz"))
    pool, validation, _ = letters.split(30_000, 500, seed=0)
    preparation = Preparation.fit(pool.inputs, pool.columns)
    found = pretrain(
        model_factory("paper", letters.input_shape, 47),
        preparation.apply(pool.inputs),
        pool.labels,
        validation=(preparation.apply(validation.inputs), validation.labels),
    )
    assert 0.5 < found.accuracy < 0.7


def test_two_processes_share_the_work_and_a_killed_one_loses_only_its_last_piece(tmp_path):
    script = """
import sys, time
from fedaccord.federation.runs.resumable import finish

def work(n):
    time.sleep(0.02)
    with open(sys.argv[2], "a") as log:
        log.write(f"{n}\\n")
    return {"n": n}

print(len(finish("pieces", 60, work, path=sys.argv[1], description={})))
"""
    path, logs = tmp_path / "a.db", [tmp_path / name for name in ("one", "two", "three")]
    start = [sys.executable, "-c", script, str(path)]
    killed, other = (subprocess.Popen([*start, str(log)]) for log in logs[:2])
    while not (logs[0].exists() and logs[1].exists()):
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    assert other.wait() == 0
    done = [[int(n) for n in log.read_text().split()] for log in logs[:2]]
    assert {*done[0], *done[1]} == set(range(60))
    # The killed one's last piece may be lost, and at the same moment both may do the same.
    assert len(done[0]) + len(done[1]) <= 60 + 5
    subprocess.run([*start, str(logs[2])], check=True)
    assert not logs[2].exists()


def test_one_name_is_one_idea():
    folder = Path(fedaccord.federation.__file__).parent
    pattern = re.compile(r"^(class )?ModelFactory\b", re.MULTILINE)
    defining = [p.name for p in folder.rglob("*.py") if pattern.search(p.read_text("utf-8"))]
    assert defining == ["networks.py"]
