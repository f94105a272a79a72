"""Where a decision stands in an abstraction: hands as classes, betting as nodes, and the block of a table that they index.

An abstraction forgets part of what a player has seen, so that what is left fits a table.  A hand is known by its *class*,
the ranks and whether four or five cards are of one suit, and the class by its bucket.  Of the public past a block knows the
class of the pot, of who raised last, and of the cards both players threw; the betting of the round itself is kept whole.
"""

from __future__ import annotations

import numpy as np

from agents.rows import read_hand, read_round
from archie_env._core.jit import inner, kernel
from archie_env._core.state import CALL, DISCARD, FOLD, MAX_HAND, MULTISETS, RAISE
from archie_env._core.tables import CHOOSE

PATTERNS = 7
"""No four cards of a suit; all but the card in place 0 .. 4 of one suit; five of a suit."""
CLASSES = MULTISETS * PATTERNS
SLOTS = 8
"""Discards that a class can choose from."""
NO_SLOT = 255
NODES = 16
"""Room for the betting nodes of a round."""
LEVELS = 64
"""Room for the bets that each has in when a round begins."""
LAST_RAISERS, THROWN = 27, 216
"""Three rounds of nobody, dealer, big blind; three draws of 0 to 5 cards."""
SHUT, FOLDED, CLOSED = -9, -1, -2
"""In place of a next node: the action is illegal, ends the hand, ends the round."""
FIRST, LATER = 0, 1
"""Kinds of betting round: the blinds are in, or nothing is."""

