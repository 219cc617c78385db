"""Sliders and fields for what agents give, want, have and pay."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from nicegui import ui

from fedaccord._checks import Vector
from fedaccord.explore.state import ADJUSTED, State
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import can_change_goals, has_accuracies, list_frame
from fedaccord.report.terminal import plain

if TYPE_CHECKING:
    from fedaccord.explore.page import Visit

WHAT = {"give": "Contributions", "goal": "Goals", "limit": "Limits", "cost": "Costs"}
# How many places a slider has, more or less.
PLACES = 400


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
        if isinstance(basis, Measurement):
            self._build_probability()
        known = [n for n in ADJUSTED if n != "goal" or can_change_goals(basis)]
        options = {name: visit.say(WHAT[name]) for name in known}
        self._what = ui.toggle(options, value=visit.state.adjust).props("dense no-caps spread")
        self._what.on("update:model-value", self._adjust)
        self._place = ui.element("div").classes("rows")
        locks = "A locked agent keeps its number, and the plan is made for the rest."
        ui.label(visit.say(locks)).classes("hint")

    def _build_probability(self) -> None:
        with ui.element("div"):
            self._asks = ui.label().classes("hint")
            self._asked = Slider(min=0.5, max=0.99, step=0.01, value=0.95)
            self._asked.props(
                'aria-label="probability that all reach their goals" data-probability'
            )
        self._asked.on("update:model-value", partial(self._ask, self.visit.glide))
        self._asked.on("change", partial(self._ask, self.visit.step))

    def _ask(self, go: Callable[[State], None], event: Any) -> None:
        go(self.visit.state.put(probability=float(event.args)))

    def _adjust(self) -> None:
        self.visit.step(self.visit.state.put(adjust=str(self._what.value)))

    def show(self, answer: Proposal) -> None:
        """Show the numbers of an answer; the slider under the hand stays where it is."""
        state, changed = self.visit.state, answer.changed
        if self._asked is not None:
            asked = state.probability or self.visit.desk.subject.probability
            self._asks.text = f"All reach their goals with probability {asked:.2f}"
            self._asked.value = asked
        self._what.value = state.adjust
        if self._made != (state.adjust, changed.names):
            self._made = state.adjust, changed.names
            self._build(answer)
        values, tops = self._read(answer)
        locked = dict(state.lock)
        for place, agent in enumerate(changed.numbers):
            self._put(place, float(values[place]), float(tops[place]), agent)
            self._rows[place][2].value = agent in locked

    def _read(self, answer: Proposal) -> tuple[Vector, Vector]:
        """Return the numbers that the sliders show, and where the sliders end."""
        state, basis = self.visit.state, answer.changed.basis
        frame = list_frame(basis)
        alone = answer.start if answer.game is None else answer.game.alone
        alone = np.where(np.isfinite(alone), alone, 1.0)
        if state.adjust == "give":
            values, limits = answer.put(state.give, state.cut), np.array(frame["limit"])
            # A locked agent's limit is its number; its lock can still be moved.
            limits[np.isin(answer.changed.numbers, [agent for agent, _ in state.lock])] = np.inf
            return values, np.where(np.isfinite(limits), limits, np.maximum(alone, values))
        values = frame[state.adjust]
        known = np.where(np.isfinite(values), values, 0.0)
        if state.adjust == "cost":
            return values, np.maximum(10.0, known)
        if state.adjust == "goal" and has_accuracies(basis):
            return values, np.full(len(values), 0.999)
        return values, np.maximum(1.5 * alone, known)

    def _build(self, answer: Proposal) -> None:
        self._place.clear()
        self._tops = {}
        with self._place:
            self._rows = [
                self._build_row(agent, name)
                for agent, name in zip(answer.changed.numbers, answer.changed.names, strict=True)
            ]

    def _build_row(self, agent: int, name: str) -> tuple[ui.slider, ui.number, ui.checkbox]:
        what = f"{self.visit.say(WHAT[self.visit.state.adjust]).lower()} of {quote(name)}"
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
        slider.on("change", lambda event: self._set(agent, event.args))
        field.on("change", lambda event: self._set(agent, event.args))
        lock.on("update:model-value", lambda event: self._lock(agent, bool(event.args)))
        return slider, field, lock

    def _put(self, place: int, value: float, top: float, agent: int) -> None:
        slider, field, _ = self._rows[place]
        field.value = None if math.isinf(value) else round(value, 2 if value >= 10 else 4)
        if agent == self._moving:
            return
        top = max(top, 1e-3)
        if top != self._tops.get(place):
            self._tops[place] = top
            slider.props(f"max={top:.10g} step={_choose_step(top):.10g}")
        slider.value = min(value, top)

    # What a visitor does.

    def _move(self, agent: int, value: float) -> None:
        self._moving = agent
        self.visit.glide(self._change(agent, value))

    def _set(self, agent: int, value: Any) -> None:
        self._moving = None
        number = _read_field(value)
        if number is None and value not in (None, ""):
            ui.notify(f"{str(value)[:40]} is no number from 0 to 1e15.", type="negative")
        self.visit.step(self._change(agent, number))

    def _change(self, agent: int, value: float | None) -> State:
        state = self.visit.state
        locked = state.adjust == "give" and agent in dict(state.lock)
        return state.put_number("lock" if locked else state.adjust, agent, value)

    def _lock(self, agent: int, locked: bool) -> None:
        state, answer = self.visit.state, self.visit.answer
        if answer is not None:
            now = float(answer.put(state.give, state.cut)[answer.changed.numbers.index(agent)])
            free = state.put_number("give", agent, None)
            self.visit.step(free.put_number("lock", agent, round(now, 6) if locked else None))


def quote(name: str) -> str:
    """Return a name that can stand in the property of an element."""
    return plain(name).replace('"', "'").replace("\\", "/")


def _read_field(value: Any) -> float | None:
    """Return a number of 0 or more; None where the field is empty or holds no such number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number <= 1e15 else None


def _choose_step(top: float) -> float:
    """Return the step of a slider: 1, 2 or 5 times a power of ten, at most about 400 places."""
    rough = top / PLACES
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
