"""The network and the data of three sites: NVFlare's jobs bring this file to server and sites."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

SIZES = {"site-1": 8, "site-2": 24, "site-3": 40}


def make_network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def make_points(count: int, seed: int) -> TensorDataset:
    """Make points of three classes, which overlap."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    inputs = np.eye(3, 4)[labels] + random.normal(size=(count, 4))
    return TensorDataset(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))


def load_data(site: str) -> tuple[TensorDataset, TensorDataset]:
    place = list(SIZES).index(site)
    return make_points(SIZES[site], place), make_points(50, 100 + place)
