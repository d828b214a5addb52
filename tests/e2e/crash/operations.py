"""What is killed at every step: changes of a small durable index, and how to look at what they leave.

The index holds notes of three sources, one of them removed again, so that there is something to compact and a
file of each kind. Every operation may be repeated.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hipporag_torch import Document, HippoRAG
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.types import Extraction, Passage, Progress, Triple, no_progress

FIRST = [
    Document("Ada Vale founded Northwind Press", source_id="a.md"),
    Document("Northwind Press prints atlases", source_id="a.md"),
    Document("Tove Lund maps glaciers", source_id="b.md"),
    Document("Ferry bakes bread", source_id="gone.md"),
]
SECOND = [
    Document("Ada Vale moved Bergen", source_id="c.md"),
    Document("Northwind Press prints atlases", source_id="c.md"),
    Document("Bergen borders Norway", source_id="c.md"),
]


class WordExtractor:
    """Subject and object are the words around the lower-case one."""

    producer = "words"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(triples=(_triple(passage.text),), producer=self.producer) for passage in passages]


def _triple(text: str) -> Triple:
    words = text.split()
    verb = next(word for word in words if word.islower())
    place = words.index(verb)
    return Triple(" ".join(words[:place]), verb, " ".join(words[place + 1 :]))


def _open(directory: Path, *, read_only: bool = False) -> HippoRAG:
    return HippoRAG.open(
        directory, embedder=HashingEmbedder(dim=32), extractor=WordExtractor(), read_only=read_only
    )


def make(directory: Path) -> None:
    """The template."""
    with _open(directory) as memory:
        memory.add(FIRST)
        memory.remove(source_ids=["gone.md"])


def create(directory: Path) -> None:
    """A new index in an empty directory."""
    with _open(directory) as memory:
        memory.add(SECOND[:1])


def add(directory: Path) -> None:
    with _open(directory) as memory:
        memory.add(SECOND)


def update(directory: Path) -> None:
    with _open(directory) as memory:
        memory.update("a.md", ["Northwind Press prints atlases", "Ada Vale left Bergen"])


def remove(directory: Path) -> None:
    with _open(directory) as memory:
        memory.remove(source_ids=["b.md"])


def compact(directory: Path) -> None:
    with _open(directory) as memory:
        memory.compact()


def reembed(directory: Path) -> None:
    with HippoRAG.open(directory) as memory:
        memory.reembed(HashingEmbedder(dim=16))


def state(directory: Path) -> Any:
    """What a reader finds, after `check` has found nothing wrong; None where no index is yet."""
    if not (directory / "records.sqlite").exists() or not (directory / "records.sqlite").stat().st_size:
        return None
    with HippoRAG.open(directory) as memory:
        found = memory.check().findings
        assert not found, found
        index, disk = memory.index, memory.stats().disk
        assert disk is not None
        return {
            "passages": [
                [passage.text, [[source.source_id, source.position] for source in passage.sources]]
                for passage in index.passages
            ],
            "facts": [[fact.subject, fact.predicate, fact.object] for fact in index.facts],
            "vectors": [float(emb.sum()) for emb in (index.passage_emb, index.phrase_emb, index.fact_emb)],
            "weights": index.graph.adjacency.weight.tolist(),
            "embedders": sorted(kept.identity.dim for kept in disk.embedders),
            "removed": sum(disk.removed.values()),
        }


def ask(directory: Path) -> Any:
    """What a reader that writes nothing finds for a question."""
    with _open(directory, read_only=True) as memory:
        ranking = memory.retrieve(["Who founded Northwind Press"])[0]
        return [ranking.route, ranking.passages[0].text]
