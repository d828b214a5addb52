"""Personalized PageRank against igraph, on the real graph and on synthetic ones."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hipporag_torch.benchmarks.golden import GoldenEmbedder, GoldenVectors, golden_dataset, golden_indexer
from hipporag_torch.benchmarks.peers import IgraphPageRank, same_order
from hipporag_torch.benchmarks.synthetic import synthetic_graph, synthetic_resets
from hipporag_torch.benchmarks.timing import Row, interleaved_ms
from hipporag_torch.errors import ConfigError
from hipporag_torch.graph import Graph
from hipporag_torch.index import Index
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.ops.topk import dot_scores
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.retrievers.seeding import Evidence, ReferenceSeeding, reset_of


class PPRBenchmark:
    """Milliseconds per question, batched, beside igraph's PRPACK called question by question.

    graphs: `musique` (the golden vectors and triples), or numbers of nodes of synthetic graphs.
    batches: questions solved in one call.
    rounds: in which both take turns; the medians count.
    peer_questions: how many of a batch igraph is timed on in a round; its cost is the same for each.

    `top20_equal` says whether every question of the batch has the same 20 best passages, in order.
    """

    columns = ("graph", "nodes", "batch", "ms_per_question", "peer_ms_per_question", "speedup", "top20_equal")

    def __init__(
        self,
        *,
        graphs: Sequence[str | int],
        batches: Sequence[int],
        device: torch.device,
        rounds: int = 5,
        peer_questions: int = 4,
    ) -> None:
        for name, values in (
            ("batches", batches),
            ("rounds", [rounds]),
            ("peer_questions", [peer_questions]),
        ):
            if not values or min(values) < 1:
                raise ConfigError(f"benchmark.{name} must be at least 1, got {list(values)}")
        self._graphs = graphs
        self._batches = batches
        self._device = device
        self._rounds = rounds
        self._peer_questions = peer_questions
        self._options = PPROptions()

    def run(self, progress: Progress = no_progress) -> list[Row]:
        """One row per graph and batch."""
        rows: list[Row] = []
        for name in self._graphs:
            graph, resets = self._workload(name)
            peer = IgraphPageRank(graph, damping=self._options.damping)
            expected = peer.walk(resets.tolist())[:, graph.num_phrases :]
            graph = graph.to(self._device)
            for batch in self._batches:
                rows.append(self._measure(str(name), graph, resets[:batch], peer, expected))
                progress("benchmark", len(rows), len(self._graphs) * len(self._batches))
        return rows

    def _measure(
        self, name: str, graph: Graph, resets: Tensor, peer: IgraphPageRank, expected: np.ndarray
    ) -> Row:
        # Nodes outermost in memory, as the retriever's seeds are.
        on_device = resets.T.contiguous().T.to(self._device)
        peer_resets = [reset.tolist() for reset in resets[: self._peer_questions]]
        ours, theirs = interleaved_ms(
            [
                lambda: personalized_pagerank(graph.walk, on_device, self._options),
                lambda: peer.walk(peer_resets),
            ],
            rounds=self._rounds,
            device=self._device,
        )
        mass = personalized_pagerank(graph.walk, on_device, self._options)[:, graph.num_phrases :]
        per_question, peer_per_question = ours / len(resets), theirs / len(peer_resets)
        return {
            "graph": name,
            "nodes": graph.num_nodes,
            "batch": len(resets),
            "ms_per_question": per_question,
            "peer_ms_per_question": peer_per_question,
            "speedup": peer_per_question / per_question,
            "top20_equal": all(same_order(*pair) for pair in zip(mass, expected, strict=False)),
        }

    def _workload(self, name: str | int) -> tuple[Graph, Tensor]:
        most = max(self._batches)
        if name == "musique":
            embedder = GoldenEmbedder(GoldenVectors.load())
            dataset = golden_dataset()
            indexer = golden_indexer(embedder)
            index, _ = indexer.add(indexer.empty(), dataset.documents)
            questions = [question.text for question in dataset.questions[:most]]
            resets = _reference_resets(index, embedder.embed(questions, "question_to_fact"))
            return index.graph, resets[torch.arange(most) % len(resets)]
        if not isinstance(name, int) or name < 100:
            raise ConfigError(
                f"benchmark.graphs must be musique or numbers of nodes of at least 100, got {name!r}"
            )
        graph = synthetic_graph(name)
        return graph, synthetic_resets(graph, most)


def _reference_resets(index: Index, questions: Tensor) -> Tensor:
    seeding = ReferenceSeeding()
    facts = seeding.consider(index, [""] * len(questions), questions)
    no_links = Ragged.of([[]] * len(questions))
    evidence = Evidence(facts, facts.like, dot_scores(index.passage_emb, questions), no_links)
    return reset_of(seeding.sources(index, evidence), num_nodes=index.graph.num_nodes)
