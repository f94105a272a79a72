"""The table in a real browser: by keys, by touch, in three languages, at four widths.

The browser is Debian's chromium-headless-shell or what ARCHIE_BROWSER names, and ARCHIE_AXE names the file of axe-core.  Where
they are missing these tests skip; with CI=true they fail.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from archie_env import notation
from archie_env.game import Game
from archie_env.policy import Actions, Masks, Observations, UniformPolicy
from archie_env.rules import PRESETS
from archie_env.table.export import page as exported_page
from archie_env.table.session import Settings
from archie_env.words import LANGUAGES, words
from tests.test_table import Raises, finished, review_of

sync_api = pytest.importorskip("playwright.sync_api")
server = pytest.importorskip("archie_env.table.server")
TOKEN: Final = "secret-of-this-start"
WIDTHS: Final = (320, 390, 900, 1280)
REQUIRED: Final = os.environ.get("CI") == "true"


class Raiser(UniformPolicy):
    """Raises first, then calls; draws two."""

    name = "raiser"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return np.array([6 if masks[0, 3] else 2 if masks[0, 2] and not masks[0, 0] else 1])


def program(variable: str, usual: str) -> Path:
    path = Path(os.environ.get(variable, usual))
    if not path.is_file():
        message = f"{path} is missing: {variable} may name another"
        if REQUIRED:
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(scope="module", name="address")
def _address() -> Iterator[str]:
    """The address of a table that deals seed 5 against players of these tests."""
    players = {"raiser": Raiser, "raises": Raises}
    settings = Settings(
        rules=PRESETS["archie"], players=tuple(players), load=lambda name: players[name](), new_seed=lambda: 5, review=review_of
    )
    with server.listen(0) as door:
        port = door.getsockname()[1]
        running = server.make_server(server.make_app(settings, port, TOKEN))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [door]})
        thread.start()
        yield f"http://127.0.0.1:{port}/?token={TOKEN}&lang=en"
        running.should_exit = True
        thread.join()


@pytest.fixture(scope="module", name="chromium")
def _chromium() -> Iterator[Any]:
    path = program("ARCHIE_BROWSER", "/usr/bin/chromium-headless-shell")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=["--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Visitor:
    """A person at the table in a browser of their own."""

    def __init__(self, chromium: Any, width: int = 900, **options: Any) -> None:
        self.context = chromium.new_context(viewport={"width": width, "height": 844}, reduced_motion="reduce", **options)
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda line: self.wrong.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def enter(self, address: str) -> Any:
        self.page.goto(address)
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def sit(self, opponent: str = "raiser", position: str = "alternate") -> None:
        self.page.select_option("#play select[name=opponent]", opponent)
        self.page.select_option("#play select[name=position]", position)
        self.page.click("#play button[type=submit]")
        self.await_turn()

    def await_turn(self) -> str:
        self.page.wait_for_selector("body[data-state=yours], body[data-state=over]")
        return str(self.page.get_attribute("body", "data-state"))

    def changes(self, do: Any) -> None:
        """Do something, and wait for another position."""
        before = self.page.get_attribute("body", "data-move")
        do()
        self.page.wait_for_selector(f"body:not([data-move='{before}'])")

    def key(self, key: str) -> None:
        self.changes(lambda: self.page.keyboard.press(key))

    def play_by_keys(self) -> None:
        while self.await_turn() == "yours":
            self.key("d" if self.page.locator("#draw").count() else "c")

    def at(self) -> str:
        return str(self.page.get_attribute("body", "data-move"))


@pytest.fixture(name="visit")
def _visit(chromium: Any) -> Iterator[Any]:
    """Makes visitors; at the end none of them has seen an error, or asked for anything from elsewhere."""
    visitors: list[Visitor] = []

    def visit(**options: Any) -> Visitor:
        visitors.append(Visitor(chromium, **options))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        if visitor.page.locator("#leave:visible").count():
            visitor.page.click("#leave")
            visitor.page.wait_for_selector("#lobby:visible")
        visitor.context.close()
    for visitor in visitors:
        assert visitor.wrong == []
        assert [url for url in visitor.asked if not re.match(r"http://127\.0\.0\.1:|file:///", url)] == []


MISPLACED: Final = """() => {
  const wrong = [], shown = (e) => e.getClientRects().length && !e.closest("svg svg, option");
  const name = (e) => `${e.tagName}#${e.id}.${e.getAttribute("class")}`;
  for (const e of document.querySelectorAll("body *")) {
    if (!shown(e) || (e.closest("svg") && e.tagName !== "svg")) continue;
    const box = e.getBoundingClientRect();
    if (box.right > innerWidth + 1 || box.left < -1) wrong.push(`${name(e)} beyond the edge`);
    const boxed = (x) => shown(x) && e.tagName != "svg" && x.className != "unseen" && getComputedStyle(x).display !== "inline";
    const kin = [...e.children].filter(boxed).map((x) => [x, x.getBoundingClientRect()]);
    kin.forEach(([x, a], i) => kin.slice(i + 1).forEach(([y, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 1) wrong.push(`${name(x)} over ${name(y)}`);
    }));
  }
  return wrong;
}"""


def check_looks(page: Any, axe: str, widths: tuple[int, ...] = WIDTHS) -> None:
    """No box leaves the page or lies over another, and axe finds nothing."""
    before = page.viewport_size
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(MISPLACED) == [], width
    page.set_viewport_size(before)
    page.evaluate(axe + ";0")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []


@pytest.fixture(scope="module", name="axe")
def _axe() -> str:
    return program("ARCHIE_AXE", "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def test_a_whole_hand_by_keys(visit: Any, address: str, axe: str) -> None:
    visitor = visit()
    page = visitor.enter(address)
    check_looks(page, axe)
    visitor.sit()
    check_looks(page, axe)
    seen_draw = False
    while visitor.await_turn() == "yours":
        if page.locator("#draw").count() and not seen_draw:
            page.keyboard.press("1")
            page.keyboard.press("5")
            assert page.inner_text("#draw") == "Draw 2"
            assert page.locator("#hand-bottom [aria-pressed=true]").count() == 2
            check_looks(page, axe)
            page.keyboard.press("5")
            seen_draw = True
            visitor.key("d")
            assert "drew 1" in page.inner_text("#facts-bottom")
        elif page.locator("#draw").count():
            visitor.key("d")
        else:
            visitor.key("c")
    assert seen_draw
    check_looks(page, axe)
    assert page.locator("#hand-top [aria-label='face down']").count() == 0
    visitor.key("d")
    assert visitor.at().startswith("2.")


def test_a_whole_hand_by_touch(visit: Any, address: str) -> None:
    visitor = visit(width=390, has_touch=True, is_mobile=True)
    page = visitor.enter(address)
    page.select_option("#play select[name=opponent]", "raiser")
    page.tap("#play button[type=submit]")
    while visitor.await_turn() == "yours":
        if page.locator("#draw").count():
            page.locator("#hand-bottom button").nth(2).tap()
            visitor.changes(lambda: page.tap("#draw"))
        else:
            visitor.changes(lambda: page.tap("#choices [data-action='1']"))
    assert "drew 1, 1, 1" in page.inner_text("#facts-bottom")
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('#choices button')].map((b) => b.getBoundingClientRect().height))"
    )
    assert smallest >= 44


def test_a_reload_in_mid_hand_goes_on_and_hidden_cards_are_not_in_the_page(visit: Any, address: str) -> None:
    visitor = visit()
    page = visitor.enter(address)
    visitor.sit()
    visitor.key("c")
    visitor.await_turn()
    before = visitor.at(), page.inner_text("#value-bottom"), page.inner_text("#pot")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert visitor.await_turn() == "yours"
    assert (visitor.at(), page.inner_text("#value-bottom"), page.inner_text("#pot")) == before
    assert page.locator("#hand-top [aria-label='face down']").count() == 5
    assert page.locator("#hand-top svg text").count() == 0
    visitor.play_by_keys()


def test_two_sittings_do_not_touch_each_other(visit: Any, address: str) -> None:
    first, second = visit(), visit()
    first.enter(address)
    second.enter(address)
    first.sit(position="dealer")
    assert second.page.get_attribute("body", "data-state") == "lobby"
    second.sit(position="big_blind")
    first.key("c")
    assert second.page.inner_text("#facts-bottom").startswith("big blind")
    assert first.page.inner_text("#facts-bottom").startswith("dealer")


def test_two_players_are_watched_step_by_step(visit: Any, address: str, axe: str) -> None:
    visitor = visit()
    page = visitor.enter(address)
    page.click("#watch button")
    page.wait_for_selector("body[data-state=tape]")
    assert page.locator("[aria-label='face down']").count() == 0
    page.keyboard.press("o")
    assert page.locator("[aria-label='face down']").count() == 10
    page.keyboard.press("o")
    for _ in range(4):
        visitor.key("ArrowRight")
    check_looks(page, axe)
    visitor.key("ArrowLeft")
    assert visitor.at() == "1.3"
    name = page.inner_text("#name-bottom")
    page.keyboard.press("v")
    assert page.inner_text("#name-top") == name
    page.locator("#tape input[type=range]").fill("8")
    page.click("[data-key=run]")
    page.wait_for_selector("body[data-move^='2.']")  # plays on by itself, into the next hand
    page.keyboard.press("p")
    page.wait_for_selector("[data-key=run]")


def test_a_file_is_replayed_with_the_others_cards_closed(visit: Any, address: str, axe: str) -> None:
    visitor = visit()
    page = visitor.enter(address)
    games = [finished(3), finished(4), finished(6)]
    text = "\n".join(map(notation.dump, games))
    page.set_input_files("#open input", {"name": "hands.txt", "mimeType": "text/plain", "buffer": text.encode()})
    page.wait_for_selector("body[data-state=tape]")
    assert page.locator("#hand-top [aria-label='face down']").count() == 5
    assert page.locator("#hand-bottom [aria-label='face down']").count() == 0
    page.keyboard.press("v")
    assert page.inner_text("#name-bottom") == "player_1"
    page.keyboard.press("o")
    assert page.locator("[aria-label='face down']").count() == 0
    check_looks(page, axe)
    visitor.key("]")
    for _ in range(3):
        visitor.key("ArrowRight")
    assert page.url.endswith("#hand=2&move=3")
    visitor.changes(lambda: page.evaluate("location.hash = '#hand=3&move=2'"))
    assert visitor.at() == "3.2"
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert visitor.at() == "3.2"
    visitor.key("End")
    assert page.inner_text("#outcome")
    page.set_input_files("#open input", {"name": "bad.txt", "mimeType": "text/plain", "buffer": b"Archie hand history 9"})
    page.wait_for_selector("#error:not(:empty)")
    assert visitor.at().startswith("3.")


def test_a_review_is_shown_after_the_hand_and_leads_to_its_positions(visit: Any, address: str, axe: str) -> None:
    visitor = visit()
    page = visitor.enter(address)
    visitor.sit()
    visitor.play_by_keys()
    page.keyboard.press("w")
    page.wait_for_selector("#decisions li")
    check_looks(page, axe)
    assert "made up" in page.inner_text("#verdict")
    visitor.changes(lambda: page.locator("#decisions button").nth(1).click())
    assert page.locator("#decisions li.here").count() == 1
    page.keyboard.press("t")
    page.wait_for_selector("body[data-state=over]")


def test_a_player_that_fails_is_named_and_the_table_goes_on(visit: Any, address: str) -> None:
    visitor = visit()
    page = visitor.enter(address)
    visitor.sit("raises", "dealer")
    visitor.key("c")
    page.wait_for_selector("body[data-state=over]")
    assert "out of cards" in page.inner_text("#error")
    visitor.key("d")
    assert visitor.await_turn() == "yours"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_state_speaks_every_language(visit: Any, address: str, axe: str, language: str) -> None:
    visitor = visit(width=390)
    page = visitor.enter(address.replace("lang=en", f"lang={language}"))
    spoken = words(language)
    assert page.inner_text("#play h2") == spoken.say("table.play")
    check_looks(page, axe, (320, 900))
    visitor.sit()
    check_looks(page, axe, (320, 900))
    assert page.inner_text("#phase") == spoken.say("terminal.betting", n=1, of=4)
    visitor.play_by_keys()
    page.keyboard.press("w")
    page.wait_for_selector("#decisions li")
    check_looks(page, axe, (320, 900))
    other = "pt" if language == "en" else "en"
    page.select_option("#language", other)
    page.wait_for_selector(f"html[lang={other}]")
    page.wait_for_selector(f"#review-title:text-is('{words(other).say('table.review')}')")
    page.wait_for_selector("#decisions li")


def test_an_exported_file_opens_from_the_disk_and_asks_for_nothing(visit: Any, axe: str, tmp_path: Path) -> None:
    game: Game = finished(3)
    file = tmp_path / "hands.html"
    text = exported_page([game, finished(4)], reviews=[[review_of(game, 0)], []], language="pt", title="Mãos <1>")
    file.write_text(text, encoding="utf-8")
    visitor = visit()
    page = visitor.enter(f"{file.as_uri()}#hand=2&move=1")
    assert visitor.at() == "2.1"
    assert page.title() == "Mãos <1>"
    assert page.locator("#hand-top [aria-label='fechada']").count() == 5
    visitor.key("[")
    page.keyboard.press("w")
    page.wait_for_selector("#decisions li")
    check_looks(page, axe)
    visitor.key("End")
    page.keyboard.press("o")
    assert all(str(abs(net)) in page.inner_text("#outcome") for net in game.result.net)
    assert len(visitor.asked) == 1
