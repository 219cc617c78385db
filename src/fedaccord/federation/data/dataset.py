"""Data that federations are made of: digits, EMNIST, Fashion-MNIST, npz files and CSV tables."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import Indices, frozen
from fedaccord._io.csv import Sheet
from fedaccord._io.npz import list_npz, read_npz
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.federation.data.idx import (
    FOLDER,
    find_file,
    find_path,
    read_idx,
    read_idx_from_zip,
)
from fedaccord.federation.data.preprocessing import Column, prepared_shape
from fedaccord.federation.data.table import read_full_column, read_table, read_table_inputs
from fedaccord.federation.training.rng import stream

# The 47 classes of the balanced split, in the order of its labels.
EMNIST_CLASSES = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt")
FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
# Where Debian's package dataset-fashion-mnist puts the files.
FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")
MOST_CLASSES = 10_000


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled points, as they were read.

    inputs: images, shape (N, height, width) or (N, channels, height, width), in bytes or floats;
        or a table, shape (N, columns), with NaN for missing values.
    labels: the class of every point, 0 to len(classes) - 1.
    classes: what the classes are called.
    source: where the points come from, in a few words.
    sites: the place of every point's site in site_names; None without sites.
    site_names: what the sites are called.
    columns: what the columns of a table are; made up where left out.
    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    source: str
    sites: NDArray[np.int64] | None
    site_names: tuple[str, ...]
    columns: tuple[Column, ...] | None

    def __init__(
        self,
        inputs: ArrayLike,
        labels: ArrayLike,
        *,
        classes: Sequence[str] | None = None,
        source: str = "arrays",
        sites: ArrayLike | None = None,
        site_names: Sequence[str] = (),
        columns: Sequence[Column] | None = None,
    ) -> None:
        points = _read_inputs(np.asarray(inputs), source)
        named, numbers = _read_labels(np.asarray(labels), classes, len(points), source)
        if len(named) < 2:
            raise InputError(f"all points of {source} have one label; there is nothing to learn")
        places = None
        if sites is not None:
            names, places = _read_labels(np.asarray(sites), site_names or None, len(points), "")
            site_names = names
        if points.ndim == 2 and columns is None:
            gaps = np.isnan(points).any(axis=0)
            columns = [Column(f"column {n}", gaps=bool(g)) for n, g in enumerate(gaps)]
        object.__setattr__(self, "inputs", frozen(points))
        object.__setattr__(self, "labels", frozen(numbers))
        object.__setattr__(self, "classes", named)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "sites", None if places is None else frozen(places))
        object.__setattr__(self, "site_names", tuple(site_names))
        object.__setattr__(self, "columns", None if columns is None else tuple(columns))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        sites = f", {len(self.site_names)} sites" if self.sites is not None else ""
        return f"Dataset({len(self)} points, {len(self.classes)} classes{sites}, {self.source})"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape in which a network is given one point."""
        return prepared_shape(self.inputs.shape[1:], self.columns)

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of inputs, labels and sites, whatever file they came from."""
        digest = hashlib.sha256()
        for array in (self.inputs, self.labels, self.sites):
            if array is not None:
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the data's provenance, without the data."""
        return {
            "source": self.source,
            "sha256": self.sha256,
            "points": len(self),
            "classes": list(self.classes),
            "sites": list(self.site_names),
        }

    def take(self, indices: Indices) -> Dataset:
        """Return some of the points as a data set of its own."""
        return Dataset(
            self.inputs[indices],
            self.labels[indices],
            classes=self.classes,
            source=self.source,
            sites=None if self.sites is None else self.sites[indices],
            site_names=self.site_names,
            columns=self.columns,
        )

    def split(self, *sizes: int, seed: int = 0, rest: bool = True) -> tuple[Dataset, ...]:
        """Deal the points at random into disjoint pools of the given sizes; the last has the rest.

        sizes: how many points each pool but the last is to have.
        seed: which of the possible divisions.
        rest: whether there is to be that last pool; False leaves out the points it would have.
        """
        if any(size < 1 for size in sizes) or sum(sizes) + rest > len(self):
            wanted = " + ".join(f"{size:,}" for size in sizes) + " points" + " and a rest" * rest
            raise InputError(
                f"pools of {wanted} cannot be dealt from {len(self):,} points; ask for smaller "
                "ones, each of at least one point"
            )
        order = stream(seed, "pools").permutation(len(self))
        parts = np.split(order, np.cumsum(sizes))
        return tuple(self.take(np.sort(part)) for part in (parts if rest else parts[:-1]))


