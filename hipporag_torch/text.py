"""Text as keys: phrase normalisation, fact texts, content ids and answer normalisation. Pure functions."""

import hashlib
import re
import string
import unicodedata
from dataclasses import dataclass
from typing import Literal

from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Fact, Sentence, Triple

# Joiners are invisible but carry meaning inside Persian, Hindi and other words.
_JOINERS = "\u200c\u200d"
# Grapheme joiner, Hangul fillers, Mongolian and other variation selectors, the blank Braille pattern.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_NOT_REFERENCE = re.compile(r"[^a-z0-9 ]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text becomes keys. What an index was built with is part of its identity.

    normalisation: `unicode` keeps every script and every symbol that carries meaning;
        `reference` keeps a-z, 0-9 and spaces only, as the reference implementation does.
    fact_template: the text that is embedded for a fact: `plain` is "subject predicate object",
        `repr` is Python's repr of the tuple, as the reference embeds it.
    content_id: `sha256`, or `md5` for ids equal to the reference's `chunk-<md5>`.
    """

    normalisation: Literal["unicode", "reference"] = "unicode"
    fact_template: Literal["plain", "repr"] = "plain"
    content_id: Literal["sha256", "md5"] = "sha256"

    def __post_init__(self) -> None:
        for name, allowed in (
            ("normalisation", ("unicode", "reference")),
            ("fact_template", ("plain", "repr")),
            ("content_id", ("sha256", "md5")),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"text.{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}"
                )

    def phrase(self, text: str) -> str:
        """The key of a phrase. Empty under `unicode` only if nothing visible is left."""
        return unicode_key(text) if self.normalisation == "unicode" else reference_key(text)

    def fact(self, triple: Triple) -> Triple | None:
        """The normalised triple, or None if a part is empty where empty keys are not allowed."""
        fact = Triple(self.phrase(triple.subject), self.phrase(triple.predicate), self.phrase(triple.object))
        if self.normalisation == "unicode" and not (fact.subject and fact.predicate and fact.object):
            return None
        return fact

    def sentence(self, sentence: Sentence) -> Sentence:
        """The sentence with single spaces: capitals and marks stay, which embedders read."""
        return Sentence(" ".join(sentence.text.split()))

    def fact_text(self, fact: Fact) -> str:
        """The text that is embedded for a normalised triple, or for a sentence."""
        if isinstance(fact, Sentence):
            return fact.text
        if self.fact_template == "repr":
            return repr((fact.subject, fact.predicate, fact.object))
        return f"{fact.subject} {fact.predicate} {fact.object}"

    def passage_id(self, text: str) -> str:
        """A passage's id: the same text has the same id, in every index and process."""
        encoded = text.encode("utf-8")
        if self.content_id == "md5":
            return "chunk-" + hashlib.md5(encoded, usedforsecurity=False).hexdigest()
        return "passage-" + hashlib.sha256(encoded).hexdigest()[:32]


def unicode_key(text: str) -> str:
    """NFKC, case-folded, what cannot be seen removed, whitespace squeezed.

    C, C++ and C# stay three keys; no script is wiped; the result is a fixed point.
    """
    if not text.isascii() or not text.isprintable():
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        # Removing a character can bring two composable ones together: compose again.
        text = unicodedata.normalize("NFKC", "".join(filter(_is_visible, folded)))
    return " ".join(text.casefold().split()).strip(_JOINERS + " ")


def _is_visible(character: str) -> bool:
    """False for format and control characters and others that leave no mark; whitespace may stay."""
    if character in _JOINERS or character.isspace():
        return True
    return unicodedata.category(character) not in ("Cf", "Cc") and not _INVISIBLE.match(character)


def reference_key(text: str) -> str:
    """The reference implementation's key: anything but a-z, 0-9 and space becomes a space.

    Inner runs of spaces stay, and a text without ASCII letters or digits becomes the empty key.
    """
    return _NOT_REFERENCE.sub(" ", text.lower()).strip()


def answer_key(text: str) -> str:
    """SQuAD's answer normalisation: lower case, no punctuation, no articles, squeezed spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())
