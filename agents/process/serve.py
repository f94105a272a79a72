"""A policy of this project as a bot: it answers lines of the protocol.

python -m agents.process rule_based        # bot:'ssh there python -m agents.process champion' plays it from another machine
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from agents.process import wire
from agents.registry import load
from archie_env.batch import Hands
from archie_env.errors import ArchieError, described, shown
from archie_env.policy import Policy
from archie_env.rules import Rules, as_rules
from archie_env.terminal.shell import run


def serve(name: str, lines: Iterable[bytes], out: BinaryIO) -> None:
    """Answer the lines of a host until they end.

    Policies that tell probabilities answer with them, and the host draws.  Others draw from a generator that follows from the
    numbers ``u`` of the batch.

    Args:
        name: as `agents.load` takes it.
        lines: what the host says.
        out: where the answers go.

    Raises:
        ArchieError: for a policy that can't be loaded under the rules of the host, and for lines that are no messages.
    """
    questions: list[dict[str, Any]] = []
    rules, policy, tells = None, None, False
    for line in lines:
        values = _object(line)
        if policy is None or rules is None:
            rules = _rules(values)
            policy = load(name, rules)
            tells = _tells_probabilities(policy, rules)
            hello = {"archie": wire.VERSION, "name": policy.name[: wire.MOST_NAME], "probabilities": tells}
            out.write(wire.canonical(hello))
            out.flush()
            continue
        questions.append(values)
        if values.get("left") == 0:
            out.write(b"".join(_answers(policy, questions, rules, tells)))
            out.flush()
            questions.clear()


def _object(line: bytes) -> dict[str, Any]:
    try:
        return wire.read_object(line)
    except ValueError as error:
        raise ArchieError(f"line {shown(line)}: {described(error, place=False)}: expected a line of the protocol") from None


def _rules(hello: Mapping[str, Any]) -> Rules:
    if hello.get("archie") != wire.VERSION:
        raise ArchieError(f"first line {shown(hello)}: expected 'archie':{wire.VERSION}")
    rules = hello.get("rules")
    return Rules.from_dict(rules) if isinstance(rules, dict) else as_rules(str(rules))


def _tells_probabilities(policy: Policy, rules: Rules) -> bool:
    _, rows, masks = Hands([0], [0], rules, 0).waiting(0)
    try:
        policy.probabilities(rows, masks)
    except (ArchieError, NotImplementedError):
        return False
    return True


def _answers(policy: Policy, questions: Sequence[Mapping[str, Any]], rules: Rules, tells: bool) -> list[bytes]:
    rows: tuple[NDArray[np.int8], ...]
    masks: tuple[NDArray[np.int8], ...]
    rows, masks = zip(*(wire.row_of(question, rules) for question in questions), strict=True)
    indices = [question.get("i") for question in questions]
    if tells:
        chances = policy.probabilities(np.stack(rows), np.stack(masks))
        told = ({str(a): float(row[a]) for a in np.flatnonzero(row)} for row in chances)
        return [wire.canonical({"i": i, "p": p}) for i, p in zip(indices, told, strict=True)]
    numbers = [int(question["u"] * wire.BILLION) for question in questions]
    actions = policy.act(np.stack(rows), np.stack(masks), np.random.default_rng(numbers))
    return [wire.canonical({"i": i, "a": int(a)}) for i, a in zip(indices, actions, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser("python -m agents.process", description="Answer the protocol of bots with a policy.")
    parser.add_argument("name", metavar="AGENT", help="a player, such as rule_based, ppo:PATH or my_bots:MyBot")
    options = parser.parse_args(arguments)
    return run(lambda: serve(options.name, sys.stdin.buffer, sys.stdout.buffer), program="agents.process")
