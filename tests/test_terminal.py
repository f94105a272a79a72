"""The ``archie`` command, run in this process with a fake terminal."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from agents.human import HumanPolicy, view_of
from archie_env import notation, policy
from archie_env.actions import discard
from archie_env.batch import Batch, Hands
from archie_env.cards import parse_cards
from archie_env.errors import ArchieError, IllegalActionError, PlayerLeftError
from archie_env.game import Game
from archie_env.policy import Policy, UniformPolicy, load_policy
from archie_env.rendering.text import ansi
from archie_env.rules import PRESETS, Rules
from archie_env.terminal import main as cli
from archie_env.terminal.answers import prompt, read_action
from archie_env.terminal.console import colored
from archie_env.terminal.explain import explain


class Terminal(io.StringIO):
    """A stand-in for a stream of a terminal."""

    def isatty(self) -> bool:
        return True


class Command:
    """Runs the command and keeps what it wrote."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.out = self.err = ""
        self.locale = "C"

    def __call__(self, *arguments: str, typed: str = "") -> int:
        self._monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        self._monkeypatch.setenv("LC_ALL", self.locale)
        try:
            status = cli.main(arguments)
        except SystemExit as stop:  # argparse's own errors, help and version
            status = int(stop.code or 0)
        self.out, self.err = self._capsys.readouterr()
        return status


