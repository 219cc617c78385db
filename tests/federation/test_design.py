"""What an audit is asked is checked before any work, and cuts are what they should be."""

import math

import pytest
from federation.made_up import MadeUp, by_points, made_up

from fedaccord import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import FedAvg
from fedaccord.federation.defection import defection_curves
from fedaccord.federation.design import cut


@pytest.mark.parametrize(
    ("level", "left"),
    [(1, 50), (0.75, 38), (0.5, 25), (0.25, 13), (0.05, 3), (0.29, 15), (1e-9, 1)],
)
def test_a_cut_rounds_half_up_and_leaves_at_least_one_point(level, left):
    # 37.5, 12.5, 2.5 and 14.5 points; 0.29 * 50 is less than 14.5 in floats.
    assert cut((7, 50, 9), 1, level) == (7, left, 9)
    assert cut((7, 0, 9), 1, level) == (7, 0, 9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": [0]}, "a level must be a number above 0 and at most 1.*got 0"),
        ({"levels": [1, 1.5]}, r"at most 1.*got 1\.5"),
        ({"levels": [-0.5]}, "a level must be"),
        ({"levels": [math.nan]}, "a level must be.*got nan"),
        ({"levels": ["half"]}, "a level must be.*got 'half'"),
        ({"levels": [True]}, "a level must be"),
        ({"levels": [0.5, 1, 0.5]}, "level 0.5 comes twice"),
        ({"levels": []}, "no level"),
        ({"trials": 0}, "trials must be a whole number from 1"),
        ({"trials": 2.5}, "trials must be a whole number"),
        ({"trials": 10**7}, "trials must be"),
        ({"protocol": "P3"}, "protocol must be one of P1, P2; got 'P3'"),
        ({"defectors": "all"}, "defectors must be one of each, random"),
        ({"engine": "cloud"}, "engine must be one of local"),
        ({"width": 0}, "width must be between 0 and 1"),
        ({"width": math.nan}, "width must be between 0 and 1"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"algorithms": []}, "no algorithm"),
        ({"algorithms": [FedAvg(), FedAvg(rounds=3)]}, "two algorithms are called FedAvg; .*dict"),
        ({"algorithms": ["FedAvg"]}, "an algorithm is needed.*got 'FedAvg'"),
        ({"plan": Allocation([1, 2, 3])}, 'a plan is for the protocol "P2"'),
        ({"protocol": "P2", "plan": Allocation([1, 2])}, "for 2 clients; there are 3"),
        ({"protocol": "P2", "plan": Allocation([11, 2, 3])}, "asks north for 11 points.*has 10"),
        ({"protocol": "P2", "plan": Allocation([0, 0, 0])}, "asks nobody for anything"),
        (
            {"protocol": "P2", "plan": Allocation([1, 2, 3], ["north", "sout", "west"])},
            "sout is not a member; did you mean south",
        ),
    ],
)
def test_bad_input_is_refused_before_any_work(monkeypatch, tmp_path, options, words):
    engine = made_up(monkeypatch, by_points)
    path = tmp_path / "runs.db"
    algorithms = options.pop("algorithms", [FedAvg()])
    with pytest.raises(InputError, match=words):
        defection_curves(MadeUp(), algorithms, store=path, **options)
    assert engine.made == []
    assert not path.exists()


@pytest.mark.parametrize(
    ("workers", "words"),
    [(0, "workers must be"), (10_000, "10000 workers are more than the cores here")],
)
def test_workers_that_cannot_be_are_refused_before_any_work(tmp_path, workers, words):
    path = tmp_path / "runs.db"
    with pytest.raises(InputError, match=words):
        defection_curves(MadeUp(), [FedAvg()], store=path, workers=workers)
    assert not path.exists()
