"""What was paid for is on the disk at once, and is not paid for again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hipporag_torch.errors import BackendError, ExtractionError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.types import Document, Extraction, Passage

from .store.conftest import (
    ADA,
    BERGEN,
    BREAD,
    DOCUMENTS,
    TOVE,
    CountingEmbedder,
    CountingExtractor,
    Open,
    opener,
    state_of,
    texts_of,
)


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Open]:
    with opener(tmp_path) as open_one:
        yield open_one


def disk(memory: HippoRAG) -> tuple[int, int]:
    """How many extractions are staged, and how many vectors no generation names."""
    found = memory.stats().disk
    assert found is not None
    return found.staged_extractions, found.spare_vectors


def test_failing_lists_all_failures_commits_nothing_and_keeps_what_was_paid_for(open_memory: Open) -> None:
    extractor, embedder = CountingExtractor(), CountingEmbedder()
    memory = open_memory(extractor=extractor, embedder=embedder)
    memory.add([ADA])
    before, generation = state_of(memory.index), memory.stats().disk.generation  # pyright: ignore[reportOptionalMemberAccess]
    extractor.failing, extractor.asked, embedder.asked = {BERGEN, BREAD}, [], []
    with pytest.raises(ExtractionError, match=r"2 of 3 passages could not be extracted") as raised:
        memory.add(DOCUMENTS, on_error="fail")
    passage_id = memory.index.text.passage_id
    assert {f.passage_id for f in raised.value.failed} == {passage_id(BERGEN), passage_id(BREAD)}
    assert {f.reply for f in raised.value.failed} == {f"raw {BERGEN[::-1]}", f"raw {BREAD[::-1]}"}
    assert state_of(memory.index) == before
    assert memory.stats().disk.generation == generation  # pyright: ignore[reportOptionalMemberAccess]
    assert sorted(extractor.asked) == sorted([BERGEN, BREAD, TOVE])
    assert disk(memory) == (1, 0)
    memory.close()

    extractor, embedder = CountingExtractor(), CountingEmbedder()
    memory = open_memory(extractor=extractor, embedder=embedder)
    report = memory.add(DOCUMENTS, on_error="fail")
    assert (report.passages_added, report.failed) == (3, ())
    assert sorted(extractor.asked) == sorted([BERGEN, BREAD])
    assert ADA not in embedder.asked
    assert disk(memory) == (0, 0)
    assert memory.check().findings == ()


def test_quarantined_passages_are_listed_found_and_tried_again_by_adding_them(open_memory: Open) -> None:
    extractor = CountingExtractor()
    memory = open_memory(extractor=extractor)
    extractor.failing = {BERGEN}
    report = memory.add(DOCUMENTS)
    (failed,) = report.failed
    assert (failed.source_ids, failed.reason) == (("a.md",), "no JSON")
    assert [f.passage_id for f in memory.stats().failed] == [failed.passage_id]
    (ranking,) = memory.retrieve(["Where does Northwind Press stand, in Bergen?"], top_k=9)
    assert BERGEN in [passage.text for passage in ranking.passages]
    memory.close()

    extractor = CountingExtractor()
    memory = open_memory(extractor=extractor)
    assert memory.plan_add([DOCUMENTS[1]]).passages_retried == 1
    memory.add([DOCUMENTS[1]])
    assert extractor.asked == [BERGEN]
    assert memory.stats().failed == ()


def test_an_embedder_that_dies_leaves_extractions_and_vectors_for_the_next_run(open_memory: Open) -> None:
    extractor, embedder = CountingExtractor(), CountingEmbedder()
    memory = open_memory(extractor=extractor, embedder=embedder)
    embedder.failing = {"northwind press"}
    with pytest.raises(ConnectionError):
        memory.add(DOCUMENTS)
    assert texts_of(memory) == []
    assert disk(memory) == (4, 4)
    memory.close()

    extractor, again = CountingExtractor(), CountingEmbedder()
    memory = open_memory(extractor=extractor, embedder=again)
    memory.add(DOCUMENTS)
    assert extractor.asked == []
    assert not set(embedder.asked) & set(again.asked)
    assert disk(memory) == (0, 0)
    assert memory.check().findings == ()


def test_what_is_staged_by_another_producer_is_not_taken(open_memory: Open) -> None:
    extractor = CountingExtractor()
    memory = open_memory(extractor=extractor)
    extractor.failing = {BREAD}
    with pytest.raises(ExtractionError):
        memory.add(DOCUMENTS, on_error="fail")
    memory.close()
    extractor = CountingExtractor(producer="words-2")
    memory = open_memory(extractor=extractor)
    memory.add(DOCUMENTS)
    assert len(extractor.asked) == 4
    assert set(memory.stats().producers) == {"words-2"}
    assert disk(memory) == (0, 0), "those of the other producer have done their work too"


def test_an_interrupted_reextraction_goes_on_where_it_stopped(open_memory: Open) -> None:
    memory = open_memory()
    memory.add(DOCUMENTS)
    memory.close()
    extractor = CountingExtractor(producer="words-2")
    extractor.failing = {TOVE}
    memory = open_memory(extractor=extractor)
    with pytest.raises(ExtractionError):
        memory.reextract(on_error="fail")
    assert set(memory.stats().producers) == {"words-1"}
    extractor.failing, extractor.asked = set(), []
    memory.reextract(on_error="fail")
    assert extractor.asked == [TOVE]
    assert memory.stats().producers == {"words-2": 4}


def test_an_extractor_that_miscounts_changes_nothing(open_memory: Open) -> None:
    class Short(CountingExtractor):
        def extract(self, passages: list[Passage], progress: object = None) -> list[Extraction]:  # pyright: ignore[reportIncompatibleMethodOverride]
            return super().extract(passages)[1:]

    memory = open_memory(extractor=Short())
    with pytest.raises(BackendError, match=r"gave 3 extractions for 4|gave nothing for 1"):
        memory.add(DOCUMENTS)
    assert texts_of(memory) == []
    assert disk(memory) == (0, 0)


def test_progress_counts_what_was_staged(open_memory: Open) -> None:
    extractor = CountingExtractor()
    memory = open_memory(extractor=extractor)
    extractor.failing = {BREAD}
    with pytest.raises(ExtractionError):
        memory.add(DOCUMENTS, on_error="fail")
    extractor.failing = set()
    told: list[tuple[str, int, int]] = []
    memory.add([Document(BREAD), *DOCUMENTS], lambda *step: told.append(step))
    assert ("extract", 3, 4) in told
    assert all(done <= total for _, done, total in told)
