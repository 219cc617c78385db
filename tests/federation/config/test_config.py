"""Configs: what they mean, what is wrong with them, and what is made of them."""

from pathlib import Path

import numpy as np
import pytest
from federation.tiny import TINY

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.config import build as workshop
from fedaccord.federation.config.build import Building
from fedaccord.federation.config.load import Config
from fedaccord.federation.data.pretraining import PretrainedWeights, Scores
from fedaccord.federation.partition import Dealer, SiteDealer


def refused(toml: str) -> str:
    with pytest.raises(InputError) as caught:
        Config.parse(toml)
    return str(caught.value)


# What a file means.


def test_an_empty_file_is_the_papers_experiment() -> None:
    config = Config.parse("")
    assert config.agents.mixtures == (1.0, 0.9, 0.1, 0.0)
    assert (config.agents.points, config.agents.validation) == (2000, 0.2)
    assert config.agents.requirement == 0.7
    assert config.algorithms == {"FedAvg": FedAvg(), "MW-FED": MwFed()}
    assert config.algorithms["FedAvg"].to_dict()["rounds"] == 250
    assert config.audit.levels == (1.0, 0.75, 0.5, 0.25, 0.05)


def test_the_built_in_federation_is_digits() -> None:
    config = Config.default()
    assert config.data.source == "digits"
    assert list(config.algorithms) == ["FedAvg", "MW-FED"]
    assert len(config.agents.mixtures) == 4


def test_training_is_shared_and_an_algorithm_overrides_it() -> None:
    config = Config.parse(
        """
        [training]
        rounds = 30
        batch_size = 8
        [algorithms.FedAvg]
        [algorithms.eager]
        kind = "mw-fed"
        factor = 4
        rounds = 5
        [algorithms.Solo]
        batch_size = 32
        """
    )
    assert config.algorithms == {
        "FedAvg": FedAvg(rounds=30, batch_size=8),
        "eager": MwFed(rounds=5, batch_size=8, factor=4),
        "Solo": Solo(rounds=30, batch_size=32),
    }
    assert list(config.algorithms) == ["FedAvg", "eager", "Solo"]


def test_everything_can_be_written_as_plain_values() -> None:
    plain = Config.default().to_dict()
    assert plain["agents"]["requirement"] == 0.8
    assert plain["algorithms"]["MW-FED"]["kind"] == "mw-fed"
    assert set(plain) >= {"data", "pools", "difficulty", "agents", "model", "audit"}


def test_files_are_looked_for_beside_the_config_then_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, shelf, elsewhere = (tmp_path / name for name in ("here", "shelf", "elsewhere"))
    for folder in (here, shelf, elsewhere):
        folder.mkdir()
        (folder / "plan.json").write_text("{}")
    file = here / "federation.toml"
    file.write_text('[audit]\nprotocol = "P2"\nplan = "plan.json"\n')
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("FEDACCORD_DATA", str(shelf))
    assert Config.load(file).audit.plan == str(here / "plan.json")
    (here / "plan.json").unlink()
    assert Config.load(file).audit.plan == str(shelf / "plan.json")
    (shelf / "plan.json").unlink()
    assert Config.load(file).audit.plan == str(here / "plan.json")
    file.write_text('[audit]\nplan = "/a/plan.json"\n')
    assert Config.load(file).audit.plan == "/a/plan.json"