def _read_inputs(inputs: NDArray[Any], source: str) -> NDArray[Any]:
    if not 2 <= inputs.ndim <= 4 or 0 in inputs.shape:
        raise InputError(
            f"inputs of {source} must be a table (points x columns) or images (points x height x "
            f"width, or points x channels x height x width), at least one; got shape {inputs.shape}"
        )
    if inputs.dtype.kind not in "uifb":
        raise InputError(f"inputs of {source} must be numbers; got {inputs.dtype}")
    if inputs.dtype == np.uint8 and inputs.ndim > 2:
        return np.array(inputs)
    if inputs.dtype.kind in "ui" and inputs.ndim > 2:
        if inputs.min() < 0 or inputs.max() > 255:
            raise InputError(
                f"images of whole numbers in {source} must lie in 0 to 255; they go from "
                f"{inputs.min()} to {inputs.max()}: rescale them"
            )
        return inputs.astype(np.uint8)
    with np.errstate(over="ignore"):
        values = np.array(inputs, dtype=np.float32)
    bad = np.isinf(values) if inputs.ndim == 2 else ~np.isfinite(values)
    if bad.any():
        place = int(np.argwhere(bad)[0][0])
        what = "infinite or too large" if inputs.ndim == 2 else "not a finite number"
        raise InputError(f"point {place} of {source} has a value that is {what}; leave it out")
    return values


