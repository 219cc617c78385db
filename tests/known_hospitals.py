"""Four hospitals whose learning curves are known, and pilots drawn from them."""

import numpy as np

from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.pilots import PilotTable

NAMES = ("University", "City", "Rural", "Coast")
BENEFITS = np.array(
    [[1.0, 0.6, 0.7, 0.3], [0.6, 1.0, 0.1, 0.4], [0.7, 0.1, 1.0, 0.2], [0.3, 0.4, 0.2, 1.0]]
)
CURVES = np.array(
    [
        [0.06, 2.2, 40.0, 0.42],
        [0.05, 2.6, 30.0, 0.45],
        [0.08, 2.0, 50.0, 0.42],
        [0.07, 2.4, 35.0, 0.43],
    ]
)
GOALS = np.array([0.82, 0.82, 0.80, 0.80])
# How far runs scatter beyond what their validation points explain.
SCATTER = 0.008


def designed(limits, repeats):
    """All at five levels; each with little among the others; each with much."""
    k = len(limits)
    rows = [limits * level for level in (0.1, 0.2, 0.35, 0.6, 1.0)]
    for i in range(k):
        for own, others in ((0.02, 0.3), (0.8, 0.03)):
            row = limits * others
            row[i] = limits[i] * own
            rows.append(row)
    return np.round(np.repeat(np.array(rows), repeats, axis=0))


def noise_at(accuracies, validation):
    return np.sqrt(accuracies * (1 - accuracies) / validation + SCATTER**2)


def pilots(
    seed=0,
    *,
    names=NAMES,
    goals=GOALS,
    validation=2_000,
    limit=3_000.0,
    repeats=2,
    benefits=BENEFITS,
    curves=CURVES,
    **frame,
):
    """Draw the pilots of hospitals that can give so much each."""
    rng = np.random.default_rng(seed)
    limits = np.full(len(names), float(limit)) if np.ndim(limit) == 0 else np.array(limit)
    given = designed(limits, repeats)
    promised = predict_accuracies(curves, given @ benefits.T)
    reached = promised + noise_at(promised, validation) * rng.standard_normal(promised.shape)
    return PilotTable(
        names,
        given,
        np.round(np.clip(reached, 0, 1), 4),
        goals=goals,
        validation=np.full(len(names), float(validation)),
        limits=limits,
        **frame,
    )
