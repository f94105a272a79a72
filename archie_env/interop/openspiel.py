"""Archie as an OpenSpiel game, and policies of either library as policies of the other.

Importing this module registers ``python_archie``, a sequential game with explicit chance: each card is a chance node, so every
set of rules can be traversed.  Player 0 deals.  Where both players discard at once, the big blind discards first and the dealer
does not see it.  Information states are the rows of the environment: as a tensor their int8 values as floats, as a string their
bytes.  The one engine plays; no rule is written here a second time.

>>> game = pyspiel.load_game("python_archie(rules=mini)")
>>> state = game.new_initial_state()
>>> while state.is_chance_node():
...     state.apply_action(state.chance_outcomes()[0][0])
>>> state.current_player(), [state.action_to_string(action) for action in state.legal_actions()]
(0, ['fold', 'call', 'raise'])
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import table
from archie_env._core.state import BIG_BLIND, COUNTS, DEALER, DISCARD, GAME
from archie_env.actions import format_action
from archie_env.cards import format_card
from archie_env.errors import ArchieError, OrderError
from archie_env.observation import field, unscaled, width
from archie_env.policy import Masks, Observations, Policy, Probabilities, StochasticPolicy, as_policy
from archie_env.rulebook import rulebook
from archie_env.rules import PRESETS, Rules, as_rules

try:
    import pyspiel
    from open_spiel.python import policy as spiel_policies
except ImportError as error:
    raise ImportError(f"archie_env.interop.openspiel: {error}: expected pip install 'archie-env[openspiel]'") from error

NAME: Final = "python_archie"
_CHANCE, _TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
_OPTIONS: Final = "options_"
"""Begins the parameter ``rules`` of rules that are no preset: their options as JSON follow in hexadecimal, as a game string
can't hold other characters."""


class _Position:
    """A hand at a decision, at its end, or while chance deals; never changed, so that copies of states cost nothing."""

    __slots__ = ("books", "dealt", "discard", "player", "record", "rules", "wanted")

    def __init__(
        self,
        rules: Rules,
        books: NDArray[Any],
        record: NDArray[Any] | None = None,
        dealt: tuple[int, ...] = (),
        wanted: int = 0,
        discard: int = 0,
    ) -> None:
        self.rules, self.books, self.record = rules, books, record
        self.dealt, self.wanted = dealt, wanted
        """Cards that chance has dealt since the last decision, as numbers in the deck, and how many are still to come."""
        self.discard = discard
        """The dealer's discard, which waits for them."""
        if wanted or record is None:
            self.player = _CHANCE
        else:
            self.player = _TERMINAL if record["over"][0] else int(record["turn"][0])

    def __deepcopy__(self, memo: dict[int, Any]) -> _Position:
        return self

    def remaining(self) -> list[int]:
        """Cards that may be dealt now, ascending."""
        gone: set[int] = set(self.dealt)
        if self.record is not None:
            gone |= set(self.record["deck"][0, : int(self.record["next"][0, 0])].tolist())
        return [card for card in range(self.rules.deck_size) if card not in gone]

    def after_card(self, card: int) -> _Position:
        """The position once chance has dealt a card."""
        dealt = (*self.dealt, card)
        if self.wanted > 1:
            return _Position(self.rules, self.books, self.record, dealt, self.wanted - 1, self.discard)
        if self.record is None:
            record = np.zeros(1, GAME)
            order = np.zeros(len(record["deck"][0]), np.int8)
            order[: self.rules.deck_size] = (*dealt, *(c for c in range(self.rules.deck_size) if c not in set(dealt)))
            table.deal_table(record, self.books, 0, 0, order, len(dealt))
            return _Position(self.rules, self.books, record)
        record = self.record.copy()
        deck, place = record["deck"][0], int(record["next"][0, 0])
        for at, number in enumerate(dealt, place):
            found = at + int(np.flatnonzero(deck[at:] == number)[0])
            deck[at], deck[found] = deck[found], deck[at]
        record["given"] = place + len(dealt)
        return self._played(record, self.discard)

    def after_action(self, action: int) -> _Position:
        """The position once a player has acted."""
        record = self.record
        assert record is not None
        if record["phase"][0] & 1 and record["turn"][0] == DEALER:  # the second discard: now chance deals for both
            r = int(record["phase"][0]) >> 1
            thrown = int(record["thrown"][0, BIG_BLIND]) >> COUNTS * r
            wanted = thrown.bit_length() - 1 + (action - DISCARD).bit_count()
            if wanted:
                return _Position(self.rules, self.books, record, (), wanted, action)
        return self._played(record.copy(), action)

    def _played(self, record: NDArray[Any], action: int) -> _Position:
        if table.play_table(record, self.books, action) == table.ILLEGAL:
            raise ArchieError(f"action {action} is not legal here: expected one of {self.legal()}")
        return _Position(self.rules, self.books, record)

    def legal(self) -> list[int]:
        """Legal actions of the player to act."""
        masks = np.empty((2, self.rules.actions), np.int8)
        table.look_masks(self.record, self.books, masks)
        legal: list[int] = np.flatnonzero(masks[self.player]).tolist()
        return legal

    def row(self, player: int) -> NDArray[np.int8]:
        """What a player has seen, ``(d,)``; zeros until all first cards are dealt."""
        row = np.zeros(width(self.rules), np.int8)
        if self.record is not None:
            table.look_seat(self.record, self.books, player, row, 1, 1)
        return row


