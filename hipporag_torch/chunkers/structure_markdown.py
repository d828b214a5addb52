"""The blocks of Markdown, by a CommonMark parser with tables."""

from collections.abc import Iterator

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hipporag_torch.chunkers.structure_blocks import Block, Kind, filling, heading_title, line_starts

_GROUPS = {"bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open"}
_LEAVES: dict[str, Kind] = {
    "paragraph_open": "prose",
    "heading_open": "heading",
    "fence": "lines",
    "code_block": "lines",
    "html_block": "lines",
    "table_open": "lines",
    "hr": "lines",
}
_FRONT_MATTER = regex.compile(
    r"(?P<mark>---|\+\+\+)[ \t]*+(?:\r\n?|\n)"
    r"(?P<inside>(?:(?!(?P=mark)|\.\.\.)[^\r\n]*+(?:\r\n?|\n)){0,500}+)"
    r"(?:(?P=mark)|\.\.\.)[ \t]*+(?:\r\n?+|\n|$)"
)
_TITLE = regex.compile(r"(?:^|[\r\n])title[ \t]*+[:=]([^\r\n]++)")


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of `text`, from its first character to its last; none if it is empty."""
    start = 1 if text.startswith("\ufeff") else 0
    blocks: list[Block] = []
    if front := _FRONT_MATTER.match(text, start):
        found = _TITLE.search(front["inside"])
        title = heading_title(found[1].strip().strip("\"'")) if found else ""
        blocks.append(Block(start, front.end(), "lines", title))
        start = front.end()
    blocks += _parsed(text[start:], start)
    if not blocks:  # nothing that Markdown calls a block: definitions of links, say
        blocks.append(Block(0, len(text), "prose"))
    return filling(blocks, 0, len(text))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    # Where a link leads is text like any other here, and what stands inside a line is not looked at.
    parser.block.ruler.disable("reference")
    parser.core.ruler.disable(["inline", "text_join"])
    return parser


def _parsed(text: str, offset: int) -> list[Block]:
    starts = [offset + start for start in line_starts(text)]
    tokens = iter(_parser().parse(text))
    return list(_blocks(tokens, starts, top=True))


def _blocks(tokens: Iterator[Token], starts: list[int], *, top: bool = False) -> Iterator[Block]:
    """The blocks up to the end of what the iterator is in."""
    for token in tokens:
        if token.type.removesuffix("_close") + "_open" in _GROUPS and token.nesting < 0:
            return
        if token.map is None or token.map[0] >= len(starts):
            continue
        start = starts[token.map[0]]
        if token.type in _GROUPS:
            parts = tuple(_blocks(tokens, starts))
            yield Block(start, start, "group" if parts else "prose", parts=parts)
        elif token.type in _LEAVES:
            yield _leaf(token, tokens, start, top)


def _leaf(token: Token, tokens: Iterator[Token], start: int, top: bool) -> Block:
    kind = _LEAVES[token.type]
    if kind == "heading":
        title = heading_title(next(tokens).content) if top else ""
        return Block(start, start, "heading" if title else "prose", title, int(token.tag[1:]))
    if token.type == "table_open":
        while next(tokens).type != "table_close":
            pass
    return Block(start, start, kind)
