"""What a run measured beside what was published for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hipporag_torch.errors import ConfigError

Sure = Literal["A", "B", "C"]
"""How sure a figure is: `A`, read at its source; `B`, quoted by another that was read; `C`, neither."""

_METRIC = re.compile(r"(title/)?((all_)?recall@[1-9][0-9]*|mrr)|em|f1")
_KEYS = ("low", "high", "source", "sure")


@dataclass(frozen=True)
class ExpectedRow:
    """One figure: what the run has, and where it should lie, `low` and `high` included.

    got, within: None if the run has no such metric, as f1 without a reader.
    """

    metric: str
    got: float | None
    low: float
    high: float
    within: bool | None
    source: str
    sure: Sure


def compare_expected(metrics: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[ExpectedRow, ...]:
    """A row for each metric of `expected`, in its order.

    metrics: as metrics.json holds them, shares from 0 to 1. expected: metric → {low, high, source, sure}, as
    conf/experiment states it; `check_expected` says what it raises.
    """
    check_expected(expected)
    rows = []
    for metric, entry in expected.items():
        got = None if metrics.get(metric) is None else float(metrics[metric])
        within = None if got is None else entry["low"] <= got <= entry["high"]
        rows.append(ExpectedRow(metric=metric, got=got, within=within, **entry))
    return tuple(rows)


def check_expected(expected: Mapping[str, Any]) -> None:
    """Raise `ConfigError` unless each entry names a metric and states where it lies, whence, and how sure."""
    if not isinstance(expected, Mapping):
        raise ConfigError(f"expected must map metrics to {{low, high, source, sure}}, got {expected!r:.80}")
    for metric, entry in expected.items():
        if not isinstance(metric, str) or not _METRIC.fullmatch(metric):
            raise ConfigError(
                f"expected names {metric!r:.80}, which is no metric; it takes recall@K, all_recall@K, mrr, "
                "these under title/, em and f1"
            )
        _check_entry(entry, f"expected.{metric}")


def _check_entry(entry: Any, name: str) -> None:
    if not isinstance(entry, Mapping) or set(entry) != set(_KEYS):
        raise ConfigError(
            f"{name} must state low, high, source and sure, and nothing else, got {entry!r:.120}"
        )
    for key in ("low", "high"):
        value = entry[key]
        # Written so that NaN is refused too.
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ConfigError(
                f"{name}.{key} must be a share from 0 to 1, got {value!r}; published figures are mostly per "
                "cent: divide them by 100"
            )
    if entry["low"] > entry["high"]:
        raise ConfigError(f"{name} must have low at most high, got {entry['low']} and {entry['high']}")
    if not isinstance(entry["source"], str) or not entry["source"].strip():
        raise ConfigError(
            f"{name}.source must say where the figure was published, got {entry['source']!r:.80}"
        )
    if entry["sure"] not in get_args(Sure):
        raise ConfigError(
            f"{name}.sure must be A (read at its source), B (quoted by another) or C (neither), got "
            f"{entry['sure']!r:.80}"
        )
