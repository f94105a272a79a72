"""A few steps of every interface, to try other versions of the dependencies: ``python tests/smoke.py [--train]``.

Run by ``.ci/run`` with the lowest and the newest versions that pyproject.toml allows; needs no pytest.
"""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
from pathlib import Path


def engine() -> None:
    """Play through `Game`, a hand history and `Batch`."""
    from archie_env import Batch, Game, notation

    game = Game(seed=1)
    while not game.over:
        game.apply(game.legal_actions()[-1])
    assert notation.parse(notation.dump(game)) == game
    batch = Batch(256, seed=1, threads=2)
    for _ in range(40):
        rewards, _ = batch.step(batch.sample_actions())
        assert (rewards.sum(axis=1) == 0).all()


def pettingzoo_interface() -> None:
    """Play a session through the AEC environment."""
    from archie_env import archie_v0

    env = archie_v0.env(hands=3, render_mode="ansi")
    env.reset(seed=1)
    total = dict.fromkeys(env.agents, 0.0)
    for agent in env.agent_iter():
        _, reward, terminated, _, info = env.last()
        total[agent] += reward
        env.step(None if terminated else int(info["action_mask"].nonzero()[0][0]))
    assert sum(total.values()) == 0
    assert "Pot" in str(env.render()) or env.render()


def gymnasium_interfaces() -> None:
    """Play through the single and the vector environment, in both autoreset modes."""
    import gymnasium
    from gymnasium.vector import AutoresetMode

    import archie_env  # noqa: F401  (registers Archie-v0)

    env = gymnasium.make("Archie-v0")
    _, info = env.reset(seed=1)
    for _ in range(100):
        _, _, terminated, _, info = env.step(int(info["action_mask"].nonzero()[0][0]))
        if terminated:
            _, info = env.reset()
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        envs = gymnasium.make_vec("Archie-v0", num_envs=8, vectorization_mode="vector_entry_point", autoreset_mode=mode)
        _, infos = envs.reset(seed=1)
        for _ in range(50):
            infos = envs.step(infos["action_mask"].argmax(axis=1))[4]


def picture() -> None:
    """Draw the table."""
    from archie_env import archie_v0

    env = archie_v0.env(render_mode="rgb_array")
    env.reset(seed=1)
    image = env.render()
    assert not isinstance(image, str)
    assert image is not None
    assert image.ndim == 3


def training() -> None:
    """Train and save with sb3-contrib and with both trainers, and play what came of it."""
    from sb3_contrib import MaskablePPO

    from agents import load
    from archie_env.envs.learner import SingleAgentBatch
    from evaluation.duplicate.match import play_match
    from training.cfr.trainer import main as cfr
    from training.ppo.trainer import main as ppo
    from training.ppo.vec_env import SingleAgentVecEnv

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        learner = MaskablePPO(
            "MlpPolicy", SingleAgentVecEnv(SingleAgentBatch(64, [load("call")], seed=1, keep_walks=True)), n_steps=8, seed=1
        )
        learner.learn(512)
        learner.save(out / "sb3.zip")
        assert cfr(["--config", "configs/cfr/mini.toml", "--out", f"{out}/cfr", "--set", "stages=[{traversals=2000}]"]) == 0
        small = ["--set", "budget.decisions=4000", "--set", "rollout.num_envs=64", "--set", "report.times=0"]
        assert ppo(["--config", "configs/ppo/smoke.toml", "--out", f"{out}/ppo", *small]) == 0
        for name in (f"ppo:{out}/ppo/policy.npz", f"sb3:{out}/sb3.zip"):
            assert play_match(load(name), load("call"), 50, seed=1).faults[0].total == 0
        strategy = load(f"cfr:{out}/cfr/strategy.npz", "mini")
        assert play_match(strategy, load("call", "mini"), 50, seed=1, rules="mini").hands == 100


def main() -> None:
    """Run every part, naming it and the versions."""
    parts = [engine, pettingzoo_interface, gymnasium_interfaces, picture]
    packages = ["numpy", "numba", "gymnasium", "pettingzoo", "pillow"]
    if "--train" in sys.argv:
        parts.append(training)
        packages += ["torch", "stable-baselines3", "sb3-contrib", "pydantic", "tyro", "scipy", "tabulate"]
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages))
    for part in parts:
        part()
        print(f"{part.__name__}: works")


if __name__ == "__main__":
    main()
