"""What runs are known by, and the file that keeps them: runs made before must be found again."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from golden.pinning import RECORDED, TRAINED, pinned, run

from fedaccord.federation import (
    Client,
    Config,
    Dealer,
    Federation,
    Scores,
    SiteDealer,
    load_data,
    loss_scores,
    model_factory,
    pretrain,
    search_hyperparameters,
    trial_scores,
)

AUDITS = ("digits.toml", "sites.toml")
COLUMNS = "key, source, algorithm, contributions, base_seed, trial, seed"


def _audited(results: Path) -> list[str]:
    """Audit two federations, and give what the commands say of runs."""
    said = []
    for config in AUDITS:
        done = run("audit", config, "--workers", 1, "--results", results, "--json")
        said.append(f"{config}: exit code {done.code}; {done.stderr}".replace(str(results), "FILE"))
    return said


def _rows(path: Path, columns: str) -> list[list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return [list(row) for row in connection.execute(f"SELECT {columns} FROM runs ORDER BY key")]


@pinned("runs/keys")
def keys(folder: Path) -> dict[str, Any]:
    """Give the key of every run of two audits, with what goes into it."""
    said = _audited(folder / "new.sqlite")
    return {"said": said, "runs": _rows(folder / "new.sqlite", COLUMNS)}


@pinned("runs/outcomes", rel=TRAINED)
def outcomes(folder: Path) -> list[Any]:
    """Give what came of every run of an audit, as the file has it."""
    assert run("audit", "sites.toml", "--workers", 1, "--results", "new.sqlite").code == 0
    texts = 'accuracies, satisfied, first_passage, samples, "unique"'
    found = _rows(folder / "new.sqlite", f"key, {texts}")
    return [[key, *map(json.loads, values)] for key, *values in found]


@pinned("runs/schema")
def schema(folder: Path) -> dict[str, Any]:
    """Give the tables of the files that keep runs, draws and trials, and their versions."""
    run("audit", "sites.toml", "--workers", 1, "--trials", 1, "--results", "runs.sqlite")
    run("search", "beforehand.toml", "--draws", 1, "--results", "draws.sqlite")
    found = {}
    for name in ("runs.sqlite", "draws.sqlite"):
        with closing(sqlite3.connect(folder / name)) as connection:
            ask = connection.execute
            found[name] = {
                "tables": [
                    " ".join(str(s).split()) for (s,) in ask("SELECT sql FROM sqlite_master")
                ],
                "user_version": ask("PRAGMA user_version").fetchone()[0],
                "application_id": ask("PRAGMA application_id").fetchone()[0],
            }
    return found


@pinned("runs/reused")
def reused(folder: Path) -> dict[str, Any]:
    """Audit with a file of runs that was made long ago: none of them is made again."""
    kept = RECORDED / "runs.sqlite"
    copy = folder / "runs.sqlite"
    shutil.copyfile(kept, copy)
    everything = "key, digest, history_digest, seconds, versions, finished"
    said = _audited(copy)
    return {
        "said": said,
        "runs": len(_rows(copy, "key")),
        "changed": [row for row in _rows(copy, everything) if row not in _rows(kept, everything)],
    }


def _points(shift: float) -> tuple[np.ndarray, np.ndarray]:
    inputs = np.arange(48, dtype=float).reshape(12, 4) / 10 + shift
    return inputs, np.arange(12) % 3


@pinned("runs/fingerprints")
def fingerprints(folder: Path) -> dict[str, Any]:
    """Give the digests of federations, dealers, data, scores and start weights."""
    digits = load_data("digits")
    table = load_data(
        str(folder / "patients.csv"), label="ill", site="hospital", categories=["kind"]
    )
    clients = [Client(name, _points(n), _points(n + 0.5), 0.7) for n, name in enumerate("ab")]
    models = {
        name: model_factory(name, (1, 28, 28), 10) for name in ("paper", "cnn", "mlp", "logistic")
    }
    plain = model_factory("logistic", (4,), 3)
    weights = {
        name: np.zeros(tuple(value.shape), dtype=np.float32)
        for name, value in plain().state_dict().items()
    }
    mlp = model_factory("mlp", digits.input_shape, 10)
    options: dict[str, Any] = {"model": mlp, "points": 40, "mixtures": (1.0, 0.5)}
    scores = Scores.load(folder / "scores.npz")
    found = {
        "data digits": digits.sha256,
        "data table": table.sha256,
        "data part": digits.split(100, seed=3)[0].sha256,
        "federation": Federation(clients, plain).fingerprint,
        "federation with weights": Federation(clients, plain, weights=weights).fingerprint,
        "dealer": Dealer(digits, range(500), range(500, 1000), **options).fingerprint,
        "dealer of sites": SiteDealer(
            table, model=model_factory("logistic", (5,), 2), requirement=0.6, seed=3
        ).fingerprint,
        "scores' pool": scores.pool,
        "scores' provenance": sorted(scores.provenance),
        "repr of models": {name: repr(make()) for name, make in models.items()},
    }
    for name in (*AUDITS, "four.toml"):
        config = Config.load(folder / name)
        found[f"source of {name}"] = config.build().fingerprint
        found[f"source of {name}, seed 5"] = config.build(seed=5).fingerprint
    return found


@pinned("runs/beforehand", rel=TRAINED)
def beforehand(folder: Path) -> dict[str, Any]:
    """Give scores and start weights made anew, and what a search is known by in its file."""
    digits = load_data("digits")
    pool, reference = digits.split(200, 150, seed=1, rest=False)
    mlp = model_factory("mlp", digits.input_shape, 10)
    by_loss = loss_scores(pool, mlp, reference=reference, batches=6, holdout=30, seed=2)
    by_trial = trial_scores(
        *(pool, mlp),
        holdout=reference,
        **{"trials": 3, "points": 50, "target": 0.2, "cap": 10, "look_every": 5, "seed": 2},
        path="t.sqlite",
    )
    pairs = [(np.asarray(d.inputs, dtype=np.float32), d.labels) for d in (pool, reference)]
    started = pretrain(mlp, *pairs[0], batches=6, seed=4, validation=pairs[1], look_every=3)
    search_hyperparameters(mlp, pairs[0], validation=pairs[1], draws=2, path="d.sqlite")
    found: dict[str, Any] = {
        "scores by loss": by_loss.values[:10].tolist(),
        "scores by trials": np.nan_to_num(by_trial.values[:30]).tolist(),
        "pool": [by_loss.pool, by_trial.pool],
        "start weights": {name: float(np.abs(started[name]).sum()) for name in started},
        "record": [list(row) for row in started.record],
    }
    for file in ("t.sqlite", "d.sqlite"):
        with closing(sqlite3.connect(file)) as connection:
            tables = [
                t
                for (t,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            found[file] = {t: _described(connection, t) for t in sorted(tables)}
    return found


def _described(connection: sqlite3.Connection, table: str) -> Any:
    """Give a table's columns and rows, but for numbers that were trained."""
    columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    return {"columns": columns, "rows": rows}
