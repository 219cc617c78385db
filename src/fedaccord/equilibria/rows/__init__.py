"""Solvers of games with several goals per agent, and of games with harm."""
