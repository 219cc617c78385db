"""Deals: no point twice, the mixtures asked for, fresh in every trial, the same again."""

import pickle

import numpy as np
import pytest
from federation.real_data import real_file
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.data.dataset import Column, Dataset, load_data
from fedaccord.federation.models.networks import model_factory
from fedaccord.federation.partition import Dealer, SiteDealer
from fedaccord.federation.training.loop import train


def three_columns() -> nn.Module:
    return nn.Linear(3, 2)


def two_columns() -> nn.Module:
    return nn.Linear(2, 2)


# Point p has p in its first column and in its second whether it is hard.
HARD, EASY = np.arange(10, 60), np.arange(60, 100)
POOL = Dataset(
    np.column_stack([np.arange(100), np.isin(np.arange(100), HARD)]).astype(np.float32),
    np.arange(100) % 2,
    columns=[Column("place", levels=tuple(map(str, range(100)))), Column("hard")],
)


def wide() -> nn.Module:
    return nn.Linear(101, 2)


def dealer(**options) -> Dealer:
    return Dealer(POOL, HARD, EASY, **{"model": wide, "points": 20, **options})


def points_of(inputs) -> list[int]:
    """Read which points these are off the one-hot columns."""
    return inputs[:, :100].argmax(dim=1).tolist()


def dealt_points(federation) -> list[tuple[list[int], list[int]]]:
    return [
        (points_of(client.inputs), points_of(client.validation_inputs))
        for client in federation.clients
    ]


@given(
    st.lists(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), min_size=1, max_size=4),
    st.integers(2, 10),
    st.floats(0.01, 0.99),
    st.integers(0, 5),
)
def test_no_point_is_dealt_twice_in_a_trial(mixtures, points, validation, trial):
    made = dealer(mixtures=mixtures, points=points, validation=validation)
    dealt = dealt_points(made.deal(trial))
    everything = [point for train, held_out in dealt for point in (*train, *held_out)]
    assert len(everything) == len(mixtures) * points
    assert len(set(everything)) == len(everything)
    assert set(everything) <= {*HARD, *EASY}
    for mixture, (training, held_out) in zip(mixtures, dealt, strict=True):
        both = [*training, *held_out]
        assert np.isin(both, HARD).sum() == pytest.approx(mixture * points, abs=0.5)
        assert len(training) >= 1
        assert len(held_out) >= 1
    assert made.points.tolist() == [len(training) for training, _ in dealt]


def test_the_papers_clients_are_the_default():
    made = dealer()
    assert made.names == ("100% hard", "90% hard", "90% easy", "100% easy")
    assert made.requirements.tolist() == [0.7] * 4
    assert made.points.tolist() == [16] * 4
    federation = made.deal(0)
    assert federation.names == made.names
    assert federation.points.tolist() == [16] * 4
    assert federation.requirements.tolist() == [0.7] * 4
    for mixture, (training, held_out) in zip((20, 18, 2, 0), dealt_points(federation), strict=True):
        assert np.isin([*training, *held_out], HARD).sum() == mixture


def test_labels_go_with_their_points():
    for client in dealer().deal(3).clients:
        assert client.labels.tolist() == [p % 2 for p in points_of(client.inputs)]
        validated = [p % 2 for p in points_of(client.validation_inputs)]
        assert client.validation_labels.tolist() == validated


def test_trials_and_seeds_deal_afresh_and_the_same_again():
    deals = {
        (seed, trial): dealt_points(dealer(seed=seed).deal(trial))
        for seed in range(3)
        for trial in range(3)
    }
    firsts = {tuple(training) for dealt in deals.values() for training, _ in dealt}
    assert len(firsts) == 9 * 4
    sets = {
        frozenset([*training, *held_out])
        for dealt in deals.values()
        for training, held_out in dealt
    }
    assert len(sets) == 9 * 4
    assert deals[2, 1] == dealt_points(pickle.loads(pickle.dumps(dealer(seed=2))).deal(1))


