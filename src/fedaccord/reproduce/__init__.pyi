"""The public names, each with the module that it is imported from when first asked for."""

from .claims import Claim as Claim
from .claims import Claims as Claims
from .claims import Finding as Finding
from .claims import Row as Row
from .claims import Setting as Setting
from .claims import Verdict as Verdict
from .run import Reproduction as Reproduction
from .run import all_claims as all_claims
from .run import reproduce as reproduce
