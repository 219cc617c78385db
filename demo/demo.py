"""Plan, train, audit: four agents that share handwritten digits.

    make demo        writes game.json, plan.csv and report.html beside this file

A few pilot trainings tell what everybody's digits are worth to whom, and a stable plan with a
margin says who gives how many. Then the plan is put to the test, on deals of points that no pilot
has seen: does everybody reach its goal, and what becomes of who gives less than it pledged?
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
from fedaccord.report.model import joined
from fedaccord.report.plan_page import plan_page
from fedaccord.report.terminal import Sheet, emit, line
from fedaccord.report.training import train_page
from fedaccord.wording import format_number
from fedaccord.wording import format_percent as percent

HERE = Path(__file__).parent
NAME = "PLEDGED"
INTRODUCTION = (
    "Four agents have {points} handwritten digits each; hard ones are {hard}. All want a network "
    "that reads {goal} of their own digits right. Who should give how many?"
)
COMMANDS = (
    "make demo",
    "# or step by step:",
    f"fedaccord plan demo/federation.toml --algorithm {NAME} --save demo/plan.csv",
    f"fedaccord train demo/federation.toml --algorithm {NAME} --contributions demo/plan.csv",
    "fedaccord frontier demo/federation.toml",
)


def introduction(source, hard):
    """Say who is who, and what all want."""
    *most, last = (f"{percent(part)} of {n}'s" for n, part in zip(source.names, hard, strict=True))
    parts = f"{', '.join(most)} and {last}"
    goal = percent(source.requirements[0])
    return INTRODUCTION.format(points=source.points[0], hard=parts, goal=goal)


def sheet_of(plan):
    """Lay out what the plan asks of each, and what it promises."""
    sheet = Sheet("agent", "alone, to be as sure", "plan asks", "reaches its goal, it says")
    alone = np.ceil(plan.game.alone)
    for agent, asked in enumerate(plan.contributions):
        chance = percent(plan.satisfied[agent])
        sheet.add_row(
            line(plan.name(agent)), format_number(alone[agent]), format_number(asked), chance
        )
    sheet.add_sum("all", format_number(alone.sum()), format_number(plan.contributions.sum()))
    return sheet


def summed_up(plan, found):
    """Say what was asked, and what came of it."""
    kept = found.contender(NAME)
    level = found.goals.level
    cut, others = kept.defector("P2", level, contributors=True), kept.others("P2", level)
    free = found.contender(found.baseline).defector("P2", level)
    share, _ = found.share(kept)
    return (
        f"{plan.contributions.sum():,.0f} digits do, {percent(share)} of what {found.baseline} "
        f"takes: everybody reached its goal in {percent(kept.all_satisfied.p)} of runs. Who gave "
        f"{percent(level)} of its pledge reached its own in {percent(cut.p)}, and the others then "
        f"all reached theirs in {percent(others.p)}. Without a plan or pledges, {percent(free.p)} "
        "of those who gave as little reached it."
    )


def main(folder=HERE, *, pilots=None, trials=None):
    """Go from pilots to a page.

    folder: where the files go.
    pilots, trials: how many; as the planner and the config have it where left out.
    """
    config = Config.load(HERE / "federation.toml")
    algorithms, seed, asked = config.algorithms, config.audit.seed, config.frontier
    source = Building(config).source(seed)
    place = {"seed": seed, "store": RunStore(), "workers": cores()}
    emit(line(introduction(source, config.agents.mixtures)))
    emit("1. Pilots: some give much, some little. What are whose digits worth to whom?")
    measurement = from_federation(source, algorithms[NAME], budget=pilots, **place)
    emit("2. The plan: nobody could give less and still reach its goal, but for a margin.")
    plan = make_plan(measurement, seed=seed)
    write_game(plan.game, folder / "game.json")
    plan.save(folder / "plan.csv")
    emit(sheet_of(plan))
    emit("3. Training to the plan, on digits that no pilot has seen.")
    own = {"contributions": plan.allocation, "seed": derive_seed(seed, "trial", 0)}
    pledged = algorithms[NAME].committed([int(n) for n in plan.contributions])
    history = train(source.deal(0), pledged, **own)
    emit("4. The audit: training again and again, with one agent giving less than it pledged.")
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
        "Four agents and their digits: a plan, and what becomes of it",
        verdict,
        pages["Comparison"].tone,
        pages=list(pages.values()),
        names=list(pages),
        command="\n".join(COMMANDS),
    ).save(folder / "report.html")
    emit(list_goals(found).table("terminal"), list_costs(found).table("terminal"), line(verdict))
    emit(line(f"The whole story: {folder / 'report.html'}"))


if __name__ == "__main__":
    try:
        main()
    except FedaccordError as error:
        sys.exit(f"demo: {error}")
