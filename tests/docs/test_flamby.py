"""FLamby's heart hospitals: the patients are FLamby's, and the tables are those of the runs."""

import csv
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from federation.real_data import real_file
from torch.nn.functional import binary_cross_entropy, cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from fedaccord.federation import train

FOLDER = Path(__file__).parents[2] / "experiments" / "flamby"
FLAMBY_SEEDS = (42, 43, 44, 45, 46)


@pytest.fixture(scope="module")
def flamby():
    spec = importlib.util.spec_from_file_location("flamby_experiment", FOLDER / "flamby.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def path() -> Path:
    return real_file("heart-disease-4-sites.csv")


@pytest.fixture(scope="module")
def result():
    return json.loads((FOLDER / "results" / "flamby.json").read_text(encoding="utf-8"))


# The patients


def test_patients_are_as_many_as_flamby_says(flamby, path):
    hospitals = flamby.read_hospitals(path)
    assert [one.name for one in hospitals] == ["cleveland", "hungarian", "switzerland", "va"]
    assert [len(one.labels) for one in hospitals] == [303, 261, 46, 130]
    assert [int(one.trains.sum()) for one in hospitals] == [199, 172, 30, 85]
    assert {one.inputs.shape[1] for one in hospitals} == {13}
    # A model that calls every patient ill has .462, .371, .938 and .778 in FLamby's results.
    tested = [one.labels[~one.trains] for one in hospitals]
    assert [int(labels.sum()) for labels in tested] == [48, 33, 15, 35]
    assert [len(labels) for labels in tested] == [104, 89, 16, 45]


def count_differences(flamby, hospitals) -> int:
    """Train two hospitals alone in plain torch, with FLamby's random numbers; compare counts."""
    published, differences = flamby.read_published(), 0
    scaled = [flamby.scale(one.inputs, one.inputs[one.trains]) for one in hospitals]
    for i in (2, 3):
        inputs, one = scaled[i], hospitals[i]
        points = TensorDataset(inputs[one.trains], one.labels[one.trains].float()[:, None])
        for row, seed in enumerate(FLAMBY_SEEDS):
            torch.manual_seed(seed)
            model = torch.nn.Sequential(torch.nn.Linear(13, 1), torch.nn.Sigmoid())
            torch.manual_seed(seed)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
            batches = DataLoader(points, batch_size=4, shuffle=True)
            for _ in range(50):
                for some, labels in batches:
                    optimizer.zero_grad()
                    binary_cross_entropy(model(some), labels).backward()
                    optimizer.step()
            for k, other in enumerate(hospitals):
                ill = model(scaled[k][~other.trains])[:, 0] > 0.5
                right = int((ill == (other.labels[~other.trains] > 0)).sum())
                expected = published[f"{one.name} alone"][row][k]
                differences += right != expected
    return differences


def test_patients_and_split_give_flambys_own_numbers(flamby, path):
    with torch.random.fork_rng(devices=[]):
        # 40 counts of patients. Rounding on another machine may change one that is borderline.
        assert count_differences(flamby, flamby.read_hospitals(path)) <= 2


def test_another_split_does_not_give_flambys_numbers(flamby, path):
    with torch.random.fork_rng(devices=[]):
        assert count_differences(flamby, flamby.read_hospitals(path, split_seed=44)) > 20


def test_inputs_are_scaled_by_training_patients(flamby, path):
    hospitals = flamby.read_hospitals(path)
    federation = flamby.make_federation(hospitals, seed=42, scaled="site")
    *sites, everyone = federation.clients
    for client in sites:
        spread = client.inputs.std(0)
        # Switzerland wrote no cholesterol.
        constant = spread == 0
        assert constant.sum() == (client.name == "switzerland")
        assert torch.allclose(client.inputs.mean(0), torch.zeros(13), atol=1e-5)
        assert torch.allclose(spread[~constant], torch.ones(int((~constant).sum())), atol=1e-5)
    assert everyone.points == 486
    assert torch.allclose(everyone.inputs.std(0), torch.ones(13), atol=1e-5)


# The algorithms


def test_one_score_has_the_loss_of_a_sigmoid(flamby):
    model, inputs = flamby.OneScore(), torch.randn(50, 13)
    labels = torch.arange(50) % 2
    with torch.no_grad():
        own = cross_entropy(model(inputs), labels)
        theirs = binary_cross_entropy(torch.sigmoid(model.linear(inputs))[:, 0], labels.float())
    assert float(own) == pytest.approx(float(theirs), rel=1e-5)


def test_hospitals_weigh_as_much_as_they_have_patients(flamby):
    algorithm = flamby.BySize()
    state = algorithm.begin(np.array([199, 172, 30, 85]))
    models = [torch.full((2,), value) for value in (1.0, 2.0, 3.0, 4.0)]
    mean = algorithm.combine(state, models, np.full(4, 400), np.arange(4))
    assert mean.tolist() == pytest.approx([(199 + 2 * 172 + 3 * 30 + 4 * 85) / 486] * 2)


def test_the_first_step_of_adagrad_is_the_same_for_every_parameter(flamby, path):
    # change / sqrt(change^2) is 1 or -1, and the momentum starts with a tenth of the change.
    federation = flamby.make_federation(flamby.read_hospitals(path), seed=42, scaled="site")
    history = train(
        federation, flamby.FedAdagrad(rounds=1), contributions=[199, 172, 30, 85, 0], seed=42
    )
    for name, start in federation.weights.items():
        moved = np.abs(history.weights[name] - start)
        assert moved == pytest.approx(np.full(moved.shape, 0.0316228), rel=1e-3)


# The committed files


def test_the_table_is_that_of_the_result(flamby, result):
    assert flamby.write_table(result) == (FOLDER / "results" / "flamby.md").read_text("utf-8")


def test_the_result_is_that_of_the_runs(result):
    lines = (FOLDER / "results" / "runs.jsonl").read_text("utf-8").splitlines()
    runs = dict(map(json.loads, lines))
    for name, sites in result["methods"].items():
        for i, (site, found) in enumerate(sites.items()):
            keys = [f"{name} / {' + '.join(sites)} / {seed}" for seed in result["seeds"]]
            right = [runs[key][i].count("1") for key in keys]
            assert found["right"] == right
            assert found["mean"] == pytest.approx(np.mean(right) / result["test_patients"][site])


def test_a_changed_result_changes_the_table(flamby, result):
    changed = json.loads(json.dumps(result))
    changed["methods"]["FedAvg"]["va"]["mean"] += 0.01
    assert flamby.write_table(changed) != flamby.write_table(result)


def test_published_means_are_those_of_flambys_page(flamby):
    with (FOLDER / "published.csv").open(encoding="utf-8", newline="") as file:
        assert {int(row["seed"]) for row in csv.DictReader(file)} == set(FLAMBY_SEEDS)
    published, tests = flamby.read_published(), np.array([104, 89, 16, 45])
    means = {name: (rows.mean(axis=0) / tests).round(3) for name, rows in published.items()}
    assert means["pooled"].tolist() == pytest.approx([0.783, 0.764, 0.750, 0.644], abs=6e-4)
    assert means["FedAvg"].tolist() == pytest.approx([0.731, 0.719, 0.650, 0.640], abs=6e-4)
    assert means["FedAdagrad"].tolist() == pytest.approx([0.760, 0.753, 0.738, 0.676], abs=6e-4)
    own = [means[f"{site} alone"][i] for i, site in enumerate(flamby.SITES)]
    assert own == pytest.approx([0.746, 0.746, 0.725, 0.702], abs=6e-4)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ([80, 80, 80], [80, 80], True),
        ([80, 80, 80], [81, 81], False),
        ([78, 80, 82], [79, 82], True),
        ([78, 80, 82], [95, 97], False),
    ],
)
def test_noise_is_what_seeds_differ_by(flamby, ours, theirs, same):
    assert flamby.is_within_noise(ours, theirs) == same


def test_the_readme_quotes_rows_of_the_table():
    table = (FOLDER / "results" / "flamby.md").read_text("utf-8").splitlines()
    quoted = (FOLDER / "README.md").read_text("utf-8").split("<!-- rows -->")[1::2]
    rows = [line for part in quoted for line in part.strip().splitlines()]
    assert len(rows) > 10
    assert [row for row in rows if row not in table] == []
