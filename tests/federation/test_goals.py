"""Clients with goals in other measures than accuracy, from the goal to the audit."""

import dataclasses

import numpy as np
import pytest
from federation.small import small_federation
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import recall_score, roc_auc_score
from torch import nn

from fedaccord.errors import InputError
from fedaccord.federation import (
    Client,
    ClientGoal,
    Dataset,
    FedAvg,
    Federation,
    GoalRule,
    MwFed,
    Release,
    SiteDealer,
    Solo,
    defection_curves,
    train,
)
from fedaccord.federation.data.dataset import Column
from fedaccord.federation.goals import find_group, find_standing
from fedaccord.federation.measures import find_outputs
from fedaccord.federation.partition import Halved, set_goals
from fedaccord.federation.scoring import Scored
from fedaccord.federation.training.loop import find_scores
from fedaccord.federation.training.reference import train_plainly

SETTINGS = {"rounds": 6, "batch_size": 8, "learning_rate": 0.05, "evaluate_every": 2}


def clouds(points, seed):
    """Two classes that overlap, in three dimensions; the first says who is old."""
    random = np.random.default_rng(seed)
    labels = np.arange(points) % 2
    inputs = random.normal(size=(points, 3)) + 0.7 * labels[:, None]
    return inputs.astype(np.float32), labels


def make_goals(old, scored_old=None):
    return [
        ClientGoal("auc", 0.6),
        ClientGoal("sensitivity", 0.4, "sensitivity, old", group=old, scored_group=scored_old),
        ClientGoal("log loss", 0.9),
    ]


def linear() -> nn.Module:
    return nn.Linear(3, 2)


def make_federation(goals=make_goals, *, scored=True, clients=3):
    members = []
    for i in range(clients):
        validation, further = clouds(40, 100 + i), clouds(60, 200 + i)
        masks = [points[0][:, 0] > 0 for points in (validation, further)]
        members.append(
            Client(
                f"clinic {i}",
                clouds(30, i),
                validation,
                scored=further if scored else None,
                goals=goals(*masks),
            )
        )
    return Federation(members, linear)


def final_model(federation, history):
    import torch

    model = federation.model()
    model.load_state_dict({n: torch.from_numpy(w) for n, w in history.weights.items()})
    return model


# Where a client stands.


