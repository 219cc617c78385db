"""Random coverage games that several tests use: the paper's, and ones to draw."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from fedaccord.games.coverage import CoverageGame


def flower(petals, **frame):
    """A core agent and b petals around it (Theorem 4); alike points stand in one column."""
    root = round(petals**0.5)
    agents = [0] * root + [i for i in range(1, petals + 1) for _ in (0, 1)]
    points = list(range(root))
    for i in range(petals):
        points += [i // root, root + i]
    rates = np.full(len(points), 1 / petals)
    shape = (petals + 1, root + petals)
    return CoverageGame(
        sparse.csr_array((rates, (agents, points)), shape=shape),
        np.full(petals + 1, 0.5 + 0.5 / petals),
        copies=[root] * root + [petals - root] * petals,
        **frame,
    )


def plain_flower(petals):
    """The same with every point in a column of its own."""
    root = round(petals**0.5)
    private = petals - root
    matrix = np.zeros((petals + 1, petals + petals * private))
    matrix[0, :petals] = 1 / petals
    for i in range(petals):
        group = i // root
        matrix[1 + i, group * root : (group + 1) * root] = 1 / petals
        matrix[1 + i, petals + i * private : petals + (i + 1) * private] = 1 / petals
    return CoverageGame(matrix, np.full(petals + 1, 0.5 + 0.5 / petals))


def complete_graph(**frame):
    """K4: an agent per edge, uniform on its ends and its middle; 0..3 the cycle, 4, 5 diagonals."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    matrix = np.zeros((6, 10))
    for i, (a, b) in enumerate(edges):
        matrix[i, [a, b, 4 + i]] = 1 / 3
    return CoverageGame(matrix, [0.6] * 6, **frame)


def two_agents(**frame):
    """Two agents, both uniform on the same two points."""
    return CoverageGame([[0.5, 0.5], [0.5, 0.5]], [0.75, 0.75], **frame)


@st.composite
def coverage_games(draw, most_agents=4, most_points=4, highest=0.85, certain=True, **frame):
    """Draw small games of probabilities in eighths, some points certain, some agents alike."""
    k = draw(st.integers(1, most_agents))
    n = draw(st.integers(1 if certain else 2, most_points))
    rows = []
    for _ in range(k):
        cuts = sorted(draw(st.lists(st.integers(0, 8), min_size=n - 1, max_size=n - 1)))
        row = np.diff([0, *cuts, 8]) / 8
        if not certain and row.max() == 1:
            row = np.full(n, 1 / n)
        rows.append(row)
    levels = st.floats(0.4, highest).map(lambda x: round(x, 3))
    requirements = draw(st.lists(levels, min_size=k, max_size=k))
    return CoverageGame(np.array(rows), requirements, **frame)


def contributions(size, most=3.0):
    """Draw contributions, whole ones and zeros among them."""
    amount = st.one_of(
        st.floats(0, most).map(lambda t: round(t, 6)), st.integers(0, int(most)).map(float)
    )
    return st.lists(amount, min_size=size, max_size=size).map(np.array)
