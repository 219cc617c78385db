"""A plan, a defector, what it gets, and what the others get: four agents with handwritten digits.

    make demo        writes game.json, plan.csv and report.html next to this file

A few pilots show what each agent's digits are worth to each other agent. A stable plan with a
margin says how many digits each agent gives, and a reserve what the others hold ready. Training is
EARNED: only agents that deliver get the next model. Then one agent defects. What does it get, and
what do the others get? At last the same is done many times, on partitions that no pilot has seen.
"""

import sys
from pathlib import Path

import numpy as np

from fedaccord import compare_algorithms, from_federation, make_plan, write_game
from fedaccord._machine import cores
from fedaccord.errors import FedaccordError
from fedaccord.federation import Config, RunStore, train
from fedaccord.federation.config.build import Building
from fedaccord.federation.defection.curves import cut
from fedaccord.federation.training.rng import derive_seed
from fedaccord.planning.reserve import hold_reserve
from fedaccord.report.frontier import frontier_page, list_costs, list_goals
from fedaccord.report.model import Table, joined
from fedaccord.report.plan_page import plan_page
from fedaccord.report.terminal import Sheet, emit, line
from fedaccord.report.training import train_page
from fedaccord.wording import format_number
from fedaccord.wording import format_percent as percent

HERE = Path(__file__).parent
NAME = "EARNED"
# What part of its pledge the defector gives.
LEVEL = 0.25
INTRODUCTION = (
    "Four agents have {points} handwritten digits each. Of these, {hard} are hard. All want a "
    "network that reads {goal} of their own digits right. How many digits should each agent give?"
)
COMMANDS = (
    "make demo",
    "# or step by step:",
    f"fedaccord plan demo/federation.toml --algorithm {NAME} --save demo/plan.csv",
    f"fedaccord train demo/federation.toml --algorithm {NAME} --contributions demo/plan.csv",
    "fedaccord frontier demo/federation.toml",
)


def introduction(source, hard):
    """Return a sentence about the agents and their goal."""
    *most, last = (f"{percent(part)} of {n}'s" for n, part in zip(source.names, hard, strict=True))
    parts = f"{', '.join(most)} and {last}"
    goal = percent(source.requirements[0])
    return INTRODUCTION.format(points=source.points[0], hard=parts, goal=goal)


def sheet_of(plan):
    """Return a table of what the plan asks of each agent, and what it promises."""
    alone, asked = np.ceil(plan.game.alone), plan.contributions
    rows = (
        (plan.name(i), format_number(alone[i]), format_number(n), percent(plan.satisfied[i]))
        for i, n in enumerate(asked)
    )
    sums = ("all", format_number(alone.sum()), format_number(asked.sum()))
    heads = ("agent", "alone, equally sure", "plan asks", "reaches its goal (promised)")
    return Sheet(Table("The plan", heads, tuple(rows), footer=(sums,)))


def sheet_of_defection(plan, honest, defecting, defector):
    """Return a table of what agents reach if all deliver, and if one of them defects."""
    rows = []
    for i, name in enumerate(honest.clients):
        gave = format_number(defecting.unique[-1][i])
        reached = [percent(one.final[i]) for one in (honest, defecting)]
        said = "defects" if i == defector else ""
        rows.append((name, percent(honest.requirements[i]), reached[0], gave, reached[1], said))
    heads = ("agent", "goal", "all deliver", "gave then", "one defects", "")
    return Sheet(Table("One run", heads, tuple(rows)))


def tell_defection(plan, honest, defecting, defector):
    """Return what the defector and the others got in one run, in a sentence each."""
    name = honest.clients[defector]
    goals = [("reached", "missed")[not ok] for ok in defecting.satisfied]
    others = [word for i, word in enumerate(goals) if i != defector]
    reserve = int(defecting.unique[-1].sum() - defecting.contributions.sum())
    return (
        f"{name} gave {percent(LEVEL)} of its pledge. The server sent it no further model, and it "
        f"{goals[defector]} its goal. The others drew {reserve} digits of their reserve, and "
        f"{others.count('reached')} of {len(others)} reached theirs."
    )


