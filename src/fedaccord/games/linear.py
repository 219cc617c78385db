"""Linear utilities u = W theta, and random discovery, where W = Q Q' for distributions Q."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fedaccord._checks import (
    Indices,
    Matrix,
    Vector,
    as_numbers,
    check_finite,
    exact_numbers,
    frozen,
)
from fedaccord._io.npz import Unshared
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import NEAR, Certified, Game, WellBehaved

# Above this many agents no k x k array is made without being asked for.
DENSE_LIMIT = 5_000
# Benefits further apart than this drown in rounding.
LARGEST_RATIO = 1e12
EPSILON = float(np.finfo(np.float64).eps)
# What is computed from a large matrix takes memory for so many entries or rows at a time.
ENTRIES_AT_A_TIME, ROWS_AT_A_TIME = 2**18, 2**10
# A scipy.sparse.csr_array; its stubs cannot follow arithmetic on it.
Sparse: TypeAlias = Any

ROW_SUM_TOLERANCE = 1e-6
# What else to do about a negative benefit.
HARM = ', or use a SignedGame (model "signed") if samples harm others'


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is one of scipy.sparse's."""
    return bool(sparse.issparse(matrix))


def as_sparse(matrix: Any) -> Sparse:
    """Copy a matrix, dense or sparse, into sparse rows of doubles, and check that it is whole.

    A matrix from a file is not copied: it may fill half of the memory.
    """
    if np.iscomplexobj(matrix):
        raise InputError("a sparse matrix must hold real numbers; got complex ones")
    rows = sparse.csr_array(matrix, dtype=np.float64, copy=not isinstance(matrix, Unshared))
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"a sparse matrix is damaged: {error}; make it again") from None
    return rows


def check_distributions(distributions: Any, size: int, name_of: Callable[[int], str]) -> Sparse:
    """Check Q and return it as a sparse array with sorted, unique, non-zero entries."""
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
            "row by that sum, or correct it"
        )
    if (matrix.data > 1).any():
        # Within the tolerance of the sum, a certain point may come as 1.0000001.
        matrix.data = np.minimum(matrix.data, 1.0)
    matrix.data.setflags(write=False)
    return matrix


def check_sparse(
    matrix: Sparse, what: str, name_of: Callable[[int], str], otherwise: str = ""
) -> None:
    """Refuse what check_finite refuses, naming the agent of the row."""

    for first in range(0, matrix.nnz, ENTRIES_AT_A_TIME):

        def name_at(place: int, first: int = first) -> str:
            return name_of(int(np.searchsorted(matrix.indptr, first + place, side="right")) - 1)

        check_finite(matrix.data[first : first + ENTRIES_AT_A_TIME], what, name_at, otherwise)


def exact_row(matrix: Sparse, row: int) -> tuple[list[int], list[Fraction]]:
    """Return a row's points and its probabilities as Fractions."""
    span = slice(*matrix.indptr[row : row + 2])
    return matrix.indices[span].tolist(), exact_numbers(matrix.data[span])


