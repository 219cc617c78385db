"""The controller asks the right sites for the right things, and says what is wrong with replies."""

import json

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs NVFlare (the extra nvflare)")

from federation.nvflare import task
from federation.nvflare.agreement import assert_agree, run_locally
from federation.nvflare.in_process import (
    GOALS,
    LOSS,
    NETWORK,
    InProcessController,
    local_federation,
    sites_of,
)
from numpy.testing import assert_array_equal
from nvflare.apis.dxo import from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import make_reply

from fedaccord import Allocation
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation import Earned, FedAvg, FedProx, MwFed, Pledged, Release, Solo, train
from fedaccord.federation.nvflare import AlgorithmController, load_run
from fedaccord.federation.nvflare.messages import METRICS, VERSION, find_function
from fedaccord.federation.nvflare.versions import check_version

SEED = 5
COMMON = {"batch_size": 5, "learning_rate": 0.03}
PLAN = (8, 10, 40)
PLEDGES = (20, 10, 20)


def by_name(plan):
    return dict(zip(GOALS, plan, strict=True))


def controller_of(algorithm, plan=PLAN, **options):
    given = {"seed": SEED, "ask_for": [LOSS], "node_deadline": 0, **options}
    named = None if plan is None else by_name(plan)
    return InProcessController(algorithm, GOALS, NETWORK, plan=named, **given)


def run_with(folder, algorithm, sites=None, plan=PLAN, **options):
    """Run in this process; return the controller and what was written of the run."""
    controller = controller_of(algorithm, plan, **options)
    sites = sites_of() if sites is None else sites
    panic = controller.run_in(folder, sites)
    assert panic is None, panic
    return controller, load_run(folder)


def fedavg(**options):
    return FedAvg(**{"rounds": 3, "evaluate_every": 1, **COMMON, **options})


# Agreement with the local loop.


@pytest.mark.parametrize(
    "algorithm",
    [
        fedavg(form="pooled", optimizer="sgd"),
        fedavg(form="local", evaluate_every=2),
        MwFed(rounds=5, form="pooled", **COMMON),
        MwFed(rounds=5, form="local", goal_points=20, evaluate_every=3, **COMMON),
        Release(rounds=6, form="local", evaluate_every=1, **COMMON),
        Pledged(rounds=50, passes=2.0, evaluate_every=4, **COMMON),
    ],
    ids=lambda algorithm: f"{algorithm.kind}-{algorithm.form}",
)
def test_rounds_agree_with_the_local_loop(tmp_path, algorithm):
    _, result = run_with(tmp_path, algorithm)
    assert_agree(result.history, run_locally(algorithm.committed(PLAN), PLAN, seed=SEED))


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_who_pledged_more_than_it_has_loses_the_model_in_the_same_round(tmp_path, form):
    algorithm = Earned(rounds=50, passes=2.0, evaluate_every=3, form=form, **COMMON)
    _, result = run_with(tmp_path, algorithm, plan=PLEDGES)
    local = run_locally(algorithm, PLEDGES, seed=SEED, pledges=True)
    assert_agree(result.history, local)
    assert list(local.checkpoints) == ["site-1"]


def test_reserves_are_called_for_who_does_not_deliver(tmp_path):
    algorithm = Earned(rounds=50, passes=2.0, **COMMON)
    plan = Allocation(PLEDGES, list(GOALS), reserve=[0, 14, 20])
    controller = InProcessController(
        algorithm, GOALS, NETWORK, plan=plan, seed=SEED, ask_for=[LOSS], node_deadline=0
    )
    assert controller.run_in(tmp_path, sites_of()) is None
    local = run_locally(algorithm.reserving([0, 14, 20]), PLEDGES, seed=SEED, pledges=True)
    history = load_run(tmp_path).history
    assert_agree(history, local)
    # Without reserves it would end at 10 and 20.
    assert (history.unique[-1, 1:] > [10, 20]).all()


def test_a_site_draws_no_more_than_its_quota(tmp_path):
    _, result = run_with(tmp_path, fedavg(rounds=12), plan=(3, 4, 6))
    assert result.history.unique[-1].tolist() == [3, 4, 6]
    assert result.history.samples.sum(axis=0).tolist() == [60, 60, 60]


def test_training_ends_when_all_have_their_goals(tmp_path):
    goals = dict.fromkeys(GOALS, 0.01)
    controller = InProcessController(fedavg(), goals, NETWORK, stop_at_goal=2, node_deadline=0)
    assert controller.run_in(tmp_path, sites_of()) is None
    result = load_run(tmp_path)
    assert len(result.history.samples) == 2
    assert result.stopped == "every client reaches its goal"


