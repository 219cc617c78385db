"""From a federation to a plan: many agents, unequal goals, and goals that cannot be met."""

import numpy as np
import pytest
from federation.made_up import MadeUpEngine
from federation.small import small_federation

from fedaccord.errors import MissingExtraError, UnreachableError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.config.build import Building
from fedaccord.federation.config.load import Config
from fedaccord.federation.pilots import run_pilots
from fedaccord.federation.runs.execute import RunError
from fedaccord.federation.runs.trials import AIMED, PILOTS
from fedaccord.frontier import from_federation as planned
from fedaccord.frontier.from_federation import from_federation, plan_roughly
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.histograms import Histograms
from fedaccord.planning.plan import make_plan
from fedaccord.planning.result import Outcome

# Learning curves that are known: accuracy of 0.9 at most, what a sample is worth to whom.
BENEFITS = np.array([[1.0, 0.6, 0.1], [0.5, 1.0, 0.2], [0.2, 0.3, 1.0]])
BEST = 0.9


def accuracies(contributions):
    return BEST - 2.0 * (10 + BENEFITS @ np.asarray(contributions, dtype=float)) ** -0.6


class Known:
    """Three clients of 400 points whose learning curves are known."""

    names = ("north", "south", "west")
    points = np.array([400, 400, 400])
    requirements = np.array([0.8, 0.78, 0.75])
    fingerprint = "known"

    def deal(self, trial):
        return small_federation()


class KnownEngine(MadeUpEngine):
    """Gives what the curves say, give or take a little."""

    def __init__(self, scatter=0.004):
        super().__init__(self.told)
        self.scatter = scatter

    def told(self, run, client):
        chance = np.random.default_rng([run.trial, client]).normal(0, self.scatter)
        return [0.1, float(accuracies(run.contributions)[client] + chance)]


def measured(engine=None, **options):
    return from_federation(Known(), FedAvg(), engine=engine or KnownEngine(), **options)


def test_what_is_measured_is_what_is_there():
    found = measured(budget=44)
    plan = np.array([150.0, 80.0, 120.0])
    assert found.game.accuracies(plan) == pytest.approx(accuracies(plan), abs=0.01)
    # How many own samples 0.8 takes alone: 0.1 = 2 (10 + n)^-0.6.
    assert found.game.requirements[0] == pytest.approx(20 ** (1 / 0.6) - 10, rel=0.15)
    assert found.goals.tolist() == [0.8, 0.78, 0.75]


def test_the_last_third_is_made_near_the_plan_that_the_others_suggest(monkeypatch):
    suggested = []

    def note(measurement):
        suggested.append((len(measurement.table.contributions), plan_roughly(measurement)))
        return suggested[-1][1]

    monkeypatch.setattr(planned, "plan_roughly", note)
    engine = KnownEngine()
    measured(engine, budget=33)
    first = [run for run in engine.made if run.trial < AIMED]
    last = [run for run in engine.made if run.trial >= AIMED]
    assert (len(first), len(last)) == (22, 11)
    ((pilots, plan),) = suggested
    assert pilots == 22
    # Each gives a quarter of the plan, all of it or half more: the most is one and a half.
    most = np.max([run.contributions for run in last], axis=0)
    assert most == pytest.approx(np.minimum(1.5 * plan, 400), rel=0.02, abs=1)
    assert len({run.contributions for run in last}) > 5


def test_an_aim_is_taken_three_times_each_by_all_pilots_before(tmp_path):
    seen = []

    def aim(measurement):
        seen.append(len(measurement.table.contributions))
        return [100.0 * len(seen), 10.0, 0.0]

    engine = KnownEngine()
    found = measured(engine, budget=33, aim=aim, resamples=20, store=tmp_path / "runs.sqlite")
    assert seen == [22, 25, 29]
    last = {run.trial: run.contributions[0] for run in engine.made if run.trial >= AIMED}
    assert sorted(last) == [AIMED + n for n in range(11)]
    stages = [[last[AIMED + n] for n in group] for group in (range(3), range(3, 7), range(7, 11))]
    for number, given in enumerate(stages, start=1):
        assert set(given) <= {25 * number, 100 * number, min(150 * number, 400)}
    # An interruption changes nothing: the same call makes no run again.
    seen.clear()
    again = KnownEngine()
    same = measured(again, budget=33, aim=aim, resamples=20, store=tmp_path / "runs.sqlite")
    assert not again.made
    assert same.table.accuracies.tolist() == found.table.accuracies.tolist()


# Beyond this many samples, a single contributor's samples repeat what its others say.
FULL = 120.0


class Saturating(KnownEngine):
    """Samples of one client are worth less and less, which no linear benefit says."""

    def told(self, run, client):
        given = np.asarray(run.contributions, dtype=float)
        chance = np.random.default_rng([run.trial, client]).normal(0, self.scatter)
        worth = FULL * np.log1p(given / FULL)
        return [0.1, float(accuracies(worth)[client] + chance)]


