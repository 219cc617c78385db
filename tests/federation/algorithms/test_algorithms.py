"""The algorithms' pieces: weights and counts over rounds worked by hand, settings checked."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from commands import write

from fedaccord import InputError
from fedaccord.federation.algorithms import ALGORITHMS
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed

GOALS = np.array([0.7, 0.7, 0.7, 0.7])


def test_fedavg_draws_the_same_of_everybody_whoever_is_satisfied() -> None:
    algorithm = FedAvg(batch_size=64, local_batches=3)
    state = algorithm.init(4)
    for accuracies in ([0.1, 0.9, 0.9, 0.9], [0.8, 0.2, 0.9, 0.9]):
        assert algorithm.allot(state).tolist() == [192] * 4
        state = algorithm.weights(state, np.array(accuracies), GOALS)


def test_mw_fed_over_three_rounds_worked_by_hand() -> None:
    algorithm = MwFed(batch_size=64, factor=3.0)
    state = algorithm.init(4)
    # Weights 1 1 1 1 of 256 samples.
    assert algorithm.allot(state).tolist() == [64, 64, 64, 64]
    state = algorithm.weights(state, np.array([0.5, 0.6, 0.8, 0.9]), GOALS)
    # Weights 3 3 1 1: 96 96 32 32.
    assert algorithm.allot(state).tolist() == [96, 96, 32, 32]
    state = algorithm.weights(state, np.array([0.6, 0.7, 0.69, 0.9]), GOALS)
    # Exactly the goal is enough. Weights 9 3 3 1: 144 48 48 16.
    assert algorithm.allot(state).tolist() == [144, 48, 48, 16]
    state = algorithm.weights(state, np.array([0.65, 0.8, 0.8, 0.8]), GOALS)
    # Weights 27 3 3 1 of 256: 203.29 22.59 22.59 7.53; remainders .29 .59 .59 .53, two left.
    assert algorithm.allot(state).tolist() == [203, 23, 23, 7]


def test_mw_fed_in_the_printed_form_over_two_rounds_worked_by_hand() -> None:
    algorithm = MwFed(batch_size=10, local_batches=2, factor=3.0, counts="printed")
    state = algorithm.init(3)
    assert algorithm.allot(state).tolist() == [20, 20, 20]
    state = algorithm.weights(state, np.array([0.5, 0.8, 0.8]), GOALS[:3])
    # Weights 3 1 1 of 60 samples: 36 12 12, in whole batches 3 1 1.
    assert algorithm.allot(state).tolist() == [30, 10, 10]
    state = algorithm.weights(state, np.array([0.5, 0.8, 0.8]), GOALS[:3])
    # Weights 9 1 1: 49.1 5.5 5.5.
    assert algorithm.allot(state).tolist() == [40, 0, 0]


def test_a_factor_of_one_is_fedavg() -> None:
    algorithm = MwFed(factor=1.0)
    state = algorithm.weights(algorithm.init(4), np.zeros(4), GOALS)
    assert algorithm.allot(state).tolist() == FedAvg().allot(np.zeros(4)).tolist()


def test_the_goal_test_on_all_points_counts_as_an_evaluation() -> None:
    assert MwFed(goal_points=None).evaluates(0)
    assert not MwFed(goal_points=50).evaluates(0)
    assert not FedAvg(evaluate_every=10).evaluates(8)
    assert FedAvg(evaluate_every=10).evaluates(9)
    assert FedAvg(evaluate_every=1000, rounds=3).evaluates(2)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_the_list_of_algorithms_says_what_the_classes_say(kind) -> None:
    found = resolve_name(ALGORITHMS[kind][1])
    assert (found.name, found.kind) == (ALGORITHMS[kind][0], kind)


@pytest.mark.parametrize(
    "kind", [resolve_name(place) for _, place in ALGORITHMS.values()], ids=ALGORITHMS
)
def test_settings_come_back_from_the_dictionary(kind) -> None:
    given = kind(rounds=7, learning_rate=0.5).to_dict()
    name = given.pop("kind")
    assert resolve_name(ALGORITHMS[name][1])(**given) == kind(rounds=7, learning_rate=0.5)


def derived(batches: int, base: type[FedAvg] = FedAvg) -> FedAvg:
    @dataclass(frozen=True, kw_only=True)
    class Derived(base):
        def allot(self, state):
            return np.full(len(state), batches * 2)

    # What is in the closure is data; the code below differs by a constant.
    if batches == 1:
        Derived.allot = lambda self, state: np.full(len(state), 1)
    return Derived()


def test_a_derived_algorithm_is_told_apart_from_its_base_and_from_its_other_versions() -> None:
    one, two = derived(1).to_dict(), derived(2).to_dict()
    assert len({FedAvg.kind, one["kind"]}) == 2
    assert one["kind"] == two["kind"]
    assert one["code"] != two["code"]
    assert derived(1).to_dict() == one
    assert derived(2).name == "Derived"
    assert "code" not in FedAvg().to_dict()


def test_constants_of_a_derived_algorithm_tell_its_versions_apart() -> None:
    def patient(rounds: int) -> FedAvg:
        class Patient(FedAvg):
            patience = rounds

        return Patient()

    assert patient(1).to_dict() == patient(1).to_dict()
    assert patient(1).to_dict() != patient(50).to_dict()


def test_defaults_lists_and_mixins_tell_versions_apart_too() -> None:
    def versions(number: int) -> list[FedAvg]:
        class Defaults(FedAvg):
            def evaluates(self, n: int, every: int = number) -> bool:
                return n % every == 0

        class Listed(FedAvg):
            table = [number, {number: "b"}, np.array([number])]  # noqa: RUF012

        class Mixin:
            def more(self) -> int:
                return number + 1 if number == 1 else number

            amount = number

        class Mixed(FedAvg, Mixin):
            pass

        return [Defaults(), Listed(), Mixed()]

    for one, same, other in zip(versions(1), versions(1), versions(2), strict=True):
        assert one.to_dict() == same.to_dict()
        assert one.to_dict() != other.to_dict()


def test_a_derived_algorithm_is_known_again_in_another_process(tmp_path: Path) -> None:
    script = write(
        tmp_path / "own.py",
        "from fedaccord.federation.algorithms.base import FedAvg\n"
        "class Own(FedAvg):\n"
        "    words = {'some', 'more', 'words'}\n"
        "    def evaluates(self, n):\n"
        "        return str(n) in {'one', 'two', 'three', 'four'}\n"
        "print(Own().to_dict()['code'])\n",
    )
    codes = {
        subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(codes) == 1


def test_settings_that_would_be_ignored_for_want_of_a_decorator_are_refused() -> None:
    class Forgotten(FedAvg):
        patience: int = 7

    with pytest.raises(InputError, match="Forgotten declares patience and is not a dataclass"):
        Forgotten()


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        (FedAvg, {"rounds": 0}, "rounds must be a whole number of 1 or more; got 0"),
        (FedAvg, {"rounds": 2.5}, "rounds must be a whole number"),
        (FedAvg, {"batch_size": True}, "batch_size must be a whole number"),
        (FedAvg, {"batch_size": 10**20}, "must be at most 10,000,000 samples a round"),
        (FedAvg, {"learning_rate": float("nan")}, "learning_rate must be a number above 0"),
        (FedAvg, {"learning_rate": "fast"}, "learning_rate must be a number above 0"),
        (FedAvg, {"optimizer": "lion"}, "optimizer must be one of adam, sgd; got 'lion'"),
        (FedAvg, {"form": "both"}, "form must be one of pooled, local"),
        (MwFed, {"factor": 0.5}, "factor must be a number of 1 or more; got 0.5"),
        (MwFed, {"counts": "some"}, "counts must be one of exact, printed"),
        (MwFed, {"goal_points": 0}, "goal_points must be a whole number"),
        (Solo, {"evaluate_every": -1}, "evaluate_every must be a whole number"),
    ],
)
def test_settings_that_no_training_could_follow_are_refused(kind, settings, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        kind(**settings)


def test_weights_and_allotment_need_neither_torch_nor_flower() -> None:
    code = (
        "import sys; from fedaccord.federation.algorithms import base, mw_fed;"
        "sys.exit(any(name in sys.modules for name in ('torch', 'flwr')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
