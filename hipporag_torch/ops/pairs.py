"""Exact search for all pairs of rows that point in nearly the same direction, in bounded memory."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.errors import InputError
from hipporag_torch.types import Progress, no_progress

# float32 products of unit vectors are off by far less than this, whatever the tile's shape.
_ROUNDING = 1e-5
# 1 GB of pairs. More means that the vectors say nothing (all alike) or that the threshold is too low.
_MAX_PAIRS = 50_000_000
# Numbers of either side gathered for a recheck: 32 MB of float64.
_RECHECK_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Unordered pairs of rows, `first_idx` < `second_idx`, sorted by both, with their cosine."""

    first_idx: Int64[Tensor, " pairs"]
    second_idx: Int64[Tensor, " pairs"]
    cosine: Float32[Tensor, " pairs"]

    def __len__(self) -> int:
        return self.cosine.numel()

    @staticmethod
    def none() -> "Pairs":
        empty = torch.empty(0, dtype=torch.int64)
        return Pairs(empty, empty, torch.empty(0))

    def renumbered(self, new_idx: Int64[Tensor, " rows"]) -> "Pairs":
        """The same pairs when row i has become `new_idx[i]`; pairs with a row that became -1 are gone."""
        first, second = new_idx[self.first_idx], new_idx[self.second_idx]
        alive = (first >= 0) & (second >= 0)
        return _sorted_pairs(first[alive], second[alive], self.cosine[alive])

    def merged(self, other: "Pairs") -> "Pairs":
        """Both sets of pairs, which must not overlap."""
        return _sorted_pairs(
            torch.cat([self.first_idx, other.first_idx]),
            torch.cat([self.second_idx, other.second_idx]),
            torch.cat([self.cosine, other.cosine]),
        )


def similar_pairs(
    emb: Float32[Tensor, "rows dim"],
    *,
    threshold: float,
    new: Bool[Tensor, " rows"] | None = None,
    tile: int = 2048,
    progress: Progress = no_progress,
) -> Pairs:
    """All pairs of unit rows whose cosine is at least `threshold`; on the CPU, whatever the device.

    With `new`, only the pairs with at least one new row: merged with the pairs of the old rows alone
    they are the pairs of all rows, exactly. Tiles bound the memory and decide nothing: what a tile
    lets through is measured again in float64, pair by pair.

    Raises `InputError` if there are more than 50 million such pairs.
    """
    num_rows = emb.shape[0]
    is_new = torch.ones(num_rows, dtype=torch.bool, device=emb.device) if new is None else new.to(emb.device)
    new_idx, old_idx = is_new.nonzero()[:, 0], (~is_new).nonzero()[:, 0]
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    num_found = 0
    for start in range(0, len(new_idx), tile):
        rows = new_idx[start : start + tile]
        # Later new rows only: a pair of two new rows is met once.
        others = torch.cat([old_idx, new_idx[start:]])
        block = emb[rows]
        for other_start in range(0, len(others), tile):
            cols = others[other_start : other_start + tile]
            i, j = (block @ emb[cols].T >= threshold - _ROUNDING).nonzero(as_tuple=True)
            first, second = rows[i], cols[j]
            keep = is_new.logical_not()[second] | (first < second)
            part = _recheck(emb, first[keep], second[keep], threshold)
            found.append(part)
            num_found += part[2].numel()
            if num_found > _MAX_PAIRS:
                raise InputError(
                    f"more than {_MAX_PAIRS:,} pairs of {num_rows:,} phrases have a cosine of at least "
                    f"{threshold}; raise graph.synonym_threshold, or check the embedder"
                )
        progress("synonyms", min(start + tile, len(new_idx)), len(new_idx))
    if not found:
        return Pairs.none()
    first, second, cosine = (torch.cat(parts).cpu() for parts in zip(*found, strict=True))
    return _sorted_pairs(first, second, cosine)


def _recheck(emb: Tensor, first: Tensor, second: Tensor, threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs whose cosine, summed in float64 pair by pair, reaches the threshold."""
    cosine = torch.empty(len(first), dtype=torch.float32, device=emb.device)
    step = max(1, _RECHECK_NUMBERS // max(1, emb.shape[1]))
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        cosine[part] = (emb[first[part]].double() * emb[second[part]].double()).sum(1).float()
    keep = cosine >= threshold
    return first[keep], second[keep], cosine[keep]


def _sorted_pairs(first: Tensor, second: Tensor, cosine: Tensor) -> Pairs:
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    order = torch.argsort(high, stable=True)
    order = order[torch.argsort(low[order], stable=True)]
    return Pairs(low[order], high[order], cosine[order])
