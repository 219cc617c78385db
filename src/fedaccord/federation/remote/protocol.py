"""What server and clients say to each other, whatever carries it: the keys, written once.

    message     the server sends                       the client replies
    query       what else it would like to know        its name, how many points it could bring
    train       the model; how many samples, of        the model it made of them, how many
                what quota, how many drawn before      samples it used
    evaluate    the model; on how many points          its accuracy, on how many points

Nothing else is said, unless the server asks for it and the client's app allows it. Free of torch
and of any framework, so that a client written in anything can use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from fedaccord._checks import Indices
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import MOST_SAMPLES
from fedaccord.federation.training.rng import Draws

REPORT = "report"

# What a client replies.
EXAMPLES = "num-examples"
POINTS = "num-points"
ACCURACY = "accuracy"
GOAL_ACCURACY = "goal-accuracy"

# What it replies only if it is asked and allowed to.
LOSS = "train-loss"
LABEL_COUNTS = "label-counts"
EXTRAS = (LOSS, LABEL_COUNTS)

# No quota: all the points that a client has.
ALL_POINTS = -1
# More often than this no run goes through a client's points.
MOST_PASSES = 1_000_000
# The largest whole number that a record holds.
LARGEST = 2**63 - 1

Kind = TypeVar("Kind", bound="Order")


class OrderError(InputError):
    """What the server asks for cannot be done.

    The server reads the text, so it tells nothing of the client's data.
    """


@dataclass(frozen=True, kw_only=True)
class Order:
    """What every message to a client says.

    server_round: counted from 1.
    client: its name, which its draws go by.
    seed: of the run.
    """

    server_round: int
    client: str
    seed: int

    def to_config(self) -> dict[str, Any]:
        """Return the values by the keys that clients' apps are used to, as num-samples.

        What has a default is left out where it is that.
        """
        return {
            f.name.replace("_", "-"): getattr(self, f.name)
            for f in fields(self)
            if f.default is MISSING or getattr(self, f.name) != f.default
        }

    @classmethod
    def read(cls: type[Kind], config: Mapping[str, Any]) -> Kind:
        """Read what came with a message, or say what is missing."""
        every = {f.name: f.name.replace("_", "-") for f in fields(cls)}
        optional = {f.name for f in fields(cls) if f.default is not MISSING}
        keys = {n: key for n, key in every.items() if n not in optional or key in config}
        missing = [key for key in keys.values() if key not in config]
        if missing:
            raise OrderError(
                f"the server did not say {missing[0]}: this client's app needs a strategy or a "
                "controller of fedaccord's there, such as MwFed"
            )
        return cls(**{name: config[key] for name, key in keys.items()})


@dataclass(frozen=True, kw_only=True)
class TrainOrder(Order):
    """What a train message says.

    num_samples: how many samples to draw.
    quota: of how many different points at most; ALL_POINTS for all it has.
    num_points: how many points the client said it has; which ones it draws depends on it.
    drawn: how many of its samples went into the model before.
    changes: how the quota changed during the run: after how many samples it was how large, as in
        "0:20,8:35"; empty if it never did.
    form: "local" for a model, "pooled" for a gradient.
    batch_size, optimizer, learning_rate: of the local steps.
    report: what else to report, between commas.
    """

    num_samples: int
    quota: int
    num_points: int
    drawn: int
    form: str
    batch_size: int
    optimizer: str
    learning_rate: float
    report: str
    changes: str = ""


@dataclass(frozen=True, kw_only=True)
class EvaluateOrder(Order):
    """What an evaluate message says.

    whole: whether to measure the accuracy on all validation points.
    goal_points: on how many, drawn again each round; 0 for none.
    """

    whole: bool
    goal_points: int


def drawn_points(config: Mapping[str, Any], points: int) -> Indices:
    """Return the places of the points to train on: the samples that the server asks for, in order.

    However often it is called in a run, no more different points come up than the quota allows, as
    long as the server keeps to one seed and one name. For apps that do not use `client_app`.

    config: what came with the train message.
    points: how many the client has, the same in the whole run.
    """
    order = TrainOrder.read(config)
    brought = points if order.quota == ALL_POINTS else order.quota
    for what, value, least, most in (
        ("num-samples", order.num_samples, 1, MOST_SAMPLES),
        ("quota", brought, 1, points),
        # Each pass through the points has to be shuffled again to find where it stopped.
        ("drawn", order.drawn, 0, max(brought, 1) * MOST_PASSES),
    ):
        if not least <= value <= most:
            raise OrderError(
                f"{order.client} has {points:,} samples, and the server sent a {what} of "
                f"{value:,}: it must be from {least} to {most:,}"
            )
    if order.num_points != points:
        raise OrderError(
            f"{order.client} said that it has {order.num_points:,} samples and has {points:,} now; "
            "give it the same samples until the run is over, or it would draw different ones"
        )
    (_, first), *changes = _read_changes(order, points) or [(0, brought)]
    draws = Draws(order.client, points, first, seed=order.seed, drawn=order.drawn, changes=changes)
    return draws.draw(order.num_samples)


def _read_changes(order: TrainOrder, points: int) -> list[tuple[int, int]]:
    """Read how a quota changed, or raise an OrderError."""
    try:
        pairs = [part.split(":") for part in order.changes.split(",") if part]
        changes = [(int(before), int(quota)) for before, quota in pairs]
    except ValueError:
        changes = [(-1, 0)]
    befores, quotas = [before for before, _ in changes], [quota for _, quota in changes]
    known = not changes or (befores[0] == 0 and quotas[-1] == order.quota)
    if not known or befores != sorted(befores) or any(not 0 <= n <= points for n in quotas):
        raise OrderError(f"{order.client} cannot read how its quota changed: {clip(order.changes)}")
    return changes


def clip(value: object, most: int = 80) -> str:
    """Write what a client sent so that it fits a line of a log: no control characters, no end."""
    # Looked at no further than it is shown: it may be gigabytes.
    start = str(value)[: 4 * most]
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= most else line[: most - 3] + "..."