def sum_up(found, name=NAME):
    """Return a verdict on the audit: what the plan asked in it, and what came of it."""
    kept, free = found.contender(name), found.contender(found.baseline)
    level = found.goals.level
    # A defector counts with the best that it can do, as in the table.
    less, freely = (
        next(one.value for one in found.reached(which) if one.goal == "cut")
        for which in (kept, free)
    )
    share, _ = found.share(kept)
    said = [
        f"In the audit, the plan asked for {sum(kept.p2.contributions):,.0f} digits, "
        f"{percent(share)} of what {found.baseline} takes: all agents reached their goals in "
        f"{percent(kept.all_satisfied.p)} of runs.",
        f"An agent that gave {percent(level)} of its pledge reached its goal in {percent(less)} "
        f"of runs, and all the others reached theirs in {percent(kept.others('P2', level).p)}.",
        f"Under {found.baseline}, such an agent reached its goal in {percent(freely)}.",
    ]
    if (alone := kept.p2.at(level).kept) is not None:
        said.append(
            "If the defector keeps its digits and trains on alone with all of them, it reaches its "
            f"goal in {percent(alone.contributors.p)}: its own digits are nearly enough."
            if alone.contributors.p > 0.5
            else "Training on alone with all of its digits, it reaches its goal in "
            f"{percent(alone.contributors.p)}."
        )
    return " ".join(said)


def main(folder=HERE, *, pilots=None, trials=None):
    """Go from pilots to a page.

    folder: where the files go.
    pilots, trials: how many; by default those of the planner and the config.
    """
    config = Config.load(HERE / "federation.toml")
    algorithms, seed, asked = config.algorithms, config.audit.seed, config.frontier
    source = Building(config).source(seed)
    place = {"seed": seed, "store": RunStore(), "workers": cores()}
    emit(line(introduction(source, config.agents.mixtures)))
    emit("1. Pilots: some agents give much, some little. What is each digit worth to each agent?")
    measurement = from_federation(source, algorithms[NAME], budget=pilots, **place)
    emit(
        "2. The plan: no agent could give less and still reach its target, the goal plus a margin."
    )
    plan = make_plan(measurement, seed=seed)
    write_game(plan.game, folder / "game.json")
    plan.save(folder / "plan.csv")
    emit(sheet_of(plan))
    emit(
        "3. Training to the plan, on digits that no pilot has seen: all deliver, then one defects."
    )
    allocation = hold_reserve(plan.game, plan.allocation, cover=algorithms[NAME].cover)
    asked_of = tuple(int(n) for n in plan.contributions)
    rule = algorithms[NAME].committed(asked_of).reserving([int(n) for n in allocation.reserve])
    own, defector = {"seed": derive_seed(seed, "trial", 0)}, int(np.argmax(asked_of))
    history = train(source.deal(0), rule, contributions=asked_of, **own)
    less = cut(asked_of, defector, LEVEL)
    defecting = train(source.deal(0), rule, contributions=less, **own)
    emit(sheet_of_defection(plan, history, defecting, defector))
    emit(line(tell_defection(plan, history, defecting, defector)))
    emit("4. The audit: the same many times, with each agent as the defector in turn.")
    found = compare_algorithms(
        source,
        algorithms,
        plans=config.plans,
        pilots=pilots,
        levels=asked.levels,
        trials=trials or asked.trials,
        kept_data=asked.kept_data,
        **place,
    )
    pages = {
        "Comparison": frontier_page(found),
        "Plan": plan_page(plan),
        "Training": train_page(history, NAME),
    }
    verdict = sum_up(found)
    joined(
        "Four agents and their digits: a plan, and how it works",
        verdict,
        pages["Comparison"].tone,
        pages=list(pages.values()),
        names=list(pages),
        command="\n".join(COMMANDS),
    ).save(folder / "report.html")
    emit(list_goals(found).table("terminal"), list_costs(found).table("terminal"), line(verdict))
    emit(line(f"The whole story is in {folder / 'report.html'}"))
    emit(line("To move the plan's numbers in a meeting, open it in the browser:"))
    emit(line(f"{sys.executable} -m fedaccord explore {folder / 'game.json'}"))


if __name__ == "__main__":
    try:
        main()
    except FedaccordError as error:
        sys.exit(f"demo: {error}")
