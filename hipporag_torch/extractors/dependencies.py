"""Statements of a dependency parse: subject, predicate and object as texts.

One clause gives a statement for each pair of a subject and an object; objects are also those of its
prepositions. The labels are those of spaCy's English models (ClearNLP): nsubj, dobj, pobj, attr, …
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from hipporag_torch.extractors.dependency_names import Names, relative_head
from hipporag_torch.extractors.dependency_phrases import (
    clean,
    conjoined,
    description,
    entity_name,
    is_place,
    phrase,
)

Statement = tuple[str, str, str]

_VERBS = ("VERB", "AUX")
_SUBJECTS = ("nsubj", "nsubjpass")
_OBJECTS = ("dobj", "attr", "oprd", "dative", "acomp")
_PREPOSITIONS = ("prep", "agent", "dative")
_MAX_DEPTH = 8
"""Clauses within clauses that are followed up to find a subject, or down a chain of infinitives."""


def statements(sentence: Any, names: Names) -> Iterator[Statement]:
    """What one sentence states, in the order of its words."""
    for token in sentence:
        if token.pos_ in _VERBS and token.dep_ not in ("aux", "auxpass", "xcomp", "amod", "compound"):
            yield from _clause(token, names)
        elif token.dep_ == "appos":
            yield from _apposition(token, names)
        if token.pos_ == "PROPN":
            yield from _nominal(token, names)
            if described := clean(" ".join(word.text for word in description(token) if word.dep_ != "det")):
                yield names.text(token), "is", described


def leftovers(sentence: Any, names: Names, ends: set[str]) -> Iterator[Statement]:
    """A statement for each named entity that is no end of one yet, by the word that it hangs on.

    Only ends of statements become nodes of the graph: an entity inside a longer phrase would be lost.
    """
    for entity in sentence.ents:
        text = entity_name(entity)
        if not text or text in ends or not any(map(str.isalpha, text)):
            continue
        if entity.label_ in ("NORP", "DATE", "TIME", "LANGUAGE") or entity.root.dep_ == "appos":
            continue
        words = [word for word in islice(entity.root.ancestors, _MAX_DEPTH) if word not in entity]
        if entity.root.dep_ == "conj":
            # What "Oslo" hangs on, in "in Bergen and Oslo", is what "Bergen" hangs on.
            words = words[1:]
        above = next((word for word in words if word.pos_ in ("NOUN", "PROPN", *_VERBS)), None)
        if above is None:
            continue
        between = words[: words.index(above)]
        preposition = " ".join(word.lower_ for word in reversed(between) if word.pos_ == "ADP")
        if above.pos_ in _VERBS:
            subject = next((text for noun in _subjects(above) if (text := names.text(noun))), names.topic)
            predicate = f"{_label(above)} {preposition}".strip()
        else:
            subject, predicate = names.text(above), preposition or "of"
        if subject and subject != text:
            yield subject, predicate, text


def _clause(verb: Any, names: Names) -> Iterator[Statement]:
    subjects = [text for token in _subjects(verb) if (text := names.text(token))]
    if not subjects:
        return
    for predicate, end in _ends(verb, _label(verb), names):
        text = names.text(end)
        for subject in subjects:
            if text and text != subject:
                yield subject, predicate, text


def _subjects(verb: Any, depth: int = 0) -> list[Any]:
    """The nouns that do it (or that it is done to); a clause without its own takes those above it."""
    own = [child for child in verb.children if child.dep_ in _SUBJECTS]
    if own:
        return [noun for token in own for noun in _meant(token, depth)]
    if any(child.dep_ == "expl" for child in verb.children):
        return [noun for child in verb.children if child.dep_ == "attr" for noun in conjoined(child)]
    if depth >= _MAX_DEPTH or verb.dep_ == "ROOT":
        return []
    above = verb.head
    if verb.dep_ == "acl" and verb.tag_ in ("VBN", "VBG") and above.pos_ not in _VERBS:
        return _referents(above, depth)
    if verb.dep_ == "pcomp":
        above = above.head
    # A full subordinate clause has a subject of its own; a participle shares that of its governor.
    if verb.dep_ in ("conj", "xcomp", "pcomp", "advcl", "dep") and above.pos_ in _VERBS:
        return _subjects(above, depth + 1)
    return []


def _meant(subject: Any, depth: int) -> list[Any]:
    """A relative pronoun's noun; "who" is a person, so "a runner from Norway who …" is about the runner."""
    noun = relative_head(subject) or subject
    who = subject.lower_ == "who" and noun is not subject
    while who and noun.dep_ == "pobj" and noun.ent_type_ not in ("", "PERSON", "NORP"):
        noun = noun.head.head
    if noun.pos_ in _VERBS and depth < _MAX_DEPTH:
        return _subjects(noun, depth + 1)
    return _referents(noun, depth)


