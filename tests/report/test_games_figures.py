"""Figures of games show the numbers they are given, whatever the numbers and names."""

import io
import warnings
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import _pylab_helpers
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from report.plans import HOSTILE, flower, hospitals, ring, solution, solved
from scipy import sparse

from fedaccord.check import check
from fedaccord.equilibria.result import Interval, Status
from fedaccord.errors import InputError
from fedaccord.games.catalog.entries import build
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.report import style
from fedaccord.report.check_figures import plot_envy, plot_spare
from fedaccord.report.drawing import new_axes
from fedaccord.report.games_figures import BANDS, plot_allocations, plot_burdens, plot_prices
from fedaccord.report.overlap import Blocks, Others, Pairs, SharedPoints, find_overlap, plot_overlap


def drawn(ax):
    """Draw a figure, as a file would, and give its texts that can be seen."""
    file = io.BytesIO()
    ax.get_figure().savefig(file, format="svg")
    return [t.get_text() for t in ax.findobj(lambda a: hasattr(a, "get_text")) if t.get_text()]


def bars(ax, label):
    """Give the starts and lengths of the bars with a label, from top to bottom."""
    found = next(c for c in ax.containers if c.get_label().startswith(label))
    ordered = sorted(found.patches, key=lambda bar: bar.get_y())
    return np.array([(bar.get_x(), bar.get_width()) for bar in ordered])


def lengths(ax, label):
    return bars(ax, label)[:, 1].tolist()


def line(ax, label):
    """Give the points of the line with a label."""
    found = next(x for x in ax.lines if str(x.get_label()).startswith(label))
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def row_names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


# Who gives how much.


def test_bars_are_as_long_as_each_hospital_gives():
    game, claims, *_ = hospitals()
    ax = plot_allocations(game, claims)
    assert lengths(ax, "alone") == pytest.approx([1440, 1440, 930])
    assert lengths(ax, "optimal") == pytest.approx([1228.125, 703.125, 0])
    assert lengths(ax, "stable") == pytest.approx([300, 1200, 600])
    assert lengths(ax, "envy-free") == pytest.approx([886.184, 886.184, 221.053], abs=1e-3)
    assert row_names(ax) == ["University", "City", "Rural"]
    low, high = ax.get_ylim()
    assert low > high  # the first agent is on top
    said = drawn(ax)
    assert {"1,440", "1,228.1", "703.1", "300", "1,200", "886.2", "221.1", "0"} <= set(said)
    assert "stable: 2,100 in all" in said


def test_a_legend_of_several_lines_is_read_line_by_line_in_the_order_of_the_bars():
    game, claims, *_ = hospitals()
    ax = plot_allocations(game, claims, ax=new_axes((6.2, 4)))
    ax.get_figure().draw_without_rendering()
    texts = ax.get_legend().get_texts()
    spots = {t.get_text().split(":")[0]: t.get_window_extent() for t in texts}
    assert len({round(box.y0) for box in spots.values()}) == 2
    read = sorted(spots, key=lambda name: (-round(spots[name].y0), spots[name].x0))
    assert read == ["alone", "optimal", "stable", "envy-free"]


@pytest.mark.parametrize("model", ["linear", "coverage"])
def test_the_flower_has_its_known_totals_in_the_legend(model):
    game, claims, _ = flower(model)
    ax = plot_allocations(game, claims)
    assert lengths(ax, "optimal") == [4, *[0] * 16]
    assert lengths(ax, "stable") == pytest.approx([0, *[4 / 7] * 16])
    said = drawn(ax)
    for text in ("optimal: 4 in all", "stable: 9.143 in all", "envy-free: 8.5 in all"):
        assert text in said


def test_bars_of_an_agent_do_not_lie_on_each_other_or_on_the_next_agents():
    game, claims, *_ = hospitals()
    ax = plot_allocations(game, claims)
    edges = sorted((p.get_y(), p.get_y() + p.get_height()) for c in ax.containers for p in c)
    assert all(high < low for (_, high), (low, _) in pairwise(edges))


def test_a_need_that_no_amount_meets_has_words_instead_of_a_bar():
    game, claims, *_ = hospitals()
    game.__dict__["alone"] = np.array([1440.0, np.inf, 930.0])
    ax = plot_allocations(game, claims)
    assert lengths(ax, "alone") == [1440, 0, 930]
    said = drawn(ax)
    assert "alone no amount is enough" in said
    assert "alone" in said  # without a total


