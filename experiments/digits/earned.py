"""EARNED on the built-in federation of digits: who reaches its goal when one agent gives a quarter.

The two harder agents pledge their 60 samples each, drawn seven times; the two easier ones pledge
nothing and may hold a reserve. Each of the two gives a quarter in every trial, on its own.

    python experiments/digits/earned.py choose      seeds 1001 to 1003: how settings were chosen
    python experiments/digits/earned.py report      seed 1: what came of it

Each takes some minutes on one core and writes a file into results/. Rows that the file has are not
made again: remove it to make them anew.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fedaccord._io.files import replace_file
from fedaccord.federation import Algorithm, Config, Earned, Pledged, train
from fedaccord.federation.defection.curves import cut
from fedaccord.federation.defection.intervals import wilson
from fedaccord.federation.runs.store import Run

HERE = Path(__file__).parent
PLEDGES = (60, 60, 0, 0)
SHARED = {"rounds": 80, "batch_size": 8, "learning_rate": 0.015, "passes": 7}
SEEDS = {"choose": (1001, 1002, 1003), "report": (1,)}
TRIALS = {"choose": 10, "report": 60}
LEVEL = 0.25


def rules(which: str) -> Iterator[tuple[str, Algorithm, tuple[float, ...]]]:
    """Yield the rules to compare, each with the parts that a defector gives."""
    yield "PLEDGED, first", Pledged(**SHARED), (LEVEL,)
    yield "PLEDGED, each", Pledged(ends="each", **SHARED), (LEVEL,)
    yield "EARNED, fresh_by 1, no reserve", Earned(fresh_by=1.0, **SHARED), (LEVEL,)
    yield "EARNED, no reserve", Earned(**SHARED), (LEVEL,)
    if which == "report":
        chosen = earned(60, cover=2.0, patience=1, grace=0.05)
        yield "EARNED, as chosen", chosen, (0.9, 0.5, LEVEL)
        return
    for each in (8, 15, 23, 30):
        yield f"EARNED, reserve {each}", earned(each), (LEVEL,)
    for cover in (1.0, 1.33, 1.67, 2.0):
        yield f"EARNED, reserve 60, cover {cover:g}", earned(60, cover=cover), (LEVEL,)
    for name, values in {
        "fresh_by": (0.25, 0.5, 1.0),
        "patience": (1, 2, 4),
        "grace": (0.05, 0.1, 0.2),
    }.items():
        for value in values:
            yield f"EARNED, reserve 30, {name} {value:g}", earned(30, **{name: value}), (LEVEL,)


def earned(each: int, **settings: float) -> Earned:
    """Return EARNED with a reserve of the two easier agents."""
    return Earned(reserve=(0, 0, each, each), **SHARED, **settings)


def count(which: str, rule: Algorithm, levels: tuple[float, ...]) -> dict[str, object]:
    """Return how often all agents, a defector, and all the others reach their goals."""
    rule = rule.committed(PLEDGES)
    cuts = [(level, (i,)) for level in levels for i in (0, 1)]
    cuts += [(LEVEL, (0, 1))]
    all_reach: list[bool] = []
    one: dict[float, list[bool]] = {level: [] for level in levels}
    others: dict[float, list[bool]] = {level: [] for level in levels}
    pair: list[bool] = []
    for seed in SEEDS[which]:
        source = Config.default().build(seed=seed)
        for trial in range(TRIALS[which]):
            federation = source.deal(trial)
            for level, who in [(1.0, ()), *cuts]:
                gives = PLEDGES
                for i in who:
                    gives = cut(gives, i, level)
                # The seed that an audit gives the same run.
                run = Run(source.fingerprint, rule, gives, seed, trial)
                history = train(federation, rule, contributions=gives, seed=run.seed)
                satisfied = history.satisfied.tolist()
                if not who:
                    all_reach.append(all(satisfied))
                elif len(who) == 1:
                    one[level].append(satisfied.pop(who[0]))
                    others[level].append(all(satisfied))
                else:
                    pair.append(any(satisfied[i] for i in who))
    return {
        "all agents reach their goals": interval(all_reach),
        "a defector does": {level: interval(seen) for level, seen in one.items()},
        "all the others do then": {level: interval(seen) for level, seen in others.items()},
        "one of two that defect together does": interval(pair),
    }


def interval(seen: list[bool]) -> list[float]:
    found = wilson(sum(seen), len(seen))
    return [round(number, 3) for number in (found.p, found.low, found.high)]


def main() -> None:
    which = sys.argv[1]
    started = time.perf_counter()
    path = HERE / "results" / f"earned-{which}.json"
    rows = json.loads(path.read_text())["rules"] if path.exists() else {}
    for name, rule, levels in rules(which):
        if name not in rows:
            rows[name] = count(which, rule, levels)
        print(name, json.dumps(rows[name]), flush=True)
    result = {
        "command": f"python experiments/digits/earned.py {which}",
        "seeds": SEEDS[which],
        "trials": TRIALS[which],
        "pledges": PLEDGES,
        "level": LEVEL,
        "rules": rows,
        "seconds": round(time.perf_counter() - started),
    }
    replace_file(path, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
