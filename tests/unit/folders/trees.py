"""A folder of small files, a memory for them, and what its models were asked."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError, BudgetError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.types import Extraction, Passage, Progress, Triple, no_progress


class NotingExtractor:
    """States of a passage that its first word leads to its last one, and notes whom it was asked about.

    A passage with a word of `failing` fails, and that may heal; one with "refuse" raises `BackendError`.
    After `budget` passages the budget is spent.
    """

    producer = "noting"
    calls_per_passage = 2

    def __init__(self, failing: Sequence[str] = (), budget: int | None = None) -> None:
        self.failing = set(failing)
        self.budget = budget
        self.asked: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        if self.budget is not None and len(self.asked) + len(passages) > self.budget:
            raise BudgetError("the budget is spent")
        found: list[Extraction] = []
        for passage in passages:
            words = passage.text.split()
            if "refuse" in words:
                raise BackendError("the backend refuses this text")
            self.asked.append(passage.text)
            found.append(self._of(words))
        return found

    def _of(self, words: Sequence[str]) -> Extraction:
        if self.failing & set(words):
            return Extraction(status="failed", reason="no reply", producer=self.producer)
        return Extraction(triples=(Triple(words[0], "leads to", words[-1]),), producer=self.producer)


def memory_of(extractor: NotingExtractor | None = None) -> HippoRAG:
    """A memory in this process."""
    return HippoRAG(
        indexer=Indexer(embedder=HashingEmbedder(dim=16), extractor=extractor or NotingExtractor())
    )


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """The files below `root`, made or overwritten."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def closed(*paths: Path) -> Iterator[None]:
    """Nobody may read these meanwhile; the test is skipped where that keeps nobody out."""
    for path in paths:
        path.chmod(0)
    try:
        if any(os.access(path, os.R_OK) for path in paths):
            pytest.skip("this process may read what nobody may (it is root, say)")
        yield
    finally:
        for path in paths:
            path.chmod(0o700)


def held(memory: HippoRAG) -> dict[str, list[str]]:
    """For each source, its texts by position."""
    found: dict[str, list[tuple[int, str]]] = {}
    for passage in memory.index.passages:
        for source in passage.sources:
            found.setdefault(source.source_id, []).append((source.position, passage.text))
    return {source: [text for _, text in sorted(found[source])] for source in sorted(found)}
