"""``archie review``: what each action of a finished hand was worth, in text."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from archie_env.errors import ArchieError
from archie_env.events import SEATS
from archie_env.game import Game
from archie_env.table.frames import reviewed
from archie_env.terminal.export import read_histories
from archie_env.terminal.table import Opponent, reviewer
from archie_env.words import LANGUAGES, Words, default_language, words


def add_command(commands: Any, opponent: Opponent, importable: Callable[[], Any]) -> None:
    """Add the command to the parser of ``archie``.

    Args:
        commands: the subparsers.
        opponent: finds a player by its name.
        importable: a context in which modules of the present folder can be imported.
    """
    review = commands.add_parser("review", help="say what each action of a finished hand was worth")
    review.add_argument("file", metavar="FILE", help="a hand history, a .phh or .phhs file, or - for standard input")
    review.add_argument("--seat", type=int, choices=(0, 1), help="the seat whose decisions are judged (default: both)")
    review.add_argument("--hand", type=int, metavar="K", help="only the K-th hand of the file, counted from 1")
    review.add_argument("--reviewer", metavar="NAME", help="a player with probabilities (default: the strongest that loads)")
    review.add_argument("--lang", choices=LANGUAGES, help="the language (default: that of the locale, else English)")
    review.set_defaults(run=lambda options: _review(options, opponent, importable))


def _review(options: argparse.Namespace, opponent: Opponent, importable: Callable[[], Any]) -> None:
    games = list(enumerate(read_histories(options.file), 1))
    if options.hand is not None:
        if not 1 <= options.hand <= len(games):
            raise ArchieError(f"hand {options.hand}: expected 1 to {len(games)}")
        games = games[options.hand - 1 : options.hand]
    spoken, judge = words(options.lang or default_language()), reviewer(opponent, options.reviewer)
    with importable():
        for number, game in games:
            if not game.over:
                raise ArchieError(f"{options.file}: hand {number} is not over: expected finished hands")
            for seat in (0, 1) if options.seat is None else (options.seat,):
                lines = review_lines(game, judge(game, seat), spoken)
                print(f"{spoken.say('terminal.hand', n=number)}, {SEATS[seat]}", *lines, sep="\n", end="\n\n", flush=True)


def review_lines(game: Game, review: dict[str, Any], spoken: Words) -> Iterator[str]:
    """A review, as `Review.to_dict` gives it, in lines of text; the action that was played has a star."""
    chips, error = f"{review['given_up']:.2f}", f"{review['given_up_error']:.2f}"
    yield spoken.say("table.given_up", chips=chips, error=error, luck=f"{review['luck']:+.2f}")
    yield spoken.say("table.reviewer", name=review["reviewer"])
    decisions = reviewed(game, review, spoken)["decisions"]
    width = max((len(action["text"]) for decision in decisions for action in decision["actions"]), default=0)
    for decision in decisions:
        effective = f"{decision['effective']:.0f}"
        if decision["equity"] is None:
            about = spoken.say("table.too_few", n=effective)
        else:
            equity = spoken.say("table.equity", percent=f"{100 * decision['equity']:.0f}")
            about = f"{equity}, {spoken.say('table.effective', n=effective)}"
        yield f"{decision['title']}: {' '.join(decision['hand'])}; {about}"
        for action in decision["actions"]:
            star = "*" if action["played"] else " "
            yield f"  {star} {action['text']:{width}} {100 * action['probability']:4.0f} %  {_verdict(action, spoken)}".rstrip()


def _verdict(action: dict[str, Any], spoken: Words) -> str:
    if action["verdict"] is None:
        return ""
    if action["verdict"] == "worse":
        return f"{-action['loss']:+.2f} ± {action['error']:.2f}"
    return spoken.say("table.best" if action["verdict"] == "best" else "table.as_good")
