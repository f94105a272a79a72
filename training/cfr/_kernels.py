"""External-sampling Monte Carlo counterfactual regret minimisation (Lanctot et al. 2009) over an abstraction.

A traversal deals one hand, tries every action of one player, the traverser (``me``), and samples those of the other.

Numba can't keep recursive kernels on disk, so the recursion is written out: a ``TRAVERSAL`` record holds one frame for each
betting round and each draw, and `traverse` is a state machine that moves up and down through the frames.  As the tree inside of
a betting round is small and its nodes are numbered parents first, one loop down the numbers (`descend`) and one back up
(`back_up`) take the place of recursion there.

Tables are float32: ``bets (blocks, 2, width)`` and ``draws (blocks, 2, 8)``, [:, 0] regrets and [:, 1] the weights of the
average strategy, each added to with weights that grow with time (Brown & Sandholm 2019): t for regrets, t^2 for averages.
Threads may share tables.  They use no locks: an update is lost now and then, which is noise of the size of one traversal.
"""

from __future__ import annotations

import numpy as np

from agents._cfr_kernels import (
    CLOSED,
    FIRST,
    FOLDED,
    LATER,
    NODES,
    OPTIONS,
    bet_block,
    draw_block,
    hand_class,
    paid_after,
    paid_by_folder,
    raisers_after,
)
from archie_env._core.jit import inner, kernel
from archie_env._core.rng import GOLDEN, below, mix
from archie_env._core.showdown import award, high_value, low_value
from archie_env._core.state import MAX_HAND, NO_CARD
from training.cfr._table_kernels import AVERAGES, REGRETS, legal_options, match_regrets, sample_matched, sample_target

TRAVERSAL = np.dtype(
    [
        ("bits", "u8"),  # state of the random numbers
        ("count", "i8"),  # traversals so far
        ("nodes", "i8"),  # decisions visited so far
        # The hand
        ("deck", "i8", (52,)),
        ("next_card", "i8", (2, 4)),  # [position, round]: index in the deck of the next replacement
        ("hand", "i8", (2, 4, MAX_HAND)),  # [position, round]: ascending
        ("class", "i8", (2, 4)),  # [position, round]: class of that hand
        ("hand_value", "i8", (2, 2)),  # [position, high or low] at the showdown
        # Frames of betting rounds
        ("paid", "i8", (4,)),  # chips paid by each player before the round
        ("raisers", "i8", (4,)),  # last raisers of the rounds before
        ("discarded", "i8", (2, 4)),  # [position, round]: numbers of cards discarded in the draws before, in base 6
        ("block", "i8", (2, 4)),  # [position, round]: block of the tables
        ("reached", "i8", (4, NODES)),  # 1 for the nodes on the paths that are tried
        ("probability", "f8", (4, NODES, 3)),  # current strategy at the node
        ("value", "f8", (4, NODES, 3)),  # chips to the traverser after each action; [0] the node's once it is backed up
        ("visited", "i8", (4, NODES, 3)),  # 1 for the actions that are tried
        ("ends", "i8", (4,)),  # number of visited actions that close the round
        ("end", "i8", (4, NODES, 2)),  # node and action of each of these
        ("at", "i8", (4,)),  # the one that is being played on; -1 before the first
        # Frames of draws
        ("draw", "i8", (3,)),  # the traverser's block
        ("option", "i8", (3,)),  # the discard that is being played on; -1 before the first
        ("option_probability", "f8", (3, OPTIONS)),
        ("option_value", "f8", (3, OPTIONS)),
        ("option_visited", "i8", (3, OPTIONS)),
        ("apart", "i8", (16,)),  # padding: threads must not write to the same cache line
    ]
)
"""All that a traversal writes besides the tables.  Every traversal writes the fields after ``nodes`` before it reads them."""

# States of `traverse`, each in round (or draw) r:
ENTER_BETTING = 0  # walk down the betting of round r
NEXT_END = 1  # go on from the next end of the betting of round r, or back it up if there is none
ENTER_DRAW = 2  # play draw r after that end
NEXT_OPTION = 3  # go on with the next discard of draw r, or back the draw up if there is none
OVER = 4  # the first round is backed up

_11 = np.uint64(11)
_STEP = 2.0**-53
_PARTS = 16  # of a chip: halves and quarters are whole numbers of them


@inner
def uniform(t):
    """A number in [0, 1)."""
    t["bits"] += GOLDEN
    return np.float64(mix(t["bits"]) >> _11) * _STEP


@inner
def insert(hand, n, card):
    """Put a card among the first n, ascending."""
    while n > 0 and hand[n - 1] > card:
        hand[n] = hand[n - 1]
        n -= 1
    hand[n] = card


