"""All algorithms that a config can name."""

from __future__ import annotations

from fedaccord.federation.algorithms.base import Algorithm, FedAvg, MwFed, Solo
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.algorithms.release import HoldBack, Release, RelievedMwFed

KINDS: dict[str, type[Algorithm]] = {
    kind.kind: kind for kind in (FedAvg, MwFed, Solo, Pledged, Release, HoldBack, RelievedMwFed)
}
