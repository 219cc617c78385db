"""Start the app: its page, and the guard before it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from nicegui import app, background_tasks, ui
from nicegui.server import Server
from starlette.requests import Request

from fedaccord.errors import InputError
from fedaccord.explore.desk import Desk, Subject
from fedaccord.explore.page import Visit
from fedaccord.explore.server import Guard
from fedaccord.explore.state import State
from fedaccord.explore.watch import Auditor, Watch

FAVICON = (
    '<svg viewBox="0 0 16 16" xmlns="http://www.w3.org/2000/svg"><circle cx="5" cy="6" r="4" '
    'fill="#0f5662"/><circle cx="11" cy="10" r="4" fill="#d26b00"/></svg>'
)


def serve(
    subject: Subject | Auditor,
    *,
    host: str,
    port: int,
    token: str,
    browser: bool,
    tell: Callable[[], None],
) -> None:
    """Serve the app until it is interrupted.

    subject: what it is opened on: a game, pilots, or a file of runs.
    host, port: where to listen.
    token: the secret in the address.
    browser: whether to open the browser.
    tell: is called when the app can be opened.
    """
    app.add_middleware(Guard, host=host, port=port, token=token)
    build = _watch(subject) if isinstance(subject, Auditor) else _discuss(subject, token)

    async def announce() -> None:
        # The framework starts a moment before the server listens.
        while not Server.instance.started:
            await asyncio.sleep(0.02)
        tell()

    app.on_startup(lambda: background_tasks.create(announce()))

    @ui.page("/", title="fedaccord", response_timeout=30)
    def index(request: Request) -> None:
        try:
            build(State.read(str(request.url.query)), "")
        except InputError as error:
            build(State(), f"{error}")

    ui.run(
        host=host,
        port=port,
        favicon=FAVICON,
        show=f"/?token={token}" if browser else False,
        reload=False,
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=10,
        show_welcome_message=False,
        timeout_graceful_shutdown=1,
    )


def _discuss(subject: Subject, token: str) -> Callable[[State, str], None]:
    desk = Desk(subject)
    # While the browser starts.
    threading.Thread(target=desk.warm_up, daemon=True).start()
    return lambda state, fault: Visit(desk, state, token).build(fault)


def _watch(auditor: Auditor) -> Callable[[State, str], None]:
    # An audit that was started here ends with the app; every finished run is kept.
    app.on_shutdown(auditor.end)
    return lambda state, _: Watch(auditor, state).build()
