"""Compiled sweeps of best responses in coverage games; import only where they are used.

Importing this module imports numba, which takes half a second.
"""

from __future__ import annotations

import math
from typing import Any

from fedaccord.equilibria.compiled import compile_loop


@compile_loop
def uniform_sweeps(
    begins: Any, points: Any, copies: Any, goals: Any, sizes: Any, lowest: Any, highest: Any,
    misses: Any, unseen: Any, sweeps: int, enough: float,
) -> int:  # fmt: skip
    """Sweep over the agents of a game of uniform sets; give the number of sweeps.

        p_i <- p_i 2 b_i (1 - mu_i) / sum_{x in X_i} E_x,   kept within [lowest, highest]

    This is exact coordinate descent on the convex form. It ends after a sweep in which nobody
    moved more than `enough` samples.
    """
    for sweep in range(sweeps):
        furthest = 0.0
        for i in range(len(goals)):
            total = 0.0
            for n in range(begins[i], begins[i + 1]):
                total += copies[points[n]] * unseen[points[n]]
            old = misses[i]
            # The test keeps the division in range; with it, p stays within its bounds.
            new = old * goals[i] / total if old * goals[i] < highest[i] * total else highest[i]
            new = max(new, lowest[i])
            if new == old:
                continue
            ratio = new / old
            for n in range(begins[i], begins[i + 1]):
                unseen[points[n]] *= ratio
            misses[i] = new
            furthest = max(furthest, sizes[i] * abs(new - old) / min(new, old))
        if furthest <= enough:
            return sweep + 1
    return sweeps


@compile_loop
def response_sweeps(
    begins: Any, points: Any, rates: Any, logs: Any, weights: Any, rows: Any, order: Any,
    starts: Any, goals: Any, lows: Any, highs: Any, given: Any, misses: Any, unseen: Any,
    rest: Any, damping: float, whole: bool, sweeps: int, enough: float,
) -> int:  # fmt: skip
    """Sweep over the agents of any coverage game, each moving to its best response.

    An agent moves by `damping` of the way (all of it over whole numbers), kept within its limits.
    Ends after a sweep in which nobody moved more than `enough`; gives the number of sweeps. The
    caller renews `unseen` between calls, before rounding errors build up in it.
    """
    for sweep in range(sweeps):
        furthest = 0.0
        for i in range(len(goals)):
            low, high = begins[i], begins[i + 1]
            for n in range(low, high):
                x = points[n]
                if misses[n] > 1e-3:
                    product = unseen[x] / misses[n]
                else:
                    product = 1.0
                    for m in range(starts[x], starts[x + 1]):
                        if rows[order[m]] != i:
                            product *= misses[order[m]]
                rest[n] = weights[n] * product
            needed = _least(logs[low:high], rest[low:high], goals[i])
            if whole:
                needed = float(math.ceil(needed - 1e-9 * max(1.0, needed)))
            old = given[i]
            target = min(max(needed, lows[i]), highs[i])
            new = target if whole else old + damping * (target - old)
            furthest = max(furthest, abs(target - old))
            if new == old:
                continue
            given[i] = new
            floor = float(math.floor(new))
            for n in range(low, high):
                misses[n] = math.exp(logs[n] * floor) * (1.0 - (new - floor) * rates[n])
                unseen[points[n]] = rest[n] / weights[n] * misses[n]
        if furthest <= enough:
            return sweep + 1
    return sweeps


@compile_loop
def _left(logs: Any, rest: Any, amount: float) -> float:
    total = 0.0
    for n in range(len(logs)):
        total += rest[n] * math.exp(logs[n] * amount)
    return total


@compile_loop
def _least(logs: Any, rest: Any, goal: float) -> float:
    """Return the least t with S(t) <= goal, as games.coverage finds it, for one agent."""
    at_zero, at_one = _left(logs, rest, 0.0), _left(logs, rest, 1.0)
    if at_zero <= goal:
        return 0.0
    low = 0.0
    if at_one > goal:
        low, step = 1.0, 1.0
        while step > 0.01 and step > 1e-12 * low:
            total, slope = 0.0, 0.0
            for n in range(len(logs)):
                part = rest[n] * math.exp(logs[n] * low)
                total += part
                slope -= part * max(logs[n], -745.0)
            step = total * math.log(total / goal) / slope if total > goal else 0.0
            low += step
        low = float(math.floor(low))
        for _ in range(8):
            at_zero, at_one = _left(logs, rest, low), _left(logs, rest, low + 1.0)
            if at_zero <= goal and low > 1.0:
                low -= 1.0
            elif at_one > goal:
                low += 1.0
            else:
                break
    part = min(max((at_zero - goal) / (at_zero - at_one), 0.0), 1.0)
    return low + float(part)
