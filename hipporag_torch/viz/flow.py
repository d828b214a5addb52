"""How a question's mass flows from its seeds to the passages, step by step of the walk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float32, Float64
from torch import Tensor

from hipporag_torch.errors import InputError
from hipporag_torch.explanation import passage_title
from hipporag_torch.graph import Graph
from hipporag_torch.index import Index
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.types import Ranking, Trace
from hipporag_torch.viz.charts import (
    COLORS,
    DASHES,
    FAINT,
    INK,
    LABEL_GAP,
    MARKERS,
    RULE,
    Chart,
    fitted,
    points,
    spread,
)
from hipporag_torch.viz.shapes import FONT, MARGIN, SMALL
from hipporag_torch.viz.text import percent, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 1600.0, 820.0
_GAP, _LABELS, _SHARE, _BARS, _BOTTOM = 64.0, 290.0, 76.0, 280.0, 130.0
_MAX_LINES = len(COLORS)
# The least mass that is shown, as a share of the greatest.
_LEAST = 1e-4
# Where the mass may lie, from the bottom of a bar to its top.
_GROUPS = (
    ("returned passages", "#009e73", ""),
    ("other passages", "#a3dcc8", "///"),
    ("seed phrases", "#00598c", ""),
    ("other phrases", "#f6d58f", "..."),
)


@dataclass(frozen=True)
class NodeFlow:
    """A node's mass after 0, 1, 2, … steps, and in the end."""

    label: str
    masses: tuple[float, ...]
    limit: float


@dataclass(frozen=True)
class MassFlow:
    """Where one question's mass lies after 0, 1, 2, … steps of its walk; it sums to 1 after each.

    phrases: those that hold most in the end, by descending mass. passages: the first that were returned, by
        rank. returned_passages, other_passages, seed_phrases, other_phrases: all of the mass in four parts.
    coverage: the share of the reset that the trace names, in (0, 1]; the walk starts from that alone.
    """

    question: str
    damping: float
    coverage: float
    phrases: tuple[NodeFlow, ...]
    passages: tuple[NodeFlow, ...]
    returned_passages: NodeFlow
    other_passages: NodeFlow
    seed_phrases: NodeFlow
    other_phrases: NodeFlow


def mass_flow(
    index: Index, ranking: Ranking, *, ppr: PPROptions | None = None, steps: int = 6, show: int = 6
) -> MassFlow:
    """How the mass of `ranking`, which `index` gave with `trace=True`, flows in the first `steps` steps.

    `ppr` must be what the ranking was made with. At most `show` phrases and passages are listed. Of a
    question that was retrieved for in several steps, the walk is the first one's. Raises `InputError` where
    nothing walked, without a trace, for another index, and for `steps` or `show` below 1.
    """
    for name, value in (("steps", steps), ("show", show)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}")
    if unknown := [id_ for id_ in ranking.passage_ids if id_ not in index.passage_row]:
        raise InputError(f"the index has no passage {unknown[0]}: the ranking is of another index")
    ppr = ppr or PPROptions()
    graph = index.graph
    reset, coverage = traced_reset(index, _trace_of(ranking))
    limit = personalized_pagerank(graph.walk, reset.unsqueeze(0), ppr)[0]
    mass = torch.cat(
        [walk_masses(graph, reset, damping=ppr.damping, steps=steps), limit.double()[None]]
    ).cpu()

    def flow(label: str, rows: int | Bool[Tensor, " nodes"]) -> NodeFlow:
        held = mass[:, rows] if isinstance(rows, int) else mass[:, rows].sum(1)
        *after, end = held.tolist()
        return NodeFlow(label, tuple(after), end)

    returned = [graph.num_phrases + index.passage_row[id_] for id_ in ranking.passage_ids]
    is_phrase = torch.arange(graph.num_nodes) < graph.num_phrases
    is_returned = torch.zeros(graph.num_nodes, dtype=torch.bool)
    is_returned[returned] = True
    is_seed = (reset > 0).cpu()
    strongest = torch.argsort(mass[-1, : graph.num_phrases], descending=True, stable=True)[:show].tolist()
    return MassFlow(
        ranking.question,
        ppr.damping,
        coverage,
        tuple(flow(index.phrases[row], row) for row in strongest if mass[-1, row] > 0),
        tuple(
            flow(f"{rank}. {passage_title(passage)}", row)
            for rank, (passage, row) in enumerate(zip(ranking.passages, returned, strict=True), start=1)
            if rank <= show
        ),
        flow("returned passages", is_returned),
        flow("other passages", ~is_phrase & ~is_returned),
        flow("seed phrases", is_phrase & is_seed),
        flow("other phrases", is_phrase & ~is_seed),
    )


