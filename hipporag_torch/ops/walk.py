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

    The pattern holds the diagonal too, so that I + α·(d·P − I) has the same one, for any α and d.
    `share` is P on that pattern (zero on the diagonal), `identity` is I on it.
    """

    order: Int64[Tensor, " nodes"]
    place: Int64[Tensor, " nodes"]
    share: CSR
    identity: Float32[Tensor, " entries"]

    @staticmethod
    def of(adjacency: CSR, degree: Float32[Tensor, " nodes"]) -> "Walk":
        """The walk on a symmetric weighted `adjacency`; a node without edges has a zero column."""
        num_nodes = adjacency.num_rows
        order = torch.argsort(adjacency.row_ptr.diff(), descending=True, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(num_nodes, device=order.device)
        col = adjacency.col.long()
        diagonal = torch.arange(num_nodes, device=order.device)
        share = csr_from_entries(
            torch.cat([place[adjacency.row], diagonal]),
            torch.cat([place[col], diagonal]),
            torch.cat([adjacency.weight / degree[col], torch.zeros_like(degree)]),
            num_rows=num_nodes,
            num_cols=num_nodes,
        )
        return Walk(order, place, share, (share.row == share.col).float())

    @property
    def num_nodes(self) -> int:
        return self.order.numel()

    def relax(
        self,
        damped: CSR,
        x: Float32[Tensor, "nodes batch"],
        restart: Float32[Tensor, "nodes batch"],
        alpha: float,
    ) -> Float32[Tensor, "nodes batch"]:
        """x + α·(restart + d·P·x − x), given `damped` = d·P.

        The relaxation is worked into whichever is smaller, the vectors or the matrix, where it becomes
        the entries of I + α·(d·P − I): a block of 32 columns is far larger than the graph.
        """
        if x.numel() < self.identity.numel():
            return torch.lerp(x, damped.matmul_add(x, restart, 1.0), alpha)
        weight = torch.lerp(self.identity, damped.weight, alpha)
        return replace(damped, weight=weight).matmul_add(x, restart, alpha)

    def gather(self, rows: Float32[Tensor, "batch nodes"]) -> Float32[Tensor, "nodes batch"]:
        """A block in the caller's numbering, one row per question, as columns in this order."""
        return rows.T.contiguous().index_select(0, self.order)

    def scatter(self, block: Float32[Tensor, "nodes batch"]) -> Float32[Tensor, "batch nodes"]:
        """The inverse of `gather`."""
        return block.index_select(0, self.place).T
