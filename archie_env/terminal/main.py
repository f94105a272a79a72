"""The ``archie`` command: play at the terminal, explain the rules, replay and export hand histories."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO, get_args

from archie_env import __version__
from archie_env.errors import ArchieError, PlayerLeftError, RulesError
from archie_env.events import SEATS
from archie_env.files import atomic_write
from archie_env.game import Game
from archie_env.policy import Policy, known_names, load_policy, registered_policies
from archie_env.rendering.wording import short
from archie_env.rules import PRESETS, Rules
from archie_env.terminal import export, review, table
from archie_env.terminal.console import Console
from archie_env.terminal.explain import explain, preset_table
from archie_env.terminal.export import read_histories
from archie_env.terminal.play import Position, Sitting, play
from archie_env.terminal.shell import run
from archie_env.words import ENGLISH, LANGUAGES, Words, default_language, words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0, 2 for bad input, 130 when interrupted."""
    options = _parser().parse_args(arguments)
    return run(lambda: options.run(options), program="archie")


def _add_language(command: argparse.ArgumentParser) -> None:
    """Add ``--lang`` to a command."""
    command.add_argument("--lang", choices=LANGUAGES, help="the language (default: that of the locale, else English)")


def _words(options: argparse.Namespace) -> Words:
    return words(options.lang or default_language())


