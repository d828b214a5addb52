import dataclasses

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractions import Extractions
from hipporag_torch.graph_construction import GraphOptions, Statements, build_graph
from hipporag_torch.index import Index
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Passage, Triple
from hipporag_torch.vocabulary import Stated, Vocabulary

REFERENCE = TextOptions(normalisation="reference")


def extraction(*triples: tuple[str, str, str]) -> Extraction:
    return Extraction(triples=tuple(Triple(*triple) for triple in triples))


def vocabulary_of(*extractions: Extraction, text: TextOptions | None = None) -> Vocabulary:
    return Vocabulary.of(extractions, text or TextOptions())


def rows_of(statements: Statements) -> list[tuple[int, ...]]:
    """(passage, fact, subject, object) of each statement."""
    parts = (statements.passage_idx, statements.fact_idx, statements.subject_idx, statements.object_idx)
    return list(zip(*(part.tolist() for part in parts), strict=True))


def lists_of(ragged: Ragged) -> list[list[int]]:
    return [ragged.values[ragged.row == row].tolist() for row in range(ragged.num_rows)]


class TestVocabulary:
    def test_rows_ascend_whatever_the_order_of_triples(self):
        vocabulary = vocabulary_of(
            extraction(("Oslo", "in", "Norway"), ("Ana", "works at", "Acme")),
            extraction(),
            extraction(("Acme", "based in", "Oslo"), ("Ana", "works at", "Acme")),
        )
        assert vocabulary.phrases == ("acme", "ana", "norway", "oslo")
        assert vocabulary.facts == (
            Triple("acme", "based in", "oslo"),
            Triple("ana", "works at", "acme"),
            Triple("oslo", "in", "norway"),
        )
        assert rows_of(vocabulary.statements) == [(0, 1, 1, 0), (0, 2, 3, 2), (2, 0, 0, 3), (2, 1, 1, 0)]

    def test_a_fact_in_two_spellings_stands_twice_and_the_same_wording_once(self):
        spelled = extraction(("Ana", "knows", "Bo"), ("ANA", "knows", "Bo"), ("Ana", "knows", "Bo"))
        assert rows_of(vocabulary_of(spelled, spelled).statements) == [(0, 0, 0, 1)] * 2 + [(1, 0, 0, 1)] * 2

    def test_a_triple_without_a_key_does_not_count(self):
        vocabulary = vocabulary_of(extraction(("\u200b", "is", "Bo"), ("Bo", " ", "Al"), ("Bo", "is", "Bo")))
        assert vocabulary.phrases == ("bo",)
        assert rows_of(vocabulary.statements) == [(0, 0, 0, 0)]

    def test_the_reference_keeps_the_empty_phrase(self):
        vocabulary = vocabulary_of(extraction(("北京", "位于", "中国")), text=REFERENCE)
        assert vocabulary.phrases == ("",)
        assert vocabulary.facts == (Triple("", "", ""),)

    @pytest.mark.parametrize(
        ("triples", "phrases"),
        [
            ([("北京", "位于", "中国"), ("上海", "位于", "中国")], {"北京", "上海", "中国"}),
            ([("C", "came before", "C++"), ("C++", "came before", "C#")], {"c", "c++", "c#"}),
            (
                [("Electrons", "repel", "electrons"), (" electrons ", "have", "charge")],
                {"electrons", "charge"},
            ),
        ],
    )
    def test_names_in_any_script(self, triples: list[tuple[str, str, str]], phrases: set[str]):
        assert set(vocabulary_of(extraction(*triples)).phrases) == phrases

    def test_predicates_are_no_phrases(self):
        assert vocabulary_of(extraction(("a", "loves", "b"))).phrases == ("a", "b")

    @pytest.mark.parametrize("extractions", [(), (Extraction(), Extraction(status="failed", reason="x"))])
    def test_nothing_stated(self, extractions: tuple[Extraction, ...]):
        vocabulary = vocabulary_of(*extractions)
        assert (vocabulary.phrases, vocabulary.facts, len(vocabulary.statements)) == ((), (), 0)


