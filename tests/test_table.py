"""The table without a browser: sittings, what leaves them, faults of players, and exported pages."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archie_env import notation
from archie_env.errors import ArchieError, NotationError
from archie_env.game import Game
from archie_env.policy import Actions, Masks, Observations, Policy, UniformPolicy
from archie_env.rules import PRESETS
from archie_env.table.export import page
from archie_env.table.frames import reviewed
from archie_env.table.session import MessageError, Session, Settings
from archie_env.terminal.main import main, opponent
from archie_env.terminal.table import offered, reviewer
from archie_env.words import LANGUAGES, words


class Caller(UniformPolicy):
    """Checks, calls and stands pat."""

    name = "caller"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return np.where(masks[:, 1] == 1, 1, 3).astype(np.int64)


class Raises(Caller):
    name = "raises"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        raise RuntimeError("out of cards")


class Illegal(Caller):
    name = "illegal"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return np.full(len(masks), 34, np.int64)


class Hangs(Caller):
    name = "hangs"
    never = threading.Event()

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.never.wait()
        return super().act(observations, masks, rng)


PLAYERS = {policy.name: policy for policy in (UniformPolicy, Caller, Raises, Illegal, Hangs)}


def load(name: str) -> Policy:
    return PLAYERS[name]()


def settings(**changes: Any) -> Settings:
    plain = Settings(rules=PRESETS["archie"], players=tuple(PLAYERS), load=load, new_seed=lambda: 5)
    return replace(plain, **changes)


def decide(session: Session, reply: dict[str, Any], action: int | None = None) -> dict[str, Any]:
    """Play an action at the present position: by default check or call, or stand pat."""
    last = reply["frames"][-1]
    chosen = (1 if last["choices"] else 3) if action is None else action
    return session.handle({"do": "act", "hand": reply["hand"], "move": last["move"], "action": chosen})


def play_hand(session: Session, reply: dict[str, Any]) -> dict[str, Any]:
    while reply["frames"][-1]["result"] is None:
        reply = decide(session, reply)
    return reply


def begun(opponent: str = "caller", **message: Any) -> tuple[Session, dict[str, Any]]:
    session = Session(settings())
    return session, session.handle({"do": "play", "opponent": opponent, **message})


# ---- sittings


def test_a_sitting_counts_chips_over_hands_and_keeps_them_for_replay() -> None:
    session, reply = begun()
    total = 0
    for _ in range(5):
        reply = play_hand(session, reply)
        total += reply["frames"][-1]["result"]["net"][0]
        assert reply["total"] == total
        reply = session.handle({"do": "deal"})
    told = session.handle({"do": "replay", "hand": 2})
    assert told["hands"] == 6
    assert [frame["move"] for frame in told["frames"]] == list(range(len(told["frames"])))


def test_positions_are_those_asked_for() -> None:
    for position, dealers in (("dealer", {0}), ("big_blind", {1}), ("alternate", {0, 1})):
        session, reply = begun(position=position)
        seen = set()
        for _ in range(4):
            seen.add(reply["frames"][0]["dealer"])
            play_hand(session, reply)
            reply = session.handle({"do": "deal"})
        assert seen == dealers


def test_a_sitting_with_stacks_ends_when_a_player_cannot_cover_a_hand() -> None:
    session, reply = begun(stack=50)
    for _ in range(200):
        reply = play_hand(session, reply)
        assert sum(reply["stacks"]) == 100
        if reply["ended"]:
            break
        reply = session.handle({"do": "deal"})
    assert min(reply["stacks"]) < 48
    assert "can't cover the 48 chips" in reply["notice"]
    with pytest.raises(MessageError, match="the sitting is over"):
        session.handle({"do": "deal"})


def test_after_a_reload_the_sitting_is_where_it_was() -> None:
    session, reply = begun()
    reply = decide(session, reply)
    again = session.handle({"do": "look"})
    assert again["frames"] == reply["frames"][-1:]


def test_watching_plays_one_action_a_message_and_hands_are_dealt_on() -> None:
    session = Session(settings())
    reply = session.handle({"do": "watch", "first": "caller", "second": "uniform"})
    assert reply["frames"][0]["names"] == ["caller", "uniform"]
    for _ in range(60):
        last = reply["frames"][-1]
        if last["result"]:
            reply = session.handle({"do": "deal"})
            break
        assert last["choices"] == last["discards"] == []
        reply = session.handle({"do": "next", "hand": reply["hand"], "move": last["move"]})
        assert reply["frames"][-1]["move"] == last["move"] + 1
    assert reply["hand"] == 1


def test_sentences_come_in_the_language_of_the_message() -> None:
    session, _ = begun()
    told = {language: session.handle({"do": "look", "lang": language})["frames"][0]["phase"] for language in LANGUAGES}
    assert told == {"en": "betting round 1 of 4", "pt": "ronda de apostas 1 de 4", "es": "ronda de apuestas 1 de 4"}


@pytest.mark.parametrize("form", [notation.dump, notation.to_phh])
def test_files_of_hands_are_opened_and_replayed(form: Any) -> None:
    game = finished(3)
    session = Session(settings())
    told = session.handle({"do": "open", "text": form(game)})
    assert told["frames"][-1]["result"]["net"] == list(game.result.net)
    assert None not in told["frames"][0]["hands"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no history",
        "Archie hand history 1\n",
        "[" * 2000,
        notation.dump(Game(seed=1)).replace("deck ", "deck 1x"),
        re.sub(r"player_0 is dealt \S+ \S+", "player_0 is dealt As As", notation.dump(Game(seed=1))),
        'variant = "NT"\nactions = []\n',
    ],
)
def test_impossible_files_are_refused_and_the_sitting_goes_on(text: str) -> None:
    session, reply = begun()
    with pytest.raises(ArchieError):
        session.handle({"do": "open", "text": text})
    assert session.handle({"do": "look"})["frames"] == reply["frames"][-1:]


BAD: list[object] = [
    None,
    [],
    "deal",
    {},
    {"do": ["deal"]},
    {"do": "deal"},
    {"do": "next", "hand": 0, "move": 0},
    {"do": "act"},
    {"do": "act", "hand": 0, "move": 0, "action": True},
    {"do": "act", "hand": 0, "move": 0, "action": 1.0},
    {"do": "act", "hand": 0, "move": 0, "action": "1"},
    {"do": "act", "hand": 0, "move": 0, "action": -1},
    {"do": "act", "hand": 0, "move": 0, "action": 10**30},
    {"do": "act", "hand": 0, "move": 0, "action": 3},
    {"do": "act", "hand": False, "move": 0, "action": 1},
    {"do": "act", "hand": 0, "move": 1, "action": 1},
    {"do": "act", "hand": 1, "move": 0, "action": 1},
    {"do": "replay", "hand": -1},
    {"do": "replay", "hand": 1},
    {"do": "review", "hand": 0},
    {"do": "review", "hand": 0, "seat": 1},
    {"do": "play", "opponent": "bot:./program"},
    {"do": "play", "opponent": "ppo:/etc/passwd"},
    {"do": "play", "opponent": ["caller"]},
    {"do": "play", "opponent": "caller", "stack": 47},
    {"do": "play", "opponent": "caller", "stack": True},
    {"do": "play", "opponent": "caller", "position": "both"},
    {"do": "watch", "first": "caller"},
    {"do": "open", "text": 5},
    {"do": "look", "lang": "de"},
    {"do": "look", "lang": {}},
]


@pytest.mark.parametrize("message", BAD, ids=str)
def test_what_is_refused_plays_nothing(message: object) -> None:
    session, reply = begun(position="dealer")
    with pytest.raises(MessageError):
        session.handle(message)
    assert session.handle({"do": "look"})["frames"] == reply["frames"][-1:]


def test_a_double_click_lands_once() -> None:
    session, reply = begun(position="dealer")
    decide(session, reply)
    with pytest.raises(MessageError, match="that position is past"):
        decide(session, reply)


# ---- players that fail


@pytest.mark.parametrize(
    ("name", "words_of_fault"),
    [
        ("raises", "RuntimeError: out of cards"),
        ("illegal", "action 34 is not legal here"),
        ("hangs", "no answer within 0.05 s"),
    ],
)
def test_a_player_that_fails_loses_the_hand_and_the_table_goes_on(name: str, words_of_fault: str) -> None:
    session = Session(settings(seconds=0.05 if name == "hangs" else 30.0))
    reply = session.handle({"do": "play", "opponent": name, "position": "big_blind"})
    assert words_of_fault in reply["notice"]
    assert str(Path(__file__).parent) not in reply["notice"]
    assert reply["frames"][-1]["result"]["net"] == [1, -1]
    reply = session.handle({"do": "deal"})
    assert reply["total"] == 2


# ---- reviews


def review_of(game: Game, seat: int) -> dict[str, Any]:
    """A review in the agreed form, its numbers made up."""
    decisions = []
    for at, event in enumerate(game.history):
        if event.seat == seat and event.kind in ("bet", "draw"):
            number = {"effective": 400.0, "equity": 0.5, "kind": event.kind, "move": at, "round": event.round + 1}
            first = {"probability": 1.0, "value": 1.0, "loss": 0.0, "error": 0.0, "verdict": "best", "played": True}
            decisions.append(number | {"actions": [first | {"action": event.action}]})
    return {"reviewer": "made up", "seat": seat, "decisions": decisions, "given_up": 0.0, "given_up_error": 0.0, "luck": -1.0}


def test_a_review_is_refused_before_the_end_and_of_the_other_seat_and_names_each_action() -> None:
    session = Session(settings(review=review_of))
    reply = session.handle({"do": "play", "opponent": "caller", "position": "dealer"})
    with pytest.raises(MessageError, match="the hand is not over"):
        session.handle({"do": "review", "hand": 0})
    play_hand(session, reply)
    with pytest.raises(MessageError, match="not yours to see"):
        session.handle({"do": "review", "hand": 0, "seat": 1})
    told = session.handle({"do": "review", "hand": 0, "lang": "pt"})["review"]["decisions"]
    assert [decision["actions"][0]["text"] for decision in told][:2] == ["igualar 1", "conservar todas"]
    assert [decision["title"] for decision in told][:2] == ["Ronda 1", "Troca 1"]
    assert [decision["at"] for decision in told][:2] == [0, 3]


# ---- nothing hidden leaves


def swapped(game: Game, rng: np.random.Generator) -> Game:
    """The same hand for seat 0 with other cards for seat 1: its own and all its replacements are other ones."""
    order = list(game.deck)
    size = game.rules.hand_size
    first = 0 if game.dealer == 1 else 1  # the big blind gets the first card
    mine = set(order[first : 2 * size : 2])
    length = game.rules.draws * size
    future = order[2 * size :]
    own = future[:length] if game.dealer == 1 else future[length : 2 * length]
    free = [card for card in order if card not in mine and card not in own]
    rng.shuffle(free)
    shuffled = iter(free)
    kept = mine | set(own)
    return Game(
        game.rules,
        dealer=game.dealer,
        deck=[card if card in kept else next(shuffled) for card in order],
        replacements="per_seat",
    )


class Scripted(Caller):
    """Plays what it drew from its generator, whatever its cards: the same under other cards."""

    name = "scripted"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        if masks[0, 3]:
            return np.array([3 + rng.integers(32)])
        return np.array([rng.choice([0, 1, 1, 1, 2]) if masks[0].tolist()[:3] == [1, 1, 1] else 1])


def everything_sent(monkeypatch: pytest.MonkeyPatch, game: Game, seed: int) -> tuple[str, Game]:
    """All replies of a sitting in which the person's actions depend on the seed alone, up to the last before a showdown."""
    monkeypatch.setattr("archie_env.table.session.Game", lambda *args, **options: game)
    session = Session(settings(players=("scripted",), load=lambda name: Scripted(), new_seed=lambda: seed, review=review_of))
    rng = np.random.default_rng(seed)
    sent = [session.handle({"do": "play", "opponent": "scripted"})]
    while not game.over:
        last = sent[-1]["frames"][-1]
        legal = [number for number, _ in last["choices"]] + last["discards"]
        sent.append(decide(session, sent[-1], int(rng.choice([action for action in legal if action] or legal))))
    folded = game.result.folded is not None
    if folded:
        sent.append(session.handle({"do": "replay", "hand": 0}))
        sent.append(session.handle({"do": "review", "hand": 0}))
        sent.append(session.handle({"do": "look"}))
    frames = [frame for reply in sent for frame in reply.pop("frames", [])]
    return json.dumps([sent if folded else None, [f for f in frames if not (f["result"] and f["result"]["shown"])]]), game


