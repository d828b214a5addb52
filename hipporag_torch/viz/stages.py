"""Where a run's time went: seconds by stage."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipporag_torch.errors import InputError
from hipporag_torch.viz.charts import (
    COLORS,
    FAINT,
    INK,
    RULE,
    TITLE,
    Chart,
    fitted,
    points,
    require_seconds,
    widest,
)
from hipporag_torch.viz.shapes import FONT, MARGIN, SMALL
from hipporag_torch.viz.text import text_width, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Seconds = Mapping[str, float]
_WIDTH = 1200.0
# Room for the names of the stages and for what stands behind the longest bar.
_NAMES, _FIGURES = 300.0, 170.0
_GROUP_GAP, _AXIS = 14.0, 64.0
# Bars of one colour family would look alike in print.
_HATCHES = ("", "///", "...", "\\\\\\", "xx", "--")


def draw_stages(seconds: Seconds | Mapping[str, Seconds], path: str | Path, *, title: str = "") -> None:
    """Write a PNG of `seconds` by stage to `path`: of one run, or of several as {run: its seconds}.

    A bar is labelled with its seconds and its share of the run's sum. Stages stand in the order given, the
    bars of several runs together. 1200 pixels wide, as high as it needs. Raises `InputError` without a stage
    or for seconds that are negative or not finite, `ConfigError` without matplotlib.
    """
    runs = runs_of(seconds)
    stages = stages_of(runs)
    thick = 24.0 if len(runs) == 1 else 17.0
    group = thick * len(runs) + _GROUP_GAP
    heading = wrap(title, (_WIDTH - 2 * MARGIN) / 1.1, TITLE, max_lines=2)
    signs = _sign_places(list(runs)) if len(runs) > 1 else []
    top = 28.0 + (TITLE + 7) * len(heading) + (signs[-1][1] + 32.0 if signs else 0.0)
    chart = Chart(_WIDTH, top + group * len(stages) + _AXIS)
    below = chart.title(MARGIN, 20.0, title, _WIDTH - 2 * MARGIN)
    for number, (x, y, name) in enumerate(signs):
        _draw_sign(chart, x, below + y + 12, name, number)
    names = [fitted(stage, _NAMES, FONT) or "unnamed" for stage in stages]
    left = MARGIN + widest(names, FONT) + 12
    axes = chart.panel(left, top, _WIDTH - left - _FIGURES, group * len(stages))
    _set_axes(axes, chart, max(max(run.values(), default=0.0) for run in runs.values()), group * len(stages))
    for row, name in enumerate(names):
        y = top + (row + 0.5) * group
        chart.text(left - 10, y, name, FONT, color=INK, align="right", vertical="center")
    for number, run in enumerate(runs.values()):
        for row, stage in enumerate(stages):
            y = row * group + _GROUP_GAP / 2 + (number + 0.5) * thick
            _draw_bar(axes, chart, run, stage, y, thick - 3, number)
    chart.save(path)


def runs_of(seconds: Seconds | Mapping[str, Seconds]) -> dict[str, dict[str, float]]:
    """{run: {stage: seconds}}; one run's goes by "". Raises `InputError` for what cannot be drawn."""
    single: dict[str, float] = {}
    runs: dict[str, dict[str, float]] = {}
    for name, value in seconds.items():
        if isinstance(value, Mapping):
            runs[name] = dict(value)
        else:
            single[name] = value
    if single and runs:
        raise InputError(
            f"{next(iter(single))!r} has seconds and {next(iter(runs))!r} has stages; "
            "expected either seconds by stage or, for several runs, stages by run"
        )
    runs = runs or {"": single}
    if not any(runs.values()):
        raise InputError("there is no stage to draw; give at least one with its seconds")
    for name, run in runs.items():
        for stage, value in run.items():
            require_seconds(f"the stage {stage!r}" + (f" of {name!r}" if name else ""), value)
    return runs


def stages_of(runs: Mapping[str, Seconds]) -> list[str]:
    """The stages in the order given; one that the runs before lack stands behind the one it follows."""
    stages: list[str] = []
    for run in runs.values():
        place = 0
        for stage in run:
            if stage not in stages:
                stages.insert(place, stage)
            place = stages.index(stage) + 1
    return stages


def label_of(run: Seconds, stage: str) -> str:
    """`1.25 s  40%`, the share of the run's sum; a stage that the run lacks has a dash."""
    if stage not in run:
        return "–"
    total = sum(run.values())
    if not total:
        return _duration(run[stage])
    share = 100 * run[stage] / total
    return f"{_duration(run[stage])}  {'<1' if 0 < share < 0.5 else f'{share:.0f}'}%"


def _duration(seconds: float) -> str:
    """With the three digits that say something."""
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.3g} ms"


def _set_axes(axes: "Axes", chart: Chart, most: float, height: float) -> None:
    axes.set_ylim(height, 0)
    axes.set_xlim(0, most or 1.0)
    axes.set_yticks([])
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_xlabel("seconds", fontsize=points(SMALL), color=FAINT, family=chart.fonts)


def _sign_places(names: Sequence[str]) -> list[tuple[float, float, str]]:
    """Where the legend's entries stand, in lines: left, top, what is written."""
    places: list[tuple[float, float, str]] = []
    x, y = MARGIN, 0.0
    for name in names:
        written = fitted(name, _NAMES) or "unnamed"
        needed = 38 + text_width(written, SMALL) + 26
        if x > MARGIN and x + needed > _WIDTH - MARGIN:
            x, y = MARGIN, y + 22.0
        places.append((x, y, written))
        x += needed
    return places


def _draw_sign(chart: Chart, x: float, y: float, name: str, number: int) -> None:
    from matplotlib.patches import Rectangle

    chart.page.add_patch(Rectangle((x, y - 7), 30, 14, **_fill(number)))
    chart.text(x + 38, y, name, color=INK, vertical="center")


def _fill(number: int) -> dict[str, Any]:
    return {
        "facecolor": COLORS[number % len(COLORS)],
        "hatch": _HATCHES[number % len(_HATCHES)],
        "edgecolor": "white",
        "linewidth": 0,
    }


def _draw_bar(
    axes: "Axes", chart: Chart, run: Seconds, stage: str, y: float, thick: float, number: int
) -> None:
    axes.barh(y, run.get(stage, 0.0), height=thick, **_fill(number))
    axes.annotate(
        label_of(run, stage),
        (run.get(stage, 0.0), y),
        xytext=(points(8), 0),
        textcoords="offset points",
        fontsize=points(SMALL),
        color=INK,
        family=chart.fonts,
        va="center",
        annotation_clip=False,
        # The grid would cross the letters.
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
