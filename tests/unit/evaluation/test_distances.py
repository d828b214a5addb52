import itertools
from collections.abc import Sequence

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.evaluation.distances import MAX_STEPS, gold_steps
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Document, Extraction, Passage, Triple

CHAIN = "abcdefg"


class StatesItsLetters:
    """A passage "a b" states that a goes with b."""

    producer = "letters"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [
            Extraction(triples=(Triple(first, "goes with", second),))
            for first, second in (passage.text.split() for passage in passages)
        ]


def index_of(pairs: Sequence[tuple[str, str]]) -> Index:
    indexer = Indexer(
        embedder=HashingEmbedder(),
        extractor=StatesItsLetters(),
        graph=GraphOptions(synonym_threshold=1.1),
    )
    return indexer.add(indexer.empty(), [Document(f"{a} {b}") for a, b in pairs])[0]


def ids(index: Index) -> dict[str, str]:
    return {passage.text: passage.id for passage in index.passages}


def test_steps_along_a_chain() -> None:
    pairs = list(itertools.pairwise(CHAIN))
    index = index_of(pairs)
    of = ids(index)
    (steps,) = gold_steps(index, [["a"]], [[of[f"{a} {b}"] for a, b in pairs]])
    assert [steps[of[f"{a} {b}"]] for a, b in pairs] == [1, 2, 3, 4, None, None]


def test_the_nearest_seed_counts_and_each_question_has_its_own() -> None:
    index = index_of([("a", "b"), ("b", "c"), ("x", "y")])
    of = ids(index)
    steps = gold_steps(
        index,
        [["a", "c"], ["x"], [], ["no such phrase"], ["a"]],
        [[of["b c"]], [of["x y"], of["a b"], "no such passage"], [of["a b"]], [of["a b"]], []],
    )
    assert steps == [{of["b c"]: 1}, {of["x y"]: 1, of["a b"]: None, "no such passage": None}, {}, {}, {}]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")).filter(lambda p: p[0] != p[1]),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=3),
)
def test_steps_are_shortest_ways(pairs: list[tuple[str, str]], seeds: set[str]) -> None:
    index = index_of(pairs)
    graph = nx.Graph()
    for a, b in pairs:
        graph.add_edges_from([(a, b), (a, (a, b)), (b, (a, b))])
    of = ids(index)
    known = sorted(seed for seed in seeds if seed in graph)
    far = nx.multi_source_dijkstra_path_length(graph, known) if known else {}
    expected = {of[f"{a} {b}"]: far.get((a, b), MAX_STEPS + 1) for a, b in pairs} if known else {}
    assert gold_steps(index, [sorted(seeds)], [list(of.values())]) == [
        {gold_id: steps if steps <= MAX_STEPS else None for gold_id, steps in expected.items()}
    ]
