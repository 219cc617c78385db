"""The federated algorithms, one per module."""
