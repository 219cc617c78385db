"""Configs that extend others: what they take over, what they replace, and what is wrong."""

import json
from pathlib import Path

import pytest
from commands import run

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.config.load import Config, read_tables

BASE = """
[agents]
mixtures = [1, 0]
points = 40
requirement = 0.6
[training]
rounds = 30
[algorithms.FedAvg]
[algorithms.MW-FED]
factor = 4
[audit]
trials = 7
levels = [1, 0.5]
"""


def written(folder: Path, **files: str) -> Path:
    """Write files NAME.toml, and give the last."""
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return folder / f"{list(files)[-1]}.toml"


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        Config.load(path)
    return str(caught.value)


def test_keys_replace_those_of_the_other_file_one_by_one(tmp_path: Path) -> None:
    top = 'extends = "base.toml"\n[agents]\npoints = 50\n[audit]\nlevels = [1]\n'
    config = Config.load(written(tmp_path, base=BASE, top=top))
    assert (config.agents.points, config.agents.requirement) == (50, 0.6)
    assert config.agents.mixtures == (1, 0)
    # A list is one value: it is replaced, not added to.
    assert (config.audit.levels, config.audit.trials) == ((1,), 7)


def test_algorithms_are_added_and_changed_key_by_key(tmp_path: Path) -> None:
    top = (
        'extends = "base.toml"\n[training]\nbatch_size = 8\n'
        "[algorithms.MW-FED]\nrounds = 5\n[algorithms.Solo]\nbatch_size = 32\n"
    )
    config = Config.load(written(tmp_path, base=BASE, top=top))
    assert config.algorithms == {
        "FedAvg": FedAvg(rounds=30, batch_size=8),
        "MW-FED": MwFed(rounds=5, batch_size=8, factor=4),
        "Solo": Solo(rounds=30, batch_size=32),
    }


def test_what_is_taken_over_counts_as_given(tmp_path: Path) -> None:
    config = Config.load(written(tmp_path, base=BASE, top='extends = "base.toml"'))
    assert config == Config.load(tmp_path / "base.toml")
    assert "agents.mixtures" in config.given


def test_files_can_extend_files_that_extend_others(tmp_path: Path) -> None:
    middle = 'extends = "base.toml"\n[agents]\npoints = 50\nrequirement = 0.7\n'
    top = 'extends = "middle.toml"\n[agents]\nrequirement = 0.8\n'
    agents = Config.load(written(tmp_path, base=BASE, middle=middle, top=top)).agents
    assert (agents.points, agents.requirement, agents.mixtures) == (50, 0.8, (1, 0))


def test_each_file_names_others_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    written(tmp_path / "shared", base='[pretraining]\nweights = "w.npz"\n')
    top = 'extends = "../shared/base.toml"\n[difficulty]\nscores = "s.npz"\n'
    config = Config.load(written(tmp_path / "mine", top=top))
    assert Path(config.pretraining.weights).resolve() == tmp_path / "shared" / "w.npz"
    assert Path(config.difficulty.scores).resolve() == tmp_path / "mine" / "s.npz"


def test_a_text_without_a_file_extends_from_the_folder_it_is_given(tmp_path: Path) -> None:
    written(tmp_path, base=BASE)
    assert Config.parse('extends = "base.toml"', folder=tmp_path).audit.trials == 7


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"top": 'extends = "none.toml"'}, ["top.toml", "cannot read", "none.toml"]),
        ({"top": "extends = 3"}, ["top.toml", "extends must be a text in quotes; got 3"]),
        ({"top": 'extends = ""'}, ["top.toml", "extends must be a text in quotes"]),
        ({"top": 'extend = "base.toml"'}, ["'extend'; did you mean extends?"]),
        ({"top": 'extends = "top.toml"'}, ["leads back to a file that extends it"]),
        (
            {"a": 'extends = "top.toml"', "top": 'extends = "a.toml"'},
            ["a.toml", 'extends = "top.toml" leads back'],
        ),
        (
            {"base": "[agents]\npints = 3\n", "top": 'extends = "base.toml"'},
            ["base.toml: [agents] has no key 'pints'; did you mean points?"],
        ),
        (
            {"base": BASE, "top": 'extends = "base.toml"\n[agents]\npints = 3\n'},
            ["top.toml: [agents] has no key 'pints'"],
        ),
        ({"base": "[agents", "top": 'extends = "base.toml"'}, ["base.toml is not TOML"]),
        ({"base": BASE, "top": 'extends = "base.toml"\nagents = 3'}, ["agents must be a section"]),
        (
            {"base": BASE, "top": 'extends = "base.toml"\n[agents]\nnames = ["a"]\n'},
            ["top.toml: [agents] names has 1 entries for 2 mixtures"],
        ),
    ],
)
def test_faults_are_told_with_the_file_they_are_in(
    files: dict[str, str], words: list[str], tmp_path: Path
) -> None:
    sentence = refused(written(tmp_path, **files))
    assert [word for word in words if word not in sentence] == []


def test_a_fault_of_the_other_file_is_not_laid_on_this_one(tmp_path: Path) -> None:
    top = 'extends = "base.toml"'
    assert "top.toml: [agents]" not in refused(
        written(tmp_path, base="[agents]\npints = 3\n", top=top)
    )


def test_files_may_extend_the_same_file_twice_over(tmp_path: Path) -> None:
    one = Config.load(written(tmp_path, base=BASE, one='extends = "base.toml"'))
    two = Config.load(written(tmp_path, two='extends = "base.toml"'))
    assert one == two


def test_tables_are_read_without_the_key_that_led_to_them(tmp_path: Path) -> None:
    tables = read_tables(written(tmp_path, base=BASE, top='extends = "base.toml"'))
    assert "extends" not in tables
    assert tables["training"] == {"rounds": 30}


def test_an_algorithm_asked_for_by_name_has_the_training_that_is_taken_over(tmp_path: Path) -> None:
    base = (
        "[pools]\npretraining = 100\nvalidation = 60\n[difficulty]\nbatches = 2\nholdout = 20\n"
        "[agents]\nmixtures = [1, 0]\npoints = 40\nhard = [50, 100]\neasy = [0, 50]\n"
        "[pretraining]\nbatches = 0\n[training]\nrounds = 3\nbatch_size = 4\n[algorithms.FedAvg]\n"
    )
    top = 'extends = "base.toml"\n[training]\nbatch_size = 5\n'
    file = written(tmp_path, base=base, top=top)
    found = json.loads(run("train", file, "--json", "--algorithm", "Solo").stdout)
    assert (found["algorithm"]["rounds"], found["algorithm"]["batch_size"]) == (3, 5)
