"""GAME.json: games read from and written to files."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._checks import (
    LARGEST,
    SMALLEST,
    Matrix,
    Vector,
    as_numbers,
    check_known,
    clean_name,
    is_real,
    is_whole,
)
from fedaccord._io.files import json_text, kind, read_json, replace_file
from fedaccord._io.npz import read_sparse, write_sparse
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import is_sparse

FRAME = ("agents", "strategies", "limits", "minimums", "costs")
# What each model is made of, besides the frame: the keys it must have, then those it may have.
MODELS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "linear": (("benefits",), ()),
    "discovery": (("distributions",), ()),
    "coverage": (("distributions",), ("copies",)),
    "pac": (("worlds",), ("classifier", "draws", "seed", "confidence")),
    "measured": (("benefits", "curves"), ("margins", "chances")),
    "goals": (("goals",), ()),
    "signed": (("benefits",), ()),
}
# What agents want: in samples or shares, or, in a measured game, accuracies.
WANTED = dict.fromkeys(MODELS, "requirements") | {"measured": "goals", "goals": "goals"}
# What a goal of a game with several goals per agent may say.
GOAL = ("agent", "name", "measure", "requirement", "at_least", "at_most", "curve", "benefits")
# Keys that hold the heart of a model: of these a game has exactly one.
HEARTS = {"benefits": "linear", "distributions": "discovery", "worlds": "pac"}

# A sparse matrix with more cells than this is written as an .npz beside GAME.json.
MOST_CELLS = 1_000_000


def read_game(path: str | Path) -> Game:
    """Read GAME.json.

        {"model": "linear" | "signed" | "discovery" | "coverage" | "pac" | "measured" | "goals",
         "requirements": [...], or of a measured game "goals": [...],
         "benefits" | "distributions": [[...]] or "file.npz" | "worlds": [...],
         "agents": [...], "strategies": "real" | "integer",
         "limits": [...], "minimums": [...], "costs": [...],
         "copies": [...],                                            of a coverage game
         "curves": [{"floor": e, "height": b, "head": s, "pace": a}, ...], "margins": [...],
         "chances": {...}                                            of a measured game
         "goals": [{"agent": name, "name": text, "benefits": [...], "requirement": m}, ...]
                                                                     of a game of goals
         "classifier": "bayes" | "worst", "draws": n, "seed": n, "confidence": p}    of a PAC game

    All but the model, the requirements, the matrix or worlds and the curves may be left out; a
    limit may be null. A PAC game with draws is estimated from that many; one without is exact. A
    number may be written as a string, "1/3".

    A matrix may be the name of an .npz file that scipy.sparse.save_npz wrote. It must lie in the
    same folder as GAME.json, so that a game from elsewhere cannot make this machine open other
    files; one with pickled objects is refused, and so is one that unpacks to more than it could
    sensibly hold.

    path: where GAME.json is; any fault in it is an InputError of one sentence.
    """
    return game_of_file(path, read_json(path))


def game_of_file(path: str | Path, data: Mapping[str, Any]) -> Game:
    """Make the game of a file whose object was read already, because it may be a pipe.

    path: where the file is, for messages and for matrices named by file.
    data: the object.
    """
    try:
        return game_from_dict(data, Path(path).parent)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from None


def game_from_dict(data: Mapping[str, Any], folder: str | Path | None = None) -> Game:
    """Make the game that the object in GAME.json describes.

    data: the object.
    folder: where matrices named by file are; without it there can be none.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"a game must be a JSON object, {{...}}; got {kind(data)}")
    model = _read_model(data)
    _check_keys(data, model)
    if model == "goals":
        return _make_goals(data)
    frame = _read_frame(data, WANTED[model])
    size = len(frame[WANTED[model]])
    names = frame["agents"] or [f"agent {i}" for i in range(size)]
    if model == "pac":
        return _make_pac(data, frame)
    key = MODELS[model][0][0]
    matrix = _read_matrix(data[key], key, names, folder)
    if model == "signed" and is_sparse(matrix):
        matrix = _fill_out(matrix)
    if model == "measured":
        frame |= _read_curves(data, names)
        frame["chances"] = _read_chances(data, frame["goals"])
    if "copies" in data:
        copies = _read_list(data["copies"], "copies")
        frame["copies"] = _read_numbers(
            copies, lambda place: f'the number of point {place} in "copies"'
        )
    game = _import_class(model)(matrix, **frame)
    _check_scale(game)
    return game


