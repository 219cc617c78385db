"""Results in, tables and pages out; nothing is computed here.

Every name is imported when it is first asked for: tables need neither matplotlib nor jinja2.
"""

from fedaccord._lazy import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
