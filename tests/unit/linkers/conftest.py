"""What the linkers' tests share: indexes of stated facts, and an embedder that looks vectors up."""

from collections.abc import Mapping, Sequence

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Embedder, EmbedderIdentity, Progress, no_progress
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, Extraction, Passage, Role, Triple

DIM = 256
Facts = Mapping[str, Sequence[tuple[str, str, str]]]

FACTS: Facts = {
    "Ada Vale founded Northwind Press.": [("Ada Vale", "founded", "Northwind Press")],
    "Northwind Press is a press in Bergen, Norway.": [
        ("Northwind Press", "is in", "Bergen"),
        ("Bergen", "is in", "Norway"),
        ("Northwind Press", "is", "small press"),
    ],
    "The Press of Bergen prints atlases since 1904.": [
        ("The Press of Bergen", "prints", "atlases"),
        ("The Press of Bergen", "prints since", "1904"),
        ("Who", "asks", "IT"),
    ],
    "奥州市は東北地方の都市である。": [("奥州市", "位置", "東北地方")],
}


class TableEmbedder:
    """Looks every text's vector up in a table, the last one for all others; remembers what it was asked."""

    def __init__(self, table: Mapping[str, Sequence[float]], otherwise: Sequence[float]) -> None:
        self._table, self._otherwise = table, otherwise
        self.calls: list[tuple[Role, list[str]]] = []

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("table", "1", len(self._otherwise), "none")

    def instruction(self, role: Role) -> str:
        return ""

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        self.calls.append((role, list(texts)))
        rows = [self._table.get(text, self._otherwise) for text in texts]
        return torch.tensor(rows, dtype=torch.float32).reshape(len(texts), len(self._otherwise))

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


class WatchedEmbedder(HashingEmbedder):
    """Hashes, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(dim=DIM)
        self.calls: list[tuple[Role, list[str]]] = []

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        self.calls.append((role, list(texts)))
        return super().embed(texts, role, progress)


class StatedExtractor:
    """States the triples of a table, and lists their ends as entities."""

    producer = "stated"
    calls_per_passage = 0

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        extractions = []
        for passage in passages:
            triples = tuple(Triple(*parts) for parts in self._facts[passage.text])
            ends = {end: None for triple in triples for end in (triple.subject, triple.object)}
            extractions.append(Extraction(entities=tuple(ends), triples=triples))
        return extractions


def index_of(
    facts: Facts = FACTS, embedder: Embedder | None = None, text: TextOptions | None = None
) -> Index:
    """Index of {passage text: its triples}; without synonyms."""
    indexer = Indexer(
        embedder=embedder or HashingEmbedder(dim=DIM),
        extractor=StatedExtractor(facts),
        text=text or TextOptions(),
        graph=GraphOptions(synonym_threshold=1.1),
    )
    return indexer.add(indexer.empty(), [Document(text) for text in facts])[0]


def named(index: Index, rows: Sequence[int]) -> list[str]:
    """The phrases of some rows."""
    return [index.phrases[row] for row in rows]


@pytest.fixture(scope="session")
def index() -> Index:
    """The index of FACTS, embedded by hashing."""
    return index_of()