def _fill_out(matrix: Any) -> Matrix:
    """Return a sparse matrix with all its zeros, for a game that works with them."""
    if math.prod(matrix.shape) > MOST_CELLS:
        raise InputError(
            f"a signed game has up to {math.isqrt(MOST_CELLS):,} agents, and this one has "
            f"{matrix.shape[0]:,}: join agents that are alike"
        )
    return np.asarray(matrix.toarray())


def write_game(game: Game, path: str | Path) -> None:
    """Write GAME.json, replacing the file in one step.

    A large sparse matrix goes into an .npz of the same name next to it. A game that read_game would
    refuse is not written.

    game: what to write.
    path: where to.
    """
    _check_scale(game)
    target = Path(path)
    try:
        replace_file(target, json_text(_write_beside(game, target)) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def fits_in_text(game: Game) -> bool:
    """Return whether GAME.json can hold all of a game, without an .npz next to it."""
    _, matrix = _find_matrix(game)
    return not is_sparse(matrix) or math.prod(matrix.shape) <= MOST_CELLS


def _find_matrix(game: Game) -> tuple[str, Any]:
    key = MODELS[game.model][0][0] if game.model in MODELS else ""
    return key, getattr(game, key, None)


def _write_beside(game: Game, target: Path) -> dict[str, Any]:
    if fits_in_text(game):
        return game.to_dict()
    key, matrix = _find_matrix(game)
    beside = target.with_suffix(".npz")
    write_sparse(matrix, beside)
    copies = getattr(game, "copies", None)
    rest = {} if copies is None or (copies == 1).all() else {"copies": copies.tolist()}
    return {"model": game.model, **game._frame_dict(), **rest, key: beside.name}


# Keys.


def _read_model(data: Mapping[str, Any]) -> str:
    models = ", ".join(f'"{name}"' for name in MODELS)
    if "model" not in data and "contributions" in data:
        raise InputError(
            "this file has contributions, but a game is needed: to check contributions, run "
            "'fedaccord check GAME.json FILE'"
        )
    if "model" not in data:
        raise InputError(f'the key "model" is missing; add it with one of {models}')
    model = data["model"]
    if not isinstance(model, str) or model not in MODELS:
        got = f'"{model}"' if isinstance(model, str) else kind(model)
        raise InputError(f'the "model" {got} is not known; give one of {models}')
    return model


def _check_keys(data: Mapping[str, Any], model: str) -> None:
    needed, optional = MODELS[model]
    if len(hearts := [f'"{key}"' for key in HEARTS if key in data]) > 1:
        raise InputError(
            f'there are both {" and ".join(hearts)}; model "{model}" takes "{needed[0]}" only'
        )
    known = tuple(dict.fromkeys(("model", WANTED[model], *FRAME, *needed, *optional)))
    for key in data:
        if key in HEARTS and key not in known:
            raise InputError(
                f'model "{model}" takes "{needed[0]}", not "{key}"; give that, or model '
                f'"{HEARTS[key]}"'
            )
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            guess = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(known)}"
            raise InputError(f'the key "{key}" is not known; {guess}')
    for key in (WANTED[model], *needed):
        if key not in data:
            raise InputError(f'the key "{key}" is missing, and model "{model}" needs it; add it')


def _import_class(model: str) -> Callable[..., Game]:
    # Each model is imported when a game needs it: some bring much along.
    if model == "coverage":
        from fedaccord.games.coverage import CoverageGame

        return CoverageGame
    if model == "measured":
        from fedaccord.games.measured import MeasuredGame

        return MeasuredGame
    if model == "signed":
        from fedaccord.games.signed import SignedGame

        return SignedGame
    from fedaccord.games.linear import DiscoveryGame, LinearGame

    return LinearGame if model == "linear" else DiscoveryGame


def _make_pac(data: Mapping[str, Any], frame: dict[str, Any]) -> Game:
    classifier = data.get("classifier", "bayes")
    if "draws" not in data:
        if stray := next((key for key in ("seed", "confidence") if key in data), None):
            raise InputError(f'"{stray}" is for games estimated from draws; add "draws"')
        from fedaccord.games.pac.exact import PacGame

        return PacGame(data["worlds"], **frame, classifier=classifier)
    if classifier != "bayes":
        raise InputError('"draws" need the classifier "bayes"; leave out "draws" or "classifier"')
    from fedaccord.games.pac.sampled import SampledPacGame

    options: dict[str, Any] = {}
    for key in ("draws", "seed"):
        if key in data:
            if not is_whole(data[key]) or not 0 <= data[key] < 2**63:
                raise InputError(f'"{key}" must be a whole number that is zero or more')
            options[key] = data[key]
    if "confidence" in data:
        options["confidence"] = _read_number(data["confidence"], lambda _: '"confidence"', 0)
    return SampledPacGame(data["worlds"], **frame, **options)


