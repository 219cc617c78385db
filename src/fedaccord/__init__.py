"""fedaccord tells a federation how much data each member should give.

And whether anyone would gain by giving less.
"""

from fedaccord.allocation import Allocation
from fedaccord.audit import Answer, Audit, audit
from fedaccord.equilibria.base import Interval, Solution, Status
from fedaccord.equilibria.dynamics import Path, best_response_dynamics
from fedaccord.equilibria.economics import (
    LeaveOneOut,
    Payments,
    carried_over,
    leave_one_out,
    requirement_prices,
    support_payments,
)
from fedaccord.equilibria.envy_free import solve_envy_free
from fedaccord.equilibria.exhaustive import all_envy_free, all_equilibria
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.prices import (
    Price,
    price_of_anarchy,
    price_of_fairness,
    price_of_stability,
)
from fedaccord.equilibria.stable import solve_stable
from fedaccord.equilibria.structure import (
    CoreSet,
    core_set,
    everyone_contributes,
    everyone_must_contribute,
    is_diagonally_dominant,
)
from fedaccord.errors import FedaccordError, InputError
from fedaccord.games.base import Game
from fedaccord.games.behaved import Certified, Refuted, Unknown
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.files import read_game, write_game
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.games.pac import PacGame

__version__ = "0.1.0"

__all__ = [
    "Allocation",
    "Answer",
    "Audit",
    "Certified",
    "CoreSet",
    "CoverageGame",
    "DiscoveryGame",
    "FedaccordError",
    "FunctionGame",
    "Game",
    "InputError",
    "Interval",
    "LeaveOneOut",
    "LinearGame",
    "PacGame",
    "Path",
    "Payments",
    "Price",
    "Refuted",
    "Solution",
    "Status",
    "Unknown",
    "all_envy_free",
    "all_equilibria",
    "audit",
    "best_response_dynamics",
    "carried_over",
    "core_set",
    "everyone_contributes",
    "everyone_must_contribute",
    "is_diagonally_dominant",
    "leave_one_out",
    "price_of_anarchy",
    "price_of_fairness",
    "price_of_stability",
    "read_game",
    "requirement_prices",
    "solve_envy_free",
    "solve_optimal",
    "solve_stable",
    "support_payments",
    "write_game",
]
