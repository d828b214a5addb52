"""What `stats` says of a memory and of its directory."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.statistics import directory_bytes
from hipporag_torch.store.locks import WRITER_LOCK

from .store.conftest import (
    BERGEN,
    DOCUMENTS,
    GRAPH,
    TOVE,
    CountingEmbedder,
    CountingExtractor,
    Open,
    opener,
)


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Open]:
    with opener(tmp_path) as open_one:
        yield open_one


def test_the_counts_of_a_memory_in_the_process_and_on_the_disk_are_the_same(open_memory: Open) -> None:
    extractor = CountingExtractor()
    extractor.failing = {BERGEN}
    inside = HippoRAG(indexer=Indexer(embedder=CountingEmbedder(), extractor=extractor, graph=GRAPH))
    outside = open_memory(extractor=extractor)
    for memory in (inside, outside):
        memory.add(DOCUMENTS)
    ours, theirs = inside.stats(), outside.stats()
    assert ours.disk is None
    assert (ours.counts, ours.failed, ours.producers) == (theirs.counts, theirs.failed, theirs.producers)
    assert (ours.embedder, ours.text, ours.graph_options) == (theirs.embedder, theirs.text, GRAPH)
    assert (ours.counts.passages, ours.counts.sources, ours.counts.facts) == (4, 3, 3)
    assert (ours.without_facts, len(ours.failed)) == (0, 1)


def test_what_stands_in_the_directory(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.add(DOCUMENTS)
    memory.remove(texts=[TOVE])
    disk = memory.stats().disk
    assert disk is not None
    assert (disk.path, disk.generation, disk.last_action) == (str(tmp_path / "index"), 2, "remove")
    assert disk.removed == {"passages": 1, "sources": 1, "extractions": 1, "phrases": 1, "facts": 1}
    assert (disk.spare_vectors, disk.staged_extractions, disk.interrupted) == (3, 0, "")
    assert disk.bytes == directory_bytes(tmp_path / "index") > 0
    memory.reembed(CountingEmbedder(dim=16), vectors="float16")
    memory.add(["Lise Holm paints ships."])
    disk = memory.stats().disk
    assert disk is not None
    kept = [(e.identity.dim, e.generation, e.vector_type, e.main) for e in disk.embedders]
    assert kept == [(32, 2, "float32", False), (16, 3, "float16", True)]


def test_a_directory_without_its_file_of_keys_still_has_statistics(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.add(DOCUMENTS)
    memory.remove(texts=[TOVE])
    for path in (tmp_path / "index").glob("vectors/*.keys"):
        path.unlink()
    disk = memory.stats().disk
    assert disk is not None
    assert disk.spare_vectors == 0


def test_a_writer_that_was_killed_is_told_until_the_next_change(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.add(DOCUMENTS)
    note = {"action": "compact", "pid": 7, "host": "here"}
    (tmp_path / "index" / WRITER_LOCK).write_text(json.dumps(note))
    with open_memory(read_only=True) as reader:
        assert reader.stats().disk.interrupted == "action compact, process 7 on here"  # pyright: ignore[reportOptionalMemberAccess]
    memory.add(["Lise Holm paints ships."])
    assert memory.stats().disk.interrupted == ""  # pyright: ignore[reportOptionalMemberAccess]
