"""Check an allocation against a game, trusting no solver."""

from fedaccord.check.decide import audit as audit
from fedaccord.check.decide import check as check
from fedaccord.check.result import Answer as Answer
from fedaccord.check.result import Check as Check

# The name of 0.1.0.
Audit = Check
