"""Comparisons that nobody trained for: rules tell who is satisfied."""

from training_results import audit, lenient, strict

from fedaccord.frontier.result import Contender, Frontier, Goals

NAMES = ("north", "south", "west")
LEVELS = (1.0, 0.5, 0.25)


def shared_fate(level, defector, client, trial):
    """Whoever cuts, nobody is satisfied; of west, who gives nothing, there is nothing to cut."""
    return level == 1 or defector == 2


def contender(name, rule, *, plan="own", asked=(60, 60, 60), names=NAMES, trials=20, **options):
    """An algorithm of which a rule tells who is satisfied, under both protocols."""
    curves = [
        audit(
            {name: rule},
            names=names,
            trials=trials,
            levels=LEVELS,
            protocol=protocol,
            asked=list(asked),
        ).curves[0]
        for protocol in ("P1", "P2")
    ]
    known = {"story": "", "planning_runs": 0}
    return Contender(name, plan, p1=curves[0], p2=curves[1], **{**known, **options})


def frontier(*contenders, names=NAMES, trials=20, **options):
    known = {
        "contenders": contenders,
        "unplanned": {},
        "baseline": contenders[0].name,
        "goals": Goals(),
        "clients": tuple(names),
        "requirements": (0.8,) * len(names),
        "points": (60,) * len(names),
        "levels": LEVELS,
        "trials": trials,
        "defectors": "each",
        "seed": 3,
        "versions": ("numpy 2, torch 2",),
        "source": "ab" * 32,
        "run_seconds": 100.0,
        "seconds": 61.0,
    }
    return Frontier(**{**known, **options})


def three(trials=20, names=NAMES):
    """FedAvg lets everybody cut; MW-FED nobody; PLEDGED nobody, and all pay, with few points."""
    return frontier(
        contender("FedAvg", lenient, trials=trials, names=names),
        contender("MW-FED", strict, trials=trials, names=names),
        contender(
            "PLEDGED",
            shared_fate,
            plan="measured",
            asked=(40, 40, 0),
            trials=trials,
            names=names,
            story="The plan asks 80 samples.",
            planning_runs=39,
        ),
        trials=trials,
        names=names,
    )
