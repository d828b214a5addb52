"""The places where a text may be cut, and how many tokens lie between them."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from hipporag_torch.chunkers.token_spans import Spans
from hipporag_torch.chunkers.writing import between_words, inside_graphemes, inside_word


@dataclass(frozen=True)
class Cuts:
    """Cut `i` is at character `at[i]`, with `tokens[i]` tokens before it.

    The first and the last are the text's ends. None lies inside a token or a grapheme; tokens that share
    a character are not parted.
    """

    text: str
    at: list[int]
    tokens: list[int]

    @property
    def last(self) -> int:
        """The number of the cut at the text's end."""
        return len(self.at) - 1

    def end(self, start: int, done: int, budget: int) -> int | None:
        """The cut after `done` that ends a piece from `start` with at most `budget` tokens.

        None if all are further. The text's end if that is near enough; else, of what the piece adds, the
        last half is searched for a place between words, then all of it for one that is not inside a word.
        """
        furthest = bisect_right(self.tokens, self.tokens[start] + budget) - 1
        if furthest <= done:
            return None
        if furthest == self.last:
            return furthest
        half = bisect_left(self.tokens, (self.tokens[done] + self.tokens[furthest]) / 2)
        for cut in range(furthest, max(half, done + 1) - 1, -1):
            if between_words(self.text, self.at[cut]):
                return cut
        for cut in range(furthest, done, -1):
            if not inside_word(self.text, self.at[cut]):
                return cut
        return furthest

    def overlap_start(self, end: int, overlap: int) -> int:
        """The cut where a piece begins that shares at most `overlap` tokens with one that ends at `end`.

        If that is inside a word, the next word's start; if the overlap is all one word, inside it.
        """
        nearest = bisect_left(self.tokens, self.tokens[end] - overlap)
        for cut in range(nearest, end):
            if not inside_word(self.text, self.at[cut]):
                return cut
        return nearest


def cuts(text: str, spans: Spans) -> Cuts:
    """Every place where `text`, with its tokens at `spans`, may be cut."""
    starts, ends = spans[:, 0], spans[:, 1]
    # A cut before a token: all before it have ended, and none after it starts earlier.
    ended = np.maximum.accumulate(ends)[:-1]
    later = np.minimum.accumulate(starts[::-1])[::-1][1:]
    safe = (starts[1:] >= ended) & (later >= starts[1:]) & (starts[1:] > starts[:-1])
    if not text.isascii():
        inside = np.fromiter(inside_graphemes(text), dtype=np.int64)
        safe &= ~np.isin(starts[1:], inside)
    before = np.flatnonzero(safe) + 1
    at, tokens = starts[before].tolist(), before.tolist()
    return Cuts(text, [0, *at, len(text)], [0, *tokens, len(spans)])
