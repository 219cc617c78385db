"""The federated algorithms as strategies of Flower's.

Each is a FedAvg of Flower's with the same keyword arguments, and drops into a ServerApp:

    strategy = MwFed(requirements=0.8, batch_size=8)
    result = strategy.start(grid, initial_arrays, num_rounds=40)
    strategy.history.satisfied

Who draws how many samples, how the weights move and how models become one is decided by the same
code as in the local loop. A client is known by its name: if its node dies its weight is kept, and
if it comes back it goes on where it was.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
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

from fedaccord._lazy import imported
from fedaccord.allocation import Allocation
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation import algorithms
from fedaccord.federation.algorithms import Algorithm
from fedaccord.federation.flower import protocol
from fedaccord.federation.flower.ledger import Ledger, Requirements, whole_quotas
from fedaccord.federation.flower.nodes import Introduction, Nodes, NodesError, listed, wait_for
from fedaccord.federation.flower.protocol import LOG, EvaluateOrder, Order, TrainOrder
from fedaccord.federation.flower.replies import (
    Arrays,
    NotFinite,
    Unusable,
    Update,
    by_client,
    read_measured,
    read_update,
)
from fedaccord.federation.history import History
from fedaccord.federation.streams import stream

Plan = Allocation | Mapping[str, float] | str | Path


@dataclasses.dataclass(frozen=True)
class Remark:
    """Something a coordinator should know of a client.

    round: in which round; 0 before the first.
    client: its name.
    text: what happened, as a sentence that begins with the name.
    """

    round: int
    client: str
    text: str


class AlgorithmStrategy(flwr_strategy.FedAvg):
    """Run an algorithm of fedaccord's under Flower.

    requirements: the accuracy that each client wants, mu: one for all, or by name. Names are then
        the members: whoever else connects is left out, and who is not there is waited for.
    algorithm: who draws how much; the settings of a subclass's own kind may be given instead, such
        as batch_size.
    plan: how many different points each client is asked for, at most: an Allocation, its file
        (JSON or CSV), or numbers by name, rounded up; all it has where left out.
    stop_at_goal: at how many evaluations in a row everybody must have its accuracy for training to
        end there; None for all rounds.
    seed: of the draws, and of which clients are selected where not all are.
    node_deadline: how many seconds to wait for clients, before the first round and in any other.
    history_file: a CSV that is written anew after each round.
    ask_for: what clients are to report besides, if their apps allow it: "train-loss",
        "label-counts".
    exacting: whether a reply that cannot be used ends the run, as an audit needs it.
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
        flower = {key: value for key, value in settings.items() if key not in own}
        super().__init__(**flower)
        chosen = {key: value for key, value in settings.items() if key in own}
        if algorithm is not None and chosen:
            raise InputError(f"{min(chosen)} is a setting of the algorithm, which is given whole")
        self.algorithm = algorithm or self.kind(**{"form": "local", "evaluate_every": 1, **chosen})
        if self.algorithm.form == "pooled" and self.algorithm.local_batches > 1:
            raise InputError(
                "in the pooled form a round under Flower is one step: set local_batches to 1, or "
                'form to "local"'
            )
        _check_options(stop_at_goal, node_deadline, ask_for)
        # Refuses a seed that is none; records hold no larger one.
        stream(seed, "selection")
        if seed > protocol.LARGEST:
            raise InputError(f"a seed under Flower must be below 2**63; got {seed}")
        self.requirements = requirements
        self.plan = _read_plan(plan)
        self.stop_at_goal = stop_at_goal
        self.seed = seed
        self.node_deadline = node_deadline
        self.history_file = history_file
        self.ask_for = tuple(ask_for)
        self.exacting = exacting
        self._begin()

    def _begin(self) -> None:
        self.remarks: list[Remark] = []
        self.label_counts: dict[str, tuple[int, ...]] = {}
        # Why training ended before its last round, None if it did not.
        self.stopped: str | None = None
        self._round = 0
        self._timeout = 3600.0
        self._ledger: Ledger | None = None
        self._introduced: dict[str, int] = {}
        self._nodes = Nodes(
            configrecord_key=self.configrecord_key,
            report=self.ask_for,
            met=self._meet,
            told=self._remark,
        )
        self._asked: dict[str, Message] = {}
        self._allotted: dict[str, int] = {}
        self._sent: Arrays = {}
        self._whole = self._tested = False
        self._in_a_row = 0
        self._server_step: Any = None

    # What users look at.

    @property
    def history(self) -> History:
        """What happened so far: the same History as of the local loop."""
        return self._book.history(self._sent)

    @property
    def weights(self) -> dict[str, Any]:
        """The algorithm's weight of each client; of FedAvg and MW-FED as logarithms."""
        return dict(zip(self._book.names, self._book.state, strict=True))

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
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Train for so many rounds; see Flower's FedAvg for the arguments."""
        self._begin()
        self.algorithm = dataclasses.replace(self.algorithm, rounds=num_rounds)
        self._timeout = timeout
        return super().start(
            grid, initial_arrays, num_rounds, timeout, train_config, evaluate_config, evaluate_fn
        )

    def summary(self) -> None:
        """Log the settings."""
        super().summary()
        settings = {k: v for k, v in self.algorithm.to_dict().items() if k != "code"}
        LOG.info("\t└──> %s: %s", self.algorithm.name, settings)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send each selected client the model, and how many samples it is to draw."""
        self._asked, self._allotted, self._round = {}, {}, server_round
        self._sent = {name: array.numpy() for name, array in arrays.items()}
        if self.stopped is not None or self.fraction_train == 0:
            return []
        if self._ledger is None:
            self._enrol(grid)
        nodes = self._available(grid, self.fraction_train, self.min_train_nodes)
        chosen = self._selected(nodes, self.fraction_train, self.min_train_nodes, "train")
        self._allotted = self._book.allot(chosen)
        for name, count in self._allotted.items():
            order = self._train_order(name, count)
            self._asked[name] = self._message(MessageType.TRAIN, nodes[name], arrays, config, order)
        LOG.info("configure_train: %s", {n: self._allotted.get(n, 0) for n in self._book.names})
        return list(self._asked.values())

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make one model of the clients', each weighing as the samples it used."""
        if self.stopped is not None:
            return None, None
        good, faults = self._read(replies, self._read_update)
        failed = any(isinstance(fault, NotFinite) for fault in faults.values())
        self._book.diverged = failed and (self.exacting or not good)
        losses = {name: update.loss for name, update in good.items()}
        used = {name: update.samples for name, update in good.items()}
        if self._book.diverged:
            # What was drawn was drawn, whatever came of it.
            used = dict(self._allotted)
        self._book.note_training(used, losses)
        if self._book.diverged:
            self._stop("training diverged: no loss is finite any more; lower the learning rate")
        if self._book.diverged or not good:
            return None, None
        LOG.info("aggregate_train: %d replies used, %d not", len(good), len(faults))
        self._sent = self._aggregated(list(good.values()))
        arrays = ArrayRecord({name: Array(array) for name, array in self._sent.items()})
        contents = [update.content for update in good.values()]
        return arrays, self._averaged(self.train_metrics_aggr_fn, contents)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Have the clients measure their accuracies, in the rounds in which that is wanted."""
        self._asked = {}
        self._whole = self.algorithm.evaluates(server_round - 1)
        few = self.algorithm.goal_test_points is not None
        self._tested = self.algorithm.tests_goal and few
        if self.stopped is not None or self.fraction_evaluate == 0:
            return []
        if not (self._whole or self._tested):
            return []
        nodes = self._available(grid, self.fraction_evaluate, self.min_evaluate_nodes)
        for name in self._selected(
            nodes, self.fraction_evaluate, self.min_evaluate_nodes, "evaluate"
        ):
            order = self._evaluate_order(name)
            self._asked[name] = self._message(
                MessageType.EVALUATE, nodes[name], arrays, config, order
            )
        return list(self._asked.values())

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Note the accuracies, let the weights react, and see whether everybody has its goal."""
        if self.stopped is not None:
            return None
        good, faults = self._read(replies, self._read_measured)
        if self.exacting and any(isinstance(fault, NotFinite) for fault in faults.values()):
            self._book.diverged = True
            self._stop("training diverged: the model's scores are not finite")
        else:
            accuracies = {n: m.accuracy for n, m in good.items() if m.accuracy is not None}
            tested = {n: m.tested for n, m in good.items() if m.tested is not None}
            self._book.note_evaluation(accuracies, tested if self._tested else None)
        self._look_at_goals()
        self._save()
        if not good:
            return None
        contents = [measured.content for measured in good.values()]
        return self._averaged(self.evaluate_metrics_aggr_fn, contents)

    # Who is there.

    def _meet(self, introduction: Introduction) -> None:
        name = introduction.name
        self._introduced[name] = introduction.points
        if introduction.label_counts is not None:
            self.label_counts[name] = introduction.label_counts
        if self._ledger is not None:
            if name in self._ledger.names:
                self._ledger.learn_points(name, introduction.points)
            else:
                self._remark(name, "came after the first round; it can take part in the next run")

    def _enrol(self, grid: Grid) -> None:
        """Wait for the members, and open the book."""
        named = self._named_members()
        needed = max(self.min_available_nodes, self.min_train_nodes)
        here: dict[str, int] = {}

        def enough() -> bool:
            here.clear()
            here.update(self._nodes.present(grid, timeout=self._timeout))
            return len(here) >= needed and not set(named or ()) - set(here)

        def missing() -> str:
            absent = set(named or ()) - set(here)
            who = f"; {listed(absent)} not" if absent else ""
            return f"{len(here)} of {max(needed, len(named or ()))} clients are there{who}"

        late = wait_for(enough, missing, deadline=self.node_deadline)
        members = sorted(here, key=_natural) if named is None else list(named)
        if late is not None:
            if len([name for name in here if name in members]) < needed:
                raise NodesError(
                    f"{late} after {self.node_deadline:g} seconds; start the other nodes, or "
                    "lower min_available_nodes and min_train_nodes"
                )
            for name in set(members) - set(here):
                self._remark(name, "is not there; training begins without it")
        self._open(members)

    def _named_members(self) -> list[str] | None:
        """Give the members' names, where requirements or plan name them, in that order."""
        wanted = list(self.requirements) if isinstance(self.requirements, Mapping) else None
        planned = None if self.plan is None or self.plan.agents is None else list(self.plan.agents)
        return planned if wanted is None else wanted

    def _open(self, members: Sequence[str]) -> None:
        quotas = None if self.plan is None else whole_quotas(self.plan, members)
        ledger = Ledger(
            self.algorithm,
            members,
            requirements=self.requirements,
            quotas=quotas,
            seed=self.seed,
        )
        for name, points in self._introduced.items():
            if name in members:
                ledger.learn_points(name, points)
            else:
                self._remark(name, "is not a member and is left out")
        self._ledger = ledger

    def _available(self, grid: Grid, fraction: float, least: int) -> dict[str, int]:
        """Give the node of each member that is there, waiting for as many as are needed."""
        here: dict[str, int] = {}
        members = set(self._book.names)

        def enough() -> bool:
            here.clear()
            seen = self._nodes.present(grid, timeout=self._timeout)
            here.update((name, node) for name, node in seen.items() if name in members)
            return len(here) >= max(self.min_available_nodes, least, int(len(here) * fraction))

        late = wait_for(
            enough,
            lambda: f"{len(here)} clients are there; {listed(members - set(here))} not",
            deadline=self.node_deadline,
        )
        if late is not None:
            self._stop(f"{late}, after {self.node_deadline:g} seconds")
            return {}
        return here

    def _selected(
        self, here: Collection[str], fraction: float, least: int, purpose: str
    ) -> list[str]:
        """Choose so many of the clients that are there, by the run's seed and the round alone."""
        count = min(max(int(len(here) * fraction), least), len(here))
        random = stream(self.seed, "selection", purpose, self._round)
        # The order of everybody, so that who is chosen hardly depends on who else is there.
        order = [self._book.names[i] for i in random.permutation(len(self._book.names))]
        chosen = set([name for name in order if name in here][:count])
        return [name for name in self._book.names if name in chosen]

    # What is said.

    def _message(
        self, kind: str, node: int, arrays: ArrayRecord, config: ConfigRecord, order: Order
    ) -> Message:
        # A config of its own for each: what is set in one must not be set in all.
        own = ConfigRecord({**config, **order.to_config()})
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: own})
        return Message(record, dst_node_id=node, message_type=kind)

    def _train_order(self, name: str, samples: int) -> TrainOrder:
        quota = self._book.quota(name)
        return TrainOrder(
            server_round=self._round,
            client=name,
            seed=int(self.seed),
            num_samples=samples,
            quota=protocol.ALL_POINTS if quota is None else quota,
            drawn=self._book.drawn(name),
            form=self.algorithm.form,
            batch_size=self.algorithm.batch_size,
            optimizer=self.algorithm.optimizer,
            learning_rate=float(self.algorithm.learning_rate),
            report=",".join(self.ask_for),
        )

    def _evaluate_order(self, name: str) -> EvaluateOrder:
        points = self.algorithm.goal_test_points or 0
        return EvaluateOrder(
            server_round=self._round,
            client=name,
            seed=int(self.seed),
            whole=self._whole,
            goal_points=points if self._tested else 0,
        )

    # What is heard.

    def _read(
        self, replies: Iterable[Message], read: Callable[[str, Message], Any]
    ) -> tuple[dict[str, Any], dict[str, Unusable]]:
        """Read the replies of all that were asked; what cannot be used is remarked on."""
        found, odd = by_client(replies, self._asked)
        for text in odd:
            LOG.warning(text)
        good: dict[str, Any] = {}
        faults: dict[str, Unusable] = {}
        for name in self._asked:
            try:
                if name not in found:
                    raise Unusable("no reply came")
                good[name] = read(name, found[name])
            except Unusable as fault:
                faults[name] = fault
                self._remark(name, f"is left out of round {self._round}: {fault}")
        lasting = [f for f in faults.values() if not isinstance(f, NotFinite)]
        if self.exacting and lasting:
            raise FedaccordError(self.remarks[-1].text)
        return good, faults

    def _read_update(self, name: str, reply: Message) -> Update:
        allotted = self._allotted[name]
        update = read_update(reply, self._sent, allotted=allotted, weighted_by=self.weighted_by_key)
        if update.claimed > allotted:
            self._remark(
                name,
                f"says it used {update.claimed:,} samples in round {self._round} and was allotted "
                f"{allotted:,}; it weighs as {allotted:,}",
            )
        return update

    def _read_measured(self, name: str, reply: Message) -> Any:
        return read_measured(
            reply, whole=self._whole, tested=self._tested, weighted_by=self.weighted_by_key
        )

    def _aggregated(self, updates: Sequence[Update]) -> Arrays:
        """Make one model of the clients' models, or a step of their gradients."""
        counts = [update.samples for update in updates]
        every = [update.arrays for update in updates]
        own_mean = type(self.algorithm).aggregate is not Algorithm.aggregate
        if self.algorithm.form == "local" and not own_mean:
            return mean_arrays(self.algorithm, every, counts)
        if self._server_step is None:
            step = imported("fedaccord.federation.flower.server_step")
            self._server_step = step.ServerStep(self.algorithm)
        made: Arrays = self._server_step(self._sent, every, counts)
        return made

    def _averaged(
        self,
        average: Callable[[list[RecordDict], str], MetricRecord],
        contents: list[RecordDict],
    ) -> MetricRecord | None:
        """Average the metrics that all replies have; where one has others, those are its own."""
        common = set.intersection(*(set(_metrics(content)) for content in contents))
        for content in contents:
            record = _metrics(content)
            for key in set(record) - common:
                del record[key]
        return average(contents, self.weighted_by_key)

    # What is told.

    def _remark(self, client: str, text: str) -> None:
        sentence = f"{client} {text}"
        self.remarks.append(Remark(self._round, client, sentence))
        LOG.warning(sentence)

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        LOG.warning("training ends with round %d: %s", self._round, reason)

    def _look_at_goals(self) -> None:
        if self.stop_at_goal is None or not self._whole or self.stopped is not None:
            return
        self._in_a_row = self._in_a_row + 1 if bool(self._book.satisfied.all()) else 0
        if self._in_a_row >= self.stop_at_goal:
            self._stop("everybody has the accuracy it wants")

    def _save(self) -> None:
        if self.history_file is not None:
            self._book.history().save(self.history_file)