# Who gets which model.


def flat(arrays):
    return np.concatenate([array.ravel() for array in arrays.values()])


def test_a_site_that_stops_delivering_is_sent_no_further_model_until_it_delivers(tmp_path):
    """Site 3 does not reply in rounds 2 and 3, and delivers what it owes in round 4."""
    sites = sites_of()
    sites["site-3"].tamper = lambda kind, n, reply: (
        None if kind == "train" and n in (2, 3) else reply
    )
    algorithm = Earned(rounds=50, passes=4.0, evaluate_every=1, form="local", **COMMON)
    _, result = run_with(tmp_path, algorithm, sites, plan=(8, 10, 20))
    sent = {(kind, n): flat(m) for kind, n, m in sites["site-3"].heard if m}
    others = {(kind, n): flat(m) for kind, n, m in sites["site-2"].heard if m}
    # What it was sent to train in round 2 is the last that it gets.
    assert_array_equal(sent["train", 2], others["train", 2])
    assert ("evaluate", 3) not in sent and ("validate", 3) not in sent
    for n in (3, 4):
        assert_array_equal(sent["train", n], sent["train", 2])
        assert np.abs(others["train", n] - sent["train", n]).max() > 1e-4
    # It delivered, and has the model again.
    assert result.history.samples[1:3, 2].tolist() == [0, 0]
    assert_array_equal(sent["train", 5], others["train", 5])
    assert result.history.checkpoints == {}
    assert [remark.client for remark in result.remarks] == ["site-3", "site-3"]
    assert result.remarks[0].text == "site-3 is left out of round 2: no reply came"


def test_an_old_model_that_comes_back_does_not_pull_the_new_one_back(tmp_path):
    """In round 4 all sites return what they were sent: nothing was learnt, and nothing is lost."""
    sites = sites_of()

    def return_it(site):
        def tamper(kind, n, reply):
            if kind != "train" or n not in (2, 3, 4) or (n < 4 and site.name != "site-3"):
                return reply
            if n < 4:
                return None
            dxo = from_shareable(reply)
            dxo.data = site.heard[-1][-1]
            return dxo.update_shareable(reply)

        return tamper

    for site in sites.values():
        site.tamper = return_it(site)
    algorithm = Earned(rounds=50, passes=4.0, evaluate_every=1, form="local", **COMMON)
    run_with(tmp_path, algorithm, sites, plan=(8, 10, 20))
    sent = {n: flat(m) for kind, n, m in sites["site-2"].heard if kind == "train"}
    old = next(flat(m) for kind, n, m in sites["site-3"].heard if (kind, n) == ("train", 4))
    assert np.abs(old - sent[4]).max() > 1e-3
    np.testing.assert_allclose(sent[5], sent[4], atol=1e-6)


def test_a_site_hears_of_no_other_site(tmp_path):
    seen = []

    class Listening(InProcessController):
        def broadcast(self, task, fl_ctx, targets=None, **options):
            seen.append((targets[0], json.dumps(from_shareable(task.data).meta)))
            super().broadcast(task, fl_ctx, targets, **options)

    controller = Listening(fedavg(), GOALS, NETWORK, plan=by_name(PLAN), node_deadline=0)
    assert controller.run_in(tmp_path, sites_of()) is None
    for target, said in seen:
        assert not [name for name in GOALS if name != target and name in said]


# Who is there.


def test_a_missing_site_ends_the_run_with_a_sentence(tmp_path):
    sites = sites_of(["site-1", "site-3"])
    assert controller_of(fedavg()).run_in(tmp_path, sites) == (
        "2 of 3 sites are there; not connected after 0 seconds: site-2. At least 3 must be there: "
        "start the others, or lower min_clients"
    )
    with pytest.raises(FedaccordError, match="the run failed: 2 of 3 sites are there"):
        load_run(tmp_path)


def test_training_begins_without_a_site_that_may_be_missing(tmp_path):
    sites = sites_of(["site-1", "site-3"])
    _, result = run_with(tmp_path, fedavg(), sites, min_clients=2)
    assert result.history.samples.tolist() == [[5, 0, 5]] * 3
    assert result.remarks[0].text == "site-2 is not there; training begins without it"


def test_a_site_that_leaves_is_not_waited_for_and_one_too_few_ends_the_run(tmp_path):
    sites = sites_of()

    def leave(kind, n, reply):
        sites["site-2"].online = n < 2
        return reply

    sites["site-2"].tamper = leave
    _, result = run_with(tmp_path, fedavg(rounds=4), sites, min_clients=2)
    assert result.history.samples[:, 1].tolist() == [5, 5, 0, 0]
    controller = controller_of(fedavg(rounds=4), min_clients=3)
    sites["site-2"].online = True
    assert controller.run_in(tmp_path, sites) is None
    assert controller.run.stopped == "2 of 3 sites are there; not connected: site-2"


