"""GAME.json read, written and read again."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fedaccord._io import npz as _npz
from fedaccord._io.files import json_text, read_json
from fedaccord.errors import FedaccordError, InputError, UnreachableError
from fedaccord.games import files
from fedaccord.games.base import Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.files import game_from_dict, read_game, write_game
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import DiscoveryGame, LinearGame

LINEAR = {"model": "linear", "requirements": [1, 2], "benefits": [[1, 0.5], ["1/3", 1]]}


def round_trip(game: Game, folder: Path) -> Game:
    write_game(game, folder / "game.json")
    return read_game(folder / "game.json")


def test_numbers_may_be_written_as_fractions() -> None:
    game = game_from_dict({**LINEAR, "requirements": ["1/3", "0.25"], "costs": ["1e-2", 1]})
    assert game.requirements.tolist() == [1 / 3, 0.25]
    assert game.costs.tolist() == [0.01, 1]
    assert game.jacobian(np.zeros(2)).tolist() == [[1, 0.5], [1 / 3, 1]]


WORLDS = [
    {"prior": "1/2", "samples": [[["x", "+", 1]]]},
    {"prior": "1/2", "samples": [[["x", "-", 1]]]},
]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (LINEAR, "LinearGame"),
        ({"model": "discovery", "requirements": [0.1], "distributions": [[1]]}, "DiscoveryGame"),
        ({"model": "coverage", "requirements": [0.6], "distributions": [[1]]}, "CoverageGame"),
        (
            {
                "model": "coverage",
                "requirements": [0.6],
                "distributions": [["1/4", "1/4"]],
                "copies": [1, 3],
            },
            "CoverageGame",
        ),
        ({"model": "pac", "requirements": [0.6], "worlds": WORLDS}, "PacGame"),
        (
            {"model": "pac", "requirements": [0.6], "worlds": WORLDS, "classifier": "worst"},
            "PacGame",
        ),
        (
            {
                "model": "pac",
                "requirements": [0.6],
                "worlds": WORLDS,
                "draws": 50,
                "seed": 7,
                "confidence": 0.9,
            },
            "SampledPacGame",
        ),
    ],
)
def test_every_model_is_read_and_written(data: dict[str, Any], name: str, tmp_path: Path) -> None:
    game = game_from_dict(data)
    assert type(game).__name__ == name
    again = round_trip(game, tmp_path)
    assert again.to_dict() == game.to_dict()


def test_the_frame_survives_the_round_trip(tmp_path: Path) -> None:
    game = LinearGame(
        [[1, 0], [0, 1]],
        [1 / 3, 1e-9],
        agents=["Zürich", 'a "quoted"\n[bold]name'],
        strategies="integer",
        limits=[None, 7],
        minimums=[0, 1],
        costs=[0.1, 2.5],
    )
    again = round_trip(game, tmp_path)
    assert again.to_dict() == game.to_dict()
    assert again.limits.tolist() == [np.inf, 7]
    assert again.agents == game.agents


@given(st.lists(st.tuples(st.floats(1e-49, 1e49), st.floats(1e-49, 1e49)), min_size=1, max_size=4))
def test_numbers_survive_the_round_trip_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[float, float]]
) -> None:
    game = LinearGame(np.diag([w for w, _ in pairs]), [r for _, r in pairs])
    again = round_trip(game, tmp_path_factory.mktemp("game"))
    assert again.to_dict() == game.to_dict()


@pytest.mark.parametrize(("own", "wanted"), [(1e50, 1e-50), (1e-51, 1e51)])
def test_a_game_that_could_not_be_read_is_not_written(
    tmp_path: Path, own: float, wanted: float
) -> None:
    """Each number is in range, and 1e-50 / 1e50 rounds to less than the smallest need."""
    game = LinearGame([[own]], [wanted])
    with pytest.raises(InputError, match=r"agent 0 would need .* rescale its requirement"):
        write_game(game, tmp_path / "game.json")
    assert not list(tmp_path.iterdir())


def test_a_matrix_may_lie_beside_the_game(tmp_path: Path) -> None:
    matrix = sparse.csr_array([[0.5, 0.5, 0], [0, 0, 1]])
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        sparse.save_npz(tmp_path / "q.npz", matrix.asformat(kind))
        data = {"model": "discovery", "requirements": [1, 1], "distributions": "q.npz"}
        (tmp_path / "game.json").write_text(json.dumps(data))
        game = read_game(tmp_path / "game.json")
        assert isinstance(game, DiscoveryGame)
        assert (game.distributions != matrix).nnz == 0


def test_a_matrix_beside_the_game_is_held_once(tmp_path: Path) -> None:
    agents, each = 10_000, 100
    rng = np.random.default_rng(0)
    points = np.sort(rng.integers(0, 50, (agents, each)) + 50 * np.arange(each), axis=1)
    rows = np.arange(agents + 1) * each
    values = np.full(agents * each, 1 / each)
    sparse.save_npz(tmp_path / "q.npz", sparse.csr_array((values, points.ravel(), rows)))
    data = {"model": "discovery", "requirements": [1] * agents, "distributions": "q.npz"}
    tracemalloc.start()
    try:
        game_from_dict(data, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # An entry takes 16 bytes; names and checks take the rest. Two copies would be 32.
    assert peak < 28 * agents * each


def test_a_matrix_from_the_caller_is_copied() -> None:
    matrix = sparse.csr_array([[0.5, 0.5], [0.0, 1.0]])
    game = DiscoveryGame(matrix, [1, 1])
    matrix.data[:] = 7.0
    assert game.distributions.data.tolist() == [0.5, 0.5, 1.0]


def test_benefits_may_lie_beside_the_game(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "w.npz", sparse.eye_array(3, format="csr"))
    game = game_from_dict(
        {"model": "linear", "requirements": [1] * 3, "benefits": "w.npz"}, tmp_path
    )
    assert game.utilities(np.array([1.0, 2.0, 3.0])).tolist() == [1, 2, 3]


def test_without_a_folder_no_file_is_opened() -> None:
    with pytest.raises(InputError, match="folder"):
        game_from_dict({"model": "discovery", "requirements": [1], "distributions": "q.npz"})


def test_a_large_sparse_matrix_is_written_beside_the_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = sparse.csr_array([[0.25, 0.75, 0], [0, 0, 1]])
    game = DiscoveryGame(matrix, [0.1, 0.2], agents=["a", "b"])
    monkeypatch.setattr(files, "MOST_CELLS", 5)
    again = round_trip(game, tmp_path)
    assert json.loads((tmp_path / "game.json").read_text())["distributions"] == "game.npz"
    assert again.to_dict() == game.to_dict()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["game.json", "game.npz"]


def test_copies_of_points_go_along_with_a_matrix_beside_the_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_CELLS", 0)
    game = CoverageGame([[0.25, 0.25]], [0.6], copies=[1, 3])
    assert round_trip(game, tmp_path).to_dict() == game.to_dict()


def test_a_game_made_of_a_function_cannot_be_written(tmp_path: Path) -> None:
    game = FunctionGame(lambda theta: theta, [1.0])
    with pytest.raises(FedaccordError, match="function"):
        write_game(game, tmp_path / "game.json")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = game_from_dict(LINEAR)
    write_game(game, tmp_path / "game.json")
    before = (tmp_path / "game.json").read_text()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"game\.json: No space"):
        write_game(game.replace(requirements=[5, 5]), tmp_path / "game.json")
    assert (tmp_path / "game.json").read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["game.json"]


def test_a_failed_write_of_a_matrix_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_npz.sparse, "save_npz", full)
    monkeypatch.setattr(files, "MOST_CELLS", 0)
    with pytest.raises(InputError, match="No space"):
        write_game(DiscoveryGame(sparse.csr_array([[1.0]]), [1]), tmp_path / "game.json")
    assert list(tmp_path.iterdir()) == []


def test_a_game_cannot_be_written_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write_game(game_from_dict(LINEAR), tmp_path / "none" / "game.json")


def test_the_kind_of_error_survives_the_file_name(tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text(json.dumps({**LINEAR, "benefits": [[1, 0], [0, 0]]}))
    with pytest.raises(UnreachableError, match=r"game\.json: agent 1"):
        read_game(path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text(json.dumps(LINEAR), encoding="utf-8-sig")
    assert read_game(path).size == 2


def test_a_pipe_is_as_good_as_a_file(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as end:
        json.dump(LINEAR, end)
    try:
        assert read_game(f"/dev/fd/{read}").size == 2
    finally:
        os.close(read)


def test_a_list_is_no_game() -> None:
    with pytest.raises(InputError, match="list"):
        game_from_dict([1, 2])  # type: ignore[arg-type]


# JSON itself.


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_what_is_written_is_json_that_reads_back_equal(value: Any) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    again = json.loads(json_text({"value": value}), parse_constant=refuse)
    plain = json.loads(json.dumps({"value": value}), parse_constant=lambda _: None)
    assert again == plain


def test_what_is_not_finite_is_written_as_null() -> None:
    data = {"a": float("nan"), "b": [float("inf"), 1.0], "c": [[float("-inf")]], "d": {}}
    expected = {"a": None, "b": [None, 1.0], "c": [[None]], "d": {}}
    assert json.loads(json_text(data)) == expected


def test_a_key_that_comes_twice_is_named_at_any_depth(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"worlds": [{"prior": 1, "prior": 2}]}')
    with pytest.raises(InputError, match='the key "prior" appears twice'):
        read_json(path)
