"""Mention edges: names that stand in a passage's text and in nothing that it states."""

from collections.abc import Mapping, Sequence

import pytest
import torch

from hipporag_torch.connections import find_mentions
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import (
    AnyGraphOptions,
    GraphOptions,
    ReferenceGraphOptions,
    Statements,
    build_graph,
)
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Document, Extraction, Passage, Sentence, Triple

MENTIONS = GraphOptions(mention_weight=0.25, synonym_threshold=2.0)
OSLO = "Oslo grows. Ana Vale said so in the rain."
ANA = "Ana Vale lives in Bergen."
BERGEN = "bergen, by the rain, has no Oslo Harbour."
STATED: dict[str, Extraction] = {
    OSLO: Extraction(triples=(Triple("Oslo", "has", "rain"),)),
    ANA: Extraction(sentences=((Sentence(ANA), ("Ana Vale", "Bergen")),)),
    BERGEN: Extraction(),
}


class GivenExtractor:
    producer = "given"
    calls_per_passage = 0

    def __init__(self, stated: Mapping[str, Extraction]) -> None:
        self.stated = stated

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [self.stated[passage.text] for passage in passages]


def indexer_of(graph: AnyGraphOptions, stated: Mapping[str, Extraction] = STATED) -> Indexer:
    return Indexer(embedder=HashingEmbedder(dim=16), extractor=GivenExtractor(stated), graph=graph)


def added(indexer: Indexer, index: Index, *texts: str) -> Index:
    return indexer.add(index, [Document(text) for text in texts])[0]


def indexed(graph: AnyGraphOptions, *texts: str) -> Index:
    indexer = indexer_of(graph)
    return added(indexer, indexer.empty(), *texts)


def edges_of(index: Index) -> dict[tuple[str, str], float]:
    """Weights between phrases and passages, by the phrase and the passage's text."""
    matrix = index.graph.validate().adjacency
    nodes = [*index.phrases, *(passage.text for passage in index.passages)]
    entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.weight.tolist(), strict=True)
    joined = {(nodes[row], nodes[col]): weight for row, col, weight in entries}
    return {pair: weight for pair, weight in joined.items() if pair[0] in index.phrases and pair[1] in STATED}


MEMBERS = {("oslo", OSLO): 1, ("rain", OSLO): 1, ("ana vale", ANA): 1, ("bergen", ANA): 1}
MENTIONED = {("ana vale", OSLO): 0.25, ("oslo", BERGEN): 0.25, ("bergen", BERGEN): 0.25}


def assert_same_graph(got: Index, expected: Index) -> None:
    assert got.phrases == expected.phrases
    for part in ("row_ptr", "col", "weight"):
        assert torch.equal(getattr(got.graph.adjacency, part), getattr(expected.graph.adjacency, part))


def test_a_name_in_the_text_is_an_edge_where_it_is_not_stated() -> None:
    """ "rain" is no name, and "Oslo" is not stated by the text that speaks of its harbour."""
    assert edges_of(indexed(MENTIONS, OSLO, ANA, BERGEN)) == MEMBERS | MENTIONED


@pytest.mark.parametrize("graph", [GraphOptions(synonym_threshold=2.0), ReferenceGraphOptions()])
def test_without_a_weight_there_are_none(graph: AnyGraphOptions) -> None:
    assert edges_of(indexed(graph, OSLO, ANA, BERGEN)) == MEMBERS


def test_a_statement_without_weight_is_no_mention_either() -> None:
    graph = GraphOptions(mention_weight=0.5, membership_weight=0.0, synonym_threshold=2.0)
    assert edges_of(indexed(graph, OSLO, ANA, BERGEN)) == dict.fromkeys(MENTIONED, 0.5)


def test_mentions_are_the_longest_names_of_each_text() -> None:
    index = indexed(MENTIONS, OSLO, ANA, BERGEN)
    found = find_mentions(index.vocabulary, index.passages)
    by_text = {
        passage.text: [index.phrases[row] for row in found.values[found.row == number].tolist()]
        for number, passage in enumerate(index.passages)
    }
    assert by_text == {OSLO: ["ana vale", "oslo"], ANA: ["ana vale", "bergen"], BERGEN: ["bergen", "oslo"]}


def test_rebuilding_the_graph_switches_them() -> None:
    without = GraphOptions(synonym_threshold=2.0)
    plain, full = indexed(without, OSLO, ANA, BERGEN), indexed(MENTIONS, OSLO, ANA, BERGEN)
    assert_same_graph(indexer_of(MENTIONS).rebuild_graph(plain), full)
    assert_same_graph(indexer_of(without).rebuild_graph(full), plain)


def test_a_new_passage_joins_its_names_with_old_texts() -> None:
    indexer = indexer_of(MENTIONS)
    index = indexed(MENTIONS, OSLO, BERGEN)
    assert ("ana vale", OSLO) not in edges_of(index)
    index = added(indexer, index, ANA)
    assert_same_graph(index, indexed(MENTIONS, OSLO, ANA, BERGEN))


def test_the_last_passage_that_states_a_name_takes_it_from_all_texts() -> None:
    indexer = indexer_of(MENTIONS)
    index, _ = indexer.remove(indexed(MENTIONS, OSLO, ANA, BERGEN), texts=[ANA])
    assert_same_graph(index, indexed(MENTIONS, OSLO, BERGEN))
    assert edges_of(index) == {
        pair: w for pair, w in (MEMBERS | MENTIONED).items() if pair[0] in ("oslo", "rain")
    }


def test_a_name_that_is_mostly_no_name_any_more_is_not_mentioned() -> None:
    """Two passages that write it small outvote one."""
    written_small = Extraction(triples=(Triple("A way", "is", "oslo"),))
    small = {f"{n} ways through oslo": written_small for n in range(2)}
    indexer = indexer_of(MENTIONS, STATED | small)
    index = added(indexer, indexed(MENTIONS, OSLO, ANA, BERGEN), *small)
    assert ("oslo", BERGEN) not in edges_of(index)
    index, _ = indexer.remove(index, texts=list(small))
    assert_same_graph(index, indexed(MENTIONS, OSLO, ANA, BERGEN))


def test_mentions_without_statements() -> None:
    """Nothing is stated: the width of a row's key comes from the mentions alone."""
    graph = build_graph(
        ["a", "b"], 2, Statements.of([]), Pairs.none(), MENTIONS, Ragged.of([[0, 1], [1]])
    ).validate()
    matrix = graph.adjacency
    assert list(zip(matrix.row.tolist(), matrix.col.tolist(), strict=True)) == [
        (0, 2),
        (1, 2),
        (1, 3),
        (2, 0),
        (2, 1),
        (3, 1),
    ]
    assert set(matrix.weight.tolist()) == {0.25}
