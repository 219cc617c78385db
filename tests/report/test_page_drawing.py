"""Charts drawn: what is on the axes, and what of matplotlib is left as it was."""

import subprocess
import sys
import warnings

import matplotlib
import pytest

from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.report import style
from fedaccord.report.drawing import (
    NARROW,
    SIZE,
    cut_to_fit,
    figure_of,
    label_names,
    new_axes,
    picture_of,
    plot_chart,
    put_legend,
    short,
    size_of,
    styled,
    width_of,
    wrap_lines,
)
from fedaccord.wording import format_percent_tick, format_tick


def chart(*lines, **options):
    return Chart("c", "title", "x", "y", "alt", lines, **options)


LINE = Line("FedAvg", (1.0, 0.5, 0.25), (1.0, 0.9, 0.8), (0.9, 0.8, 0.7), (1.0, 0.95, 0.9))


def rendered(ax):
    """Give the texts of a figure as they end up in it."""
    figure = figure_of(ax)
    figure.draw_without_rendering()
    texts = figure.findobj(matplotlib.text.Text)
    return [text.get_text() for text in texts if text.get_visible() and text.get_text()]


def test_each_line_has_colour_marker_and_name():
    others = [Line(f"line {n}", (0.0, 1.0), (0.1 * n, 0.5)) for n in range(4)]
    ax = plot_chart(chart(*others))
    assert [line.get_label() for line in ax.lines] == [line.name for line in others]
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines}
    assert len(looks) == 4
    assert list(ax.lines[2].get_ydata()) == [0.2, 0.5]


def test_few_points_have_error_bars_that_end_where_intervals_end():
    ax = plot_chart(chart(LINE))
    (bars,) = ax.collections
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [
        pytest.approx([0.9, 1.0]),
        pytest.approx([0.8, 0.95]),
        pytest.approx([0.7, 0.9]),
    ]


def test_many_points_have_a_band():
    places = tuple(float(n) for n in range(40))
    line = Line("a", places, places, tuple(p - 1 for p in places), tuple(p + 2 for p in places))
    ax = plot_chart(chart(line))
    (band,) = ax.collections
    box = band.get_datalim(ax.transData)
    assert (box.y0, box.y1) == (-1, 41)


def test_intervals_of_two_lines_do_not_cover_each_other():
    ax = plot_chart(chart(LINE, LINE))
    first, second = (bars.get_segments()[0][0, 0] for bars in ax.collections)
    assert first != second
    assert abs(first - second) < 0.03


def test_a_reference_is_dashed_and_has_no_marker():
    ax = plot_chart(chart(Line("√k", (1, 100), (1, 10), reference=True), logarithmic=True))
    (line,) = ax.lines
    assert line.get_linestyle() == "--"
    assert line.get_marker() in ("", "None")
    assert line.get_color() == style.REFERENCE


def test_log_axes_are_labelled_without_maths():
    line = Line("a", (1, 10, 100, 10_000), (1e-9, 1.0, 3.0, 1e7))
    ax = plot_chart(chart(line, logarithmic=True))
    said = rendered(ax)
    assert {"100", "10,000", "10⁻⁹"} <= set(said)
    assert not any("$" in text or "mathdefault" in text for text in said)
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_a_share_is_written_in_percent_and_the_goal_is_labelled():
    ax = plot_chart(chart(LINE, percent=True, goal=0.7))
    said = rendered(ax)
    assert {"0 %", "50 %", "100 %", "goal 70 %"} <= set(said)
    heights = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"] or [
        line.get_ydata()[0] for line in ax.lines
    ]
    assert 0.7 in heights
    low, high = ax.get_ylim()
    assert low == 0 and 1 < high < 1.1


def test_a_goal_of_nothing_is_the_goal_alone():
    assert "goal" in rendered(plot_chart(chart(LINE, goal=0.0)))


def test_ticks_stand_at_points_that_are_not_too_near_and_at_whole_rounds():
    places = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    line = Line("a", places, places)
    wide, narrow = (plot_chart(chart(line), new_axes(size)) for size in (SIZE, NARROW))
    assert sorted(wide.get_xticks()) == list(places)
    assert sorted(narrow.get_xticks()) == [0.5, 0.6, 0.7, 0.8, 0.9, 0.99]
    rounds = tuple(range(1, 13))
    ticks = plot_chart(chart(Line("a", rounds, rounds))).get_xticks()
    assert all(tick.is_integer() for tick in ticks)


def test_no_text_is_taken_for_maths():
    name = "$x_1$ and $\\frac{"
    ax = plot_chart(Chart("c", name, name, name, name, (Line(name, (1, 2), (1, 2)), LINE)))
    label_names(ax, "x", [1.0, 2.0], [name, "b"])
    figure = figure_of(ax)
    figure.draw_without_rendering()
    assert not any(text.get_parse_math() for text in figure.findobj(matplotlib.text.Text))
    assert name in rendered(ax)


def test_names_on_user_axes_are_not_taken_for_maths_either():
    figure = matplotlib.figure.Figure()
    ax = figure.add_subplot()
    assert plot_chart(chart(Line("$x_1$", (1, 2), (1, 2)), LINE), ax) is ax
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())


def test_a_chart_without_lines_says_so():
    assert "nothing to show" in rendered(plot_chart(chart()))
    assert "nothing to show" in rendered(plot_chart(chart(Line("a", (), ()), goal=1.0)))


def test_points_that_are_not_numbers_leave_gaps():
    line = Line("a", (1, 2, 3), (1.0, float("nan"), float("inf")))
    assert rendered(plot_chart(chart(line)))


