"""Intervals hold at every look, and differences are those of pairs: simulated, and by formula."""

import functools
import math

import numpy as np
import pytest

from fedaccord.federation.defection.differences import compare_trials
from fedaccord.federation.defection.intervals import wilson
from fedaccord.federation.defection.sequences import (
    BAR,
    FACTORS,
    MOST_STAKED,
    PARTS,
    _find_stakes,
    _weigh_scatter,
    expect_trials,
    sequence,
)

LOOKS = 80
SHARES = (0.02, 0.1, 0.5, 0.9, 0.98)


@functools.cache
def ends(interval, width):
    """The ends after n trials with s successes, for all n and s up to LOOKS."""
    found = np.tile([0.0, 1.0], (LOOKS + 1, LOOKS + 1, 1))
    for n in range(1, LOOKS + 1):
        for s in range(n + 1):
            one = wilson(s, n) if interval is wilson else sequence(column(s, n), width)
            found[n, s] = one.low, one.high
    return found


def column(successes, trials):
    return np.arange(trials)[:, None] < successes


def coverage(interval, share, width=0.2, repeats=4_000):
    """How often all of the intervals hold the true share, with a look after every trial."""
    random = np.random.default_rng(round(1_000 * share))
    successes = np.cumsum(random.random((repeats, LOOKS)) < share, axis=1)
    found = ends(interval, width)[np.arange(1, LOOKS + 1), successes]
    held = (found[..., 0] <= share) & (share <= found[..., 1])
    return held.all(axis=1).mean()


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("share", SHARES)
def test_a_sequence_holds_the_share_at_every_look(share, width):
    assert coverage(sequence, share, width) >= 0.95


def test_wilsons_interval_does_not():
    assert max(coverage(wilson, share) for share in SHARES) < 0.90


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0, 0.5, 1])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_sequence_holds_the_share_of_clients_that_end_alike(share, alike):
    random = np.random.default_rng(5)
    held = []
    for _ in range(200):
        own = random.random((30, 4)) < share
        together = random.random((30, 1)) < share
        table = np.where(random.random((30, 1)) < alike, together, own)
        looks = (sequence(table[:n], 0.3) for n in range(1, 31))
        held.append(all(one.low <= share <= one.high for one in looks))
    # Of 200, 95 % less three standard deviations.
    assert np.mean(held) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 200)


def test_blocks_in_which_everyone_defects_once_are_looked_at_when_they_end():
    """Two of four always succeed: within a block, the conditional share is not one half."""
    random = np.random.default_rng(2)
    blocks = [random.permuted(np.tile([1, 1, 0, 0], (30, 1)), axis=1) for _ in range(200)]
    for trials in (block.reshape(-1, 1) for block in blocks):
        looks = [sequence(trials[:n], 0.2) for n in range(4, 121, 4)]
        assert all(one.low <= 0.5 <= one.high for one in looks)


@pytest.mark.parametrize("block", [1, 4])
def test_stakes_follow_the_trials_of_the_blocks_before(block):
    """A gambler that knew the trial, or the rest of its block, would be rich without a reason."""
    x = np.random.default_rng(3).integers(1, 4, 20) / 4
    found = _weigh_scatter(x, 4, block)
    assert len(set(found)) > 1
    for start in range(0, 20, block):
        other = np.append(x[:start], 1 - x[start:])
        assert (found[: start + block] == _weigh_scatter(other, 4, block)[: start + block]).all()
        assert len(set(found[start : start + block])) == 1


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (7, 7), (3, 9), (10, 12), (30, 60)])
@pytest.mark.parametrize("width", [0.1, 0.3])
def test_the_ends_are_where_the_gamblers_are_too_rich(successes, trials, width):
    """The bets one by one, with exact products; both ends lie within a step of where these turn."""

    def grow(m, won, lost):
        stake = _find_stakes(width)[round(1_000 * m) - 1]
        after = (
            part * (1 + e * (1 / m - 1)) ** won * (1 - e) ** lost
            for part, factor in zip(PARTS, FACTORS, strict=True)
            for e in [min(factor * stake, max(stake, MOST_STAKED))]
        )
        return sum(after)

    found = sequence(column(successes, trials), width)
    rich = math.exp(BAR)
    for end, won in ((found.low, successes), (1 - found.high, trials - successes)):
        end = round(end, 3)
        if end:
            assert grow(end, won, trials - won) >= rich
        assert grow(end + 0.001, won, trials - won) < rich


