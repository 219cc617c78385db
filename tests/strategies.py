"""Hypothesis strategies that draw games; coverage games and worlds have files of their own."""

import numpy as np
from hypothesis import strategies as st

from fedaccord.games.linear import DiscoveryGame, LinearGame

EIGHTHS = 8


def eighths(low, high):
    """Draw a multiple of 1/8, which floats and Fractions hold alike."""
    return st.integers(low, high).map(lambda n: n / EIGHTHS)


@st.composite
def requirement_lists(draw, size, equal=False, low=0, high=16):
    """Draw requirements up to 2, all the same where asked for."""
    if equal:
        return [draw(eighths(max(low, 1), high))] * size
    return draw(st.lists(eighths(low, high), min_size=size, max_size=size))


@st.composite
def linear_games(draw, most_agents=3, least_agents=1, symmetric=False, equal=False, **frame):
    """Draw any benefits in eighths, own ones of a half at least: needs stay small."""
    k = draw(st.integers(least_agents, most_agents))
    entries = draw(st.lists(eighths(0, 8), min_size=k * k, max_size=k * k))
    benefits = np.array(entries).reshape(k, k)
    if symmetric:
        benefits = np.triu(benefits) + np.triu(benefits, 1).T
    own = draw(st.lists(eighths(4, 8), min_size=k, max_size=k))
    benefits[np.diag_indices(k)] = own
    return LinearGame(benefits, draw(requirement_lists(k, equal)), **frame)


@st.composite
def psd_games(draw, most_agents=3, least_agents=1, equal=False, **frame):
    """Draw W = B B' with B >= 0, singular ones and twins among them."""
    k = draw(st.integers(least_agents, most_agents))
    n = draw(st.integers(1, k + 1))
    entries = draw(st.lists(eighths(0, 8), min_size=k * n, max_size=k * n))
    factor = np.array(entries).reshape(k, n)
    factor[factor.sum(axis=1) == 0, 0] = 0.5
    return LinearGame(factor @ factor.T, draw(requirement_lists(k, equal)), **frame)


@st.composite
def strict_psd_games(draw, most_agents=4):
    """Draw symmetric PSD benefits with W_ij < W_ii, the condition of Theorem 6."""
    k = draw(st.integers(2, most_agents))
    n = draw(st.integers(1, 4))
    entries = draw(st.lists(eighths(0, 8), min_size=k * n, max_size=k * n))
    factor = np.array(entries).reshape(k, n)
    # Rows of one length: by Cauchy-Schwarz no product exceeds a square, and the sum with a
    # multiple of the unit matrix makes it strict.
    lengths = np.linalg.norm(factor, axis=1)
    factor[lengths == 0, 0] = 1.0
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    benefits = factor @ factor.T
    benefits[np.diag_indices(k)] = 1.0 + draw(eighths(1, 8))
    return LinearGame(benefits, draw(requirement_lists(k, low=1)))


@st.composite
def discovery_games(draw, most_agents=4, most_points=4, **frame):
    """Draw distributions in eighths."""
    k = draw(st.integers(1, most_agents))
    n = draw(st.integers(1, most_points))
    rows = []
    for _ in range(k):
        cuts = sorted(draw(st.lists(st.integers(0, EIGHTHS), min_size=n - 1, max_size=n - 1)))
        rows.append(np.diff([0, *cuts, EIGHTHS]) / EIGHTHS)
    return DiscoveryGame(np.array(rows), draw(requirement_lists(k)), **frame)


@st.composite
def framed_games(draw, games, whole=False):
    """Draw a game with limits, minimums and costs; over integers everybody has a limit."""
    game = draw(games)
    k = game.size
    unit = 1 if whole else 4
    limit = st.integers(0, 4 * unit).map(lambda n: n / unit)
    if not whole:
        limit = st.one_of(st.just(np.inf), limit)
    limits = np.array(draw(st.lists(limit, min_size=k, max_size=k)))
    least = st.integers(0, 2 * unit).map(lambda n: n / unit)
    minimums = np.minimum(draw(st.lists(least, min_size=k, max_size=k)), limits)
    costs = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=k, max_size=k))
    return game.replace(limits=limits, minimums=minimums, costs=costs)
