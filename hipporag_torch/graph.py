"""The graph: phrases and passages as one block of nodes each, joined by weighted undirected edges."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.errors import InputError
from hipporag_torch.ops.csr import CSR, csr_from_entries
from hipporag_torch.ops.walk import Walk

if TYPE_CHECKING:
    # Importing it takes seconds, and only the two conversions need it.
    import torch_geometric.data


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes `[0, num_phrases)` are phrases, `[num_phrases, num_nodes)` are passages.

    `adjacency` is the (nodes, nodes) symmetric matrix of edge weights, without self-loops and without
    edges between passages.
    """

    num_phrases: int
    num_passages: int
    adjacency: CSR

    @property
    def num_nodes(self) -> int:
        return self.num_phrases + self.num_passages

    @property
    def num_edges(self) -> int:
        """Distinct undirected edges."""
        return self.adjacency.num_entries // 2

    @cached_property
    def degree(self) -> Float32[Tensor, " nodes"]:
        """The sum of the weights of each node's edges."""
        total = torch.zeros(self.num_nodes, dtype=torch.float64, device=self.adjacency.weight.device)
        total.index_add_(0, self.adjacency.row, self.adjacency.weight.double())
        return total.float()

    @cached_property
    def walk(self) -> Walk:
        """The random walk that PageRank runs on, laid out once per graph."""
        return Walk.of(self.adjacency, self.degree)

    def neighbours(self, node: int) -> tuple[Int64[Tensor, " entries"], Float32[Tensor, " entries"]]:
        """The nodes joined to `node`, ascending, and the share of each one's mass that a step sends here."""
        entries = slice(int(self.adjacency.row_ptr[node]), int(self.adjacency.row_ptr[node + 1]))
        col = self.adjacency.col[entries].long()
        return col, self.adjacency.weight[entries] / self.degree[col]

    def to(self, device: torch.device | str) -> "Graph":
        return Graph(self.num_phrases, self.num_passages, self.adjacency.to(device))

    def validate(self) -> "Graph":
        """Return self if every promise of this class holds; else raise `InputError` naming the broken one."""
        a, n = self.adjacency, self.num_nodes
        if a.row_ptr.numel() != n + 1 or a.num_cols != n:
            raise InputError(f"the matrix is {a.num_rows} × {a.num_cols}, the graph has {n} nodes")
        if (
            int(a.row_ptr[0]) != 0
            or int(a.row_ptr[-1]) != a.num_entries
            or bool((a.row_ptr.diff() < 0).any())
        ):
            raise InputError("the row pointers do not ascend from 0 to the number of entries")
        if a.weight.numel() != a.num_entries:
            raise InputError(f"{a.num_entries} columns have {a.weight.numel()} weights")
        if bool(((a.col < 0) | (a.col >= n)).any()):
            raise InputError(f"a column lies outside the graph's {n} nodes")
        key = a.row * n + a.col
        if bool((key.diff() <= 0).any()):
            raise InputError("columns must ascend within a row, without repetition")
        if bool((a.row == a.col).any()):
            raise InputError("a node is joined to itself")
        if bool(((a.row >= self.num_phrases) & (a.col >= self.num_phrases)).any()):
            raise InputError("two passages are joined")
        if not bool((torch.isfinite(a.weight) & (a.weight > 0)).all()):
            raise InputError("edge weights must be finite and positive")
        mirror = torch.argsort(a.col.long() * n + a.row)
        if not torch.equal((a.col.long() * n + a.row)[mirror], key) or not torch.equal(
            a.weight[mirror], a.weight
        ):
            raise InputError("the matrix is not symmetric")
        return self

    def to_pyg(self) -> "torch_geometric.data.Data":
        """A `torch_geometric` data object: `edge_index` (2, entries) sorted by row, both directions,
        `edge_weight` (entries,), `node_type` (nodes,) with 0 for phrases and 1 for passages."""
        from torch_geometric.data import Data

        node_type = torch.zeros(self.num_nodes, dtype=torch.int64, device=self.adjacency.col.device)
        node_type[self.num_phrases :] = 1
        return Data(
            edge_index=torch.stack([self.adjacency.row, self.adjacency.col.long()]),
            edge_weight=self.adjacency.weight,
            node_type=node_type,
            num_nodes=self.num_nodes,
        )

    @staticmethod
    def from_pyg(graph: "torch_geometric.data.Data") -> "Graph":
        """The inverse of `to_pyg`; entries may come in any order. Raises `InputError` for anything else."""
        missing = [name for name in ("edge_index", "edge_weight", "node_type") if graph.get(name) is None]
        if missing:
            raise InputError(f"the data object lacks {', '.join(missing)}; to_pyg() shows what is expected")
        edge_index, edge_weight, node_type = graph["edge_index"], graph["edge_weight"], graph["node_type"]
        num_nodes, num_entries = node_type.numel(), edge_weight.numel()
        if node_type.shape != (num_nodes,) or edge_weight.shape != (num_entries,):
            raise InputError(
                "node_type and edge_weight must have one dimension, got the shapes "
                f"{tuple(node_type.shape)} and {tuple(edge_weight.shape)}"
            )
        if edge_index.shape != (2, num_entries):
            raise InputError(
                f"edge_index must have the shape (2, {num_entries}), a column for each weight, "
                f"got {tuple(edge_index.shape)}"
            )
        if edge_index.dtype not in (torch.int32, torch.int64):
            raise InputError(f"edge_index must hold whole numbers, got {edge_index.dtype}")
        if num_entries and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < num_nodes:
            raise InputError(
                f"edge_index must lie between 0 and {num_nodes - 1}, got {int(edge_index.min())} to "
                f"{int(edge_index.max())}: node_type has {num_nodes} nodes"
            )
        if bool((node_type.diff() < 0).any()) or bool(((node_type != 0) & (node_type != 1)).any()):
            raise InputError("node_type must be 0 for the phrases, which come first, and 1 for the passages")
        row, col = edge_index.long()
        adjacency = csr_from_entries(row, col, edge_weight, num_rows=num_nodes, num_cols=num_nodes)
        num_phrases = int((node_type == 0).sum())
        return Graph(num_phrases, num_nodes - num_phrases, adjacency).validate()
