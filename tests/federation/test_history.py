"""Histories: who is satisfied and since when, and files that others read."""

import csv
import json

import numpy as np

from fedaccord.federation.history import COLUMNS, History

NAN = np.nan


def history(accuracy: list[list[float]], **changes) -> History:
    values = np.array(accuracy)
    options = {
        "clients": ("one", "two"),
        "requirements": np.array([0.7, 0.6]),
        "contributions": np.array([10, 20]),
        "algorithm": {"kind": "fedavg"},
        "seed": 3,
        "samples": np.full(values.shape, 4),
        "unique": np.full(values.shape, 4),
        "loss": np.full(values.shape, 0.5),
        "accuracy": values,
        "diverged": False,
        "seconds": 1.0,
    }
    return History(**{**options, **changes})


def test_satisfied_is_said_of_the_last_evaluation_and_passage_of_the_first() -> None:
    run = history([[0.8, 0.1], [NAN, NAN], [0.6, 0.6]])
    assert run.satisfied.tolist() == [False, True]
    assert run.first_passage.tolist() == [1, 3]


def test_passage_is_looked_for_where_all_algorithms_are_evaluated() -> None:
    run = history([[0.9, 0.1], [0.1, 0.1], [0.1, 0.9]], algorithm={"evaluate_every": 2})
    assert run.first_passage.tolist() == [0, 3]


def test_who_never_reaches_its_goal_has_no_passage() -> None:
    run = history([[0.6, 0.5], [0.69, 0.59]])
    assert run.first_passage.tolist() == [0, 0]
    assert not run.satisfied.any()


def test_a_run_that_diverged_satisfies_nobody() -> None:
    run = history([[0.9, 0.9], [NAN, NAN]], diverged=True)
    assert not run.satisfied.any()
    assert "diverged" in repr(run)


def test_a_history_reads_back_from_its_file(tmp_path) -> None:
    run = history([[NAN, NAN], [0.5, 0.6]])
    run.save(tmp_path / "run.csv")
    with open(tmp_path / "run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["accuracy"] for row in rows] == ["", "", "0.5", "0.6"]
    assert [row["client"] for row in rows] == ["one", "two"] * 2


def test_a_history_becomes_plain_values() -> None:
    data = history([[0.8, 0.1]]).to_dict()
    assert json.loads(json.dumps(data))["accuracy"] == [[0.8, 0.1]]


def test_runs_alone_are_joined_and_the_shorter_one_stays_unsatisfied() -> None:
    def one(name: str, accuracy: list[float], diverged: bool) -> History:
        column = np.array(accuracy)[:, None]
        return history(
            column.tolist(),
            clients=(name,),
            requirements=np.array([0.5]),
            contributions=np.array([9]),
            diverged=diverged,
        )

    joined = History.side_by_side([one("a", [0.9], True), one("b", [0.1, 0.9], False)])
    assert joined.clients == ("a", "b")
    assert joined.satisfied.tolist() == [False, True]
    assert joined.unique.tolist() == [[4, 4], [4, 4]]
    assert joined.samples.tolist() == [[4, 4], [0, 4]]
    assert joined.diverged


def test_no_spreadsheet_runs_a_clients_name(tmp_path) -> None:
    history([[0.8, 0.1]], clients=("=1+1", "@two")).save(tmp_path / "run.csv")
    rows = csv.DictReader((tmp_path / "run.csv").read_text().splitlines())
    assert [row["client"] for row in rows] == ["'=1+1", "'@two"]
