"""One browser for all tests of the app, behind a proxy that refuses everything."""

import pytest
from browser.driving import CHROMIUM, DRIVER, Browser
from explore.driving import App, Refusing, Tab

pytest.importorskip("nicegui", reason="the app needs fedaccord[explore]")


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
