"""The paper in one command: its claims, each with a check that could come out otherwise."""

from fedaccord._lazy import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