@inner
def deal(t, book):
    """Shuffle the cards that can be dealt; each position gets a hand and, as in duplicate play, replacements of its own."""
    size = book["deck_size"]
    for i in range(size):
        t["deck"][i] = book["deck"][i]
    n, reach = book["hand_size"], book["draws"] * book["max_discard"]
    for i in range(2 * (n + reach)):
        t["bits"] += GOLDEN
        j = i + below(mix(t["bits"]), size - i)
        t["deck"][i], t["deck"][j] = t["deck"][j], t["deck"][i]
    for position in range(2):
        start = position * (n + reach)
        for i in range(MAX_HAND):
            t["hand"][position, 0, i] = NO_CARD
        for i in range(n):
            insert(t["hand"][position, 0], i, t["deck"][start + i])
        t["next_card"][position, 0] = start + n


@inner
def replace(t, a, position, r, discard):
    """Write the hand of round r + 1: the kept cards of round r and replacements.  Returns the number of discards."""
    old, new = t["hand"][position, r], t["hand"][position, r + 1]
    n, kept = a["hand_size"], 0
    for i in range(n):
        if not discard >> i & 1:
            new[kept] = old[i]
            kept += 1
    card = t["next_card"][position, r]  # replacements of earlier draws stay where they are: another discard goes back to them
    for i in range(kept, n):
        insert(new, i, t["deck"][card])
        card += 1
    for i in range(n, MAX_HAND):
        new[i] = NO_CARD
    t["next_card"][position, r + 1] = card
    t["class"][position, r + 1] = hand_class(new, a["suited"])
    return n - kept


@inner
def evaluate(t, book, position, r):
    """Write the values of a hand at the showdown."""
    hand = t["hand"][position, r]
    t["hand_value"][position, 0], t["hand_value"][position, 1] = high_value(book, hand), low_value(book, hand)


@inner
def share_won(t, book, position):
    """Chips that a position wins at the showdown for each chip that both paid, -1 to 1.  Odd chips are divided too."""
    value = t["hand_value"]
    high, low, division = award(book, _PARTS, value[0, 0], value[1, 0], value[0, 1], value[1, 1], False)
    net = np.float64(high + low + division - _PARTS) / _PARTS
    return net if position == 0 else -net


@inner
def betting_block(t, a, position, r, draw_buckets, showdown_buckets):
    """The block of a position's hand in betting round r."""
    which = t["class"][position, r]
    bucket = showdown_buckets[which] if r + 1 == a["rounds"] else draw_buckets[which]
    own, other = t["discarded"][position, r], t["discarded"][1 - position, r]
    return bet_block(a, r, position, t["paid"][r], t["raisers"][r], own, other, bucket)


@inner
def draw_power(r):
    """The value of a digit of draw r in ``discarded``."""
    return 1 if r == 0 else 6 if r == 1 else 36


@inner
def note_child(t, a, r, kind, node, action, loser_sign):
    """Mark the node that an action leads to, or list the end of the round, or write the value of a fold.

    ``loser_sign`` is -1 if the traverser would fold, and 1 if the other player would.
    """
    following = a["next"][kind, node, action]
    if following >= 0:
        t["reached"][r, following] = 1
    elif following == CLOSED:
        k = t["ends"][r]
        t["end"][r, k, 0] = node
        t["end"][r, k, 1] = action
        t["ends"][r] = k + 1
    else:
        lost = paid_by_folder(a, r, t["paid"][r], node, a["wagers"][kind, node])
        t["value"][r, node, action] = loser_sign * lost


@inner
def descend(t, a, r, me, bets, has_target, target_bets, explore, weight):
    """Walk from the first node of a betting round to its ends: all actions of the traverser, one of the other player."""
    kind = FIRST if r == 0 else LATER
    nodes = a["nodes"][kind]
    reached = t["reached"][r]
    for node in range(nodes):
        reached[node] = 0
    reached[0] = 1
    t["ends"][r] = 0
    for node in range(nodes):  # parents come first, so that ``reached`` is final when its node comes
        if not reached[node]:
            continue
        t["nodes"] += 1
        legal = a["legal"][kind, node]
        start = 3 * a["index"][kind, node]
        visited, probabilities = t["visited"][r, node], t["probability"][r, node]
        if a["actor"][kind, node] == me:
            match_regrets(bets[t["block"][me, r], REGRETS], start, 3, legal, probabilities)
            for k in range(3):
                # An action of probability 0 does not change the node's value, only its own regret, so that it is enough to
                # visit it now and then.  A fold costs nothing to visit
                visited[k] = legal >> k & 1
                if visited[k]:
                    if probabilities[k] <= 0 and a["next"][kind, node, k] != FOLDED and uniform(t) >= explore:
                        visited[k] = 0
                        continue
                    note_child(t, a, r, kind, node, k, -1.0)
            continue
        block = t["block"][1 - me, r]
        if has_target:
            chosen = sample_target(target_bets[block], start, 3, legal, uniform(t))
        else:
            match_regrets(bets[block, REGRETS], start, 3, legal, probabilities)
            chosen = sample_matched(probabilities, bets[block, AVERAGES], start, 3, legal, weight, uniform(t))
        for k in range(3):
            visited[k] = k == chosen
        note_child(t, a, r, kind, node, chosen, 1.0)


