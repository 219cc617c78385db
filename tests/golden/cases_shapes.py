"""The keys and kinds of what every public result gives as plain data."""

import json
from pathlib import Path
from typing import Any

from golden.cases_numbers import games, sought_in_clouds
from golden.pinning import pinned, shape

import fedaccord
from fedaccord import federation
from fedaccord.reproduce import reproduce


def _shape(result: Any) -> Any:
    # As JSON has it: whether a number is numpy's is no part of it.
    return shape(json.loads(json.dumps(result.to_dict())))


@pinned("shapes/games")
def of_games(folder: Path) -> dict[str, Any]:
    """Games, allocations, solutions, audits, plans."""
    found: dict[str, Any] = {}
    for name, game in games(folder).items():
        if name != "function":
            found[f"game {name}"] = _shape(game)
    hospitals = fedaccord.read_game(folder / "hospitals.json")
    impossible = fedaccord.read_game(folder / "impossible.json")
    for name, game in {"hospitals": hospitals, "impossible": impossible}.items():
        for solve in (fedaccord.solve_optimal, fedaccord.solve_stable, fedaccord.solve_envy_free):
            found[f"{solve.__name__} {name}"] = _shape(solve(game))
    curve = fedaccord.LearningCurve(floor=0.05, height=2.6, head=50, pace=0.52)
    found["LearningCurve"] = _shape(curve)
    found["Allocation"] = _shape(fedaccord.Allocation([1, 2], ["a", "b"]))
    found["Audit"] = _shape(fedaccord.check(hospitals, [200, 1200, 600]))
    found["Interval"] = _shape(fedaccord.Interval(1, 2))
    price = fedaccord.price_of_stability(
        fedaccord.solve_stable(hospitals), fedaccord.solve_optimal(hospitals)
    )
    found["Price"] = _shape(price)
    measured = fedaccord.fit_curves(fedaccord.PilotTable.load(folder / "two_pilots.csv"))
    found["Plan of pilots"] = _shape(fedaccord.make_plan(measured))
    found["Plan of a game"] = _shape(fedaccord.make_plan(hospitals))
    found["measured"] = _shape(measured.game)
    return found


@pinned("shapes/training")
def of_training(folder: Path) -> dict[str, Any]:
    """Configs, algorithms, histories, audits, frontiers, searches."""
    found: dict[str, Any] = {}
    for name in ("digits", "sites", "four"):
        config = federation.Config.load(folder / f"{name}.toml")
        found[f"Config {name}"] = _shape(config)
    found["Config default"] = _shape(federation.Config.default())
    for kind in ("FedAvg", "MwFed", "Solo", "Pledged", "Release", "HoldBack", "RelievedMwFed"):
        found[kind] = _shape(getattr(federation, kind)())
    config = federation.Config.load(folder / "digits.toml")
    source, algorithms = config.build(), config.algorithms
    found["Dataset"] = _shape(federation.load_data("digits"))
    found["History"] = _shape(federation.train(source.deal(0), algorithms["MW-FED"]))
    two = {name: algorithms[name] for name in ("FedAvg", "PLEDGED")}
    audit = federation.defection_curves(source, two, levels=[1, 0.5], trials=2, workers=1)
    found["DefectionAudit"] = _shape(audit)
    curve = audit.curves[0]
    found["DefectionCurve"] = _shape(curve)
    found["DefectionLevel"] = _shape(curve.levels[0])
    frontier = fedaccord.compare_algorithms(source, two, levels=[1, 0.25], trials=2, workers=1)
    found["Frontier"] = _shape(frontier)
    sought = sought_in_clouds()
    found["Sought"] = _shape(sought)
    found["Verified"] = _shape(sought.verified)
    return found


@pinned("shapes/reproduction")
def of_the_paper(folder: Path) -> dict[str, Any]:
    """Rows of the paper's claims, with charts."""
    done = reproduce(["theorem-7", "theorem-3-general"], folder=folder)
    return _shape(done)
