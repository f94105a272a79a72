"""The graph of a PPO player: features of the hand, layers and slots, from float32 rows to logits.

Features are looked up.  All but the longest suit depend on the ranks of the hand and on whether it is of one suit; the longest
suit depends on the suits alone.  Both tables are computed by `HandReader`, so the features are defined once.
"""

from __future__ import annotations

import functools
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.hand_features import KEEPS, LONGEST_SUIT, HandReader
from agents.ppo import PPOPolicy
from archie_env._core.state import DISCARD
from archie_env._core.tables import CHOOSE, multiset_number
from archie_env.errors import ArchieError
from archie_env.observation import field, width
from archie_env.rules import Rules

OPSET: Final = 18
_SUIT_KEEP: Final = KEEPS.index("longest suit")


def to_onnx(policy: PPOPolicy) -> bytes:
    """Return the ONNX file of a player: input ``observations`` ``(n, d)``, output ``logits`` ``(n, actions)``."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ArchieError(f"writing ONNX needs onnx ({error}): expected pip install 'archie-env[onnx]'") from error
    rules = policy.rules
    nodes: list[Any] = []
    constants: dict[str, NDArray[Any]] = {}

    def add(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    x = "observations"
    if policy.meta["hand_features"] or policy.meta["slots"]:
        constants |= _hand_tables(rules)
        add("MatMul", ["observations", "hand_index"], "hand_numbers")
        add("Cast", [add("Round", ["hand_numbers"], "hand_rounded")], "hand_integers", to=TensorProto.INT64)
        add("Split", ["hand_integers"], "", axis=1, num_outputs=2)
        nodes[-1].output[:] = ["by_rank", "suits"]
        add("Squeeze", ["suits", "last"], "by_suit")
        add("Squeeze", ["by_rank", "last"], "ranks")
        add("Gather", ["suit_flush", "by_suit"], "flush")
        add("Add", ["ranks", "flush"], "by_hand")
    if policy.meta["hand_features"]:
        add("Gather", ["rank_features", "by_hand"], "of_ranks")
        add("Gather", ["suit_features", "by_suit"], "of_suits")
        add("Add", ["of_ranks", "of_suits"], "features")
        x = add("Concat", ["observations", "features"], "inputs", axis=1)
    stages = [*sorted({name.split(".")[0] for name in policy.weights} - {"head"}, key=lambda s: int(s[5:])), "head"]
    constants |= {name: np.asarray(array) for name, array in policy.weights.items()}
    for stage in stages:
        x = add("Gemm", [x, f"{stage}.weight", f"{stage}.bias"], f"{stage}.sum")
        if stage != "head":
            x = add("Relu", [x], f"{stage}.relu")
    if policy.meta["slots"]:
        constants["sizes"] = np.array([rules.actions, len(KEEPS)], np.int64)
        nodes.append(helper.make_node("Split", [x, "sizes"], ["free", "slots"], axis=1))
        add("Gather", ["rank_keeps", "by_hand"], "keeps_of_ranks")
        add("Gather", ["suit_keeps", "by_suit"], "keeps_of_suits")
        add("Add", ["keeps_of_ranks", "keeps_of_suits"], "discards")
        add("ScatterElements", ["free", "discards", "slots"], "logits", axis=1, reduction="add")
    else:
        add("Identity", [x], "logits")
    graph = helper.make_graph(
        nodes,
        "ppo",
        [helper.make_tensor_value_info("observations", TensorProto.FLOAT, ["n", width(rules)])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", rules.actions])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="archie-env", ir_version=8)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


@functools.cache
def _hand_tables(rules: Rules) -> dict[str, NDArray[Any]]:
    """The numbers of a hand as a product with its row, and what `HandReader` finds by these numbers.

    Ranks that do not descend are numbered by the combinatorial number system, suits as digits: both are sums over the slots.
    """
    size, ranks, suits = rules.hand_size, len(rules.ranks), len(rules.suits)
    slots = field(rules, "slots")
    index = np.zeros((width(rules), 2), np.float32)
    block = index[slots.start : slots.start + slots.size].reshape(size, ranks + suits, 2)
    for k in range(size):
        block[k, :ranks, 0] = CHOOSE[k, :ranks]
        block[k, ranks:, 1] = [suit * suits**k for suit in range(suits)]
    hands = comb(ranks + size - 1, size)
    rows = np.zeros((2 * hands, width(rules)), np.int8)
    for held in combinations_with_replacement(range(ranks), size):
        number = multiset_number(held)
        mixed = [held[:k].count(rank) for k, rank in enumerate(held)]
        if max(mixed) >= suits:
            continue  # more cards of a rank than suits: no hand
        if max(mixed) == 0:
            _write(slots.of(rows[hands + number]), held, [0] * size, ranks)
            mixed[-1] = min(1, suits - 1)
        _write(slots.of(rows[number]), held, mixed, ranks)
    dealt = rows.any(axis=1)
    reader = HandReader(rules)
    features, keeps = reader(rows[dealt])
    by_rank = np.zeros((2 * hands, features.shape[1]), np.float32)
    rank_keeps = np.zeros((2 * hands, len(KEEPS)), np.int64)
    by_rank[dealt], rank_keeps[dealt] = features, keeps + DISCARD
    by_rank[:, LONGEST_SUIT] = 0
    rank_keeps[:, _SUIT_KEEP] = DISCARD
    rows = np.zeros((suits**size, width(rules)), np.int8)
    for digits in product(range(suits), repeat=size):
        _write(slots.of(rows[sum(suit * suits**k for k, suit in enumerate(digits))]), range(size), digits, ranks)
    features, keeps = reader(rows)
    by_suit, suit_keeps = np.zeros_like(features), np.zeros_like(keeps)
    by_suit[:, LONGEST_SUIT] = features[:, LONGEST_SUIT]
    suit_keeps[:, _SUIT_KEEP] = keeps[:, _SUIT_KEEP]
    one_suit = (slots.of(rows)[:, :, ranks:].sum(axis=1) == size).any(axis=1)
    return {
        "hand_index": index,
        "rank_features": by_rank,
        "rank_keeps": rank_keeps,
        "suit_features": by_suit,
        "suit_keeps": suit_keeps,
        "suit_flush": np.where(one_suit, hands, 0).astype(np.int64),
        "last": np.array([1], np.int64),
    }


def _write(slots: NDArray[np.int8], held: Any, suits: Any, ranks: int) -> None:
    """Write cards into the ``(slots, ranks + suits)`` entries of a row."""
    for slot, rank, suit in zip(slots, held, suits, strict=True):
        slot[rank] = slot[ranks + suit] = 1
