"""Find samples that are not genuine: copies, and samples that a client made up.

Copies are found by hashes. Each client hashes its samples with a salt that all clients share and
the server does not know, so that the server can compare hashes and cannot guess samples. Equal
samples have equal hashes; a sample that differs in one bit has another hash.

Made-up samples are found by a test within each label: do a client's samples of this label look
like the others' samples of it? Every sample is reduced to a few numbers, and the Cramér-von Mises
statistic compares how these are distributed. Clinton, Chen, Zhu and Kandasamy (NeurIPS 2025) show
that rewards by this statistic make honesty an equilibrium where all clients draw from one
distribution. Honest clients that draw from different distributions look suspicious too, so a small
p-value is a reason to ask, and no proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord.errors import InputError

# How many principal directions of the others' samples a sample is reduced to; what is left of it
# beyond these is one number more.
DIRECTIONS = 3
# A label is tested where the client and the others have at least this many samples of it.
FEWEST_OWN, FEWEST_OTHERS = 5, 20


def hash_samples(inputs: ArrayLike, labels: ArrayLike, *, salt: bytes) -> list[str]:
    """Return a hash of each sample, with its label.

    inputs, labels: the samples, one row each.
    salt: a secret that all clients share; at least 16 bytes.
    """
    if len(salt) < 16:
        raise InputError(
            f"the salt must have at least 16 bytes, or hashes are guessed; got {len(salt)}"
        )
    rows = np.ascontiguousarray(inputs)
    names = np.asarray(labels, dtype=np.int64)
    if len(rows) != len(names):
        raise InputError(f"{len(rows)} samples need one label each; got {len(names)}")
    return [
        hashlib.blake2b(
            row.tobytes() + int(label).to_bytes(8, "little", signed=True), key=salt[:64]
        ).hexdigest()[:32]
        for row, label in zip(rows, names, strict=True)
    ]


@dataclass(frozen=True)
class Copies:
    """Samples that appear more than once.

    within: for each client, how many of its samples repeat another of its own.
    across: for each pair of clients, how many different samples both have; pairs with none are
        left out.
    """

    within: Mapping[str, int]
    across: Mapping[tuple[str, str], int]

    def to_dict(self) -> dict[str, Any]:
        """Return the copies as plain values."""
        pairs = [{"clients": list(pair), "samples": n} for pair, n in self.across.items()]
        return {"within": dict(self.within), "across": pairs}


def find_copies(hashes: Mapping[str, Sequence[str]]) -> Copies:
    """Return which clients gave the same sample twice, or the same as another client.

    hashes: of each client's samples, all made with the same salt.
    """
    different = {name: set(own) for name, own in hashes.items()}
    pairs = ((a, b, len(different[a] & different[b])) for a, b in combinations(hashes, 2))
    return Copies(
        within={name: len(own) - len(different[name]) for name, own in hashes.items()},
        across={(a, b): shared for a, b, shared in pairs if shared},
    )


@dataclass(frozen=True)
class Suspicion:
    """How much a client's samples differ from the others' within a label.

    client: its name.
    p_value: the chance of a difference as large if it drew from the others' distribution,
        corrected for the number of tests; 1 where nothing could be tested.
    label: where the difference is largest; None where nothing could be tested.
    tests: how many comparisons were made.
    """

    client: str
    p_value: float
    label: int | None
    tests: int


def compare_samples(samples: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> list[Suspicion]:
    """Test each client's samples against the pooled samples of the others, label by label.

    samples: inputs and labels of each client.
    """
    flat = {
        name: (
            np.asarray(inputs, dtype=float).reshape(len(np.asarray(labels)), -1),
            np.asarray(labels),
        )
        for name, (inputs, labels) in samples.items()
    }
    return [_test_client(name, flat) for name in flat]


def _test_client(name: str, samples: Mapping[str, tuple[Any, Any]]) -> Suspicion:
    own, labels = samples[name]
    others = np.concatenate([rows for other, (rows, _) in samples.items() if other != name])
    their = np.concatenate([names for other, (_, names) in samples.items() if other != name])
    found: list[tuple[float, int]] = []
    for label in np.unique(labels).tolist():
        mine, theirs = own[labels == label], others[their == label]
        if len(mine) >= FEWEST_OWN and len(theirs) >= FEWEST_OTHERS:
            found += [(p, int(label)) for p in _compare(mine, theirs)]
    if not found:
        return Suspicion(name, 1.0, None, 0)
    least, label = min(found)
    return Suspicion(name, min(1.0, least * len(found)), label, len(found))


def _compare(mine: NDArray[Any], theirs: NDArray[Any]) -> list[float]:
    """Return the p-values of comparing two sets of samples, one for each number they reduce to."""
    from scipy.stats import cramervonmises_2samp

    # The directions are fitted on half of the others' samples and compared on the other half:
    # the fitted half lies nearer to its own directions than any new sample would.
    fitted, compared = theirs[::2], theirs[1::2]
    middle = fitted.mean(axis=0)
    directions = np.linalg.svd(fitted - middle, full_matrices=False)[2][:DIRECTIONS]

    def reduce(rows: NDArray[Any]) -> NDArray[Any]:
        along = (rows - middle) @ directions.T
        rest = np.linalg.norm(rows - middle - along @ directions, axis=1)
        return np.column_stack([along, rest])

    pairs = zip(reduce(mine).T, reduce(compared).T, strict=True)
    return [
        float(cramervonmises_2samp(a, b, method="asymptotic").pvalue)
        for a, b in pairs
        if np.ptp(np.concatenate([a, b])) > 1e-9
    ]
