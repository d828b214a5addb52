"""The k largest, with ties broken by the lower index, over whole rows or over blocks of a table."""

from typing import NamedTuple

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

_INDEX_BITS = 32
_INDEX_MASK = 2**_INDEX_BITS - 1
# A block of scores holds at most this many numbers (32 MB).
_BLOCK_NUMBERS = 8_000_000


class TopK(NamedTuple):
    """The best `k` per query, best first; `k` is the number of items where that is smaller."""

    scores: Float32[Tensor, "queries k"]
    idx: Int64[Tensor, "queries k"]


class TableTopK(NamedTuple):
    """`TopK` over a table's rows, with each query's smallest and largest score over all rows."""

    scores: Float32[Tensor, "queries k"]
    idx: Int64[Tensor, "queries k"]
    lowest: Float32[Tensor, " queries"]
    highest: Float32[Tensor, " queries"]


def stable_topk(scores: Float32[Tensor, "queries items"], k: int) -> TopK:
    """The `k` largest of each row; equal scores come in the order of their index.

    `torch.topk` leaves ties in any order, and picks any of those that tie at the cut. Where none do, its
    choice only needs ordering; the other rows are chosen again with keys that cannot be equal.
    """
    k = min(k, scores.shape[1])
    if k == 0:
        return TopK(scores[:, :0], torch.empty(scores.shape[0], 0, dtype=torch.int64, device=scores.device))
    values, idx = torch.topk(scores, k, dim=1)
    tied = torch.count_nonzero(scores >= values[:, -1:], dim=1) > k
    if bool(tied.any()):
        idx[tied] = _distinct_topk(scores[tied], k)
    idx = idx.sort(dim=1).values
    values, order = scores.gather(1, idx).sort(dim=1, descending=True, stable=True)
    return TopK(values, idx.gather(1, order))


def _distinct_topk(scores: Float32[Tensor, "queries items"], k: int) -> Int64[Tensor, "queries k"]:
    """The rows' best, through int64 keys whose order is that of (score descending, index ascending)."""
    # Adding 0 turns -0.0, whose bits differ, into 0.0. Negative floats order backwards as integers.
    bits = (scores + 0.0).view(torch.int32)
    ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()
    reverse_idx = _INDEX_MASK - torch.arange(scores.shape[1], device=scores.device)
    best = torch.topk((ordered << _INDEX_BITS) | reverse_idx, k, dim=1).values
    return _INDEX_MASK - (best & _INDEX_MASK)


def table_topk(
    table: Float32[Tensor, "items dim"],
    queries: Float32[Tensor, "queries dim"],
    k: int,
    *,
    block_rows: int | None = None,
) -> TableTopK:
    """The `k` rows of `table` with the largest dot product with each query, never holding all scores.

    Blocks only bound the memory: the merged result is that of one block, to rounding of the products.
    Raises nothing for an empty table: `k` is 0 then, and the extremes are +inf and -inf.
    """
    num_items, num_queries = table.shape[0], queries.shape[0]
    block_rows = block_rows or max(1, _BLOCK_NUMBERS // max(1, num_queries))
    lowest = queries.new_full((num_queries,), torch.inf)
    highest = queries.new_full((num_queries,), -torch.inf)
    scores = queries.new_empty((num_queries, 0))
    idx = torch.empty((num_queries, 0), dtype=torch.int64, device=queries.device)
    for start in range(0, num_items, block_rows):
        block = dot_scores(table[start : start + block_rows], queries)
        lowest = torch.minimum(lowest, block.amin(1))
        highest = torch.maximum(highest, block.amax(1))
        found = stable_topk(block, k)
        # Candidates of earlier blocks stand first, so that a tie still goes to the lower index.
        scores = torch.cat([scores, found.scores], 1)
        idx = torch.cat([idx, found.idx + start], 1)
        scores, position = stable_topk(scores, k)
        idx = idx.gather(1, position)
    return TableTopK(scores, idx, lowest, highest)


def dot_scores(
    table: Float32[Tensor, "items dim"], queries: Float32[Tensor, "queries dim"]
) -> Float32[Tensor, "queries items"]:
    """Dot products of every query with every row; the table stands first, which is faster on CPU."""
    return (table @ queries.T).T.contiguous()