def test_hard_and_easy_points_of_a_mixture_are_shuffled():
    made = dealer(mixtures=[0.5], points=60, validation=0.5)
    for trial in range(5):
        ((training, held_out),) = dealt_points(made.deal(trial))
        assert 5 < np.isin(training, HARD).sum() < 25
        assert 5 < np.isin(held_out, HARD).sum() < 25
        assert np.isin(training[:15], HARD).any()
        assert not np.isin(training[:15], HARD).all()


def test_a_dealer_keeps_its_pools_only():
    images = Dataset(np.zeros((50_000, 28, 28), dtype=np.uint8), np.arange(50_000) % 2)
    made = Dealer(
        images,
        np.arange(100),
        np.arange(100, 200),
        points=50,
        model=model_factory("mlp", (28, 28), 2),
    )
    assert len(pickle.dumps(made)) < 200 * 28 * 28 + 10_000
    assert made.deal(0).clients[0].inputs.shape == (40, 1, 28, 28)


def test_clients_may_differ_in_everything():
    made = dealer(
        mixtures=[1, 0, 0],
        points=[30, 20, 10],
        requirement=[0.5, 0.6, 0.7],
        names=["a", "b", "c"],
        validation=0.1,
    )
    assert made.points.tolist() == [27, 18, 9]
    assert made.deal(0).names == ("a", "b", "c")
    assert made.deal(0).requirements.tolist() == [0.5, 0.6, 0.7]
    assert dealer(mixtures=[1, 1, 0.25]).names == ("100% hard 1", "100% hard 2", "75% easy")


def test_the_fingerprint_knows_all_that_deals_depend_on():
    weights = {"weight": np.zeros((2, 101), "f4"), "bias": np.zeros(2, "f4")}
    others = [
        dealer(seed=1),
        dealer(points=18),
        dealer(mixtures=[1, 0.9, 0.1, 0.1], names=dealer().names),
        dealer(requirement=0.6),
        dealer(validation=0.3),
        dealer(names=["a", "b", "c", "d"]),
        dealer(weights=weights),
        dealer(model=lambda: nn.Sequential(wide())),
        Dealer(POOL, HARD[:-1], EASY, model=wide, points=20),
        Dealer(POOL, HARD[:-1], np.append(HARD[-1], EASY), model=wide, points=20),
    ]
    prints = [made.fingerprint for made in [dealer(), *others]]
    assert len(set(prints)) == len(prints)
    assert dealer().fingerprint == prints[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"points": 30}, "4 clients need 60 hard samples and the pool has 50; widen the hard band"),
        ({"points": 30, "mixtures": [0, 0]}, "2 clients need 60 easy samples and the pool has 40"),
        ({"mixtures": [1.5]}, "the hard part of 150% hard must lie in 0 to 1"),
        ({"mixtures": [1, 0], "names": ["a"]}, "2 mixtures came with 1 names"),
        ({"points": [20, 20]}, "4 clients need one of points each, in this order: .*; got 2"),
        (
            {"requirement": [0.5, 0.5]},
            "4 clients need one of requirements each, in this order: .*; got 2",
        ),
        ({"points": [20, 0, 20, 20]}, "90% hard has no data; it needs two samples or more"),
        ({"points": 1}, "100% hard has one point"),
        ({"points": -3}, "100% hard has -3 points"),
        ({"points": 20.5}, "whole number"),
        ({"validation": 0}, "the validation part must lie between 0 and 1"),
        ({"validation": 1}, "the validation part must lie between 0 and 1"),
        ({"requirement": 1.2}, "the requirement of 100% hard must be an accuracy"),
        ({"mixtures": []}, "at least one client"),
        ({"points": float("nan")}, "must be a whole number; got nan"),
        ({"model": two_columns}, "the model does not accept inputs of shape"),
        ({"weights": {"weight": np.zeros(3)}}, "the weights do not fit the model"),
    ],
)
def test_what_cannot_be_dealt_is_refused_with_a_sentence(options, words):
    with pytest.raises(InputError, match=words):
        dealer(**options)


