import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.export import export_upstream, read_upstream
from hipporag_torch.extractors.stored import StoredExtractor
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.types import Document, Extraction, Passage, Sentence, Triple

from .conftest import GIVEN, HOSTILE, PETRA, UNREAD, VARSOVIA, WARSAW, GivenExtractor, TableEmbedder


def rebuilt(index: Index, path: Path, *, embedder: TableEmbedder | HashingEmbedder) -> Index:
    """The index of a file's passages and extractions, with the options of `index`."""
    extractor = StoredExtractor(path=path)
    indexer = Indexer(embedder=embedder, extractor=extractor, text=index.text, graph=index.graph_options)
    return indexer.add(indexer.empty(), read_upstream(path))[0]


def require_equal(a: Index, b: Index) -> None:
    """Phrases, facts, statements, vectors and graph are equal to the bit."""
    assert (a.phrases, a.facts) == (b.phrases, b.facts)
    for name in ("passage_idx", "fact_idx", "subject_idx", "object_idx"):
        assert torch.equal(getattr(a.statements, name), getattr(b.statements, name))
    for name in ("passage_emb", "phrase_emb", "fact_emb"):
        assert torch.equal(getattr(a, name), getattr(b, name))
    for name in ("row_ptr", "col", "weight"):
        assert torch.equal(getattr(a.graph.adjacency, name), getattr(b.graph.adjacency, name))


