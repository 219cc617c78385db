"""What a strategy is asked to do, checked before anything begins."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedaccord._io.atomic import check_replaceable
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower import protocol
from fedaccord.federation.flower.protocol import Order
from fedaccord.federation.training.rng import stream


def chosen_algorithm(
    kind: type[Algorithm], given: Algorithm | None, chosen: Mapping[str, Any]
) -> Algorithm:
    """Make the algorithm out of its settings, or see to it that the one given runs here."""
    if given is None and kind is Algorithm:
        raise InputError("say which algorithm to run, such as algorithm=MwFed()")
    if given is not None and chosen:
        raise InputError(f"{min(chosen)} is a setting of the algorithm, which is given whole")
    algorithm = given or kind(**{"form": "local", "evaluate_every": 1, **chosen})
    if not isinstance(algorithm, kind):
        raise InputError(f"this strategy runs {kind.name}; got {algorithm.name}")
    if algorithm.trains_alone:
        raise InputError("clients that learn alone need no server; use train() at each")
    if algorithm.form == "pooled" and algorithm.local_batches > 1:
        raise InputError(
            "in the pooled form a round under Flower is one step: set local_batches to 1, or "
            'form to "local"'
        )
    return algorithm


def check_options(stop_at_goal: Any, node_deadline: Any, ask_for: Sequence[str], seed: int) -> None:
    """Refuse options of a strategy that it could not keep."""
    if stop_at_goal is not None and (
        isinstance(stop_at_goal, bool) or not isinstance(stop_at_goal, int) or stop_at_goal < 1
    ):
        raise InputError(
            f"stop_at_goal must be a whole number of 1 or more, or None; got {stop_at_goal!r}"
        )
    if not (isinstance(node_deadline, int | float) and 0 <= node_deadline < math.inf):
        raise InputError(f"node_deadline must be a number of seconds; got {node_deadline!r}")
    for what in ask_for:
        if what not in protocol.EXTRAS:
            raise InputError(
                f"clients can be asked for {' and '.join(protocol.EXTRAS)}; got {what!r}"
            )
    # Refuses a seed that is none; records hold no larger one.
    stream(seed, "selection")
    if seed > protocol.LARGEST:
        raise InputError(f"a seed under Flower must be below 2**63; got {seed}")


def check_config(config: Mapping[str, Any], kind: type[Order]) -> None:
    """Refuse a user's own values under keys that the strategy writes, and would write over."""
    # Flower's own strategies leave the round in the record that they are given.
    own = {field.name.replace("_", "-") for field in dataclasses.fields(kind)} - {"server-round"}
    taken = sorted(own & set(config))
    if taken:
        raise InputError(
            f"the config for clients has {taken[0]}, which the strategy says itself; give it to "
            "the strategy if it is a setting there, or call it something else"
        )


def check_history_file(path: str | Path | None) -> None:
    """Refuse a file that could not be written, before any time goes into what it is to hold."""
    if path is None:
        return
    try:
        there = Path(path).parent.is_dir()
        if there:
            check_replaceable(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"the history cannot be written to {str(path)!r}: {reason}") from None
    if not there:
        raise InputError(f"the folder of {path} is not there; make it first")