ABSTRACTION = np.dtype(
    [
        ("rounds", "i8"),
        ("hand_size", "i8"),
        ("suited", "i8"),  # 1: flushes count, so classes tell four of a suit
        ("cap", "i8"),  # betting actions that a row has room for in a round
        ("blinds", "i8", (2,)),  # chips, by position
        ("bet", "i8", (4,)),  # chips, by round
        # The betting of a round, [kind, node]: what each action leads to, who acts, which of that player's nodes it is
        ("next", "i8", (2, NODES, 3)),
        ("actor", "i8", (2, NODES)),
        ("place", "i8", (2, NODES)),
        ("wagers", "i8", (2, NODES)),  # bets and raises so far
        ("legal", "i8", (2, NODES)),  # bit k: action k is legal
        ("nodes", "i8", (2,)),
        ("width", "i8"),  # floats of a betting block: three for each of a player's nodes
        # Classes of the public past, by round
        ("pot", "i8", (4, LEVELS)),  # [round, bets each has in] (bets of the first round's size)
        ("raiser", "i8", (4, 2, LAST_RAISERS)),  # [round, position, last raisers]
        ("own", "i8", (4, THROWN)),  # [draws made, cards thrown]
        ("other", "i8", (4, THROWN)),
        ("pots", "i8", (4,)),  # how many classes there are of each
        ("raisers", "i8", (4,)),
        ("owns", "i8", (4,)),
        ("others", "i8", (4,)),
        ("buckets", "i8", (2,)),  # of hands with draws to come, and of final hands
        ("bet_start", "i8", (4,)),  # first block of a betting round
        ("draw_start", "i8", (3,)),  # first block of a draw
    ]
)
"""What the kernels need besides the arrays ``early (classes,)``, ``final (classes,)`` and ``slots (classes, 8)``."""


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
    """Bets in by each player, of the first round's size."""
    return min(paid // a["bet"][0], LEVELS - 1)


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
    """Chips lost by who folds at this node."""
    if r == 0 and node == 0:
        return a["blinds"][0]
    return paid_after(a, r, paid, wagers - 1)


@inner
def raisers_after(a, r, raisers, wagers, last_to_act):
    """The last raisers with round r added: who called last is not who raised last."""
    power = 1 if r == 0 else 3 if r == 1 else 9
    raised = wagers > (1 if r == 0 else 0)
    return raisers + power * (2 - last_to_act if raised else 0)


@inner
def thrown_count(row, start, counts):
    """Which of the entries of a draw is set: cards thrown, or 0 while none is."""
    for n in range(counts):
        if row[start + n]:
            return n
    return 0


@inner
def find_decision(layout, a, row, hand, early, final, own_draws):
    """``(drawing, block, place, class)`` of the decision that a row stands for."""
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
        own += power * thrown_count(row, own_draws + k * counts, counts)
        other += power * thrown_count(row, layout["other_draws"] + k * counts, counts)
        power *= 6
    read_hand(layout, row, r, hand)
    which = hand_class(hand, a["suited"])
    if drawing:
        return True, draw_block(a, r, position, paid, raisers, own, other, early[which]), np.int64(0), which
    bucket = final[which] if r + 1 == a["rounds"] else early[which]
    kind = FIRST if r == 0 else LATER
    return False, bet_block(a, r, position, paid, raisers, own, other, bucket), a["place"][kind, node], which


@inner
def weigh_slots(slots, draws, block, which, weights):
    """Write the weights ``(8,)`` of a draw's slots, 0 where there is none; returns their sum."""
    total = 0
    for k in range(SLOTS):
        weights[k] = draws[block, k] if slots[which, k] != NO_SLOT else 0
        total += weights[k]
    return total


@kernel
def fill_probabilities(layouts, abstractions, own_draws, early, final, slots, bets, draws, rows, masks, probabilities):
    """Write what the tables say for each row; where they say nothing, check or call, and stand pat."""
    layout, a = layouts[0], abstractions[0]
    hand, weights = np.zeros(MAX_HAND, np.int64), np.zeros(SLOTS, np.int64)
    for i in range(len(rows)):
        chances = probabilities[i]
        for k in range(len(chances)):
            chances[k] = 0
        drawing, block, place, which = find_decision(layout, a, rows[i], hand, early, final, own_draws)
        if drawing:
            total = weigh_slots(slots, draws, block, which, weights)
            if total == 0:
                chances[DISCARD] = 1
            for k in range(SLOTS):
                if weights[k]:
                    chances[DISCARD + slots[which, k]] += np.float32(weights[k] / total)
            continue
        total = 0
        for k in range(3):
            if masks[i, k]:
                total += bets[block, 3 * place + k]
        if total == 0:
            chances[CALL] = 1
            continue
        for k in range(FOLD, DISCARD):
            if masks[i, k]:
                chances[k] = np.float32(bets[block, 3 * place + k] / total)


@kernel
def find_decisions(layouts, abstractions, own_draws, early, final, rows, found):
    """Write for each row ``(4,)``: whether it is a draw, its block, the player's node, and the class of the hand."""
    hand = np.zeros(MAX_HAND, np.int64)
    for i in range(len(rows)):
        drawing, block, place, which = find_decision(layouts[0], abstractions[0], rows[i], hand, early, final, own_draws)
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = drawing, block, place, which


@kernel
def choose_actions(layouts, abstractions, own_draws, early, final, slots, bets, draws, rows, masks, uniforms, actions):
    """Draw an action for each row from what the tables say, by one uniform number in [0, 1) each."""
    layout, a = layouts[0], abstractions[0]
    hand, weights = np.zeros(MAX_HAND, np.int64), np.zeros(SLOTS, np.int64)
    for i in range(len(rows)):
        drawing, block, place, which = find_decision(layout, a, rows[i], hand, early, final, own_draws)
        if drawing:
            left = uniforms[i] * weigh_slots(slots, draws, block, which, weights)
            actions[i] = DISCARD
            for k in range(SLOTS):
                if weights[k]:
                    actions[i] = DISCARD + slots[which, k]
                    left -= weights[k]
                    if left < 0:
                        break
            continue
        total = 0
        for k in range(3):
            if masks[i, k]:
                total += bets[block, 3 * place + k]
        left = uniforms[i] * total
        actions[i] = CALL
        for k in range(FOLD, DISCARD):
            if masks[i, k] and bets[block, 3 * place + k]:
                actions[i] = k
                left -= bets[block, 3 * place + k]
                if left < 0:
                    break
