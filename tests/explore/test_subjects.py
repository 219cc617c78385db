"""The app on pilots, on 50 agents, on names that mean harm, on screens of all kinds, on audits."""

import json
import re
from importlib import resources

import numpy as np
import pytest
from browser.example_pages import HOSTILE
from explore.driving import App, Tab

PILOTS = "docs/how-to/network/pilots.csv"


@pytest.fixture(scope="module")
def root(request):
    return request.config.rootpath


@pytest.fixture
def pilots(browser, apps, root):
    return Tab(browser, apps(root / PILOTS))


def write_game(path, names, seed=0):
    """Write a game whose stable plan is the only one: benefits are symmetric and positive."""
    k = len(names)
    shares = np.random.default_rng(seed).dirichlet(np.ones(6), k)
    benefits = shares @ shares.T
    benefits /= np.sqrt(np.outer(benefits.diagonal(), benefits.diagonal()))
    benefits = 0.5 * benefits + 0.5 * np.eye(k)
    game = {"model": "linear", "agents": names, "benefits": benefits.round(6).tolist()}
    path.write_text(json.dumps({**game, "requirements": [1000.0 + n for n in range(k)]}))
    return path


# Pilots.


def test_probabilities_follow(pilots):
    tab = pilots.open()
    tab.see("All agents reach their goals with probability 0.95", "P(all reach their goals)")
    given = tab.numbers()
    assert given == [736, 145, 579]
    tab.write(0, 300)
    tab.until(lambda: "0.95" not in tab.verdict.partition("(")[0])
    tab.open("probability=0.8")
    assert sum(tab.numbers()) < sum(given)
    tab.see("with probability 0.80")


def test_the_price_of_certainty_has_the_proposal_on_it(pilots):
    tab = pilots.open("view=certainty&give=0%3A500")
    tab.see("The price of certainty", "0.95, the plan")
    drawn = """const chart = document.querySelector('.chart');
        const id = +chart.id.slice(1); return getElement(id).chart.getOption().series"""
    series = tab.until(lambda: tab.browser.run(drawn))
    point = next(one for one in series if one["name"] == "this proposal")["data"][0]
    assert point[1] == 500 + 145 + 579 and point[0] < 0.95


def test_a_goal_out_of_reach_is_explained(pilots):
    tab = pilots.open("goal=0%3A0.99")
    tab.see("out of reach", "lower its goal to")


def test_limits_of_pilots(pilots):
    tab = pilots.open("limit=0%3A400")
    assert tab.numbers()[0] <= 400
    tab.open("left=1")
    tab.see("Hill (left)", "All agents reach their goals with probability 0.95")
    assert tab.numbers()[1] == 0 and min(tab.numbers()[0], tab.numbers()[2]) > 0
    tab.open("like=1")
    tab.see("Hill 2")
    assert len(tab.numbers()) == 4


# Equilibria to choose from.


def test_choose_an_equilibrium(browser, apps, tmp_path_factory):
    # Two agents with the same data: each may give all, and the other nothing.
    path = tmp_path_factory.mktemp("game") / "twins.json"
    game = {"model": "linear", "agents": ["A", "B", "C"], "requirements": [100, 100, 50]}
    benefits = [[1, 1.2, 0], [1.2, 1, 0], [0.1, 0.2, 1]]
    path.write_text(json.dumps({**game, "benefits": benefits}))
    tab = Tab(browser, apps(path)).open("view=choice")
    tab.see("stable plans were found")
    first = tab.numbers()
    click = """const id = +document.querySelector('.chart').id.slice(1), c = getElement(id).chart;
        const [x, y] = c.convertToPixel({seriesIndex: 0}, c.getOption().series[0].data[1].value);
        const zr = c.getZr(), event = {zrX: x, zrY: y, offsetX: x, offsetY: y};
        const kinds = ['mousemove', 'mousedown', 'mouseup', 'click'];
        for (const kind of kinds) zr.handler.dispatch(kind, event);
        return true"""
    tab.until(lambda: tab.browser.run(click))
    tab.until(lambda: "plan=2" in tab.query)
    tab.settle()
    tab.until(lambda: tab.numbers() != first)
    assert "holds" in tab.verdict


# Large and hostile.


WORDS = ("--agent-word", "country/countries", "--sample-word", "biopsy/biopsies")


@pytest.fixture(scope="module")
def fifty(tmp_path_factory):
    """A game of 50 agents, of which some have names that mean harm."""
    names = [*HOSTILE, *(f"Clinic {n}" for n in range(len(HOSTILE), 50))]
    return write_game(tmp_path_factory.mktemp("game") / "fifty.json", names)


