"""Points on which audits judge final models: further ones, which nobody trains or validates on.

A validation set of a few hundred points measures an accuracy to within a few hundredths. A model
that is good enough may fail by chance, and one that is not may pass. On thousands of further
points of the same distribution, an audit counts what is true of the models instead.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.errors import InputError
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.partition import ChangedSource, Dealing, find_measures
from fedaccord.federation.training.rng import stream
from fedaccord.wording import join_with_and

if TYPE_CHECKING:
    from fedaccord.federation.algorithms.base import Counts
    from fedaccord.federation.runs.execute import Source

# Asks for as many points as there are.
ALL = "all"
# More clients than this are not listed in a sentence.
LISTED = 4


class Scored:
    """A source whose clients are judged on further points as well.

    Its federations train exactly as those of the source, so it has the same fingerprint, and runs
    that were made without such points stay the runs that they are.

    source: a federation, or what deals one to each trial.
    count: how many points for each client, or "all" for as many as every client can have.
    """

    def __init__(self, source: Source, count: int | str) -> None:
        there = count_further(source)
        self.count = _check_count(count, there, source.names)
        self.names = source.names
        self.requirements = source.requirements
        self.points = source.points
        self.measures = find_measures(source)
        self.fingerprint = source.fingerprint
        self._source = source
        if not isinstance(_find_base(source), Dealing):
            _check_given(source.deal(0))

    @property
    def key(self) -> str:
        """What identifies the points, together with the fingerprint and the trial."""
        base = _find_base(self._source)
        if isinstance(base, Dealing):
            return str(self.count)
        # Points that were given are not in the fingerprint.
        digest = hashlib.sha256()
        for client in base.deal(0).clients:
            assert client.scored_inputs is not None and client.scored_labels is not None
            digest.update(client.scored_inputs.contiguous().numpy().tobytes())
            digest.update(client.scored_labels.numpy().tobytes())
        return f"{self.count} of {digest.hexdigest()}"

    def deal(self, trial: int) -> Federation:
        """Return the federation of a trial, with scored points."""
        return _deal_scored(self._source, trial, self.count)


def count_further(source: Source) -> Counts:
    """Return how many further points of its distribution there are for each client."""
    base = _find_base(source)
    if isinstance(base, Dealing):
        return base.count_further()
    given = [client.scored_labels for client in base.deal(0).clients]
    return np.array([0 if labels is None else len(labels) for labels in given])


def _find_base(source: Source) -> Source:
    """Return the source whose clients others change."""
    return _find_base(source.source) if isinstance(source, ChangedSource) else source


def _deal_scored(source: Source, trial: int, count: int) -> Federation:
    if isinstance(source, ChangedSource):
        whole = _deal_scored(source.source, trial, count)
        return whole.replace([source.change(n, client) for n, client in enumerate(whole.clients)])
    if isinstance(source, Dealing):
        return source.deal(trial, scored=count)
    whole = source.deal(trial)
    if not isinstance(source, Federation):
        _check_given(whole)
    return whole.replace([_choose_scored(client, count) for client in whole.clients])


def _choose_scored(client: Client, count: int) -> Client:
    """Return a client with a number of its scored points, always the same ones."""
    assert client.scored_inputs is not None and client.scored_labels is not None
    chosen = stream(0, "scored", client.name).permutation(len(client.scored_labels))[:count]
    return client.take_scored(chosen)


def _check_given(federation: Federation) -> None:
    """Raise an InputError at a client whose scored points are among those that anybody uses."""
    used = {
        row.numpy().tobytes()
        for client in federation.clients
        for inputs in (client.inputs, client.validation_inputs)
        for row in inputs
    }
    for client in federation.clients:
        own = client.scored_inputs
        common = 0 if own is None else sum(row.numpy().tobytes() in used for row in own)
        if own is not None and common:
            raise InputError(
                f"{common:,} of the {len(own):,} scored samples of {client.name} are also used for "
                "training or validation: remove them from the scored samples"
            )


def _check_count(count: int | str, there: Counts, names: tuple[str, ...]) -> int:
    """Return how many points there will be for each client, or raise an InputError."""
    least = int(there.min())
    if least and (count == ALL or int(count) <= least):
        return least if count == ALL else int(count)
    if not there.any():
        raise InputError(
            "scored_on needs samples that nobody trains or validates on, and none are left: leave "
            "scored_on out, deal fewer samples to the agents, or give each Client(scored=...)"
        )
    listed = [f"{name} {have:,}" for name, have in zip(names, there.tolist(), strict=True)]
    short = join_with_and(listed) if len(listed) <= LISTED else listed[int(there.argmin())]
    remedy = f'ask for {least:,} or fewer, or for "all"' if least else "leave scored_on out"
    asked = "samples" if count == ALL else f"{int(count):,} further samples"
    raise InputError(
        f"scored_on needs {asked} for each agent, and after the partition there are fewer "
        f"({short}): {remedy}"
    )