class ArchieState(pyspiel.State):  # type: ignore[misc]
    """A state of `ArchieGame`."""

    def __init__(self, game: ArchieGame) -> None:
        super().__init__(game)
        self._position = game.root

    def current_player(self) -> int:
        """The player to act; chance, or the end."""
        return self._position.player

    def _legal_actions(self, player: int) -> list[int]:
        return self._position.legal() if player == self._position.player else []

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Each card that may come, as its number in the deck of these rules, with its probability."""
        remaining = self._position.remaining()
        return [(card, 1 / len(remaining)) for card in remaining]

    def _apply_action(self, action: int) -> None:
        chance = self._position.player == _CHANCE
        self._position = self._position.after_card(action) if chance else self._position.after_action(action)

    def _action_to_string(self, player: int, action: int) -> str:
        position = self._position
        if player == _CHANCE:
            return format_card(position.rules.deck[action])
        assert position.record is not None
        round_, paid = int(position.record["phase"][0]) >> 1, position.record["paid"][0]
        held = int(position.record["held"][0, player, round_])
        hand = [card for i, card in enumerate(position.rules.deck) if held >> i & 1]
        return format_action(action, hand, bool(paid[1 - player] > paid[player]))

    def is_terminal(self) -> bool:
        """Whether the hand is over."""
        return self._position.player == _TERMINAL

    def returns(self) -> list[float]:
        """Net chips of the dealer and of the big blind; 0 before the end."""
        record = self._position.record
        net = float(record["net"][0]) if record is not None and self.is_terminal() else 0.0
        return [net, -net]

    def row(self, player: int | None = None) -> NDArray[np.int8]:
        """The environment's row ``(d,)`` of a player, by default the one to act."""
        return self._position.row(self.current_player() if player is None else player)

    def information_state_string(self, player: int | None = None) -> str:
        """The bytes of the row in hexadecimal; it says itself who deals."""
        return self.row(player).tobytes().hex()

    def resample_from_infostate(self, player: int, probability_sampler: Any) -> ArchieState:
        """A state that ``player``, who is to act, can't tell from this one: all that it has not seen is dealt and thrown anew.

        The other player's cards are drawn uniformly, and so are its discards among those of the counts that are known.

        Args:
            player: the player to act.
            probability_sampler: returns a number in [0, 1).
        """
        if player != self.current_player():
            raise OrderError(f"resample_from_infostate({player}): expected the player to act, {self.current_player()}")
        rules = self._position.rules
        dealt = _owners(self.full_history(), rules)
        hidden = [c for c in range(rules.deck_size) if c not in {card for owner, card in dealt if owner == player}]
        state: ArchieState = self.get_game().new_initial_state()
        cards = iter(dealt)
        known: NDArray[np.bool_] = np.any(field(rules, "other_draws").of(self.row()).reshape(rules.draws, -1) != 0, axis=1)
        draws = 0
        for step in self.full_history():
            action = step.action
            if step.player == _CHANCE:
                owner, card = next(cards)
                action = card if owner == player else hidden.pop(int(probability_sampler() * len(hidden)))
            elif step.player != player and action >= DISCARD:
                count = (action - DISCARD).bit_count()
                likely = [a for a in state.legal_actions() if not known[draws] or (a - DISCARD).bit_count() == count]
                action = likely[int(probability_sampler() * len(likely))]
                draws += 1
            state.apply_action(action)
        return state

    def __str__(self) -> str:
        return " ".join(f"{step.player}:{step.action}" for step in self.full_history())


