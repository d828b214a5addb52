"""What the charts share: a figure laid out in pixels, colours, texts that fit, labels that keep apart."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hipporag_torch.errors import InputError
from hipporag_torch.viz.png import (
    DPI,
    installed_fonts,
    require_matplotlib,
    without_font_chatter,
)
from hipporag_torch.viz.shapes import SMALL
from hipporag_torch.viz.text import text_width, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, RULE = "#111111", "#444444", "#dddddd"
# Okabe and Ito's colours without the yellow, which is too faint for a line; dark and light take turns.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#111111", "#e69f00", "#56b4e9")
# Different in number from the colours, so that a repeated colour comes in another style.
DASHES = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (4, 1.5, 1.5, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
TITLE = 20.0
# From the baseline of a direct label to the next.
LABEL_GAP = SMALL + 5.0


class Chart:
    """A white figure of `width` × `height` pixels, in which things are placed from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        """Raises `ConfigError` where matplotlib is not installed."""
        require_matplotlib()
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.fonts = installed_fonts()
        self.figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
        self._canvas = FigureCanvasAgg(self.figure)
        # Behind all panels, in pixels: titles, legends and labels beside a panel.
        self.page = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.page.set_axis_off()

    def panel(self, left: float, top: float, width: float, height: float) -> "Axes":
        """Axes whose data fill this rectangle; ticks and labels stand around it."""
        axes = self.figure.add_axes(
            (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        )
        axes.set_facecolor("none")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_color("#888888")
        axes.tick_params(labelsize=points(SMALL), colors=FAINT, labelfontfamily=self.fonts)
        axes.set_axisbelow(True)
        return axes

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = SMALL,
        *,
        color: str = FAINT,
        weight: str = "normal",
        align: str = "left",
        vertical: str = "top",
    ) -> None:
        """`text` as it is, in a font of `size` pixels, from its top left corner unless said otherwise."""
        self.page.text(
            x,
            y,
            text,
            fontsize=points(size),
            color=color,
            fontweight=weight,
            family=self.fonts,
            ha=align,
            va=vertical,
            # A name may hold dollars, which are no formula.
            parse_math=False,
        )

    def title(self, x: float, y: float, text: str, width: float, *, max_lines: int = 2) -> float:
        """`text` in bold lines; returns where what comes below starts. Bold letters are a tenth wider."""
        for line in wrap(text, width / 1.1, TITLE, max_lines=max_lines):
            self.text(x, y, line, TITLE, color=INK, weight="bold")
            y += TITLE + 7
        return y

    def save(self, path: str | Path) -> None:
        """Write a PNG; the same chart gives the same bytes."""
        with without_font_chatter():
            self._canvas.print_png(str(path))


def points(pixels: float) -> float:
    """A size in pixels as matplotlib wants it."""
    return pixels * 72 / DPI


def fitted(text: str, width: float, size: float = SMALL) -> str:
    """`text` on one line of at most `width` pixels; what is too long ends in an ellipsis."""
    return next(iter(wrap(text, width, size, max_lines=1)), "")


def widest(texts: Iterable[str], size: float = SMALL) -> float:
    """The width in pixels of the longest of `texts`, rather too wide."""
    return max((text_width(text, size) for text in texts), default=0.0)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near to the `wanted` ones as leaves `gap` between any two and keeps all in [low, high].

    Their order is that of `wanted`, ties in the order given. Where [low, high] is too small, the gap shrinks.
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    # Without the gaps the places need only not descend: neighbours out of order share their mean.
    pools: list[tuple[float, int]] = []
    for place, i in enumerate(order):
        total, count = wanted[i] - place * gap, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    last = high - (len(wanted) - 1) * gap
    level = [min(max(total / count, low), last) for total, count in pools for _ in range(count)]
    places = [0.0] * len(wanted)
    for place, i in enumerate(order):
        places[i] = level[place] + place * gap
    return places


def require_share(name: str, value: float) -> None:
    """Raise `InputError` unless `value` lies in [0, 1]."""
    if not 0 <= value <= 1:
        raise InputError(f"{name} holds {value}; expected values between 0 and 1")


def require_seconds(name: str, value: float) -> None:
    """Raise `InputError` unless `value` is finite and not negative."""
    if not 0 <= value < math.inf:
        raise InputError(f"{name} took {value} seconds; expected a finite number, not negative")