def test_an_agent_without_samples_is_said_to_have_none():
    game = LinearGame([[1, 0], [1, 1]], [5, 5], limits=[9, 0])
    ax = plot_burdens(game, {"alone": np.array([5.0, np.inf]), "proposal": np.array([5.0, 0.0])})
    assert "no samples of its own" in drawn(ax)


def test_without_any_plan_the_stand_alone_needs_are_drawn():
    game, *_ = hospitals()
    ax = plot_allocations(game, {"stable": solution(game, "stable", None, Status.NONE_EXISTS)})
    assert [c.get_label() for c in ax.containers] == ["alone: 3,810 in all"]


def needs(size, seed=0):
    """Give agents on their own with needs of many sizes, and a plan that asks part of them."""
    rng = np.random.default_rng(seed)
    game = LinearGame(sparse.csr_array(sparse.eye_array(size)), rng.uniform(10, 20, size))
    claims, _ = solved(game, optimal=game.alone / 2, stable=game.alone)
    return game, claims


def test_many_agents_are_dots_in_the_order_of_their_needs():
    game, claims = needs(400)
    ax = plot_allocations(game, claims)
    order = np.argsort(-game.requirements)
    ranks, alone = line(ax, "alone")
    assert list(ranks) == list(range(1, 401))
    assert np.array_equal(alone, game.requirements[order])
    assert np.array_equal(line(ax, "optimal")[1], game.requirements[order] / 2)
    assert not ax.containers
    assert len(drawn(ax)) < 60


def test_a_plan_that_is_another_is_said_to_be_and_not_drawn_over_it():
    game, _ = needs(40)
    claims, _ = solved(game, stable=game.alone, envy_free=game.alone)
    ax = plot_allocations(game, claims)
    assert len(line(ax, "stable: ")[0]) == 40
    assert len(line(ax, "envy-free: the same as stable")[0]) == 0
    claims, _ = solved(game, stable=game.alone, envy_free=game.alone * 1.01)
    assert len(line(plot_allocations(game, claims), "envy-free: ")[0]) == 40


def test_ties_in_need_are_ordered_by_the_stable_plan():
    size = 40
    game = LinearGame(np.eye(size), np.ones(size))
    stable = np.random.default_rng(1).permutation(size) / size
    claims, _ = solved(game, optimal=np.ones(size), stable=stable)
    assert np.array_equal(line(plot_allocations(game, claims), "stable")[1], np.sort(stable)[::-1])


def test_very_many_agents_are_bands_that_hold_most_of_them():
    game, claims = needs(100_000)
    ax = plot_allocations(game, claims)
    ranks, middle = line(ax, "alone")
    assert len(ranks) == BANDS
    exact = np.sort(game.requirements)[::-1].reshape(BANDS, -1)
    assert middle == pytest.approx(np.median(exact, axis=1), abs=0.01)
    assert line(ax, "optimal")[1] == pytest.approx(middle / 2)
    assert len(line(plot_allocations(*needs(501)), "alone")[0]) == 20
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() >= exact.min() and band.max() <= exact.max()


def test_needs_that_are_orders_apart_have_a_logarithmic_axis_with_room_for_zero():
    game, claims = needs(100)
    assert plot_allocations(game, claims).get_yscale() == "linear"
    apart = game.replace(requirements=np.geomspace(0.01, 10_000, 100))
    claims, _ = solved(apart, stable=np.zeros(100))
    ax = plot_allocations(apart, claims)
    assert ax.get_yscale() == "symlog"
    assert ax.get_ylim()[0] == 0


# Who would defect.


def test_bars_say_who_is_short_and_who_has_to_spare():
    game, *_ = hospitals()
    ax = plot_spare(check(game, [700, 700, 700]))
    assert lengths(ax, "given and needed") == pytest.approx([530, 700, 370])
    assert bars(ax, "spare") == pytest.approx(np.array([(530, 170), (370, 330)]))
    assert bars(ax, "short") == pytest.approx(np.array([(700, 250)]))
    assert {"170 spare", "250 short", "330 spare"} <= set(drawn(ax))


def test_a_stable_plan_has_neither_short_nor_spare_bars():
    _, _, checks, _ = hospitals()
    ax = plot_spare(checks["stable"])
    assert [c.get_label() for c in ax.containers] == ["given and needed"]
    assert drawn(ax).count("exact") == 3


