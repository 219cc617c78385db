"""One browser for all tests of the app, behind a proxy that refuses everything."""

import shutil

import pytest
from browser.driving import CHROMIUM, DRIVER, Browser
from explore.driving import App, Refusing, Tab
from selenium.common.exceptions import WebDriverException

pytest.importorskip("nicegui", reason="the app needs fedaccord[explore]")

# On a busy machine a browser may lose a press or draw a page again under a finger: a test of the
# browser fails if it fails so often in a row.
ATTEMPTS = 3


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Repeat a test of the browser that fails, from an empty folder."""
    if "browser" not in pyfuncitem.fixturenames:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for attempt in range(ATTEMPTS):
        try:
            pyfuncitem.obj(**given)
            return True
        except (AssertionError, WebDriverException):
            if attempt == ATTEMPTS - 1:
                raise
        if folder := given.get("tmp_path"):
            shutil.rmtree(folder)
            folder.mkdir()
    return None


@pytest.fixture(scope="session")
def proxy():
    found = Refusing()
    yield found
    found.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory, proxy):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and its driver are not installed: make browser")
    # What the browser itself would ask its maker is no request of a page.
    own = "AutofillServerCommunication,OptimizationHints,Translate,MediaRouter"
    flags = [f"--proxy-server=http://127.0.0.1:{proxy.port}", f"--disable-features={own}"]
    found = Browser(tmp_path_factory.mktemp("browser"), flags)
    yield found
    found.close()


@pytest.fixture(scope="session")
def apps(tmp_path_factory):
    """Start each app once; several tests use it."""
    started = {}

    def start(*arguments):
        if arguments not in started:
            started[arguments] = App(*arguments)
        return started[arguments]

    yield start
    for app in started.values():
        app.close()


@pytest.fixture
def hospitals(browser, apps):
    return Tab(browser, apps())
