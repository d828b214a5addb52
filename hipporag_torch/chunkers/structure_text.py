"""The blocks of reStructuredText, and of plain text: paragraphs below underlined headings."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import regex

from hipporag_torch.chunkers.structure_blocks import MAX_LEVEL, Block, filling, heading_title, line_starts

# One punctuation mark, over and over.
_ADORNMENT = regex.compile(r"([!-/:-@\[-`{-~])\1{2,}+\s*")
_SIMPLE_BORDER = regex.compile(r"\s*+=++(?:[ \t]++=++)++\s*+")
_GRID = regex.compile(r"\s*+(?:\+[-=+]{2,}|\|\s)")
_LITERAL_DIRECTIVE = regex.compile(
    r"\s*+\.\.[ \t]++(?:code|code-block|sourcecode|parsed-literal|literalinclude|highlight|math|raw"
    r"|table|csv-table|list-table|productionlist|graphviz|testcode|doctest|ipython|console)::"
)
_DOCTEST = regex.compile(r"\s*+>>> ")
# A staircase of ever deeper paragraphs is no structure.
_MAX_DEPTH = 12


def text_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of `text`, from its first character to its last."""
    starts = line_starts(text)
    lines = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    blocks = list(_Scanner(lines, starts).blocks(0, len(lines)))
    return filling(blocks or [Block(0, len(text), "prose")], 0, len(text))


@dataclass
class _Scanner:
    """Reads blocks off lines. Kinds of headings are levels in the order in which they appear."""

    lines: list[str]
    starts: list[int]
    heading_kinds: list[tuple[str, bool]] = field(default_factory=list)

    def blocks(self, first: int, end: int, depth: int = 0) -> Iterator[Block]:
        line = first
        while (line := self._filled(line, end)) < end:
            start = line
            if depth == 0 and (height := self._heading_height(start, end)):
                block, line = self._heading(start, height), start + height
            elif table_end := self._table_end(start, end):
                block, line = Block(self.starts[start], 0, "lines"), table_end
            else:
                block, line = self._paragraph(start, end, depth)
            yield block

    def _filled(self, line: int, end: int) -> int:
        """The first line from `line` on that is not blank, or `end`."""
        while line < end and not self.lines[line].strip():
            line += 1
        return line

    def _gap(self, line: int, end: int) -> int:
        """The first line from `line` on that is blank, or `end`."""
        while line < end and self.lines[line].strip():
            line += 1
        return line

    def _heading_height(self, line: int, end: int) -> int:
        """How many lines the heading at `line` has; 0 if there is none. The line before it is blank."""
        if line + 2 < end and _ADORNMENT.fullmatch(self.lines[line]):
            over, title, under = self.lines[line : line + 3]
            return 3 if over.strip() == under.strip() and self._is_title(title) else 0
        if line + 1 < end and not self.lines[line][0].isspace() and self._is_title(self.lines[line]):
            title, under = self.lines[line].rstrip(), self.lines[line + 1].rstrip()
            if _ADORNMENT.fullmatch(under) and len(under) >= min(4, len(title)):
                return 2
        return 0

    def _is_title(self, line: str) -> bool:
        return bool(heading_title(line)) and not _ADORNMENT.fullmatch(line)

    def _heading(self, line: int, height: int) -> Block:
        title, under = self.lines[line + height - 2], self.lines[line + height - 1]
        kind = under.strip()[0], height == 3
        if kind not in self.heading_kinds:
            self.heading_kinds.append(kind)
        level = min(self.heading_kinds.index(kind) + 1, MAX_LEVEL)
        return Block(self.starts[line], 0, "heading", heading_title(title), level)

    def _table_end(self, line: int, end: int) -> int:
        """The line after the simple table at `line`, blank lines in it included; 0 if there is none."""
        if not _SIMPLE_BORDER.fullmatch(self.lines[line]):
            return 0
        borders = self._last_borders
        found = bisect_right(borders, line)
        return borders[found] + 1 if found < len(borders) and borders[found] < end else 0

    @cached_property
    def _last_borders(self) -> list[int]:
        """The lines, ascending, that can be the last of a simple table: nothing follows at once."""
        followers = [*self.lines[1:], ""]
        return [
            number
            for number, (line, follower) in enumerate(zip(self.lines, followers, strict=True))
            if not follower.strip() and _SIMPLE_BORDER.fullmatch(line)
        ]

    def _paragraph(self, line: int, end: int, depth: int) -> tuple[Block, int]:
        """The paragraph at `line` with what is indented below it, and the line after."""
        body = self._gap(line, end)
        after = self._indented_end(body, end, _indent(self.lines[line]))
        first, last = self.lines[line], self.lines[body - 1]
        exact = bool(_GRID.match(first) or _DOCTEST.match(first) or _LITERAL_DIRECTIVE.match(first))
        head = Block(self.starts[line], 0, "lines" if exact else "prose")
        if after == body:
            return head, after
        if exact or last.rstrip().endswith("::") or depth == _MAX_DEPTH:
            parts = (head, Block(self.starts[self._filled(body, after)], 0, "lines"))
        else:
            parts = (head, *self.blocks(body, after, depth + 1))
        return Block(self.starts[line], 0, "group", parts=parts), after

    def _indented_end(self, line: int, end: int, indent: int) -> int:
        """Where the lines that are indented by more than `indent` end; `line` if there are none."""
        after = line
        while (start := self._filled(after, end)) < end and _indent(self.lines[start]) > indent:
            after = start + 1
        return after


def _indent(line: str) -> int:
    """The columns of whitespace that a line begins with."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(8))