# What is wrong with a file.


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[trainng]", "there is no section 'trainng'; did you mean training?"),
        ("[everything]", "there is no section 'everything'; there are data,"),
        ("[training]\nbatchsize = 3", "[training] has no key 'batchsize'; did you mean batch_size"),
        ("[training]\nfactor = 3", "[training] has no key 'factor'"),
        ("[training]\nrounds = 0", "[training] rounds must be a whole number of 1 or more; got 0"),
        ("[training]\nrounds = true", "[training] rounds must be a whole number"),
        ('[training]\nrounds = "many"', "[training] rounds must be a whole number"),
        ("[training]\nlearning_rate = -1", "[training] learning_rate must be a number above 0"),
        ("[training]\nlearning_rate = nan", "[training] learning_rate must be a number above 0"),
        ('[training]\noptimizer = "adm"', "[training] optimizer must be one of adam, sgd"),
        ("training = 3", "training must be a section"),
        ("data = 3", "data must be a section"),
        ("algorithms = 3", "[algorithms] must have a section for each"),
        ("[algorithms]", "[algorithms] must have a section for each"),
        ("[algorithms]\nFedAvg = 3", "algorithms.FedAvg must be a section"),
        ("[algorithms.Mine]", "[algorithms.Mine] needs a kind, one of fedavg, mw-fed, solo"),
        ('[algorithms.A]\nkind = "fedavgg"', "got 'fedavgg'; did you mean fedavg?"),
        ("[algorithms.FedAvg]\nfactor = 2", "[algorithms.FedAvg] has no key 'factor'"),
        ("[algorithms.MW-FED]\nfactor = 0.5", "[algorithms.MW-FED] factor must be a number of 1"),
        ('[algorithms." "]\nkind = "solo"', "has no name"),
        ('[data]\nsource = "emnits"', "[data] source must be one of digits, emnist"),
        ('[data]\nsource = "csv"', '[data] source = "csv" needs a path'),
        ("[data]\nsource = 3", "[data] source must be one of"),
        ('[data]\nlabel_above = "x"', "[data] label_above must be a number; got 'x'"),
        ('[data]\nlabel = ""', "[data] label must be a text"),
        ('[data]\nwithout = ["a", "a"]', "[data] without lists a twice"),
        ("[pools]\npretraining = -1", "[pools] pretraining must be a whole number of 0 or more"),
        ("[pools]\nagents = 1.5", "[pools] agents must be a whole number of 1 or more; got 1.5"),
        ('[difficulty]\nmethod = "guess"', "[difficulty] method must be one of loss, trials"),
        ("[difficulty]\ntrials = 5", '[difficulty] trials belongs to method = "trials"'),
        ('[difficulty]\nmethod = "trials"\nuntil = 0.5', 'until belongs to method = "loss"'),
        ("[difficulty]\nuntil = 1.5", "[difficulty] until must be a number above 0 and at most 1"),
        ("[agents]\nmixtures = []", "[agents] mixtures must be a list of one value or more"),
        ("[agents]\nmixtures = [1, 2]", "each of [agents] mixtures must be a number at least 0"),
        ("[agents]\nmixtures = 1", "[agents] mixtures must be a list"),
        ('[agents]\nnames = ["a", "a"]', "[agents] names lists a twice"),
        ("[agents]\nvalidation = 1", "[agents] validation must be a number above 0 and below 1"),
        ("[agents]\nrequirement = 0", "[agents] requirement must be a number above 0 and at most"),
        ("[agents]\nrequirement = [0.5, 70]", "each of [agents] requirement must be a number"),
        ("[agents]\nhard = [1, 2, 3]", "[agents] hard must be a list of 2 values"),
        ("[agents]\neasy = [0, 101]", "each of [agents] easy must be a number at least 0"),
        (
            '[agents]\nnames = ["a", "b", "c"]',
            "[agents] names has 3 entries for 4 mixtures; give one name",
        ),
        (
            "[agents]\nmixtures = [1, 0]\npoints = [5, 5, 5]",
            "[agents] points has 3 entries for 2 mixtures",
        ),
        (
            "[agents]\nrequirement = [0.5, 0.5]",
            "[agents] requirement has 2 entries for 4 mixtures; give",
        ),
        ("[agents]\nhard = [90, 70]", "[agents] hard must go from a lower to a higher percentile"),
        ("[agents]\neasy = [10, 10]", "[agents] easy must go from a lower to a higher percentile"),
        ("[agents]\neasy = [40, 70]", "[agents] easy ends at 70 and [agents] hard begins at 65"),
        (
            "[data]\nsource='csv'\npath='a.csv'\nlabel='a'\n[agents]\nnames=['a']",
            "[agents] names has 1 entries for 4 mixtures",
        ),
        (
            "[data]\nsource='npz'\npath='a.npz'\n[agents]\nmixtures=[1]\npoints=[9, 9]",
            "[agents] points has 2 entries for 1 mixtures",
        ),
        (f"[data]\nlabel_above = 1{'0' * 400}", "[data] label_above must be a number"),
        ('[model]\nname = "resnet"', "[model] name must be one of paper, cnn, mlp, logistic"),
        ("[pretraining]\nbatches = -1", "[pretraining] batches must be a whole number of 0"),
        ("[audit]\nlevels = [1, 0]", "each of [audit] levels must be a number above 0 and at most"),
        ("[audit]\nlevels = [1.5]", "each of [audit] levels must be a number above 0"),
        ("[audit]\nlevels = [0.5, 0.50]", "[audit] levels lists 0.5 twice"),
        ("[audit]\ntrials = 0", "[audit] trials must be a whole number of 1 or more"),
        ('[audit]\nprotocol = "p1"', "got 'p1'; did you mean P1?"),
        ('[audit]\ndefectors = "all"', "[audit] defectors must be one of each, random"),
        ("[audit]\nwidth = 1", "[audit] width must be a number above 0 and below 1"),
        ("[audit]\ntrials = true", "[audit] trials must be a whole number of 1 or more"),
        ("[audit]\nseed = -1", "[audit] seed must be a whole number of 0 or more"),
        ("[audit]\nseed = 1979-05-27", "[audit] seed must be a whole number"),
    ],
)
def test_what_is_wrong_is_named_with_its_section_and_key(toml: str, words: str) -> None:
    assert words in refused(toml)


