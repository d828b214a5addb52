"""Names of the index in a question, word by word; capitals where there are none."""

import pytest

from hipporag_torch.index import Index
from hipporag_torch.linkers import Links, NgramLinker
from hipporag_torch.linkers.resolution import row_lists

from .conftest import WatchedEmbedder, named


def linked(index: Index, links: Links) -> list[list[str]]:
    return [named(index, rows) for rows in row_lists(links.phrase_idx)]


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("Who founded Northwind Press in Bergen?", ["bergen", "northwind press"]),
        ("who founded northwind press?", ["northwind press"]),
        ("WHO FOUNDED NORTHWIND PRESS?", ["northwind press"]),
        ("Where was Northwind Press's founder, Ada Vale, born?", ["ada vale", "northwind press"]),
        ("Who directs The Press of Bergen?", ["the press of bergen"]),
        ("Who directs the press in Bergen?", ["bergen"]),
        ("奥州市と酒田市はどちらも東北地方の都市ですか？", ["奥州市", "東北地方"]),
        ("Which atlases came out in 1904?", []),
        ("Who is it?", []),
        ("Which small press is it?", []),
        ("?", []),
        ("word " * 5000 + "Norway", ["norway"]),
    ],
)
def test_names_that_occur(index: Index, question: str, phrases: list[str]) -> None:
    embedder = WatchedEmbedder()
    links = NgramLinker().link(index, embedder, [question])
    assert linked(index, links) == [phrases]
    assert embedder.calls == []


@pytest.mark.parametrize(
    ("question", "phrases", "embedded"),
    [
        ("Which Small Press is it?", ["small press"], []),
        ("When did Northwind Presse close?", ["northwind press"], ["northwind presse"]),
        ("When did Norvegia join?", [], ["norvegia"]),
        ("WHEN DID NORTHWIND PRESSE CLOSE?", [], []),
    ],
)
def test_capitals_where_no_name_occurs(
    index: Index, question: str, phrases: list[str], embedded: list[str]
) -> None:
    embedder = WatchedEmbedder()
    assert linked(index, NgramLinker().link(index, embedder, [question])) == [phrases]
    assert embedder.calls == ([("phrase", embedded)] if embedded else [])


def test_a_question_with_a_known_name_is_not_searched_for_others(index: Index) -> None:
    embedder = WatchedEmbedder()
    questions = ["Is Northwind Presse in Norway?", "Is it?", "Is it Northwind Presse?", "Or Norwayy?"]
    links = NgramLinker(min_cosine=0.6).link(index, embedder, questions)
    assert linked(index, links) == [["norway"], [], ["northwind press"], ["norway"]]
    assert embedder.calls == [("phrase", ["northwind presse", "norwayy"])]
    assert linked(index, NgramLinker(min_cosine=0.99).link(index, embedder, questions)) == [
        ["norway"],
        [],
        [],
        [],
    ]
