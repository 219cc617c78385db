"""Draw which algorithms make a cut felt, and how much data they take.

    python docs/figures/frontier.py        writes frontier.svg beside this file

The numbers are those of experiments/blum2021/results/frontier.json, which
`fedaccord frontier experiments/blum2021/frontier.toml --json` printed. Needs matplotlib
(pip install '.[report]').
"""

import hashlib
import json
from pathlib import Path

from fedaccord.planning.contenders import Frontier

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "experiments" / "blum2021" / "results" / "frontier.json"


def digest(source):
    """Give what the picture is marked with, to see that it is of these results."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def draw(path, source=RESULTS):
    """Draw the figure to a file."""
    from fedaccord.report.drawing import figure_of, styled
    from fedaccord.report.figures_frontier import plot_frontier

    found = Frontier.from_dict(json.loads(source.read_text(encoding="utf-8")))
    mark = f"drawn from sha256 {digest(source)}"
    metadata = {"Date": None, "Description": mark} if Path(path).suffix == ".svg" else None
    with styled():
        figure_of(plot_frontier(found)).savefig(path, metadata=metadata, dpi=150)


if __name__ == "__main__":
    draw(HERE / "frontier.svg")
