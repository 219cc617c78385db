"""Pages of games in a real browser: four agents and four hundred, and names that mean harm."""

import numpy as np
import pytest
from report.plans import HOSTILE, ring, solved
from selenium.common.exceptions import NoAlertPresentException

from fedaccord.check import check
from fedaccord.equilibria.result import Interval
from fedaccord.games.linear import LinearGame
from fedaccord.report.games_page import check_page, solve_page

PRICES = {"price_of_stability": Interval(1.2, 1.2), "price_of_fairness": Interval(1, np.inf)}


def four():
    """Give four agents whose names mean harm, a plan that holds and one that does not."""
    benefits = np.eye(4) + 0.3
    game = LinearGame(benefits, [1000.0, 1200, 800, 900], agents=HOSTILE[:4])
    stable = np.linalg.solve(benefits, game.requirements)
    return solve_page(game, *solved(game, optimal=[1400, 700, 0, 500], stable=stable), PRICES)


def four_hundred():
    """Give 400 agents in a ring, some of whom give too much and envy the others."""
    game, claims, _ = ring(400, agents=[f"Hospital number {n}" for n in range(400)])
    given = claims["stable"].contributions + np.where(np.arange(400) % 9 == 0, 0.3, 0.0)
    return solve_page(game, *solved(game, optimal=given, stable=[1 / 1.6] * 400), {})


def checked():
    """Give a plan of 20 agents with one short, some off, and much envy."""
    game, *_ = ring(20)
    given = np.full(20, 0.625)
    given[[2, 7, 11]] = (0.1, 1.0, 2.0)
    return check_page(check(game, given))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    made = {}
    for make in (four, four_hundred, checked):
        made[make.__name__] = folder / f"{make.__name__}.html"
        make().save(made[make.__name__])
    return made


@pytest.mark.parametrize(("name", "figures"), [("four", 5), ("four_hundred", 4), ("checked", 3)])
def test_pages_of_games_are_without_faults(browser, pages, name, figures):
    for width in (1280, 360):
        for theme in ("light", "dark"):
            browser.open(pages[name], width=width, theme=theme)
            assert browser.faults() == [], (width, theme)
            assert len(browser.run("return document.querySelectorAll('figure')")) == figures


def test_agents_whose_names_mean_harm_do_none(browser, pages):
    browser.open(pages["four"])
    with pytest.raises(NoAlertPresentException):
        _ = browser.driver.switch_to.alert
    said = browser.run("return document.body.innerText")
    for name in HOSTILE[:4]:
        assert f"{name} gives " in said
    drawn = browser.run(
        "return [...document.querySelectorAll('.drawing text')].map((text) => text.textContent)"
    )
    assert HOSTILE[2] in drawn and "=cmd()" in drawn


def test_four_hundred_agents_can_be_searched(browser, pages):
    browser.open(pages["four_hundred"])
    rows = """
        return [...document.querySelectorAll("section > .table tbody tr")].filter(
          (row) => row.getBoundingClientRect().height > 0).map((row) => row.textContent);
    """
    everyone = browser.run(rows)
    assert sum("Hospital number 137" in row for row in everyone) == 1
    assert len(everyone) > 400
