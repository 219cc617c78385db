"""The committed results of the stroke consortium: of the config that is there, and on its page."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from fedaccord.federation.config.load import Config
from fedaccord.games.files import read_game
from fedaccord.sharing.costs import GroupCosts

HERE = Path(__file__).parents[1] / "experiments" / "stroke"
RESULTS = HERE / "results"
PAGE = (HERE / "README.md").read_text(encoding="utf-8")


def read(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def load(name: str):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def config():
    return Config.load(HERE / "consortium.toml")


def test_the_goals_are_those_that_were_calibrated(config):
    goals = read("goals.csv")
    for place, rule in enumerate(config.agents.goals):
        own = goals[place :: len(config.agents.goals)]
        assert [line["country"] for line in own] == list(config.data.sites)
        assert [float(line["goal"]) for line in own] == list(rule.target)
        for line in own:
            below = float(line["together"]) - 2.6 * float(line["sd"])
            assert below - 0.0052 < float(line["goal"]) <= below + 0.0002
    assert max(float(line["reaches_alone"]) for line in goals) < 0.34


def test_pilots_have_the_goals_of_the_config(config):
    wanted = {
        (name, rule.name or "AUC"): rule.target[n]
        for rule in config.agents.goals
        for n, name in enumerate(config.data.sites)
    }
    lines = read("measures.csv")
    assert {(x["agent"], x["measure"]): float(x["goal"]) for x in lines} == wanted
    assert len(lines) == 200 * len(wanted)
    assert max(int(x["contribution"]) for x in lines) == config.agents.points


def test_the_plan_meets_the_game_and_payments_hold():
    game = read_game(RESULTS / "game.json")
    given = np.array([float(line["contribution"]) for line in read("plan.csv")])
    # Contributions are rounded up to whole patients, which may harm by a part of one.
    assert (game.rows @ given >= game.needs - np.abs(game.rows).max(axis=1)).all()
    payments = np.array([float(line["payment"]) for line in read("payments.csv")])
    shares = np.array([float(line["share"]) for line in read("payments.csv")])
    assert payments.sum() == pytest.approx(0, abs=1e-6)
    values = GroupCosts(game).values
    bears = (np.arange(len(values))[:, None] >> np.arange(game.size) & 1) @ shares
    assert (bears <= values + 1e-6 * values[-1]).all()


def test_the_audit_is_of_the_plan_and_the_config(config):
    audit, plan = load("audit.json"), read("plan.csv")
    found = audit["algorithms"]["EARNED"]
    assert found["contributions"] == [int(line["contribution"]) for line in plan]
    assert audit["seed"] == config.audit.seed == load("machine.json")["seeds"]["audit"] != 1001
    assert audit["trials"] == config.audit.trials >= 40
    own = json.loads(json.dumps(config.algorithms["EARNED"].to_dict()))
    for name in ("passes", "grace", "patience", "cover", "batch_size", "learning_rate"):
        assert found["settings"][name] == own[name]


def test_the_page_has_the_numbers_of_the_results():
    found = load("audit.json")["algorithms"]["EARNED"]
    quarter = found["levels"][1]
    told = [
        found["all_satisfied"],
        quarter["contributors"],
        quarter["others_of_contributors"],
        quarter["kept"]["contributors"],
    ]
    table = PAGE[PAGE.index("| question | result |") :].split("\n\n")[0].splitlines()[2:]
    for line, one in zip(table, told, strict=True):
        numbers = [float(n) for n in re.findall(r"\d\.\d\d", line)]
        assert numbers == pytest.approx([one["p"], one["low"], one["high"]], abs=0.0051)
    plan, payments = read("plan.csv"), read("payments.csv")
    table = PAGE[PAGE.index("| country | gives |") :].split("\n\n")[0].splitlines()[2:]
    for line, own, paid in zip(table, plan, payments, strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:2] == [own["agent"], own["contribution"]]
        assert int(cells[-1]) == round(float(paid["payment"]))
    total = sum(int(line["contribution"]) for line in plan)
    assert f"give {total} patients together" in PAGE
    likely = [x for x in read("harm.csv") if float(x["probability_of_harm"]) >= 0.95]
    table = PAGE[PAGE.index("| patients of |") :].split("\n\n")[0].splitlines()[2:]
    assert [line.split("|")[1].strip() for line in table] == [x["other"] for x in likely]
