"""The picture that goes with a shared link (Open Graph): a PNG of the rating and its line, in the pool's colour.

Written by hand with ``zlib``: an imaging library would be most of a function's package. It holds no names, since the
link's title has them, so ten digits in a grid of dots are all the letters it needs.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import groupby

from site_builder.charts import thin_out

WIDTH, HEIGHT = 600, 315
PAPER, LINE, AREA, INK, GRID = range(5)
ACCENTS = ("1d5fbf", "1a7340", "b3261e", "6b3fa0", "0b6e75", "9a4a00", "a3246b", "596600")
"""As in ``assets/site.css``; a test holds them equal."""
_DOTS = {
    "0": "0e11131519110e", "1": "040c040404040e", "2": "0e11010204081f", "3": "1f02040201110e", "4": "02060a121f0202",
    "5": "1f101e0101110e", "6": "0608101e11110e", "7": "1f010204080808", "8": "0e11110e11110e", "9": "0e11110f01020c",
    "-": "0000001f000000", "/": "01010204081010", " ": "00000000000000",
}  # fmt: skip
"""Five dots across, seven down: a hexadecimal byte for each row."""


class _Canvas:
    def __init__(self) -> None:
        self.rows = [bytearray(WIDTH) for _ in range(HEIGHT)]

    def box(self, x: int, y: int, width: int, height: int, colour: int) -> None:
        left, right = max(x, 0), min(x + width, WIDTH)
        filled = bytes([colour]) * max(right - left, 0)
        for row in self.rows[max(y, 0) : max(y + height, 0)]:
            row[left:right] = filled

    def text(self, text: str, right: int, y: int, dot: int, colour: int) -> None:
        x = right - (len(text) * 6 - 1) * dot
        for character in text:
            rows = bytes.fromhex(_DOTS.get(character, _DOTS[" "]))
            for down, bits in enumerate(rows):
                for across in range(5):
                    if bits >> (4 - across) & 1:
                        self.box(x + across * dot, y + down * dot, dot, dot, colour)
            x += 6 * dot

    def png(self, accent: int) -> bytes:
        red, green, blue = bytes.fromhex(ACCENTS[accent % len(ACCENTS)])
        tint = tuple(255 - (255 - part) * 18 // 100 for part in (red, green, blue))
        palette = bytes((251, 251, 249, red, green, blue, *tint, 27, 29, 33, 227, 227, 222))
        header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + row for row in self.rows), 6)
        chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", pixels), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        )


def _sheet() -> _Canvas:
    canvas = _Canvas()
    canvas.box(0, 0, WIDTH, 10, LINE)
    for y in (150, 195, 240, 285):
        canvas.box(30, y, WIDTH - 60, 1, GRID)
    # The mark: a ladder.
    for x in (30, 54):
        canvas.box(x, 36, 7, 66, LINE)
    for y in (48, 66, 84):
        canvas.box(30, y, 31, 7, LINE)
    return canvas


def of_player(text: str, series: Sequence[tuple[int, int]], accent: int) -> bytes:
    """The rating in large digits over its line. ``series``: (instant, rating), ascending."""
    canvas = _sheet()
    canvas.text(text.replace("−", "-"), WIDTH - 30, 36, 12 if len(text) < 7 else 8, INK)
    points = thin_out(series, 200)
    if len(points) > 1:
        start, end = points[0][0], max(points[-1][0], points[0][0] + 1)
        values = [value for _, value in points]
        low, high = min(values), max(max(values), min(values) + 1)
        left, right, top, bottom = 30, WIDTH - 30, 150, 285
        heights = []
        position = 0
        for x in range(left, right):
            at = start + (end - start) * (x - left) // (right - left - 1)
            while position + 1 < len(points) and points[position + 1][0] <= at:
                position += 1
            heights.append(bottom - (bottom - top) * (points[position][1] - low) // (high - low))
        # Step by step and not column by column: a picture is made in a few milliseconds.
        steps = [(y, len(list(run))) for y, run in groupby(heights)]
        x = left
        for y, width in steps:
            canvas.box(x, y, width, bottom - y + 1, AREA)
            x += width
        x, before = left, steps[0][0]
        for y, width in steps:
            canvas.box(x, min(y, before) - 1, 3, abs(y - before) + 3, LINE)
            canvas.box(x, y - 1, width + 2, 3, LINE)
            x, before = x + width, y
    return canvas.png(accent)


def of_pool(counts: Sequence[int], accent: int) -> bytes:
    """How the ratings of a pool are spread, as bars. ``counts``: players per range of ratings."""
    canvas = _sheet()
    most = max(counts, default=0)
    for number, count in enumerate(counts):
        width = (WIDTH - 60) // len(counts)
        height = 200 * count // max(most, 1)
        canvas.box(30 + number * width, 285 - height, max(width - 3, 1), height, LINE)
    return canvas.png(accent)