def _make_goals(data: Mapping[str, Any]) -> Game:
    """Make a game whose agents have several goals each."""
    from fedaccord.games.goals import GoalsGame

    items = _read_list(data["goals"], "goals")
    if not items:
        raise InputError('"goals" is empty; give every agent a goal')
    goals = [_read_goal(item, place) for place, item in enumerate(items)]
    size = len(goals[0].benefits)
    if data.get("agents") is not None:
        size = len(_read_list(data["agents"], "agents"))
    frame = _read_frame({**data, "requirements": [0] * size}, "requirements")
    del frame["requirements"]
    game = GoalsGame(goals, **frame)
    _check_scale(game)
    return game


def _read_goal(item: Any, place: int) -> Any:
    from fedaccord.games.goals import MEASURES, Goal, LossCurve, read_measure
    from fedaccord.games.measured import LearningCurve

    where = f'goal {place} in "goals"'
    if not isinstance(item, Mapping):
        raise InputError(f"{where} must be an object; got {kind(item)}")
    check_known(map(str, item), GOAL, f"{where} has the unknown key")
    if missing := next((key for key in ("agent", "name", "benefits") if key not in item), None):
        raise InputError(f'{where} has no "{missing}"; add it')
    if not isinstance(item["name"], str):
        raise InputError(f'the "name" of {where} is {kind(item["name"])}; give it a name')
    parts = {**item, "name": clean_name(item["name"])}
    if isinstance(item["agent"], str):
        parts["agent"] = clean_name(item["agent"])
    row = _read_list(item["benefits"], "benefits")
    parts["benefits"] = _read_numbers(row, lambda n: f"column {n} of {where}")
    for key in ("requirement", "at_least", "at_most"):
        if item.get(key) is not None:
            parts[key] = _read_number(item[key], partial(_say_key, key, where), 0)
    if item.get("curve") is not None:
        rises = "measure" not in item or MEASURES[read_measure(item["measure"], where)].rises
        make = LearningCurve if rises else LossCurve
        parts["curve"] = _read_curve(item["curve"], where, make)
    return Goal(**parts)


def _say_key(key: str, where: str, place: int) -> str:
    return f'"{key}" of {where}'


def _check_scale(game: Game) -> None:
    """Refuse units so far apart that needs and benefits leave the range that squares may have."""
    own = getattr(game, "own_benefits", None)
    if own is None:
        return
    with np.errstate(over="ignore", under="ignore"):
        needs = game.requirements / own
    if (wrong := (needs > LARGEST) | ((game.requirements > 0) & (needs < SMALLEST))).any():
        agent = int(np.argmax(wrong))
        raise InputError(
            f"{game.name(agent)} would need {needs[agent]:.3g} samples alone: rescale its "
            "requirement or its own benefit"
        )


# Values.


def _read_frame(data: Mapping[str, Any], wanted: str) -> dict[str, Any]:
    size = len(_read_list(data[wanted], wanted))
    if size == 0:
        raise InputError(f'"{wanted}" is empty; a game needs at least one agent')
    agents = _read_agents(data.get("agents"), size, wanted)
    names = agents or [f"agent {i}" for i in range(size)]
    frame: dict[str, Any] = {"agents": agents, "strategies": data.get("strategies", "real")}
    if not isinstance(frame["strategies"], str):
        raise InputError('"strategies" must be "real" or "integer"')
    frame[wanted] = _read_per_agent(data[wanted], wanted, names)
    for key in ("minimums", "costs"):
        if key in data:
            frame[key] = _read_per_agent(data[key], key, names)
    if "limits" in data:
        frame["limits"] = _read_limits(data["limits"], names)
    return frame


def _read_list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f'"{key}" must be a list; got {kind(value)}')
    return value


