"""The palette: readable in both themes, told apart by eyes that mix up hues."""

from itertools import combinations

import numpy as np
import pytest

from fedaccord.report import style
from fedaccord.report.overlap import LIGHT

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHTS = {
    "all cones": np.eye(3),
    "no red cones": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cones": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
# To the cones' answers and to lightness and two hues, after Ottosson's Oklab.
TO_CONES = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
TO_LAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip


def linear(colour):
    parts = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    low, high = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (a, b))
    return (high + 0.05) / (low + 0.05)


def distance(a, b, sight):
    seen = [np.clip(np.array(SIGHTS[sight]) @ linear(colour), 0, 1) for colour in (a, b)]
    first, second = (TO_LAB @ np.cbrt(TO_CONES @ colour) for colour in seen)
    return 100 * float(np.linalg.norm(first - second))


def looks(theme):
    return {name: pair[theme] for name, pair in style.COLOURS.items()}


@pytest.mark.parametrize("theme", [0, 1])
def test_text_stands_out_from_the_page(theme):
    colours = looks(theme)
    for name in ("ink", "muted", "good", "bad", "unsure", "series-1"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name


@pytest.mark.parametrize("theme", [0, 1])
def test_lines_and_bars_stand_out_from_the_page(theme):
    colours = looks(theme)
    for name in ("reference", *(f"series-{n}" for n in range(1, 7))):
        assert contrast(colours[name], colours["paper"]) >= 3, name


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_first_four_colours_are_told_apart_by_every_eye(theme, sight):
    colours = [looks(theme)[f"series-{n}"] for n in range(1, 5)]
    assert min(distance(a, b, sight) for a, b in combinations(colours, 2)) > 7


def test_the_measure_finds_red_and_green_alike_without_green_cones():
    assert distance("#a05a2c", "#5a7a2c", "all cones") > 10
    assert distance("#a05a2c", "#7a6a2c", "no green cones") < 7


@pytest.mark.parametrize("theme", [0, 1])
def test_text_on_a_shade_stands_out_in_both_themes(theme):
    names = {pair[0]: name for name, pair in style.COLOURS.items()}
    for share in np.linspace(0, LIGHT, 13):
        ground, text = names[style.shade(share)], names[style.INK]
        assert contrast(looks(theme)[ground], looks(theme)[text]) >= 4.5, share


def test_no_two_colours_are_drawn_alike_or_a_theme_could_not_tell_them_apart():
    drawn = [pair[0] for pair in style.COLOURS.values()]
    assert len(set(drawn)) == len(drawn)


def test_lines_after_the_sixth_are_dashed():
    assert len({style.series(n)[:2] for n in range(6)}) == 6
    assert len({style.series(n) for n in range(18)}) == 18


def test_a_share_beyond_its_bounds_has_a_shade():
    assert style.shade(-1) == style.SHADES[0]
    assert style.shade(2) == style.SHADES[-1]
