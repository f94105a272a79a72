"""The lines of the protocol "archie 1" as bytes: what the host sends, what a bot answers, and a row made from a message."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.process import _kernels as kernels
from agents.rows import layout
from archie_env.actions import DISCARD, FOLD, RAISE, STAND_PAT, parse_action
from archie_env.cards import format_card, parse_cards
from archie_env.errors import ArchieError, shown
from archie_env.observation import fields, owed_unit, pot_unit, width
from archie_env.rules import PRESETS, Rules, as_rules

VERSION: Final = 1
BATCH: Final = 4096
"""Lines that the host sends at most before it has their answers."""
MOST_NAME: Final = 40
"""Letters of the longest name that a bot may give itself."""
MOST_LINE: Final = 1 << 16
"""Bytes of the longest line that is read."""
BILLION: Final = 1_000_000_000
"""Steps of the chance ``u``, which has nine digits."""

PIECES: Final = (
    b'{"i":', b',"left":', b',"round":', b',"draw":', b',"dealer":', b',"pot":', b',"owe":', b',"most":', b',"legal":[',
    b',"held":[', b'],"held":[', b'],"drew":[', b'],"other":[', b'],"bets":[', b'],"u":0.', b"}\n",
)  # fmt: skip
"""What stands between the values of a message; `agents.process._kernels` numbers them."""
_TEXT: Final = np.frombuffer(b"".join(PIECES), np.uint8)
_ENDS: Final = np.cumsum([0, *map(len, PIECES)]).astype(np.int64)
_CARDS: Final = np.frombuffer("".join(map(format_card, range(52))).encode(), np.uint8).reshape(52, 2)
_NUMBERS: Final = 80
"""Digits of all single numbers of a message, at most."""


def messages(rows: NDArray[np.int8], masks: NDArray[np.int8], rules: Rules, first: int, chances: NDArray[np.int64]) -> bytes:
    """Write a line for each decision.

    Args:
        rows: ``(n, d)``, as `agents.rows.checked_rows` returns them.
        masks: ``(n, a)``.
        rules: of the rows.
        first: index of the first line.
        chances: ``(n,)`` whole numbers below `BILLION`.
    """
    line = len(_TEXT) + _NUMBERS + (rules.draws + 1) * (2 * rules.hand_size + rules.raise_cap + 8) + 8 * rules.draws
    out = np.empty(len(rows) * line, np.uint8)
    end = kernels.write_messages(layout(rules), rows, masks, _TEXT, _ENDS, _CARDS, first, chances, out)
    return out[:end].tobytes()


def canonical(values: Mapping[str, Any]) -> bytes:
    """JSON in the form of the protocol: one line without blanks."""
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def rules_value(rules: Rules) -> str | dict[str, Any]:
    """The rules in the first line: the name of a preset, or every option."""
    return rules.name if PRESETS.get(rules.name) == rules else rules.to_dict()


def read_object(line: bytes) -> dict[str, Any]:
    """Read one line of JSON as an object; raises `ValueError` saying what it is instead."""
    if len(line) > MOST_LINE:
        raise ValueError(f"a line of more than {MOST_LINE >> 10} KiB")
    try:
        value = json.loads(line.decode(), object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("brackets nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key stands there twice")
    return values


def action_of(answer: object, hand: Sequence[int]) -> int:
    """The action of ``"a"``: its number, or its words.

    Raises:
        IllegalActionError: for a discard of cards that are not in the ascending ``hand``.
        ArchieError: for what is no action at all.
    """
    if type(answer) is int:
        return answer
    if answer == "pat":
        return STAND_PAT
    if isinstance(answer, str):
        return parse_action(answer, hand)
    raise ArchieError(f"action {shown(answer)}: expected a number or words")


def row_of(message: Mapping[str, Any], rules: Rules | str) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """The row ``(d,)`` and the mask ``(a,)`` that a message was written from.

    Raises:
        ArchieError: for what is no message under these rules.
    """
    rules = as_rules(rules)
    try:
        return _row_of(message, rules)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ArchieError(f"message {shown(dict(message))}: {error}: expected one of rules {rules.name!r}") from None


def _row_of(message: Mapping[str, Any], rules: Rules) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    row, (blocks, cards) = [0] * width(rules), _indices(rules)
    hand: tuple[int, ...] = ()
    for r, text in enumerate(message["held"]):
        hand = tuple(parse_cards(text))
        for card in hand:
            row[blocks["held"][r] + cards[card][0]] = 1
    for slot, card in zip(blocks["slots"], hand, strict=True):
        for entry in cards[card][1]:
            row[slot + entry] = 1
    for name, counts in (("own_draws", message["drew"]), ("other_draws", message["other"])):
        for start, count in zip(blocks[name], counts, strict=False):
            row[start + range(rules.max_discard + 1)[count]] = 1
    for start, actions in zip(blocks["wagers"], message["bets"], strict=False):
        for k, action in enumerate(actions):
            row[start + 2 * range(rules.raise_cap + 2)[k] + "kr".index(action)] = 1
    drawing = message["draw"] == 1
    row[blocks["phase"][0] + range(2 * rules.draws + 1)[2 * message["round"] - 2 + drawing]] = 1
    row[blocks["dealer"][0]] = message["dealer"]
    row[blocks["owed"][0]] = -(-message["owe"] // owed_unit(rules))
    row[blocks["pot"][0]] = message["pot"] // pot_unit(rules)
    if drawing:
        return np.array(row, np.int8), _draw_mask(rules, message["most"])
    mask = np.zeros(rules.actions, np.int8)
    for action in message["legal"]:
        mask[range(FOLD, RAISE + 1)[action]] = 1
    return np.array(row, np.int8), mask


@functools.cache
def _draw_mask(rules: Rules, most: int) -> NDArray[np.int8]:
    mask = np.zeros(rules.actions, np.int8)
    mask[DISCARD:] = np.bitwise_count(np.arange(2**rules.hand_size)) <= most
    return mask


@functools.cache
def _indices(rules: Rules) -> tuple[dict[str, list[int]], dict[int, tuple[int, tuple[int, int]]]]:
    """Where the parts of each block begin, along its first axis; of each card, its column and its entries in a slot."""
    blocks = {}
    for block in fields(rules):
        parts = block.shape[0] if len(block.shape) > 1 else 1
        blocks[block.name] = [block.start + k * (block.size // parts) for k in range(parts)]
    names = {card: format_card(card) for card in rules.deck}
    slot = [*rules.ranks, *rules.suits]
    return blocks, {
        card: (column, (slot.index(names[card][0]), slot.index(names[card][1]))) for column, card in enumerate(rules.deck)
    }
