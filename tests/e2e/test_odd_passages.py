"""Passages that no grammar was made for go in all the same, and the report says what was found in them."""

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever

ODD = {
    "no verb": "A grey harbour, three boats, no wind.",
    "another language": "თამარ ვაზელი წერდა დღიურს ყოველ ღამე.",
    "one word": "Skarn",
    "emoji": "🐟🐟🐟 ⛵️",
    "a table": "port | depth | tide\nSkarn | 4 m | 2 m\nTesk | 7 m | 1 m",
    "source code": "def tide(hour: int) -> float:\n    return 2.0 * sin(hour / 6)  # metres",
}


@pytest.fixture(scope="module")
def memory() -> HippoRAG:
    pytest.importorskip("spacy", reason="the extra spacy is not installed")
    from hipporag_torch.extractors.spacy import SpacyExtractor

    embedder = HashingEmbedder()
    return HippoRAG(
        indexer=Indexer(embedder=embedder, extractor=SpacyExtractor()),
        make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=embedder),
    )


def test_odd_passages_are_indexed_and_reported(memory: HippoRAG) -> None:
    report = memory.add([*ODD.values(), "Mara Quill built the tower at Skarn in 1431."])
    assert (report.passages_added, report.failed) == (len(ODD) + 1, ())
    passage_id = memory.index.text.passage_id
    without = {name for name, text in ODD.items() if passage_id(text) in report.without_facts}
    assert {"one word", "emoji"} <= without
    assert passage_id("Mara Quill built the tower at Skarn in 1431.") not in report.without_facts


def test_every_odd_passage_can_be_returned(memory: HippoRAG) -> None:
    (ranking,) = memory.retrieve(["What became of the boats?"], top_k=20)
    assert {passage.text for passage in ranking.passages} > set(ODD.values())


def test_a_corpus_without_facts_is_ranked_by_vectors(memory: HippoRAG) -> None:
    lone = HippoRAG(indexer=memory._indexer, make_retriever=memory._make_retriever)
    report = lone.add(["Skarn", "🐟🐟🐟 ⛵️"])
    assert len(report.without_facts) == 2
    assert lone.retrieve(["Skarn"])[0].route == "dense:no_facts"
