"""Finished hands as one HTML file, which opens without a server and asks for nothing.

The file holds what the hand histories hold: every card of both players.  The page keeps the other's hand face down until it is
asked for or shown down, but whoever reads the file's text can see it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from archie_env.errors import ArchieError
from archie_env.events import SEATS
from archie_env.game import Game
from archie_env.rendering.wording import Names
from archie_env.table.files import page_words, static
from archie_env.table.frames import replay, reviewed
from archie_env.words import words

_MODULES = ("cards.js", "table.js")


def page(
    games: Sequence[Game],
    *,
    reviews: Sequence[Sequence[Mapping[str, Any]]] | None = None,
    language: str = "en",
    title: str = "Archie",
    names: Sequence[Names] | None = None,
) -> str:
    """One self-contained HTML file that replays hands.

    Args:
        games: the hands, at least one.
        reviews: for each hand its reviews, as `Review.to_dict` gives them, none or one of each seat.
        language: one of `archie_env.words.LANGUAGES`.
        title: the title of the page.
        names: for each hand the players' names by seat; ``player_0`` and ``player_1`` where none are given.
    """
    games, spoken = list(games), words(language)
    if not games:
        raise ArchieError("page: expected at least one hand")
    for what, given in (("reviews", reviews), ("names", names)):
        if given is not None and len(given) != len(games):
            raise ArchieError(f"{what}: {len(given)}, expected one for each of the {len(games)} hands")
    hands = []
    for number, game in enumerate(games):
        frames = replay(game, None, names[number] if names else SEATS, spoken)
        for frame in frames:
            frame["choices"], frame["discards"] = [], []
        told = [] if reviews is None else [reviewed(game, dict(review), spoken) for review in reviews[number]]
        hands.append({"frames": frames, "reviews": told})
    data = {"title": title, "language": language, "words": page_words(language), "hands": hands}
    return _document(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"), language, title)


def _document(data: str, language: str, title: str) -> str:
    """The page with its modules, its style and the data inside; from a file, a browser loads no modules."""
    script = "\n".join(re.sub(r"(?m)^import .*$|^export ", "", static(name)) for name in _MODULES)
    style = static("table.css")
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    body = static("index.html")
    head = body.index('<link rel="icon"'), body.index("</head>")
    inside = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    body = body[: head[0]] + inside + body[head[1] :]
    body = body.replace("<title>Archie</title>", f"<title>{html.escape(title)}</title>")
    body = body.replace('<html lang="en">', f'<html lang="{language}">')
    scripts = f'<script type="application/json" id="data">{data}</script>\n<script type="module">{script}</script>\n'
    before, _, after = body.rpartition("</body>")
    return f"{before}{scripts}</body>{after}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
