"""Files that NVFlare writes, read as pilots and as label histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from fedaccord._io import nvflare
from fedaccord.errors import InputError
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.pilots import PilotTable
from fedaccord.measurement.to_run import Members
from fedaccord.wording import count


def read_nvflare_statistics(
    path: str | Path, *, feature: str | None = None, dataset: str | None = None
) -> Histograms:
    """Read federated statistics of NVFlare's as label histograms.

    path: the JSON file that NVFlare wrote.
    feature: the one that holds the label; the only one, or the one that is called label, where left
        out.
    dataset: the one to train on; the only one, or the one that is called train, where left out.
    """
    found = nvflare.read_statistics(path, feature=feature, dataset=dataset)
    return Histograms.from_rows(nvflare.tabulate(found))


def read_nvflare_pilots(
    path: str | Path,
    samples: Members | Mapping[str, float] | str | Path,
    *,
    metric: str | None = None,
) -> PilotTable:
    """Read a cross-site evaluation of NVFlare as pilots.

    The model of a site is a pilot to which that site alone gave its samples, and the server's model
    one to which all did. NVFlare does not write how models were trained, so this is assumed.

    path: NVFlare's cross_val_results.json.
    samples: how many samples each site trained on: the members of a federation, numbers by name,
        or a file of NVFlare's federated statistics, which has their counts.
    metric: which of the metrics is the accuracy; the only one, or the one that is called accuracy,
        where left out.
    """
    _, sites, table = nvflare.read_cross_validation(path, metric)
    members = _read_members(samples)
    has = dict(zip(members.agents, members.limits.tolist(), strict=True))
    for site in sites:
        if site not in has:
            raise InputError(
                f"no number of samples is given for {site}, which is in {path}: say how many it "
                "trained on"
            )
    alone = [site for site in sites if site in table]
    common = [name for name in table if name not in sites]
    if not alone:
        raise InputError(f"{path} has no model of a site; let NVFlare submit the sites' models")
    owners = [*alone, *common[:1]]
    order = [members.agents.index(site) for site in sites]
    return PilotTable(
        sites,
        [[has[site] if owner in (site, *common) else 0.0 for site in sites] for owner in owners],
        [[table[owner].get(site, math.nan) for site in sites] for owner in owners],
        goals=members.goals[order],
        validation=members.validation[order],
        limits=members.limits[order],
        minimums=members.minimums[order],
        costs=members.costs[order],
        notes=_say_what_is_assumed(str(path), alone, common),
    )


def _read_members(samples: Members | Mapping[str, float] | str | Path) -> Members:
    if isinstance(samples, Members):
        return samples
    if isinstance(samples, Mapping):
        return Members(list(samples), list(samples.values()))
    found = nvflare.read_statistics(samples)
    return Members(
        found.sites,
        [found.counts[site] for site in found.sites],
        validation=[found.validation.get(site, math.nan) for site in found.sites],
    )


def _say_what_is_assumed(path: str, alone: list[str], common: list[str]) -> list[str]:
    notes = [
        f"{path} has {count(len(alone), 'model')} of sites. The command assumes that each was "
        "trained on the samples of its site alone"
    ]
    if common:
        trained = f"{common[0]} was trained on the samples of all sites"
        notes.append(f"The command assumes that {trained}")
    if len(common) > 1:
        notes.append(f"{', '.join(common[1:])} comes from the same training and is left out")
    return notes
