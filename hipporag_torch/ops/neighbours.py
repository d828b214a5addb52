"""From facts to those about the same thing."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged


@dataclass(frozen=True, eq=False)
class FactNeighbours:
    """How to get from a fact to those that share a phrase with it, or a synonym of one."""

    ends: Ragged
    alike: Ragged
    facts: Ragged

    @staticmethod
    def of(ends: Ragged, synonyms: Pairs, *, num_phrases: int) -> "FactNeighbours":
        """ends: fact → phrases; alike: phrase → itself and its synonyms; facts: phrase → facts."""
        own = torch.arange(num_phrases, device=ends.values.device)
        first, second = synonyms.first_idx.to(own.device), synonyms.second_idx.to(own.device)
        return FactNeighbours(
            ends,
            _by_row(torch.cat([own, first, second]), torch.cat([own, second, first]), num_phrases),
            _by_row(ends.values, ends.row, num_phrases),
        )

    def near(
        self, fact_idx: Int64[Tensor, " facts"]
    ) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
        """Each fact's neighbours, itself among them: places in `fact_idx`, ascending, and rows of facts."""
        ends = self.ends.select(fact_idx)
        place, phrase_idx = _followed(ends.row, ends.values, self.alike)
        return _followed(place, phrase_idx, self.facts)


def _by_row(row: Int64[Tensor, " entries"], values: Int64[Tensor, " entries"], num_rows: int) -> Ragged:
    order = torch.argsort(row, stable=True)
    return Ragged.grouped(row[order], values[order], num_rows=num_rows)


def _followed(
    place: Int64[Tensor, " entries"], values: Int64[Tensor, " entries"], table: Ragged
) -> tuple[Int64[Tensor, " found"], Int64[Tensor, " found"]]:
    """The distinct (place, value in the row of `table` that an entry names), ascending."""
    rows = table.select(values)
    width = 1 + int(table.values.max()) if len(table.values) else 1
    key = torch.unique(place[rows.row] * width + rows.values)
    return key // width, key % width
