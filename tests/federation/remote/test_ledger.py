"""The server's book: quotas and weights by name, plans read as quotas, rows of the history."""

import json
import math

import numpy as np
import pytest
from federation.flower.runs import Watched, heard, nodes_of, requirements_of, run, started
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from fedaccord import Allocation
from fedaccord import federation as algorithms
from fedaccord.cli import app
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.release import Release
from fedaccord.federation.flower import FedAvg, MwFed, PlannedFedAvg, client_app
from fedaccord.federation.remote.ledger import Ledger
from fedaccord.federation.remote.members import (
    name_members,
    round_quotas,
    select_members,
    sort_names,
)
from fedaccord.federation.remote.protocol import ALL_POINTS

NAMES = ("north", "south", "west")


def book(algorithm=None, **options):
    algorithm = algorithm or algorithms.MwFed(batch_size=4, rounds=9)
    points = dict(zip(NAMES, (10, 20, 40), strict=True))
    return Ledger(algorithm, points, **{"requirements": 0.8, **options})


# The book.


def test_who_left_before_training_diverged_has_what_it_left_with():
    ledger = book(Release(rounds=9, evaluate_every=1, evaluations=1))
    ledger.note_training({"north": 4, "south": 4}, {})
    assert ledger.note_evaluation({"north": 0.1, "south": 0.9, "west": 0.2}) == ["south"]
    ledger.note_training({"north": 4}, {})
    ledger.record_divergence()
    history = ledger.history()
    assert history.diverged and history.satisfied.tolist() == [False, True, False]
    assert_array_equal(history.final, [np.nan, 0.9, np.nan])


def test_who_is_not_there_draws_nothing_and_nobody_draws_it_instead():
    ledger = book()
    assert ledger.allot_to(NAMES) == {"north": 4, "south": 4, "west": 4}
    assert ledger.allot_to({"north", "west"}) == {"north": 4, "west": 4}
    ledger.note_training({"north": 4, "west": 4}, {})
    ledger.note_evaluation({"north": 0.5, "west": 0.9})
    assert ledger.weights == {"north": pytest.approx(math.log(2)), "south": 0, "west": 0}
    assert ledger.allot_to(NAMES) == {"north": 6, "south": 3, "west": 3}


def test_weights_go_by_the_goal_test_where_there_is_one():
    ledger = book(algorithms.MwFed(batch_size=4, goal_points=5))
    ledger.note_training({}, {})
    high = dict.fromkeys(NAMES, 0.9)
    ledger.note_evaluation(high, {"north": 0.2, "south": 0.9, "west": 0.9})
    assert ledger.weights["north"] > 0
    assert ledger.weights["south"] == 0
    assert ledger.goals_in_a_row == 1


def test_goals_are_counted_at_evaluations_alone():
    ledger = book(algorithms.FedAvg())
    high, low = dict.fromkeys(NAMES, 0.8), {**dict.fromkeys(NAMES, 0.9), "west": 0.79}
    found = []
    for accuracies in (high, None, high, low, high, {"north": 0.9, "south": 0.9}, None, high):
        ledger.note_training({}, {})
        ledger.note_evaluation(accuracies)
        found.append(ledger.goals_in_a_row)
    assert found == [1, 1, 2, 0, 1, 0, 0, 1]


def test_rows_count_what_was_used():
    ledger = book(quotas={"north": 3, "south": 0, "west": 40})
    ledger.note_training({"north": 2}, {"north": 1.5})
    ledger.note_evaluation({"north": 0.9, "south": 0.1})
    ledger.note_training({"north": 2, "west": 4}, {})
    assert [ledger.train_order(name, 1, 3).drawn for name in NAMES] == [4, 0, 4]
    history = ledger.history()
    assert history.samples.tolist() == [[2, 0, 0], [2, 0, 4]]
    assert history.unique.tolist() == [[2, 0, 0], [3, 0, 4]]
    assert history.contributions.tolist() == [3, 0, 40]
    assert_array_equal(history.loss, [[1.5, np.nan, np.nan], [np.nan] * 3])
    assert_array_equal(history.accuracy, [[0.9, 0.1, np.nan], [np.nan] * 3])
    # A history is what was then.
    ledger.note_evaluation({"north": 0.9})
    assert np.isnan(history.accuracy[1]).all()
    assert ledger.history().accuracy[1, 0] == 0.9


def test_there_is_no_history_without_a_round():
    with pytest.raises(FedaccordError, match="no round has been trained yet"):
        book().history()


def test_an_order_says_what_the_draws_go_by():
    ledger = book(quotas={"north": 3, "south": 7, "west": 40}, seed=11)
    ledger.note_training({"south": 5}, {})
    order = ledger.train_order("south", 6, 2, report=("train-loss", "label-counts"))
    assert order.to_config() == {
        "server-round": 2,
        "client": "south",
        "seed": 11,
        "num-samples": 6,
        "quota": 7,
        "num-points": 20,
        "drawn": 5,
        "form": "pooled",
        "batch-size": 4,
        "optimizer": "adam",
        "learning-rate": 0.002,
        "report": "train-loss,label-counts",
    }
    assert book().train_order("south", 6, 2).quota == ALL_POINTS


