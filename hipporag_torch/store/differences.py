"""What differs between two canonical sequences, cheaply where most entries are the very same objects."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Difference:
    """`old_row` holds the old row of each new one, or -1; `gone` are the old rows that have no new one."""

    old_row: Int64[Tensor, " new"]
    gone: Int64[Tensor, " gone"]

    @property
    def fresh(self) -> list[int]:
        """The new rows that are in no old one, ascending."""
        return (self.old_row < 0).nonzero()[:, 0].tolist()


def difference(old: Sequence[object], new: Sequence[object]) -> Difference:
    """Compare two sequences without repetitions.

    An incremental change keeps its objects, so that nearly all rows are matched by identity, which needs
    no hashing of their content.
    """
    old_row = torch.from_numpy(_rows_of_objects(old, new))
    matched = torch.zeros(len(old), dtype=torch.bool)
    matched[old_row[old_row >= 0]] = True
    unmatched = (~matched).nonzero()[:, 0].tolist()
    if unmatched and (old_row < 0).any():
        row_of = {old[row]: row for row in unmatched}
        for row in (old_row < 0).nonzero()[:, 0].tolist():
            old_row[row] = row_of.get(new[row], -1)
        matched[old_row[old_row >= 0]] = True
    return Difference(old_row, (~matched).nonzero()[:, 0])


def _rows_of_objects(old: Sequence[object], new: Sequence[object]) -> np.ndarray:
    """For each entry of `new` the row in `old` of the very same object, or -1."""
    ours = np.fromiter(map(id, old), dtype=np.int64, count=len(old))
    theirs = np.fromiter(map(id, new), dtype=np.int64, count=len(new))
    if not len(ours):
        return np.full(len(theirs), -1, dtype=np.int64)
    order = np.argsort(ours)
    place = np.searchsorted(ours, theirs, sorter=order).clip(max=len(ours) - 1)
    rows = order[place]
    return np.where(ours[rows] == theirs, rows, -1)
