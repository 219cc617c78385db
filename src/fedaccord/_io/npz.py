"""Arrays in npz files, which may come from anywhere; nothing is ever unpickled."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fedaccord._io.files import replacing
from fedaccord.errors import InputError

# Ten million agents with fifty points each take 5.6 GiB; what unpacks to more than this is a
# mistake or a trap.
MOST_BYTES = 8 * 2**30
# Solvers keep a number for every point, used or not.
MOST_POINTS = 10**8

# Twenty times EMNIST. What claims to be larger is refused before it is unpacked: a few kilobytes
# of zip can hold a terabyte of zeros.
LARGEST_BYTES = 2**31

# The arrays of scipy's matrices that say where its numbers are.
PLACES = ("shape", "indices", "indptr", "row", "col", "offsets")

# What zipfile, numpy and scipy raise on damaged archives.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    NotImplementedError,
    MemoryError,
    RuntimeError,
)


class Unshared(sparse.csr_array):
    """Rows that nothing else holds, so that a game may keep them without a copy."""


def read_sparse(name: str, key: str, folder: str | Path) -> Unshared:
    """Read a matrix that scipy.sparse.save_npz wrote into the folder.

    name: the file's name, no folder in it.
    key: the key of GAME.json that names it, for messages.
    folder: where GAME.json is.
    """
    if name in ("", ".", "..") or Path(name).name != name or "\0" in name or "\\" in name:
        raise InputError(
            f'"{key}" names "{name}"; name an .npz file in the folder of the game, without a path'
        )
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f'"{key}" names {name}, but the folder of the game has no such file')
    _check_archive(path, key)
    try:
        matrix: Any = sparse.load_npz(path)
        if matrix.format in ("csr", "csc", "bsr"):
            # Wrong indices would make scipy's compiled loops read other memory.
            matrix.check_format(full_check=True)
        if matrix.ndim != 2 or max(matrix.shape) > MOST_POINTS:
            raise InputError(
                f'"{key}" in {name} has shape {matrix.shape}; it needs rows and columns, at most '
                f"{MOST_POINTS:,} of each"
            )
        return Unshared(matrix)
    except InputError:
        raise
    except DAMAGE:
        raise InputError(_not_sparse(key, name)) from None


def _not_sparse(key: str, name: str) -> str:
    return (
        f'"{key}" names {name}, which is not a matrix that scipy.sparse.save_npz wrote; save it '
        "again"
    )


def _check_archive(path: Path, key: str) -> None:
    """Look at the headers alone: nothing is unpacked before its size and kind are known."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise InputError(
                    f'"{key}" names {path.name}, which unpacks to more than '
                    f"{MOST_BYTES / 2**30:g} GiB; give a smaller matrix"
                )
            for member in members:
                _check_member(archive, member, path.name, key)
    except InputError:
        raise
    except PermissionError:
        raise InputError(f'"{key}" names {path.name}, which may not be read') from None
    except DAMAGE:
        raise InputError(_not_sparse(key, path.name)) from None


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, key: str) -> None:
    shape, dtype, begin = _read_header(archive, member)
    if dtype.hasobject:
        raise InputError(
            f'"{key}" names {name}, which holds pickled objects, and those can run code: save '
            "the matrix with scipy.sparse.save_npz"
        )
    if member.filename == "data.npy" and dtype.kind not in "fiu":
        raise InputError(f'"{key}" in {name} holds {dtype} values; save it as numbers')
    if member.filename.removesuffix(".npy") in PLACES and dtype.kind not in "iu":
        raise ValueError("places in a matrix are not whole numbers")
    if dtype == np.float16:
        raise InputError(f'"{key}" in {name} holds half-precision values; save it as float64')
    if begin + math.prod(shape) * dtype.itemsize != member.file_size:
        raise ValueError("the header of an array does not fit its length")


