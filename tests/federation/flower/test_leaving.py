"""Under Flower: members that leave with their model, pledges, and what comes late or is lost."""

import numpy as np
import pytest
from federation.flower.runs import (
    after,
    config_of,
    goes,
    heard,
    nodes_of,
    requirements_of,
    run,
    started,
    tampering,
    texts,
)
from flwr.app import Array, ArrayRecord
from numpy.testing import assert_array_equal

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation import flower
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.algorithms.hold_back import HoldBack
from fedaccord.federation.flower import AlgorithmStrategy, Pledged, Release


class Leaves(Algorithm):
    """Client 1 leaves at the second test."""

    def init(self, clients):
        return 0

    def allot(self, state):
        return np.full(3, 4)

    def weights(self, state, accuracies, requirements):
        return state + 1

    def left(self, state):
        return np.array([False, state >= 2, False])


def rounds_asked(nodes, kind, node_id):
    return [config_of(m)["server-round"] for n, m in heard(nodes, kind) if n == node_id]


def leaving(**options):
    algorithm = Leaves(form="local", evaluate_every=1, learning_rate=0.05)
    given = {"node_deadline": 0.3, "min_available_nodes": 3, **options}
    return AlgorithmStrategy(algorithm=algorithm, requirements=0.8, **given)


# Who leaves.


def test_who_has_left_is_asked_for_nothing_more():
    federation = started()
    nodes, strategy = nodes_of(federation), leaving()
    run(strategy, federation, nodes, rounds=5)
    for kind in ("train", "evaluate"):
        assert rounds_asked(nodes, kind, 101) == [1, 2]
        assert rounds_asked(nodes, kind, 102) == [1, 2, 3, 4, 5]
    assert list(strategy.checkpoints) == ["client 1"]
    history = strategy.history
    assert history.samples[:, 1].tolist() == [4, 4, 0, 0, 0]
    assert set(history.accuracy[1:, 1]) == {history.final[1]}
    assert strategy.remarks == []


@pytest.mark.parametrize("least", [1, 3])
def test_who_has_left_may_go_and_is_not_waited_for(least):
    federation = started()
    nodes = nodes_of(federation)
    strategy = leaving(min_available_nodes=3, min_train_nodes=least, min_evaluate_nodes=least)
    run(strategy, federation, nodes, rounds=5, evaluate_fn=after(3, goes(nodes[1])))
    assert strategy.stopped is None
    assert len(strategy.history.samples) == 5
    assert rounds_asked(nodes, "train", 100) == [1, 2, 3, 4, 5]


def test_who_has_left_does_not_stand_in_for_who_is_missing():
    federation = started()
    nodes, strategy = nodes_of(federation), leaving()
    run(strategy, federation, nodes, rounds=5, evaluate_fn=after(3, goes(nodes[0])))
    words = "1 of 2 clients are there; not connected: client 0, after 0.3 seconds"
    assert strategy.stopped == words
    assert len(strategy.history.samples) == 3


def test_a_client_leaves_with_what_it_was_measured_on():
    class Scaled(AlgorithmStrategy):
        """Shrinks the model a little after each round."""

        def aggregate_train(self, server_round, replies):
            arrays, metrics = super().aggregate_train(server_round, replies)
            made.append({name: array.numpy() * 0.9 for name, array in arrays.items()})
            return ArrayRecord({name: Array(array) for name, array in made[-1].items()}), metrics

    made, federation = [], started()
    strategy = Scaled(algorithm=Leaves(form="local", evaluate_every=1), requirements=0.8)
    result = run(strategy, federation, rounds=4)
    for name, value in strategy.checkpoints["client 1"].items():
        assert_array_equal(value, made[1][name])
        assert not np.array_equal(value, result.arrays[name].numpy())


def test_a_run_that_is_started_again_forgets_who_left():
    federation, strategy = started(), leaving()
    run(strategy, federation, rounds=4)
    run(strategy, federation, rounds=1)
    assert strategy.checkpoints == {}
    assert strategy.history.checkpoints == {}
    assert strategy.history.samples.tolist() == [[4, 4, 4]]


def test_release_is_a_strategy_with_its_settings():
    federation = started(requirement=0.6)
    nodes = nodes_of(federation)
    strategy = Release(
        requirements=requirements_of(federation), evaluations=2, batch_size=6, learning_rate=0.05
    )
    result = run(strategy, federation, nodes, rounds=60)
    assert strategy.history.satisfied.all()
    assert sorted(strategy.checkpoints) == list(federation.names)
    assert strategy.stopped == "RELEASE needs no more samples from any client"
    rounds = len(strategy.history.samples)
    assert rounds < 60
    assert all(config_of(m)["server-round"] <= rounds for _, m in heard(nodes, "train"))
    # Whoever left last has the model that is given back.
    last = list(strategy.checkpoints)[-1]
    assert_array_equal(strategy.checkpoints[last]["0.weight"], result.arrays["0.weight"].numpy())
    with pytest.raises(FedaccordError, match="not one weight per client"):
        _ = strategy.weights


def test_release_needs_evaluations():
    with pytest.raises(InputError, match="RELEASE needs the clients' accuracies"):
        Release(requirements=0.8, fraction_evaluate=0.0)