def _whole(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not digits or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{short(text, 40)!r}: expected a whole number {least} to {most}")
        return int(text)

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("archie", description="Archie: heads-up triple-draw poker, split high/low.")
    parser.add_argument("--version", action="version", version=f"archie-env {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    sit = commands.add_parser("play", help="play at the terminal against any policy")
    sit.add_argument("--opponent", default=None, metavar="NAME", help="a player, such as rule_based, ppo:PATH or my_bots:MyBot")
    sit.add_argument("--seat", default="alternate", choices=get_args(Position), help="where you sit (default: alternate)")
    sit.add_argument("--rules", default="archie", metavar="NAME", help=f"one of {', '.join(PRESETS)}")
    sit.add_argument("--hands", type=_whole(1, 10**9), metavar="N", help="hands to play (default: until you quit)")
    sit.add_argument("--stack", type=_whole(1, 10**9), metavar="N", help="chips each starts with (default: no limit)")
    sit.add_argument("--seed", type=_whole(0, 2**63 - 1), metavar="S", help="deals the same cards again")
    sit.add_argument("--open", action="store_true", help="show the opponent's cards")
    sit.add_argument("--save", type=Path, metavar="FILE", help="add the histories of the hands played to this file")
    _add_language(sit)
    sit.set_defaults(run=_play)

    rules = commands.add_parser("rules", help="explain the rules")
    rules.add_argument("name", nargs="?", default="archie", metavar="NAME", help=f"one of {', '.join(PRESETS)}")
    _add_language(rules)
    rules.set_defaults(run=_rules)

    replay = commands.add_parser("replay", help="show the hands of a hand history")
    replay.add_argument("file", metavar="FILE", help="a hand history, a .phh or .phhs file, or - for standard input")
    replay.add_argument("--step", action="store_true", help="show the table after each action, and wait for Enter")
    _add_language(replay)
    replay.set_defaults(run=_replay)
    table.add_command(commands, opponent, _folder_importable)
    export.add_command(commands, opponent, _folder_importable)
    review.add_command(commands, opponent, _folder_importable)
    return parser


STRONGEST: Final = ("agents:champion", "agents:rule_based", "uniform")
"""Opponents from the strongest: the first that loads is the default.  Named agents live in the checkout, not in the wheel."""


def opponent(name: str | None, rules: Rules) -> Policy:
    """A policy by name; None takes the first of `STRONGEST` that loads under these rules.

    A name that is not registered is looked for in the checkout's ``agents``.
    """
    if name is None:
        for candidate in STRONGEST[:-1]:
            with contextlib.suppress(ArchieError, ImportError):
                return load_policy(candidate, rules)
        return load_policy(STRONGEST[-1], rules)
    if ":" in name:
        with contextlib.suppress(ArchieError):  # registers the families of the checkout, such as ppo:PATH
            load_policy(STRONGEST[1], rules)
    if ":" in name or name in registered_policies():
        return load_policy(name, rules)
    try:
        return load_policy(f"agents:{name}", rules)
    except ArchieError as error:
        raise ArchieError(f"opponent {name!r}: {error}; expected one of {known_names()}") from None


@contextlib.contextmanager
def _folder_importable() -> Iterator[None]:
    """Make modules of the present folder importable, as ``python -m`` does and a console script does not."""
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(os.getcwd())


def _colors(screen: TextIO) -> bool:
    return screen.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _preset(name: str) -> Rules:
    if name not in PRESETS:
        raise RulesError(f"rules {name!r}: expected one of {', '.join(PRESETS)}")
    return PRESETS[name]


def _play(options: argparse.Namespace) -> None:
    rules = _preset(options.rules)
    with _folder_importable():
        sitting = Sitting(
            rules=rules,
            opponent=opponent(options.opponent, rules),
            seed=secrets.randbits(32) if options.seed is None else options.seed,
            position=options.seat,
            hands=options.hands,
            stack=options.stack,
            open_cards=options.open,
            keep=_keeper(options.save) if options.save else None,
        )
        play(sitting, _console(_words(options)))


def _keeper(path: Path) -> Callable[[Game], None]:
    """Return the function that adds a hand to a file of hand histories.

    The file is replaced whole, so that an interruption can't leave half a hand.
    """
    from archie_env import notation

    def read() -> str:
        return path.read_text(encoding="utf-8-sig").strip() if path.exists() else ""

    try:
        if read():
            notation.parse_all(read())
    except (ArchieError, UnicodeDecodeError) as error:
        raise ArchieError(f"{path}: not a file of hand histories, so nothing is added to it: {error}") from error
    if not path.parent.is_dir():
        raise ArchieError(f"{path}: there is no folder {path.parent}")

    def keep(game: Game) -> None:
        before = read()
        atomic_write(path, f"{before}\n\n{notation.dump(game)}" if before else notation.dump(game))

    return keep


def _rules(options: argparse.Namespace) -> None:
    print(explain(_preset(options.name), _words(options)))
    print()
    print(preset_table(_words(options)))


def _replay(options: argparse.Namespace) -> None:
    from archie_env import notation

    if options.file == "-" and options.step:
        raise ArchieError("replay --step waits for Enter on standard input, so the hand history must come from a file")
    spoken, games = _words(options), read_histories(options.file)
    for number, game in enumerate(games, 1):
        if len(games) > 1:
            print(spoken.say("terminal.hand_of", n=number, of=len(games)))
        if options.step:
            try:
                _step(game, _console(spoken))
            except PlayerLeftError:
                return
        else:
            if spoken is ENGLISH:  # a hand history is in English; the table tells the hand in every language
                print("\n".join(notation.transcript(game)))
                print()
            _show(game, _console(spoken))
        if number < len(games):
            print()


def _console(spoken: Words) -> Console:
    return Console(color=_colors(sys.stdout), words=spoken)


def _show(game: Game, console: Console) -> None:
    console.show(game.view(), game.rules, SEATS)


def _step(game: Game, console: Console) -> None:
    """Show the table before the first event that a player decides, and after each."""
    shown = Game(game.rules, dealer=game.dealer, deck=game.deck, replacements=game.replacements)
    _show(shown, console)
    for event in game.history:
        if event.kind not in ("bet", "draw", "forfeit"):
            continue
        console.ask(console.words.say("terminal.next_action"))
        print()
        if event.action is None:
            shown.forfeit(event.seat)
        else:
            shown.apply(event.action)
        _show(shown, console)
