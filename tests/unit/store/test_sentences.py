"""Sentences in the place of facts, and mention edges, on the disk."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.store.store import Store
from hipporag_torch.types import Document, Extraction, Passage, Sentence
from hipporag_torch.upkeep import repair

from .conftest import CountingEmbedder, state_of

GRAPH = GraphOptions(synonym_threshold=0.4, mention_weight=0.25)
ADA = "Ada Vale founded a press. It stands in Bergen."
TOVE = "Tove Lund met Ada Vale. It stands in Bergen."
RAIN = "The rain in Bergen never ends."
TEXTS = [ADA, TOVE, RAIN]


class SentenceExtractor:
    """Every sentence with its runs of capitals but the first word; a text about rain states nothing."""

    producer = "capitals"
    calls_per_passage = 1

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [self._extraction(passage.text) for passage in passages]

    def _extraction(self, text: str) -> Extraction:
        told = [part.strip() + "." for part in text.rstrip(".").split(".")]
        known = ("Ada Vale", "Tove Lund", "Bergen")
        said = [(Sentence(one), tuple(name for name in known if name in one)) for one in told]
        return Extraction(sentences=() if "rain" in text else tuple(said), producer=self.producer)


def opened(path: Path, **options: object) -> HippoRAG:
    if not path.exists():
        options = {"graph": GRAPH, **options}
    return HippoRAG.open(
        path, **{"embedder": CountingEmbedder(), "extractor": SentenceExtractor(), **options}
    )


@pytest.fixture
def index(tmp_path: Path) -> Path:
    with opened(tmp_path / "index") as memory:
        memory.add([Document(text, f"{n}.md") for n, text in enumerate(TEXTS)])
    return tmp_path / "index"


@pytest.fixture
def memory(index: Path) -> Iterator[HippoRAG]:
    with opened(index) as one:
        yield one


def built(*texts: str, dim: int = 32) -> dict[str, object]:
    indexer = Indexer(embedder=HashingEmbedder(dim=dim), extractor=SentenceExtractor(), graph=GRAPH)
    documents = [Document(text, f"{TEXTS.index(text)}.md") for text in texts]
    return state_of(indexer.add(indexer.empty(), documents)[0])


def test_all_comes_back(memory: HippoRAG) -> None:
    assert memory.index.facts == (
        Sentence("Ada Vale founded a press."),
        Sentence("It stands in Bergen."),
        Sentence("Tove Lund met Ada Vale."),
    )
    assert state_of(memory.index) == built(*TEXTS)
    assert memory.check().findings == ()


def test_a_mention_comes_and_goes_with_the_passage_that_states_its_name(memory: HippoRAG) -> None:
    memory.remove(texts=[ADA])
    assert state_of(memory.index) == built(TOVE, RAIN)
    memory.remove(texts=[TOVE])
    assert (memory.index.phrases, memory.index.graph.num_edges) == ((), 0)
    memory.add([Document(ADA, "0.md")])
    assert state_of(memory.index) == built(ADA, RAIN)
    assert memory.check().findings == ()


def test_compacting_keeps_live_sentences_and_no_byte_of_dead_ones(index: Path) -> None:
    with opened(index) as memory:
        memory.remove(texts=[TOVE])
        assert b"Tove Lund met" in (index / "records.sqlite").read_bytes()
        report = memory.compact()
        assert report.dropped["facts"] == 1
        assert memory.check().findings == ()
    assert b"Tove Lund met" not in (index / "records.sqlite").read_bytes()
    with opened(index) as memory:
        assert state_of(memory.index) == built(ADA, RAIN)


def test_another_embedder_embeds_the_sentences_and_the_first_keeps_its_own(index: Path) -> None:
    other = CountingEmbedder(dim=16)
    with opened(index) as memory:
        memory.reembed(other)
        assert {"Ada Vale founded a press.", "It stands in Bergen."} <= set(other.asked)
        assert state_of(memory.index) == built(*TEXTS, dim=16)
        memory.remove(texts=[TOVE])
        # The first embedder is behind now: compaction finds its vectors by the texts of what is alive.
        memory.compact()
        first = CountingEmbedder()
        memory.reembed(first)
        assert first.asked == []
        assert state_of(memory.index) == built(ADA, RAIN)
        assert memory.check().findings == ()


@pytest.mark.parametrize("lost", ["arrays", "fact", "facts"])
def test_what_is_damaged_is_repaired(index: Path, lost: str) -> None:
    if lost == "facts":
        with closing(sqlite3.connect(index / "records.sqlite")) as connection, connection:
            connection.execute("UPDATE facts SET predicate = '' WHERE subject = 'It stands in Bergen.'")
    else:
        (path,) = index.glob("arrays/*" if lost == "arrays" else "vectors/*-fact-*.rows")
        path.unlink()
    report = repair(Store(index), CountingEmbedder())
    assert (report.unmended, report.quarantined) == ((), ())
    with opened(index) as memory:
        assert state_of(memory.index) == built(*TEXTS)


def test_a_graph_without_mentions_and_with_them_again(index: Path) -> None:
    with opened(index) as memory:
        edges = memory.index.graph.num_edges
        memory.rebuild_graph(GraphOptions(synonym_threshold=0.4))
        assert memory.index.graph.num_edges < edges
    with opened(index) as memory:
        assert memory.check().findings == ()
        memory.rebuild_graph(GRAPH)
        assert state_of(memory.index) == built(*TEXTS)
