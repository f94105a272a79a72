"""Hands of a finished match, dealt and played again from its file.

python -m evaluation.duplicate champion rule_based --deals 2000 --seed 1 --json match.json
python -m evaluation.hands match.json --deal 17 > hands.txt
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, NonNegativeInt
from tyro.conf import Positional, arg

from agents import load
from archie_env.batch import Hands
from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.notation import dump
from archie_env.replay import NONE, actions_of
from archie_env.rules import as_rules
from evaluation.command import SecretSeed, run_command
from evaluation.duplicate.deals import DealPairs, read_secret, secret_hash
from evaluation.duplicate.match import MOST_AT_ONCE, MatchResult
from evaluation.duplicate.umpire import Umpire, closing
from evaluation.estimates import PairTotals
from evaluation.results import Form, check_manifest, checked, manifest, read_json, reading, weights_hash

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Print the histories of one deal of a match: both hands, played again exactly as they were counted."""

    match: Annotated[Path, arg(metavar="FILE", help="The file that evaluation.duplicate --json wrote."), Positional]
    deal: int
    """Number of the deal, from 0, as in reports of faults."""
    secret_seed: SecretSeed = None


class _Manifest(Form):
    """What is read of the manifest of a match; the rest is compared."""

    agents: Annotated[list[str], Field(min_length=2, max_length=2)]
    rules: str
    deals: NonNegativeInt
    seed: NonNegativeInt
    chunk: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)]
    time_limit: float | None
    probabilities: bool
    table: bool


def _read(options: Options) -> tuple[dict[str, Any], _Manifest, MatchResult]:
    """Return the manifest of a file as it is, its checked part, and the match; raises `ArchieError`."""
    values = read_json(options.match)
    with reading(options.match):
        if values["manifest"].get("table") is not False:
            raise ArchieError("its hands can't be dealt again: expected a match of two players")
        made, match = checked(_Manifest, values["manifest"]), MatchResult.from_dict(values)
    if made.seed != match.seed:
        raise ArchieError(f"{options.match}: seed {made.seed} in the manifest, {match.seed} in the match: expected one seed")
    if made.time_limit is not None or any(name.startswith("bot:") for name in made.agents):
        raise ArchieError(f"{options.match}: a player had a time limit or is a bot, so its hands may not come out again")
    if not 0 <= options.deal < match.totals.deals:
        raise ArchieError(f"deal {options.deal}: expected 0 to {match.totals.deals - 1}")
    return values["manifest"], made, match


def hands_of(options: Options) -> list[Game]:
    """Play the part of a match that holds a deal again.

    Returns:
        The two hands of the deal: in the first, player_0 (the match's ``a``) deals.

    Raises:
        ArchieError: where the hands may not be those of the match: another version, other weights, a player of which no file is
            known, a time limit, a bot; and where they are not.
    """
    had, made, match = _read(options)
    secret = None if options.secret_seed is None else read_secret(options.secret_seed)
    found = None if secret is None else secret_hash(secret)
    if found != match.secret:
        raise ArchieError(f"secret seed with SHA-256 {found}: expected that of the match, {match.secret}")
    rules = as_rules(made.rules)
    players = [load(name, rules) for name in made.agents]
    weights = [weights_hash(name, player) for name, player in zip(made.agents, players, strict=True)]
    for name, weight in zip(made.agents, weights, strict=True):
        if ":" in name and weight is None:
            raise ArchieError(f"player {name!r}: no file of it is known, so its hands may not come out again")
    check_manifest(options.match, had, had | manifest(made.agents, rules, weights=weights))
    first = options.deal // made.chunk * made.chunk
    pairs = DealPairs(first, min(made.chunk, made.deals - first), made.seed, secret)
    umpires = [Umpire(player, rules, probabilities=made.probabilities) for player in players]
    hands = Hands(pairs.indices, pairs.dealers, rules, pairs.seed)
    with closing(umpires):
        pairs.play_out(hands, umpires)
    net = pairs.paired(hands.net)
    if len(net) == match.totals.deals and PairTotals.of(net[:, 0, 0], net[:, 1, 0]) != match.totals:
        raise ArchieError(f"{options.match}: the players don't play as they did: expected players that repeat themselves")
    at = options.deal - first
    actions = pairs.paired(actions_of(hands.games, rules))[at]
    dealt = [Game(rules, seed=pairs.seed, index=options.deal, dealer=k, replacements="per_seat") for k in (0, 1)]
    return [_game(game, actions[k], net[at, k]) for k, game in enumerate(dealt)]


def _game(game: Game, actions: Any, net: Any) -> Game:
    """Play the actions of a hand; one that they do not end was forfeited."""
    for action in actions[actions != NONE].tolist():
        game.apply(action)
    if game.to_act is not None:
        game.forfeit(game.to_act)
    assert list(game.result.net) == net.tolist()
    return game


def _print(options: Options) -> None:
    games = hands_of(options)
    for game in games:
        first, second = game.result.net
        _LOG.info("dealer player_%d: player_0 %+d, player_1 %+d", game.dealer, first, second)
    print("\n".join(map(dump, games)), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.hands", _print, arguments)