@inner
def back_up(t, a, r, me, bets, weight):
    """Add regrets from the ends of a betting round to its first node; returns the value of the round to the traverser."""
    kind = FIRST if r == 0 else LATER
    value = 0.0
    for node in range(a["nodes"][kind] - 1, -1, -1):  # children come first
        if not t["reached"][r, node]:
            continue
        values, visited, probability = t["value"][r, node], t["visited"][r, node], t["probability"][r, node]
        mine = a["actor"][kind, node] == me
        value = 0.0
        for k in range(3):
            if visited[k]:
                following = a["next"][kind, node, k]
                if following >= 0:
                    values[k] = t["value"][r, following, 0]
                # The other player's action was sampled, so its value counts whole
                value += probability[k] * values[k] if mine else values[k]
        if mine:
            regrets, start = bets[t["block"][me, r], REGRETS], 3 * a["index"][kind, node]
            for k in range(3):
                if visited[k]:
                    regrets[start + k] += np.float32(weight * (values[k] - value))
        values[0] = value  # the parent reads it here; the node's own values are used up
    return value


@inner
def begin_draw(
    t, a, r, me, paid, raisers, draw_buckets, options, draws,
    has_target, target, target_draw_buckets, target_options, target_draws, explore, weight,
):  # fmt: skip
    """Begin draw r: sample the discard of the other player, and list those of the traverser.

    Draws are simultaneous, so that one sample of the other player's serves all discards of the traverser.
    """
    other = 1 - me
    which = t["class"][other, r]
    own_past, other_past = t["discarded"][other, r], t["discarded"][me, r]
    if has_target:
        block = draw_block(target, r, other, paid, raisers, own_past, other_past, target_draw_buckets[which])
        chosen = sample_target(target_draws[block], 0, OPTIONS, legal_options(target_options, which), uniform(t))
        discard = np.int64(target_options[which, chosen])
    else:
        block = draw_block(a, r, other, paid, raisers, own_past, other_past, draw_buckets[which])
        legal = legal_options(options, which)
        probabilities = t["option_probability"][r]  # free until the traverser's are written
        match_regrets(draws[block, REGRETS], 0, OPTIONS, legal, probabilities)
        chosen = sample_matched(probabilities, draws[block, AVERAGES], 0, OPTIONS, legal, weight, uniform(t))
        discard = np.int64(options[which, chosen])
    t["discarded"][other, r + 1] = own_past + draw_power(r) * replace(t, a, other, r, discard)
    which = t["class"][me, r]
    block = draw_block(a, r, me, paid, raisers, other_past, own_past, draw_buckets[which])
    legal = legal_options(options, which)
    t["nodes"] += 2
    match_regrets(draws[block, REGRETS], 0, OPTIONS, legal, t["option_probability"][r])
    for k in range(OPTIONS):
        visited = legal >> k & 1
        if visited and t["option_probability"][r, k] <= 0 and uniform(t) >= explore:
            visited = 0
        t["option_visited"][r, k] = visited
    t["draw"][r], t["option"][r] = block, -1
    t["paid"][r + 1], t["raisers"][r + 1] = paid, raisers


@inner
def end_draw(t, r, draws, weight):
    """Add the regrets of a draw; returns its value to the traverser."""
    value = 0.0
    for k in range(OPTIONS):
        if t["option_visited"][r, k]:
            value += t["option_probability"][r, k] * t["option_value"][r, k]
    regrets = draws[t["draw"][r], REGRETS]
    for k in range(OPTIONS):
        if t["option_visited"][r, k]:
            regrets[k] += np.float32(weight * (t["option_value"][r, k] - value))
    return value


@inner
def show_down(t, book, a, r, me):
    """Write the values of all ends of the last round: the hands are the same at each, only the pots differ."""
    evaluate(t, book, 0, r)
    evaluate(t, book, 1, r)
    share = share_won(t, book, me)
    for k in range(t["ends"][r]):
        node, action = t["end"][r, k, 0], t["end"][r, k, 1]
        paid = paid_after(a, r, t["paid"][r], a["wagers"][LATER, node])
        t["value"][r, node, action] = share * paid


