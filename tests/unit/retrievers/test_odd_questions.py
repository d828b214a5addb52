"""Questions and corpora that the method was not made for: sensible results, and a trace that says why."""

from collections.abc import Callable

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.types import Document, Extraction, Passage, Progress, Ranking, Trace, Triple, no_progress

IndexOf = Callable[..., Index]
EMBEDDER = HashingEmbedder(dim=128)
ADA = "Ada Vale founded Northwind Press in Bergen."
BAND = "The Band recorded its last album in Oslo."
IT = "It is a novel about a town in Maine."
FACTS = {
    ADA: [("Ada Vale", "founded", "Northwind Press"), ("Northwind Press", "is in", "Bergen")],
    BAND: [("The Band", "recorded its last album in", "Oslo")],
    IT: [("It", "is a novel about", "town"), ("town", "is in", "Maine")],
}


@pytest.fixture(scope="module")
def index(index_of: IndexOf) -> Index:
    return index_of(FACTS, EMBEDDER)


def asked(index: Index, question: str) -> tuple[Ranking, Trace]:
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve([question], top_k=3, trace=True)
    assert ranking.trace is not None
    assert len(ranking.passages) == 3
    return ranking, ranking.trace


def carriers(trace: Trace) -> set[str]:
    """The sources that gave the best passage some of its mass."""
    return {name for name, share in trace.passages[0].sources if share > 0}


def test_without_a_name_the_facts_stand_in(index: Index) -> None:
    ranking, trace = asked(index, "who founded a press?")
    assert (ranking.route, ranking.passages[0].text) == ("graph", ADA)
    assert (trace.linked, trace.entities_from, carriers(trace)) == ((), "facts", {"facts", "passages"})


@pytest.mark.parametrize("question", ["Bergen", "bergen", "BERGEN", "Ｂｅｒｇｅｎ?"])
def test_one_word(index: Index, question: str) -> None:
    ranking, trace = asked(index, question)
    assert (ranking.route, ranking.passages[0].text, trace.linked) == ("graph", ADA, ("bergen",))
    assert "entities" in carriers(trace)


def test_five_thousand_words(index: Index) -> None:
    ranking, trace = asked(index, "and so on " * 1_666 + "with Northwind Press")
    assert trace.linked == ("northwind press",)
    from_entities = [dict(passage.sources).get("entities", 0.0) for passage in trace.passages]
    place = [passage.text for passage in ranking.passages].index(ADA)
    assert from_entities[place] > 0.9 * sum(from_entities)


def test_stop_words_alone_name_nothing_even_where_they_are_a_name(index: Index) -> None:
    """ "It" is a phrase with a capital, and the question's only noun: no link all the same."""
    _, trace = asked(index, "Is it that which it was?")
    assert trace.linked == ()


def test_a_name_made_of_common_words_counts_only_as_a_whole(index: Index) -> None:
    assert asked(index, "Where did the band record?")[1].linked == ("the band",)
    assert asked(index, "Where did a band record?")[1].linked == ()


def test_another_script_than_the_corpus(index: Index) -> None:
    ranking, trace = asked(index, "ベルゲンの出版社は？")
    assert trace.linked == ()
    assert ranking.route in ("graph", "dense:no_facts")


def test_a_question_equal_to_a_passage(index: Index) -> None:
    ranking, trace = asked(index, ADA)
    assert ranking.passages[0].text == ADA
    assert trace.linked == ("ada vale", "bergen", "northwind press")
    assert carriers(trace) == {"facts", "entities", "passages"}


class LowerCased:
    """States in lower case; its entities are the names among the ends."""

    producer = "lower"
    calls_per_passage = 0

    def extract(self, passages: list[Passage], progress: Progress = no_progress) -> list[Extraction]:
        stated = [("ada vale", "founded", "northwind press"), ("northwind press", "has", "printers")]
        names = ("ada vale", "northwind press")
        return [Extraction(names, tuple(Triple(*triple) for triple in stated)) for _ in passages]


def test_a_corpus_without_capitals_takes_its_names_from_the_extractor() -> None:
    indexer = Indexer(embedder=EMBEDDER, extractor=LowerCased())
    index, _ = indexer.add(indexer.empty(), [Document(ADA.lower())])
    (ranking,) = HippoRAGRetriever(index=index, embedder=EMBEDDER).retrieve(
        ["Does Northwind Press have printers?"], top_k=1, trace=True
    )
    assert ranking.trace is not None
    assert ranking.trace.linked == ("northwind press",)