class FedAvg(AlgorithmStrategy):
    """Federated averaging with equal samples for all, as in the local loop."""

    kind = algorithms.FedAvg


class MwFed(AlgorithmStrategy):
    """MW-FED: who is short of its goal draws more.

    Its own settings are factor, counts and goal_points; see `fedaccord.federation.MwFed`.
    """

    kind = algorithms.MwFed


class PlannedFedAvg(AlgorithmStrategy):
    """Train on a plan: each client is asked for its quota of different points and no more.

    Training ends as soon as everybody has its accuracy, unless stop_at_goal is None.
    """

    kind = algorithms.FedAvg

    def __init__(
        self,
        plan: Plan,
        *,
        requirements: Requirements,
        stop_at_goal: int | None = 1,
        **options: Any,
    ) -> None:
        super().__init__(requirements=requirements, plan=plan, stop_at_goal=stop_at_goal, **options)


def mean_arrays(algorithm: Algorithm, every: Sequence[Arrays], counts: Sequence[int]) -> Arrays:
    """Average arrays of numbers; what is not floating-point, such as a counter, is the first's.

    algorithm: whose mean it is.
    every: the arrays of each client.
    counts: how many samples each used.
    """
    whole = np.array(counts)
    return {
        name: np.asarray(algorithm.aggregate([arrays[name] for arrays in every], whole))
        if first.dtype.kind == "f"
        else first
        for name, first in every[0].items()
    }


