"""Plan, train, audit: four agents that share handwritten digits.

    make demo        writes game.json, plan.csv and report.html beside this file

The plan rests on pilot runs in which one agent alone gives. They tell how many points each would
need alone, and what a point of one is worth to another. Then the plan is put to the test, on deals
of points that no pilot has seen.
"""

import sys
from pathlib import Path

import numpy as np

from fedaccord import (
    LinearGame,
    audit,
    price_of_fairness,
    price_of_stability,
    solve_envy_free,
    solve_optimal,
    solve_stable,
    write_game,
)
from fedaccord.errors import FedaccordError
from fedaccord.federation import Config, defection_curves, train
from fedaccord.federation.building import Building
from fedaccord.federation.streams import derived_seed
from fedaccord.report.page import Listing, Page, Section, Table, joined
from fedaccord.report.pages_games import solve_page
from fedaccord.report.pages_training import audit_page, audit_tone, train_page
from fedaccord.report.tables import Sheet, line
from fedaccord.report.terminal import emit
from fedaccord.report.training import percent

HERE = Path(__file__).parent
# Of the pilots. The audit has another, and so other deals and runs.
SEED = 1
# What parts of its points an agent gives in the pilots, and how often each pilot is made.
PARTS = (0.2, 0.4, 0.6, 0.8)
PILOTS = 10
# In standard deviations of a run. A plan that reaches the goal on average would miss it in every
# second run; with this margin it would in one of twenty.
MARGIN = 1.645
SOLVERS = {"optimal": solve_optimal, "stable": solve_stable, "envy-free": solve_envy_free}
HALF = 0.5
# Trials without a plan, which take longest and are there for comparison.
FEWER = 6

INTRODUCTION = (
    "Four agents have {} handwritten digits each, two of them mostly hard ones. All want a network "
    "that reads {} of their own digits right. Who should give how much?"
)
WITHOUT = (
    "Without a plan, all bringing all {} points to FedAvg, a random agent could bring half and "
    "still reach its goal in {} of runs."
)
HOW = (
    "Beforehand one agent alone gave {least} to {most} points, in {runs:,} short runs, and the "
    "accuracy was measured for everybody. Its own learning curve tells what an agent needs alone "
    "to reach its goal, with a margin that one run in twenty falls short of; the same curve tells "
    "what the points of another are worth to it. This is a rough plan: it takes for granted that "
    "all learn at the same pace and that points of different agents add up, and it rests on few "
    "runs. Whether it holds is what the audit below is for."
)
COMMANDS = (
    "fedaccord solve demo/game.json --save demo/plan.csv",
    "fedaccord train demo/federation.toml --contributions demo/plan.csv",
    "fedaccord audit demo/federation.toml --algorithm FedAvg --protocol P2 --plan demo/plan.csv",
    f"fedaccord audit demo/federation.toml --trials {FEWER}",
)


def pilots(source, algorithm, times):
    """Let one agent alone give: accuracies by part, giver, trial and agent."""
    counts = np.rint(np.multiply.outer(PARTS, source.points)).astype(int)
    agents = len(source.names)
    found = np.empty((len(PARTS), agents, times, agents))
    for trial in range(times):
        federation, seed = source.deal(trial), derived_seed(SEED, "trial", trial)
        for part, giver in np.ndindex(counts.shape):
            alone = np.where(np.arange(agents) == giver, counts[part], 0)
            history = train(federation, algorithm, contributions=alone, seed=seed)
            found[part, giver, trial] = history.final
    return counts, found


def game_of(source, counts, found):
    """Make a game of the pilots.

    With n points of agent j alone agent i errs in a share c_ij n^-b of cases, b being the same for
    all. So a point of j is worth (c_ii / c_ij)^(1 / b) own points to i, and alone i needs as many
    as bring its error down to what it tolerates, less the margin.
    """
    errors = np.log(1 - found.mean(axis=2))
    sizes = np.broadcast_to(np.log(counts)[:, :, None], errors.shape)
    apart = sizes - sizes.mean(axis=0)
    pace = -(apart * errors).sum() / (apart**2).sum()
    heights = (errors + pace * sizes).mean(axis=0).T
    own = heights.diagonal()
    benefits = np.exp((own[:, None] - heights) / pace).round(2)
    spread = np.sqrt(found[-1].var(axis=1, ddof=1).diagonal().mean())
    tolerated = 1 - source.requirements - MARGIN * spread
    needed = np.ceil(np.exp((own - np.log(tolerated)) / pace))
    frame = {"agents": source.names, "limits": source.points, "strategies": "integer"}
    return LinearGame(benefits, needed, **frame)