@inner
def traverse(
    t, book, a, me, draw_buckets, showdown_buckets, options, bets, draws,
    has_target, target, target_draw_buckets, target_showdown_buckets, target_options, target_bets, target_draws,
    explore, weight,
):  # fmt: skip
    """Run one traversal; returns the value of the hand to the traverser, in chips.

    The first line of parameters is the traverser's abstraction and tables, which are learnt.  The second is those of the other
    player if there is a target, which is played and not learnt; without one the other player uses the first, and learns too.

    Rounds and draws alternate down the hand: round 0, draw 0, round 1, ... .  Invariants at the head of the loop:
    frames of rounds up to r and of draws before r are filled in; ``at`` and ``option`` of these point to the path that is
    being played; ``value`` and ``option_value`` hold results of all paths that are done.
    """
    deal(t, book)
    other = 1 - me
    last = a["rounds"] - 1
    for position in range(2):
        t["class"][position, 0] = hand_class(t["hand"][position, 0], a["suited"])
    t["paid"][0] = t["raisers"][0] = t["discarded"][0, 0] = t["discarded"][1, 0] = 0
    r, state, value = 0, ENTER_BETTING, 0.0
    while state != OVER:
        if state == ENTER_BETTING:
            t["block"][me, r] = betting_block(t, a, me, r, draw_buckets, showdown_buckets)
            if has_target:
                t["block"][other, r] = betting_block(t, target, other, r, target_draw_buckets, target_showdown_buckets)
            else:
                t["block"][other, r] = betting_block(t, a, other, r, draw_buckets, showdown_buckets)
            descend(t, a, r, me, bets, has_target, target_bets, explore, weight)
            t["at"][r] = -1
            if r == last:
                show_down(t, book, a, r, me)
                t["at"][r] = t["ends"][r] - 1  # no end is left to be played on
            state = NEXT_END
        elif state == NEXT_END:
            k = t["at"][r] = t["at"][r] + 1
            if k < t["ends"][r]:
                state = ENTER_DRAW
                continue
            value = back_up(t, a, r, me, bets, weight)
            if r == 0:
                state = OVER
            else:  # back to the draw before, whose discard led here
                r -= 1
                t["option_value"][r, t["option"][r]] = value
                state = NEXT_OPTION
        elif state == ENTER_DRAW:
            node = t["end"][r, t["at"][r], 0]
            kind = FIRST if r == 0 else LATER
            wagers = a["wagers"][kind, node]
            paid = paid_after(a, r, t["paid"][r], wagers)
            raisers = raisers_after(a, r, t["raisers"][r], wagers, a["actor"][kind, node])
            begin_draw(
                t, a, r, me, paid, raisers, draw_buckets, options, draws,
                has_target, target, target_draw_buckets, target_options, target_draws, explore, weight,
            )  # fmt: skip
            state = NEXT_OPTION
        else:
            k = t["option"][r] + 1
            while k < OPTIONS and not t["option_visited"][r, k]:
                k += 1
            t["option"][r] = k
            if k < OPTIONS:  # down to the next round
                discard = np.int64(options[t["class"][me, r], k])
                t["discarded"][me, r + 1] = t["discarded"][me, r] + draw_power(r) * replace(t, a, me, r, discard)
                r += 1
                state = ENTER_BETTING
            else:  # back to the end of the betting that led to this draw
                value = end_draw(t, r, draws, weight)
                node, action = t["end"][r, t["at"][r], 0], t["end"][r, t["at"][r], 1]
                t["value"][r, node, action] = value
                state = NEXT_END
    t["count"] += 1
    return value


@kernel
def traverse_many(
    traversals, books, abstractions, draw_buckets, showdown_buckets, options, bets, draws,
    has_target, targets, target_draw_buckets, target_showdown_buckets, target_options, target_bets, target_draws,
    count, explore, weight,
):  # fmt: skip
    """Run ``count`` traversals for each position; returns the sums of their values in chips, dealer first."""
    t, book, a, target = traversals[0], books[0], abstractions[0], targets[0]
    values = np.zeros(2)
    for _ in range(count):
        for me in range(2):
            values[me] += traverse(
                t, book, a, me, draw_buckets, showdown_buckets, options, bets, draws, has_target, target,
                target_draw_buckets, target_showdown_buckets, target_options, target_bets, target_draws, explore, weight,
            )  # fmt: skip
    return values[0], values[1]
