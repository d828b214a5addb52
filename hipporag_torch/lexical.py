"""Texts as tokens, in every script."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from bm25s.stopwords import STOPWORDS_EN

from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.text import unicode_key

_STOP_WORDS = frozenset(STOPWORDS_EN)
# What a question asks with; alone, such a word names nothing, whatever phrase it is.
_QUESTION_WORDS = frozenset(
    {
        *("who", "whom", "whose", "what", "which", "when", "where", "why", "how"),
        *("is", "are", "was", "were", "be", "been", "do", "does", "did", "has", "have", "had"),
        *("can", "could", "will", "would", "shall", "should", "may", "might", "must"),
    }
)
# Tokens met again are numbered once. The number bounds the memory.
_REMEMBERED = 2**17
# Kana, CJK ideographs, and the scripts of Thai, Lao, Khmer and Burmese.
_UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]")
_WORD = re.compile(rf"[{_UNSPACED_RANGES}]+|[^\W{_UNSPACED_RANGES}]+")


def lexical_tokens(text: str) -> list[str]:
    """Words without stop words; a run of characters of a script without spaces gives its bigrams."""
    tokens: list[str] = []
    for word in _WORD.findall(unicode_key(text)):
        if _UNSPACED.match(word):
            tokens += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        elif word not in _STOP_WORDS:
            tokens.append(word)
    return tokens


def linking_tokens(text: str) -> list[str]:
    """What a phrase and a question are compared by: all words in order, characters in scripts without spaces.

    Nothing, if the text is a single stop word, question word or such character: that names nothing.
    """
    tokens: list[str] = []
    for word in _WORD.findall(unicode_key(text)):
        tokens += list(word) if _UNSPACED.match(word) else [word]
    if len(tokens) == 1 and (is_common_word(tokens[0]) or _UNSPACED.match(tokens[0])):
        return []
    return tokens


def is_common_word(word: str) -> bool:
    """Whether a word, as normalised, is one that asks or joins and never names."""
    return word in _STOP_WORDS or word in _QUESTION_WORDS


def token_rows(texts: Sequence[str], tokens: Callable[[str], Sequence[str]]) -> Ragged:
    """The tokens of each text, as numbers that are the same in every process."""
    return Ragged.of([[_token_number(token) for token in tokens(text)] for text in texts])


@lru_cache(maxsize=_REMEMBERED)
def _token_number(token: str) -> int:
    digest = hashlib.blake2b(token.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
