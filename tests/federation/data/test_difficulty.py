"""Scores tell hard points from easy ones; trials can be stopped and gone on with."""

import math

import numpy as np
import pytest
import torch
from federation.small import blobs
from torch import nn

from fedaccord._io.npz import save_arrays
from fedaccord.errors import InputError
from fedaccord.federation.data.dataset import Dataset, Preparation
from fedaccord.federation.data.difficulty import mean_by_point, trial_scores
from fedaccord.federation.data.pretraining import Bands, Scores, loss_scores, measure_losses


def linear() -> nn.Module:
    return nn.Linear(4, 3)


def dataset(points: int, seed: int) -> Dataset:
    inputs, labels = blobs(points, 0.5, seed=seed)
    # Further apart, so that a point is hard because of its label and not by its place.
    return Dataset(inputs + 2 * np.eye(3, 4)[labels], labels, source="blobs")


def scores(values) -> Scores:
    return Scores(np.array(values, dtype=float), np.ones(len(values), dtype=int), "pool", {})


def test_bands_take_ranks_by_hand():
    # In order of difficulty the points are 3 5 0 8 1 9 2 7 4 6.
    found = scores([2, 4, 6, 0, 8, 1, 9, 7, 3, 5])
    hard, easy = Bands(hard=(80, 100), easy=(0, 20)).pools(found)
    assert hard.tolist() == [4, 6]
    assert easy.tolist() == [3, 5]
    hard, easy = Bands(hard=(50, 80), easy=(30, 50)).pools(found)
    assert hard.tolist() == [9, 2, 7]
    assert easy.tolist() == [8, 1]


def test_bands_that_touch_share_no_point_and_leave_none_out():
    for points in range(7, 40):
        found = scores(np.random.default_rng(points).normal(size=points))
        for cut in (33, 45.5, 65):
            hard, easy = Bands(hard=(cut, 100), easy=(0, cut)).pools(found)
            assert sorted([*hard, *easy]) == list(range(points))
            assert found.values[easy].max() < found.values[hard].min()


def test_points_without_a_score_are_in_no_band():
    found = scores([math.nan, 1, 2, math.nan, 3, 4])
    hard, easy = Bands(hard=(50, 100), easy=(0, 50)).pools(found)
    assert (hard.tolist(), easy.tolist()) == ([4, 5], [1, 2])
    assert found.summary() == {
        "points": 4,
        "mean": 2.5,
        "sd": pytest.approx(math.sqrt(1.25)),
        "least": 1.0,
        "most": 4.0,
    }


@pytest.mark.parametrize(
    ("hard", "easy", "words"),
    [
        ((60, 100), (0, 61), "easy band ends at 61 and the hard band begins at 60"),
        ((60, 60), (0, 10), "the hard band must go from a lower to a higher percentile"),
        ((60, 101), (0, 10), "between 0 and 100; got 60 to 101"),
        ((60, 70), (math.nan, 10), "the easy band must go"),
    ],
)
def test_bad_bands_are_refused(hard, easy, words):
    with pytest.raises(InputError, match=words):
        Bands(hard=hard, easy=easy)


def test_a_band_without_points_says_so():
    with pytest.raises(
        InputError, match="no sample is in the hard band: 1 of 2 samples have a score"
    ):
        Bands(hard=(50, 60), easy=(0, 50)).pools(scores([1, math.nan]))
    with pytest.raises(InputError, match="no sample has a score yet"):
        scores([math.nan]).summary()


def test_a_points_score_is_the_mean_over_its_trials_by_hand():
    members = [np.array([0, 1]), np.array([1, 2]), np.array([1, 0])]
    values, counts = mean_by_point(4, members, np.array([10.0, 20.0, 60.0]))
    assert values.tolist()[:3] == [35, 30, 20]
    assert math.isnan(values[3])
    assert counts.tolist() == [2, 3, 1, 0]


def test_losses_are_cross_entropies():
    pool = dataset(1_100, seed=1)
    preparation = Preparation.fit(pool.inputs, pool.columns)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))
    weight, bias = (p.detach().numpy().astype(float) for p in model.parameters())
    outputs = preparation.apply(pool.inputs) @ weight.T + bias
    right = outputs[np.arange(len(pool)), pool.labels]
    by_hand = np.log(np.exp(outputs).sum(axis=1)) - right
    assert measure_losses(model, pool, preparation) == pytest.approx(by_hand, abs=1e-5)


def mislabelled(points: int, seed: int) -> tuple[Dataset, np.ndarray]:
    """Clouds in which every fourth point has a wrong label."""
    good = dataset(points, seed)
    wrong = np.arange(points) % 4 == 0
    return Dataset(good.inputs, np.where(wrong, (good.labels + 1) % 3, good.labels)), wrong


def test_wrong_labels_are_hard_by_loss():
    pool, wrong = mislabelled(200, seed=3)
    found = loss_scores(
        *(pool, linear),
        reference=dataset(300, seed=4),
        until=0.8,
        holdout=100,
        learning_rate=0.02,
    )
    assert found.provenance["good_enough"]
    assert found.provenance["points"] == 200
    assert found.pool == pool.sha256
    hard, easy = Bands(hard=(80, 100), easy=(0, 20)).pools(found)
    assert wrong[hard].mean() > 0.9
    assert wrong[easy].mean() < 0.1


