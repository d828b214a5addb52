"""Extractions that stand in a file already: a paper's frozen ones, or your own triples."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.extractors.triples import read_entities, read_sentences, read_triples
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage

EXTRACTED = ("extracted_entities", "extracted_triples", "extracted_sentences")
"""What a document of the file says about its passage; the last is our own, and absent where there is none."""


class StoredExtractor:
    """Reads HippoRAG's JSON: `{"docs": [{passage, extracted_entities, extracted_triples}]}`.

    Sentences that stand in the place of triples are under a key of ours, `extracted_sentences`: lists of a
    text and of the names in it. Malformed triples, sentences and entities are dropped and counted by kind.

    Passages are looked up by their text; those of the file that are not indexed are ignored, those that
    the file lacks fail, so they are indexed by their vectors alone and listed in the report.

    Raises `ConfigError` if the file is missing, `InputError` if it is not of this shape.
    """

    calls_per_passage = 0

    def __init__(self, *, path: str | Path) -> None:
        self._path = Path(path)
        self._docs = docs_by_passage(self._path)
        self._digest = hashlib.sha256(self._path.read_bytes()).hexdigest()[:16]

    @property
    def producer(self) -> str:
        return f"stored:{self._path.name}:{self._digest}"

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order."""
        extracted = [self._extraction(self._docs.get(passage.text)) for passage in passages]
        progress("extract", len(passages), len(passages))
        return extracted

    def _extraction(self, doc: Mapping[str, Any] | None) -> Extraction:
        producer = self.producer
        if doc is None:
            return Extraction(
                status="failed", reason=f"{self._path.name} has no such passage", producer=producer
            )
        dropped: Counter[str] = Counter()
        entities = read_entities(doc.get("extracted_entities", []), dropped)
        triples = read_triples(doc.get("extracted_triples", []), dropped)
        sentences = read_sentences(doc.get("extracted_sentences", []), dropped)
        return Extraction(
            entities, triples, sentences, producer=producer, dropped=dict(sorted(dropped.items()))
        )


def docs_by_passage(path: Path) -> dict[str, Mapping[str, Any]]:
    """The documents of an extraction file by their passage, in the file's order.

    Raises `ConfigError` if the file is missing, `InputError` if it is not of HippoRAG's shape, or if a
    passage stands twice with different extractions.
    """
    if not path.is_file():
        raise ConfigError(
            f"there is no extraction file {path} (looked from {Path.cwd()}); set extractor.path, "
            "or extractor=none to search by passage vectors alone"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise InputError(
            f"{path} is not valid JSON: {error}; expected {{'docs': [{{'passage': …}}]}}"
        ) from error
    docs = content.get("docs") if isinstance(content, dict) else None
    if not isinstance(docs, list):
        got = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise InputError(f"{path} must hold an object with a list 'docs', got {got!r:.200}")
    by_passage: dict[str, Mapping[str, Any]] = {}
    for number, doc in enumerate(docs):
        if not isinstance(doc, dict) or not isinstance(doc.get("passage"), str):
            raise InputError(
                f"{path}, docs[{number}]: expected an object with a text 'passage', got {doc!r:.120}"
            )
        known = by_passage.get(doc["passage"], doc)
        if any(known.get(key) != doc.get(key) for key in EXTRACTED):
            raise InputError(
                f"{path}, docs[{number}]: the passage {doc['passage']!r:.80} stands twice, with different "
                "extractions; keep one of them"
            )
        by_passage[doc["passage"]] = doc
    return by_passage