class TestVocabularyChanged:
    FIRST = extraction(("Ana", "works at", "Acme"), ("Bo", "knows", "Ana"))
    SECOND = extraction(("Ana", "works at", "Acme"), ("Acme", "based in", "Oslo"))
    THIRD = extraction(("Acme", "based in", "Oslo"), ("Aa", "is", "Zz"), ("AA", "is", "Zz"))

    def test_what_nobody_states_goes_and_rows_close_up(self):
        old = vocabulary_of(self.FIRST, self.SECOND)
        change = old.changed(torch.tensor([-1, 0]), {})
        assert change.vocabulary.phrases == ("acme", "ana", "oslo")
        assert change.phrase_idx.tolist() == [0, 1, -1, 2]
        assert change.fact_idx.tolist() == [0, 1, -1]
        assert rows_of(change.vocabulary.statements) == rows_of(vocabulary_of(self.SECOND).statements)

    def test_what_is_new_goes_between_and_what_is_known_keeps_its_object(self):
        old = vocabulary_of(self.FIRST, self.SECOND)
        stated = {1: Stated.of(self.THIRD, TextOptions())}
        change = old.changed(torch.tensor([0, 2]), stated)
        expected = vocabulary_of(self.FIRST, self.THIRD, self.SECOND)
        new = change.vocabulary
        assert (new.phrases, new.facts) == (expected.phrases, expected.facts)
        assert rows_of(new.statements) == rows_of(expected.statements)
        assert lists_of(new.fact_ends) == lists_of(expected.fact_ends)
        assert torch.equal(new.statements.named, expected.statements.named)
        assert change.phrase_idx.tolist() == [1, 2, 3, 4]
        assert change.fact_idx.tolist() == [1, 2, 3]
        assert all(new.facts[row] is fact for row, fact in zip([1, 2, 3], old.facts, strict=True))

    def test_a_passage_may_state_again_what_only_it_stated(self):
        old = vocabulary_of(self.FIRST)
        change = old.changed(torch.tensor([-1]), {0: Stated.of(self.FIRST, TextOptions())})
        assert (change.phrase_idx.tolist(), change.fact_idx.tolist()) == ([0, 1, 2], [0, 1])
        assert rows_of(change.vocabulary.statements) == rows_of(old.statements)


def small_index() -> Index:
    """Passage 0: Ana works at Acme, twice; passage 1: Ana works at Acme, Acme is Acme; passage 2: nothing."""
    extractions = (
        extraction(("ana", "works at", "acme"), ("Ana", "works at", "acme")),
        extraction(("ana", "works at", "acme"), ("acme", "is", "acme")),
        Extraction(),
    )
    vocabulary = vocabulary_of(*extractions)
    options = GraphOptions()
    embedder = HashingEmbedder(dim=8)
    return Index(
        embedder=embedder.identity,
        text=TextOptions(),
        graph_options=options,
        passages=tuple(Passage(id, id) for id in ("p0", "p1", "p2")),
        extractions=Extractions.of(extractions),
        failed={},
        phrases=vocabulary.phrases,
        facts=vocabulary.facts,
        statements=vocabulary.statements,
        lexicon=vocabulary.lexicon,
        passage_emb=embedder.embed(["p0", "p1", "p2"], "passage"),
        phrase_emb=embedder.embed(vocabulary.phrases, "phrase"),
        fact_emb=embedder.embed(["a", "b"], "fact"),
        synonyms=Pairs.none(),
        graph=build_graph(vocabulary.phrases, 3, vocabulary.statements, Pairs.none(), options),
    )


class TestIndex:
    def test_rows_of_passages_and_ends_of_facts(self):
        index = small_index()
        assert index.passage_row == {"p0": 0, "p1": 1, "p2": 2}
        assert index.phrases == ("acme", "ana")
        assert lists_of(index.fact_ends) == [[0, 0], [1, 0]]

    def test_a_passage_counts_once_for_each_of_its_phrases(self):
        assert small_index().passages_per_phrase.tolist() == [2, 2]

    def test_it_cannot_be_changed(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            small_index().passages = ()  # pyright: ignore[reportAttributeAccessIssue]

    def test_to_another_device_carries_vectors_and_graph(self, device: torch.device):
        index = small_index()
        moved = index.to(device)
        on_device = (
            moved.passage_emb,
            moved.phrase_emb,
            moved.fact_emb,
            moved.graph.adjacency.weight,
            moved.fact_ends.row_ptr,
            moved.fact_ends.values,
            moved.named,
            moved.passages_per_phrase,
            moved.matcher.names.key,
            moved.fact_bm25.weight.weight,
        )
        assert {part.device.type for part in on_device} == {device.type}
        assert torch.equal(moved.passage_emb.cpu(), index.passage_emb)
        assert moved.passages == index.passages
