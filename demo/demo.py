"""Plan, train, audit: four agents that share handwritten digits.

    make demo        writes game.json, plan.csv and report.html next to this file

A few pilots show what each agent's digits are worth to each other agent. A stable plan with a
margin says how many digits each agent gives. Then the plan is tested, on partitions that no pilot
has seen: do all agents reach their goals, and what happens if an agent gives less than it pledged?
"""

import sys
from pathlib import Path

import numpy as np

from fedaccord import compare_algorithms, from_federation, make_plan, write_game
from fedaccord._machine import cores
from fedaccord.errors import FedaccordError
from fedaccord.federation import Config, RunStore, train
from fedaccord.federation.config.build import Building
from fedaccord.federation.training.rng import derive_seed
from fedaccord.report.frontier import frontier_page, list_costs, list_goals
from fedaccord.report.model import Table, joined
from fedaccord.report.plan_page import plan_page
from fedaccord.report.terminal import Sheet, emit, line
from fedaccord.report.training import train_page
from fedaccord.wording import format_number
from fedaccord.wording import format_percent as percent

HERE = Path(__file__).parent
NAME = "PLEDGED"
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


def summed_up(plan, found):
    """Return a verdict: what the plan asked, and what came of it."""
    kept = found.contender(NAME)
    level = found.goals.level
    cut, others = kept.defector("P2", level, contributors=True), kept.others("P2", level)
    free = found.contender(found.baseline).defector("P2", level)
    share, _ = found.share(kept)
    return (
        f"{plan.contributions.sum():,.0f} digits are enough, {percent(share)} of what "
        f"{found.baseline} takes: all agents reached their goals in "
        f"{percent(kept.all_satisfied.p)} of runs. An agent that gave {percent(level)} of its "
        f"pledge reached its goal in {percent(cut.p)} of runs, and all the others reached theirs "
        f"in {percent(others.p)}. Without a plan or pledges, such an agent reached its goal in "
        f"{percent(free.p)}."
    )


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
    emit("3. Training to the plan, on digits that no pilot has seen.")
    own = {"contributions": plan.allocation, "seed": derive_seed(seed, "trial", 0)}
    pledged = algorithms[NAME].committed([int(n) for n in plan.contributions])
    history = train(source.deal(0), pledged, **own)
    emit("4. The audit: training many times, with one agent giving less than it pledged.")
    found = compare_algorithms(
        source,
        algorithms,
        plans=config.plans,
        pilots=pilots,
        levels=asked.levels,
        trials=trials or asked.trials,
        **place,
    )
    pages = {
        "Comparison": frontier_page(found),
        "Plan": plan_page(plan),
        "Training": train_page(history, NAME),
    }
    verdict = summed_up(plan, found)
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


if __name__ == "__main__":
    try:
        main()
    except FedaccordError as error:
        sys.exit(f"demo: {error}")