@pytest.mark.parametrize("width", [0.01, 0.05, 0.2, 0.5, 0.9, 0.99])
def test_capital_falls_as_the_share_rises(width):
    """So that the shares that stay are an interval; and no gambler loses everything at once."""
    m, plain = np.arange(1, 1_000) / 1_000, _find_stakes(width)
    for bold in (1, 2, 4, 8, 100):
        stakes = np.minimum(bold * plain, np.maximum(plain, MOST_STAKED))
        assert (stakes > 0).all() and (stakes < 1).all()
        for x in (0, 0.3, 1):
            assert (np.diff(stakes * (x / m - 1)) <= 1e-12).all()


@pytest.mark.parametrize("share", [0.5, 0.9, 1])
def test_the_expected_trials_are_those_that_are_needed(share):
    trials = np.array(([1] * round(10 * share) + [0] * round(10 - 10 * share)) * 40)[:, None]
    needed = next(n for n in range(1, 400) if sequence(trials[:n], 0.2).width <= 0.2)
    assert expect_trials(trials[:20], 0.2, 400) == pytest.approx(needed, rel=0.1)
    assert expect_trials(trials[:20], 0.2, 21) == 21
    assert expect_trials(trials[:needed], 0.2, 400) == needed
    assert expect_trials([], 0.2, 7) == 7


def test_nothing_is_known_without_trials():
    assert str(sequence([], 0.2)) == "unknown"
    nothing = compare_trials([], [[True]])
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high, nothing.trials) == (-1, 1, 0)


def pairs(random, trials, both, first, second, clients=1):
    """Outcomes of two runs in which both, only the first or only the second succeeds."""
    drawn = random.random((trials, clients))
    return drawn < both + first, (drawn < both) | (
        (drawn >= both + first) & (drawn < both + first + second)
    )


CASES = [(0.5, 0.4, 0.0), (0.3, 0.2, 0.2), (0.9, 0.02, 0.03), (0.0, 0.95, 0.0), (0.45, 0.1, 0.4)]


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_paired_intervals_hold_the_difference(case, clients):
    random = np.random.default_rng(1)
    for trials in (10, 30, 100):
        found = [compare_trials(*pairs(random, trials, *case, clients)) for _ in range(1_000)]
        held = [one.low <= case[1] - case[2] <= one.high for one in found]
        assert np.mean(held) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 1_000)


def test_a_pair_tells_more_than_two_intervals():
    """With outcomes that go together, two intervals say too little of their difference."""
    first, second = pairs(np.random.default_rng(0), 100, 0.5, 0.1, 0.0)
    found = compare_trials(first, second)
    alone = math.hypot(*(wilson(int(x.sum()), 100).width for x in (first, second)))
    assert found.high - found.low < 0.6 * alone


def test_paired_intervals_are_those_of_agresti_and_min():
    """Their formula, from the four cells of the table with a half added to each."""
    both, first, second, neither = 20, 9, 3, 8
    one = [1] * both + [1] * first + [0] * second + [0] * neither
    other = [1] * both + [0] * first + [1] * second + [0] * neither
    found = compare_trials(np.array(one)[:, None], np.array(other)[:, None])
    n, b, c = 42, first + 0.5, second + 0.5
    reach = 1.959964 * math.sqrt((b + c) - (b - c) ** 2 / n) / n
    assert found.value == pytest.approx(6 / 40)
    assert (found.low, found.high) == pytest.approx(((b - c) / n - reach, (b - c) / n + reach))


@pytest.mark.parametrize("case", CASES)
def test_sequences_of_differences_hold_them_at_every_look(case):
    random = np.random.default_rng(4)
    held = []
    for _ in range(150):
        first, second = pairs(random, 40, *case)
        looks = (compare_trials(first[:n], second[:n], 0.3, block=4) for n in range(4, 41, 4))
        held.append(all(one.low <= case[1] - case[2] <= one.high for one in looks))
    assert np.mean(held) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 150)


def test_differences_use_the_trials_that_both_have():
    first, second = np.ones((9, 2)), np.zeros((5, 2))
    assert compare_trials(first, second) == compare_trials(first[:5], second)
    assert compare_trials(second, first).value == -1