@given(
    st.lists(
        st.tuples(st.sampled_from(["auc", "log loss", "sensitivity"]), st.floats(0.05, 1)),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_a_client_stands_at_its_requirement_if_and_only_if_all_goals_are_reached(
    wanted, data
) -> None:
    goals = [ClientGoal(measure, target) for measure, target in wanted]
    near = [st.floats(0, 1) | st.just(g.target) | st.just(np.nextafter(g.target, 0)) for g in goals]
    values = [data.draw(one) for one in near]
    reached = all(
        v <= g.target if g.measure == "log loss" else v >= g.target
        for g, v in zip(goals, values, strict=True)
    )
    standing = find_standing(goals, values)
    assert (standing >= goals[0].requirement) == reached
    assert 0 <= standing <= 1


def test_a_goal_that_the_points_do_not_show_counts_as_missed() -> None:
    assert find_standing([ClientGoal("auc", 0.1)], [np.nan]) == 0.0


# Training.


def test_the_values_of_a_run_are_those_of_its_final_model() -> None:
    federation = make_federation()
    history = train(federation, FedAvg(**SETTINGS), seed=3)
    model = final_model(federation, history)
    assert history.goals is not None
    values = history.goals.values.reshape(3, 3)
    scored = history.goals.scored.reshape(3, 3)
    for i, client in enumerate(federation.clients):
        for found, inputs, labels, group in (
            (values, client.validation_inputs, client.validation_labels, client.goals[1].group),
            (scored, client.scored_inputs, client.scored_labels, client.goals[1].scored_group),
        ):
            outputs, truth = find_outputs(find_scores(model, inputs).numpy()), labels.numpy()
            assert_allclose(found[i, 0], roc_auc_score(truth, outputs))
            assert_allclose(found[i, 1], recall_score(truth[group], outputs[group] >= 0.5))
        assert_allclose(history.final[i], find_standing(client.goals, values[i].tolist()))
        assert_allclose(history.scored[i], find_standing(client.goals, scored[i].tolist()))
        spare = [g.spare(v) >= 0 for g, v in zip(client.goals, values[i], strict=True)]
        assert history.satisfied[i] == all(spare)


@pytest.mark.parametrize(
    "algorithm",
    [
        FedAvg(**SETTINGS),
        MwFed(factor=2.0, **SETTINGS),
        MwFed(factor=2.0, goal_points=9, **SETTINGS),
        Release(**SETTINGS),
    ],
    ids=["FedAvg", "MW-FED", "MW-FED on some points", "RELEASE"],
)
def test_the_loop_does_what_the_plain_loop_does(algorithm) -> None:
    federation = make_federation()
    fast, plain = train(federation, algorithm, seed=2), train_plainly(federation, algorithm, seed=2)
    assert_array_equal(fast.samples, plain.samples)
    assert_allclose(fast.accuracy, plain.accuracy, atol=1e-6)


def test_clients_that_train_alone_have_goals_too() -> None:
    history = train(make_federation(), Solo(**SETTINGS), seed=2)
    assert history.goals.names == ("AUC", "sensitivity, old", "log loss") * 3
    assert history.measure == "standing"


def test_an_accuracy_as_a_goal_is_a_requirement() -> None:
    by_goal = [
        Client(c.name, *_points(c), goals=[ClientGoal("accuracy", 0.8)])
        for c in small_federation().clients
    ]
    plain, goals = small_federation(), small_federation().replace(by_goal)
    assert goals.fingerprint == plain.fingerprint
    assert goals.clients[0].goals == ()


def _points(client):
    return (
        (client.inputs, client.labels),
        (client.validation_inputs, client.validation_labels),
    )


def test_goals_are_in_the_fingerprint() -> None:
    def prints(*goals):
        return make_federation(lambda *_: goals, scored=False).fingerprint

    def other(labels, outputs):
        return float(outputs.mean())

    mask = np.arange(40) < 30
    every = [
        prints(ClientGoal("auc", 0.6)),
        prints(ClientGoal("auc", 0.7)),
        prints(ClientGoal("auc", 0.6, group=mask)),
        prints(ClientGoal("auc", 0.6, group=~mask)),
        prints(ClientGoal("balanced accuracy", 0.6)),
        prints(ClientGoal("sensitivity", 0.6)),
        prints(ClientGoal("sensitivity", 0.6, threshold=0.4)),
        prints(ClientGoal(other, 0.6)),
        prints(ClientGoal(lambda labels, outputs: 1.0, 0.6)),
    ]
    assert len(set(every)) == len(every)


def test_an_audit_judges_goals_on_scored_points_and_keeps_them(tmp_path) -> None:
    source = make_federation()
    options = {"trials": 2, "levels": [1, 0.5], "scored_on": 50, "store": tmp_path / "r.sqlite"}
    found = defection_curves(source, {"FedAvg": FedAvg(**SETTINGS)}, **options)
    again = defection_curves(source, {"FedAvg": FedAvg(**SETTINGS)}, **options)
    assert found.measures == ("AUC", "sensitivity, old", "log loss")
    assert again.reused > 0 and again.curves == found.curves
    assert type(found).from_dict(found.to_dict()).measures == found.measures


# Groups and parts of points.


def test_parts_of_points_take_their_groups_along() -> None:
    source = make_federation()
    client = source.clients[0]
    rows = np.array([5, 1, 7])
    assert_array_equal(client.take_validation(rows).goals[1].group, client.goals[1].group[rows])
    halves = [Halved(source, half).deal(0).clients[0] for half in ("first", "second")]
    assert sum(int(half.goals[1].group.sum()) for half in halves) == client.goals[1].group.sum()
    for half in halves:
        assert_array_equal(half.goals[1].group, half.validation_inputs[:, 0].numpy() > 0)
    scored = Scored(source, 20).deal(0).clients[0]
    assert_array_equal(scored.goals[1].scored_group, scored.scored_inputs[:, 0].numpy() > 0)


def make_table(points=240):
    random = np.random.default_rng(5)
    ages = random.integers(40, 95, size=points).astype(float)
    ages[::17] = np.nan
    sexes = random.integers(2, size=points).astype(float)
    labels = (random.random(points) < 0.5).astype(int)
    return Dataset(
        np.stack([ages, sexes], axis=1),
        labels,
        sites=np.arange(points) % 3,
        columns=[Column("age", gaps=True), Column("sex", ("F", "M"))],
    )


def test_groups_are_found_by_their_columns() -> None:
    data = make_table()
    ages, sexes = data.inputs.T
    for rule, expected in (
        ("age >= 75", ages >= 75),
        ("age<75", ages < 75),
        ("sex == F", sexes == 0),
        ("sex != F", sexes == 1),
        ("age != 75", (ages != 75) & ~np.isnan(ages)),
    ):
        assert_array_equal(find_group(rule, data), expected, err_msg=rule)


def test_sites_split_groups_in_proportion_and_plain_sites_as_before() -> None:
    data = make_table()
    rule = GoalRule("sensitivity", 0.5, group="age >= 75")
    dealer = SiteDealer(data, model=lambda: nn.Linear(4, 2), goals=[rule], validation=0.25)
    for trial in range(5):
        for client, (train_places, places) in zip(
            dealer.deal(trial).clients, dealer.indices(trial), strict=True
        ):
            mask = find_group("age >= 75", data)
            assert_array_equal(client.goals[0].group, mask[places])
            old = mask & (data.labels == 1)
            share = old[places].sum() / (old[places].sum() + old[train_places].sum())
            assert abs(share - 0.25) < 0.1
    plain = SiteDealer(data, model=lambda: nn.Linear(4, 2), validation=0.25)
    by_auc = SiteDealer(
        data, model=lambda: nn.Linear(4, 2), goals=[GoalRule("auc", 0.6)], validation=0.25
    )
    for one, other in zip(plain.indices(3), by_auc.indices(3), strict=True):
        assert_array_equal(one[1], other[1])
    assert len({plain.fingerprint, by_auc.fingerprint, dealer.fingerprint}) == 3


def test_other_targets_of_one_share_are_another_source() -> None:
    dealer = SiteDealer(make_table(), model=lambda: nn.Linear(4, 2), goals=[GoalRule("auc", 0.6)])
    changed = set_goals(dealer, np.array([0.7, 0.8, 0.9]))
    assert [client.goals[0].target for client in changed.deal(0).clients] == [0.7, 0.8, 0.9]
    assert changed.requirements.tolist() == [0.7, 0.8, 0.9]
    assert dealer.deal(0).clients[0].goals[0].target == 0.6
    two = [GoalRule("auc", 0.6), GoalRule("accuracy", 0.6)]
    several = SiteDealer(make_table(), model=lambda: nn.Linear(4, 2), goals=two)
    with pytest.raises(InputError, match="one number does not replace"):
        set_goals(several, np.array([0.7, 0.8, 0.9]))


# What is refused.


def one(*goals):
    return make_federation(lambda *_: list(goals), scored=False)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ClientGoal("aucc", 0.5), "did you mean AUC"),
        (lambda: ClientGoal("auc", 75), "such as 0.75 for 75 %"),
        (lambda: ClientGoal("auc", 0), "above 0 and at most 1"),
        (lambda: ClientGoal("log loss", 0), "above 0"),
        (lambda: one(ClientGoal("auc", 0.5), ClientGoal("mae", 1)), "cannot be both"),
        (lambda: one(ClientGoal("mae", 1)), "need one"),
        (lambda: one(ClientGoal("c-index", 0.6)), "one row of inputs per label"),
        (lambda: ClientGoal("auc", 0.5, threshold=0.3), "only sensitivity and specificity"),
        (lambda: ClientGoal("sensitivity", 0.5, threshold=1.3), "threshold of the goal"),
        (lambda: one(), "must be a list of ClientGoal"),
        (lambda: one(ClientGoal("auc", 0.5), ClientGoal("AUC", 0.6, "b")), "0.5 and 0.6"),
        (
            lambda: one(ClientGoal("auc", 0.5, "x"), ClientGoal("accuracy", 0.6, "x")),
            'are called "x"',
        ),
        (lambda: one(ClientGoal("auc", 0.5, group=np.arange(40) % 2 == 0)), "no positive sample"),
        (lambda: one(ClientGoal("auc", 0.5, group=np.arange(40) % 2 == 1)), "no negative sample"),
        (lambda: one(ClientGoal("accuracy", 0.5, group=np.zeros(40, bool))), "has no point"),
        (lambda: one(ClientGoal("auc", 0.5, group=np.ones(39, bool))), "39 entries for the 40"),
        (
            lambda: make_federation(lambda old, _: [ClientGoal("accuracy", 0.5, group=old)]),
            "none of the scored samples",
        ),
        (lambda: find_group("age 75", make_table()), "needs a column, a comparison"),
        (lambda: find_group("size > 3", make_table()), "its columns are age, sex"),
        (lambda: find_group("sex > F", make_table()), "use == or !="),
        (lambda: find_group("age > old", make_table()), "give a number"),
    ],
)
def test_what_no_goal_can_be_is_refused(make, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_an_auc_of_three_classes_is_refused() -> None:
    federation = small_federation()
    clients = [
        Client(c.name, *_points(c), goals=[ClientGoal("auc", 0.5)]) for c in federation.clients
    ]
    with pytest.raises(InputError, match="needs two classes"):
        federation.replace(clients)


def test_a_requirement_and_goals_are_refused() -> None:
    with pytest.raises(InputError, match="both a requirement and goals"):
        Client("a", clouds(9, 1), clouds(9, 2), 0.5, goals=[ClientGoal("auc", 0.5)])


def test_goals_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ClientGoal("auc", 0.5).target = 0.6


# Amounts and times.


def make_numbers(kind, *, clients=3, goals=None):
    """Clients whose labels are amounts, or times of which some are censored."""
    random = np.random.default_rng(11)

    def points(count):
        inputs = random.normal(size=(count, 3)).astype(np.float32)
        amounts = inputs @ np.array([1.0, -0.5, 0.2])
        if kind == "amounts":
            return inputs, amounts + 0.3 * random.normal(size=count)
        times = random.exponential(np.exp(-amounts))
        return inputs, np.stack([np.minimum(times, 2.0) + 1e-6, times < 2.0], axis=1)

    wanted = (
        goals
        or {
            "amounts": [ClientGoal("mae", 0.5), ClientGoal("r2", 0.6)],
            "times": [ClientGoal("c-index", 0.65)],
        }[kind]
    )
    members = [Client(f"{i}", points(40), points(80), goals=wanted) for i in range(clients)]
    return Federation(members, lambda: nn.Linear(3, 1))


@pytest.mark.parametrize("kind", ["amounts", "times"])
@pytest.mark.parametrize("form", ["pooled", "local"])
def test_numbers_are_learned_as_the_plain_loop_learns_them(kind, form) -> None:
    federation = make_numbers(kind)
    algorithm = MwFed(factor=2.0, form=form, **{**SETTINGS, "rounds": 40})
    fast, plain = train(federation, algorithm, seed=2), train_plainly(federation, algorithm, seed=2)
    assert_array_equal(fast.samples, plain.samples)
    assert_allclose(fast.accuracy, plain.accuracy, atol=1e-5)
    assert_allclose(fast.loss, plain.loss, rtol=1e-4, atol=1e-6)
    assert fast.satisfied.all()


def test_the_partial_likelihood_is_that_of_its_definition() -> None:
    import torch

    from fedaccord.federation.training.steps import find_losses

    random = np.random.default_rng(3)
    risks, times = random.normal(size=12), random.integers(1, 6, size=12).astype(float)
    events = random.integers(2, size=12).astype(float)
    found = find_losses(
        torch.tensor(risks)[:, None], torch.tensor(np.stack([times, events], axis=1))
    )
    for i in range(12):
        at_risk = sum(np.exp(risks[j]) for j in range(12) if times[j] >= times[i])
        expected = -np.log(np.exp(risks[i]) / at_risk) if events[i] else 0.0
        assert_allclose(float(found[i]), expected, atol=1e-12)


def test_times_of_one_client_are_not_held_against_those_of_another(monkeypatch) -> None:
    """Planted: risk sets of all clients together, which the plain loop does not have."""
    from fedaccord.federation.training import loop

    federation = make_numbers("times")
    monkeypatch.setattr(loop, "compares_samples", lambda labels: False)
    fast = train(federation, FedAvg(**SETTINGS), seed=2)
    plain = train_plainly(federation, FedAvg(**SETTINGS), seed=2)
    assert np.abs(fast.loss - plain.loss).max() > 1e-3
