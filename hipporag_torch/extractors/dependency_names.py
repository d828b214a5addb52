"""Who is meant: pronouns, relative pronouns, surnames and "the film", made into names."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hipporag_torch.extractors.dependency_phrases import clean, conjoined, phrase

_PERSONAL = frozenset({"he", "she", "his", "her", "hers", "him"})
_IMPERSONAL = frozenset({"it", "its", "they", "their", "them", "theirs"})
_RELATIVE = frozenset({"who", "which", "that", "whom", "whose"})
_DEFINITE = frozenset({"the", "this", "these"})
_MAX_ABOVE = 12
"""Words above a pronoun among which a clause's subject is looked for; real sentences are no deeper."""

_BRACKETED = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True)
class Mention:
    """Something that a pronoun may stand for; `kind` is "" where the parse cannot tell."""

    text: str
    kind: str


class Names:
    """Texts for the nouns of one passage. It remembers the last subject, so sentences come in order."""

    def __init__(self, title: str, doc: Any, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._topic = _topic(_BRACKETED.sub("", title), doc)
        self._subject: Mention | None = None
        self._nouns: set[str] = set()
        self._full_name = self._first_subject(doc)

    @property
    def topic(self) -> str:
        """The title, if the text is about it; else empty."""
        return self._topic.text if self._topic else ""

    def text(self, token: Any, *, of: bool = True, local: bool = True) -> str:
        """What `token` stands for; empty (and counted) for a pronoun that nothing is found for.

        With `local` a pronoun may also stand for a subject before it in its own sentence.
        """
        token = relative_head(token) or token
        if token.pos_ == "PRON" or token.tag_ in ("PRP", "PRP$", "WP", "WDT", "EX"):
            mention = self._antecedent(token, local)
            if mention is None:
                self._dropped["pronoun"] += 1
            return mention.text if mention else ""
        if self._is_topic(token):
            return self.topic
        owner = next((c for c in token.lefts if c.dep_ == "poss" and c.pos_ == "PRON"), None)
        known = self._antecedent(owner, local) if owner is not None else None
        return phrase(token, of=of, possessor=known.text if known else "")

    def _first_subject(self, doc: Any) -> str:
        """The subject of the first sentence, if it is a longer form of the title: "Karl Otto Berg"."""
        first = next(doc.sents, None)
        if self._topic is None or first is None or first.root.lemma_ != "be":
            return ""
        subject = next((c for c in first.root.children if c.dep_ in ("nsubj", "nsubjpass")), None)
        if subject is None or subject.pos_ != "PROPN":
            return ""
        name, title = phrase(subject).casefold().split(), self.topic.casefold().split()
        person = self._topic.kind == "person" and bool({name[0], name[-1]} & {title[0], title[-1]})
        return phrase(subject) if person or name[: len(title)] == title else ""

    def remember(self, sentence: Any) -> None:
        """The subject of a sentence that was read; the nouns that the topic is said to be."""
        root = sentence.root
        subject = next((c for c in root.children if c.dep_ in ("nsubj", "nsubjpass")), None)
        if subject is None:
            return
        quiet = Counter(self._dropped)
        text = self.text(subject)
        self._dropped.clear()
        self._dropped.update(quiet)
        if text and text == self.topic and root.lemma_ == "be":
            complements = (c for c in root.children if c.dep_ == "attr")
            self._nouns.update(n.lemma_ for c in complements for n in conjoined(c))
        if text and subject.pos_ != "PRON":
            plural = subject.tag_ in ("NNS", "NNPS") or len(conjoined(subject)) > 1
            same = self._topic if text == self.topic else None
            self._subject = same or Mention(text, "thing" if plural else _kind(subject))

    def _antecedent(self, token: Any, local: bool) -> Mention | None:
        pronoun = token.lower_
        if pronoun not in _PERSONAL | _IMPERSONAL:
            return None
        wanted = "person" if pronoun in _PERSONAL else "thing"
        nearest = self._subject_before(token) if local else None
        candidates = [mention for mention in (nearest, self._subject, self._topic) if mention]
        sure = [mention for mention in candidates if mention.kind == wanted]
        return next(iter(sure or [mention for mention in candidates if not mention.kind]), None)

    def _subject_before(self, pronoun: Any) -> Mention | None:
        """The subject of the clause that a possessive stands in, or of one above that of another pronoun."""
        near = list(islice(pronoun.ancestors, _MAX_ABOVE))
        verbs = [above for above in near if above.pos_ in ("VERB", "AUX")]
        for verb in verbs if pronoun.dep_ == "poss" else verbs[1:]:
            subject = next((c for c in verb.children if c.dep_ in ("nsubj", "nsubjpass")), None)
            if subject is not None and subject.i < pronoun.i and subject not in near:
                subject = relative_head(subject) or subject
                text = "" if subject.pos_ == "PRON" else self.text(subject, local=False)
                if text:
                    return self._topic if text == self.topic else Mention(text, _kind(subject))
        return None

    def _is_topic(self, token: Any) -> bool:
        """Whether this is the title's surname, a longer form of it, or "the film" for a film."""
        if self._topic is None:
            return False
        if token.pos_ in ("NOUN", "PROPN") and self._begins_with_title(token):
            return True
        if token.pos_ == "NOUN" and token.lemma_ in self._nouns:
            left = [child for child in token.lefts if child.dep_ != "punct"]
            return (
                len(left) == 1
                and left[0].lower_ in _DEFINITE
                and not any(child.dep_ in ("prep", "relcl", "acl") for child in token.rights)
            )
        if token.pos_ != "PROPN":
            return False
        title, name = self.topic.casefold().split(), phrase(token).casefold().split()
        if name == title or phrase(token) == self._full_name:
            return True
        if "of" in title:
            return name == title[: title.index("of")]
        if self._topic.kind != "person" or not name or not title:
            return False
        return name == title[-1:]

    def _begins_with_title(self, token: Any) -> bool:
        """Whether the phrase of this token is the title, prepositions and all: "Letters from Bergen"."""
        start = token.left_edge.i + (token.left_edge.lower_ in _DEFINITE)
        return token.doc[start : token.right_edge.i + 1].text.casefold() == self.topic.casefold()


def relative_head(token: Any) -> Any | None:
    """The noun that a relative pronoun stands for."""
    if token.lower_ not in _RELATIVE or token.pos_ not in ("PRON", "DET", "SCONJ"):
        return None
    clause = token.head
    for _ in range(8):
        if clause.dep_ == "relcl":
            return clause.head
        clause = clause.head
    return None


def _kind(token: Any) -> str:
    if token.ent_type_:
        return "person" if token.ent_type_ == "PERSON" else "thing"
    return ""


def _topic(title: str, doc: Any) -> Mention | None:
    """The title as something to refer to, if the beginning of the text speaks of it.

    Its kind is told by the first pronoun of the third person: the entity recogniser errs more often.
    """
    title = clean(title.partition(",")[0])
    words = {word for word in title.casefold().split() if len(word) > 2}
    start = doc[:60].text.casefold()
    if not any(word in start for word in words):
        return None
    for token in doc:
        if token.lower_ in _PERSONAL:
            return Mention(title, "person")
        if token.lower_ in ("it", "its"):
            return Mention(title, "thing")
    kinds = {_kind(token) for token in doc[:60] if token.lower_ in words} - {""}
    return Mention(title, kinds.pop() if len(kinds) == 1 else "")
