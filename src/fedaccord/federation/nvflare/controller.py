"""Any federated algorithm as a controller of NVFlare's."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from fedaccord._checks import check_whole
from fedaccord.allocation import Allocation
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.config.load import read_algorithms
from fedaccord.federation.nvflare import messages
from fedaccord.federation.nvflare.results import prepare_folder, save_run
from fedaccord.federation.remote import members
from fedaccord.federation.remote.members import Plan, Requirements
from fedaccord.federation.remote.protocol import REPORT, Order
from fedaccord.federation.remote.replies import Arrays, Introduction, Unusable
from fedaccord.federation.remote.rounds import Rounds, Terms, same_arrays
from fedaccord.federation.training.loop import copy_weights, reproducibly

# Seconds between two looks at whether a task is done, or a site is there.
LOOK = 0.05


class Aborted(Exception):
    """NVFlare ends the job."""


class AlgorithmController(Controller):  # type: ignore[misc]
    """Run an algorithm of fedaccord's under NVFlare.

    A client is known by its site's name. When the run ends, what happened is in a folder of the
    server's run: `load_run` reads it.

    algorithm: how much each site draws: an Algorithm, or its settings with its kind.
    requirements: the accuracy that each site wants: one for all, or by name. Names are then the
        members: other sites are left out, and absent members are waited for.
    model: the module and name of what makes the network, such as "task:Net".
    plan: the most different samples to draw from each site: an Allocation, its file (JSON or CSV),
        or numbers by name, rounded up; all samples where left out.
    stop_at_goal: at how many evaluations in a row all sites must reach their goals for training to
        end there; None for all rounds.
    seed: of the first model and of the draws.
    min_clients: how many members must be there; all of them where left out.
    node_deadline: how many seconds to wait for absent sites, before the first round and in any
        other.
    timeout: how many seconds a site has for a task.
    ask_for: what else sites should report, if their executors allow it: "train-loss",
        "label-counts".
    exacting: whether an absent member, or a reply that cannot be used, ends the run.
    folder: where in the server's run folder to write what happened.
    """

    def __init__(
        self,
        algorithm: Algorithm | Mapping[str, Any],
        requirements: Requirements,
        model: str,
        plan: Plan | None = None,
        stop_at_goal: int | None = None,
        seed: int = 0,
        min_clients: int | None = None,
        node_deadline: float = 600.0,
        timeout: int = 3600,
        ask_for: Sequence[str] = (),
        exacting: bool = False,
        folder: str = "fedaccord",
    ) -> None:
        super().__init__(task_check_period=LOOK)
        members.check_options(stop_at_goal, node_deadline, ask_for, seed)
        check_whole("timeout", timeout)
        if min_clients is not None:
            check_whole("min_clients", min_clients)
        if not folder or Path(folder).name != folder:
            raise InputError(f"folder must be the name of one folder; got {folder!r}")
        terms = Terms(
            algorithm=read_algorithm(algorithm),
            requirements=requirements,
            plan=_read_plan(plan),
            stop_at_goal=stop_at_goal,
            seed=seed,
            ask_for=tuple(ask_for),
            exacting=exacting,
        )
        self.members = members.name_members(requirements, terms.plan)
        if min_clients is not None and self.members is not None and min_clients > len(self.members):
            raise InputError(
                f"at least {min_clients} sites must take part, but the requirements or the plan "
                f"name {len(self.members)}; lower min_clients"
            )
        self.run: Rounds[Arrays] = Rounds(terms, to_arrays=same_arrays, log=self.logger)
        self._known: list[str] = []
        # NVFlare writes a job by the attributes that are named like the arguments.
        self.algorithm = terms.algorithm.to_dict()
        self.requirements = requirements
        self.model = model
        self.plan = None if terms.plan is None else terms.plan.to_dict()
        self.stop_at_goal = stop_at_goal
        self.seed = seed
        self.min_clients = min_clients
        self.node_deadline = node_deadline
        self.timeout = timeout
        self.ask_for = list(ask_for)
        self.exacting = exacting
        self.folder = folder

    # NVFlare's protocol.

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing before the run."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing after the run."""

    def process_result_of_unknown_task(
        self,
        client: Client,
        task_name: str,
        client_task_id: str,
        result: Shareable,
        fl_ctx: FLContext,
    ) -> None:
        """Drop a reply that came too late."""
        self.run.remark(client.name, f"replied too late to {task_name}; the reply is dropped")

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Train, and write what happened, whatever ends it."""
        fault = None
        self.run.keep_in(prepare_folder(self._run_folder(fl_ctx)))
        try:
            self._train(abort_signal, fl_ctx)
        except Aborted:
            fault = "NVFlare ended the job before the run was over"
        except FedaccordError as error:
            fault = str(error)
            self.system_panic(fault, fl_ctx)
        save_run(self._run_folder(fl_ctx), self.run, fault)

    def _run_folder(self, fl_ctx: FLContext) -> Path:
        workspace = fl_ctx.get_engine().get_workspace()
        return Path(workspace.get_run_dir(fl_ctx.get_job_id())) / self.folder

    def _train(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        run = self.run
        with reproducibly(self.seed):
            first = copy_weights(messages.find_function(self.model, "model")())
        run.begin(1, first)
        run.enrol(self._introduce(abort_signal, fl_ctx))
        for number in range(1, run.algorithm.rounds + 1):
            if run.stopped is None and not run.is_over:
                run.begin(number, run.model)
                self._train_round(abort_signal, fl_ctx)
            if run.stopped is None:
                self._evaluate(number, abort_signal, fl_ctx)

    def _train_round(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        run, model = self.run, self.run.model
        here = self._find_present(abort_signal, fl_ctx)
        if run.stopped is not None:
            return
        orders = run.order_training(here)
        replies = self._ask(messages.TRAIN, orders, model, abort_signal, fl_ctx)
        good, faults = run.read(
            orders,
            lambda name: messages.read_update(
                replies.get(name), model, allotted=run.allotted_to(name)
            ),
        )
        run.take_updates(good, faults)

    def _evaluate(self, number: int, abort_signal: Signal, fl_ctx: FLContext) -> None:
        run, names = self.run, []
        if run.prepare_evaluation(number):
            # What a site reaches with the model that it keeps is part of the history.
            wanted = {*run.book.staying, *(run.book.unmeasured if run.measures_all else ())}
            names = [n for n in self._find_present(abort_signal, fl_ctx) if n in wanted]
            if run.stopped is not None:
                return
        model = run.model
        orders = run.order_evaluation(names, model)
        replies = self._ask(messages.EVALUATE, orders, model, abort_signal, fl_ctx)
        good, faults = run.read(
            orders,
            lambda name: messages.read_evaluation(
                replies.get(name), whole=run.measures_all, tested=run.tests_goal
            ),
        )
        run.take_evaluations(good, faults)

    # Who is there.

    def _introduce(self, abort_signal: Signal, fl_ctx: FLContext) -> dict[str, Introduction | None]:
        """Wait for the members; return what each says of itself, None for who is not there."""
        least = self.min_clients or (1 if self.members is None else len(self.members))
        wanted = least if self.members is None else len(self.members)
        here = self._wait(wanted, self.members, abort_signal, fl_ctx)
        config = {REPORT: ",".join(self.ask_for)}
        asked = {name: messages.write_order(config) for name in here}
        replies = self._send(messages.INTRODUCE, asked, abort_signal, fl_ctx)
        known: dict[str, Introduction] = {}
        reasons = {}
        for name in here:
            try:
                known[name] = messages.read_introduction(name, replies.get(name))
            except Unusable as reason:
                reasons[name] = f"cannot take part: {reason}"
                self.run.object(name, reasons[name])
            else:
                self.run.meet(known[name], self.members)
        names = members.sort_names(known) if self.members is None else self.members
        usable = [name for name in names if name in known]
        if len(usable) < least:
            raise FedaccordError(self._explain_lack(usable, names, reasons, max(least, 1)))
        # A site that cannot take part is asked for nothing else.
        self._known = usable
        return {name: known.get(name) for name in names}

    def _explain_lack(
        self, usable: Sequence[str], names: Sequence[str], reasons: Mapping[str, str], least: int
    ) -> str:
        away = [name for name in names if name not in usable and name not in reasons]
        parts = [f"{len(usable)} of {max(len(names), least)} sites are there"]
        if away:
            late = f"after {self.node_deadline:g} seconds"
            parts.append(f"not connected {late}: {', '.join(away)}")
        parts += [f"{name} {text}" for name, text in reasons.items() if name in names or not names]
        return (
            f"{'; '.join(parts)}. At least {least} must be there: start the others, or lower "
            "min_clients"
        )

    def _find_present(self, abort_signal: Signal, fl_ctx: FLContext) -> list[str]:
        """Return the members that take part and are there, waiting for as many as are needed."""
        staying = [name for name in self.run.book.staying if name in self._known]
        least = len(staying) if self.exacting else min(self.min_clients or 1, len(staying))
        here = self._wait(least, staying, abort_signal, fl_ctx)
        if len(here) < least:
            away = ", ".join(name for name in staying if name not in here)
            reason = f"{len(here)} of {len(staying)} sites are there; not connected: {away}"
            if self.exacting:
                raise FedaccordError(reason)
            self.run.stop(reason)
        return self._wait(0, self._known, abort_signal, fl_ctx)

    def _wait(
        self,
        wanted: int,
        names: Collection[str] | None,
        abort_signal: Signal,
        fl_ctx: FLContext,
    ) -> list[str]:
        """Return the sites that are there, once they are enough or time is up."""
        end = time.monotonic() + self.node_deadline
        while True:
            every = [client.name for client in fl_ctx.get_engine().get_clients()]
            here = every if names is None else [name for name in names if name in every]
            if len(here) >= wanted or time.monotonic() >= end:
                return here
            _pause(abort_signal)

    # What is said and heard.

    def _ask(
        self,
        task: str,
        orders: Mapping[str, Order],
        model: Arrays,
        abort_signal: Signal,
        fl_ctx: FLContext,
    ) -> dict[str, Shareable]:
        """Send each site its order and its model, and return what came back."""
        asked = {
            name: messages.write_order(order.to_config(), self.run.choose_model(name, model))
            for name, order in orders.items()
        }
        return self._send(task, asked, abort_signal, fl_ctx)

    def _send(
        self, task: str, asked: Mapping[str, Shareable], abort_signal: Signal, fl_ctx: FLContext
    ) -> dict[str, Shareable]:
        """Send a task of its own to each site, and wait for the replies."""
        replies: dict[str, Shareable] = {}

        def note_in(name: str) -> Callable[[ClientTask, FLContext], None]:
            # NVFlare calls it by the names of its arguments.
            def note(client_task: ClientTask, fl_ctx: FLContext) -> None:
                replies[name] = client_task.result

            return note

        tasks = []
        for name, content in asked.items():
            one = Task(
                name=task, data=content, timeout=self.timeout, result_received_cb=note_in(name)
            )
            self.broadcast(one, fl_ctx, targets=[name], min_responses=1)
            tasks.append(one)
        while any(one.completion_status is None for one in tasks):
            _pause(abort_signal)
        return replies


def read_algorithm(given: Algorithm | Mapping[str, Any]) -> Algorithm:
    """Return the algorithm to run, or say why it cannot run here.

    given: the algorithm, or its settings with its kind.
    """
    if not isinstance(given, Algorithm):
        if "kind" not in given:
            raise InputError(f"algorithm must be one such as MwFed(); got {given!r}")
        given = read_algorithms({str(given["kind"]): dict(given)}, {})[str(given["kind"])]
    if not given.runs_anywhere:
        raise InputError(
            f"{given.name} needs what sites do not send under NVFlare: their losses, or models of "
            "their own"
        )
    # Only its settings travel to the server.
    read_algorithms({given.kind: given.to_dict()}, {})
    return members.choose_algorithm(Algorithm, given, {})


def _read_plan(plan: Plan | None) -> Allocation | None:
    """Read a plan in whatever form it is given, or as a job holds it."""
    if isinstance(plan, Mapping) and isinstance(plan.get("contributions"), list):
        values: Any = plan
        return Allocation(
            values["contributions"], values.get("agents"), reserve=values.get("reserve")
        )
    return members.read_plan(plan)


def _pause(abort_signal: Signal) -> None:
    if abort_signal.triggered:
        raise Aborted
    time.sleep(LOOK)
