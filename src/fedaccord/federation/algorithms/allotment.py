"""Who draws how many samples in a round: weights and sample counts, free of any framework.

Weights are kept as logarithms. After 250 rounds a factor of 4 has raised a weight 10^150 times;
only differences matter, and those of logarithms neither overflow nor underflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector

Counts = NDArray[np.int64]
# An array or a tensor: whatever can be scaled and added.
Update = TypeVar("Update", bound=Any)

# Equal weights make shares such as 0.9999999999999999, of which the floor would be nothing.
SLACK = 1e-9


def raised(log_weights: Vector, unsatisfied: NDArray[np.bool_], factor: float) -> Vector:
    """Multiply the weights of the unsatisfied by a factor.

    w_i <- c * w_i    for every client i short of its goal
    """
    return np.where(unsatisfied, log_weights + np.log(factor), log_weights)


def shares(log_weights: Vector) -> Vector:
    """Return each client's part of a round's samples, w_i / sum(w)."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def exact_counts(parts: Vector, total: int) -> Counts:
    """Divide a round's samples in proportion to the parts, to the last sample.

    Each client gets the whole part of total * parts_i; what is left goes, one each, to the
    largest remainders, the first client winning a tie.
    """
    ideal = parts * total
    counts = np.floor(ideal + SLACK).astype(np.int64)
    left = total - int(counts.sum())
    if left > 0:
        # A stable sort of the negatives keeps the order of clients among equal remainders.
        remainders = np.round(ideal - counts, 9)
        counts[np.argsort(-remainders, kind="stable")[:left]] += 1
    return counts


def printed_counts(parts: Vector, total: int, batch_size: int) -> Counts:
    """Divide a round's samples as Algorithm 2 prints it: whole batches only, rounded down.

        m_i = total * parts_i,    samples_i = m * floor(m_i / m)

    At one batch a client, whoever is below the average gets nothing at all.
    """
    return batch_size * np.floor(parts * total / batch_size + SLACK).astype(np.int64)


def weighted_mean(updates: Sequence[Update], counts: Counts) -> Update:
    """Average updates (arrays or tensors alike), each weighing as its count of samples.

    sum_i counts_i * update_i / sum(counts)
    """
    parts = [int(count) / int(counts.sum()) for count in counts]
    mean: Update = updates[0] * parts[0]
    for update, part in zip(updates[1:], parts[1:], strict=True):
        mean = mean + update * part
    return mean
