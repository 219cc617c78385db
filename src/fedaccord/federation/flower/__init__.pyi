"""The public names, each with the module that it is imported from when first asked for."""

from .client import client_app as client_app
from .protocol import drawn_points as drawn_points
from .replies import Remark as Remark
from .server import AlgorithmStrategy as AlgorithmStrategy
from .server import Earned as Earned
from .server import FedAvg as FedAvg
from .server import MwFed as MwFed
from .server import PlannedFedAvg as PlannedFedAvg
from .server import Pledged as Pledged
from .server import Release as Release