class LinearGame(Game):
    """Agents whose utility is linear in everybody's contributions: u = W theta.

    benefits: W, k x k, dense or scipy.sparse; W[i, j] is what one sample of j adds to i.
    requirements and the rest: see Game.
    """

    model: ClassVar[str] = "linear"

    def __init__(self, benefits: Any, requirements: ArrayLike, **frame: Any) -> None:
        super().__init__(requirements, **frame)
        self.benefits = self._read_benefits(benefits)
        if not (self.own_benefits > 0).all():
            agent = int(np.argmin(self.own_benefits > 0))
            raise UnreachableError(
                f"{self.name(agent)} gains nothing from its own samples (benefits[{agent}, "
                f"{agent}] is zero): no amount of them meets its requirement; give it an own "
                "benefit above zero"
            )

        self._check_ratios()

    def _check_ratios(self) -> None:
        """Refuse benefits so far apart that doubles cannot hold both in one sum."""
        most = self.benefits.max(axis=1)
        ratio = np.asarray(most.toarray() if is_sparse(most) else most).ravel() / self.own_benefits
        if ratio.max() > LARGEST_RATIO:
            agent = int(np.argmax(ratio))
            helpers, benefit = self.row(agent)
            raise InputError(
                f"{self.name(agent)} gains {ratio[agent]:.0e} times as much from a sample of "
                f"{self.name(int(helpers[np.argmax(benefit)]))} as from its own: correct the units "
                "of its benefits"
            )

    def _read_benefits(self, benefits: Any) -> Any:
        k = self.size
        given_sparse = is_sparse(benefits)
        matrix: Any = as_sparse(benefits) if given_sparse else as_numbers(benefits, "benefits")
        if matrix.shape != (k, k):
            raise InputError(
                f"benefits must be {k} x {k}, one row and column per requirement; got shape "
                f"{matrix.shape}"
            )
        if given_sparse:
            matrix.sum_duplicates()
            check_sparse(matrix, "a benefit", self.name, HARM)
            matrix.data.setflags(write=False)
            return matrix
        check_finite(matrix, "the benefit", self.name, HARM)
        # Rows are read one at a time, so they should lie together.
        return frozen(np.ascontiguousarray(matrix))

    # The matrix as an operator: solvers use only these.

    def apply(self, contributions: Vector) -> Vector:
        """Return W theta."""
        return np.asarray(self.benefits @ contributions)

    def apply_transposed(self, prices: Vector) -> Vector:
        """Return W' y."""
        return np.asarray(self.benefits.T @ prices)

    @cached_property
    def own_benefits(self) -> Vector:
        """The diagonal of W: what one sample adds to its own giver."""
        return frozen(np.array(self.benefits.diagonal()))

    def benefits_among(self, rows: Indices, columns: Indices) -> Matrix:
        """Return a block of W as a dense array."""
        block = self.benefits[rows][:, columns]
        return np.asarray(block.toarray() if is_sparse(block) else block)

    @cached_property
    def dense_benefits(self) -> Matrix:
        """The whole of W as a dense array."""
        everyone = np.arange(self.size)
        return frozen(self.benefits_among(everyone, everyone))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether W equals its transpose, up to rounding."""
        scaled = self._unit_diagonal(self.benefits)
        # Beside the larger of the two, or of the own benefits, which are one here.
        difference = abs(scaled - scaled.T) - 1e-12 * (scaled + scaled.T)
        return bool(difference.max() <= 1e-12)

    def _unit_diagonal(self, matrix: Any) -> Any:
        """Divide rows and columns by the roots of the own benefits.

        That keeps symmetry and definiteness, and agents with small benefits count like any other.
        """
        side = 1 / np.sqrt(self.own_benefits)
        if is_sparse(matrix):
            return sparse.csr_array(sparse.diags_array(side) @ matrix @ sparse.diags_array(side))
        return side[:, None] * matrix * side

    @cached_property
    def is_psd(self) -> bool | None:
        """Whether (W + W')/2 is positive semidefinite; None where too large to tell.

        Gershgorin's bound decides diagonally dominant matrices of any size; otherwise a Cholesky
        factorisation does up to DENSE_LIMIT agents, and above that Lanczos' iteration, if it
        settles.
        """
        symmetric: Any = self._unit_diagonal((self.benefits + self.benefits.T) / 2)
        rows = np.asarray(symmetric.sum(axis=1)).ravel()
        if (rows <= 2).all():
            return True
        if self.size > DENSE_LIMIT:
            return _is_psd_by_lanczos(symmetric)
        array = symmetric.toarray() if is_sparse(symmetric) else np.array(symmetric)
        # Rounding may push a zero eigenvalue just below zero: shift by more than that.
        array[np.diag_indices(self.size)] += 1e-12 * self.size
        try:
            np.linalg.cholesky(array)
        except np.linalg.LinAlgError:
            return False
        return True

    @property
    def has_equal_totals(self) -> bool:
        """Whether every equilibrium of this game, if PSD, has the same total.

        For two equilibria theta and theta' of a game with W + W' PSD, (W + W')(theta - theta') = 0
        and mu'(theta - theta') = 0; equal requirements make the latter the difference of totals.
        """
        equal_costs = np.ptp(self.costs) == 0
        return bool(equal_costs and np.ptp(self.requirements) == 0)

    # What every model answers.

    def utilities(self, contributions: Vector) -> Vector:
        """Return W theta."""
        return self.apply(contributions)

    def jacobian(self, contributions: Vector) -> Matrix:
        """Return W, whatever the contributions."""
        return self.dense_benefits

    def _responses(self, contributions: Vector) -> Vector:
        slack = self.apply(contributions) - self.requirements
        return np.maximum(contributions - slack / self.own_benefits, 0.0)

    def row(self, agent: int) -> tuple[Indices, Vector]:
        """Return the agents whose samples help one agent, and by how much."""
        if is_sparse(self.benefits):
            ends = self.benefits.indptr[agent : agent + 2]
            span = slice(*ends)
            return self.benefits.indices[span], self.benefits.data[span]
        return np.arange(self.size), self.benefits[agent]

    def helpers(self, agent: int) -> Indices:
        """Return the agents j with W_ij > 0."""
        helpers, benefit = self.row(agent)
        return helpers[benefit > 0]

    def own_rates(self, agents: Indices, contributions: Vector) -> Vector:
        """Return W_ii."""
        return self.own_benefits[agents]

    def _response(self, agent: int, contributions: Vector) -> float:
        helpers, benefit = self.row(agent)
        slack = benefit @ contributions[helpers] - self.requirements[agent]
        return max(float(contributions[agent] - slack / self.own_benefits[agent]), 0.0)

    def _whole_response(self, agent: int, needed: float, contributions: Vector) -> float:
        """Round a real response up, in fractions where it is the difference of larger numbers.

        f_i = theta_i + mu_i / W_ii - u_i / W_ii, and k products that add up to the last err by k
        units in their last place.
        """
        size = float(contributions[agent] + self.requirements[agent] / self.own_benefits[agent])
        if EPSILON * (self.size + 4) * size <= NEAR / 2 * max(1.0, needed):
            return super()._whole_response(agent, needed, contributions)
        given = exact_numbers(contributions)
        one = [Fraction(j == agent) for j in range(self.size)]
        missing = self.exact_requirements[agent] - self.exact_utility(agent, given)
        return float(max(math.ceil(given[agent] + missing / self.exact_utility(agent, one)), 0))

    def swapped_utilities(self, contributions: Vector, agent: int, others: Indices) -> Vector:
        """Return u_i after each swap: u_i(theta) + (theta_i - theta_j)(W_ij - W_ii)."""
        helpers, benefit = self.row(agent)
        order = np.argsort(helpers)
        places = order[np.searchsorted(helpers, others, sorter=order).clip(max=len(order) - 1)]
        cross = np.where(helpers[places] == others, benefit[places], 0.0)
        gap = contributions[agent] - contributions[others]
        utility = float(benefit @ contributions[helpers])
        return np.asarray(utility + gap * (cross - self.own_benefits[agent]))

    def swaps(
        self, contributions: Vector, agents: Indices, gap: float = 0.0
    ) -> tuple[Indices, Indices, Vector]:
        """Return pairs (i, j) of these agents with helpers who give less, and u_i if swapped."""
        rows = sparse.csr_array(self._rows(agents))
        utility, own = np.asarray(rows @ contributions), self.own_benefits[agents]
        if gap > 0:
            # After a swap the slack is s_i - (theta_i - theta_j)(W_ii - W_ij): burdens apart by
            # more than the gap, a smaller W_ij leaves i short by over a hundredth of it.
            least = 0.99 * own - np.maximum(utility - self.requirements[agents], 0.0) / gap
            kept = np.flatnonzero(rows.data >= np.repeat(least, np.diff(rows.indptr)))
        else:
            kept = np.arange(rows.data.size)
        place = np.searchsorted(rows.indptr, kept, side="right") - 1
        second = rows.indices[kept].astype(np.intp)
        apart = contributions[agents[place]] - contributions[second]
        lower = apart > gap
        place, second, apart = place[lower], second[lower], apart[lower]
        after = utility[place] + apart * (rows.data[kept[lower]] - own[place])
        return agents[place], second, after

    def _rows(self, agents: Indices) -> Any:
        """Return some rows of W."""
        return self.benefits[agents]

    @cached_property
    def exact_benefits(self) -> list[list[Fraction]]:
        """W in fractions, row by row, every float read as its simplest fraction."""
        return [exact_numbers(row) for row in self.dense_benefits]

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return W_i theta in Fractions."""
        helpers, benefit = self.row(agent)
        return sum(
            (w * contributions[j] for w, j in zip(exact_numbers(benefit), helpers, strict=True)),
            Fraction(0),
        )

    def well_behaved(self, box: ArrayLike | None = None) -> WellBehaved:
        """Certified on every box: c2 = W_ii > 0, c1 = max over j of W_ij."""
        corner = self.alone if box is None else as_numbers(box, "box")
        return Certified(self.own_benefits, self._largest_cross_benefits(), frozen(corner))

    def _largest_cross_benefits(self) -> Vector:
        others = self.benefits - (
            sparse.diags_array(self.own_benefits)
            if is_sparse(self.benefits)
            else np.diag(self.own_benefits)
        )
        largest = others.max(axis=1)
        return np.asarray(largest.toarray() if is_sparse(largest) else largest).ravel()

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        matrix = self.benefits if keep is None else self.benefits[keep][:, keep]
        return {"benefits": matrix}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        return {"model": "linear", **self._frame_dict(), "benefits": self.dense_benefits.tolist()}


