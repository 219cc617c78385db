"""The paper's experiment: every statement of Section 6 and of its appendix that can be checked."""

from __future__ import annotations

from fedaccord.reproduce import alone, defecting, difficulty, preparing, printed
from fedaccord.reproduce.claims import Claims

CLAIMS = Claims()
CLAIMS.include_all(*(part.CLAIMS for part in (alone, defecting, preparing, difficulty, printed)))
