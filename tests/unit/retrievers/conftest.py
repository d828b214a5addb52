"""Fakes that the retrievers' tests share: an embedder that looks vectors up, and indexes of stated facts."""

from collections.abc import Callable, Mapping, Sequence

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Embedder, EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Document, Extraction, Passage, Role, Sentence, Triple

Facts = Mapping[str, Sequence[tuple[str, str, str]]]


class TableEmbedder:
    """Looks every text's vector up in a table; remembers what it was asked."""

    def __init__(
        self,
        table: Mapping[str, Sequence[float]],
        *,
        otherwise: Sequence[float] | None = None,
        instructions: Mapping[Role, str] | None = None,
        name: str = "table",
    ) -> None:
        self._table = table
        self._otherwise = otherwise
        self._instructions = dict(instructions or {})
        self._name = name
        self.calls: list[tuple[Role, list[str]]] = []

    @property
    def identity(self) -> EmbedderIdentity:
        dim = len(next(iter(self._table.values()), self._otherwise or ()))
        return EmbedderIdentity(
            self._name, "1", dim, "none", instructions=tuple(sorted(self._instructions.items()))
        )

    def instruction(self, role: Role) -> str:
        return self._instructions.get(role, "")

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        self.calls.append((role, list(texts)))
        if self._otherwise is None:
            return torch.tensor([self._table[text] for text in texts], dtype=torch.float32)
        return torch.tensor([self._table.get(text, self._otherwise) for text in texts], dtype=torch.float32)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


class GivenExtractor:
    producer = "given"
    calls_per_passage = 0

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(triples=tuple(Triple(*t) for t in self._facts[p.text])) for p in passages]


class GivenSentences:
    """States {passage text: {sentence: its names}}."""

    producer = "given"
    calls_per_passage = 0

    def __init__(self, sentences: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        self._sentences = sentences

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [
            Extraction(
                sentences=tuple(
                    (Sentence(text), tuple(names)) for text, names in self._sentences[p.text].items()
                )
            )
            for p in passages
        ]


@pytest.fixture
def table_embedder() -> type[TableEmbedder]:
    return TableEmbedder


@pytest.fixture(scope="session")
def index_of() -> Callable[..., Index]:
    """Index of {passage text: its triples}; without synonyms, so that every edge is a stated one."""

    def made(facts: Facts, embedder: Embedder | None = None, synonym_threshold: float = 1.1) -> Index:
        indexer = Indexer(
            embedder=embedder or HashingEmbedder(dim=64),
            extractor=GivenExtractor(facts),
            graph=GraphOptions(synonym_threshold=synonym_threshold),
        )
        return indexer.add(indexer.empty(), [Document(text) for text in facts])[0]

    return made


@pytest.fixture(scope="session")
def sentence_index_of() -> Callable[..., Index]:
    """Index of {passage text: {sentence: its names}}."""

    def made(sentences: Mapping[str, Mapping[str, Sequence[str]]], embedder: Embedder | None = None) -> Index:
        indexer = Indexer(
            embedder=embedder or HashingEmbedder(dim=64),
            extractor=GivenSentences(sentences),
            graph=GraphOptions(synonym_threshold=1.1),
        )
        return indexer.add(indexer.empty(), [Document(text) for text in sentences])[0]

    return made
