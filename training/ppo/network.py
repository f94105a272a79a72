"""The network of the PPO trainer as a policy class of sb3-contrib, with a discard head that does not get stuck.

A plain head of 32 discard logits stops standing pat on made lows early in self-play and never recovers: half a pot is only
break-even until later draws stand pat too, and as the probability of standing pat vanishes, so does its gradient.  Three
things together prevent that:

* *slots*: four logits shared by all hands.  Each is added to the discard that its name stands for in the present hand (see
  ``agents.hand_features.KEEPS``), beside a free logit for each discard and one logit for each discarded card;
* an initial *bias* towards standing pat and towards each slot;
* a *prior*: the penalty is the KL divergence from a fixed distribution, uniform in betting and favouring standing pat and the
  slots in drawing.  It replaces the usual entropy bonus.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor

from agents.hand_features import FEATURES, KEEPS, HandReader
from archie_env._core.state import DISCARD
from archie_env.observation import highest, unscaled, width
from archie_env.rules import Rules

_SLOTS: Final = len(KEEPS)
_IMPOSSIBLE: Final = -1e8
"""The logit of an illegal action."""
_UNLIKELY: Final = 1e-8
"""Stands in for the prior probability of an illegal action in its logarithm; the policy gives those none."""


def cpu_has_bfloat16() -> bool:
    """Return whether this processor multiplies bfloat16 natively, which makes the hidden layers about twice as fast."""
    return bool(th.cpu._is_avx512_bf16_supported())


def masked_log_softmax(logits: th.Tensor, legal: th.Tensor) -> th.Tensor:
    """``(n, a), (n, a) -> (n, a)``: log-probabilities of the softmax over legal actions."""
    return logits.masked_fill(~legal, _IMPOSSIBLE).log_softmax(dim=1)


class HandFeatureExtractor(BaseFeaturesExtractor):
    """Features of an observation: ``[slots (4), hand features (69), row scaled to 0..1 (d)]``, then, if the observation has the
    other player's hand, its ``[cards (52), hand features (69)]``; of the dtype that the hidden layers compute in.
    """

    def __init__(self, observation_space: spaces.Box, rules: dict[str, Any], dtype: th.dtype = th.float32) -> None:
        self.rules, self.dtype = Rules.from_dict(rules), dtype
        self.row = width(self.rules)
        self.hidden = observation_space.shape[0] - self.row
        super().__init__(observation_space, _SLOTS + self.row + FEATURES + (self.hidden + FEATURES if self.hidden else 0))
        self._read = HandReader(self.rules)
        self._integer = np.issubdtype(observation_space.dtype, np.integer)
        most = enumerate(highest(self.rules))
        self._scales = [(_SLOTS + FEATURES + i, float(1 / m)) for i, m in most if m != 1]

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """``(n, d + hidden)`` floats -> ``(n, features_dim)``."""
        rows, hidden = observations[:, : self.row].numpy(), observations[:, self.row :].numpy()
        whole = rows.astype(np.int8) if self._integer else unscaled(rows, self.rules)
        inputs = th.empty(len(rows), self.features_dim, dtype=self.dtype)
        self.read(whole, hidden.astype(np.int8), inputs)
        return inputs

    def read(self, rows: NDArray[np.int8], hidden: NDArray[np.int8], inputs: th.Tensor) -> None:
        """``(n, d)`` rows and ``(n, 52 or 0)`` hidden cards -> ``inputs`` ``(n, features_dim)``, written in place."""
        features, keeps = self._read(rows)
        ends = np.cumsum([_SLOTS, FEATURES, self.row, self.hidden]).tolist()
        inputs[:, : ends[0]] = th.from_numpy(keeps)
        inputs[:, ends[0] : ends[1]] = th.from_numpy(features)
        inputs[:, ends[1] : ends[2]] = th.from_numpy(rows)
        for column, scale in self._scales:
            inputs[:, column] *= scale
        if self.hidden:
            inputs[:, ends[2] : ends[3]] = th.from_numpy(hidden)
            inputs[:, ends[3] :] = th.from_numpy(self._read.other(hidden))


class ActorCriticMlp(MlpExtractor):
    """Two separate stacks of layers: the actor reads the information state, the critic the hidden cards too."""

    def __init__(self, inputs: int, row: int, widths: list[int], hand_features: bool) -> None:
        first, own = _SLOTS + (0 if hand_features else FEATURES), _SLOTS + FEATURES + row
        others = inputs - own - FEATURES if inputs > own and not hand_features else inputs - own
        super().__init__(inputs, net_arch={"pi": widths, "vf": widths}, activation_fn=th.nn.ReLU, device="cpu")
        self._seen, self._all = slice(first, own), slice(first, own + others)
        self.policy_net[0] = th.nn.Linear(own - first, widths[0])
        self.value_net[0] = th.nn.Linear(own + others - first, widths[0])
        self.latent_dim_pi = widths[-1] + _SLOTS

    def forward_actor(self, features: th.Tensor) -> th.Tensor:
        """``(n, features_dim) -> (n, units + 4)``: the last layer, followed by the slots."""
        latent = _forward_in_dtype(self.policy_net, features[:, self._seen])
        return th.cat([latent.float(), features[:, :_SLOTS].float()], dim=1)

    def forward_critic(self, features: th.Tensor) -> th.Tensor:
        """``(n, features_dim) -> (n, units)``."""
        return _forward_in_dtype(self.value_net, features[:, self._all]).float()


def _forward_in_dtype(layers: th.nn.Sequential, x: th.Tensor) -> th.Tensor:
    """Apply the layers in the dtype of ``x``; autocast would convert input and weights again in every call."""
    for layer in layers:
        if isinstance(layer, th.nn.Linear):
            x = th.nn.functional.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))
        else:
            x = layer(x)
    return x


class DiscardHead(th.nn.Module):
    """Logits of all actions: a free logit for each, plus one for each discarded card, plus the slot logits."""

    discarded: th.Tensor
    """``(hand_size, actions)``: 1 if the action discards the card at that index."""

    def __init__(self, units: int, rules: Rules, slots: bool) -> None:
        super().__init__()
        self.units = units
        self.free = th.nn.Linear(units, rules.actions)
        self.card = th.nn.Linear(units, rules.hand_size)
        self.slot = th.nn.Linear(units, _SLOTS) if slots else None
        bits = np.arange(2**rules.hand_size)[None, :] >> np.arange(rules.hand_size)[:, None] & 1
        discarded = np.concatenate([np.zeros((rules.hand_size, DISCARD)), bits], axis=1).astype(np.float32)
        self.register_buffer("discarded", th.from_numpy(discarded), persistent=False)

    def forward(self, latent: th.Tensor) -> th.Tensor:
        """``(n, units + 4) -> (n, actions)``."""
        weight, bias = self.folded()
        logits = th.nn.functional.linear(latent[:, : self.units], weight, bias)
        if self.slot is None:
            return logits
        actions = self.discarded.shape[1]
        return logits[:, :actions].scatter_add(1, latent[:, self.units :].long() + DISCARD, logits[:, actions:])

    def add_bias(self, bias: float) -> None:
        """Add ``bias`` to the logits of standing pat and of each slot."""
        with th.no_grad():
            self.free.bias[DISCARD].add_(bias)
            if self.slot is not None:
                self.slot.bias.add_(bias)

    def folded(self) -> tuple[th.Tensor, th.Tensor]:
        """``(actions + slots, units), (actions + slots,)``: the head as one linear map, before slots are added."""
        weight = self.free.weight + self.discarded.T @ self.card.weight
        bias = self.free.bias + self.card.bias @ self.discarded
        if self.slot is None:
            return weight, bias
        return th.cat([weight, self.slot.weight]), th.cat([bias, self.slot.bias])


class ArchiePolicy(MaskableActorCriticPolicy):  # type: ignore[misc]  # sb3-contrib ships no types
    """Actor and critic for the information state; ``policy_kwargs`` are the arguments below.

    Args:
        observation_space, action_space, lr_schedule: as SB3 passes them.
        rules: `Rules.to_dict()` of the rules.
        widths: units of the hidden layers, for actor and critic each.
        hand_features: whether actor and critic read the features of the hand.
        slots: see the module.
        bias: see the module.
        prior: weight added to standing pat and to each slot in the prior, where every discard has 1; 0 keeps the entropy bonus.
        bfloat16: compute the hidden layers in bfloat16.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Any,
        rules: dict[str, Any],
        widths: tuple[int, ...] = (256, 256),
        hand_features: bool = True,
        slots: bool = True,
        bias: float = 1.5,
        prior: float = 20.0,
        bfloat16: bool = False,
        **kwargs: Any,
    ) -> None:
        self._rules = Rules.from_dict(rules)
        self._widths, self._hand_features, self._with_slots = list(widths), hand_features, slots
        self._bias, self._prior = bias, prior
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=HandFeatureExtractor,
            features_extractor_kwargs={"rules": rules, "dtype": th.bfloat16 if bfloat16 else th.float32},
            **{"optimizer_kwargs": {"eps": 1e-5, "fused": True}, **kwargs},
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = ActorCriticMlp(self.features_dim, width(self._rules), self._widths, self._hand_features)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = DiscardHead(self._widths[-1], self._rules, self._with_slots)
        self.action_net.apply(functools.partial(self.init_weights, gain=0.01))
        self.action_net.add_bias(self._bias)
        # the optimizer of the base class holds the weights of the head that was replaced
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def prior(self, keeps: th.Tensor, legal: th.Tensor) -> th.Tensor:
        """``(n, 4), (n, a) -> (n, a)``: log-probabilities of the prior, from the discards of the slots."""
        weights = th.ones(legal.shape)
        weights[:, DISCARD] += self._prior
        if self._with_slots:
            weights.scatter_add_(1, keeps.long() + DISCARD, th.full(keeps.shape, self._prior))
        weights *= legal
        return (weights / weights.sum(dim=1, keepdim=True)).clamp_min(_UNLIKELY).log()

    def evaluate_actions(
        self, obs: Any, actions: th.Tensor, action_masks: th.Tensor | None = None
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Return values, log-probabilities and, in place of the entropy, the negative KL divergence from the prior."""
        features = self.extract_features(obs)
        masks = th.ones(len(actions), self._rules.actions) if action_masks is None else action_masks
        return self.evaluate(features, actions, masks.reshape(len(actions), -1) != 0)

    def decide(self, features: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """``(n, features_dim)`` -> logits of all actions ``(n, a)`` and values ``(n,)``."""
        latent, latent_value = self.mlp_extractor(features)
        return self.action_net(latent), self.value_net(latent_value).flatten()

    def evaluate(self, features: th.Tensor, actions: th.Tensor, legal: th.Tensor) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Do `evaluate_actions` for extracted features; ``legal`` is ``(n, a)`` booleans."""
        logits, values = self.decide(features)
        log_probs = log_ratios = masked_log_softmax(logits, legal)
        if self._prior:
            log_ratios = log_probs - self.prior(features[:, :_SLOTS], legal)
        bonus = -(log_probs.exp() * log_ratios).sum(dim=1)
        return values, log_probs.gather(1, actions.reshape(-1, 1).long()).flatten(), bonus

    def exported(self) -> dict[str, NDArray[np.float32]]:
        """Return the actor's weights in the form of ``agents.ppo.Weights``."""
        layers = [layer for layer in self.mlp_extractor.policy_net if isinstance(layer, th.nn.Linear)]
        weights = {}
        for i, layer in enumerate(layers):
            weight = layer.weight.detach()
            if i == 0 and self._hand_features:  # a policy reads the row first
                weight = weight.roll(-FEATURES, dims=1)
            weights[f"layer{i}.weight"] = weight.T.contiguous().numpy().copy()
            weights[f"layer{i}.bias"] = layer.bias.detach().numpy().copy()
        weight, bias = self.action_net.folded()
        weights["head.weight"], weights["head.bias"] = weight.detach().T.contiguous().numpy(), bias.detach().numpy()
        return weights
