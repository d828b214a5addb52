"""A sparse matrix in compressed rows, and its product with a dense block."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Float32, Int32, Int64
from torch import Tensor

from hipporag_torch.errors import InputError

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class CSR:
    """A (rows, cols) float32 matrix: row i holds `weight[row_ptr[i]:row_ptr[i+1]]` at those `col`s.

    Indices are int32: int64 costs up to 45 % of a product's speed. Columns ascend within a row.
    """

    row_ptr: Int32[Tensor, " rows_plus_1"]
    col: Int32[Tensor, " entries"]
    weight: Float32[Tensor, " entries"]
    num_cols: int

    @property
    def num_rows(self) -> int:
        return self.row_ptr.numel() - 1

    @property
    def num_entries(self) -> int:
        return self.col.numel()

    @cached_property
    def row(self) -> Int64[Tensor, " entries"]:
        """The row of each entry."""
        counts = self.row_ptr.diff().long()
        return torch.repeat_interleave(torch.arange(self.num_rows, device=counts.device), counts)

    @cached_property
    def _torch(self) -> Tensor:
        with warnings.catch_warnings():
            # torch announces once per process that sparse CSR is in beta; nothing here depends on more.
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
            return torch.sparse_csr_tensor(
                self.row_ptr,
                self.col,
                self.weight,
                size=(self.num_rows, self.num_cols),
                check_invariants=False,
            )

    def to(self, device: torch.device | str) -> "CSR":
        return CSR(self.row_ptr.to(device), self.col.to(device), self.weight.to(device), self.num_cols)

    def matmul(self, x: Float32[Tensor, "cols batch"]) -> Float32[Tensor, "rows batch"]:
        """self @ x. Repeatable to the bit on CPU, whatever the number of threads.

        `embedding_bag` is the fastest CSR × dense product on CPU (2–60 × over torch's and PyG's own) and
        runs on CUDA too; for a single column the sparse matrix-vector kernel wins.
        """
        if self.num_entries == 0:
            return x.new_zeros(self.num_rows, x.shape[1])
        if x.shape[1] == 1:
            return torch.mv(self._torch, x[:, 0]).unsqueeze(1)
        return F.embedding_bag(
            self.col, x, self.row_ptr, mode="sum", per_sample_weights=self.weight, include_last_offset=True
        )

    def matmul_add(
        self, x: Float32[Tensor, "cols batch"], plus: Float32[Tensor, "rows batch"]
    ) -> Float32[Tensor, "rows batch"]:
        """self @ x + plus, in one kernel for a single column."""
        if x.shape[1] == 1 and self.num_entries:
            return torch.addmv(plus[:, 0], self._torch, x[:, 0]).unsqueeze(1)
        return self.matmul(x).add_(plus)


def symmetric_csr(
    first_idx: Int64[Tensor, " pairs"],
    second_idx: Int64[Tensor, " pairs"],
    weight: Float[Tensor, " pairs"],
    *,
    num_nodes: int,
) -> CSR:
    """The (nodes, nodes) symmetric matrix of undirected weighted pairs; parallel pairs are added.

    Sums run in float64 in the order given, so the order of pairs matters at most to the last bit.
    """
    low, high = torch.minimum(first_idx, second_idx), torch.maximum(first_idx, second_idx)
    key, group = torch.unique(low * num_nodes + high, return_inverse=True)
    if 2 * key.numel() > _INT32_MAX:
        raise InputError(
            f"the graph has {key.numel():,} undirected edges, more than the {_INT32_MAX // 2:,} that int32 "
            "indices can hold; raise graph.synonym_threshold or lower graph.synonym_cap"
        )
    total = torch.zeros(key.numel(), dtype=torch.float64, device=key.device)
    total.index_add_(0, group, weight.double())
    low, high = key // num_nodes, key % num_nodes
    return csr_from_entries(
        torch.cat([low, high]),
        torch.cat([high, low]),
        total.repeat(2),
        num_rows=num_nodes,
        num_cols=num_nodes,
    )


def csr_from_entries(
    row: Int64[Tensor, " entries"],
    col: Int64[Tensor, " entries"],
    weight: Float[Tensor, " entries"],
    *,
    num_rows: int,
    num_cols: int,
) -> CSR:
    """The matrix of distinct (row, col) entries, which may come in any order."""
    order = torch.argsort(row * num_cols + col)
    row_ptr = torch.zeros(num_rows + 1, dtype=torch.int64, device=row.device)
    row_ptr[1:] = torch.bincount(row, minlength=num_rows).cumsum(0)
    return CSR(row_ptr.to(torch.int32), col[order].to(torch.int32), weight[order].float(), num_cols=num_cols)
