"""A run as tables: columns and rows of plain values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hipporag_torch.evaluation.rows import QuestionRow

Cell = str | float | int | list[str] | list[float] | None

_AT_K = re.compile(r"(?P<kind>.*recall)@(?P<k>\d+)")
_USAGE = ("calls", "prompt_tokens", "completion_tokens", "cached_calls")


@dataclass(frozen=True)
class RunTable:
    """Rows are as long as `columns`; None is an empty cell."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def predictions_table(rows: Sequence[QuestionRow]) -> RunTable:
    """A question per row, in order: what was asked, found and answered, its metrics, and what it cost.

    A metric or a stage that a question lacks is None.
    """
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    stages = list(dict.fromkeys(stage for row in rows for stage in row.seconds))
    columns = ("id", "question", "route", "gold", "ranked", "scores", "answers", "answer", "reason")
    return RunTable(
        (*columns, *metrics, *_USAGE, *(f"seconds/{stage}" for stage in stages)),
        tuple(
            (
                row.id,
                row.question,
                row.route,
                list(row.gold_ids),
                list(row.ranked_ids),
                list(row.scores),
                list(row.answers),
                row.answer,
                row.reason,
                *(row.metrics.get(name) for name in metrics),
                *(getattr(row.usage, name) for name in _USAGE),
                *(row.seconds.get(stage) for stage in stages),
            )
            for row in rows
        ),
    )


def recall_table(metrics: Mapping[str, float]) -> RunTable:
    """k, and each kind of recall at it: recall, all_recall, title/recall, title/all_recall; k rises."""
    found = {
        (match["kind"], int(match["k"])): value
        for name, value in metrics.items()
        if (match := _AT_K.fullmatch(name))
    }
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    ks = sorted({k for _, k in found})
    return RunTable(("k", *kinds), tuple((k, *(found.get((kind, k)) for kind in kinds)) for k in ks))


def seconds_table(seconds: Mapping[str, float]) -> RunTable:
    """A stage per row."""
    return RunTable(("stage", "seconds"), tuple(seconds.items()))


def usage_table(usage: Mapping[str, Mapping[str, int]], money: Mapping[str, float]) -> RunTable:
    """A role per row: its counts, and its money where that is known."""
    counts = list(dict.fromkeys(name for its in usage.values() for name in its))
    return RunTable(
        ("role", *counts, "money"),
        tuple((role, *(its.get(name) for name in counts), money.get(role)) for role, its in usage.items()),
    )


def plain(table: RunTable) -> dict[str, list[Any]]:
    """Column → its cells."""
    return {name: [row[place] for row in table.rows] for place, name in enumerate(table.columns)}
