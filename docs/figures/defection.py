"""Draw how often a random agent that gives less is satisfied all the same, by algorithm.

    python docs/figures/defection.py        writes defection.svg beside this file

The numbers are those of experiments/digits/results/audit.json, which `fedaccord audit --json`
printed. Needs matplotlib (pip install '.[report]').
"""

import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
AUDIT = HERE.parents[1] / "experiments" / "digits" / "results" / "audit.json"
COLOURS = ("#0b5563", "#e08e2b", "#9aa5b1")


def digest(source):
    """Give what the picture is marked with, to see that it is of this audit."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def draw(path, source=AUDIT):
    """Draw the figure to a file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    audit = json.loads(source.read_text(encoding="utf-8"))
    # Text stays text, and the same drawing gives the same file.
    style = {"svg.fonttype": "none", "svg.hashsalt": "fedaccord", "font.family": "sans-serif"}
    with plt.rc_context({**style, "font.size": 10}):
        figure, axes = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
        algorithms = audit["algorithms"].items()
        for n, ((name, curve), colour) in enumerate(zip(algorithms, COLOURS, strict=False)):
            draw_curve(axes, name, curve["levels"], colour, shift=0.008 * (2 * n - 1))
        levels = sorted({p["level"] for _, curve in algorithms for p in curve["levels"]})
        axes.set_xticks(levels, [f"{100 * level:g} %" for level in levels])
        axes.set_xlim(0, 1.05)
        axes.set_ylim(0, 1.04)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, pad=6)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_xlabel("of its data that one random agent brings; the others bring all of theirs")
        title = "runs in which it still reaches its goal, with 95 % intervals"
        axes.set_title(title, loc="left", fontsize=10, color="#444444")
        # Each curve with the dashed one below it.
        named = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda n: n[1])
        axes.legend(*zip(*named, strict=True), frameon=False, loc="lower right", fontsize=9)
        mark = f"drawn from sha256 {digest(source)}"
        metadata = {"Date": None, "Description": mark} if Path(path).suffix == ".svg" else None
        figure.savefig(path, metadata=metadata, dpi=150)
        plt.close(figure)


def draw_curve(axes, name, levels, colour, *, shift):
    """Draw one algorithm's curve with its intervals, and dashed that of its worst-off agent.

    shift: by how much to move it sideways, so that intervals do not cover each other.
    """
    points = sorted(levels, key=lambda point: point["level"])
    places = [point["level"] + shift for point in points]
    shares = [point["p"] for point in points]
    below = [point["p"] - point["low"] for point in points]
    above = [point["high"] - point["p"] for point in points]
    style = {"elinewidth": 1.2, "linewidth": 2, "marker": "o", "markersize": 5}
    axes.errorbar(places, shares, yerr=[below, above], color=colour, label=name, **style)
    worst = min(points[0]["agents"], key=lambda agent: sum(p["agents"][agent]["p"] for p in points))
    own = [point["agents"][worst]["p"] for point in points]
    label = f"{name}, the agent with {worst.replace('%', ' %')} points"
    axes.plot(places, own, color=colour, linewidth=1.2, linestyle=(0, (4, 3)), label=label)


if __name__ == "__main__":
    draw(HERE / "defection.svg")
