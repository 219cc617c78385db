"""Any federated algorithm as a strategy of Flower's.

A client is known by its name: if its node dies its weight is kept, and if it comes back it goes on
where it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.serverapp import Grid
from flwr.serverapp import strategy as flwr_strategy
from flwr.serverapp.strategy import Result

from fedaccord.errors import InputError
from fedaccord.federation.algorithms import base, earned, mw_fed, pledged, release
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower.nodes import NodesError, Roster
from fedaccord.federation.flower.protocol import LOG
from fedaccord.federation.flower.replies import (
    AttentiveGrid,
    match_replies,
    mean_metrics,
    read_evaluation,
    read_update,
    to_arrays,
)
from fedaccord.federation.history import History
from fedaccord.federation.remote import members
from fedaccord.federation.remote.members import Plan, Requirements
from fedaccord.federation.remote.protocol import EvaluateOrder, Order, TrainOrder
from fedaccord.federation.remote.replies import Arrays, Remark, Unusable, Update
from fedaccord.federation.remote.rounds import Rounds, Terms

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
Read = TypeVar("Read")


class AlgorithmStrategy(flwr_strategy.FedAvg):
    """Run an algorithm of fedaccord's under Flower.

    These attributes are set while `start` runs, and stay after it:

        history       what happened, round by round and client by client
        weights       how much each client weighs
        remarks       which replies were dropped, and why
        label_counts  how many samples of each class the clients have, if requested and allowed
        checkpoints   the arrays with which clients left before the end
        stopped       why training ended before its last round; None if it did not

    requirements: the accuracy that each client wants, mu: one for all, or by name. Names are then
        the members: other clients are left out, and absent members are waited for.
    algorithm: how much each client draws. Instead, you can give settings of a subclass's own kind,
        such as batch_size. The accuracy of a client that does not report in a round is NaN to
        `weights`.
    plan: the most different samples to draw from each client: an Allocation, its file (JSON or
        CSV), or numbers by name, rounded up; all samples where left out.
    stop_at_goal: at how many evaluations in a row all clients must reach their goals for training
        to end there; None for all rounds. A client that does not report has not reached its goal.
    seed: of the draws, and of the selection of clients if not all are selected.
    node_deadline: how many seconds to wait for absent clients, before the first round and in any
        other. For replies of clients that are there, `start` has a timeout.
    history_file: a CSV file that is rewritten after each round.
    ask_for: what else clients should report, if their apps allow it: "train-loss",
        "label-counts".
    exacting: whether an absent member, or a reply that cannot be used, ends the run, as an audit
        needs it.
    settings: of the algorithm, and keyword arguments of Flower's FedAvg.
    """

    kind: ClassVar[type[Algorithm]] = Algorithm

    def __init__(
        self,
        *,
        requirements: Requirements,
        algorithm: Algorithm | None = None,
        plan: Plan | None = None,
        stop_at_goal: int | None = None,
        seed: int = 0,
        node_deadline: float = 600.0,
        history_file: str | Path | None = None,
        ask_for: Sequence[str] = (),
        exacting: bool = False,
        **settings: Any,
    ) -> None:
        own = {f.name for f in dataclasses.fields(self.kind)} - {"rounds"}
        super().__init__(**{key: value for key, value in settings.items() if key not in own})
        chosen = {key: value for key, value in settings.items() if key in own}
        self.algorithm = members.choose_algorithm(self.kind, algorithm, chosen)
        if self.algorithm.tests_goal and self.fraction_evaluate == 0:
            raise InputError(
                f"{self.algorithm.name} needs the clients' accuracies: set fraction_evaluate "
                "above 0"
            )
        members.check_selection(self.algorithm, self.fraction_train)
        members.check_options(stop_at_goal, node_deadline, ask_for, seed)
        self.requirements = requirements
        self.plan = members.read_plan(plan)
        self.stop_at_goal = stop_at_goal
        self.seed = seed
        self.node_deadline = node_deadline
        self.history_file = history_file
        self.ask_for = tuple(ask_for)
        self.exacting = exacting
        self._members = members.name_members(requirements, self.plan)
        self._begin()

    def _begin(self) -> None:
        terms = Terms(
            algorithm=self.algorithm,
            requirements=self.requirements,
            plan=self.plan,
            stop_at_goal=self.stop_at_goal,
            seed=self.seed,
            history_file=self.history_file,
            ask_for=self.ask_for,
            exacting=self.exacting,
            measures=self.fraction_evaluate > 0,
        )
        self._run: Rounds[ArrayRecord] = Rounds(terms, to_arrays=to_arrays, log=LOG)
        self._roster = Roster(
            configrecord_key=self.configrecord_key,
            report=self.ask_for,
            members=self._members,
            deadline=self.node_deadline,
            exacting=self.exacting,
            on_arrival=lambda client: self._run.meet(client, self._members),
            on_fault=self._run.object,
        )
        # Who was sent what.
        self._asked: dict[str, Message] = {}

    @property
    def history(self) -> History:
        """What happened so far: the same History as of the local loop."""
        return self._run.history

    @property
    def weights(self) -> dict[str, Any]:
        """The algorithm's weight of each client; of FedAvg and MW-FED as logarithms."""
        return self._run.book.weights

    @property
    def remarks(self) -> list[Remark]:
        """Which replies were dropped, and why."""
        return self._run.remarks

    @property
    def label_counts(self) -> dict[str, tuple[int, ...]]:
        """How many samples of each class the clients have, if requested and allowed."""
        return self._run.label_counts

    @property
    def checkpoints(self) -> dict[str, Arrays]:
        """The arrays with which clients left before the end."""
        return self._run.checkpoints

    @property
    def stopped(self) -> str | None:
        """Why training ended before its last round; None if it did not."""
        return self._run.stopped

    # Flower's protocol.

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFunction | None = None,
    ) -> Result:
        """Train for a number of rounds; see Flower's FedAvg for the arguments."""
        self.algorithm = dataclasses.replace(self.algorithm, rounds=num_rounds)
        self._begin()
        members.check_history_file(self.history_file)

        def evaluate_while_training(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
            # Flower goes through the rounds that are left, in which nothing happens.
            if evaluate_fn is None or (
                self.stopped is not None and server_round > self._run.number
            ):
                return None
            return evaluate_fn(server_round, arrays)

        try:
            result = super().start(
                cast(Grid, AttentiveGrid(grid)),
                initial_arrays,
                num_rounds,
                timeout,
                train_config,
                evaluate_config,
                None if evaluate_fn is None else evaluate_while_training,
            )
        finally:
            # Whatever ended it, what happened so far is kept.
            self._run.save()
        if not result.arrays:
            # No round had a reply that could be used.
            result.arrays = initial_arrays
        return result

    def summary(self) -> None:
        """Log the settings."""
        super().summary()
        settings = {k: v for k, v in self.algorithm.to_dict().items() if k != "code"}
        LOG.info("\t└──> %s: %s", self.algorithm.name, settings)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send each selected client the model, and how many samples it is to draw."""
        members.check_config(config, TrainOrder)
        self._asked = {}
        run = self._run
        if run.stopped is not None or run.is_over:
            return []
        run.begin(server_round, arrays)
        if run.ledger is None:
            least = max(self.min_available_nodes, self.min_train_nodes, self.min_evaluate_nodes)
            run.enrol(self._roster.enrol(grid, least=least))
        nodes: dict[str, int] = {}
        if self.fraction_train > 0:
            nodes = self._select(grid, "train", self.fraction_train, self.min_train_nodes)
            # Who gets no further model may deliver what it owes, on the last one that it got.
            nodes |= self._roster.find_here(run.book.without_model)
        return self._address(MessageType.TRAIN, nodes, run.order_training(nodes), arrays, config)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make one model of the clients', each weighing as the samples it used."""
        run = self._run
        if run.stopped is not None or run.is_over:
            return None, None
        used = run.take_updates(*self._read(replies, self._read_update))
        if not used:
            return None, None
        arrays = ArrayRecord({name: Array(array) for name, array in run.model.items()})
        contents = [update.content for update in used.values()]
        return arrays, mean_metrics(self.train_metrics_aggr_fn, contents, self.weighted_by_key)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Have the clients measure their accuracies, in the rounds in which that is wanted."""
        members.check_config(config, EvaluateOrder)
        self._asked = {}
        run = self._run
        if run.stopped is not None or not run.prepare_evaluation(server_round):
            return []
        nodes = self._select(grid, "evaluate", self.fraction_evaluate, self.min_evaluate_nodes)
        if run.measures_all:
            # What it reaches with the model that it keeps is part of the history.
            nodes |= self._roster.find_here(run.book.unmeasured)
        # What is measured here is what clients may leave with, whatever a subclass made of it.
        orders = run.order_evaluation(nodes, arrays)
        return self._address(MessageType.EVALUATE, nodes, orders, arrays, config)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Note the accuracies, let the weights react, and see whether everybody has its goal."""
        run = self._run
        if run.stopped is not None:
            return None
        good, faults = self._read(
            replies,
            lambda name, reply: read_evaluation(
                reply,
                whole=run.measures_all,
                tested=run.tests_goal,
                weighted_by=self.weighted_by_key,
            ),
        )
        good = run.take_evaluations(good, faults)
        if not good:
            return None
        contents = [measured.content for measured in good.values()]
        return mean_metrics(self.evaluate_metrics_aggr_fn, contents, self.weighted_by_key)

    def _select(self, grid: Grid, purpose: str, fraction: float, least: int) -> dict[str, int]:
        """Select clients among those that are there; none, and the end, if they are too few."""
        # Who has left may go, and is not waited for.
        book = self._run.book
        least = min(least, len(book.staying))
        try:
            wanted = max(self.min_available_nodes, least)
            here = self._roster.find_present(grid, least=wanted, staying=book.staying)
        except NodesError as error:
            if self.exacting:
                raise
            self._run.stop(str(error))
            return {}
        count = max(int(len(here) * fraction), least)
        place = (purpose, self._run.number)
        chosen = members.select_members(book.names, here, count, seed=self.seed, place=place)
        return {name: here[name] for name in chosen}

    # What is said and heard.

    def _address(
        self,
        kind: str,
        nodes: Mapping[str, int],
        orders: Mapping[str, Order],
        arrays: ArrayRecord,
        config: ConfigRecord,
    ) -> list[Message]:
        for name, order in orders.items():
            # A config of its own for each: what is set in one must not be set in all.
            own = ConfigRecord({**config, **order.to_config()})
            sent = self._run.choose_model(name, arrays)
            record = RecordDict({self.arrayrecord_key: sent, self.configrecord_key: own})
            self._asked[name] = Message(record, dst_node_id=nodes[name], message_type=kind)
        return list(self._asked.values())

    def _read(
        self, replies: Iterable[Message], read: Callable[[str, Message], Read]
    ) -> tuple[dict[str, Read], dict[str, Unusable]]:
        found, odd = match_replies(replies, self._asked)
        for sender, text in odd:
            self._run.remark(sender, f"{text} (round {self._run.number})")

        def read_one(name: str) -> Read:
            if name not in found:
                raise Unusable("no reply came")
            return read(name, found[name])

        return self._run.read(self._asked, read_one)

    def _read_update(self, name: str, reply: Message) -> Update:
        return read_update(
            reply,
            self._run.model,
            allotted=self._run.allotted_to(name),
            weighted_by=self.weighted_by_key,
        )


class FedAvg(AlgorithmStrategy):
    """Federated averaging with equal samples for all, as in the local loop."""

    kind = base.FedAvg


class MwFed(AlgorithmStrategy):
    """MW-FED: who is short of its goal draws more.

    Its own settings are factor, counts and goal_points; see `fedaccord.federation.MwFed`.
    """

    kind = mw_fed.MwFed


class Pledged(AlgorithmStrategy):
    """Training lasts as long as what its members have pledged: the plan, or all their points.

    Its own settings are passes, ends and stop_after; see `fedaccord.federation.Pledged`. Let there
    be rounds enough: it ends by itself.
    """

    kind = pledged.Pledged


class Earned(AlgorithmStrategy):
    """The model goes to clients that deliver what they pledged: the plan, or all their samples.

    Its own settings are passes, fresh_by, grace, patience, reserve and stop_after; see
    `fedaccord.federation.Earned`. The plan may have reserves. A client that does not deliver is
    sent no further model, neither to train nor to evaluate: `checkpoints` has the last that it was
    sent. If it comes back, it must first deliver what it owes, with that model; then it gets the
    current one.
    """

    kind = earned.Earned


class Release(AlgorithmStrategy):
    """Who has its accuracy at some evaluations in a row leaves with the model as it is then.

    Its own settings are factor and evaluations; see `fedaccord.federation.Release`. What clients
    left with is in `checkpoints`, by name.
    """

    kind = release.Release


class PlannedFedAvg(AlgorithmStrategy):
    """Train on a plan: no more different samples are drawn from a client than its quota.

    Training ends as soon as all clients reach their goals, unless stop_at_goal is None.
    """

    kind = base.FedAvg

    def __init__(
        self,
        plan: Plan,
        *,
        requirements: Requirements,
        stop_at_goal: int | None = 1,
        **settings: Any,
    ) -> None:
        super().__init__(
            requirements=requirements, plan=plan, stop_at_goal=stop_at_goal, **settings
        )