def test_all_that_are_there_take_part_where_none_is_named(tmp_path):
    controller = InProcessController(fedavg(), 0.5, NETWORK, node_deadline=0, seed=SEED)
    assert controller.run_in(tmp_path, sites_of(["site-3", "site-1"])) is None
    assert load_run(tmp_path).history.clients == ("site-1", "site-3")


def test_a_site_with_another_version_cannot_take_part(tmp_path):
    sites = sites_of()

    def outdated(kind, n, reply):
        dxo = from_shareable(reply)
        dxo.meta[VERSION] = "0.0.1"
        return dxo.update_shareable(reply)

    sites["site-2"].tamper = outdated
    panic = controller_of(fedavg()).run_in(tmp_path, sites)
    assert "site-2 cannot take part: it runs fedaccord 0.0.1 and the server" in panic
    assert "install the same version at both" in panic


def test_a_site_that_cannot_take_part_is_asked_for_nothing_else(tmp_path):
    sites = sites_of()
    sites["site-2"].tamper = lambda kind, n, reply: make_reply(ReturnCode.TASK_UNKNOWN)
    _, result = run_with(tmp_path, fedavg(), sites, min_clients=2)
    assert [kind for kind, _, _ in sites["site-2"].heard] == ["introduce"]
    assert result.history.samples[:, 1].sum() == 0
    assert np.isnan(result.history.accuracy[:, 1]).all()
    assert np.isfinite(result.history.accuracy[:, [0, 2]]).all()
    assert "site-2 cannot take part: it reports: it has no executor" in result.remarks[0].text


@pytest.mark.parametrize("version", ["2.8.3", "1.0", "new"])
def test_an_old_nvflare_is_refused(version):
    with pytest.raises(FedaccordError, match=rf"needs NVFlare 2.9 or newer, and this is {version}"):
        check_version(version)
    check_version("2.9.0")
    check_version("2.10.1")
    check_version("3.0.0rc1")
    check_version(None)


def test_a_plan_above_what_a_site_has_ends_the_run(tmp_path):
    panic = controller_of(fedavg(), plan=(9, 10, 40)).run_in(tmp_path, sites_of())
    assert panic == (
        "the plan asks site-1 for 9 samples and it has 8; plan again with a limit of 8 for site-1"
    )


# Replies that cannot be used.


def changed(**parts):
    """Make what puts something else into the arrays or the metrics of a reply to train."""

    def tamper(kind, n, reply):
        if kind != "train":
            return reply
        dxo = from_shareable(reply)
        for what, change in parts.items():
            change(dxo.data if what == "arrays" else dxo.meta[METRICS])
        return dxo.update_shareable(reply)

    return tamper


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (
            changed(arrays=lambda arrays: arrays.pop("2.bias")),
            "its arrays are not those it was sent: 2.bias is on one side only",
        ),
        (
            changed(arrays=lambda arrays: arrays.update(more=np.zeros(3))),
            "its arrays are not those it was sent: more is on one side only",
        ),
        (
            changed(arrays=lambda arrays: arrays.update({"2.bias": np.zeros(4, np.float32)})),
            "2.bias has shape (4,) of <f4 instead of (3,) of <f4",
        ),
        (
            changed(arrays=lambda arrays: arrays.update({"2.bias": np.zeros(3)})),
            "2.bias has shape (3,) of <f8 instead of (3,) of <f4",
        ),
        (changed(arrays=lambda arrays: arrays.update({"2.bias": "abc"})), "2.bias is not an array"),
        (changed(metrics=lambda said: said.clear()), "it does not say its num-examples"),
        (changed(metrics=lambda said: said.update({"num-examples": 0.5})), "which cannot be"),
        (lambda kind, n, reply: None if kind == "train" else reply, "no reply came"),
        (
            lambda kind, n, reply: (
                make_reply(ReturnCode.TASK_UNKNOWN) if kind == "train" else reply
            ),
            "it has no executor of fedaccord's for this task",
        ),
        (
            lambda kind, n, reply: make_reply(ReturnCode.OK) if kind == "train" else reply,
            "its reply cannot be read",
        ),
    ],
)  # fmt: skip
def test_a_reply_that_cannot_be_used_is_left_out_and_named(tmp_path, tamper, words):
    sites = sites_of()
    sites["site-2"].tamper = tamper
    _, result = run_with(tmp_path / "a", fedavg(rounds=1), sites)
    assert result.history.samples.tolist() == [[5, 0, 5]]
    (remark,) = result.remarks
    assert remark.text.startswith("site-2 is left out of round 1: ")
    assert words in remark.text
    panic = controller_of(fedavg(rounds=1), exacting=True).run_in(tmp_path / "b", sites)
    assert words in panic


