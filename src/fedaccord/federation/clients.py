"""Federations: clients with their samples and goals, and the model they start from."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Counts
from fedaccord.federation.models.networks import dropouts

if TYPE_CHECKING:
    from fedaccord.federation.goals import ClientGoal

Points: TypeAlias = tuple[Any, Any]
Weights: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Client:
    """A member of a federation: its samples, its validation set and its goal.

    name: its name; random draws depend on it, so renaming changes them.
    train: inputs and labels (arrays or tensors), the samples it can give.
    validation: inputs and labels on which its accuracy is measured.
    requirement: mu, the accuracy it wants, above 0 and at most 1.
    goals: what it wants in other measures, in place of the requirement; it is satisfied if it
        reaches all of them.
    scored: further inputs and labels of the same distribution, on which audits can judge the final
        model. No algorithm sees them; None for none.
    """

    name: str
    inputs: Tensor
    labels: Tensor
    validation_inputs: Tensor
    validation_labels: Tensor
    requirement: float
    scored_inputs: Tensor | None
    scored_labels: Tensor | None
    goals: tuple[ClientGoal, ...] = ()

    def __init__(
        self,
        name: str,
        train: Points,
        validation: Points,
        requirement: Any = None,
        scored: Points | None = None,
        *,
        goals: Sequence[ClientGoal] | None = None,
    ) -> None:
        # A frozen dataclass is filled through its dict.
        own = vars(self)
        own["name"] = str(name)
        if not self.name.strip():
            raise InputError("a client has no name; name every client")
        self._set_goals(requirement, goals)
        kind = self.kind
        own["inputs"], own["labels"] = _read_points(train, f"the training samples of {name}", kind)
        own["validation_inputs"], own["validation_labels"] = _read_points(
            validation, f"the validation samples of {name}", kind
        )
        self._check_shape("validation_inputs", "validated")
        own["scored_inputs"], own["scored_labels"] = None, None
        if scored is not None:
            own["scored_inputs"], own["scored_labels"] = _read_points(
                scored, f"the scored samples of {name}", kind
            )
            self._check_shape("scored_inputs", "scored")

    def _set_goals(self, requirement: Any, goals: Sequence[ClientGoal] | None) -> None:
        """Fill in what the client wants, or raise an InputError."""
        own = vars(self)
        own["goals"] = ()
        if goals is not None:
            if requirement is not None:
                raise InputError(f"{self.name} has both a requirement and goals: give one of them")
            from fedaccord.federation.goals import check_goals

            own["goals"] = wanted = check_goals(goals, self.name)
            requirement = wanted[0].requirement
            if len(wanted) == 1 and wanted[0].is_plain:
                own["goals"] = ()
        if not (isinstance(requirement, int | float | np.number) and 0 < requirement <= 1):
            raise InputError(
                f"the requirement of {self.name} must be an accuracy above 0 and at most 1; got "
                f"{requirement!r}"
            )
        own["requirement"] = float(requirement)

    def __repr__(self) -> str:
        return (
            f"Client({self.name!r}, {self.points} points, {len(self.validation_labels)} to "
            f"validate, requirement {self.requirement:g})"
        )

    def _check_shape(self, name: str, what: str) -> None:
        """Raise an InputError at inputs whose shape differs from that of the training inputs."""
        shapes = [tuple(getattr(self, one).shape[1:]) for one in ("inputs", name)]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"{self.name} trains on inputs of shape {shapes[0]} and is {what} on "
                f"{shapes[1]}; give both the same shape"
            )

    @property
    def kind(self) -> str:
        """What its labels are, by its goals: "classes", "amounts" or "times"."""
        if not self.goals:
            return "classes"
        from fedaccord.federation.goals import find_labels

        return find_labels(self.goals, self.name)

    @property
    def points(self) -> int:
        """How many samples it could give."""
        return len(self.labels)

    def replace(self, **values: Any) -> Client:
        """Return the client with other values of some fields, which are not checked again."""
        changed = copy.copy(self)
        vars(changed).update(values)
        return changed

    def with_requirement(self, requirement: float) -> Client:
        """Return the client with another requirement, which is the target of its only goal."""
        if not self.goals:
            return self.replace(requirement=requirement)
        if not self.has_one_share:
            raise InputError(
                f"{self.name} has goals that one number does not replace: change the goals"
            )
        goal = dataclasses.replace(self.goals[0], target=requirement)
        return self.replace(requirement=requirement, goals=(goal,))

    @property
    def has_one_share(self) -> bool:
        """Whether it has one goal, a share that rises with data, so that its value is a share."""
        if not self.goals:
            return True
        return len(self.goals) == 1 and self.goals[0].rises and bool(self.goals[0].kind)

    def measure(self, outputs: Vector, *, scored: bool = False) -> Vector:
        """Return the value of each goal on all validation, or scored, points.

        outputs: what the model says of the points, as `find_outputs` has it.
        scored: whether they are the scored points.
        """
        points = self._goal_points(scored)
        return np.array([goal.measure_on(labels, outputs, mask) for goal, labels, mask in points])

    def deviate(self, outputs: Vector, *, scored: bool = False) -> Vector:
        """Return by how much each value of `measure` varies with the draw of the points."""
        points = self._goal_points(scored)
        return np.array([goal.deviate_on(labels, outputs, mask) for goal, labels, mask in points])

    def _goal_points(
        self, scored: bool
    ) -> Iterator[tuple[ClientGoal, NDArray[Any], NDArray[np.bool_] | None]]:
        labels = self.scored_labels if scored else self.validation_labels
        assert labels is not None
        for goal in self.goals:
            yield goal, labels.numpy(), goal.scored_group if scored else goal.group

    @property
    def listed_goals(self) -> tuple[ClientGoal, ...]:
        """Its goals; an accuracy where it has a requirement."""
        from fedaccord.federation.goals import ClientGoal

        return self.goals or (ClientGoal("accuracy", self.requirement),)

    @property
    def counted_points(self) -> float:
        """On how many points an accuracy scatters as much as the client's measures do."""
        labels = self.validation_labels.numpy()
        if not self.goals:
            return len(labels)
        return min(goal.count_alike(labels) for goal in self.goals)

    def take_validation(self, rows: Indices) -> Client:
        """Return the client with some of its validation points."""
        return self.replace(
            validation_inputs=self.validation_inputs[rows],
            validation_labels=self.validation_labels[rows],
            goals=tuple(goal.take(rows) for goal in self.goals),
        )

    def take_scored(self, rows: Indices) -> Client:
        """Return the client with some of its scored points."""
        assert self.scored_inputs is not None and self.scored_labels is not None
        return self.replace(
            scored_inputs=self.scored_inputs[rows],
            scored_labels=self.scored_labels[rows],
            goals=tuple(goal.take(rows, scored=True) for goal in self.goals),
        )

    def check_goals(self, classes: int) -> None:
        """Raise an InputError at a goal that its points do not define.

        classes: how many the model tells apart.
        """
        for goal in self.goals:
            try:
                labels = self.validation_labels.numpy()
                goal.check_points(labels, goal.group, classes, "validation points")
                if self.scored_labels is not None:
                    if goal.group is not None and goal.scored_group is None:
                        raise InputError(
                            f"{goal.title} has a group of the validation samples and none of the "
                            "scored samples: give scored_group too"
                        )
                    labels = self.scored_labels.numpy()
                    goal.check_points(labels, goal.scored_group, classes, "scored points")
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None

    def with_type(self, kind: torch.dtype) -> Client:
        """Return the client with inputs of a floating-point type."""
        names = ("inputs", "validation_inputs", "scored_inputs")
        given = {name: tensor for name in names if (tensor := getattr(self, name)) is not None}
        if all(tensor.dtype == kind for tensor in given.values()):
            return self
        return self.replace(**{name: tensor.to(kind) for name, tensor in given.items()})


