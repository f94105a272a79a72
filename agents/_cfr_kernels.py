"""The index of a decision in the tables of an abstraction: hands as classes, betting as nodes, and the block that they select.

An abstraction merges decisions until they fit a table.  A hand counts as its *class*: the ranks, and whether four or five cards
are of one suit.  Classes are merged into buckets.  A block stands for a bucket and a public past: classes of the pot, of the
last raisers and of both players' discard counts.  The betting of the round itself is not merged.
"""

from __future__ import annotations

import numpy as np

from agents.rows import read_hand, read_round
from archie_env._core.jit import inner, kernel
from archie_env._core.state import CALL, DISCARD, FOLD, MAX_HAND, MULTISETS, RAISE
from archie_env._core.tables import CHOOSE

PATTERNS = 7
"""No four cards of a suit; all but card 0 .. 4 of one suit; five of a suit."""
CLASSES = MULTISETS * PATTERNS
OPTIONS = 8
"""Room for the discards that a class of hands can choose from."""
NO_OPTION = 255
NODES = 16
"""Room for the betting nodes of a round."""
POT_LEVELS = 64
"""Room for the bets that each player has paid when a round begins."""
RAISER_HISTORIES, DISCARD_HISTORIES = 27, 216
"""Codes of three rounds in base 3 (nobody, dealer, big blind) and of three draws in base 6 (0 to 5 cards)."""
SHUT, FOLDED, CLOSED = -9, -1, -2
"""Stand for the next node of an action that is illegal, ends the hand, ends the round."""
FIRST, LATER = 0, 1
"""Kinds of betting round: the blinds are in, or nothing is."""

ABSTRACTION = np.dtype(
    [
        ("rounds", "i8"),
        ("hand_size", "i8"),
        ("suited", "i8"),  # 1: flushes count, so classes distinguish four of a suit
        ("cap", "i8"),  # betting actions that a row has room for in a round
        ("blinds", "i8", (2,)),  # chips, by position
        ("bet", "i8", (4,)),  # chips, by round
        # The betting of a round, [kind, node]: the next node of each action, the position to act, the index among its nodes
        ("next", "i8", (2, NODES, 3)),
        ("actor", "i8", (2, NODES)),
        ("index", "i8", (2, NODES)),
        ("wagers", "i8", (2, NODES)),  # bets and raises so far
        ("legal", "i8", (2, NODES)),  # bit k: action k is legal
        ("nodes", "i8", (2,)),
        ("width", "i8"),  # floats of a betting block: three for each of a player's nodes
        # Classes of the public past, by round
        ("pot", "i8", (4, POT_LEVELS)),  # [round, bets paid by each] (bets of the first round's size)
        ("raiser", "i8", (4, 2, RAISER_HISTORIES)),  # [round, position, last raisers]
        ("own", "i8", (4, DISCARD_HISTORIES)),  # [draws made, discard counts in base 6]
        ("other", "i8", (4, DISCARD_HISTORIES)),
        ("pots", "i8", (4,)),  # how many classes there are of each
        ("raisers", "i8", (4,)),
        ("owns", "i8", (4,)),
        ("others", "i8", (4,)),
        ("buckets", "i8", (2,)),  # of hands with draws to come, and of hands at the showdown
        ("bet_start", "i8", (4,)),  # first block of a betting round
        ("draw_start", "i8", (3,)),  # first block of a draw
    ]
)
"""All that kernels need besides the arrays of `agents.abstraction.Abstraction.hands`."""


@inner
def hand_class(hand, suited):
    """The class of an ascending hand of five places."""
    n = np.int64(0)
    for i in range(MAX_HAND):
        n += CHOOSE[i, hand[i] >> 2]
    if not suited:
        return n * PATTERNS
    counts = np.int64(0)
    for i in range(MAX_HAND):
        counts += np.int64(1) << (3 * (hand[i] & 3))
    if not counts & 0o4444:
        return n * PATTERNS
    suit = 0
    while not counts >> (3 * suit) & 4:
        suit += 1
    for i in range(MAX_HAND):
        if hand[i] & 3 != suit:
            return n * PATTERNS + 1 + i
    return n * PATTERNS + MAX_HAND + 1


