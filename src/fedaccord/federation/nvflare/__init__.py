"""The same algorithms under NVFlare: a controller for the server, an executor for the sites.

Every name is imported when it is first asked for, and needs NVFlare and torch.
"""

from fedaccord._lazy import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
