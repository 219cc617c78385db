"""Data that federations are made of, and how a network is given them."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.federation.training.rng import stream

MOST_CLASSES = 10_000
# Images of bytes become (x / 255 - SHIFT) / SCALE: MNIST's mean and deviation, fixed so that
# weights which were trained before fit every later deal; the paper's authors use the same.
SHIFT, SCALE = 0.1307, 0.3081


# More sites than this are not listed in a sentence.
LISTED = 12


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name: what it is called.
    levels: the texts that occur in a text column, whose cells hold their places in this list;
        None for numbers.
    gaps: whether any value is missing (NaN) in the whole table.
    """

    name: str
    levels: tuple[str, ...] | None = None
    gaps: bool = False

    @property
    def features(self) -> int:
        """How many numbers a network is given for a cell."""
        return 1 + self.gaps if self.levels is None else len(self.levels)


def prepared_shape(shape: tuple[int, ...], columns: tuple[Column, ...] | None) -> tuple[int, ...]:
    """Return the shape in which a network is given one point.

    It depends on the whole data set and not on which points train, so that one network fits
    every split.
    """
    if columns is not None:
        return (sum(column.features for column in columns),)
    return (1, *shape) if len(shape) == 2 else shape


@dataclass(frozen=True, eq=False)
class Preparation:
    """How raw points become a network's inputs.

    Images get a channel axis; bytes are scaled by constants to about mean 0 and standard
    deviation 1, floats stay as they are.
    In a table a missing number is replaced by the column's median and a further feature says that
    it was missing; numbers are then shifted and scaled to mean 0 and standard deviation 1; a text
    becomes one feature per level, all zero where it is missing.

    columns: the columns of a table; None for images.
    medians, means, deviations: one per column, from training points; empty for images.
    """

    columns: tuple[Column, ...] | None
    medians: Vector
    means: Vector
    deviations: Vector

    @classmethod
    def fit(cls, inputs: NDArray[Any], columns: tuple[Column, ...] | None) -> Preparation:
        """Take medians, means and deviations from training points, which alone may be given.

        inputs: the raw training points, of all clients together.
        columns: the columns of a table; None for images.
        """
        if columns is None:
            nothing = frozen(np.empty(0))
            return cls(None, nothing, nothing, nothing)
        if len(inputs) == 0:
            raise InputError("there are no training samples to compute medians and scales from")
        values = np.asarray(inputs, dtype=np.float64)
        # A column of which the training points know nothing is filled with zeros: no information.
        known = ~np.isnan(values)
        medians = np.array(
            [np.median(v[k]) if k.any() else 0.0 for v, k in zip(values.T, known.T, strict=True)]
        )
        filled = np.where(known, values, medians)
        deviations = filled.std(axis=0)
        deviations[deviations < 1e-12 * np.maximum(1, np.abs(medians))] = 1.0
        return cls(columns, frozen(medians), frozen(filled.mean(axis=0)), frozen(deviations))

    def apply(self, inputs: NDArray[Any]) -> NDArray[np.float32]:
        """Turn raw points into a network's inputs."""
        if self.columns is None:
            pixels = inputs.astype(np.float32)
            if inputs.dtype == np.uint8:
                pixels = (pixels / np.float32(255) - np.float32(SHIFT)) / np.float32(SCALE)
            return pixels.reshape(len(inputs), *prepared_shape(inputs.shape[1:], None))
        values = np.asarray(inputs, dtype=np.float64)
        features: list[NDArray[Any]] = []
        for place, column in enumerate(self.columns):
            cells = values[:, place]
            missing = np.isnan(cells)
            if column.levels is not None:
                features.extend(cells == level for level in range(len(column.levels)))
                continue
            filled = np.where(missing, self.medians[place], cells)
            features.append((filled - self.means[place]) / self.deviations[place])
            if column.gaps:
                features.append(missing)
        return np.stack(features, axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled points, as they were read.

    inputs: images, shape (N, height, width) or (N, channels, height, width), in bytes or floats;
        or a table, shape (N, columns), with NaN for missing values.
    labels: the class of every point, 0 to len(classes) - 1; or an amount; or a time, and 1 if the
        event took place then or 0 if it had not.
    classes: what the classes are called.
    source: where the points come from, in a few words.
    sites: the place of every point's site in site_names; None without sites.
    site_names: what the sites are called.
    columns: what the columns of a table are; made up where left out.
    kind: what the labels are: "classes", "amounts" or "times".
    """

    inputs: NDArray[Any]
    labels: NDArray[Any]
    classes: tuple[str, ...]
    source: str
    sites: NDArray[np.int64] | None
    site_names: tuple[str, ...]
    columns: tuple[Column, ...] | None
    kind: str

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
        kind: str = "classes",
    ) -> None:
        points = _read_inputs(np.asarray(inputs), source)
        named: tuple[str, ...] = ()
        if kind == "classes":
            named, numbers = _read_labels(np.asarray(labels), classes, len(points), source)
        else:
            numbers = np.array(labels, dtype=np.float64)
        if kind == "classes" and len(named) < 2:
            raise InputError(f"all samples of {source} have one label; there is nothing to learn")
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
        object.__setattr__(self, "kind", kind)
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

    @property
    def strata(self) -> NDArray[np.int64]:
        """What splits keep in proportion: the classes, or of times whether the event took place."""
        if self.kind == "classes":
            return np.asarray(self.labels)
        events = self.labels[:, 1] if self.kind == "times" else np.zeros(len(self))
        return events.astype(np.int64)

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

    def take_sites(self, names: Sequence[str]) -> Dataset:
        """Return the points of some sites, which are then the only sites."""
        for name in names:
            if name not in self.site_names:
                known = ", ".join(self.site_names[:LISTED]) or "none"
                raise InputError(
                    f"{self.source} has no site {name!r}; its sites are {known}"
                    f"{', ...' if len(self.site_names) > LISTED else ''}"
                )
        assert self.sites is not None
        chosen = [self.site_names.index(name) for name in sorted(names)]
        indices = np.flatnonzero(np.isin(self.sites, chosen))
        taken = self.take(indices)
        renumbered = np.searchsorted(np.array(sorted(chosen)), self.sites[indices])
        kept = [self.site_names[n] for n in sorted(chosen)]
        object.__setattr__(taken, "sites", frozen(renumbered))
        object.__setattr__(taken, "site_names", tuple(kept))
        return taken

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
            kind=self.kind,
        )

    def split(self, *sizes: int, seed: int = 0, rest: bool = True) -> tuple[Dataset, ...]:
        """Deal the points at random into disjoint pools of the given sizes; the last has the rest.

        sizes: how many points each pool but the last is to have.
        seed: which of the possible divisions.
        rest: whether there is to be that last pool; False leaves out the points it would have.
        """
        if any(size < 1 for size in sizes) or sum(sizes) + rest > len(self):
            wanted = " + ".join(f"{size:,}" for size in sizes) + " samples" + " and a rest" * rest
            raise InputError(
                f"pools of {wanted} cannot be taken from {len(self):,} samples; use smaller pools, "
                "each of at least one sample"
            )
        order = stream(seed, "pools").permutation(len(self))
        parts = np.split(order, np.cumsum(sizes))
        return tuple(self.take(np.sort(part)) for part in (parts if rest else parts[:-1]))


def _read_inputs(inputs: NDArray[Any], source: str) -> NDArray[Any]:
    if not 2 <= inputs.ndim <= 4 or 0 in inputs.shape:
        raise InputError(
            f"inputs of {source} must be a table (samples x columns) or images (samples x height x "
            "width, or samples x channels x height x width), at least one; got shape "
            f"{inputs.shape}"
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
        raise InputError(f"sample {place} of {source} has a value that is {what}; leave it out")
    return values


def _read_labels(
    labels: NDArray[Any], classes: Sequence[str] | None, points: int, source: str
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Number the labels (or sites, for which source is empty) and name the numbers."""
    what, of = ("labels", f" of {source}") if source else ("sites", "")
    if labels.shape != (points,):
        raise InputError(
            f"{what}{of} must be one per sample: there are {points} samples and the {what} have "
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
    if (
        labels.dtype.kind == "f"
        and (odd := ~np.isfinite(labels) | (labels != labels.round())).any()
    ):
        place = int(odd.argmax())
        raise InputError(
            f"the label of sample {place}{of} is {labels[place]}; give whole numbers or texts, or "
            "label_above to tell large values from small ones"
        )
    if labels.dtype.kind not in "uibf":
        raise InputError(f"{what}{of} must be whole numbers or texts; got {labels.dtype}")
    least, most = int(labels.min()), int(labels.max())
    limit = MOST_CLASSES if classes is None else len(classes)
    if least < 0 or most >= limit:
        place = int(labels.argmax() if most >= limit else labels.argmin())
        raise InputError(
            f"the {what[:-1]} of sample {place}{of} is {labels[place]}; it must lie in 0 to "
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
    sites: Sequence[str] = (),
    event: str | None = None,
    amounts: bool = False,
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
    sites: the sites to keep; all where left out.
    event: of a CSV file, the column that says whether an event took place at the time that is the
        label, 1, or had not by then, 0.
    amounts: whether the label is an amount, to be learned as a number.
    """
    numbers = event is not None or amounts
    if numbers and (label_above is not None or not source.lower().endswith(".csv")):
        raise InputError("amounts and times are read from a CSV file, without label_above")
    whole = _load_whole(source, path, label, site, label_above, categories, without, event, amounts)
    return whole.take_sites(sites) if sites else whole


def _load_whole(
    source: str,
    path: str | Path | None,
    label: str | None,
    site: str | None,
    label_above: float | None,
    categories: Sequence[str],
    without: Sequence[str],
    event: str | None,
    amounts: bool,
) -> Dataset:
    """Read a data set with all of its sites."""
    kind = Path(source).suffix.lower()
    if path is not None and kind in (".npz", ".csv"):
        raise InputError(f"give {source} or path={path}, not both")
    if kind in (".npz", ".csv"):
        from fedaccord.federation.data.table import load_csv, load_npz

        if kind == ".csv":
            return load_csv(
                source, label, site, label_above, categories, without, event=event, amounts=amounts
            )
        if categories or without:
            raise InputError(f"{source} has no named columns to leave out or to read as kinds")
        return load_npz(source, label, site, label_above)
    if label is not None or site is not None or label_above is not None or categories or without:
        raise InputError(f"labels and columns can be chosen in npz and CSV files, not in {source}")
    if source == "digits":
        return _load_digits()
    if source in ("emnist", "fashion-mnist"):
        from fedaccord.federation.data.idx import load_emnist, load_fashion

        return load_emnist(path) if source == "emnist" else load_fashion(path)
    raise InputError(
        f'{source!r} is not a known data set: use "digits", "emnist", "fashion-mnist", or the name '
        "of a file that ends in .npz or .csv"
    )


def _load_digits() -> Dataset:
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise MissingExtraError("scikit-learn", "train")
    # What sklearn.datasets.load_digits reads. To import scikit-learn takes longer than all else.
    file = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(file, delimiter=",", dtype=np.int64)
    # Its pixels count dark dots, 0 to 16.
    images = table[:, :-1].reshape(-1, 8, 8).astype(np.float32) / np.float32(16)
    return Dataset(images, table[:, -1], classes=tuple("0123456789"), source="digits")
