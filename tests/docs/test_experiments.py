"""Experiments: configs follow their calibration, and results are of the configs that lie there."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from fedaccord.federation.config.load import Config
from fedaccord.reproduce import run
from fedaccord.reproduce.claims import EXPERIMENT
from fedaccord.reproduce.section_6_defection import double_sets

BLUM = Path(__file__).parents[2] / "experiments" / "blum2021"


def read(name: str):
    return json.loads((BLUM / "results" / name).read_text())


def test_bands_and_goal_are_those_that_solo_learning_chose() -> None:
    chosen = read("calibration.json")["chosen"]
    agents = Config.load(BLUM / "emnist.toml").agents
    assert list(agents.hard) == chosen["hard"]
    assert list(agents.easy) == chosen["easy"]
    assert agents.requirement == chosen["goal"]


def test_the_committed_audit_is_of_the_committed_config() -> None:
    config, found = Config.load(BLUM / "emnist.toml"), read("emnist.json")
    assert found["algorithms"].keys() == config.algorithms.keys()
    for name, algorithm in config.algorithms.items():
        result = found["algorithms"][name]
        assert result["settings"] == algorithm.to_dict()
        assert [level["level"] for level in result["levels"]] == list(config.audit.levels)
        assert result["all_satisfied"]["trials"] == config.audit.trials


@pytest.mark.parametrize("name", ["FedAvg", "MW-FED"])
def test_every_committed_share_has_its_trials_and_an_interval(name: str) -> None:
    for level in read("emnist.json")["algorithms"][name]["levels"]:
        assert level["trials"] >= 30
        assert level["low"] <= level["p"] <= level["high"]


# The configs of the figures.


def test_the_goal_of_larger_sets_is_the_one_that_solo_learning_chose() -> None:
    agents, chosen = Config.load(BLUM / "larger-sets.toml").agents, read("larger-sets.json")
    assert agents.requirement == chosen["goal"]
    assert agents.points * (1 - agents.validation) == chosen["points"]


def test_the_goal_of_larger_sets_of_digits_is_the_one_that_solo_learning_chose() -> None:
    found = json.loads((BLUM.parent / "digits" / "results" / "solo.json").read_text())
    assert double_sets(Config.default()).agents.requirement == found["larger_sets"]["goal"]


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("defection", {"audit"}),
        ("solo-curves", {"audit", "algorithms", "plans"}),
        ("solo-levels", {"audit", "algorithms", "plans"}),
        ("more-agents", {"audit", "agents"}),
        ("larger-sets", {"audit", "agents", "algorithms"}),
        ("frontier", {"algorithms", "plans", "frontier"}),
    ],
)
def test_figures_differ_from_the_main_experiment_only_where_they_must(name, sections) -> None:
    main, figure = (Config.load(BLUM / f"{file}.toml").to_dict() for file in ("emnist", name))
    assert {section for section in main if main[section] != figure[section]} == sections
    assert main["audit"]["seed"] == figure["audit"]["seed"]


def test_agents_train_alone_as_they_did_when_bands_and_goal_were_chosen() -> None:
    source = (BLUM / "calibrate.py").read_text()
    module: dict = {"__file__": str(BLUM / "calibrate.py"), "__name__": "calibrate"}
    exec(compile(source, "calibrate.py", "exec"), module)
    for name in ("solo-curves", "solo-levels"):
        config = Config.load(BLUM / f"{name}.toml")
        assert config.algorithms["Solo"] == module["ALONE"]
        assert config.audit.seed != module["CALIBRATION"]


def test_bands_have_points_for_all_agents() -> None:
    """A tenth of 60,000 points is hard and a tenth easy; no point is dealt twice."""
    for name in ("more-agents", "larger-sets"):
        config = Config.load(BLUM / f"{name}.toml")
        hard = sum(config.agents.mixtures) * config.agents.points
        easy = len(config.agents.mixtures) * config.agents.points - hard
        assert max(hard, easy) <= config.pools.agents * 0.1


def test_a_wheel_has_the_configs_and_the_papers_numbers_where_they_are_looked_for() -> None:
    import hatch_build

    packed = hatch_build.packed(BLUM.parents[1])
    assert {Path(place).name for place in packed} == {path.name for path in BLUM.glob("*.toml")}
    home = run.PACKAGED.relative_to(Path(run.__file__).parents[2])
    assert {str(Path(target).parent) for target in packed.values()} == {str(home)}


def test_the_costs_of_the_full_scale_are_those_that_the_command_adds_up() -> None:
    page = (BLUM.parents[1] / "docs" / "how-to" / "reproduce-the-paper.md").read_text()
    rows = dict(re.findall(r"^\| ([a-z][^|]*) \| (\d+) \|$", page, flags=re.MULTILINE))
    claims = run.all_claims()
    trained = [id for id, claim in claims.items() if claim.part == EXPERIMENT]
    named = {row: [id for id in trained if id in row.split(", ")] for row in rows}
    named["all theorems and definitions"] = [id for id in claims if id not in trained]
    for row, ids in named.items():
        assert abs(run.minutes(ids, full=True) - float(rows[row])) < 1, row
    # What the table leaves out takes seconds.
    rest = set(claims) - {id for ids in named.values() for id in ids}
    assert run.minutes(sorted(rest), full=True) < 1
    assert abs(run.minutes(None, full=True) - 4.5 * 60) < 5


# The table of all results.


def load_lister() -> ModuleType:
    module = ModuleType("list_results")
    path = BLUM.parent / "list_results.py"
    module.__file__ = str(path)
    exec(compile(path.read_text(), path.name, "exec"), vars(module))
    return module


def find_table_faults(lister: ModuleType, page: str) -> list[str]:
    """List the results that the page lacks, has twice, or has with other content or cost."""
    made = lister.read_made()
    times = Counter(name for one in made for name in one["found"])
    faults = [f"{name} is made {times[name]} times" for name in times if times[name] > 1]
    faults += [f"nothing makes {name}" for name in set(lister.list_files()) - set(times)]
    faults += [f"{one['files']} are not there" for one in made if not one["found"]]
    rows = [line for line in page.splitlines() if line.startswith(("| [", "| 1"))]
    wanted = [lister.write_row(one) for one in made]
    faults += [f"not in the table: {row}" for row in wanted if not any_starts(rows, row)]
    faults += [f"no longer made: {row}" for row in rows if not row.startswith(tuple(wanted))]
    return faults


def any_starts(rows: list[str], start: str) -> bool:
    return any(row.startswith(start + " | ") for row in rows)


def test_the_table_has_every_result_with_its_content_command_and_cost() -> None:
    lister = load_lister()
    # Otherwise: commit the results, and give `python experiments/list_results.py`.
    assert find_table_faults(lister, lister.TABLE.read_text()) == []


def test_commands_of_the_table_name_files_that_are_there() -> None:
    for made in load_lister().read_made():
        words = made.get("command", "").split()
        named = [word for word in words if word.startswith("experiments/")]
        for path in [*named, "experiments/" + made.get("stated", "README.md")]:
            assert (BLUM.parents[1] / path).is_file(), path


def test_a_result_that_changed_or_came_or_went_is_noticed(tmp_path: Path) -> None:
    lister, page = load_lister(), (BLUM.parent / "README.md").read_text()
    copy = tmp_path / "experiments"
    shutil.copytree(BLUM.parent, copy, ignore=shutil.ignore_patterns("cache", "*.sqlite*"))
    lister.HERE = copy
    lister.TABLE = copy / "README.md"
    assert find_table_faults(lister, page) == []
    audit = copy / "digits" / "results" / "audit.json"
    audit.write_text(audit.read_text().replace("0.05", "0.06", 1))
    assert len(find_table_faults(lister, page)) == 2
    audit.unlink()
    assert "are not there" in " ".join(find_table_faults(lister, page))
    shutil.copy(BLUM / "results" / "emnist.json", copy / "heart" / "results" / "new.json")
    assert "nothing makes heart/results/new.json" in find_table_faults(lister, page)
