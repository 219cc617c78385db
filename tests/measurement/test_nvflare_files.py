"""Files that NVFlare itself wrote are read as pilots and as label histograms.

How they were made is in nvflare/make.py; no NVFlare is needed to read them.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import run
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord import Histograms, PilotTable, read_nvflare_pilots, read_nvflare_statistics
from fedaccord.errors import InputError

HERE = Path(__file__).parents[2] / "docs" / "how-to" / "nvflare"
STATISTICS, CROSS = HERE / "statistics.json", HERE / "cross_val_results.json"
SITES = ("city", "hill", "mill")


def changed(tmp_path, source, change):
    data = json.loads(source.read_text())
    change(data)
    path = tmp_path / source.name
    path.write_text(json.dumps(data))
    return path


# Statistics.


def test_a_histogram_has_the_labels_that_nvflare_counted():
    found = read_nvflare_statistics(STATISTICS)
    assert found.agents == SITES
    assert found.labels == tuple("0123456789")
    # The sites' sizes and mixes are set in nvflare/parts.py.
    assert found.counts.sum(axis=1).tolist() == [300, 200, 150]
    assert (found.counts[1, 5:] == 0).all() and (found.counts[2, :3] == 0).all()
    assert (found.counts[0] > 0).all()
    everyone = json.loads(STATISTICS.read_text())["label"]["histogram"]["Global"]["train"]
    assert found.counts.sum(axis=0).tolist() == [count for _, _, count in everyone]


def test_another_feature_and_data_set_can_be_asked_for():
    found = read_nvflare_statistics(STATISTICS, feature="pixel", dataset="test")
    assert found.labels == ("0 to 0.25", "0.25 to 0.5", "0.5 to 0.75", "0.75 to 1")
    assert found.counts.sum(axis=1).tolist() == [100, 100, 100]


def test_a_site_without_a_histogram_is_left_out_and_named(tmp_path):
    path = changed(tmp_path, STATISTICS, lambda data: data["label"]["histogram"].pop("mill"))
    found = read_nvflare_statistics(path)
    assert found.agents == ("city", "hill")
    assert any("mill has no histogram" in note for note in found.notes)


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [(-0.5, 0.5, "0"), (0, 1, "0"), (9, 9.9, "9"), (0.2, 0.8, "0.2 to 0.8"), (0, 2, "0 to 2")],
)
def test_a_bin_with_one_whole_number_is_called_so(tmp_path, low, high, name):
    def one_bin(data):
        data.pop("pixel")
        for row in data["label"]["histogram"].values():
            row["train"] = [[low, high, 5]]

    assert read_nvflare_statistics(changed(tmp_path, STATISTICS, one_bin)).labels == (name,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.clear(), "is not a file of NVFlare's federated statistics"),
        (lambda d: d.update(label=3), "is not a file of NVFlare's federated statistics"),
        (lambda d: d.update(age=d.pop("label")), "has the features pixel, age"),
        (lambda d: d["label"].pop("histogram"), "has no histogram of label in train"),
        (
            lambda d: d["label"]["histogram"]["hill"].update(train=[[0, 1, 5]]),
            "the histogram of hill in .* has other bins than the others",
        ),
        (
            lambda d: d["label"]["histogram"]["hill"]["train"][0].__setitem__(2, -4),
            "a count of hill in .* is -4; it must be a number of samples",
        ),
        (
            lambda d: d["label"]["histogram"]["hill"].update(train=[5, 6]),
            r"the histogram of hill in .* is not a list of \[low, high, count\]",
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        read_nvflare_statistics(changed(tmp_path, STATISTICS, change))


def test_commands_take_statistics_as_label_histograms(tmp_path):
    """A plan of the JSON file is that of the same counts in a CSV file."""
    found = Histograms.load(STATISTICS)
    table = tmp_path / "histograms.csv"
    heads = ",".join(("agent", *found.labels))
    rows = [
        ",".join([agent, *(f"{n:g}" for n in counts)])
        for agent, counts in zip(found.agents, found.counts, strict=True)
    ]
    table.write_text("\n".join([heads, *rows]) + "\n")
    plans = [
        json.loads(run("plan", str(path), "--need", "200", "--json").stdout)
        for path in (STATISTICS, table)
    ]
    assert plans[0]["contributions"] == plans[1]["contributions"]
    assert sum(plans[0]["contributions"]) > 0


# Cross-site evaluations.


def test_each_model_of_a_site_is_a_pilot_of_that_site_alone():
    found = read_nvflare_pilots(CROSS, {"city": 300, "hill": 200, "mill": 150})
    said = json.loads(CROSS.read_text())
    assert found.agents == SITES
    for pilot, owner in enumerate([*SITES, "FL_global_model.pt"]):
        wanted = [said[site][owner]["accuracy"] for site in SITES]
        assert_allclose(found.accuracies[pilot], wanted)
        gives = [owner in (site, "FL_global_model.pt") for site in SITES]
        assert_array_equal(found.contributions[pilot], np.where(gives, [300, 200, 150], 0))
    assert found.limits.tolist() == [300, 200, 150]
    assert np.isnan(found.validation).all()
    assert len(found.notes) == 2 and all("assumes that" in note for note in found.notes)


def test_numbers_of_samples_can_come_from_statistics(tmp_path):
    found = read_nvflare_pilots(CROSS, STATISTICS)
    assert found.contributions[-1].tolist() == [300, 200, 150]
    assert found.validation.tolist() == [100, 100, 100]
    found.save(tmp_path / "pilots.csv")
    again = PilotTable.load(tmp_path / "pilots.csv")
    assert_allclose(again.accuracies, found.accuracies)


def test_a_second_model_of_the_server_is_no_pilot_of_its_own(tmp_path):
    def add_best(data):
        for row in data.values():
            row["best_FL_global_model.pt"] = row["FL_global_model.pt"]

    found = read_nvflare_pilots(changed(tmp_path, CROSS, add_best), STATISTICS)
    assert len(found) == 4
    assert "best_FL_global_model.pt comes from the same training" in found.notes[-1]


def test_a_site_that_did_not_measure_a_model_has_no_accuracy(tmp_path):
    path = changed(tmp_path, CROSS, lambda data: data["mill"].pop("hill"))
    found = read_nvflare_pilots(path, STATISTICS)
    assert np.isnan(found.accuracies).sum() == 1


def test_a_bare_number_is_an_accuracy(tmp_path):
    def bare(data):
        for row in data.values():
            row.update({owner: metrics["accuracy"] for owner, metrics in row.items()})

    found = read_nvflare_pilots(changed(tmp_path, CROSS, bare), STATISTICS)
    assert_allclose(found.accuracies, read_nvflare_pilots(CROSS, STATISTICS).accuracies)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda d: d.clear(), {}, "is not a cross-site evaluation of NVFlare"),
        (lambda d: d.update(hill=[]), {}, "is not a cross-site evaluation of NVFlare"),
        (lambda d: None, {"metric": "auc"}, "has no metric 'auc'; it has accuracy, loss"),
        (lambda d: None, {"metric": "loss"}, "must lie between 0 and 1|did you mean"),
        (
            lambda d: None,
            {"samples": {"city": 3, "hill": 4}},
            "no number of samples is given for mill",
        ),
        (
            lambda d: d["hill"]["city"].update(accuracy="high"),
            {},
            "the accuracy of the model of city at hill in .* is 'high'",
        ),
        (
            lambda d: [row.pop(name) for row in d.values() for name in SITES],
            {},
            "has no model of a site",
        ),
    ],
)
def test_a_wrong_evaluation_is_refused_with_a_sentence(tmp_path, change, options, words):
    with pytest.raises(InputError, match=words):
        read_nvflare_pilots(changed(tmp_path, CROSS, change), **{"samples": STATISTICS, **options})


# The command.


def test_the_command_writes_pilots_that_plan_takes(tmp_path):
    path = tmp_path / "pilots.csv"
    done = run("pilots", STATISTICS, "--nvflare", CROSS, "--save", path)
    assert done.code == 0
    assert "has 4 pilots of 3 agents" in done.stdout
    assert done.stderr.count("assumes that") == 2
    made, wanted = PilotTable.load(path), read_nvflare_pilots(CROSS, STATISTICS)
    assert_array_equal(made.contributions, wanted.contributions)
    assert_allclose(made.accuracies, wanted.accuracies)
    assert_array_equal(made.validation, wanted.validation)
    printed = run("pilots", "city=300,hill=200,mill=150", "--nvflare", CROSS).stdout
    assert printed.startswith("pilot,agent,contribution,accuracy,limit\n0,city,300")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pilots", "city=3,hill=4", "--nvflare", CROSS), "is given for mill"),
        (("pilots", STATISTICS, "--nvflare", STATISTICS), "is not a cross-site evaluation"),
        (("pilots", STATISTICS, "--nvflare", CROSS, "--json"), "--json is for pilots to run"),
        (("pilots", STATISTICS, "--nvflare", CROSS, "--budget", 4), "--budget is for pilots"),
        (("plan", CROSS), "a cross-site evaluation of NVFlare"),
        (("plan", "pilots.csv", "--histograms", CROSS, "--goal", 0.8), "makes pilots of it"),
    ],
)
def test_the_commands_refuse_the_wrong_file_with_a_sentence(
    tmp_path, monkeypatch, arguments, words
):
    monkeypatch.chdir(tmp_path)
    read_nvflare_pilots(CROSS, STATISTICS).save("pilots.csv")
    done = run(*arguments)
    assert done.code == 2
    assert re.search(words, done.stderr), done.stderr