def plan_page(game, found):
    """Tell of the stable plan, beside the cheapest and the envy-free one."""
    audits = {n: audit(game, s.allocation) for n, s in found.items() if s.contributions is not None}
    prices = {
        "price_of_stability": price_of_stability(found["stable"], found["optimal"]),
        "price_of_fairness": price_of_fairness(found["envy-free"], found["optimal"]),
    }
    return solve_page(game, found, audits, prices)


def first_page(game, counts, runs):
    """Tell where the numbers of the game come from, and how to go on from it by hand."""
    rows = [(n, *game.benefits[i].tolist(), game.alone[i]) for i, n in enumerate(game.agents)]
    caption = "What a point of each is worth to the agent of the row, in points of its own"
    table = Table(caption, ("agent", *game.agents, "would need alone"), tuple(rows))
    how = HOW.format(least=counts.min(), most=counts.max(), runs=runs)
    total = f"Alone the agents would need {game.alone.sum():,.0f} points in all."
    by_hand = ("Once make demo has made the game, each step is a command:", Listing(COMMANDS))
    sections = (Section("Pilots", (how, table)), Section("Step by step", by_hand))
    return Page("What was known beforehand", total, "plain", sections=sections)


def outcome(game, plan, tested):
    """Lay out what came of the plan, agent by agent, and sum it up in a sentence."""
    (curve,) = tested.curves
    full, half = curve.at(1.0).at_end, curve.at(HALF).at_end
    sheet = Sheet("agent", "needs alone", "plan asks", "reaches its goal", "with half of it")
    for name, alone, asked in zip(game.agents, game.alone, plan.contributions, strict=True):
        own = [found.clients[name] for found in (full, half)]
        runs = [f"{round(share.p * share.trials)} of {share.trials} runs" for share in own]
        cells = (f"{alone:.0f}", f"{asked:.0f}", runs[0], runs[1] if asked else "-")
        sheet.add_row(line(name), *cells)
    needed = f"{game.alone.sum():,.0f}"
    sheet.add_sum("all", needed, f"{plan.total:,.0f}")
    return sheet, (
        f"With the plan, which asks for {plan.total:,.0f} points where alone the agents would need "
        f"{needed}, all reach their goals in {percent(curve.all_satisfied.p)} of runs, and who "
        f"brings only half of what it is asked for reaches its own in "
        f"{percent(half.contributors.p)}."
    )


def main(folder=HERE, *, times=PILOTS, trials=None):
    """Go from pilots to a page.

    folder: where the files go.
    times: how often each pilot is made.
    trials: of the audit; the config's where left out.
    """
    config = Config.load(HERE / "federation.toml")
    fedavg, seed = config.algorithms["FedAvg"], config.audit.seed
    building = Building(config)
    source = building.source(seed)
    emit(line(INTRODUCTION.format(source.points[0], percent(source.requirements[0]))))
    emit("1. Pilots: one agent alone gives. What are its points worth to whom?")
    counts, found = pilots(building.source(SEED), fedavg, times)
    game = game_of(source, counts, found)
    write_game(game, folder / "game.json")
    emit("2. The plan: the cheapest in which nobody could give less and still reach its goal.")
    solutions = {name: solve(game) for name, solve in SOLVERS.items()}
    plan = solutions["stable"].allocation
    plan.save(folder / "plan.csv")
    emit("3. Training with the plan, on points that no pilot has seen.")
    own = derived_seed(seed, "trial", 0)
    history = train(source.deal(0), fedavg, contributions=plan, seed=own)
    emit("4. The audit: training again and again, with one agent giving less than it should.")
    options = {"levels": config.audit.levels, "seed": seed}
    trials = trials or config.audit.trials
    tested = defection_curves(
        source, {"FedAvg": fedavg}, protocol="P2", plan=plan, trials=trials, **options
    )
    free = defection_curves(source, config.algorithms, trials=min(trials, FEWER), **options)
    sheet, verdict = outcome(game, plan, tested)
    pages = [
        first_page(game, counts, found[..., 0].size),
        plan_page(game, solutions),
        train_page(history, "FedAvg"),
        audit_page(tested),
        audit_page(free),
    ]
    title = "Four agents and their digits: a plan, and what becomes of it"
    page = joined(title, verdict, audit_tone(tested), pages=pages, command="make demo")
    page.save(folder / "report.html")
    at_half = percent(free.curve("FedAvg").at(HALF).at_end.random.p)
    emit(sheet, line(verdict), line(WITHOUT.format(source.points.sum(), at_half)))
    emit(line(f"The whole story: {folder / 'report.html'}"))


if __name__ == "__main__":
    try:
        main()
    except FedaccordError as error:
        sys.exit(f"demo: {error}")
