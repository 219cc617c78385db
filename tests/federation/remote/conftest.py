"""Torch computes on one thread here too."""

from federation.flower.conftest import _one_thread as _one_thread
