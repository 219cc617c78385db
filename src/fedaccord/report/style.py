"""Colours and type of pages and figures, light and dark.

Figures are drawn in the light colours named here and in no others. On a page each of them becomes
a CSS variable, so that figures follow the theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

# Each colour's CSS variable, then how it looks on light and on dark paper.
COLOURS = {
    "paper": ("#ffffff", "#14181d"),
    "ink": ("#1d2731", "#e7ebef"),
    "muted": ("#54616e", "#a3b0bd"),
    "grid": ("#e3e7eb", "#2d353e"),
    "reference": ("#5d6975", "#c0c9d2"),
    "series-1": ("#0f5662", "#93e1e9"),
    "series-2": ("#d26b00", "#f6a524"),
    "series-3": ("#6c56c8", "#8572e8"),
    "series-4": ("#7f92a3", "#8f9bb0"),
    "series-5": ("#6b0530", "#d0526f"),
    "series-6": ("#5a6100", "#c6f187"),
    "good": ("#1b6e3c", "#6fcf97"),
    "bad": ("#b3261e", "#ff9a92"),
    "unsure": ("#8a5a00", "#f0bd5c"),
    "shade-1": ("#eef4f6", "#1b252c"),
    "shade-2": ("#cfe2e7", "#21404b"),
    "shade-3": ("#a3cad4", "#25525f"),
    "shade-4": ("#6aa9b8", "#2f7183"),
    "shade-5": ("#2f7f92", "#7fc6d7"),
    "shade-6": ("#0a4a5a", "#c9edf5"),
}


def _light(name: str) -> str:
    return COLOURS[name][0]


PAPER, INK, MUTED, GRID = (_light(name) for name in ("paper", "ink", "muted", "grid"))
REFERENCE = _light("reference")
# Lines and bars, in this order; they differ in lightness too, for eyes that mix up hues.
SERIES = tuple(_light(f"series-{n}") for n in range(1, 7))
# What each plan and algorithm is drawn in, on every page.
ALONE, OPTIMAL, STABLE, ENVY_FREE = SERIES[3], SERIES[1], SERIES[0], SERIES[2]
GOOD, BAD, UNSURE = _light("good"), _light("bad"), _light("unsure")
# From almost paper to full, for cells of a grid.
SHADES = tuple(_light(f"shade-{n}") for n in range(1, 7))
MARKERS = ("o", "s", "^", "D", "v", "P")
Dashes: TypeAlias = str | tuple[float, tuple[float, ...]]
DASHES: tuple[Dashes, ...] = (
    "solid",
    (0, (6, 2)),
    (0, (1, 1.5)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1, 3, 1)),
    (0, (10, 2)),
)
FONTS = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', "
    "sans-serif"
)
FONT_SIZE = 10
SMALL = 9

# For matplotlib. DejaVu Sans comes with it, so that figures are laid out alike everywhere.
RC = {
    "font.family": ["DejaVu Sans"],
    "font.size": FONT_SIZE,
    "text.parse_math": False,
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "fedaccord",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": REFERENCE,
    "axes.facecolor": "none",
    "axes.titlecolor": MUTED,
    "axes.titlesize": FONT_SIZE,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelpad": 6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "figure.facecolor": PAPER,
    "figure.dpi": 100,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.06,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": REFERENCE,
    "ytick.color": REFERENCE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 6,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "legend.borderaxespad": 0.2,
    "legend.borderpad": 0,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "patch.linewidth": 0,
}


def series(n: int) -> tuple[str, str, Dashes]:
    """Return the colour, marker and dashes of the n-th line, from 0.

    Marker and colour tell the first six apart; those after them are dashed as well.
    """
    again, place = divmod(n, len(SERIES))
    return SERIES[place], MARKERS[place], DASHES[again % len(DASHES)]


def shade(share: float) -> str:
    """Return the fill of a cell whose value is a share of the largest, from 0 to 1."""
    return SHADES[min(int(max(share, 0.0) * len(SHADES)), len(SHADES) - 1)]


def on_shade(share: float) -> str:
    """Return the colour of text on such a cell."""
    return INK if shade(share) in SHADES[:4] else PAPER


def declared(theme: int, names: Sequence[str] = tuple(COLOURS)) -> str:
    """Declare the CSS variables of a theme, 0 for light and 1 for dark."""
    return "".join(f"--{name}:{COLOURS[name][theme]};" for name in names)
