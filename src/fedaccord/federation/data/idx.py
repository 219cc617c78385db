"""Where data files lie, and idx files: plain, gzipped, inside a zip."""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import stat
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._io import npz
from fedaccord._io.npz import check_size, name_damage
from fedaccord.errors import InputError

FOLDER = "FEDACCORD_DATA"


def find_path(path: str | Path) -> Path | None:
    """Return the place of a file or folder, looked for in the folder FEDACCORD_DATA as well."""
    given = Path(path).expanduser()
    places = [given]
    if not given.is_absolute() and os.environ.get(FOLDER):
        places.append(Path(os.environ[FOLDER]).expanduser() / given)
    with contextlib.suppress(OSError, ValueError):
        return next((place for place in places if place.exists()), None)
    return None


def find_file(path: str | Path) -> Path:
    """Return the place of a file that is there, or say where it was looked for."""
    found = find_path(path)
    if found is None:
        folder = os.environ.get(FOLDER)
        also = f", nor in {folder} ({FOLDER})" if folder and not Path(path).is_absolute() else ""
        raise InputError(f"there is no file {path}{also}; check the path")
    if not stat.S_ISREG(found.stat().st_mode):
        raise InputError(f"cannot read {found}: it is not a file; name one")
    return found


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file of bytes, gzipped if its name ends in .gz.

    path: the file.
    dimensions: how many axes it must have: 3 for images, 1 for labels.
    """
    with name_damage(path), path.open("rb") as file:
        return _unpack_idx(file, path.name, dimensions, str(path))


def read_idx_from_zip(archive: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file, maybe gzipped, that lies in some folder of a zip archive.

    archive: the zip file.
    name: the idx file's own name, without .gz.
    dimensions: how many axes it must have: 3 for images, 1 for labels.
    """
    with name_damage(archive), zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            own = info.filename.rpartition("/")[2]
            if own in (name, f"{name}.gz"):
                check_size(info, archive)
                with opened.open(info) as file:
                    return _unpack_idx(file, own, dimensions, f"{info.filename} in {archive}")
    raise InputError(f"{archive} holds no {name} or {name}.gz; is it the archive in idx format?")


def _unpack_idx(file: IO[bytes], name: str, dimensions: int, where: str) -> NDArray[np.uint8]:
    if not name.endswith(".gz"):
        return _parse_idx(file, dimensions, where)
    with gzip.GzipFile(fileobj=file) as unpacked:
        return _parse_idx(unpacked, dimensions, where)


def _parse_idx(file: Any, dimensions: int, where: str) -> NDArray[np.uint8]:
    """Read two zeros, the type (8: bytes), the number of axes and their sizes; then the bytes."""
    header = file.read(4 + 4 * dimensions)
    if header[:4] != bytes((0, 0, 8, dimensions)):
        raise InputError(
            f"{where} does not start as an idx file of bytes with {dimensions} "
            f"{'axes' if dimensions > 1 else 'axis'} does; is it the right file?"
        )
    if len(header) < 4 + 4 * dimensions:
        raise InputError(f"{where} is cut short; fetch it again")
    shape = tuple(int(size) for size in np.frombuffer(header, dtype=">u4", offset=4))
    size = math.prod(shape)
    if size > npz.LARGEST_BYTES:
        raise InputError(f"{where} claims {size} bytes of content; is it the right file?")
    # One byte more than there should be, to see that nothing follows (and that gzip's checksum,
    # which stands at the end, is looked at).
    content = file.read(size + 1)
    if len(content) != size:
        fault = "is cut short" if len(content) < size else "goes on after its last entry"
        raise InputError(f"{where} {fault}: its header says {size} bytes follow; fetch it again")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
