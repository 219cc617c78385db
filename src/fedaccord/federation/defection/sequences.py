"""Intervals that hold at every look, for audits that stop once their intervals are narrow.

An interval for a fixed number of trials misses the true share too often if trials are added until
it is narrow. A confidence sequence does not: with 95 %, all of its intervals hold the true share.
It is the outcome of a bet at odds that are fair if the share is m: a gambler stakes on more, or on
fewer, successes. If the share is m, the gambler's capital K reaches 40 times what it was with a
probability of at most 1/40 (Ville's inequality), at whatever trial. So an m that made the gambler
that rich is left out:

    K(m) = (1 + e_1 (x_1 / m - 1)) (1 + e_2 (x_2 / m - 1)) ...  <  40     for m to stay

where x is how a trial ends, and e the part of the capital that is staked on success.

That is the betting interval of Waudby-Smith and Ramdas (2024), and for trials of one client the
likelihood ratio of Robbins (1970) and Wald's sequential test. Their theorems leave the stakes open.
Here most of the capital is staked so as to shorten the wait for an interval of the width that the
audit has to reach. The rest is staked more boldly: it pays if trials end before that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from fedaccord.federation.defection.intervals import Floats, Proportion, read_rows

# The shares m that are tried, without 0 and 1; ends are rounded outwards to them.
TRIED = np.arange(1, 1_000) / 1_000
# Either gambler reaches 40 times its capital with a probability of 1/40 at most: 95 % for both.
BAR = math.log(40)
# Parts of the capital, and how many times the plain stakes are staked of each, but never all.
PARTS = np.array([0.7, 0.1, 0.1, 0.1])
FACTORS = np.array([1.0, 2.0, 4.0, 8.0])
MOST_STAKED = 0.9


def sequence(outcomes: ArrayLike, width: float) -> Proportion:
    """Return the interval of a 95 % confidence sequence for a random client's share.

    A trial's clients share its data and its seed, so x is the share of them that succeeded. The
    less x scatters, the more is staked: as in `clustered`, and by the trials before.

    outcomes: one row per trial in order, one column per client, true where it reached its goal.
    width: how narrow the interval is to become; it only decides how soon that is.
    """
    table = read_rows(outcomes)
    if not len(table):
        return Proportion(math.nan, 0.0, 1.0, 0)
    return Proportion(float(table.mean()), *find_ends(table, width), len(table))


def expect_trials(outcomes: ArrayLike, width: float, most: int) -> int:
    """Return how many trials the interval takes if the trials to come are like those seen.

    outcomes: as in `sequence`.
    width: how narrow the interval is to become.
    most: the most trials.
    """
    table = read_rows(outcomes)
    seen = len(table)
    capitals = _bet_both_ways(table, width, table.shape[1], 1)

    def is_narrow(trials: int) -> bool:
        low, high = (_find_low(capital, trials / seen) for capital in capitals)
        return 1 - high - low <= width

    return seen + bisect_left(range(seen, most), True, key=is_narrow) if seen else most


def find_ends(
    table: Floats, width: float, *, most: float | None = None, block: int = 1
) -> tuple[float, float]:
    """Return the ends of the interval for the mean of a table's rows.

    table: one row per trial in order, of numbers from 0 to 1.
    width: how narrow the interval is to become.
    most: how many independent clients a trial may be worth; as many as it has where left out.
    block: in how many trials all defect equally often.
    """
    capitals = _bet_both_ways(table, width, table.shape[1] if most is None else most, block)
    low, high = (_find_low(capital) for capital in capitals)
    # Stakes that follow the trials before may be unlucky, and the share seen is never left out.
    return min(low, float(table.mean())), max(1 - high, float(table.mean()))


def _bet_both_ways(table: Floats, width: float, most: float, block: int) -> list[Floats]:
    """Return the logarithms of both gamblers' capital: on success, and on failure with 1 - m."""
    x = table.mean(axis=1)
    boldness = _weigh_scatter(x, most, block)
    return [_bet(y, boldness, width) for y in (x, 1 - x)]


def _weigh_scatter(x: Floats, most: float, block: int) -> Floats:
    """Return for each trial how many independent clients a trial is worth, by those before.

    That is q (1 - q) / s^2, of the trials of whole blocks and two more, one in which all succeed
    and one in which none does; rounded down to quarters, so that few stakes differ.
    """
    if most == 1:
        return np.ones(len(x))
    before = np.arange(len(x)) // block * block
    padded = np.concatenate(([1.0, 0.0], x))
    count = before + 2
    mean = np.cumsum(padded)[before + 1] / count
    variance = (np.cumsum(padded**2)[before + 1] - count * mean**2) / (count - 1)
    worth = np.clip(mean * (1 - mean) / variance, 1, most)
    return np.asarray(np.floor(4 * worth + 1e-9) / 4)


def _bet(x: Floats, boldness: Floats, width: float) -> Floats:
    """Return the logarithm of what becomes of each part of a gambler's capital, for each m.

    The gambler stakes on success. Its capital falls as m rises: what a trial brings is linear in x,
    and falls at x = 0 and at x = 1.
    """
    plain, factors = _find_stakes(width), FACTORS[:, None]
    capital = np.zeros((len(FACTORS), len(TRIED)))
    bets, times = np.unique(np.stack([x, boldness]), axis=1, return_counts=True)
    for (value, bold), count in zip(bets.T, times, strict=True):
        stakes = np.minimum(bold * factors * plain, np.maximum(plain, MOST_STAKED))
        capital += count * np.log1p(stakes * (value / TRIED - 1))
    return capital


def _find_low(capital: Floats, times: float = 1.0) -> float:
    """Return the highest m that the gambler shows to be too low, if trials went on like that.

    capital: of a gambler on success.
    times: how many times the trials.
    """
    whole = np.logaddexp.reduce(np.log(PARTS)[:, None] + times * capital, axis=0)
    below = int(np.count_nonzero(whole >= BAR))
    return float(TRIED[below - 1]) if below else 0.0


@lru_cache(maxsize=32)
def _find_stakes(width: float) -> Floats:
    """Return what part of the capital is staked on success, for each m and trials of one client.

    At the end of the wait for [m, m + width], the share seen is that which tells as much against
    the one end as against the other (in relative entropy). The best stakes against m are those of
    a gambler that knows this share:

        (share - m) / (1 - m)
    """
    # An interval that would go beyond 1 ends there.
    m = np.minimum(TRIED, 1 - width)
    other = np.minimum(m + width, 1 - 1e-9)
    against = np.log((1 - m) / (1 - other))
    share = against / (against + np.log(other / m))
    # Where share / m would rise, a low m could outlast a higher one.
    share = m * np.minimum.accumulate(share / m)
    return np.asarray((share - m) / (1 - m))
