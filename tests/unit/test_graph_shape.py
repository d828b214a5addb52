"""Histograms of graphs whose edges are known by hand."""

from collections.abc import Mapping, Sequence

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions, ReferenceGraphOptions
from hipporag_torch.graph_shape import Histogram, graph_histograms
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.types import Document

from .retrievers.conftest import Facts, GivenExtractor, GivenSentences, TableEmbedder

OPTIONS = GraphOptions(synonym_threshold=0.7, mention_weight=0.25)
# A cosine of 0.75 between the presses, and of 0.96 between the harbours, which a fact joins too.
VECTORS = {
    "northwind press": (1.0, 0.0, 0.0, 0.0),
    "northwind presses": (0.75, 0.4375**0.5, 0.0, 0.0),
    "bergen harbour": (0.0, 0.0, 0.6, 0.8),
    "harbour of bergen": (0.0, 0.0, 0.8, 0.6),
}
FACTS: Facts = {
    "She founded and led it.": [
        ("Ada Vale", "founded", "Northwind Press"),
        ("Northwind Press", "was led by", "Ada Vale"),
    ],
    "Northwind Presses and Ada Vale.": [("Northwind Presses", "print", "print")],
    "Harbours.": [("Bergen Harbour", "is the", "Harbour of Bergen")],
    "Nothing is said.": [],
}


def index_of(facts: Facts, options: GraphOptions | ReferenceGraphOptions = OPTIONS) -> Index:
    indexer = Indexer(
        embedder=TableEmbedder(VECTORS, otherwise=(0.0, 0.0, 0.0, 0.0)),
        extractor=GivenExtractor(facts),
        graph=options,
    )
    return indexer.add(indexer.empty(), [Document(text) for text in facts])[0]


def alone(weight: float, count: int) -> Histogram:
    return Histogram((pytest.approx(weight), pytest.approx(weight)), (count,))  # type: ignore[arg-type]


def test_edges_by_kind_and_weight() -> None:
    shape = graph_histograms(index_of(FACTS))
    assert dict(shape.weights) == {
        "fact": Histogram((2.0, *(pytest.approx(2 + 0.1 * n) for n in range(1, 20)), 4.0), (1, *[0] * 18, 1)),
        "fact and synonym": alone(2.96, 1),
        "synonym": alone(0.75, 1),
        "membership": alone(1.0, 6),
        "mention": alone(0.25, 1),
    }


def test_nodes_by_degree() -> None:
    """Ada Vale has a fact, a membership and a mention; the last passage has nothing."""
    shape = graph_histograms(index_of(FACTS))
    # print, both harbours (2 each), ada vale, northwind press, northwind presses (3 each).
    assert shape.phrase_degrees == Histogram((1.0, 2.0, 4.0), (0, 6))
    assert shape.passage_degrees == Histogram((1.0, 2.0, 4.0), (0, 3))
    assert (shape.lone_phrases, shape.lone_passages) == (0, 1)


@pytest.mark.parametrize("options", [OPTIONS, ReferenceGraphOptions(synonym_threshold=0.7)])
def test_every_edge_and_every_node_is_counted_once(options: GraphOptions | ReferenceGraphOptions) -> None:
    index = index_of(FACTS, options)
    shape = graph_histograms(index)
    assert sum(weights.total for weights in shape.weights.values()) == index.graph.num_edges
    assert shape.phrase_degrees.total + shape.lone_phrases == index.graph.num_phrases
    assert shape.passage_degrees.total + shape.lone_passages == index.graph.num_passages


def test_bins_widen_where_weights_spread_far() -> None:
    """A fact of 16 passages weighs 16 times what one of a single passage does: twice as much in 5 bins."""
    facts: Facts = {
        **{f"Passage {n}.": [("ada vale", "founded", "northwind press")] for n in range(16)},
        "Another.": [("rye bread", "is baked", "aboard")],
    }
    weights = graph_histograms(index_of(facts)).weights["fact"]
    assert weights.edges == pytest.approx([2 * 2 ** (n / 5) for n in range(21)])
    assert weights.counts == (1, *[0] * 18, 1)


def test_names_of_sentences_are_members_and_no_facts() -> None:
    said: Mapping[str, Mapping[str, Sequence[str]]] = {
        "Ada Vale founded Northwind Press.": {
            "Ada Vale founded Northwind Press.": ["Ada Vale", "Northwind Press"]
        }
    }
    indexer = Indexer(embedder=HashingEmbedder(dim=64), extractor=GivenSentences(said), graph=OPTIONS)
    index = indexer.add(indexer.empty(), [Document(text) for text in said])[0]
    assert graph_histograms(index).weights == {"membership": alone(1.0, 2)}


def test_an_empty_index_has_empty_histograms() -> None:
    shape = graph_histograms(index_of({}))
    assert (shape.phrase_degrees, shape.passage_degrees) == (Histogram((), ()), Histogram((), ()))
    assert (shape.lone_phrases, shape.lone_passages, shape.weights) == (0, 0, {})
