"""Pages of documentation as programs: their fenced blocks, run in order in a folder of their own.

``sh`` blocks run in bash.  ``python`` blocks share one namespace, as if typed into one session; a block that begins with
``# NAME.py`` is written to that file instead, and with ``# NAME.py, continued`` appended to it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parent.parent
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# (\w+\.py)(, continued)?\n")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    text: str
    line: int
    """Line of the page on which the text begins, from 1."""


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in _FENCE.finditer(text)]


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the ``sh`` and ``python`` blocks of a page in ``folder``; return the output of its ``sh`` blocks.

    Doctests (``>>>``) are left to pytest's own runner.  Fails with the page, the line and the output of the first block that
    fails.
    """
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    output = []
    for block in blocks(page):
        if block.language == "sh":
            output.append(_run_shell(page, block))
        elif block.language == "python" and (file := _FILE.match(block.text)):
            with open(folder / file[1], "a" if file[2] else "w", encoding="utf-8") as written:
                written.write(f"\n\n{block.text}" if file[2] else block.text)
        elif block.language == "python" and ">>> " not in block.text:
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")  # tracebacks name the page's own lines
            exec(code, namespace)
    return "".join(output)


def _run_shell(page: Path, block: Block) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{page}:{block.line}: exit status {done.returncode}\n{done.stdout}"
    return done.stdout
