"""A bot for tests: checks, calls and stands pat, but for the one oddity that its first argument names.

A second argument is a file to which it adds the number of each of its processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

ODDITY = sys.argv[1] if len(sys.argv) > 1 else ""
FIRST = {
    "another version": '{"archie":2}',
    "no version": '{"name":"odd"}',
    "a list": "[1]\n{",
    "a long name": '{"archie":1,"name":"' + 50 * "x" + '"}',
    "half a row": '{"archie":1,"batch":0.5}',
    "sevens": '{"archie":1,"batch":7}',
    "single": '{"archie":1,"batch":1}',
    "brackets at first": '{"archie":' + 5000 * "[",
}
WORDS = {
    "another action": 77,
    "a huge action": 10**30,
    "a card of the other": "discard 2c2d2h2s",
    "words": "dance",
    "null": None,
    "a float": 1.0,
    "true": True,
    "a list of actions": [1],
}
CHANCES = {
    "half": {"1": 0.25, "3": 0.25},
    "negative": {"1": -1, "2": 1, "3": 1},
    "infinite": {"1": 1e400, "3": 1e400},
    "NaN": {"1": float("nan"), "3": float("nan")},
    "an illegal chance": {"1": 0.5, "3": 0.5},
    "action 99": {"99": 1},
    "words of chance": {"1": "much"},
    "no numbers": {"call": 1},
    "no table": [0.5, 0.5],
}


def note(number: int) -> None:
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a") as file:
            file.write(f"{number}\n")


def spoiled(message: dict[str, Any]) -> bool:
    """Return whether the oddity happens in this message: where two black aces are held, or the deuce of clubs, or always."""
    hand = message["held"][-1]
    if ODDITY.endswith("at aces"):
        return "As" in hand and "Ac" in hand
    return "2c" in message["held"][0] if ODDITY.endswith("at the deuce") else True


def answer(message: dict[str, Any]) -> str:
    i, draw = message["i"], message["draw"]
    plain = json.dumps({"i": i, "a": 3 if draw else 1}) + "\n"
    if not spoiled(message):
        return plain
    kind = ODDITY.removesuffix(" at aces").removesuffix(" at the deuce")
    if kind in WORDS:
        return json.dumps({"i": i, "a": WORDS[kind]}) + "\n"
    if kind in CHANCES:
        return json.dumps({"i": i, "p": CHANCES[kind]}) + "\n"
    if kind == "certain":
        return json.dumps({"i": i, "p": {"3" if draw else "1": 1}}) + "\n"
    if kind == "by chance":
        legal = [3, 4, 34] if draw else message["legal"]
        return json.dumps({"i": i, "a": legal[int(message["u"] * len(legal))]}) + "\n"
    if kind == "by words":
        return json.dumps({"a": "stand pat" if draw else "check", "i": i}) + "\n"
    if kind == "debugs":
        return f"thinking about {i}\n\n" + 70_000 * "x" + "\n" + plain
    if kind == "floods":
        return "x\n" * 20_000 + plain
    if kind == "twice":
        return plain + plain
    if kind == "another index":
        return plain.replace(f'"i": {i}', f'"i": {i + 10**6}')
    if kind == "no index":
        return '{"a":1}\n'
    if kind == "brackets":
        return '{"i":' + 2000 * "[" + 2000 * "]" + "}\n"
    if kind == "no JSON":
        return "{what?}\n"
    if kind == "a key twice":
        return f'{{"i":{i},"a":1,"a":1}}\n'
    if kind == "a long line":
        return '{"i":' + 100_000 * " " + f'{i},"a":1}}\n'
    if kind == "dies":
        print("out of \x1b[2Jaces", file=sys.stderr, flush=True)
        os._exit(3)
    if kind == "aborts":
        os.abort()
    if kind in ("hangs", "is deaf"):
        time.sleep(1000)
    if kind == "complains":
        print(5000 * "!", file=sys.stderr)
    return plain


note(os.getpid())
if ODDITY in ("is deaf", "leaves a child"):
    note(subprocess.Popen(["sleep", "1000"]).pid)
sys.stdin.readline()
if ODDITY == "says nothing":
    time.sleep(1000)
if ODDITY == "ends at once":
    sys.exit("no weights here")
told = CHANCES.keys() | {"certain", "certain twice"}
hello = json.dumps({"archie": 1, "name": "odd", "probabilities": ODDITY.removesuffix(" at the deuce") in told})
print(FIRST.get(ODDITY, hello), flush=True)
answers = []
for line in sys.stdin:
    message = json.loads(line)
    answers.append(answer(message))
    if message["left"] == 0 or ODDITY == "debugs":
        sys.stdout.write("".join(answers))
        sys.stdout.flush()
        answers.clear()
if ODDITY == "is deaf":
    time.sleep(1000)
