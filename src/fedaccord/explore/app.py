"""Start the app: routes, the guard before them, and the browser."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from nicegui import app, ui
from starlette.requests import Request

from fedaccord.errors import InputError
from fedaccord.explore.answer import Desk
from fedaccord.explore.page import Visit
from fedaccord.explore.server import Guard, choose_port, write_address
from fedaccord.explore.state import State
from fedaccord.explore.subject import Subject


def serve(
    subject: Subject,
    *,
    host: str,
    port: int | None,
    token: str | None,
    browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve the app until it is interrupted.

    subject: what it is opened on.
    host, port: where to listen; None for the usual port, or a free one.
    token: the secret in the address; None for a new one.
    browser: whether to open the browser.
    tell: is told the address.
    """
    port = choose_port(host, port)
    token = token or secrets.token_urlsafe(16)
    desk = Desk(subject)
    app.add_middleware(Guard, host=host, port=port, token=token)  # type: ignore[arg-type]

    @ui.page("/", title=subject.title or "fedaccord", response_timeout=30)
    def index(request: Request) -> None:
        try:
            state, fault = State.read(str(request.url.query)), ""
        except InputError as error:
            state, fault = State(), f"{error}"
        Visit(desk, state, token).build(fault)

    # The first plan is on its way before the browser is there.
    threading.Thread(target=_warm, args=(desk,), daemon=True).start()
    address = write_address(host, port, token)
    app.on_startup(lambda: tell(address))
    ui.run(
        host=host,
        port=port,
        title="fedaccord",
        favicon=FAVICON,
        show=f"/?token={token}" if browser else False,
        reload=False,
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=10,
        show_welcome_message=False,
    )


FAVICON = (
    '<svg viewBox="0 0 16 16" xmlns="http://www.w3.org/2000/svg"><circle cx="5" cy="6" r="4" '
    'fill="#0f5662"/><circle cx="11" cy="10" r="4" fill="#d26b00"/></svg>'
)


def _warm(desk: Desk) -> None:
    from fedaccord.errors import FedaccordError

    try:
        desk.answer(State())
    except FedaccordError:
        # The page says so.
        return
