"""Figures of committed results, marked with what they were drawn from."""

import hashlib
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "experiments"


def digest(source):
    """Give what a picture is marked with, to see that it is of these results."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def save(plot, found, source, path):
    """Draw a figure to a file.

    plot: draws it.
    found: what it is of.
    source: the file that has that.
    path: of the picture.
    """
    from fedaccord.report.drawing import figure_of, styled

    mark = f"drawn from sha256 {digest(source)}"
    metadata = {"Date": None, "Description": mark} if Path(path).suffix == ".svg" else None
    # Saved in the style as well: text stays text, and the same drawing gives the same file.
    with styled():
        figure_of(plot(found)).savefig(path, metadata=metadata, dpi=150)
