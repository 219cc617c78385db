"""Numbers: what solvers find, what training comes to for a seed, what pilots and plans say."""

from pathlib import Path
from typing import Any

import numpy as np
from golden.pinning import TRAINED, pinned

import fedaccord
from fedaccord.federation import (
    Client,
    Config,
    Federation,
    Pledged,
    Sought,
    model_factory,
    pilot_design,
    run_pilots,
    seek_equilibrium,
    train,
)
from fedaccord.games import catalog

# Games of the catalogue, small enough for every solver.
KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "flower": ("flower", {"petals": 4}),
    "flower-coverage": ("flower", {"petals": 4, "model": "coverage", "strategies": "integer"}),
    "two-agents": ("two-agents", {}),
    "k4": ("k4", {}),
    "pac-cycle": ("pac-cycle", {}),
    "sunflower": ("sunflower", {}),
    "common-core": ("common-core", {}),
    "continuum": ("continuum", {}),
    "overlap": ("overlap", {}),
    "unequal": ("unequal", {}),
    "indefinite": ("indefinite", {}),
    "twins": ("twins", {}),
    "not-attained": ("not-attained", {}),
}
FILES = ("hospitals", "measured", "coverage", "discovery", "whole")


def games(folder: Path) -> dict[str, fedaccord.Game]:
    """Give small games of every model, by name."""
    known = {name: catalog.build(entry, **options) for name, (entry, options) in KNOWN.items()}
    read = {name: fedaccord.read_game(folder / f"{name}.json") for name in FILES}
    roots = fedaccord.FunctionGame(
        lambda theta: np.sqrt(np.array([[1, 0.5], [0.25, 1]]) @ theta),
        [2, 1],
        strategies="integer",
        limits=[6, 6],
    )
    return {**known, **read, "function": roots}


def _numbers(values: Any) -> Any:
    if values is None:
        return None
    return [float(v) for v in np.asarray(values, dtype=float)]


# How narrow bounds on prices get depends on the last digits, which differ by machine.
@pinned("numbers/solutions", rel=TRAINED)
def solutions(folder: Path) -> dict[str, Any]:
    """Give totals, allocations, bounds and statuses of all concepts."""
    found: dict[str, Any] = {}
    for name, game in games(folder).items():
        of_game = {
            "optimal": fedaccord.solve_optimal(game),
            "stable": fedaccord.solve_stable(game),
            "envy-free": fedaccord.solve_envy_free(game),
        }
        found[name] = {concept: _solution(s) for concept, s in of_game.items()}
        found[name]["price of stability"] = fedaccord.price_of_stability(
            of_game["stable"], of_game["optimal"]
        ).to_dict()
    return found


def _solution(solution: fedaccord.Solution) -> dict[str, Any]:
    plain = solution.to_dict()
    wanted = ("status", "method", "total", "bounds", "contributions", "message")
    return {key: plain[key] for key in wanted if key in plain}


@pinned("numbers/economics")
def economics(folder: Path) -> dict[str, Any]:
    """Give what memberships, requirements and payments come to, and where dynamics end."""
    game = fedaccord.read_game(folder / "hospitals.json")
    stable, optimal = fedaccord.solve_stable(game), fedaccord.solve_optimal(game)
    whole = fedaccord.read_game(folder / "whole.json")
    path = fedaccord.best_response_dynamics(game, order="simultaneous", damping=0.5)
    core = fedaccord.core_set(stable)
    payments, left = fedaccord.support_payments(optimal), fedaccord.leave_one_out(game)
    return {
        "requirement prices": _numbers(fedaccord.requirement_prices(optimal)),
        "payments": [*_numbers(payments.per_agent), float(payments.total)],
        "leave one out": [*map(_numbers, (left.others_with, left.others_without, left.value))],
        "equilibria": [_numbers(e) for e in fedaccord.all_equilibria(whole)],
        "envy-free": [_numbers(e) for e in fedaccord.all_envy_free(whole, up_to=8)],
        "path": [path.sentence(), path.ending.value, path.rounds, _numbers(path.last)],
        "core": [core.sentence(), core.agents.tolist(), core.total, core.optimal_total],
        "audit": fedaccord.check(game, [200, 1200, 600]).to_dict(),
        "explained": [
            fedaccord.check(game, optimal.allocation).explain(agent) for agent in range(3)
        ],
    }


@pinned("numbers/training", rel=TRAINED)
def training(folder: Path) -> dict[str, Any]:
    """Give what every algorithm draws and how accurate everybody becomes, for one seed."""
    found: dict[str, Any] = {}
    for file in ("digits", "sites", "four"):
        config = Config.load(folder / f"{file}.toml")
        federation = config.build(seed=2).deal(1)
        for name, algorithm in config.algorithms.items():
            history = train(federation, algorithm, seed=11)
            plain = history.to_dict()
            wanted = ("samples", "unique", "accuracy", "loss", "satisfied", "diverged")
            found[f"{file} {name}"] = {key: plain[key] for key in wanted}
    return found


@pinned("numbers/pilots", rel=TRAINED)
def pilots(folder: Path) -> dict[str, Any]:
    """Give a design of pilots, and what comes of it."""
    config = Config.load(folder / "digits.toml")
    source = config.build()
    table = run_pilots(source, config.algorithms["FedAvg"], budget=6, seed=4, workers=1)
    table.save("trained.csv")
    return {
        "design": [list(map(int, row)) for row in pilot_design([100, 80, 60], budget=15)],
        "table": (folder / "trained.csv").read_text(encoding="utf-8").splitlines()[:2],
        "contributions": table.contributions.tolist(),
        "accuracies": table.accuracies.tolist(),
    }


@pinned("numbers/plan", rel=TRAINED)
def plan(folder: Path) -> dict[str, Any]:
    """Give a plan's numbers, and what it says of everybody."""
    measured = fedaccord.fit_curves(fedaccord.PilotTable.load(folder / "two_pilots.csv"), seed=1)
    made = fedaccord.make_plan(measured, probability=0.9, prefer="firm", seed=2)
    plain = made.to_dict()
    return {
        **{key: plain[key] for key in ("contributions", "goals", "everyone", "outcome")},
        "verdict": made.verdict,
        "explained": [made.explain(agent) for agent in range(made.size)],
        "doubts": [doubt.sentence for doubt in measured.doubts],
        "game": measured.game.replace(chances=None).to_dict(),
    }


def clouds(count: int, shift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of three classes in four dimensions."""
    labels = np.arange(count) % 3
    centres = np.array([[2, 0, 0, shift], [0, 2, 0, -shift], [0, 0, 2, 0.0]])
    return centres[labels] + np.random.default_rng(seed).normal(size=(count, 4)), labels


def sought_in_clouds() -> Sought:
    """Let EQ-FED look for a plan among three clients with little data."""
    clients = [
        Client(name, clouds(30, 0.3 * n, n), clouds(60, 0.3 * n, 9 + n), 0.45)
        for n, name in enumerate(("north", "south", "west"))
    ]
    source = Federation(clients, model_factory("logistic", (4,), 3))
    algorithm = Pledged(passes=4, rounds=60, batch_size=4, learning_rate=0.05, evaluate_every=2)
    return seek_equilibrium(source, algorithm, budget=60, trials=3, checks=4, workers=1, seed=1)


@pinned("numbers/sought", rel=TRAINED)
def sought(folder: Path) -> dict[str, Any]:
    """Give what EQ-FED finds in a tiny federation."""
    plain = sought_in_clouds().to_dict()
    plain.pop("seconds", None)
    return plain