def _read_labels(
    labels: NDArray[Any], classes: Sequence[str] | None, points: int, source: str
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Number the labels (or sites, for which source is empty) and name the numbers."""
    what, of = ("labels", f" of {source}") if source else ("sites", "")
    if labels.shape != (points,):
        raise InputError(
            f"{what}{of} must be one per point: there are {points} points and the {what} have "
            f"shape {labels.shape}"
        )
    if labels.dtype.kind in "US":
        names, numbers = np.unique(labels.astype(str), return_inverse=True)
        if classes is None:
            return tuple(str(name) for name in names), numbers.astype(np.int64)
        known = {str(name): n for n, name in enumerate(classes)}
        for name in names:
            if name not in known:
                raise InputError(
                    f"{str(name)!r} among the {what}{of} is none of {', '.join(known)}"
                )
        return tuple(known), np.array([known[name] for name in names], dtype=np.int64)[numbers]
    whole = labels.dtype.kind in "uib"
    if labels.dtype.kind == "f" and not (whole := bool(np.all(labels == np.floor(labels)))):
        place = int(np.argwhere(labels != np.floor(labels))[0][0])
        raise InputError(
            f"the label of point {place}{of} is {labels[place]}; give whole numbers or texts, or "
            "label_above to tell large values from small ones"
        )
    if not whole:
        raise InputError(f"{what}{of} must be whole numbers or texts; got {labels.dtype}")
    least, most = int(labels.min()), int(labels.max())
    limit = MOST_CLASSES if classes is None else len(classes)
    if least < 0 or most >= limit:
        place = int(labels.argmax() if most >= limit else labels.argmin())
        raise InputError(
            f"the {what[:-1]} of point {place}{of} is {labels[place]}; it must lie in 0 to "
            f"{limit - 1}"
        )
    named = tuple(map(str, classes if classes is not None else range(most + 1)))
    return named, labels.astype(np.int64)


def load_data(
    source: str = "digits",
    *,
    path: str | Path | None = None,
    label: str | None = None,
    site: str | None = None,
    label_above: float | None = None,
    categories: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Dataset:
    """Read a data set; files are looked for in the folder FEDACCORD_DATA too.

    source: "digits", "emnist" (whose images lie on their side, as NIST has them),
        "fashion-mnist", or the name of an npz or CSV file.
    path: where emnist or fashion-mnist lies, if not where it is looked for.
    label: the column of a CSV file (or array of an npz file) that is to be learned.
    site: the column or array that says whose point it is.
    label_above: learn whether the label is above this number, instead of the label itself.
    categories: columns of numbers that stand for kinds rather than amounts.
    without: columns to leave out.
    """
    kind = Path(source).suffix.lower()
    if path is not None and kind in (".npz", ".csv"):
        raise InputError(f"give {source} or path={path}, not both")
    if kind == ".csv":
        return _load_csv(source, label, site, label_above, categories, without)
    if kind == ".npz":
        if categories or without:
            raise InputError(f"{source} has no named columns to leave out or to read as kinds")
        return _load_npz(source, label, site, label_above)
    if label is not None or site is not None or label_above is not None or categories or without:
        raise InputError(f"labels and columns can be chosen in npz and CSV files, not in {source}")
    if source == "digits":
        return _load_digits()
    if source == "emnist":
        return _load_emnist(path)
    if source == "fashion-mnist":
        return _load_fashion(path)
    raise InputError(
        f'{source!r} is no known data: give "digits", "emnist", "fashion-mnist", or the name of a '
        "file that ends in .npz or .csv"
    )


def _load_digits() -> Dataset:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtraError("scikit-learn", "train") from None
    digits = load_digits()
    # Its pixels count dark dots, 0 to 16.
    images = digits.images.astype(np.float32) / np.float32(16)
    return Dataset(images, digits.target, classes=tuple("0123456789"), source="digits")


def _load_emnist(path: str | Path | None) -> Dataset:
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
        names = list_npz(found)
        images, labels = (_choose(names, keys, found) for keys in (INPUT_KEYS, LABEL_KEYS))
        content = read_npz(found, (images, labels))
        return Dataset(content[images], content[labels], classes=EMNIST_CLASSES, source=where)
    return _from_idx(found, names, EMNIST_CLASSES, where)


def _load_fashion(path: str | Path | None) -> Dataset:
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
                f"{name.format('labels-idx1')} {len(labels)} labels; fetch both again"
            )
        pairs.append((images, labels))
    if len({images.shape[1:] for images, _ in pairs}) > 1:
        raise InputError(f"the images in {place} are not all of one size; fetch them again")
    inputs, labels = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return Dataset(inputs, labels, classes=classes, source=source)


def _find_either(folder: Path, name: str) -> Path:
    plain, packed = folder / name, folder / f"{name}.gz"
    if not (plain.is_file() or packed.is_file()):
        raise InputError(f"{folder} lacks {name}.gz; put it beside the others")
    return plain if plain.is_file() else packed


INPUT_KEYS = ("images", "inputs", "x", "X")
LABEL_KEYS = ("labels", "y")
SITE_KEYS = ("sites", "site")


def _choose(names: Sequence[str], keys: Sequence[str], path: Path) -> str:
    """Return the first of some keys that an npz file has an array of."""
    for key in keys:
        if key in names:
            return key
    raise InputError(
        f"{path} has no array {' or '.join(keys)}; its arrays are {', '.join(names) or 'none'}"
    )


def _load_npz(
    source: str, label: str | None, site: str | None, label_above: float | None
) -> Dataset:
    path = find_file(source)
    there = list_npz(path)
    wanted = {"labels": _choose(there, (label,) if label else LABEL_KEYS, path)}
    if site is not None or any(key in there for key in SITE_KEYS):
        wanted["sites"] = _choose(there, (site,) if site else SITE_KEYS, path)
    wanted["inputs"] = _choose(there, INPUT_KEYS, path)
    if "classes" in there and label_above is None:
        wanted["classes"] = "classes"
    arrays = read_npz(path, wanted.values())
    content = {part: arrays[name] for part, name in wanted.items()}
    labels, classes = content["labels"], content.get("classes")
    names = None if classes is None else [str(name) for name in classes.ravel()]
    if label_above is not None:
        labels, names = _split_labels(labels, label_above, label or "label", path)
    return Dataset(
        content["inputs"], labels, classes=names, source=path.name, sites=content.get("sites")
    )


def _split_labels(
    labels: NDArray[Any], level: float, name: str, path: str | Path
) -> tuple[NDArray[Any], list[str]]:
    if not math.isfinite(level):
        raise InputError(f"label_above must be a finite number; got {level}")
    if labels.dtype.kind not in "uif":
        raise InputError(f"label_above needs labels that are numbers; {name} of {path} are not")
    if np.isnan(labels).any():
        place = int(np.flatnonzero(np.isnan(labels))[0])
        raise InputError(
            f"the label of point {place} of {path} is nan: fill it in or leave the point out"
        )
    above = labels > level
    if above.all() or not above.any():
        low, high = labels.min(), labels.max()
        raise InputError(
            f"label_above = {level:g} gives all points of {path} one label, for {name} goes from "
            f"{low:g} to {high:g}; there is nothing to learn"
        )
    return above.astype(np.int64), [f"{name} <= {level:g}", f"{name} > {level:g}"]


def _load_csv(
    source: str,
    label: str | None,
    site: str | None,
    label_above: float | None,
    categories: Sequence[str],
    without: Sequence[str],
) -> Dataset:
    path = find_file(source)
    table = read_table(path, label or "")
    if label is None:
        raise InputError(
            f"say which column of {source} is to be learned (label); its columns are "
            f"{', '.join(table.columns)}"
        )
    if site == label:
        raise InputError(f"{label} of {source} cannot be both the label and the site; name another")
    labels, classes = _csv_labels(table, label, label_above)
    sites = None if site is None else np.array(read_full_column(table, site, "site"))
    used = [label, *([] if site is None else [site]), *without]
    for name in without:
        if name not in table.cells:
            raise InputError(
                f"{path} has no column {name!r} to leave out; its columns are "
                f"{', '.join(table.columns)}"
            )
    inputs, columns = read_table_inputs(table, used, categories)
    return Dataset(inputs, labels, classes=classes, source=path.name, sites=sites, columns=columns)


def _csv_labels(table: Sheet, name: str, level: float | None) -> tuple[NDArray[Any], list[str]]:
    """Number the labels in their order: as numbers if all are, otherwise as texts."""
    cells, path = read_full_column(table, name, "label"), table.path
    for line, cell in zip(table.lines, cells, strict=True):
        if cell.lower() in ("nan", "inf", "-inf"):
            raise InputError(
                f"line {line} of {path} has the label {cell}: fill it in or leave the line out"
            )
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError:
        values = np.array(cells)
    if level is not None:
        return _split_labels(values, level, name, path)
    distinct, numbers = np.unique(values, return_inverse=True)
    if len(distinct) > max(20, len(cells) // 10) and values.dtype.kind == "f":
        raise InputError(
            f"column {name} of {path} has {len(distinct)} different values, so it is an amount and "
            "not a class; give label_above to learn whether it is above some value"
        )
    return numbers.astype(np.int64), [
        f"{value:g}" if values.dtype.kind == "f" else str(value) for value in distinct
    ]
