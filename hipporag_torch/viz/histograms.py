"""The shape of a graph: how many edges its nodes have, and what these weigh."""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hipporag_torch.errors import InputError
from hipporag_torch.graph_shape import EdgeShape, GraphHistograms, Histogram, graph_histograms
from hipporag_torch.index import Index
from hipporag_torch.viz.charts import FAINT, INK, RULE, Chart, points
from hipporag_torch.viz.shapes import FONT, MARGIN, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 1200.0, 780.0
_LEFT, _GAP, _BETWEEN, _BOTTOM = 96.0, 64.0, 130.0, 66.0
_PHRASE, _PASSAGE = "#0072b2", "#009e73"
_MAX_TICKS = 9
_COLOR: dict[EdgeShape, str] = {
    "fact": "#0072b2",
    "fact and synonym": "#6a4c93",
    "synonym": "#b3478a",
    "membership": "#009e73",
    "mention": "#e69f00",
}


def draw_graph(graph: Index | GraphHistograms, path: str | Path, *, title: str = "") -> None:
    """Write a PNG of `graph`'s degrees and edge weights, 1200 × 800 pixels, to `path`.

    Above, phrases and passages by their number of edges; below, edges by weight, a panel for each kind.
    Counts are on a logarithmic axis. Raises `InputError` for a graph without edges, `ConfigError` without
    matplotlib.
    """
    shape = graph_histograms(graph) if isinstance(graph, Index) else graph
    if not shape.weights:
        raise InputError("the graph has no edges, so there is nothing to draw; add passages that state facts")
    chart = Chart(_WIDTH, _HEIGHT)
    top = chart.title(MARGIN, 24.0, title, _WIDTH - 2 * MARGIN, max_lines=1) + 40.0
    height = (_HEIGHT - top - _BETWEEN - _BOTTOM) / 2
    _draw_degrees(chart, shape, top, height)
    _draw_weights(chart, shape, top + height + _BETWEEN, height)
    chart.save(path)


def _draw_degrees(chart: Chart, shape: GraphHistograms, top: float, height: float) -> None:
    width = (_WIDTH - _LEFT - _GAP - MARGIN) / 2
    for number, (name, color, degrees, lone) in enumerate(
        (
            ("phrases", _PHRASE, shape.phrase_degrees, shape.lone_phrases),
            ("passages", _PASSAGE, shape.passage_degrees, shape.lone_passages),
        )
    ):
        left = _LEFT + number * (width + _GAP)
        axes = chart.panel(left, top, width, height)
        without = f"; {lone:,} without edges" if lone else ""
        chart.text(left, top - 30, f"{degrees.total + lone:,} {name}{without}", FONT, color=INK)
        _draw_bars(axes, degrees, color)
        if degrees.counts:
            axes.set_xscale("log", base=2)
            shown = degrees.edges[:: -(-len(degrees.edges) // _MAX_TICKS)]
            axes.set_xticks(shown, [_short(int(edge)) for edge in shown])
            axes.set_xticks([], minor=True)
        _name_axes(axes, chart, "edges of a node", name)


def _draw_weights(chart: Chart, shape: GraphHistograms, top: float, height: float) -> None:
    width = (_WIDTH - _LEFT - MARGIN - _GAP * (len(shape.weights) - 1)) / len(shape.weights)
    for number, (kind, weights) in enumerate(shape.weights.items()):
        left = _LEFT + number * (width + _GAP)
        axes = chart.panel(left, top, width, height)
        chart.text(left, top - 48, kind, FONT, color=INK)
        chart.text(left, top - 28, f"{weights.total:,} edge" + "s" * (weights.total > 1))
        _draw_bars(axes, weights, _COLOR[kind])
        _set_weight_ticks(axes, weights)
        _name_axes(axes, chart, "weight", "edges" if number == 0 else "")


def _draw_bars(axes: "Axes", histogram: Histogram, color: str) -> None:
    edges = histogram.edges
    if len(set(edges)) == 1:
        # One weight alone: a bar of a tenth of it stands for a bin without width.
        edges = (edges[0] * 0.95, edges[0] * 1.05)
        axes.set_xlim(edges[0] * 0.6, edges[1] * 1.4)
    widths = [high - low for low, high in pairwise(edges)]
    axes.bar(
        edges[:-1], histogram.counts, widths, align="edge", color=color, edgecolor="white", linewidth=0.8
    )
    most = max(histogram.counts, default=1)
    axes.set_yscale("log")
    # A bin of one must be seen.
    axes.set_ylim(0.5, most * 2)
    steps = (1, 2, 5) if most < 200 else (1,)
    ticks = [step * 10**power for power in range(len(str(most)) + 1) for step in steps]
    ticks = [tick for tick in ticks if tick <= 2 * most]
    axes.set_yticks(ticks, [_short(tick) for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.grid(axis="y", color=RULE, linewidth=0.8)


def _set_weight_ticks(axes: "Axes", weights: Histogram) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    least, most = weights.edges[0], weights.edges[-1]
    if least == most:
        axes.set_xticks([least])
    elif weights.edges[1] - least < 0.9 * (most - weights.edges[-2]):
        # Its bins widen by a factor.
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=3 if most > 1000 * least else 5))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda weight, _: f"{weight:.3g}")


def _short(count: int) -> str:
    """As few characters as tell one tick from the next."""
    if count < 10_000:
        return f"{count:,}"
    for unit, name in ((10**9, "bn"), (10**6, "M")):
        if count >= unit:
            return f"{count / unit:.3g}{name}"
    return f"{count / 1000:.3g}k"


def _name_axes(axes: "Axes", chart: Chart, across: str, up: str) -> None:
    axes.set_xlabel(across, fontsize=points(SMALL), color=FAINT, family=chart.fonts)
    axes.set_ylabel(up, fontsize=points(SMALL), color=FAINT, family=chart.fonts)
