"""The deals of a duplicate match, each played twice, and the generators of its players.

A player sees its own rows and its generator.  Neither reveals the seed of the cards, nor which two hands belong to one deal: in
one of them it holds the cards that its opponent holds in the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env.batch import Hands
from archie_env.errors import ArchieError
from archie_env.policy import private_generator
from evaluation.duplicate.umpire import Umpire

SECRET_BYTES: Final = 32
"""Length of a secret seed."""


def read_secret(path: Path) -> bytes:
    """Read a secret seed from a file of exactly `SECRET_BYTES` random bytes; raises `ArchieError` for any other file."""
    if not path.is_file():
        raise ArchieError(f"secret seed {path}: expected a file of {SECRET_BYTES} random bytes, found no file")
    try:
        with path.open("rb") as file:
            secret = file.read(SECRET_BYTES + 1)
    except OSError as error:
        raise ArchieError(f"secret seed {path}: {error.strerror}: expected a file of {SECRET_BYTES} random bytes") from None
    if len(secret) != SECRET_BYTES:
        length = "more" if len(secret) > SECRET_BYTES else str(len(secret))
        raise ArchieError(f"secret seed {path}: expected exactly {SECRET_BYTES} random bytes, found {length}")
    return secret


def secret_hash(secret: bytes) -> str:
    """Return the SHA-256 of a secret seed: published before a match, it proves that the cards were fixed in advance."""
    return hashlib.sha256(secret).hexdigest()


def seed_of_deals(seed: int, secret: bytes | None = None) -> int:
    """Return the seed of the cards: ``seed`` itself, or a hash of the secret and ``seed``."""
    if secret is None:
        return seed
    hashed = hashlib.blake2b(str(seed).encode(), digest_size=32, key=secret, person=b"deals")
    return int.from_bytes(hashed.digest(), "big")


class DealPairs:
    """Deals ``first`` to ``first + deals - 1``, each as two hands: seat 0 is the dealer of one and seat 1 of the other.

    Args:
        first: index of the first deal.
        deals: number of deals.
        seed: seed of the match.
        secret: secret seed of the match, if it has one.
        shuffled: order the hands by a private permutation, so that players can't pair them.
    """

    def __init__(self, first: int, deals: int, seed: int, secret: bytes | None = None, shuffled: bool = True) -> None:
        source, key = (seed, ()) if secret is None else (secret, (seed,))
        order = np.arange(2 * deals)
        if shuffled:  # separately by dealer, which every row shows anyway: kernels are faster on similar hands
            both = private_generator(source, *key, "order", first).permuted(order.reshape(-1, 2), axis=0)
            order = both.T.ravel()
        self.order: NDArray[np.int64] = order
        """``(2 * deals,)``: the hand at index k is hand ``order[k]`` of the deals in order, two for each."""
        self.numbers: NDArray[np.int64] = 2 * first + order
        """``(2 * deals,)``: indices of the hands in the whole match; hand h belongs to deal ``h // 2``."""
        self.indices, self.dealers = self.numbers // 2, order % 2
        self.seed = seed_of_deals(seed, secret)
        """Seed of the cards."""
        self._rngs = [private_generator(source, *key, "player", seat, first) for seat in (0, 1)]

    def play_out(self, hands: Hands, umpires: Sequence[Umpire]) -> None:
        """Play ``hands``, dealt with `indices`, `dealers` and `seed`, to the end; ``umpires`` are indexed by seat."""
        hands.take_turns(lambda seat: umpires[seat].play(hands, seat, self.numbers, self._rngs[seat]))

    def paired(self, by_hand: NDArray[Any]) -> NDArray[Any]:
        """``(2 * deals, ...) -> (deals, 2, ...)``: group values of hands by deal; seat 0 deals the first hand of each."""
        result = np.empty_like(by_hand)
        result[self.order] = by_hand
        return result.reshape(-1, 2, *by_hand.shape[1:])
