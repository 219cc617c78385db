"""Torch computes on one thread: tests share their cores, and sums must not depend on it."""

import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    # A conftest.py that cannot be imported is an error, while a fixture can be skipped.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
