"""Where tests find real data, which is too large or not ours to keep beside the code."""

import os
from pathlib import Path

import pytest


def real_file(name: str) -> Path:
    """Give the place of a data file, or skip the test."""
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("FEDACCORD_DATA") or checkout.parent / "shared" / "data")
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not in {folder}; FEDACCORD_DATA may name another folder")
    return folder / name