def test_holding_back_is_refused_in_the_local_form():
    with pytest.raises(InputError, match="set form to"):
        AlgorithmStrategy(requirements=0.8, algorithm=HoldBack(form="local"))


# Pledges.

PLAN = {"client 0": 10, "client 1": 0, "client 2": 30}


def test_pledged_is_a_strategy_that_trains_to_a_plan_and_ends():
    federation = started()
    strategy = Pledged(requirements=0.9, plan=PLAN, passes=2, batch_size=4)
    run(strategy, federation, rounds=50)
    history = strategy.history
    assert history.samples.tolist() == [[2, 0, 6]] * 10
    assert history.unique[-1].tolist() == [10, 0, 30]
    assert history.algorithm["commitment"] == (10, 0, 30)
    assert np.isfinite(history.final).all()
    assert strategy.stopped == "PLEDGED needs no more samples from any client"


def test_without_a_plan_all_points_are_pledged():
    strategy = Pledged(requirements=0.9, passes=1, batch_size=10, local_batches=2)
    run(strategy, started((20, 40)), rounds=50)
    # 40 samples a round by 1 : 2.
    assert strategy.history.samples.sum(axis=0).tolist() == [20, 40]
    assert len(strategy.history.samples) == 2


def test_a_round_that_ends_it_is_evaluated_though_none_was_due():
    federation = started()
    nodes = nodes_of(federation)
    strategy = Pledged(requirements=0.9, plan=PLAN, passes=1, batch_size=4, evaluate_every=40)
    run(strategy, federation, nodes, rounds=50)
    assert len(strategy.history.samples) == 5
    assert rounds_asked(nodes, "evaluate", 100) == [5]
    assert np.isnan(strategy.history.accuracy[:-1]).all()
    assert np.isfinite(strategy.history.final).all()


def test_it_ends_where_nobody_is_ever_evaluated():
    strategy = Pledged(requirements=0.9, plan=PLAN, passes=1, batch_size=4, fraction_evaluate=0.0)
    run(strategy, started(), rounds=50)
    assert len(strategy.history.samples) == 5
    assert strategy.stopped is not None


def test_pledges_that_are_used_up_in_the_last_round_end_nothing():
    strategy = Pledged(requirements=0.9, plan=PLAN, passes=1, batch_size=4)
    run(strategy, started(), rounds=5)
    assert len(strategy.history.samples) == 5
    assert strategy.stopped is None


def test_samples_that_are_lost_are_not_taken_off_the_pledge():
    federation = started()
    nodes = nodes_of(federation)
    # In the second round nobody's reply can be used, in the fourth client 0's cannot.
    for node, rounds in ((nodes[0], (2, 4)), (nodes[2], (2,))):
        tampering(node, "train", lambda content: content.clear(), rounds=rounds)
    strategy = Pledged(requirements=0.9, plan=PLAN, passes=1, batch_size=4, ends="each")
    run(strategy, federation, nodes, rounds=50)
    history = strategy.history
    assert history.samples.tolist() == [
        [2, 0, 6],
        [0, 0, 0],
        [2, 0, 6],
        [0, 0, 6],
        [2, 0, 6],
        [2, 0, 6],
        [2, 0, 0],
    ]
    assert len(texts(strategy)) == 3


def test_a_member_that_comes_late_brings_what_the_plan_says_of_it():
    federation = started()
    nodes = nodes_of(federation)
    nodes[0].online = False

    def comes():
        nodes[0].online = True

    strategy = Pledged(
        requirements=requirements_of(federation),
        plan=PLAN,
        passes=1,
        batch_size=4,
        ends="each",
        node_deadline=0.2,
        min_available_nodes=2,
    )
    run(strategy, federation, nodes, rounds=50, evaluate_fn=after(2, comes))
    samples = strategy.history.samples
    assert samples[:, 0].tolist() == [0, 0, 2, 2, 2, 2, 2]
    assert samples.sum(axis=0).tolist() == [10, 0, 30]


def test_who_comes_late_without_a_plan_has_pledged_nothing():
    federation = started((20, 20, 20))
    nodes = nodes_of(federation)
    nodes[0].online = False

    def comes():
        nodes[0].online = True

    strategy = Pledged(
        requirements=requirements_of(federation),
        passes=1,
        batch_size=4,
        node_deadline=0.2,
        min_available_nodes=2,
    )
    run(strategy, federation, nodes, rounds=50, evaluate_fn=after(2, comes))
    assert strategy.history.samples.tolist() == [[0, 4, 4]] * 5
    # It is evaluated with the others from then on.
    assert np.isfinite(strategy.history.final).all()


def test_the_goal_ends_it_too():
    strategy = Pledged(requirements=0.01, passes=9, batch_size=4, stop_after=2)
    run(strategy, started(), rounds=80)
    assert (strategy.history.accuracy >= 0.01).all()
    assert len(strategy.history.samples) == 2


def test_strategies_run_their_own_algorithm_only():
    with pytest.raises(InputError, match="this strategy runs RELEASE; got HOLD-BACK"):
        Release(requirements=0.8, algorithm=HoldBack())
    assert {"Pledged", "Release"} <= set(flower.__all__)
