"""Noun phrases of a dependency parse, as short texts. Tokens are spaCy's, which has no useful types."""

import re
from typing import Any

_LEFT = frozenset({"amod", "compound", "nummod", "poss", "nmod", "quantmod", "case"})
_NOT_INSIDE = frozenset({"relcl", "acl", "appos", "advcl", "cc", "conj"})
_NUMERIC = frozenset({"PERCENT", "ORDINAL", "CARDINAL", "QUANTITY", "MONEY"})
_PLACES = frozenset({"GPE", "LOC", "FAC"})
_MAX_CONJUNCTS = 24
"""Of "A, B, C, …" at most so many: both ends may be lists, and a table parses as one."""

_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_YEAR = re.compile(r"[12]\d{3}")
_POSSESSIVE = re.compile(r"['’]s?$")
_EDGES = " \t\n.,;:!?\"“”„«»'‘’`*|_=<>-–—"


def conjoined(token: Any) -> list[Any]:
    """The token and those joined to it by commas and "and"."""
    found, last = [token], token
    while last is not None and len(found) < _MAX_CONJUNCTS:
        last = next((child for child in last.rights if child.dep_ == "conj"), None)
        if last is not None and last.pos_ not in ("VERB", "AUX"):
            found.append(last)
    return found


def phrase(token: Any, *, of: bool = True, owner: bool = True, possessor: str = "") -> str:
    """The noun phrase that `token` heads: compounds, adjectives and numbers, and with `of` its "of" phrases.

    `possessor` stands for a possessive pronoun; without `owner` there is no "Ana's" in front.
    Determiners in front, relative clauses and participles go.
    """
    kept = _kept(token, of=of)
    pronoun = [word for word in kept if word.dep_ == "poss" and word.pos_ == "PRON" and word.head == token]
    left_out = {part for word in token.lefts if word.dep_ == "poss" for part in word.subtree} - {token}
    left_out = set(pronoun) if owner or len(left_out) >= len(kept) else left_out
    words = sorted((word for word in kept if word not in left_out), key=lambda word: word.i)
    words = words[len(description(token)) :] if not possessor else words
    while words and words[0].dep_ in ("det", "predet") and len(words) > 1:
        words = words[1:]
    # Words left out in the middle leave no mark: the rest is what a reader would say.
    text = _POSSESSIVE.sub("", clean("".join(map(_with_space, words, [*words[1:], None]))))
    return f"{possessor}'s {text}" if pronoun and possessor and text else text


def description(token: Any) -> list[Any]:
    """The words before a name that say what it is: "German physicist" of "the German physicist Emma Roth"."""
    first = token.i
    while first > 0 and token.doc[first].ent_iob_ == "I":
        first -= 1
    if token.pos_ != "PROPN" or token.ent_type_ != "PERSON" or token.doc[first].head.i > token.i:
        return []
    before = [
        word for child in token.lefts if child.dep_ in _LEFT for word in child.subtree if word.i < first
    ]
    return before if any(word.pos_ == "NOUN" for word in before) else []


def _with_space(word: Any, following: Any | None) -> str:
    """The word, and a space where there is one or where words were left out."""
    return word.text_with_ws if following is None or following.i == word.i + 1 else f"{word.text} "


def _kept(token: Any, *, of: bool) -> set[Any]:
    kept = {token}
    for child in token.lefts:
        if child.dep_ in _LEFT:
            kept.update(child.subtree)
    for child in token.rights:
        if child.dep_ in ("nummod", "compound", "nmod") and child.i == token.i + 1:
            kept.add(child)
        elif of and child.lower_ == "of" and child.dep_ == "prep":
            for end in (end for end in child.children if end.dep_ == "pobj"):
                kept |= {child, *(left for left in end.lefts if left.dep_ == "det"), *_kept(end, of=True)}
    kept |= _entity_around(token, of=of)
    # Hyphens and quotation marks between two kept words.
    first, last = min(word.i for word in kept), max(word.i for word in kept)
    between = (word for word in token.doc[first : last + 1] if word.is_punct and word.head in kept)
    return kept | {word for word in between if word.text in ("-", "–", "'", "&", "/")}


def _entity_around(token: Any, *, of: bool) -> set[Any]:
    """The words of the named entity that `token` heads, unless the parse says that it is a list."""
    if not token.ent_type_:
        return set()
    doc, first, last = token.doc, token.i, token.i
    while first > 0 and doc[first].ent_iob_ == "I":
        first -= 1
    while last + 1 < len(doc) and doc[last + 1].ent_iob_ == "I":
        last += 1
    words = doc[first : last + 1]
    if words.root != token or any(word.dep_ in _NOT_INSIDE and word.head == token for word in words):
        return set()
    if not of and any(word.lower_ == "of" for word in words):
        return set()
    return set(words)


def clean(text: str) -> str:
    """Whitespace squeezed, punctuation at the ends off, brackets without a partner too."""
    text = " ".join(text.split()).strip(_EDGES)
    for opening, closing in ("()", "[]", "{}"):
        if text.count(opening) != text.count(closing):
            text = text.replace(opening, " ").replace(closing, " ")
    return " ".join(text.split()).strip(_EDGES)


def entity_name(entity: Any) -> str:
    """A named entity as a name: no article in front, no possessive behind; empty if it is a mere number."""
    text = clean(_POSSESSIVE.sub("", _ARTICLE.sub("", clean(entity.text))))
    named = entity.label_ not in _NUMERIC and (any(map(str.isalpha, text)) or _YEAR.fullmatch(text))
    return text if named else ""


def is_place(token: Any) -> bool:
    return token.ent_type_ in _PLACES
