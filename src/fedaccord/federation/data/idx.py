"""Arrays in files: idx (plain, gzipped, inside a zip) and npz; nothing is ever unpickled."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._io.atomic import replacing
from fedaccord.errors import InputError

# Twenty times EMNIST. What claims to be larger is refused before it is unpacked: a few kilobytes
# of zip can hold a terabyte of zeros.
LARGEST_BYTES = 2**31
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


def existing_file(path: str | Path) -> Path:
    """Return the place of a file that is there, or say where it was looked for."""
    found = find_path(path)
    if found is None:
        folder = os.environ.get(FOLDER)
        also = f", nor in {folder} ({FOLDER})" if folder and not Path(path).is_absolute() else ""
        raise InputError(f"there is no file {path}{also}; check the path")
    if not stat.S_ISREG(found.stat().st_mode):
        raise InputError(f"cannot read {found}: it is not a file; name one")
    return found


@contextlib.contextmanager
def _faults_named(name: str | Path) -> Iterator[None]:
    """Turn what damaged archives raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{name} is damaged or cut short ({error}); fetch it again") from None
    except (NotImplementedError, RuntimeError) as error:
        raise InputError(f"{name} cannot be unpacked ({error}); save it unencrypted") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file of bytes, gzipped if its name ends in .gz.

    path: the file.
    dimensions: how many axes it must have: 3 for images, 1 for labels.
    """
    with _faults_named(path), path.open("rb") as file:
        return _unpacked_idx(file, path.name, dimensions, str(path))


def read_idx_from_zip(archive: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file, maybe gzipped, that lies in some folder of a zip archive.

    archive: the zip file.
    name: the idx file's own name, without .gz.
    dimensions: how many axes it must have: 3 for images, 1 for labels.
    """
    with _faults_named(archive), zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            own = info.filename.rpartition("/")[2]
            if own in (name, f"{name}.gz"):
                _check_size(info, archive)
                with opened.open(info) as file:
                    return _unpacked_idx(file, own, dimensions, f"{info.filename} in {archive}")
    raise InputError(f"{archive} holds no {name} or {name}.gz; is it the archive in idx format?")


def _check_size(info: zipfile.ZipInfo, archive: Path) -> None:
    if info.file_size > LARGEST_BYTES:
        raise InputError(
            f"{info.filename} in {archive} claims {info.file_size / 2**30:.0f} GB unpacked, more "
            f"than the {LARGEST_BYTES / 2**30:.0f} GB read here; is it the right file?"
        )


def _unpacked_idx(file: IO[bytes], name: str, dimensions: int, where: str) -> NDArray[np.uint8]:
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
    if size > LARGEST_BYTES:
        raise InputError(f"{where} claims {size} bytes of content; is it the right file?")
    # One byte more than there should be, to see that nothing follows (and that gzip's checksum,
    # which stands at the end, is looked at).
    content = file.read(size + 1)
    if len(content) != size:
        fault = "is cut short" if len(content) < size else "goes on after its last entry"
        raise InputError(f"{where} {fault}: its header says {size} bytes follow; fetch it again")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays of an npz file, without reading any."""
    with _faults_named(path), zipfile.ZipFile(path) as archive:
        return list(_members(archive))


def read_npz(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Read some arrays of an npz file; arrays of Python objects are refused.

    path: the file.
    names: of the arrays, which it must have; no other is read.
    """
    with _faults_named(path), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        wanted = {name: members[name] for name in names}
        for info in wanted.values():
            _check_size(info, path)
        _check_total(wanted.values(), path)
        for info in wanted.values():
            _check_array(archive, info, path)
        return {name: _read_array(archive, info, path) for name, info in wanted.items()}


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the entries that are arrays, by the arrays' names."""
    return {
        info.filename.removesuffix(".npy"): info
        for info in archive.infolist()
        if info.filename.endswith(".npy")
    }


def _check_total(infos: Iterable[zipfile.ZipInfo], archive: Path) -> None:
    total = sum(info.file_size for info in infos)
    if total > LARGEST_BYTES:
        raise InputError(
            f"the arrays in {archive} claim {total / 2**30:.0f} GB unpacked together, more than "
            f"the {LARGEST_BYTES / 2**30:.0f} GB read here; is it the right file?"
        )


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> NDArray[Any]:
    try:
        with archive.open(info) as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array
    except ValueError as error:
        raise InputError(f"{path} is not a sound npz file ({error}); save it anew") from None


def _check_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    """Look at an array's header before numpy believes it and sets the memory aside."""
    with archive.open(info) as file:
        try:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            else:
                shape, _, dtype = np.lib.format.read_array_header_2_0(file)
            begin = file.tell()
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
            f"{info.filename} in {path} says shape {shape}, which is not what it holds; save it "
            "anew"
        )


def save_arrays(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]
) -> None:
    """Write arrays into an npz file, with notes as JSON beside them, replacing it in one step.

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
    file = existing_file(path)
    wanted = [
        name
        for name in npz_names(file)
        if name in (*needed, "notes") or (prefix is not None and name.startswith(prefix))
    ]
    arrays = read_npz(file, wanted)
    try:
        notes = json.loads(str(arrays.pop("notes")))
    except (KeyError, ValueError, RecursionError):
        notes = None
    if not isinstance(notes, dict) or any(key not in (arrays | notes) for key in needed):
        raise other_content(path, what)
    return arrays, notes


def other_content(path: str | Path, what: str) -> InputError:
    """Return the error of a file that does not hold what it should."""
    return InputError(f"{path} does not hold {what}; name a file that fedaccord wrote")
