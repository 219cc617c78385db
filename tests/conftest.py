"""Hypothesis profiles: the same examples every time in CI, fresh ones elsewhere."""

import os

from hypothesis import settings

# No deadline: the first call of a compiled function takes seconds, the next microseconds.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")