def _read_curves(data: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Read the learning curves of a measured game, and its margins."""
    from fedaccord.games.measured import LearningCurve

    items = _read_list(data["curves"], "curves")
    if len(items) != len(names):
        raise InputError(
            f'"curves" must have {len(names)} curves, one per agent; it has {len(items)}'
        )
    curves = [
        _read_curve(item, name, LearningCurve, ' in "curves"')
        for name, item in zip(names, items, strict=True)
    ]
    margins = (
        {"margins": _read_per_agent(data["margins"], "margins", names)} if "margins" in data else {}
    )
    return {"curves": curves, **margins}


def _read_curve(item: Any, whose: str, make: Callable[..., Any], where: str = "") -> Any:
    """Read the four numbers of a curve."""
    from fedaccord.games.measured import PARTS

    if not isinstance(item, Mapping) or set(item) != set(PARTS):
        raise InputError(
            f"the curve of {whose}{where} must be an object with {', '.join(PARTS)} and nothing "
            "else"
        )
    row = [item[part] for part in PARTS]
    parts = _read_numbers(row, lambda n: f"the {PARTS[n]} of {whose}{where}")
    try:
        return make(*parts.tolist())
    except InputError as error:
        raise InputError(f"{whose}: {error}") from None


def _read_chances(data: Mapping[str, Any], goals: Vector) -> Any:
    """Read what else the curves of a measured game may be; None where the file does not say."""
    if "chances" not in data:
        return None
    from fedaccord.games.chances import Chances

    if not isinstance(data["chances"], Mapping):
        raise InputError(f'"chances" must be an object; got {kind(data["chances"])}')
    return Chances.from_dict(data["chances"], goals)


def _read_agents(value: Any, size: int, wanted: str) -> list[str] | None:
    if value is None:
        return None
    names = _read_list(value, "agents")
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            got = kind(name) if not isinstance(name, str) else "blank"
            raise InputError(f'the name of agent {place} in "agents" is {got}; give it a name')
    if len(names) != size:
        raise InputError(
            f'"agents" has {len(names)} names and "{wanted}" {size} numbers; give one each'
        )
    return list(map(clean_name, names))


def _read_per_agent(value: Any, key: str, names: list[str]) -> Vector:
    row = _read_list(value, key)
    if len(row) != len(names):
        raise InputError(
            f'"{key}" must have {len(names)} numbers, one per agent; it has {len(row)}'
        )
    return _read_numbers(row, lambda place: f'the number of {names[place]} in "{key}"')


def _read_limits(value: Any, names: list[str]) -> Vector:
    row = _read_list(value, "limits")
    if math.inf in row:
        agent = names[min(row.index(math.inf), len(names) - 1)]
        raise InputError(f'the number of {agent} in "limits" is infinite; write null for no limit')
    given = _read_per_agent([0 if limit is None else limit for limit in row], "limits", names)
    given[[limit is None for limit in row]] = np.inf
    return given


def _read_numbers(row: list[Any], where: Callable[[int], str]) -> Vector:
    """Turn a flat list of JSON numbers and strings such as "1/3" into floats."""
    if set(map(type, row)) <= {int, float}:
        try:
            return np.array(row, dtype=np.float64)
        except OverflowError:
            pass
    return np.array(
        [_read_number(item, where, place) for place, item in enumerate(row)], dtype=float
    )


def _read_number(item: Any, where: Callable[[int], str], place: int) -> float:
    if not is_real(item) and not isinstance(item, str):
        raise InputError(f"{where(place)} is {kind(item)}; give a number")
    try:
        return float(as_numbers([item], "numbers")[0])
    except InputError:
        pass
    if isinstance(item, str):
        shown = item if len(item) <= 30 else item[:27] + "..."
        raise InputError(f'{where(place)} is "{shown}"; give a number, or a fraction as in "1/3"')
    raise InputError(f"{where(place)} is too large; rescale the units")


def _read_matrix(value: Any, key: str, names: list[str], folder: str | Path | None) -> Any:
    if isinstance(value, str):
        if folder is None:
            raise InputError(f'"{key}" names the file {value}, and there is no folder to look in')
        return read_sparse(value, key, folder)
    if not isinstance(value, list):
        raise InputError(
            f'"{key}" must be a list with one row per agent, or the name of an .npz file; got '
            f"{kind(value)}"
        )
    if len(value) != len(names):
        raise InputError(f'"{key}" must have {len(names)} rows, one per agent; it has {len(value)}')
    return np.array(list(_read_matrix_rows(value, key, names)))


def _cell(key: str, name: str, place: int) -> str:
    return f'column {place} of {name} in "{key}"'


def _read_matrix_rows(value: list[Any], key: str, names: list[str]) -> Iterable[Vector]:
    width = len(names) if key == "benefits" else None
    for name, row in zip(names, value, strict=True):
        if not isinstance(row, list):
            raise InputError(f'the row of {name} in "{key}" must be a list; got {kind(row)}')
        if width is None:
            width = len(row)
        if len(row) != width:
            why = "one per agent" if key == "benefits" else "as the first row has"
            has = f"{len(row)} number{'s' * (len(row) != 1)}"
            raise InputError(f'the row of {name} in "{key}" has {has}, and needs {width}, {why}')
        yield _read_numbers(row, partial(_cell, key, name))
    if width == 0:
        raise InputError(f'the rows of "{key}" are empty; give each point its probability')
