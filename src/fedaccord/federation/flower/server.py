"""Any federated algorithm as a strategy of Flower's.

Who draws how many samples, how the weights move, who leaves, when it ends and how models become
one is decided by the same code as in the local loop. A client is known by its name: if its node
dies its weight is kept, and if it comes back it goes on where it was.
"""

from __future__ import annotations

import dataclasses
import logging
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

from fedaccord._checks import find_closest
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms import base, earned, mw_fed, pledged, release
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower import members
from fedaccord.federation.flower.aggregation import NextModel, find_largest, mean_metrics
from fedaccord.federation.flower.ledger import Ledger
from fedaccord.federation.flower.members import Plan, Requirements
from fedaccord.federation.flower.nodes import Introduction, NodesError, Roster
from fedaccord.federation.flower.protocol import LOG, EvaluateOrder, Order, TrainOrder
from fedaccord.federation.flower.replies import (
    Arrays,
    AttentiveGrid,
    NotFinite,
    Remark,
    Unusable,
    Update,
    match_replies,
    read_evaluation,
    read_update,
)
from fedaccord.federation.flower.withheld import Withheld, to_arrays
from fedaccord.federation.history import History

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
        self.remarks: list[Remark] = []
        self.label_counts: dict[str, tuple[int, ...]] = {}
        self.checkpoints: dict[str, Arrays] = {}
        self.stopped: str | None = None
        self._round = 0
        self._ledger: Ledger | None = None
        self._roster = Roster(
            configrecord_key=self.configrecord_key,
            report=self.ask_for,
            members=self._members,
            deadline=self.node_deadline,
            exacting=self.exacting,
            on_arrival=self._meet,
            on_fault=self._object,
        )
        # Of the round: the model, and that which is measured; who was sent what, how many samples
        # each was allotted, and whether it is evaluated on all points and on the goal test's.
        self._model: Arrays = {}
        self._measured = ArrayRecord()
        self._withheld = Withheld(ArrayRecord())
        self._asked: dict[str, Message] = {}
        self._allotted: dict[str, int] = {}
        self._whole = self._tested = False
        # Whether the algorithm has ended, and only the last accuracies are still to be measured.
        self._over = False
        self._next_model = NextModel(self.algorithm)

    @property
    def history(self) -> History:
        """What happened so far: the same History as of the local loop."""
        return self._book.history(self._model, self.checkpoints)

    @property
    def weights(self) -> dict[str, Any]:
        """The algorithm's weight of each client; of FedAvg and MW-FED as logarithms."""
        return self._book.weights

    @property
    def _book(self) -> Ledger:
        if self._ledger is None:
            raise FedaccordError("nothing has happened yet: start the strategy first")
        return self._ledger

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
        self._begin()
        self.algorithm = dataclasses.replace(self.algorithm, rounds=num_rounds)
        members.check_history_file(self.history_file)

        def evaluate_while_training(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
            # Flower goes through the rounds that are left, in which nothing happens.
            if evaluate_fn is None or (self.stopped is not None and server_round > self._round):
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
            if self._ledger is not None:
                self._save()
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
        self._asked, self._allotted = {}, {}
        if self.stopped is not None or self._over:
            return []
        self._round = server_round
        self._model = to_arrays(arrays)
        if self._ledger is None:
            self._withheld = Withheld(arrays)
            self._ledger = self._enrol(grid)
        nodes: dict[str, int] = {}
        if self.fraction_train > 0:
            nodes = self._select(grid, "train", self.fraction_train, self.min_train_nodes)
            # Who gets no further model may deliver what it owes, on the last one that it got.
            nodes |= self._roster.find_here(self._book.without_model)
            self._allotted = self._book.allot_to(nodes)
        LOG.info("configure_train: %s", {n: self._allotted.get(n, 0) for n in self._book.names})
        orders = {
            name: self._book.train_order(name, count, server_round, report=self.ask_for)
            for name, count in self._allotted.items()
        }
        return self._address(MessageType.TRAIN, nodes, orders, arrays, config)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make one model of the clients', each weighing as the samples it used."""
        if self.stopped is not None or self._over:
            return None, None
        good, faults = self._read(replies, self._read_update)
        losses = {name: update.loss for name, update in good.items()}
        if self._has_diverged(faults):
            # What was drawn was drawn, whatever came of it.
            self._book.note_training(self._allotted, losses)
            self._book.record_divergence()
            self._stop("training diverged: what came back is not finite; lower the learning rate")
            return None, None
        # Where it is one's own, or an audit's, a model that is not finite is what training made.
        finite = not self.exacting and len(self._book.names) > 1
        made = None
        if good:
            if self.algorithm.form == "local":
                good = self._withheld.move(good, self._model)
            made = self._next_model(self._model, good, ledger=self._book, finite=finite)
            if made is None:
                self._remark(*find_largest(good, self._round))
                good, losses = {}, {}
        self._book.note_training({name: u.samples for name, u in good.items()}, losses)
        self._part()
        LOG.info("aggregate_train: %d replies used, %d not", len(good), len(faults))
        if made is None:
            return None, None
        self._model = made
        arrays = ArrayRecord({name: Array(array) for name, array in self._model.items()})
        contents = [update.content for update in good.values()]
        return arrays, mean_metrics(self.train_metrics_aggr_fn, contents, self.weighted_by_key)

    def _part(self) -> None:
        """See who gets no further model since this round, and who gets it again."""
        if not self.algorithm.withholds:
            return
        self._book.part()
        lost, back = self._withheld.part(self._book.without_model)
        if lost:
            LOG.info("from round %d on no model goes to: %s", self._round, ", ".join(lost))
        if back:
            LOG.info("from round %d on the model goes again to: %s", self._round, ", ".join(back))
        self.checkpoints = self._withheld.checkpoints

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Have the clients measure their accuracies, in the rounds in which that is wanted."""
        members.check_config(config, EvaluateOrder)
        self._asked = {}
        if self.stopped is not None:
            return []
        self._whole = self.algorithm.evaluates(server_round - 1) or self._book.ended
        few = self.algorithm.goal_test_points is not None
        self._tested = self.algorithm.tests(server_round - 1) and few and not self._over
        if self.fraction_evaluate == 0 or not (self._whole or self._tested):
            return []
        # What is measured here is what clients may leave with, whatever a subclass made of it.
        self._measured = arrays
        nodes = self._select(grid, "evaluate", self.fraction_evaluate, self.min_evaluate_nodes)
        if self._whole:
            # What it reaches with the model that it keeps is part of the history.
            nodes |= self._roster.find_here(self._book.unmeasured)
        kinds = {"whole": self._whole, "tested": self._tested}
        orders = {name: self._book.evaluate_order(name, server_round, **kinds) for name in nodes}
        return self._address(MessageType.EVALUATE, nodes, orders, arrays, config)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Note the accuracies, let the weights react, and see whether everybody has its goal."""
        if self.stopped is not None:
            return None
        good, faults = self._read(
            replies,
            lambda name, reply: read_evaluation(
                reply, whole=self._whole, tested=self._tested, weighted_by=self.weighted_by_key
            ),
        )
        if self._whole and self._has_diverged(faults):
            self._book.record_divergence()
            self._stop("training diverged: no accuracy can be measured; lower the learning rate")
            return None
        for name in self._book.unmeasured:
            if name in good:
                self._book.keep_accuracy(name, good.pop(name).accuracy)
        leaving = self._book.note_evaluation(
            {name: found.accuracy for name, found in good.items()} if self._whole else None,
            {name: found.tested for name, found in good.items()} if self._tested else None,
        )
        if leaving:
            LOG.info("with the model of round %d leaves: %s", self._round, ", ".join(leaving))
            self.checkpoints |= dict.fromkeys(leaving, to_arrays(self._measured))
        if server_round < self.algorithm.rounds or self._over:
            self._stop_if_done()
        self._save()
        if not good:
            return None
        contents = [measured.content for measured in good.values()]
        return mean_metrics(self.evaluate_metrics_aggr_fn, contents, self.weighted_by_key)

    def _stop_if_done(self) -> None:
        if self.stop_at_goal is not None and self._book.goals_in_a_row >= self.stop_at_goal:
            self._stop("everybody has the accuracy it wants", level=logging.INFO)
        elif self._book.ended:
            self._over = True
            # The test at which it ended may have looked at some points only.
            if self._whole or self.fraction_evaluate == 0:
                name = self.algorithm.name
                self._stop(f"{name} has nothing more to ask of anybody", level=logging.INFO)

    # Who is there.

    def _enrol(self, grid: Grid) -> Ledger:
        """Wait for the members, and open the book with them."""
        least = max(self.min_available_nodes, self.min_train_nodes, self.min_evaluate_nodes)
        clients = self._roster.enrol(grid, least=least)
        quotas = None if self.plan is None else members.round_quotas(self.plan, list(clients))
        algorithm = self.algorithm
        if quotas is not None and not self.exacting:
            # An audit has told the algorithm already what was promised.
            algorithm = algorithm.committed(list(quotas.values()))
            reserves = members.round_reserves(self.plan, list(clients))
            algorithm = algorithm if reserves is None else algorithm.reserving(reserves)
        for name, client in clients.items():
            if client is None:
                self._remark(name, "is not there; training begins without it")
            elif client.label_counts is not None:
                self.label_counts[name] = client.label_counts
        points = {n: None if client is None else client.points for n, client in clients.items()}
        return Ledger(
            algorithm, points, requirements=self.requirements, quotas=quotas, seed=self.seed
        )

    def _meet(self, client: Introduction) -> None:
        """Take in a client that connects, or remark why not."""
        if self._ledger is None:
            if self._members is not None and client.name not in self._members:
                others = find_closest(client.name, self._members)
                meant = f"; the requirements or the plan name {others}" if others else ""
                self._remark(client.name, f"is not a member, and is left out{meant}")
        elif client.name not in self._ledger.names:
            self._remark(client.name, "was not there when training began, and is left out")
        else:
            try:
                self._ledger.learn_points(client.name, client.points)
                if client.label_counts is not None:
                    self.label_counts[client.name] = client.label_counts
            except InputError as error:
                self._remark(client.name, f"cannot train: {error}")

    def _select(self, grid: Grid, purpose: str, fraction: float, least: int) -> dict[str, int]:
        """Select clients among those that are there; none, and the end, if they are too few."""
        # Who has left may go, and is not waited for.
        staying = self._book.staying
        least = min(least, len(staying))
        try:
            wanted = max(self.min_available_nodes, least)
            here = self._roster.find_present(grid, least=wanted, staying=staying)
        except NodesError as error:
            if self.exacting:
                raise
            self._stop(str(error))
            return {}
        count = max(int(len(here) * fraction), least)
        place = (purpose, self._round)
        chosen = members.select_members(self._book.names, here, count, seed=self.seed, place=place)
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
            sent = self._withheld.choose(name, arrays) if self.algorithm.withholds else arrays
            record = RecordDict({self.arrayrecord_key: sent, self.configrecord_key: own})
            self._asked[name] = Message(record, dst_node_id=nodes[name], message_type=kind)
        return list(self._asked.values())

    def _read(
        self, replies: Iterable[Message], read: Callable[[str, Message], Read]
    ) -> tuple[dict[str, Read], dict[str, Unusable]]:
        """Read the replies of all that were asked; what cannot be used is remarked on."""
        found, odd = match_replies(replies, self._asked)
        for sender, text in odd:
            self._remark(sender, f"{text} (round {self._round})")
        good: dict[str, Read] = {}
        faults: dict[str, Unusable] = {}
        for name in self._asked:
            try:
                if name not in found:
                    raise Unusable("no reply came")
                good[name] = read(name, found[name])
            except Unusable as fault:
                faults[name] = fault
                text = f"is left out of round {self._round}: {fault}"
                self._remark(name, text)
                if self.exacting and not isinstance(fault, NotFinite):
                    raise FedaccordError(f"{name} {text}") from None
        return good, faults

    def _read_update(self, name: str, reply: Message) -> Update:
        allotted = self._allotted[name]
        update = read_update(
            reply, self._model, allotted=allotted, weighted_by=self.weighted_by_key
        )
        if update.claimed > allotted:
            self._remark(
                name,
                f"says it used {update.claimed:,} samples in round {self._round} and was allotted "
                f"{allotted:,}; it weighs as {allotted:,}",
            )
        return update

    def _has_diverged(self, faults: Mapping[str, Unusable]) -> bool:
        """Return whether training diverged: of several clients, one may only say so."""
        failed = sum(isinstance(fault, NotFinite) for fault in faults.values())
        if self.exacting:
            return failed > 0
        return failed == len(self._asked) and failed >= min(2, len(self._book.names))

    # What is told.

    def _object(self, client: str, text: str) -> None:
        """Note what is odd about who is there."""
        self._remark(client, text)
        if self.exacting:
            raise FedaccordError(f"{client} {text}")

    def _remark(self, client: str, text: str) -> None:
        sentence = f"{client} {text}"
        self.remarks.append(Remark(self._round, client, sentence))
        LOG.warning(sentence)

    def _stop(self, reason: str, *, level: int = logging.WARNING) -> None:
        self.stopped = reason
        LOG.log(level, "training ends with round %d: %s", self._round, reason)
        self._save()

    def _save(self) -> None:
        if self.history_file is None or not self._book.rounds:
            return
        try:
            self._book.history().save(self.history_file)
        except OSError as error:
            # Not worth losing the training for.
            LOG.warning("the history cannot be written to %s: %s", self.history_file, error)


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
