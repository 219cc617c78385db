"""Linear utilities u = W theta in which an agent's samples may harm another."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Matrix, as_numbers, check_finite
from fedaccord.errors import InputError
from fedaccord.games.rows import RowGame


class SignedGame(RowGame):
    """Agents whose utility is linear in everybody's contributions, with benefits of any sign.

        u_i(theta) = sum_j W_ij theta_j >= mu_i,   W_ii > 0

    Where W_ij < 0, samples of j harm i: it needs more of its own the more j gives. What a
    LinearGame has by theorem (a stable plan exists, and nobody gives more than alone) may then
    fail.

    benefits: W, k x k; W[i, j] is what one sample of j adds to i, below zero where it harms i.
    requirements and the rest: see Game.
    """

    model: ClassVar[str] = "signed"

    def __init__(self, benefits: Any, requirements: ArrayLike, **frame: Any) -> None:
        super().__init__(requirements, **frame)
        matrix = as_numbers(benefits, "benefits")
        if matrix.shape != (self.size, self.size):
            raise InputError(
                f"benefits must be {self.size} x {self.size}, one row and column per requirement; "
                f"got shape {matrix.shape}"
            )
        check_finite(np.abs(matrix), "the benefit", self.name)
        own = np.array(matrix.diagonal())
        self._set_rows(matrix, np.array(self.requirements), np.arange(self.size), own)
        self._check_rows()

    @property
    def benefits(self) -> Matrix:
        """W."""
        return self.rows

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        return {"benefits": self.rows if keep is None else self.rows[np.ix_(keep, keep)]}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        return {"model": "signed", **self._frame_dict(), "benefits": self.rows.tolist()}
