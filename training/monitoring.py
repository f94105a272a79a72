"""Measurements during training: duplicate matches against reference agents, and statistics of self-play."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agents.hand_features import MADE_LOW, HandReader
from archie_env._core.state import DISCARD
from archie_env.batch import Hands
from archie_env.observation import field
from archie_env.policy import Policy, private_generator, sample
from archie_env.rules import Rules


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a match from the first player's point of view."""

    mean: float
    """Mean winnings, mbb/hand."""
    standard_error: float
    """Standard error of the mean over pairs of hands."""


def format_scores(scores: Mapping[str, Score]) -> str:
    """Format scores by opponent, each with its standard error, for a log line."""
    words = ", ".join(f"{name} {score.mean:+.0f} ({score.standard_error:.0f})" for name, score in scores.items())
    return f"mbb/hand (SE) v {words or 'nobody'}"


def match(first: Policy, second: Policy, deals: int, seed: int, rules: Rules) -> Score:
    """Play each deal twice, with seats swapped and the replacement cards of each position fixed."""
    order = private_generator(seed, "order").permutation(2 * deals)  # players that could pair their hands would see all cards
    hands = Hands(order // 2, order % 2, rules, seed)
    hands.play_out((first, second), [private_generator(seed, "player", seat) for seat in (0, 1)])
    won = np.empty(2 * deals, np.int64)
    won[order] = hands.net[:, 0]
    pairs = won.reshape(-1, 2).mean(axis=1) * rules.mbb_per_chip
    return Score(float(pairs.mean()), float(pairs.std(ddof=1) / np.sqrt(deals)))


@dataclass(frozen=True, slots=True)
class SelfPlayStatistics:
    """Statistics of a policy in both seats."""

    lows_kept: float
    """Mean probability of standing pat on a made low; nan if none was dealt."""
    entropy: dict[str, float]
    """Mean entropy of decisions in nats, by betting round and draw reached: ``round_1``, ``draw_1``, ..."""
    hands_per_second: float
    """Hands per second with both seats on one core."""


def self_play_statistics(policy: Policy, hands: int, seed: int, rules: Rules) -> SelfPlayStatistics:
    """Play ``hands`` with the policy in both seats and measure every decision."""
    played = Hands(np.arange(hands), np.zeros(hands, np.int8), rules, seed)
    generator, read = np.random.default_rng(seed), HandReader(rules)
    block = field(rules, "phase")
    kept: list[float] = []
    sums, counts = np.zeros(block.size), np.zeros(block.size, np.int64)
    started = time.perf_counter()
    while not played.over:
        for seat in (0, 1):
            index, rows, masks = played.waiting(seat)
            if not len(index):
                continue
            probabilities = policy.probabilities(rows, masks)
            phase = block.of(rows).argmax(axis=1)
            entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-20))).sum(axis=1)
            sums += np.bincount(phase, entropy, block.size)
            counts += np.bincount(phase, minlength=block.size)
            low = read(rows)[0][:, MADE_LOW] != 0
            kept.extend(probabilities[(masks[:, DISCARD] != 0) & low, DISCARD].tolist())
            played.play(index, sample(probabilities, generator))
    names = [f"{'draw' if phase % 2 else 'round'}_{phase // 2 + 1}" for phase in range(block.size - 1)]
    means = {name: float(sums[p] / counts[p]) for p, name in enumerate(names) if counts[p]}
    rate = hands / (time.perf_counter() - started)
    return SelfPlayStatistics(float(np.mean(kept)) if kept else float("nan"), means, rate)
