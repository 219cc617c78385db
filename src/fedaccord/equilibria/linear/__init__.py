"""Solvers of linear games, one solution concept per module."""