@kernel
def classify_hands(hands, suited, found):
    """Write the class of each of the ascending hands ``(n, 5)``."""
    for i in range(len(hands)):
        found[i] = hand_class(hands[i], suited)


@inner
def pot_level(a, paid):
    """Bets of the first round's size that each player has paid."""
    return min(paid // a["bet"][0], POT_LEVELS - 1)


@inner
def bet_block(a, r, position, paid, raisers, own, other, bucket):
    """The block of betting round r, in which each has paid ``paid`` when it begins."""
    i = position * a["pots"][r] + a["pot"][r, pot_level(a, paid)]
    i = i * a["raisers"][r] + a["raiser"][r, position, raisers]
    i = i * a["owns"][r] + a["own"][r, own]
    i = i * a["others"][r] + a["other"][r, other]
    return a["bet_start"][r] + i * a["buckets"][1 if r + 1 == a["rounds"] else 0] + bucket


@inner
def draw_block(a, r, position, paid, raisers, own, other, bucket):
    """The block of draw r, made once betting round r is over."""
    i = position * a["pots"][r + 1] + a["pot"][r + 1, pot_level(a, paid)]
    i = i * a["raisers"][r + 1] + a["raiser"][r + 1, position, raisers]
    i = i * a["owns"][r] + a["own"][r, own]
    i = i * a["others"][r] + a["other"][r, other]
    return a["draw_start"][r] + i * a["buckets"][0] + bucket


@inner
def paid_after(a, r, paid, wagers):
    """Chips paid by each once ``wagers`` bets of round r are called; the big blind is the first of round 0."""
    if r == 0:
        return a["blinds"][1] + (wagers - 1) * a["bet"][0]
    return paid + wagers * a["bet"][r]


@inner
def paid_by_folder(a, r, paid, node, wagers):
    """Chips that a player loses by folding at this node."""
    if r == 0 and node == 0:
        return a["blinds"][0]
    return paid_after(a, r, paid, wagers - 1)


@inner
def raisers_after(a, r, raisers, wagers, last_to_act):
    """The last raisers with round r added.  The player who acts last has called, so the other one raised last."""
    power = 1 if r == 0 else 3 if r == 1 else 9
    raised = wagers > (1 if r == 0 else 0)
    return raisers + power * (2 - last_to_act if raised else 0)


@inner
def discard_count(row, start, counts):
    """Cards discarded in a draw: the entry that is set, or 0 if none is."""
    for n in range(counts):
        if row[start + n]:
            return n
    return 0


@inner
def find_decision(layout, a, row, hand, draw_buckets, showdown_buckets, own_draws):
    """``(drawing, block, index, class)`` of the decision that a row describes."""
    r = read_round(layout, row)
    # A row without any phase reads as the last round, after which there is no draw: tables end there
    drawing = r < layout["draws"] and row[layout["phase"] + 2 * r] == 0
    position = 0 if row[layout["dealer"]] else 1
    paid, raisers, node = np.int64(0), np.int64(0), np.int64(0)
    rounds = r + 1 if drawing else r  # that are over
    for k in range(r + 1):
        at, node, last = layout["wagers"] + k * 2 * a["cap"], np.int64(0), np.int64(0)
        kind, wagers = (FIRST, np.int64(1)) if k == 0 else (LATER, np.int64(0))
        for i in range(a["cap"]):
            called, raised = row[at + 2 * i], row[at + 2 * i + 1]
            if not (called or raised):
                break
            last, wagers = a["actor"][kind, node], wagers + (1 if raised else 0)
            following = a["next"][kind, node, RAISE if raised else CALL]
            if following < 0:
                break
            node = following
        if k < rounds:
            raisers = raisers_after(a, k, raisers, wagers, last)
            paid = paid_after(a, k, paid, wagers)
    own, other, power, counts = np.int64(0), np.int64(0), np.int64(1), layout["max_discard"] + 1
    for k in range(r):
        own += power * discard_count(row, own_draws + k * counts, counts)
        other += power * discard_count(row, layout["other_draws"] + k * counts, counts)
        power *= 6
    read_hand(layout, row, r, hand)
    which = hand_class(hand, a["suited"])
    if drawing:
        return True, draw_block(a, r, position, paid, raisers, own, other, draw_buckets[which]), np.int64(0), which
    bucket = showdown_buckets[which] if r + 1 == a["rounds"] else draw_buckets[which]
    kind = FIRST if r == 0 else LATER
    return False, bet_block(a, r, position, paid, raisers, own, other, bucket), a["index"][kind, node], which


@inner
def weigh_options(options, draws, block, which, weights):
    """Write the weights ``(8,)`` of a draw's options, 0 where there is none; returns their sum."""
    total = 0
    for k in range(OPTIONS):
        weights[k] = draws[block, k] if options[which, k] != NO_OPTION else 0
        total += weights[k]
    return total


@kernel
def fill_probabilities(
    layouts, abstractions, own_draws, draw_buckets, showdown_buckets, options, bets, draws, rows, masks, probabilities
):
    """Write the probabilities of the tables for each row.  Where they are empty: check or call, and stand pat."""
    layout, a = layouts[0], abstractions[0]
    hand, weights = np.zeros(MAX_HAND, np.int64), np.zeros(OPTIONS, np.int64)
    for i in range(len(rows)):
        probs = probabilities[i]
        for k in range(len(probs)):
            probs[k] = 0
        drawing, block, index, which = find_decision(layout, a, rows[i], hand, draw_buckets, showdown_buckets, own_draws)
        if drawing:
            total = weigh_options(options, draws, block, which, weights)
            if total == 0:
                probs[DISCARD] = 1
            for k in range(OPTIONS):
                if weights[k]:
                    probs[DISCARD + options[which, k]] += np.float32(weights[k] / total)
            continue
        total = 0
        for k in range(3):
            if masks[i, k]:
                total += bets[block, 3 * index + k]
        if total == 0:
            probs[CALL] = 1
            continue
        for k in range(FOLD, DISCARD):
            if masks[i, k]:
                probs[k] = np.float32(bets[block, 3 * index + k] / total)


@kernel
def find_decisions(layouts, abstractions, own_draws, draw_buckets, showdown_buckets, rows, found):
    """Write for each row ``(4,)``: 1 for a draw, the block, the index of the player's node, the class of the hand."""
    hand = np.zeros(MAX_HAND, np.int64)
    for i in range(len(rows)):
        drawing, block, index, which = find_decision(
            layouts[0], abstractions[0], rows[i], hand, draw_buckets, showdown_buckets, own_draws
        )
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = drawing, block, index, which


@kernel
def choose_actions(
    layouts, abstractions, own_draws, draw_buckets, showdown_buckets, options, bets, draws, rows, masks, uniforms, actions
):
    """Sample an action for each row from the tables, by one uniform number in [0, 1) each."""
    layout, a = layouts[0], abstractions[0]
    hand, weights = np.zeros(MAX_HAND, np.int64), np.zeros(OPTIONS, np.int64)
    for i in range(len(rows)):
        drawing, block, index, which = find_decision(layout, a, rows[i], hand, draw_buckets, showdown_buckets, own_draws)
        if drawing:
            left = uniforms[i] * weigh_options(options, draws, block, which, weights)
            actions[i] = DISCARD
            for k in range(OPTIONS):
                if weights[k]:
                    actions[i] = DISCARD + options[which, k]
                    left -= weights[k]
                    if left < 0:
                        break
            continue
        total = 0
        for k in range(3):
            if masks[i, k]:
                total += bets[block, 3 * index + k]
        left = uniforms[i] * total
        actions[i] = CALL
        for k in range(FOLD, DISCARD):
            if masks[i, k] and bets[block, 3 * index + k]:
                actions[i] = k
                left -= bets[block, 3 * index + k]
                if left < 0:
                    break
