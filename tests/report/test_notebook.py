"""Results in notebooks: the tables of the command line, frames, and names that are no markup."""

import functools
import subprocess
import sys

import numpy as np
import pytest
from frontiers import three
from known_hospitals import CURVES, pilots
from training_results import four_agents, two_algorithms

from fedaccord import (
    LinearGame,
    check,
    fit_curves,
    make_plan,
    price_of_stability,
    report,
    solve_optimal,
    solve_stable,
)
from fedaccord._lazy import show_progress
from fedaccord.equilibria.solve import solve_all
from fedaccord.report.drawing import new_axes

HOSTILE = "<script>alert(1)</script>"
GAME = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], agents=[HOSTILE, "b"])
STABLE = solve_stable(GAME)
PILOTS = pilots(
    names=(HOSTILE, "b"),
    goals=[0.8, 0.8],
    curves=CURVES[:2],
    benefits=np.array([[1.0, 0.4], [0.3, 1.0]]),
    repeats=1,
)


@functools.cache
def measured():
    return fit_curves(PILOTS, resamples=20)


@functools.cache
def planned():
    return make_plan(measured())


RESULTS = {
    "measurement": measured,
    "plan": planned,
    "proposal": lambda: check(measured(), planned().allocation, plan=planned()),
    "solution": lambda: STABLE,
    "solved": lambda: solve_all(GAME),
    "check": lambda: check(GAME, STABLE.allocation),
    "allocation": lambda: STABLE.allocation,
    "price": lambda: price_of_stability(STABLE, solve_optimal(GAME)),
    "audit": two_algorithms,
    "frontier": three,
    "history": four_agents,
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_table_in_a_notebook_and_no_name_is_markup(name):
    text = RESULTS[name]()._repr_html_()
    assert text.count("<table>") == text.count("</table>") >= 1
    assert "<script>" not in text


def test_the_names_and_numbers_are_those_of_the_command_line():
    text = check(GAME, [1, 0.5])._repr_html_()
    assert "<strong>Feasible but not stable" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<td>0.5</td>" in text


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_frame(name):
    pytest.importorskip("pandas")
    frame = RESULTS[name]().to_frame()
    assert len(frame) >= 1 and frame.columns.is_unique


def test_a_frame_has_every_agent_and_every_digit():
    pytest.importorskip("pandas")
    game = LinearGame([[1.0] + [0.0] * 2499, *[[0.0] * i + [1.0] + [0.0] * (2499 - i)
                      for i in range(1, 2500)]], [1 / 3] * 2500)  # fmt: skip
    frame = check(game, [1 / 3] * 2500).to_frame()
    assert frame["gives"].tolist() == [1 / 3] * 2500


def test_a_frame_of_an_audit_has_a_row_for_each_algorithm_and_level():
    pytest.importorskip("pandas")
    audit = two_algorithms()
    frame = audit.to_frame()
    assert len(frame) == sum(len(curve.levels) for curve in audit.curves)
    first = audit.defector_share(audit.curves[0].levels[0].at_end)
    row = frame.loc[0, ["defector", "defector from", "defector to"]]
    assert tuple(row) == (first.p, first.low, first.high)


def test_without_pandas_a_sentence_says_how_to_install_it():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import fedaccord\n"
        "try: fedaccord.Allocation([1, 2]).to_frame()\n"
        "except ImportError as error: sys.exit(str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'fedaccord[pandas]'" in done.stderr


def test_results_do_not_import_the_reports_before_they_are_shown():
    code = (
        "import sys, fedaccord\n"
        "fedaccord.Allocation([1, 2])\n"
        "assert not any(name.startswith('fedaccord.report') for name in sys.modules)\n"
        "assert fedaccord.federation.__name__ == 'fedaccord.federation'\n"
        "assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_axes_of_their_own_are_a_picture():
    assert new_axes()._repr_png_().startswith(b"\x89PNG")


FIGURES = {
    "plot_allocations": lambda plot: plot(GAME, solve_all(GAME).solutions),
    "plot_spare": lambda plot: plot(check(GAME, [1, 0.5])),
    "plot_envy": lambda plot: plot(check(GAME, [1, 0.5])),
    "plot_overlap": lambda plot: plot(GAME),
    "plot_prices": lambda plot: plot({"stability": {2: RESULTS["price"]()}}),
    "plot_levels": lambda plot: plot(RESULTS["proposal"]()),
    "plot_tradeoffs": lambda plot: plot(planned()),
    "plot_prospects": lambda plot: plot(planned()),
    "plot_learning": lambda plot: plot(planned(), 0),
    "plot_training": lambda plot: plot(four_agents()),
    "plot_draws": lambda plot: plot(four_agents()),
    "plot_defection": lambda plot: plot(two_algorithms()),
    "plot_frontier": lambda plot: plot(three()),
    "plot_satisfied": lambda plot: plot(three()),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_picture_without_axes_to_draw_on(name):
    ax = FIGURES[name](getattr(report, name))
    assert ax._repr_png_().startswith(b"\x89PNG")


def test_results_say_their_verdict_when_printed():
    assert planned().verdict in repr(planned())
    proposal = RESULTS["proposal"]()
    assert proposal.verdict in repr(proposal)


def test_progress_is_called_shown_or_left_out():
    heard = []
    with show_progress(heard.append) as tell:
        tell(1)
    assert heard == [1]
    with show_progress(None) as tell:
        assert tell is None
    with show_progress(True) as tell:
        tell(1, 2)
