"""Section 5.3's comparison: envy-free sets of linear games are not convex either."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np

from fedaccord.audit import Answer, audit
from fedaccord.reproduce.claims import Claims, Finding, Setting, not_so, weighed
from fedaccord.reproduce.draws import set_benefits, unequal_requirements
from fedaccord.reproduce.oracle import HALF, ExactGame, mix, to_floats

CLAIMS = Claims()
SEED = 53
GAMES = (40, 300)


@CLAIMS.add(
    "linear-envy-free-set",
    claim="With linear utilities, unlike with coverage, the envy-free set is convex",
    place="Section 5.3, its first paragraph",
    paper="Unlike the linear case, both the stable and the envy-free set of random coverage are "
    "non-convex.",
    minutes=(0.1, 0.5),
)
def linear_envy_free_set(setting: Setting) -> Finding:
    """Mix envy-free allocations of linear games, in fractions."""
    example = ExactGame.of([["1", "0.5"], ["0.5", "1"]], ["1", "0.5"])
    one, both = (Fraction(1), Fraction(0)), (Fraction(1), Fraction(1))
    refuted = is_gap(example, one, both)
    games = unequal_equilibria(GAMES[setting.full])
    found = [gap_between(game) for game in games]
    return weighed(
        all(found),
        refuted,
        "At W = (1, 0.5; 0.5, 1) and requirements of 1 and 0.5, (1, 0) and (1, 1) are envy-free, "
        f"and the first agent {'envies' if refuted else 'does not envy'} the second at (1, 1/2). "
        f"In {sum(found)} of {len(games)} other linear games whose equilibrium is envy-free and "
        "not the same for all, mixing it with a large enough equal allocation brings envy, in "
        "exact fractions and by the audit." + not_so({"mixing always brings envy": all(found)}),
        "Only the stable set of a linear game (with symmetric positive semidefinite W) "
        "is convex. Its envy-free set is not, as soon as it holds an unequal allocation.",
        evidence={
            "games": len(games),
            "mixtures_with_envy": sum(found),
            "example_refutes": refuted,
            "seed": SEED,
        },
    )


def is_gap(exact: ExactGame, first: Sequence[Fraction], second: Sequence[Fraction]) -> bool:
    """Say whether two allocations are envy-free and their middle is not; the audit must agree."""
    middle = mix(first, second, HALF)
    exactly = [exact.is_feasible(t) and not exact.envy(t) for t in (first, second, middle)]
    audited = [audit(exact.game(), to_floats(t)).envy_free for t in (first, second, middle)]
    return exactly == [a is Answer.TRUE for a in audited] == [True, True, False]


def unequal_equilibria(count: int) -> list[ExactGame]:
    """Draw games of equal sets, no two the same, whose equilibrium is not the same for all."""
    rng = np.random.default_rng(SEED)
    games: list[ExactGame] = []
    while len(games) < count:
        benefits = set_benefits(rng, 3, int(rng.integers(5, 9)))
        exact = ExactGame.of(benefits, unequal_requirements(rng, 3))
        apart = all(benefits[i][j] < 1 for i, j in permutations(range(3), 2))
        if apart and len(set(exact.equilibria[0])) > 1:
            games.append(exact)
    return games


def gap_between(exact: ExactGame) -> bool:
    """Look for an equal allocation whose middle with the equilibrium has envy, by doubling."""
    stable = exact.equilibria[0]
    level = max(exact.requirements)
    for _ in range(8):
        if is_gap(exact, stable, [level] * exact.size):
            return True
        level *= 2
    return False
