"""The server: only this machine, only who has the token, and no page of another site."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

LOCAL = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
# The page's own code is inline, and the framework compiles templates in the browser; nothing may
# come from, or go to, another address.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
REFUSED = b"Refused: open the address that 'fedaccord explore' printed, with its token.\n"


class Guard:
    """Refuses requests, websockets among them, without the token, or from another site.

    app: what is guarded.
    host: where the server listens.
    port: its port.
    token: the secret in the address. Scripts and websockets have it in a cookie, which the page
        sets and no other site's request carries.
    """

    def __init__(self, app: Application, *, host: str, port: int, token: str) -> None:
        self.app, self.host, self.port, self.token = app, host, port, token
        self.cookie = f"fedaccord_{port}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on what may pass."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif self.admits(scope):
            await self.app(scope, receive, self._add_headers(scope, send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            fixed = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": fixed})
            await send({"type": "http.response.body", "body": REFUSED})

    def admits(self, scope: Message) -> bool:
        """Return whether a request names this server, comes from it, and has the token."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host = headers.get("host", "")
        if not self._is_own(host):
            return False
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return False
        known = self._tokens_of(scope, headers)
        return any(secrets.compare_digest(one.encode(), self.token.encode()) for one in known)

    def _is_own(self, host: str) -> bool:
        """Return whether a request is for this server by a name that no other site can have."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self.port:
            return False
        if self.host in EVERYWHERE:
            return name in ("localhost", socket.gethostname().lower()) or _is_address(name)
        return name == self.host.lower() or (name in LOCAL and self.host in LOCAL)

    def _tokens_of(self, scope: Message, headers: MutableMapping[str, str]) -> Iterable[str]:
        """List the tokens that a request has: a page in its address, all else in a cookie."""
        if scope["path"] == "/":
            return parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            found = None
        return [] if found is None else [found.value]

    def _add_headers(self, scope: Message, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                if scope["path"] == "/":
                    kept = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    own += [(b"set-cookie", kept.encode()), (b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        return send_with_headers


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
