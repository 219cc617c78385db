"""Pilots are made once, and what is known counts."""

import copy
import math

import numpy as np
import pytest
from federation.made_up import MadeUpEngine
from federation.small import blobs, linear_model, small_federation

from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.data.dataset import Dataset
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.partition import SiteDealer, set_goals
from fedaccord.federation.pilots import pilots_near, run_pilots
from fedaccord.federation.runs.execute import RunError
from fedaccord.federation.runs.store import Run, RunStore
from fedaccord.federation.runs.trials import PILOTS, PLANNING
from fedaccord.federation.training.loop import train
from fedaccord.measurement.design import pilot_design, usual_budget


def test_pilots_near_a_plan_ask_nothing_of_a_client_that_has_nothing():
    near = np.array(pilots_near([40, 0, 7], [100, 0, 7], budget=30))
    assert set(near[:, 0]) == {10, 40, 60}
    assert not near[:, 1].any()
    assert set(near[:, 2]) == {2, 7}


# Runs that nobody trains.


class Source:
    """Three clients; what comes of a run is told by a rule."""

    names = ("north", "south", "west")
    points = np.array([10, 20, 40])
    requirements = np.array([0.5, 0.6, 0.7])
    fingerprint = "made up"

    def deal(self, trial):
        return small_federation()


def by_sum(run, client):
    """Everybody's accuracy grows with all contributions; no two pilots have the same."""
    reached = 1 - 1 / (2 + sum(run.contributions) + client)
    return [0.1, reached - (run.trial % 7) / 1000]


def pilots(engine, algorithm=None, *, source=None, **options):
    made = {"budget": 11, "store": None, **options}
    return run_pilots(source or Source(), algorithm or FedAvg(), engine=engine, **made)


def test_the_table_has_what_came_of_every_pilot():
    engine = MadeUpEngine(by_sum, ahead=3)
    table = pilots(engine, seed=4)
    assert table.agents == Source.names
    assert table.contributions.tolist() == [
        list(brought) for brought in pilot_design([10, 20, 40], budget=11)
    ]
    for n, brought in enumerate(table.contributions):
        run = Run("made up", FedAvg(), tuple(map(int, brought)), 4, PILOTS + n)
        assert table.accuracies[n].tolist() == [by_sum(run, client)[1] for client in range(3)]
    assert table.goals.tolist() == [0.5, 0.6, 0.7]
    assert table.limits.tolist() == [10, 20, 40]
    assert table.validation.tolist() == [18, 18, 18]


def test_every_pilot_has_a_trial_and_a_seed_of_its_own_that_no_audit_counts():
    engine = MadeUpEngine(by_sum)
    pilots(engine)
    assert len({run.trial for run in engine.made}) == len(engine.made) == 11
    assert len({run.seed for run in engine.made}) == 11
    assert min(run.trial for run in engine.made) > PLANNING + 1000


def test_without_a_budget_the_whole_design_is_made_three_times():
    engine = MadeUpEngine(by_sum)
    assert len(pilots(engine, budget=None)) == 3 * (2 * 3 + 5) == usual_budget(3)


def test_progress_is_told_from_the_first_pilot_to_the_last():
    told = []
    pilots(MadeUpEngine(by_sum), progress=lambda done, of: told.append((done, of)))
    assert told == [(n, 11) for n in range(12)]


def test_a_run_that_diverged_is_not_measured():
    engine = MadeUpEngine(lambda run, client: [0.1, math.nan if run.trial == PILOTS + 2 else 0.5])
    table = pilots(engine)
    assert np.isnan(table.accuracies[2]).all()
    assert not np.isnan(np.delete(table.accuracies, 2, axis=0)).any()


def same(one, other):
    return np.array_equal(one.contributions, other.contributions) and np.array_equal(
        one.accuracies, other.accuracies, equal_nan=True
    )


def test_pilots_that_are_kept_are_not_made_again(tmp_path):
    first, second = MadeUpEngine(by_sum), MadeUpEngine(by_sum)
    file, told = tmp_path / "runs.sqlite", []
    one = pilots(first, store=file)
    two = pilots(second, store=file, progress=lambda done, of: told.append((done, of)))
    assert (len(first.made), len(second.made)) == (11, 0)
    assert told == [(11, 11)]
    assert same(one, two)