def test_a_network_that_stays_poor_is_said_to_be():
    found = loss_scores(
        dataset(20, seed=3),
        linear,
        reference=dataset(60, seed=4),
        until=0.99,
        batches=2,
        holdout=30,
    )
    assert not found.provenance["good_enough"]
    assert found.provenance["batches_trained"] == 2
    with pytest.raises(InputError, match="the holdout must leave some of the 60 reference samples"):
        loss_scores(dataset(20, seed=3), linear, reference=dataset(60, seed=4), holdout=60)


OPTIONS = {"points": 24, "batch_size": 4, "learning_rate": 0.02, "target": 0.8, "cap": 40}


def test_wrong_labels_are_hard_by_trials():
    pool, wrong = mislabelled(48, seed=3)
    found = trial_scores(
        *(pool, linear),
        holdout=dataset(60, seed=4),
        trials=40,
        look_every=2,
        seed=1,
        **{**OPTIONS, "points": 8, "learning_rate": 0.05, "cap": 30},
    )
    assert found.counts.sum() == 40 * 8
    known = found.counts > 0
    assert known.mean() > 0.9
    assert found.values[wrong & known].mean() > found.values[~wrong & known].mean() + 3


class Counting(nn.Module):
    """Counts how many networks are made, and fails after the last that is allowed."""

    left = 10**9

    def __init__(self) -> None:
        super().__init__()
        Counting.left -= 1
        if Counting.left < 0:
            raise KeyboardInterrupt
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.layer(inputs)


def test_trials_that_were_stopped_end_as_if_they_had_not_been(tmp_path):
    pool, holdout = dataset(80, seed=5), dataset(60, seed=6)
    options = {"holdout": holdout, "trials": 6, "seed": 2, **OPTIONS}
    Counting.left = 10**9
    whole = trial_scores(pool, Counting, **options)
    path = tmp_path / "trials.db"
    # One network to describe the model and one per trial.
    Counting.left = 1 + 3
    with pytest.raises(KeyboardInterrupt):
        trial_scores(pool, Counting, **options, path=path)
    Counting.left = 1 + 3
    resumed = trial_scores(pool, Counting, **options, path=path)
    assert np.array_equal(resumed.values, whole.values, equal_nan=True)
    assert resumed.provenance == whole.provenance
    Counting.left = 1
    fewer = trial_scores(pool, Counting, **{**options, "trials": 2}, path=path)
    assert fewer.counts.sum() == 2 * OPTIONS["points"]
    Counting.left = 10**9
    for key, value in (("seed", 3), ("target", 0.5), ("pool", dataset(80, seed=7))):
        changed = {"pool": pool, **options, key: value}
        with pytest.raises(InputError, match=f"made with {key} = .*name another file"):
            trial_scores(changed.pop("pool"), Counting, **changed, path=path)


def test_trials_that_never_reach_the_target_count_as_the_cap_and_are_counted():
    found = trial_scores(
        dataset(80, seed=5),
        linear,
        holdout=mislabelled(60, seed=6)[0],
        trials=3,
        **{**OPTIONS, "target": 1.0, "cap": 7},
    )
    assert found.provenance["capped"] == 3
    assert set(found.values[~np.isnan(found.values)]) == {7.0}


def test_every_trial_draws_points_of_its_own():
    pool, holdout = dataset(200, seed=5), dataset(60, seed=6)
    options = {"holdout": holdout, **OPTIONS, "cap": 1}
    drawn = {}
    for seed in range(3):
        known = [trial_scores(pool, linear, trials=n, seed=seed, **options).counts for n in (1, 2)]
        drawn[seed, 0] = known[0].tobytes()
        drawn[seed, 1] = (known[1] - known[0]).tobytes()
        assert known[0].max() == 1
        assert known[0].sum() == 24
    assert len(set(drawn.values())) == 6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"points": 81}, "cannot draw 81 of 80 samples"),
        ({"target": 0}, "the target must be an accuracy above 0"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"cap": 0}, "cap must be at least 1"),
        ({"look_every": 0}, "look_every must be at least 1"),
    ],
)
def test_bad_options_of_trials_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        trial_scores(dataset(80, 5), linear, holdout=dataset(9, 6), **{**OPTIONS, **options})


def test_scores_come_back_from_a_file(tmp_path):
    made = Scores(np.array([1.5, math.nan]), np.array([3, 0]), "abc", {"method": "trials"})
    made.save(tmp_path / "s.npz")
    read = Scores.load(tmp_path / "s.npz")
    assert np.array_equal(read.values, made.values, equal_nan=True)
    assert read.counts.tolist() == [3, 0]
    assert (read.pool, read.provenance) == ("abc", {"method": "trials"})
    with pytest.raises(ValueError, match="read-only"):
        read.values[0] = 2
    np.savez(tmp_path / "t.npz", values=made.values)
    with pytest.raises(InputError, match="does not hold scores"):
        Scores.load(tmp_path / "t.npz")
    arrays, notes = {"values": np.ones(2), "counts": np.ones(2, dtype=int)}, {"pool": "abc"}
    for other in (
        {"values": np.array(["a", "b"])},
        {"counts": np.array(["a", "b"])},
        {"values": np.array([True, False])},
        {"pool": 5},
        {"provenance": 5},
    ):
        found = {**arrays, **notes, "provenance": {}, **other}
        kept = {k: v for k, v in found.items() if isinstance(v, np.ndarray)}
        save_arrays(tmp_path / "u.npz", kept, {k: v for k, v in found.items() if k not in kept})
        with pytest.raises(InputError, match="does not hold scores"):
            Scores.load(tmp_path / "u.npz")
    with pytest.raises(InputError, match="a count for every score"):
        Scores(np.ones(2), np.ones(3, dtype=int), "abc", {})
