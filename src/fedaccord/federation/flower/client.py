"""The client's side: a ClientApp that draws no more than its quota and tells no more than it must.

    app = client_app(Net, load_data)

where Net makes the network and load_data(context) gives the client's training and validation sets,
which must have the same points in the same order in the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn
from torch.utils.data import Subset

from fedaccord.federation.flower.protocol import CLIENT, LOG, METRICS, WHO
from fedaccord.federation.flower.replies import to_arrays
from fedaccord.federation.goals import ClientGoal, check_goals
from fedaccord.federation.remote.protocol import REPORT, OrderError
from fedaccord.federation.remote.site import (
    EvaluateFunction,
    Points,
    Site,
    TrainFunction,
    check_reports,
    count_points,
    keep_errors,
)

Answer: TypeAlias = Callable[[Message, Context], Message]
Act: TypeAlias = Callable[[Site, Message], Message]


def own_name(context: Context) -> str:
    """Return what a node calls itself: its node-config's name, or its partition in a simulation.

    A name under which the node is registered at the SuperLink comes before this.
    """
    config = context.node_config
    if "name" in config:
        return str(config["name"])
    return f"client {config['partition-id']}" if "partition-id" in config else ""


def own_limit(context: Context) -> int | None:
    """Return the most samples that a node ever gives: most-points of its node-config, if set.

    The operator of the node sets it, whatever the server asks for:
    flower-supernode --node-config "most-points=200".
    """
    limit = context.node_config.get("most-points")
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise OrderError("most-points of the node-config must be a whole number, zero or more")
    return limit


def client_app(
    model: Callable[[], nn.Module],
    data: Callable[[Context], tuple[Points, Points]],
    *,
    train: TrainFunction | None = None,
    evaluate: EvaluateFunction | None = None,
    name: Callable[[Context], str] = own_name,
    most_points: Callable[[Context], int | None] = own_limit,
    least_samples: int = 1,
    may_report: Sequence[str] = (),
    mods: Sequence[Any] = (),
    goals: Callable[[Context], Sequence[ClientGoal]] | None = None,
) -> ClientApp:
    """Make a ClientApp out of a network and a client's data.

    It reports how many samples it could give, how many draws it made, and its accuracy on its own
    validation set. Nothing else about its data leaves the client, except through the model. If
    loading or training fails, the details stay in the node's own log.

    model: makes the network, an nn.Module that returns a score per class for each input.
    data: returns a client's training and validation sets, of pairs of an input and a class.
    train: trains the network in place on the samples drawn, and returns the mean loss; where left
        out, in steps of the batch size, with the server's optimizer and learning rate.
    evaluate: returns the network's accuracy on samples.
    name: returns the client's name, if it is not registered under one.
    most_points: returns the most samples that it gives, whatever the server asks for: the first of
        its training set. None for all.
    least_samples: the fewest samples of which it makes a model or a gradient, because that of one
        sample reveals much about one patient. If the server asks for fewer, it declines.
    may_report: what else it may report if the server asks: "train-loss", "label-counts".
    mods: Flower's mods, around all that the client does.
    goals: returns what the client wants in other measures than accuracy. It then reports where it
        stands, one number, in place of its accuracy; the server's requirement for it is that of
        its first goal, `ClientGoal.requirement`.
    """
    reports = check_reports(may_report)

    def site(context: Context) -> Site:
        points, validation = data(context)
        most = most_points(context)
        return Site(
            model,
            points if most is None else Subset(points, range(min(most, count_points(points)))),
            validation,
            own_train=train,
            own_evaluate=evaluate,
            name=name(context),
            least_samples=least_samples,
            may_report=reports,
            goals=() if goals is None else check_goals(goals(context), name(context)),
        )

    def answer_by(act: Act) -> Answer:
        def answer(message: Message, context: Context) -> Message:
            with keep_errors(LOG), torch.random.fork_rng(devices=[]):
                return act(site(context), message)

        return answer

    app = ClientApp(mods=list(mods))
    app.query()(answer_by(introduce))
    app.train()(answer_by(train_on))
    app.evaluate()(answer_by(evaluate_on))
    return app


def introduce(site: Site, message: Message) -> Message:
    """Say who a client is and how many points it could bring."""
    metrics = site.introduce(str(_config(message).get(REPORT, "")))
    return _reply(message, metrics, {WHO: ConfigRecord({CLIENT: site.name})})


def train_on(site: Site, message: Message) -> Message:
    """Draw the requested samples, within the quota, and train on them."""
    key, arrays = _arrays(message)
    made, metrics = site.train(to_arrays(arrays), _config(message))
    record = ArrayRecord({name: Array(value) for name, value in made.items()})
    return _reply(message, metrics, {key: record})


def evaluate_on(site: Site, message: Message) -> Message:
    """Measure the accuracy on all validation points, on some drawn again, or both."""
    _, arrays = _arrays(message)
    return _reply(message, site.evaluate(to_arrays(arrays), _config(message)), {})


def _config(message: Message) -> ConfigRecord:
    records = list(message.content.config_records.values())
    return records[0] if records else ConfigRecord()


def _arrays(message: Message) -> tuple[str, ArrayRecord]:
    for key, record in message.content.array_records.items():
        return key, record
    raise OrderError("the server sent no model")


def _reply(message: Message, metrics: dict[str, Any], others: dict[str, Any]) -> Message:
    content = RecordDict({METRICS: MetricRecord(metrics), **others})
    return Message(content, reply_to=message)
