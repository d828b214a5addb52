"""Updates, retries, re-extractions, plans and rebuilds; adding and removing are in test_indexer.py."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BudgetError, CompatibilityError, ConfigError, ExtractionError, InputError
from hipporag_torch.extractions import Extractions
from hipporag_torch.graph_construction import GraphOptions, ReferenceGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Chunker, EmbedderIdentity
from hipporag_torch.reports import ChangePlan, FailedPassage, SourceReport
from hipporag_torch.text import TextOptions
from hipporag_torch.types import (
    Chunk,
    Document,
    Extraction,
    Passage,
    Progress,
    Role,
    Triple,
    no_progress,
)

ID = TextOptions().passage_id


class SentenceExtractor:
    """Each line "a b c" is a triple. Texts in `failing` fail, those in `refused` for good."""

    calls_per_passage = 2

    def __init__(self, *, producer: str = "one", failing: Sequence[str] = (), refused: Sequence[str] = ()):
        self.producer = producer
        self.failing = set(failing)
        self.refused = set(refused)
        self.asked: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        self.asked += [passage.text for passage in passages]
        return [self._extraction(passage.text) for passage in passages]

    def _extraction(self, text: str) -> Extraction:
        if text in self.failing | self.refused:
            return Extraction(
                status="failed",
                reason="no JSON",
                producer=self.producer,
                reply="Sorry.",
                permanent=text in self.refused,
            )
        triples = tuple(Triple(*line.split()) for line in text.splitlines() if len(line.split()) == 3)
        return Extraction(triples=triples, producer=self.producer)


class NotingEmbedder:
    """Hashes texts, and notes what it was asked."""

    def __init__(self, dim: int = 16) -> None:
        self.hashing = HashingEmbedder(dim=dim)
        self.asked: list[tuple[Role, str]] = []

    @property
    def identity(self) -> EmbedderIdentity:
        return self.hashing.identity

    def instruction(self, role: Role) -> str:
        return self.hashing.instruction(role)

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> Tensor:
        self.asked += [(role, text) for text in texts]
        return self.hashing.embed(texts, role, progress)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


class LineChunker:
    def chunk(self, document: Document) -> list[Chunk]:
        chunks: list[Chunk] = []
        for line in document.text.splitlines():
            start = chunks[-1].end + 1 if chunks else 0
            chunks.append(Chunk(line, start, start + len(line)))
        return chunks


ANA, BO, CY = "ana knows bo", "bo knows cy", "cy knows ana"


def indexer_of(
    extractor: SentenceExtractor | None = None,
    embedder: NotingEmbedder | None = None,
    chunker: Chunker | None = None,
    **graph: float,
) -> Indexer:
    return Indexer(
        embedder=embedder or NotingEmbedder(),
        extractor=extractor or SentenceExtractor(),
        chunker=chunker,
        graph=replace(GraphOptions(synonym_threshold=0.99), **graph),
    )


def indexed(indexer: Indexer, *documents: Document | str) -> Index:
    return indexer.add(indexer.empty(), [Document(d) if isinstance(d, str) else d for d in documents])[0]


def texts_of(index: Index, source_id: str) -> list[str]:
    """The texts that a source holds, by position."""
    held = [(s.position, p.text) for p in index.passages for s in p.sources if s.source_id == source_id]
    assert [position for position, _ in sorted(held)] == list(range(len(held)))
    return [text for _, text in sorted(held)]


class TestUpdate:
    def test_the_old_text_is_gone_the_new_one_there_and_the_unchanged_one_costs_nothing(self):
        extractor, embedder = SentenceExtractor(), NotingEmbedder()
        indexer = indexer_of(extractor, embedder)
        old = indexed(indexer, Document(ANA, "s"), Document(BO, "s"), Document(CY, "t"))
        extractor.asked.clear()
        embedder.asked.clear()
        new, report = indexer.update(old, "s", [Document("bo hates cy"), Document(ANA, "s", {"v": 2})])
        assert texts_of(new, "s") == ["bo hates cy", ANA]
        assert texts_of(new, "t") == [CY]
        assert new.facts == (
            Triple("ana", "knows", "bo"),
            Triple("bo", "hates", "cy"),
            Triple("cy", "knows", "ana"),
        )
        assert extractor.asked == ["bo hates cy"]
        assert embedder.asked == [("passage", "bo hates cy"), ("fact", "bo hates cy")]
        added, removed = report.added, report.removed
        assert (added.documents, added.passages_added, added.passages_known) == (2, 1, 1)
        assert (added.phrases_added, added.facts_added) == (0, 1)
        assert added.sources == {"s": SourceReport(passages_added=1, passages_known=1)}
        assert (removed.passages_removed, removed.passages_kept) == ((ID(BO),), ())
        assert (removed.phrases_removed, removed.facts_removed) == (0, 1)
        assert [s.metadata for s in new.passages[new.passage_row[ID(ANA)]].sources] == [{"v": 2}]

    def test_what_another_source_holds_stays_for_it(self):
        indexer = indexer_of()
        old = indexed(indexer, Document(ANA, "s"), Document(BO, "s"), Document(ANA, "t"))
        new, report = indexer.update(old, "s", [Document(CY)])
        assert (texts_of(new, "s"), texts_of(new, "t")) == ([CY], [ANA])
        assert report.removed.passages_removed == (ID(BO),)
        assert report.removed.passages_kept == (ID(ANA),)

    def test_with_the_same_documents_it_changes_nothing(self):
        extractor = SentenceExtractor()
        indexer = indexer_of(extractor)
        documents = [Document(ANA, "s"), Document(BO, "s")]
        old = indexed(indexer, *documents)
        extractor.asked.clear()
        new, report = indexer.update(old, "s", documents)
        assert extractor.asked == []
        assert all(one is other for one, other in zip(new.passages, old.passages, strict=True))
        assert (report.added.passages_added, report.added.passages_known) == (0, 2)
        assert report.removed.passages_removed == ()

    def test_every_line_that_a_chunked_document_keeps_is_kept(self):
        extractor = SentenceExtractor()
        indexer = indexer_of(extractor, chunker=LineChunker())
        old = indexed(indexer, Document(f"{ANA}\n{BO}", "s"))
        extractor.asked.clear()
        new, _ = indexer.update(old, "s", [Document(f"{CY}\n{BO}")])
        assert texts_of(new, "s") == [CY, BO]
        assert extractor.asked == [CY]
        (source,) = new.passages[new.passage_row[ID(BO)]].sources
        assert (source.start, source.end) == (13, 24)

    @pytest.mark.parametrize(
        ("source_id", "documents", "message"),
        [
            ("other", [Document(ANA)], "has no source 'other' to update; add its documents instead"),
            ("s", [], "no documents to update the source 's' with; remove it instead"),
            ("s", [Document(ANA, "t")], "a document of the source 't' cannot update 's'; leave"),
            ("s", [ANA], "expected a Document, got str"),
            (" ", [Document(ANA)], "source_id is empty"),
        ],
    )
    def test_what_is_no_update_is_refused(self, source_id: str, documents: list[Document], message: str):
        indexer = indexer_of()
        index = indexed(indexer, Document(ANA, "s"))
        with pytest.raises(InputError, match=message):
            indexer.update(index, source_id, documents)
        with pytest.raises(InputError, match=message):
            indexer.plan_update(index, source_id, documents)

    def test_a_failed_passage_that_stays_is_tried_again(self):
        extractor = SentenceExtractor(failing=[ANA], refused=[BO])
        indexer = indexer_of(extractor)
        index = indexed(indexer, Document(ANA, "s"), Document(BO, "s"))
        extractor.failing.clear()
        extractor.asked.clear()
        index, _ = indexer.update(index, "s", [Document(BO), Document(ANA)])
        assert extractor.asked == [ANA]
        assert index.failed == {ID(BO): True}


class TestOnError:
    def test_fail_lists_all_failures_after_the_last_passage(self):
        extractor = SentenceExtractor(failing=[ANA], refused=[BO])
        indexer = indexer_of(extractor)
        documents = [Document(ANA, "s"), Document(BO, "s"), Document(CY, "s")]
        with pytest.raises(
            ExtractionError, match=r"2 of 3 passages could not be extracted.*no JSON"
        ) as caught:
            indexer.add(indexer.empty(), documents, on_error="fail")
        assert sorted(extractor.asked) == [ANA, BO, CY]
        assert {f.passage_id: (f.reason, f.reply, f.permanent) for f in caught.value.failed} == {
            ID(ANA): ("no JSON", "Sorry.", False),
            ID(BO): ("no JSON", "Sorry.", True),
        }

    def test_every_change_that_extracts_can_fail(self):
        extractor = SentenceExtractor(failing=[ANA])
        indexer = indexer_of(extractor)
        index = indexed(indexer, Document(ANA, "s"))
        for change in (
            lambda: indexer.update(index, "s", [Document(ANA)], on_error="fail"),
            lambda: indexer.retry_failed(index, on_error="fail"),
            lambda: indexer.reextract(index, on_error="fail"),
        ):
            with pytest.raises(ExtractionError, match="1 of 1 passages"):
                change()

    def test_it_passes_where_nothing_fails(self):
        indexer = indexer_of()
        assert len(indexer.add(indexer.empty(), [Document(ANA)], on_error="fail")[0].passages) == 1

    def test_another_word_is_refused(self):
        indexer = indexer_of()
        with pytest.raises(ConfigError, match="on_error must be quarantine or fail, got 'ignore'"):
            indexer.add(indexer.empty(), [], on_error="ignore")  # pyright: ignore[reportArgumentType]


class TestRetryFailed:
    def test_permanent_failures_are_retried_on_request_only(self):
        extractor = SentenceExtractor(failing=[ANA], refused=[BO])
        indexer = indexer_of(extractor)
        index = indexed(indexer, ANA, BO, CY)
        assert index.failed == {ID(ANA): False, ID(BO): True}
        extractor.failing.clear()
        extractor.refused.clear()
        extractor.asked.clear()
        _, added = indexer.add(index, [Document(BO)])
        assert (extractor.asked, added.passages_known, added.failed) == ([], 1, ())
        index, report = indexer.retry_failed(index)
        assert extractor.asked == [ANA]
        assert (report.passages, report.failed) == ((ID(ANA),), ())
        assert (report.phrases_added, report.facts_added) == (1, 1)
        assert (report.phrases_removed, report.facts_removed) == (0, 0)
        assert index.failed == {ID(BO): True}
        index, report = indexer.retry_failed(index, permanent=True)
        assert report.passages == (ID(BO),)
        assert index.failed == {}
        assert len(index.facts) == 3

    def test_what_fails_again_is_listed_with_the_new_reply(self):
        indexer = indexer_of(SentenceExtractor(failing=[ANA]))
        index, report = indexer.retry_failed(indexed(indexer, Document(ANA, "s")))
        assert report.failed == (FailedPassage(ID(ANA), ("s",), "no JSON", "Sorry.", False),)
        assert index.failed == {ID(ANA): False}

    def test_nothing_failed_nothing_is_asked(self):
        extractor = SentenceExtractor()
        indexer = indexer_of(extractor)
        index = indexed(indexer, ANA)
        extractor.asked.clear()
        assert indexer.retry_failed(index)[1].passages == ()
        assert extractor.asked == []


class TestReextract:
    def test_all_passages_take_the_new_extraction(self):
        index = indexed(indexer_of(), ANA, "cy is: nobody else")
        assert index.facts == (Triple("ana", "knows", "bo"),)
        indexer = indexer_of(SentenceExtractor(producer="two"))
        new, report = indexer.reextract(index)
        assert {extraction.producer for extraction in new.extractions} == {"two"}
        assert report.passages == tuple(passage.id for passage in index.passages)
        assert report.without_facts == (ID("cy is: nobody else"),)
        assert (report.facts_added, report.facts_removed) == (0, 0)

    def test_facts_that_nobody_states_any_more_go(self):
        class Mute(SentenceExtractor):
            def _extraction(self, text: str) -> Extraction:
                return Extraction(producer="mute")

        index = indexed(indexer_of(), ANA, BO)
        new, report = indexer_of(Mute()).reextract(index)
        assert (new.phrases, new.facts, len(new.statements)) == ((), (), 0)
        assert (report.phrases_removed, report.facts_removed) == (3, 2)

    def test_one_that_fails_keeps_the_good_extraction_and_is_listed(self):
        index = indexed(indexer_of(SentenceExtractor(failing=[BO])), ANA, BO, CY)
        indexer = indexer_of(SentenceExtractor(producer="two", refused=[ANA, BO]))
        new, report = indexer.reextract(index)
        assert {failure.passage_id for failure in report.failed} == {ID(ANA), ID(BO)}
        assert new.failed == {ID(BO): True}
        rows = new.passage_row
        assert new.extractions[rows[ID(ANA)]] == index.extractions[rows[ID(ANA)]]
        assert new.extractions[rows[ID(CY)]].producer == "two"
        assert new.facts == (Triple("ana", "knows", "bo"), Triple("cy", "knows", "ana"))

    def test_the_good_one_that_is_kept_is_not_fresh_if_it_was_stored(self):
        index = indexed(indexer_of(), ANA, BO)
        rows = dict(enumerate(index.extractions))
        index = replace(index, extractions=Extractions(count=2, fresh={}, stored=lambda: rows))
        new, _ = indexer_of(SentenceExtractor(producer="two", failing=[ANA])).reextract(index)
        assert list(new.extractions.fresh) == [new.passage_row[ID(BO)]]

    def test_only_those_of_one_producer(self):
        index = indexed(indexer_of(), ANA)
        extractor = SentenceExtractor(producer="two")
        indexer = indexer_of(extractor)
        index, _ = indexer.add(index, [Document(BO)])
        extractor.asked.clear()
        assert indexer.plan_reextract(index, producer="one").extractor_calls == 2
        _, report = indexer.reextract(index, producer="one")
        assert (report.passages, extractor.asked) == ((ID(ANA),), [ANA])

    def test_a_producer_that_made_nothing_is_refused(self):
        indexer = indexer_of()
        with pytest.raises(InputError, match="no extraction was made by 'x'; the index has those of 'one'"):
            indexer.reextract(indexed(indexer, ANA), producer="x")
        with pytest.raises(InputError, match="those of none, it is empty"):
            indexer.plan_reextract(indexer.empty(), producer="x")


class TestPlans:
    def test_they_ask_no_model(self):
        extractor, embedder = SentenceExtractor(failing=[ANA], refused=[BO]), NotingEmbedder()
        indexer = indexer_of(extractor, embedder)
        index = indexed(indexer, Document(ANA, "s"), Document(BO, "s"), Document(CY, "s"))
        extractor.asked.clear()
        embedder.asked.clear()
        documents = [Document(text) for text in (ANA, BO, CY, "x is y", "x is y", "y is z")]
        assert indexer.plan_add(index, documents) == ChangePlan(
            documents=6, passages_new=2, passages_known=3, passages_retried=1, extractor_calls=6
        )
        assert indexer.plan_update(index, "s", documents[2:4]) == ChangePlan(
            documents=2,
            passages_new=1,
            passages_known=1,
            passages_removed=tuple(sorted([ID(ANA), ID(BO)])),
            extractor_calls=2,
        )
        assert indexer.plan_retry_failed(index) == ChangePlan(
            passages_known=1, passages_retried=1, extractor_calls=2
        )
        assert indexer.plan_retry_failed(index, permanent=True).extractor_calls == 4
        assert indexer.plan_reextract(index) == ChangePlan(
            passages_known=3, passages_retried=2, extractor_calls=6
        )
        assert (extractor.asked, embedder.asked) == ([], [])

    def test_chunks_count_one_by_one(self):
        indexer = indexer_of(chunker=LineChunker())
        plan = indexer.plan_add(indexer.empty(), [Document(f"{ANA}\n{BO}\n{ANA}")])
        assert (plan.documents, plan.passages_new, plan.extractor_calls) == (1, 2, 4)


class TestRebuild:
    def test_another_embedder_keeps_the_extractions(self):
        extractor = SentenceExtractor(failing=[CY])
        index = indexed(indexer_of(extractor), ANA, BO, CY)
        extractor.asked.clear()
        other = indexer_of(extractor, NotingEmbedder(dim=24))
        new = other.rebuild(index)
        assert extractor.asked == []
        expected = indexed(other, ANA, BO, CY)
        assert new.embedder == other.embedder.identity
        assert (new.extractions, new.failed) == (index.extractions, {ID(CY): False})
        for part in ("passage_emb", "phrase_emb", "fact_emb"):
            assert torch.equal(getattr(new, part), getattr(expected, part))
        assert torch.equal(new.graph.adjacency.weight, expected.graph.adjacency.weight)

    def test_another_kind_of_passage_id_is_refused(self):
        index = indexed(indexer_of(), ANA)
        md5 = Indexer(
            embedder=NotingEmbedder(), extractor=SentenceExtractor(), text=TextOptions(content_id="md5")
        )
        with pytest.raises(CompatibilityError, match="names its passages by sha256, this indexer by md5"):
            md5.rebuild(index)

    @pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 1.1])
    @pytest.mark.parametrize("cap", [1, 9])
    def test_another_graph_is_that_of_a_build_and_asks_no_model(self, threshold: float, cap: int):
        texts = ["oslo-harbour in norway", "oslo-harbours in norwayy", "oslo-harbou by norwa", ANA]
        index = indexed(indexer_of(synonym_threshold=0.5), *texts)
        assert len(index.synonyms) > 2
        embedder = NotingEmbedder()
        other = indexer_of(embedder=embedder, synonym_threshold=threshold, synonym_cap=cap, fact_weight=3.0)
        new = other.rebuild_graph(index)
        assert embedder.asked == []
        assert new.phrase_emb is index.phrase_emb
        expected = indexed(other, *texts)
        assert new.graph_options == expected.graph_options
        for part in ("first_idx", "second_idx", "cosine"):
            assert torch.equal(getattr(new.synonyms, part), getattr(expected.synonyms, part))
        for part in ("row_ptr", "col", "weight"):
            assert torch.equal(getattr(new.graph.adjacency, part), getattr(expected.graph.adjacency, part))

    def test_the_reference_graph_of_a_default_index(self):
        index = indexed(indexer_of(), ANA, BO)
        reference = Indexer(
            embedder=NotingEmbedder(), extractor=SentenceExtractor(), graph=ReferenceGraphOptions()
        )
        new = reference.rebuild_graph(index)
        assert new.graph_options == ReferenceGraphOptions()
        assert len(reference.add(new, [Document(CY)])[0].passages) == 3


class TestIdentity:
    def test_all_changes_refuse_an_index_that_was_made_otherwise(self):
        index = indexed(indexer_of(), Document(ANA, "s"))
        other = indexer_of(embedder=NotingEmbedder(dim=17))
        for change in (
            lambda: other.plan_add(index, []),
            lambda: other.update(index, "s", [Document(BO)]),
            lambda: other.plan_update(index, "s", [Document(BO)]),
            lambda: other.retry_failed(index),
            lambda: other.plan_retry_failed(index),
            lambda: other.reextract(index),
            lambda: other.plan_reextract(index),
        ):
            with pytest.raises(CompatibilityError, match="built with the embedder"):
                change()


class Miser(SentenceExtractor):
    """Has the budget for so many passages a call, and hands over what it had finished."""

    affordable = 1

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        made = super().extract(passages[: self.affordable], progress)
        if len(passages) > self.affordable:
            error = BudgetError("2 of 2 calls spent")
            error.finished = {p.id: extraction for p, extraction in zip(passages, made, strict=False)}
            raise error
        return made


class TestBudget:
    TEXTS = ("Ada founded Northwind", "Tove joined Northwind", "Rye likes rain")

    def documents(self) -> list[Document]:
        return [Document(text, source_id="notes") for text in self.TEXTS]

    def test_an_add_keeps_what_was_finished_and_says_what_is_left(self) -> None:
        extractor = Miser()
        indexer = indexer_of(extractor)
        index, report = indexer.add(indexer.empty(), self.documents())
        assert [passage.text for passage in index.passages] == extractor.asked
        assert report.stopped == "2 of 2 calls spent"
        assert set(report.left) == {ID(text) for text in self.TEXTS} - set(index.passage_row)
        assert (report.passages_added, report.sources["notes"].passages_added) == (1, 1)

    def test_adding_again_goes_on_where_it_stopped(self) -> None:
        extractor = Miser()
        indexer = indexer_of(extractor)
        index, left = indexer.empty(), []
        for _ in self.TEXTS:
            index, report = indexer.add(index, self.documents())
            left.append(len(report.left))
        assert left == [2, 1, 0]
        assert sorted(extractor.asked) == sorted(self.TEXTS)

    def test_a_known_passage_that_is_not_reached_keeps_what_it_had(self) -> None:
        extractor = Miser(failing=self.TEXTS)
        extractor.affordable = 3
        indexer = indexer_of(extractor)
        index, _ = indexer.add(indexer.empty(), self.documents())
        extractor.failing.clear()
        extractor.affordable = 1
        again, report = indexer.retry_failed(index)
        assert (len(report.passages), len(report.left), len(again.failed)) == (1, 2, 2)
        assert len(again.passages) == 3

    @pytest.mark.parametrize("options", [{"on_error": "fail"}, {}])
    def test_all_or_nothing_changes_nothing(self, options: dict[str, Any]) -> None:
        extractor = Miser()
        if not options:
            extractor.affordable = 0
        indexer = indexer_of(extractor)
        with pytest.raises(BudgetError, match="2 of 2 calls spent"):
            indexer.add(indexer.empty(), self.documents(), **options)

    def test_an_update_never_drops_the_old_text_for_half_of_the_new(self) -> None:
        extractor = Miser()
        indexer = indexer_of(extractor)
        index, _ = indexer.add(indexer.empty(), self.documents()[:1])
        with pytest.raises(BudgetError):
            indexer.update(index, "notes", list(self.documents()[1:]))
