"""The federated algorithms: what each client draws, and how the updates become one model.

An algorithm is a frozen object with four pieces around the one loop in `training`:

    init(clients)                              the state before the first round
    allot(state)                               how many samples each client draws this round
    weights(state, accuracies, requirements)   the state after a round's goal test
    aggregate(updates, counts)                 one update out of the clients'

and some that few need: `begin`, where the first state depends on what clients bring; `drew`, the
state after samples were drawn; `tests`, in which rounds there is a goal test; `combine`, where the
mean depends on the state; `left`, who leaves with the model as it is; `ended`, when training is
over; `committed`, what clients have promised. A new one is a subclass that replaces some of them.
Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import CodeType, EllipsisType, FunctionType, NoneType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import allotment
from fedaccord.federation.algorithms.allotment import Counts, Update

FORMS = ("pooled", "local")
OPTIMIZERS = ("adam", "sgd")
COUNTS = ("exact", "printed")
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
    evaluate_every: after how many rounds everybody's accuracy is measured on the whole
        validation sets; the last round always is.
    """

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""
    # Whether `weights` is told that who brings nothing is satisfied: more cannot be asked of it.
    passes_off_idle: ClassVar[bool] = True

    rounds: int = 250
    batch_size: int = 64
    local_batches: int = 1
    learning_rate: float = 0.002
    optimizer: str = "adam"
    form: str = "pooled"
    evaluate_every: int = 10

    def __init_subclass__(cls) -> None:
        """Tell algorithms apart: one that is derived from another is not of its kind."""
        super().__init_subclass__()
        if "kind" not in vars(cls):
            cls.kind = f"{cls.__module__}.{cls.__qualname__}"
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        """Refuse settings that no training could follow."""
        _check_is_dataclass(type(self))
        for key in ("rounds", "batch_size", "local_batches", "evaluate_every"):
            check_count(key, getattr(self, key))
        if self.batch_size * self.local_batches > MOST_SAMPLES:
            raise InputError(
                f"batch_size times local_batches must be at most {MOST_SAMPLES:,} samples a round; "
                f"got {self.batch_size} times {self.local_batches}"
            )
        check_number("learning_rate", self.learning_rate, "above 0", lambda rate: rate > 0)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("form", self.form, FORMS)

    @property
    def tests_goal(self) -> bool:
        """Whether each round ends with a test of the goal: if there are `weights` to react."""
        return type(self).weights is not Algorithm.weights

    @property
    def goal_test_points(self) -> int | None:
        """How many of each client's validation points a goal test looks at; None for all."""
        return None

    def tests(self, n: int) -> bool:
        """Tell whether round n, counted from 0, ends with a test of the goal."""
        return self.tests_goal

    def evaluates(self, n: int) -> bool:
        """Tell whether round n, counted from 0, ends with an evaluation on all points."""
        whole_goal_test = self.tests(n) and self.goal_test_points is None
        return whole_goal_test or (n + 1) % self.evaluate_every == 0 or n + 1 == self.rounds

    def committed(self, contributions: Sequence[int]) -> Algorithm:
        """Give the algorithm as it is once clients have promised so many points each."""
        return self

    def begin(self, contributions: Counts) -> Any:
        """Give the state before the first round, of clients that bring so many points."""
        return self.init(len(contributions))

    def init(self, clients: int) -> Vector:
        """Give everybody the same weight."""
        return np.zeros(clients)

    def allot(self, state: Any) -> Counts:
        """Give everybody the same number of samples, m * B."""
        return np.full(len(state), self.batch_size * self.local_batches, dtype=np.int64)

    def drew(self, state: Any, counts: Counts) -> Any:
        """Leave the state as it is, whoever drew how many samples."""
        return state

    def weights(self, state: Any, accuracies: Vector, requirements: Vector) -> Any:
        """Leave the weights as they are, whoever is satisfied."""
        return state

    def left(self, state: Any) -> NDArray[np.bool_] | None:
        """Tell who has left with the model it had then; None for nobody."""
        return None

    def ended(self, state: Any) -> bool:
        """Tell whether training is over, whatever rounds are left."""
        return False

    def combine(
        self, state: Any, updates: Sequence[Update], counts: Counts, clients: Indices
    ) -> Update:
        """Make one update of the clients', by `aggregate`.

        state: before the round.
        updates: of those that drew samples.
        counts: how many each drew.
        clients: which they are, as places among all.
        """
        return self.aggregate(updates, counts)

    @property
    def averages(self) -> bool:
        """Whether one update is made of many by the mean over samples, and no mean of its own."""
        kind = type(self)
        return kind.aggregate is Algorithm.aggregate and kind.combine is Algorithm.combine

    def aggregate(self, updates: Sequence[Update], counts: Counts) -> Update:
        """Average the clients' updates in proportion to their samples."""
        return allotment.weighted_mean(updates, counts)

    def to_dict(self) -> dict[str, Any]:
        """Give the kind and every setting; of a user's own algorithm also a digest of its code.

        Runs that are kept are known by this, so that a changed algorithm is run anew.
        """
        own = not _is_ours(type(self))
        return {"kind": self.kind, **asdict(self), **({"code": _code(type(self))} if own else {})}


