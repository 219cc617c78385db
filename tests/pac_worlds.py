"""Worlds for tests: the paper's cycle, random ones, and utilities by plain enumeration."""

from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from fedaccord.games.pac.worlds import World


def cycle_worlds(d=1):
    """The general construction for Theorem 3: z_0, z_1, z_2 uniform in {0, 1}^d."""
    worlds = []
    for bits in product((0, 1), repeat=3 * d):
        z = [bits[i * d : (i + 1) * d] for i in range(3)]
        draws = [
            [((2 * i + z[i][j]) * d + j, z[i - 1][j], Fraction(1, d)) for j in range(d)]
            for i in range(3)
        ]
        worlds.append(World(Fraction(1, 2 ** (3 * d)), draws))
    return worlds


def find_cycle_threshold(requirement, d):
    """Give the least m with 1 - (1/2)(1 - 1/d)^m >= requirement, in Fractions."""
    m = 0
    while 1 - Fraction(1, 2) * (1 - Fraction(1, d)) ** m < requirement:
        m += 1
    return m


@st.composite
def random_worlds(draw, agents=2, points=2, deterministic=False):
    """Draw two or three worlds over two labels; with one label per point if deterministic."""
    number = draw(st.integers(2, 3))
    weights = draw(st.lists(st.integers(1, 4), min_size=number, max_size=number))
    worlds = []
    for weight in weights:
        labels = draw(st.lists(st.integers(0, 1), min_size=points, max_size=points))
        pairs = [(x, labels[x]) for x in range(points)]
        if not deterministic:
            pairs = list(product(range(points), (0, 1)))
        samples = []
        for _ in range(agents):
            masses = draw(
                st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)).filter(any)
            )
            total = sum(masses)
            samples.append(
                [(x, y, Fraction(n, total)) for (x, y), n in zip(pairs, masses, strict=True)]
            )
        worlds.append(World(Fraction(weight, sum(weights)), samples))
    return worlds


def _samples(world, counts):
    """List every sample, as ordered draws, with its probability in a world."""
    each = [draws for draws, m in zip(world.samples, counts, strict=True) for _ in range(m)]
    for chosen in product(*each):
        chance = Fraction(1)
        for _, _, p in chosen:
            chance *= p
        yield tuple((x, y) for x, y, _ in chosen), chance


def plain_bayes_utility(worlds, agent, counts):
    """Sum over every sample, straight from the definition."""
    weights = {}
    for w, world in enumerate(worlds):
        for sample, chance in _samples(world, counts):
            weights.setdefault(sample, {}).setdefault(w, Fraction(0))
            weights[sample][w] += world.prior * chance
    total = Fraction(0)
    for posterior in weights.values():
        scores = {}
        for w, weight in posterior.items():
            for x, y, p in worlds[w].samples[agent]:
                scores.setdefault(x, {}).setdefault(y, Fraction(0))
                scores[x][y] += weight * p
        total += sum(max(labels.values()) for labels in scores.values())
    return total


def plain_worst_utility(worlds, agent, counts):
    """List every hypothesis: each completion of each world's labelling."""
    tables = [{x: y for draws in w.samples for x, y, _ in draws} for w in worlds]
    points = sorted({x for table in tables for x in table})
    labels = sorted({y for table in tables for y in table.values()})
    hypotheses = {
        h
        for table in tables
        for h in product(labels, repeat=len(points))
        if all(h[points.index(x)] == y for x, y in table.items())
    }
    total = Fraction(0)
    for world in worlds:
        for sample, chance in _samples(world, counts):
            agreeing = [h for h in hypotheses if all(h[points.index(x)] == y for x, y in sample)]
            total += (
                world.prior
                * chance
                * min(
                    sum(
                        (p for x, y, p in world.samples[agent] if h[points.index(x)] == y),
                        Fraction(0),
                    )
                    for h in agreeing
                )
            )
    return total
