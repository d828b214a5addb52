"""Small indexes on the disk, and an extractor and an embedder that count what they are asked for."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Document, Extraction, Passage, Role, Triple

GRAPH = GraphOptions(synonym_threshold=0.4)
ADA = "Ada Vale founded Northwind Press."
BERGEN = "Northwind Press stands in Bergen."
TOVE = "Tove Lund joined Northwind Press."
BREAD = "Rye bread feeds Northwind's printers."
DOCUMENTS = [
    Document(ADA, "a.md", {"title": "Ada"}),
    Document(BERGEN, "a.md"),
    Document(TOVE, "b.md", {"n": [1, 2.5, None, "東京"]}),
    Document(BREAD, "c.md"),
]


class CountingExtractor:
    """One triple per passage: its first two words, its third, the rest. What is in `failing` fails."""

    calls_per_passage = 1

    def __init__(self, *, producer: str = "words-1") -> None:
        self.producer = producer
        self.failing: set[str] = set()
        self.asked: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        self.asked += [passage.text for passage in passages]
        return [self._extraction(passage.text) for passage in passages]

    def _extraction(self, text: str) -> Extraction:
        if text in self.failing:
            return Extraction(
                status="failed", reason="no JSON", reply=f"raw {text[::-1]}", producer=self.producer
            )
        words = text.rstrip(".").split(maxsplit=3)
        triple = Triple(" ".join(words[:2]), words[2], " ".join(words[3:]))
        return Extraction(entities=(triple.subject,), triples=(triple,), producer=self.producer)


class CountingEmbedder:
    """Hashes, and counts; fails at a text that is in `failing`."""

    def __init__(self, *, dim: int = 32) -> None:
        self._hashing = HashingEmbedder(dim=dim)
        self.identity = self._hashing.identity
        self.asked: list[str] = []
        self.failing: set[str] = set()

    def instruction(self, role: Role) -> str:
        return ""

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        if self.failing & set(texts):
            raise ConnectionError("the model is gone")
        self.asked += texts
        return self._hashing.embed(texts, role, progress)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


Open = Callable[..., HippoRAG]


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Open]:
    with opener(tmp_path) as open_one:
        yield open_one


@contextmanager
def opener(folder: Path) -> Iterator[Open]:
    """Opens the index `index` of this test's folder, or another one; closes all in the end."""
    opened: list[HippoRAG] = []

    def open_one(name: str = "index", **options: object) -> HippoRAG:
        path = folder / name
        if not options.get("read_only"):
            options = {"embedder": CountingEmbedder(), "extractor": CountingExtractor(), **options}
        if not path.exists():
            options = {"graph": GRAPH, **options}
        opened.append(HippoRAG.open(path, **options))
        return opened[-1]

    try:
        yield open_one
    finally:
        for memory in opened:
            memory.close()


def texts_of(memory: HippoRAG) -> list[str]:
    return sorted(passage.text for passage in memory.index.passages)


def files_of(directory: Path) -> dict[str, bytes]:
    """Every file of an index but the writer's lock, by its path within."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "writer.lock"
    }


def state_of(index: Index) -> dict[str, object]:
    """All that an index says, to the bit, in a form that compares."""
    statements, synonyms, adjacency = index.statements, index.synonyms, index.graph.adjacency
    tensors = {
        "passage_emb": index.passage_emb,
        "phrase_emb": index.phrase_emb,
        "fact_emb": index.fact_emb,
        "statements": torch.stack([statements.passage_idx, statements.fact_idx]),
        "ends": torch.stack([statements.subject_idx, statements.object_idx]),
        "named": statements.named,
        "phrase_token_ptr": index.lexicon.phrase_tokens.row_ptr,
        "phrase_tokens": index.lexicon.phrase_tokens.values,
        "fact_token_ptr": index.lexicon.fact_tokens.row_ptr,
        "fact_tokens": index.lexicon.fact_tokens.values,
        "synonyms": torch.stack([synonyms.first_idx, synonyms.second_idx]),
        "cosine": synonyms.cosine,
        "row_ptr": adjacency.row_ptr,
        "col": adjacency.col,
        "weight": adjacency.weight,
    }
    parts = ("embedder", "text", "graph_options", "passages", "failed", "phrases", "facts")
    # repr tells -0.0 from 0.0, which no weight and no vector may turn into.
    return {
        **{part: getattr(index, part) for part in parts},
        "extractions": tuple(index.extractions),
        **{name: repr(tensor.tolist()) for name, tensor in tensors.items()},
    }
