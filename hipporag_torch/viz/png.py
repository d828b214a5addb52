"""An explanation as a PNG."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipporag_torch.errors import ConfigError
from hipporag_torch.explanation import Explanation
from hipporag_torch.types import SourceName
from hipporag_torch.viz.layout import lay_out
from hipporag_torch.viz.shapes import (
    FONT,
    FOOTER,
    LINE,
    MARGIN,
    PADDING,
    SMALL,
    SMALL_LINE,
    Box,
    BoxKind,
    Layout,
    Link,
    LinkKind,
)
from hipporag_torch.viz.text import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 100
# Okabe and Ito's colours, which colour-blind readers tell apart; their greys differ too, and so do the lines.
_FILL: dict[BoxKind, str] = {
    "fact": "#f3f3f3",
    "dropped": "#ffffff",
    "seed": "#00598c",
    "bridge": "#f6d58f",
    "passage": "#ffffff",
}
_BORDER: dict[BoxKind, str] = {
    "fact": "#666666",
    "dropped": "#999999",
    "seed": "#00395a",
    "bridge": "#a86f00",
    "passage": "#00694e",
}
_BAR: dict[BoxKind, str] = {"seed": "#8fd0f5", "bridge": "#a86f00", "passage": "#009e73"}
_LINE: dict[LinkKind, tuple[str, Any]] = {
    "evidence": ("#777777", (0, (1.5, 2))),
    "fact": ("#00598c", "solid"),
    "synonym": ("#b3478a", (0, (5, 3))),
    "membership": ("#00835f", "solid"),
    "mention": ("#00835f", (0, (1, 2))),
}
_SOURCE: dict[SourceName, str] = {"facts": "#e69f00", "entities": "#56b4e9", "passages": "#009e73"}
# The first has Latin, Greek, Cyrillic, Arabic; the others fill in what it lacks, where they are installed.
_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Hiragino Sans",
    "Yu Gothic",
    "Microsoft YaHei",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Sans Hebrew",
    "Arial Unicode MS",
)


def draw_png(explanation: Explanation, path: str | Path) -> None:
    """Write the picture of `explanation`, 1600 pixels wide and at least 1000 high, to `path`.

    Raises `ConfigError` where matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout = lay_out(explanation)
    figure = Figure(figsize=(layout.width / DPI, layout.height / DPI), dpi=DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, layout.width), ylim=(layout.height, 0))
    axes.set_axis_off()
    _draw(axes, layout)
    with without_font_chatter():
        canvas.print_png(str(path))


@contextmanager
def without_font_chatter() -> Iterator[None]:
    """A script that no font has is drawn as boxes, a font without bold as it is: no reason to warn."""
    log = logging.getLogger("matplotlib.font_manager")

    def worth_showing(record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING

    log.addFilter(worth_showing)
    try:
        with warnings.catch_warnings():
            unknown_script = r"(?s).*(Glyph|does not support|font)"
            warnings.filterwarnings("ignore", message=unknown_script, category=UserWarning)
            yield
    finally:
        log.removeFilter(worth_showing)


def require_matplotlib() -> None:
    """Raise `ConfigError` where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ConfigError(
            "drawing a PNG needs matplotlib, which is not installed; pip install 'hipporag-torch[viz]', "
            "or do without the picture"
        )


def _draw(axes: "Axes", layout: Layout) -> None:
    fonts = installed_fonts()
    for number, line in enumerate(layout.question):
        _text(axes, fonts, MARGIN, 20 + 31 * number, line, 24.0, weight="bold")
    for number, line in enumerate(layout.route):
        y = 22 + 31 * len(layout.question) + LINE * number
        _text(axes, fonts, MARGIN, y, line, FONT, color="#444444")
    for heading in layout.headings:
        _text(axes, fonts, heading.x, heading.y - SMALL, heading.text, SMALL, color="#444444")
    for link in layout.links:
        _draw_link(axes, link)
    for box in layout.boxes:
        _draw_box(axes, fonts, box)
    _draw_legend(axes, fonts, layout)


def _draw_link(axes: "Axes", link: Link) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    codes = [Outline.MOVETO] + [Outline.CURVE4] * (len(link.points) - 1)
    color, style = _LINE[link.kind]
    outline = Outline(list(link.points), codes)
    axes.add_patch(
        PathPatch(
            outline, fill=False, edgecolor=color, linestyle=style, linewidth=link.stroke * 0.72, alpha=0.75
        )
    )


def _draw_box(axes: "Axes", fonts: list[str], box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    inset = 4.0
    axes.add_patch(
        FancyBboxPatch(
            (box.x + inset, box.y + inset),
            box.width - 2 * inset,
            box.height - 2 * inset,
            boxstyle=f"round,pad={inset}",
            facecolor=_FILL[box.kind],
            edgecolor=_BORDER[box.kind],
            linestyle="dashed" if box.kind == "dropped" else "solid",
            linewidth=1.6 if box.kind == "passage" else 0.9,
        )
    )
    _draw_bar(axes, box)
    ink, faint = ("white", "#d5ecfa") if box.kind == "seed" else ("#111111", "#444444")
    x, y = box.x + PADDING + 2, box.y + PADDING - 3
    for line in box.lines:
        _text(axes, fonts, x, y, line, FONT, color=ink)
        y += LINE
    _text(axes, fonts, x, y, box.note, SMALL, color=faint)


def _draw_bar(axes: "Axes", box: Box) -> None:
    """In the colours of its parts, or in the box's own."""
    from matplotlib.patches import Rectangle

    if not box.share or box.kind not in _BAR:
        return
    parts = [(_SOURCE[name], share) for name, share in box.sources] or [(_BAR[box.kind], box.share)]
    x = box.x + PADDING
    for color, share in parts:
        length = (box.width - 2 * PADDING) * share
        axes.add_patch(Rectangle((x, box.y + box.height - 7), length, 4, facecolor=color, linewidth=0))
        x += length


def _draw_legend(axes: "Axes", fonts: list[str], layout: Layout) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    y = layout.height - FOOTER / 2
    x = MARGIN
    for kind, meaning in layout.legend:
        color, style = _LINE[kind]
        thick = 4 if kind == "membership" else 1.5
        axes.add_line(Line2D([x, x + 44], [y, y], color=color, linestyle=style, linewidth=thick))
        _text(axes, fonts, x + 52, y - SMALL / 2 - 2, meaning, SMALL, color="#444444")
        x += 52 + 30 + text_width(meaning, SMALL)
    x, y = MARGIN, y + SMALL_LINE + 6
    for name, meaning in layout.source_legend:
        axes.add_patch(Rectangle((x, y - 3), 44, 6, facecolor=_SOURCE[name], linewidth=0))
        _text(axes, fonts, x + 52, y - SMALL / 2 - 2, meaning, SMALL, color="#444444")
        x += 52 + 30 + text_width(meaning, SMALL)


def _text(
    axes: "Axes",
    fonts: list[str],
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    color: str = "#111111",
    weight: str = "normal",
) -> None:
    """`text` from its top left corner, `size` in pixels."""
    axes.text(
        x,
        y,
        text,
        fontsize=size * 72 / DPI,
        color=color,
        fontweight=weight,
        family=fonts,
        va="top",
        # A label may hold dollars, which are no formula.
        parse_math=False,
    )


def installed_fonts() -> list[str]:
    """Those of `_FONTS` that are here; asking for another would log an error."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [name for name in _FONTS if name in installed]