def test_who_gives_nothing_and_needs_nothing_more_is_said_to_give_nothing():
    assert "gives 0" in drawn(plot_spare(hospitals()[2]["optimal"]))


def test_an_agent_that_must_give_its_minimum_has_nothing_to_spare():
    game, *_ = hospitals()
    ax = plot_spare(check(game.replace(minimums=[700, 0, 0]), [700, 950, 400]))
    assert lengths(ax, "given and needed")[0] == pytest.approx(700)


def test_an_agent_that_no_amount_satisfies_is_short_to_the_edge():
    game, *_ = hospitals()
    found = check(game, [700, 700, 700])
    object.__setattr__(found, "short", np.array([0.0, np.inf, 0.0]))
    ax = plot_spare(found)
    ((start, length),) = bars(ax, "short")
    assert start == 700 and 700 < start + length < ax.get_xlim()[1]
    assert "no amount is enough" in drawn(ax)


def test_of_many_agents_the_worst_are_shown_first():
    size = 300
    game = LinearGame(np.eye(size), np.ones(size))
    given = np.ones(size)
    given[[7, 123, 250]] = (1.5, 3.0, 0.25)
    ax = plot_spare(check(game, given))
    assert row_names(ax) == ["agent 123", "agent 250", "agent 7"]
    assert bars(ax, "spare") == pytest.approx(np.array([(1, 2.0), (1, 0.5)]))
    assert bars(ax, "short") == pytest.approx(np.array([(0.25, 0.75)]))
    assert len(row_names(plot_spare(check(game, 2 * np.ones(size))))) == 25


def test_where_nobody_of_many_is_off_the_figure_says_so():
    _, _, checks = ring(60)
    assert "no agent could give less, and none is short" in drawn(plot_spare(checks["stable"]))


# Who envies whom.


def arrows(ax):
    """Give the arrows of a figure: from where, to where, and their colour."""
    found = [t for t in ax.texts if getattr(t, "arrow_patch", None) is not None]
    return [
        (tuple(t.xyann), tuple(t.xy), to_hex(t.arrow_patch.get_edgecolor()), t.arrow_patch)
        for t in found
    ]


def test_arrows_lead_from_those_who_envy_to_those_they_envy():
    game = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], agents=["A", "B"])
    ax = plot_envy(check(game, [1, 0.5]))
    ((start, end, colour, _),) = arrows(ax)
    assert (start, end) == ((1.0, 0), (0.5, 1))
    assert colour == style.BAD
    assert row_names(ax) == ["A", "B"]


def test_pairs_too_close_to_call_are_dashed_and_say_so():
    # With the burden of B, A would have just what it needs, in numbers that no fraction tells.
    game = LinearGame([[1, 0.6], [0.1, 1]], [2 + 0.6 * np.pi, 0.5], agents=["A", "B"])
    found = check(game, [np.pi, 2.0])
    assert (found.envy, found.borderline) == ((), ((0, 1),))
    ax = plot_envy(found)
    ((_, _, colour, patch),) = arrows(ax)
    assert colour == style.UNSURE and patch.get_linestyle() != "solid"
    assert any("too close to call" in text for text in drawn(ax))


def test_more_pairs_are_a_matrix_of_those_who_envy_and_those_envied():
    _, _, checks = flower()
    ax = plot_envy(checks["optimal"])
    across, down = line(ax, "the row's agent envies the column's")
    assert sorted(across) == list(range(16)) and set(down) == {0}
    assert row_names(ax) == ["core: 4"]
    assert ax.get_xticklabels()[0].get_text() == "petal 1: 0"


def test_marks_of_the_matrix_stand_where_the_pairs_are():
    game = LinearGame(np.eye(20), [0.5] * 20)
    given = np.full(20, 0.5)
    given[[4, 9]] = (1.0, 2.0)
    ax = plot_envy(check(game, given))
    assert row_names(ax) == ["agent 9: 2", "agent 4: 1"]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert columns[0] == "agent 4: 1" and len(columns) == 19
    marks = set(zip(*line(ax, "the row's"), strict=True))
    # Agent 9 envies all others, agent 4 all but agent 9.
    assert marks == {(n, 0) for n in range(19)} | {(n, 1) for n in range(1, 19)}


