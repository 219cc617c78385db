"""Audits of defectors that do more than give less: kept data, groups, fillers."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from federation.small import small_federation

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.audit import MOST_GROUPS, Design, defection_curves
from fedaccord.federation.defection.curves import DefectionAudit, keeping, outside, sum_up
from fedaccord.federation.defection.tactic import FILLERS, Tactic
from fedaccord.federation.runs.execute import make_run
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.training.alone import go_on_alone, let_go_on
from fedaccord.federation.training.loop import is_right, train
from fedaccord.federation.training.rng import draw_contribution

SHORT = FedAvg(rounds=6, batch_size=8, learning_rate=0.02, evaluate_every=3)
FULL = (30, 24, 40)


def design(**options) -> Design:
    given = {"levels": (1, 0.25), "trials": 2, "protocol": "P2", **options}
    return Design(small_federation(FULL), SHORT, AuditOptions(**given))


# Which runs an audit makes.


def test_kept_data_changes_no_run_that_is_trained():
    plain, keeps = design(), design(kept_data=True)
    for level, trial, client in itertools.product((1, 0.25), (0, 1), range(3)):
        one, two = (
            d.defecting_run("FedAvg", FULL, (client,), level, trial) for d in (plain, keeps)
        )
        assert one.key == two.key
        assert two.goes_on == ((client,) if level < 1 else ())


def test_a_defector_with_a_filler_says_that_it_gives_all():
    run = design(filler="copies").defecting_run("FedAvg", FULL, (2,), 0.25, 0)
    assert run.contributions == FULL
    assert run.tactic == Tactic((2,), "copies", (10,))
    honest = design().defecting_run("FedAvg", FULL, (2,), 1, 0)
    assert run.key != honest.key
    keys = {design(filler=f).defecting_run("FedAvg", FULL, (2,), 0.25, 0).key for f in FILLERS}
    assert len(keys) == len(FILLERS)


def test_copies_that_are_detected_count_for_nothing():
    found = design(filler="copies", detect_copies=True)
    run = found.defecting_run("FedAvg", FULL, (2,), 0.25, 0)
    assert run.key == design().defecting_run("FedAvg", FULL, (2,), 0.25, 0).key
    with pytest.raises(InputError, match="detect_copies needs filler"):
        AuditOptions(detect_copies=True)


def test_a_group_of_more_agents_than_there_are_is_refused():
    assert design(group=3).options.group == 3
    with pytest.raises(InputError, match=r"^99 agents cannot .*there are 3 agents; use --group 3"):
        design(group=99)


def test_every_pair_of_contributors_defects_together():
    pairs = design(group=2).choose_groups(0, FULL)
    assert pairs == [(0, 1), (0, 2), (1, 2)]
    given = design(group=2).defect(FULL, (0, 2), 0.25)
    assert given == (8, 24, 10)
    # Agents of whom nothing is asked cannot defect.
    assert design(group=2).choose_groups(0, (30, 0, 40)) == [(0, 2)]
    assert design(group=3).choose_groups(0, (30, 0, 40)) == [(0, 2)]


def test_random_groups_are_each_drawn_equally_often():
    many = Design(
        small_federation((9,) * 7), SHORT, AuditOptions(protocol="P2", group=3, trials=70)
    )
    full = (9,) * 7
    drawn = [many.choose_groups(trial, full) for trial in range(70)]
    assert all(len(groups) == 1 for groups in drawn)
    counts = Counter(groups[0] for groups in drawn)
    assert len(counts) == 35 > MOST_GROUPS
    assert set(counts.values()) == {2}


# What comes of a run.


def test_who_goes_on_takes_the_better_model():
    """The accuracies are those of a second way: train, tune by hand, and measure."""
    federation = small_federation(FULL, requirement=0.75)
    run = Run("x", SHORT, (8, 24, 40), 0, 0, goes_on=(0,))
    history = make_run(lambda trial: federation, run)
    assert np.isnan(history.went_on.given[1:]).all() and np.isnan(history.went_on.kept[1:]).all()
    plain = train(federation, SHORT, contributions=[8, 24, 40], seed=run.seed)
    client = federation.clients[0]
    own = draw_contribution(client.name, 30, 30, seed=run.seed)
    for samples, found in ((own[:8], history.went_on.given), (own, history.went_on.kept)):
        tuned = go_on_alone(federation, client, plain.weights, samples, SHORT, seed=run.seed)
        model = federation.model()
        model.load_state_dict({n: _tensor(w) for n, w in tuned.weights.items()})
        by_hand = is_right(model, client.validation_inputs, client.validation_labels).mean()
        assert found[0] == by_hand
    outcome = Outcome.of(history, "v")
    best = max(plain.final[0], history.went_on.given[0])
    assert outcome.outside == (best >= 0.75, *plain.satisfied[1:].tolist())
    best = max(best, history.went_on.kept[0])
    assert outcome.keeping == (best >= 0.75, *plain.satisfied[1:].tolist())


def _tensor(array):
    import torch

    return torch.as_tensor(array)


def test_a_client_that_left_goes_on_from_the_model_that_it_left_with():
    federation = small_federation(FULL)
    history = train(federation, SHORT, seed=4)
    early = train(federation, dataclasses.replace(SHORT, rounds=1), seed=4)
    left = dataclasses.replace(history, checkpoints={"client 1": early.weights})
    went = let_go_on(federation, SHORT, left, (1,))
    from_early = let_go_on(federation, SHORT, early, (1,))
    from_end = let_go_on(federation, SHORT, history, (1,))
    assert went.went_on.kept[1] == from_early.went_on.kept[1]
    tuned = [
        go_on_alone(
            federation, federation.clients[1], h.weights, np.arange(24), SHORT, seed=4
        ).weights
        for h in (early, history)
    ]
    assert any(not np.array_equal(w, tuned[1][n]) for n, w in tuned[0].items())
    assert from_end.went_on is not None


# How outcomes are counted.


def outcome(satisfied, **beside) -> Outcome:
    size = len(satisfied)
    return Outcome(
        accuracies=(0.5,) * size,
        satisfied=tuple(satisfied),
        first_passage=(0,) * size,
        samples=(1,) * size,
        unique=(1,) * size,
        diverged=False,
        seconds=1.0,
        versions="v",
        **beside,
    )


def curve(trials):
    full = [[((0,), outcome([True, True, True]))]] * len(trials)
    return sum_up(
        "A", {}, (5, 5, 5), clients=("a", "b", "c"), levels=(0.25,),
        trials={1.0: full, 0.25: trials}, drawn=MOST_GROUPS,
    )  # fmt: skip


def test_a_group_succeeds_if_all_of_it_do_and_the_others_are_the_rest():
    trials = [
        [((0, 1), outcome([True, True, False])), ((1, 2), outcome([True, False, True]))],
        [((0, 1), outcome([False, True, True])), ((1, 2), outcome([True, True, True]))],
    ]
    found = curve(trials).at(0.25).at_end
    assert found.contributors.p == 2 / 4
    assert found.others.p == 3 / 4
    # Each member by itself, in the runs of its groups.
    assert found.clients["a"].p == 1 / 2
    assert found.clients["b"].p == 3 / 4
    assert found.clients["c"].p == 2 / 2


def test_outside_option_and_kept_data_are_counted_apart():
    went = {"given": (0.6, float("nan"), float("nan")), "kept": (0.7, float("nan"), float("nan"))}
    received, best = [False, True, True], (True, True, True)
    trials = [
        [((0,), outcome(received, outside=(False, True, True), keeping=best, **went))],
        [((0,), outcome(received, outside=best, keeping=best, **went))],
    ]
    level = curve(trials).at(0.25)
    assert level.at_end.contributors.p == 0
    assert level.outside.contributors.p == 1 / 2
    assert level.kept.contributors.p == 1
    # Of a run in which nobody went on, what it received counts.
    assert keeping(outcome([True, False])) == outside(outcome([True, False])) == (True, False)


# Whole audits.


def test_an_audit_of_kept_data_is_resumed_and_reuses_plain_runs(tmp_path):
    federation = small_federation(FULL)
    asked = {"levels": (1, 0.25), "trials": 2, "protocol": "P2"}
    store = tmp_path / "runs.sqlite"
    plain = defection_curves(federation, SHORT, **asked, store=store)
    keeps = defection_curves(federation, SHORT, **asked, kept_data=True, store=store)
    # The runs at full contribution are there already, those with a defector are judged again.
    assert keeps.reused > 0
    again = defection_curves(federation, SHORT, **asked, kept_data=True, store=store)
    runs = len(RunStore(store))
    assert again.to_dict()["algorithms"] == keeps.to_dict()["algorithms"]
    assert len(RunStore(store)) == runs
    level = keeps.curve("FedAvg").at(0.25)
    assert level.at_end == plain.curve("FedAvg").at(0.25).at_end
    assert level.at_end.contributors.p <= level.outside.contributors.p <= level.kept.contributors.p
    assert DefectionAudit.from_dict(keeps.to_dict()).to_dict() == keeps.to_dict()
    assert plain.curve("FedAvg").at(0.25).kept is None
    assert set(keeps.curve("FedAvg").kept_worth) == {"client 0", "client 1", "client 2"}


def test_the_worth_of_kept_samples_is_that_of_the_runs_made_by_hand(tmp_path):
    """Kappa of one client over three trials, from runs that are trained here one by one."""
    federation = small_federation(FULL)
    store = tmp_path / "runs.sqlite"
    asked = {"levels": (1, 0.25), "trials": 3, "protocol": "P2", "kept_data": True}
    found = defection_curves(federation, SHORT, **asked, store=store).curve("FedAvg")
    rows = []
    for trial in range(3):
        whole, cut = (
            Run(federation.fingerprint, SHORT, given, 0, trial, goes_on=goes_on)
            for given, goes_on in ((FULL, ()), ((8, 24, 40), (0,)))
        )
        full, less = (make_run(lambda trial: federation, run) for run in (whole, cut))
        rows.append((full.final[0], less.final[0], less.went_on.kept[0]))
    a, b, c = np.mean(rows, axis=0)
    by_hand = ((c - b) / 22) / ((a - b) / 22) if a != b else np.nan
    value = found.kept_worth["client 0"].value
    assert value == pytest.approx(by_hand, nan_ok=True)


def test_what_was_written_of_going_on_cannot_be_changed_unnoticed(tmp_path):
    store = RunStore(tmp_path / "runs.sqlite")
    federation = small_federation(FULL)
    run = Run(federation.fingerprint, SHORT, (8, 24, 40), 0, 0, goes_on=(0,))
    history = make_run(lambda trial: federation, run)
    store.put(run, Outcome.of(history, "v"), history)
    assert store.get(run).kept[0] == history.went_on.kept[0]
    assert store.get(dataclasses.replace(run, goes_on=(1,))) is None
    with store._connection as connection:
        connection.execute("UPDATE went_on SET keeping = '[true,true,true]', outside = '[1]'")
    with pytest.raises(InputError, match="is damaged"):
        store.get(run)


@pytest.mark.parametrize("filler", FILLERS)
def test_an_audit_follows_every_filler(filler):
    found = defection_curves(
        small_federation(FULL), [SHORT, Pledged(**vars(SHORT), passes=1.0)],
        levels=(1, 0.25), trials=1, protocol="P2", filler=filler,
    )  # fmt: skip
    assert found.to_dict()["filler"] == filler
    for one in found.curves:
        assert one.at(0.25).at_end.contributors.trials == 1


def test_runs_with_a_tactic_are_never_taken_for_pilots(tmp_path):
    store = RunStore(tmp_path / "runs.sqlite")
    federation = small_federation(FULL)
    tactic = Tactic((0,), "idle")
    run = Run(federation.fingerprint, SHORT, FULL, 0, 5, tactic=tactic)
    history = make_run(lambda trial: federation, run)
    store.put(run, Outcome.of(history, "v"), history)
    assert store.get(run) is not None
    assert store.kept(federation.fingerprint, trials=range(10)) == []
    honest = dataclasses.replace(run, tactic=None)
    assert store.get(honest) is None


def test_who_trains_alone_goes_on_from_its_own_model():
    federation = small_federation(FULL)
    alone = Solo(rounds=6, batch_size=8, learning_rate=0.02, evaluate_every=3)
    history = train(federation, alone, contributions=(30, 24, 10), seed=5)
    found = let_go_on(federation, alone, history, (2,)).went_on
    client = federation.clients[2]
    own = train(federation.only(2), alone, contributions=(10,), seed=5)
    samples = draw_contribution(client.name, client.points, client.points, seed=5)
    (weights,) = own.checkpoints.values()
    for seen, have in ((found.given, samples[:10]), (found.kept, samples)):
        went = go_on_alone(federation, client, weights, have, alone, seed=5)
        model = federation.model()
        model.load_state_dict({n: torch.as_tensor(np.array(v)) for n, v in went.weights.items()})
        right = is_right(model, client.validation_inputs, client.validation_labels)
        assert seen[2] == right.mean()
