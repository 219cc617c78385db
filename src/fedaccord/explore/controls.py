"""Sliders and fields for what agents give, want, have and pay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from nicegui import ui

from fedaccord._checks import Vector
from fedaccord.explore.answer import Answer
from fedaccord.explore.state import ADJUSTED, State
from fedaccord.explore.subject import can_change_goals, frame_of, has_chances

if TYPE_CHECKING:
    from fedaccord.explore.page import Visit

WHAT = {"give": "Contributions", "goal": "Goals", "limit": "Limits", "cost": "Costs"}
# How many places a slider has, more or less.
PLACES = 400


class Adjuster:
    """A slider and a field for each agent; a lock keeps a contribution.

    visit: whose state they change.
    """

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        # What the rows were made for: what they adjust, and of whom.
        self._made: tuple[str, tuple[str, ...]] = ("", ())
        self._sliders: list[ui.slider] = []
        self._fields: list[ui.number] = []
        self._locks: list[ui.checkbox] = []
        # The agent whose slider is under the visitor's hand.
        self._moving: int | None = None
        subject = visit.desk.subject
        if has_chances(subject.basis):
            self._build_probability()
        known = [n for n in ADJUSTED if n != "goal" or can_change_goals(subject.basis)]
        options = {name: visit.say(WHAT[name]) for name in known}
        self.what = ui.toggle(options, value=visit.state.adjust).props("dense no-caps spread")
        self.what.on("update:model-value", lambda _: self._adjust())
        self.rows = ui.element("div").classes("rows")
        ui.label(
            visit.say("A locked agent keeps its number, and the plan is made for the rest.")
        ).classes("hint")

    def _build_probability(self) -> None:
        visit = self.visit
        now = visit.state.probability or visit.desk.subject.probability
        with ui.element("div").classes("agent"):
            self.asked = ui.label().classes("hint")
            slider = ui.slider(min=0.5, max=0.99, step=0.01, value=now)
            slider.props('aria-label="probability that all reach their goals"')
        self.probability = slider
        slider.on("update:model-value", lambda event: self._ask(event.args, moving=True))
        slider.on("change", lambda event: self._ask(event.args, moving=False))

    def _ask(self, probability: float, *, moving: bool) -> None:
        from dataclasses import replace

        state = replace(self.visit.state, probability=float(probability))
        self._pass_on(state, moving=moving)

    def _pass_on(self, state: State, *, moving: bool) -> None:
        if moving:
            self.visit.move(state, moving=True)
        else:
            self.visit.step(state)

    def _adjust(self) -> None:
        from dataclasses import replace

        self.visit.step(replace(self.visit.state, adjust=str(self.what.value)))

    def show(self, answer: Answer) -> None:
        """Show the numbers of an answer; the slider under the hand stays where it is."""
        state, problem = self.visit.state, answer.problem
        if hasattr(self, "asked"):
            asked = state.probability or self.visit.desk.subject.probability
            self.asked.text = f"All reach their goals with probability {asked:.2f}"
            self.probability.value = asked
        self.what.value = state.adjust
        made = (state.adjust, problem.names)
        values, tops = self._read(answer)
        if made != self._made:
            self._made = made
            self._build(answer, values, tops)
        locked = dict(state.lock)
        for place, agent in enumerate(problem.numbers):
            self._put(place, values[place], tops[place], moving=agent == self._moving)
            self._locks[place].value = agent in locked

    def _read(self, answer: Answer) -> tuple[Vector, Vector]:
        """Return the numbers that the sliders show, and where the sliders end."""
        state, basis = self.visit.state, answer.problem.basis
        frame = frame_of(basis)
        alone = answer.start if answer.game is None else answer.game.alone
        alone = np.where(np.isfinite(alone), alone, 1.0)
        if state.adjust == "give":
            values = answer.propose(state)
            free = np.maximum(alone, values)
            limits = np.where(
                np.isin(answer.problem.numbers, [a for a, _ in state.lock]), np.inf, frame["limit"]
            )
            return values, np.where(np.isfinite(limits), limits, free)
        values = frame[state.adjust]
        if state.adjust == "cost":
            return values, np.maximum(10.0, values)
        if state.adjust == "limit":
            return values, np.maximum(np.where(np.isfinite(values), values, 0.0), 1.5 * alone)
        if has_chances(basis) or hasattr(basis, "goals"):
            return values, np.full(len(values), 0.999)
        file = self.visit.desk.subject.basis
        return values, np.maximum(values, 2 * max(frame_of(file)["goal"]))

    def _build(self, answer: Answer, values: Vector, tops: Vector) -> None:
        self.rows.clear()
        self._sliders, self._fields, self._locks = [], [], []
        what = WHAT[self.visit.state.adjust].lower()
        with self.rows:
            for place, agent in enumerate(answer.problem.numbers):
                name = answer.problem.names[place]
                said = name.replace('"', "'").replace("\\", "/")
                with ui.element("div").classes("agent"):
                    ui.label(name).classes("name").tooltip(name)
                    slider = ui.slider(min=0, max=1, step=1, value=0)
                    slider.props(f'aria-label="{what} of {said}" dense')
                    number = ui.number(value=0, min=0).props("dense outlined hide-bottom-space")
                    number.props(f'aria-label="{what} of {said}, as a number"')
                    lock = ui.checkbox(value=False).props("dense checked-icon=lock")
                    lock.props(f'unchecked-icon=lock_open aria-label="lock {said}"')
                    lock.tooltip("Keep this number and plan for the rest")
                    lock.set_visibility(self.visit.state.adjust == "give")
                slider.on("update:model-value", lambda e, a=agent: self._move(a, e.args))
                slider.on("change", lambda e, a=agent: self._set(a, e.args))
                number.on("change", lambda e, a=agent: self._set(a, e.args))
                lock.on("update:model-value", lambda e, a=agent: self._lock(a, bool(e.args)))
                self._sliders.append(slider)
                self._fields.append(number)
                self._locks.append(lock)
        self._ends = [0.0] * len(values)
        _ = tops

    def _put(self, place: int, value: float, top: float, *, moving: bool) -> None:
        slider, field = self._sliders[place], self._fields[place]
        top = max(float(top), 1e-3)
        if top != self._ends[place] and not moving:
            self._ends[place] = top
            slider.props(f"max={top:.10g} step={_choose_step(top):.10g}")
        if not moving:
            slider.value = min(float(value), top)
        field.value = None if math.isinf(value) else round(float(value), 4)

    # What a visitor does.

    def _move(self, agent: int, value: float) -> None:
        self._moving = agent
        self.visit.move(self._change(agent, value), moving=True)

    def _set(self, agent: int, value: float | str | None) -> None:
        self._moving = None
        number = None if value in (None, "") else float(value)  # type: ignore[arg-type]
        self.visit.step(self._change(agent, number))

    def _change(self, agent: int, value: float | None) -> State:
        state = self.visit.state
        name = state.adjust
        if name == "give" and agent in dict(state.lock):
            name = "lock"
        return state.put(name, agent, value)

    def _lock(self, agent: int, locked: bool) -> None:
        state, answer = self.visit.state, self.visit.answer
        if answer is None:
            return
        now = float(answer.propose(state)[answer.problem.numbers.index(agent)])
        number = round(now, 6) if locked else None
        self.visit.step(state.put("lock", agent, number).put("give", agent, None))


def _choose_step(top: float) -> float:
    """Return the step of a slider: 1, 2 or 5 times a power of ten; at most about 400 places."""
    rough = top / PLACES
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