def test_only_the_data_tell_what_fits_agents_that_are_sites() -> None:
    # How many sites there are is not known yet, so that one requirement each is no fault here.
    for data in ("source = 'csv'\npath = 'a.csv'\nsite = 's'", "source = 'npz'\npath = 'a.npz'"):
        config = Config.parse(f"[data]\n{data}\n[agents]\nrequirement = [0.5, 0.6]")
        assert config.agents.requirement == (0.5, 0.6)
    # A list of one is a list that lacks the others.
    with pytest.raises(
        InputError, match="has 1 entries for 4 mixtures; give one for all, or one per mixture"
    ):
        Config.parse("[agents]\nrequirement = [0.5]")


def test_a_fault_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "federation.toml"
    for content, words in (
        ("[training]\nbatchsize = 3", "federation.toml: [training] has no key"),
        ("[training\n", "federation.toml is not TOML: "),
        ("rounds = 3\nrounds = 4", "federation.toml is not TOML: "),
        ("a = " + "[" * 5_000, "federation.toml: brackets are nested too deeply"),
        ("a = " + "1" * 5_000, "federation.toml: a value cannot be read"),
    ):
        file.write_text(content)
        with pytest.raises(InputError, match=r"federation\.toml") as caught:
            Config.load(file)
        assert words in str(caught.value)
    with pytest.raises(InputError, match="cannot read") as caught:
        Config.load(tmp_path / "none.toml")
    assert str(caught.value).count("none.toml") == 1
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        Config.load(file)


# What is made of it.


@pytest.fixture
def tiny() -> Building:
    return Building(Config.parse(TINY))


def test_the_pools_are_as_large_as_asked_and_share_no_point(tiny: Building) -> None:
    pools = tiny.pools
    assert pools.pretraining is not None and pools.validation is not None
    assert [len(p) for p in (pools.pretraining, pools.validation, pools.agents)] == [100, 60, 1637]
    # No digit was drawn twice with the very same dots, so that equal points are the same point.
    everyone = np.concatenate(
        [p.inputs.reshape(len(p), -1) for p in (pools.pretraining, pools.validation, pools.agents)]
    )
    assert len(np.unique(everyone, axis=0)) == len(
        np.unique(tiny.data.inputs.reshape(1797, -1), axis=0)
    )
    few = Building(Config.parse(TINY.replace("[pools]", "[pools]\nagents = 500")))
    assert len(few.pools.agents) == 500
    exact = Building(Config.parse("[pools]\npretraining = 200\nvalidation = 97\nagents = 1500"))
    assert exact.pools.validation is not None
    assert (len(exact.pools.validation), len(exact.pools.agents)) == (97, 1500)
    left_out = Building(Config.parse("[pools]\npretraining = 200\nvalidation = 97"))
    assert exact.pools.agents.sha256 == left_out.pools.agents.sha256
    without = Building(Config.parse("[pools]\npretraining = 0\nvalidation = 0"))
    assert (without.pools.pretraining, len(without.pools.agents)) == (None, 1797)


def test_a_dealer_is_built_that_starts_from_the_pretrained_weights(tiny: Building) -> None:
    source = tiny.source(seed=3)
    assert isinstance(source, Dealer)
    assert (source.names, source.seed) == (("100% hard", "100% easy"), 3)
    assert source.points.tolist() == [32, 32]
    federation = source.deal(0)
    assert tiny.weights is not None and federation.weights is tiny.weights
    assert source.fingerprint == Config.parse(TINY).build(seed=3).fingerprint
    assert source.fingerprint != Config.parse(TINY).build(seed=4).fingerprint
    assert Config.parse(TINY + "[audit]\nseed = 3").build().fingerprint == source.fingerprint


def test_hard_agents_have_points_of_higher_scores(tiny: Building) -> None:
    source = tiny.source(seed=0)
    assert isinstance(source, Dealer)
    scores = {
        point.tobytes(): value
        for point, value in zip(tiny.pools.agents.inputs, tiny.scores.values, strict=True)
    }
    (hard, _), (easy, _) = source.indices(0)
    least = min(scores[source.pool.inputs[i].tobytes()] for i in hard)
    most = max(scores[source.pool.inputs[i].tobytes()] for i in easy)
    assert least >= most


