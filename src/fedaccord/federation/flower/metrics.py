"""How the clients' metrics become one record of Flower's."""

from __future__ import annotations

from collections.abc import Callable

from flwr.app import MetricRecord, RecordDict

MetricsFunction = Callable[[list[RecordDict], str], MetricRecord]


def mean_metrics(
    average: MetricsFunction, contents: list[RecordDict], weighted_by: str
) -> MetricRecord:
    """Average the metrics that all replies have alike, numbers or lists of one length.

    One client's metric that the others do not have, or have otherwise, would make Flower's
    functions fail, and with them the run.

    average: of Flower's, or the user's.
    contents: the replies.
    weighted_by: the metric that says how much each weighs.
    """
    records = [next(iter(content.metric_records.values())) for content in contents]
    kinds = [
        {(key, len(value) if isinstance(value, list) else None) for key, value in record.items()}
        for record in records
    ]
    alike = {key for key, _ in set.intersection(*kinds)}
    for record in records:
        for key in set(record) - alike:
            del record[key]
    return average(contents, weighted_by)