@dataclass(frozen=True, kw_only=True)
class FedAvg(Algorithm):
    """Federated averaging: everybody draws the same number of samples (the paper's Algorithm 1).

    The paper prints the average with a factor 1 / (B k), which for B > 1 would shrink the model
    itself; it is the mean of the k models here.
    """

    kind = "fedavg"
    name = "FedAvg"


@dataclass(frozen=True, kw_only=True)
class MwFed(Algorithm):
    """MW-FED: who is short of its goal draws more (the paper's Algorithm 2).

        m_i = m * B * k * w_i / sum(w),    then w_i <- c * w_i where accuracy_i < requirement_i

    factor: c.
    counts: "exact" draws m_i samples, made whole so that they sum to m * B * k; "printed" draws
        floor(m_i / m) batches of m.
    goal_points: how many validation points of each client, drawn anew each round, the test of
        the goal looks at; None for all of them.
    """

    kind = "mw-fed"
    name = "MW-FED"

    factor: float = 2.0
    counts: str = "exact"
    goal_points: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that no training could follow."""
        super().__post_init__()
        check_number("factor", self.factor, "of 1 or more", lambda factor: factor >= 1)
        check_choice("counts", self.counts, COUNTS)
        if self.goal_points is not None:
            check_count("goal_points", self.goal_points)

    @property
    def goal_test_points(self) -> int | None:
        """How many of each client's validation points a goal test looks at; None for all."""
        return self.goal_points

    def allot(self, state: Vector) -> Counts:
        """Divide the round's samples in proportion to the weights."""
        total = self.batch_size * self.local_batches * len(state)
        parts = allotment.shares(state)
        if self.counts == "printed":
            return allotment.printed_counts(parts, total, self.batch_size)
        return allotment.exact_counts(parts, total)

    def weights(self, state: Vector, accuracies: Vector, requirements: Vector) -> Vector:
        """Raise the weights of the clients that are short of their goals."""
        return allotment.raised(state, accuracies < requirements, self.factor)


@dataclass(frozen=True, kw_only=True)
class Solo(Algorithm):
    """Everybody learns alone, from the same start, with batches of 256 unless told otherwise."""

    kind = "solo"
    name = "Solo"

    rounds: int = 63
    batch_size: int = 256


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("fedaccord.federation.")


def _code(kind: type) -> str:
    """Give a digest of what a class and those it is derived from define: methods and constants.

    It is the same in every process. What methods call outside the class is not in it.
    """
    found: list[tuple[Any, ...]] = []
    for owner in kind.__mro__:
        if _is_ours(owner) or owner is object:
            continue
        for name, member in vars(owner).items():
            wrapped = (getattr(member, key, None) for key in ("fget", "__func__", "func"))
            held = next((one for one in wrapped if one is not None), member)
            if isinstance(held, FunctionType):
                given = (held.__defaults__, held.__kwdefaults__)
                found.append((name, _plain(held.__code__), _plain(given)))
            elif not name.startswith("__"):
                found.append((name, _plain(held)))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Give code and constants in a form that is written alike in every process."""
    if isinstance(value, CodeType):
        return (value.co_name, value.co_code, value.co_names, _plain(value.co_consts))
    if isinstance(value, tuple | list):
        return (type(value).__name__, [_plain(one) for one in value])
    if isinstance(value, set | frozenset):
        return (type(value).__name__, sorted(repr(_plain(one)) for one in value))
    if isinstance(value, Mapping):
        return ("dict", [(_plain(k), _plain(v)) for k, v in value.items()])
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, _plain(value.tolist()))
    if isinstance(value, bool | int | float | complex | str | bytes | NoneType | EllipsisType):
        return value
    # Whatever else there is may be written with its place in memory.
    return type(value).__name__


def _check_is_dataclass(kind: type) -> None:
    """Refuse a class whose settings would be ignored."""
    for owner in kind.__mro__:
        if owner is Algorithm:
            return
        declared = inspect.get_annotations(owner)
        if declared and "__dataclass_fields__" not in vars(owner):
            name = next(iter(declared))
            raise InputError(
                f"{owner.__name__} declares {name} and is no dataclass, so it would be ignored; "
                "put @dataclass(frozen=True, kw_only=True) above the class"
            )


def check_count(key: str, value: object) -> None:
    """Refuse a setting that is no whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{key} must be a whole number of 1 or more; got {value!r}")


def check_number(key: str, value: Any, what: str, fits: Callable[[float], bool]) -> None:
    """Refuse a setting that is no number, or none that fits."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and fits(value)):
        raise InputError(f"{key} must be a number {what}; got {value!r}")


def check_choice(key: str, value: object, known: Sequence[str]) -> None:
    """Refuse a setting that is not one of a few words."""
    if value not in known:
        raise InputError(f"{key} must be one of {', '.join(known)}; got {value!r}")