def _is_psd_by_lanczos(symmetric: Any) -> bool | None:
    """Return whether the least eigenvalue is at least zero, up to rounding; None if unknown."""
    from scipy.sparse import linalg

    start = np.random.default_rng(0).random(symmetric.shape[0])
    try:
        least = linalg.eigsh(
            symmetric, k=1, which="SA", v0=start, maxiter=500, return_eigenvectors=False
        )[0]
    except linalg.ArpackNoConvergence:
        return None
    return bool(least >= -1e-9 * symmetric.diagonal().max())


class DiscoveryGame(LinearGame):
    """Random discovery: agent i is rewarded q_ix whenever anyone draws x, so that W = Q Q'.

    W is never formed: only Q, sparse, is kept.

    distributions: Q, k x n, dense or scipy.sparse; row i is agent i's distribution over points.
    """

    model: ClassVar[str] = "discovery"

    def __init__(self, distributions: Any, requirements: ArrayLike, **frame: Any) -> None:
        Game.__init__(self, requirements, **frame)
        self.distributions = check_distributions(distributions, self.size, self.name)

    @property
    def benefits(self) -> Any:
        """W = Q Q' as a sparse array; made again at each call, and large."""
        return sparse.csr_array(self.distributions @ self.distributions.T)

    def apply(self, contributions: Vector) -> Vector:
        """Return Q (Q' theta)."""
        return np.asarray(self.distributions @ (self.distributions.T @ contributions))

    def apply_transposed(self, prices: Vector) -> Vector:
        """Return Q (Q' y): W is symmetric."""
        return self.apply(prices)

    @cached_property
    def own_benefits(self) -> Vector:
        """The squared length of each agent's distribution."""
        # Some rows at a time: Q may fill memory.
        starts = range(0, self.size, ROWS_AT_A_TIME)
        parts = (self.distributions[first : first + ROWS_AT_A_TIME] for first in starts)
        return frozen(np.concatenate([part.power(2).sum(axis=1) for part in parts]))

    def benefits_among(self, rows: Indices, columns: Indices) -> Matrix:
        """Return a block of Q Q' as a dense array."""
        return np.asarray((self.distributions[rows] @ self.distributions[columns].T).toarray())

    @property
    def is_symmetric(self) -> bool:
        """Always: Q Q' is symmetric."""
        return True

    @property
    def is_psd(self) -> bool:
        """Always: theta' Q Q' theta = |Q' theta|^2 >= 0."""
        return True

    @property
    def has_equal_totals(self) -> bool:
        """Always at equal costs: Q' theta is unique, and its sum is the total, as rows sum to 1."""
        return bool(np.ptp(self.costs) == 0)

    def row(self, agent: int) -> tuple[Indices, Vector]:
        """Return the agents whose samples help one agent, and by how much."""
        row = self._rows(np.array([agent]))
        return row.indices, row.data

    def _rows(self, agents: Indices) -> Any:
        return self.distributions[agents] @ self._by_point

    @cached_property
    def _by_point(self) -> Any:
        # A product with Q.T would turn it into rows again each time, at the cost of all of Q.
        return sparse.csr_array(self.distributions.T)

    @cached_property
    def exact_benefits(self) -> list[list[Fraction]]:
        """Q Q' in fractions."""
        rows = [exact_numbers(row) for row in self.distributions.toarray()]
        return [[sum(map(mul, a, b), Fraction(0)) for b in rows] for a in rows]

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return q_i Q' theta in Fractions."""
        mine = dict(zip(*exact_row(self.distributions, agent), strict=True))
        total = Fraction(0)
        for j in self.helpers(agent).tolist():
            if contributions[j]:
                theirs = zip(*exact_row(self.distributions, j), strict=True)
                shared = sum((q * mine[x] for x, q in theirs if x in mine), Fraction(0))
                total += shared * contributions[j]
        return total

    def _largest_cross_benefits(self) -> Vector:
        # By Cauchy-Schwarz q_i q_j <= |q_i||q_j|; the exact maximum would need all of Q Q'.
        lengths = np.sqrt(self.own_benefits)
        if self.size == 1:
            return np.zeros(1)
        top, second = np.sort(lengths)[[-1, -2]]
        return np.asarray(lengths * np.where(lengths == top, second, top))

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        matrix = self.distributions if keep is None else self.distributions[keep]
        return {"distributions": matrix}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        return {
            "model": "discovery",
            **self._frame_dict(),
            "distributions": self.distributions.toarray().tolist(),
        }


def relative_regret(game: LinearGame, contributions: Vector) -> float:
    """Return the largest distance from a clipped best response, relative to the largest given."""
    apart = np.abs(game.responses_within(contributions) - contributions).max()
    return float(apart / game.scale_of(contributions))
