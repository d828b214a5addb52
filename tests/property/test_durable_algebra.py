"""A history of a memory on the disk ends where a fresh build in the process does, whatever came between."""

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import ExtractionError
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.store.vectors import VectorFile, VectorType
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document

from .test_index_algebra import (
    DOCUMENTS,
    IDENTITIES,
    MENDS,
    PUTS,
    FakeExtractor,
    GivenExtractor,
    Mend,
    Model,
    Put,
    Removal,
    added,
    assert_same,
    documents_of,
    ranked,
    removals,
)

SETTINGS = settings(deadline=None, max_examples=35)
EMBEDDER = HashingEmbedder(dim=32)
OTHER = HashingEmbedder(dim=16, instructions={"fact": "as a fact"})
QUESTIONS = ["Where does Ana work?", "What lies in Norway?", "flood of 1963", "北京", "nothing of this"]
CALL = ["reopen", "refresh", "compact", "graph", "reembed", "precision", "fail"]


@dataclass(frozen=True)
class Step:
    """A change of the records, or a call that leaves them as they are; and what the extractor is like."""

    change: "list[Document] | Removal | Put | Mend | str"
    version: int
    failing: frozenset[str]


def histories(text: TextOptions) -> st.SearchStrategy[list[Step]]:
    changes = st.lists(DOCUMENTS, max_size=5) | removals(text) | PUTS | MENDS | st.sampled_from(CALL)
    failing = st.frozensets(st.sampled_from(["t0", "t1", "t2", "t3"]), max_size=2)
    steps = st.builds(Step, changes, st.sampled_from([0, 1]), failing)
    return st.lists(steps, min_size=2, max_size=7)


class Durable:
    """A memory in a directory, and the ways in which a history uses it."""

    def __init__(
        self,
        path: Path,
        text: TextOptions,
        graph: AnyGraphOptions,
        extractor: FakeExtractor,
        vectors: VectorType,
    ) -> None:
        self.path = path
        self.extractor = extractor
        self.graphs = [graph, replace(graph, synonym_threshold=0.2, synonym_cap=9)]
        self.vectors: VectorType = vectors
        self.embedder = EMBEDDER
        self.memory = HippoRAG.open(
            path, embedder=EMBEDDER, extractor=extractor, text=text, graph=graph, vectors=vectors
        )

    def reopen(self) -> None:
        self.memory.close()
        self.memory = HippoRAG.open(self.path, embedder=self.embedder, extractor=self.extractor)

    def apply(self, change: list[Document] | Removal | Put | Mend) -> None:
        memory = self.memory
        if isinstance(change, Removal):
            memory.remove(**{change.kind: change.names})
        elif isinstance(change, Mend):
            if change.kind == "retry":
                memory.retry_failed(permanent=change.permanent)
            elif change.producer in {None, *(e.producer for e in memory.index.extractions)}:
                memory.reextract(producer=change.producer)
        elif isinstance(change, Put) and any(
            change.source_id == s.source_id for p in memory.index.passages for s in p.sources
        ):
            memory.update(change.source_id, documents_of(change))
        else:
            memory.add(documents_of(change))

    def call(self, name: str) -> None:
        if name == "reopen":
            self.reopen()
        elif name == "refresh":
            assert not self.memory.refresh()
        elif name == "compact":
            self.memory.compact()
            disk = self.memory.stats().disk
            assert disk is not None
            assert (disk.spare_vectors, disk.removed) == (0, {})
        elif name == "graph":
            self.graphs.reverse()
            self.memory.rebuild_graph(self.graphs[0])
        elif name == "reembed":
            self.embedder = OTHER if self.embedder is EMBEDDER else EMBEDDER
            self.memory.reembed(self.embedder, vectors=self.vectors)
        elif name == "precision":
            self.vectors = "float16" if self.vectors == "float32" else "float32"
            self.memory.reembed(self.embedder, vectors=self.vectors)
        else:
            before = self.memory.index
            # One call that fails whatever the extractor does: nothing of it stays.
            with pytest.raises(ExtractionError):
                self.memory.add([Document("t8"), Document("t0", "b/t0", {"new": True})], on_error="fail")
            assert_same(self.memory.index, before)


class Rounded(HashingEmbedder):
    """Gives what a file of vectors gives back."""

    def __init__(self, embedder: HashingEmbedder, vectors: VectorType) -> None:
        self._of = embedder
        self._file = VectorFile(Path(), "", embedder.identity.dim, vectors)

    @property
    def identity(self):
        return self._of.identity

    def embed(self, texts, role, progress=lambda stage, done, total: None):
        return self._file.rounded(self._of.embed(texts, role, progress))


def assert_same_rankings(got: Index, expected: Index, embedder: HashingEmbedder) -> None:
    ours, theirs = (
        HippoRAGRetriever(index=index, embedder=embedder).retrieve(QUESTIONS, top_k=5)
        for index in (got, expected)
    )
    for a, b in zip(ours, theirs, strict=True):
        assert (a.passage_ids, a.route) == (b.passage_ids, b.route)
        assert all(math.isclose(x, y, abs_tol=1e-6) for x, y in zip(a.scores, b.scores, strict=True))


@pytest.mark.slow
@SETTINGS
@given(identity=IDENTITIES, vectors=st.sampled_from(["float32", "float16"]), data=st.data())
def test_any_history_on_the_disk_ends_at_the_build_of_what_is_left(
    identity: tuple[TextOptions, AnyGraphOptions], vectors: VectorType, data: st.DataObject
) -> None:
    text, graph = identity
    extractor = FakeExtractor()
    model = Model(text, extractor)
    with tempfile.TemporaryDirectory() as folder:
        durable = Durable(Path(folder) / "index", text, graph, extractor, vectors)
        try:
            for step in data.draw(histories(text)):
                extractor.version, extractor.failing = step.version, step.failing
                if isinstance(step.change, str):
                    durable.call(step.change)
                else:
                    durable.apply(step.change)
                    model.apply(step.change)
                with HippoRAG.open(durable.path, read_only=True) as reader:
                    assert_same(reader.index, durable.memory.index)
            assert durable.memory.check().findings == ()
            put = [document for document in model.left if document.metadata.keys() == {"n"}]
            others = [document for document in model.left if document not in put]
            expected = Indexer(
                embedder=Rounded(durable.embedder, durable.vectors),
                extractor=GivenExtractor(model.extractions),
                text=text,
                graph=durable.graphs[0],
            )
            fresh = added(expected, expected.empty(), others + put)
            assert_same(ranked(durable.memory.index), ranked(fresh))
            assert_same_rankings(durable.memory.index, fresh, durable.embedder)
            assert torch.isfinite(durable.memory.index.graph.adjacency.weight).all()
        finally:
            durable.memory.close()
