"""Sparse matrices beside GAME.json, from files that may come from anywhere."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._io.atomic import replacing
from fedaccord.errors import InputError

# A million agents with a hundred points each take 1.6 GiB; what unpacks to more than this is a
# mistake or a trap.
MOST_BYTES = 4 * 2**30
# Solvers keep a number for every point, used or not.
MOST_POINTS = 10**8

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


def read_sparse(name: str, key: str, folder: str | Path) -> sparse.csr_array:
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
        raise InputError(f'"{key}" names {name}, and there is no such file beside the game')
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
        return sparse.csr_array(matrix)
    except InputError:
        raise
    except DAMAGE:
        raise InputError(_not_sparse(key, name)) from None


def _not_sparse(key: str, name: str) -> str:
    return (
        f'"{key}" names {name}, which is not a matrix that scipy.sparse.save_npz wrote; save it '
        "anew"
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
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
        if dtype.hasobject:
            raise InputError(
                f'"{key}" names {name}, which holds pickled objects, and those can run code: save '
                "the matrix with scipy.sparse.save_npz"
            )
        if member.filename == "data.npy" and dtype.kind not in "fiu":
            raise InputError(f'"{key}" in {name} holds {dtype} values; save it as numbers')
        if dtype == np.float16:
            raise InputError(f'"{key}" in {name} holds half-precision values; save it as float64')
        if math.prod(shape) * dtype.itemsize + file.tell() != member.file_size:
            raise ValueError("the header of an array does not fit its length")


def write_sparse(matrix: Any, path: Path) -> None:
    """Replace an .npz file in one step."""
    with replacing(path) as file:
        sparse.save_npz(file, matrix)
