import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.datasets import LocalDataset
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.extractors.stored import StoredExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.types import Extraction, Passage, Sentence, Triple

MARIE = Triple("Marie", "born in", "Warsaw")
Write = Callable[[Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(content: Any) -> Path:
        path = tmp_path / "openie.json"
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(raw)
        return path

    return written


@pytest.fixture
def extract(write: Write) -> Callable[..., Extraction]:
    """The extraction of one passage whose document has these fields."""

    def extracted(**fields: Any) -> Extraction:
        path = write({"docs": [{"passage": "p", **fields}]})
        return StoredExtractor(path=path).extract([Passage("id", "p")])[0]

    return extracted


def test_well_formed(extract: Callable[..., Extraction]) -> None:
    extraction = extract(
        extracted_entities=["Marie", "Warsaw", "Marie"], extracted_triples=[["Marie", "born in", "Warsaw"]]
    )
    assert (extraction.entities, extraction.triples) == (("Marie", "Warsaw"), (MARIE,))
    assert (extraction.status, extraction.reason, extraction.dropped) == ("ok", "", {})


def test_the_producer_changes_with_the_content_of_the_file(write: Write) -> None:
    first = StoredExtractor(path=write({"docs": []})).producer
    assert first.startswith("stored:openie.json:")
    assert StoredExtractor(path=write({"docs": []})).producer == first
    assert StoredExtractor(path=write({"docs": [{"passage": "p"}]})).producer != first


@pytest.mark.parametrize(
    ("triple", "kind"),
    [
        (["Marie", None, "Warsaw"], "null_part"),
        (["Marie", "born in", True], "not_text"),
        (["Marie", "born in", ["Warsaw"]], "not_text"),
        (["Marie", "born in", {"city": "Warsaw"}], "not_text"),
        (["", "born in", "Warsaw"], "empty_part"),
        (["Marie", " \n", "Warsaw"], "empty_part"),
        (["Marie", "x" * 385, "Warsaw"], "too_long"),
        (["Marie \ud800", "born in", "Warsaw"], "bad_unicode"),
        ([], "wrong_arity"),
        (["Marie"], "wrong_arity"),
        (["Marie", "born in"], "wrong_arity"),
        (["Marie", "born in", "Warsaw", "1867"], "wrong_arity"),
        ([["Marie", "born in", "Warsaw"]], "wrong_arity"),
        ({"subject": "Marie", "object": "Warsaw"}, "missing_key"),
        ({}, "missing_key"),
        ({"subject": "Marie", "predicate": None, "object": "Warsaw"}, "null_part"),
        ("Marie born in Warsaw", "not_a_triple"),
        ("abc", "not_a_triple"),
        (None, "not_a_triple"),
        (7, "not_a_triple"),
    ],
)
def test_malformed_triples_are_dropped_and_counted(
    extract: Callable[..., Extraction], triple: Any, kind: str
) -> None:
    extraction = extract(extracted_triples=[["Marie", "born in", "Warsaw"], triple])
    assert extraction.triples == (MARIE,)
    assert (extraction.status, extraction.dropped) == ("ok", {kind: 1})


@pytest.mark.parametrize("value", [None, {}, "x", 3, {"subject": "a", "predicate": "b", "object": "c"}])
def test_what_is_not_a_list(extract: Callable[..., Extraction], value: Any) -> None:
    extraction = extract(extracted_entities=value, extracted_triples=value)
    assert (extraction.triples, extraction.entities) == ((), ())
    assert extraction.dropped == {"not_a_list": 1, "entity:not_a_list": 1}


def test_numbers_become_text(extract: Callable[..., Extraction]) -> None:
    extraction = extract(
        extracted_entities=[1867], extracted_triples=[["Marie", "born in", 1867], [1, 2.5, -3]]
    )
    assert extraction.triples == (Triple("Marie", "born in", "1867"), Triple("1", "2.5", "-3"))
    assert extraction.entities == ("1867",)


def test_case_triple_01_objects_with_named_parts(extract: Callable[..., Extraction]) -> None:
    triple = {"subject": "Marie", "predicate": "born in", "object": "Warsaw", "confidence": 0.9}
    extraction = extract(extracted_triples=[triple])
    assert (extraction.triples, extraction.dropped) == ((MARIE,), {})


def test_case_triple_02_wrong_arity(extract: Callable[..., Extraction]) -> None:
    extraction = extract(extracted_triples=[["a", "b"], ["a", "b", "c", "d"], ["x", "y", "z"]])
    assert extraction.triples == (Triple("x", "y", "z"),)
    assert extraction.dropped == {"wrong_arity": 2}


def test_case_triple_05_self_talk_as_an_entity(extract: Callable[..., Extraction]) -> None:
    talk = ("Wait, actually the correct name should be " * 10)[:400]
    extraction = extract(
        extracted_entities=[talk, "Marie"],
        extracted_triples=[[talk, "is", "x"], ["Marie", "born in", "Warsaw"]],
    )
    assert (extraction.entities, extraction.triples) == (("Marie",), (MARIE,))
    assert (extraction.status, extraction.dropped) == ("ok", {"too_long": 1, "entity:too_long": 1})


def test_malformed_entities(extract: Callable[..., Extraction]) -> None:
    extraction = extract(extracted_entities=[None, "", True, ["a"], "\ud800", "x" * 385, "Marie"])
    assert extraction.entities == ("Marie",)
    assert extraction.dropped == {
        "entity:bad_unicode": 1,
        "entity:empty_part": 1,
        "entity:not_text": 2,
        "entity:null_part": 1,
        "entity:too_long": 1,
    }


def test_sentences_come_with_their_names(extract: Callable[..., Extraction]) -> None:
    long = "It rains | in Oslo. " * 100
    extraction = extract(
        extracted_sentences=[["Marie was born in Warsaw.", ["Marie", "Warsaw", "Marie"]], [long, []]]
    )
    assert extraction.sentences == (
        (Sentence("Marie was born in Warsaw."), ("Marie", "Warsaw")),
        (Sentence(long), ()),
    )
    assert (extraction.entities, extraction.triples, extraction.dropped) == ((), (), {})


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("It rains.", "not_a_pair"),
        (["It rains."], "not_a_pair"),
        (["It rains.", [], []], "not_a_pair"),
        ({"text": "It rains.", "names": []}, "not_a_pair"),
        (None, "not_a_pair"),
        ([None, []], "null_part"),
        ([" \n", []], "empty_part"),
        ([["It rains."], []], "not_text"),
        ([True, []], "not_text"),
        (["It rains \ud800.", []], "bad_unicode"),
    ],
)
def test_malformed_sentences_are_dropped_and_counted(
    extract: Callable[..., Extraction], sentence: Any, kind: str
) -> None:
    extraction = extract(extracted_sentences=[sentence, ["Marie lived.", ["Marie"]]])
    assert extraction.sentences == ((Sentence("Marie lived."), ("Marie",)),)
    assert (extraction.status, extraction.dropped) == ("ok", {f"sentence:{kind}": 1})