@pytest.fixture
def crowd(browser, apps, fifty):
    return Tab(browser, apps(fifty, "--title", "<img src=x onerror=alert(3)>", *WORDS))


def test_fifty_agents(crowd):
    tab = crowd.open()
    tab.until(lambda: len(tab.numbers()) == 50)
    tab.see("Clinic 49")
    tab.write(49, 1)
    assert "Clinic 49" in tab.verdict
    tab.lock(3)
    tab.until(lambda: "lock=3" in tab.query)


def test_hostile_names_are_harmless(crowd):
    for query in ("", "view=members", "adjust=goal"):
        tab = crowd.open(query)
        tab.see("<script>alert(1)</script>", "<img src=x onerror=alert(3)>")
        assert tab.browser.errors() == []
        assert tab.browser.run("return document.querySelectorAll('img[src=x]').length") == 0
    assert not tab.browser.run("return document.documentElement.scrollWidth > innerWidth + 1")


def test_words_follow_the_users_settings(crowd):
    tab = crowd.open()
    tab.see("biopsies in all", "Countries", "A locked country keeps its number")
    assert "agent" not in tab.text().lower() and "sample" not in tab.text().lower()


# Screens.


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_the_screen(pilots, width, theme):
    for query in ("", "view=members", "view=certainty"):
        tab = pilots.open(query, width=width, theme=theme)
        assert not tab.browser.run("return document.documentElement.scrollWidth > innerWidth + 1")
        colours = tab.browser.run(
            "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        )
        dark = colours[0] == "rgb(20, 24, 29)"
        assert dark == (theme == "dark"), colours


def test_theme_large_type_and_print(pilots):
    tab = pilots.open()
    size = "return parseFloat(getComputedStyle(document.querySelector('.app')).fontSize)"
    before = tab.browser.run(size)
    tab.press("Large type")
    tab.until(lambda: tab.browser.run(size) > 1.3 * before)
    tab.press("Light or dark")
    tab.until(lambda: tab.browser.run("return document.body.classList.contains('body--dark')"))
    assert "theme=dark" in tab.query and "large=True" in tab.query
    tab.browser.show(media="print")
    seen = "return getComputedStyle(document.querySelector('.panel')).display"
    assert tab.browser.run(seen) == "none"
    tab.browser.show()


def test_every_control_has_a_name_and_the_keyboard(pilots):
    tab = pilots.open("view=members")
    unnamed = """return [...document.querySelectorAll('button,input,[role=slider]')].filter(e =>
        e.offsetParent && !(e.ariaLabel || e.innerText.trim() || e.closest('[aria-label]') ||
        e.closest('label')?.innerText.trim() || e.closest('.q-checkbox')?.innerText.trim()))
        .map(e => e.outerHTML.slice(0, 200))"""
    assert tab.browser.run(unnamed) == []
    stops = "return [...document.querySelectorAll('.q-slider [tabindex=\"0\"]')].length"
    assert tab.browser.run(stops) >= 4


# Audits.


CONFIG = """extends = "{builtin}"
[training]
rounds = 2
[audit]
levels = [1, 0.5]
trials = 300
defectors = "random"
"""


def test_an_audit_is_watched_stopped_and_resumed(browser, tmp_path):
    pytest.importorskip("torch")
    builtin = resources.files("fedaccord.federation") / "digits.toml"
    config, results = tmp_path / "config.toml", tmp_path / "runs.sqlite"
    config.write_text(CONFIG.format(builtin=builtin))
    app = App(config, "--results", results)
    watcher = None
    try:
        tab = Tab(browser, app)
        tab.driver.get(app.address)
        tab.see("No run of an audit is finished yet", "Resume")
        tab.press("Resume")
        tab.until(lambda: count_runs(tab) >= 4, "four runs")
        tab.see("FedAvg", "MW-FED", "an audit is running here")
        tab.find(".chart canvas")
        # Somebody who has only the file sees the same, and cannot resume.
        watcher = App(results)
        tab.press("Stop")
        tab.see("every finished run is kept")
        stopped = count_runs(tab)
        other = Tab(browser, watcher)
        tab.driver.get(watcher.address)
        other.until(lambda: count_runs(other) >= stopped, "the same runs")
        assert "Resume" not in other.text()
        tab.driver.get(app.address)
        tab.press("Resume")
        tab.until(lambda: count_runs(tab) > stopped + 1, "more runs")
    finally:
        app.close()
        if watcher is not None:
            watcher.close()


def count_runs(tab):
    """Return how many runs the page says there are, and has drawn."""
    found = re.search(r"([0-9,]+) runs?;", tab.text())
    return int(found[1].replace(",", "")) if found else 0
