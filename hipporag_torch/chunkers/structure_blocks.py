"""What the structure of a text is told in: blocks that follow each other without a gap, and their words."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import regex
from numpy.typing import NDArray

Kind = Literal["heading", "prose", "lines", "group"]
"""How a block that is too long is cut: prose between sentences, `lines` (code, a table) between lines, a
group (a list, a quote) between its parts."""

# A heading is put in front of passages, so it must be short: a longer one counts as prose.
MAX_HEADING_WORDS = 20
MAX_LEVEL = 6

LINE_END = regex.compile(r"\r\n?|\n")
# Scripts without spaces count by characters. The limit keeps a text without a space from being one word.
_ALONE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Line_Break=SA}]"
_WORD = regex.compile(rf"{_ALONE}|(?:(?!{_ALONE})\S){{1,64}}+", regex.V1)


@dataclass(frozen=True)
class Block:
    """A piece of the text, `start` ≤ character < `end`, the blank lines after it included.

    A block with a `title` is a heading of `level` 0 (that of the whole text) to 6. `parts` are those of a
    group, and fill it.
    """

    start: int
    end: int
    kind: Kind
    title: str = ""
    level: int = 0
    parts: "tuple[Block, ...]" = ()


@dataclass(frozen=True)
class Words:
    """Where the words of a text lie: spans (words, 2), start and end of each, in characters; starts.

    A word is what stands between whitespace, of at most 64 characters; a script without spaces has one for
    each character.
    """

    spans: NDArray[np.int64]
    starts: list[int]

    @staticmethod
    def of(text: str) -> "Words":
        flat = np.fromiter((offset for match in _WORD.finditer(text) for offset in match.span()), np.int64)
        return Words(flat.reshape(-1, 2), flat[::2].tolist())

    def count(self, start: int, end: int) -> int:
        """How many begin between two characters."""
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)

    def within(self, start: int, end: int) -> NDArray[np.int64]:
        """The spans of those that begin between two characters, counted from the first of these."""
        return self.spans[bisect_left(self.starts, start) : bisect_left(self.starts, end)] - start


def line_starts(text: str) -> list[int]:
    """The character that each line begins at; a line end at the text's end begins no other."""
    starts = [0, *(match.end() for match in LINE_END.finditer(text))]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()
    return starts


def heading_title(line: str) -> str:
    """A heading's words with single spaces; empty if there are none, or too many for a heading."""
    words = line.split()
    short = len(words) <= MAX_HEADING_WORDS and len(Words.of(line).spans) <= MAX_HEADING_WORDS
    return " ".join(words) if short else ""


def filling(blocks: Sequence[Block], start: int, end: int) -> tuple[Block, ...]:
    """The blocks, made to follow each other from `start` to `end`: each ends where the next begins."""
    starts = [start]
    for block in blocks[1:]:
        starts.append(min(max(block.start, starts[-1]), end))
    ends = [*starts[1:], end]
    return tuple(
        Block(first, last, block.kind, block.title, block.level, _fitted(block, first, last))
        for block, first, last in zip(blocks, starts, ends, strict=True)
        if last > first
    )


def _fitted(block: Block, start: int, end: int) -> tuple[Block, ...]:
    return filling(block.parts, start, end) if block.parts else ()