def _owners(history: Sequence[Any], rules: Rules) -> list[tuple[int, int]]:
    """Who was dealt each card of a history: first hands in turn, then the big blind's replacements and the dealer's."""
    owners = [BIG_BLIND, DEALER] * rules.hand_size
    counts: list[int] = []
    for step in history:
        if step.player != _CHANCE and step.action >= DISCARD:
            counts.append((step.action - DISCARD).bit_count())
            if len(counts) % 2 == 0:
                owners += [BIG_BLIND] * counts[-2] + [DEALER] * counts[-1]
    return list(zip(owners, (step.action for step in history if step.player == _CHANCE), strict=False))


class _Observer:
    """What OpenSpiel's algorithms read tensors from."""

    def __init__(self, size: int) -> None:
        self.tensor = np.zeros(size, np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: ArchieState, player: int) -> None:
        """Write the row of a player."""
        self.tensor[:] = state.row(player)

    def string_from(self, state: ArchieState, player: int) -> str:
        """See `ArchieState.information_state_string`."""
        return state.information_state_string(player)


class ArchieGame(pyspiel.Game):  # type: ignore[misc]
    """Archie under any rules: ``pyspiel.load_game("python_archie(rules=barge)")`` or ``ArchieGame(rules)``.

    Args:
        rules: a preset's name or a `Rules` value; or OpenSpiel's parameters with a key ``rules``.
    """

    def __init__(self, rules: Rules | str | Mapping[str, Any] = "archie") -> None:
        if isinstance(rules, Mapping):
            rules = _read_rules(str(rules.get("rules", "archie")))
        self.rules = as_rules(rules)
        name = self.rules.name if self.rules.name in PRESETS else _OPTIONS + json.dumps(self.rules.to_dict()).encode().hex()
        self.root = _Position(self.rules, rulebook(self.rules), wanted=2 * self.rules.hand_size)
        played = self.rules
        info = pyspiel.GameInfo(
            num_distinct_actions=played.actions,
            max_chance_outcomes=played.deck_size,
            num_players=2,
            min_utility=-float(played.reserve),
            max_utility=float(played.reserve),
            utility_sum=0.0,
            max_game_length=(played.raise_cap + 2) * played.rounds + 2 * played.draws,
        )
        super().__init__(GAME_TYPE, info, {"rules": name})

    def __deepcopy__(self, memo: dict[int, Any]) -> ArchieGame:
        return self

    def new_initial_state(self) -> ArchieState:
        """No card is dealt yet."""
        return ArchieState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> _Observer:
        """An observer of the whole information state."""
        return _Observer(width(self.rules))

    def information_state_tensor_shape(self) -> list[int]:
        """``[d]``, the width of a row."""
        return [width(self.rules)]


