"""Rows of different lengths: the tokens of texts, the ends of facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row i holds `values[row_ptr[i]:row_ptr[i+1]]`."""

    row_ptr: Int64[Tensor, " rows_plus_1"]
    values: Int64[Tensor, " entries"]

    @staticmethod
    def of(rows: Sequence[Sequence[int]]) -> "Ragged":
        """The same rows as one record, on the CPU."""
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
        values = torch.tensor([value for row in rows for value in row], dtype=torch.int64)
        return Ragged(_pointers(lengths), values)

    @staticmethod
    def grouped(
        row: Int64[Tensor, " entries"], values: Int64[Tensor, " entries"], *, num_rows: int
    ) -> "Ragged":
        """The rows of entries that come sorted by row."""
        return Ragged(_pointers(torch.bincount(row, minlength=num_rows)), values)

    @property
    def num_rows(self) -> int:
        return self.row_ptr.numel() - 1

    @cached_property
    def lengths(self) -> Int64[Tensor, " rows"]:
        return self.row_ptr.diff()

    @cached_property
    def row(self) -> Int64[Tensor, " entries"]:
        """The row of each entry."""
        rows = torch.arange(self.num_rows, device=self.row_ptr.device)
        return torch.repeat_interleave(rows, self.lengths, output_size=self.values.numel())

    def joined(self, other: "Ragged") -> "Ragged":
        """The rows of both, these first."""
        row_ptr = torch.cat([self.row_ptr, self.row_ptr[-1] + other.row_ptr[1:]])
        return Ragged(row_ptr, torch.cat([self.values, other.values]))

    def select(self, rows: Int64[Tensor, " selected"]) -> "Ragged":
        """These rows, in this order; a row may be asked for twice."""
        lengths = self.lengths[rows]
        row_ptr = _pointers(lengths)
        total = int(row_ptr[-1])
        # Where row i goes minus where it stood is what each of its entries moves by.
        shift = torch.repeat_interleave(self.row_ptr[rows] - row_ptr[:-1], lengths, output_size=total)
        return Ragged(row_ptr, self.values[torch.arange(total, device=rows.device) + shift])

    def padded(
        self, rows: Int64[Tensor, "*shape"]
    ) -> tuple[Int64[Tensor, "*shape width"], Bool[Tensor, "*shape width"]]:
        """The rows side by side, and which places hold a value; the others hold 0.

        `width` is the length of the longest row asked for.
        """
        lengths = self.lengths[rows].unsqueeze(-1)
        width = int(lengths.max()) if lengths.numel() else 0
        place = torch.arange(width, device=rows.device)
        held = place < lengths
        if not width:
            return self.values.new_zeros(held.shape), held
        at = torch.where(held, self.row_ptr[rows].unsqueeze(-1) + place, 0)
        return torch.where(held, self.values[at], 0), held

    def to(self, device: torch.device | str) -> "Ragged":
        return Ragged(self.row_ptr.to(device), self.values.to(device))


def _pointers(lengths: Int64[Tensor, " rows"]) -> Int64[Tensor, " rows_plus_1"]:
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
