"""The same algorithms under Flower: strategies for the server, an app for the clients.

Every name is imported when it is first asked for. The strategies need Flower, and torch only where
the server's optimizer takes the steps; `client_app` needs both.
"""

from fedaccord._lazy import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
