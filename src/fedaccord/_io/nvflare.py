"""The JSON files that NVFlare writes: federated statistics and cross-site evaluations.

    statistics       {feature: {"count": {site: {data set: n}},
                                "histogram": {site: {data set: [[low, high, count], ...]}}}}
    cross validation {site that measured: {owner of the model: {metric: value}}}

Nothing here needs NVFlare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedaccord._checks import is_real
from fedaccord._io.files import read_json
from fedaccord._io.rows import Rows
from fedaccord.errors import InputError

# What NVFlare calls all sites together.
GLOBAL = "Global"
# Features that hold a label, and data sets to train on, where a file has several.
LABELS = ("label", "labels", "class", "target", "y")
TRAINING = ("train", "training")


@dataclass(frozen=True)
class Statistics:
    """Federated statistics of one feature.

    path: the file.
    sites: their names, sorted.
    feature: whose statistics these are.
    dataset: which of each site's data sets.
    counts: how many samples each site has of it.
    validation: how many it has in its other data set, where it has one other.
    labels: the bins of the histogram, by what they hold; none where it has no histogram.
    bins: how many samples of each label every site has; None for a site without a histogram.
    """

    path: str
    sites: tuple[str, ...]
    feature: str
    dataset: str
    counts: Mapping[str, float]
    validation: Mapping[str, float]
    labels: tuple[str, ...]
    bins: Mapping[str, list[float] | None]


def is_statistics(data: Mapping[str, Any]) -> bool:
    """Return whether JSON is of NVFlare's federated statistics."""
    return bool(data) and all(
        isinstance(one, dict) and ("count" in one or "histogram" in one) for one in data.values()
    )


def read_statistics(
    path: str | Path, *, feature: str | None = None, dataset: str | None = None
) -> Statistics:
    """Read a file of NVFlare's federated statistics.

    path: the file.
    feature: which; the only one, or the one that is called label, where left out.
    dataset: which; the only one, or the one that is called train, where left out.
    """
    return select_statistics(read_json(path), path, feature=feature, dataset=dataset)


def select_statistics(
    data: Mapping[str, Any],
    path: str | Path,
    *,
    feature: str | None = None,
    dataset: str | None = None,
) -> Statistics:
    """Select one feature of one data set; see read_statistics.

    data: what the file holds.
    """
    if not is_statistics(data):
        raise InputError(f"{path} is not a file of NVFlare's federated statistics")
    feature = _choose("feature", feature, list(data), LABELS, path)
    counts = _read_sites(data[feature].get("count", {}), "count", path)
    histograms = _read_sites(data[feature].get("histogram", {}), "histogram", path)
    sites = tuple(sorted({*counts, *histograms} - {GLOBAL}))
    every = [name for site in sites for part in (counts, histograms) for name in part.get(site, {})]
    if not every:
        raise InputError(f"{path} has no site with a data set of {feature}")
    dataset = _choose("data set", dataset, list(dict.fromkeys(every)), TRAINING, path)
    labels, bins = _read_bins({site: histograms.get(site, {}).get(dataset) for site in sites}, path)
    return Statistics(
        path=str(path),
        sites=sites,
        feature=feature,
        dataset=dataset,
        counts={site: _read_count(counts, site, dataset, bins[site], path) for site in sites},
        validation=_read_validation(counts, sites, dataset, path),
        labels=labels,
        bins=bins,
    )


def tabulate(found: Statistics) -> Rows:
    """Return statistics of NVFlare's as a table of label histograms: agent,label,count,validation.

    found: of the labels.
    """
    if not found.labels:
        raise InputError(
            f"{found.path} has no histogram of {found.feature} in {found.dataset}: add histogram "
            "to the statistics that NVFlare is to compute, with a bin for each label"
        )
    cells = [["agent", "label", "count", "validation"]]
    without = []
    for site in found.sites:
        numbers = found.bins[site]
        if numbers is None:
            without.append(site)
            continue
        tested = found.validation.get(site)
        last = "" if tested is None else str(int(tested))
        pairs = zip(found.labels, numbers, strict=True)
        cells += [[site, label, str(int(n)), last] for label, n in pairs]
    notes: tuple[str, ...] = (
        f"labels are the bins of {found.feature} in {found.dataset} of {found.path}",
    )
    if without:
        notes += (
            f"{', '.join(without)} has no histogram in {found.path}, perhaps because NVFlare's "
            "privacy filters removed it, and is left out",
        )
    return Rows(found.path, list(range(1, len(cells) + 1)), cells, notes=notes)


def is_cross_validation(data: Mapping[str, Any]) -> bool:
    """Return whether JSON is of NVFlare's cross-site evaluation: metrics by site and model."""
    rows = list(data.values())
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        return False
    cells = [cell for row in rows for cell in row.values()]
    # Of some clients NVFlare writes a bare number.
    metrics = [cell.values() if isinstance(cell, dict) else [cell] for cell in cells]
    return not any(isinstance(value, dict | list) for some in metrics for value in some)


