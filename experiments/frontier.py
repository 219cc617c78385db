"""Put the comparisons of five federations into one table.

    python experiments/frontier.py

Reads the committed results of the commands that each experiment's README names, trains nothing,
and writes experiments/frontier.md. Shares are of runs, with 95 % intervals. A share is printed
**bold** if it meets its criterion; a question mark says that the interval leaves a doubt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedaccord._io.files import replace_file
from fedaccord.federation.defection.intervals import Proportion, wilson
from fedaccord.frontier.result import Contender, Frontier, Goals, Reached

HERE = Path(__file__).parent
HEADS = {
    "satisfied": "all reach their goals",
    "cut": "defector at 25 %",
    "kept": "with kept data (P3)",
    "others": "all the others then",
    "2 together": "a pair",
    "copies, detected": "copies, detected",
    "samples": "samples used",
}


@dataclass(frozen=True)
class Federation:
    """A federation that was compared.

    name: what people call it.
    files: of its comparisons; one that lacks the baseline takes it from the first.
    pairs: of a comparison of fewer trials, from which the shares of pairs are taken.
    """

    name: str
    files: tuple[str, ...]
    pairs: str | None = None


FEDERATIONS = (
    Federation("digits", ("digits/results/frontier.json",)),
    Federation(
        "EMNIST, four agents",
        tuple(f"blum2021/results/{name}.json" for name in ("frontier", "earned", "rivals")),
        "blum2021/results/earned-pairs.json",
    ),
    Federation(
        "EMNIST, sixteen agents",
        tuple(f"sixteen/results/{name}.json" for name in ("earned", "rivals")),
    ),
    Federation("heart", ("heart/results/frontier.json",)),
    Federation("stroke trial", ("stroke/results/frontier.json",)),
)
BASELINE, ALONE = "FedAvg", "Alone"


def read(path: str) -> Frontier:
    return Frontier.from_dict(json.loads((HERE / path).read_text(encoding="utf-8")))


def list_rows(one: Federation) -> Iterator[str]:
    yield f"\n## {one.name}\n"
    frontiers = [read(path) for path in one.files]
    alone = find_alone(frontiers)
    for frontier in frontiers:
        judge = frontier
        if frontier.baseline != BASELINE:
            base = frontiers[0].contender(BASELINE)
            judge = replace(frontier, contenders=(*frontier.contenders, base), baseline=BASELINE)
        yield _say(frontier)
        yield "| algorithm | trials | " + " | ".join(HEADS.values()) + " | own data alone | kappa |"
        yield "|-" * (len(HEADS) + 4) + "|"
        for contender in map(_add_pairs(one), frontier.contenders):
            reached = {found.goal: found for found in judge.reached(contender)}
            cells = " | ".join(_write(reached.get(goal)) for goal in HEADS)
            cells += f" | {compare_alone(contender, judge.goals.level, alone) or '-'}"
            trials = contender.p2.all_judged.trials
            yield f"| {contender.name} | {trials} | {cells} | {_write_kappa(contender)} |"
        yield ""
        yield from _say_alone(frontier)
        for name, why in frontier.unplanned.items():
            yield f"{name} has no row: {why.rstrip('.')}.\n"


def find_alone(frontiers: Sequence[Frontier]) -> Mapping[str, Proportion]:
    """Return how often each agent reaches its goal alone with all its data, where that is known."""
    found = [one for frontier in frontiers for one in frontier.contenders if one.name == ALONE]
    return found[0].p2.at(1.0).judged.clients if found else {}


def compare_alone(
    contender: Contender, level: float, alone: Mapping[str, Proportion]
) -> Proportion | None:
    """Return how often the agents that defect in a comparison reach their goals without it.

    Each agent counts as often as it is a defector with kept data (P3).

    contender: the algorithm and its plan.
    level: what part of its contribution a defector gives.
    alone: how often each agent reaches its goal alone with all its data.
    """
    kept = contender.p2.at(level).kept
    asked = dict(zip(alone, contender.contributions, strict=True)) if alone else {}
    givers = [name for name in alone if asked[name] > 0]
    if kept is None or not givers:
        return None
    times = [kept.clients[name].trials for name in givers]
    share = sum(alone[n].p * t for n, t in zip(givers, times, strict=True)) / max(sum(times), 1)
    trials = sum(alone[name].trials for name in givers)
    return wilson(round(share * trials), trials)


def _say(frontier: Frontier) -> str:
    judged = "validation samples" if frontier.scored_on is None else "further samples per agent"
    count = "" if frontier.scored_on is None else f"{frontier.scored_on:,} "
    return f"{len(frontier.clients)} agents; judged on {count}{judged}; seed {frontier.seed}.\n"


def _add_pairs(one: Federation) -> Callable[[Contender], Contender]:
    """Return what adds to a contender the audits that another comparison has of it."""
    more = {} if one.pairs is None else {c.name: c for c in read(one.pairs).contenders}

    def add(contender: Contender) -> Contender:
        found = more.get(contender.name)
        if found is None:
            return contender
        return replace(contender, further={**found.further, **contender.further})

    return add


def _say_alone(frontier: Frontier) -> Iterator[str]:
    """Say how often each agent reaches its goal with all its own samples and nobody else's."""
    for contender in frontier.contenders:
        if contender.name == ALONE:
            agents = contender.p2.at(1.0).judged.clients
            shares = ", ".join(f"{name} {share.p:.2f}" for name, share in agents.items())
            said = "Share of runs in which an agent alone, with all its data, reaches its goal"
            yield f"{said}: {shares}.\n"


def _write(found: Reached | None) -> str:
    if found is None or found.value is None:
        return "-"
    number = f"{found.value:.2f}"
    if found.goal == "samples":
        number = f"{100 * found.value:.0f} %"
    elif found.low is not None and found.high is not None:
        number += f" [{found.low:.2f}, {found.high:.2f}]"
    number += "" if found.sure else " ?"
    return f"**{number}**" if found.reached else number


def _write_kappa(contender: Contender) -> str:
    """Write the range of what a kept sample is worth to the agents, where trials show it."""
    known = [one for one in contender.p2.kept_worth.values() if one.known]
    if not known:
        return "-"
    values = [one.value for one in known]
    return f"{min(values):.2f} to {max(values):.2f}"


def main() -> None:
    goals = Goals()
    lines = [
        "# Algorithms on five federations",
        "",
        "`python experiments/frontier.py` writes this page from the results in these folders.",
        f"Criteria: all agents reach their goals in at least {goals.satisfied:.0%} of runs; every "
        f"kind of defector in at most {goals.cut:.0%}; all the others then in at least "
        f"{goals.others:.0%}; at most {goals.samples:.0%} of FedAvg's samples.",
        "**Bold** meets its criterion. A question mark: the 95 % interval leaves a doubt.",
        "Own data alone: how often the agents that defect (P3) reach their goals with all their "
        "data and no federation. An agent can do that under any algorithm.",
        "Kappa is what a kept sample is worth to its owner (a shared sample: 1).",
    ]
    for one in FEDERATIONS:
        lines += list_rows(one)
    text = "\n".join(lines).rstrip() + "\n"
    replace_file(HERE / "frontier.md", text)
    print(text)


if __name__ == "__main__":
    main()
