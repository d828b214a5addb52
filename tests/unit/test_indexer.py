from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError, CompatibilityError, InputError
from hipporag_torch.graph_construction import GraphOptions, ReferenceGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.reports import FailedPassage, SourceReport
from hipporag_torch.text import TextOptions
from hipporag_torch.types import (
    Document,
    Extraction,
    Passage,
    Progress,
    Role,
    Triple,
    no_progress,
)

Stated = Mapping[str, Sequence[tuple[str, str, str]]]

WORKS = ("Ana", "works at", "Acme")
BASED = ("Acme", "based in", "Oslo")
STATED: Stated = {
    "Ana works.": [WORKS],
    "Ana works at Acme, in Oslo.": [WORKS, BASED],
    "Bo knows Ana.": [("Bo", "knows", "Ana")],
    "Nothing here.": [],
}
TEXTS = list(STATED)


class FakeExtractor:
    """States what a table says, and notes what it was asked. Texts in `failing` fail."""

    producer = "fake"
    calls_per_passage = 2

    def __init__(self, stated: Stated = STATED, failing: Sequence[str] = ()) -> None:
        self.stated = stated
        self.failing = set(failing)
        self.asked: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        self.asked += [passage.text for passage in passages]
        return [self._extraction(passage.text) for passage in passages]

    def _extraction(self, text: str) -> Extraction:
        if text in self.failing:
            return Extraction(status="failed", reason="no reply")
        return Extraction(triples=tuple(Triple(*triple) for triple in self.stated[text]))


class FakeEmbedder:
    """Hashes texts, and notes what it was asked. `spoil` makes of its rows what a broken model might."""

    def __init__(self, *, dim: int = 16, spoil: str = "") -> None:
        self.hashing = HashingEmbedder(dim=dim)
        self.spoil = spoil
        self.asked: list[tuple[Role, str]] = []

    @property
    def identity(self) -> EmbedderIdentity:
        return self.hashing.identity

    def instruction(self, role: Role) -> str:
        return self.hashing.instruction(role)

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> Tensor:
        self.asked += [(role, text) for text in texts]
        rows = self.hashing.embed(texts, role, progress)
        if self.spoil == "longer":
            return torch.cat([rows, rows], 1)
        if self.spoil == "missing":
            return rows[:-1]
        if self.spoil == "nan":
            rows[-1, 0] = torch.nan
        return rows

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [len(text) > 20 for text in texts]


def indexer_of(
    extractor: FakeExtractor | None = None,
    embedder: FakeEmbedder | None = None,
    text: TextOptions | None = None,
    **graph: object,
) -> Indexer:
    return Indexer(
        embedder=embedder or FakeEmbedder(),
        extractor=extractor or FakeExtractor(),
        text=text,
        graph=GraphOptions(**({"fact_weight": 1.0} | graph)),
    )


def indexed(*documents: Document | str, indexer: Indexer | None = None) -> Index:
    indexer = indexer or indexer_of()
    return indexer.add(indexer.empty(), [Document(d) if isinstance(d, str) else d for d in documents])[0]


def sources_of(index: Index) -> dict[str, list[tuple[str, int, Mapping[str, object]]]]:
    return {
        passage.text: [(s.source_id, s.position, s.metadata) for s in passage.sources]
        for passage in index.passages
    }


def edge(index: Index, first: str, second: str) -> float:
    """The weight between two nodes, named by phrase or by passage text; 0 without an edge."""
    names = [*index.phrases, *(passage.text for passage in index.passages)]
    matrix = index.graph.adjacency
    at = (matrix.row == names.index(first)) & (matrix.col == names.index(second))
    return matrix.weight[at].sum().item()


ID = TextOptions().passage_id