def test_of_many_the_most_envious_are_shown_with_what_they_envy():
    size = 50
    game = LinearGame(np.eye(size), np.full(size, 0.5))
    given = np.full(size, 0.5)
    given[[3, 9]] = (2.0, 1.0)
    ax = plot_envy(check(game, given))
    assert row_names(ax) == ["agent 3", "agent 9"]
    assert list(line(ax, "gives")[0]) == [2.0, 1.0]
    assert list(line(ax, "the smallest burden it envies")[0]) == [0.5, 0.5]
    assert {"envies 49 agents", "envies 48 agents"} <= set(drawn(ax))


@pytest.mark.parametrize("size", [3, 20, 100])
def test_where_nobody_envies_anybody_the_figure_says_so(size):
    _, _, checks = ring(size)
    ax = plot_envy(checks["stable"])
    assert "no agent envies another" in drawn(ax)
    assert arrows(ax) == []


def test_pairs_of_many_agents_that_are_too_close_to_call_are_counted():
    _, _, checks = ring(100)
    found = checks["stable"]
    object.__setattr__(found, "borderline", ((0, 1), (2, 3)))
    assert "2 pairs too close to call" in drawn(plot_envy(found))


# Prices.


def test_prices_stand_at_their_number_of_agents_below_the_root():
    prices = {
        "price of stability": {b + 1: Interval(*[b / (2 * b**0.5 - 1)] * 2) for b in (16, 100)},
        "price of fairness": {17: Interval(2, 4.5)},
    }
    ax = plot_prices(prices)
    assert line(ax, "price of stability")[0] == pytest.approx([17, 101])
    assert line(ax, "price of stability")[1] == pytest.approx([16 / 7, 100 / 19])
    x, y = line(ax, "√k")
    assert y == pytest.approx(np.sqrt(x))
    assert ax.get_xscale() == ax.get_yscale() == "log"
    place, height = line(ax, "price of fairness: from 2 to 4.5")
    assert list(place) == [17] and height == pytest.approx(3)
    ends = [path.vertices[:, 1] for c in ax.collections for path in c.get_paths()]
    assert any(np.allclose(end, [2, 4.5]) for end in ends)


def test_prices_of_one_game_stand_at_its_size_with_their_values_beside_them():
    prices = {
        "price of stability": {30: Interval(1.0874, 1.0874)},
        "price of fairness": {30: Interval(1.08, 1.09)},
    }
    ax = plot_prices(prices)
    assert list(line(ax, "price of stability")[0]) == list(line(ax, "price of fairness")[0]) == [30]
    assert ax.get_xlim() == (1, 60) and ax.get_xscale() == "linear"
    assert {"1.087", "from 1.08 to 1.09", "√k = 5.477"} <= set(drawn(ax))
    heights = sorted(text.xy[1] for text in ax.texts)
    low, high = ax.get_ylim()
    assert min(b - a for a, b in pairwise(heights)) >= 0.07 * (high - low)


def test_a_price_without_an_upper_end_points_upwards():
    ax = plot_prices({"price of fairness": {4: Interval(1.5, np.inf)}})
    ((start, end, *_),) = arrows(ax)
    assert start == (4, 1.5) and end[0] == 4 and end[1] > 1.5
    assert "price of fairness: at least 1.5" in drawn(ax)


def test_a_price_that_does_not_exist_is_said_and_not_drawn():
    ax = plot_prices({"price of stability": {3: Interval(np.inf, np.inf)}})
    assert len(line(ax, "price of stability: none")[0]) == 0
    drawn(ax)


# Whose data overlap.


def test_the_flower_is_its_agents_and_four_groups_of_shared_points():
    game, *_ = flower("coverage")
    found = find_overlap(game)
    assert isinstance(found, SharedPoints)
    assert found.sizes.tolist() == [4, 4, 4, 4]
    # The core is uniform on the 16 shared points; a petal has 4 of its 16 points in its group.
    assert found.masses[0].tolist() == pytest.approx([0.25] * 4)
    assert sorted(found.masses[5].tolist()) == pytest.approx([0, 0, 0, 0.25])
    assert found.own.tolist() == pytest.approx([0, *[0.75] * 16])
    ax = plot_overlap(game)
    assert len(ax.patches) == 20
    assert drawn(ax).count("4 points of 5 agents") == 4
    assert sorted(row_names(ax)) == sorted(
        ["core", *(f"petal {i}, 75 % own" for i in range(1, 17))]
    )


