"""The federated algorithms: what each client draws, and how the updates become one model.

An algorithm is a frozen object with four methods, which the one loop in `training` calls:

    init(clients)                              the state before the first round
    allot(state)                               how many samples each client draws this round
    weights(state, accuracies, requirements)   the state after a round's goal test
    aggregate(updates, counts)                 one update out of the clients'

and some that few algorithms need:

    begin      the first state, if it depends on the clients' contributions
    drew       the state after a round's draws
    delivered  the state after it is known how many different samples the draws used
    called     how many samples are called from reserves
    tests      which rounds end with a goal test
    combine    one update, if the mean depends on the state
    advance    the server's next model, if it is not the mean of the clients' models
    left       which clients leave with the present model
    ended      whether training is over
    committed  the algorithm, once clients have pledged their contributions
    reserving  the algorithm, once clients hold reserves
    limits     how many samples clients may have to give, reserves included
    heard      the state after the clients' losses are known
    proximal   how strongly a client's step stays near the server's model
    personal   how strongly a client's own model stays near the server's

A new algorithm is a subclass that replaces some of them. FedAvg and Solo replace none. Nothing here
needs torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Vector, check_choice, check_real, check_whole
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.source import OURS, digest

Counts = NDArray[np.int64]
# An array or a tensor: whatever can be scaled and added.
Update = TypeVar("Update", bound=Any)

FORMS = ("pooled", "local")
OPTIMIZERS = ("adam", "sgd")
# More samples than this in one round of one client are a slip, and would not fit a memory.
MOST_SAMPLES = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """What all algorithms share: the length of training, the batches, and the kind of step.

    rounds: T.
    batch_size: m, the samples of one batch of one client (on average).
    local_batches: B, the batches of one client in a round (on average).
    learning_rate: eta.
    optimizer: "adam" or "sgd".
    form: "pooled", as in the authors' release: the clients' gradients are averaged and the
        server's optimizer, which lasts, takes the step; or "local", as the paper prints it: each
        client takes its own steps from the server's model, and the models are averaged. Local
        optimizers start afresh each round: clients keep no state.
    evaluate_every: how many rounds there are from one evaluation of all clients, on their whole
        validation sets, to the next; the last round is always evaluated.
    """

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""
    # Whether clients train by themselves, so that there is no common model.
    trains_alone: ClassVar[bool] = False
    # Whether clients without samples are reported to `weights` as satisfied.
    passes_off_idle: ClassVar[bool] = True
    # Whether the goal is tested every `evaluate_every` rounds alone, and not in each.
    tests_at_evaluations: ClassVar[bool] = False
    # Whether a client that does not deliver is sent no further model: it keeps the last that it
    # was sent, and `left`, which is then asked after each round, may let it come back.
    withholds: ClassVar[bool] = False

    rounds: int = 250
    batch_size: int = 64
    local_batches: int = 1
    learning_rate: float = 0.002
    optimizer: str = "adam"
    form: str = "pooled"
    evaluate_every: int = 10

    def __init_subclass__(cls) -> None:
        """Set the kind of a derived algorithm, which differs from its base."""
        super().__init_subclass__()
        if "kind" not in vars(cls):
            cls.kind = f"{cls.__module__}.{cls.__qualname__}"
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        """Raise an InputError at settings that no training could follow."""
        _check_is_dataclass(type(self))
        for key in ("rounds", "batch_size", "local_batches", "evaluate_every"):
            check_whole(key, getattr(self, key))
        if self.batch_size * self.local_batches > MOST_SAMPLES:
            raise InputError(
                f"batch_size times local_batches must be at most {MOST_SAMPLES:,} samples a round; "
                f"got {self.batch_size} times {self.local_batches}"
            )
        check_real("learning_rate", self.learning_rate, above=0)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("form", self.form, FORMS)
        if self.advances and self.form != "local":
            raise InputError(
                f"{self.name} has a method advance, which model averaging calls and pooled "
                'gradients do not: set form = "local"'
            )

    @property
    def tests_goal(self) -> bool:
        """Whether each round ends with a test of the goal: if there are `weights` to react."""
        return type(self).weights is not Algorithm.weights

    @property
    def goal_test_points(self) -> int | None:
        """How many of each client's validation points a goal test looks at; None for all."""
        return None

    def tests(self, n: int) -> bool:
        """Return whether round n, counted from 0, ends with a test of the goal."""
        is_time = not self.tests_at_evaluations or (n + 1) % self.evaluate_every == 0
        return self.tests_goal and is_time

    def evaluates(self, n: int) -> bool:
        """Return whether round n, counted from 0, ends with an evaluation on all points."""
        whole_goal_test = self.tests(n) and self.goal_test_points is None
        return whole_goal_test or (n + 1) % self.evaluate_every == 0 or n + 1 == self.rounds

    def committed(self, contributions: Sequence[int]) -> Algorithm:
        """Return the algorithm as it is once clients have pledged these contributions."""
        return self

    def reserving(self, reserve: Sequence[int]) -> Algorithm:
        """Return the algorithm as it is once clients hold these reserves; unchanged here."""
        return self

    def limits(self, contributions: Counts) -> Counts:
        """Return how many different points each client may be asked for, at most."""
        return contributions

    def begin(self, contributions: Counts) -> Any:
        """Return the state before the first round, given each client's contribution."""
        return self.init(len(contributions))

    def init(self, clients: int) -> Vector:
        """Return the first state: a zero for every client."""
        return np.zeros(clients)

    def allot(self, state: Any) -> Counts:
        """Return the draws of each client in a round: m * B for everyone."""
        return np.full(len(state), self.batch_size * self.local_batches, dtype=np.int64)

    def drew(self, state: Any, counts: Counts) -> Any:
        """Return the state after a round's draws; unchanged here."""
        return state

    def delivered(self, state: Any, unique: Counts) -> Any:
        """Return the state once it is known how many different points each client has used."""
        return state

    def heard(self, state: Any, losses: Vector) -> Any:
        """Return the state once each client's mean loss under the present model is known.

        It is asked before updates are combined, so that `combine` can weigh them by their losses.

        losses: NaN for clients that drew nothing.
        """
        return state

    @property
    def proximal(self) -> float:
        """How strongly a client's own steps are pulled back to the server's model."""
        return 0.0

    @property
    def personal(self) -> float:
        """How strongly clients' own models are pulled to the server's; 0 if they have none."""
        return 0.0

    @property
    def runs_anywhere(self) -> bool:
        """Whether it runs with remote clients too, which send updates and no losses."""
        return not (self.hears or self.proximal or self.personal or self.advances)

    @property
    def hears(self) -> bool:
        """Whether the algorithm goes by the clients' losses."""
        return type(self).heard is not Algorithm.heard

    def called(self, state: Any) -> Counts | None:
        """Return how many samples to call from each client's reserve; None for no reserves."""
        return None

    def weights(self, state: Any, accuracies: Vector, requirements: Vector) -> Any:
        """Return the state after a goal test; unchanged here."""
        return state

    def left(self, state: Any) -> NDArray[np.bool_] | None:
        """Return which clients have left with the model of that time; None if no client can."""
        return None

    def ended(self, state: Any) -> bool:
        """Return whether training is over before the last round."""
        return False

    def combine(
        self, state: Any, updates: Sequence[Update], counts: Counts, clients: Indices
    ) -> Update:
        """Return one update made of the clients' updates, by `aggregate`.

        state: before the round.
        updates: of the clients that drew samples.
        counts: how many each drew.
        clients: their positions among all clients.
        """
        return self.aggregate(updates, counts)

    @property
    def averages(self) -> bool:
        """Whether updates are combined by the mean over samples, and not by a method of its own."""
        kind = type(self)
        return kind.aggregate is Algorithm.aggregate and kind.combine is Algorithm.combine

    def aggregate(self, updates: Sequence[Update], counts: Counts) -> Update:
        """Return the mean of the clients' updates, weighted by their draws."""
        return weighted_mean(updates, counts)

    @property
    def advances(self) -> bool:
        """Whether the server takes a step of its own, and not the mean of the clients' models."""
        return type(self).advance is not Algorithm.advance

    def advance(self, state: Any, server: Update, mean: Update) -> tuple[Update, Any]:
        """Return the server's next model and the state, in the local form.

        state: before the round.
        server: the model that clients started the round from.
        mean: what `combine` made of their models.
        """
        return mean, state

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and every setting; of a user's own algorithm also a digest of its code.

        Stored runs are identified by this, so that a changed algorithm is run again.
        """
        if type(self).__module__.startswith(OURS):
            return {"kind": self.kind, **asdict(self)}
        if "_code" not in vars(self):
            # Worker processes, which may not have the source, are sent it with the algorithm.
            object.__setattr__(self, "_code", digest(type(self)))
        return {"kind": self.kind, **asdict(self), "code": vars(self)["_code"]}


@dataclass(frozen=True, kw_only=True)
class FedAvg(Algorithm):
    """Federated averaging: all clients draw the same number of samples (the paper's Algorithm 1).

    The paper prints the average with a factor 1 / (B k), which for B > 1 would shrink the model
    itself; it is the mean of the k models here.
    """

    kind = "fedavg"
    name = "FedAvg"


@dataclass(frozen=True, kw_only=True)
class Solo(Algorithm):
    """Each client learns alone, from the same start, with batches of 256 by default."""

    kind = "solo"
    name = "Solo"
    trains_alone = True

    rounds: int = 63
    batch_size: int = 256


def weighted_mean(updates: Sequence[Update], counts: Counts) -> Update:
    """Average updates (arrays or tensors alike), each weighing as its count of samples.

    sum_i counts_i * update_i / sum(counts)
    """
    return weighted_sum(updates, [int(count) / int(counts.sum()) for count in counts])


def weighted_sum(updates: Sequence[Update], parts: Sequence[float] | Vector) -> Update:
    """Add updates (arrays or tensors alike), each times its part."""
    total: Update = updates[0] * float(parts[0])
    for update, part in zip(updates[1:], parts[1:], strict=True):
        total = total + update * float(part)
    return total


def _check_is_dataclass(kind: type) -> None:
    """Raise an InputError at a class whose settings would be ignored."""
    for owner in kind.__mro__:
        if owner is Algorithm:
            return
        declared = inspect.get_annotations(owner)
        if declared and "__dataclass_fields__" not in vars(owner):
            name = next(iter(declared))
            raise InputError(
                f"{owner.__name__} declares {name} and is not a dataclass, so it would be ignored; "
                "put @dataclass(frozen=True, kw_only=True) above the class"
            )
