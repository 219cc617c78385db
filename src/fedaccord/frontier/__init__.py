"""Algorithms compared on one federation, each with a plan of its own."""
