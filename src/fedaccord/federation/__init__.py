"""What happens when they train: clients, algorithms, histories and the audit of defection.

Every name is imported when it is first asked for: algorithms and allotments can be used where
torch is not installed.
"""

from fedaccord._lazy import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
