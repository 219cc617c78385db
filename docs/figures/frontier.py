"""Draw which algorithms make a cut felt, and how much data they take.

    python docs/figures/frontier.py        writes frontier.svg beside this file

The numbers are those of experiments/blum2021/results/frontier.json, which
`fedaccord frontier experiments/blum2021/frontier.toml --json` printed. Needs matplotlib
(pip install '.[report]').
"""

import json
from pathlib import Path

from marked import RESULTS, save

from fedaccord.frontier.result import Frontier

SOURCE = RESULTS / "blum2021" / "results" / "frontier.json"


def draw(path, source=SOURCE):
    """Draw the figure to a file."""
    from fedaccord.report.frontier_figures import plot_frontier

    found = Frontier.from_dict(json.loads(source.read_text(encoding="utf-8")))
    save(plot_frontier, found, source, path)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