class TestAdd:
    def test_the_report_counts_what_is_new(self):
        indexer = indexer_of()
        index, report = indexer.add(indexer.empty(), [Document(TEXTS[0]), Document(TEXTS[3])])
        assert (report.documents, report.passages_added, report.passages_known) == (2, 2, 0)
        assert (report.phrases_added, report.facts_added) == (2, 1)
        assert (report.failed, report.truncated, dict(report.dropped)) == ((), (), {})
        assert set(report.seconds) == {"extract", "vocabulary", "embed", "synonyms", "graph"}
        _, report = indexer.add(index, [Document(TEXTS[0]), Document(TEXTS[1])])
        assert (report.documents, report.passages_added, report.passages_known) == (2, 1, 1)
        assert (report.phrases_added, report.facts_added) == (1, 1)

    def test_rows_ascend_by_passage_id_and_hold_the_vectors_of_their_texts(self):
        index = indexed(*TEXTS)
        hashing = FakeEmbedder().hashing
        assert [passage.id for passage in index.passages] == sorted(ID(text) for text in TEXTS)
        texts = [passage.text for passage in index.passages]
        assert torch.equal(index.passage_emb, hashing.embed(texts, "passage"))
        assert torch.equal(index.phrase_emb, hashing.embed(index.phrases, "phrase"))
        facts = ["acme based in oslo", "ana works at acme", "bo knows ana"]
        assert torch.equal(index.fact_emb, hashing.embed(facts, "fact"))
        assert index.graph.validate().num_nodes == 4 + 4

    def test_the_fact_template_decides_what_is_embedded(self):
        embedder = FakeEmbedder()
        indexed(TEXTS[0], indexer=indexer_of(embedder=embedder, text=TextOptions(fact_template="repr")))
        assert ("fact", "('ana', 'works at', 'acme')") in embedder.asked

    def test_each_source_has_its_own_counts(self):
        indexer = indexer_of(FakeExtractor(failing=[TEXTS[2]]))
        index = indexed(Document(TEXTS[0], "a"), indexer=indexer)
        documents = [
            Document(TEXTS[1], "b"),
            Document(TEXTS[0], "b"),
            Document(TEXTS[2], "b"),
            Document(TEXTS[2], "a"),
            Document(TEXTS[0], "a"),
            Document(TEXTS[3]),
        ]
        _, report = indexer.add(index, documents)
        assert list(report.sources.items()) == [
            ("b", SourceReport(passages_added=2, passages_known=1, failed=1)),
            ("a", SourceReport(passages_added=1, passages_known=1, failed=1)),
            (ID(TEXTS[3]), SourceReport(passages_added=1)),
        ]
        assert (report.passages_added, report.passages_known) == (3, 1)

    def test_the_passages_that_do_not_change_stay_the_same_objects(self):
        indexer = indexer_of()
        old = indexed(Document(TEXTS[0], "a"), Document(TEXTS[1], "a"), indexer=indexer)
        new, _ = indexer.add(old, [Document(TEXTS[0], "a"), Document(TEXTS[1], "b"), Document(TEXTS[2])])
        same = [p.text for p in new.passages if any(p is other for other in old.passages)]
        assert same == [TEXTS[0]]

    def test_only_what_is_new_is_extracted_and_embedded(self):
        extractor, embedder = FakeExtractor(), FakeEmbedder()
        indexer = indexer_of(extractor, embedder)
        index = indexed(TEXTS[0], indexer=indexer)
        extractor.asked.clear()
        embedder.asked.clear()
        indexer.add(index, [Document(TEXTS[0]), Document(TEXTS[1])])
        assert extractor.asked == [TEXTS[1]]
        assert embedder.asked == [("passage", TEXTS[1]), ("phrase", "oslo"), ("fact", "acme based in oslo")]

    def test_what_is_known_costs_nothing_and_changes_nothing(self):
        extractor, embedder = FakeExtractor(), FakeEmbedder()
        indexer = indexer_of(extractor, embedder)
        index = indexed(*TEXTS, indexer=indexer)
        extractor.asked.clear()
        embedder.asked.clear()
        again, report = indexer.add(index, [Document(text) for text in TEXTS])
        assert (extractor.asked, embedder.asked) == ([], [])
        assert (report.passages_added, report.passages_known) == (0, 4)
        assert (report.phrases_added, report.facts_added) == (0, 0)
        assert again.passages == index.passages
        assert torch.equal(again.graph.adjacency.weight, index.graph.adjacency.weight)

    def test_a_text_that_is_handed_in_twice_is_stored_and_extracted_once(self):
        extractor = FakeExtractor()
        indexer = indexer_of(extractor)
        index, report = indexer.add(indexer.empty(), [Document(TEXTS[0]), Document(TEXTS[0])])
        assert (report.documents, report.passages_added, report.passages_known) == (2, 1, 0)
        assert extractor.asked == [TEXTS[0]]
        assert sources_of(index) == {TEXTS[0]: [(ID(TEXTS[0]), 0, {})]}

    def test_no_documents_change_nothing(self):
        indexer = indexer_of()
        index, report = indexer.add(indexed(TEXTS[0], indexer=indexer), [])
        assert [passage.text for passage in index.passages] == [TEXTS[0]]
        assert (report.documents, report.passages_added, report.passages_known) == (0, 0, 0)

    def test_texts_are_kept_to_the_character(self):
        text = "Prompts say <|endoftext|> and <think>.\n\n  北京\u00ad"
        assert indexed(text, indexer=indexer_of(FakeExtractor({text: []}))).passages[0].text == text

    def test_texts_longer_than_the_embedder_reads_are_reported_when_they_are_new(self):
        indexer = indexer_of()
        index, report = indexer.add(indexer.empty(), [Document(text) for text in TEXTS[:3]])
        assert report.truncated == (ID(TEXTS[1]),)
        assert indexer.add(index, [Document(TEXTS[1])])[1].truncated == ()

    def test_dropped_entries_are_counted_by_kind(self):
        class Dropping(FakeExtractor):
            def _extraction(self, text: str) -> Extraction:
                return replace(super()._extraction(text), dropped={"null_part": 2})

        stated = {
            "a": [("\u200b", "is", "x"), ("x", "is", "y"), ("x", "", "y")],
            "b": [("x", "is", "\ufeff")],
        }
        indexer = indexer_of(Dropping(stated))
        index, report = indexer.add(indexer.empty(), [Document("a"), Document("b")])
        assert dict(report.dropped) == {"empty_key": 3, "null_part": 4}
        assert index.phrases == ("x", "y")
        assert indexer.add(index, [Document("a")])[1].dropped == {}

    @pytest.mark.parametrize(
        ("documents", "message"),
        [
            ([TEXTS[0]], "expected a Document, got str: "),
            ([{"text": TEXTS[0]}], "expected a Document, got dict: "),
            (TEXTS[0], "documents must be a list, got one str"),
            (Document(TEXTS[0]), "documents must be a list, got one Document"),
        ],
    )
    def test_what_is_no_document_is_refused(self, documents: list[Document], message: str):
        indexer = indexer_of()
        with pytest.raises(InputError, match=message):
            indexer.add(indexer.empty(), documents)

    def test_passages_without_facts_are_reported(self):
        extractor = FakeExtractor()
        indexer = indexer_of(extractor)
        _, report = indexer.add(indexer.empty(), [Document(TEXTS[0]), Document("Nothing here.")])
        assert report.without_facts == (indexer.text.passage_id("Nothing here."),)
        assert report.failed == ()

    def test_documents_may_come_from_a_generator(self):
        indexer = indexer_of()
        index, report = indexer.add(indexer.empty(), (Document(text) for text in TEXTS[:2]))
        assert (len(index.passages), report.documents) == (2, 2)

    def test_metadata_is_copied(self):
        metadata = {"tags": ["old"]}
        index = indexer_of().add(
            indexer_of().empty(), [Document(TEXTS[0], source_id="a", metadata=metadata)]
        )[0]
        metadata["tags"].append("new")
        assert index.passages[0].sources[0].metadata == {"tags": ["old"]}

    @pytest.mark.parametrize("metadata", [{"at": object()}, {"share": float("nan")}])
    def test_metadata_that_is_no_json_is_refused(self, metadata: dict):
        with pytest.raises(InputError, match="metadata must be JSON-like"):
            Document(TEXTS[0], metadata=metadata)

    def test_the_index_that_was_added_to_stays_as_it_was(self):
        indexer = indexer_of()
        old = indexed(TEXTS[0], indexer=indexer)
        before = (old.passages, old.phrases, old.passage_emb.clone(), old.graph.adjacency.weight.clone())
        new, _ = indexer.add(old, [Document(TEXTS[0], "more"), Document(TEXTS[1])])
        indexer.remove(new, texts=[TEXTS[0]])
        assert (old.passages, old.phrases) == before[:2]
        assert torch.equal(old.passage_emb, before[2])
        assert torch.equal(old.graph.adjacency.weight, before[3])


