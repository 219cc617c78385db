"""Samples and updates that are not genuine: how a defector hides that it gives less.

    copies   it fills its pledge up with copies of its genuine samples
    labels   it fills its pledge up with samples of its own whose labels are shuffled
    noise    it fills its pledge up with noise, labelled like its genuine samples
    idle     it takes part in every round and returns the model that it got
    random   the same, with noise added, as large as the last change of the model

The first three change a defector's data before training, so that every algorithm and every form
of training sees them. The last two change its updates.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Counts
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.defection.tactic import FAKE_SAMPLES, Tactic
from fedaccord.federation.training.rng import draw_contribution, stream


def deceive(federation: Federation, brought: Counts, tactic: Tactic, *, seed: int) -> Federation:
    """Return the federation with fake samples in the place of those that defectors withhold.

    federation: with honest samples.
    brought: how many samples each client claims to give.
    tactic: who defects, and with what it fills its pledge up.
    seed: of the run, which decides which samples a client gives.
    """
    if tactic.filler not in FAKE_SAMPLES:
        return federation
    clients = list(federation.clients)
    for place, genuine in zip(tactic.clients, tactic.genuine, strict=True):
        clients[place] = _fill_up(clients[place], int(brought[place]), genuine, tactic, seed)
    return federation.replace(clients)


def _fill_up(client: Client, claimed: int, genuine: int, tactic: Tactic, seed: int) -> Client:
    given = draw_contribution(client.name, client.points, claimed, seed=seed)
    real, fake = given[:genuine], given[genuine:]
    if not len(real) and tactic.filler != "labels":
        raise InputError(f"{client.name} needs a genuine sample to make {tactic.filler} of")
    random = stream(seed, f"fake {tactic.filler}", client.name)
    inputs, labels = client.inputs.clone(), client.labels.clone()
    if tactic.filler == "labels":
        labels[fake] = client.labels[random.permutation(fake)]
        return client.replace(labels=labels)
    source = np.resize(random.permutation(real), len(fake))
    labels[fake] = client.labels[source]
    if tactic.filler == "copies":
        inputs[fake] = client.inputs[source]
    else:
        middle, spread = (
            client.inputs[real].mean(dim=0),
            client.inputs[real].std(dim=0, correction=0),
        )
        noise = torch.from_numpy(random.standard_normal((len(fake), *middle.shape)))
        inputs[fake] = middle + spread * noise.to(inputs.dtype)
    return client.replace(inputs=inputs, labels=labels)


class FakeUpdates:
    """Replaces the updates of clients that only pretend to train.

    A client that returns the model it got has an update of zero: a gradient of zero where
    gradients are pooled, the server's own model where models are averaged.

    names: of the clients that pretend.
    noisy: whether they add noise to what they return.
    seed: of the noise.
    """

    def __init__(self, names: tuple[str, ...], *, noisy: bool, seed: int) -> None:
        self._names = names
        self._streams = {name: stream(seed, "fake update", name) for name in names if noisy}
        self._last_change = 0.0

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def make(self, name: str, server: Tensor) -> Tensor:
        """Return what a client sends in place of an honest update.

        name: the client's.
        server: what an update of nothing is: a gradient of zero, or the server's model.
        """
        if name not in self._streams or not self._last_change:
            return server
        noise = torch.from_numpy(self._streams[name].standard_normal(server.numel())).to(server)
        return server + noise * (self._last_change / float(noise.norm()))

    def observe(self, change: Tensor) -> None:
        """Note how large the last common update was, which every client sees."""
        self._last_change = float(change.norm())