def test_lines_are_thicker_for_likelier_points():
    game = DiscoveryGame([[0.9, 0.1, 0], [0, 0.5, 0.5]], [0.1, 0.1], agents=["A", "B"])
    thin, thick = (patch.get_linewidth() for patch in plot_overlap(game).patches)
    assert thick > 2 * thin


def test_those_who_share_nothing_are_said_to():
    ax = plot_overlap(CoverageGame(np.eye(2), [0.75, 0.75]))
    assert "no two agents share a point" in drawn(ax)


def test_linear_games_are_a_matrix_of_what_a_sample_is_worth():
    game = LinearGame([[2, 1], [0.003, 1]], [1, 1], agents=["A", "B"])
    ax = plot_overlap(game)
    cells = {(t.get_position()): t.get_text() for t in ax.texts}
    assert cells == {(0, 0): "1.0", (1, 0): "0.5", (0, 1): "<.01", (1, 1): "1.0"}
    assert row_names(ax) == ["A", "B"]


@pytest.mark.parametrize(
    ("top", "labels"),
    [
        (1.5, ["0", "0.25", "0.50", "0.75", "1.00", "1.25", "1.50"]),
        (600.0, ["0", "100", "200", "300", "400", "500", "600"]),
    ],
)
def test_the_key_of_a_large_matrix_has_equal_digits_and_what_is_left_white(top, labels):
    benefits = np.eye(30)
    benefits[0, 1] = top
    legend = plot_overlap(LinearGame(benefits, np.ones(30))).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == labels
    assert legend.get_title().get_text().endswith("row's agent, up to")


def test_values_that_are_near_each_other_have_shades_of_their_own():
    game = LinearGame([[1, 0.87], [0.93, 1]], [1, 1])
    assert len({to_hex(patch.get_facecolor()) for patch in plot_overlap(game).patches}) == 3


def test_of_the_pac_cycle_the_first_samples_are_drawn():
    found = find_overlap(build("pac-cycle"))
    assert isinstance(found, Pairs)
    # Each learns from its own points and from those of its predecessor.
    assert found.values.tolist() == [[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]


def test_a_function_has_no_overlap_to_draw():
    game = FunctionGame(lambda theta: theta, [1, 1])
    assert find_overlap(game) is None
    with pytest.raises(InputError, match="function of the contributions"):
        plot_overlap(game)


def test_one_agent_has_nobody_to_share_with():
    with pytest.raises(InputError, match="shares no data"):
        plot_overlap(LinearGame([[1.0]], [1.0]))


def scattered(groups, size):
    """Give groups of agents who share points, their members scattered over all numbers."""
    own = np.arange(groups * size) % groups
    rows = np.arange(groups * size)
    return DiscoveryGame(
        sparse.csr_array((np.ones(groups * size), (rows, own))), np.ones(groups * size)
    )


def test_many_agents_who_share_stand_side_by_side():
    found = find_overlap(scattered(4, 10))
    assert isinstance(found, Blocks)
    assert found.others.tolist() == [9] * 40
    groups = (found.order % 4).reshape(4, 10)
    assert (groups == groups[:, :1]).all()
    squares = np.kron(np.eye(4), np.ones((10, 10))) - np.eye(40)
    assert np.array_equal(found.values, squares)


def test_agents_with_dense_ties_are_ordered_by_them_too():
    size = 60
    place = np.random.default_rng(2).permutation(size)
    near = np.exp(-(((place[:, None] - place[None, :]) / 15.0) ** 2))
    found = find_overlap(LinearGame(near, np.ones(size)))
    assert isinstance(found, Blocks)
    steps = np.abs(np.diff(place[found.order]))
    assert np.median(steps) <= 2


def test_very_many_agents_are_counted_by_whom_they_share_with():
    game, *_ = ring(5_000)
    found = find_overlap(game)
    assert isinstance(found, Others)
    assert set(found.counts.tolist()) == {2} and len(found.agents) == 1000
    ax = plot_overlap(game)
    assert [bar.get_height() for bar in ax.patches if bar.get_height()] == [1000]
    assert "agents, of 1,000 asked" in drawn(ax)


def test_asking_whom_agents_share_with_stops_where_they_name_too_many(monkeypatch):
    monkeypatch.setattr("fedaccord.report.overlap.ANSWERS", 20_000)
    rows = np.arange(2_000)
    everybody = DiscoveryGame(sparse.csr_array((np.ones(2_000), (rows, rows * 0))), np.ones(2_000))
    found = find_overlap(everybody)
    assert isinstance(found, Others)
    assert len(found.agents) == 11 and set(found.counts.tolist()) == {1_999}


# All of them.


def figures(names):
    """Give every kind of figure of three agents with names."""
    game, claims, checks, _ = hospitals(names)
    coverage = CoverageGame([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]], [0.6] * 3, agents=names)
    off = check(game, [1228.125, 700, 10])
    return {
        "allocations": lambda ax=None: plot_allocations(game, claims, ax=ax),
        "spare": lambda ax=None: plot_spare(off, ax),
        "envy": lambda ax=None: plot_envy(checks["optimal"], ax),
        "overlap": lambda ax=None: plot_overlap(game, ax),
        "points": lambda ax=None: plot_overlap(coverage, ax),
    }


