"""Which phrases are written as names: what a question's words may be matched with."""

from collections.abc import Iterable
from dataclasses import dataclass

from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction


@dataclass(frozen=True)
class Names:
    """How one extraction tells names from other phrases.

    A capital makes a name. Where there can be none, in a script without case or in a text that has lost its
    case, a name is what the extractor lists among its entities.
    """

    entities: frozenset[str]
    has_case: bool

    @staticmethod
    def of(extraction: Extraction, text: TextOptions) -> "Names":
        return Names(
            frozenset(map(text.phrase, extraction.entities)),
            any(map(_has_capital, _written(extraction))),
        )

    def has(self, written: str, key: str) -> bool:
        """Whether `written`, whose key is `key`, is a name."""
        if _has_capital(written):
            return True
        return key in self.entities and not (self.has_case and _is_cased(written)) and _has_letter(written)


def _written(extraction: Extraction) -> Iterable[str]:
    """The ends of all statements, as they were written."""
    for triple in extraction.triples:
        yield triple.subject
        yield triple.object
    for _, names in extraction.sentences:
        yield from names


def _has_capital(text: str) -> bool:
    return text != text.lower()


def _is_cased(text: str) -> bool:
    """Whether it has a letter that may be a capital. Georgian has an upper case, but not for names."""
    return text.title() != text.lower()


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))