def test_aiming_at_the_plan_itself_makes_it_less_hopeful():
    def plan(found):
        return make_plan(found, probability=0.9, levels=[0.25]).contributions

    def find_hope(**options):
        found = measured(Saturating(), budget=33, resamples=100, **options)
        given = plan(found)
        true = accuracies(FULL * np.log1p(given / FULL))
        return float((found.game.accuracies(given) - true).max())

    hope, less = find_hope(), find_hope(aim=plan)
    assert less < 0.7 * hope, (hope, less)


def test_a_small_budget_is_for_the_design_alone():
    engine = KnownEngine()
    measured(engine, budget=11)
    assert [run.trial for run in engine.made] == [PILOTS + n for n in range(11)]


class Cut(KnownEngine):
    """Is interrupted after some runs."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def finished(self, runs):
        for made in super().finished(runs):
            if len(self.made) > self.after:
                raise KeyboardInterrupt
            yield made


class Failing(KnownEngine):
    """Training that diverges in two trials of five."""

    def told(self, run, client):
        return [np.nan, np.nan] if run.trial % 5 < 2 else super().told(run, client)


def test_pilots_that_fail_say_that_one_more_run_may():
    found = measured(Failing(), budget=44)
    failed = np.isnan(found.table.accuracies).all(axis=1).mean()
    assert 0.3 < failed < 0.5
    plan = make_plan(found, probability=0.9)
    assert plan.outcome is Outcome.LESS_SURE
    assert plan.everyone.value <= 1 - failed
    assert (plan.satisfied <= 1 - failed).all()
    assert all((chances <= 1 - failed).all() for chances in plan.cuts.values())
    assert [doubt.kind for doubt in plan.doubts].count("failed-pilots") == 1
    # What is reached where training does come to an end is known all the same.
    contributions = np.array([150.0, 80.0, 120.0])
    assert found.game.accuracies(contributions) == pytest.approx(
        accuracies(contributions), abs=0.02
    )


def test_of_pilots_with_the_same_points_and_luck_one_counts(tmp_path):
    file = tmp_path / "runs.sqlite"
    first = measured(budget=44, store=file)
    other = measured(budget=44, goals=[0.5, 0.5, 0.5], store=file)
    assert not np.array_equal(first.table.contributions, other.table.contributions)
    # Its last third lies elsewhere, in the trials that the other's was made in.
    assert len(other.table) == 44
    assert len(measured(budget=44, seed=1, store=file).table) == 88


@pytest.mark.parametrize("after", [5, 22, 27])
def test_an_interrupted_measurement_goes_on_where_it_was(after, tmp_path):
    """Among the first pilots, between them and the aimed ones, and among those."""
    file, told = tmp_path / "runs.sqlite", []
    with pytest.raises(KeyboardInterrupt):
        measured(Cut(after), budget=33, store=file)
    engine = KnownEngine()
    found = measured(
        engine, budget=33, store=file, progress=lambda done, of: told.append((done, of))
    )
    assert len(engine.made) == 33 - after
    assert told[-1] == (33, 33)
    assert all(of == 33 for _, of in told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    whole = measured(budget=33)
    assert np.array_equal(found.table.contributions, whole.table.contributions)
    assert np.array_equal(found.table.accuracies, whole.table.accuracies)
    assert np.array_equal(found.resamples.curves, whole.resamples.curves)


def test_a_goal_above_what_data_can_give_is_told_with_the_nearest_that_is_not():
    found = measured(budget=44, goals=[0.8, 0.97, 0.75])
    (out,) = found.unreachable
    assert out.name == "south"
    assert out.nearest == pytest.approx(accuracies([400, 400, 400])[1], abs=0.02)
    plan = make_plan(found)
    assert plan.contributions is None
    assert plan.outcome is Outcome.UNREACHABLE
    assert [other.name for other in plan.unreachable] == ["south"]
    # What was said to be reachable is.
    lower = found.with_goals({"south": out.nearest - 0.01})
    assert not lower.unreachable


def test_a_goal_of_one_is_refused_before_anything_is_trained():
    engine = KnownEngine()
    with pytest.raises(UnreachableError, match="north wants an accuracy of 1"):
        measured(engine, goals=[1, 0.7, 0.7])
    assert not engine.made


def test_a_rough_plan_satisfies_everybody_with_room_for_chance():
    found = measured(budget=44)
    reached = accuracies(plan_roughly(found))
    assert (reached > found.goals).all()
    assert (reached < found.goals + 4 * found.noise("measured") + 0.01).all()


def test_a_rough_plan_takes_the_nearest_goal_for_one_that_is_out_of_reach():
    found = measured(budget=44, goals=[0.8, 0.97, 0.75])
    plan = plan_roughly(found)
    assert (plan <= 400).all()
    assert plan.sum() >= 400


def test_histograms_say_what_the_pilots_leave_open():
    counts = [[90, 10, 0], [80, 20, 0], [0, 5, 95]]
    histograms = Histograms(("north", "south", "west"), ("a", "b", "c"), counts)
    engine = KnownEngine(scatter=0.05)
    with_them = measured(engine, budget=4, histograms=histograms)
    without = measured(engine, budget=4)
    hint = histograms.benefits[0, 2]
    assert hint < 0.02
    assert with_them.benefits[0, 2] < 0.1 < without.benefits[0, 2]


def test_an_engine_that_fails_is_told_of():
    class Broken(KnownEngine):
        def finished(self, runs):
            raise RunError("the machine is gone")

    with pytest.raises(RunError, match="the machine is gone"):
        measured(Broken())


def test_without_torch_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fedaccord.federation.pilots")
    for name in [name for name in sys.modules if name.startswith("fedaccord.federation.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"fedaccord\[train\]"):
        measured()


# The whole chain on handwritten digits.

SIXTEEN = """
[pools]
pretraining = 200
validation = 97
[difficulty]
until = 0.9
batches = 60
batch_size = 32
learning_rate = 0.005
holdout = 50
[agents]
mixtures = {mixtures}
points = 90
validation = 0.6
requirement = {goals}
hard = [50, 100]
easy = [0, 50]
[pretraining]
batches = 8
batch_size = 32
learning_rate = 0.005
[training]
rounds = 20
batch_size = 4
learning_rate = 0.02
evaluate_every = 20
[algorithms.FedAvg]
"""


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory):
    """Sixteen agents with unequal goals, and the pilots of their federation."""
    mixtures = [0.7, 0.6, 0.4, 0.3] * 4
    goals = [0.64, 0.66, 0.68, 0.70] * 4
    folder = tmp_path_factory.mktemp("sixteen")
    (folder / "config.toml").write_text(SIXTEEN.format(mixtures=mixtures, goals=goals))
    config = Config.load(folder / "config.toml")
    source = Building(config, cache=None).source(0)
    algorithm = config.algorithms["FedAvg"]
    store = folder / "runs.sqlite"
    return source, algorithm, store, from_federation(source, algorithm, budget=42, store=store)


def test_sixteen_agents_with_unequal_goals_have_a_plan(sixteen):
    source, _, _, found = sixteen
    assert found.table.size == 16
    assert found.goals.tolist() == [0.64, 0.66, 0.68, 0.70] * 4
    assert not found.unreachable
    plan = make_plan(found, probability=0.5)
    theta = np.array(plan.contributions)
    assert (theta >= 0).all()
    assert (theta <= source.points).all()
    # Data are shared: far less is asked than all would need alone, with the same margins.
    assert 0 < theta.sum() < 0.8 * plan.game.requirements.sum()


def test_what_the_curves_of_sixteen_agents_expect_is_what_training_gives(sixteen):
    from fedaccord.federation.training.loop import train

    source, algorithm, _, found = sixteen
    theta = np.minimum(np.ceil(plan_roughly(found)), source.points).astype(int)
    runs = [
        train(source.deal(trial), algorithm, contributions=theta, seed=trial) for trial in range(6)
    ]
    reached = np.mean([run.final for run in runs], axis=0)
    # FedAvg counts a client with 2 samples as much as one with 36, and no linear game does: near
    # a plan of few and unequal contributions the curves expect some hundredths too much.
    expected = found.game.accuracies(theta)
    assert -0.06 < float((reached - expected).mean()) < 0.03
    assert np.abs(reached - expected).max() < 0.13


def test_one_of_sixteen_wants_too_much_and_is_told_before_it_trains_in_vain(sixteen):
    source, algorithm, store, before = sixteen
    goals = np.array(before.goals)
    goals[2] = 0.995
    found = from_federation(source, algorithm, budget=42, goals=goals, store=store)
    assert [out.agent for out in found.unreachable] == [2]
    (out,) = found.unreachable
    everything = run_pilots(source, algorithm, budget=1, store=store)
    full = everything.accuracies[(everything.contributions == source.points).all(axis=1)]
    assert out.nearest == pytest.approx(full[:, 2].mean(), abs=0.06)
    plan = make_plan(found, probability=0.5)
    assert plan.contributions is None
    assert plan.outcome is Outcome.UNREACHABLE
    assert not found.with_goals({out.name: out.nearest - 0.001}).unreachable


def test_pilots_of_the_design_are_found_again_under_other_goals(sixteen):
    source, algorithm, store, before = sixteen
    table = run_pilots(source, algorithm, budget=37, goals=0.6, store=store)
    assert len(table) >= len(before.table)
    assert fit_curves(table, resamples=1).benefits.shape == (16, 16)