@pytest.mark.parametrize("value", [None, {}, "x", 3])
def test_sentences_that_are_not_a_list(extract: Callable[..., Extraction], value: Any) -> None:
    extraction = extract(extracted_sentences=value)
    assert (extraction.sentences, extraction.dropped) == ((), {"sentence:not_a_list": 1})


def test_a_sentence_outlives_malformed_names(extract: Callable[..., Extraction]) -> None:
    extraction = extract(
        extracted_sentences=[["Marie lived.", [None, "Marie", "x" * 385]], ["It rains.", "Oslo"]]
    )
    assert extraction.sentences == ((Sentence("Marie lived."), ("Marie",)), (Sentence("It rains."), ()))
    assert extraction.dropped == {"entity:not_a_list": 1, "entity:null_part": 1, "entity:too_long": 1}


def test_fields_that_are_absent_are_empty(extract: Callable[..., Extraction]) -> None:
    extraction = extract()
    assert (extraction.status, extraction.dropped) == ("ok", {})
    assert (extraction.triples, extraction.sentences, extraction.entities) == ((), (), ())


def test_looked_up_by_text_whatever_else_is_in_the_file(write: Write) -> None:
    docs = [{"passage": f"p{i}", "extracted_triples": [["a", "r", f"b{i}"]]} for i in range(50)]
    extractor = StoredExtractor(path=write({"docs": docs}))
    found = extractor.extract([Passage("x", "p7"), Passage("y", "p3")])
    assert [extraction.triples[0].object for extraction in found] == ["b7", "b3"]


def test_passage_that_the_file_lacks_fails_with_a_reason(write: Write) -> None:
    extractor = StoredExtractor(path=write({"docs": [{"passage": "p"}]}))
    known, unknown = extractor.extract([Passage("x", "p"), Passage("y", "p ")])
    assert known.status == "ok"
    assert (unknown.status, unknown.triples) == ("failed", ())
    assert unknown.reason == "openie.json has no such passage"


