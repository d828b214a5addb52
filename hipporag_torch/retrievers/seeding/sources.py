"""One source's part of the reset, and the reset that sources make together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.types import SourceName


@dataclass(frozen=True, eq=False)
class SeedSource:
    """Nodes to restart from, and their weights, not negative.

    A node stands once in a row; rows are padded with weight 0 at any node. A row's sum is what the source
    contributes to the question.
    """

    name: SourceName
    node_idx: Int64[Tensor, "queries seeds"]
    weight: Float32[Tensor, "queries seeds"]

    def select(self, rows: Int64[Tensor, " selected"]) -> "SeedSource":
        return SeedSource(self.name, self.node_idx[rows], self.weight[rows])


def reset_of(sources: Sequence[SeedSource], *, num_nodes: int) -> Float32[Tensor, "queries nodes"]:
    """The sum of `sources`; nodes are outermost in memory, as PageRank wants them."""
    first = sources[0].weight
    reset = first.new_zeros(num_nodes, len(first)).T
    for source in sources:
        # Padding adds zeros alone, so no device can add up out of order.
        reset.scatter_add_(1, source.node_idx, source.weight)
    return reset


def passage_source(weight: Float32[Tensor, "queries passages"], *, num_phrases: int) -> SeedSource:
    """The source of a weight for every passage."""
    node_idx = torch.arange(num_phrases, num_phrases + weight.shape[1], device=weight.device)
    return SeedSource("passages", node_idx.expand(weight.shape), weight)