class TestSources:
    def test_a_text_in_two_sources_is_one_passage_with_both(self):
        index = indexed(Document(TEXTS[0], "b.md"), Document(TEXTS[0], "a.md", {"title": "A"}))
        assert sources_of(index) == {TEXTS[0]: [("a.md", 0, {"title": "A"}), ("b.md", 0, {})]}

    def test_without_a_source_the_content_id_is_the_source(self):
        assert sources_of(indexed(TEXTS[0])) == {TEXTS[0]: [(ID(TEXTS[0]), 0, {})]}

    def test_positions_go_on_across_calls(self):
        indexer = indexer_of()
        index = indexed(Document(TEXTS[0], "s"), Document(TEXTS[1], "s"), indexer=indexer)
        index, _ = indexer.add(index, [Document(TEXTS[2], "s"), Document(TEXTS[3], "other")])
        positions = {text: sources[0][1] for text, sources in sources_of(index).items()}
        assert positions == {TEXTS[0]: 0, TEXTS[1]: 1, TEXTS[2]: 2, TEXTS[3]: 0}

    def test_a_position_stays_when_a_document_is_added_again_or_another_goes(self):
        indexer = indexer_of()
        index = indexed(*(Document(text, "s") for text in TEXTS[:3]), indexer=indexer)
        index, _ = indexer.remove(index, texts=[TEXTS[0]])
        index, _ = indexer.add(index, [Document(TEXTS[2], "s"), Document(TEXTS[3], "s")])
        positions = {text: sources[0][1] for text, sources in sources_of(index).items()}
        assert positions == {TEXTS[1]: 1, TEXTS[2]: 2, TEXTS[3]: 3}

    def test_changed_metadata_replaces_the_old_of_the_same_source_only(self):
        indexer = indexer_of()
        index = indexed(
            Document(TEXTS[1], "s"),
            Document(TEXTS[0], "s", {"v": 1}),
            Document(TEXTS[0], "t", {"v": 1}),
            indexer=indexer,
        )
        index, report = indexer.add(index, [Document(TEXTS[0], "s", {"w": 2})])
        assert sources_of(index)[TEXTS[0]] == [("s", 1, {"w": 2}), ("t", 0, {"v": 1})]
        assert report.passages_known == 1


