"""Sentences in the place of facts, and which phrases are names."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Fact, Sentence, Triple
from hipporag_torch.vocabulary import Stated, Vocabulary

TEXT = TextOptions()
Said = tuple[str, ...] | tuple[str, tuple[str, ...]]


def extraction(*said: Said, entities: tuple[str, ...] = ()) -> Extraction:
    """Of triples (subject, predicate, object) and sentences (text, names)."""
    return Extraction(
        entities=entities,
        triples=tuple(Triple(*one) for one in said if len(one) == 3),
        sentences=tuple((Sentence(one[0]), tuple(one[1])) for one in said if len(one) == 2),
    )


def vocabulary_of(*extractions: Extraction, text: TextOptions = TEXT) -> Vocabulary:
    return Vocabulary.of(extractions, text)


def rows_of(vocabulary: Vocabulary) -> list[tuple[int, ...]]:
    """(passage, fact, subject, object) of each statement."""
    its = vocabulary.statements
    parts = (its.passage_idx, its.fact_idx, its.subject_idx, its.object_idx)
    return list(zip(*(part.tolist() for part in parts), strict=True))


def lists_of(ragged: Ragged) -> list[list[int]]:
    return [ragged.values[ragged.row == row].tolist() for row in range(ragged.num_rows)]


def ends_of(vocabulary: Vocabulary) -> dict[Fact, list[str]]:
    ends = lists_of(vocabulary.fact_ends)
    return {
        fact: [vocabulary.phrases[row] for row in rows]
        for fact, rows in zip(vocabulary.facts, ends, strict=True)
    }


def names_of(vocabulary: Vocabulary) -> set[str]:
    return {
        phrase for phrase, named in zip(vocabulary.phrases, vocabulary.named.tolist(), strict=True) if named
    }


class TestSentences:
    def test_a_sentence_has_one_statement_for_each_name_with_that_name_at_both_ends(self):
        vocabulary = vocabulary_of(extraction(("Ana met Bo in Oslo.", ("Oslo", "Ana", "Bo"))))
        assert vocabulary.phrases == ("ana", "bo", "oslo")
        assert vocabulary.facts == (Sentence("Ana met Bo in Oslo."),)
        assert rows_of(vocabulary) == [(0, 0, 0, 0), (0, 0, 1, 1), (0, 0, 2, 2)]
        assert lists_of(vocabulary.fact_ends) == [[0, 1, 2]]

    def test_names_with_one_key_are_one_end(self):
        vocabulary = vocabulary_of(extraction(("Ana, ANA, Bo.", ("Ana", "ANA", "Ana ", "Bo"))))
        assert rows_of(vocabulary) == [(0, 0, 0, 0), (0, 0, 1, 1)]
        assert lists_of(vocabulary.fact_ends) == [[0, 1]]

    def test_a_sentence_that_names_nothing_states_nothing(self):
        vocabulary = vocabulary_of(extraction(("It rained.", ()), ("It snowed.", ("\u200b", " "))))
        assert (vocabulary.phrases, vocabulary.facts, rows_of(vocabulary)) == ((), (), [])

    def test_the_same_sentence_of_two_passages_has_the_names_of_both(self):
        vocabulary = vocabulary_of(
            extraction(("Ana met Bo.", ("Bo",))), extraction(), extraction(("Ana  met\nBo.", ("Ana", "Bo")))
        )
        assert ends_of(vocabulary) == {Sentence("Ana met Bo."): ["ana", "bo"]}
        assert rows_of(vocabulary) == [(0, 0, 1, 1), (2, 0, 0, 0), (2, 0, 1, 1)]

    def test_sentences_keep_their_capitals_and_marks(self):
        vocabulary = vocabulary_of(extraction(("Oslo!", ("Oslo",)), ("oslo!", ("Oslo",))))
        assert vocabulary.facts == (Sentence("Oslo!"), Sentence("oslo!"))

    def test_facts_ascend_by_their_parts_whatever_they_are(self):
        vocabulary = vocabulary_of(
            extraction(("b", "is", "c"), ("a", "is", "b"), ("b", ("A",)), ("a b", ("A",)), ("c", "is", "b"))
        )
        assert vocabulary.facts == (
            Triple("a", "is", "b"),
            Sentence("a b"),
            Sentence("b"),
            Triple("b", "is", "c"),
            Triple("c", "is", "b"),
        )
        assert list(ends_of(vocabulary).values()) == [["a", "b"], ["a"], ["a"], ["b", "c"], ["c", "b"]]

    def test_a_triple_has_two_ends_also_if_they_are_one_phrase(self):
        vocabulary = vocabulary_of(extraction(("Ana", "is", "ana"), ("Ana is Ana.", ("Ana", "Ana"))))
        assert list(ends_of(vocabulary).values()) == [["ana"], ["ana", "ana"]]

    def test_words_of_sentences_and_triples_are_tokens_without_stop_words(self):
        lexicon = vocabulary_of(extraction(("Ana", "is in the", "Oslo"), ("The Oslo!", ("Oslo",)))).lexicon
        sentence, triple = lists_of(lexicon.fact_tokens)
        ana, oslo = lists_of(lexicon.phrase_tokens)
        assert (triple, sentence) == (ana + oslo, oslo)


class TestWithoutKey:
    def test_triples_and_names_without_a_key_are_counted(self):
        its = Stated.of(
            extraction(("\u200b", "is", "Bo"), ("Al", " ", "Bo"), ("Bo came.", ("\u200b", "Bo", "  "))), TEXT
        )
        assert its.without_key == 4
        assert [(s.fact, s.subject) for s in its.statements] == [(Sentence("Bo came."), "bo")]

    def test_a_name_without_a_reference_key_is_none(self):
        """A triple with an empty end stays there, as in the reference; a sentence has no need of one."""
        its = Stated.of(
            extraction(("北京 is big.", ("北京",)), ("北京", "is", "big")),
            TextOptions(normalisation="reference"),
        )
        assert its.without_key == 1
        assert [s.fact for s in its.statements] == [Triple("", "is", "big")]


class TestNamed:
    @pytest.mark.parametrize(
        ("written", "is_name"),
        [
            (["Rose"], True),
            (["rose"], False),
            (["Rose", "rose"], False),
            (["Rose", "ROSE", "rose"], True),
            (["Rose", "rose", "rose"], False),
        ],
    )
    def test_more_than_half_of_the_ends_must_be_written_as_a_name(self, written: list[str], is_name: bool):
        passages = [extraction((end, "is", f"Thing {n}")) for n, end in enumerate(written)]
        assert ("rose" in names_of(vocabulary_of(*passages))) == is_name

    def test_both_ends_count_and_each_wording_of_a_fact(self):
        vocabulary = vocabulary_of(extraction(("Ana", "picks", "Rose"), ("Ana", "picks", "rose")))
        assert names_of(vocabulary) == {"ana"}
        assert vocabulary.statements.named.tolist() == [[True, False], [True, True]]

    def test_a_name_of_a_sentence_is_judged_by_its_writing(self):
        vocabulary = vocabulary_of(extraction(("Ana picks a rose.", ("Ana", "rose"))))
        assert names_of(vocabulary) == {"ana"}

    def test_a_script_without_capitals_has_the_names_that_are_entities(self):
        vocabulary = vocabulary_of(extraction(("北京", "位于", "中国"), entities=("北京",)))
        assert names_of(vocabulary) == {"北京"}


SAID = st.sampled_from(
    [
        ("Ana", "works at", "Acme"),
        ("ana", "works at", "Acme"),
        ("Acme", "is", "Acme"),
        ("rain", "hits", "Acme"),
        ("\u200b", "is", "Ana"),
        ("Ana of Acme came.", ("Ana", "Acme")),
        ("Ana of Acme came.", ("acme", "Oslo")),
        ("Ana  of Acme came.", ()),
        ("Acme", ("Acme", "\u200b", "Zz")),
        ("北京 rain", ("北京", "rain")),
    ]
)
PASSAGES = st.lists(SAID, max_size=4).map(lambda said: extraction(*said, entities=("北京",)))


def assert_same(got: Vocabulary, expected: Vocabulary) -> None:
    assert (got.phrases, got.facts, rows_of(got)) == (expected.phrases, expected.facts, rows_of(expected))
    assert torch.equal(got.statements.named, expected.statements.named)
    assert torch.equal(got.named, expected.named)
    for ours, theirs in (
        (got.fact_ends, expected.fact_ends),
        (got.lexicon.phrase_tokens, expected.lexicon.phrase_tokens),
        (got.lexicon.fact_tokens, expected.lexicon.fact_tokens),
    ):
        assert lists_of(ours) == lists_of(theirs)


@given(st.lists(st.tuples(PASSAGES, st.booleans()), max_size=6), st.data())
def test_a_vocabulary_that_changed_is_the_one_of_what_is_left(
    passages: list[tuple[Extraction, bool]], data: st.DataObject
) -> None:
    """Each passage stays, or is taken back; new ones come anywhere between."""
    old = vocabulary_of(*(one for one, _ in passages))
    kept = [(one, row) for row, (one, stays) in enumerate(passages) if stays]
    for new in data.draw(st.lists(PASSAGES, max_size=3)):
        kept.insert(data.draw(st.integers(0, len(kept))), (new, -1))
    now = {old_row: row for row, (_, old_row) in enumerate(kept) if old_row >= 0}
    passage_idx = torch.tensor([now.get(row, -1) for row in range(len(passages))], dtype=torch.int64)
    stated = {row: Stated.of(one, TEXT) for row, (one, old_row) in enumerate(kept) if old_row < 0}
    change = old.changed(passage_idx, stated)
    assert_same(change.vocabulary, vocabulary_of(*(one for one, _ in kept)))
    for entries, moved, entry_idx in (
        (old.phrases, change.vocabulary.phrases, change.phrase_idx),
        (old.facts, change.vocabulary.facts, change.fact_idx),
    ):
        assert [moved[row] for row in entry_idx.tolist() if row >= 0] == [
            entry for entry, row in zip(entries, entry_idx.tolist(), strict=True) if row >= 0
        ]
        assert not set(moved) & {e for e, row in zip(entries, entry_idx.tolist(), strict=True) if row < 0}
