"""Whole retrievals per question, embedding excluded, beside a plain loop over questions."""

from collections.abc import Sequence

import numpy as np
import torch

from hipporag_torch.benchmarks.golden import GoldenEmbedder, GoldenVectors, golden_dataset, golden_indexer
from hipporag_torch.benchmarks.peers import IgraphPageRank
from hipporag_torch.benchmarks.timing import Row, interleaved_ms
from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.protocols import Progress, Retriever, no_progress
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever

_TOP_K = 20


class RetrievalBenchmark:
    """Milliseconds per question of each retriever on musique_train, in batches of several sizes.

    batches: questions asked in one call.
    rounds: in which all take turns; the medians count.
    The peer of `hipporag` is the same method in NumPy and igraph, one question at a time.
    """

    columns = ("retriever", "batch", "ms_per_question", "peer_ms_per_question", "speedup")

    def __init__(self, *, batches: Sequence[int], device: torch.device, rounds: int = 5) -> None:
        if not batches or min(batches) < 1 or rounds < 1:
            raise ConfigError(f"benchmark.batches and rounds must be at least 1, got {batches} and {rounds}")
        self._batches = batches
        self._device = device
        self._rounds = rounds

    def run(self, progress: Progress = no_progress) -> list[Row]:
        """One row per retriever and batch."""
        embedder = GoldenEmbedder(GoldenVectors.load())
        dataset = golden_dataset()
        indexer = golden_indexer(embedder)
        index, _ = indexer.add(indexer.empty(), dataset.documents)
        texts = [question.text for question in dataset.questions]
        peer = _LoopPeer(index)
        vectors = embedder.embed(texts, "question_to_fact").numpy()
        index = index.to(self._device)
        rows: list[Row] = []
        for name in ("hipporag", "dense", "bm25"):
            for batch in self._batches:
                asked = [texts[i % len(texts)] for i in range(batch)]
                retriever = _retriever(name, index, embedder, batch)
                times = interleaved_ms(
                    [
                        lambda r=retriever, a=asked: r.retrieve(a, top_k=_TOP_K),
                        lambda: peer.retrieve(vectors[:4]),
                    ],
                    rounds=self._rounds,
                    device=self._device,
                )
                theirs = times[1] / 4 if name == "hipporag" else None
                ours = times[0] / batch
                rows.append(
                    {
                        "retriever": name,
                        "batch": batch,
                        "ms_per_question": ours,
                        "peer_ms_per_question": theirs,
                        "speedup": theirs / ours if theirs else None,
                    }
                )
                progress("benchmark", len(rows), 3 * len(self._batches))
        return rows


def _retriever(name: str, index: Index, embedder: GoldenEmbedder, batch: int) -> Retriever:
    if name == "bm25":
        return BM25Retriever(index=index)
    if name == "dense":
        return DenseRetriever(index=index, embedder=embedder, batch_size=batch)
    return HippoRAGRetriever(index=index, embedder=embedder, batch_size=batch)


class _LoopPeer:
    """Reference seeding, walk and ranking in NumPy and igraph, question by question."""

    def __init__(self, index: Index) -> None:
        self._facts, self._passages = index.fact_emb.numpy(), index.passage_emb.numpy()
        self._ends = index.fact_ends.tolist()
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