@pytest.mark.parametrize(
    ("hard", "easy", "words"),
    [
        ([1, 2, 3], [3, 4], "both in the hard and in the easy pool"),
        ([1, 1], [3, 4], "twice in one pool"),
        ([1, 100], [3, 4], "must lie in 0 to 99"),
        ([1, -1], [3, 4], "must lie in 0 to 99"),
        ([0.5], [3, 4], "whole numbers"),
    ],
)
def test_bad_pools_are_refused(hard, easy, words):
    with pytest.raises(InputError, match=words):
        Dealer(POOL, hard, easy, model=wide, points=2, mixtures=[1])


def sites(sizes=(20, 9, 40), **options) -> SiteDealer:
    """Point p of the data has p in its first column; the second has gaps."""
    places = np.arange(sum(sizes), dtype=np.float32)
    gaps = np.where(places % 5 == 0, np.nan, places % 7)
    return SiteDealer(
        Dataset(
            np.column_stack([places, gaps]),
            (places % 4 == 0).astype(int),
            sites=np.repeat(np.arange(len(sizes)), sizes),
            site_names=["north", "south", "east"][: len(sizes)],
        ),
        **{"model": three_columns, **options},
    )


def test_sites_can_validate_on_all_points_that_do_not_train():
    made = sites(most=8, validation="rest")
    assert made.points.tolist() == [8, 8, 8]
    assert made.count_further().tolist() == [0, 0, 0]
    for n, (training, validation) in enumerate(made.indices(3)):
        own = np.flatnonzero(made.data.sites == n)
        assert len(training) == 8
        assert sorted([*training, *validation]) == own.tolist()
    # A site with no more points than train keeps one for validation.
    assert sites((5, 9, 40), most=8, validation="rest").points.tolist() == [4, 8, 8]
    with pytest.raises(InputError, match="say how many samples of each site train"):
        sites(validation="rest")
    with pytest.raises(InputError, match="validation part must lie"):
        sites(validation="most")


def test_every_site_is_a_client_with_its_own_points():
    made = sites()
    assert made.names == ("north", "south", "east")
    assert made.points.tolist() == [16, 7, 32]
    dealt = made.indices(0)
    for (training, held_out), whole in zip(
        dealt, (range(20), range(20, 29), range(29, 69)), strict=True
    ):
        assert sorted([*training, *held_out]) == list(whole)
    federation = made.deal(0)
    assert federation.names == made.names
    assert federation.points.tolist() == [16, 7, 32]
    assert federation.clients[0].labels.tolist() == [int(p % 4 == 0) for p in dealt[0][0]]


def test_sites_are_split_afresh_in_every_trial_and_by_class():
    made = sites(validation=0.25)
    splits = set()
    for trial in range(20):
        for n, (_, held_out) in enumerate(made.indices(trial)):
            splits.add((n, *sorted(held_out)))
            ill = (held_out % 4 == 0).sum()
            assert abs(ill - len(held_out) / 4) <= 1
    assert len(splits) > 50
    assert np.array_equal(made.indices(3)[1][0], sites(validation=0.25).indices(3)[1][0])
    assert not np.array_equal(
        made.indices(3)[2][0], sites(validation=0.25, seed=1).indices(3)[2][0]
    )


def test_every_point_is_validated_on_in_some_trial():
    held_out = {int(p) for trial in range(60) for _, out in sites().indices(trial) for p in out}
    assert held_out == set(range(69))


