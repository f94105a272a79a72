"""The parts of the picture of a table: felt and rail, cards, chips, buttons and text.

Everything is drawn at `SCALE` times its size and reduced at the end, which smooths edges; lengths are pixels of the finished
picture.  Suits are drawn as shapes, so that no font needs their glyphs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from archie_env.cards import RANKS, SUITS

SCALE: Final = 2
CARD_WIDTH, CARD_HEIGHT = 84, 118
Color = tuple[int, int, int] | tuple[int, int, int, int]
Point = tuple[float, float]

INK: Final = (27, 31, 39)
RED: Final = (196, 30, 46)
IVORY: Final = (252, 250, 244)
WHITE: Final = (244, 244, 240)
DIM: Final = (186, 199, 190)
GOLD: Final = (240, 196, 92)
FAINT: Final = (124, 138, 132)
PLATE: Final = (16, 21, 27, 228)
EDGE: Final = (84, 94, 104)
_BACKDROP: Final = (24, 27, 33)
_BACK: Final = (36, 62, 112)
_CHIP_COLORS: Final = (
    (1000, (214, 166, 44)),
    (500, (112, 62, 146)),
    (100, (38, 40, 46)),
    (25, (36, 122, 78)),
    (5, (184, 40, 48)),
    (1, (232, 232, 226)),
)


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size * SCALE)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise ImportError("pictures need a Pillow with FreeType")
    return font


def text_width(text: str, size: int) -> float:
    """Width of a line of text in pixels."""
    return _font(size).getlength(text) / SCALE


def fitting(text: str, size: int, width: float) -> int:
    """Return the largest font size from 11 to ``size`` in which the text fits the width."""
    while size > 11 and text_width(text, size) > width:
        size -= 1
    return size


def wrapped(text: str, size: int, width: float, lines: int = 1) -> list[str]:
    """Wrap a text into at most this many lines of this width; a longer one ends with dots."""
    rows: list[str] = []
    row = ""
    words = text.split()
    for i, word in enumerate(words):
        longer = f"{row} {word}".strip()
        if text_width(longer, size) <= width:
            row = longer
        elif len(rows) == lines - 1 or not row:
            rows.append(_cut(" ".join([row, *words[i:]]).strip(), size, width))
            return rows
        else:
            rows.append(row)
            row = word
    row = row if text_width(row, size) <= width else _cut(row, size, width)
    return [*rows, row]


def _cut(text: str, size: int, width: float) -> str:
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}...", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}..."


class Canvas:
    """A drawing surface: Pillow's drawing in pixels of the finished picture."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self._draw = ImageDraw.Draw(image, "RGBA")  # on an RGB picture, translucent colours blend

    @classmethod
    def blank(cls, width: float, height: float) -> Canvas:
        """Make a transparent picture."""
        return cls(Image.new("RGBA", (round(width * SCALE), round(height * SCALE)), (0, 0, 0, 0)))

    @staticmethod
    def _scaled(*lengths: float) -> list[float]:
        return [length * SCALE for length in lengths]

    def box(
        self, x: float, y: float, width: float, height: float, radius: float,
        fill: Color | None = None, outline: Color | None = None, line: float = 1,
    ) -> None:  # fmt: skip
        """Draw a rectangle with round corners."""
        corners = self._scaled(x, y, x + width, y + height)
        self._draw.rounded_rectangle(corners, radius * SCALE, fill, outline, round(line * SCALE) if outline else 0)

    def oval(
        self, x: float, y: float, width: float, height: float,
        fill: Color | None = None, outline: Color | None = None, line: float = 1,
    ) -> None:  # fmt: skip
        """Draw an ellipse in a box."""
        corners = self._scaled(x, y, x + width, y + height)
        self._draw.ellipse(corners, fill, outline, round(line * SCALE) if outline else 0)

    def polygon(self, points: Sequence[Point], fill: Color) -> None:
        """Draw a filled polygon."""
        self._draw.polygon([(x * SCALE, y * SCALE) for x, y in points], fill)

    def line(self, points: Sequence[Point], fill: Color, width: float = 1) -> None:
        """Draw a line through points."""
        self._draw.line([(x * SCALE, y * SCALE) for x, y in points], fill, round(width * SCALE))

    def text(self, x: float, y: float, text: str, size: int, fill: Color, anchor: str = "lm", bold: bool = False) -> None:
        """Write a line of text; the anchor is Pillow's, ``lm`` = left and middle."""
        stroke = SCALE * size / 44 if bold else 0  # the built-in font has no bold face
        self._draw.text((x * SCALE, y * SCALE), text, fill, _font(size), anchor, stroke_width=stroke, stroke_fill=fill)

    def put(self, picture: Image.Image, x: float, y: float) -> None:
        """Paste another picture on top."""
        self.image.paste(picture, (round(x * SCALE), round(y * SCALE)), picture)

    def suit(self, suit: int, x: float, y: float, size: float, fill: Color) -> None:
        """Draw a suit around a point, about ``size`` high."""
        half = size / 2
        if SUITS[suit] == "d":
            wide = half * 0.78
            self.polygon([(x, y - half), (x + wide, y), (x, y + half), (x - wide, y)], fill)
        elif SUITS[suit] == "h":
            self.polygon(_heart(x, y, size, 1), fill)
        elif SUITS[suit] == "s":
            self.polygon(_heart(x, y - 0.06 * size, 0.9 * size, -1), fill)
            self._stem(x, y, size, fill)
        else:
            leaf = 0.27 * size
            for dx, dy in ((0, -0.24), (-0.25, 0.09), (0.25, 0.09)):
                self.oval(x + dx * size - leaf, y + dy * size - leaf, 2 * leaf, 2 * leaf, fill)
            self.polygon([(x, y - 0.2 * size), (x + 0.2 * size, y + 0.1 * size), (x - 0.2 * size, y + 0.1 * size)], fill)
            self._stem(x, y, size, fill)

    def _stem(self, x: float, y: float, size: float, fill: Color) -> None:
        foot, waist = 0.2 * size, 0.05 * size
        self.polygon(
            [(x - waist, y), (x + waist, y), (x + waist, y + 0.3 * size), (x + foot, y + 0.5 * size),
             (x - foot, y + 0.5 * size), (x - waist, y + 0.3 * size)], fill,
        )  # fmt: skip

    def chips(self, x: float, y: float, amount: int) -> float:
        """Draw stacks of chips worth ``amount`` around x, standing on y; returns their width."""
        piles = []
        for worth, color in _CHIP_COLORS:
            count, amount = divmod(amount, worth)
            piles += [(min(5, count - first), color) for first in range(0, min(count, 25), 5)]
        left = x - (len(piles) * 30 - 4) / 2
        for i, (count, color) in enumerate(piles):
            for level in range(count):
                self._chip(left + i * 30, y - 5 * level, color)
        return max(0, len(piles) * 30 - 4)

    def _chip(self, x: float, y: float, color: tuple[int, int, int]) -> None:
        width, height, thick = 26, 15, 5
        light = sum(color) > 600
        dark = (168, 168, 160) if light else (color[0] * 11 // 20, color[1] * 11 // 20, color[2] * 11 // 20)
        top = y - height - thick
        self.oval(x, top + thick, width, height, dark)
        self.box(x, top + height / 2, width, thick, 0, dark)
        pale = (250, 250, 246) if not light else (70, 96, 150)
        for spot in (0.12, 0.42, 0.72):
            self.box(x + width * spot, top + height * (0.93 if spot == 0.42 else 0.74), width * 0.16, thick - 1, 0, pale)
        self.oval(x, top, width, height, color, dark, 0.7)
        self.oval(x + 5.5, top + 3, width - 11, height - 6, None, pale, 1)

    def button(self, x: float, y: float) -> None:
        """Draw the dealer button around a point."""
        self.oval(x - 17, y - 15, 34, 34, (0, 0, 0, 70))
        self.oval(x - 17, y - 17, 34, 34, IVORY, (168, 160, 140), 1.5)
        self.oval(x - 13, y - 13, 26, 26, None, (206, 198, 178), 1)
        self.text(x, y, "D", 18, INK, "mm", bold=True)


def _heart(x: float, y: float, size: float, up: int) -> list[Point]:
    """The heart curve 16 sin^3 t, 13 cos t - 5 cos 2t - 2 cos 3t - cos 4t; upside down for a spade."""
    points = []
    for step in range(64):
        t = step * math.tau / 64
        dx = 16 * math.sin(t) ** 3
        dy = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        points.append((x + dx / 31 * size, y - up * (dy + 2.5) / 31 * size))
    return points


@functools.cache
def card(number: int | None) -> Image.Image:
    """Draw a card with its shadow, or the back of a card for None."""
    canvas = Canvas.blank(CARD_WIDTH + 6, CARD_HEIGHT + 8)
    canvas.box(2, 4, CARD_WIDTH, CARD_HEIGHT, 9, (0, 0, 0, 60))
    canvas.box(1, 2, CARD_WIDTH, CARD_HEIGHT, 9, (0, 0, 0, 60))
    canvas.box(0, 0, CARD_WIDTH, CARD_HEIGHT, 9, IVORY, (176, 172, 160))
    if number is None:
        canvas.put(_lattice(CARD_WIDTH - 12, CARD_HEIGHT - 12), 6, 6)
        return canvas.image
    rank, suit = divmod(number, 4)
    color = RED if SUITS[suit] in "dh" else INK
    ten = RANKS[rank] == "T"
    canvas.text(19, 21, "10" if ten else RANKS[rank], 26 if ten else 30, color, "mm", bold=True)
    canvas.suit(suit, 19, 49, 20, color)
    canvas.suit(suit, CARD_WIDTH * 0.6, CARD_HEIGHT * 0.68, 50, color)
    return canvas.image


def _lattice(width: float, height: float) -> Image.Image:
    """Draw the pattern on the back of a card."""
    canvas = Canvas.blank(width, height)
    canvas.box(0, 0, width, height, 5, _BACK)
    gap = 12
    for offset in range(-math.ceil(height / gap) * gap, math.ceil(width), gap):
        for points in ([(offset, 0), (offset + height, height)], [(offset, height), (offset + height, 0)]):
            canvas.line(points, (92, 122, 178), 1)
    middle = width / 2, height / 2
    canvas.oval(middle[0] - 20, middle[1] - 20, 40, 40, _BACK, (204, 214, 234), 1.5)
    canvas.suit(SUITS.index("s"), *middle, 24, (204, 214, 234))
    mask = Canvas.blank(width, height)
    mask.box(0, 0, width, height, 5, (255, 255, 255, 255))
    canvas.box(1, 1, width - 2, height - 2, 4, None, (204, 214, 234), 1)
    return Image.composite(canvas.image, Canvas.blank(width, height).image, mask.image.getchannel("A"))


@functools.cache
def table(width: int, height: int, left: int, top: int, right: int, bottom: int) -> Image.Image:
    """Draw the background and the table: a wooden rail around lit felt."""
    y, x = np.mgrid[0 : height * SCALE, 0 : width * SCALE].astype(np.float32) / SCALE
    away = np.hypot((x - (left + right) / 2) / (right - left), (y - (top + bottom) / 2) / (bottom - top) * 0.8)
    light = np.clip(1.12 - 0.95 * away, 0.45, 1.12)[..., None]
    grain = np.random.default_rng(0).normal(0, 2.2, (height * SCALE, width * SCALE, 1)).astype(np.float32)
    felt = np.clip(np.array([24, 112, 72], np.float32) * light + grain, 0, 255)
    shade = np.clip((y - top) / (bottom - top), 0, 1)[..., None]
    rail = np.array([118, 74, 42], np.float32) * (1 - shade) + np.array([58, 33, 18], np.float32) * shade
    rail += 5 * np.sin(x * 0.035 + 2.5 * np.sin(y * 0.02))[..., None]
    room = Canvas(Image.new("RGB", (width * SCALE, height * SCALE), _BACKDROP))
    shadow = _stadium(room.image.size, (left, top + 10, right, bottom + 10), 150)
    room.image.paste((0, 0, 0), (0, 0), shadow.filter(ImageFilter.GaussianBlur(9 * SCALE)))
    for pixels, inset in ((rail, 0), (felt, 26)):
        mask = _stadium(room.image.size, (left + inset, top + inset, right - inset, bottom - inset), 255)
        room.image.paste(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)), (0, 0), mask)
    for inset, color, line in (
        (0, (30, 17, 10), 2.0),
        (3, (164, 112, 70), 1.2),
        (24, (24, 14, 8), 3.0),
        (44, (120, 178, 140, 110), 1.5),
    ):
        room.box(
            left + inset, top + inset, right - left - 2 * inset, bottom - top - 2 * inset,
            (bottom - top) / 2 - inset, None, color, line,
        )  # fmt: skip
    return room.image


def _stadium(size: tuple[int, int], corners: tuple[int, int, int, int], opacity: int) -> Image.Image:
    """Return a mask of a box with semicircular ends."""
    mask = Image.new("L", size, 0)
    radius = (corners[3] - corners[1]) / 2 * SCALE
    ImageDraw.Draw(mask).rounded_rectangle([c * SCALE for c in corners], radius, opacity)
    return mask
