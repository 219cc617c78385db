"""The audit counts what it should, stops when it may, goes on where it was, and catches faults."""

import dataclasses
import itertools
import math
import sqlite3

import numpy as np
import pytest
from federation.made_up import NAMES, MadeUp, MadeUpEngine, by_points, made_up, table

from fedaccord import Allocation
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.audit import PLANNING_TRIALS, Design, defection_curves
from fedaccord.federation.defection.differences import compare_trials
from fedaccord.federation.defection.intervals import wilson
from fedaccord.federation.defection.sequences import sequence
from fedaccord.federation.runs.execute import RunError
from fedaccord.federation.runs.parts import Part
from fedaccord.federation.runs.store import RunStore
from fedaccord.federation.runs.trials import PLANNING


def test_the_table_is_what_the_runs_say(monkeypatch):
    made_up(monkeypatch, by_points)
    audit = defection_curves(MadeUp(), FedAvg(), levels=(1, 0.5, 0.25), trials=6)
    found = audit.to_dict()
    assert found["protocol"] == "P1"
    curve = found["algorithms"]["FedAvg"]
    # South is satisfied in trials 0, 2 and 4.
    assert curve["all_satisfied"] == wilson(3, 6).to_dict()
    assert curve["total_samples"] == 5 + 10 + 20
    assert curve["total_draws"] == 3 * 2 * 3
    full, half, quarter = curve["levels"]
    assert [one["level"] for one in curve["levels"]] == [1, 0.5, 0.25]
    for one, (north, south, west) in ((full, (6, 3, 6)), (half, (6, 0, 6)), (quarter, (6, 0, 0))):
        assert one["agents"]["north"] == wilson(north, 6).to_dict()
        assert one["agents"]["south"] == wilson(south, 6).to_dict()
        assert one["agents"]["west"] == wilson(west, 6).to_dict()
        assert one["p"] == pytest.approx((north + south + west) / 18)
        assert one["trials"] == 6
        assert one["low"] <= one["p"] <= one["high"]
    # The others of south always are; those of north and west when south is.
    assert quarter["others"]["p"] == pytest.approx((6 + 3 + 3) / 18)


def test_the_document_has_the_keys_that_were_promised(monkeypatch):
    made_up(monkeypatch, by_points)
    found = defection_curves(MadeUp(), [FedAvg(), MwFed()], trials=2).to_dict()
    assert {"protocol", "algorithms", "seconds"} <= found.keys()
    assert list(found["algorithms"]) == ["FedAvg", "MW-FED"]
    share = {"p", "low", "high", "trials"}
    for curve in found["algorithms"].values():
        assert {"all_satisfied", "total_samples", "levels"} <= curve.keys()
        assert curve["all_satisfied"].keys() == share
        for level in curve["levels"]:
            assert {"level", "agents"} | share <= level.keys()
            assert tuple(level["agents"]) == NAMES
            assert all(agent.keys() == share for agent in level["agents"].values())
            assert level["first_passage"].keys() == share | {
                "agents",
                "contributors",
                "others",
                "others_of_contributors",
                "runs",
            }


def test_first_passage_counts_who_was_satisfied_and_is_no_longer(monkeypatch):
    made_up(monkeypatch, lambda run, client: [0.9, 0.9 if client else 0.1])
    algorithm = FedAvg(evaluate_every=1)
    curve = defection_curves(MadeUp(), algorithm, levels=[0.5], trials=4).curve("FedAvg")
    assert curve.at(0.5).at_end.clients["north"].p == 0
    assert curve.at(0.5).by_then.clients["north"].p == 1
    assert curve.at(0.5).at_end.random.p == pytest.approx(2 / 3)
    assert curve.at(0.5).by_then.random.p == 1
    assert (curve.all_satisfied.p, curve.all_by_then.p) == (0, 1)


