"""All cases of the golden tests."""

import golden.cases_commands
import golden.cases_names
import golden.cases_numbers
import golden.cases_runs
import golden.cases_shapes  # noqa: F401
from golden.pinning import CASES

__all__ = ["CASES"]