def test_validation_points_leave_no_trace_in_the_training_inputs():
    made = sites()
    spoilt_inputs = made.data.inputs.copy()
    for _, held_out in made.indices(0):
        spoilt_inputs[held_out] = 1e6
    spoilt = SiteDealer(
        Dataset(
            spoilt_inputs,
            made.data.labels,
            sites=made.data.sites,
            site_names=made.names,
            columns=made.data.columns,
        ),
        model=three_columns,
    )
    for one, other in zip(made.deal(0).clients, spoilt.deal(0).clients, strict=True):
        assert np.array_equal(one.inputs, other.inputs)
        assert not np.array_equal(one.validation_inputs, other.validation_inputs)


def test_sites_that_cannot_be_split_are_named():
    with pytest.raises(InputError, match="south has one point; it needs two"):
        sites((20, 1, 40))
    with pytest.raises(InputError, match="south has no data"):
        sites((20, 0, 40))
    assert sites((20, 2, 40)).points.tolist() == [16, 1, 32]
    with pytest.raises(InputError, match="arrays has no sites"):
        SiteDealer(POOL, model=wide)
    with pytest.raises(InputError, match="3 clients need one of requirements each"):
        sites(requirement=[0.5, 0.7])


def test_the_fingerprint_of_sites_knows_data_and_options():
    prints = [
        made.fingerprint
        for made in (
            sites(),
            sites(seed=1),
            sites(validation=0.3),
            sites(requirement=0.5),
            sites((20, 10, 40)),
            sites(model=lambda: nn.Sequential(three_columns())),
        )
    ]
    assert len(set(prints)) == len(prints)
    assert pickle.loads(pickle.dumps(sites())).fingerprint == prints[0]


def test_four_real_hospitals_learn_together():
    hearts = load_data(
        str(real_file("heart-disease-4-sites.csv")),
        label="num",
        site="site",
        label_above=0,
        categories=["cp", "restecg", "slope", "thal"],
    )
    made = SiteDealer(hearts, model=model_factory("logistic", hearts.input_shape, 2))
    history = train(made.deal(0), FedAvg(rounds=100, learning_rate=0.01))
    # Guessing the commoner class is right in 55 % of all patients.
    assert history.final.mean() > 0.7
    assert not history.diverged


def test_a_site_deals_no_more_points_than_asked_and_the_rest_are_further_points():
    made = sites(most=[12, 99, 10], validation=0.5)
    assert made.points.tolist() == [6, 5, 5]
    # The second site has 9 points, fewer than it may deal.
    assert made.count_further().tolist() == [8, 0, 30]
    for trial in (0, 1):
        further = made.further_indices(trial, 8)
        for (learn, judge), own in zip(made.indices(trial), further, strict=True):
            used = {*learn.tolist(), *judge.tolist()}
            assert len(used) == len(learn) + len(judge)
            assert not used & set(own.tolist())
    members = [np.flatnonzero(made.data.sites == n) for n in range(3)]
    assert set(made.further_indices(0, 30)[2].tolist()) <= set(members[2].tolist())


def test_a_limit_that_no_site_reaches_changes_no_deal():
    plain, limited = sites(), sites(most=10_000)
    for trial in (0, 3):
        for one, two in zip(plain.indices(trial), limited.indices(trial), strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert plain.fingerprint != sites(most=12).fingerprint


def test_limits_of_sites_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="3 sites need one number of samples each; got 2"):
        sites(most=[5, 6])
    with pytest.raises(InputError, match="the samples of"):
        sites(most=0)


def test_some_sites_of_a_data_set_are_kept_with_their_points():
    whole = sites().data
    name = whole.site_names[2]
    some = whole.take_sites([name, whole.site_names[0]])
    assert some.site_names == (whole.site_names[0], name)
    assert np.array_equal(
        some.inputs[some.sites == 1], whole.inputs[whole.sites == 2], equal_nan=True
    )
    assert len(some) == 60
    with pytest.raises(InputError, match="has no site 'Nowhere'; its sites are"):
        whole.take_sites(["Nowhere"])
