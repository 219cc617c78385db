"""Compare a run under NVFlare with the local loop, round by round."""

from typing import Any

import numpy as np
from federation.nvflare.in_process import local_federation
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord.federation import History, train
from fedaccord.federation.algorithms.base import Algorithm


def run_locally(algorithm: Algorithm, plan: Any, *, seed: int, pledges: bool = False) -> History:
    """Return the run of the local loop; with pledges, sites give what they have of the plan."""
    federation = local_federation()
    if not pledges:
        return train(federation, algorithm, contributions=plan, seed=seed)
    brought = np.minimum(plan, federation.points)
    return train(federation, algorithm.committed(plan), contributions=brought, seed=seed)


def assert_agree(found: History, local: History) -> None:
    """Assert that the same samples were drawn, and that models differ by rounding alone."""
    assert found.clients == local.clients
    assert_array_equal(found.samples, local.samples)
    assert_array_equal(found.unique, local.unique)
    assert_array_equal(found.contributions, local.contributions)
    assert_array_equal(np.isnan(found.accuracy), np.isnan(local.accuracy))
    # Accuracies are shares of 50 validation points: one point more or less would be 0.02.
    assert_allclose(found.accuracy, local.accuracy, atol=1e-6)
    assert_allclose(found.loss, local.loss, rtol=1e-5, atol=1e-6)
    for name, weight in local.weights.items():
        assert_allclose(found.weights[name], weight, rtol=1e-4, atol=1e-6)
    assert list(found.checkpoints) == list(local.checkpoints)
    for client, weights in local.checkpoints.items():
        for name, weight in weights.items():
            assert_allclose(found.checkpoints[client][name], weight, rtol=1e-4, atol=1e-6)
