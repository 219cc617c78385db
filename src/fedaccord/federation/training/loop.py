"""The one loop around every algorithm: draw, step, test the goal, note what happened.

A run depends on its seed alone. Which points a client brings, the batches it draws, the start of
the model, dropout and the points a goal test looks at have a random stream each; a client's
streams go by its name. So one client's cut moves nobody else's draws or masks, a client needs no
memory of the rounds before, and how often one looks does not change what is learnt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedaccord._checks import Vector
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.allotment import Counts
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.clients import Client, Federation, Weights
from fedaccord.federation.history import History
from fedaccord.federation.models.layers import ClientRows, dropouts, ready_dropout
from fedaccord.federation.training.rng import Draws, derived_seed, goal_rows, stream
from fedaccord.federation.training.session import Course, Notes
from fedaccord.federation.training.steps import Drawn, stepper

Contributions: TypeAlias = Allocation | Mapping[str, int] | Sequence[int] | Counts


def train(
    federation: Federation,
    algorithm: Algorithm,
    *,
    contributions: Contributions | None = None,
    seed: int = 0,
) -> History:
    """Train the federation's model and tell what happened.

    federation: the clients and the model.
    algorithm: who draws how much, and how the model is stepped.
    contributions: how many of its points each client brings, in the clients' order or by name,
        all of them where left out; a client that brings fewer brings a part of what it would
        bring otherwise.
    seed: of everything random in the run.
    """
    brought = check_contributions(federation, contributions)
    if algorithm.trains_alone:
        clients = range(len(federation.clients))
        return History.side_by_side(
            [_train(federation.only(i), algorithm, brought[i : i + 1], seed) for i in clients]
        )
    return _train(federation, algorithm, brought, seed)


def _train(federation: Federation, algorithm: Algorithm, brought: Counts, seed: int) -> History:
    course = Course(algorithm, brought, federation.requirements)
    notes = Notes(course, federation.names, seed=seed)
    with reproducibly(seed):
        model = starting_model(federation)
        step = stepper(model, course, seed=seed)
        pools = [Pool(c, int(n), seed) for c, n in zip(federation.clients, brought, strict=True)]
        validation = Validation(federation, seed)
        checkpoints: dict[str, Weights] = {}
        for n in range(algorithm.rounds):
            counts = course.allot()
            losses = step([pool.draw(int(c)) for pool, c in zip(pools, counts, strict=True)])
            notes.training(counts, np.array([pool.unique for pool in pools]), losses)
            diverged = not np.isfinite(losses[counts > 0]).all()
            if algorithm.evaluates(n) and not diverged:
                notes.evaluation(validation.accuracies(model))
                diverged = not np.isfinite(notes.last).all()
            if algorithm.tests(n) and not diverged:
                looked_at = algorithm.goal_test_points
                tested = (
                    notes.last if looked_at is None else validation.sampled(model, looked_at, n + 1)
                )
                leaving = [federation.names[i] for i in course.test(tested)]
                checkpoints |= {name: current_weights(model) for name in leaving}
            if course.ended and not diverged and np.isnan(notes.last).any():
                # The last accuracies are known, in whichever round it ends.
                notes.evaluation(validation.accuracies(model))
                diverged = not np.isfinite(notes.last).all()
            if diverged:
                notes.ruin()
            if diverged or course.ended:
                break
        return notes.history(current_weights(model), checkpoints)


def check_contributions(federation: Federation, given: Contributions | None) -> Counts:
    """Read how many points each client brings, or say whose number is wrong."""
    points = federation.points
    if given is None:
        return points
    if isinstance(given, Mapping):
        given = Allocation(list(given.values()), list(given))
    allocation = given if isinstance(given, Allocation) else Allocation(np.asarray(given))
    values = allocation.ordered_for(federation.names).contributions
    if len(values) != len(points):
        raise InputError(f"{len(points)} clients need one contribution each; got {len(values)}")
    whole = values.astype(np.int64)
    for name, value, most in zip(federation.names, values, points, strict=True):
        if value != int(value):
            raise InputError(f"{name} cannot bring {value:g} points; give a whole number")
        if value > most:
            raise InputError(f"{name} cannot bring {value:g} points: it has {most}")
    if not whole.any():
        raise InputError("nobody brings any point; let at least one client bring some")
    return whole


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, as results depend on how sums are split over threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def reproducibly(seed: int) -> Iterator[None]:
    """Run with torch's generator seeded and on one thread, and leave both as they were."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, "torch"))
        yield


