"""Names → phrases: what equals a name, or else what is near enough. Vectors are given by hand."""

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.indexer import Indexer
from hipporag_torch.linkers.resolution import check_min_cosine, is_name, resolve
from hipporag_torch.text import TextOptions

from .conftest import TableEmbedder, WatchedEmbedder, index_of, named

TOWNS = {"Towns.": [("Oslo", "near", "Bergen"), ("Zurich", "near", "U.S."), ("u s", "is", "small press")]}
VECTORS = {
    "bergen": [1.0, 0.0, 0.0],
    "oslo": [0.6, 0.8, 0.0],
    "zurich": [0.6, 0.8, 0.0],
    "kristiania": [0.6, 0.8, 0.0],
    "bryggen": [0.8, 0.0, 0.6],
    "bergn": [0.7, 0.0, 0.51**0.5],
    "far": [0.1, 0.0, 0.99**0.5],
}


@pytest.fixture
def embedder() -> TableEmbedder:
    return TableEmbedder(VECTORS, otherwise=[0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("name", "phrases"),
    [
        ("Oslo", ["oslo"]),
        ("  OSLO?", ["oslo"]),
        ("US", []),
        ("U. S.", ["u s", "u.s."]),
        ("Small Press", ["small press"]),
        ("Kristiania", ["oslo"]),
        ("Bryggen", ["bergen"]),
        ("Bergn", ["bergen"]),
        ("Far", []),
        ("Unknown", []),
    ],
)
def test_a_name_is_what_equals_it_or_else_what_is_nearest(
    embedder: TableEmbedder, name: str, phrases: list[str]
) -> None:
    index = index_of(TOWNS, embedder)
    (rows,) = resolve(index, embedder, [[name]], min_cosine=0.7)
    assert named(index, rows) == phrases


def test_the_nearest_phrase_has_to_hold_the_same_numbers() -> None:
    vectors = {name: [1.0] for name in ("apollo 11", "apollo 12", "11 apollo", "apollo", "luna")}
    embedder = TableEmbedder(vectors, otherwise=[0.0])
    index = index_of({"Moon.": [("Apollo 11", "before", "Dune")]}, embedder)
    names = [["Apollo 12"], ["11 Apollo"], ["Luna"]]
    resolved = resolve(index, embedder, names, min_cosine=0.7)
    assert [named(index, rows) for rows in resolved] == [[], ["apollo 11"], []]


def test_equal_vectors_are_near_enough_for_any_cosine_that_is_allowed(embedder: TableEmbedder) -> None:
    index = index_of(TOWNS, embedder)
    assert resolve(index, embedder, [["Kristiania", "Bryggen"]], min_cosine=1.0) == [
        [index.phrases.index("oslo")]
    ]


@pytest.mark.parametrize("name", ["", "1904", "12:30", "the", "Who", "it", "IS", "...", "い", " \n"])
def test_numbers_stop_words_and_question_words_are_no_names(name: str) -> None:
    assert not is_name(name)
    index, embedder = index_of(), WatchedEmbedder()
    assert resolve(index, embedder, [[name]], min_cosine=0.01) == [[]]
    assert embedder.calls == []


@pytest.mark.parametrize("name", ["The Who", "Apollo 11", "東京", "ℵ", "É"])
def test_what_may_name(name: str) -> None:
    assert is_name(name)


def test_all_names_that_need_it_are_embedded_in_one_call_each_once() -> None:
    index, embedder = index_of(), WatchedEmbedder()
    names = [["Northwind Pres", "Bergen"], [], ["Northwind Pres", "northwind pres", "Norway"], ["Ada Vales"]]
    resolved = resolve(index, embedder, names, min_cosine=0.5)
    assert embedder.calls == [("phrase", ["northwind pres", "ada vales"])]
    assert [named(index, rows) for rows in resolved] == [
        ["bergen", "northwind press"],
        [],
        ["northwind press", "norway"],
        ["ada vale"],
    ]
    assert resolved == [resolve(index, embedder, [one], min_cosine=0.5)[0] for one in names]


def test_nothing_is_embedded_for_names_that_equal_a_phrase() -> None:
    index, embedder = index_of(), WatchedEmbedder()
    resolved = resolve(index, embedder, [["Bergen", "Atlases"], ["奥州市"]], min_cosine=0.7)
    assert [named(index, rows) for rows in resolved] == [["atlases", "bergen"], ["奥州市"]]
    assert embedder.calls == []


def test_names_are_embedded_as_the_index_writes_its_phrases() -> None:
    index = index_of({"Press.": [("Café Öst", "near", "Oslo")]}, text=TextOptions(normalisation="reference"))
    embedder = WatchedEmbedder()
    resolve(index, embedder, [["Cafés Öst", "東京都"]], min_cosine=0.7)
    assert embedder.calls == [("phrase", ["caf s  st"])]


def test_an_index_without_phrases() -> None:
    embedder = WatchedEmbedder()
    empty = Indexer(embedder=embedder, extractor=NoExtractor()).empty()
    assert resolve(empty, embedder, [["Oslo"], []], min_cosine=0.7) == [[], []]
    assert embedder.calls == []


@pytest.mark.parametrize("min_cosine", [0.0, -0.5, 1.1, float("nan")])
def test_a_cosine_that_is_none(min_cosine: float) -> None:
    with pytest.raises(ConfigError, match=r"linker\.min_cosine must be above 0 and at most 1, got"):
        check_min_cosine(min_cosine)