class TestFailedExtractions:
    def test_the_passage_is_in_and_the_report_says_why(self):
        indexer = indexer_of(FakeExtractor(failing=[TEXTS[0]]))
        documents = [Document(TEXTS[0], "b"), Document(TEXTS[0], "a"), Document(TEXTS[2])]
        index, report = indexer.add(indexer.empty(), documents)
        assert report.failed == (FailedPassage(ID(TEXTS[0]), ("a", "b"), "no reply"),)
        assert report.passages_added == 2
        row = index.passage_row[ID(TEXTS[0])]
        assert index.extractions[row].status == "failed"
        assert index.passage_emb[row].norm().item() == pytest.approx(1)
        assert index.phrases == ("ana", "bo")

    def test_adding_it_again_retries_it_and_only_it(self):
        extractor = FakeExtractor(failing=[TEXTS[0], TEXTS[1]])
        indexer = indexer_of(extractor)
        index = indexed(TEXTS[0], TEXTS[1], indexer=indexer)
        extractor.failing.clear()
        extractor.asked.clear()
        index, report = indexer.add(index, [Document(TEXTS[2])])
        assert extractor.asked == [TEXTS[2]]
        assert report.failed == ()
        index, report = indexer.add(index, [Document(TEXTS[0])])
        assert extractor.asked == [TEXTS[2], TEXTS[0]]
        assert (report.passages_added, report.passages_known) == (0, 1)
        assert (report.phrases_added, report.facts_added) == (1, 1)
        assert index.extractions[index.passage_row[ID(TEXTS[0])]].status == "ok"
        assert index.extractions[index.passage_row[ID(TEXTS[1])]].status == "failed"

    def test_a_retry_that_fails_is_reported_again(self):
        indexer = indexer_of(FakeExtractor(failing=[TEXTS[0]]))
        _, report = indexer.add(indexed(TEXTS[0], indexer=indexer), [Document(TEXTS[0])])
        assert [failed.passage_id for failed in report.failed] == [ID(TEXTS[0])]
        assert report.passages_known == 1


