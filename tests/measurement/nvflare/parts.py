"""What server and sites run when make.py makes the files here: NVFlare's jobs bring it along."""

import numpy as np
import torch
from nvflare.apis.executor import Executor
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.abstract.statistics_spec import (
    Bin,
    DataType,
    Feature,
    Histogram,
    HistogramType,
    Statistics,
)
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from sklearn.datasets import load_digits
from torch import nn

# How many training samples each site has, and how often each digit comes up in 50 of them.
SIZES = {"city": 300, "hill": 200, "mill": 150}
MIXES = {
    "city": (5, 5, 5, 5, 5, 5, 5, 5, 5, 5),
    "hill": (10, 10, 10, 10, 10, 0, 0, 0, 0, 0),
    "mill": (0, 0, 0, 5, 5, 8, 8, 8, 8, 8),
}
VALIDATION = 100


class Net(nn.Module):
    """One layer from 8 x 8 pixels to 10 digits."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, inputs):
        return self.layer(inputs)


def load_site(site: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a site's inputs and labels, the validation points last."""
    pictures, digits = load_digits(return_X_y=True)
    random = np.random.default_rng(list(SIZES).index(site))
    shares = np.array(MIXES[site]) / 50
    labels = random.choice(10, size=SIZES[site] + VALIDATION, p=shares)
    rows = [random.choice(np.flatnonzero(digits == label)) for label in labels]
    return torch.tensor(pictures[rows] / 16, dtype=torch.float32), torch.tensor(labels)


def train(network: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, steps: int) -> None:
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimizer.step()


class Trainer(Executor):
    """Trains NVFlare's common model, submits one that learnt alone, and validates any."""

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        inputs, labels = load_site(fl_ctx.get_identity_name())
        torch.manual_seed(0)
        network = Net()
        if task_name != "submit_model":
            params = FLModelUtils.from_shareable(shareable).params
            network.load_state_dict({n: torch.as_tensor(v) for n, v in params.items()})
        if task_name != "validate":
            steps = 20 if task_name == "train" else 100
            train(network, inputs[:-VALIDATION], labels[:-VALIDATION], steps)
            weights = {n: v.detach().numpy() for n, v in network.state_dict().items()}
            return FLModelUtils.to_shareable(FLModel(params=weights))
        with torch.no_grad():
            scores = network(inputs[-VALIDATION:])
        right = (scores.argmax(dim=1) == labels[-VALIDATION:]).float().mean()
        loss = nn.functional.cross_entropy(scores, labels[-VALIDATION:])
        metrics = {"accuracy": float(right), "loss": float(loss)}
        return FLModelUtils.to_shareable(FLModel(metrics=metrics))


class Digits(Statistics):
    """Counts a site's labels and one pixel."""

    def initialize(self, fl_ctx):
        inputs, labels = load_site(fl_ctx.get_identity_name())
        self.values = {
            name: {"label": labels[part].numpy(), "pixel": inputs[part, 27].numpy()}
            for name, part in (("train", slice(-VALIDATION)), ("test", slice(-VALIDATION, None)))
        }

    def features(self):
        every = [Feature("label", DataType.INT), Feature("pixel", DataType.FLOAT)]
        return {"train": every, "test": every}

    def count(self, dataset_name, feature_name):
        return len(self.values[dataset_name][feature_name])

    def failure_count(self, dataset_name, feature_name):
        return 0

    def histogram(self, dataset_name, feature_name, num_of_bins, global_min, global_max):
        values = self.values[dataset_name][feature_name]
        counts, edges = np.histogram(values, bins=num_of_bins, range=(global_min, global_max))
        bins = [
            Bin(float(a), float(b), int(n))
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        return Histogram(HistogramType.STANDARD, bins)
