"""Recall over k of several runs, with the uncertainty of their questions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.curves import Curve
from hipporag_torch.viz.charts import (
    COLORS,
    DASHES,
    FAINT,
    LABEL_GAP,
    MARKERS,
    RULE,
    Chart,
    fitted,
    points,
    require_share,
    spread,
    widest,
)
from hipporag_torch.viz.shapes import FONT, MARGIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More labels than this beside their lines would take a reader longer than a legend in order.
MAX_DIRECT = 6
_WIDTH, _HEIGHT = 1200.0, 720.0
_LABELS, _LEFT, _BOTTOM, _SIGN = 340.0, 96.0, 76.0, 46.0
_MAX_TICKS = 20


def draw_curves(
    curves: Sequence[Curve], path: str | Path, *, title: str = "", metric: str = "recall"
) -> None:
    """Write a PNG of `metric`@k over k, a line and its band for each of `curves`, to `path`.

    The ks stand evenly apart, whatever they are. Up to `MAX_DIRECT` curves are named where they end, more
    in a legend, the best at its top. The picture is 1200 pixels wide, and 720 high unless a legend needs
    more. Raises `InputError` without curves or where one makes no sense, `ConfigError` without matplotlib.
    """
    _check(curves)
    direct = len(curves) <= MAX_DIRECT
    labels = [fitted(curve.name, _LABELS - _SIGN) or "unnamed" for curve in curves]
    room = widest(labels) + _SIGN + MARGIN
    height = _HEIGHT if direct else max(_HEIGHT, 190.0 + (LABEL_GAP + 3) * len(curves))
    chart = Chart(_WIDTH, height)
    top = chart.title(MARGIN, 24.0, title, _WIDTH - 2 * MARGIN) + 28.0
    width, tall = _WIDTH - _LEFT - room, height - top - _BOTTOM
    ks = sorted({k for curve in curves for k in curve.ks})
    axes = chart.panel(_LEFT, top, width, tall)
    _set_axes(axes, curves, ks, metric, chart.fonts)
    place = {k: number for number, k in enumerate(ks)}
    for number, curve in enumerate(curves):
        _draw_line(axes, curve, place, number, band=0.16 if direct else 0.07)
    low, high = axes.get_ylim()
    ends = [top + tall * (high - curve.means[-1]) / (high - low) for curve in curves]
    if direct:
        starts = [_LEFT + width * _across(axes, place[curve.ks[-1]]) for curve in curves]
        _label_ends(chart, labels, starts, ends, _LEFT + width, (top, top + tall))
    else:
        _draw_legend(chart, labels, ends, _LEFT + width + 18, top)
    chart.save(path)


def _check(curves: Sequence[Curve]) -> None:
    if not curves:
        raise InputError("there are no curves to draw; give at least one run that has recall at some k")
    for curve in curves:
        lengths = {len(curve.ks), len(curve.means), len(curve.low), len(curve.high)}
        if lengths != {len(curve.ks)} or not curve.ks:
            raise InputError(
                f"the curve {curve.name!r} has {len(curve.ks)} ks, {len(curve.means)} means and bands of "
                f"{len(curve.low)} and {len(curve.high)}; expected as many of each, at least one"
            )
        if list(curve.ks) != sorted(set(curve.ks)):
            raise InputError(f"the ks of the curve {curve.name!r} must rise, got {curve.ks}")
        for value in (*curve.means, *curve.low, *curve.high):
            require_share(f"the curve {curve.name!r}", value)


def _set_axes(
    axes: "Axes", curves: Sequence[Curve], ks: Sequence[int], metric: str, fonts: list[str]
) -> None:
    """Limits around the bands, and every k a tick while there is room."""
    least = min(min(curve.low) for curve in curves)
    most = max(max(curve.high) for curve in curves)
    margin = max(0.02, (most - least) * 0.06)
    axes.set_ylim(max(0.0, least - margin), min(1.0, most + margin))
    axes.set_xlim(-0.25, len(ks) - 0.75)
    every = -(-len(ks) // _MAX_TICKS)
    axes.set_xticks(range(0, len(ks), every), [str(k) for k in ks[::every]])
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_xlabel("k", fontsize=points(FONT), color=FAINT, family=fonts)
    axes.set_ylabel(f"{metric}@k", fontsize=points(FONT), color=FAINT, family=fonts, parse_math=False)


def _draw_line(axes: "Axes", curve: Curve, place: dict[int, int], number: int, *, band: float) -> None:
    x = [place[k] for k in curve.ks]
    color = COLORS[number % len(COLORS)]
    if len(x) == 1:
        # A band without width would not be seen.
        axes.vlines(x, curve.low, curve.high, color=color, linewidth=2.2)
    axes.fill_between(x, curve.low, curve.high, color=color, alpha=band, linewidth=0)
    axes.plot(x, curve.means, markersize=5.5, **_style(number))


def _style(number: int) -> dict[str, Any]:
    """Colour, dashes and marker together are different for each of a few hundred curves."""
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
        "linewidth": 1.8,
    }


def _across(axes: "Axes", x: float) -> float:
    left, right = axes.get_xlim()
    return (x - left) / (right - left)


def _label_ends(
    chart: Chart,
    labels: Sequence[str],
    starts: Sequence[float],
    ends: Sequence[float],
    right: float,
    bounds: tuple[float, float],
) -> None:
    """Names in their lines' colours beside where these end; a thin line leads to each."""
    for number, y in enumerate(spread(ends, LABEL_GAP, *bounds)):
        color = COLORS[number % len(COLORS)]
        x = [starts[number] + 6, max(right, starts[number] + 6), right + 24]
        chart.page.plot(x, [ends[number], ends[number], y], color=color, linewidth=0.7, alpha=0.7)
        chart.text(right + 28, y, labels[number], color=color, weight="bold", vertical="center")


def _draw_legend(chart: Chart, labels: Sequence[str], ends: Sequence[float], x: float, y: float) -> None:
    """In the order in which the lines end, the best first."""
    for number in sorted(range(len(labels)), key=lambda i: ends[i]):
        chart.page.plot([x, x + 17, x + 34], [y] * 3, markevery=[1], markersize=5.5, **_style(number))
        chart.text(x + 42, y, labels[number], vertical="center", color="#111111")
        y += LABEL_GAP + 3
