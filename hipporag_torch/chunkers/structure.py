"""Passages by the structure of a text: its headings, paragraphs, lists, tables and code."""

from pathlib import PurePosixPath
from typing import Literal, get_args

from hipporag_torch.chunkers.structure_blocks import Block, Words
from hipporag_torch.chunkers.structure_markdown import markdown_blocks
from hipporag_torch.chunkers.structure_packing import Piece, pieces
from hipporag_torch.chunkers.structure_text import text_blocks
from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Chunk, Document

Markup = Literal["auto", "markdown", "text"]

_TEXT_SUFFIXES = {".txt", ".rst", ".rest", ".text"}


class StructureChunker:
    """Cuts a document into self-contained passages: sections, and parts of sections, below their headings.

    min_words, max_words: 0 ≤ min_words ≤ max_words, max_words ≥ 1. A word is what stands between
        whitespace, of at most 64 characters, or one character of a script without spaces. Sections of under
        `min_words` are joined to a neighbour below the same headings where there is room, those of over
        `max_words` are cut between paragraphs, items of lists and quotes. A paragraph, table or fenced code
        block is cut only if it alone is over `max_words`: a paragraph between sentences, the others between
        lines, and any of them between words where that is not enough. The headings in front of a passage
        do not count.
    markup: "markdown" (CommonMark with tables and front matter), "text" (reStructuredText, and plain text
        with underlined headings), or "auto": text where the document's metadata `path`, else its source_id,
        ends with .txt, .text, .rst or .rest, else markdown.

    A chunk's text is a piece of the document, exactly as it stands there, without the blank lines around it.
    In front of it stand the headings that hold where it begins and are not in it, joined by " > ", and a
    blank line. Its metadata has `heading` (the same, with the heading that it begins with), `chunk` (its
    number, from 0), and `start` and `end` of the piece, as the chunk has. The pieces hold every character
    that is not blank, once. A heading of over 20 words counts as a paragraph.

    The same document gives the same chunks in every process. Raises `ConfigError` for options out of range.
    """

    def __init__(self, *, min_words: int = 100, max_words: int = 400, markup: Markup = "auto") -> None:
        if max_words < 1:
            raise ConfigError(f"chunker.max_words must be at least 1, got {max_words}")
        if not 0 <= min_words <= max_words:
            raise ConfigError(
                f"chunker.min_words must be from 0 to chunker.max_words={max_words}, got {min_words}"
            )
        if markup not in get_args(Markup):
            raise ConfigError(f"chunker.markup must be auto, markdown or text, got {markup!r}")
        self._min_words = min_words
        self._max_words = max_words
        self._markup = markup

    def chunk(self, document: Document) -> list[Chunk]:
        """At least one chunk."""
        text = document.text
        found = pieces(
            text, self._blocks(document), Words.of(text), fewest=self._min_words, most=self._max_words
        )
        chunks: list[Chunk] = []
        for piece in found:
            start, end = _trimmed(text, piece)
            if end > start:
                chunks.append(_chunk(text, start, end, piece, len(chunks)))
        return chunks

    def _blocks(self, document: Document) -> tuple[Block, ...]:
        markup = self._markup
        if markup == "auto":
            path = document.metadata.get("path")
            named = path if isinstance(path, str) else document.source_id or ""
            suffix = PurePosixPath(named).suffix.lower()
            markup = "text" if suffix in _TEXT_SUFFIXES else "markdown"
        return text_blocks(document.text) if markup == "text" else markdown_blocks(document.text)


def _trimmed(text: str, piece: Piece) -> tuple[int, int]:
    """Without the whitespace around it; the indentation of its first line stays, which code needs."""
    inside = text[piece.start : piece.end]
    end = piece.start + len(inside.rstrip())
    blank = inside[: len(inside) - len(inside.lstrip())]
    return piece.start + max(blank.rfind("\n"), blank.rfind("\r")) + 1, end


def _chunk(text: str, start: int, end: int, piece: Piece, number: int) -> Chunk:
    above = " > ".join(piece.above)
    body = text[start:end]
    return Chunk(
        text=f"{above}\n\n{body}" if above else body,
        start=start,
        end=end,
        metadata={"heading": " > ".join(piece.path), "chunk": number, "start": start, "end": end},
    )