def test_every_byte_sent_is_equal_under_decks_that_differ_in_the_others_hidden_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    folds = showdowns = 0
    for seed in range(60):
        one = Game(seed=seed, replacements="per_seat")
        two = swapped(one, rng)
        first, game = everything_sent(monkeypatch, one, seed)
        second, other = everything_sent(monkeypatch, two, seed)
        assert game.hands[1] != other.hands[1]
        assert game.hands[0] == other.hands[0]
        assert first == second
        folds += game.result.folded == 1
        showdowns += game.result.folded is None
    assert folds > 5
    assert showdowns > 5


def test_open_cards_are_shown_only_where_the_program_was_started_so() -> None:
    hidden = Session(settings()).handle({"do": "play", "opponent": "caller"})
    shown = Session(settings(open_cards=True)).handle({"do": "play", "opponent": "caller"})
    assert hidden["frames"][0]["hands"][1] is None
    assert len(shown["frames"][0]["hands"][1]) == 5


# ---- exported pages


def finished(seed: int) -> Game:
    game = Game(seed=seed)
    while not game.over:
        game.apply(game.legal_actions()[1 if not game.drawing and len(game.legal_actions()) > 1 else 0])
    return game


@pytest.fixture(name="exported")
def _exported() -> str:
    game = finished(3)
    return page(
        [game, finished(4)],
        reviews=[[review_of(game, 0)], []],
        language="es",
        title="</title><script>",
        names=[("</script>", "b")] * 2,
    )


