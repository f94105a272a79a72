"""What the table refuses: other hosts, other pages, other users, and messages that are too many, too long or malformed."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

from archie_env.errors import ArchieError
from archie_env.policy import Actions, Masks, Observations, UniformPolicy
from archie_env.rules import PRESETS
from archie_env.table.session import Settings
from archie_env.terminal.main import main

httpx = pytest.importorskip("httpx")
server = pytest.importorskip("archie_env.table.server")
PORT: Final = 8765
TOKEN: Final = "secret-of-this-start"
HERE: Final = f"http://127.0.0.1:{PORT}"
SITTING: Final = "0" * 32


class Gate(UniformPolicy):
    """Waits until it is let go on."""

    name = "gate"
    reached, opened = threading.Event(), threading.Event()

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.reached.set()
        self.opened.wait(20)
        return super().act(observations, masks, rng)


class Browser:
    """A client of the application: sends a request as it is told, without a network."""

    def __init__(self) -> None:
        self.now = 0.0
        players = {"uniform": UniformPolicy, "gate": Gate}
        settings = Settings(
            rules=PRESETS["archie"], players=tuple(players), load=lambda name: players[name](), new_seed=lambda: 5
        )
        self._app = server.make_app(settings, PORT, TOKEN, lambda: self.now)
        self.headers = {"Host": f"127.0.0.1:{PORT}", "Cookie": f"archie_{PORT}={TOKEN}"}

    def send(self, method: str, path: str, content: bytes = b"", **headers: Any) -> Any:
        """The answer; a header given as None is left out."""
        sent = self.headers | ({"Origin": HERE, "Content-Type": "application/json"} if method == "POST" else {})
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {name: value for name, value in sent.items() if value is not None}

        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
                return await client.request(method, path, content=content or None, headers=kept)

        return asyncio.run(ask())

    def get(self, path: str, **headers: Any) -> Any:
        return self.send("GET", path, b"", **headers)

    def do(self, message: object, **headers: Any) -> Any:
        if isinstance(message, dict):
            message = {"sitting": SITTING} | message
        return self.send("POST", "/do", json.dumps(message).encode(), **headers)


@pytest.fixture(name="browser")
def _browser() -> Browser:
    return Browser()


# ---- who may ask


def test_the_secret_is_exchanged_once_for_a_cookie_that_scripts_and_other_pages_do_not_get(browser: Browser) -> None:
    entered = browser.get(f"/?token={TOKEN}", Cookie=None)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"archie_{PORT}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("cookie", [None, "", f"archie_{PORT}=wrong", f"archie_1={TOKEN}", f"archie_{PORT}=\u00e9", ";;=;"])
def test_nobody_enters_without_the_secret(browser: Browser, cookie: str | None) -> None:
    encoded = cookie if cookie is None else cookie.encode("latin-1").decode("latin-1")
    headers: dict[str, Any] = {"Cookie": encoded if encoded is None or encoded.isascii() else encoded.encode("latin-1")}
    assert browser.get("/", **headers).status_code == 403
    assert browser.get("/table.js", **headers).status_code == 403
    assert browser.do({"do": "look"}, **headers).status_code == 403


@pytest.mark.parametrize("query", ["token=wrong", "token=", f"token={TOKEN}&token={TOKEN}", f"token={TOKEN}x", "token=%ff"])
def test_wrong_secrets_are_refused(browser: Browser, query: str) -> None:
    assert browser.get(f"/?{query}", Cookie=None).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1.evil.example:{PORT}"]
)
def test_other_names_of_this_machine_are_refused(browser: Browser, host: str) -> None:
    assert browser.get("/", Host=host).status_code == 403
    assert browser.get(f"/?token={TOKEN}", Host=host, Cookie=None).status_code == 403
    assert browser.do({"do": "look"}, Host=host, Origin=f"http://{host}").status_code == 403


def test_localhost_is_this_machine(browser: Browser) -> None:
    assert browser.do({"do": "look"}, Host=f"localhost:{PORT}", Origin=f"http://localhost:{PORT}").status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", f"https://127.0.0.1:{PORT}", f"http://localhost:{PORT}", "http://127.0.0.1"]
)
def test_other_pages_are_refused(browser: Browser, origin: str) -> None:
    assert browser.do({"do": "look"}, Origin=origin).status_code == 403
    assert browser.get("/table.js", Origin=origin).status_code == 403


def test_a_post_needs_an_origin_and_the_type_that_forms_cannot_send(browser: Browser) -> None:
    assert browser.do({"do": "look"}, Origin=None).status_code == 403
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert browser.do({"do": "look"}, Content_Type=kind).status_code == 415


# ---- what is sent


def test_every_answer_forbids_frames_foreign_scripts_and_keeping(browser: Browser) -> None:
    answers = [browser.get(path) for path in ("/", "/table.js", "/words.json", "/nothing")]
    answers += [browser.get("/", Cookie=None), browser.do({"do": "look"}), browser.do([]), browser.get(f"/?token={TOKEN}")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_the_page_has_no_inline_script_style_or_foreign_address(browser: Browser) -> None:
    text = browser.get("/").text
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|https?:", text)
    code = browser.get("/table.js").text + browser.get("/cards.js").text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", code)
    assert set(re.findall(r"https?://[^\"']*", code)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize(
    "path",
    [
        "/../session.py",
        "/%2e%2e/session.py",
        "/static/../server.py",
        "//etc/passwd",
        "/table.js/..%2f..%2fserver.py",
        "/session.py",
        "/static/table.js",
    ],
)
def test_no_path_leads_to_the_disk(browser: Browser, path: str) -> None:
    assert browser.get(path).status_code == 404


def test_methods_and_addresses_are_the_known_ones(browser: Browser) -> None:
    assert browser.get("/do").status_code == 405
    assert browser.send("POST", "/table.js", b"{}").status_code == 405
    assert browser.send("PUT", "/do", b"{}", Origin=HERE).status_code == 405


# ---- messages

MALFORMED: Final = [
    b"",
    b"{",
    b"\xff\xfe",
    b"nothing",
    b'{"do": NaN}',
    b"[" * 2000 + b"]" * 2000,
    b'{"do":' * 600 + b"1" + b"}" * 600,
    b"1" * 4096,
    b"null",
    b'"look"',
    b"[]",
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: body[:12].decode("latin-1"))
def test_malformed_messages_are_refused(browser: Browser, body: bytes) -> None:
    answer = browser.send("POST", "/do", body)
    assert answer.status_code in (400, 413)
    assert answer.json()["is"] == "error"
    assert browser.do({"do": "look"}).status_code == 200


def test_long_messages_are_refused_and_only_files_of_hands_may_be_longer(browser: Browser) -> None:
    assert browser.do({"do": "look", "more": "x" * 5000}).status_code == 413
    opened = browser.do({"do": "open", "text": "x" * 100_000})
    assert (opened.status_code, opened.json()["is"]) == (200, "error")
    assert browser.send("POST", "/do", b'{"do": "open", "text": "' + b"x" * 10_000_000).status_code == 413


def test_a_body_longer_than_it_says_is_cut_off(browser: Browser) -> None:
    assert browser.send("POST", "/do", b" " * (server.MOST_BYTES_OPEN + 1), Content_Length="5").status_code == 413
    assert browser.send("POST", "/do", b"{}", Content_Length="-1").status_code == 413
    assert browser.send("POST", "/do", b"{}", Content_Length="9" * 5000).status_code == 413


@pytest.mark.parametrize("key", [None, 5, True, "", "0" * 31, "0" * 33, "../" * 10 + "00", "G" * 32, ["0" * 32]])
def test_keys_of_sittings_are_digits(browser: Browser, key: object) -> None:
    assert browser.do({"do": "look", "sitting": key}).status_code == 400


def test_names_from_the_page_load_nothing(browser: Browser) -> None:
    for name in ("bot:./program", "ppo:/etc/passwd", "os:system", "agents:champion", "../uniform"):
        answer = browser.do({"do": "play", "opponent": name})
        assert answer.json() == {
            "is": "error",
            "text": "opponent: expected one of the players that the program was started with",
        }


# ---- many


def test_too_many_messages_are_refused_until_time_has_passed(browser: Browser) -> None:
    answers = [browser.do({"do": "look"}).status_code for _ in range(33)]
    assert answers == [200] * 30 + [429] * 3
    browser.now += 1
    assert [browser.do({"do": "look"}).status_code for _ in range(12)] == [200] * 10 + [429] * 2
    assert browser.do({"do": "look", "sitting": "1" * 32}).status_code == 200


def test_a_ninth_sitting_is_refused_until_one_is_left_or_idle(browser: Browser) -> None:
    for key in "01234567":
        assert browser.do({"do": "look", "sitting": key * 32}).status_code == 200
    assert browser.do({"do": "look", "sitting": "8" * 32}).status_code == 503
    browser.do({"do": "leave", "sitting": "3" * 32})
    assert browser.do({"do": "look", "sitting": "8" * 32}).status_code == 200
    assert browser.do({"do": "look", "sitting": "9" * 32}).status_code == 503
    browser.now += server.IDLE + 1
    assert browser.do({"do": "look", "sitting": "9" * 32}).status_code == 200


def test_sittings_do_not_see_each_other(browser: Browser) -> None:
    first = browser.do({"do": "play", "opponent": "uniform", "sitting": "1" * 32}).json()
    assert browser.do({"do": "look", "sitting": "2" * 32}).json()["mode"] == "lobby"
    assert browser.do({"do": "replay", "hand": 0, "sitting": "2" * 32}).json()["is"] == "error"
    assert browser.do({"do": "look", "sitting": "1" * 32}).json()["frames"] == first["frames"][-1:]


def test_a_player_that_thinks_holds_up_only_its_own_sitting(browser: Browser) -> None:
    answers: list[Any] = []
    begin = {"do": "play", "opponent": "gate", "position": "big_blind"}
    thread = threading.Thread(target=lambda: answers.append(browser.do(begin)))
    thread.start()
    try:
        assert Gate.reached.wait(20)
        assert browser.do({"do": "look"}).status_code == 409
        assert browser.do({"do": "play", "opponent": "uniform", "sitting": "1" * 32}).json()["is"] == "table"
    finally:
        Gate.opened.set()
        thread.join()
    assert answers[0].json()["is"] == "table"
    assert browser.do({"do": "look"}).status_code == 200


def test_an_error_of_the_table_tells_the_page_no_paths(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("in /home/somebody/table.py")

    monkeypatch.setattr("archie_env.table.session.frame", fail)
    answer = browser.do({"do": "play", "opponent": "uniform"})
    assert (answer.status_code, answer.json()["text"]) == (500, "the table failed: its terminal says more")
    assert "/home/somebody" in capsys.readouterr().err
    monkeypatch.undo()
    assert browser.do({"do": "look"}).status_code == 200


# ---- the door


@pytest.fixture(name="door")
def _door() -> Iterator[socket.socket]:
    with server.listen(0) as door:
        yield door


def test_it_listens_on_the_loopback_interface_only(door: socket.socket) -> None:
    assert door.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ArchieError, match=r"port \d+: Address already in use: expected a free port"):
        server.listen(door.getsockname()[1])


def test_the_command_has_no_option_for_another_address(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--host", "--bind", "--address"):
        with pytest.raises(SystemExit):
            main(["table", option, "0.0.0.0"])
    capsys.readouterr()
