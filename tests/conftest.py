"""Hypothesis profiles: the same examples every time in CI, fresh ones elsewhere.

And which test files go to one test process as a whole, so that what their tests share, a Ray or a
deployment of Flower's, is started once. Tests that need an extra are skipped where it is not
installed.
"""

import os
import signal

import pytest
from extras import mark_skipped
from hypothesis import settings

# A shell that starts the tests in the background has interrupts ignored, and what is ignored here
# would be ignored by every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# No deadline: the first call of a compiled function takes seconds, the next microseconds.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")

WHOLE = (
    "faults/test_faults.py",
    "federation/runs/test_ray.py",
    "federation/flower/test_deployment.py",
    "federation/flower/test_engine.py",
    "federation/flower/test_templates.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give test processes whole files of some tests, and of all others one test after the other."""
    if config.option.dist != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        # pytest-xdist 3.8 has groups for this, which pytest 9.2 takes no notice of.
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file.endswith(WHOLE) else nodeid

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Skip files of tests that import a package of an extra which is not installed."""
    report = yield
    if report.failed:
        mark_skipped(report, report.call.excinfo.value)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call):
    """Skip tests that fail because an extra is not installed."""
    report = yield
    if report.failed:
        mark_skipped(report, call.excinfo.value)
    return report
