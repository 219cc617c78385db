"""The clients: honest but where a run's settings say otherwise, and able to be held at work."""

import json
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord
from flwr.clientapp.typing import ClientAppCallable

from fedaccord.federation.flower import client_app
from hospitals.task import network, points_of


def about(message: Message) -> str:
    """Name a message by its kind, its client and its round, as train-Hill-2."""
    config = next(iter(message.content.config_records.values()), {})
    kind = message.metadata.message_type
    return f"{kind}-{config.get('client', '')}-{config.get('server-round', 0)}"


def held(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Wait for as long as there is a file hold-train-Hill-2, and say so by a file held-..."""
    folder = Path(str(context.run_config["folder"]))
    hold = folder / f"hold-{about(message)}"
    if hold.exists():
        (folder / f"held-{about(message)}").touch()
        while hold.exists():
            time.sleep(0.05)
    return call_next(message, context)


def noted(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Write down each model that this node is sent, as seen-train-Hill-2.npz."""
    for record in message.content.array_records.values():
        arrays = {name: array.numpy() for name, array in record.items()}
        np.savez(Path(str(context.run_config["folder"])) / f"seen-{about(message)}.npz", **arrays)
    return call_next(message, context)


def tampered(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Change a reply in the way that the settings have for it, if any."""
    settings = json.loads(Path(str(context.run_config["folder"]), "settings.json").read_text())
    reply = call_next(message, context)
    fault = settings["faults"].get(about(message))
    if fault is not None:
        FAULTS[fault](reply)
    return reply


def _not_finite(reply: Message) -> None:
    _change_first_array(reply, lambda array: np.full_like(array, np.nan))


def _wrong_shape(reply: Message) -> None:
    _change_first_array(reply, lambda array: array[:, :-1])


def _change_first_array(reply: Message, change) -> None:
    key, record = next(iter(reply.content.array_records.items()))
    arrays = {name: array.numpy() for name, array in record.items()}
    first = next(iter(arrays))
    arrays[first] = change(arrays[first])
    made = {name: Array(np.ascontiguousarray(array)) for name, array in arrays.items()}
    reply.content[key] = ArrayRecord(made)


def _say(key: str, value: float):
    def change(reply: Message) -> None:
        name, record = next(iter(reply.content.metric_records.items()))
        reply.content[name] = MetricRecord({**record, key: value})

    return change


def _raise(reply: Message) -> None:
    raise RuntimeError("the disk is full")


FAULTS = {
    "nan": _not_finite,
    "shape": _wrong_shape,
    "raises": _raise,
    "too many": _say("num-examples", 10**15),
    "negative": _say("num-examples", -3),
    "more than allotted": _say("num-examples", 5000),
    "too accurate": _say("accuracy", 1.5),
}

app = client_app(
    network,
    lambda context: points_of(str(context.node_config["data"])),
    mods=[noted, held, tampered],
)
