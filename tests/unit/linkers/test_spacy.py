"""A question's entities by spaCy."""

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.linkers import SpacyLinker
from hipporag_torch.linkers.resolution import row_lists

from .conftest import WatchedEmbedder, index_of, named

STATED = {
    "A.": [("Norway", "has", "Oslo"), ("Marie Curie", "was born in", "Warsaw"), ("Norway", "since", "1905")],
    "B.": [("The Beatles", "sold", "three"), ("May 1970", "saw", "Let It Be")],
}


@pytest.fixture(scope="module")
def linker() -> SpacyLinker:
    """One for all tests: its pipeline takes a second to load."""
    return SpacyLinker()


@pytest.fixture(scope="module")
def stated() -> Index:
    return index_of(STATED)


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("What is the capital of Norway?", ["norway"]),
        ("Was Marie Curie born in Oslo or in Warsaw?", ["marie curie", "oslo", "warsaw"]),
        ("What happened in Norway in 1905 or in May 1970?", ["norway"]),
        ("How many of the three were sold?", []),
        ("which town is it?", []),
        ("どこですか？", []),
    ],
)
def test_entities(linker: SpacyLinker, stated: Index, question: str, phrases: list[str]) -> None:
    (rows,) = row_lists(linker.link(stated, WatchedEmbedder(), [question]).phrase_idx)
    assert named(stated, rows) == phrases


def test_a_question_of_any_length(linker: SpacyLinker, stated: Index) -> None:
    question = "What is the capital of Norway? " + "It is a town by the sea. " * 1000
    (rows,) = row_lists(linker.link(stated, WatchedEmbedder(), [question]).phrase_idx)
    assert "norway" in named(stated, rows)


def test_a_model_that_is_not_there(stated: Index) -> None:
    linker = SpacyLinker(model="no_such_model")
    assert linker.link(stated, WatchedEmbedder(), []).phrase_idx.num_rows == 0
    with pytest.raises(ConfigError, match="linker=spacy needs spaCy and the model 'no_such_model'"):
        linker.link(stated, WatchedEmbedder(), ["Where is Oslo?"])


def test_bad_options() -> None:
    with pytest.raises(ConfigError, match=r"linker\.min_cosine"):
        SpacyLinker(min_cosine=0)