def traced_reset(index: Index, trace: Trace) -> tuple[Float32[Tensor, " nodes"], float]:
    """The reset that the seeds of `trace` make, scaled to sum 1, and the share of the whole that they are.

    A trace names every phrase that seeds, but only the strongest passages. Raises `InputError` for seeds
    that `index` lacks, or none at all.
    """
    phrase_row = {phrase: row for row, phrase in enumerate(index.phrases)}
    reset = torch.zeros(index.graph.num_nodes, dtype=torch.float64)
    for seed in trace.seeds:
        row = (phrase_row if seed.kind == "phrase" else index.passage_row).get(seed.name)
        if row is None:
            raise InputError(f"the index has no {seed.kind} {seed.name!r}: the ranking is of another index")
        reset[row if seed.kind == "phrase" else index.graph.num_phrases + row] += seed.weight
    coverage = float(reset.sum())
    if not coverage > 0:
        raise InputError("the trace has no seeds, so nothing flows; expected that of a walk over the graph")
    return (reset / coverage).float().to(index.graph.degree.device), min(1.0, coverage)


def walk_masses(
    graph: Graph, reset: Float32[Tensor, " nodes"], *, damping: float, steps: int
) -> Float64[Tensor, "steps_plus_1 nodes"]:
    """The mass x_t of every node after t = 0, 1, …, `steps` steps: x_0 = r, x_t+1 = (1−d)·r + d·P·x_t.

    `reset` r is not negative and sums to 1. What lies on a node without edges goes back to r, so each row
    sums to 1, and the limit is what `personalized_pagerank` gives.
    """
    adjacency = graph.adjacency
    restart, degree = reset.double(), graph.degree.double()
    share = adjacency.weight.double() / degree[adjacency.col.long()]
    mass = [restart]
    for _ in range(steps):
        moved = torch.zeros_like(restart)
        moved.index_add_(0, adjacency.row, share * mass[-1][adjacency.col.long()])
        moved += restart * mass[-1][degree == 0].sum()
        mass.append((1 - damping) * restart + damping * moved)
    return torch.stack(mass)


def _trace_of(ranking: Ranking) -> Trace:
    if ranking.trace is None:
        raise InputError("the ranking has no trace; retrieve it with trace=True")
    if not ranking.trace.seeds:
        raise InputError(f"nothing flows on the route {ranking.route!r}; expected a ranking by a walk")
    return ranking.trace


def draw_flow(flow: MassFlow, path: str | Path) -> None:
    """Write a PNG of `flow`, 1600 × 820 pixels, to `path`.

    Left, where all of the mass lies after each step; then the phrases and the passages, a line for each. At
    most seven of each are drawn. Raises `ConfigError` where matplotlib is not installed.
    """
    chart = Chart(_WIDTH, _HEIGHT)
    y = chart.title(MARGIN, 20.0, flow.question, _WIDTH - 2 * MARGIN)
    chart.text(MARGIN, y + 2, fitted(_about(flow), _WIDTH - 2 * MARGIN, FONT), FONT)
    top = y + 72.0
    height = _HEIGHT - top - _BOTTOM
    width = (_WIDTH - 2 * MARGIN - 30 - _BARS - 2 * _GAP - 2 * _LABELS) / 2
    left = MARGIN + 30
    chart.text(left, top - 34, "all of the mass", FONT, color=INK)
    _draw_bars(chart, chart.panel(left, top, _BARS, height), flow)
    _draw_legend(chart, left, _HEIGHT - _BOTTOM + 62)
    for title, nodes in (("phrases", flow.phrases), ("passages returned", flow.passages)):
        left += _GAP + (_BARS if title == "phrases" else width + _LABELS)
        chart.text(left, top - 34, title, FONT, color=INK)
        _draw_lines(chart, nodes[:_MAX_LINES], (left, top, width, height))
    chart.save(path)


