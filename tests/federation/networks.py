"""Ways to run a network and to compare what came out with what should have."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy


def generator(seed):
    return np.random.Generator(np.random.SFC64(seed))


def seeded(network, state=None):
    """Give a network the random streams, and perhaps the weights, that others have too."""
    if state is not None:
        network.load_state_dict(state)
    network.dropout1.stream, network.dropout2.stream = generator(1), generator(2)
    return network


def results(network, images, labels):
    """Give the scores of a training batch, all gradients, and the scores in evaluation."""
    network.train()
    network.zero_grad()
    scores = network(images)
    cross_entropy(scores, labels).backward()
    found = {name: weight.grad for name, weight in network.named_parameters()}
    found["scores"] = scores.detach()
    network.eval()
    with torch.inference_mode():
        found["evaluated"] = network(images).clone()
    return found


def assert_near(found, expected, tolerance=2e-6):
    """Check each tensor against its exact value, by the size of that tensor's largest entry."""
    assert found.keys() == expected.keys()
    for name, exact in expected.items():
        assert found[name].shape == exact.shape, name
        error = (found[name].double() - exact.double()).abs().max()
        # Written so that a NaN is an error too.
        assert error <= tolerance * exact.double().abs().max(), f"{name} is off by {error}"


def assert_same_kind(found, expected):
    """Check that NaN and infinities stand in the same places."""
    assert found.keys() == expected.keys()
    for name, exact in expected.items():
        assert torch.equal(found[name].isnan(), exact.isnan()), name
        assert torch.equal(found[name].isposinf(), exact.isposinf()), name
        assert torch.equal(found[name].isneginf(), exact.isneginf()), name
