"""The rounds of a run whose clients are elsewhere: whom to ask for what, and what follows.

Who draws how many samples, how the weights move, who leaves, when it ends and how models become
one is decided by the same code as in the local loop. A framework carries the orders to the clients
and the replies back.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from fedaccord._checks import find_closest
from fedaccord.allocation import Allocation
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.history import History
from fedaccord.federation.remote import members
from fedaccord.federation.remote.aggregation import NextModel, find_largest
from fedaccord.federation.remote.ledger import Ledger
from fedaccord.federation.remote.members import Requirements
from fedaccord.federation.remote.protocol import EvaluateOrder, TrainOrder
from fedaccord.federation.remote.replies import (
    Arrays,
    Evaluation,
    Introduction,
    NotFinite,
    Remark,
    Unusable,
    Update,
)

Model = TypeVar("Model")
Read = TypeVar("Read")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a run is to be made.

    algorithm: how much each client draws.
    requirements: the accuracy that each client wants: one for all, or by name.
    plan: the most different samples to draw from each client; all samples where left out.
    stop_at_goal: at how many evaluations in a row all must reach their goals to end there.
    seed: of the draws.
    history_file: a CSV file that is rewritten after each round.
    ask_for: what else clients should report.
    exacting: whether an absent member, or a reply that cannot be used, ends the run.
    measures: whether clients are evaluated at all.
    """

    algorithm: Algorithm
    requirements: Requirements
    plan: Allocation | None = None
    stop_at_goal: int | None = None
    seed: int = 0
    history_file: str | Path | None = None
    ask_for: Sequence[str] = ()
    exacting: bool = False
    measures: bool = True


class Withheld(Generic[Model]):
    """Keeps the model that each client was sent last, and that of those who get no further one.

    first: the model that training begins with, which everybody may have, in the form in which
        models are sent.
    to_arrays: returns the arrays of a model in that form.
    """

    def __init__(self, first: Model, to_arrays: Callable[[Model], Arrays]) -> None:
        self._first = first
        self._to_arrays = to_arrays
        self._sent: dict[str, Model] = {}
        self._kept: dict[str, Model] = {}

    @property
    def checkpoints(self) -> dict[str, Arrays]:
        """The models of those who get no further one, by client."""
        return {name: self._to_arrays(record) for name, record in self._kept.items()}

    def choose(self, name: str, current: Model) -> Model:
        """Return the model that a client is sent: the current one, or the last that it got."""
        if name in self._kept:
            return self._kept[name]
        self._sent[name] = current
        return current

    def part(self, without: Collection[str]) -> tuple[list[str], list[str]]:
        """Note who gets no further model; return who lost it now, and who is back."""
        lost = [name for name in without if name not in self._kept]
        back = [name for name in self._kept if name not in without]
        for name in lost:
            self._kept[name] = self._sent.get(name, self._first)
        for name in back:
            del self._kept[name]
        return lost, back

    def move(self, updates: Mapping[str, Update], model: Arrays) -> dict[str, Update]:
        """Return updates in which models that were made of older ones are as if made of this one.

        model + (what the client made - what it was sent)
        """
        moved = {}
        for name, update in updates.items():
            if name in self._kept:
                old = self._to_arrays(self._kept[name])
                arrays = {
                    key: model[key] + (array - old[key]) if array.dtype.kind == "f" else array
                    for key, array in update.arrays.items()
                }
                update = dataclasses.replace(update, arrays=arrays)
            moved[name] = update
        return moved


