"""Pages to look at: few agents, many agents, names that mean harm."""

import math
from itertools import pairwise

from frontiers import contender, frontier
from training_results import lenient

from fedaccord.charts import Chart, Line
from fedaccord.report import style
from fedaccord.report.drawing import finish, label_names, picture_of, put_legend, set_labels
from fedaccord.report.frontier import frontier_page
from fedaccord.report.model import Listing, Mark, Page, Picture, Section, Table

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "x" * 200,
    "$x_1$ and $\\frac{",
    "بيت الشفاء",
    "ירושלים 7 \u202egnp",
    "👩‍⚕️ clinic 🏥",
    "tab\there\x00\x1b[31m",
    "{{ 7 * 7 }} {% raw %}",
    "-->]]></style></title>",
    "=HYPERLINK(1)",
    "東京大学病院",
)

LEVELS = (1.0, 0.75, 0.5, 0.25, 0.05)
SHARES = {"FedAvg": (1.0, 1.0, 1.0, 1.0, 0.99), "MW-FED": (0.98, 0.96, 0.91, 0.85, 0.86)}


def defection(names=("FedAvg", "MW-FED")):
    lines = tuple(
        Line(
            name,
            LEVELS,
            shares,
            low=tuple(max(share - 0.08, 0.0) for share in shares),
            high=tuple(min(share + 0.05, 1.0) for share in shares),
        )
        for name, shares in zip(names, SHARES.values(), strict=True)
    )
    return Chart(
        "defection",
        "How often an agent that holds data back still reaches its goal",
        "share of its data that one random agent brings; the others bring all of theirs",
        "runs in which it still reaches its goal, with 95 % intervals",
        "Under FedAvg it reaches its goal in 99 of 100 runs or more, however little it brings; "
        "under MW-FED in 98 of 100 with everything and in 85 with a quarter.",
        lines,
        percent=True,
    )


def training(names=("University", "City", "Rural", "Coast")):
    rounds = tuple(range(0, 251, 5))
    lines = tuple(
        Line(
            name,
            rounds,
            tuple(0.92 - 0.05 * n - 0.4 * math.exp(-r / (30 + 25 * n)) for r in rounds),
            low=tuple(0.89 - 0.05 * n - 0.4 * math.exp(-r / (30 + 25 * n)) for r in rounds),
            high=tuple(0.95 - 0.05 * n - 0.4 * math.exp(-r / (30 + 25 * n)) for r in rounds),
        )
        for n, name in enumerate(names)
    )
    return Chart(
        "training", "Accuracy during training", "round", "accuracy on its own validation points",
        "All four start near 50 % and pass the goal of 70 % by round 60.", lines,
        percent=True, goal=0.7,
    )  # fmt: skip


def prices():
    sizes = (4, 16, 64, 256, 1024, 10000)
    return Chart(
        "prices", "What stability costs as the federation grows", "agents k", "price",
        "The price of stability grows as the square root of k, to 50 at ten thousand agents.",
        (
            Line("price of stability", sizes, tuple(0.5 * k**0.5 for k in sizes)),
            Line("price of fairness", sizes, tuple(0.36 * k**0.49 for k in sizes)),
            Line("√k", sizes, tuple(k**0.5 for k in sizes), reference=True),
        ),
        logarithmic=True,
    )  # fmt: skip


def contributions(agents):
    """Give made-up numbers: alone, optimal, stable, envy-free."""
    return {
        "alone": [1440 - 37.5 * (n % 17) for n in range(len(agents))],
        "optimal": [0.0 if n % 3 == 2 else 1228.125 - 21.7 * (n % 13) for n in range(len(agents))],
        "stable": [300 + 64.3 * (n % 11) for n in range(len(agents))],
    }


