"""Whatever comes in, the answer to a fault is one sentence and exit code 2, never a traceback."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import TWO_HOSPITALS, Run, assert_refused, run, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

INF = float("inf")
NAN = float("nan")
DISCOVERY = {
    "model": "discovery",
    "requirements": [0.2, 0.2],
    "distributions": [[0.5, 0.5], [1, 0]],
    "agents": ["site A", "site B"],
}
COVERAGE = {**DISCOVERY, "model": "coverage", "requirements": [0.7, 0.7]}
PAC = {
    "model": "pac",
    "requirements": [0.5, 0.5],
    "agents": ["site A", "site B"],
    "worlds": [
        {"prior": "1/2", "samples": [[[0, 0, 1]], [[1, 0, 1]]]},
        {"prior": "1/2", "samples": [[[0, 1, 1]], [[1, 1, 1]]]},
    ],
}


def with_(game: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Give the game with other entries; an entry that is `...` is left out."""
    return {k: v for k, v in {**game, **changes}.items() if v is not ...}


def check(tmp_path: Path, game: Any, allocation: Any = None) -> Run:
    """Check an allocation of a game that is at fault."""
    path = write(tmp_path / "game.json", game)
    given = {"contributions": [1, 1]} if allocation is None else allocation
    return run("check", path, write(tmp_path / "allocation.json", given))


FAULTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    # Numbers that are none.
    "a requirement is NaN": (with_(TWO_HOSPITALS, requirements=[1, NAN]), ("site B", "not a num")),
    "a requirement is infinite": (with_(TWO_HOSPITALS, requirements=[INF, 1]), ("site A",)),
    "a requirement overflows": (with_(TWO_HOSPITALS, requirements=[1, 10**400]), ("site B",)),
    "a requirement is negative": (with_(TWO_HOSPITALS, requirements=[1, -1]), ("site B", "neg")),
    "a requirement is null": (with_(TWO_HOSPITALS, requirements=[1, None]), ("site B", "null")),
    "a requirement is true": (with_(TWO_HOSPITALS, requirements=[True, 1]), ("site A", "truth")),
    "a requirement is a word": (with_(TWO_HOSPITALS, requirements=[1, "many"]), ("site B", "many")),
    "a requirement is 1/0": (with_(TWO_HOSPITALS, requirements=[1, "1/0"]), ("site B", "1/0")),
    "a requirement takes a billion digits": (
        with_(TWO_HOSPITALS, requirements=[1, "1e999999999"]),
        ("site B", "1e999999999"),
    ),
    "a requirement is a list": (with_(TWO_HOSPITALS, requirements=[1, [1]]), ("site B", "list")),
    "a requirement is 1e300": (with_(TWO_HOSPITALS, requirements=[1, 1e300]), ("site B", "large")),
    "a requirement is 1e-300": (with_(TWO_HOSPITALS, requirements=[1, 1e-300]), ("site B", "sma")),
    "a benefit is NaN": (with_(TWO_HOSPITALS, benefits=[[1, 0], [NAN, 1]]), ("site B",)),
    "a benefit is infinite": (with_(TWO_HOSPITALS, benefits=[[1, INF], [0, 1]]), ("site A",)),
    "a benefit is negative": (with_(TWO_HOSPITALS, benefits=[[1, 0], [-0.5, 1]]), ("site B",)),
    "a benefit is null": (with_(TWO_HOSPITALS, benefits=[[1, 0], [None, 1]]), ("site B", "null")),
    "a benefit is false": (with_(TWO_HOSPITALS, benefits=[[1, False], [0, 1]]), ("site A",)),
    "a benefit is 1e300": (with_(TWO_HOSPITALS, benefits=[[1, 0], [0, 1e300]]), ("site B",)),
    "a benefit is 1e-300": (with_(TWO_HOSPITALS, benefits=[[1e-300, 0], [0, 1]]), ("site A",)),
    "a limit is negative": (with_(TWO_HOSPITALS, limits=[1, -2]), ("site B",)),
    "a limit is infinite": (with_(TWO_HOSPITALS, limits=[1, INF]), ("site B", "null")),
    "a limit is below the minimum": (
        with_(TWO_HOSPITALS, limits=[None, 1], minimums=[0, 2]),
        ("site B",),
    ),
    "a limit is no whole number": (
        with_(TWO_HOSPITALS, limits=[1.5, 2], strategies="integer"),
        ("site A", "whole"),
    ),
    "a cost is zero": (with_(TWO_HOSPITALS, costs=[1, 0]), ("site B", "cost")),
    "a cost is NaN": (with_(TWO_HOSPITALS, costs=[NAN, 1]), ("site A", "cost")),
    "a minimum is null": (with_(TWO_HOSPITALS, minimums=[0, None]), ("site B", "null")),
    # Shapes.
    "benefits have a row too few": (
        with_(TWO_HOSPITALS, benefits=[[1, 0]]),
        ("benefits", "2 rows"),
    ),
    "benefits are ragged": (with_(TWO_HOSPITALS, benefits=[[1, 0], [0]]), ("site B", "benefits")),
    "benefits are 2 x 3": (with_(TWO_HOSPITALS, benefits=[[1, 0, 0]] * 2), ("site A", "benefits")),
    "benefits are one list": (with_(TWO_HOSPITALS, benefits=[1, 1]), ("site A", "benefits")),
    "benefits are nested deeper": (
        with_(TWO_HOSPITALS, benefits=[[[1], [0]], [[0], [1]]]),
        ("site A", "benefits"),
    ),
    "benefits are a number": (with_(TWO_HOSPITALS, benefits=3), ("benefits", "number")),
    "benefits are null": (with_(TWO_HOSPITALS, benefits=None), ("benefits", "null")),
    "requirements are a number": (with_(TWO_HOSPITALS, requirements=1), ("requirements",)),
    "requirements are an object": (with_(TWO_HOSPITALS, requirements={}), ("requirements",)),
    "limits are too few": (with_(TWO_HOSPITALS, limits=[1]), ("limits", "2")),
    "limits are infinite and too many": (with_(TWO_HOSPITALS, limits=[1, 1, INF]), ("limits",)),
    "distributions are ragged": (
        with_(DISCOVERY, distributions=[[0.5, 0.5], [1]]),
        ("site B", "distributions"),
    ),
    "distributions have no points": (with_(DISCOVERY, distributions=[[], []]), ("distributions",)),
    # Distributions.
    "a row does not sum to 1": (
        with_(DISCOVERY, distributions=[[0.5, 0.5], [0.5, 0.4]]),
        ("site B", "0.9"),
    ),
    "a probability is above 1": (with_(COVERAGE, distributions=[[1, 0], [1.5, 0]]), ("site B",)),
    "a probability is negative": (
        with_(COVERAGE, distributions=[[1, 0], [1.5, -0.5]]),
        ("site B",),
    ),
    # Agents.
    "two agents share a name": (with_(TWO_HOSPITALS, agents=["site A", "site A"]), ("site A",)),
    "an agent has no name": (with_(TWO_HOSPITALS, agents=["site A", None]), ("agent 1", "null")),
    "an agent's name is blank": (with_(TWO_HOSPITALS, agents=["site A", " "]), ("agent 1",)),
    "agents are too many": (with_(TWO_HOSPITALS, agents=["a", "b", "c"]), ("agents", "3")),
    "agents are one string": (with_(TWO_HOSPITALS, agents="ab"), ("agents",)),
    "there are no agents": (
        with_(TWO_HOSPITALS, requirements=[], benefits=[], agents=[]),
        ("requirements", "at least one agent"),
    ),
    # Requirements nobody can meet.
    "a coverage requirement is 1": (with_(COVERAGE, requirements=[1, 0.7]), ("site A",)),
    "an own benefit is zero": (with_(TWO_HOSPITALS, benefits=[[1, 0], [1, 0]]), ("site B", "zero")),
    "a PAC requirement is above 1": (with_(PAC, requirements=[0.5, 1.5]), ("site B",)),
    "a stand-alone need is out of range": (
        with_(TWO_HOSPITALS, requirements=[1, 1e90], benefits=[[1, 0], [0, 1e-90]]),
        ("site B", "1e+180"),
    ),
    "a stand-alone need is too small": (
        with_(TWO_HOSPITALS, requirements=[1e-90, 1], benefits=[[1e90, 0], [0, 1]]),
        ("site A", "1e-180"),
    ),
    # Models and keys.
    "the model is unknown": (with_(TWO_HOSPITALS, model="quadratic"), ("quadratic", '"linear"')),
    "the model is a list": (with_(TWO_HOSPITALS, model=["linear"]), ("model", '"linear"')),
    "the model is missing": (with_(TWO_HOSPITALS, model=...), ("model", '"coverage"')),
    "requirements are missing": (with_(TWO_HOSPITALS, requirements=...), ("requirements",)),
    "benefits are missing": (with_(TWO_HOSPITALS, benefits=...), ("benefits", "missing")),
    "a key is misspelt": (with_(TWO_HOSPITALS, limit=[1, 1]), ("limit", 'did you mean "limits"')),
    "a key is unknown": (with_(TWO_HOSPITALS, zzz=1), ("zzz", "requirements")),
    "both matrices are given": (
        with_(TWO_HOSPITALS, distributions=[[1, 0], [0, 1]]),
        ("benefits", "distributions"),
    ),
    "the matrix is another model's": (
        with_(TWO_HOSPITALS, benefits=..., distributions=[[1, 0], [0, 1]]),
        ("benefits", "discovery"),
    ),
    "strategies are unknown": (with_(TWO_HOSPITALS, strategies="mixed"), ("mixed", "integer")),
    "strategies are null": (with_(TWO_HOSPITALS, strategies=None), ("strategies", "integer")),
    # Worlds.
    "worlds are none": (with_(PAC, worlds=[]), ("worlds",)),
    "worlds are a number": (with_(PAC, worlds=7), ("worlds",)),
    "a world lacks its prior": (with_(PAC, worlds=[{"samples": [[], []]}]), ("world 0", "prior")),
    "priors do not sum to 1": (with_(PAC, worlds=PAC["worlds"][:1]), ("prior", "0.5")),
    "an agent has no samples": (
        with_(PAC, worlds=[{"prior": 1, "samples": [[[0, 0, 1]], []]}]),
        ("site B", "world 0"),
    ),
    "a sample is no triple": (
        with_(PAC, worlds=[{"prior": 1, "samples": [[[0, 0, 1]], [[0, 1]]]}]),
        ("site B", "world 0"),
    ),
    "a sample's probability is NaN": (
        with_(PAC, worlds=[{"prior": 1, "samples": [[[0, 0, 1]], [[0, 0, NAN]]]}]),
        ("site B", "world 0"),
    ),
    "a sample's probability takes a billion digits": (
        with_(PAC, worlds=[{"prior": 1, "samples": [[[0, 0, 1]], [[0, 0, "1e999999999"]]]}]),
        ("site B", "world 0"),
    ),
    "draws are a fraction": (with_(PAC, draws=2.5), ("draws", "whole")),
    "draws are too few": (with_(PAC, draws=1), ("draws",)),
    "a seed comes without draws": (with_(PAC, seed=1), ("seed", "draws")),
    "a seed is negative": (with_(PAC, draws=9, seed=-1), ("seed",)),
    "the confidence is 1": (with_(PAC, draws=9, confidence=1), ("confidence",)),
    "the confidence is a list": (with_(PAC, draws=9, confidence=[]), ("confidence",)),
    "draws come with another classifier": (with_(PAC, draws=9, classifier="worst"), ("draws",)),
    "copies are a number": (with_(COVERAGE, copies=2), ("copies", "list")),
    "copies are too few": (with_(COVERAGE, copies=[1]), ("copies",)),
    "a copy is null": (with_(COVERAGE, copies=[1, None]), ("copies", "point 1")),
    "copies are a fraction": (with_(COVERAGE, copies=[1, 1.5]), ("copies", "point 1")),
    "copies do not add up": (with_(COVERAGE, copies=[2, 1]), ("site A", "1.5")),
    "the classifier is unknown": (with_(PAC, classifier="magic"), ("classifier", "magic")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_game_at_fault_is_refused_in_one_sentence_that_names_the_agent(
    fault: str, tmp_path: Path
) -> None:
    game, words = FAULTS[fault]
    assert_refused(check(tmp_path, game), "game.json", *words)


@pytest.mark.parametrize(
    "game", [TWO_HOSPITALS, DISCOVERY, COVERAGE, PAC], ids=lambda g: g["model"]
)
def test_the_games_that_the_faults_are_planted_in_are_sound(
    game: dict[str, Any], tmp_path: Path
) -> None:
    assert check(tmp_path, game).code in (0, 1)


def test_the_judge_of_refusals_objects_to_anything_else() -> None:
    good = Run(2, "", "fedaccord: site B is short; add some.\n")
    assert_refused(good, "site B")
    for wrong in (
        Run(0, "", good.stderr),
        Run(1, "", good.stderr),
        Run(2, "{}", good.stderr),
        Run(2, "", ""),
        Run(2, "", good.stderr * 2),
        Run(2, "", "fedaccord: \x1b[31msite B.\n"),
        Run(2, "", "fedaccord: site B is short\n"),
        Run(2, "", "fedaccord: site A is short.\n"),
        Run(2, "", "Traceback (most recent call last): site B.\n"),
    ):
        with pytest.raises(AssertionError):
            assert_refused(wrong, "site B")


# Files.

TEXTS = {
    "empty": ("", "empty"),
    "blank": (" \n\t", "empty"),
    "not JSON": ("model: linear", "not JSON"),
    "a list": ("[1, 2]", "list"),
    "a number": ("3", "number"),
    "null": ("null", "null"),
    "nested without end": ("[" * 100_000, "deep"),
    "nested objects without end": ('{"a":' * 100_000, "deep"),
    "a number of many digits": ('{"requirements": [' + "9" * 5000 + "]}", "digits"),
    "a key twice": ('{"model": "linear", "model": "linear"}', 'the key "model" appears twice'),
    "bytes": (b"\x80\x81\xfe\xff\x00", "UTF-8"),
    "a zip file": (b"PK\x03\x04\x14\x00\x00\x00\xff", "UTF-8"),
    "UTF-16": ('{"model": "linear"}'.encode("utf-16"), "UTF-8"),
    "a null character": ("\0", "not JSON"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_object_is_refused_as_game_and_as_allocation(
    name: str, tmp_path: Path
) -> None:
    content, word = TEXTS[name]
    bad = write(tmp_path / "bad.json", content)
    good = write(tmp_path / "good.json", TWO_HOSPITALS)
    assert_refused(run("check", bad, good), "bad.json", word)
    assert_refused(run("check", good, bad), "bad.json", word)


def test_a_game_cut_short_at_any_byte_is_refused(tmp_path: Path) -> None:
    whole = json.dumps(TWO_HOSPITALS).encode()
    allocation = write(tmp_path / "allocation.json", {"contributions": [1, 1]})
    for length in range(len(whole)):
        path = write(tmp_path / "game.json", whole[:length])
        assert_refused(run("check", path, allocation), "game.json")
    assert run("check", write(tmp_path / "game.json", whole), allocation).code in (0, 1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_random_bytes_are_refused(content: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "noise.json", content)
    assert_refused(run("check", path, path))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.sampled_from(["requirements", "benefits", "agents", "limits", "costs", "minimums"]),
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.floats()
        | st.integers()
        | st.text(max_size=3)
        | st.sampled_from(["1/3", "site A", "nan", "1e5", "-1/2"]),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        ),
        max_leaves=8,
    ),
)
def test_any_value_under_any_key_is_read_or_refused(key: str, value: Any, tmp_path: Path) -> None:
    result = check(tmp_path, {**TWO_HOSPITALS, key: value})
    if result.code not in (0, 1):
        assert_refused(result)


def test_a_missing_file_a_directory_and_a_device_are_refused(tmp_path: Path) -> None:
    good = write(tmp_path / "good.json", TWO_HOSPITALS)
    assert_refused(run("check", tmp_path / "none.json", good), "none.json", "No such file")
    assert_refused(run("check", tmp_path, good), "directory")
    assert_refused(run("check", good, tmp_path), "directory")
    assert_refused(run("check", "/dev/zero", good), "device")
    assert_refused(run("check", good, "/dev/zero"), "device")
    assert_refused(run("check", "a\0b", good))
    assert_refused(run("check", "a" * 5000, good), "too long")
    assert_refused(run("check", "", good))


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "game.json", TWO_HOSPITALS)
    path.chmod(0)
    root = os.geteuid() == 0
    try:
        if root:
            # Root reads everything; nobody may not even enter the folder.
            os.seteuid(65534)
        result = run("check", path, path)
    finally:
        if root:
            os.seteuid(0)
    assert_refused(result, "game.json", "Permission denied")


