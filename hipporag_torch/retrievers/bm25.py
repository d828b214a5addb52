"""Passages by the words that they share with the question (Robertson and Zaragoza, 2009), through bm25s."""

from collections.abc import Sequence
from typing import ClassVar

import bm25s
import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.lexical import lexical_tokens
from hipporag_torch.ops.topk import stable_topk
from hipporag_torch.protocols import Reads
from hipporag_torch.retrievers.questions import check_call, nothing_found
from hipporag_torch.types import Ranking


class BM25Retriever:
    """Ranks the passages that share a token with the question; the others are not returned.

    Tokens are words without English stop words, and character bigrams for scripts without spaces.
    k1 ≥ 0 bends the gain of repeated words; b in [0, 1] is the correction for a passage's length.
    """

    reads: ClassVar[Reads] = "texts"

    def __init__(self, *, index: Index, k1: float = 1.2, b: float = 0.75) -> None:
        if not k1 >= 0:
            raise ConfigError(f"retriever.k1 must not be negative, got {k1}")
        if not 0 <= b <= 1:
            raise ConfigError(f"retriever.b must lie between 0 and 1, got {b}")
        self._index = index
        tokens = [lexical_tokens(passage.text) for passage in index.passages]
        self._bm25: bm25s.BM25 | None = None
        if any(tokens):
            self._bm25 = bm25s.BM25(k1=k1, b=b, method="lucene")
            self._bm25.index(tokens, show_progress=False)

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question; route `bm25:no_match` and no passages where no token is shared."""
        check_call(questions, top_k)
        if not self._index.passages:
            return nothing_found(questions, "none:empty_index")
        return [self._rank(question, top_k) for question in questions]

    def scores(self, question: str) -> Float32[Tensor, " passages"]:
        """The score of every passage, on the CPU; 0 for those that share no token with the question."""
        none = torch.zeros(len(self._index.passages))
        if self._bm25 is None:
            return none
        known = [token for token in lexical_tokens(question) if token in self._bm25.vocab_dict]
        return torch.from_numpy(self._bm25.get_scores(known)).float() if known else none

    def _rank(self, question: str, top_k: int) -> Ranking:
        scores = self.scores(question)
        matching = int((scores > 0).sum())
        if matching == 0:
            return Ranking(question, (), (), "bm25:no_match")
        best = stable_topk(scores.unsqueeze(0), min(top_k, matching))
        passages = tuple(self._index.passages[i] for i in best.idx[0].tolist())
        return Ranking(question, passages, tuple(best.scores[0].tolist()), "bm25:requested")