def _referents(noun: Any, depth: int) -> list[Any]:
    """In "Oslo is a city that …" the city is Oslo, and so is it in "Oslo, a city that …"."""
    if depth < _MAX_DEPTH:
        if noun.dep_ == "attr" and noun.head.lemma_ == "be":
            return _subjects(noun.head, depth + 1) or conjoined(noun)
        if noun.dep_ == "appos" and noun.pos_ != "PROPN":
            return _referents(noun.head, depth + 1)
        if noun.pos_ == "NOUN":
            named = [child for child in noun.rights if child.dep_ == "appos" and child.pos_ == "PROPN"]
            return named[:1] or conjoined(noun)
    return conjoined(noun)


def _is_passive(verb: Any, depth: int = 0) -> bool:
    if any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children):
        return True
    if verb.tag_ != "VBN" or any(child.dep_ == "aux" for child in verb.children):
        return False
    if verb.dep_ == "conj" and depth < _MAX_DEPTH and verb.head.pos_ in _VERBS:
        return _is_passive(verb.head, depth + 1)
    return verb.dep_ in ("acl", "relcl", "advcl")


def _label(verb: Any) -> str:
    """The verb with its particles and negation; "is" for every form of the copula."""
    children = list(verb.children)
    negation = "not" if any(child.dep_ == "neg" and child.lower_ != "never" for child in children) else ""
    if any(child.dep_ == "neg" and child.lower_ == "never" for child in children):
        negation = "never"
    particles = [child.lower_ for child in children if child.dep_ == "prt"]
    passive = _is_passive(verb)
    if verb.lemma_ == "be" and not passive and verb.dep_ != "xcomp":
        return " ".join(filter(None, ["is", negation, *particles]))
    if passive:
        auxiliary = next((child.lower_ for child in children if child.dep_ == "auxpass"), "was")
        auxiliary = "is" if auxiliary in ("is", "are") else "was"
    else:
        helpers = [child.lower_ for child in children if child.dep_ == "aux"]
        auxiliary = helpers[-1] if negation == "not" and helpers else ""
    return " ".join(filter(None, [auxiliary, negation, verb.lower_, *particles]))