def test_a_run_that_diverged_satisfies_nobody_and_is_counted(monkeypatch):
    def rule(run, client):
        return [0.9, math.nan if run.trial == 1 and run.contributions[0] < 10 else 0.9]

    made_up(monkeypatch, rule)
    curve = defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=4).curve("FedAvg")
    assert curve.diverged == 1
    assert curve.at(0.5).at_end.clients["north"].p == 0.75
    assert curve.at(0.5).by_then.clients["north"].p == 0.75
    assert curve.all_satisfied.p == 1


def test_full_contribution_is_one_run_for_all_would_be_defectors(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=3)
    assert len(engine.made) == 3 * (1 + 3)
    assert len({run.key for run in engine.made}) == len(engine.made)


def test_full_contribution_is_run_even_if_nobody_asks_for_level_1(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    curve = defection_curves(MadeUp(), FedAvg(), levels=[0.5], trials=3).curve("FedAvg")
    assert [level.level for level in curve.levels] == [0.5]
    assert curve.all_satisfied.trials == 3
    assert len(engine.made) == 3 * (1 + 3)


def test_work_goes_trial_by_trial(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    defection_curves(MadeUp(), [FedAvg(), MwFed()], trials=3)
    assert [run.trial for run in engine.made] == sorted(run.trial for run in engine.made)
    first = [run.algorithm.name for run in engine.made if run.trial == 0]
    assert set(first) == {"FedAvg", "MW-FED"}


def test_all_runs_of_a_trial_share_a_seed(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    defection_curves(MadeUp(), [FedAvg(), MwFed()], trials=3)
    seeds = {trial: {run.seed for run in engine.made if run.trial == trial} for trial in range(3)}
    assert all(len(of_trial) == 1 for of_trial in seeds.values())
    assert len(set.union(*seeds.values())) == 3


def by_chance(run, client):
    """Outcomes that go together within a trial, somewhat."""
    random = np.random.default_rng([run.trial, sum(run.contributions), client])
    luck = np.random.default_rng(run.trial).random() < 0.5
    return [0.1, 0.9 if luck or random.random() < 0.6 else 0.1]


@pytest.mark.parametrize("defectors", ["each", "random"])
@pytest.mark.parametrize("width", [None, 0.4, 0.7])
def test_the_order_in_which_runs_end_does_not_matter(monkeypatch, defectors, width):
    tables = []
    for ahead, seed in ((1, 0), (2, 1), (1000, 2)):
        made_up(monkeypatch, by_chance, ahead, seed)
        audit = defection_curves(
            MadeUp(), [FedAvg(), MwFed()], trials=15, defectors=defectors, width=width
        )
        tables.append(table(audit))
    assert all(other == tables[0] for other in tables[1:])


def test_a_cell_stops_at_the_first_trial_whose_interval_is_narrow_enough(monkeypatch):
    engine = made_up(monkeypatch, lambda run, client: [0.9, 0.9])
    audit = defection_curves(MadeUp(), FedAvg(), levels=[0.5], trials=100, width=0.3)
    found = audit.curve("FedAvg").at(0.5).at_end.random
    assert found == sequence(np.ones((14, 3)), 0.3)
    assert found.width <= 0.3 < sequence(np.ones((13, 3)), 0.3).width
    assert audit.curve("FedAvg").all_satisfied.trials == 14
    assert len(engine.made) == 14 * (1 + 3)


@pytest.mark.parametrize("loser", ["others", "all"])
def test_a_cell_waits_for_each_of_its_shares(monkeypatch, loser):
    """The defector always reaches its goal; the others, or all in full, in every second trial."""

    def rule(run, client):
        cut = run.contributions[client] < MadeUp.points[client]
        spared = cut if loser == "others" else sum(run.contributions) < 70 or client
        return [0.1, 0.9 if spared or run.trial % 2 else 0.1]

    made_up(monkeypatch, rule)
    audit = defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=25, width=0.3)
    ended = {p.level: p.at_end.random.trials for p in audit.curve("FedAvg").levels}
    assert ended == ({1: 25, 0.5: 25} if loser == "others" else {1: 25, 0.5: 14})


def test_random_defectors_are_looked_at_when_all_have_defected_equally_often(monkeypatch):
    made_up(monkeypatch, lambda run, client: [0.9, 0.9])
    options = {"levels": [0.5], "trials": 100, "width": 0.3, "defectors": "random"}
    audit = defection_curves(MadeUp(), FedAvg(), **options)
    assert audit.curve("FedAvg").at(0.5).at_end.random.trials == 15
    assert {s.trials for s in audit.curve("FedAvg").at(0.5).at_end.clients.values()} == {5}


@pytest.mark.parametrize(
    ("options", "plans", "block"),
    [
        ({}, [(10, 20, 40)], 1),
        ({"defectors": "random"}, [(10, 20, 40)], 3),
        ({"defectors": "random"}, [(10, 20, 40), (0, 20, 40)], 6),
        ({"defectors": "random"}, [(0, 0, 0)], 3),
        ({"group": 2}, [(10, 20, 40)], 1),
        ({"group": 2, "defectors": "random"}, [(10, 20, 40)], 3),
    ],
)
def test_a_block_has_everyone_defect_equally_often(options, plans, block):
    design = Design(MadeUp(), FedAvg(), AuditOptions(**options))
    assert design.count_block(plans) == block
    for full in plans:
        groups = [g for trial in range(block) for g in design.choose_groups(trial, full)]
        giving = [g for g in groups if all(full[i] for i in g)]
        assert len({giving.count(g) for g in giving}) <= 1 or 0 in full


def test_progress_expects_as_many_runs_as_the_shares_so_far_call_for(monkeypatch):
    made_up(monkeypatch, lambda run, client: [0.9, 0.9])
    told = []
    options = {"levels": [0.5], "trials": 100, "progress": told.append}
    defection_curves(MadeUp(), FedAvg(), width=0.3, **options)
    # One run at full contribution and one per client in each trial.
    assert (told[0].total, told[0].estimated) == (400, False)
    later = [now for now in told if now.done >= 8]
    assert {now.total for now in later} == {14 * 4}
    assert all(now.estimated for now in later)
    told.clear()
    defection_curves(MadeUp(), FedAvg(), **options)
    assert {(now.total, now.estimated) for now in told} == {(400, False)}


def test_a_part_cannot_stop_early(monkeypatch, tmp_path):
    engine = made_up(monkeypatch, by_points)
    with (
        RunStore(tmp_path / "runs.db", part=Part(1, 2)) as store,
        pytest.raises(InputError, match="leave --part or --width out"),
    ):
        defection_curves(MadeUp(), FedAvg(), trials=9, width=0.3, store=store)
    assert not engine.made


@pytest.mark.parametrize("width", [None, 0.3])
def test_differences_are_paired_by_trial(monkeypatch, width):
    """Under MW-FED nobody that cuts is satisfied; under FedAvg all are in every second trial."""

    def rule(run, client):
        cut = run.contributions[client] < MadeUp.points[client]
        lucky = run.trial % 2 if run.algorithm.name == "FedAvg" else not cut
        return [0.1, 0.9 if lucky else 0.1]

    made_up(monkeypatch, rule)
    algorithms = [FedAvg(), MwFed()]
    audit = defection_curves(MadeUp(), algorithms, levels=[1, 0.5], trials=20, width=width)
    first, second = (curve.at(0.5) for curve in audit.curves)
    luck = [[1] * 3 if trial % 2 else [0] * 3 for trial in range(20)]
    never = [[0] * 3] * second.judged.random.trials
    assert first.from_others == {}
    assert first.from_full == compare_trials(luck, luck, width)
    assert second.from_others == {"FedAvg": compare_trials(never, luck, width)}
    assert second.from_others["FedAvg"].value == pytest.approx(-0.5, abs=0.04)
    assert second.from_others["FedAvg"].trials == (20 if width is None else 14)
    assert second.from_full.value == -1
    assert audit.curves[1].at(1).from_full is None


def test_a_cell_that_is_not_sure_goes_on_while_others_stop(monkeypatch):
    def rule(run, client):
        return [0.1, 0.9 if sum(run.contributions) == 70 or run.trial % 2 else 0.1]

    engine = made_up(monkeypatch, rule)
    audit = defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=25, width=0.3)
    curve = audit.curve("FedAvg")
    assert curve.at(1).at_end.random.trials == 14
    assert curve.at(0.5).at_end.random.trials == 25
    assert max(run.trial for run in engine.made if sum(run.contributions) == 70) == 13


def test_trials_that_were_finished_beyond_the_stop_are_kept_and_not_counted(monkeypatch, tmp_path):
    engine = made_up(monkeypatch, lambda run, client: [0.9, 0.9], ahead=1000)
    options = {"levels": [0.5], "trials": 18, "width": 0.3, "store": tmp_path / "runs.db"}
    audit = defection_curves(MadeUp(), FedAvg(), **options)
    assert audit.curve("FedAvg").at(0.5).at_end.random.trials == 14
    with RunStore(tmp_path / "runs.db") as store:
        assert len(store) == len(engine.made) == 18 * 4
    again = defection_curves(MadeUp(), FedAvg(), **options)
    assert table(again) == table(audit)
    assert len(engine.made) == 18 * 4


def test_random_defectors_are_balanced_and_cost_one_run_a_trial(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    options = {"levels": [0.5], "trials": 12, "defectors": "random", "seed": 4}
    curve = defection_curves(MadeUp(), FedAvg(), **options).curve("FedAvg")
    assert len(engine.made) == 12 * 2
    level = curve.at(0.5).at_end
    assert [share.trials for share in level.clients.values()] == [4, 4, 4]
    assert [share.p for share in level.clients.values()] == [1, 0, 1]
    assert (level.random.low, level.random.high) == (wilson(8, 12).low, wilson(8, 12).high)
    cuts = [np.array(run.contributions) < MadeUp.points for run in engine.made[1::2]]
    for block in range(4):
        assert sum(cuts[3 * block : 3 * block + 3]).tolist() == [1, 1, 1]
    orders = {tuple(int(c.argmax()) for c in cuts[3 * b : 3 * b + 3]) for b in range(4)}
    assert len(orders) > 1


def test_prescribed_contributions_are_matched_by_name_and_cut(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    plan = Allocation([31.5, 4, 8], ["west", "north", "south"])
    options = {"levels": [1, 0.5], "trials": 2, "protocol": "P2", "plan": plan}
    audit = defection_curves(MadeUp(), FedAvg(), **options)
    made = {run.contributions for run in engine.made}
    assert made == {(4, 8, 32), (2, 8, 32), (4, 4, 32), (4, 8, 16)}
    assert audit.curve("FedAvg").contributions == (4, 8, 32)
    assert audit.to_dict()["protocol"] == "P2"
    # What is counted is what was used at the prescribed contributions.
    assert audit.curve("FedAvg").total_samples == 2 + 4 + 16


@pytest.mark.parametrize("defectors", ["each", "random"])
def test_who_gives_nothing_cannot_defect_and_is_no_contributor(monkeypatch, defectors):
    # North, of whom nothing is asked, always is satisfied, a contributor never when it cuts.
    def rule(run, client):
        return [0.1, 0.9 if client == 0 or run.contributions[client] == (0, 8, 16)[client] else 0]

    engine = made_up(monkeypatch, rule)
    plan = Allocation([0, 8, 16])
    curve = defection_curves(
        MadeUp(), FedAvg(), levels=[0.5], trials=6, protocol="P2", plan=plan, defectors=defectors
    ).curve("FedAvg")
    level = curve.at(0.5).at_end
    assert level.random.p == pytest.approx(1 / 3)
    assert level.contributors.p == 0
    # Where chance picks north, a contributor's cut is looked at beside it.
    assert level.random.trials == level.contributors.trials == 6
    assert level.clients["north"].p == 1
    assert all(run.contributions[0] == 0 for run in engine.made)


def test_each_algorithm_is_held_to_what_it_uses_itself_unless_told(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    audit = defection_curves(MadeUp(), [FedAvg(), MwFed()], levels=[0.5], trials=2, protocol="P2")
    planning = [run for run in engine.made if run.trial >= PLANNING]
    scored = [run for run in engine.made if run.trial < PLANNING]
    # The made-up runs use half of what clients bring.
    assert {run.contributions for run in planning} == {(10, 20, 40)}
    assert [curve.contributions for curve in audit.curves] == [(5, 10, 20)] * 2
    assert len(planning) == 2 * 3
    assert {run.seed for run in planning}.isdisjoint(run.seed for run in scored)
    assert {run.contributions for run in scored} == {
        (5, 10, 20),
        (3, 10, 20),
        (5, 5, 20),
        (5, 10, 10),
    }


def test_a_planned_defector_brings_what_is_asked_or_what_it_has_left(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    # Of 10, 20 and 40 points: half are 5, 10 and 20, a quarter 3 (half up), 5 and 10.
    plan = Allocation([4, 8, 32])
    audit = defection_curves(MadeUp(), FedAvg(), levels=[0.5, 0.25], trials=1, plan=plan)
    assert {run.contributions for run in engine.made} == {
        (4, 8, 32),
        (4, 8, 20),
        (3, 8, 32),
        (4, 5, 32),
        (4, 8, 10),
    }
    # North and south bring all that is asked of them with half of their points, so that there is
    # nothing to make again.
    assert len(engine.made) == 5
    assert audit.curve("FedAvg").contributions == (4, 8, 32)
    assert audit.protocol == "P1"


def test_under_p1_nothing_is_asked_of_who_has_no_part_in_the_plan(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    plan = Allocation([0, 20, 0])
    curve = defection_curves(MadeUp(), FedAvg(), levels=[0.5], trials=2, plan=plan).curve("FedAvg")
    assert {run.contributions for run in engine.made} == {(0, 20, 0), (0, 10, 0)}
    assert curve.at(0.5).at_end.contributors.trials == 2
    assert curve.at(0.5).at_end.clients["south"].p == 0


@pytest.mark.parametrize("protocol", ["P1", "P2"])
def test_plans_may_differ_by_algorithm_and_the_others_keep_their_own(monkeypatch, protocol):
    engine = made_up(monkeypatch, by_points)
    audit = defection_curves(
        MadeUp(),
        [FedAvg(), MwFed()],
        levels=[0.5],
        trials=1,
        protocol=protocol,
        plan={"MW-FED": Allocation([2, 6, 8])},
    )
    # Runs that nobody trains use half of what is brought.
    own = {"P1": (10, 20, 40), "P2": (5, 10, 20)}[protocol]
    assert audit.curve("FedAvg").contributions == own
    assert audit.curve("MW-FED").contributions == (2, 6, 8)
    planned = {run.algorithm.kind for run in engine.made if run.trial >= PLANNING}
    assert planned == (set() if protocol == "P1" else {"fedavg"})
    cuts = {"P1": {(2, 6, 8)}, "P2": {(1, 6, 8), (2, 3, 8), (2, 6, 4), (2, 6, 8)}}[protocol]
    assert {run.contributions for run in engine.made if run.algorithm.kind == "mw-fed"} == cuts


@pytest.mark.parametrize(
    ("options", "promised", "least"),
    [
        ({}, (10, 20, 40), (5, 10, 20)),
        ({"plan": Allocation([4, 0, 32])}, (4, 0, 32), (4, 0, 20)),
        ({"protocol": "P2", "plan": Allocation([4, 0, 32])}, (4, 0, 32), (2, 0, 16)),
        ({"protocol": "P2"}, (5, 10, 20), (3, 5, 10)),
    ],
)
def test_who_cuts_has_promised_all_the_same(monkeypatch, options, promised, least):
    engine = made_up(monkeypatch, by_points)
    audit = defection_curves(MadeUp(), Pledged(), levels=[0.5], trials=1, **options)
    scored = [run for run in engine.made if run.trial < PLANNING]
    assert {run.algorithm.commitment for run in scored} == {promised}
    assert tuple(np.min([run.contributions for run in scored], axis=0)) == least
    # To find out what is used of all points, all are promised.
    planning = [run for run in engine.made if run.trial >= PLANNING]
    assert {run.algorithm.commitment for run in planning} <= {(10, 20, 40)}
    assert audit.curve("PLEDGED").settings["commitment"] == promised


def test_a_commitment_of_its_own_stands(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    algorithm = Pledged(commitment=(10, 0, 10))
    defection_curves(MadeUp(), algorithm, levels=[0.5], trials=1, plan=Allocation([10, 0, 9]))
    assert {run.algorithm.commitment for run in engine.made} == {(10, 0, 10)}


def test_progress_tells_how_far_it_is_and_what_is_known(monkeypatch):
    made_up(monkeypatch, lambda run, client: [0.9, 0.9])
    told = []
    audit = defection_curves(
        MadeUp(), [FedAvg(), MwFed()], levels=[1, 0.5], trials=4, progress=told.append
    )
    assert told[0].done == 0
    assert told[0].total == 2 * 4 * (1 + 3)
    assert told[0].left is None
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert all(one.done <= one.total == told[0].total for one in told)
    assert told[-1].done == told[-1].total
    assert told[-1].left == told[-1].running == 0
    # Every run takes half a second.
    assert all(one.left == (one.total - one.done) / 2 for one in told if one.left is not None)
    known = {(one.algorithm, one.level): one.satisfied for one in told[-1].known}
    assert known["MW-FED", 0.5] == audit.curve("MW-FED").at(0.5).at_end.random
    half_way = next(one for one in told if one.done == told[0].total // 2)
    assert {share.satisfied.trials for share in half_way.known} == {2}


def test_progress_counts_the_runs_that_find_a_plan(monkeypatch):
    made_up(monkeypatch, lambda run, client: [0.9, 0.9])
    told = []
    defection_curves(
        MadeUp(), FedAvg(), levels=[0.5], trials=2, protocol="P2", progress=told.append
    )
    assert told[0].planning and not told[-1].planning
    assert told[0].total == told[-1].total == told[-1].done == 3 + 2 * (1 + 3)


def test_a_run_in_the_store_is_not_made_again_and_a_lost_one_is(monkeypatch, tmp_path):
    path = tmp_path / "runs.db"
    options = {"levels": [1, 0.5], "trials": 3, "store": path}
    engine = made_up(monkeypatch, by_points)
    first = defection_curves(MadeUp(), FedAvg(), **options)
    assert (first.reused, len(engine.made)) == (0, 12)
    again = defection_curves(MadeUp(), FedAvg(), **options)
    assert (again.reused, len(engine.made)) == (12, 12)
    lost = engine.made[5]
    with sqlite3.connect(path) as direct:
        direct.execute(
            "DELETE FROM history WHERE run = (SELECT id FROM runs WHERE key = ?)", (lost.key,)
        )
        direct.execute("DELETE FROM runs WHERE key = ?", (lost.key,))
    direct.close()
    third = defection_curves(MadeUp(), FedAvg(), **options)
    assert engine.made[12:] == [lost]
    assert table(first) == table(again) == table(third)
    # More trials go on from those that are there.
    defection_curves(MadeUp(), FedAvg(), **{**options, "trials": 5})
    assert len(engine.made) == 13 + 2 * 4


def test_a_store_that_is_handed_in_stays_open(monkeypatch):
    made_up(monkeypatch, by_points)
    with RunStore() as store:
        defection_curves(MadeUp(), FedAvg(), levels=[0.5], trials=2, store=store)
        assert len(store) == 2 * 4


def test_a_run_that_never_came_back_is_not_counted_but_told(monkeypatch):
    engine = made_up(monkeypatch, by_points)
    whole = engine.finished

    def losing(runs):
        for number, finished in enumerate(whole(runs)):
            if number != 6:
                yield finished

    engine.finished = losing
    with pytest.raises(FedaccordError, match="did not return 1 run"):
        defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=3)


# P2 first makes runs to plan with.
@pytest.mark.parametrize(("protocol", "wanted"), [("P1", 3 * 4), ("P2", PLANNING_TRIALS)])
def test_runs_that_an_engine_never_took_are_told_too(protocol, wanted, monkeypatch):
    engine = made_up(monkeypatch, by_points)
    whole = engine.finished
    engine.finished = lambda runs: itertools.islice(whole(runs), 1)
    with pytest.raises(FedaccordError, match=f"did not return {wanted - 1} runs?"):
        defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=3, protocol=protocol)


def test_an_engine_may_be_given_as_what_makes_it():
    engine = MadeUpEngine(by_points)
    given = []

    def factory(source, *, workers):
        given.append((source, workers))
        return engine

    source = MadeUp()
    defection_curves(source, FedAvg(), levels=[0.5], trials=2, engine=factory)
    defection_curves(source, FedAvg(), levels=[0.5], trials=2, engine=factory, workers=1000)
    assert given == [(source, None), (source, 1000)]
    assert len(engine.made) == 2 * 2 * 4
    with pytest.raises(InputError, match="engine must be one of local, flower, ray; got 'cloud'"):
        defection_curves(source, FedAvg(), engine="cloud")


def test_what_is_wrong_with_an_engine_leaves_no_file(tmp_path):
    with pytest.raises(InputError, match="workers must be"):
        defection_curves(MadeUp(), FedAvg(), workers=0, store=tmp_path / "runs.db")
    assert not list(tmp_path.iterdir())


def test_what_was_finished_before_a_failure_is_in_the_file(monkeypatch, tmp_path):
    def rule(run, client):
        if run.trial == 1:
            raise RunError("the run of FedAvg failed: KeyError: 'layer'")
        return [0.9, 0.9]

    made_up(monkeypatch, rule)
    path = tmp_path / "runs.db"
    with pytest.raises(RunError, match=r"KeyError: 'layer'; .* safe in .*runs.db, and the same"):
        defection_curves(MadeUp(), FedAvg(), levels=[0.5], trials=3, store=path)
    with RunStore(path) as store:
        assert len(store) == 4
    with pytest.raises(RunError, match=r"'layer'$"):
        defection_curves(MadeUp(), FedAvg(), levels=[0.5], trials=3)


def test_one_client_alone_has_no_others(monkeypatch):
    class Alone(MadeUp):
        names, points, requirements = NAMES[:1], np.array([10]), np.array([0.5])

    made_up(monkeypatch, lambda run, client: [0.9, 0.9])
    level = defection_curves(Alone(), FedAvg(), levels=[0.5], trials=3).curve("FedAvg").at(0.5)
    assert level.at_end.others.trials == 0
    assert level.at_end.random == wilson(3, 3)


def test_algorithms_of_one_kind_may_be_named(monkeypatch):
    made_up(monkeypatch, by_points)
    named = {"c = 2": MwFed(factor=2), "c = 4": MwFed(factor=4)}
    audit = defection_curves(MadeUp(), named, levels=[0.5], trials=1)
    assert [curve.algorithm for curve in audit.curves] == list(named)
    assert [curve.settings["factor"] for curve in audit.curves] == [2, 4]


def test_results_read_in_one_line_and_cannot_be_changed(monkeypatch):
    made_up(monkeypatch, by_points)
    audit = defection_curves(MadeUp(), FedAvg(), levels=[1, 0.5], trials=2)
    assert repr(audit) == "DefectionAudit(P1, FedAvg, 3 clients)"
    assert repr(audit.curves[0]) == "DefectionCurve(FedAvg, 1: 0.83, 0.5: 0.67)"
    assert repr(audit.curves[0].levels[1]).startswith("DefectionLevel(0.5, 0.67 [0.")
    with pytest.raises(dataclasses.FrozenInstanceError):
        audit.curves[0].diverged = 3
    with pytest.raises(InputError, match=r"no level 0.3; it has 1, 0.5"):
        audit.curve("FedAvg").at(0.3)
    with pytest.raises(InputError, match=r'no curve of "Solo"; it has FedAvg'):
        audit.curve("Solo")