@pytest.mark.parametrize("kind", ["allocations", "spare", "envy", "overlap", "points"])
def test_figures_are_drawn_where_asked_and_leave_no_trace_elsewhere(kind):
    draw = figures(("University", "City", "Rural"))[kind]
    figure = Figure(figsize=(4.4, 4))
    ax = figure.add_subplot()
    assert draw(ax) is ax
    drawn(ax)
    assert draw().get_figure() is not figure
    assert _pylab_helpers.Gcf.get_all_fig_managers() == []


def boxes(ax):
    """Draw a figure, and give where its title, its legend and all of it are, and the figure."""
    figure = ax.get_figure()
    figure.draw_without_rendering()
    parts = (ax.title, ax.get_legend(), ax)
    return [part.get_tightbbox() for part in parts] + [figure.bbox]


@pytest.mark.parametrize("kind", ["allocations", "spare", "envy"])
@pytest.mark.parametrize("own", [True, False])
def test_titles_of_the_users_are_clear_of_the_legend_and_nothing_is_cut_off(kind, own):
    draw = figures(("University", "City", "Rural"))[kind]
    axes = [draw()] if own else [draw(ax) for ax in Figure(figsize=(11, 4)).subplots(1, 2)]
    for ax in axes:
        ax.set_title("A title of mine")
        ax.set_xlabel("labelled X-rays")
        title, legend, whole, figure = boxes(ax)
        assert not title.overlaps(legend)
        assert whole.x0 >= 0 and whole.y0 >= 0
        assert whole.x1 <= figure.x1 + 1 and whole.y1 <= figure.y1 + 1


@pytest.mark.parametrize("kind", ["allocations", "spare", "envy", "overlap", "points"])
def test_names_that_mean_harm_are_text_and_cut_where_too_long(kind):
    draw = figures((HOSTILE[1], HOSTILE[2], HOSTILE[4]))[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = draw()
        said = drawn(ax)
    names = " ".join(row_names(ax))
    assert "$x$ and $" in names and "xxxx…" in names and "\\u202etab\\ther" in names
    assert max(map(len, said)) < 80
    file = io.StringIO()
    ax.get_figure().savefig(file, format="svg")
    assert not any(t.get_parse_math() for t in ax.findobj(lambda a: hasattr(a, "get_parse_math")))


@pytest.mark.parametrize("kind", ["allocations", "spare", "envy", "overlap", "points"])
def test_long_names_that_begin_alike_are_told_apart(kind):
    ax = figures([f"The hospital of the northern county, site {n}" for n in "ABC"])[kind]()
    shown = row_names(ax)
    assert all(any(f"site {n}" in name for name in shown) for n in "ABC")
    assert max(map(len, shown)) <= 30


@pytest.mark.parametrize("kind", ["allocations", "spare", "envy", "overlap", "points"])
def test_figures_use_the_colours_of_the_house_alone(kind):
    ax = figures(("A", "B", "C"))[kind]()
    allowed = {light for light, _ in style.COLOURS.values()} | {"#000000", "none"}
    file = io.StringIO()
    ax.get_figure().savefig(file, format="svg")
    found = {part[:6] for part in file.getvalue().split("#")[1:] if len(part[:6].strip()) == 6}
    hexes = {f"#{part}" for part in found if all(c in "0123456789abcdef" for c in part)}
    assert hexes and hexes <= allowed