def test_a_larger_budget_makes_only_what_is_missing(tmp_path):
    first, second = MadeUpEngine(by_sum), MadeUpEngine(by_sum)
    pilots(first, store=tmp_path / "runs.sqlite", budget=5)
    table = pilots(second, store=tmp_path / "runs.sqlite", budget=11)
    assert len(second.made) == 6
    assert same(table, pilots(MadeUpEngine(by_sum), budget=11))


def test_a_smaller_budget_takes_all_that_is_known(tmp_path):
    pilots(MadeUpEngine(by_sum), store=tmp_path / "runs.sqlite", budget=11)
    engine = MadeUpEngine(by_sum)
    assert len(pilots(engine, store=tmp_path / "runs.sqlite", budget=5)) == 11
    assert not engine.made


class Interrupted(MadeUpEngine):
    """Is interrupted after some runs."""

    def __init__(self, rule, after, error):
        super().__init__(rule)
        self.after, self.error = after, error

    def finished(self, runs):
        for n, made in enumerate(super().finished(runs)):
            if n == self.after:
                raise self.error
            yield made


def test_what_was_finished_before_an_interruption_is_kept(tmp_path):
    file = tmp_path / "runs.sqlite"
    with pytest.raises(KeyboardInterrupt):
        pilots(Interrupted(by_sum, 4, KeyboardInterrupt()), store=file)
    engine = MadeUpEngine(by_sum)
    assert same(pilots(engine, store=file), pilots(MadeUpEngine(by_sum)))
    assert len(engine.made) == 7


def test_an_engine_that_fails_says_what_is_safe(tmp_path):
    file = tmp_path / "runs.sqlite"
    with pytest.raises(RunError, match=r"the runs finished before are safe in .*runs\.sqlite"):
        pilots(Interrupted(by_sum, 4, RunError("the machine is gone")), store=file)
    with RunStore(file) as store:
        assert len(store) == 4


class Forgetful(MadeUpEngine):
    """Loses a run."""

    def finished(self, runs):
        return super().finished(list(runs)[1:])


def test_a_run_that_does_not_come_back_is_missed():
    with pytest.raises(RunError, match="did not return 1 run"):
        pilots(Forgetful(by_sum))


def test_trials_that_find_an_audits_plan_count_as_pilots_and_its_others_do_not(tmp_path):
    file = tmp_path / "runs.sqlite"
    defection_curves(
        Source(),
        FedAvg(),
        levels=[0.5],
        trials=2,
        protocol="P2",
        engine=MadeUpEngine(by_sum),
        store=file,
    )
    table = pilots(MadeUpEngine(by_sum), store=file)
    # In the three of them everybody brings everything.
    assert len(table) == 11 + 3
    assert (table.contributions[11:] == [10, 20, 40]).all()


def test_other_algorithms_and_other_sources_tell_nothing(tmp_path):
    file, other = tmp_path / "runs.sqlite", Source()
    other.fingerprint = "another"
    pilots(MadeUpEngine(by_sum), FedAvg(rounds=7), store=file)
    pilots(MadeUpEngine(by_sum), MwFed(), store=file)
    pilots(MadeUpEngine(by_sum), store=file, source=other)
    engine = MadeUpEngine(by_sum)
    assert len(pilots(engine, store=file)) == len(engine.made) == 11


def test_other_seeds_make_other_pilots_and_all_of_them_count(tmp_path):
    file = tmp_path / "runs.sqlite"
    pilots(MadeUpEngine(by_sum), store=file, seed=1)
    engine = MadeUpEngine(by_sum)
    assert len(pilots(engine, store=file, seed=2)) == 22
    assert len(engine.made) == 11


def test_where_clients_promise_what_they_bring_a_pilot_is_a_promise_kept(tmp_path):
    engine, file = MadeUpEngine(by_sum), tmp_path / "runs.sqlite"
    algorithm = Pledged(batch_size=4)
    pilots(engine, algorithm, store=file)
    assert all(run.algorithm.commitment == run.contributions for run in engine.made)
    again = MadeUpEngine(by_sum)
    assert len(pilots(again, algorithm, store=file, budget=3)) == 11
    assert not again.made


@pytest.mark.parametrize("stages", [0, -1, 1.5])
def test_pilots_are_aimed_once_or_more(stages):
    engine = MadeUpEngine(by_sum)
    with pytest.raises(InputError, match="stages must be a whole number of 1 or more"):
        pilots(engine, budget=30, aim=lambda table: [5, 5, 5], stages=stages)
    assert not engine.made


def test_who_trains_alone_needs_no_plan():
    engine = MadeUpEngine(by_sum)
    with pytest.raises(InputError, match="Solo trains each client alone"):
        pilots(engine, Solo())
    assert not engine.made


