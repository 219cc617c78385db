"""Agents' distributions over points: the matrix Q that discovery and coverage games share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from fedaccord._checks import as_numbers, check_finite, exact_numbers
from fedaccord.errors import InputError

# A scipy.sparse.csr_array; its stubs cannot follow arithmetic on it.
Sparse: TypeAlias = Any

ROW_SUM_TOLERANCE = 1e-6


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is one of scipy.sparse's."""
    return bool(sparse.issparse(matrix))


def as_sparse(matrix: Any) -> Sparse:
    """Copy a matrix, dense or sparse, into sparse rows of doubles, and check that it is whole."""
    if np.iscomplexobj(matrix):
        raise InputError("a sparse matrix must hold real numbers; got complex ones")
    rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"a sparse matrix is damaged: {error}; make it anew") from None
    return rows


def checked_distributions(distributions: Any, size: int, name_of: Callable[[int], str]) -> Sparse:
    """Check Q and give it as a sparse array with sorted, unique, non-zero entries."""
    if is_sparse(distributions):
        matrix = as_sparse(distributions)
    else:
        dense = as_numbers(distributions, "distributions")
        if dense.ndim != 2:
            raise InputError(
                f"distributions must have one row per agent and one column per point; got shape "
                f"{dense.shape}"
            )
        matrix = as_sparse(dense)
    if matrix.shape[0] != size:
        raise InputError(
            f"distributions must have {size} rows, one per requirement; got {matrix.shape[0]}"
        )
    matrix.sum_duplicates()
    check_sparse(matrix, "a probability", name_of)
    matrix.eliminate_zeros()
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    if (np.abs(sums - 1) > ROW_SUM_TOLERANCE).any():
        agent = int(np.argmax(np.abs(sums - 1) > ROW_SUM_TOLERANCE))
        raise InputError(
            f"the probabilities of {name_of(agent)} sum to {sums[agent]:.9g}, not 1: divide its "
            "row by that sum, or mend it"
        )
    if (matrix.data > 1).any():
        # Within the tolerance of the sum, a certain point may come as 1.0000001.
        matrix.data = np.minimum(matrix.data, 1.0)
    matrix.data.setflags(write=False)
    return matrix


def check_sparse(matrix: Sparse, what: str, name_of: Callable[[int], str]) -> None:
    """Refuse what check_finite refuses, naming the agent of the row."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    check_finite(matrix.data, what, lambda place: name_of(int(rows[place])))


def exact_row(matrix: Sparse, row: int) -> tuple[list[int], list[Fraction]]:
    """Return a row's points and its probabilities as Fractions."""
    span = slice(*matrix.indptr[row : row + 2])
    return matrix.indices[span].tolist(), exact_numbers(matrix.data[span])


def distributions_entry(matrix: Sparse) -> dict[str, Any]:
    """Return the entry of GAME.json that holds Q."""
    return {"distributions": matrix.toarray().tolist()}
