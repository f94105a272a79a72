"""``python -m agents.export PLAYER FILE.onnx``: write a PPO player as a network in ONNX form."""

from __future__ import annotations

import argparse
import sys

from agents import load
from agents.export.graph import to_onnx
from agents.onnx import OnnxPolicy
from agents.ppo import PPOPolicy
from archie_env.errors import ArchieError
from archie_env.files import atomic_write, check_replaceable


def main() -> int:
    """Run the command; 2 for a player or a file that can't be used."""
    parser = argparse.ArgumentParser(prog="python -m agents.export", description=__doc__, allow_abbrev=False)
    parser.add_argument("player", help="ppo, or ppo:PATH")
    parser.add_argument("file", help="the file to write; one that is there must be a network in ONNX form")
    parser.add_argument("--rules", default="archie", help="name of the rules (default: archie)")
    options = parser.parse_args()
    try:
        policy = load(options.player, options.rules)
        if not isinstance(policy, PPOPolicy) or policy.greedy:
            raise ArchieError(f"policy {options.player!r} is no sampling network: expected ppo or ppo:PATH")
        check_replaceable(options.file, lambda path: OnnxPolicy.load(path, options.rules))
        content = to_onnx(policy)
        atomic_write(options.file, lambda file: file.write(content))
    except (ArchieError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(f"{options.file}: {len(content):,} bytes; play it as onnx:{options.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
