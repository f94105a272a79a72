"""The network of the PPO trainer as a policy class of sb3-contrib, with a discard head that does not get stuck.

A plain head of 32 discard logits stops standing pat on made lows early in self-play and never finds back: half a pot is only
break-even until later draws stand pat too, and the probability of standing pat goes to nothing with its gradient.  Three
things together prevent that:

* *slots*: four logits shared by all hands, each added to the discard that its name stands for in the hand held (see
  ``agents.hand_features.KEEPS``), beside a free logit for each discard and one logit for each card thrown;
* a *bias* towards standing pat and towards each slot at the start;
* a *prior*: what is penalised is the divergence from a fixed distribution, uniform in betting and leaning to standing pat and
  to the slots in drawing, in place of the usual entropy bonus.
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
_UNLIKELY: Final = 1e-8
"""Stands in for the prior probability of an illegal action in its logarithm; the policy gives those none."""


def cpu_has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 natively, which makes the two hidden layers about twice as fast."""
    return bool(th.cpu._is_avx512_bf16_supported())


class SeenAndRead(BaseFeaturesExtractor):
    """An observation with its hands read: ``[slots (4), row scaled to 0..1 (d), features (69)]``, then, of the other player's
    hand where it is shown, ``[cards (52), features (69)]``.
    """

    scale: th.Tensor
    """``(d,)``: factors that bring a row to 0..1."""

    def __init__(self, observation_space: spaces.Box, rules: dict[str, Any]) -> None:
        of = Rules.from_dict(rules)
        self.row = width(of)
        hidden = observation_space.shape[0] - self.row
        super().__init__(observation_space, _SLOTS + self.row + FEATURES + (hidden + FEATURES if hidden else 0))
        self.rules = of
        self._read = HandReader(of)
        self._integer = np.issubdtype(observation_space.dtype, np.integer)
        scale = th.from_numpy((1 / highest(of)).astype(np.float32)) if self._integer else th.ones(self.row)
        self.register_buffer("scale", scale, persistent=False)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """``(n, d + hidden)`` floats -> ``(n, features_dim)``."""
        rows = observations[:, : self.row]
        whole = rows.numpy().astype(np.int8) if self._integer else unscaled(rows.numpy(), self.rules)
        features, keeps = self._read(whole)
        parts = [th.from_numpy(keeps).float(), rows * self.scale, th.from_numpy(features)]
        hidden = observations[:, self.row :]
        if hidden.shape[1]:
            parts += [hidden, th.from_numpy(self._read.other(hidden.numpy()))]
        return th.cat(parts, dim=1)


class Towers(MlpExtractor):
    """Two separate stacks of layers: the actor reads what a player may see, the critic the hidden cards too."""

    def __init__(self, inputs: int, row: int, widths: list[int], hand_features: bool, bfloat16: bool) -> None:
        super().__init__(inputs, net_arch={"pi": widths, "vf": widths}, activation_fn=th.nn.ReLU, device="cpu")
        self._seen = slice(_SLOTS, _SLOTS + row + FEATURES * hand_features)
        self._all = slice(_SLOTS, None)
        self._bfloat16 = bfloat16
        self.policy_net[0] = th.nn.Linear(self._seen.stop - self._seen.start, widths[0])
        self.value_net[0] = th.nn.Linear(inputs - _SLOTS, widths[0])
        self.latent_dim_pi = widths[-1] + _SLOTS

    def forward_actor(self, features: th.Tensor) -> th.Tensor:
        """``(n, features_dim) -> (n, units + 4)``: the last layer, and the slots handed through."""
        with th.autocast("cpu", th.bfloat16, enabled=self._bfloat16):
            latent = self.policy_net(features[:, self._seen])
        return th.cat([latent.float(), features[:, :_SLOTS]], dim=1)

    def forward_critic(self, features: th.Tensor) -> th.Tensor:
        """``(n, features_dim) -> (n, units)``."""
        with th.autocast("cpu", th.bfloat16, enabled=self._bfloat16):
            latent = self.value_net(features[:, self._all])
        floats: th.Tensor = latent.float()
        return floats