@pytest.fixture
def archie(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def history(seed: int = 1, rules: str = "archie") -> str:
    """A hand that both check and stand pat to the end, as text."""
    game = Game(rules, seed=seed)
    while not game.over:
        game.apply(3 if game.drawing else 1)
    return notation.dump(game)


# ---- play


def test_a_session_from_deal_to_result(archie: Command) -> None:
    typed = "raise\n" + "c\nd 1 2\nc\npat\ncheck\nd 5\ncheck\n"
    assert archie("play", "--opponent", "call", "--seed", "5", "--hands", "1", "--seat", "dealer", typed=typed) == 0
    assert archie.err == ""
    assert "You play call, rules archie, seed 5" in archie.out
    assert "Round 1: you post 1, call posts 2, you raise to 4, call calls" in archie.out
    assert "Draw 1:  call stands pat, you draw two" in archie.out
    assert re.search(r"(Whole pot|High half), \d+ to (you|call|each): ", archie.out)
    assert re.search(
        r"Total:  you ([+-]\d+|0) chips after 1 hand\n1 hand played; you are at ([+-]\d+|0) chips\.\n$", archie.out
    )


def test_seats_and_totals_over_several_hands(archie: Command) -> None:
    assert archie("play", "--opponent", "call", "--seed", "2", "--hands", "3", "--seat", "dealer", typed="f\n\nf\n\nf\n") == 0
    assert archie.out.endswith("3 hands played; you are at -3 chips.\n")
    assert archie("play", "--opponent", "raise", "--seed", "2", "--hands", "2", "--seat", "big_blind", typed="f\n\nf\n") == 0
    assert archie.out.endswith("2 hands played; you are at -4 chips.\n")
    assert archie("play", "--opponent", "raise", "--seed", "2", "--hands", "2", typed="f\n\nf\n") == 0
    assert archie.out.endswith("2 hands played; you are at -3 chips.\n")


@pytest.mark.parametrize("typed", ["", "call\n", "quit\n", "call\nq\n", "f\n", "f\nquit\n"])
def test_leaving_at_any_point_ends_cleanly(archie: Command, typed: str) -> None:
    assert archie("play", "--opponent", "uniform", "--seed", "1", "--seat", "dealer", typed=typed) == 0
    assert "played; you are at" in archie.out.splitlines()[-1]


@pytest.mark.parametrize("typed", ["call\n", "call\nquit\n", "f\n\ncall\nq\n", "call\nk\n"])
def test_a_second_person_leaving_ends_cleanly_too(archie: Command, typed: str) -> None:
    assert archie("play", "--opponent", "human", "--seed", "1", "--seat", "dealer", typed=typed) == 0
    assert "played; you are at" in archie.out.splitlines()[-1]
    assert archie.err == ""
    assert archie("play", "--opponent", "human", "--seed", "1", "--seat", "big_blind", typed=typed[-2:]) == 0


def test_wrong_input_is_explained_and_asked_again(archie: Command) -> None:
    wrong = ["", "dance", "check", "pat", "d 1", "help", "fold"]
    assert (
        archie("play", "--opponent", "call", "--seed", "5", "--hands", "1", "--seat", "dealer", typed="\n".join(wrong) + "\n")
        == 0
    )
    for complaint in (
        "Nothing typed. You may raise to 4, call 1, fold",
        "'dance' is no action (help lists them)",
        "You can't check: there is a wager to call, 1 more",
        "This is a betting round, not a draw",
        "replace these cards; d 9h Js is enough",
    ):
        assert complaint in archie.out
    assert "1 hand played; you are at -1 chips." in archie.out


def test_the_opponents_cards_show_only_when_asked_for(archie: Command) -> None:
    for option, face_down in ((), True), (("--open",), False):
        archie("play", "--opponent", "call", "--seed", "5", "--hands", "1", "--seat", "dealer", *option, typed="f\n")
        assert ("?? ?? ?? ?? ??" in archie.out) == face_down


def test_colors_only_on_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert cli._colors(Terminal())
    assert not cli._colors(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not cli._colors(Terminal())
    text = "> you  9h Js ?? ??"
    assert re.sub(r"\033\[\d+m", "", colored(text)) == text
    assert "\033[31m9h\033[0m" in colored(text)
    assert "\033[31mJs" not in colored(text)


def test_a_terminal_gets_a_colored_table(archie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", screen := Terminal())
    monkeypatch.setattr(cli, "_colors", lambda stream: stream is screen)
    assert archie("play", "--opponent", "call", "--seed", "5", "--hands", "1", "--seat", "dealer", typed="f\n") == 0
    assert "\033[31m" in screen.getvalue()


@pytest.mark.parametrize("module", [None, types.ModuleType("agents")])
def test_without_the_checkout_the_default_opponent_is_uniform(
    archie: Command, monkeypatch: pytest.MonkeyPatch, module: types.ModuleType | None
) -> None:
    monkeypatch.setattr("archie_env.policy._REGISTERED", {"uniform": lambda rules: UniformPolicy()})
    monkeypatch.setitem(sys.modules, "agents", module)
    assert archie("play", "--opponent", "rule_based") == 2
    assert "opponent 'rule_based'" in archie.err
    assert "expected one of uniform, module:Name" in archie.err
    assert archie("play", "--opponent", "uniform", typed="q\n") == 0
    assert archie("play", typed="q\n") == 0
    assert "You play uniform" in archie.out


def test_the_default_opponent_of_the_checkout_is_the_champion(archie: Command) -> None:
    assert archie("play", typed="q\n") == 0
    assert "You play champion" in archie.out
    assert archie("play", "--rules", "barge", typed="q\n") == 0
    assert "You play rule_based" in archie.out


def test_an_agent_whose_packages_are_missing(archie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(rules: Rules) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setitem(policy._REGISTERED, "deep", load)
    assert archie("play", "--opponent", "deep") == 2
    assert "No module named 'torch'" in archie.err


# ---- leaving, failing opponents, stacks


def test_leaving_in_mid_hand_gives_the_hand_up_and_counts(archie: Command, tmp_path: Path) -> None:
    file = tmp_path / "hands.txt"
    play = ("play", "--opponent", "call", "--seed", "5", "--seat", "dealer", "--save", str(file))
    for typed, net in (("", -1), ("call\nquit\n", -2), ("raise\nd 1\nq\n", -4), ("f\n\nc\np\n", -3)):
        file.unlink(missing_ok=True)
        assert archie(*play, typed=typed) == 0
        hands = 1 + typed.startswith("f")
        assert archie.out.endswith(f"{hands} hand{'s' * (hands > 1)} played; you are at {net} chips.\n")
        games = notation.parse_all(file.read_text(encoding="utf-8"))
        assert len(games) == hands
        assert sum(game.result.net[0] for game in games) == net
        assert games[-1].history[-1].kind == "forfeit"
    assert archie("replay", str(file)) == 0
    assert "player_0 gives the hand up" in archie.out
    assert archie("replay", "--step", str(file), typed="\n" * 30) == 0
    assert "player_0 gave the hand up" in archie.out


def test_leaving_between_hands_costs_nothing(archie: Command) -> None:
    assert archie("play", "--opponent", "call", "--seat", "dealer", typed="f\nquit\n") == 0
    assert archie.out.endswith("1 hand played; you are at -1 chips.\n")


class Interrupting(io.StringIO):
    """A keyboard on which Ctrl-C follows the lines."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline()
        if not line:
            raise KeyboardInterrupt
        return line


def test_an_interrupt_keeps_the_finished_hands_and_gives_up_the_other(
    archie: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hands.txt"
    monkeypatch.setattr("sys.stdin", Interrupting("f\n\ncall\n"))
    assert cli.main(["play", "--opponent", "call", "--seed", "5", "--seat", "dealer", "--save", str(file)]) == 130
    out, err = capsys.readouterr()
    assert out.endswith("2 hands played; you are at -3 chips.\n")
    assert err == "\ninterrupted\n"
    assert [game.result.net[0] for game in notation.parse_all(file.read_text(encoding="utf-8"))] == [-1, -2]


FAILING = """
import sys

class Bot:
    name = "bot"
    def probabilities(self, observations, masks): ...
    def act(self, observations, masks, rng):
        {}

class NoPolicy: ...
"""


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise ZeroDivisionError('one\\ntwo')", "ZeroDivisionError: one two"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("return [30]", "action 30 is not legal here"),
        ("return [0.5]", "IllegalActionError: actions of shape (1,) and dtype float64"),
        ("return None", "IllegalActionError: actions of shape ()"),
    ],
)
def test_an_opponent_that_fails_loses_the_hand_and_play_goes_on(
    archie: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, message: str
) -> None:
    (tmp_path / "failing.py").write_text(FAILING.format(fault))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "failing", raising=False)
    typed = "call\n\nraise\n"
    play = ("play", "--opponent", "failing:Bot", "--seed", "5", "--hands", "2", "--seat", "dealer", "--save", "kept")
    assert archie(*play, typed=typed) == 0
    assert archie.out.count("bot failed (") == 2
    assert message in archie.out
    assert "holds" not in archie.out  # an error that shows the opponent's cards
    assert "2 hands played; you are at +4 chips." in archie.out
    assert archie("replay", "kept") == 0
    assert archie.out.count("player_1 gives the hand up") == 2
    assert archie("play", "--opponent", "failing:NoPolicy") == 2
    assert archie.err.startswith("archie: policy 'failing:NoPolicy'")
    assert archie.err.count("\n") == 1
    monkeypatch.delitem(sys.modules, "failing", raising=False)


def test_a_bot_in_an_empty_folder_plays_through_the_console_script(tmp_path: Path) -> None:
    """A console script does not look for modules in the present folder, and the bot imports another one while it plays."""
    (tmp_path / "my_bots.py").write_text(FAILING.format("import my_tables; return my_tables.ANSWER").replace('"bot"', '"mine"'))
    (tmp_path / "my_tables.py").write_text("ANSWER = [1]\n")
    script = "import sys; sys.path[:] = [p for p in sys.path if p]; from archie_env.terminal.main import main; sys.exit(main())"
    root = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", script, "play", "--opponent", "my_bots:Bot", "--hands", "1", "--seat", "dealer"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": root}, input="c\n", capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert "mine checks" in done.stdout
    assert done.returncode == 0


def test_a_session_with_stacks_ends_when_a_player_cant_cover_a_hand(archie: Command) -> None:
    play = ("play", "--opponent", "call", "--seed", "2", "--seat", "dealer")
    assert archie(*play, "--stack", "49", typed="f\n\nf\n\nf\n") == 0
    assert "you can't cover the 48 chips that a hand may cost." in archie.out
    assert archie.out.endswith("2 hands played; you are at -2 chips.\n")
    assert re.search(r"player|you +dealer .* 49 +1 ", archie.out)
    assert archie(*play, "--stack", "47") == 2
    assert archie.err == "archie: stack 47: expected a whole number of at least 48\n"


# ---- the answers for an action


def at(*actions: int, **options: object) -> Game:
    game = Game(dealer=0, deck="9c As 9h Td 7d 3c 7s 4h 2c 7h", **options)  # type: ignore[arg-type]
    for action in actions:
        game.apply(action)
    return game


def read(text: str, game: Game) -> int:
    return read_action(text, game.view(game.to_act), game.rules)


def prompt_of(game: Game) -> str:
    return prompt(game.view(game.to_act), game.rules)


@pytest.mark.parametrize(
    ("text", "action"),
    [("fold", 0), ("f", 0), ("c", 1), ("call", 1), ("r", 2), ("raise", 2), ("b", 2), ("bet", 2)],
)
def test_wagers_by_word_and_letter(text: str, action: int) -> None:
    assert read(text, at()) == action


@pytest.mark.parametrize(
    ("text", "discarded"),
    [
        ("pat", ""), ("p", ""), ("stand pat", ""), ("d 3c", "3c"), ("discard 3c as", "3cAs"), ("d 3cas", "3cAs"),
        ("draw 10d", "Td"), ("d td, 7h", "Td7h"), ("d 1 5", "3cAs"), ("d 15", "3cAs"), ("d 12345", "3c4h7hTdAs"),
    ],
)  # fmt: skip
def test_discards_by_card_and_by_position(text: str, discarded: str) -> None:
    game = at(1, 1, 3)
    assert game.hands[0] == parse_cards("3c4h7hTdAs")
    assert read(text, game) == discard(game.hands[0], parse_cards(discarded))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("d", "Name the cards"), ("d 6", "There is no card 6"), ("d 0", "There is no card 0"), ("d 3 3", "named twice"),
        ("d 3 7h", "named twice"), ("d 9h", "You don't hold 9h"), ("d zz", "'zz' is no card"), ("d 10", "no card 0"),
        ("call", "a draw, not a betting round"), ("3 4", "'3 4' is no action"), (",", "is no action"),
        ("d 3c4", "'3c4' is no card"),
        ("d ²", "is no card"),
    ],
)  # fmt: skip
def test_wrong_discards(text: str, complaint: str) -> None:
    with pytest.raises(IllegalActionError, match=re.escape(complaint)):
        read(text, at(1, 1, 3))


def test_wrong_wagers() -> None:
    for text, complaint, game in (
        ("call", "nothing to call", at(1)),
        ("fold", "no wager to fold to", at(1)),
        ("raise", "at most 4 wagers", at(2, 2, 2)),
        ("k", "can't check: .*, 2 more", at(2)),
    ):
        with pytest.raises(IllegalActionError, match=complaint):
            read(text, game)
    with pytest.raises(IllegalActionError, match="At most two cards"):
        read("d 123", at(1, 1, 3, rules=Rules(max_discard=2)))


def test_prompts_list_what_may_be_typed() -> None:
    assert prompt_of(at()) == "raise to 4, call 1, fold"
    assert prompt_of(at(1)) == "raise to 4, check"
    assert prompt_of(at(1, 1, 3)) == "pat, or discard such as: d Td As (by position: d 4 5)"
    assert (
        prompt_of(at(1, 1, 3, rules=Rules(max_discard=1)))
        == "pat, or discard (at most one card) such as: d As (by position: d 5)"
    )
    assert prompt_of(at(1, 1, rules=Rules(max_discard=0))) == "only stand pat: type pat"


# ---- histories


def test_saved_hands_replay(archie: Command, tmp_path: Path) -> None:
    file = tmp_path / "hands.txt"
    arguments = ("play", "--opponent", "call", "--seed", "5", "--seat", "dealer", "--save", str(file))
    assert archie(*arguments, "--hands", "1", typed="f\n") == 0
    assert archie(*arguments, "--hands", "2", typed="c\np\nc\np\nc\np\nc\n\nf\n") == 0
    assert os.listdir(tmp_path) == ["hands.txt"]
    games = notation.parse_all(file.read_text(encoding="utf-8"))
    assert [game.result.folded for game in games] == [0, None, 0]
    assert archie("replay", str(file)) == 0
    assert archie.out.count("hand over") == 3
    assert "Hand 3 of 3" in archie.out
    assert "player_0 folds" in archie.out


def test_nothing_is_saved_over_another_file(archie: Command, tmp_path: Path) -> None:
    file = tmp_path / "diary.txt"
    file.write_text("Dear diary,\n")
    assert archie("play", "--opponent", "call", "--save", str(file), typed="f\n") == 2
    assert archie.err.startswith(f"archie: {file}: not a file of hand histories")
    assert file.read_text() == "Dear diary,\n"
    assert archie("play", "--opponent", "call", "--save", str(tmp_path / "no" / "where"), typed="f\n") == 2
    assert "there is no folder" in archie.err


def test_replay_reads_standard_input(archie: Command) -> None:
    assert archie("replay", "-", typed=history()) == 0
    assert "-- draw 3 --" in archie.out
    assert "Result: " in archie.out
    assert archie("replay", "-", "--step", typed=history()) == 2
    assert "must come from a file" in archie.err


def test_replay_by_step_waits_for_enter(archie: Command, tmp_path: Path) -> None:
    file = tmp_path / "hand.txt"
    file.write_text(history(rules="mini"))
    assert archie("replay", "--step", str(file), typed="\n" * 20) == 0
    assert archie.out.count("Enter for the next action") == 6
    assert archie.out.count("Archie (rules mini)") == 7
    assert archie("replay", "--step", str(file), typed="\nq\n") == 0
    assert archie.out.count("Archie (rules mini)") == 2
    assert archie("replay", "--step", str(file), typed="") == 0


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda text: text.replace("stands pat", "sits pat", 1), "line"),
        (lambda text: text.replace("checks", "folds", 1), "line"),
        (lambda text: "", "no hand history"),
        (lambda text: text.replace("rules archie", "rules whist"), "line 2"),
    ],
)
def test_bad_histories_name_the_line(archie: Command, tmp_path: Path, spoil: object, complaint: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(spoil(history()))  # type: ignore[operator]
    assert archie("replay", str(file)) == 2
    assert archie.out == ""
    assert archie.err.startswith(f"archie: {file}: ")
    assert complaint in archie.err


def test_files_that_cannot_be_read(archie: Command, tmp_path: Path) -> None:
    assert archie("replay", str(tmp_path / "missing")) == 2
    assert "No such file" in archie.err
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    assert archie("replay", str(tmp_path / "bytes")) == 2
    assert "Traceback" not in archie.err


# ---- rules, errors


@pytest.mark.parametrize("name", PRESETS)
def test_rules_in_words(archie: Command, name: str) -> None:
    rules = PRESETS[name]
    assert archie("rules", name) == 0
    words = " ".join(archie.out.split())
    assert f"Archie, rules {name}" in words
    assert f"{rules.deck_size} cards" in words
    assert f"at most {rules.reserve} chips" in words
    assert ("discards first" in words) == (rules.draw_order == "sequential")
    assert ("divide the pot equally" in words) == (rules.no_qualifier == "equal_split")
    assert f"none above {rules.low_qualifier}" in words
    assert all(re.search(rf"^{preset} ", archie.out, re.M) for preset in PRESETS)
    assert max(map(len, archie.out.splitlines())) <= 110


def test_rules_in_words_follow_every_option() -> None:
    words = " ".join(explain(Rules(high_qualifier=None, low_qualifier=None, raise_cap=1, max_discard=0)).split())
    assert "No hand qualifies for the high half" in words
    assert "No hand qualifies for the low half" in words
    assert "one bet and no raise" in words
    assert "option to raise" not in words
    assert "Three draws, after each betting round but the last, in which no card may be replaced" in words
    assert "None: the cards dealt are played" in explain(PLAIN["no draws"])
    assert "A pair of sixes or better qualifies" in explain(Rules())
    assert "5-4-3-2-A is best" in explain(Rules())
    assert "2-A is best" in explain(PRESETS["mini"])
    assert "No hand is good enough" in explain(Rules(hand_size=1, max_discard=1))
    assert "too few such ranks" in explain(Rules(low_qualifier="4"))


def plain(rules: Rules) -> str:
    return " ".join(explain(rules).split())


def test_rules_in_words_are_complete() -> None:
    words = plain(Rules())
    for sentence in (
        "no joker", "no ante", "no card is burnt", "At most 40 cards are dealt in a hand, so nothing is ever reshuffled",
        "one card at a time, the big blind first", "The seed, or the caller, decides who deals first",
        "Checking and then raising is allowed", "both hands are shown after round 4", "A-2-3-4-5 is the lowest straight",
        "the other player takes the pot, whatever qualifies", "nobody gets more than one odd chip",
        "result is the award minus the chips paid",
    ):  # fmt: skip
        assert sentence in words
    assert "straight" not in plain(PRESETS["mini"]).replace("Straights and flushes do not count", "")
    assert "lowest straight" in plain(PRESETS["maxi"])
    assert "straight" not in plain(Rules(ranks="2346789JQKA")).replace("straights and flushes are ignored", "")
    assert "Checking and then raising" not in plain(Rules(raise_cap=1))


ODD = Rules(stakes=((1, 3), (3, 3, 6, 6)))  # type: ignore[arg-type]


def test_the_words_on_odd_chips_are_those_of_the_engine() -> None:
    """R4.4: the big blind gets the odd chip of one shared half; where both are shared, each player gets one."""
    assert "At these stakes no share is ever odd" in plain(Rules())
    words = plain(ODD)
    assert "At these stakes" not in words
    assert "odd chip of one shared half goes to the first player after the dealer, the big blind" in words
    assert "where both halves are shared, each player gets one" in words
    for dealer in (0, 1):
        for hands, chips in (
            (("8s6s4s3s2s", "8h6d4c3h2h"), {"high": (3, 0), "low": (1 + dealer, 2 - dealer)}),
            (("As2d3c4h5s", "Ac2h3d4s5c"), {"high": (1 + dealer, 2 - dealer), "low": (2 - dealer, 1 + dealer)}),
        ):
            mine, other = (parse_cards(hand) for hand in hands)
            first, second = (other, mine) if dealer == 0 else (mine, other)  # the big blind is dealt first
            deck = [card for pair in zip(first, second, strict=True) for card in pair]
            game = Game(ODD, deck=deck, dealer=dealer)
            while not game.over:
                game.apply(3 if game.drawing else 1)
            assert {award.half: award.chips for award in game.result.awards} == chips


PLAIN = {
    "no draws": Rules(draws=0, stakes=((1, 2), (2,))),  # type: ignore[arg-type]
    "no draws or bets": Rules(draws=0, raise_cap=1, stakes=((0, 1), (1,))),  # type: ignore[arg-type]
    "no raises": Rules(raise_cap=1),
    "no raises, one size": Rules(raise_cap=1, stakes=((1, 1), (1, 1, 1, 1))),  # type: ignore[arg-type]
    "one raise": Rules(raise_cap=2, stakes=((1, 1), (1, 1, 1, 1))),  # type: ignore[arg-type]
    "one draw": Rules(draws=1, max_discard=0, stakes=((1, 1), (1, 1))),  # type: ignore[arg-type]
    **PRESETS,
}


@pytest.mark.parametrize("name", PLAIN)
def test_rules_in_words_offer_what_the_engine_does(name: str) -> None:
    """Whatever can happen in play is in the words, and nothing else; and one chip is no "1 chips"."""
    rules = PLAIN[name]
    words = plain(rules)
    assert not re.search(r"\b(1|one) (chip|card|bet|raise|round|draw)s\b", words)
    offered, drawn = set(), 0
    for seed in range(40):
        game, chance = Game(rules, seed=seed), random.Random(seed)
        while not game.over:
            legal = game.legal_actions()
            drawn += game.drawing
            if not game.drawing:
                offered.add(("facing" if game.owes(game.to_act or 0) else "free", game.round > 0, 2 in legal))
            game.apply(chance.choice(legal))
    free, facing = re.search(r"With nothing to call: (.*); facing a wager: (.*?)\.", words).groups()  # type: ignore[union-attr]
    assert ("raise" in facing) == any(kind == "facing" and can for kind, _, can in offered)
    assert ("bet" in free) == any(kind == "free" and can for kind, _, can in offered)
    assert ("so nobody can bet or raise" in words) == (not any(can for _, later, can in offered if not later))
    assert ("stand pat" in words) == bool(drawn)
    assert ("replace up to" in words) == bool(drawn and rules.max_discard)


@pytest.mark.parametrize("arguments", [("rules", "whist"), ("play", "--rules", "whist"), ("play", "--rules", "")])
def test_an_unknown_name_of_rules_lists_what_can_be_typed(archie: Command, arguments: tuple[str, ...]) -> None:
    assert archie(*arguments) == 2
    assert archie.err == f"archie: rules {arguments[-1]!r}: expected one of {', '.join(PRESETS)}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("rules", "whist"), ("play", "--rules", "whist"), ("play", "--opponent", "nobody"), ("play", "--seat", "both"),
        ("play", "--hands", "0"), ("play", "--seed", "-1"),
        ("play", "--seed", str(2**63)),
        ("play", "--seed", "9" * 5000), (), ("deal",),
    ],
)  # fmt: skip
def test_bad_arguments_end_with_status_2(archie: Command, arguments: tuple[str, ...]) -> None:
    assert archie(*arguments) == 2
    assert "archie" in archie.err
    assert "Traceback" not in archie.err
    assert len(archie.err) < 1000


def test_interruption_and_broken_pipe(archie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(error: type[BaseException]) -> None:
        def run(options: object) -> None:
            raise error

        monkeypatch.setattr(cli, "_rules", run)

    stop(KeyboardInterrupt)
    assert archie("rules") == 130
    stop(ArchieError)
    assert archie("rules") == 2
    stop(BrokenPipeError)
    assert archie("rules") == 141


def test_a_reader_that_goes_away_causes_no_traceback() -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "archie_env", "rules"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.close()
    with command.stderr:
        assert command.stderr.read() == ""
    assert command.wait(60) == 141


def test_version_and_help(archie: Command) -> None:
    assert archie("--version") == 0
    assert "archie-env" in archie.out
    assert archie("--help") == 0
    assert "replay" in archie.out


# ---- a person as a policy


class Person:
    """A person who types these lines, and the screen."""

    def __init__(self, *answers: str, rules: str = "archie") -> None:
        self.screen = io.StringIO()
        self.player = HumanPolicy(rules, io.StringIO("".join(f"{a}\n" for a in answers)), self.screen)

    def play(self, other: str, seat: int, deal: int = 5, rules: str = "archie") -> Hands:
        """One hand with the person dealing (seat 0) or in the big blind."""
        hands, rng = Hands([deal], [seat], rules, seed=1), np.random.default_rng(0)
        players: tuple[Policy, Policy] = (self.player, load_policy(f"agents:{other}", rules))
        while not hands.over:
            for who, player in enumerate(players):
                waiting, rows, masks = hands.waiting(who)
                if len(waiting):
                    hands.play(waiting, player.act(rows, masks, rng))
        return hands


def test_a_person_as_a_policy_sees_and_types_what_archie_play_shows_and_reads() -> None:
    person = Person("raise", "discard Qs 8c", "check", "pat", "k", "PAT", "fold", "check")
    hands = person.play("call_draw", 0)
    shown = person.screen.getvalue()
    assert not hands.folded.any()
    assert "> you       dealer     3d 4d 8c Qs Ac" in shown
    assert "?? ?? ?? ?? ??" in shown
    assert "You may raise to 4, call 1, fold" in shown
    assert "you raise to 4, opponent calls" in shown
    assert "You may pat, or discard such as: d Qs Ac (by position: d 4 5)" in shown
    assert "Draw 1:  opponent draws" in shown
    assert "There is no wager to fold to. You may bet 4, check" in shown
    assert hands.games["thrown"][0, 0] == 1 << 2 | 1 << 6 | 1 << 12  # two cards in the first draw, none in the others


def test_a_person_as_a_policy_is_asked_until_the_answer_makes_sense() -> None:
    person = Person("?", "", "xyz", "99", "call", "d 9h", "d 2x", "d 2c", "d 8C q\N{BLACK SPADE SUIT}", "quit")
    with pytest.raises(PlayerLeftError):
        person.play("call_draw", 0)
    shown = person.screen.getvalue()
    for message in (
        "replace these cards; d 9h Js is enough",
        "Nothing typed",
        "'xyz' is no action",
        "'99' is no action",
        "You don't hold 9h",
        "'2x' is no card",
        "You don't hold 2c",
        "you draw two",
    ):
        assert message in shown


def test_the_big_blind_may_raise_and_not_bet_before_the_draw() -> None:
    person = Person("r", "pat", "fold")
    with pytest.raises(PlayerLeftError):
        person.play("call_draw", 1)
    assert "You may raise to 4, check\n" in person.screen.getvalue()
    assert "opponent calls, you raise to 4, opponent calls" in person.screen.getvalue()


def test_a_person_leaves_with_the_end_of_the_input() -> None:
    with pytest.raises(PlayerLeftError, match="left the table"):
        Person().play("call", 0)


@pytest.mark.parametrize("name", [*PRESETS, "odd"])
def test_the_view_made_from_a_row_is_the_view_of_the_game(name: str) -> None:
    rules = PRESETS.get(name) or Rules(stakes=((1, 3), (3, 3, 6, 6)), raise_cap=6, max_discard=2)  # type: ignore[arg-type]
    for seed in range(12):
        game, chance = Game(rules, seed=seed), random.Random(seed)
        while not game.over:
            seat = game.to_act or 0
            view = view_of(game.observation(seat), rules)
            shown = ansi(view, rules, names=("a", "b") if seat == 0 else ("b", "a")).splitlines()
            expected = ansi(game.view(seat), rules, names=("a", "b")).splitlines()
            assert sorted(shown) == sorted(expected)
            assert view.legal == game.legal_actions()
            legal = game.legal_actions()
            game.apply(chance.choice(legal[1:] if legal[0] == 0 and chance.random() < 0.8 else legal))


def test_a_persons_probabilities_are_not_known() -> None:
    batch = Batch(3, seed=1)
    with pytest.raises(ArchieError, match="call act"):
        HumanPolicy().probabilities(batch.observations, batch.masks)
