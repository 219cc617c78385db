"""One browser for all tests of a process, and the pages they look at."""

import pytest
from browser.driving import CHROMIUM, DRIVER, Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and its driver are not installed: make browser")
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    """Give the file of one of the example pages, which is made once."""
    from browser import example_pages

    folder = tmp_path_factory.mktemp("pages")
    made = {}

    def file(name):
        if name not in made:
            made[name] = folder / f"{name}.html"
            getattr(example_pages, name)().save(made[name])
        return made[name]

    return file
