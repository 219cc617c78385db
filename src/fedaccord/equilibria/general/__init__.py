"""Solvers of games of any model: by dividing boxes, or by nothing but monotone utilities."""
