"""How long the app takes from a slider's move to the new plan on the screen.

    python benchmarks/explorer.py [--moves N]

A headless Chromium moves a slider by the keyboard, and notes when the numbers on the screen change
and when the best plan for them is there. Every move leads to a state that the app has not seen, so
no plan comes from its memory. A move that ends neither way in 20 seconds is counted on its own.
After every move a fixed piece of work is timed, and the ratios are to that. The command prints a
table and replaces benchmarks/results/explorer.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser.driving import Browser
from explore.driving import App, Tab
from measuring import clock, compare, machine, write_ratio, yardstick
from rich.console import Console
from rich.table import Table

from fedaccord import LinearGame, write_game
from fedaccord._io.files import replace_file

RESULTS = HERE / "results" / "explorer.json"
AGENTS = (3, 20, 50)
SEED = 20211
# Which slider moves: of a contribution, which is checked, or of a goal, which needs a plan.
MOVED = {"contribution": "give", "goal": "goal"}
# Presses the left arrow on a slider. Returns when the numbers have changed, and when the address
# and all that is drawn of the best plan are there; null for what does not come.
MOVE = """
const [agent, done] = arguments;
const thumb = document.querySelector(`.rows [data-agent='${agent}'] .q-slider__track-container`);
const figures = document.querySelector('.figures'), busy = document.querySelector('.busy');
const before = figures.textContent, address = location.search;
let first = null;
thumb.focus();
const start = performance.now();
for (const kind of ['keydown', 'keyup']) {
  thumb.dispatchEvent(new KeyboardEvent(kind, {keyCode: 37, which: 37, bubbles: true}));
}
const look = () => {
  const now = performance.now() - start;
  if (first === null && figures.textContent !== before) first = now;
  const ended = location.search !== address && !busy.textContent.includes('…');
  if (first !== null && ended) done([first, now]);
  else if (now > 20000) done([first, null]);
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def draw_game(agents: int) -> LinearGame:
    """Draw agents with labels in common, as hospitals have: benefits are their overlaps."""
    shares = np.random.default_rng(SEED + agents).dirichlet(np.full(8, 0.4), agents)
    worth = shares @ shares.T
    worth = worth / worth.diagonal()[:, None]
    benefits = np.where(np.eye(agents, dtype=bool), 1.0, 0.6 * np.minimum(worth, 1.0))
    needs = np.random.default_rng(agents).uniform(500, 1500, agents)
    return LinearGame(benefits, needs.round(), agents=[f"Hospital {n}" for n in range(agents)])


def measure(tab: Tab, moved: str, moves: int) -> dict[str, Any]:
    """Return how long moves of the largest contributor's slider take, in milliseconds."""
    tab.open()
    given = tab.numbers()
    tab.open(f"adjust={MOVED[moved]}")
    tab.driver.set_script_timeout(60)
    times, yards = [], []
    for _ in range(moves + 3):
        times.append(tab.driver.execute_async_script(MOVE, given.index(max(given))))
        time.sleep(0.25)
        yards.append(1000 * clock(yardstick, time.perf_counter)[0])
    # The first ones are slower: what they show is drawn for the first time.
    seen, settled = zip(*times[3:], strict=True)
    late = sum(one is None for one in settled)
    figures = {"seen": seen, "best plan": settled}
    told = {name: summarize(found, yards[3:]) for name, found in figures.items()}
    return {**told, "timed out": late}


def summarize(times: tuple[float | None, ...], yards: list[float]) -> dict[str, Any]:
    """Return the median and the 95th percentile of the times that were reached, and ratios."""
    known = [(one, yard) for one, yard in zip(times, yards, strict=True) if one is not None]
    if not known:
        return {"median": None, "p95": None}
    reached, beside = zip(*known, strict=True)
    return {
        "median": round(statistics.median(reached), 1),
        "p95": round(float(np.quantile(reached, 0.95)), 1),
        **compare(reached, beside),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moves", type=int, default=40)
    moves = parser.parse_args().moves
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        browser.show()
        try:
            for agents in AGENTS:
                path = Path(folder) / f"{agents}.json"
                write_game(draw_game(agents), path)
                app = App(path)
                try:
                    found = {moved: measure(Tab(browser, app), moved, moves) for moved in MOVED}
                finally:
                    app.close()
                rows[str(agents)] = found
        finally:
            browser.close()
    text = {"command": "make bench", "machine": machine(), "moves": moves, "milliseconds": rows}
    replace_file(RESULTS, json.dumps(text, indent=1) + "\n")
    show(rows)


def show(rows: dict[str, Any]) -> None:
    title = "Milliseconds from a slider's move (median, 95th percentile; ratio to a fixed work)"
    table = Table(title=title)
    heads = ("agents", "slider of a", "numbers on the screen", "best plan on the screen")
    for head in (*heads, "moves that timed out"):
        table.add_column(head)
    for agents, found in rows.items():
        for moved, times in found.items():
            cells = [write(times[kind]) for kind in ("seen", "best plan")]
            table.add_row(agents, moved, *cells, str(times["timed out"]))
    Console().print(table)


def write(found: dict[str, Any]) -> str:
    if found["median"] is None:
        return "never"
    return f"{found['median']:.0f}, {found['p95']:.0f}; {write_ratio(found)}"


if __name__ == "__main__":
    main()