def _read_rules(name: str) -> Rules:
    if not name.startswith(_OPTIONS):
        return as_rules(name)
    try:
        values = json.loads(bytes.fromhex(name.removeprefix(_OPTIONS)))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ArchieError(f"rules {name[:80]!r}: expected one of {', '.join(PRESETS)}, or {_OPTIONS} and JSON in hexadecimal")
    return Rules.from_dict(values)


GAME_TYPE: Final = pyspiel.GameType(
    short_name=NAME,
    long_name="Archie (triple-draw poker, split high/low)",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=False,
    provides_observation_tensor=False,
    parameter_specification={"rules": "archie"},
)
if NAME not in pyspiel.registered_names():
    pyspiel.register_game(GAME_TYPE, ArchieGame)


class _Decision:
    """A row as the state that OpenSpiel's policies ask, which have no other way in."""

    def __init__(self, row: NDArray[np.int8], mask: NDArray[np.int8], player: int) -> None:
        self._row, self._mask, self._player = row, mask, player

    def current_player(self) -> int:
        return self._player

    def is_terminal(self) -> bool:
        return False

    def is_chance_node(self) -> bool:
        return False

    def is_simultaneous_node(self) -> bool:
        return False

    def legal_actions(self, player: int | None = None) -> list[int]:
        return np.flatnonzero(self._mask).tolist() if player in (None, self._player) else []

    def legal_actions_mask(self, player: int | None = None) -> list[int]:
        return self._mask.astype(int).tolist() if player in (None, self._player) else [0] * len(self._mask)

    def information_state_string(self, player: int | None = None) -> str:
        return self._row.tobytes().hex()

    def information_state_tensor(self, player: int | None = None) -> list[float]:
        tensor: list[float] = self._row.astype(float).tolist()
        return tensor


class FromOpenSpiel(StochasticPolicy):
    """An OpenSpiel policy as a player here: in matches, tournaments and exact measurements.

    Args:
        policy: anything with OpenSpiel's ``action_probabilities(state)``: a ``TabularPolicy``, the average policy of a solver,
            Deep CFR.  It is asked a decision at a time; probabilities are divided by their sum, as Deep CFR leaves some to
            illegal actions.
        rules: the rules it plays.
        name: label in tables.
    """

    def __init__(self, policy: Any, rules: Rules | str = "archie", name: str = "openspiel") -> None:
        if not callable(getattr(policy, "action_probabilities", None)):
            raise ArchieError(f"policy of type {type(policy).__name__}: expected an OpenSpiel policy with action_probabilities")
        self.policy, self.rules, self.name = policy, as_rules(rules), name
        self._dealer = field(self.rules, "dealer").start

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        rows, found = unscaled(observations, self.rules), np.zeros(masks.shape, np.float32)
        for i, row in enumerate(rows):
            decision = _Decision(row, masks[i], DEALER if row[self._dealer] else BIG_BLIND)
            for action, probability in self.policy.action_probabilities(decision).items():
                found[i, action] = probability
        with np.errstate(invalid="ignore"):  # a row of zeros becomes NaN, which every match refuses
            chances: Probabilities = found / found.sum(axis=1, keepdims=True)
        return chances


class ToOpenSpiel(spiel_policies.Policy):  # type: ignore[misc]
    """A policy of this project as an OpenSpiel policy: for its best responses, its evaluation and its bots.

    Args:
        game: an `ArchieGame`.
        policy: a `Policy` with probabilities, or its name.
    """

    def __init__(self, game: ArchieGame, policy: Policy | str) -> None:
        super().__init__(game, [0, 1])
        self.policy = as_policy(policy, game.rules)

    def action_probabilities(self, state: ArchieState, player_id: int | None = None) -> dict[int, float]:
        """The probability of each legal action of the player to act."""
        mask = np.zeros((1, state.get_game().num_distinct_actions()), np.int8)
        mask[0, state.legal_actions()] = 1
        chances = self.policy.probabilities(state.row()[None], mask)[0]
        return {action: float(chances[action]) for action in state.legal_actions()}
