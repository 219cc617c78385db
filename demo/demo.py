"""Plan, train, audit: four agents that share handwritten digits.

    make demo        writes game.json, plan.csv and report.html beside this file

The plan rests on pilot runs in which one agent alone gives. They tell how many points each would
need alone, and what a point of one is worth to another. Then the plan is put to the test, on deals
of points that no pilot has seen.
"""

import sys
from dataclasses import replace
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
from fedaccord.audit import Answer
from fedaccord.errors import FedaccordError
from fedaccord.federation import Config, defection_curves, train
from fedaccord.federation.building import Building
from fedaccord.federation.streams import derived_seed
from fedaccord.report.page import Page, Section, Table, joined
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
LITTLE, HALF = 0.9, 0.5
# Trials and levels without a plan, which take longest and are there for comparison.
FEWER = 5
COARSER = (1.0, 0.5, 0.25)
COUNTS = ("none", "one", "two", "three", "four")

INTRODUCTION = (
    "Four agents have {points} handwritten digits each; hard ones are {hard}. All want a network "
    "that reads {goal} of their own digits right. Who should give how much?"
)
WITHOUT = (
    "Without a plan, all bringing all {} points to FedAvg, a random agent could bring half and "
    "still reach its goal in {} of runs."
)
COMPARISON = "For comparison: no plan, everybody brings all"
BY = "by the pilots' estimate"
MARGINS = (
    "The plan has a margin, so that a run that goes a little worse than most still ends well. Who "
    "gives a little less than asked uses up the margin first: it misses its goal more often, not "
    "at once."
)
HOW = (
    "Beforehand one agent alone gave {least} to {most} points, in {runs:,} short runs, and the "
    "accuracy was measured for everybody. Its own learning curve tells what an agent needs alone "
    "to reach its goal, with a margin that one run in twenty falls short of; the same curve tells "
    "what the points of another are worth to it. This is a rough plan: it takes for granted that "
    "all learn at the same pace, that points of different agents add up and that none are worth "
    "more than one's own, and it rests on few runs. Whether it holds is what the audit below is "
    "for."
)
COMMANDS = (
    "make demo",
    "# or, once it has made the game, step by step:",
    "fedaccord solve demo/game.json --save demo/plan.csv",
    "fedaccord train demo/federation.toml --contributions demo/plan.csv",
    "fedaccord audit demo/federation.toml --algorithm FedAvg --protocol P2 --plan demo/plan.csv",
    f"fedaccord audit demo/federation.toml --trials {FEWER} --levels 1,.5,.25",
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
    # Few pilots: of several agents the one that seems worth most is so by luck in part, and a plan
    # would lean on it. Nobody's points are taken to be worth more to an agent than its own.
    benefits = np.minimum(np.exp((own[:, None] - heights) / pace), 1).round(2)
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


def pilots_page(game, counts, runs):
    """Tell where the numbers of the game come from."""
    rows = [(n, *game.benefits[i].tolist(), game.alone[i]) for i, n in enumerate(game.agents)]
    caption = "What a point of each is worth to the agent of the row, in points of its own"
    table = Table(caption, ("agent", *game.agents, "would need alone"), tuple(rows))
    how = HOW.format(least=counts.min(), most=counts.max(), runs=runs)
    total = f"Alone the agents would need {game.alone.sum():,.0f} points in all, {BY}."
    return Page(
        "What was known beforehand",
        total,
        "plain",
        sections=(Section("Pilots", (how, table)),),
        facts=(("Seed", str(SEED)), ("Runs", f"{runs:,}")),
    )


def listed(words):
    """Put words one after the other, with an and before the last."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def runs_of(shares):
    """Say in how many runs it came out well."""
    made = sum(share.trials for share in shares)
    return f"{round(sum(share.p * share.trials for share in shares))} of {made} runs"


def who_gives(game, plan):
    """Say who gives how much, beside what it would need alone."""
    asked = dict(zip(game.agents, plan.contributions, strict=True))
    givers = {name: points for name, points in asked.items() if points}
    alone = sum(need for name, need in zip(game.agents, game.alone, strict=True) if name in givers)
    idle = len(asked) - len(givers)
    as_many = f"as many as it would need alone {BY}"
    if len(givers) == 1:
        (name,) = givers
        said = f"One agent, {name}, gives all {plan.total:,.0f} points, "
        said += as_many if alone <= plan.total else f"and alone would need {alone:,.0f} {BY}"
    else:
        each = listed([f"{name} {points:.0f}" for name, points in givers.items()])
        said = f"{COUNTS[len(givers)].capitalize()} agents give {plan.total:,.0f} points ({each}), "
        said += f"and alone would need {alone:,.0f} {BY}"
    rest = "the other gives" if idle == 1 else f"the other {COUNTS[idle]} give"
    return f"{said}; {rest} nothing." if idle else f"{said}."


def summed_up(game, plan, tested):
    """Say what came of the plan: who reached its goal, who gives, and what giving less did."""
    (curve,) = tested.curves
    givers = [name for name, n in zip(game.agents, plan.contributions, strict=True) if n]
    who = givers[0] if len(givers) == 1 else "who of them gave less"
    cuts = [runs_of([curve.at(cut).at_end.clients[n] for n in givers]) for cut in (LITTLE, HALF)]
    return (
        f"In {runs_of([curve.all_satisfied])} of the plan everybody reached its goal. "
        f"{who_gives(game, plan)} With {percent(LITTLE)} of it {who} reached its goal in "
        f"{cuts[0]}, with half of it in {cuts[1]}."
    )


def tone_of(game, plan, tested):
    """Call it good only where the plan never failed, nobody could give less and nobody envies."""
    tone = audit_tone(tested)
    never = tested.curves[0].all_satisfied.p == 1
    fair = audit(game, plan).envy_free is Answer.TRUE
    return tone if tone != "good" or (never and fair) else "plain"


def gains(game, plan):
    """Say what the agents that give gain by joining, if anything."""
    saved = dict(zip(game.agents, audit(game, plan).saved.tolist(), strict=True))
    givers = [name for name, n in zip(game.agents, plan.contributions, strict=True) if n]
    for_nothing = [name for name in givers if saved[name] < 1]
    if not for_nothing:
        return f"Everybody gains by joining: nobody gives as much as it would need alone, {BY}."
    names, rest = listed(for_nothing), len(game.agents) - len(for_nothing)
    gain = "gains" if len(for_nothing) == 1 else "gain"
    each = "it gives" if len(for_nothing) == 1 else "they give"
    gained = sum(points for name, points in saved.items() if name not in for_nothing)
    return (
        f"{names} {gain} nothing by joining: {each} what would be needed alone. The other "
        f"{COUNTS[rest]} save {gained:,.0f} points, {BY}. To make joining worth while takes "
        "goodwill, a payment, or a fairer plan."
    )


def fairness(game, found):
    """Say that stability is not fairness, with the plan beside it in which nobody envies."""
    plan, fair = (found[name] for name in ("stable", "envy-free"))
    envious = {game.agents[i] for i, _ in audit(game, plan.allocation).envy}
    names = [name for name in game.agents if name in envious]
    yield (
        "A stable plan promises only that nobody could give less and still reach its goal. That is "
        "not fairness."
    )
    if names:
        yield (
            f"{listed(names)} would rather be in another's place: if the two changed places, it "
            f"would give less and still reach its goal, {BY}."
        )
    else:
        yield (
            "Nobody envies another, though: in the place of one that gives less, with that one in "
            f"its own, it would miss its goal, {BY}."
        )
    if fair.contributions is None:
        yield "A plan in which nobody envies another was not found."
        return
    if np.array_equal(fair.contributions, plan.contributions):
        yield "It is the cheapest such plan, so the wish not to be envied changes nothing here."
        return
    each = listed([f"{n} {c:.0f}" for n, c in zip(game.agents, fair.contributions, strict=True)])
    spare = int((audit(game, fair.allocation).spare >= 1).sum())
    hold = (
        f"But {'all' if spare == len(game.agents) else COUNTS[spare]} of them could then give less "
        "and still reach their goals, so it holds only by agreement."
        if spare
        else "It is stable too."
    )
    yield (
        f"The cheapest plan in which nobody envies another asks for "
        f"{fair.contributions.sum():,.0f} points instead of {plan.contributions.sum():,.0f}: "
        f"{each}. {hold} The plan tested here is the stable one."
    )


HEADS = ("agent", "hard digits", "needs alone", "plan asks", "reaches its goal")
CUTS = (f"with {percent(LITTLE)} of it", "with half")


def rows_of(game, plan, tested, hard):
    """Lay out what came of the plan, agent by agent."""
    (curve,) = tested.curves
    columns = (game.agents, hard, game.alone, plan.contributions)
    for name, part, alone, asked in zip(*columns, strict=True):
        own = [runs_of([curve.at(cut).at_end.clients[name]]) for cut in (1.0, LITTLE, HALF)]
        cuts = [runs.removesuffix(" runs") if asked else "-" for runs in own[1:]]
        yield (name, percent(part), int(alone), int(asked), own[0], *cuts)


def outcome_page(game, solutions, rows, without):
    """Tell who gains by the plan and who does not, before all else."""
    plan = solutions["stable"].allocation
    totals = ("all", None, int(game.alone.sum()), int(plan.total))
    table = Table("What came of the plan", (*HEADS, *CUTS), tuple(rows), footer=(totals,))
    sections = (
        Section("Agent by agent", (table, MARGINS)),
        Section("Is that fair?", tuple(fairness(game, solutions))),
        Section("And without a plan?", (without,)),
    )
    return Page("Why join?", gains(game, plan), "plain", sections=sections)


def introduction(source, hard):
    """Say who is who, and what all want."""
    parts = listed(
        [f"{percent(part)} of {n}'s" for n, part in zip(source.names, hard, strict=True)]
    )
    goal = percent(source.requirements[0])
    return INTRODUCTION.format(points=source.points[0], hard=parts, goal=goal)


def audits(config, source, plan, trials):
    """Put the plan to the test, and for comparison see what happens without one."""
    fedavg, seed = config.algorithms["FedAvg"], config.audit.seed
    options = {"levels": config.audit.levels, "trials": trials, "seed": seed}
    tested = defection_curves(source, {"FedAvg": fedavg}, protocol="P2", plan=plan, **options)
    fewer = min(trials, FEWER)
    free = defection_curves(source, config.algorithms, levels=COARSER, trials=fewer, seed=seed)
    return tested, free


def sheet_of(game, plan, rows):
    """Lay out what came of the plan for a terminal."""
    sheet = Sheet(HEADS[0], *HEADS[2:], *CUTS)
    for name, _, *cells in rows:
        sheet.add_row(line(name), *map(str, cells))
    sheet.add_sum("all", f"{game.alone.sum():,.0f}", f"{plan.total:,.0f}")
    return sheet


def main(folder=HERE, *, times=PILOTS, trials=None):
    """Go from pilots to a page.

    folder: where the files go.
    times: how often each pilot is made.
    trials: of the audit; the config's where left out.
    """
    config = Config.load(HERE / "federation.toml")
    fedavg, seed = config.algorithms["FedAvg"], config.audit.seed
    building = Building(config)
    source, hard = building.source(seed), config.agents.mixtures
    emit(line(introduction(source, hard)))
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
    tested, free = audits(config, source, plan, trials or config.audit.trials)
    at_half = percent(free.curve("FedAvg").at(HALF).at_end.random.p)
    without = WITHOUT.format(source.points.sum(), at_half)
    rows = list(rows_of(game, plan, tested, hard))
    pages = {
        "Outcome": outcome_page(game, solutions, rows, without),
        "Pilots": pilots_page(game, counts, found[..., 0].size),
        "Plan": plan_page(game, solutions),
        "Training": train_page(history, "FedAvg"),
        "Test of the plan": audit_page(tested),
        "No plan": replace(audit_page(free), title=f"{COMPARISON} {source.points[0]} points"),
    }
    verdict = summed_up(game, plan, tested)
    joined(
        "Four agents and their digits: a plan, and what becomes of it",
        verdict,
        tone_of(game, plan, tested),
        pages=list(pages.values()),
        names=list(pages),
        command="\n".join(COMMANDS),
    ).save(folder / "report.html")
    emit(sheet_of(game, plan, rows), line(verdict), line(without))
    emit(line(f"The whole story: {folder / 'report.html'}"))


if __name__ == "__main__":
    try:
        main()
    except FedaccordError as error:
        sys.exit(f"demo: {error}")