def test_points_are_learnt_once():
    ledger = book()
    ledger.learn_points("south", 20)
    with pytest.raises(InputError, match="south had 20 samples and came back with 19"):
        ledger.learn_points("south", 19)
    assert ledger.train_order("south", 1, 1).num_points == 20


def test_allotments_that_are_none_are_refused():
    class Odd(algorithms.Algorithm):
        given = (1.5, 2, 3)

        def allot(self, state):
            return self.given

    with pytest.raises(InputError, match="allot of Odd must return 3 whole numbers"):
        book(Odd()).allot_to(NAMES)
    Odd.given = (1, 2, 10_000_001)
    with pytest.raises(InputError, match="gives a client 10,000,001 samples in one round"):
        book(Odd()).allot_to(NAMES)
    Odd.given = (1, 2, 10_000_000)
    assert book(Odd()).allot_to(NAMES)["west"] == 10_000_000


# Plans as quotas.


def test_a_plan_is_rounded_up_to_whole_points():
    plan = Allocation([299.2, 0.0, 600.0000000001], ["south", "north", "west"])
    assert round_quotas(plan, NAMES) == {"north": 0, "south": 300, "west": 600}


@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=3).filter(any))
def test_a_plan_of_whole_points_is_not_rounded(values):
    noisy = [value * (1 + 1e-13) for value in values]
    found = round_quotas(Allocation(noisy, NAMES), NAMES)
    assert list(found.values()) == values


