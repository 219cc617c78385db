"""Where data files lie, and EMNIST and Fashion-MNIST in idx files: plain, gzipped, in a zip."""

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
from fedaccord._io.npz import check_size, list_npz, name_damage, read_npz
from fedaccord.errors import InputError
from fedaccord.federation.data.dataset import Dataset

FOLDER = "FEDACCORD_DATA"
# The 47 classes of the balanced split, in the order of its labels.
EMNIST_CLASSES = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt")
FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
# Where Debian's package dataset-fashion-mnist puts the files.
FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")


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
    """Read an idx file of bytes, gzipped if its name ends in .gz."""
    with name_damage(path), path.open("rb") as file:
        return _unpack_idx(file, path.name, dimensions, str(path))


def read_idx_from_zip(archive: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file, maybe gzipped, that lies in some folder of a zip archive."""
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
        raise InputError(f"{where} is cut short; download it again")
    shape = tuple(int(size) for size in np.frombuffer(header, dtype=">u4", offset=4))
    size = math.prod(shape)
    if size > npz.LARGEST_BYTES:
        raise InputError(f"{where} claims {size} bytes of content; is it the right file?")
    # One byte more than there should be, to see that nothing follows (and that gzip's checksum,
    # which stands at the end, is looked at).
    content = file.read(size + 1)
    if len(content) != size:
        fault = "is cut short" if len(content) < size else "goes on after its last entry"
        raise InputError(f"{where} {fault}: its header says {size} bytes follow; download it again")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def load_emnist(path: str | Path | None) -> Dataset:
    """Read EMNIST's balanced split, with its images as NIST has them: lying on their side.

    Transpose the last two axes to see them upright; a network does not mind.
    """
    names = [f"emnist-balanced-{part}-{{}}-ubyte" for part in ("train", "test")]
    found = _find_data(path, "emnist", names[0].format("images-idx3"), ("gzip.zip", "emnist47.npz"))
    if found is None:
        raise InputError(
            f"EMNIST is not {f'at {path}' if path else 'installed'}: download gzip.zip from "
            "https://www.nist.gov/itl/products-and-services/emnist-dataset and give its place as "
            f"path, or put it into the folder that {FOLDER} names"
        )
    where = f"emnist ({found.name})"
    if found.suffix == ".npz":
        from fedaccord.federation.data.table import INPUT_KEYS, LABEL_KEYS, choose_array

        names = list_npz(found)
        images, labels = (choose_array(names, keys, found) for keys in (INPUT_KEYS, LABEL_KEYS))
        content = read_npz(found, (images, labels))
        return Dataset(content[images], content[labels], classes=EMNIST_CLASSES, source=where)
    return _from_idx(found, names, EMNIST_CLASSES, where)


def load_fashion(path: str | Path | None) -> Dataset:
    """Read Fashion-MNIST, where Debian's package puts it unless a path is given."""
    names = [f"{part}-{{}}-ubyte" for part in ("train", "t10k")]
    first = names[0].format("images-idx3")
    found = _find_data(path, "fashion-mnist", first, ())
    if found is None and path is None:
        found = _find_data(FASHION_FOLDER, "fashion-mnist", first, ())
    if found is None:
        raise InputError(
            f"Fashion-MNIST is not {f'at {path}' if path else 'installed'}: apt install "
            f"dataset-fashion-mnist (on Debian), or put {first}.gz and its three companions from "
            "https://github.com/zalandoresearch/fashion-mnist into a folder and give that as path"
        )
    return _from_idx(found, names, FASHION_CLASSES, "fashion-mnist")


def _find_data(
    path: str | Path | None, name: str, first: str, archives: tuple[str, ...]
) -> Path | None:
    """Find an archive, or the folder with the idx files of which `first` is one."""
    if path is None and not os.environ.get(FOLDER):
        return None
    start = find_path(path if path is not None else os.environ[FOLDER])
    if start is None or start.is_file():
        return start
    for folder in (start, start / name, start / "gzip", start / name / "gzip"):
        if any((folder / f"{first}{suffix}").is_file() for suffix in ("", ".gz")):
            return folder
        for archive in archives:
            if (folder / archive).is_file():
                return folder / archive
    return None


def _from_idx(place: Path, names: list[str], classes: tuple[str, ...], source: str) -> Dataset:
    """Read pairs of images and labels, from a zip archive or a folder, one after the other."""
    pairs = []
    for name in names:
        images, labels = (
            read_idx_from_zip(place, name.format(kind), dimensions)
            if place.is_file()
            else read_idx(_find_either(place, name.format(kind)), dimensions)
            for kind, dimensions in (("images-idx3", 3), ("labels-idx1", 1))
        )
        if len(images) != len(labels):
            raise InputError(
                f"{name.format('images-idx3')} in {place} has {len(images)} images and "
                f"{name.format('labels-idx1')} {len(labels)} labels; download both again"
            )
        pairs.append((images, labels))
    if len({images.shape[1:] for images, _ in pairs}) > 1:
        raise InputError(f"the images in {place} are not all of one size; download them again")
    inputs, labels = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return Dataset(inputs, labels, classes=classes, source=source)


def _find_either(folder: Path, name: str) -> Path:
    plain, packed = folder / name, folder / f"{name}.gz"
    if not (plain.is_file() or packed.is_file()):
        raise InputError(f"{folder} lacks {name}.gz; put it into the same folder as the others")
    return plain if plain.is_file() else packed
