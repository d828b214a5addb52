"""Sums over the ends of facts that are the same phrase, in an order that no device changes."""

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

# Comparisons made at once, at most.
_COMPARISONS = 8_000_000


def equal_ends(
    ends: Int64[Tensor, "queries ends"], held: Bool[Tensor, "queries ends"]
) -> tuple[Bool[Tensor, "queries ends ends"], Bool[Tensor, "queries ends"]]:
    """Which ends are the same phrase, and which is the first of its phrase; places not `held` are neither."""
    same = (ends.unsqueeze(2) == ends.unsqueeze(1)) & held.unsqueeze(2) & held.unsqueeze(1)
    return same, held & ~same.tril(-1).any(2)


def summed_over_phrases(
    ends: Int64[Tensor, "queries ends"],
    held: Bool[Tensor, "queries ends"],
    weight: Float32[Tensor, "queries ends"],
    *,
    comparisons_at_once: int = _COMPARISONS,
) -> Float32[Tensor, "queries ends"]:
    """At the first end of each phrase the sum of its weights, 0 elsewhere."""
    num_queries, num_ends = ends.shape
    at_once = max(1, comparisons_at_once // max(1, num_ends * num_ends))
    total = torch.empty_like(weight)
    for start in range(0, num_queries, at_once):
        rows = slice(start, start + at_once)
        same, first = equal_ends(ends[rows], held[rows])
        summed = (same.float() @ weight[rows].unsqueeze(2)).squeeze(2)
        total[rows] = torch.where(first, summed, 0.0)
    return total
