"""The page: what a visitor touches becomes a state, and a state becomes what is on the screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

from markupsafe import escape
from nicegui import background_tasks, run, ui

from fedaccord.charts import Chart
from fedaccord.errors import FedaccordError, InputError
from fedaccord.explore import view as views
from fedaccord.explore.controls import Adjuster
from fedaccord.explore.desk import Desk
from fedaccord.explore.state import LOOKS, PLANS, State
from fedaccord.explore.take import TAKEN, take_away
from fedaccord.planning.members import drop_unknown
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import has_chances
from fedaccord.report.html import page_css
from fedaccord.report.live import chart_options, draw_figures, quote, tradeoff_options
from fedaccord.report.proposal_changes import describe_changes
from fedaccord.report.proposal_members import MEMBERS, offer_conditions, offer_levels
from fedaccord.report.proposal_verdicts import say_fault
from fedaccord.report.proposals import WAITING, View
from fedaccord.report.renaming import Renaming
from fedaccord.report.style import FONTS, declare_colours
from fedaccord.report.terminal import plain

Result = TypeVar("Result")
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
BUTTONS = dict(zip(PLANS, ("Stable", "Optimal", "Envy-free", "With payments"), strict=True))
DARK = {"auto": None, "light": False, "dark": True}
# Milliseconds in which a slider that moves again makes no new step; steps that an address keeps.
QUICK, MOST = 1000, 100


def dress(state: State) -> tuple[ui.dark_mode, ui.element]:
    """Dress the page in the colours of the reports; return the switch to dark, and the frame.

    state: whether it is light, dark, and large.
    """
    ui.add_css(
        f":root{{{declare_colours(0)}}}body.body--dark{{{declare_colours(1)}}}"
        f"@media print{{body.body--dark{{{declare_colours(0)}}}}}"
        f"body{{font-family:{FONTS}}}.report{{{page_css()}}}" + read_asset("look.css")
    )
    ui.colors(primary="#2f7f92")
    frame = ui.element("main").classes("app" + " large" * state.large)
    return ui.dark_mode(DARK[state.theme]), frame


def read_asset(name: str) -> str:
    """Return the text of a file of the app."""
    return files("fedaccord.explore").joinpath(name).read_text(encoding="utf-8")


class Visit:
    """A browser tab: its state, and the elements that show it.

    desk: answers.
    state: what the address says.
    token: which addresses have.
    """

    def __init__(self, desk: Desk, state: State, token: str) -> None:
        self.desk, self.token = desk, token
        self.state, self.unknown = drop_unknown(state, len(desk.subject.names))
        self.answer: Proposal | None = None
        # The state that the browser's address has; and as queries, the numbers that undo leads to,
        # and those that redo leads to.
        self.kept, self.past, self.future = self.state, list[str](), list[str]()
        self._turn, self.note = 0, ""
        # The slider that made the last step, and when.
        self._slid: tuple[str, float] | None = None
        # The settings, and the state and its plan, on the screen: they are not sent again.
        self._shown: tuple[Any, ...] = ()
        self._drawn: tuple[State, Proposal] | None = None
        self._solving = asyncio.Lock()
        self.renaming = Renaming(desk.subject.words, desk.subject.names)
        self.say = self.renaming.text
        self._draw = partial(views.draw, renaming=self.renaming)

    # What is on the page.

    def build(self, fault: str = "") -> None:
        """Lay out the page; numbers come as soon as there is a plan.

        fault: what is wrong with the address, if anything is.
        """
        self.dark, self.frame = dress(self.state)
        ui.add_head_html(f"<script>{read_asset('page.js')}</script>")
        ui.on("address", self._go)
        ui.on("redraw", lambda: self._move(self.state))
        ui.on("take", lambda event: self.step(self.state.choose(str(event.args))))
        ui.on_exception(self._fail)
        ui.on("undo", lambda event: self._undo(redo=event.args == "y"))
        with self.frame:
            self._build_bar()
            with ui.element("div").classes("desk"):
                with ui.element("section").classes("panel").props('aria-label="What if"'):
                    with ui.element("div").classes("bar"):
                        self.buttons = {plan: self._build_button(plan) for plan in PLANS}
                    self.adjuster = Adjuster(self)
                with ui.element("section").classes("answers").props('aria-label="Verdict"'):
                    self._build_answers()
                with ui.element("section").classes("seen").props('aria-label="The proposal"'):
                    self._build_seen()
        self.refuse(fault or self.say(self.unknown))
        ui.timer(0, self._start, once=True)

    def _build_bar(self) -> None:
        with ui.element("header").classes("bar"):
            ui.html(str(escape(plain(self.desk.subject.title))), tag="h1")
            with ui.element("div").classes("bar tools"):
                self.undo = _icon("undo", "Undo", self._undo)
                self.redo = _icon("redo", "Redo", partial(self._undo, redo=True))
                _icon("dark_mode", "Light or dark", self._switch_theme)
                _icon("format_size", "Large type", self._switch_size)
                _icon("print", "Print", "() => window.print()")
                _icon("balance", "Compare with this", self._keep_other)
                take = ui.button("Take away", icon="download").props("dense outline no-caps")
                take.props('aria-label="Take away"')
                with take, ui.menu():
                    for kind, label in TAKEN.items():
                        ui.menu_item(label, partial(self._take, kind))

    def _build_button(self, plan: str) -> ui.button:
        button = ui.button(BUTTONS[plan], on_click=partial(self._choose, plan))
        return button.props("dense no-caps unelevated padding='2px 10px'")

    def _build_answers(self) -> None:
        with ui.element("div").props('aria-live="polite"'):
            self.verdict = ui.html("").classes("report answer")
        self.offers = ui.element("div").classes("bar offers")
        self.figures = ui.html("").classes("figures")
        self.changed = ui.label("").classes("changed")
        self.busy = ui.label("planning …").classes("busy").props("role=status")

    def _build_seen(self) -> None:
        self.tabs = ui.tabs(value=self.state.view)  # type: ignore[arg-type]
        self.tabs.props("dense no-caps align=left outside-arrows mobile-arrows")
        sure = has_chances(self.desk.subject.basis) or self.state.view == "certainty"
        with self.tabs:
            for name, label in LABELS.items():
                if sure or name != "certainty":
                    ui.tab(name, self.say(label))
        self.tabs.on("update:model-value", lambda e: self.step(self.state.put(view=e.args)))
        self.extra = ui.element("div")
        self.body = ui.html("").classes("report")

    # Steps: each makes a state, and an address.

    def step(self, state: State, merge: tuple[str, float] | None = None) -> None:
        """Go to another state, so that back leads to this one.

        state: the new one.
        merge: the slider that made it, and when, in milliseconds; quick moves are one step.
        """
        self.refuse("")
        last, self._slid = self._slid, merge
        slid = merge and last and merge[0] == last[0] and merge[1] - last[1] < QUICK
        if state.numbers != self.kept.numbers:
            before = [] if slid else [self.kept.numbers.query]
            self.past, self.future = [*self.past, *before], []
        self._keep(state, "replaceState" if slid else "pushState")

    def _keep(self, state: State, how: str) -> None:
        if state != self.kept:
            self.kept = state
            url = "/?" + "&".join(filter(None, (urlencode({"token": self.token}), state.query)))
            steps = json.dumps({"past": self.past[-MOST:], "future": self.future[-MOST:]})
            ui.run_javascript(f"history.{how}({steps}, '', {json.dumps(url)})")
        self._move(state)

    def _undo(self, *, redo: bool = False) -> None:
        """Go to the numbers before, or to those that were undone; what is looked at stays."""
        left, undone = (self.future, self.past) if redo else (self.past, self.future)
        if left:
            undone.append(self.kept.numbers.query)
            looks = {name: getattr(self.kept, name) for name in LOOKS}
            self._slid = None
            self._keep(State.read(left.pop()).put(**looks), "pushState")

    def glide(self, state: State) -> None:
        """Show another state while a slider moves: only where it comes to rest has an address."""
        self._move(state, gliding=True)

    def _move(self, state: State, *, gliding: bool = False) -> None:
        if state != self.state:
            # What is offered would take this move back; with its answer come other offers.
            self._drawn = None
            for button in self.offers.default_slot.children:
                cast("ui.button", button).disable()
        self.state = state
        self._turn += 1
        if not gliding:
            # Until all of the state is on the screen; the address and this reach it together.
            self.busy.text = "planning …"
        background_tasks.create(self._show(self._turn, gliding=gliding), context=self.frame)

    def _go(self, event: Any) -> None:
        self.past, self.future, self._slid = event.args["past"], event.args["future"], None
        self.refuse("")
        try:
            self.kept = State.read(str(event.args["query"]))
        except InputError as error:
            self.refuse(f"{error}")
        self._move(self.kept)

    def refuse(self, text: str) -> None:
        """Show what was refused, until something else is done."""
        self.adjuster.refused.text = text

    def _fail(self, error: Exception) -> None:
        self.refuse(f"This failed: {error}")
        # Nothing is under way, and what another tab showed does not belong here.
        self.busy.text, self.body.content = "", ""
        self.frame.classes(remove="waits")
        self.offers.clear()
        self.extra.clear()

    def _choose(self, plan: str) -> None:
        view = "payments" if plan == "payments" else self.state.view
        self.step(self.state.choose(plan).put(view=view))

    async def _switch_theme(self) -> None:
        dark = await ui.run_javascript("document.body.classList.contains('body--dark')")
        self.step(self.state.put(theme="light" if dark else "dark"))

    def _switch_size(self) -> None:
        self.step(self.state.put(large=not self.state.large))

    def _keep_other(self) -> None:
        other = self.state.put(other="", view="agents").query or "plan=stable"
        self.step(self.state.put(other=other, view="compare"))

    async def _take(self, kind: str) -> None:
        if self.answer is not None:
            make = partial(take_away, self.desk, self.answer, self.state, self.renaming)
            try:
                ui.download.content(await work(make, kind), kind)
            except FedaccordError as error:
                self.refuse(f"{error}")

    # From a state to the screen.

    async def _start(self) -> None:
        await ui.context.client.connected()
        self.past, self.future = await ui.run_javascript("[address().past, address().future]")
        self._move(self.state)

    async def _show(self, turn: int, *, gliding: bool) -> None:
        """Show the state: at once what is known, and the plan when it is found."""
        self._show_settings()
        try:
            answer = self.desk.known(self.state)
            if answer is None:
                if self.answer is not None:
                    self._show_answer(self.desk.follow(self.state, self.answer))
                async with self._solving:
                    if turn != self._turn:
                        return
                    answer = await work(self.desk.answer, self.state)
            if turn == self._turn:
                self.answer = answer
                self._show_answer(answer)
                if not gliding:
                    await self._show_view(turn, answer)
        except FedaccordError as error:
            if turn != self._turn:
                return
            self.frame.classes(remove="waits")
            self.offers.clear()
            self.verdict.content = self._draw([say_fault(error)])
            self.figures.content = self.body.content = self.busy.text = ""
            self._drawn = None
            every = len(self.desk.subject.names) + len(self.state.like)
            self.adjuster.hold(every - len(self.state.left))

    def _show_settings(self) -> None:
        state = self.state
        steps = bool(self.past), bool(self.future)
        plan = "" if state.replaces else state.plan
        shown = (state.theme, state.large, plan, state.view, *steps)
        if shown == self._shown:
            return
        self._shown = shown
        self.dark.value = DARK[self.state.theme]
        self.frame.classes(add="large") if self.state.large else self.frame.classes(remove="large")
        for name, button in self.buttons.items():
            # Other numbers than the plan's are no plan of any kind.
            colour, pressed = (("blue-grey-7", "false"), ("primary", "true"))[name == plan]
            button.props(f"color={colour} aria-pressed={pressed}")
        self.undo.set_enabled(steps[0])
        self.redo.set_enabled(steps[1])
        self.tabs.value = self.state.view

    def _show_answer(self, answer: Proposal) -> None:
        self.adjuster.show(answer)
        if self._drawn != (self.state, answer):
            self._drawn = self.state, answer
            found = views.make_view(self.desk, answer, self.state)
            self.verdict.content = self._draw([found.verdict, *found.folds])
            self.changed.text = self.say(describe_changes(answer, self.state))
            waits = found is WAITING
            self.frame.classes(**{"add" if waits else "remove": "waits"})
            if not waits:
                self._show_proposal(found)
        self.busy.text = self.note if answer.settled else "looking for the best plan …"

    def _show_proposal(self, found: View) -> None:
        self.offers.clear()
        with self.offers:
            for label, changes in found.offers:
                take = partial(self.step, self.state.put(**changes))
                ui.button(self.say(label), on_click=take).props("dense no-caps outline")
        self.figures.content = draw_figures([(self.say(n), v) for n, v in found.figures])
        self.note = self.say(found.note)
        if self.state.view == "agents":
            if self.extra.default_slot.children:
                self.extra.clear()
            self.body.content = self._draw(found.parts)

    async def _show_view(self, turn: int, answer: Proposal) -> None:
        """Show what takes its time, when the numbers are on the screen."""
        name = self.state.view
        if name == "agents":
            return
        self.busy.text = "working …"
        dark = await ui.run_javascript("document.body.classList.contains('body--dark')")
        parts: list[views.Shown]
        try:
            parts = await work(lambda: list(views.VIEWS[name](self.desk, self.state)))
        except FedaccordError as error:
            parts = [say_fault(error)]
        if turn != self._turn:
            return
        self.extra.clear()
        with self.extra:
            if name == "members":
                self._build_members(answer)
            if name == "choice" and len((plan := self.desk.plan(self.state.stable)).tradeoffs) > 1:
                options = tradeoff_options(plan, self.state.equilibrium, dark=dark)
                chart = ui.echart(options).classes("chart")
                chart.on_point_click(lambda e: self.step(self.state.choose(str(e.data_index + 1))))
            for part in parts:
                if isinstance(part, Chart):
                    ui.echart(chart_options(part, self.say, dark=dark)).classes("chart")
        self.body.content = self._draw(parts)
        if name == "choice":
            ui.run_javascript("offerRows()")
        self.busy.text = self.note

    def _build_members(self, answer: Proposal) -> None:
        state, size = self.state, len(self.desk.subject.names)
        ui.label(self.say(MEMBERS)).classes("hint")
        with ui.element("div").classes("members"):
            for agent, name in enumerate(answer.changed.every):
                with ui.element("div").classes("member").props(f"data-agent={agent}"):
                    ui.label(plain(name)).classes("name")
                    if agent in state.left:
                        _text("Comes back", name, partial(self.step, state.toggle_left(agent)))
                        continue
                    self._build_member(agent, name, answer.changed.every)
                    _text("Leaves", name, partial(self.step, state.toggle_left(agent)))
                    if agent < size:
                        joins = state.put(like=(*state.like, agent))
                        _text("One like it joins", name, partial(self.step, joins))

    def _build_member(self, agent: int, name: str, every: Sequence[str]) -> None:
        state = self.state
        level, other = dict(state.cut).get(agent, 1.0), dict(state.only).get(agent, -1.0)
        levels, others = offer_levels(level), offer_conditions(agent, [plain(n) for n in every])
        self._build_choice("cut", agent, f"what {quote(name)} gives", levels, level)
        self._build_choice("only", agent, f"when {quote(name)} gives", others, other)
        keeps = ui.checkbox("keeps its data", value=agent in dict(state.keep))
        keeps.props(f'dense aria-label="{quote(name)} keeps its data"')
        keeps.on_value_change(
            lambda e: self.step(self.state.put_number("keep", agent, 1.0 if e.value else None))
        )

    def _build_choice(
        self, field: str, agent: int, label: str, values: dict[float, str], now: float
    ) -> None:
        usual = next(iter(values))
        chosen = ui.select(values, value=now if now in values else usual)
        chosen.props(f'dense options-dense outlined aria-label="{label}"')
        chosen.on_value_change(
            lambda e: self.step(
                self.state.put_number(field, agent, None if e.value == usual else e.value)
            )
        )


async def work(task: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a task returns that would keep other visitors waiting."""
    return cast("Result", await run.io_bound(task, *arguments))


def _icon(icon: str, label: str, act: Callable[[], Any] | str) -> ui.button:
    """Return a button that calls a function, or runs JavaScript where that is enough."""
    button = ui.button(icon=icon).props("flat dense round")
    button.on("click", js_handler=act) if isinstance(act, str) else button.on_click(act)
    return button.props(f'aria-label="{label}"').tooltip(label)


def _text(label: str, name: str, act: Callable[[], Any]) -> ui.button:
    button = ui.button(label, on_click=act).props("flat dense no-caps")
    return button.props(f'aria-label="{label}: {quote(name)}"')
