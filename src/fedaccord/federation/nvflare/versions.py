"""Which versions of NVFlare the package works with."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from fedaccord.errors import FedaccordError

# The oldest NVFlare with which this was run.
OLDEST = (2, 9)


def find_version() -> str | None:
    """Return the version of the NVFlare that is installed; None if there is none."""
    try:
        return version("nvflare")
    except PackageNotFoundError:
        return None


def check_version(found: str | None) -> None:
    """Refuse an NVFlare that is too old.

    found: its version; None if it is not installed, which is said when it is needed.
    """
    numbers = re.match(r"(\d+)\.(\d+)", found or "")
    if found is not None and (numbers is None or tuple(map(int, numbers.groups())) < OLDEST):
        oldest = ".".join(map(str, OLDEST))
        raise FedaccordError(
            f"fedaccord needs NVFlare {oldest} or newer, and this is {found}: "
            f"pip install 'nvflare>={oldest}'"
        )
