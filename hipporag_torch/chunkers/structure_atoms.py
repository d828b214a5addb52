"""Blocks → atoms: the smallest pieces that passages are put together from, none over the limit of words."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import regex

from hipporag_torch.chunkers.cuts import cuts
from hipporag_torch.chunkers.structure_blocks import LINE_END, Block, Words

_EXTENDS = r"[\p{M}\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]"
# After a sentence, or before an item of a list.
_BETWEEN_SENTENCES = regex.compile(
    rf"[.!?…][\"'”’)\]*_]{{0,3}}+\s++(?=\S)|[。！？](?!{_EXTENDS})\s*+|(?:\r\n?+|\n)(?=\s*+(?:[-*+•]|\d{{1,4}}[.)])\s)",
    regex.V1,
)


@dataclass(frozen=True)
class Atom:
    """`start` ≤ character < `end`, and how many words that is."""

    start: int
    end: int
    words: int


def atoms(text: str, block: Block, words: Words, limit: int) -> Iterator[Atom]:
    """`block` in pieces of at most `limit` words: whole if it can be, else by parts, sentences, lines, words.

    They fill the block. Only what cannot be parted is longer: one character as readers see it.
    """
    size = words.count(block.start, block.end)
    if size <= limit:
        yield Atom(block.start, block.end, size)
    elif block.parts:
        for part in block.parts:
            yield from atoms(text, part, words, limit)
    else:
        seams = (LINE_END,) if block.kind == "lines" else (_BETWEEN_SENTENCES, LINE_END)
        yield from _cut(text, block.start, block.end, words, limit, seams)


def _cut(
    text: str, start: int, end: int, words: Words, limit: int, seams: tuple[regex.Pattern[str], ...]
) -> Iterator[Atom]:
    size = words.count(start, end)
    if size <= limit:
        yield Atom(start, end, size)
    elif not seams:
        yield from _cut_words(text, start, end, words, limit)
    else:
        inside = (match.end() for match in seams[0].finditer(text, start, end))
        places = [start, *(place for place in inside if place < end), end]
        for first, last in pairwise(places):
            yield from _cut(text, first, last, words, limit, seams[1:])


def _cut_words(text: str, start: int, end: int, words: Words, limit: int) -> Iterator[Atom]:
    """The text in pieces of `limit` words, cut between words where there is a place."""
    line = cuts(text[start:end], words.within(start, end))
    first = 0
    while first < line.last:
        last = line.end(first, first, limit) or first + 1
        before, after = start + line.at[first], start + line.at[last]
        yield Atom(before, after, words.count(before, after))
        first = last
