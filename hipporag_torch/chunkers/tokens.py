"""Passages of a bounded number of tokens, with overlap."""

from collections.abc import Iterator

from hipporag_torch.chunkers.cuts import Cuts, cuts
from hipporag_torch.chunkers.token_spans import token_spans
from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Chunk, Document


class TokenChunker:
    """Cuts a document into pieces of at most `size` tokens; neighbours share `overlap` of them.

    size: at least 1. Tokens are counted in the piece itself, without special tokens; one of over 64
        characters (an unknown word) counts as one for each. A piece ends between words where it can, so
        most are somewhat shorter. Only what cannot be parted may be longer: one character as readers see
        it (an emoji, a letter with its accents), or one token of the document that counts for more
        when it stands alone.
    overlap: 0 ≤ overlap < size. Fewer are shared where the overlap would begin inside a word.
    tokenizer: "minilm" (all-MiniLM-L6-v2, from its package); "words" (no model: a word, number or mark is
        one token, and so is each character of scripts without spaces); the path of a tokenizer.json or of
        a folder; or a hub id. It must be a fast tokenizer.

    Chunks are exact pieces of the text, without the whitespace around them. The same document gives the
    same chunks in every process. Raises `ConfigError` for options out of their ranges and tokenizers that
    are missing or slow, `BackendError` for those that cannot be loaded.
    """

    def __init__(self, *, size: int = 256, overlap: int = 32, tokenizer: str = "minilm") -> None:
        if size < 1:
            raise ConfigError(f"chunker.size must be at least 1 token, got {size}")
        if not 0 <= overlap < size:
            raise ConfigError(
                f"chunker.overlap must be at least 0 and less than chunker.size={size}, got {overlap}"
            )
        self._size = size
        self._overlap = overlap
        self._spans = token_spans(tokenizer)

    def chunk(self, document: Document) -> list[Chunk]:
        """At least one piece; together they hold every character that is not blank."""
        text = document.text
        chunks: list[Chunk] = []
        for start, end in self._pieces(cuts(text, self._spans(text))):
            piece = text[start:end]
            start, end = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
            # Nothing but whitespace since the last chunk's end: blank, or held by that chunk.
            if end <= start or (chunks and end <= chunks[-1].end):
                continue
            if chunks and start == chunks[-1].start:
                chunks.pop()
            chunks.append(Chunk(text=text[start:end], start=start, end=end))
        return chunks

    def _pieces(self, cuts: Cuts) -> Iterator[tuple[int, int]]:
        """(start, end) of each piece in characters; the starts and the ends ascend."""
        start = done = 0
        while done < cuts.last:
            end = self._fitting_end(cuts, start, done)
            if end is None:  # no room beside the overlap
                start = done
                end = self._fitting_end(cuts, start, done) or done + 1
            yield cuts.at[start], cuts.at[end]
            done = end
            start = max(start + 1, cuts.overlap_start(end, self._overlap))

    def _fitting_end(self, cuts: Cuts, start: int, done: int) -> int | None:
        """Where a piece ends that, tokenized by itself, has at most `size` tokens; None if there is none."""
        budget = self._size
        while (end := cuts.end(start, done, budget)) is not None:
            piece = cuts.text[cuts.at[start] : cuts.at[end]].strip()
            excess = len(self._spans(piece)) - self._size
            if excess <= 0:
                return end
            # Without what is around it, a piece of a word can fall into more tokens.
            budget = min(budget, cuts.tokens[end] - cuts.tokens[start]) - excess
        return None
