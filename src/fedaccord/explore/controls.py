"""Sliders and fields for what agents give, want, have and pay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nicegui import ui

from fedaccord.errors import InputError
from fedaccord.explore.state import ADJUSTED, State
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.scenario_text import read_probability
from fedaccord.planning.what_if import can_change_goals, has_accuracies, has_chances
from fedaccord.report.html import count_places
from fedaccord.report.live import choose_step, quote, read_field
from fedaccord.report.proposal_plans import NO_CHANCES
from fedaccord.report.proposal_verdicts import say_fault
from fedaccord.report.terminal import plain

if TYPE_CHECKING:
    from fedaccord.explore.page import Visit

WHAT = {"give": "Contributions", "goal": "Goals", "limit": "Limits", "cost": "Costs"}

# Has the browser send its time with a value.
TIMED = "(value) => emit(value, performance.now())"


class Slider(ui.slider):
    """A slider that keeps its place while the server works: it is not told where it is."""

    LOOPBACK = False


class Adjuster:
    """A slider and a field for each agent; a lock keeps a contribution.

    visit: whose state they change.
    """

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        # What the rows were made for: what they adjust, and of whom.
        self._made: tuple[str, tuple[str, ...]] = ("", ())
        self._rows: list[tuple[ui.slider, ui.number, ui.checkbox]] = []
        self._tops: dict[int, float] = {}
        # The agent whose slider is under the visitor's hand.
        self._moving: int | None = None
        self._asked: ui.slider | None = None
        basis = visit.desk.subject.basis
        # A goal is an accuracy; other games have requirements.
        self._names = WHAT if has_accuracies(basis) else {**WHAT, "goal": "Requirements"}
        if isinstance(basis, Measurement):
            self._build_probability()
        elif not has_chances(basis):
            ui.label(visit.say(NO_CHANCES)).classes("hint")
        known = [n for n in ADJUSTED if n != "goal" or can_change_goals(basis)]
        options = {name: visit.say(self._names[name]) for name in known}
        self._what = ui.toggle(options, value=visit.state.adjust).props("dense no-caps spread")
        self._what.on(
            "update:model-value",
            lambda: visit.step(visit.state.put(adjust=str(self._what.value))),
        )
        self._place = ui.element("div").classes("rows")
        self.refused = ui.label("").classes("refused").props("role=alert")
        locks = "A locked agent keeps its number, and the plan is made for the rest."
        ui.label(visit.say(locks)).classes("hint")
        ui.button("Equal split", on_click=self._split).props("dense no-caps flat")

    def _build_probability(self) -> None:
        what = "probability that all reach their goals"
        with ui.element("div").classes("agent").props("data-probability"):
            ui.label(f"The {what}").classes("hint name")
            self._asked = Slider(min=0.5, max=0.99, step=0.01).props(f'dense aria-label="{what}"')
            self._typed = ui.number(step=0.01).props("dense outlined hide-bottom-space")
            self._typed.props(f'aria-label="{what}, as a number"')
        glide = self.visit.glide
        self._asked.on(
            "update:model-value", lambda e: glide(self.visit.state.put(probability=e.args))
        )
        self._asked.on(
            "change", lambda e: self._ask(e.args[0], (what, e.args[1])), js_handler=TIMED
        )
        self._typed.on("change", lambda e: self._ask(e.args))

    def _ask(self, value: Any, merge: tuple[str, float] | None = None) -> None:
        try:
            # An empty field asks for the usual one.
            asked = None if value in (None, "") else read_probability(str(value))
            self.visit.step(self.visit.state.put(probability=asked), merge)
        except ValueError as error:
            self.visit.step(self.visit.state)
            self.visit.refuse(say_fault(error).text)

    def show(self, answer: Proposal) -> None:
        """Show the numbers of an answer; the slider under the hand stays where it is."""
        state, changed = self.visit.state, answer.changed
        if self._asked is not None:
            asked = state.probability or self.visit.desk.subject.probability
            self._asked.value, self._typed.value = min(asked, 0.99), asked
        self._what.value = state.adjust
        if self._made != (state.adjust, changed.names):
            self._made = state.adjust, changed.names
            self._build(answer)
        locked, given = dict(state.lock), answer.put(state)
        values, tops = answer.list_sliders(state.adjust, given, list(locked))
        # The same digits as in the table, where contributions have a sum.
        total = [float(values.sum())] * (state.adjust == "give")
        form = f"%.{count_places([*values.tolist(), *total])}f"
        for place, agent in enumerate(changed.numbers):
            self._put(place, float(values[place]), float(tops[place]), agent, form)
            self._rows[place][2].value = agent in locked

    def hold(self, size: int) -> None:
        """Keep the sliders where there is no answer, if they are those of this many agents."""
        if self._made[0] != self.visit.state.adjust or len(self._made[1]) != size:
            self._made = ("", ())
            self._place.clear()

    def _build(self, answer: Proposal) -> None:
        self._place.clear()
        self._tops = {}
        with self._place:
            self._rows = [
                self._build_row(agent, name)
                for agent, name in zip(answer.changed.numbers, answer.changed.names, strict=True)
            ]

    def _build_row(self, agent: int, name: str) -> tuple[ui.slider, ui.number, ui.checkbox]:
        what = f"{self.visit.say(self._names[self.visit.state.adjust]).lower()} of {quote(name)}"
        with ui.element("div").classes("agent").props(f"data-agent={agent}"):
            ui.label(plain(name)).classes("name").props(f'title="{quote(name)}"')
            slider = Slider(min=0, max=1, step=1, value=0).props(f'dense aria-label="{what}"')
            field = ui.number(value=0, min=0).props("dense outlined hide-bottom-space")
            field.props(f'aria-label="{what}, as a number"')
            if self.visit.state.adjust == "limit":
                field.props('placeholder="none"')
            lock = ui.checkbox(value=False).props("dense checked-icon=lock")
            lock.props(f'unchecked-icon=lock_open aria-label="lock {quote(name)}"')
            lock.set_visibility(self.visit.state.adjust == "give")
        slider.on("update:model-value", lambda event: self._move(agent, event.args))
        slider.on("change", lambda e: self._set(agent, what, *e.args), js_handler=TIMED)
        field.on("change", lambda event: self._set(agent, what, event.args))
        lock.on("update:model-value", lambda e: self._lock(agent, e.args), [None])  # the value only
        return slider, field, lock

    def _put(self, place: int, value: float, top: float, agent: int, form: str) -> None:
        slider, field, _ = self._rows[place]
        if field.format != form:
            # The same number is written with other digits only if it is put again.
            field.format, field.value = form, None
        field.value = None if math.isinf(value) else float(form % value)
        if agent == self._moving:
            return
        top = max(top, 1e-3)
        if top != self._tops.get(place):
            self._tops[place] = top
            slider.props(f"max={top:.10g} step={choose_step(top):.10g}")
        slider.value = min(value, top)

    # What a visitor does.

    def _split(self) -> None:
        if self.visit.answer is not None:
            given = self.visit.answer.split_equally()
            self.visit.step(self.visit.state.put(give=given, cut=(), adjust="give"))

    def _move(self, agent: int, value: float) -> None:
        self._moving = agent
        self.visit.glide(self._change(agent, value))

    def _set(self, agent: int, what: str, value: Any, at: float | None = None) -> None:
        self._moving, one = None, f"the {what.replace('s of ', ' of ', 1)}"
        try:
            self.visit.step(self._change(agent, read_field(value, one)), (what, at) if at else None)
        except InputError as error:
            self.visit.step(self.visit.state)
            self.visit.refuse(say_fault(error).text)

    def _change(self, agent: int, value: float | None) -> State:
        state = self.visit.state
        locked = state.adjust == "give" and agent in dict(state.lock)
        return state.put_number("lock" if locked else state.adjust, agent, value)

    def _lock(self, agent: int, locked: bool) -> None:
        state, answer = self.visit.state, self.visit.answer
        if answer is not None:
            now = float(answer.put(state)[answer.changed.numbers.index(agent)])
            free = state.put_number("give", agent, None)
            self.visit.step(free.put_number("lock", agent, now if locked else None))
