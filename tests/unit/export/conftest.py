"""Indexes to export: one whose every number is known, one whose texts are hard to write."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Document, Extraction, Passage, Role, Sentence, Triple

HOSTILE = "\"Title\" <b>&amp;</b>\n\ttabs, 'quotes'\x00\x07\x1b, \\ and 👩‍👩‍👧\u2028end\ufffe"
WARSAW = "Marie was born in Warsaw and lived there."
VARSOVIA = "Varsovia is Warsaw."
VISTULA = "Warszawa lies on the Vistula."
UNREAD = "Nobody could read this."
PETRA = "Petra left Oslo for Rome. It rains. She saw Oslo again."
ROME = "Rome is far from Oslo."


class TableEmbedder:
    """Looks phrases' vectors up; every other text points its own way."""

    identity = EmbedderIdentity("table", "1", 3, "none")
    table: ClassVar = {"warsaw": [1.0, 0.0, 0.0], "varsovia": [0.6, 0.8, 0.0], "warszawa": [0.6, -0.8, 0.0]}

    def instruction(self, role: Role) -> str:
        return ""

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        return torch.tensor([self.table.get(t, [0.0, 0.0, 1.0]) for t in texts]).reshape(-1, 3)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


class GivenExtractor:
    """Gives what it was given for a passage's text, and fails for other passages."""

    producer = "given:1"
    calls_per_passage = 0

    def __init__(self, given: Mapping[str, Extraction]) -> None:
        self._given = given

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        failed = Extraction(status="failed", reason="no reply", producer=self.producer, reply='{"cut')
        return [self._given.get(passage.text, failed) for passage in passages]


def stated(*triples: tuple[str, str, str]) -> Extraction:
    entities = tuple(dict.fromkeys(end for s, _, o in triples for end in (s, o)))
    return Extraction(entities, tuple(Triple(*t) for t in triples), producer="given:1")


GIVEN = {
    WARSAW: stated(("Marie", "born in", "Warsaw"), ("Marie", "lived in", "Warsaw")),
    VARSOVIA: stated(("Varsovia", "is", "Warsaw"), ("varsovia", "is", "warsaw")),
    VISTULA: stated(("Warszawa", "lies on", "Vistula")),
}


@pytest.fixture
def known() -> Index:
    """Three passages that were read and one that failed.

    Synonyms are warsaw with either of its other names (0.6), and marie with vistula (1).
    """
    indexer = Indexer(
        embedder=TableEmbedder(),
        extractor=GivenExtractor(GIVEN),
        graph=GraphOptions(synonym_threshold=0.5),
    )
    documents = [
        Document(WARSAW, "a.md", {"title": "Marie"}),
        Document(WARSAW, "b.md"),
        Document(VARSOVIA, "a.md", {"page": 7, "who": "Zoë"}),
        Document(VISTULA, "a.md"),
        Document(UNREAD, "c.md"),
    ]
    return indexer.add(indexer.empty(), documents)[0]


TOLD = {
    PETRA: Extraction(
        ("Petra", "Oslo", "Rome"),
        sentences=(
            (Sentence("Petra left Oslo for Rome."), ("Petra", "Oslo", "Rome")),
            (Sentence("It rains."), ()),
            (Sentence("She saw Oslo again."), ("Oslo",)),
        ),
        producer="given:1",
    ),
    ROME: stated(("Rome", "is", "Far")),
}


@pytest.fixture
def told() -> Index:
    """A passage that states sentences and one that states a triple and mentions Oslo."""
    indexer = Indexer(
        embedder=TableEmbedder(),
        extractor=GivenExtractor(TOLD),
        graph=GraphOptions(synonym_threshold=2.0, mention_weight=0.25),
    )
    return indexer.add(indexer.empty(), [Document(text) for text in TOLD])[0]


@pytest.fixture
def hostile() -> Index:
    """Texts, phrases, metadata and predicates that break what doesn't escape them."""
    given = {
        HOSTILE: stated(
            ('"a" <b>', "says\n\x00", "👩‍👩‍👧 & co"),
            ("nonchar \ufffe", "is", "nonchar \uffff"),
            ("nonchar \ufffd", "is not", "東京"),
        )
    }
    indexer = Indexer(embedder=HashingEmbedder(), extractor=GivenExtractor(given))
    return indexer.add(indexer.empty(), [Document(HOSTILE, HOSTILE, {HOSTILE: [HOSTILE, None]})])[0]


@pytest.fixture
def empty() -> Index:
    return Indexer(embedder=HashingEmbedder(), extractor=GivenExtractor({})).empty()
