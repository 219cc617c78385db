"""Colours and type of pages and figures, light and dark.

Figures are drawn in the light colours named here and in no others. On a page each of them becomes
a CSS variable, so that figures follow the theme.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

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


def declare_colours(theme: int) -> str:
    """Declare the CSS variables of a theme, 0 for light and 1 for dark."""
    return "".join(f"--{name}:{colours[theme]};" for name, colours in COLOURS.items())


# Make matplotlib's SVG fit for a page: small, in the colours of the theme, its names its own.
# Styles become classes, which a page may allow by a hash; a style attribute it could only allow
# together with every other one.

# What XML cannot hold, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
POINTER = re.compile(r"(?<=url\(#)[\w-]+|(?<=^#)[\w-]+")
NUMBER = re.compile(r"-?\d+\.\d+")
# Between a letter and a number a path needs none.
SPACES = re.compile(r"(?<=[A-Za-z]) | (?=[A-Za-z])")
POLYGON = re.compile(r"M[-\d.]+ [-\d.]+(L[-\d.]+ [-\d.]+)+z?")
# Two and more shapes in a row that are clipped alike.
RUN = re.compile(r'<path\b[^>]*?( clip-path="[^"]+")[^>]*/>(?:<path\b[^>]*?\1[^>]*/>)+')
HEX = re.compile(r"#[0-9a-f]{6}\b")
VARIABLES = {light: f"var(--{name},{light})" for name, (light, _) in COLOURS.items()}
# Black is what matplotlib does not mention.
VARIABLES["#000000"] = VARIABLES[INK]
COMMON = f".drawing{{fill:{INK};stroke-linejoin:round;stroke-linecap:butt;font-family:{FONTS}}}"
DROPPED = ("metadata", "style", "title")
# Attributes that hold lengths; a hundredth of a point is below what anybody sees.
LENGTHS = ("d", "x", "y", "width", "height", "transform", "points", "x1", "x2", "y1", "y2")


class Drawing:
    """A drawing of matplotlib's, rewritten.

    source: the SVG that matplotlib wrote.
    prefix: what the names of its parts begin with; no two drawings on a page share it.
    classes: the name of the class for each style met, to which those of this drawing are added.
    """

    def __init__(self, source: str, *, prefix: str, classes: dict[str, str]) -> None:
        root = ElementTree.fromstring(UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", source))
        self._classes = classes
        referred = (
            name
            for element in root.iter()
            for key, value in element.attrib.items()
            if key.endswith("href") or "url(" in value
            for name in POINTER.findall(value)
        )
        self._names = {name: f"{prefix}-{n}" for n, name in enumerate(dict.fromkeys(referred))}
        _, _, self.width, self.height = map(float, root.attrib["viewBox"].split())
        # Shapes in a row that are clipped alike share one clip.
        self.body = RUN.sub(
            lambda run: f"<g{run[1]}>{run[0].replace(run[1], '')}</g>",
            "".join(map(self._write, root)),
        )

    def _write(self, element: ElementTree.Element) -> str:
        tag = element.tag.rpartition("}")[2]
        if tag in DROPPED:
            return ""
        attributes = "".join(f" {key}={quoteattr(v)}" for key, v in self._attributes(element))
        text = escape(element.text or "") if tag in ("text", "tspan") else ""
        inner = text + "".join(map(self._write, element))
        if tag in ("g", "defs") and not (inner and attributes):
            return inner if tag == "g" or not inner else f"<{tag}>{inner}</{tag}>"
        return f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>"

    def _attributes(self, element: ElementTree.Element) -> list[tuple[str, str]]:
        kept, css = [], []
        for full, value in element.attrib.items():
            key = full.rpartition("}")[2]
            if key == "style":
                css.append(value)
            elif key in ("fill", "stroke"):
                css.append(f"{key}:{value}")
            elif key == "id":
                kept += [(key, self._names[value])] if value in self._names else []
            else:
                value = _round_lengths(value) if key in LENGTHS else value
                kept.append((key, _shorten_path(value) if key == "d" else self._rename(value)))
        told = (part.strip().replace(": ", ":") for part in ";".join(css).split(";"))
        look = self._rename(";".join(part for part in told if part and "font-family" not in part))
        if look:
            kept.append(("class", self._classes.setdefault(look, f"d{len(self._classes)}")))
        return [(key, value) for key, value in kept if not value.startswith("rotate(0")]

    def _rename(self, value: str) -> str:
        return POINTER.sub(lambda found: self._names[found[0]], value)


def _round_lengths(value: str) -> str:
    rounded = NUMBER.sub(lambda found: f"{round(float(found[0]), 2):.7g}", value)
    return SPACES.sub("", " ".join(rounded.split()).replace("-0 ", "0 "))


def _shorten_path(path: str) -> str:
    """Write lines that run level or upright, as those of bars do, with one number each."""
    if not POLYGON.fullmatch(path):
        return path
    first, *points = (tuple(point.split(" ")) for point in path[1:].rstrip("z").split("L"))
    written = [f"M{first[0]} {first[1]}"]
    for (x, y), (before_x, before_y) in zip(points, [first, *points], strict=False):
        written.append(f"V{y}" if x == before_x else f"H{x}" if y == before_y else f"L{x} {y}")
    return "".join(written) + ("z" if path.endswith("z") else "")


def write_rules(classes: Mapping[str, str], *, themed: bool) -> str:
    """Return the CSS of drawings.

    classes: the name of the class for each style.
    themed: whether colours are to follow the page's theme.
    """
    lines = (f".{name}{{{css}}}" for css, name in classes.items())
    text = "\n".join((COMMON, *lines))
    return HEX.sub(lambda found: VARIABLES.get(found[0], found[0]), text) if themed else text


def write_svg(source: str, *, title: str, alt: str) -> str:
    """Return a drawing as an SVG file of its own, in light colours on white.

    source: the SVG that matplotlib wrote.
    title: what it shows.
    alt: the same for someone who cannot see it.
    """
    classes: dict[str, str] = {}
    drawing = Drawing(source, prefix="d", classes=classes)
    width, height = drawing.width, drawing.height
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="img" '
        f'width="{width:g}pt" height="{height:g}pt" viewBox="0 0 {width:g} {height:g}">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(alt)}</desc>\n"
        f"<style>{escape(write_rules(classes, themed=False))}</style>\n"
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{drawing.body}\n</svg>\n'
    )
