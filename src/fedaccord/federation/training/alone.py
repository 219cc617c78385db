"""What a client reaches if it trains on alone, from the shared model, with its own samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from fedaccord._checks import Indices, frozen
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.clients import Client, Federation, Weights
from fedaccord.federation.history import History, WentOn
from fedaccord.federation.models.networks import dropouts
from fedaccord.federation.training.loop import (
    copy_weights,
    find_scores,
    is_right,
    judge,
    reproducibly,
    take_step,
)
from fedaccord.federation.training.rng import draw_contribution, stream
from fedaccord.federation.training.steps import find_losses, new_optimizer

# Each rate, as a multiple of the algorithm's own, is followed for the longest number of passes,
# and looked at after each of these.
RATES = (1.0, 0.1)
PASSES = (1, 3, 10)
BATCH = 32
# With fewer samples than this a client cannot set half of them aside to choose by.
FEWEST_TO_CHOOSE = 8


@dataclass(frozen=True)
class AloneModel:
    """The model of a client that went on alone.

    weights: of its model in the end.
    passes: how many passes over its samples it made; 0 without samples.
    rate: the learning rate, as a multiple of the algorithm's.
    """

    weights: Weights
    passes: int
    rate: float


def go_on_alone(
    federation: Federation,
    client: Client,
    weights: Weights,
    samples: Indices,
    algorithm: Algorithm,
    *,
    seed: int,
) -> AloneModel:
    """Return the model of a client that goes on training with its own samples.

    It chooses how long and how fast on the later half of the samples: it trains on the earlier
    half, and takes what is most accurate on the later. Then it trains like that on all of them.
    Neither its validation samples nor anybody else's are looked at. The caller decides whether
    the model that it got was better: a client may keep that one.

    federation: makes the model.
    client: whose samples they are.
    weights: of the model that it got.
    samples: which of its samples it has. Those it gave come first: on these the model that it got
        looks better than it is.
    algorithm: whose optimizer and learning rate it uses.
    seed: of the order of samples.
    """
    if not len(samples):
        return AloneModel(weights, 0, 1.0)
    passes, rate = PASSES[0], RATES[-1]
    if len(samples) >= FEWEST_TO_CHOOSE:
        halves = np.array_split(samples, 2)
        passes, rate = _choose(federation, client, weights, halves, algorithm, seed)
    model = _load(federation, weights, client, seed)
    random = stream(seed, "go on alone", client.name)
    for _ in _train_passes(model, client, samples, algorithm, rate, (passes,), random):
        pass
    return AloneModel(copy_weights(model), passes, rate)


def let_go_on(
    federation: Federation, algorithm: Algorithm, history: History, clients: Sequence[int]
) -> History:
    """Return a history with the accuracies of clients that went on alone when it had ended.

    Each starts from the last model that it got. It goes on once with the samples that it gave,
    and once with all that it has.

    federation: with the samples that clients really have.
    algorithm: that trained.
    history: of the run, with the weights that came of it.
    clients: which go on.
    """
    given, kept = (np.full(len(federation.clients), np.nan) for _ in range(2))
    with reproducibly(history.seed):
        for place in clients:
            client = federation.clients[place]
            weights = history.checkpoints.get(client.name)
            if weights is None and history.diverged:
                continue
            received = history.weights if weights is None else weights
            own = draw_contribution(client.name, client.points, client.points, seed=history.seed)
            for found, samples in ((given, own[: _count_given(history, place)]), (kept, own)):
                went = go_on_alone(
                    federation, client, received, samples, algorithm, seed=history.seed
                )
                found[place] = _judge(federation, client, went.weights, history.seed)
    return dataclasses.replace(history, went_on=WentOn(frozen(given), frozen(kept)))


def _count_given(history: History, place: int) -> int:
    """Return how many genuine samples a client gave."""
    tactic = history.tactic
    if tactic is not None and tactic.genuine and place in tactic.clients:
        return tactic.genuine[tactic.clients.index(place)]
    return int(history.contributions[place])


def _judge(federation: Federation, client: Client, weights: Weights, seed: int) -> float:
    """Return the accuracy of a model on a client's scored samples, or else its validation's."""
    model = _load(federation, weights, client, seed)
    if client.scored_inputs is not None and client.scored_labels is not None:
        scores = find_scores(model, client.scored_inputs)
        return judge(client, scores, client.scored_labels, scored=True)
    return judge(client, find_scores(model, client.validation_inputs), client.validation_labels)


def _choose(
    federation: Federation,
    client: Client,
    weights: Weights,
    halves: Sequence[Indices],
    algorithm: Algorithm,
    seed: int,
) -> tuple[int, float]:
    """Return how many passes, at which rate, over one half did best on the other."""
    train, held_out = halves

    def measure(model: nn.Module) -> float:
        if client.kind != "classes":
            scores = find_scores(model, client.inputs[held_out])
            return -float(find_losses(scores, client.labels[held_out]).mean().nan_to_num(torch.inf))
        right = is_right(model, client.inputs[held_out], client.labels[held_out])
        return float(np.nan_to_num(right, nan=0.0).mean())

    tried = []
    for rate in RATES:
        model = _load(federation, weights, client, seed)
        random = stream(seed, "choose how to go on", client.name)
        for passes in _train_passes(model, client, train, algorithm, rate, PASSES, random):
            # Between choices that do equally well, the shorter and slower changes least.
            tried.append((measure(model), -passes, -rate))
    _, passes, rate = max(tried)
    return -passes, -rate


def _train_passes(
    model: nn.Module,
    client: Client,
    samples: Indices,
    algorithm: Algorithm,
    rate: float,
    marks: tuple[int, ...],
    random: np.random.Generator,
) -> Iterator[int]:
    """Train pass after pass, and yield at each mark how many passes were made."""
    optimizer = new_optimizer(model, algorithm.optimizer, algorithm.learning_rate * rate)
    for done in range(1, max(marks) + 1):
        order = torch.from_numpy(random.permutation(samples))
        # One sample alone cannot be normalised by its batch: it joins the batch before it.
        count = max(1, round(len(order) / min(BATCH, algorithm.batch_size)))
        for batch in order.tensor_split(count):
            model.train()
            take_step(model, optimizer, client.inputs[batch], client.labels[batch])
        if done in marks:
            yield done


def _load(federation: Federation, weights: Weights, client: Client, seed: int) -> nn.Module:
    model = federation.model()
    model.load_state_dict({name: torch.as_tensor(np.array(v)) for name, v in weights.items()})
    for place, layer in enumerate(dropouts(model)):
        layer.stream = stream(seed, "dropout alone", client.name, place)
    return model
