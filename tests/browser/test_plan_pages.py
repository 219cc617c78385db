"""The page of a plan in a real browser: names that mean harm, and goals out of reach."""

import base64
import re

import pytest
from known_hospitals import pilots
from report.plans import HOSTILE
from selenium.common.exceptions import NoAlertPresentException

from fedaccord.measurement.fit import fit_curves
from fedaccord.planning.plan import make_plan
from fedaccord.report.plan_page import plan_page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    found = fit_curves(pilots(names=HOSTILE[:4]), resamples=60)
    made = {}
    for name, goals in (("planned", [0.82, 0.82, 0.8, 0.8]), ("missed", [0.97, 0.8, 0.8, 0.8])):
        made[name] = folder / f"{name}.html"
        plan_page(make_plan(found.with_goals(goals))).save(made[name])
    made["known"] = folder / "known.html"
    plan_page(make_plan(fit_curves(pilots(), resamples=60))).save(made["known"])
    return made


def test_a_plan_of_four_agents_takes_few_sheets_of_paper(browser, pages):
    browser.open(pages["known"], width=720, media="print")
    printed = base64.b64decode(browser.cdp("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert 3 < len(re.findall(rb"/Type /Page\b", printed)) <= 8
    # Learning curves stand side by side, in type that can be read.
    curves = """
        return [...document.querySelectorAll("figure")].filter((f) =>
          f.textContent.includes("The learning curve of")).map((f) => f.getBoundingClientRect().y);
        """
    rows = browser.run(curves)
    assert len(rows) == 4 and len(set(rows)) == 2
    small = """
        const sizes = [...document.querySelectorAll("td, th, p, li, dd, dt, pre")].filter((e) =>
          e.checkVisibility()).map((e) => parseFloat(getComputedStyle(e).fontSize));
        return Math.min(...sizes) * 0.75;
        """
    assert browser.run(small) >= 9 - 1e-6


@pytest.mark.parametrize("name", ["planned", "missed"])
def test_pages_of_plans_are_without_faults(browser, pages, name):
    for width in (1280, 360):
        for theme in ("light", "dark"):
            browser.open(pages[name], width=width, theme=theme)
            assert browser.faults() == [], (width, theme)


def test_agents_whose_names_mean_harm_do_none_on_the_page_of_a_plan(browser, pages):
    browser.open(pages["planned"])
    with pytest.raises(NoAlertPresentException):
        _ = browser.driver.switch_to.alert.text