class TestRemove:
    def test_what_another_source_holds_stays(self):
        indexer = indexer_of()
        documents = [
            Document(TEXTS[0], "a"),
            Document(TEXTS[0], "b"),
            Document(TEXTS[1], "a"),
            Document(TEXTS[2]),
        ]
        index, report = indexer.remove(indexed(*documents, indexer=indexer), source_ids=["a"])
        assert report.passages_removed == (ID(TEXTS[1]),)
        assert report.passages_kept == (ID(TEXTS[0]),)
        assert (report.phrases_removed, report.facts_removed, report.not_found) == (1, 1, ())
        assert sources_of(index) == {TEXTS[0]: [("b", 0, {})], TEXTS[2]: [(ID(TEXTS[2]), 0, {})]}

    @pytest.mark.parametrize("named", [{"passage_ids": [ID(TEXTS[0])]}, {"texts": [TEXTS[0]]}])
    def test_a_passage_named_by_itself_goes_from_all_its_sources(self, named: dict[str, list[str]]):
        indexer = indexer_of()
        index = indexed(Document(TEXTS[0], "a"), Document(TEXTS[0], "b"), TEXTS[2], indexer=indexer)
        index, report = indexer.remove(index, **named)
        assert [passage.text for passage in index.passages] == [TEXTS[2]]
        assert (report.passages_removed, report.passages_kept) == ((ID(TEXTS[0]),), ())

    def test_a_passage_that_goes_by_its_text_is_not_kept_by_its_other_source(self):
        indexer = indexer_of()
        index = indexed(Document(TEXTS[0], "a"), Document(TEXTS[0], "b"), indexer=indexer)
        index, report = indexer.remove(index, source_ids=["a"], texts=[TEXTS[0]])
        assert index.passages == ()
        assert (report.passages_removed, report.passages_kept) == ((ID(TEXTS[0]),), ())

    def test_naming_all_sources_of_a_passage_removes_it(self):
        indexer = indexer_of()
        index = indexed(Document(TEXTS[0], "a"), Document(TEXTS[0], "b"), indexer=indexer)
        _, report = indexer.remove(index, source_ids=["b", "a"])
        assert report.passages_removed == (ID(TEXTS[0]),)

    def test_what_is_not_there_is_listed_once_each(self):
        indexer = indexer_of()
        index, report = indexer.remove(
            indexed(TEXTS[0], indexer=indexer),
            source_ids=["x", ID(TEXTS[0]), "x"],
            passage_ids=["passage-y"],
            texts=["z", "z", TEXTS[1]],
        )
        assert report.not_found == ("x", "passage-y", "z", TEXTS[1])
        assert report.passages_removed == (ID(TEXTS[0]),)
        assert index.passages == ()

    def test_nothing_named_changes_nothing(self):
        indexer = indexer_of()
        old = indexed(*TEXTS, indexer=indexer)
        new, report = indexer.remove(old)
        assert new.passages == old.passages
        assert (report.passages_removed, report.passages_kept, report.not_found) == ((), (), ())
        assert (report.phrases_removed, report.facts_removed) == (0, 0)

    @pytest.mark.parametrize("name", ["source_ids", "passage_ids", "texts"])
    def test_a_lone_string_is_refused(self, name: str):
        indexer = indexer_of()
        with pytest.raises(InputError, match=f"{name} must be a list of strings, got the string 'abc'"):
            indexer.remove(indexer.empty(), **{name: "abc"})

    def test_a_text_that_is_not_unicode_is_refused(self):
        indexer = indexer_of()
        with pytest.raises(InputError, match="surrogate"):
            indexer.remove(indexer.empty(), texts=["\ud800"])

    def test_no_model_is_asked(self):
        extractor, embedder = FakeExtractor(failing=[TEXTS[2]]), FakeEmbedder()
        indexer = indexer_of(extractor, embedder)
        index = indexed(*TEXTS, indexer=indexer)
        extractor.asked.clear()
        embedder.asked.clear()
        indexer.remove(index, texts=[TEXTS[0]])
        assert (extractor.asked, embedder.asked) == ([], [])

    def test_a_shared_fact_stays_with_the_document_that_still_states_it(self):
        """Case delete-01: D1 and D2 state (Ana, works at, Acme), D1 alone (Acme, based in, Oslo)."""
        indexer = indexer_of()
        d2, d1 = TEXTS[0], TEXTS[1]
        both = indexed(Document(d1, "D1"), Document(d2, "D2"), indexer=indexer)
        assert (edge(both, "ana", "acme"), edge(both, "acme", "oslo")) == (2, 1)
        index, report = indexer.remove(both, source_ids=["D1"])
        assert edge(index, "ana", "acme") == 1
        assert edge(index, "ana", d2) == edge(index, "acme", d2) == 1
        assert index.phrases == ("acme", "ana")
        assert index.facts == (Triple("ana", "works at", "acme"),)
        assert (report.phrases_removed, report.facts_removed) == (1, 1)
        assert report.passages_removed == (ID(d1),)

    def test_a_synonym_pushed_out_by_the_cap_returns_when_others_go(self):
        stated = {
            "1": [("oslo harbour", "is", "x")],
            "2": [("oslo harbours", "is", "y")],
            "3": [("oslo harbou", "is", "z")],
        }
        options = {"synonym_cap": 1, "synonym_threshold": 0.5}
        indexer = indexer_of(FakeExtractor(stated), FakeEmbedder(dim=256), **options)
        index = indexed(*stated, indexer=indexer)
        names = ("oslo harbour", "oslo harbours", "oslo harbou")
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        joined = [pair for pair in pairs if edge(index, *pair) > 0]
        assert len(index.synonyms) == 3
        assert len(joined) == 1
        left = [pair for pair in pairs if joined[0][0] not in pair]
        gone = {"oslo harbour": "1", "oslo harbours": "2", "oslo harbou": "3"}[joined[0][0]]
        assert edge(indexer.remove(index, texts=[gone])[0], *left[0]) > 0