def test_missing_file_names_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no extraction file .*nope.json.*extractor.path.*extractor=none"):
        StoredExtractor(path=tmp_path / "nope.json")
    with pytest.raises(ConfigError, match="no extraction file"):
        StoredExtractor(path=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b'{"docs": [', "not valid JSON"),
        (b'{"docs": "\xff"}', "not valid JSON"),
        ([], r"list 'docs', got 'list'"),
        (None, r"list 'docs', got 'NoneType'"),
        ({"documents": []}, r"list 'docs', got \['documents'\]"),
        ({"docs": {"passage": "p"}}, r"list 'docs', got \['docs'\]"),
        ({"docs": [{"passage": "p"}, {"text": "q"}]}, r"docs\[1\]: expected an object with a text 'passage'"),
        ({"docs": [{"passage": None}]}, r"docs\[0\]"),
        ({"docs": ["p"]}, r"docs\[0\]"),
        (
            {
                "docs": [
                    {"passage": "p", "extracted_triples": []},
                    {"passage": "p", "extracted_triples": [[1]]},
                ]
            },
            r"docs\[1\]: the passage 'p' stands twice, with different extractions",
        ),
        (
            {"docs": [{"passage": "p"}, {"passage": "p", "extracted_sentences": [["It rains.", []]]}]},
            r"docs\[1\]: the passage 'p' stands twice, with different extractions",
        ),
    ],
)
def test_files_of_another_shape(write: Write, content: Any, message: str) -> None:
    path = write(content)
    with pytest.raises(InputError, match=message) as caught:
        StoredExtractor(path=path)
    assert str(path) in str(caught.value)


def test_same_passage_twice_with_the_same_extraction(write: Write) -> None:
    doc = {"passage": "p", "extracted_triples": [["Marie", "born in", "Warsaw"]]}
    for docs in ([doc, doc], [{"idx": 0, **doc}, {"idx": 1, **doc}]):
        extractor = StoredExtractor(path=write({"docs": docs}))
        assert extractor.extract([Passage("id", "p")])[0].triples == (MARIE,)


def test_file_with_a_byte_order_mark(write: Write) -> None:
    """As the readers of corpora allow it."""
    extractor = StoredExtractor(path=write(b'\xef\xbb\xbf{"docs": [{"passage": "p"}]}'))
    assert extractor.extract([Passage("id", "p")])[0].status == "ok"


def test_real_malformed_documents(shared: Path) -> None:
    folder = shared / "data" / "ci_fixture_musique"
    path = folder / "malformed_openie_docs.json"
    docs = json.loads(path.read_text("utf-8"))["docs"]
    sizes = Counter(len(triple) for doc in docs for triple in doc["extracted_triples"])
    assert sizes.keys() > {2, 3, 4}
    extracted = StoredExtractor(path=path).extract([Passage(d["idx"], d["passage"]) for d in docs])
    dropped = Counter[str]()
    for extraction in extracted:
        dropped.update(extraction.dropped)
    assert len(extracted) == 20
    assert dropped["wrong_arity"] == sizes.total() - sizes[3]
    assert sum(len(e.triples) for e in extracted) == sizes.total() - sum(
        count for kind, count in dropped.items() if not kind.startswith("entity:")
    )


def test_a_corpus_that_the_file_covers_in_part(shared: Path) -> None:
    folder = shared / "data" / "ci_fixture_musique"
    extractor = StoredExtractor(path=folder / "malformed_openie_docs.json")
    embedder = HashingEmbedder()
    memory = HippoRAG(
        indexer=Indexer(embedder=embedder, extractor=extractor),
        make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=embedder),
    )
    report = memory.add(LocalDataset(path=folder).documents())
    assert (report.passages_added, len(report.failed)) == (130, 124)
    assert report.dropped["wrong_arity"] >= 6
    rankings = memory.retrieve(["Who sang All You Need Is Love?", "Who is Ada Vale?"], top_k=130)
    assert [len(ranking.passages) for ranking in rankings] == [130, 130]


def test_real_extractions_of_musique(shared: Path) -> None:
    folder = shared / "data" / "musique_train"
    extractor = StoredExtractor(path=folder / "openie_results_ner_gpt-3.5-turbo-1106.json")
    documents = LocalDataset(path=folder).documents()
    extracted = extractor.extract([Passage(str(i), d.text) for i, d in enumerate(documents)])
    dropped = Counter[str]()
    for extraction in extracted:
        dropped.update(extraction.dropped)
    assert {extraction.status for extraction in extracted} == {"ok"}
    assert {kind: n for kind, n in dropped.items() if not kind.startswith("entity:")} == {"wrong_arity": 185}
    indexer = Indexer(embedder=NoEmbedder(), extractor=extractor)
    memory = HippoRAG(indexer=indexer, make_retriever=lambda index: BM25Retriever(index=index))
    report = memory.add(documents[:200])
    assert report.passages_added == 200
    assert report.dropped["wrong_arity"] == sum(e.dropped.get("wrong_arity", 0) for e in extracted[:200])