def test_an_exported_page_holds_its_hands_and_asks_for_nothing(exported: str) -> None:
    data = re.search('<script type="application/json" id="data">(.*?)</script>', exported, re.S)
    assert data is not None
    told = json.loads(data[1])
    assert [len(hand["reviews"]) for hand in told["hands"]] == [1, 0]
    assert told["hands"][0]["frames"][0]["names"][0] == "</script>"
    assert told["words"] == {key: text for key, text in words("es").catalogue().items() if key in told["words"]}
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in exported
    assert not re.search(r"""(?:src|href)=|@import|url\(""", re.sub(r"(?s)<script.*?</script>", "", exported))


def test_pages_of_nothing_or_with_too_few_reviews_are_refused() -> None:
    with pytest.raises(ArchieError, match="expected at least one hand"):
        page([])
    with pytest.raises(ArchieError, match="reviews: 0, expected one for each of the 1 hands"):
        page([finished(1)], reviews=[])


def test_reviewed_tells_discards_by_their_cards() -> None:
    game = Game(seed=3)
    game.apply(1)
    game.apply(1)
    seat = game.to_act
    assert seat is not None
    hand = game.hands[seat]
    game.apply(3 + 0b11)
    told = reviewed(game, review_of(game, seat), words("en"))["decisions"][-1]["actions"][0]["text"]
    assert told == "discard " + " ".join(notation.to_data(game)["events"][-1]["cards"])
    assert len(hand) == 5


