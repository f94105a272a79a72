"""``archie table``: the table in a browser."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import secrets
import threading
import webbrowser
from collections.abc import Callable
from typing import Any, Final

from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.policy import Policy, registered_policies
from archie_env.rules import Rules, as_rules
from archie_env.words import LANGUAGES, default_language

Opponent = Callable[[str | None, Rules], Policy]
_NEEDS: Final = ("starlette", "uvicorn")


def add_command(commands: Any, opponent: Opponent, importable: Callable[[], Any]) -> None:
    """Add the command to the parser of ``archie``.

    Args:
        commands: the subparsers.
        opponent: finds a player by its name.
        importable: a context in which modules of the present folder can be imported.
    """
    table = commands.add_parser("table", help="play, watch and replay hands in a browser")
    table.add_argument(
        "--player", action="append", default=[], metavar="NAME",
        help="a player to offer beside the known ones, such as ppo:PATH, bot:COMMAND or my_bots:MyBot; may be repeated",
    )  # fmt: skip
    table.add_argument("--rules", default="archie", metavar="NAME", help="a preset's name (default: archie)")
    table.add_argument("--seed", type=int, metavar="S", help="every sitting is dealt the same cards (default: fresh ones)")
    table.add_argument("--open", action="store_true", help="show the opponent's cards")
    table.add_argument("--seconds", type=float, default=30.0, metavar="S", help="limit of a player's decision (default: 30)")
    table.add_argument("--port", type=int, default=0, metavar="N", help="the port on this machine (default: a free one)")
    table.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
    table.add_argument("--lang", choices=LANGUAGES, help="the language (default: that of the locale, else English)")
    table.set_defaults(run=lambda options: _table(options, opponent, importable))


def _table(options: argparse.Namespace, opponent: Opponent, importable: Callable[[], Any]) -> None:
    missing = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise ArchieError(f"{' and '.join(missing)} missing: pip install 'archie-env[table]'")
    if not 0 <= options.port < 1 << 16:
        raise ArchieError(f"port {options.port}: expected 0 to 65535")
    if options.seed is not None and not 0 <= options.seed < 1 << 63:
        raise ArchieError(f"seed {options.seed}: expected 0 to {2**63 - 1}")
    if not 0 < options.seconds <= 3600:
        raise ArchieError(f"seconds {options.seconds}: expected more than 0, at most 3600")
    from archie_env.table.server import ADDRESS, listen, make_app, serve
    from archie_env.table.session import Settings

    rules = as_rules(options.rules)
    with importable():
        settings = Settings(
            rules=rules,
            players=offered(options.player, opponent, rules),
            load=lambda name: opponent(name, rules),
            new_seed=lambda: secrets.randbits(62) if options.seed is None else options.seed,
            seconds=options.seconds,
            open_cards=options.open,
            review=reviewer(opponent),
        )
        with listen(options.port) as door:
            port, token = door.getsockname()[1], secrets.token_urlsafe(24)
            address = f"http://{ADDRESS}:{port}/?token={token}&lang={options.lang or default_language()}"
            print(f"The table is open: {address}\nCtrl-C closes it.", flush=True)
            if not options.no_browser:  # some browsers of the terminal come back only when they are closed
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            serve(make_app(settings, port, token), door)


def reviewer(opponent: Opponent, name: str | None = None) -> Callable[[Game, int], dict[str, Any]]:
    """Judges hands by a player, for None by the strongest that loads under their rules, one hand at a time."""
    from archie_env.review import review_hand

    turn, load = threading.Lock(), functools.cache(lambda rules: opponent(name, rules))

    def review(game: Game, seat: int) -> dict[str, Any]:
        with turn:
            return review_hand(game, seat, load(game.rules)).to_dict()

    return review


def offered(asked: list[str], opponent: Opponent, rules: Rules) -> tuple[str, ...]:
    """Names that the page offers: those asked for, which must load, then every one that needs no argument."""
    for name in asked:
        opponent(name, rules)
    strongest = opponent(None, rules).name
    # "human" would be asked at the terminal that runs the server, where nobody sits
    known = [name for name in registered_policies() if not name.endswith(":") and name != "human"]
    return tuple(dict.fromkeys([*asked, strongest, *known]))