def find_statistics(text: str, path: str | Path) -> Rows | None:
    """Return the label histograms in JSON, or None if it is not of NVFlare's statistics.

    text: the JSON, or what should be.
    path: the file that it is from.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    if is_cross_validation(data):
        raise InputError(
            f"{path} is a cross-site evaluation of NVFlare: 'fedaccord pilots AGENTS --nvflare "
            f"{path}' makes pilots of it, where AGENTS says how many samples each site has"
        )
    return tabulate(select_statistics(data, path)) if is_statistics(data) else None


def _choose(
    what: str, wanted: str | None, found: list[str], usual: tuple[str, ...], path: str | Path
) -> str:
    if wanted is not None:
        if wanted not in found:
            raise InputError(f"{path} has no {what} {wanted!r}; it has {', '.join(found)}")
        return wanted
    chosen = found if len(found) == 1 else [name for name in found if name.casefold() in usual]
    if len(chosen) != 1:
        raise InputError(
            f"{path} has the {what}s {', '.join(found)}, and it is not clear which to take: read "
            f"it in Python with {what.replace(' ', '')}=..., or keep one {what} in the file"
        )
    return chosen[0]


def _read_sites(value: Any, what: str, path: str | Path) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        raise InputError(f"the {what} in {path} is not one per site and data set")
    return value


def _read_number(value: Any, what: str, path: str | Path) -> float:
    if not (is_real(value) and math.isfinite(value) and value >= 0 and value == int(value)):
        raise InputError(f"{what} in {path} is {value!r}; it must be a number of samples")
    return float(value)


def _read_count(
    counts: Mapping[str, Any],
    site: str,
    dataset: str,
    bins: list[float] | None,
    path: str | Path,
) -> float:
    given = counts.get(site, {}).get(dataset)
    if given is None and bins is not None:
        return sum(bins)
    return _read_number(given, f"the count of {site}", path)


def _read_validation(
    counts: Mapping[str, Any], sites: tuple[str, ...], dataset: str, path: str | Path
) -> dict[str, float]:
    found = {}
    for site in sites:
        others = [name for name in counts.get(site, {}) if name != dataset]
        if len(others) == 1:
            what = f"the count of {site}"
            found[site] = _read_number(counts[site][others[0]], what, path)
    return found


def _read_bins(
    histograms: Mapping[str, Any], path: str | Path
) -> tuple[tuple[str, ...], dict[str, list[float] | None]]:
    """Return what the bins hold, and how many samples of each every site has."""
    edges: list[tuple[float, float]] | None = None
    bins: dict[str, list[float] | None] = {}
    for site, given in histograms.items():
        if given is None:
            bins[site] = None
            continue
        if not isinstance(given, list) or not all(
            isinstance(one, list) and len(one) == 3 and all(map(is_real, one)) for one in given
        ):
            raise InputError(
                f"the histogram of {site} in {path} is not a list of [low, high, count]"
            )
        own = [(float(low), float(high)) for low, high, _ in given]
        if edges is not None and own != edges:
            raise InputError(
                f"the histogram of {site} in {path} has other bins than the others: let NVFlare "
                "use one range for all sites"
            )
        edges = own
        bins[site] = [_read_number(n, f"a count of {site}", path) for _, _, n in given]
    return _name_bins(edges or []), bins


def _name_bins(edges: list[tuple[float, float]]) -> tuple[str, ...]:
    """Return the one whole number of each bin, or their ranges if some have none or several."""
    # The last bin holds its upper end too, but that is the first number of no other.
    whole = [math.ceil(low) for low, _ in edges]
    if all(low <= n < high <= n + 1 for n, (low, high) in zip(whole, edges, strict=True)):
        return tuple(map(str, whole))
    return tuple(f"{low:g} to {high:g}" for low, high in edges)


def read_cross_validation(
    path: str | Path, metric: str | None = None
) -> tuple[str, tuple[str, ...], dict[str, dict[str, float]]]:
    """Return the metric, the sites, and by the owner of a model what each site measured of it.

    path: a cross_val_results.json of NVFlare's.
    metric: which; the only one, or the one that is called accuracy, where left out.
    """
    data = read_json(path)
    if not is_cross_validation(data):
        raise InputError(f"{path} is not a cross-site evaluation of NVFlare")
    cells = {
        site: {
            owner: found if isinstance(found, dict) else {"accuracy": found}
            for owner, found in row.items()
        }
        for site, row in data.items()
    }
    names = dict.fromkeys(n for row in cells.values() for found in row.values() for n in found)
    if not names:
        raise InputError(f"{path} has no metric of any model")
    metric = _choose("metric", metric, list(names), ("accuracy",), path)
    table: dict[str, dict[str, float]] = {}
    for site, row in cells.items():
        for owner, found in row.items():
            value = found.get(metric, math.nan)
            if not is_real(value):
                raise InputError(
                    f"the {metric} of the model of {owner} at {site} in {path} is {value!r}, and "
                    "not a number"
                )
            table.setdefault(owner, {})[site] = float(value)
    return metric, tuple(sorted(data)), table