def test_a_model_that_is_not_finite_is_left_out(tmp_path):
    sites = sites_of()
    sites["site-2"].tamper = changed(arrays=lambda arrays: arrays["2.bias"].fill(np.nan))
    _, result = run_with(tmp_path, fedavg(rounds=1), sites)
    assert "2.bias has values that are not finite" in result.remarks[0].text
    assert all(np.isfinite(w).all() for w in result.history.weights.values())


def test_a_site_weighs_no_more_than_what_it_was_allotted(tmp_path):
    sites = sites_of()
    sites["site-2"].tamper = changed(metrics=lambda said: said.update({"num-examples": 500}))
    _, result = run_with(tmp_path / "a", fedavg(rounds=1), sites)
    honest = run_with(tmp_path / "b", fedavg(rounds=1))[1]
    assert_array_equal(flat(result.history.weights), flat(honest.history.weights))
    assert "says it used 500 samples in round 1 and was allotted 5" in result.remarks[0].text


def test_nvflare_can_end_the_job(tmp_path):
    sites = sites_of()
    controller = controller_of(fedavg(rounds=9), min_clients=3, node_deadline=60)

    def leave(kind, n, reply):
        sites["site-1"].online = n < 3
        if n == 3:
            controller.signal.trigger(True)
        return reply

    sites["site-1"].tamper = leave
    assert controller.run_in(tmp_path, sites) is None
    with pytest.raises(FedaccordError, match="NVFlare ended the job before the run was over"):
        load_run(tmp_path)


# Settings.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": Solo()}, "clients that learn alone need no server"),
        ({"algorithm": FedProx(form="local")}, "needs what sites do not send under NVFlare"),
        ({"algorithm": {}}, "algorithm must be one such as MwFed"),
        ({"algorithm": {"kind": "fedawg"}}, "fedavg"),
        ({"algorithm": fedavg(form="pooled", local_batches=2)}, "a round with remote clients"),
        ({"requirements": {"a": 2}}, "requirement of a must be an accuracy"),
        ({"plan": {"a": 3}}, "no contribution"),
        ({"seed": -1}, "zero or more"),
        (
            {"min_clients": 4},
            "at least 4 sites must take part, but the requirements or the plan name 3",
        ),
        ({"min_clients": 0}, "min_clients must be"),
        ({"timeout": 0}, "timeout must be"),
        ({"folder": "a/b"}, "folder must be the name of one folder"),
        ({"ask_for": ["raw-data"]}, "train-loss and label-counts"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused(options, words):
    given = {"algorithm": fedavg(), "requirements": GOALS, "model": NETWORK, **options}
    with pytest.raises(InputError, match=words):
        AlgorithmController(**given)


def test_a_model_that_cannot_be_imported_ends_the_run(tmp_path):
    controller = InProcessController(fedavg(), GOALS, "nowhere:Net", node_deadline=0)
    panic = controller.run_in(tmp_path, sites_of())
    assert "model is nowhere:Net, which cannot be imported" in panic
    with pytest.raises(InputError, match="such as \"task:Net\"; got 'Net'"):
        find_function("Net", "model")


def test_the_settings_of_a_job_are_those_of_its_controller(tmp_path):
    """NVFlare writes a component as JSON, by its attributes, and makes it again at the server."""
    plan = Allocation(PLEDGES, list(GOALS), reserve=[0, 14, 20])
    first = AlgorithmController(
        Earned(rounds=50, passes=2.0, commitment=PLEDGES, **COMMON),
        GOALS,
        NETWORK,
        plan=plan,
        seed=3,
    )
    names = ("algorithm", "requirements", "model", "plan", "seed", "ask_for", "folder")
    written = json.loads(json.dumps({name: getattr(first, name) for name in names}))
    second = AlgorithmController(**written)
    assert second.run.terms == first.run.terms


def test_the_first_model_is_that_of_the_local_loop(tmp_path):
    sites = sites_of()
    run_with(tmp_path, fedavg(rounds=1), sites)
    begun = next(flat(model) for kind, _, model in sites["site-1"].heard if kind == "train")
    slow = train(local_federation(), fedavg(rounds=1, learning_rate=1e-12), seed=SEED)
    np.testing.assert_allclose(begun, flat(slow.weights), atol=1e-9)
    assert begun.size == sum(p.numel() for p in task.make_network().parameters())