class DiscardHead(th.nn.Module):
    """Logits of all actions: a free one each, the sum over the cards thrown, and the slots'."""

    thrown: th.Tensor
    """``(hand_size, actions)``: 1 where that discard throws that card."""

    def __init__(self, units: int, rules: Rules, slots: bool) -> None:
        super().__init__()
        self.units = units
        self.free = th.nn.Linear(units, rules.actions)
        self.card = th.nn.Linear(units, rules.hand_size)
        self.slot = th.nn.Linear(units, _SLOTS) if slots else None
        bits = np.arange(2**rules.hand_size)[None, :] >> np.arange(rules.hand_size)[:, None] & 1
        thrown = np.concatenate([np.zeros((rules.hand_size, DISCARD)), bits], axis=1).astype(np.float32)
        self.register_buffer("thrown", th.from_numpy(thrown), persistent=False)

    def forward(self, latent: th.Tensor) -> th.Tensor:
        """``(n, units + 4) -> (n, actions)``."""
        units, keeps = latent[:, : self.units], latent[:, self.units :]
        logits: th.Tensor = self.free(units) + self.card(units) @ self.thrown
        if self.slot is not None:
            logits = logits.scatter_add(1, keeps.long() + DISCARD, self.slot(units))
        return logits

    def lean(self, bias: float) -> None:
        """Start with this much more on standing pat and on each slot."""
        with th.no_grad():
            self.free.bias[DISCARD].add_(bias)
            if self.slot is not None:
                self.slot.bias.add_(bias)

    def folded(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """``(units, actions + slots), (actions + slots,)``: the same logits as one linear map, the slots not yet added."""
        with th.no_grad():
            weight = self.free.weight + self.thrown.T @ self.card.weight
            bias = self.free.bias + self.card.bias @ self.thrown
            if self.slot is not None:
                weight, bias = th.cat([weight, self.slot.weight]), th.cat([bias, self.slot.bias])
            return weight.T.contiguous().numpy(), bias.numpy()


class ArchiePolicy(MaskableActorCriticPolicy):  # type: ignore[misc]  # sb3-contrib ships no types
    """Actor and critic for the information state; ``policy_kwargs`` are the arguments below.

    Args:
        observation_space, action_space, lr_schedule: as SB3 passes them.
        rules: `Rules.to_dict()` of what is played.
        widths: units of the hidden layers, of actor and critic each.
        hand_features: give the actor the hand as a player reads it.
        slots: see the module.
        bias: see the module.
        prior: weight of standing pat and of each slot in the prior, where any other discard has 1; 0 keeps the entropy bonus.
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
        self._bias, self._prior, self._bfloat16 = bias, prior, bfloat16
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=SeenAndRead,
            features_extractor_kwargs={"rules": rules},
            **kwargs,
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = Towers(
            self.features_dim, width(self._rules), self._widths, self._hand_features, self._bfloat16
        )  # fmt: skip

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = DiscardHead(self._widths[-1], self._rules, self._with_slots)
        self.action_net.apply(functools.partial(self.init_weights, gain=0.01))
        self.action_net.lean(self._bias)
        # the optimiser that was built holds the weights of the head that was replaced
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def prior(self, keeps: th.Tensor, masks: th.Tensor) -> th.Tensor:
        """``(n, 4), (n, a) -> (n, a)``: logarithms of the fixed distribution."""
        weights = th.ones(masks.shape)
        weights[:, DISCARD] += self._prior
        if self._with_slots:
            weights.scatter_add_(1, keeps.long() + DISCARD, th.full(keeps.shape, self._prior))
        weights *= masks
        return (weights / weights.sum(dim=1, keepdim=True)).clamp_min(_UNLIKELY).log()

    def evaluate_actions(
        self, obs: Any, actions: th.Tensor, action_masks: th.Tensor | None = None
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Values, log-probabilities and, in place of the entropy, minus the divergence from the prior."""
        features = self.extract_features(obs)
        latent, latent_value = self.mlp_extractor(features)
        distribution = self._get_action_dist_from_latent(latent)
        distribution.apply_masking(action_masks)
        bonus = distribution.entropy()
        if self._prior and action_masks is not None:
            prior = self.prior(features[:, :_SLOTS], action_masks.reshape(len(actions), -1).float())
            bonus = bonus + (distribution.distribution.probs * prior).sum(dim=1)
        return self.value_net(latent_value), distribution.log_prob(actions), bonus

    def exported(self) -> dict[str, NDArray[np.float32]]:
        """The actor's weights in the form of ``agents.ppo.Weights``."""
        layers = [layer for layer in self.mlp_extractor.policy_net if isinstance(layer, th.nn.Linear)]
        weights = {}
        for i, layer in enumerate(layers):
            weights[f"layer{i}.weight"] = layer.weight.detach().T.contiguous().numpy().copy()
            weights[f"layer{i}.bias"] = layer.bias.detach().numpy().copy()
        weights["head.weight"], weights["head.bias"] = (array.copy() for array in self.action_net.folded())
        return weights
