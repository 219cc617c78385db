"""Who owns which trial numbers, so that no run that chose something is counted as evidence for it.

A run's trial decides its partition and its random draws. Each use of runs takes trials from its
own block of numbers; what is chosen in one block is tested in another.

    trials                     are made by
    0         to   999,999     audits of defection and solo curves, which count them
    1,000,000 to 1,999,999     audits that first find the contributions to prescribe
    2,000,000 to 2,499,999     pilots of the design
    2,500,000 to 2,999,999     pilots near the plan that the first ones suggest
    3,000,000 to 3,999,999     EQ-FED, choosing a plan
    4,000,000 to 4,999,999     EQ-FED, verifying it

Trials of the difficulty of points, and draws of hyperparameters, are no runs: they have random
streams of their own and are numbered from 0.
"""

from __future__ import annotations

# As many as there are trials in the smaller blocks.
from fedaccord.measurement.design import MOST_PILOTS as MOST_PILOTS

PLANNING = 1_000_000
PILOTS = 2_000_000
AIMED = 2_500_000
SEEKING = 3_000_000
VERIFYING = 4_000_000

# Those from which pilots may be taken: of audits that find contributions, and of earlier pilots.
UNCOUNTED = range(PLANNING, SEEKING)
