"""Tests are skipped only for an extra that is not installed, and never for another error."""

import importlib
import sys

import extras
import pytest

from fedaccord.errors import MissingExtraError


@pytest.fixture(autouse=True)
def _without_training(monkeypatch):
    monkeypatch.setattr(extras, "ABSENT", {"torch": "train"})


def fail_to_import(module):
    with pytest.raises(ImportError) as caught:
        importlib.import_module(module)
    return caught.value


def chain(error, cause):
    error.__cause__ = cause
    return error


def test_the_absent_extra_is_found_through_the_errors_that_hide_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    missing = fail_to_import("torch")
    assert extras.find_absent_extra(missing) == "train"
    wrapped = chain(MissingExtraError("torch", "train"), missing)
    assert extras.find_absent_extra(chain(RuntimeError("collecting failed"), wrapped)) == "train"
    quoted = RuntimeError("the page printed: No module named 'torch.nn'")
    assert extras.find_absent_extra(quoted) == "train"


def test_other_errors_stay_failures():
    assert extras.find_absent_extra(fail_to_import("no_such_package")) is None
    assert extras.find_absent_extra(fail_to_import("fedaccord.no_such_module")) is None
    assert extras.find_absent_extra(AssertionError("torch")) is None
    assert extras.find_absent_extra(AssertionError("No module named 'flwr'")) is None
    extras.skip_if_absent(
        "fedaccord: this needs flwr; install it with: pip install 'fedaccord[flower]'."
    )
    extras.skip_if_absent("fedaccord: torch is not installed.")


def test_a_command_that_asks_for_an_absent_extra_skips_the_test():
    with pytest.raises(pytest.skip.Exception, match="the extra train is not installed"):
        extras.skip_if_absent(f"fedaccord: {MissingExtraError('torch', 'train')}.")
