"""The style of all pictures, and how they are saved."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from archie_env.files import atomic_write
from evaluation.results import PICTURE_MARK

INK: Final = "#1f2933"
FAINT: Final = "#7b8794"
PAPER: Final = "#ffffff"
STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": 10,
    "text.usetex": False,  # whatever a matplotlibrc says: LaTeX may be missing
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#cbd2d9",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
}
_DOTS: Final = 150


def picture(width: float, height: float) -> Figure:
    """Make an empty figure of that many inches, which needs no display."""
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, whole or not at all; raises `ArchieError` naming the file."""
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=_DOTS)
    with Image.open(memory) as drawn:  # a palette is enough for flat colours, and a third of the size
        flat = drawn.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    mark = PngInfo()
    mark.add_text("Software", PICTURE_MARK)
    atomic_write(path, lambda file: flat.save(file, format="png", optimize=True, pnginfo=mark))


def short_names(names: Sequence[str]) -> list[str]:
    """Names for pictures: ``ppo:runs/first/policy.npz`` becomes ``ppo first`` unless two names would look alike."""
    short = []
    for name in names:
        kind, colon, path = name.partition(":")
        if not colon:
            short.append(name)
            continue
        parts = Path(path).with_suffix("").parts
        words = [part for part in parts[-2:] if part not in ("policy", "weights", "/")] or list(parts[-1:])
        short.append(f"{kind} {words[-1]}")
    return short if len(set(short)) == len(names) else list(names)
