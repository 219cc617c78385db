"""Solvers of random coverage games, one per solution concept."""

from fedaccord.equilibria.coverage.envy_free import envy_free_coverage
from fedaccord.equilibria.coverage.optimal import optimal_coverage
from fedaccord.equilibria.coverage.stable import stable_coverage

__all__ = ["envy_free_coverage", "optimal_coverage", "stable_coverage"]