@pytest.mark.parametrize(
    ("requirements", "plan", "words"),
    [
        (0.8, {"north": 0.0, "south": 0}, "asks no client for any sample"),
        (0.8, {"north": 1e30, "south": 1}, r"asks north for 1e\+30 samples, which no client has"),
        (0.8, Allocation([1, 2]), "does not name the agents of its contributions"),
        (0.8, Allocation([1, 2], ["a", "a"]), "a is named twice"),
        ({"north": 0.8}, {"north": 1, "east": 2}, "east is not an agent of the game"),
        ({"north": 0.8, "south": 0.8}, {"north": 1, "souht": 1}, "did you mean south"),
        ({"north": 0.8, "south": 0.8}, {"north": 1}, "no contribution of south"),
        ({"north": 0.8, "south": 0.8}, Allocation([1]), "1 contributions for 2 clients"),
        ({"north": 0.8}, {"north": -1}, "negative"),
        ({"north": 0.8}, {"north": float("nan")}, "not a number"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused_at_once(requirements, plan, words):
    with pytest.raises(InputError, match=words):
        PlannedFedAvg(plan, requirements=requirements)


def test_the_members_are_those_that_are_named():
    assert name_members({"b": 0.5, "a": 0.5}, Allocation([1, 2], ["a", "b"])) == ["b", "a"]
    assert name_members(0.5, Allocation([1, 2], ["b", "a"])) == ["b", "a"]
    assert name_members(0.5, None) is None


def test_a_plan_may_come_in_any_form(tmp_path):
    federation = started()
    quotas = {"client 2": 7, "client 0": 5, "client 1": 0}
    allocation = Allocation(list(quotas.values()), list(quotas))
    files = [tmp_path / "plan.csv", tmp_path / "plan.json"]
    for file in files:
        allocation.save(file)
    for plan in (allocation, quotas, *files, str(files[0])):
        nodes = nodes_of(federation)
        strategy = PlannedFedAvg(plan, requirements=requirements_of(federation), batch_size=4)
        run(strategy, federation, nodes, rounds=4)
        assert strategy.history.contributions.tolist() == [5, 0, 7]
        assert strategy.history.unique.tolist() == [[4, 0, 4], [5, 0, 7], [5, 0, 7], [5, 0, 7]]
        assert not list(heard(nodes[1:2], "train"))
        assert np.isfinite(strategy.history.accuracy[:, 1]).all()


def test_a_plan_that_solve_has_saved_is_kept(tmp_path):
    # The three hospitals of the README, of which the stable plan is 300, 1200 and 600.
    game = {
        "model": "linear",
        "agents": ["client 0", "client 1", "client 2"],
        "requirements": [14.4, 14.4, 9.3],
        "benefits": [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]],
    }
    (tmp_path / "game.json").write_text(json.dumps(game))
    file = tmp_path / "plan.csv"
    arguments = ["solve", str(tmp_path / "game.json"), "--concept", "stable", "--save", str(file)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    strategy = PlannedFedAvg(file, requirements=0.999, batch_size=8)
    run(strategy, started(), rounds=5)
    assert strategy.history.contributions.tolist() == [3, 12, 6]
    assert strategy.history.unique[-1].tolist() == [3, 12, 6]


@pytest.mark.parametrize("stop_at_goal", [1, None])
def test_a_planned_run_ends_when_everybody_has_its_goal(stop_at_goal):
    plan = {"client 0": 5, "client 1": 5, "client 2": 5}
    strategy = PlannedFedAvg(plan, requirements=0.01, stop_at_goal=stop_at_goal)
    run(strategy, started(), rounds=3)
    assert len(strategy.history.samples) == (1 if stop_at_goal else 3)
    assert PlannedFedAvg(plan, requirements=0.01).stop_at_goal == 1


@pytest.mark.parametrize("kind", [FedAvg, MwFed])
@pytest.mark.parametrize("form", ["local", "pooled"])
def test_no_client_ever_looks_at_more_points_than_its_quota(kind, form):
    federation = started((20, 20, 20), requirement=0.999)
    watched = [Watched(c.inputs, c.labels) for c in federation.clients]
    nodes = nodes_of(federation)
    for node, points, client in zip(nodes, watched, federation.clients, strict=True):
        held_out = Watched(client.validation_inputs, client.validation_labels)
        node.app = client_app(
            federation.model,
            lambda context, sets=(points, held_out): sets,
            name=lambda context, client=client: client.name,
        )
    plan = {"client 0": 3, "client 1": 7, "client 2": 20}
    strategy = kind(requirements=0.999, plan=plan, batch_size=5, form=form, seed=4)
    ids = iter(range(1_000, 2_000))

    def reconnect(n, arrays):
        # Somebody else comes back under a new id after each round, and one is away.
        nodes[n % 3].node_id = next(ids)
        nodes[(n + 1) % 3].online = True
        nodes[n % 3].online = n % 4 != 1

    run(strategy, federation, nodes, rounds=12, evaluate_fn=reconnect)
    seen = [set(points.seen) for points in watched]
    assert [len(points) for points in seen] == [3, 7, 20]
    assert strategy.history.unique[-1].tolist() == [3, 7, 20]
    # Another run with the same seed looks at the same points.
    again = kind(requirements=0.999, plan=plan, batch_size=5, form=form, seed=4)
    run(again, federation, nodes, rounds=3)
    assert [set(points.seen) for points in watched] == seen


# Order and choice.


def test_names_are_sorted_as_people_do():
    names = ["client 10", "client 9", "b2", "b02", "b", "a1b", "ab1", "x²", "", "7"]
    expected = ["", "7", "a1b", "ab1", "b", "b02", "b2", "client 9", "client 10", "x²"]
    assert sort_names(names) == sort_names(names[::-1]) == expected


@given(
    st.integers(0, 2**63 - 1),
    st.sets(st.integers(0, 9), min_size=1),
    st.integers(0, 10),
    st.integers(1, 50),
)
def test_as_many_are_selected_as_are_wanted_and_there(seed, here, count, n):
    names = [f"c{i}" for i in range(10)]
    there = {f"c{i}" for i in here}
    chosen = select_members(names, there, count, seed=seed, place=("train", n))
    assert len(chosen) == min(count, len(there))
    assert set(chosen) <= there
    assert chosen == sorted(chosen)
    # Who is away does not change the order of the others.
    assert set(chosen) <= set(
        select_members(names, there, count + 1, seed=seed, place=("train", n))
    )


def test_everybody_is_selected_now_and_then():
    chosen = [select_members("abcd", "abcd", 1, seed=0, place=("train", n))[0] for n in range(100)]
    assert set(chosen) == set("abcd")
    assert chosen != [
        select_members("abcd", "abcd", 1, seed=0, place=("x", n))[0] for n in range(100)
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (" north", "begins or ends with a space"),
        ("", "is empty"),
        ("  ", "is empty"),
        ("no\nrth", "cannot be printed"),
        ("n" * 201, "is longer than 200 characters"),
        (7, "is no text"),
    ],
)
def test_a_name_that_no_client_can_have_is_refused_at_once(name, words):
    with pytest.raises(InputError, match=f"no client can be called .*: it .*{words}"):
        name_members({"south": 0.9, name: 0.9}, None)


def test_a_name_in_a_plan_that_no_client_can_have_is_refused_at_once():
    with pytest.raises(InputError, match="no client can be called 'north ': it begins or ends"):
        name_members(0.9, Allocation([3, 4], ["south", "north "]))


def test_names_of_thousands_of_digits_have_an_order_too():
    names = ["9" * 5_000, "1" + "0" * 5_000, "8" * 5_000, "7"]
    assert sort_names(names) == [names[3], names[2], names[0], names[1]]


def test_a_plan_that_is_next_to_nothing_is_not_blamed_on_the_clients():
    with pytest.raises(InputError, match="the plan asks no client for more than 1e-12 samples"):
        round_quotas(Allocation([1e-12, 0.0], ["south", "north"]), ["south", "north"])
