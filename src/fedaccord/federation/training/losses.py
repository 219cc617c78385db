"""What training minimises: by the kind of labels, the loss of each sample."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def find_losses(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of each sample.

    Whole labels are classes and have the cross-entropy. Others are amounts, with the squared
    distance, or pairs of a time and whether the event took place, with the partial likelihood.

    scores: one row per sample.
    labels: of the samples.
    """
    if not labels.is_floating_point():
        return cross_entropy(scores, labels, reduction="none")
    if labels.ndim == 1:
        return (scores[:, 0] - labels) ** 2
    return find_partial_losses(scores[:, 0], labels[:, 0], labels[:, 1])


def find_partial_losses(risks: Tensor, times: Tensor, events: Tensor) -> Tensor:
    """Return minus the logarithm of Cox's partial likelihood, one term per sample (Breslow).

        loss_i  =  event_i (log sum over j with time_j >= time_i of exp(risk_j)  -  risk_i)

    Only samples of the same batch are compared, so that no client's times are held against
    another's.

    risks: of the samples.
    times: of the event, or of the last sight.
    events: 1 where the event took place, else 0.
    """
    at_risk = times[None, :] >= times[:, None]
    total = torch.logsumexp(risks[None, :].masked_fill(~at_risk, -torch.inf), dim=1)
    return events * (total - risks)


def compares_samples(labels: Tensor) -> bool:
    """Return whether the loss of a sample depends on the other samples of its batch."""
    return labels.ndim > 1