def starting_model(federation: Federation) -> nn.Module:
    """Make the model a run starts from; no row is masked before it is readied for its client."""
    model = federation.start()
    ready_dropout(model, [], seed=0)
    return model.train()


def current_weights(model: nn.Module) -> dict[str, NDArray[Any]]:
    """Copy a model's parameters and buffers, by name."""
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def give_streams(model: nn.Module, seed: int) -> None:
    """Give each dropout of ours in a model a random stream of its own, for whoever trains alone."""
    for place, module in enumerate(dropouts(model)):
        module.stream = stream(seed, "dropout", place)


def client_streams(model: nn.Module, name: str, *, seed: int, drawn: int, rows: int) -> None:
    """Ready a model's dropout for the next rows of one client, from streams of its own.

    The masks are those that the client's rows have in `train`, whoever else trains. A pass with
    more rows than these raises an error.

    model: in which every dropout of ours is readied.
    name: the client's.
    seed: of the run.
    drawn: how many samples the client had drawn before this round; in the pooled form, before
        this step.
    rows: how many samples it drew now.
    """
    ready_dropout(model, [ClientRows(name, drawn, rows)], seed=seed)


class Pool:
    """The points a client brings, drawn in shuffled passes."""

    def __init__(self, client: Client, contribution: int, seed: int) -> None:
        self._client = client
        self._draws = Draws(client.name, client.points, contribution, seed=seed)

    @property
    def unique(self) -> int:
        """How many different points were drawn so far."""
        return self._draws.unique

    def draw(self, count: int) -> Drawn:
        """Draw the next so many samples."""
        client, before = self._client, self._draws.drawn
        chosen = torch.from_numpy(self._draws.draw(count))
        return Drawn(client.name, before, client.inputs[chosen], client.labels[chosen])


class Validation:
    """Everybody's validation points, on which accuracy is measured together."""

    def __init__(self, federation: Federation, seed: int) -> None:
        clients = federation.clients
        self._names = federation.names
        self._seed = seed
        self._inputs = torch.cat([client.validation_inputs for client in clients])
        self._labels = torch.cat([client.validation_labels for client in clients])
        self._sizes = [len(client.validation_labels) for client in clients]

    def accuracies(self, model: nn.Module) -> Vector:
        """Measure everybody's accuracy on all points."""
        return _accuracies(model, self._inputs, self._labels, self._sizes)

    def sampled(self, model: nn.Module, count: int, round_number: int) -> Vector:
        """Measure everybody's accuracy on so many points each, drawn anew each round."""
        starts = np.cumsum([0, *self._sizes[:-1]])
        chosen = [
            start + goal_rows(name, size, count, seed=self._seed, round_number=round_number)
            for start, name, size in zip(starts, self._names, self._sizes, strict=True)
        ]
        rows = torch.from_numpy(np.concatenate(chosen))
        sizes = [len(mine) for mine in chosen]
        return _accuracies(model, self._inputs[rows], self._labels[rows], sizes)


def _accuracies(model: nn.Module, inputs: Tensor, labels: Tensor, sizes: list[int]) -> Vector:
    right = is_right(model, inputs, labels)
    return np.array([part.mean() for part in np.split(right, np.cumsum(sizes)[:-1])])


def is_right(model: nn.Module, inputs: Tensor, labels: Tensor) -> Vector:
    """Return for each point whether the model names its class: 1, 0, or NaN where it names none.

    A score of minus infinity is a class ruled out; one of NaN, or of infinity, is divergence.
    """
    was_training = model.training
    model.eval()
    # A user's model may draw random numbers even now; those must not shift training's.
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        chunk = getattr(model, "evaluate_chunk", None) or max(len(labels), 1)
        scores = torch.cat([model(part) for part in inputs.split(chunk)])
        best = scores.max(dim=1)
        right = (best.indices == labels).to(torch.float64)
        right[~torch.isfinite(best.values)] = torch.nan
    model.train(was_training)
    return np.asarray(right.numpy())
