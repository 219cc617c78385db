"""fedaccord tells a federation how much data each member should give.

And whether anyone would gain by giving less.
"""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily
from fedaccord.allocation import Allocation
from fedaccord.audit import Answer, Audit, audit
from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.errors import FedaccordError, InputError
from fedaccord.games.base import Certified, Game, Refuted, Unknown

if TYPE_CHECKING:
    from fedaccord.equilibria.all_concepts import (
        Price,
        price_of_anarchy,
        price_of_fairness,
        price_of_stability,
    )
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
    from fedaccord.equilibria.general.exhaustive import all_envy_free, all_equilibria
    from fedaccord.equilibria.optimal import solve_optimal
    from fedaccord.equilibria.stable import solve_stable
    from fedaccord.equilibria.structure import (
        CoreSet,
        core_set,
        everyone_contributes,
        everyone_must_contribute,
        is_diagonally_dominant,
    )
    from fedaccord.frontier.compare import compare_algorithms
    from fedaccord.frontier.from_federation import from_federation
    from fedaccord.frontier.result import Contender, Frontier, Goals
    from fedaccord.games.coverage import CoverageGame
    from fedaccord.games.files import read_game, write_game
    from fedaccord.games.function import FunctionGame
    from fedaccord.games.linear import DiscoveryGame, LinearGame
    from fedaccord.games.measured import LearningCurve, MeasuredGame
    from fedaccord.games.pac.exact import PacGame
    from fedaccord.measurement.diagnostics import Doubt
    from fedaccord.measurement.fit import Measurement, fit_curves
    from fedaccord.measurement.histograms import Histograms
    from fedaccord.measurement.pilots import PilotTable
    from fedaccord.planning.plan import make_plan
    from fedaccord.planning.result import Plan

__version__ = "0.1.0"

__all__ = [
    "Allocation",
    "Answer",
    "Audit",
    "Certified",
    "Contender",
    "CoreSet",
    "CoverageGame",
    "DiscoveryGame",
    "Doubt",
    "FedaccordError",
    "Frontier",
    "FunctionGame",
    "Game",
    "Goals",
    "Histograms",
    "InputError",
    "Interval",
    "LearningCurve",
    "LeaveOneOut",
    "LinearGame",
    "MeasuredGame",
    "Measurement",
    "PacGame",
    "Path",
    "Payments",
    "PilotTable",
    "Plan",
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
    "compare_algorithms",
    "core_set",
    "everyone_contributes",
    "everyone_must_contribute",
    "fit_curves",
    "from_federation",
    "is_diagonally_dominant",
    "leave_one_out",
    "make_plan",
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

# What brings scipy along is imported when it is first asked for: `import fedaccord` stays quick.
_HOMES = {
    "Path": "fedaccord.equilibria.dynamics",
    "best_response_dynamics": "fedaccord.equilibria.dynamics",
    "LeaveOneOut": "fedaccord.equilibria.economics",
    "Payments": "fedaccord.equilibria.economics",
    "carried_over": "fedaccord.equilibria.economics",
    "leave_one_out": "fedaccord.equilibria.economics",
    "requirement_prices": "fedaccord.equilibria.economics",
    "support_payments": "fedaccord.equilibria.economics",
    "solve_envy_free": "fedaccord.equilibria.envy_free",
    "all_envy_free": "fedaccord.equilibria.general.exhaustive",
    "all_equilibria": "fedaccord.equilibria.general.exhaustive",
    "solve_optimal": "fedaccord.equilibria.optimal",
    "Price": "fedaccord.equilibria.all_concepts",
    "price_of_anarchy": "fedaccord.equilibria.all_concepts",
    "price_of_fairness": "fedaccord.equilibria.all_concepts",
    "price_of_stability": "fedaccord.equilibria.all_concepts",
    "solve_stable": "fedaccord.equilibria.stable",
    "CoreSet": "fedaccord.equilibria.structure",
    "core_set": "fedaccord.equilibria.structure",
    "everyone_contributes": "fedaccord.equilibria.structure",
    "everyone_must_contribute": "fedaccord.equilibria.structure",
    "is_diagonally_dominant": "fedaccord.equilibria.structure",
    "CoverageGame": "fedaccord.games.coverage",
    "Doubt": "fedaccord.measurement.diagnostics",
    "read_game": "fedaccord.games.files",
    "write_game": "fedaccord.games.files",
    "Measurement": "fedaccord.measurement.fit",
    "fit_curves": "fedaccord.measurement.fit",
    "FunctionGame": "fedaccord.games.function",
    "Histograms": "fedaccord.measurement.histograms",
    "LearningCurve": "fedaccord.games.measured",
    "DiscoveryGame": "fedaccord.games.linear",
    "LinearGame": "fedaccord.games.linear",
    "MeasuredGame": "fedaccord.games.measured",
    "PacGame": "fedaccord.games.pac.exact",
    "PilotTable": "fedaccord.measurement.pilots",
    "Plan": "fedaccord.planning.result",
    "Contender": "fedaccord.frontier.result",
    "Frontier": "fedaccord.frontier.result",
    "Goals": "fedaccord.frontier.result",
    "compare_algorithms": "fedaccord.frontier.compare",
    "from_federation": "fedaccord.frontier.from_federation",
    "make_plan": "fedaccord.planning.plan",
}


__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return [*__all__, "__version__"]
