"""Blocks → passages: sections, cut where they are too long, joined where they are too short."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile

from hipporag_torch.chunkers.structure_atoms import Atom, atoms
from hipporag_torch.chunkers.structure_blocks import Block, Words

Path = tuple[str, ...]
"""Headings, the outermost first."""


@dataclass(frozen=True)
class Piece:
    """`start` ≤ character < `end`, of `words` words.

    above: the headings that hold before its first character. path: those with the heading that it begins
    with; where there is none at all, those of its first heading.
    """

    start: int
    end: int
    words: int
    above: Path
    path: Path


_Found = tuple[Atom, Path, bool]
"""An atom, the headings that hold before it, and whether it is a heading."""


@dataclass
class _Section:
    """A heading with what stands directly below it. `bare` as long as that is nothing.

    blocks: each with the headings that hold before it. paths: by where a heading begins, those with itself.
    """

    above: Path
    bare: bool = True
    blocks: list[tuple[Block, Path]] = field(default_factory=list)
    paths: dict[int, Path] = field(default_factory=dict)


def pieces(text: str, blocks: Sequence[Block], words: Words, *, fewest: int, most: int) -> list[Piece]:
    """The text in pieces that follow each other without a gap.

    None has over `most` words but for what `atoms` cannot part. One of under `fewest` is joined to the next,
    or the one before, where that stays within `most` and stands below the same headings.
    """
    cut = [piece for section in _sections(blocks) for piece in _cut(text, section, words, most)]
    return _joined(_joined(cut, fewest, most), fewest, most, backwards=True)


def _sections(blocks: Iterable[Block]) -> Iterator[_Section]:
    """A heading without text of its own goes with the section below it."""
    stack: list[Block] = []
    section = _Section(())
    for block in blocks:
        if block.title:
            while stack and (stack[-1].level >= block.level or stack[-1].title == block.title):
                stack.pop()
            above = tuple(heading.title for heading in stack)
            if section.blocks and not (section.bare and _begins_with(above, section.above)):
                yield section
                section = _Section(above)
            stack.append(block)
            section.paths[block.start] = (*above, block.title)
        else:
            above = tuple(heading.title for heading in stack)
            section.bare = False
        section.blocks.append((block, above))
    if section.blocks:
        yield section


def _cut(text: str, section: _Section, words: Words, most: int) -> Iterator[Piece]:
    """The section in as few pieces as hold it, of about the same size."""
    found: list[_Found] = [
        (atom, above, bool(block.title))
        for block, above in section.blocks
        for atom in atoms(text, block, words, most)
    ]
    left = sum(atom.words for atom, _, _ in found)
    taken: list[_Found] = []
    size, all_headings = 0, True
    for one in found:
        atom = one[0]
        target = left / max(1, math.ceil(left / most))
        # What heads the piece does not end it.
        full = size + atom.words > most or (not all_headings and size + atom.words / 2 > target)
        if taken and full:
            kept = _trailing_headings(taken, most - atom.words)
            done, taken = taken[: len(taken) - kept], taken[len(taken) - kept :]
            yield _piece(done, section)
            size = _size(taken)
            left -= _size(done)
            all_headings = True
        taken.append(one)
        size += atom.words
        all_headings = all_headings and one[2]
    if taken:
        yield _piece(taken, section)


def _trailing_headings(taken: Sequence[_Found], room: int) -> int:
    """How many of the last are headings, which belong to what follows if that leaves room for them.

    At least one stays; of headings alone only the last one goes on, or a long row of them would go on and on.
    """
    last = list(takewhile(lambda one: one[2], reversed(taken)))
    if len(last) == len(taken):
        last = last[:1] if len(taken) > 1 else []
    sizes = accumulate(atom.words for atom, _, _ in last)
    return sum(size <= room for size in sizes)


def _size(taken: Iterable[_Found]) -> int:
    return sum(atom.words for atom, _, _ in taken)


def _piece(taken: Sequence[_Found], section: _Section) -> Piece:
    first, above, _ = taken[0]
    path = section.paths.get(first.start, above)
    return Piece(first.start, taken[-1][0].end, _size(taken), above, path)


def _joined(cut: Sequence[Piece], fewest: int, most: int, *, backwards: bool = False) -> list[Piece]:
    """Short pieces joined to the one after them, or `backwards` to the one before."""
    joined: list[Piece] = []
    for piece in cut:
        before = joined[-1] if joined else None
        short = before is not None and (piece if backwards else before).words < fewest
        size = piece.words + (before.words if before else 0)
        if before and short and size <= most and _begins_with(piece.above, before.above):
            joined[-1] = replace(before, end=piece.end, words=size, path=before.path or piece.path)
        else:
            joined.append(piece)
    return joined


def _begins_with(path: Path, beginning: Path) -> bool:
    return path[: len(beginning)] == beginning
