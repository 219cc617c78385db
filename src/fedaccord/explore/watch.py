"""Audits live: curves fill in as a file of runs grows; stop and resume an audit from here."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from markupsafe import escape
from nicegui import ui

from fedaccord.errors import FedaccordError
from fedaccord.explore.page import dress, work
from fedaccord.explore.state import State
from fedaccord.federation.defection.chart import defection_chart
from fedaccord.federation.defection.stored import StoredAudit, read_audits
from fedaccord.report.defection import show_progress
from fedaccord.report.html import parts_html
from fedaccord.report.live import chart_options
from fedaccord.report.proposal_verdicts import say_fault
from fedaccord.wording import count

# Seconds between two looks at the file, and until a process that was asked to stop is killed.
OFTEN, PATIENCE = 1.0, 30.0
EMPTY = "No run of an audit is finished yet; the first curves come with the first runs."
STOPPED = (130, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)


class Auditor:
    """An audit that the app started; it is a command of its own, which keeps every finished run.

    results: the file of runs.
    command: what to run, as `fedaccord audit` is typed; None where there is nothing to resume.
    """

    def __init__(self, results: str, command: Sequence[str] | None) -> None:
        self.results, self.command = results, command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether an audit that was started here is under way."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """How the last audit ended; None while it runs, or where there was none."""
        return None if self._process is None else self._process.poll()

    def resume(self) -> None:
        """Start the audit, or go on with it, unless it runs."""
        if self.command is not None and not self.is_running:
            line = [sys.executable, "-m", "fedaccord", *self.command]
            self._process = subprocess.Popen(line, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        """Have the audit stop; runs that are finished are kept."""
        if self._process is not None and self.is_running:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Stop the audit and wait until it has."""
        self.stop()
        if self._process is not None:
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()


class Watch:
    """A browser tab that shows the audits of a file.

    auditor: the file, and what makes its runs.
    state: light or dark, and large.
    """

    def __init__(self, auditor: Auditor, state: State) -> None:
        self.auditor, self.state = auditor, state
        self._seen: list[str] | None = None

    def build(self) -> None:
        """Lay out the page, and look at the file again and again."""
        _, frame = dress(self.state)
        with frame:
            with ui.element("header").classes("bar"):
                ui.html(str(escape(f"Audits in {Path(self.auditor.results).name}")), tag="h1")
                with ui.element("div").classes("bar tools"):
                    self.stop = ui.button("Stop", icon="stop", on_click=self.auditor.stop)
                    self.go = ui.button("Resume", icon="play_arrow", on_click=self.auditor.resume)
                    for button in (self.stop, self.go):
                        button.props("dense no-caps outline")
                        button.set_visibility(self.auditor.command is not None)
            self.said = ui.label("").classes("busy").props("role=status")
            self.extra = ui.element("div")
            self.body = ui.html("").classes("report")
        ui.timer(OFTEN, self._look)

    async def _look(self) -> None:
        running = self.auditor.is_running
        self.stop.set_enabled(running)
        self.go.set_enabled(not running)
        try:
            there = Path(self.auditor.results).is_file()
            audits = await work(read_audits, self.auditor.results) if there else ()
        except FedaccordError as error:
            self.said.text = ""
            self.body.content = parts_html([say_fault(error)])
            return
        self.said.text = self._describe(audits)
        seen = [f"{one.runs} {one.latest}" for one in audits]
        if seen == self._seen:
            return
        self._seen = seen
        dark = await ui.run_javascript("document.body.classList.contains('body--dark')")
        self.extra.clear()
        with self.extra:
            for one in audits:
                options = chart_options(defection_chart(one.audit), dark=dark)
                ui.echart(options).classes("chart").props('role=img aria-label="defection curves"')
        self.body.content = parts_html(
            [part for one in audits for part in show_progress(one.audit)] or [EMPTY]
        )

    def _describe(self, audits: Sequence[StoredAudit]) -> str:
        runs = count(sum(one.runs for one in audits), "run")
        where = "an audit is running here" if self.auditor.is_running else "watching the file"
        if code := self.auditor.code:
            failed = f"the audit failed (exit code {code}): see the terminal"
            where = f"{'the audit stopped' if code in STOPPED else failed}; finished runs are kept"
        return f"{runs}; {where}"