def allocations(agents):
    given = contributions(agents)
    places = list(range(len(agents)))
    colours = {"alone": style.ALONE, "optimal": style.OPTIMAL, "stable": style.STABLE}

    def draw(ax):
        thick = 0.8 / len(given)
        for n, (name, values) in enumerate(given.items()):
            shifted = [place + (n - 1) * thick for place in places]
            ax.barh(shifted, values, thick * 0.9, color=colours[name], label=name)
        label_names(ax, "y", places, agents)
        ax.set_ylim(len(agents) - 0.4, -0.6)
        set_labels(ax, top="labelled cases")
        ax.grid(axis="x")
        put_legend(ax)
        return finish(ax)

    rows = tuple(zip(agents, *given.values(), strict=True))
    return Picture(
        "allocations", "Who gives how much",
        "Alone each would label between 840 and 1,440 cases; the stable plan asks for 300 to 943.",
        draw, Table("Contributions, in labelled cases", ("agent", *given), rows),
        size=(7.6, 1.3 + min(0.55 * len(agents), 7)),
        note="Longer bars mean more work; the stable plan is the one nobody would leave.",
    )  # fmt: skip


def plan_table(agents):
    given = contributions(agents)
    rows = []
    for n, agent in enumerate(agents):
        spare = Mark("could give 210 less", "bad") if n % 5 == 0 else Mark("keeps to it", "good")
        rows.append((agent, *(column[n] for column in given.values()), spare))
    sums = tuple(sum(column) for column in given.values())
    heads = ("agent", *given, "would it keep to the optimal plan?")
    return Table("The plans, agent by agent", heads, tuple(rows), (("all", *sums),))


def example_page(agents, *, title="Three plans for a federation", names=None):
    """Make a page that has everything a page can have."""
    sentences = tuple(
        f"{a} gives 300. Alone it would need 1,440. Given what {b} give, 299 is enough."
        for a, b in pairwise(agents[:6])
    )
    who = names or agents[:4]
    return Page(
        title,
        f"The stable plan asks for 2,100 labelled cases in all and nobody would gain by giving "
        f"less; under the cheapest plan {agents[0]} could give 210 less.",
        "good",
        (
            Section(
                "Who gives how much",
                (
                    "Alone, the hospitals would label 3,810 cases. The cheapest plan asks for "
                    "about half of that, but not everybody would keep to it.",
                    allocations(agents),
                    plan_table(agents),
                ),
            ),
            Section("Agent by agent", (Listing(sentences),)),
            Section(
                "What happens when they train",
                (
                    Mark("One member in five could hold back unnoticed under FedAvg.", "bad"),
                    picture_of(defection(who[:2])),
                    Section("Curves of training", (picture_of(training(who)),)),
                ),
            ),
            Section(
                "The price of stability",
                (
                    Mark("The last digit is too close to call.", "unsure"),
                    picture_of(prices()),
                    Table(
                        "Fitted exponents",
                        ("price", "exponent", "from", "to", "what that means"),
                        (
                            ("stability", 0.4998231, 0.4989, 0.5007, "It grows as the paper says."),
                            (
                                "fairness",
                                0.49,
                                None,
                                None,
                                "It was fitted without an interval, "
                                "since there was one game of each size and nothing was drawn.",
                            ),
                        ),
                    ),
                ),
            ),
        ),
        facts=(
            ("Method", "best response from zero; certified by an audit that imports no solver"),
            ("Seed", "7"),
            ("Versions", "Python 3.11.2, fedaccord 0.1.0, numpy 2.4.6, scipy 1.17.1"),
            ("Machine", "AMD EPYC 7B13, 2 cores, Linux"),
        ),
        command=f"fedaccord solve hospitals.json --concept stable --agent {agents[0]!r} --seed 7",
    )


FOUR = ("University", "City", "Rural", "Coast")
MANY = tuple(f"Hospital {n:03d} of the county" for n in range(1, 401))


def four():
    return example_page(FOUR)


def many():
    return example_page(MANY, title="Four hundred hospitals")


def hostile():
    return example_page(HOSTILE, title=f"Names that mean harm: {HOSTILE[0]}", names=HOSTILE[:4])


def algorithms():
    """Twenty algorithms that all use the same samples, more than a legend has lines for."""
    names = ["FedAvg", *(f"algorithm {n} with a plan" for n in range(19))]
    return frontier_page(frontier(*(contender(name, lenient, trials=4) for name in names)))
