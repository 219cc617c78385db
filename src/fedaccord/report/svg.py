"""Make matplotlib's SVG fit for a page: small, in the colours of the theme, its names its own.

Styles become classes, which a page may allow by a hash; a style attribute it could only allow
together with every other one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from fedaccord.report.style import COLOURS, FONTS, INK, PAPER

# What XML cannot hold, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REFERENCE = re.compile(r"(?<=url\(#)[\w-]+|(?<=^#)[\w-]+")
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
            for name in REFERENCE.findall(value)
        )
        self._names = {name: f"{prefix}-{n}" for n, name in enumerate(dict.fromkeys(referred))}
        _, _, self.width, self.height = map(float, root.attrib["viewBox"].split())
        self.body = RUN.sub(_clipped_once, "".join(map(self._written, root)))

    def _written(self, element: ElementTree.Element) -> str:
        tag = element.tag.rpartition("}")[2]
        if tag in DROPPED:
            return ""
        attributes = "".join(f" {key}={quoteattr(v)}" for key, v in self._attributes(element))
        text = escape(element.text or "") if tag in ("text", "tspan") else ""
        inner = text + "".join(map(self._written, element))
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
                value = _shortened(value) if key in LENGTHS else value
                kept.append((key, _squared(value) if key == "d" else self._renamed(value)))
        if named := self._class_of(";".join(css)):
            kept.append(("class", named))
        return [(key, value) for key, value in kept if not value.startswith("rotate(0")]

    def _class_of(self, css: str) -> str:
        told = [part.strip() for part in css.split(";")]
        kept = [part.replace(": ", ":") for part in told if part and "font-family" not in part]
        found = self._renamed(";".join(kept))
        return self._classes.setdefault(found, f"d{len(self._classes)}") if found else ""

    def _renamed(self, value: str) -> str:
        return REFERENCE.sub(lambda found: self._names[found[0]], value)


def _shortened(value: str) -> str:
    rounded = NUMBER.sub(lambda found: f"{round(float(found[0]), 2):.7g}", value)
    return SPACES.sub("", " ".join(rounded.split()).replace("-0 ", "0 "))


def _clipped_once(run: re.Match[str]) -> str:
    return f"<g{run[1]}>{run[0].replace(run[1], '')}</g>"


def _squared(path: str) -> str:
    """Write lines that run level or upright, as those of bars do, with one number each."""
    if not POLYGON.fullmatch(path):
        return path
    first, *points = (tuple(point.split(" ")) for point in path[1:].rstrip("z").split("L"))
    written = [f"M{first[0]} {first[1]}"]
    for (x, y), (before_x, before_y) in zip(points, [first, *points], strict=False):
        written.append(f"V{y}" if x == before_x else f"H{x}" if y == before_y else f"L{x} {y}")
    return "".join(written) + ("z" if path.endswith("z") else "")


def rules(classes: Mapping[str, str], *, themed: bool) -> str:
    """Return the CSS of drawings.

    classes: the name of the class for each style.
    themed: whether colours are to follow the page's theme.
    """
    lines = (f".{name}{{{css}}}" for css, name in classes.items())
    text = "\n".join((COMMON, *lines))
    return HEX.sub(lambda found: VARIABLES.get(found[0], found[0]), text) if themed else text


def standalone(source: str, *, title: str, alt: str) -> str:
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
        f"<style>{escape(rules(classes, themed=False))}</style>\n"
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{drawing.body}\n</svg>\n'
    )
