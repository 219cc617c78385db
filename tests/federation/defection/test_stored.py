"""Audits read from a file of runs alone agree with the audits that made the runs."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
import torch

from fedaccord.errors import InputError
from fedaccord.federation import Client, FedAvg, Federation, MwFed, defection_curves
from fedaccord.federation.defection.stored import read_audits
from fedaccord.federation.runs.store import RunStore


@pytest.fixture(scope="module")
def federation():
    torch.manual_seed(0)

    def patients(count):
        features = torch.randn(count, 2)
        return features, (features.sum(dim=1) > 0).long()

    clients = [
        Client(n, patients(k), patients(60), requirement=0.9)
        for n, k in zip("ABC", (40, 31, 26), strict=True)
    ]
    return Federation(clients, model=lambda: torch.nn.Linear(2, 2))


def run(federation, path, **options):
    algorithms = [FedAvg(rounds=4, batch_size=8, learning_rate=0.1)]
    algorithms.append(MwFed(rounds=4, batch_size=8, learning_rate=0.1))
    return defection_curves(federation, algorithms, store=path, **options)


@pytest.mark.parametrize("options", [{}, {"defectors": "random"}, {"group": 2}])
def test_agrees_with_the_audit(federation, tmp_path, options):
    path = tmp_path / "runs.sqlite"
    audit = run(federation, path, levels=(1, 0.75, 0.25, 0.05), trials=3, **options)
    (found,) = read_audits(path)
    assert {curve.algorithm for curve in found.audit.curves} == {"FedAvg", "MW-FED"}
    for curve in audit.curves:
        known = found.audit.curve(curve.algorithm)
        assert known.all_satisfied == curve.all_satisfied
        for point in curve.levels:
            read = known.at(point.level)
            assert read.judged.random == point.judged.random
            assert read.judged.others == point.judged.others
            ours = list(read.judged.clients.values())
            assert ours == list(point.judged.clients.values())


def test_an_unfinished_audit_shows_what_is_there(federation, tmp_path):
    path = tmp_path / "runs.sqlite"
    run(federation, path, levels=(1, 0.5), trials=1)
    (first,) = read_audits(path)
    run(federation, path, levels=(1, 0.5), trials=4)
    (second,) = read_audits(path)
    assert first.runs < second.runs
    trials = [found.audit.curve("FedAvg").at(0.5).judged.random.trials for found in (first, second)]
    assert trials[0] < trials[1]


@pytest.mark.parametrize("options", [{}, {"defectors": "random"}, {"group": 2}])
def test_an_audit_is_read_whichever_runs_are_finished(federation, tmp_path, options):
    path, left = tmp_path / "runs.sqlite", tmp_path / "left.sqlite"
    run(federation, path, levels=(1, 0.5), trials=3, **options)
    for seed in range(8):
        with RunStore(path) as store:
            keys = [row["key"] for row in store.counted(range(9))]
        shutil.copy(path, left)
        lost = random.Random(seed).sample(keys, len(keys) // 2)
        with closing(sqlite3.connect(left)) as store, store:
            store.executemany("DELETE FROM runs WHERE key = ?", [(key,) for key in lost])
        assert all(found.runs == len(keys) - len(lost) for found in read_audits(left))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_audits(tmp_path / "none.sqlite")