class TestEmptyIndex:
    def test_it_has_every_part_with_no_rows(self):
        index = indexer_of(embedder=FakeEmbedder(dim=7)).empty()
        assert index.passage_emb.shape == index.phrase_emb.shape == index.fact_emb.shape == (0, 7)
        assert (index.passages, index.extractions, index.phrases, index.facts) == ((), (), (), ())
        assert (index.graph.validate().num_nodes, index.graph.num_edges, len(index.synonyms)) == (0, 0, 0)
        assert index.passages_per_phrase.shape == (0,)
        assert (index.fact_ends.num_rows, index.named.shape, index.fact_bm25.weight.num_rows) == (0, (0,), 0)

    def test_removing_from_it_finds_nothing(self):
        indexer = indexer_of()
        _, report = indexer.remove(indexer.empty(), source_ids=["a"], texts=["b"])
        assert report.not_found == ("a", "b")

    def test_one_passage_without_facts_is_an_index(self):
        index = indexed(TEXTS[3])
        assert index.passage_emb.shape[0] == index.graph.num_nodes == 1
        assert index.graph.num_edges == 0


class TestIdentity:
    @pytest.mark.parametrize(
        ("other", "what"),
        [
            (indexer_of(embedder=FakeEmbedder(dim=17)), "embedder"),
            (indexer_of(text=TextOptions(fact_template="repr")), "text options"),
            (indexer_of(synonym_cap=7), "graph options"),
            (
                Indexer(embedder=FakeEmbedder(), extractor=FakeExtractor(), graph=ReferenceGraphOptions()),
                "graph options",
            ),
        ],
    )
    def test_an_index_that_was_made_otherwise_is_refused(self, other: Indexer, what: str):
        index = indexed(TEXTS[0])
        with pytest.raises(CompatibilityError, match=f"built with the {what} .*, this indexer has "):
            other.add(index, [Document(TEXTS[1])])
        with pytest.raises(CompatibilityError, match=f"built with the {what} "):
            other.remove(index, texts=[TEXTS[0]])

    def test_an_equal_indexer_goes_on(self):
        index, _ = indexer_of().add(indexed(TEXTS[0]), [Document(TEXTS[1])])
        assert len(index.passages) == 2


