"""What a run under NVFlare leaves in the server's folder, and how to read it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._checks import frozen
from fedaccord._io.files import json_text, read_json, replace_file, replacing
from fedaccord._io.npz import list_npz, read_npz
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.history import History
from fedaccord.federation.remote.replies import Arrays, Remark
from fedaccord.federation.remote.rounds import Rounds

RUN, ROWS, MODEL, KEPT = "run.json", "history.csv", "model.npz", "kept-{}.npz"


@dataclass(frozen=True)
class RunResult:
    """What happened in a run.

    history: round by round and site by site, with the model.
    remarks: which replies were dropped, and why.
    stopped: why training ended before its last round; None if it did not.
    """

    history: History
    remarks: tuple[Remark, ...]
    stopped: str | None


def prepare_folder(folder: Path) -> Path:
    """Make the folder of a run, and return the file in it that is rewritten after each round."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / ROWS


def save_run(folder: Path, run: Rounds[Any], fault: str | None) -> None:
    """Write what happened in a run, as far as it came."""
    about: dict[str, Any] = {
        "fault": fault,
        "stopped": run.stopped,
        "remarks": [dataclasses.asdict(remark) for remark in run.remarks],
        "history": None,
        "kept": list(run.checkpoints),
    }
    if run.ledger is not None and run.ledger.rounds:
        history = run.history
        about["history"] = history.to_dict()
        _save_arrays(folder / MODEL, history.weights)
        for place, arrays in enumerate(run.checkpoints.values()):
            _save_arrays(folder / KEPT.format(place), arrays)
    # The last, so that who finds it finds the others.
    replace_file(folder / RUN, json_text(about) + "\n")


def _save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    with replacing(path) as file:
        np.savez(file, **arrays)


def load_run(folder: str | Path) -> RunResult:
    """Read what happened in a run.

    folder: that of the controller, or one above it with a single run in it, such as what
        `execute(...).get_result()` returns, or a job that was downloaded.
    """
    root = _find_run(Path(folder))
    about = read_json(root / RUN)
    if about.get("fault") is not None:
        raise FedaccordError(f"the run failed: {about['fault']}")
    if about.get("history") is None:
        raise InputError(f"{root} has no round of training; see the server's log")
    kept = {
        name: _load_arrays(root / KEPT.format(place)) for place, name in enumerate(about["kept"])
    }
    history = _read_history(about["history"], _load_arrays(root / MODEL), kept)
    remarks = tuple(Remark(**remark) for remark in about["remarks"])
    return RunResult(history, remarks, about["stopped"])


def _find_run(folder: Path) -> Path:
    found = [folder] if (folder / RUN).is_file() else sorted(p.parent for p in folder.rglob(RUN))
    if not found:
        raise InputError(f"{folder} has no run of fedaccord's: no {RUN} is in it or below it")
    if len(found) > 1:
        names = ", ".join(str(one.relative_to(folder)) for one in found)
        raise InputError(f"{folder} has {len(found)} runs: name one of {names}")
    return found[0]


def _load_arrays(path: Path) -> Arrays:
    return read_npz(path, list_npz(path))


def _read_history(said: dict[str, Any], weights: Arrays, kept: dict[str, Arrays]) -> History:
    def numbers(name: str) -> Any:
        # What is not known is null in JSON.
        return frozen(np.array(said[name], dtype=float))

    return History(
        clients=tuple(said["clients"]),
        requirements=numbers("requirements"),
        contributions=frozen(np.array(said["contributions"], dtype=np.int64)),
        algorithm=said["algorithm"],
        seed=said["seed"],
        samples=frozen(np.array(said["samples"], dtype=np.int64)),
        unique=frozen(np.array(said["unique"], dtype=np.int64)),
        loss=numbers("loss"),
        accuracy=numbers("accuracy"),
        diverged=said["diverged"],
        seconds=said["seconds"],
        weights=weights,
        checkpoints=kept,
    )
