"""The page: what a visitor touches becomes a state, and a state becomes what is on the screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from nicegui import background_tasks, run, ui
from nicegui.events import GenericEventArguments

from fedaccord.charts import Chart
from fedaccord.errors import FedaccordError, InputError
from fedaccord.explore import view as views
from fedaccord.explore.answer import Answer, Desk
from fedaccord.explore.controls import Adjuster
from fedaccord.explore.draw import (
    chart_options,
    draw_figures,
    draw_mark,
    draw_parts,
    scatter_options,
)
from fedaccord.explore.look import CSS, SCRIPT
from fedaccord.explore.state import PLANS, VIEWS, State
from fedaccord.explore.take import TAKEN, take_away
from fedaccord.report.model import Mark
from fedaccord.report.renaming import Renaming
from fedaccord.wording import capitalize_first

LABELS = {
    "agents": "Agents",
    "plans": "Plans and prices",
    "choice": "Other stable plans",
    "certainty": "Price of certainty",
    "members": "Members",
    "payments": "Payments",
    "coalitions": "Coalitions",
    "compare": "Compare",
}
BUTTONS = {
    "stable": "Stable",
    "optimal": "Optimal",
    "envy-free": "Envy-free",
    "payments": "With payments",
}
CUTS = {
    1.0: "gives all of it",
    0.75: "gives 75 %",
    0.5: "gives 50 %",
    0.25: "gives 25 %",
    0.0: "gives nothing",
}


class Visit:
    """A browser tab: its state, and the elements that show it.

    desk: answers.
    state: what the address says.
    token: which addresses have.
    """

    def __init__(self, desk: Desk, state: State, token: str) -> None:
        self.desk, self.state, self.token = desk, state, token
        self.answer: Answer | None = None
        # The state that the browser's address has.
        self.kept = state
        # The number of that state among those that back and forward lead to, and the last one.
        self.depth = self.last = 0
        self._turn = 0
        self._solving = asyncio.Lock()
        names = (*desk.subject.names,)
        self.renaming = Renaming(desk.subject.words, names)
        self.say = self.renaming.text

    # What is on the page.

    def build(self, fault: str = "") -> None:
        """Lay out the page; numbers come as soon as there is a plan."""
        ui.add_css(CSS)
        ui.add_head_html(SCRIPT)
        self.dark = ui.dark_mode({"auto": None, "light": False, "dark": True}[self.state.theme])
        ui.on("address", self._go)
        ui.keyboard(self._press)
        self.frame = ui.element("main").classes("app")
        with self.frame:
            self._build_bar()
            with ui.element("div").classes("desk"):
                with ui.element("section").classes("panel").props('aria-label="What if"'):
                    self._build_panel()
                with ui.element("section").classes("seen").props('aria-live="polite"'):
                    self._build_seen()
        if fault:
            ui.notify(fault, type="negative", timeout=0, close_button="Close")
        ui.timer(0, self._start, once=True)

    def _build_bar(self) -> None:
        with ui.element("header").classes("bar"):
            title = self.desk.subject.title or "Who gives how much"
            ui.html(str(draw_title(title)), tag="h1").classes("title")
            with ui.element("div").classes("bar tools"):
                self.undo = _icon("undo", "Undo", lambda: ui.run_javascript("history.back()"))
                self.redo = _icon("redo", "Redo", lambda: ui.run_javascript("history.forward()"))
                _icon("dark_mode", "Light or dark", self._switch_theme)
                _icon("format_size", "Large type", self._switch_size)
                _icon("print", "Print", lambda: ui.run_javascript("window.print()"))
                _icon("balance", "Compare with this", self._keep_other)
                with ui.button("Take away", icon="download").props("dense outline no-caps"):
                    with ui.menu():
                        for kind, label in TAKEN.items():
                            ui.menu_item(self.say(label), partial(self._take, kind))

    def _build_panel(self) -> None:
        with ui.element("div").classes("bar"):
            self.buttons = {
                plan: ui.button(BUTTONS[plan], on_click=partial(self._choose, plan)).props(
                    "dense no-caps unelevated"
                )
                for plan in PLANS
            }
        self.adjuster = Adjuster(self)

    def _build_seen(self) -> None:
        self.verdict = ui.html("").classes("verdict")
        self.figures = ui.html("").classes("figures")
        self.busy = ui.label("planning …").classes("busy")
        self.tabs = ui.tabs(value=self.state.view).props(
            "dense no-caps align=left outside-arrows mobile-arrows"
        )
        with self.tabs:
            for name in VIEWS:
                ui.tab(name, self.say(LABELS[name]))
        self.tabs.on("update:model-value", lambda event: self._open(event.args))
        self.body = ui.element("div")

    # Steps: each makes a state, and an address.

    def step(self, state: State) -> None:
        """Go to another state, so that back leads to this one."""
        if state != self.kept:
            self.kept = state
            self.depth += 1
            self.last = self.depth
            mark = json.dumps({"depth": self.depth})
            ui.run_javascript(f"history.pushState({mark}, '', {json.dumps(self.address(state))})")
        self.move(state)

    def move(self, state: State, *, moving: bool = False) -> None:
        """Show another state; while a slider moves, there is no address for each place of it."""
        self.state = state
        self._turn += 1
        background_tasks.create(self._show(self._turn, moving=moving), context=self.frame)

    def address(self, state: State) -> str:
        """Return the address of a state."""
        return "/?" + "&".join(filter(None, (urlencode({"token": self.token}), state.query)))

    def _go(self, event: GenericEventArguments) -> None:
        self.depth = int(event.args["depth"])
        try:
            self.kept = State.read(str(event.args["query"]).lstrip("?"))
            self.move(self.kept)
        except InputError as error:
            ui.notify(f"{error}", type="negative")

    def _press(self, event: Any) -> None:
        if event.action.keydown and event.modifiers.ctrl and event.key in ("z", "y"):
            undo = event.key == "z" and not event.modifiers.shift
            ui.run_javascript("history.back()" if undo else "history.forward()")

    def _choose(self, plan: str) -> None:
        state = self.state.choose(plan)
        view = "payments" if plan == "payments" else state.view
        self.step(replace(state, view=view))

    def _open(self, name: str) -> None:
        self.step(replace(self.state, view=name))

    def _switch_theme(self) -> None:
        self.step(replace(self.state, theme="light" if self.is_dark else "dark"))

    def _switch_size(self) -> None:
        self.step(replace(self.state, large=not self.state.large))

    def _keep_other(self) -> None:
        other = replace(self.state, other="", view="agents").query
        self.step(replace(self.state, other=other or "plan=stable", view="compare"))
        ui.notify("Now change something: this state stays on the right.")

    @property
    def is_dark(self) -> bool:
        """Whether charts are drawn in dark colours."""
        return self.state.theme == "dark"

    async def _take(self, kind: str) -> None:
        if self.answer is None:
            return
        try:
            name, content = await run.io_bound(
                take_away, self.desk, self.answer, self.state, self.renaming, kind
            )
        except FedaccordError as error:
            ui.notify(f"{error}", type="negative")
            return
        ui.download.content(content, name)

    # From a state to the screen.

    async def _start(self) -> None:
        await ui.context.client.connected()
        self.depth = self.last = int(await ui.run_javascript("(history.state || {}).depth || 0"))
        self.move(self.state)

    async def _show(self, turn: int, *, moving: bool) -> None:
        """Show the state: at once what is known, and the plan when it is found."""
        self._show_settings()
        try:
            answer = self.desk.known(self.state)
            if answer is None and self.answer is not None:
                self._show_answer(self.desk.follow(self.state, self.answer))
            if answer is None:
                async with self._solving:
                    if turn != self._turn:
                        return
                    self.busy.text = "planning …"
                    answer = await run.io_bound(self.desk.answer, self.state)
        except FedaccordError as error:
            self._show_fault(error)
            return
        if turn != self._turn or answer is None:
            return
        self.answer = answer
        self._show_answer(answer)
        if not moving:
            await self._show_view(turn)

    def _show_settings(self) -> None:
        self.dark.value = {"auto": None, "light": False, "dark": True}[self.state.theme]
        self.frame.classes(add="large" * self.state.large, remove="large" * (not self.state.large))
        for plan, button in self.buttons.items():
            chosen = plan == self.state.plan
            button.props(f"color={'primary' if chosen else 'grey-7'}")
            button.props(f'aria-pressed="{str(chosen).lower()}"')
        self.undo.set_enabled(self.depth > 0)
        self.redo.set_enabled(self.depth < self.last)
        if self.tabs.value != self.state.view:
            self.tabs.value = self.state.view

    def _show_answer(self, answer: Answer) -> None:
        found = views.make_view(self.desk, answer, self.state)
        self.verdict.content = self._draw([found.verdict])
        self.figures.content = draw_figures([(self.say(n), v) for n, v in found.figures])
        self.busy.text = self.say(found.note) if answer.settled else "looking for the best plan …"
        self.adjuster.show(answer)
        if self.state.view == "agents":
            self._put_parts(found.parts)

    def _show_fault(self, error: FedaccordError) -> None:
        self.verdict.content = str(draw_mark(Mark(capitalize_first(f"{error}."), "bad")))
        self.figures.content = self.busy.text = ""
        self.body.clear()

    async def _show_view(self, turn: int) -> None:
        """Show what takes its time, when the numbers are on the screen."""
        name, answer = self.state.view, self.answer
        if name == "agents" or answer is None:
            return
        self.busy.text = "working …"
        try:
            parts = await run.io_bound(self._make_parts, name, self.state, answer)
            points = ()
            if name == "choice":
                points = await run.io_bound(views.list_points, self.desk, self.state)
        except FedaccordError as error:
            parts, points = [Mark(capitalize_first(f"{error}."), "unsure")], ()
        if turn != self._turn:
            return
        self.busy.text = ""
        self.body.clear()
        with self.body:
            if name == "members":
                self._build_members(answer)
            if points:
                chart = ui.echart(scatter_options(points, dark=self.is_dark)).classes("chart")
                chart.on_point_click(lambda event: self._pick(event.data_index))
            for part in parts:
                if isinstance(part, Chart):
                    ui.echart(chart_options(part, dark=self.is_dark)).classes("chart")
        self._put_parts(parts, clear=False)

    def _make_parts(self, name: str, state: State, answer: Answer) -> list[views.Shown]:
        if name == "compare":
            if not state.other:
                return ["Press the scales above to keep a state; then change something."]
            return list(views.compare(self.desk, state, State.read(state.other)))
        if name in ("certainty", "members"):
            show = views.show_certainty if name == "certainty" else views.show_members
            return list(show(self.desk, answer, state))
        makers: dict[str, Callable[[Desk, State], Iterable[views.Shown]]] = {
            "plans": views.show_plans,
            "choice": views.show_choice,
            "payments": views.show_payments,
            "coalitions": views.show_coalitions,
        }
        return list(makers[name](self.desk, state))

    def _pick(self, number: int) -> None:
        self.step(self.state.choose(str(number + 1)))

    def _draw(self, parts: Iterable[views.Shown]) -> str:
        return draw_parts(views.reword(list(parts), self.renaming))

    def _put_parts(self, parts: Iterable[views.Shown], *, clear: bool = True) -> None:
        content = self._draw(parts)
        old = [child for child in self.body.default_slot.children if isinstance(child, ui.html)]
        if clear and len(self.body.default_slot.children) == len(old) == 1:
            old[0].content = content
            return
        if clear:
            self.body.clear()
        with self.body:
            ui.html(content)

    # Members.

    def _build_members(self, answer: Answer) -> None:
        ui.label(
            self.say(
                "Who takes part? An agent that gives only a part, or several that do so together, "
                "show in the verdict above."
            )
        ).classes("hint")
        size = len(self.desk.subject.names)
        names = dict(zip(answer.problem.numbers, answer.problem.names, strict=True))
        for agent in range(size + len(self.state.like)):
            name = names.get(agent) or self._name_left(agent)
            with ui.element("div").classes("member"):
                ui.label(name).classes("name")
                gone = agent in self.state.left
                back = "Comes back" if gone else "Leaves"
                _text(back, lambda a=agent: self.step(self.state.toggle_left(a)))
                if not gone:
                    self._build_member(agent, name)
                if agent < size:
                    joins = replace(self.state, like=(*self.state.like, agent))
                    _text("Another like it joins", lambda s=joins: self.step(s))

    def _build_member(self, agent: int, name: str) -> None:
        level = dict(self.state.cut).get(agent, 1.0)
        options = {**CUTS, level: CUTS.get(level, f"gives {100 * level:g} %")}
        chosen = ui.select(options, value=level).props(f"dense options-dense outlined")
        chosen.props(f'aria-label="what {_quote(name)} gives"')
        chosen.on_value_change(
            lambda event: self.step(
                self.state.put("cut", agent, None if event.value == 1 else event.value)
            )
        )
        keeps = agent in dict(self.state.keep)
        ui.checkbox("keeps its data", value=keeps).props("dense").on_value_change(
            lambda event: self.step(self.state.put("keep", agent, 1.0 if event.value else None))
        )

    def _name_left(self, agent: int) -> str:
        from fedaccord.explore.subject import name_joined

        return name_joined(self.desk.subject.names, self.state.like)[agent]


def draw_title(title: str) -> str:
    """Return a title as HTML."""
    from markupsafe import escape

    return str(escape(title))


def _quote(name: str) -> str:
    return name.replace('"', "'").replace("\\", "/")


def _icon(icon: str, label: str, act: Callable[[], Any]) -> ui.button:
    button = ui.button(icon=icon, on_click=act).props("flat dense round")
    return button.props(f'aria-label="{label}"').tooltip(label)


def _text(label: str, act: Callable[[], Any]) -> ui.button:
    return ui.button(label, on_click=act).props("flat dense no-caps")