def test_without_batches_there_is_no_pretraining() -> None:
    toml = TINY.replace("batches = 2", "batches = 0")
    assert Building(Config.parse(toml)).weights is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("pretraining = 100", "pretraining = 0", r"\[pools\] pretraining"),
        ("pretraining = 100", "pretraining = 1790", r"\[pools\] pools of 1,790 \+ 60 samples"),
        (
            "[pools]",
            "[pools]\nagents = 1638",
            r"pools of 100 \+ 60 \+ 1,638 samples",
        ),
        ("points = 40", "points = 2000", "need 2,000 hard samples and the pool has"),
        ("points = 40", "points = [40, 0]", "100% easy has no data"),
        ("[agents]", "[model]\nname = 'paper'\n[agents]", "takes images of 28 x 28"),
    ],
)
def test_what_cannot_be_dealt_is_refused(old: str, new: str, words: str) -> None:
    assert old in TINY
    with pytest.raises(InputError, match=words):
        Config.parse(TINY.replace(old, new)).build()


def test_scores_and_weights_can_come_from_files(tiny: Building, tmp_path: Path) -> None:
    tiny.scores.save(tmp_path / "scores.npz")
    tiny.new_weights().save(tmp_path / "weights.npz")
    toml = TINY.replace("batches = 5", "scores = 'scores.npz'")
    toml = toml.replace("batches = 2", "weights = 'weights.npz'")
    again = Building(Config.parse(toml, folder=tmp_path))
    assert again.source(seed=0).fingerprint == tiny.source(seed=0).fingerprint
    other = Config.parse(toml.replace("pretraining = 100", "pretraining = 101"), folder=tmp_path)
    with pytest.raises(InputError, match="for other samples than this config has"):
        other.build()


def test_weights_that_may_have_seen_the_agents_points_are_refused(
    tiny: Building, tmp_path: Path
) -> None:
    made = tiny.new_weights()
    made.save(tmp_path / "weights.npz")
    toml = TINY.replace("batches = 2", "weights = 'weights.npz'")
    weights = Building(Config.parse(toml, folder=tmp_path)).weights
    assert weights is not None and list(weights) == list(made)
    others = (
        toml.replace("[pools]", "[pools]\nseed = 1"),
        toml.replace("pretraining = 100", "pretraining = 99"),
        toml.replace("pretraining = 100", "pretraining = 0"),
    )
    for other in others:
        with pytest.raises(InputError, match=r"pre-train again with 'fedaccord pretrain CONFIG'"):
            _ = Building(Config.parse(other, folder=tmp_path)).weights
    # Weights from elsewhere do not say what they have seen, and are taken.
    provenance = {name: value for name, value in made.provenance.items() if name != "pool"}
    PretrainedWeights(made.arrays, made.record, provenance).save(tmp_path / "weights.npz")
    for other in others:
        assert Building(Config.parse(other, folder=tmp_path)).weights is not None


# What is kept.


def test_what_took_long_is_kept_and_read_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.parse(TINY)
    Building(config, cache=tmp_path / "cache").source(seed=0)
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(workshop, "WORTH_KEEPING", 0.0)
    first = Building(config, cache=tmp_path / "cache")
    fingerprint = first.source(seed=0).fingerprint
    assert sorted(p.name.split("-")[0] for p in (tmp_path / "cache").iterdir()) == [
        "scores",
        "weights",
    ]
    monkeypatch.setattr(workshop, "loss_scores", None)
    monkeypatch.setattr(workshop, "pretrain", None)
    assert Building(config, cache=tmp_path / "cache").source(seed=0).fingerprint == fingerprint


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        ("batches = 5", "batches = 6", {"scores"}),
        ("batches = 2", "batches = 3", {"weights"}),
        ("pretraining = 100", "pretraining = 101", {"scores", "weights"}),
        ("validation = 60", "validation = 61", {"scores", "weights"}),
        ("[pools]", "[pools]\nseed = 1", {"scores", "weights"}),
        ("[agents]", "[model]\nname = 'logistic'\n[agents]", {"scores", "weights"}),
        ("points = 40", "points = 44", set()),
        ("[pretraining]", "[audit]\nseed = 8\n[pretraining]", set()),
    ],
)
def test_what_is_kept_is_made_anew_when_what_it_depends_on_changes(
    old: str, new: str, made: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop, "WORTH_KEEPING", 0.0)
    Config.parse(TINY)
    Building(Config.parse(TINY), cache=tmp_path).source(seed=0)
    before = set(tmp_path.iterdir())
    assert old in TINY
    Building(Config.parse(TINY.replace(old, new)), cache=tmp_path).source(seed=0)
    assert {p.name.split("-")[0] for p in set(tmp_path.iterdir()) - before} == made


