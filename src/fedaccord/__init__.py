"""fedaccord tells a federation how much data each agent should give.

It also checks whether any agent would gain by giving less.
"""

from fedaccord._lazy import attach_names

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
