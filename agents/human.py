"""A person at the terminal as a policy: the table and the prompt of `archie play`, reconstructed from rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

from agents.rows import checked_rows
from archie_env.actions import DISCARD, discard
from archie_env.errors import ArchieError
from archie_env.events import View
from archie_env.game import Game
from archie_env.observation import Seen, decode
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rules import Rules, as_rules
from archie_env.terminal.console import Console

PERSON, OTHER = 0, 1
NAMES: Final = ("you", "opponent")


def view_of(row: NDArray[np.generic], rules: Rules) -> View:
    """Reconstruct the view of the seat to act, as seat 0, from its row ``(d,)``.

    The engine plays a hand with the same own cards, discard counts and bets; the view hides the other cards.
    """
    seen = decode(row, rules)
    game = Game(rules, dealer=PERSON if seen.dealer else OTHER, deck=_deck(seen, rules), replacements="per_seat")
    for r, actions in enumerate(seen.wagers):
        for action in actions:
            game.apply(action)
        while game.drawing and game.round == r and not _is_now(game, seen):
            game.apply(_discard(game, seen))
    if not _is_now(game, seen):
        raise ArchieError(f"row of phase {seen.phase}: its bets and draws lead to {game.position(PERSON)}")
    return game.view(PERSON)


def _deck(seen: Seen, rules: Rules) -> list[int]:
    """Build a deck that deals the person's cards; the other player's don't matter (R5.3)."""
    own, reach = list(seen.held[0]), rules.draws * rules.max_discard
    for before, after in pairwise(seen.held):
        own += [card for card in after if card not in before]
    rest = [card for card in rules.deck if card not in own]
    n, most = rules.hand_size, rules.hand_size + reach
    own += rest[: most - len(own)]
    other = [card for card in rules.deck if card not in own][:most]
    first, second = (other, own) if seen.dealer else (own, other)  # the big blind, then the dealer
    return [*(card for pair in zip(first[:n], second[:n], strict=True) for card in pair), *first[n:], *second[n:]]


def _is_now(game: Game, seen: Seen) -> bool:
    return 2 * game.round + game.drawing == seen.phase and game.to_act == PERSON


def _discard(game: Game, seen: Seen) -> int:
    """Return the person's discard in this draw, or for the opponent any discard of the known number of cards."""
    draw = game.round
    if game.to_act == PERSON:
        return discard(seen.held[draw], set(seen.held[draw]) - set(seen.held[draw + 1]))
    known = seen.other_draws[draw] if draw < len(seen.other_draws) else 0
    return DISCARD + (1 << known) - 1


class HumanPolicy:
    """Asks a person for every action.

    Args:
        rules: a preset's name or a `Rules` value.
        answers: answers are read from here, line by line; from standard input by default.
        screen: questions are written here; to standard output by default.
    """

    name = "human"

    def __init__(self, rules: Rules | str = "archie", answers: TextIO | None = None, screen: TextIO | None = None) -> None:
        self.rules = as_rules(rules)
        self._console = Console(answers, screen)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator | None = None) -> Actions:
        """See `archie_env.policy.Policy.act`; asks about one row after another.

        Raises:
            PlayerLeftError: if the person left.
        """
        rows = checked_rows(observations, masks, self.rules)
        return np.array([self._ask(row, mask) for row, mask in zip(rows, masks, strict=True)], np.int64)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """Unknown for a person; raises `ArchieError`."""
        raise ArchieError("the probabilities of a human are unknown: call act")

    def _ask(self, row: NDArray[np.generic], mask: NDArray[np.int8]) -> int:
        view = view_of(row, self.rules)
        legal = tuple(action for action in view.legal if mask[action])
        view = replace(view, legal=legal, choices=tuple(event for event in view.choices if event.action in legal))
        self._console.show(view, self.rules, NAMES)
        return self._console.decide(view, self.rules)
