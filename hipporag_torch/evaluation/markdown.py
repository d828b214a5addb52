"""Runs as a table in GitHub's Markdown."""

import re
from collections.abc import Sequence
from math import ceil, floor

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.compare import Comparison, MeanInterval, RunTable

USUAL_COLUMNS = (*(f"recall@{k}" for k in (1, 2, 5, 10, 20)), "all_recall@5", "em", "f1")
# 0.29 * 100 is a little less than 29.
_NOISE = 1e-9


def table_columns(table: RunTable, columns: Sequence[str] | None) -> tuple[str, ...]:
    """`columns`, or those of `USUAL_COLUMNS` that a run has if None.

    Raises `InputError` for a metric that no run has.
    """
    known = list(dict.fromkeys(metric for name in table.names for metric in table.metrics_of(name)))
    if columns is None:
        return tuple(metric for metric in USUAL_COLUMNS if metric in known)
    if unknown := [metric for metric in columns if metric not in known]:
        raise InputError(
            f"no run has the metric {unknown[0]!r}; known metrics are {', '.join(known) or 'none'}"
        )
    return tuple(columns)


def markdown_table(table: RunTable, columns: Sequence[str], show: str) -> str:
    """Each run's means of `columns` with their intervals, and paired difference to the first by `show`."""
    first, *others = table.names
    compared = {name: table.compare(first, name, show) for name in others}
    head = ["run", *map(short_metric, columns)]
    if others:
        head += [f"Δ {short_metric(show)}", "won", "lost"]
    lines = [_line(head), _line([":---", *["---:"] * (len(head) - 1)])]
    for name in table.names:
        cells = [mean_cell(table.mean(name, metric)) for metric in columns]
        if others:
            cells += difference_cells(compared.get(name))
        lines.append(_line([_plain(name), *cells]))
    notes = [
        f"Means over {_questions(table, columns)}, with the bootstrap's {100 * table.confidence:.4g} % "
        f"interval ({table.resamples} resamples of the questions, seed {table.seed})."
    ]
    if others:
        notes.append(f"Δ, won and lost: against {_plain(first)}, question by question.")
    return "\n".join([*lines, "", " ".join(notes), ""])


def short_metric(metric: str) -> str:
    """`R@5` and `all@5`, also behind `title/`."""
    level, slash, name = metric.rpartition("/")
    name = name.replace("all_recall@", "all@").replace("recall@", "R@")
    return f"{level}{slash}{name}"


def mean_cell(mean: MeanInterval | None) -> str:
    """`.765 [.70, .83]`; a dash where the run has no such metric."""
    if mean is None:
        return "–"
    return f"{bare(mean.mean, 3)} [{', '.join(outward(mean))}]"


def difference_cells(comparison: Comparison | None) -> list[str]:
    """`+.031 [+.012, +.050]`, won, lost; dashes for the run that the others are compared with."""
    if comparison is None:
        return ["–"] * 3
    low, high = bare(comparison.low, 3, signed=True), bare(comparison.high, 3, signed=True)
    difference = f"{bare(comparison.difference, 3, signed=True)} [{low}, {high}]"
    return [difference, str(len(comparison.won)), str(len(comparison.lost))]


def outward(mean: MeanInterval) -> tuple[str, str]:
    """`.70` and `.83`: bounds in two digits, rounded away from the mean, which so lies between them."""
    return bare(floor(mean.low * 100 + _NOISE) / 100, 2), bare(ceil(mean.high * 100 - _NOISE) / 100, 2)


def bare(value: float, digits: int, *, signed: bool = False) -> str:
    """Without the zero in front of the point: `.765`, `+.031`, `1.000`."""
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def _questions(table: RunTable, columns: Sequence[str]) -> str:
    """`1000 questions`; `980 to 1000 questions` where metrics are defined for more or fewer."""
    means = [table.mean(name, metric) for name in table.names for metric in columns]
    counts = [mean.questions for mean in means if mean]
    ends = sorted({min(counts, default=0), max(counts, default=0)})
    return f"{' to '.join(map(str, ends))} questions"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(name: str) -> str:
    """As Markdown shows it literally, in one line."""
    return re.sub(r"([\\|*_`<\[])", r"\\\1", " ".join(name.split()))
