"""The committed results of the stroke consortia: of the configs that are there, and on the page."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fedaccord.federation.config.load import Config
from fedaccord.games.files import read_game
from fedaccord.sharing.costs import GroupCosts

HERE = Path(__file__).parents[1] / "experiments" / "stroke"
PAGE = (HERE / "README.md").read_text(encoding="utf-8")
# The target of an agent that wants nothing of a measure.
NONE = 0.001


@dataclass(frozen=True)
class Study:
    """A consortium: its config, results, part of the page, and how its goals were set."""

    name: str
    folder: Path
    part: str
    spreads: float
    pilots: int

    @property
    def config(self) -> Config:
        return Config.load(HERE / f"{self.name}.toml")

    def read(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def load(self, name: str):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def list_rows(self, head: str) -> list[list[str]]:
        """Return the cells of the table of the page that begins with these words."""
        table = self.part[self.part.index(head) :].split("\n\n")[0].splitlines()[2:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def find_part(title: str) -> str:
    return PAGE[PAGE.index(f"\n## {title}") + 1 :].split("\n## ")[0]


RESULTS = HERE / "results"
STUDIES = [
    Study("consortium", RESULTS, PAGE.split("\n## Sixteen countries")[0], 2.6, 200),
    Study("sixteen", RESULTS / "sixteen", find_part("Sixteen countries"), 2.8, 300),
    Study("hospitals", RESULTS / "hospitals", find_part("49 hospitals"), 3.2, 400),
]


@pytest.fixture(scope="module", params=STUDIES, ids=lambda study: study.name)
def study(request):
    return request.param


def test_the_goals_are_those_that_were_calibrated(study):
    config, goals = study.config, study.read("goals.csv")
    for rule in config.agents.goals:
        own = {x[config.data.site]: x for x in goals if x["measure"] == (rule.name or "AUC")}
        targets = dict(zip(config.data.sites, rule.target, strict=True))
        assert {name: float(line["goal"]) for name, line in own.items()} == {
            name: target for name, target in targets.items() if target > NONE
        }
        for line in own.values():
            below = float(line["together"]) - study.spreads * float(line["sd"])
            assert below - 0.0052 < float(line["goal"]) <= below + 0.0003
    assert list(config.data.sites) == sorted(config.data.sites)


def test_pilots_have_the_goals_of_the_config(study):
    config = study.config
    wanted = {
        (name, rule.name or "AUC"): rule.target[n] if rule.target[n] > NONE else None
        for rule in config.agents.goals
        for n, name in enumerate(config.data.sites)
    }
    lines = study.read("measures.csv")
    found = {(x["agent"], x["measure"]): float(x["goal"]) if x["goal"] else None for x in lines}
    assert found == wanted
    assert len(lines) == study.pilots * len(wanted)
    assert max(int(x["contribution"]) for x in lines) == config.agents.points


def test_the_plan_meets_the_game_and_payments_hold(study):
    game = read_game(study.folder / "game.json")
    given = np.array([float(line["contribution"]) for line in study.read("plan.csv")])
    # Contributions are rounded up to whole patients, which may harm by a part of one.
    assert (game.rows @ given >= game.needs - np.abs(game.rows).max(axis=1)).all()
    payments = np.array([float(line["payment"]) for line in study.read("payments.csv")])
    shares = np.array([float(line["share"]) for line in study.read("payments.csv")])
    assert payments.sum() == pytest.approx(0, abs=1e-6 * shares.sum())
    # All groups of ten; of more agents, some of each size.
    size, random = game.size, np.random.default_rng(0)
    groups = np.arange(1 << 10)[:, None] >> np.arange(10) & 1 == 1
    if size > 10:
        groups = random.random((500, size)) < random.random((500, 1))
    assert (groups @ shares <= GroupCosts(game).measure(groups) + 1e-6 * shares.sum()).all()


def test_the_audit_is_of_the_plan_and_the_config(study):
    config, plan, seeds = study.config, study.read("plan.csv"), study.load("machine.json")["seeds"]
    audit, confirmed = study.load("audit.json"), study.load("confirm.json")
    assert audit["seed"] == config.audit.seed == seeds["audit"]
    assert confirmed["seed"] == seeds["confirm"]
    assert len({seeds["goals"], seeds["audit"], seeds["confirm"]}) == 3
    assert audit["trials"] == config.audit.trials >= 40 and confirmed["trials"] >= 200
    own = json.loads(json.dumps(config.algorithms["EARNED"].to_dict()))
    for one in (audit, confirmed):
        found = one["algorithms"]["EARNED"]
        assert found["contributions"] == [int(line["contribution"]) for line in plan]
        for name in ("passes", "grace", "patience", "cover", "batch_size", "learning_rate"):
            assert found["settings"][name] == own[name]


def test_the_page_says_how_often_goals_were_reached(study):
    found = study.load("audit.json")["algorithms"]["EARNED"]
    quarter = found["levels"][1]
    told = [
        found["all_satisfied"],
        study.load("confirm.json")["algorithms"]["EARNED"]["all_satisfied"],
        quarter["contributors"],
        quarter["others_of_contributors"],
        quarter["kept"]["contributors"],
    ]
    for (_, *cells), one in zip(study.list_rows("| question | result |"), told, strict=True):
        numbers = [float(n) for cell in cells for n in re.findall(r"\d\.\d\d", cell)]
        assert numbers == pytest.approx([one["p"], one["low"], one["high"]], abs=0.0051)


def test_the_page_has_the_plan_and_the_payments(study):
    plan, paid = study.read("plan.csv"), study.load("share.json")["contracts"]["prices"]["payments"]
    rows = {row[0]: row for row in study.list_rows(f"| {study.config.data.site} | gives |")}
    ends = zip(paid["values"], paid["low"], paid["high"], strict=True)
    for line, (value, low, high) in zip(plan, ends, strict=True):
        if line["agent"] not in rows:
            # The page has one sentence for hospitals that give all, and leaves out the others.
            whole = line["contribution"] == "20" and -24 <= round(value) <= -20
            assert study.name == "hospitals" and (whole or line["contribution"] == "0")
            continue
        _, gives, *_, pays, interval = rows[line["agent"]]
        assert gives == line["contribution"]
        assert int(pays.replace(",", "")) == round(value)
        numbers = [int(n.replace(",", "")) for n in interval.split(" to ")]
        assert numbers == [round(low), round(high)]
    total = sum(int(line["contribution"]) for line in plan)
    assert f"{total} patients" in " ".join(study.part.split())


def test_the_page_lists_the_harm_that_counts():
    likely = [x for x in STUDIES[0].read("harm.csv") if float(x["probability_of_harm"]) >= 0.95]
    table = STUDIES[0].list_rows("| patients of |")
    assert [row[0] for row in table] == [x["other"] for x in likely]


def test_the_page_has_what_the_steps_cost():
    table = Study("", RESULTS, PAGE, 0, 0).list_rows("| | trainings |")
    steps = ["calibrate", "pilots", "harm", "plan", "coalitions", "share", "audit", "confirm"]
    for study, row in zip(STUDIES, table, strict=True):
        seconds = study.load("machine.json")["processor_seconds"]
        assert row[0] == {"consortium": "ten"}.get(study.name, study.name)
        assert [int(cell) for cell in row[2:]] == [seconds[step] for step in steps]
