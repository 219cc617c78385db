"""The same algorithms under NVFlare: a controller for the server, an executor for the sites.

Every name is imported when it is first asked for, and needs NVFlare and torch.
"""

from fedaccord._lazy import attach_names
from fedaccord.federation.nvflare.versions import check_version, find_version

# Before any name is, because an older NVFlare may lack what it imports.
check_version(find_version())

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
