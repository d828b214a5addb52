"""BM25 of many queries over many short texts, as one product of a sparse matrix and a block."""

from dataclasses import dataclass

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from hipporag_torch.ops.csr import CSR, csr_from_entries
from hipporag_torch.ops.ragged import Ragged


@dataclass(frozen=True, eq=False)
class BM25:
    """`weight` holds what each token (column) adds to the score of each text (row) that it occurs in.

    `token` are the numbers of the columns' tokens, ascending.
    """

    token: Int64[Tensor, " tokens"]
    weight: CSR

    @staticmethod
    def of(texts: Ragged, *, k1: float = 1.2, b: float = 0.75) -> "BM25":
        """BM25 (Robertson and Zaragoza, 2009) with Lucene's idf, ln(1 + (n − df + ½) / (df + ½)) > 0.

        k1 ≥ 0 bends the gain of repeated words; b in [0, 1] is the correction for a text's length.
        """
        num_texts = texts.num_rows
        token, col = torch.unique(texts.values, return_inverse=True)
        width = max(1, len(token))
        key, count = torch.unique(texts.row * width + col, return_counts=True)
        row, col = key // width, key % width
        df = torch.bincount(col, minlength=len(token)).double()
        idf = torch.log1p((num_texts - df + 0.5) / (df + 0.5))
        length = texts.lengths.double()
        norm = k1 * (1 - b + b * length / length.mean().clamp(min=1e-9)) if num_texts else length
        weight = idf[col] * count * (k1 + 1) / (count + norm[row])
        return BM25(token, csr_from_entries(row, col, weight, num_rows=num_texts, num_cols=len(token)))

    def scores(self, queries: Ragged) -> Float32[Tensor, "queries texts"]:
        """The score of every text for every query; a token counts as often as the query repeats it."""
        num_queries, num_tokens = queries.num_rows, len(self.token)
        if not num_queries:
            return self.weight.weight.new_zeros(0, self.weight.num_rows)
        block = torch.zeros(num_tokens, num_queries, device=self.token.device)
        if num_tokens:
            place = torch.searchsorted(self.token, queries.values).clamp(max=num_tokens - 1)
            known = self.token[place] == queries.values
            # Whole numbers add up to the same in any order.
            at = (place[known], queries.row[known])
            block.index_put_(at, torch.ones((), device=block.device), accumulate=True)
        return self.weight.matmul(block).T.contiguous()
