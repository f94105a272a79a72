"""Write the numbers of ``docs/results/numbers.toml`` into the pages: ``python docs/quote_numbers.py [--check]``.

A page quotes a number as ``<!-- number NAME -->+67 ± 9<!-- / -->``; what stands between the comments is replaced.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_QUOTE = re.compile(r"(<!-- number (\w+) -->)(.*?)(<!-- / -->)", re.DOTALL)


def pages() -> list[Path]:
    """Every page that may quote a number."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rewritten(page: Path, numbers: dict[str, dict[str, str]]) -> str:
    """Return the text of a page with its numbers replaced; a name that the file lacks is a `KeyError`."""
    return _QUOTE.sub(lambda m: m[1] + numbers[m[2]]["value"] + m[4], page.read_text(encoding="utf-8"))


def main() -> int:
    """Rewrite the pages, or with ``--check`` name those that differ and return 1."""
    numbers = tomllib.loads((ROOT / "docs/results/numbers.toml").read_text(encoding="utf-8"))
    stale = [page for page in pages() if rewritten(page, numbers) != page.read_text(encoding="utf-8")]
    for page in stale:
        if "--check" in sys.argv:
            print(f"{page.relative_to(ROOT)}: not the numbers of docs/results/numbers.toml; run python docs/quote_numbers.py")
        else:
            page.write_text(rewritten(page, numbers), encoding="utf-8")
    return int("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