def _metrics(content: RecordDict) -> MetricRecord:
    return next(iter(content.metric_records.values()))


def _natural(name: str) -> list[Any]:
    """Sort "client 10" after "client 9"."""
    digits = "".join(c if c.isdigit() else " " for c in name).split()
    return ["".join(c for c in name if not c.isdigit()), *(int(d) for d in digits)]


def _read_plan(plan: Plan | None) -> Allocation | None:
    if plan is None or isinstance(plan, Allocation):
        return plan
    if isinstance(plan, Mapping):
        return Allocation(list(plan.values()), list(plan))
    return Allocation.load(plan)


def _check_options(stop_at_goal: Any, node_deadline: Any, ask_for: Sequence[str]) -> None:
    if stop_at_goal is not None and (
        isinstance(stop_at_goal, bool) or not isinstance(stop_at_goal, int) or stop_at_goal < 1
    ):
        raise InputError(
            f"stop_at_goal must be a whole number of 1 or more, or None; got {stop_at_goal!r}"
        )
    if not (isinstance(node_deadline, int | float) and 0 <= node_deadline < math.inf):
        raise InputError(f"node_deadline must be a number of seconds; got {node_deadline!r}")
    for what in ask_for:
        if what not in protocol.EXTRAS:
            raise InputError(
                f"clients can be asked for {' and '.join(protocol.EXTRAS)}; got {what!r}"
            )
