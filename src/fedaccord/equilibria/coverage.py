"""Solvers of random coverage games, one per solution concept."""

from fedaccord.equilibria.coverage_envy import envy_free_coverage
from fedaccord.equilibria.coverage_optimal import optimal_coverage
from fedaccord.equilibria.coverage_stable import stable_coverage

__all__ = ["envy_free_coverage", "optimal_coverage", "stable_coverage"]
