"""How many trials intervals of some width take, at the shares of the paper's figure.

Trials are made up: four agents, whose runs of a trial go together like normal numbers with a
correlation of 0.5, of which those below a threshold succeed. The shares are those of FedAvg (1.00
in full and 0.94 at 25 %), and from 0.8 down to that of MW-FED (0.45 at 25 %).

    python experiments/synthetic/stopping.py [REPETITIONS]

It prints mean numbers of trials. A fixed number is the first that makes Wilson's interval narrow
enough, or the paired one: to fix it, one must know in advance how the trials will end. A
sequential audit knows nothing, and looks after every trial, or when all agents have defected
equally often. 100 repetitions take a few minutes on a quiet core.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fedaccord.federation.defection.differences import compare_trials
from fedaccord.federation.defection.intervals import clustered, wilson
from fedaccord.federation.defection.sequences import sequence

AGENTS, CORRELATION, MOST = 4, 0.5, 700
WIDTHS = (0.2, 0.3)
SHARES = (1.0, 0.94, 0.8, 0.6, 0.45)
Outcomes = NDArray[np.bool_]


def draw(random: np.random.Generator, *shares: float) -> list[Outcomes]:
    """Return one table of outcomes per share, a row per trial, all of them correlated."""
    trial = math.sqrt(CORRELATION) * random.standard_normal((MOST, 1))
    own = math.sqrt(1 - CORRELATION)
    return [
        trial + own * random.standard_normal((MOST, AGENTS)) < (ndtri(p) if p < 1 else math.inf)
        for p in shares
    ]


def wait(width_after: Callable[[int], float], width: float, step: int) -> int:
    """Return after how many trials the interval is first narrow enough, looking at each step."""
    looks = range(step, MOST + 1, step)
    return next((n for n in looks if width_after(n) <= width), MOST)


def defect_once(table: Outcomes) -> Outcomes:
    """Return the outcomes of one agent a trial, each in turn."""
    trials = np.arange(len(table))
    return table[trials, trials % AGENTS][:, None]


def count_for_share(random: np.random.Generator, share: float, width: float) -> list[int]:
    """Return the trials for one share: fixed and sequential, one agent a trial and each."""
    (table,) = draw(random, share)
    one = defect_once(table)
    return [
        # To fix this number, one must know the share.
        wait(lambda n: wilson(round(share * n), n).width, width, 1),
        wait(lambda n: sequence(one[:n], width).width, width, AGENTS),
        wait(lambda n: clustered(table[:n]).width, width, 1),
        wait(lambda n: sequence(table[:n], width).width, width, 1),
    ]


def count_for_difference(random: np.random.Generator, share: float, width: float) -> list[int]:
    """Return the trials for the difference to FedAvg at 25 %, one agent a trial."""
    first, second = map(defect_once, draw(random, 0.94, share))

    def apart(n: int) -> float:
        return math.hypot(*(wilson(round(p * n), n).width for p in (0.94, share)))

    def together(n: int, stops: float | None = None) -> float:
        found = compare_trials(first[:n], second[:n], stops, block=AGENTS)
        return found.high - found.low

    return [
        wait(apart, width, 1),
        wait(together, width, 1),
        wait(lambda n: together(n, width), width, AGENTS),
    ]


def main() -> None:
    """Print both tables."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100

    def mean(count: Callable[..., list[int]], share: float, width: float) -> str:
        random = np.random.default_rng([round(100 * share), round(100 * width)])
        found = np.mean([count(random, share, width) for _ in range(repetitions)], axis=0)
        return " | ".join(f"{round(n):,}" for n in found)

    say = sys.stdout.write
    for width in WIDTHS:
        whole = wait(lambda n: wilson(n // 2, n).width, width, 1)
        say(f"\nwidth {width}; a fixed number that is enough for every share: {whole}\n")
        say("share | fixed, share known | sequential | each: fixed | each: sequential\n")
        for share in SHARES:
            say(f"{share:.2f} | {mean(count_for_share, share, width)}\n")
        say("difference 0.94 minus | fixed, unpaired | fixed, paired | sequential, paired\n")
        for share in SHARES[2:]:
            say(f"{share:.2f} | {mean(count_for_difference, share, width)}\n")


if __name__ == "__main__":
    main()