# Allocations.

ALLOCATIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a contribution is NaN": (
        {"contributions": [1, NAN], "agents": ["site A", "site B"]},
        ("site B",),
    ),
    "a contribution is negative": ({"contributions": [-1, 1]}, ("agent 0", "negative")),
    "a contribution is infinite": ({"contributions": [1, INF]}, ("agent 1", "infinite")),
    "a contribution is 1e300": ({"contributions": [1, 1e300]}, ("agent 1", "too large")),
    "a contribution is null": ({"contributions": [1, None]}, ("contributions", "null")),
    "a contribution is true": ({"contributions": [1, True]}, ("contributions",)),
    "a contribution is a list": ({"contributions": [1, [1]]}, ("contributions",)),
    "contributions are too few": ({"contributions": [1]}, ("2", "1")),
    "contributions are none": ({"contributions": []}, ("2", "0")),
    "contributions are missing": ({"theta": [1, 1]}, ("contributions",)),
    "contributions are nested": ({"contributions": [[1, 1]]}, ("contributions",)),
    "contributions are an object": ({"contributions": {"site A": 1}}, ("contributions",)),
    "an agent is unknown": (
        {"contributions": [1, 1], "agents": ["site A", "site C"]},
        ("site B",),
    ),
    "an agent is named twice": ({"contributions": [1, 1], "agents": ["site A"] * 2}, ("site A",)),
    "an agent is too many": (
        {"contributions": [1, 1, 1], "agents": ["site A", "site B", "site C"]},
        ("site C",),
    ),
    "agents are a string": ({"contributions": [1, 1], "agents": "ab"}, ("agents",)),
    "agents are numbers": ({"contributions": [1, 1], "agents": [1, 2]}, ("agents",)),
}


