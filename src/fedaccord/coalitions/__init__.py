"""Coalitions of agents: groupings that no group would leave."""
