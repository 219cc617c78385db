"""Draw who labels how many cases: alone, and under the three kinds of plan.

    python docs/figures/three_hospitals.py        writes three_hospitals.svg beside this file

Needs matplotlib (pip install '.[report]').
"""

from pathlib import Path

import numpy as np

from fedaccord import read_game, solve_envy_free, solve_optimal, solve_stable

HERE = Path(__file__).parent
GAME = HERE.parent / "tutorial" / "hospitals.json"
COLOURS = ("#0b5563", "#e08e2b", "#9aa5b1")


def plans():
    """Give the names of the hospitals and each plan's contributions."""
    game = read_game(GAME)
    found = {
        "alone": game.alone,
        "optimal": solve_optimal(game).allocation.contributions,
        "stable": solve_stable(game).allocation.contributions,
        "envy-free": solve_envy_free(game).allocation.contributions,
    }
    return game.agents, found


def draw(path):
    """Draw the figure to a file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    agents, found = plans()
    # Text stays text, and the same drawing gives the same file.
    style = {"svg.fonttype": "none", "svg.hashsalt": "fedaccord", "font.family": "sans-serif"}
    with plt.rc_context({**style, "font.size": 10}):
        figure, axes = plt.subplots(figsize=(7.6, 3.3), layout="constrained")
        places = np.arange(len(found))
        width = 0.27
        for n, (agent, colour) in enumerate(zip(agents, COLOURS, strict=True)):
            heights = [given[n] for given in found.values()]
            bars = axes.bar(places + (n - 1) * width, heights, width * 0.92, color=colour)
            bars.set_label(agent)
            axes.bar_label(bars, [f"{h:,.0f}" for h in heights], padding=2, fontsize=9)
        names = [f"{name}\n{given.sum():,.0f} in all" for name, given in found.items()]
        axes.set_xticks(places, names)
        axes.tick_params(axis="x", length=0, pad=6)
        axes.set_yticks([])
        axes.set_ylim(0, 1.12 * max(given.max() for given in found.values()))
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_title("labelled cases", loc="left", fontsize=10, color="#444444")
        axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), fontsize=9)
        metadata = {"Date": None} if Path(path).suffix == ".svg" else None
        figure.savefig(path, metadata=metadata, dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    draw(HERE / "three_hospitals.svg")
