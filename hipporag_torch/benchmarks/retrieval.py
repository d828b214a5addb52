"""Whole retrievals per question, embedding excluded, beside a plain loop over questions."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from hipporag_torch.benchmarks.corpora import Corpus, golden_corpus, synthetic_corpus
from hipporag_torch.benchmarks.peers import IgraphPageRank
from hipporag_torch.benchmarks.timing import Row, interleaved_ms
from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.protocols import Embedder, Progress, Retriever, no_progress
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.retrievers.seeding import BlendedSeeding, ReferenceSeeding, Seeding

_TOP_K = 20
_PEER_QUESTIONS = 4
_WITH_PEER = "reference"
_SEEDINGS: Mapping[str, Seeding] = {
    "blended": BlendedSeeding(),
    "fact pairs": BlendedSeeding(fact_pairs=True),
    _WITH_PEER: ReferenceSeeding(),
}
_RETRIEVERS = (*_SEEDINGS, "dense", "bm25")


class RetrievalBenchmark:
    """Milliseconds per question of each retriever, in batches of several sizes.

    corpora: `musique` (the golden vectors and triples), or numbers of passages of synthetic corpora.
    batches: questions asked in one call.
    rounds: in which all take turns; the medians count.
    The peer of `reference` is the same method in NumPy and igraph, one question at a time.
    """

    columns = ("corpus", "retriever", "batch", "ms_per_question", "peer_ms_per_question", "speedup")

    def __init__(
        self,
        *,
        batches: Sequence[int],
        device: torch.device,
        corpora: Sequence[str | int] = ("musique",),
        rounds: int = 5,
    ) -> None:
        if not batches or min(batches) < 1 or rounds < 1:
            raise ConfigError(f"benchmark.batches and rounds must be at least 1, got {batches} and {rounds}")
        for corpus in corpora:
            if corpus != "musique" and (not isinstance(corpus, int) or corpus < 1):
                raise ConfigError(f"benchmark.corpora must be musique or numbers of passages, got {corpus!r}")
        self._batches = batches
        self._device = device
        self._corpora = corpora
        self._rounds = rounds

    def run(self, progress: Progress = no_progress) -> list[Row]:
        """One row per corpus, retriever and batch."""
        rows: list[Row] = []
        total = len(self._corpora) * len(_RETRIEVERS) * len(self._batches)
        for name in self._corpora:
            corpus = synthetic_corpus(name) if isinstance(name, int) else golden_corpus()
            index, _ = corpus.indexer.add(corpus.indexer.empty(), corpus.documents)
            peer = _LoopPeer(index)
            on_device = index.to(self._device)
            for retriever in _RETRIEVERS:
                for batch in self._batches:
                    rows.append(self._measure(corpus, on_device, peer, retriever, batch))
                    progress("benchmark", len(rows), total)
        return rows

    def _measure(self, corpus: Corpus, index: Index, peer: "_LoopPeer", name: str, batch: int) -> Row:
        asked = [corpus.questions[i % len(corpus.questions)] for i in range(batch)]
        retriever = _retriever(name, index, corpus.indexer.embedder, batch)
        vectors = corpus.indexer.embedder.embed(
            corpus.questions[:_PEER_QUESTIONS], "question_to_fact"
        ).numpy()
        times = interleaved_ms(
            [lambda: retriever.retrieve(asked, top_k=_TOP_K), lambda: peer.retrieve(vectors)],
            rounds=self._rounds,
            device=self._device,
        )
        ours = times[0] / batch
        theirs = times[1] / len(vectors) if name == _WITH_PEER else None
        return {
            "corpus": corpus.name,
            "retriever": name,
            "batch": batch,
            "ms_per_question": ours,
            "peer_ms_per_question": theirs,
            "speedup": theirs / ours if theirs else None,
        }


def _retriever(name: str, index: Index, embedder: Embedder, batch: int) -> Retriever:
    if name == "bm25":
        return BM25Retriever(index=index)
    if name == "dense":
        return DenseRetriever(index=index, embedder=embedder, batch_size=batch)
    return HippoRAGRetriever(index=index, embedder=embedder, seeding=_SEEDINGS[name], batch_size=batch)


class _LoopPeer:
    """Reference seeding, walk and ranking in NumPy and igraph, question by question."""

    def __init__(self, index: Index) -> None:
        self._facts, self._passages = index.fact_emb.numpy(), index.passage_emb.numpy()
        self._ends = index.fact_ends.values.reshape(-1, 2).tolist()
        self._counts = index.passages_per_phrase.tolist()
        self._num_phrases = index.graph.num_phrases
        self._walk = IgraphPageRank(index.graph, damping=0.5)

    def retrieve(self, questions: np.ndarray) -> list[np.ndarray]:
        """The rows of each question's best passages."""
        return [self._retrieve(question) for question in questions]

    def _retrieve(self, question: np.ndarray) -> np.ndarray:
        scores = _minmax(self._facts @ question)
        of_phrase: dict[int, list[float]] = {}
        for fact in np.argsort(-scores)[:5].tolist():
            for phrase in self._ends[fact]:
                of_phrase.setdefault(phrase, []).append(scores[fact] / self._counts[phrase])
        seeds = sorted(((sum(s) / len(s), p) for p, s in of_phrase.items()), reverse=True)[:5]
        passages = _minmax(self._passages @ question) * 0.05
        reset = [0.0] * self._num_phrases + passages.tolist()
        for weight, phrase in seeds:
            reset[phrase] = weight
        mass = self._walk.walk([reset])[0, self._num_phrases :]
        return np.argsort(-mass)[:_TOP_K]


def _minmax(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.min()) / (scores.max() - scores.min())
