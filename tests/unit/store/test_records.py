"""Rows of records.sqlite ↔ the library's records."""

from pathlib import Path

import pytest

from hipporag_torch.errors import StoreError
from hipporag_torch.store import records
from hipporag_torch.store.database import make_database, opened, transaction
from hipporag_torch.types import Extraction, Fact, Passage, Sentence, Source, Triple

ODD = [
    "a\x00b",
    "\x00",
    "🧑‍🚀 naïve 北京 \u200b",
    "'; DROP TABLE passages; --",
    '{"a": "\\u0041\\\\"}',
    " \t\n",
    "\U0010ffff\ufffe",
    "x" * 300_000,
]


@pytest.mark.parametrize(
    "extraction",
    [
        Extraction(),
        Extraction(
            entities=tuple(ODD),
            triples=(Triple("a", "\x00", "北京"), Triple("", "", "")),
            sentences=tuple((Sentence(text), tuple(ODD[:number])) for number, text in enumerate(ODD)),
            status="truncated",
            reason="cut",
            producer="gpt",
            dropped={"arity": 2},
            reply="\n".join(ODD),
        ),
        Extraction(status="failed", reason="refused", permanent=True),
        Extraction(entities=("half \ud83d",), reply="\udc00 alone", status="failed"),
    ],
)
def test_extractions_come_back(extraction: Extraction) -> None:
    text = records.extraction_to_json(extraction)
    text.encode("utf-8")
    assert records.extraction_from_json(text) == extraction


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '{"triples": [["a"]]}', '{"sentences": ["a"]}', '{"colour": 1}', '{"status": ']
)
def test_an_extraction_that_is_damaged(text: str) -> None:
    with pytest.raises(StoreError, match=r"extractions cannot be read: .*action=check"):
        records.extraction_from_json(text)


def test_passages_phrases_and_facts_come_back_in_the_order_of_python(tmp_path: Path) -> None:
    make_database(tmp_path, lambda connection: None)
    passages = [
        Passage(
            f"p-{text[:40]}",
            text,
            (Source("a", 7, {"title": text, "half": "\ud83d", "n": [1, None, 0.1]}, 3, 9), Source("b", 0)),
        )
        for text in ODD
    ]
    with opened(tmp_path, write=True) as connection, transaction(connection):
        for number, passage in enumerate(passages, start=1):
            records.insert(connection, "passages", [records.passage_row(passage)], first_id=number, born=1)
            rows = [records.source_row(number, source) for source in reversed(passage.sources)]
            first = records.next_id(connection, "sources")
            records.insert(connection, "sources", rows, first_id=first, born=1)
        records.insert(connection, "phrases", [(text,) for text in ODD], first_id=1, born=1)
        facts: list[Fact] = [Triple(a, "is", b) for a in ODD for b in reversed(ODD)]
        facts += [Sentence(text) for text in ["", *ODD]]
        records.insert(connection, "facts", map(records.fact_row, facts), first_id=1, born=1)
    with opened(tmp_path, write=False) as connection:
        assert records.read_passages(connection, 1)[1] == tuple(sorted(passages, key=lambda p: p.id))
        assert records.read_phrases(connection, 1)[1] == tuple(sorted(ODD))
        assert records.read_facts(connection, 1)[1] == tuple(sorted(facts, key=lambda fact: fact.parts))
        assert records.read_passages(connection, 0) == ([], ())


def test_a_row_lives_from_its_birth_to_its_end(tmp_path: Path) -> None:
    make_database(tmp_path, lambda connection: None)
    with opened(tmp_path, write=True) as connection:
        records.insert(connection, "phrases", [("a",), ("b",)], first_id=1, born=2)
        records.bury(connection, "phrases", [2], died=4)
        alive = [records.read_phrases(connection, generation) for generation in (1, 2, 3, 4, 9)]
        both, one = ([1, 2], ("a", "b")), ([1], ("a",))
        assert alive == [([], ()), both, both, one, one]
        assert records.next_id(connection, "phrases") == 3


def test_a_digest_tells_all_columns_apart() -> None:
    digests = {
        records.row_digest("facts", 1, ("a", "b", "c"), 1),
        records.row_digest("facts", 2, ("a", "b", "c"), 1),
        records.row_digest("facts", 1, ("a", "b", "c"), 2),
        records.row_digest("facts", 1, ("ab", "", "c"), 1),
        records.row_digest("facts", 1, (b"a", "b", "c"), 1),
        records.row_digest("facts", 1, ("a", None, None), 1),
        records.row_digest("facts", 1, ("a", "", ""), 1),
        records.row_digest("sources", 1, ("a", "b", "c"), 1),
    }
    assert len(digests) == 8
