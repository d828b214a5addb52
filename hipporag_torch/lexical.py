"""Texts as bags of tokens, in every script."""

import re

from bm25s.stopwords import STOPWORDS_EN

from hipporag_torch.text import unicode_key

_STOP_WORDS = frozenset(STOPWORDS_EN)
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
