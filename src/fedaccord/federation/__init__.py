"""What happens when they train: clients, algorithms, histories and the audit of defection.

Every name is imported when it is first asked for: algorithms and allotments can be used where
torch is not installed.
"""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily

if TYPE_CHECKING:
    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.algorithms.fedavg import FedAvg
    from fedaccord.federation.algorithms.hold_back import HoldBack
    from fedaccord.federation.algorithms.mw_fed import MwFed
    from fedaccord.federation.algorithms.mw_relief import RelievedMwFed
    from fedaccord.federation.algorithms.pledged import Pledged
    from fedaccord.federation.algorithms.release import Release
    from fedaccord.federation.algorithms.solo import Solo
    from fedaccord.federation.clients import Client, Federation
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.data.dataset import Dataset, load_data
    from fedaccord.federation.data.difficulty import Bands, Scores, loss_scores, trial_scores
    from fedaccord.federation.data.preprocessing import Preparation
    from fedaccord.federation.data.pretraining import (
        Draw,
        PretrainedWeights,
        pretrain,
        search_hyperparameters,
    )
    from fedaccord.federation.defection.audit import Known, defection_curves
    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Satisfaction,
    )
    from fedaccord.federation.defection.intervals import Proportion
    from fedaccord.federation.eqfed.result import Sought, Verified
    from fedaccord.federation.eqfed.search import Seeking
    from fedaccord.federation.eqfed.seek import seek_equilibrium
    from fedaccord.federation.history import History
    from fedaccord.federation.models.networks import PaperNet, model_factory
    from fedaccord.federation.partition import Dealer, SiteDealer
    from fedaccord.federation.pilots import pilot_design, run_pilots
    from fedaccord.federation.runs.execute import Progress
    from fedaccord.federation.runs.store import RunStore
    from fedaccord.federation.training.loop import train

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
    "Algorithm": "fedaccord.federation.algorithms.base",
    "FedAvg": "fedaccord.federation.algorithms.fedavg",
    "MwFed": "fedaccord.federation.algorithms.mw_fed",
    "Solo": "fedaccord.federation.algorithms.solo",
    "Client": "fedaccord.federation.clients",
    "Federation": "fedaccord.federation.clients",
    "Config": "fedaccord.federation.config.load",
    "DefectionAudit": "fedaccord.federation.defection.curves",
    "DefectionCurve": "fedaccord.federation.defection.curves",
    "DefectionLevel": "fedaccord.federation.defection.curves",
    "Satisfaction": "fedaccord.federation.defection.curves",
    "Dataset": "fedaccord.federation.data.dataset",
    "load_data": "fedaccord.federation.data.dataset",
    "Dealer": "fedaccord.federation.partition",
    "SiteDealer": "fedaccord.federation.partition",
    "Known": "fedaccord.federation.defection.audit",
    "Progress": "fedaccord.federation.runs.execute",
    "defection_curves": "fedaccord.federation.defection.audit",
    "Bands": "fedaccord.federation.data.difficulty",
    "Scores": "fedaccord.federation.data.difficulty",
    "loss_scores": "fedaccord.federation.data.difficulty",
    "trial_scores": "fedaccord.federation.data.difficulty",
    "History": "fedaccord.federation.history",
    "Proportion": "fedaccord.federation.defection.intervals",
    "PaperNet": "fedaccord.federation.models.networks",
    "model_factory": "fedaccord.federation.models.networks",
    "pilot_design": "fedaccord.federation.pilots",
    "run_pilots": "fedaccord.federation.pilots",
    "Pledged": "fedaccord.federation.algorithms.pledged",
    "Preparation": "fedaccord.federation.data.preprocessing",
    "Draw": "fedaccord.federation.data.pretraining",
    "PretrainedWeights": "fedaccord.federation.data.pretraining",
    "pretrain": "fedaccord.federation.data.pretraining",
    "search_hyperparameters": "fedaccord.federation.data.pretraining",
    "HoldBack": "fedaccord.federation.algorithms.hold_back",
    "Release": "fedaccord.federation.algorithms.release",
    "RelievedMwFed": "fedaccord.federation.algorithms.mw_relief",
    "Seeking": "fedaccord.federation.eqfed.search",
    "seek_equilibrium": "fedaccord.federation.eqfed.seek",
    "Sought": "fedaccord.federation.eqfed.result",
    "Verified": "fedaccord.federation.eqfed.result",
    "RunStore": "fedaccord.federation.runs.store",
    "train": "fedaccord.federation.training.loop",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