def _read_header(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return an array's shape and type, and where its content begins."""
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        return shape, dtype, file.tell()


def write_sparse(matrix: Any, path: Path) -> None:
    """Replace an .npz file in one step."""
    with replacing(path) as file:
        sparse.save_npz(file, matrix)


# Dense arrays by name.


@contextlib.contextmanager
def name_damage(name: str | Path) -> Iterator[None]:
    """Turn what damaged archives raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{name} is damaged or cut short ({error}); download it again") from None
    except (NotImplementedError, RuntimeError) as error:
        raise InputError(f"{name} cannot be unpacked ({error}); save it unencrypted") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None


def check_size(info: zipfile.ZipInfo, archive: str | Path) -> None:
    """Raise an InputError where a file in an archive claims to be too large to be unpacked."""
    if info.file_size > LARGEST_BYTES:
        raise InputError(
            f"{info.filename} in {archive} claims {info.file_size / 2**30:.0f} GB unpacked, more "
            f"than the {LARGEST_BYTES / 2**30:.0f} GB read here; is it the right file?"
        )


def list_npz(path: str | Path) -> list[str]:
    """Return the names of the arrays of an npz file, without reading any."""
    with name_damage(path), zipfile.ZipFile(path) as archive:
        return list(_list_arrays(archive))


def read_npz(path: str | Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Read some arrays of an npz file; arrays of Python objects are refused.

    path: the file.
    names: of the arrays, which it must have; no other is read.
    """
    with name_damage(path), zipfile.ZipFile(path) as archive:
        members = _list_arrays(archive)
        wanted = {name: members[name] for name in names}
        for info in wanted.values():
            check_size(info, path)
        _check_total(wanted.values(), path)
        for info in wanted.values():
            _check_array(archive, info, path)
        return {name: _read_array(archive, info, path) for name, info in wanted.items()}


def _list_arrays(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the entries that are arrays, by the arrays' names."""
    return {
        info.filename.removesuffix(".npy"): info
        for info in archive.infolist()
        if info.filename.endswith(".npy")
    }


def _check_total(infos: Iterable[zipfile.ZipInfo], archive: str | Path) -> None:
    total = sum(info.file_size for info in infos)
    if total > LARGEST_BYTES:
        raise InputError(
            f"the arrays in {archive} claim {total / 2**30:.0f} GB unpacked together, more than "
            f"the {LARGEST_BYTES / 2**30:.0f} GB read here; is it the right file?"
        )


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | Path) -> NDArray[Any]:
    try:
        with archive.open(info) as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            # Another machine may order bytes otherwise, which torch cannot read.
            return array.astype(array.dtype.newbyteorder("="), copy=False)
    except ValueError as error:
        raise InputError(f"{path} is not a valid npz file ({error}); save it again") from None


def _check_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | Path) -> None:
    """Look at an array's header before numpy believes it and sets the memory aside."""
    try:
        shape, dtype, begin = _read_header(archive, info)
    except ValueError as error:
        raise InputError(
            f"{info.filename} in {path} is not an array ({error}); save the file with "
            "numpy.savez_compressed"
        ) from None
    if dtype.hasobject:
        raise InputError(
            f"{info.filename} in {path} holds Python objects, which only unpickling could read, "
            "and unpickling runs code from the file; save plain numbers or text instead"
        )
    if begin + math.prod(shape) * dtype.itemsize != info.file_size:
        raise InputError(
            f"{info.filename} in {path} says shape {shape}, but holds something else; save it again"
        )


def save_arrays(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]
) -> None:
    """Write arrays into an npz file, with notes as JSON, replacing the file in one step.

    path: the file.
    arrays: by name.
    notes: what else is to be known of them.
    """
    text = np.array(json.dumps(dict(notes)))
    try:
        with replacing(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, notes=text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def load_arrays(
    path: str | Path, what: str, needed: tuple[str, ...], *, prefix: str | None = None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what save_arrays() wrote, or say that the file is another one.

    path: the file.
    what: what it should hold, for messages.
    needed: the arrays and notes it must have.
    prefix: arrays whose names begin so are read as well.
    """
    wanted = [
        name
        for name in list_npz(path)
        if name in (*needed, "notes") or (prefix is not None and name.startswith(prefix))
    ]
    arrays = read_npz(path, wanted)
    try:
        notes = json.loads(str(arrays.pop("notes")))
    except (KeyError, ValueError, RecursionError):
        notes = None
    if not isinstance(notes, dict) or any(key not in (arrays | notes) for key in needed):
        raise wrong_content(path, what)
    return arrays, notes


def wrong_content(path: str | Path, what: str) -> InputError:
    """Return the error of a file that does not hold what it should."""
    return InputError(f"{path} does not hold {what}; name a file that fedaccord wrote")
