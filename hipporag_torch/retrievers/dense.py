"""Passages by the cosine of their vector with the question's: the baseline that a graph must beat."""

from collections.abc import Sequence
from typing import ClassVar

from hipporag_torch.index import Index
from hipporag_torch.ops.topk import TopK, table_topk
from hipporag_torch.protocols import Embedder, Reads
from hipporag_torch.retrievers.questions import (
    check_batch_size,
    check_call,
    check_embedder,
    nothing_found,
    question_blocks,
    rankings_of,
)
from hipporag_torch.types import Ranking, Route


class DenseRetriever:
    """Ranks all passages by cosine, `batch_size` questions at a time; ties go to the lower id."""

    reads: ClassVar[Reads] = "vectors"

    def __init__(self, *, index: Index, embedder: Embedder, batch_size: int = 32) -> None:
        check_embedder(index, embedder)
        check_batch_size(batch_size)
        self._index = index
        self._embedder = embedder
        self._batch_size = batch_size

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question, on the route `dense:requested`; there is nothing to trace."""
        check_call(questions, top_k)
        if not self._index.passages:
            return nothing_found(questions, "none:empty_index")
        rankings: list[Ranking] = []
        for block, (vectors,) in question_blocks(
            self._index, self._embedder, questions, ["question_to_passage"], self._batch_size
        ):
            best = table_topk(self._index.passage_emb, vectors, top_k)
            routes: list[Route] = ["dense:requested"] * len(block)
            rankings += rankings_of(self._index, block, TopK(best.scores, best.idx), routes)
        return rankings
