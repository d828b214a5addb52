import pytest

from hipporag_torch.chunkers import WholeDocument
from hipporag_torch.errors import BackendError
from hipporag_torch.sources import merged, pieces_of
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Chunk, Document, Passage, Source

TEXT = TextOptions()
ID = TEXT.passage_id


class Overlapping:
    """Cuts windows of `size` characters that start every `step`, with their number as metadata."""

    def __init__(self, size: int = 4, step: int = 2) -> None:
        self.size = size
        self.step = step

    def chunk(self, document: Document) -> list[Chunk]:
        starts = range(0, len(document.text), self.step)
        ends = [min(start + self.size, len(document.text)) for start in starts]
        return [
            Chunk(document.text[start:end], start, end, {"number": number})
            for number, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]


class Giving:
    """Gives the same chunks for every document."""

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = list(chunks)

    def chunk(self, document: Document) -> list[Chunk]:
        return self.chunks


def held(passages: dict[str, Passage]) -> dict[str, list[tuple[str, int, int, int]]]:
    """For each text, (source, position, start, end) of its sources."""
    return {p.text: [(s.source_id, s.position, s.start, s.end) for s in p.sources] for p in passages.values()}


class TestChunks:
    def test_each_is_a_passage_at_its_place(self):
        passages = merged([], pieces_of([Document("abcdef", "s", {"title": "T"})], Overlapping(), TEXT))
        assert held(passages) == {"abcd": [("s", 0, 0, 4)], "cdef": [("s", 1, 2, 6)], "ef": [("s", 2, 4, 6)]}
        assert passages[ID("cdef")].sources[0].metadata == {"title": "T", "number": 1}

    def test_positions_go_on_across_documents_and_calls(self):
        chunker = Overlapping(2, 2)
        passages = merged([], pieces_of([Document("abcd", "s"), Document("ef", "s")], chunker, TEXT))
        passages = merged(passages.values(), pieces_of([Document("ghcd", "s")], chunker, TEXT))
        assert held(passages) == {
            "ab": [("s", 0, 0, 2)],
            "cd": [("s", 1, 2, 4)],
            "ef": [("s", 2, 0, 2)],
            "gh": [("s", 3, 0, 2)],
        }

    def test_a_text_that_stands_twice_in_a_document_is_held_where_it_is_first(self):
        passages = merged([], pieces_of([Document("ababcd", "s")], Overlapping(2, 2), TEXT))
        assert held(passages) == {"ab": [("s", 0, 0, 2)], "cd": [("s", 1, 4, 6)]}
        assert passages[ID("ab")].sources[0].metadata == {"number": 0}

    def test_a_later_document_brings_offsets_and_metadata_up_to_date(self):
        chunker = Overlapping(2, 2)
        passages = merged([], pieces_of([Document("abcd", "s"), Document("xycd", "t")], chunker, TEXT))
        passages = merged(passages.values(), pieces_of([Document("zzzzcd", "s")], chunker, TEXT))
        assert held(passages)["cd"] == [("s", 1, 4, 6), ("t", 1, 2, 4)]
        assert [s.metadata for s in passages[ID("cd")].sources] == [{"number": 2}, {"number": 1}]

    def test_without_a_source_the_id_of_the_whole_text_holds_all(self):
        passages = merged([], pieces_of([Document("abcd")], Overlapping(2, 2), TEXT))
        assert held(passages) == {"ab": [(ID("abcd"), 0, 0, 2)], "cd": [(ID("abcd"), 1, 2, 4)]}

    def test_a_whole_document_covers_itself(self):
        passages = merged([], pieces_of([Document("abcd", "s", {"a": 1})], WholeDocument(), TEXT))
        assert passages[ID("abcd")].sources == (Source("s", 0, {"a": 1}, 0, 4),)

    @pytest.mark.parametrize(
        ("chunks", "message"),
        [
            ([], "gave no chunk for the document s; expected at least one"),
            ([Chunk(" \n", 0, 2)], r"of the document s that cannot be a passage: .* is empty"),
            ([Chunk("\ud800", 0, 1)], "cannot be a passage: .* unpaired surrogate"),
            ([Chunk("a", 0, 1, {"at": object()})], "cannot be a passage: .* must be JSON-like"),
            ([Chunk("a", -1, 1)], "from -1 to 1 of the document s, which has 4 characters"),
            ([Chunk("a", 0, 1), Chunk("a", 3, 2)], "from 3 to 2 of the document s"),
            ([Chunk("a", 0, 5)], "from 0 to 5 .* expected 0 <= start <= end <= 4"),
        ],
    )
    def test_what_cannot_be_a_passage_is_refused(self, chunks: list[Chunk], message: str):
        with pytest.raises(BackendError, match=message):
            pieces_of([Document("abcd", "s")], Giving(*chunks), TEXT)


def test_a_passage_that_is_handed_in_as_it_is_stays_the_same_object():
    documents = [Document("ab", "s"), Document("cd", "s")]
    first = merged([], pieces_of(documents, WholeDocument(), TEXT))
    again = merged(first.values(), pieces_of(documents, WholeDocument(), TEXT))
    assert all(again[key] is passage for key, passage in first.items())
