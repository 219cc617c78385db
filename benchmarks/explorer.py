"""How long the app takes from a slider's move to the new plan on the screen.

    python benchmarks/explorer.py [--moves N]

A headless Chromium moves a slider by the keyboard and notes when the numbers on the screen change,
and when the best plan for them is there. It prints a table and replaces
benchmarks/results/explorer.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
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
from rich.console import Console
from rich.table import Table

from fedaccord import LinearGame, write_game
from fedaccord._io.files import replace_file

RESULTS = HERE / "results" / "explorer.json"
AGENTS = (3, 20, 50)
SEED = 20211
# What is moved: a contribution, which is checked, and a goal, for which a plan is made.
MOVED = {"contribution": "give", "goal": "goal"}
# Moves a slider, and tells when the numbers have changed and when the best plan is there.
MOVE = """
const [agent, key, done] = arguments;
const thumb = document.querySelector(`.rows [data-agent='${agent}'] .q-slider__track-container`);
const seen = document.querySelector('.seen'), busy = document.querySelector('.busy');
const figures = document.querySelector('.figures');
const before = figures.textContent;
let first = null;
thumb.focus();
const start = performance.now();
const observer = new MutationObserver(() => {
  if (first === null && figures.textContent !== before) {
    first = 0;
    requestAnimationFrame(() => { first = performance.now() - start; });
  }
});
observer.observe(seen, {subtree: true, childList: true, characterData: true});
const code = key === 'ArrowRight' ? 39 : 37;
for (const kind of ['keydown', 'keyup']) {
  thumb.dispatchEvent(new KeyboardEvent(kind, {key, keyCode: code, which: code, bubbles: true}));
}
const wait = () => {
  const now = performance.now() - start;
  if ((first && !busy.textContent.includes('…')) || now > 20000) {
    observer.disconnect();
    done([first, now]);
  } else requestAnimationFrame(wait);
};
requestAnimationFrame(wait);
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
    """Return how long moves of one agent's slider take, in milliseconds."""
    tab.open(f"adjust={MOVED[moved]}")
    tab.driver.set_script_timeout(60)
    times = []
    for n in range(moves + 3):
        key = "ArrowLeft" if n % 6 < 3 else "ArrowRight"
        times.append(tab.driver.execute_async_script(MOVE, 0, key))
        time.sleep(0.3)
    # The first ones are slower: what they show is drawn for the first time.
    seen, settled = zip(*times[3:], strict=True)
    return {"seen": summarize(seen), "best plan": summarize(settled)}


def summarize(times: tuple[float, ...]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 1),
        "p95": round(float(np.quantile(times, 0.95)), 1),
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
    machine = {"machine": platform.platform(), "load": os.getloadavg()[0], "moves": moves}
    replace_file(RESULTS, json.dumps({**machine, "milliseconds": rows}, indent=2) + "\n")
    show(rows)


def show(rows: dict[str, Any]) -> None:
    table = Table(title="Milliseconds from a slider's move (median, 95th percentile)")
    for head in ("agents", "slider of a", "numbers on the screen", "best plan on the screen"):
        table.add_column(head)
    for agents, found in rows.items():
        for moved, times in found.items():
            cells = [f"{one['median']:.0f}, {one['p95']:.0f}" for one in times.values()]
            table.add_row(agents, moved, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