def test_what_is_kept_is_made_anew_when_the_arithmetic_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop, "WORTH_KEEPING", 0.0)
    options = {"trials": 1, "points": 30, "cap": 2}
    for version in (workshop.RESULTS, workshop.RESULTS + 1):
        monkeypatch.setattr(workshop, "RESULTS", version)
        building = Building(Config.parse(TINY), cache=tmp_path)
        building.source(seed=0)
        building.new_scores("trials", options)
    kinds = [p.name.split("-")[0] for p in tmp_path.iterdir()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"scores": 4, "weights": 2, "trials": 2}


def test_a_folder_that_cannot_be_written_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop, "WORTH_KEEPING", 0.0)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert Building(Config.parse(TINY), cache=place).source(seed=0).names


def test_a_kept_file_that_is_damaged_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop, "WORTH_KEEPING", 0.0)
    Building(Config.parse(TINY), cache=tmp_path).source(seed=0)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged or cut short"):
        Building(Config.parse(TINY), cache=tmp_path).source(seed=0)


def test_more_trials_go_on_from_those_that_are_kept(tmp_path: Path) -> None:
    config = Config.parse(TINY)
    options = {"trials": 2, "points": 30, "cap": 4, "target": 0.9}
    told: list[tuple[int, int]] = []

    class Stage:
        def __call__(self, what: str) -> "Stage":
            return self

        def __enter__(self):
            return lambda done, total: told.append((done, total))

        def __exit__(self, *error: object) -> None:
            pass

    few = Building(config, cache=tmp_path).new_scores("trials", options)
    more = Building(config, cache=tmp_path, stage=Stage()).new_scores(
        "trials", {**options, "trials": 5}
    )
    assert (few.provenance["trials"], more.provenance["trials"]) == (2, 5)
    assert told[0] == (2, 5)
    assert len(list(tmp_path.glob("trials-*.sqlite"))) == 1


# Sites.

SITES = "[data]\nsource = 'csv'\npath = 'wards.csv'\nlabel = 'ill'\nsite = 'ward'\n"


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    rows = [f"{n % 7},{n % 2},{'east' if n % 3 else 'west'}" for n in range(30)]
    (tmp_path / "wards.csv").write_text("\n".join(["age,ill,ward", *rows]))
    return tmp_path


def test_sites_are_the_agents(wards: Path) -> None:
    source = Config.parse(SITES + "[agents]\nrequirement = [0.5, 0.6]", folder=wards).build()
    assert isinstance(source, SiteDealer)
    assert source.names == ("east", "west")
    assert source.requirements.tolist() == [0.5, 0.6]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[agents]\nmixtures = [1, 0]", r"leave out \[agents\] mixtures"),
        ("[pools]\npretraining = 5", r"leave out \[pools\] pretraining"),
        ("[pretraining]\nbatches = 5", r"leave out \[pretraining\] batches"),
        ("[difficulty]\nmethod = 'loss'", r"leave out \[difficulty\] method"),
    ],
)
def test_sites_leave_nothing_to_mix_or_to_pretrain_on(more: str, words: str, wards: Path) -> None:
    with pytest.raises(InputError, match=words):
        Config.parse(SITES + more, folder=wards).build()
    with pytest.raises(InputError, match="no pool is left"):
        Building(Config.parse(SITES, folder=wards)).new_weights()


def test_a_source_and_its_file_must_agree(wards: Path) -> None:
    with pytest.raises(InputError, match=r"needs a file that ends in \.npz"):
        Config.parse("[data]\nsource = 'npz'\npath = 'wards.csv'", folder=wards).build()
    with pytest.raises(InputError, match=r"there is no file .*none\.csv"):
        Config.parse(SITES.replace("wards.csv", "none.csv"), folder=wards).build()


def test_kept_files_are_what_their_readers_say(tmp_path: Path, tiny: Building) -> None:
    tiny.scores.save(tmp_path / "scores.npz")
    with pytest.raises(InputError, match="does not hold pre-trained weights"):
        PretrainedWeights.load(tmp_path / "scores.npz")
    assert len(Scores.load(tmp_path / "scores.npz")) == len(tiny.pools.agents)
