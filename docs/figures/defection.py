"""Draw how often a defector still reaches its goal, by algorithm.

    python docs/figures/defection.py        writes defection.svg next to this file

The numbers are those of experiments/digits/results/audit.json, which `fedaccord audit --json`
printed. Needs matplotlib (pip install '.[report]').
"""

import json
from pathlib import Path

from marked import RESULTS, save

from fedaccord.federation import DefectionAudit

SOURCE = RESULTS / "digits" / "results" / "audit.json"


def draw(path, source=SOURCE):
    """Draw the figure to a file."""
    from fedaccord.report.defection import plot_defection

    audit = DefectionAudit.from_dict(json.loads(source.read_text(encoding="utf-8")))
    save(plot_defection, audit, source, path)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