@pytest.mark.parametrize("fault", ALLOCATIONS)
def test_an_allocation_at_fault_is_refused_in_one_sentence(fault: str, tmp_path: Path) -> None:
    allocation, words = ALLOCATIONS[fault]
    assert_refused(check(tmp_path, TWO_HOSPITALS, allocation), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("is empty",)),
        ("agent,amount\nsite A,1\n", ("contribution",)),
        ("agent,contribution\nsite A,1\nsite B\n", ("line 3",)),
        ("contribution,agent\n1,site A\n2\n", ("line 3",)),
        ("contribution\n1\nx\n", ("line 3",)),
        ("contribution\n1\nnan\n", ("line 3",)),
        ("contribution\n1\n-1\n", ("line 3", "negative")),
        ('agent,contribution\n"site A,1\n', ()),
        ("agent,contribution\nsite A,1\nsite C,1\n", ("site B",)),
        ("contribution\n" + "1" * 200_000 + "\n", ()),
    ],
)
def test_a_csv_at_fault_is_refused_in_one_sentence(
    text: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    game = write(tmp_path / "game.json", TWO_HOSPITALS)
    assert_refused(run("check", game, write(tmp_path / "allocation.csv", text)), *words)


def test_a_fraction_of_a_sample_in_an_integer_game_is_refused(tmp_path: Path) -> None:
    game = {**TWO_HOSPITALS, "strategies": "integer"}
    assert_refused(check(tmp_path, game, {"contributions": [1, 0.5]}), "site B", "round")


# Matrices beside the game.


class Trap:
    """Leaves a file behind when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def refused_matrix(tmp_path: Path, name: str = "q.npz") -> Run:
    return check(tmp_path, {**DISCOVERY, "distributions": name})


def test_an_npz_with_pickled_objects_is_refused_unopened(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)], dtype=object)
    npz(tmp_path / "q.npz", format=np.array("csr"), shape=np.array([2, 2]), data=trap)
    assert_refused(refused_matrix(tmp_path), "q.npz", "pickled")
    assert not sprung.exists()
    # The trap itself works, so what kept it shut was the refusal.
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists()


def test_a_bare_pickle_is_refused_unopened(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    (tmp_path / "q.npz").write_bytes(pickle.dumps(Trap(sprung)))
    assert_refused(refused_matrix(tmp_path), "q.npz")
    assert not sprung.exists()


@pytest.mark.parametrize("name", ["../q.npz", "/etc/passwd", "sub/q.npz", "..", "", "a\0b", "\\q"])
def test_a_matrix_outside_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    assert_refused(refused_matrix(tmp_path, name), "distributions", "folder")


def test_a_matrix_that_is_missing_or_a_folder_is_refused(tmp_path: Path) -> None:
    assert_refused(refused_matrix(tmp_path), "q.npz", "no such file")
    (tmp_path / "q.npz").mkdir()
    assert_refused(refused_matrix(tmp_path), "q.npz")


def test_a_matrix_cut_short_at_any_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.npz"
    sparse.save_npz(path, sparse.csr_array(np.eye(2)))
    whole = path.read_bytes()
    assert refused_matrix(tmp_path).code in (0, 1)
    for length in range(0, len(whole), 29):
        path.write_bytes(whole[:length])
        assert_refused(refused_matrix(tmp_path), "q.npz")


def test_a_matrix_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.npz"
    sparse.save_npz(path, sparse.csr_array(np.eye(2)), compressed=False)
    whole = path.read_bytes()
    for place in range(0, len(whole), 17):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        result = refused_matrix(tmp_path)
        if result.code not in (0, 1):
            assert_refused(result, "game.json")


def csr(**changes: Any) -> dict[str, Any]:
    parts = {
        "format": np.array("csr"),
        "shape": np.array([2, 2]),
        "data": np.array([1.0, 1.0]),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]),
        "_is_array": np.array(True),
    }
    return {**parts, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([0, 10**6])},
        {"indices": np.array([-5, 0])},
        {"indices": np.array([0.0, np.inf])},
        {"indptr": np.array([0.0, 1.0, np.nan])},
        {"indptr": np.array([0, 9, 2])},
        {"indptr": np.array([0, 1])},
        {"shape": np.array([2, 10**12])},
        {"shape": np.array([2])},
        {"shape": np.array([-2, 2])},
        {"format": np.array("lil")},
        {"format": np.array("__class__")},
        {"data": np.array(["a", "b"])},
        {"data": np.array([1j, 1.0])},
        {"data": np.array([np.nan, 1.0])},
        {"data": np.array([1.0, 0.5])},
    ],
    ids=str,
)
def test_a_malformed_sparse_matrix_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    npz(tmp_path / "q.npz", **csr())
    assert refused_matrix(tmp_path).code in (0, 1)
    npz(tmp_path / "q.npz", **csr(**changes))
    assert_refused(refused_matrix(tmp_path), "game.json")


def test_a_dense_npz_and_a_bare_npy_are_refused(tmp_path: Path) -> None:
    npz(tmp_path / "q.npz", q=np.eye(2))
    assert_refused(refused_matrix(tmp_path), "save_npz")
    with (tmp_path / "q.npz").open("wb") as file:
        np.save(file, np.eye(2))
    assert_refused(refused_matrix(tmp_path), "save_npz")


def test_an_npz_that_unpacks_to_far_too_much_is_refused_unopened(tmp_path: Path) -> None:
    npz(tmp_path / "q.npz", **csr())
    with zipfile.ZipFile(tmp_path / "q.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", b"")
    content = bytearray((tmp_path / "q.npz").read_bytes())
    # The central directory is where sizes are read from: claim 0xFFFFFFF0 bytes for the last.
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    (tmp_path / "q.npz").write_bytes(bytes(content))
    assert_refused(refused_matrix(tmp_path), "unpacks")


def test_an_array_whose_header_claims_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    npz(tmp_path / "q.npz", **csr())
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    )
    with zipfile.ZipFile(tmp_path / "q.npz", "w") as archive:
        archive.writestr("data.npy", header.getvalue())
    assert_refused(refused_matrix(tmp_path), "save_npz")


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "GAME", "--concept", ""), ("concept is empty", "stable")),
        (("solve", "GAME", "--concept", "fair"), ("fair", "envy-free")),
        (("solve", "GAME", "--concept"), ("concept",)),
        (("solve", "GAME", "--time-limit", "0"), ("time-limit",)),
        (("solve", "GAME", "--time-limit", "nan"), ("time-limit",)),
        (("solve", "GAME", "--time-limit", "soon"), ("soon",)),
        (("solve",), ("GAME.json",)),
        (("solve", "GAME", "GAME"), ()),
        (("solve", "GAME", "--colour"), ("--colour",)),
        (("solve", "GAME", "--save", "/nowhere/a.json"), ("/nowhere",)),
        (("solve", "GAME", "--save", "plan.txt"), (".csv",)),
        (("solve", "GAME", "--save", "GAME"), ("overwrite",)),
        (("check", "GAME"), ("PROPOSAL",)),
        (("check", "GAME", "GAME", "--require", ""), ("feasible",)),
        (("check", "GAME", "GAME", "--require", "feasible,kind"), ("kind",)),
        (("check", "GAME", "PLAN", "--tolerance", "-1"), ("tolerance",)),
        (("check", "GAME", "PLAN", "--tolerance", "nan"), ("tolerance",)),
        (("catalog", "--parameter", "petals=4"), ("NAME",)),
        (("frobnicate",), ("frobnicate",)),
        ((), ("command",)),
    ],
)
def test_an_argument_at_fault_is_refused_in_one_sentence(
    arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    files = {
        "GAME": str(write(tmp_path / "game.json", TWO_HOSPITALS)),
        "PLAN": str(write(tmp_path / "plan.json", {"contributions": [1, 1]})),
    }
    assert_refused(run(*(files.get(a, a) for a in arguments)), *words)


def test_hostile_names_are_shown_harmless_in_a_refusal(tmp_path: Path) -> None:
    name = "[bold]<script>\x1b[31m\n:boom:\u202e\ud800[/]"
    game = {**TWO_HOSPITALS, "agents": ["site A", name], "requirements": [1, -1]}
    result = check(tmp_path, game)
    assert_refused(result, r"[bold]<script>\x1b[31m\n:boom:\u202e\ud800[/]")
