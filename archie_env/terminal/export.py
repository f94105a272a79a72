"""``archie export``: hand histories as files of another form; and hand histories read from any form."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from archie_env.errors import ArchieError
from archie_env.files import atomic_write, is_special
from archie_env.game import Game
from archie_env.notation import dump, from_phhs, parse_all, to_json, to_phh, to_phhs
from archie_env.table.export import page
from archie_env.terminal.table import Opponent, reviewer
from archie_env.words import LANGUAGES, default_language

PHH: Final = (".phh", ".phhs")


def add_command(commands: Any, opponent: Opponent, importable: Callable[[], Any]) -> None:
    """Add the command to the parser of ``archie``.

    Args:
        commands: the subparsers.
        opponent: finds a player by its name; the strongest, for None, reviews.
        importable: a context in which modules of the present folder can be imported.
    """
    export = commands.add_parser("export", help="write hand histories in another form")
    export.add_argument("file", metavar="FILE", help="a hand history, a .phh or .phhs file, or - for standard input")
    export.add_argument(
        "-o", "--out", type=Path, required=True, metavar="OUT",
        help="the file to write; its ending decides the form: .json (events), .phh (one hand), .phhs, .txt (hand history), "
        "or .html (a page that replays the hands)",
    )  # fmt: skip
    export.add_argument("--lang", choices=LANGUAGES, help="the language of a page (default: that of the locale, else English)")
    export.add_argument("--review", action="store_true", help="put a review of both seats into a page")
    export.set_defaults(run=lambda options: _export(options, opponent, importable))


def _one(games: list[Game]) -> str:
    if len(games) != 1:
        raise ArchieError(f"{len(games)} hands: expected one for a .phh file; several go into a .phhs file")
    return to_phh(games[0])


PAGE: Final = ".html"
WRITERS: Final[dict[str, Callable[[list[Game]], str]]] = {
    ".json": to_json,
    ".phh": _one,
    ".phhs": to_phhs,
    ".txt": lambda games: "\n".join(map(dump, games)),
}


def _export(options: argparse.Namespace, opponent: Opponent, importable: Callable[[], Any]) -> None:
    form = options.out.suffix.lower()
    if form not in (*WRITERS, PAGE):
        raise ArchieError(f"{options.out}: expected a name that ends with {', '.join((*WRITERS, PAGE))}")
    if options.review and form != PAGE:
        raise ArchieError(f"{options.out}: expected a name that ends with {PAGE}, as no other form holds reviews")
    if options.out.exists() and not is_special(options.out):
        raise ArchieError(f"{options.out}: exists already: expected the name of a new file")
    games = read_histories(options.file)
    if form == PAGE:
        reviews = None
        if options.review:
            judge = reviewer(opponent)
            with importable():  # none of a hand that is not over
                reviews = [[judge(game, seat) for seat in (0, 1) if game.over] for game in games]
        text = page(games, reviews=reviews, language=options.lang or default_language(), title=options.out.stem)
    else:
        text = WRITERS[form](games)
    atomic_write(options.out, text)
    print(f"wrote {options.out}")


def read_histories(file: str) -> list[Game]:
    """The hands of a file, by its ending, or of standard input for ``-``: UTF-8 in every locale."""
    source = "standard input" if file == "-" else file
    try:
        if file != "-":
            text = Path(file).read_bytes().decode("utf-8-sig")
        elif buffer := getattr(sys.stdin, "buffer", None):
            text = buffer.read().decode("utf-8-sig")
        else:
            text = sys.stdin.read()
        return (from_phhs if Path(file).suffix.lower() in PHH else parse_all)(text)
    except (ArchieError, UnicodeDecodeError) as error:
        raise ArchieError(f"{source}: {error}") from error
