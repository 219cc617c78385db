"""Pages of training in a real browser: few and many agents, and names that mean harm."""

import numpy as np
import pytest
from selenium.common.exceptions import NoAlertPresentException
from training_results import (
    HOSTILE,
    audit,
    draws,
    four_agents,
    history,
    lenient,
    many_agents,
    scores,
    strict,
    two_algorithms,
    weights,
)

from fedaccord.federation.data.pretraining import Bands
from fedaccord.report import (
    audit_page,
    difficulty_page,
    pretrain_page,
    search_page,
    train_page,
)

MANY = tuple(f"hospital {n}" for n in range(400))


def plan_audit():
    """Audit a plan that asks something of two agents of three."""
    names = ("north", "south", "west")
    return audit({"FedAvg": strict}, names=names, protocol="P2", asked=[0, 30, 45])


PAGES = {
    "audit": lambda: audit_page(two_algorithms(), command="fedaccord audit"),
    "plan": lambda: audit_page(plan_audit(), command="fedaccord audit --protocol P2 --plan p.csv"),
    "audit-many": lambda: audit_page(
        audit({"FedAvg": lenient, "MW-FED": strict}, names=MANY, trials=1, levels=(1.0, 0.5))
    ),
    "audit-hostile": lambda: audit_page(two_algorithms(names=HOSTILE), command="x" * 300),
    "train": lambda: train_page(four_agents(), "MW-FED"),
    "train-goals": lambda: train_page(
        history([[0.5, 0.5], [0.9, 0.7]], goals=[0.8, 0.75]), "FedAvg"
    ),
    "train-many": lambda: train_page(many_agents(names=MANY), "MW-FED"),
    "train-hostile": lambda: train_page(
        history(np.linspace(0.4, 0.9, 24).reshape(6, 4), names=HOSTILE), HOSTILE[0]
    ),
    "difficulty": lambda: difficulty_page(scores(), Bands()),
    "pretrain": lambda: pretrain_page(weights((10, 0.4), (20, 0.6), (30, 0.7), until=0.65)),
    "search": lambda: search_page(draws(), seed=1),
}


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """Give the file of a page, which is made once."""
    folder = tmp_path_factory.mktemp("training")
    made = {}

    def file(name):
        if name not in made:
            made[name] = folder / f"{name}.html"
            PAGES[name]().save(made[name])
        return made[name]

    return file


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_training_is_without_faults_wide_and_narrow_light_and_dark(
    browser, page_of, name
):
    for width, theme in ((1280, "light"), (360, "dark")):
        browser.open(page_of(name), width=width, theme=theme)
        assert browser.faults() == [], (width, theme)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["audit-hostile", "train-hostile"])
def test_names_of_clients_are_text_wherever_they_stand(browser, page_of, name):
    browser.open(page_of(name))
    with pytest.raises(NoAlertPresentException):
        _ = browser.driver.switch_to.alert
    said = browser.run("return document.body.innerText")
    for client in HOSTILE[:3]:
        assert client in said
    assert "=cmd()\\u202e\\x1b[31m" in said
    assert browser.run("return document.querySelectorAll('body script').length") == 0


@pytest.mark.slow
def test_four_hundred_agents_are_all_there_and_can_be_searched(browser, page_of):
    browser.open(page_of("train-many"))
    rows = "return document.querySelectorAll('section > .table tbody tr').length"
    assert browser.run(rows) == 400
    field = browser.driver.find_element("css selector", "section > .table input")
    field.send_keys("hospital 37")
    shown = """
        return [...document.querySelectorAll('section > .table tbody tr')].filter(
          (row) => row.getBoundingClientRect().height > 0).length;
    """
    # 37 and 370 to 379.
    assert browser.run(shown) == 11
