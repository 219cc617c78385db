"""Compiled sweeps of best responses over linear games.

Each sweep lets the agents answer one after the other (Gauss-Seidel), skipping those marked idle
unless the sweep is full, and returns the largest regret met. An agent is idle when it gives its
minimum and has utility to spare: a few sweeps without it change nothing that a full sweep does not
mend.

Places in arrays are unsigned, which spares a test for negative ones at every entry: half the time.
Sums are taken several terms at a time, which spares another third.
"""

from __future__ import annotations

import numpy as np

from fedaccord.equilibria.compiled import compile_sums
from fedaccord.equilibria.linear import best_response
from fedaccord.equilibria.linear.best_response import IDLE_SHARE

sweep_dense = compile_sums(best_response.sweep_dense)


@compile_sums
def sweep_explicit(pointer, index, value, own, need, low, high, theta, idle, full):  # type: ignore[no-untyped-def]
    """Sweep with W given by its sparse rows."""
    worst = 0.0
    for i in range(need.size):
        if idle[i] and not full:
            continue
        utility = 0.0
        for p in range(np.uint64(pointer[i]), np.uint64(pointer[i + 1])):
            utility += value[p] * theta[np.uint64(index[p])]
        wanted = theta[i] + (need[i] - utility) / own[i]
        new = min(max(wanted, low[i]), high[i])
        idle[i] = wanted < low[i] - IDLE_SHARE * need[i] / own[i]
        worst = max(worst, abs(new - theta[i]))
        theta[i] = new
    return worst


@compile_sums
def sweep_gram(pointer, index, value, own, need, low, high, theta, image, idle, full):  # type: ignore[no-untyped-def]
    """Sweep with W = Q Q' given by the sparse rows of Q, keeping image = Q' theta up to date."""
    worst = 0.0
    for i in range(need.size):
        if idle[i] and not full:
            continue
        first, last = np.uint64(pointer[i]), np.uint64(pointer[i + 1])
        utility = 0.0
        for p in range(first, last):
            utility += value[p] * image[np.uint64(index[p])]
        wanted = theta[i] + (need[i] - utility) / own[i]
        new = min(max(wanted, low[i]), high[i])
        idle[i] = wanted < low[i] - IDLE_SHARE * need[i] / own[i]
        change = new - theta[i]
        if change != 0.0:
            worst = max(worst, abs(change))
            theta[i] = new
            for p in range(first, last):
                image[np.uint64(index[p])] += value[p] * change
    return worst
