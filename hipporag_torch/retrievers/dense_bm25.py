"""Passages by cosine and by shared words together: what fusion reaches without a graph."""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.ops.scores import standardised
from hipporag_torch.ops.topk import dot_scores, stable_topk
from hipporag_torch.protocols import Embedder, Reads
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.questions import (
    check_batch_size,
    check_call,
    check_embedder,
    nothing_found,
    question_blocks,
    rankings_of,
)
from hipporag_torch.types import Ranking, Route


class DenseBM25Retriever:
    """Ranks all passages by z(cosine) + `bm25_weight` · z(BM25), `batch_size` questions at a time.

    z standardises the scores of one question over all passages; scores that are all equal become zeros, so
    a question that shares no token with any passage is ranked by cosine. bm25_weight ≥ 0; k1 and b are
    those of `BM25Retriever`. Ties go to the lower id.
    """

    reads: ClassVar[Reads] = "vectors"

    def __init__(
        self,
        *,
        index: Index,
        embedder: Embedder,
        bm25_weight: float = 0.5,
        k1: float = 1.2,
        b: float = 0.75,
        batch_size: int = 32,
    ) -> None:
        check_embedder(index, embedder)
        check_batch_size(batch_size)
        if not 0 <= bm25_weight < math.inf:
            raise ConfigError(
                f"retriever.bm25_weight must be a finite number and not negative, got {bm25_weight}"
            )
        self._index = index
        self._embedder = embedder
        self._bm25_weight = bm25_weight
        self._bm25 = BM25Retriever(index=index, k1=k1, b=b)
        self._batch_size = batch_size

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question, on the route `dense_bm25:requested`; there is nothing to trace."""
        check_call(questions, top_k)
        if not self._index.passages:
            return nothing_found(questions, "none:empty_index")
        rankings: list[Ranking] = []
        for block, (vectors,) in question_blocks(
            self._index, self._embedder, questions, ["question_to_passage"], self._batch_size
        ):
            scores = standardised(dot_scores(self._index.passage_emb, vectors))
            lexical = torch.stack([self._bm25.scores(question) for question in block]).to(scores.device)
            best = stable_topk(scores + self._bm25_weight * standardised(lexical), top_k)
            routes: list[Route] = ["dense_bm25:requested"] * len(block)
            rankings += rankings_of(self._index, block, best, routes)
        return rankings