class Rounds(Generic[Model]):
    """A run, from who takes part to its history.

    After `enrol`, each round is `order_training`, `take_updates`, `prepare_evaluation`,
    `order_evaluation` and `take_evaluations`, until `stopped` says why no other follows.

    terms: how it is to be made.
    to_arrays: returns the arrays of a model, in the form in which models are sent.
    log: where to say what happens.

    remarks: which replies were dropped, and why.
    label_counts: how many samples of each class clients have, where they said so.
    checkpoints: the arrays with which clients left before the end.
    stopped: why training ended before its last round; None if it did not.
    number: of the round.
    model: the server's.
    is_over: whether the algorithm has ended, and only the last accuracies are to be measured.
    measures_all, tests_goal: what is measured after this round: all points, the goal test's.
    """

    def __init__(
        self, terms: Terms, *, to_arrays: Callable[[Model], Arrays], log: logging.Logger
    ) -> None:
        self.terms = terms
        self.remarks: list[Remark] = []
        self.label_counts: dict[str, tuple[int, ...]] = {}
        self.checkpoints: dict[str, Arrays] = {}
        self.stopped: str | None = None
        self.number = 0
        self.model: Arrays = {}
        self.is_over = self.measures_all = self.tests_goal = False
        self.ledger: Ledger | None = None
        self._to_arrays = to_arrays
        self._log = log
        self._withheld: Withheld[Model] | None = None
        self._measured: Arrays = {}
        # How many clients were asked for something, after which round they measure, and how many
        # samples each was allotted.
        self._asked = 0
        self._evaluated = 0
        self._allotted: dict[str, int] = {}
        self._next_model = NextModel(terms.algorithm)

    @property
    def algorithm(self) -> Algorithm:
        """How much each client draws."""
        return self.terms.algorithm

    @property
    def book(self) -> Ledger:
        """Who takes part, their quotas and draws."""
        if self.ledger is None:
            raise FedaccordError("nothing has happened yet: start the strategy first")
        return self.ledger

    @property
    def history(self) -> History:
        """What happened so far: the same History as of the local loop."""
        return self.book.history(self.model, self.checkpoints)

    def keep_in(self, file: Path) -> None:
        """Rewrite a CSV file after each round; see `history_file` of the terms."""
        self.terms = dataclasses.replace(self.terms, history_file=file)

    # Who is there.

    def enrol(self, clients: Mapping[str, Introduction | None]) -> None:
        """Open the book with the members; None for one that is not there."""
        terms, algorithm = self.terms, self.algorithm
        quotas = None if terms.plan is None else members.round_quotas(terms.plan, list(clients))
        if quotas is not None and not terms.exacting:
            # An audit has told the algorithm already what was promised.
            algorithm = algorithm.committed(list(quotas.values()))
            reserves = members.round_reserves(terms.plan, list(clients))
            algorithm = algorithm if reserves is None else algorithm.reserving(reserves)
        for name, client in clients.items():
            if client is None:
                self.remark(name, "is not there; training begins without it")
            elif client.label_counts is not None:
                self.label_counts[name] = client.label_counts
        points = {n: None if client is None else client.points for n, client in clients.items()}
        self.ledger = Ledger(
            algorithm, points, requirements=terms.requirements, quotas=quotas, seed=terms.seed
        )

    def meet(self, client: Introduction, named: Collection[str] | None) -> None:
        """Take in a client that connects, or remark why not."""
        if self.ledger is None:
            if named is not None and client.name not in named:
                others = find_closest(client.name, list(named))
                meant = f"; the requirements or the plan name {others}" if others else ""
                self.remark(client.name, f"is not a member, and is left out{meant}")
        elif client.name not in self.ledger.names:
            self.remark(client.name, "was not there when training began, and is left out")
        else:
            try:
                self.ledger.learn_points(client.name, client.points)
                if client.label_counts is not None:
                    self.label_counts[client.name] = client.label_counts
            except InputError as error:
                self.remark(client.name, f"cannot train: {error}")

    # Training.

    def begin(self, number: int, model: Model) -> None:
        """Begin a round."""
        self.number = number
        self.model = self._to_arrays(model)
        if self._withheld is None:
            self._withheld = Withheld(model, self._to_arrays)

    def order_training(self, present: Collection[str]) -> dict[str, TrainOrder]:
        """Return what each client is to do in this round."""
        self._allotted = self.book.allot_to(present)
        said = {name: self._allotted.get(name, 0) for name in self.book.names}
        self._log.info("round %d, samples to draw: %s", self.number, said)
        return {
            name: self.book.train_order(name, count, self.number, report=self.terms.ask_for)
            for name, count in self._allotted.items()
        }

    def choose_model(self, name: str, current: Model) -> Model:
        """Return the model that a client is sent: the current one, unless it is withheld."""
        if not self.algorithm.withholds or self._withheld is None:
            return current
        return self._withheld.choose(name, current)

    def read(
        self, asked: Collection[str], read: Callable[[str], Read]
    ) -> tuple[dict[str, Read], dict[str, Unusable]]:
        """Read the replies of all that were asked; what cannot be used is remarked on.

        asked: their names.
        read: returns a client's reply, or raises Unusable.
        """
        self._asked = len(asked)
        good: dict[str, Read] = {}
        faults: dict[str, Unusable] = {}
        for name in asked:
            try:
                good[name] = read(name)
            except Unusable as fault:
                faults[name] = fault
                text = f"is left out of round {self.number}: {fault}"
                self.remark(name, text)
                if self.terms.exacting and not isinstance(fault, NotFinite):
                    raise FedaccordError(f"{name} {text}") from None
        return good, faults

    def allotted_to(self, name: str) -> int:
        """Return how many samples a client is to draw in this round."""
        return self._allotted[name]

    def take_updates(
        self, good: dict[str, Update], faults: Mapping[str, Unusable]
    ) -> dict[str, Update]:
        """Make one model of the clients'; return what it is made of, none if the old one stays.

        good: what clients sent, each weighing as the samples it used.
        faults: what cannot be used.
        """
        for name, update in good.items():
            self._check_claim(name, update)
        losses = {name: update.loss for name, update in good.items()}
        if self._has_diverged(faults):
            # What was drawn was drawn, whatever came of it.
            self.book.note_training(self._allotted, losses)
            self.book.record_divergence()
            self.stop(
                "training diverged: the clients' replies are not finite; lower the learning rate"
            )
            return {}
        # Where it is one's own, or an audit's, a model that is not finite is what training made.
        finite = not self.terms.exacting and len(self.book.names) > 1
        made = None
        if good:
            if self.algorithm.form == "local" and self._withheld is not None:
                good = self._withheld.move(good, self.model)
            made = self._next_model(self.model, good, ledger=self.book, finite=finite)
            if made is None:
                self.remark(*find_largest(good, self.number))
                good, losses = {}, {}
        self.book.note_training({name: u.samples for name, u in good.items()}, losses)
        self._part()
        self._log.info("round %d: %d replies used, %d not", self.number, len(good), len(faults))
        if made is not None:
            self.model = made
        return good

    def _check_claim(self, name: str, update: Update) -> None:
        allotted = self._allotted[name]
        if update.claimed > allotted:
            self.remark(
                name,
                f"says it used {update.claimed:,} samples in round {self.number} and was allotted "
                f"{allotted:,}; it counts as {allotted:,}",
            )

    def _part(self) -> None:
        """See who gets no further model since this round, and who gets it again."""
        if not self.algorithm.withholds or self._withheld is None:
            return
        self.book.part()
        lost, back = self._withheld.part(self.book.without_model)
        if lost:
            self._log.info("from round %d on no model goes to: %s", self.number, ", ".join(lost))
        if back:
            self._log.info("from round %d on it goes again to: %s", self.number, ", ".join(back))
        self.checkpoints = self._withheld.checkpoints

    # Evaluation.

    def prepare_evaluation(self, number: int) -> bool:
        """Return whether clients are to measure anything after a round.

        number: of the round, or of one after the last if training has ended.
        """
        self._evaluated = number
        self.measures_all = self.algorithm.evaluates(number - 1) or self.book.ended
        few = self.algorithm.goal_test_points is not None
        self.tests_goal = self.algorithm.tests(number - 1) and few and not self.is_over
        return self.terms.measures and (self.measures_all or self.tests_goal)

    def order_evaluation(self, present: Collection[str], model: Model) -> dict[str, EvaluateOrder]:
        """Return what each client is to measure."""
        self._measured = self._to_arrays(model)
        return {
            name: self.book.evaluate_order(
                name, self._evaluated, whole=self.measures_all, tested=self.tests_goal
            )
            for name in present
        }

    def take_evaluations(
        self, good: dict[str, Evaluation], faults: Mapping[str, Unusable]
    ) -> dict[str, Evaluation]:
        """Note the accuracies, let the weights react, and see whether everybody has its goal.

        Return those of clients that have the current model.
        """
        if self.measures_all and self._has_diverged(faults):
            self.book.record_divergence()
            self.stop("training diverged: no accuracy can be measured; lower the learning rate")
            return {}
        for name in self.book.unmeasured:
            if name in good:
                self.book.keep_accuracy(name, good.pop(name).accuracy)
        leaving = self.book.note_evaluation(
            {n: found.accuracy for n, found in good.items()} if self.measures_all else None,
            {n: found.tested for n, found in good.items()} if self.tests_goal else None,
        )
        if leaving:
            self._log.info("with the model of round %d leaves: %s", self.number, ", ".join(leaving))
            self.checkpoints |= dict.fromkeys(leaving, self._measured)
        if self._evaluated < self.algorithm.rounds or self.is_over:
            self._stop_if_done()
        self.save()
        return good

    def _stop_if_done(self) -> None:
        most = self.terms.stop_at_goal
        if most is not None and self.book.goals_in_a_row >= most:
            self.stop("every client reaches its goal", level=logging.INFO)
        elif self.book.ended:
            self.is_over = True
            # The test at which it ended may have looked at some points only.
            if self.measures_all or not self.terms.measures:
                name = self.algorithm.name
                self.stop(f"{name} needs no more samples from any client", level=logging.INFO)

    def _has_diverged(self, faults: Mapping[str, Unusable]) -> bool:
        """Return whether training diverged: of several clients, one may only say so."""
        failed = sum(isinstance(fault, NotFinite) for fault in faults.values())
        if self.terms.exacting:
            return failed > 0
        return failed == self._asked and failed >= min(2, len(self.book.names))

    # What is told.

    def object(self, client: str, text: str) -> None:
        """Note what is odd about who is there; it ends a run that is exacting."""
        self.remark(client, text)
        if self.terms.exacting:
            raise FedaccordError(f"{client} {text}")

    def remark(self, client: str, text: str) -> None:
        """Note something that a coordinator should know of a client.

        client: its name.
        text: the rest of the sentence.
        """
        sentence = f"{client} {text}"
        self.remarks.append(Remark(self.number, client, sentence))
        self._log.warning(sentence)

    def stop(self, reason: str, *, level: int = logging.WARNING) -> None:
        """End training with this round."""
        self.stopped = reason
        self._log.log(level, "training ends with round %d: %s", self.number, reason)
        self.save()

    def save(self) -> None:
        """Write the history so far to its file, if there is one."""
        file = self.terms.history_file
        if file is None or self.ledger is None or not self.ledger.rounds:
            return
        try:
            self.ledger.history().save(file)
        except OSError as error:
            # Not worth losing the training for.
            self._log.warning("the history cannot be written to %s: %s", file, error)


def same_arrays(model: Arrays) -> Arrays:
    """Return a model that is sent as the arrays that it is."""
    return model
