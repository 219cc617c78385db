"""What an audit is asked is checked before any work, and cuts are what they should be."""

import math

import pytest
from federation.made_up import MadeUp, by_points, made_up

from fedaccord import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.earned import Earned
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.audit import Design, defection_curves
from fedaccord.federation.defection.curves import cut


@pytest.mark.parametrize(
    ("level", "left"),
    [(1, 50), (0.75, 38), (0.5, 25), (0.25, 13), (0.05, 3), (0.29, 15), (1e-9, 1)],
)
def test_a_cut_rounds_half_up_and_leaves_at_least_one_point(level, left):
    # 37.5, 12.5, 2.5 and 14.5 points; 0.29 * 50 is less than 14.5 in floats.
    assert cut((7, 50, 9), 1, level) == (7, left, 9)
    assert cut((7, 0, 9), 1, level) == (7, 0, 9)


# Written down when algorithms could not yet end early or be committed to anything.
OLD_KEYS = [
    (FedAvg(), "5fd52c55bb4aaaac491962ce723062abcc2e1f8fbd598fa4ad2f594dc98f22ba"),
    (
        FedAvg(rounds=40, batch_size=8, form="local"),
        "02f2380cda241a2328bdd97fc5288f3be205eadd5d301d200ea306978a2a1413",
    ),
    (MwFed(), "771d679e8ef26d4263188022553251d6c2ba2eb34426423cfc81906cb87cd247"),
    (
        MwFed(factor=4.0, goal_points=100, local_batches=3),
        "92bf8885832edddb3003718889d04b7b19251236876f5fa0c9872e404c13a0c6",
    ),
]


@pytest.mark.parametrize(("algorithm", "key"), OLD_KEYS)
def test_runs_of_older_result_files_are_found_again(algorithm, key):
    options = AuditOptions(levels=[0.5], trials=9, protocol="P1", defectors="each", seed=3)
    design = Design(MadeUp(), {"one": algorithm}, options)
    contributions = design.defect(design.points, (2,), 0.5)
    assert contributions == (10, 20, 20)
    assert design.run("one", contributions, 7, full=design.points).key == key


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": [0]}, "a level must be a number above 0 and at most 1.*got 0"),
        ({"levels": [1, 1.5]}, r"at most 1.*got 1\.5"),
        ({"levels": [-0.5]}, "a level must be"),
        ({"levels": [math.nan]}, "a level must be.*got nan"),
        ({"levels": ["half"]}, "a level must be.*got 'half'"),
        ({"levels": [True]}, "a level must be"),
        ({"levels": [0.5, 1, 0.5]}, "level 0.5 appears twice"),
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
        ({"algorithms": "FedAvg"}, "an algorithm is needed.*got 'FedAvg'"),
        ({"algorithms": FedAvg}, r"an algorithm is needed, such as FedAvg\(\); got FedAvg"),
        ({"algorithms": None}, "an algorithm is needed.*got None"),
        ({"plan": [20, 30]}, r"a plan must be an Allocation.*got \[20, 30\]"),
        ({"plan": {"FedAvg": [20, 30]}}, r"a plan must be an Allocation.*got \[20, 30\]"),
        ({"plan": Allocation([1, 2])}, "the plan is for 2 clients; there are 3"),
        (
            {"plan": {"FedAvg": Allocation([1, 2, 99])}},
            "the plan of FedAvg asks west for 99 samples, but west has 40",
        ),
        (
            {"plan": {"MW-FED": Allocation([1, 2, 3])}},
            "a plan for MW-FED, which is not audited; audited: FedAvg",
        ),
        ({"protocol": "P2", "plan": Allocation([1, 2])}, "for 2 clients; there are 3"),
        ({"protocol": "P2", "plan": Allocation([11, 2, 3])}, "asks north for 11 samples.*has 10"),
        ({"protocol": "P2", "plan": Allocation([0, 0, 0])}, "asks no agent for samples"),
        (
            {"protocol": "P2", "plan": Allocation([1, 2, 3], ["north", "sout", "west"])},
            "sout is not a member; did you mean south",
        ),
        (
            {"plan": {"FedAvg": Allocation([1, 2, 3], ["north", "south", "east"])}},
            "the plan of FedAvg does not fit: .*west",
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
    [(0, "workers must be"), (10_000, "10000 workers requested, but this machine has")],
)
def test_workers_that_cannot_be_are_refused_before_any_work(tmp_path, workers, words):
    path = tmp_path / "runs.db"
    with pytest.raises(InputError, match=words):
        defection_curves(MadeUp(), [FedAvg()], store=path, workers=workers)
    assert not path.exists()


# Reserves.


@pytest.mark.parametrize("named", [True, False])
def test_the_reserves_of_a_plan_are_those_of_the_algorithm(tmp_path, named):
    plan = Allocation([0, 10, 9.5], ["west", "north", "south"], reserve=[5, 0, 2.5])
    plan.save(tmp_path / "plan.csv")
    given = {"EARNED": plan} if named else str(tmp_path / "plan.csv")
    design = Design(MadeUp(), [Earned(), FedAvg()], AuditOptions(plan=given))
    assert design.algorithms["EARNED"] == Earned(reserve=(0, 3, 5))
    assert design.algorithms["FedAvg"] == FedAvg()
    run = design.run("EARNED", (10, 2, 0), 1, full=(10, 10, 0))
    assert run.algorithm == Earned(reserve=(0, 3, 5), commitment=(10, 10, 0))


def test_a_reserve_that_a_client_does_not_have_is_refused():
    plan = Allocation([10, 18, 0], reserve=[0, 3, 20])
    with pytest.raises(InputError, match=r"may ask .* for 21 samples, .* and it has 20; lower its"):
        Design(MadeUp(), [Earned()], AuditOptions(plan=plan))
