"""A graph's random walk as an operator, laid out so that its products are fast."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.ops.csr import CSR, csr_from_entries


@dataclass(frozen=True, eq=False)
class Walk:
    """P = A·D⁻¹ of an undirected graph, with its nodes in descending order of degree.

    In that order neighbouring rows have nearly equal lengths, so the processor predicts the end of each
    row: one matrix-vector product takes a third of the time. `order[i]` is the node in row i, `place` the
    inverse; callers see their own numbering only, through `gather` and `scatter`.

    `share` is P, with explicit zeros on the diagonal, whose entries are at `diagonal`: what is solved on the
    walk needs another diagonal at every step.
    """

    order: Int64[Tensor, " nodes"]
    place: Int64[Tensor, " nodes"]
    share: CSR
    diagonal: Int64[Tensor, " nodes"]

    @staticmethod
    def of(adjacency: CSR, degree: Float32[Tensor, " nodes"]) -> "Walk":
        """The walk on a symmetric weighted `adjacency`; a node without edges has a zero column."""
        num_nodes = adjacency.num_rows
        order = torch.argsort(adjacency.row_ptr.diff(), descending=True, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(num_nodes, device=order.device)
        col = adjacency.col.long()
        nodes = torch.arange(num_nodes, device=order.device)
        share = csr_from_entries(
            torch.cat([place[adjacency.row], nodes]),
            torch.cat([place[col], nodes]),
            torch.cat([adjacency.weight / degree[col], torch.zeros_like(degree)]),
            num_rows=num_nodes,
            num_cols=num_nodes,
        )
        return Walk(order, place, share, (share.row == share.col).nonzero()[:, 0])

    @property
    def num_nodes(self) -> int:
        return self.order.numel()

    def damped(self, damping: float) -> CSR:
        """d·P, whose entries are the caller's to change."""
        return replace(self.share, weight=self.share.weight * damping)

    def gather(self, rows: Float32[Tensor, "batch nodes"]) -> Float32[Tensor, "nodes batch"]:
        """Rows in the caller's numbering, one per question, as the columns of a block in this order."""
        return rows.T.contiguous().index_select(0, self.order)

    def scatter(self, block: Float32[Tensor, "nodes batch"]) -> Float32[Tensor, "batch nodes"]:
        """The inverse of `gather`; a view with the nodes outermost in memory."""
        return block.index_select(0, self.place).T
