"""Means of resampled questions: many metrics of many runs under the same draws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hipporag_torch.errors import InputError

# Resampled numbers held at a time: 8 MiB of indices, and as much of counts.
_BLOCK = 2**20
# Divides by the size of most gold sets, so that the shares of recall stand exactly.
_FRACTION = 2520
# Whole numbers of doubles are exact below 2**53; the last bit is left for a difference.
_EXACT = 2**52


@dataclass(frozen=True)
class Resampled:
    """The total of a column of values, and its totals over resamples of its rows.

    Totals count multiples of 1 / `scale`: as whole numbers they do not depend on the order of summation,
    so that neither block size nor threads nor machine change a bit of them.
    totals: (resamples,).
    """

    rows: int
    scale: int
    total: float
    totals: np.ndarray

    def __sub__(self, other: "Resampled") -> "Resampled":
        """The paired difference: both columns hold the same questions in the same order."""
        return Resampled(self.rows, self.scale, self.total - other.total, self.totals - other.totals)

    @property
    def mean(self) -> float:
        return self.total / (self.rows * self.scale)

    @property
    def share_positive(self) -> float:
        """The share of resamples with a mean above 0, in [0, 1]."""
        # Every value is rounded to a multiple: what that can add up to is no difference.
        return float((self.totals > self.rows).mean())

    def bounds(self, confidence: float) -> tuple[float, float]:
        """The percentile interval of the mean."""
        tail = (1 - confidence) / 2
        low, high = np.quantile(self.totals, [tail, 1 - tail]) / (self.rows * self.scale)
        return float(low), float(high)


def require_options(resamples: int, seed: int, confidence: float) -> None:
    """Raise `InputError` unless these can make an interval."""
    if type(resamples) is not int or resamples < 1:
        raise InputError(f"resamples must be at least 1, got {resamples!r:.80}")
    if type(seed) is not int or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r:.80}")
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, such as 0.95, got {confidence!r:.80}")


def resample(columns: Sequence[Sequence[float]], *, resamples: int, seed: int) -> list[Resampled]:
    """Draw the rows of each of `columns` (numbers in [-1, 1], not empty) with replacement, `resamples` times.

    Columns of one length share their draws; each column gets what it would get alone.
    """
    found: dict[int, Resampled] = {}
    for rows in sorted({len(column) for column in columns}):
        numbers = [number for number, column in enumerate(columns) if len(column) == rows]
        scale = _FRACTION
        while rows * scale * 2 <= _EXACT:
            scale *= 2
        values = np.rint(np.array([columns[number] for number in numbers], dtype=np.float64).T * scale)
        totals = _resampled_totals(values, resamples, np.random.default_rng(seed))
        for place, number in enumerate(numbers):
            total = float(values[:, place].sum())
            found[number] = Resampled(rows, scale, total, np.ascontiguousarray(totals[:, place]))
    return [found[number] for number in range(len(columns))]


def _resampled_totals(values: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(resamples, columns): the totals of as many draws from `values` (rows, columns) as it has rows."""
    rows, columns = values.shape
    totals = np.empty((resamples, columns))
    block = max(1, _BLOCK // rows)
    for start in range(0, resamples, block):
        drawn = min(block, resamples - start)
        draws = rng.integers(0, rows, (drawn, rows))
        # How often each row was drawn: one product then sums all columns.
        draws += np.arange(drawn)[:, None] * rows
        counts = np.bincount(draws.ravel(), minlength=drawn * rows).reshape(drawn, rows)
        totals[start : start + drawn] = counts.astype(np.float64) @ values
    return totals
