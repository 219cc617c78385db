"""The paper in one command: its claims, each with a check that could come out otherwise."""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily

if TYPE_CHECKING:
    from fedaccord.reproduce.claims import Claim, Claims, Finding, Row, Setting, Verdict
    from fedaccord.reproduce.running import Reproduction, all_claims, reproduce

__all__ = [
    "Claim",
    "Claims",
    "Finding",
    "Reproduction",
    "Row",
    "Setting",
    "Verdict",
    "all_claims",
    "reproduce",
]

_HOMES = {
    name: f"fedaccord.reproduce.{module}"
    for module, names in {
        "claims": ("Claim", "Claims", "Finding", "Row", "Setting", "Verdict"),
        "running": ("Reproduction", "all_claims", "reproduce"),
    }.items()
    for name in names
}

__getattr__ = lazily(__name__, _HOMES)