def _read_points(points: Points, what: str, kind: str) -> tuple[Tensor, Tensor]:
    """Return inputs and labels as tensors, or raise an InputError."""
    try:
        inputs, labels = (_own_tensor(values) for values in points)
    except (TypeError, ValueError):
        raise InputError(
            f"{what} must be a pair of arrays or tensors, inputs and labels, of numbers"
        ) from None
    if labels.ndim != 1 + (kind == "times") or inputs.ndim < 2 or len(inputs) != len(labels):
        raise InputError(
            f"{what} need one row of inputs per label; got inputs of shape "
            f"{tuple(inputs.shape)} and labels of shape {tuple(labels.shape)}"
        )
    if len(labels) == 0:
        raise InputError(f"{what} are empty; add samples, or leave the client out")
    if kind != "classes":
        return _read_inputs(inputs, what), _read_numbers(labels, what, kind).to(torch.float32)
    if labels.is_floating_point() and not bool((labels == labels.round()).all()):
        raise InputError(
            f"{what} have labels that are not whole numbers; number the classes from 0"
        )
    return _read_inputs(inputs, what), labels.to(torch.int64)


def _read_numbers(labels: Tensor, what: str, kind: str) -> Tensor:
    """Return amounts, or times with whether the event took place, or raise an InputError."""
    if not bool(torch.isfinite(labels).all()):
        raise InputError(f"{what} have a label that is not finite: fill it in or leave it out")
    if kind == "times":
        is_pair = labels.shape[1] == 2 and bool((labels[:, 0] > 0).all())
        if not is_pair or not bool(((labels[:, 1] == 0) | (labels[:, 1] == 1)).all()):
            raise InputError(
                f"{what} need two columns of labels: a time above 0, and 1 if the event took place "
                "then or 0 if it had not"
            )
    return labels