def test_the_file_has_the_shape_of_hipporag(known: Index, tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    exported = export_upstream(known, path)
    assert (exported.paths, exported.left_out) == ((path,), 1)
    content = json.loads(path.read_text("utf-8"))
    assert list(content) == ["docs", "avg_ent_chars", "avg_ent_words"]
    assert [doc["passage"] for doc in content["docs"]] == [
        passage.text for passage in known.passages if passage.text != UNREAD
    ]
    assert {"passage": WARSAW, **_doc(content, WARSAW)} == {
        "idx": known.text.passage_id(WARSAW),
        "passage": WARSAW,
        "extracted_entities": ["Marie", "Warsaw"],
        "extracted_triples": [["Marie", "born in", "Warsaw"], ["Marie", "lived in", "Warsaw"]],
    }
    # Marie, Warsaw; Varsovia, Warsaw, varsovia, warsaw; Warszawa, Vistula.
    assert content["avg_ent_chars"] == round((5 + 6 + 8 + 6 + 8 + 6 + 8 + 7) / 8, 4)
    assert content["avg_ent_words"] == 1.0


def test_words_of_entities_are_averaged_over_all(tmp_path: Path) -> None:
    given = {"p": Extraction(("United Nations", "New York City", "Oslo"))}
    indexer = Indexer(embedder=HashingEmbedder(), extractor=GivenExtractor(given))
    export_upstream(indexer.add(indexer.empty(), [Document("p")])[0], tmp_path / "openie.json")
    content = json.loads((tmp_path / "openie.json").read_text())
    assert (content["avg_ent_chars"], content["avg_ent_words"]) == (10.3333, 2.0)


def test_an_index_built_from_the_file_is_the_same_to_the_bit(known: Index, tmp_path: Path) -> None:
    """The failed passage is not in the file; indexed from the corpus instead, it fails again."""
    path = tmp_path / "openie.json"
    export_upstream(known, path)
    extractor = StoredExtractor(path=path)
    indexer = Indexer(embedder=TableEmbedder(), extractor=extractor, graph=known.graph_options)
    again, _ = indexer.add(indexer.empty(), [Document(passage.text) for passage in known.passages])
    require_equal(known, again)
    for before, after in zip(known.extractions, again.extractions, strict=True):
        assert (before.status, before.entities, before.triples) == (
            after.status,
            after.entities,
            after.triples,
        )


def test_without_failures_the_file_alone_gives_the_index_back(hostile: Index, tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    assert export_upstream(hostile, path).left_out == 0
    again = rebuilt(hostile, path, embedder=HashingEmbedder())
    require_equal(hostile, again)
    assert again.extractions[0].triples == hostile.extractions[0].triples
    assert again.extractions[0].entities == hostile.extractions[0].entities


def test_sentences_stand_under_a_key_of_their_own_and_come_back(told: Index, tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    export_upstream(told, path)
    content = json.loads(path.read_text("utf-8"))
    assert _doc(content, PETRA) == {
        "idx": told.text.passage_id(PETRA),
        "passage": PETRA,
        "extracted_entities": ["Petra", "Oslo", "Rome"],
        "extracted_triples": [],
        "extracted_sentences": [
            ["Petra left Oslo for Rome.", ["Petra", "Oslo", "Rome"]],
            ["It rains.", []],
            ["She saw Oslo again.", ["Oslo"]],
        ],
    }
    assert sum("extracted_sentences" in doc for doc in content["docs"]) == 1
    again = rebuilt(told, path, embedder=TableEmbedder())
    require_equal(told, again)
    assert [e.sentences for e in again.extractions] == [e.sentences for e in told.extractions]


PARTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
EXTRACTIONS = st.builds(
    Extraction,
    entities=st.lists(PARTS, unique=True, max_size=4).map(tuple),
    triples=st.lists(st.builds(Triple, PARTS, PARTS, PARTS), max_size=4).map(tuple),
    sentences=st.lists(
        st.tuples(st.builds(Sentence, PARTS), st.lists(PARTS, unique=True, max_size=3).map(tuple)), max_size=3
    ).map(tuple),
)


@given(st.dictionaries(PARTS, EXTRACTIONS, max_size=4))
def test_any_extraction_reads_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, Extraction]
) -> None:
    path = tmp_path_factory.mktemp("any") / "openie.json"
    indexer = Indexer(embedder=NoEmbedder(), extractor=GivenExtractor(given))
    export_upstream(indexer.add(indexer.empty(), map(Document, given))[0], path)
    passages = [Passage("", text) for text in given]
    read = StoredExtractor(path=path).extract(passages)
    assert [(e.entities, e.triples, e.sentences) for e in read] == [
        (e.entities, e.triples, e.sentences) for e in given.values()
    ]
    assert not any(e.dropped for e in read)


def test_documents_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    texts = [WARSAW, HOSTILE, VARSOVIA, WARSAW]
    path.write_text(json.dumps({"docs": [{"passage": text} for text in texts]}))
    assert read_upstream(path) == [Document(WARSAW), Document(HOSTILE), Document(VARSOVIA)]
    assert read_upstream(path)[0].source_id is None


def test_an_exported_file_reads_back_the_passages_that_were_extracted(known: Index, tmp_path: Path) -> None:
    export_upstream(known, tmp_path / "openie.json")
    assert {document.text for document in read_upstream(tmp_path / "openie.json")} == set(GIVEN)


def test_files_of_another_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no extraction file"):
        read_upstream(tmp_path / "nope.json")
    path = tmp_path / "openie.json"
    path.write_text('{"docs": [{"passage": "p"}, {"passage": 3}]}')
    with pytest.raises(InputError, match=r"docs\[1\]: expected an object with a text 'passage'"):
        read_upstream(path)
    path.write_text('{"docs": [{"passage": "p"}, {"passage": " "}]}')
    with pytest.raises(InputError, match=r"passage 2 of .*openie\.json is empty"):
        read_upstream(path)


def test_empty_index_gives_a_file_without_documents(empty: Index, tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    export_upstream(empty, path)
    assert json.loads(path.read_text()) == {"docs": [], "avg_ent_chars": 0, "avg_ent_words": 0}
    assert read_upstream(path) == []


def test_an_existing_file_stays_unless_overwrite_is_set(known: Index, tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"openie\.json exists already"):
        export_upstream(known, path)
    assert path.read_text() == "mine"
    export_upstream(known, path, overwrite=True)
    assert len(read_upstream(path)) == 3


def test_a_real_file_reads_as_its_corpus(shared: Path) -> None:
    path = shared / "data" / "musique_train" / "openie_results_ner_gpt-3.5-turbo-1106.json"
    docs = json.loads(path.read_text("utf-8"))["docs"]
    assert [document.text for document in read_upstream(path)] == [doc["passage"] for doc in docs]


def _doc(content: dict, text: str) -> dict:
    (doc,) = (doc for doc in content["docs"] if doc["passage"] == text)
    return doc
