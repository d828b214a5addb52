"""`graph=reference text=reference seeding=reference` against the reference's own outputs on musique_train."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hipporag_torch.benchmarks.golden import EXTRACTIONS, GoldenVectors
from hipporag_torch.config import build_dataset, build_memory, compose
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.minilm import packaged_minilm
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.types import Dataset, Ranking


@dataclass(frozen=True)
class Run:
    """The library's side, built once from the golden vectors."""

    memory: HippoRAG
    dataset: Dataset
    rankings: list[Ranking]
    corpus_ids: list[str]
    golden: Path

    def read(self, name: str) -> dict:
        return json.loads((self.golden / name).read_text("utf-8"))

    @property
    def node_rows(self) -> np.ndarray:
        """Our row of each golden node."""
        index = self.memory.index
        phrase_row = {phrase: row for row, phrase in enumerate(index.phrases)}
        return np.array(
            [
                phrase_row[name]
                if kind == "e"
                else len(phrase_row) + index.passage_row[self.corpus_ids[name]]
                for kind, name in self.read("nodes.json")
            ]
        )


@pytest.fixture(scope="module")
def run(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache_dir = tmp_path_factory.mktemp("cache")
    GoldenVectors.load(shared).preload(
        EmbeddingCache(cache_dir / "embeddings.sqlite"), packaged_minilm().identity
    )
    musique = shared / "data" / "musique_train"
    cfg = compose(
        "evaluate",
        [
            f"dataset.path={musique}",
            f"extractor.path={musique / EXTRACTIONS}",
            "text=reference",
            "graph=reference",
            "seeding=reference",
            f"runtime.cache_dir={cache_dir}",
            "runtime.device=cpu",
        ],
    )
    memory, dataset = build_memory(cfg), build_dataset(cfg).load()
    memory.add(dataset.documents)
    rankings = memory.retrieve([q.text for q in dataset.questions], top_k=len(dataset.documents), trace=False)
    ids = [memory.index.text.passage_id(document.text) for document in dataset.documents]
    return Run(memory, dataset, rankings, ids, shared / "golden")


def test_same_nodes(run: Run) -> None:
    nodes = run.read("nodes.json")
    assert sorted(name for kind, name in nodes if kind == "e") == list(run.memory.index.phrases)
    assert len(nodes) == run.memory.index.graph.num_nodes == 18_125
    facts = [run.memory.index.text.fact_text(fact) for fact in run.memory.index.facts]
    assert sorted(facts) == sorted(run.read("facts.json")["facts"])


def test_same_weight_on_every_pair(run: Run) -> None:
    graph = run.memory.index.graph.validate()
    edges = np.load(run.golden / "graph_edges.npz")
    ends = run.node_rows[np.stack([edges["src"], edges["dst"]])]
    size = (graph.num_nodes, graph.num_nodes)
    theirs = sp.coo_matrix((edges["w"], (ends.min(0), ends.max(0))), shape=size).tocsr()
    a = graph.adjacency
    ours = sp.triu(sp.csr_matrix((a.weight.numpy(), a.col.numpy(), a.row_ptr.numpy()), shape=size)).tocsr()
    assert ours.nnz == theirs.nnz == 43_194
    assert abs(ours - theirs).max() < 5e-6


@pytest.mark.parametrize("method", ["chebyshev", "power"])
def test_same_pagerank_of_the_golden_resets(run: Run, method: str) -> None:
    golden = np.load(run.golden / "ppr5.npz")
    reset = np.zeros(golden["reset"].shape, dtype=np.float32)
    expected = np.zeros(golden["ppr"].shape)
    reset[:, run.node_rows], expected[:, run.node_rows] = golden["reset"], golden["ppr"]
    options = PPROptions(method=method)  # type: ignore[arg-type]
    mass = personalized_pagerank(run.memory.index.graph.walk, torch.from_numpy(reset), options)
    assert np.abs(mass.numpy() - expected).max() < 1e-6


def test_same_top_20_where_the_reference_has_no_tie_at_its_cut(run: Run) -> None:
    """Orders are compared where neighbouring golden scores differ by more than 1e-6 relative."""
    row_of = {key: row for row, key in enumerate(run.corpus_ids)}
    compared = 0
    for ranking, golden in zip(run.rankings, run.read("rankings.json")["path_a"], strict=True):
        if golden["tie_at_cut"]:
            continue
        ours = [row_of[key] for key in ranking.passage_ids]
        assert _same_order(golden["idx"], golden["score"], ours)
        np.testing.assert_allclose(ranking.scores[:20], golden["score"][:20], rtol=2e-5)
        compared += 1
    assert compared == 87


def test_same_dense_top_20(run: Run) -> None:
    row_of = {key: row for row, key in enumerate(run.corpus_ids)}
    retriever = DenseRetriever(index=run.memory.index, embedder=run.memory.embedder)
    rankings = retriever.retrieve([q.text for q in run.dataset.questions], top_k=len(run.corpus_ids))
    for ranking, golden in zip(rankings, run.read("rankings.json")["path_b"], strict=True):
        assert _same_order(golden["idx"], golden["score"], [row_of[key] for key in ranking.passage_ids])


def _same_order(golden_idx: list[int], golden_scores: list[float], ours: list[int]) -> bool:
    """Whether our order of the golden 20 is theirs, up to swaps within runs of scores too close to tell."""
    place = {row: i for i, row in enumerate(ours)}
    return (
        all(
            place[a] < place[b] or abs(x - y) <= 1e-6 * abs(x)
            for a, b, x, y in zip(
                golden_idx[:19], golden_idx[1:20], golden_scores[:19], golden_scores[1:20], strict=True
            )
        )
        and max(place[row] for row in golden_idx[:20]) < 22
    )
