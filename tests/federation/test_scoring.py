"""Points to judge by: apart from all others, of the same distribution, and never in the way."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from federation.algorithms.test_release import Blasted
from federation.flower.test_engine import InThisProcess
from federation.made_up import table
from federation.small import blobs, constant_model, small_federation, two_layers
from federation.test_partition import EASY, HARD, dealer, dealt_points, points_of, sites
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.release import Release
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.defection.curves import DefectionAudit
from fedaccord.federation.partition import Dealer, Halved
from fedaccord.federation.runs.execute import make_run
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.scoring import Scored, count_further
from fedaccord.federation.training import loop
from fedaccord.federation.training.loop import train

QUICK = {"rounds": 6, "batch_size": 4, "evaluate_every": 2}


def spare() -> Dealer:
    """A dealer that leaves points of every kind."""
    return dealer(points=12)


def scored_points(federation) -> list[list[int]]:
    return [points_of(client.scored_inputs) for client in federation.clients]


def judged(federation: Federation, count: int = 60) -> Federation:
    """The federation with points to judge each client on."""
    return federation.replace(
        [
            Client(
                c.name,
                (c.inputs, c.labels),
                (c.validation_inputs, c.validation_labels),
                c.requirement,
                scored=blobs(count, 0.3 * i, seed=200 + i),
            )
            for i, c in enumerate(federation.clients)
        ]
    )


# Which points.


@given(
    st.lists(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), min_size=1, max_size=3),
    st.integers(2, 10),
    st.integers(1, 30),
    st.integers(0, 5),
)
def test_scored_points_are_nobodys_and_have_each_clients_mixture(mixtures, points, count, trial):
    made = dealer(mixtures=mixtures, points=points)
    if count > count_further(made).min():
        with pytest.raises(InputError, match="after the partition there are fewer"):
            Scored(made, count)
        return
    federation = Scored(made, count).deal(trial)
    used = {p for both in dealt_points(federation) for part in both for p in part}
    for mixture, own in zip(mixtures, scored_points(federation), strict=True):
        assert len(own) == len(set(own)) == count
        assert not used & set(own)
        assert set(own) <= {*HARD, *EASY}
        assert np.isin(own, HARD).sum() == pytest.approx(mixture * count, abs=0.5)


def test_everything_else_is_dealt_as_it_always_was():
    plain, scored = spare(), Scored(spare(), 5)
    assert scored.fingerprint == plain.fingerprint
    for trial in range(3):
        one, other = plain.deal(trial), scored.deal(trial)
        assert dealt_points(one) == dealt_points(other)
        assert one.fingerprint == other.fingerprint
        assert all(client.scored_labels is None for client in one.clients)


def test_trials_and_clients_are_judged_on_points_of_their_own_and_always_the_same():
    made = Scored(dealer(mixtures=[0.5, 0.5], points=10), 8)
    drawn = [tuple(own) for trial in range(4) for own in scored_points(made.deal(trial))]
    assert len(set(drawn)) == 8
    assert scored_points(made.deal(2)) == scored_points(made.deal(2))


def test_labels_go_with_scored_points():
    for client in Scored(spare(), 5).deal(1).clients:
        assert client.scored_labels.tolist() == [p % 2 for p in points_of(client.scored_inputs)]


@pytest.mark.parametrize("part", [0, 1])
def test_a_point_that_somebody_uses_is_caught(monkeypatch, part):
    draw = Dealer.further_indices

    def overlapping(self, trial, count):
        further = draw(self, trial, count)
        further[0][0] = self.indices(trial)[-1][part][0]
        return further

    monkeypatch.setattr(Dealer, "further_indices", overlapping)
    with pytest.raises(
        FedaccordError, match="100% hard would be judged on a sample that is also used"
    ):
        Scored(spare(), 5).deal(0)


def test_all_takes_as_many_as_every_client_can_have():
    made = dealer(mixtures=[1, 0.3], points=20)
    # 50 - 26 hard and 40 - 14 easy points are left. Of 24 in a mixture of 0.3, 7 are hard.
    assert count_further(made).tolist() == [24, 37]
    assert (round(0.3 * 37), 37 - round(0.3 * 37)) == (11, 26)
    assert Scored(made, "all").count == 24
    assert [len(own) for own in scored_points(Scored(made, "all").deal(0))] == [24, 24]
    with pytest.raises(InputError) as caught:
        Scored(made, 25)
    assert str(caught.value) == (
        "scored_on needs 25 further samples for each agent, and after the partition there are "
        'fewer (100% hard 24 and 70% easy 37): ask for 24 or fewer, or for "all"'
    )


def test_where_no_points_are_left_that_is_said():
    for source in (sites(), small_federation()):
        for count in (1, "all"):
            with pytest.raises(InputError, match="none are left: leave scored_on out"):
                Scored(source, count)
    some = judged(small_federation())
    lacking = some.replace([some.clients[0].replace(scored_labels=None), *some.clients[1:]])
    with pytest.raises(InputError, match=r"fewer \(client 0 0, .*\): leave scored_on out"):
        Scored(lacking, "all")


def test_points_that_are_given_are_checked_and_chosen_from():
    federation = judged(small_federation())
    first, *rest = federation.clients
    for name in ("inputs", "validation_inputs"):
        common = torch.cat([first.scored_inputs[:-1], getattr(rest[1], name)[3:4]])
        spoilt = federation.replace([first.replace(scored_inputs=common), *rest])
        with pytest.raises(
            InputError, match="1 of the 60 scored samples of client 0 are also used"
        ):
            Scored(spoilt, 10)
    ten = Scored(federation, 10).deal(0).clients[0]
    rows = {row.numpy().tobytes() for row in first.scored_inputs}
    chosen = {row.numpy().tobytes() for row in ten.scored_inputs}
    assert len(chosen) == 10 and chosen <= rows
    # Others are another set of points.
    other = federation.replace([first.replace(scored_inputs=first.scored_inputs + 1), *rest])
    assert Scored(other, 10).key != Scored(federation, 10).key != Scored(federation, 11).key
    assert other.fingerprint == federation.fingerprint


def test_a_source_that_changes_clients_keeps_their_scored_points():
    federation = judged(small_federation())
    halved = Scored(Halved(federation, "first"), 20).deal(0).clients[0]
    whole = Scored(federation, 20).deal(0).clients[0]
    assert len(halved.validation_labels) == 9
    assert torch.equal(halved.scored_inputs, whole.scored_inputs)
    dealt = Scored(Halved(spare(), "second"), 5)
    assert scored_points(dealt.deal(1)) == scored_points(Scored(spare(), 5).deal(1))


@pytest.mark.parametrize(
    ("scored", "sentence"),
    [
        (
            (np.zeros((3, 5)), [0, 1, 2]),
            r"trains on inputs of shape \(4,\) and is scored on \(5,\)",
        ),
        ((np.zeros((0, 4)), []), "the scored samples of one are "),
        ((np.zeros((3, 4)), [0, 1]), "the scored samples of one need one row of inputs per label"),
    ],
)
def test_scored_points_that_do_not_fit_are_refused(scored, sentence):
    with pytest.raises(InputError, match=sentence):
        Client("one", blobs(9, 0, 0), blobs(9, 0, 1), 0.5, scored=scored)


def test_scored_labels_the_model_does_not_know_are_refused():
    client = Client("one", blobs(9, 0, 0), blobs(9, 0, 1), 0.5, scored=(np.ones((1, 4)), [7]))
    with pytest.raises(InputError, match="one has the label 7"):
        Federation([client], two_layers)


# What comes of them.


def accuracy_by_hand(weights, client) -> float:
    model = two_layers()
    model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    best = model.eval()(client.scored_inputs).argmax(dim=1)
    return float((best == client.scored_labels).double().mean())


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_training_is_the_same_and_the_final_model_is_what_is_judged(form):
    federation = small_federation()
    algorithm = FedAvg(**QUICK, form=form)
    plain, scored = train(federation, algorithm), train(judged(federation), algorithm)
    assert plain.scored is plain.scored_satisfied is None
    assert "scored" not in plain.to_dict()
    for name in ("samples", "unique", "loss", "accuracy"):
        assert np.array_equal(getattr(plain, name), getattr(scored, name), equal_nan=True)
    assert all(np.array_equal(plain.weights[n], scored.weights[n]) for n in plain.weights)
    expected = [accuracy_by_hand(scored.weights, c) for c in judged(federation).clients]
    assert scored.scored.tolist() == expected == scored.to_dict()["scored"]
    assert scored.scored_satisfied.tolist() == [accuracy >= 0.8 for accuracy in expected]


def test_who_leaves_is_judged_by_the_model_it_leaves_with():
    algorithm = Release(
        batch_size=6, learning_rate=0.03, evaluate_every=2, evaluations=1, rounds=60
    )
    federation = judged(small_federation(requirement=0.7))
    history = train(federation, algorithm)
    assert len(history.checkpoints) >= 2
    for client, found in zip(federation.clients, history.scored, strict=True):
        weights = history.checkpoints.get(client.name, history.weights)
        assert found == accuracy_by_hand(weights, client)


def test_who_left_before_training_diverged_is_judged_and_nobody_else():
    clients = [
        Client(name, blobs(30, 0, i), blobs(18, 0, 9 + i), wants, scored=blobs(90, 0, 20 + i))
        for i, (name, wants) in enumerate([("content", 0.05), ("never", 1.0)])
    ]
    algorithm = Blasted(
        rounds=12, batch_size=8, evaluate_every=3, learning_rate=0.05, evaluations=1
    )
    history = train(Federation(clients, two_layers), algorithm)
    assert history.diverged
    assert history.scored[0] == accuracy_by_hand(history.checkpoints["content"], clients[0])
    assert math.isnan(history.scored[1])
    assert history.scored_satisfied.tolist() == [True, False]


def test_clients_that_learn_alone_are_judged_by_their_own_models():
    federation = judged(small_federation())
    history = train(federation, Solo(**QUICK))
    alone = [train(federation.only(i), Solo(**QUICK)).scored[0] for i in range(3)]
    assert history.scored.tolist() == alone


def test_under_flower_the_same_models_are_judged(tmp_path):
    scored = Scored(judged(small_federation(requirement=0.7)), 50)
    deal = functools.lru_cache(maxsize=1)(scored.deal)
    for n, algorithm in enumerate(
        (FedAvg(**QUICK), Release(batch_size=6, evaluate_every=2, evaluations=1, rounds=30))
    ):
        run = Run("any", algorithm, (15, 24, 40), base_seed=5, trial=4, scored=scored.key)
        (folder := tmp_path / str(n)).mkdir()
        found = InThisProcess(folder, actors=1).make(deal, run)
        assert found.scored.tolist() == make_run(deal, run).scored.tolist()


# What audits count.


class Invented:
    """A source of clients whose true accuracies are known: the model always says class 0.

    true: how large a part of each client's points are of class 0; fresh ones in every trial.
    """

    def __init__(self, true, validation, further):
        self.names = tuple(f"site {n}" for n in range(len(true)))
        self.requirements = np.full(len(true), 0.7)
        self.points = np.full(len(true), 4)
        self.fingerprint = f"invented {true} {validation}"
        self._true, self._sizes = true, (4, validation, further)

    def deal(self, trial):
        clients = []
        for n, (name, true) in enumerate(zip(self.names, self._true, strict=True)):
            random = np.random.default_rng([trial, n])
            sets = [
                (random.normal(size=(size, 4)), (random.random(size) >= true).astype(int))
                for size in self._sizes
            ]
            clients.append(Client(name, *sets[:2], 0.7, scored=sets[2]))
        return Federation(clients, functools.partial(constant_model, [5.0, 0.0, 0.0]))


STILL = FedAvg(rounds=1, batch_size=2, learning_rate=1e-9, optimizer="sgd")


def test_with_many_scored_points_what_is_counted_is_what_is_true():
    source = Invented((0.73, 0.67), validation=25, further=20_000)
    options = {"levels": [1, 0.5], "trials": 12}
    measured = defection_curves(source, STILL, **options).curve("FedAvg")
    scored = defection_curves(source, STILL, scored_on=20_000, **options).curve("FedAvg")
    # In truth the first always reaches its goal and the second never: sd 0.003 against 0.03.
    assert [share.p for share in scored.at(0.5).judged.clients.values()] == [1, 0]
    assert scored.at(0.5).judged.random.p == 0.5
    assert scored.all_judged.p == 0
    # On 25 points chance decides: some verdicts flip, and those of the validation set stay.
    flipped = [share.p for share in measured.at(0.5).judged.clients.values()]
    assert 0 < flipped[1] < flipped[0] < 1
    assert scored.at(0.5).at_end == measured.at(0.5).at_end == measured.at(0.5).judged
    assert scored.all_satisfied == measured.all_satisfied
    assert measured.all_scored is measured.at(0.5).scored is None


def test_points_of_another_distribution_would_be_seen():
    # The same with easier points to judge on: a planted fault, and the true share is missed.
    class Easier(Invented):
        def deal(self, trial):
            federation = super().deal(trial)
            return federation.replace(
                [c.replace(scored_labels=c.scored_labels * 0) for c in federation.clients]
            )

    source = Easier((0.67,), validation=25, further=2_000)
    audit = defection_curves(source, STILL, levels=[1], trials=3, scored_on=2_000)
    assert audit.curve("FedAvg").all_judged.p == 1


def test_the_document_leads_with_the_scored_share_and_comes_back(tmp_path):
    source = Invented((0.73, 0.67), validation=25, further=500)
    audit = defection_curves(source, STILL, levels=[1, 0.5], trials=8, scored_on=500)
    found = audit.to_dict()
    assert found["scored_on"] == audit.scored_on == 500
    curve, level = audit.curve("FedAvg"), found["algorithms"]["FedAvg"]["levels"][1]
    assert level["p"] == curve.at(0.5).scored.random.p != curve.at(0.5).at_end.random.p
    assert level["validation"]["p"] == curve.at(0.5).at_end.random.p
    kept = found["algorithms"]["FedAvg"]["validation"]["all_satisfied"]
    assert kept == curve.all_satisfied.to_dict()
    again = DefectionAudit.from_dict(found)
    assert again.to_dict() == found
    assert again.curve("FedAvg").at(0.5) == curve.at(0.5)
    plain = defection_curves(source, STILL, levels=[1, 0.5], trials=8).to_dict()
    assert "scored_on" not in plain
    assert "validation" not in plain["algorithms"]["FedAvg"]["levels"][1]


def test_a_level_stops_by_what_it_is_judged_on():
    source = Invented((0.73, 0.74), validation=25, further=5_000)
    options = {"levels": [0.5], "trials": 30, "width": 0.3}
    measured = defection_curves(source, STILL, **options).curve("FedAvg")
    scored = defection_curves(source, STILL, scored_on=5_000, **options).curve("FedAvg")
    # All satisfied: 14 trials make the interval narrower than 0.3.
    assert scored.at(0.5).judged.random.trials == 14 < measured.at(0.5).judged.random.trials


def test_stored_runs_are_used_where_they_tell_enough(tmp_path, monkeypatch):
    made = []
    whole = loop._train

    def counting(federation, *rest):
        made.append(federation)
        return whole(federation, *rest)

    monkeypatch.setattr(loop, "_train", counting)
    source = Invented((0.73, 0.67), validation=25, further=300)
    options = {"levels": [1, 0.5], "trials": 2, "protocol": "P2", "store": tmp_path / "runs.db"}

    def count(**asked):
        made.clear()
        return table(defection_curves(source, STILL, **options, **asked)), len(made)

    # Three runs find what to ask, which is half of four points; then three in each of two trials.
    plain, runs = count()
    assert runs == 3 + 6
    assert count() == (plain, 0)
    # Those that find what to ask are not judged, and need not be made again.
    scored, runs = count(scored_on=300)
    assert runs == 6
    assert count(scored_on=300) == (scored, 0)
    assert count() == (plain, 0)
    assert count(scored_on=200)[1] == 6
    assert count(scored_on=300) == (scored, 0)


def test_an_audit_that_was_stopped_goes_on_with_its_scores(tmp_path):
    source = Invented((0.73, 0.67), validation=25, further=300)
    options = {"levels": [1, 0.5], "scored_on": 300}
    defection_curves(source, STILL, trials=2, store=tmp_path / "runs.db", **options)
    on = defection_curves(source, STILL, trials=4, store=tmp_path / "runs.db", **options)
    assert on.reused == 6
    assert table(on) == table(defection_curves(source, STILL, trials=4, **options))


def test_worker_processes_judge_alike():
    options = {"levels": [1, 0.5], "trials": 2, "scored_on": 40}
    federation = judged(small_federation())
    here = defection_curves(federation, FedAvg(**QUICK), **options)
    there = defection_curves(federation, FedAvg(**QUICK), workers=2, **options)
    assert table(here) == table(there)
    assert here.curve("FedAvg").at(0.5).scored is not None


def test_an_engine_that_does_not_judge_is_found_out(monkeypatch):
    monkeypatch.setattr(loop, "score_history", lambda federation, history: history)
    with pytest.raises(
        FedaccordError, match="an engine did not judge the run of FedAvg in trial 0"
    ):
        defection_curves(judged(small_federation()), FedAvg(**QUICK), trials=1, scored_on=9)


def test_all_is_counted_before_it_is_reported():
    federation = judged(small_federation(), count=33)
    audit = defection_curves(federation, FedAvg(**QUICK), trials=1, levels=[1], scored_on="all")
    assert audit.scored_on == audit.options.scored_on == 33


@pytest.mark.parametrize("wrong", [0, -3, 1.5, "some", True])
def test_a_count_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match='scored_on must be a whole number of 1 or more, or "all"'):
        defection_curves(small_federation(), FedAvg(), scored_on=wrong)


# What is stored.

RUN = Run("fingerprint", STILL, (4,), base_seed=1, trial=0, scored="9")


def put(store, run=RUN, shift=0.0):
    made = train(Invented((0.73,), 25, 9).deal(0), run.algorithm, contributions=[4], seed=run.seed)
    made = replace(made, accuracy=made.accuracy - shift)
    return store.put(run, Outcome.of(made, "made up 1.0"), made)


def test_a_file_gets_the_table_of_scores_with_its_first_scored_run(tmp_path):
    def tables():
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        return {name for (name,) in store._connection.execute(query)}

    with RunStore(tmp_path / "runs.db") as store:
        put(store, replace(RUN, scored=""))
        assert tables() == {"runs", "history"}
        assert store.get(RUN) is None
        stored = put(store)
        assert tables() == {"runs", "history", "scores"}
        assert store.get(RUN) == stored
        assert len(store) == 1
        assert store.get(replace(RUN, scored="10")) is None
        assert store.get(replace(RUN, scored="")) == replace(stored, scored=(), scored_satisfied=())


def test_scores_that_were_changed_are_refused(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        put(store)
        store._connection.execute("UPDATE scores SET satisfied = '[true]', accuracies = '[1.0]'")
        with pytest.raises(InputError, match=r"the scores of run .* are not as they were written"):
            store.get(RUN)


def test_what_is_kept_of_a_run_is_all_of_one_model(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        old = put(store, replace(RUN, scored=""), shift=0.1)
        kept = put(store, replace(RUN, scored="8"), shift=0.1)
        assert kept.accuracies == old.accuracies
        # Made again with other versions of the packages, it came out otherwise.
        new = put(store)
        assert new.accuracies != old.accuracies
        assert store.get(RUN) == new
        assert len(store) == 1
        assert store.get(replace(RUN, scored="8")) is None
        assert [row[5] for row in store.rows(RUN)] == list(new.accuracies)


def test_a_linear_model_that_learns_is_judged_on_a_pool():
    made = dealer(mixtures=[0.5, 1], points=10, model=lambda: nn.Linear(101, 2), requirement=0.4)
    audit = defection_curves(made, FedAvg(**QUICK), levels=[1], trials=2, scored_on=6)
    shares = audit.curve("FedAvg").at(1).scored.clients
    assert all(share.trials == 2 for share in shares.values())
