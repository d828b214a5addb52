"""Which of the passages that a model read its answer rests on."""

import string
from collections.abc import Sequence

from hipporag_torch.text import unicode_key
from hipporag_torch.types import Passage

# They stand in passages for other reasons.
_SAY_NOTHING = frozenset(["", "yes", "no", "true", "false", "unknown", "none"])


def passages_with(answer: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The ids of the passages whose text holds the answer, best first; none for yes, no and the like.

    Case, width and whitespace make no difference, nor does punctuation around the answer. It has to stand
    there as whole words, in scripts that part them and have upper and lower case.
    """
    key = unicode_key(answer).strip(string.punctuation + string.whitespace + "“”‘’«»。、！？…")
    if key in _SAY_NOTHING:
        return ()
    found = (passage.id for passage in passages if _holds(unicode_key(passage.text), key))
    return tuple(dict.fromkeys(found))


def _holds(text: str, key: str) -> bool:
    start = text.find(key)
    while start >= 0:
        end = start + len(key)
        if not (_goes_on(key[0], text[start - 1 : start]) or _goes_on(key[-1], text[end : end + 1])):
            return True
        start = text.find(key, start + 1)
    return False


def _goes_on(edge: str, beside: str) -> bool:
    """Whether the word at the edge of an answer goes on beside it: "19" is not in "1904"."""
    is_worded = edge.isdigit() or edge.lower() != edge.upper()
    return is_worded and beside.isalnum()