# Goals.


def test_a_goal_that_no_training_reaches_is_refused_before_any(tmp_path):
    engine = MadeUpEngine(by_sum)
    with pytest.raises(UnreachableError, match=r"south wants an accuracy of 1.*is 0\.944$"):
        pilots(engine, goals=[0.5, 1, 0.5], store=tmp_path / "runs.sqlite")
    assert not engine.made
    assert not (tmp_path / "runs.sqlite").exists()


@pytest.mark.parametrize(
    ("goals", "words"),
    [
        ([0.5, 0.5], "3 clients need one goal each, in this order: north, south, west; got 2"),
        ([0.5, 85, 0.5], "the goal of south must be an accuracy above 0 and below 1; got 85"),
        (0, "the goal of north must be an accuracy"),
        ([0.5, math.nan, 0.5], "the goal of south must be an accuracy"),
    ],
)
def test_goals_are_accuracies_one_for_each(goals, words):
    engine = MadeUpEngine(by_sum)
    with pytest.raises(InputError, match=words):
        pilots(engine, goals=goals)
    assert not engine.made


def test_one_goal_is_for_all():
    assert pilots(MadeUpEngine(by_sum), goals=0.8).goals.tolist() == [0.8, 0.8, 0.8]


def sites(requirement):
    inputs, labels = blobs(60, 0.3, seed=1)
    data = Dataset(
        inputs.astype(np.float32),
        labels,
        classes=("a", "b", "c"),
        sites=np.arange(60) % 3,
        site_names=("north", "south", "west"),
        source="made up",
    )
    return SiteDealer(data, model=Linear(), validation=0.4, requirement=requirement)


class Linear:
    """A model's maker with nothing of its own."""

    def __call__(self):
        return linear_model().float()


def sources():
    return [sites, lambda goals: small_federation((10, 20, 40), requirement=goals)]


@pytest.mark.parametrize("make", sources())
def test_goals_can_be_changed_and_the_pilots_stay(make, tmp_path):
    file = tmp_path / "runs.sqlite"
    pilots(MadeUpEngine(by_sum), source=make(0.5), store=file)
    engine = MadeUpEngine(by_sum)
    table = pilots(engine, source=make(0.75), store=file)
    assert not engine.made
    assert len(table) == 11
    assert table.goals.tolist() == [0.75] * 3


@pytest.mark.parametrize("make", [*sources(), lambda goals: Source()])
def test_an_algorithm_that_looks_at_goals_has_pilots_of_its_own_for_each(make, tmp_path):
    file, seen = tmp_path / "runs.sqlite", []

    def engine(source, *, workers):
        seen.append(source)
        return MadeUpEngine(by_sum)

    for goals in (None, 0.5, 0.75):
        table = pilots(engine, MwFed(), source=make(0.6), goals=goals, store=file)
        assert len(table) == 11, "pilots with other goals were counted"
    for source, goals in zip(seen[1:], (0.5, 0.75), strict=True):
        dealt = source.deal(3)
        assert [client.requirement for client in dealt.clients] == [goals] * 3
        assert source.requirements.tolist() == [goals] * 3
    assert len({source.fingerprint for source in seen}) == 3


@pytest.mark.parametrize("make", sources())
def test_with_other_goals_only_the_goals_are_others(make):
    before = make(0.5)
    assert before.fingerprint == make(0.5).fingerprint
    after = set_goals(before, np.full(3, 0.75))
    assert after.fingerprint == make(0.75).fingerprint != before.fingerprint
    assert before.requirements.tolist() == [0.5] * 3
    one, other = (source.deal(2).clients for source in (before, after))
    for mine, theirs in zip(one, other, strict=True):
        assert mine.inputs.equal(theirs.inputs)
        assert (mine.requirement, theirs.requirement) == (0.5, 0.75)


def test_pilots_of_a_federation_are_trainings_like_any_other():
    federation = small_federation((10, 20, 40))
    algorithm = FedAvg(rounds=4, batch_size=4, learning_rate=0.05)
    table = run_pilots(federation, algorithm, budget=4, seed=9)
    for n, brought in enumerate(table.contributions):
        contributions = tuple(map(int, brought))
        run = Run(federation.fingerprint, algorithm, contributions, 9, PILOTS + n)
        history = train(
            copy.copy(federation), algorithm, contributions=contributions, seed=run.seed
        )
        assert history.final.tolist() == table.accuracies[n].tolist()