def _ends(verb: Any, label: str, names: Names, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Pairs of a predicate and the noun at its end."""
    children = list(verb.children)
    existential = any(child.dep_ == "expl" for child in children)
    core = [child for child in children if child.dep_ in _OBJECTS and child.pos_ != "ADP"]
    for child in core:
        for noun in conjoined(child):
            if not existential:
                yield label, noun
            yield from _attached(noun, label, head="" if existential else _short(noun))
    objects = [child for child in core if child.dep_ in ("dobj", "attr", "acomp") and not existential]
    # "won the prize in 1956" says more than "won in 1956", and about the winner.
    short = _short(objects[0]) if objects else ""
    for predicate, end in _prepositional(verb, f"{label} {short}".strip()):
        yield predicate, end
        if end.pos_ == "NOUN":
            yield from _attached(end, predicate, head=_short(end))
    for child in children:
        if child.dep_ == "npadvmod" and child.ent_type_ in ("DATE", "TIME"):
            yield f"{label} {short}".strip(), child
        elif child.dep_ == "xcomp" and child.pos_ in _VERBS and depth < _MAX_DEPTH:
            to = "to " if any(aux.lower_ == "to" for aux in child.children if aux.dep_ == "aux") else ""
            yield from _ends(child, f"{label} {to}{_label(child)}", names, depth + 1)
    yield from _gap(verb, label, children)


def _short(noun: Any) -> str:
    if noun.pos_ == "PRON":
        return ""
    return noun.lower_ if noun.pos_ == "ADJ" else phrase(noun, of=False, owner=False)


def _attached(noun: Any, label: str, *, head: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """What hangs on a noun: "mayor of Bergen", "Ana's sister", "one of the films about Bergen"."""
    label = f"{label} {head}".strip()
    if noun.pos_ == "NOUN":
        yield from ((f"{label} of", owner) for owner in noun.lefts if owner.dep_ == "poss")
    for predicate, end in _prepositional(noun, label):
        yield predicate, end
        if end.pos_ == "NOUN" and depth < 1:
            yield from _attached(end, predicate, head=_short(end), depth=depth + 1)


def _gap(verb: Any, label: str, children: list[Any]) -> Iterator[tuple[str, Any]]:
    """The noun that a relative clause hangs on, where it is the object: "the book (that) Ana wrote"."""
    if verb.dep_ != "relcl":
        return
    if any(child.lower_ == "where" for child in children):
        yield f"{label} in", verb.head
        return
    filled = any(child.dep_ in _OBJECTS for child in children)
    subject = next((child for child in children if child.dep_ in _SUBJECTS), None)
    if subject is not None and relative_head(subject) is None and not filled and not _is_passive(verb):
        stranded = [c for c in children if c.dep_ == "prep" and not any(c.children)]
        piped = any(relative_head(end) is not None for c in children for end in c.children)
        if not piped:
            yield " ".join([label, *(c.lower_ for c in stranded)]), verb.head


def _prepositional(governor: Any, label: str) -> Iterator[tuple[str, Any]]:
    """The ends of a verb's or a noun's prepositions, with "out of" and the like as one."""
    queue = [(child, label) for child in governor.children if _is_preposition(child)]
    for preposition, so_far in queue[:64]:
        predicate = f"{so_far} {preposition.lower_}"
        for child in preposition.children:
            if child.dep_ == "pobj":
                yield from ((predicate, noun) for noun in conjoined(child))
            elif child.dep_ == "prep":
                queue.append((child, predicate))
            elif child.dep_ == "conj" and child.pos_ == "ADP":
                queue.append((child, so_far))


def _is_preposition(token: Any) -> bool:
    return token.dep_ in _PREPOSITIONS and token.pos_ in ("ADP", "SCONJ", "VERB", "ADV")


def _apposition(token: Any, names: Names) -> Iterator[Statement]:
    """ "Ana, the mayor of Bergen" is a statement; "Bergen, Norway" is one about where."""
    head = token.head
    if is_place(head) and is_place(token):
        beside = token.left_edge.i - head.i == 2 and token.nbor(-1).text == ","
        inner, outer = names.text(head), names.text(token)
        if beside and inner and outer and inner != outer:
            yield inner, "is in", outer
        return
    if token.pos_ == "NUM" or token.ent_type_ in ("CARDINAL", "QUANTITY", "DATE", "PERCENT"):
        return
    if token.pos_ == "PROPN" and head.pos_ == "NOUN":
        head, token = token, head
    subject = names.text(head)
    for noun in conjoined(token) if token.dep_ == "appos" else [token]:
        text = names.text(noun)
        if subject and text and subject != text:
            yield subject, "is", text
            for predicate, end in _attached(noun, "is", head=_short(noun)):
                if (text := names.text(end)) and text != subject:
                    yield subject, predicate, text


def _nominal(noun: Any, names: Names) -> Iterator[Statement]:
    """A name with a preposition that is no part of it: "Lund University in Sweden"."""
    for preposition in noun.children:
        if preposition.dep_ == "prep" and preposition.lower_ != "of":
            for end in (child for child in preposition.children if child.dep_ == "pobj"):
                subject, text = names.text(noun), names.text(end)
                if subject and text and subject != text and not preposition.ent_type_:
                    yield subject, clean(preposition.lower_), text
