"""What a model or a file gives as statements and entities, made into records; the rest is counted by kind."""

from collections import Counter
from typing import Any

from hipporag_torch.replies import Wanted
from hipporag_torch.types import Sentence, Triple

_DICT_KEYS = (
    ("subject", "head", "source"),
    ("predicate", "relation", "relationship"),
    ("object", "tail", "target"),
)
"""The keys of a triple's parts; models that were not told them choose among these."""

_NAME_KEYS = ("name", "entity", "text")
MAX_CHARS = 384
"""A longer "entity" is a model talking to itself."""


def read_triples(value: Any, dropped: Counter[str]) -> tuple[Triple, ...]:
    """The well-formed triples of `value`, in order; malformed ones are counted in `dropped`.

    A triple is a list of three parts, or an object with the keys subject, predicate and object, or with
    head, relation and tail. Numbers become text. Kinds of faults: not_a_list, not_a_triple, wrong_arity,
    missing_key, null_part, empty_part, not_text, too_long, bad_unicode.
    """
    if not isinstance(value, list):
        dropped["not_a_list"] += 1
        return ()
    triples = []
    for item in value:
        fault, triple = _read_triple(item)
        if triple is None:
            dropped[fault] += 1
        else:
            triples.append(triple)
    return tuple(triples)


def read_entities(value: Any, dropped: Counter[str]) -> tuple[str, ...]:
    """The well-formed entities of `value`, in order, without repetitions; faults as `entity:<kind>`.

    An entity is a text, or an object with its name.
    """
    if not isinstance(value, list):
        dropped["entity:not_a_list"] += 1
        return ()
    entities: dict[str, None] = {}
    for item in value:
        fault, text = _read_part(_named(item))
        if fault:
            dropped[f"entity:{fault}"] += 1
        else:
            entities.setdefault(text)
    return tuple(entities)


def read_sentences(value: Any, dropped: Counter[str]) -> tuple[tuple[Sentence, tuple[str, ...]], ...]:
    """The well-formed sentences of `value` with what they name, in order; faults as `sentence:<kind>`.

    A sentence is a list of its text, of any length, and of the list of its names, which are read as entities
    are. Kinds of faults: not_a_list, not_a_pair, null_part, empty_part, not_text, bad_unicode.
    """
    if not isinstance(value, list):
        dropped["sentence:not_a_list"] += 1
        return ()
    sentences = []
    for item in value:
        if not isinstance(item, list) or len(item) != 2:
            dropped["sentence:not_a_pair"] += 1
            continue
        fault, text = _read_part(item[0], max_chars=None)
        if fault:
            dropped[f"sentence:{fault}"] += 1
        else:
            sentences.append((Sentence(text), read_entities(item[1], dropped)))
    return tuple(sentences)


def _looks_like_a_triple(value: Any) -> bool:
    if isinstance(value, dict):
        return len(_parts(value)) == len(_DICT_KEYS)
    return isinstance(value, list) and len(value) == 3 and not any(isinstance(p, list | dict) for p in value)


def _looks_like_an_entity(value: Any) -> bool:
    return isinstance(_named(value), str)


ENTITIES = Wanted("entities", ("named_entities", "extracted_entities"), _looks_like_an_entity)
TRIPLES = Wanted("triples", ("extracted_triples", "named_triples", "facts"), _looks_like_a_triple)


def _named(item: Any) -> Any:
    """The name that an object holds; anything else as it is."""
    if not isinstance(item, dict):
        return item
    return next((item[key] for key in _NAME_KEYS if key in item), item)


def _parts(item: dict[str, Any]) -> list[Any]:
    """The parts of a triple that an object holds; fewer than three if keys are missing."""
    keys = (next((key for key in names if key in item), None) for names in _DICT_KEYS)
    return [item[key] for key in keys if key is not None]


def _read_triple(item: Any) -> tuple[str, Triple | None]:
    if isinstance(item, dict):
        found = _parts(item)
        if len(found) != len(_DICT_KEYS):
            return "missing_key", None
        item = found
    if not isinstance(item, list | tuple):
        return "not_a_triple", None
    if len(item) != 3:
        return "wrong_arity", None
    parts = []
    for part in item:
        fault, text = _read_part(part)
        if fault:
            return fault, None
        parts.append(text)
    return "", Triple(*parts)


def _read_part(part: Any, max_chars: int | None = MAX_CHARS) -> tuple[str, str]:
    """(kind of fault, text): one of them is empty."""
    if part is None:
        return "null_part", ""
    # JSON's true is an int to Python, but no number.
    if isinstance(part, int | float) and not isinstance(part, bool):
        part = str(part)
    if not isinstance(part, str):
        return "not_text", ""
    if not part.strip():
        return "empty_part", ""
    if max_chars is not None and len(part) > max_chars:
        return "too_long", ""
    try:
        part.encode("utf-8")
    except UnicodeEncodeError:
        return "bad_unicode", ""
    return "", part