def _about(flow: MassFlow) -> str:
    said = f"Where the mass lies after each step of the walk; damping {flow.damping:g}"
    if flow.coverage < 0.9995:
        said += f"; of the seeds only those that the trace names, {flow.coverage:.1%} of their weight"
    return said


def _set_axes(axes: "Axes", chart: Chart, ticks: int) -> None:
    """Steps, then the limit, under the axis; shares in percent beside it."""
    axes.set_xticks(range(ticks), [*map(str, range(ticks - 1)), "end"])
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    axes.set_xlabel("steps", fontsize=points(SMALL), color=FAINT, family=chart.fonts)
    axes.grid(axis="y", color=RULE, linewidth=0.8)


def _draw_bars(chart: Chart, axes: "Axes", flow: MassFlow) -> None:
    parts = (flow.returned_passages, flow.other_passages, flow.seed_phrases, flow.other_phrases)
    ticks = len(parts[0].masses) + 1
    below = [0.0] * ticks
    for part, (_, color, hatch) in zip(parts, _GROUPS, strict=True):
        held = [*part.masses, part.limit]
        axes.bar(range(ticks), held, 0.76, below, color=color, hatch=hatch, edgecolor="white", linewidth=0)
        below = [a + b for a, b in zip(below, held, strict=True)]
    _set_axes(axes, chart, ticks)
    axes.set_ylim(0, 1)


def _draw_legend(chart: Chart, left: float, top: float) -> None:
    """Two by two, in the order of the bars' parts."""
    from matplotlib.patches import Rectangle

    for number, (name, color, hatch) in enumerate(_GROUPS):
        x, y = left + 160 * (number // 2), top + 22 * (1 - number % 2)
        chart.page.add_patch(
            Rectangle((x, y - 7), 22, 14, facecolor=color, hatch=hatch, edgecolor="white", linewidth=0)
        )
        chart.text(x + 29, y, name, vertical="center")


def _draw_lines(chart: Chart, nodes: Sequence[NodeFlow], place: tuple[float, float, float, float]) -> None:
    """A line for each of `nodes`, named with its mass in the end where it ends."""
    from matplotlib.ticker import LogLocator

    left, top, width, height = place
    axes = chart.panel(*place)
    if not nodes:
        axes.set_axis_off()
        chart.text(left, top, "none")
        return
    ticks = len(nodes[0].masses) + 1
    held = [mass for node in nodes for mass in (*node.masses, node.limit) if mass > 0] or [1.0]
    # On a logarithmic axis, since the first passage often holds a hundred times what the next does.
    high, low = 1.4 * max(held), max(min(held) / 1.4, max(held) * _LEAST)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.set_xlim(-0.3, ticks - 0.7)
    for number, node in enumerate(nodes):
        axes.plot(
            # What holds nothing yet has no place on the axis.
            [mass or math.nan for mass in (*node.masses, node.limit)],
            color=COLORS[number],
            linestyle=DASHES[number % len(DASHES)],
            marker=MARKERS[number],
            markersize=5,
            linewidth=1.8,
        )
    _set_axes(axes, chart, ticks)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
    axes.set_yticks([], minor=True)
    right = left + width
    scale = math.log(high / low)
    ends = [top + height * math.log(high / max(node.limit, low)) / scale for node in nodes]
    for number, y in enumerate(spread(ends, LABEL_GAP, top, top + height)):
        start = left + width * (ticks - 1 + 0.3) / (ticks - 0.4) + 6
        chart.page.plot(
            [start, right, right + 22], [ends[number], ends[number], y], color=COLORS[number], linewidth=0.7
        )
        label = fitted(nodes[number].label, _LABELS - 26 - _SHARE) or "unnamed"
        chart.text(right + 26, y, label, color=COLORS[number], vertical="center")
        share_x = right + 26 + text_width(label, SMALL) + 8
        chart.text(share_x, y, percent(nodes[number].limit), color=FAINT, vertical="center")
