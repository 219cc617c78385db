"""Draw how often a random agent that gives less is satisfied all the same, by algorithm.

    python docs/figures/defection.py        writes defection.svg beside this file

The numbers are those of experiments/digits/results/audit.json, which `fedaccord audit --json`
printed. Needs matplotlib (pip install '.[report]').
"""

import hashlib
import json
from pathlib import Path

from fedaccord.federation import DefectionAudit

HERE = Path(__file__).parent
AUDIT = HERE.parents[1] / "experiments" / "digits" / "results" / "audit.json"


def digest(source):
    """Give what the picture is marked with, to see that it is of this audit."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def draw(path, source=AUDIT):
    """Draw the figure to a file."""
    from fedaccord.report.drawing import figure_of, styled
    from fedaccord.report.figures_training import plot_defection

    audit = DefectionAudit.from_dict(json.loads(source.read_text(encoding="utf-8")))
    mark = f"drawn from sha256 {digest(source)}"
    metadata = {"Date": None, "Description": mark} if Path(path).suffix == ".svg" else None
    # Saved in the style as well: text stays text, and the same drawing gives the same file.
    with styled():
        figure_of(plot_defection(audit)).savefig(path, metadata=metadata, dpi=150)


if __name__ == "__main__":
    draw(HERE / "defection.svg")
