"""The door of the table: the page, its files and ``POST /do`` on the loopback interface, and nothing else.

Before anything else sees a request, its Host, Origin and token are checked: other pages in the same browser, names that are
made to point to this machine, and other users of it get 403.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import socket
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from archie_env.errors import ArchieError
from archie_env.table.files import page_words, static
from archie_env.table.session import Session, Settings
from archie_env.words import LANGUAGES

ADDRESS: Final = "127.0.0.1"
TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
FILES: Final = ("index.html", "table.js", "cards.js", "table.css", "icon.svg")
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_BYTES: Final = 4096
MOST_BYTES_OPEN: Final = 1 << 20
"""A file of hands may be larger than other messages."""
MOST_SITTINGS: Final = 8
IDLE: Final = 1800.0
"""Seconds after which a sitting may be given up for another."""
RATE, BURST = 10.0, 30.0
"""Messages a second that a sitting may send, and at once."""
_KEY: Final = re.compile("[0-9a-f]{32}")


class _RefusedError(ArchieError):
    """A request that is answered with an HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Sitting:
    """A session, its clock and its share of messages."""

    def __init__(self, settings: Settings, now: float) -> None:
        self.session = Session(settings)
        self.lock = threading.Lock()
        self.seen, self._left = now, BURST

    def admit(self, now: float) -> bool:
        """Count a message; False where there were too many."""
        self._left = min(BURST, self._left + RATE * (now - self.seen))
        self.seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Sittings:
    """All sittings by their keys; each message holds up its own sitting alone."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._all: dict[str, _Sitting] = {}

    def _find(self, key: object) -> _Sitting:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise _RefusedError(400, "sitting: expected 32 hexadecimal digits")
        now = self._clock()
        if key not in self._all:
            for other, sitting in list(self._all.items()):
                if now - sitting.seen > IDLE and not sitting.lock.locked():
                    del self._all[other]
            if len(self._all) >= MOST_SITTINGS:
                raise _RefusedError(503, f"{MOST_SITTINGS} sittings are open already: leave one of them")
            self._all[key] = _Sitting(self._settings, now)
        sitting = self._all[key]
        if not sitting.admit(now):
            raise _RefusedError(429, f"too many messages: expected at most {RATE:g} a second")
        return sitting

    async def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """What a sitting answers to a message."""
        key = message.get("sitting")
        sitting = self._find(key)
        if not sitting.lock.acquire(blocking=False):
            raise _RefusedError(409, "one moment: the sitting is busy with an earlier message")
        try:
            answer = await asyncio.shield(run_in_threadpool(_handled, sitting, message))
        finally:
            if message.get("do") == "leave":
                self._all.pop(str(key), None)
        return answer


def _handled(sitting: _Sitting, message: dict[str, Any]) -> dict[str, Any]:
    """Handle the message and give the sitting free, also when nobody waits for the answer any more."""
    try:
        return sitting.session.handle(message)
    finally:
        sitting.lock.release()


class Guard:
    """Checks Host, Origin and token before anything else sees a request."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._token, self._cookie = app, token.encode(), f"archie_{port}"
        self._hosts = (f"{ADDRESS}:{port}", f"localhost:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, set the cookie, or pass the request on."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
        known = len(hosts) == 1 and hosts[0] in self._hosts
        asked = [f"http://{hosts[0]}"] if known else []
        if not known or not (origins == asked or (not origins and request.method == "GET")):
            await _plain(403, "forbidden: open the address that the terminal shows")(scope, receive, send)
            return
        tokens = parse_qs(request.url.query).get("token", [])
        if request.method == "GET" and request.url.path == "/" and len(tokens) == 1 and self._right(tokens[0]):
            entrance = RedirectResponse(_inside(request), 303, HEADERS)
            entrance.set_cookie(self._cookie, self._token.decode(), httponly=True, samesite="strict")
            await entrance(scope, receive, send)
        elif self._right(_cookie(request, self._cookie)):
            await self._app(scope, receive, send)
        else:
            await _plain(403, "forbidden: open the address that the terminal shows")(scope, receive, send)

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)


def _inside(request: Request) -> str:
    """The address without the token, so that the history of the browser doesn't keep it."""
    language = request.query_params.get("lang", "")
    return f"/?lang={language}" if language in LANGUAGES else "/"


def _cookie(request: Request, name: str) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _plain(status: int, text: str) -> Response:
    return Response(text, status, HEADERS, "text/plain")


def _json(status: int, answer: object) -> Response:
    return Response(json.dumps(answer, ensure_ascii=False), status, HEADERS, "application/json")


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


async def _message(request: Request) -> dict[str, Any]:
    """The message of a request, its size checked before it is read."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise _RefusedError(415, "expected application/json")
    told, body = request.headers.get("content-length", ""), bytearray()
    if not re.fullmatch("[0-9]{1,15}", told) or int(told) > MOST_BYTES_OPEN:
        raise _RefusedError(413, f"too long: expected at most {MOST_BYTES_OPEN} bytes")
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES_OPEN:
            raise _RefusedError(413, f"too long: expected at most {MOST_BYTES_OPEN} bytes")
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _RefusedError(400, "message: expected JSON") from None
    if not isinstance(message, dict):
        raise _RefusedError(400, "message: expected an object")
    if len(body) > MOST_BYTES and message.get("do") != "open":
        raise _RefusedError(413, f"too long: expected at most {MOST_BYTES} bytes")
    return message


def make_app(settings: Settings, port: int, token: str, clock: Callable[[], float] = time.monotonic) -> ASGIApp:
    """The table as an ASGI application, for a server that listens on this port."""
    sittings = Sittings(settings, clock)
    files = {f"/{'' if name == 'index.html' else name}": (static(name), TYPES[name.rpartition(".")[2]]) for name in FILES}
    files["/words.json"] = (json.dumps({language: page_words(language) for language in LANGUAGES}), "application/json")

    async def page(request: Request) -> Response:
        text, kind = files[request.url.path]
        return Response(text, 200, HEADERS, kind)

    async def do(request: Request) -> Response:
        try:
            return _json(200, await sittings.answer(await _message(request)))
        except _RefusedError as error:
            return _json(error.status, {"is": "error", "text": str(error)})
        except ArchieError as error:
            return _json(200, {"is": "error", "text": str(error)[:500]})
        except Exception:  # an error of ours: the terminal tells it, the page holds no paths of this machine
            traceback.print_exc()
            return _json(500, {"is": "error", "text": "the table failed: its terminal says more"})

    async def missing(request: Request, error: Exception) -> Response:
        return _plain(404, "not found")

    async def wrong_method(request: Request, error: Exception) -> Response:
        return _plain(405, "not allowed")

    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {404: missing, 405: wrong_method}
    routes = [Route(path, page, methods=["GET"]) for path in files]
    app = Starlette(routes=[*routes, Route("/do", do, methods=["POST"])], exception_handlers=handlers)
    return Guard(app, port, token)


def listen(port: int) -> socket.socket:
    """A listening socket on the loopback interface; port 0 takes a free one."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((ADDRESS, port))
    except OSError as error:
        door.close()
        raise ArchieError(f"port {port}: {error.strerror}: expected a free port") from None
    door.listen(64)
    return door


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A server that says nothing and keeps nothing open longer than a second at its end."""
    return uvicorn.Server(
        uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", server_header=False, timeout_graceful_shutdown=1)
    )


def serve(app: ASGIApp, door: socket.socket) -> None:
    """Answer requests until Ctrl-C."""
    make_server(app).run(sockets=[door])
