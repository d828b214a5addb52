"""Which phrases are names, by capitals and by the extractor's entities."""

import pytest

from hipporag_torch.names import Names
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Sentence, Triple

TEXT = TextOptions()


def names_of(*ends: str, entities: tuple[str, ...] = (), text: TextOptions = TEXT) -> list[bool]:
    """Whether each end of the triples of one extraction is a name."""
    triples = tuple(Triple(end, "is", end) for end in ends)
    names = Names.of(Extraction(entities=entities, triples=triples), text)
    return [names.has(end, text.phrase(end)) for end in ends]


def test_a_capital_anywhere_makes_a_name() -> None:
    assert names_of("Oslo", "the River Thames", "iPhone", "rain", "1963") == [True, True, True, False, False]


@pytest.mark.parametrize("name", ["Москва", "Ωmega", "Ärzte", "Ⅳ"])
def test_capitals_of_every_script(name: str) -> None:
    assert names_of(name, name.lower()) == [True, False]


def test_where_there_are_capitals_an_entity_without_one_is_no_name() -> None:
    assert names_of("Oslo", "rain", entities=("Oslo", "rain")) == [True, False]


@pytest.mark.parametrize("name", ["北京", "القاهرة", "서울", "მთაწმინდა", "कमला"])
def test_in_a_script_without_capitals_entities_are_names(name: str) -> None:
    assert names_of(name, name + name, entities=(name,)) == [True, False]
    assert names_of("Oslo", name, entities=(name,)) == [True, True]


def test_in_a_text_that_has_lost_its_case_entities_are_names() -> None:
    assert names_of("oslo", "rain", entities=("Oslo",)) == [True, False]


def test_a_number_is_a_name_only_with_a_letter() -> None:
    assert names_of("1963", "第7", entities=("1963", "第7")) == [False, True]


def test_names_of_sentences_tell_whether_there_is_case() -> None:
    with_case = Extraction(entities=("oslo",), sentences=((Sentence("x"), ("Bergen", "oslo")),))
    without = Extraction(entities=("oslo",), sentences=((Sentence("Bergen, x"), ("bergen", "oslo")),))
    assert not Names.of(with_case, TEXT).has("oslo", "oslo")
    assert Names.of(without, TEXT).has("oslo", "oslo")


def test_entities_are_compared_by_their_keys() -> None:
    reference = TextOptions(normalisation="reference")
    assert names_of("st. olav", entities=("ST  OLAV!",)) == [False]
    assert names_of("st.olav", entities=("ST OLAV!",), text=reference) == [True]