# ---- the command


def test_the_command_refuses_bad_options_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for options, expected in (
        (["--port", "70000"], "port 70000: expected 0 to 65535"),
        (["--seed", "-1"], "seed -1: expected 0 to"),
        (["--seconds", "nan"], "seconds nan: expected more than 0"),
        (["--rules", "nothing"], "rules 'nothing'"),
        (["--player", "no_such_player"], "opponent 'no_such_player'"),
    ):
        assert main(["table", "--no-browser", *options]) == 2
        assert expected in capsys.readouterr().err


def test_a_missing_extra_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "uvicorn" else object())
    assert main(["table"]) == 2
    assert capsys.readouterr().err == "archie: uvicorn missing: pip install 'archie-env[table]'\n"


def test_histories_are_errors_of_notation() -> None:
    with pytest.raises(NotationError):
        Session(settings()).handle({"do": "open", "text": "Archie hand history 2"})


def test_the_page_offers_every_player_that_needs_no_terminal_and_no_argument() -> None:
    names = offered(["rule_based"], opponent, PRESETS["archie"])
    assert names[0] == "rule_based"
    assert {"champion", "uniform", "call_draw", "ppo"} <= set(names)
    assert "human" not in names
    assert not any(name.endswith(":") for name in names)
    assert len(set(names)) == len(names)
    with pytest.raises(ArchieError):
        offered(["nosuch"], opponent, PRESETS["archie"])


def test_export_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, page_file = tmp_path / "hands.txt", tmp_path / "hands.html"
    source.write_text(notation.dump(finished(3)), encoding="utf-8")
    assert main(["export", str(source), "-o", str(page_file), "--lang", "pt"]) == 0
    text = page_file.read_text(encoding="utf-8")
    assert text == page([finished(3)], language="pt", title="hands")
    assert capsys.readouterr().out == f"wrote {page_file}\n"


def test_the_reviewer_is_the_strongest_that_loads_and_its_reviews_are_drawn() -> None:
    session = Session(settings(review=reviewer(lambda name, rules: UniformPolicy()), rules=PRESETS["mini"]))
    reply = play_hand(session, session.handle({"do": "play", "opponent": "caller"}))
    told = session.handle({"do": "review", "hand": 0})["review"]
    net = reply["frames"][-1]["result"]["net"][0]
    assert told["luck"] - told["given_up"] == pytest.approx(net)
    assert all(action["text"] for decision in told["decisions"] for action in decision["actions"])
    assert json.loads(json.dumps(told)) == told