def _read_inputs(inputs: Tensor, what: str) -> Tensor:
    if not inputs.is_floating_point():
        inputs = inputs.to(torch.float32)
    bad = ~torch.isfinite(inputs.flatten(1)).all(dim=1)
    if bool(bad.any()):
        raise InputError(
            f"{what} have an input that is not finite (row {int(bad.nonzero()[0])}): fill in "
            "missing values first"
        )
    return inputs.contiguous()


def _own_tensor(values: Any) -> Tensor:
    """Copy numbers into a tensor, so that later changes of the original do not reach the client."""
    if isinstance(values, Tensor):
        return values.detach().clone()
    return torch.from_numpy(np.array(values, order="C"))


@dataclass(frozen=True, eq=False)
class Federation:
    """Clients, and the model they train together.

    clients: with different names.
    model: a function that makes a new model, an nn.Module that returns a score per class for each
        input. Inputs are converted to the type of its parameters.
    weights: the parameters to start from, by name (pre-trained); else the model's own.
    """

    clients: tuple[Client, ...]
    model: Callable[[], nn.Module]
    weights: Weights | None = None

    def __init__(
        self,
        clients: Sequence[Client],
        model: Callable[[], nn.Module],
        *,
        weights: Weights | None = None,
    ) -> None:
        vars(self).update(clients=tuple(clients), model=model, weights=weights)
        self._check_clients()
        self._check_factory()
        self._check_model()

    def __repr__(self) -> str:
        return f"Federation({len(self.clients)} clients, {int(self.points.sum())} points)"

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""
        return tuple(client.name for client in self.clients)

    @property
    def requirements(self) -> Vector:
        """The accuracy each client wants, or the value of what its goals are compared with."""
        return frozen(np.array([client.requirement for client in self.clients]))

    @property
    def points(self) -> Counts:
        """How many samples each client could give."""
        return frozen(np.array([client.points for client in self.clients], dtype=np.int64))

    @property
    def measures(self) -> tuple[str, ...]:
        """What clients want, by the names of their goals; an accuracy where there are none."""
        return tuple(dict.fromkeys(g.name for c in self.clients for g in c.listed_goals))

    def replace(self, clients: Sequence[Client]) -> Federation:
        """Return a federation of other clients with the same model and weights."""
        return Federation(clients, self.model, weights=self.weights)

    def only(self, position: int) -> Federation:
        """Return the federation of one client alone."""
        return self.replace([self.clients[position]])

    def deal(self, trial: int) -> Federation:
        """Return the federation of a trial: always itself, as its clients' samples are fixed."""
        return self

    def start(self) -> nn.Module:
        """Make the model that all clients start from; torch's generator replaces absent weights."""
        model = self.model()
        if self.weights is not None:
            state = {name: torch.as_tensor(np.array(v)) for name, v in self.weights.items()}
            try:
                model.load_state_dict(state)
            except RuntimeError as error:
                detail = " ".join(str(error).split())
                raise InputError(f"the weights do not fit the model: {detail}") from None
        return model

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that a run depends on: samples, goals, model and weights.

        Scored samples are left out: no run depends on them.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = self.start()
        digest = hashlib.sha256(repr(model).encode())
        if dropouts(model):
            # Scores from before clients had their own masks cannot be made again.
            digest.update(b"masks by client")
        for client in self.clients:
            digest.update(repr((client.name, client.requirement)).encode())
            for goal in client.goals:
                digest.update(repr(goal.key).encode())
        for tensor in itertools.chain(model.state_dict().values(), self._tensors()):
            digest.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
            digest.update(tensor.detach().contiguous().numpy().tobytes())
        digest.update(self._first_scores(model))
        return digest.hexdigest()

    def _first_scores(self, model: nn.Module) -> bytes:
        """Return the model's rounded scores of the first points: they show what its layers do."""
        with torch.random.fork_rng(devices=[]), torch.inference_mode():
            torch.manual_seed(0)
            scores = model.eval()(self.clients[0].inputs[:4]).to(torch.float64).numpy()
        largest = max(float(np.abs(scores).max()), 1e-300)
        return bytes(np.round(scores / largest, 2).tobytes())

    def _tensors(self) -> Iterator[Tensor]:
        for client in self.clients:
            yield from (getattr(client, f.name) for f in dataclasses.fields(client)[1:5])

    def _check_clients(self) -> None:
        if not self.clients:
            raise InputError("a federation needs at least one client")
        seen: set[str] = set()
        shape = self.clients[0].inputs.shape[1:]
        for client in self.clients:
            if client.name in seen:
                raise InputError(f"two clients are called {client.name}; rename one of them")
            seen.add(client.name)
            if client.inputs.shape[1:] != shape:
                raise InputError(
                    f"inputs of {client.name} have shape {tuple(client.inputs.shape[1:])}, those "
                    f"of {self.clients[0].name} {tuple(shape)}; use one shape for all"
                )

    def _check_factory(self) -> None:
        """Raise an InputError if one run's model would be carried into the next."""
        remedy = "pass a function that makes a new model each time, such as lambda: MyModel()"
        if isinstance(self.model, nn.Module):
            raise InputError(
                f"the model is a single object, and every run would continue it: {remedy}"
            )
        with torch.random.fork_rng(devices=[]):
            one, other = self.model(), self.model()
        if one is other:
            raise InputError(f"the model function returns the same object twice: {remedy}")
        kinds = {p.dtype for p in one.parameters() if p.is_floating_point()}
        if len(kinds) == 1:
            fitting = tuple(client.with_type(*kinds) for client in self.clients)
            vars(self)["clients"] = fitting

    def _check_model(self) -> None:
        """Raise an InputError if the model does not accept the inputs or lacks a label."""
        with torch.random.fork_rng(devices=[]), torch.inference_mode():
            model = self.start().eval()
            first = self.clients[0].inputs[:1]
            try:
                scores = model(first)
            except (RuntimeError, ValueError, IndexError) as error:
                detail = " ".join(str(error).split())
                raise InputError(
                    f"the model does not accept inputs of shape {tuple(first.shape[1:])} and type "
                    f"{str(first.dtype).removeprefix('torch.')}: {detail}"
                ) from None
        if not isinstance(scores, Tensor) or scores.ndim != 2 or len(scores) != 1:
            got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise InputError(f"the model must return one row of scores per input; it returns {got}")
        classes = scores.shape[1]
        kind = self.clients[0].kind
        if kind != "classes" and classes != 1:
            raise InputError(
                f"the model returns {classes} numbers per input; goals about {kind} need one"
            )
        for client in self.clients:
            if client.kind != kind:
                raise InputError(
                    f"{self.clients[0].name} has goals about {kind}, and {client.name} about "
                    f"{client.kind}; one model cannot learn both"
                )
            client.check_goals(classes)
            if kind != "classes":
                continue
            for labels in (client.labels, client.validation_labels, client.scored_labels):
                if labels is None:
                    continue
                low, high = int(labels.min()), int(labels.max())
                if low < 0 or high >= classes:
                    raise InputError(
                        f"{client.name} has the label {low if low < 0 else high}, and the model "
                        f"knows {classes} classes, 0 to {classes - 1}; renumber the labels or give "
                        "the model more classes"
                    )