class TestBrokenModels:
    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            ("longer", "declared with dim=16, but its vectors have 32 numbers"),
            ("missing", "for 1 texts, expected"),
            ("nan", "returned NaN or infinity for 1 of 1 texts"),
        ],
    )
    def test_rows_that_are_no_vectors_are_refused(self, spoil: str, message: str):
        embedder = FakeEmbedder()
        indexer = indexer_of(embedder=embedder)
        index = indexed(TEXTS[0], indexer=indexer)
        embedder.spoil = spoil
        with pytest.raises(BackendError, match=message):
            indexer.add(index, [Document(TEXTS[2])])
        embedder.spoil = ""
        assert len(indexer.add(index, [Document(TEXTS[2])])[0].passages) == 2

    @pytest.mark.parametrize("number", [0, 1, 3])
    def test_an_extractor_that_skips_a_passage_is_refused(self, number: int):
        class Miscounting(FakeExtractor):
            def extract(
                self, passages: Sequence[Passage], progress: Progress = no_progress
            ) -> list[Extraction]:
                return [Extraction()] * number

        indexer = indexer_of(Miscounting())
        with pytest.raises(
            BackendError, match=f"gave {number} extractions for 2 passages; expected one for each"
        ):
            indexer.add(indexer.empty(), [Document(TEXTS[0]), Document(TEXTS[1])])

    def test_vectors_of_another_length_become_unit_vectors(self):
        class Long(FakeEmbedder):
            def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> Tensor:
                return super().embed(texts, role, progress) * 3

        index = indexed(*TEXTS, indexer=indexer_of(embedder=Long()))
        torch.testing.assert_close(index.passage_emb.norm(dim=1), torch.ones(4))


def test_progress_names_the_stages():
    seen: list[str] = []
    indexer = indexer_of()
    indexer.add(
        indexer.empty(),
        [Document(text) for text in TEXTS],
        progress=lambda stage, done, total: seen.append(stage),
    )
    assert set(seen) == {"embed passage", "embed phrase", "embed fact", "synonyms"}