def test_hundreds_of_lines_share_one_entry_of_the_legend():
    lines = [Line(f"client {n}", (0, 1), (0, n)) for n in range(400)]
    ax = plot_chart(chart(*lines))
    assert len(ax.lines) == 400
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "400 lines, told apart in the table"
    ]


def test_drawing_changes_nothing_of_matplotlibs_settings():
    mine = {"font.size": 17.0, "svg.hashsalt": "mine", "text.parse_math": True}
    with matplotlib.rc_context(mine):
        before = dict(matplotlib.rcParams)
        plot_chart(chart(LINE, percent=True))
        with pytest.raises(ValueError, match="stop"), styled():
            raise ValueError("stop")
        assert dict(matplotlib.rcParams) == before
        assert before.items() >= mine.items()


def test_the_users_settings_change_nothing_of_pages():
    from fedaccord.report.html import picture_svg

    picture = picture_of(chart(LINE))
    plain = picture_svg(picture)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.color": "red"}):
        assert picture_svg(picture) == plain


def test_a_figure_of_its_own_needs_no_pyplot_and_no_window():
    code = """
import sys
from fedaccord.charts import Chart, Line
from fedaccord.report import picture_of, plot_chart
from fedaccord.report.html import picture_png
chart = Chart("c", "t", "x", "y", "alt", (Line("a", (1, 2), (1, 2)),))
plot_chart(chart)
picture_png(picture_of(chart))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"MPLBACKEND": "tkagg"})


def test_signs_that_no_font_has_give_no_warning():
    names = ["👩‍⚕️", "東京", "\U000f0000"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = picture_of(chart(*(Line(name, (0, 1), (0, 1)) for name in names)))
        from fedaccord.report.html import picture_png

        assert picture_png(picture)


def test_names_that_are_too_long_are_cut_and_hidden_signs_are_shown():
    assert short("University") == "University"
    assert short("x" * 200) == "x" * 23 + "…"
    assert short("a\x1b[31m\u202e") == "a\\x1b[31m\\u202e"


def test_text_is_fitted_and_wrapped_to_the_room_there_is():
    assert width_of("W" * 10) > width_of("i" * 10) > 0
    assert cut_to_fit("short", 3) == "short"
    cut = cut_to_fit("W" * 80, 2)
    assert cut.endswith("…") and 1.5 < width_of(cut) <= 2
    lines = wrap_lines("word " * 30 + "W" * 80, 2).split("\n")
    assert len(lines) > 3
    assert all(width_of(line) <= 2 for line in lines)
    assert wrap_lines("", 2) == ""


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("count", [0, 1, 4, 40, 400])
def test_names_at_the_ticks_do_not_overlap_however_many_there_are(axis, count):
    ax = new_axes()
    names = [f"Hospital {n}" for n in range(count)]
    places = [float(n) for n in range(count)]
    ax.scatter(places, places)
    label_names(ax, axis, places, names)
    figure = figure_of(ax)
    figure.draw_without_rendering()
    labels = (ax.get_xticklabels if axis == "x" else ax.get_yticklabels)()
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert len(boxes) >= min(count, 4)
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    if count == 4:
        assert [label.get_text() for label in labels] == names


def test_a_legend_never_reaches_beyond_the_figure():
    for count, name in [(2, "a"), (6, "price of fairness"), (9, "W" * 60)]:
        ax = new_axes((4.4, 3.6))
        for n in range(count):
            ax.plot([0, 1], [0, n], label=f"{name} {n}")
        put_legend(ax)
        figure = figure_of(ax)
        figure.draw_without_rendering()
        box = ax.get_legend().get_window_extent()
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert ax.get_window_extent().height > 0.3 * figure.bbox.height


def test_axes_without_labelled_lines_get_no_legend():
    ax = new_axes()
    put_legend(ax)
    assert ax.get_legend() is None


def test_numbers_at_ticks_are_written_in_full_or_with_a_power():
    values = (0, 1400, 25_000, 0.05, -3, 1e6, 2.5e7, 1e-5)
    assert [format_tick(value) for value in values] == [
        "0", "1,400", "25,000", "0.05", "−3", "10⁶", "2.5·10⁷", "10⁻⁵",
    ]  # fmt: skip
    assert format_percent_tick(0.05) == "5 %"
    assert format_percent_tick(1.0) == "100 %"


def test_ticks_of_new_axes_are_written_so_and_categories_keep_their_names():
    ax = new_axes()
    ax.bar(["City", "Rural"], [1400, 900])
    assert {"City", "Rural", "1,400"} <= set(rendered(ax))


def test_axes_in_a_grid_know_how_much_of_the_figure_is_theirs():
    figure = matplotlib.figure.Figure(figsize=(8, 6))
    axes = figure.subplots(3, 2)
    assert size_of(axes[0, 0]) == (4, 2)


def test_axes_on_no_figure_are_refused():
    ax = new_axes()
    ax.remove()
    with pytest.raises(InputError, match="on no figure"):
        plot_chart(chart(LINE), ax)


def test_a_picture_of_a_chart_has_its_numbers():
    picture = picture_of(chart(LINE, Line("ref", (1, 2), (3, 4), reference=True)))
    assert picture.data.columns == ("line", "x", "y", "from", "to")
    assert picture.data.rows[1] == ("FedAvg", 0.5, 0.9, 0.8, 0.95)
    assert picture.data.rows[-1] == ("ref", 2, 4, None, None)
    plain = picture_of(chart(Line("a", (1,), (2,))))
    assert plain.data.columns == ("line", "x", "y")
