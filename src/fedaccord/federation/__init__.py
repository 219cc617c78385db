"""What happens when they train: clients, algorithms, histories and the audit of defection.

Every name is imported when it is first asked for: algorithms and allotments can be used where
torch is not installed.
"""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily

if TYPE_CHECKING:
    from fedaccord.federation.algorithms import Algorithm, FedAvg, MwFed, Solo
    from fedaccord.federation.clients import Client, Federation
    from fedaccord.federation.config import Config
    from fedaccord.federation.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Satisfaction,
    )
    from fedaccord.federation.data import Dataset, load_data
    from fedaccord.federation.dealing import Dealer, SiteDealer
    from fedaccord.federation.defection import Known, Progress, defection_curves
    from fedaccord.federation.difficulty import Bands, Scores, loss_scores, trial_scores
    from fedaccord.federation.history import History
    from fedaccord.federation.intervals import Proportion
    from fedaccord.federation.models import PaperNet, model_factory
    from fedaccord.federation.piloting import pilot_design, run_pilots
    from fedaccord.federation.pledges import Pledged
    from fedaccord.federation.preparation import Preparation
    from fedaccord.federation.pretraining import (
        Draw,
        PretrainedWeights,
        pretrain,
        search_hyperparameters,
    )
    from fedaccord.federation.releasing import HoldBack, Release, RelievedMwFed
    from fedaccord.federation.searching import Seeking
    from fedaccord.federation.seeking import seek_equilibrium
    from fedaccord.federation.sought import Sought, Verified
    from fedaccord.federation.store import RunStore
    from fedaccord.federation.training import train

__all__ = [
    "Algorithm",
    "Bands",
    "Client",
    "Config",
    "Dataset",
    "Dealer",
    "DefectionAudit",
    "DefectionCurve",
    "DefectionLevel",
    "Draw",
    "FedAvg",
    "Federation",
    "History",
    "HoldBack",
    "Known",
    "MwFed",
    "PaperNet",
    "Pledged",
    "Preparation",
    "PretrainedWeights",
    "Progress",
    "Proportion",
    "Release",
    "RelievedMwFed",
    "RunStore",
    "Satisfaction",
    "Scores",
    "Seeking",
    "SiteDealer",
    "Solo",
    "Sought",
    "Verified",
    "defection_curves",
    "load_data",
    "loss_scores",
    "model_factory",
    "pilot_design",
    "pretrain",
    "run_pilots",
    "search_hyperparameters",
    "seek_equilibrium",
    "train",
    "trial_scores",
]

_HOMES = {
    "Algorithm": "fedaccord.federation.algorithms",
    "FedAvg": "fedaccord.federation.algorithms",
    "MwFed": "fedaccord.federation.algorithms",
    "Solo": "fedaccord.federation.algorithms",
    "Client": "fedaccord.federation.clients",
    "Federation": "fedaccord.federation.clients",
    "Config": "fedaccord.federation.config",
    "DefectionAudit": "fedaccord.federation.curves",
    "DefectionCurve": "fedaccord.federation.curves",
    "DefectionLevel": "fedaccord.federation.curves",
    "Satisfaction": "fedaccord.federation.curves",
    "Dataset": "fedaccord.federation.data",
    "load_data": "fedaccord.federation.data",
    "Dealer": "fedaccord.federation.dealing",
    "SiteDealer": "fedaccord.federation.dealing",
    "Known": "fedaccord.federation.defection",
    "Progress": "fedaccord.federation.defection",
    "defection_curves": "fedaccord.federation.defection",
    "Bands": "fedaccord.federation.difficulty",
    "Scores": "fedaccord.federation.difficulty",
    "loss_scores": "fedaccord.federation.difficulty",
    "trial_scores": "fedaccord.federation.difficulty",
    "History": "fedaccord.federation.history",
    "Proportion": "fedaccord.federation.intervals",
    "PaperNet": "fedaccord.federation.models",
    "model_factory": "fedaccord.federation.models",
    "pilot_design": "fedaccord.federation.piloting",
    "run_pilots": "fedaccord.federation.piloting",
    "Pledged": "fedaccord.federation.pledges",
    "Preparation": "fedaccord.federation.preparation",
    "Draw": "fedaccord.federation.pretraining",
    "PretrainedWeights": "fedaccord.federation.pretraining",
    "pretrain": "fedaccord.federation.pretraining",
    "search_hyperparameters": "fedaccord.federation.pretraining",
    "HoldBack": "fedaccord.federation.releasing",
    "Release": "fedaccord.federation.releasing",
    "RelievedMwFed": "fedaccord.federation.releasing",
    "Seeking": "fedaccord.federation.searching",
    "seek_equilibrium": "fedaccord.federation.seeking",
    "Sought": "fedaccord.federation.sought",
    "Verified": "fedaccord.federation.sought",
    "RunStore": "fedaccord.federation.store",
    "train": "fedaccord.federation.training",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
