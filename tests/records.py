"""The engine's records as a person would list them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import MAX_HAND, NO_CARD
from archie_env.rules import Rules, as_rules


def cards_of(held: int, rules: Rules | str = "archie") -> list[int]:
    """The cards of a set, ascending."""
    return [card for i, card in enumerate(as_rules(rules).deck) if held >> i & 1]


def set_of(cards: list[int] | tuple[int, ...], rules: Rules | str = "archie") -> int:
    """The inverse of `cards_of`, whatever the order."""
    return sum(1 << as_rules(rules).deck.index(card) for card in cards)


def hands_in(games: np.ndarray, rules: Rules | str = "archie") -> NDArray[np.int8]:
    """``games["held"]``, of any shape, with an axis of five more: ascending cards, NO_CARD behind them."""
    rest = games["held"].copy()
    deck = np.full(65, NO_CARD, np.int8)
    deck[: as_rules(rules).deck_size] = as_rules(rules).deck
    hands = np.empty((*rest.shape, MAX_HAND), np.int8)
    for k in range(MAX_HAND):
        lowest = rest & ~(rest - np.uint64(1))
        hands[..., k] = deck[np.where(rest > 0, np.log2(np.maximum(lowest, 1).astype(float)), 64).astype(int)]
        rest ^= lowest
    return hands
