"""The paper's experiment: every statement of Section 6 and of its appendix that can be checked."""

from __future__ import annotations

from fedaccord.reproduce import alone, defecting, hardness, preparing, printed
from fedaccord.reproduce.claims import Claims

CLAIMS = Claims()
for _module in (alone, defecting, preparing, hardness, printed):
    for _claim in _module.CLAIMS.values():
        CLAIMS.include(_claim)
