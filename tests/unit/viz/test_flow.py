from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import InputError
from hipporag_torch.graph import Graph
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.ops.csr import symmetric_csr
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.retrievers.seeding import ReferenceSeeding
from hipporag_torch.types import Document, Ranking, Trace, TracedSeed
from hipporag_torch.viz.flow import MassFlow, NodeFlow, draw_flow, mass_flow, traced_reset, walk_masses

from ..retrievers.conftest import Facts, GivenExtractor

EMBEDDER = HashingEmbedder(dim=64)
FACTS: Facts = {
    "Northwind Press\nAda Vale founded Northwind Press in Bergen.": [
        ("Ada Vale", "founded", "Northwind Press"),
        ("Northwind Press", "founded in", "Bergen"),
    ],
    "Bergen\nBergen lies in Norway.": [("Bergen", "lies in", "Norway")],
    "Norway\nNorway is cold.": [("Norway", "is", "cold")],
    "Rye bread is baked aboard.": [],
}


def index_of(facts: Facts) -> Index:
    indexer = Indexer(embedder=EMBEDDER, extractor=GivenExtractor(facts))
    return indexer.add(indexer.empty(), [Document(text) for text in facts])[0]


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(FACTS)


@pytest.fixture(scope="module")
def ranked(index: Index) -> Callable[..., Ranking]:
    def ranked(top_k: int = 2, damping: float = 0.5) -> Ranking:
        retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, ppr=PPROptions(damping=damping))
        return retriever.retrieve(["Who founded Northwind Press?"], top_k=top_k, trace=True)[0]

    return ranked


def test_mass_of_each_step_by_hand() -> None:
    """A phrase and a passage that are joined, and a passage alone, whose mass goes back to the seeds."""
    graph = Graph(1, 2, symmetric_csr(torch.tensor([0]), torch.tensor([1]), torch.tensor([3.0]), num_nodes=3))
    mass = walk_masses(graph, torch.tensor([0.5, 0.0, 0.5]), damping=0.5, steps=2)
    assert mass.tolist() == [[0.5, 0.0, 0.5], [0.375, 0.25, 0.375], [0.46875, 0.1875, 0.34375]]


@st.composite
def graphs_and_resets(draw: st.DrawFn) -> tuple[Graph, torch.Tensor]:
    num_phrases, num_passages = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    num_nodes = num_phrases + num_passages
    pairs = draw(
        st.lists(st.tuples(st.integers(0, num_phrases - 1), st.integers(0, num_nodes - 1)), max_size=12)
    )
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    weights = draw(st.lists(st.sampled_from([0.25, 1.0, 2.0, 7.0]), min_size=len(pairs), max_size=len(pairs)))
    first, second = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).unbind(1)
    adjacency = symmetric_csr(first, second, torch.tensor(weights, dtype=torch.float32), num_nodes=num_nodes)
    seeds = draw(st.lists(st.integers(0, 5), min_size=num_nodes, max_size=num_nodes).filter(any))
    reset = torch.tensor(seeds, dtype=torch.float32)
    return Graph(num_phrases, num_passages, adjacency), reset / reset.sum()


@settings(max_examples=15)
@given(graphs_and_resets(), st.sampled_from([0.2, 0.5, 0.7]))
def test_the_limit_is_personalized_pagerank_and_no_mass_is_lost(
    given_: tuple[Graph, torch.Tensor], damping: float
) -> None:
    graph, reset = given_
    mass = walk_masses(graph, reset, damping=damping, steps=40)
    torch.testing.assert_close(mass.sum(1), torch.ones(41, dtype=torch.float64), atol=1e-6, rtol=0)
    limit = personalized_pagerank(graph.walk, reset.unsqueeze(0), PPROptions(damping=damping))[0]
    torch.testing.assert_close(mass[-1].float(), limit, atol=2e-6, rtol=0)


@pytest.mark.parametrize("damping", [0.5, 0.8])
def test_the_flow_starts_at_the_seeds_and_ends_at_the_traced_masses(
    index: Index, ranked: Callable[..., Ranking], damping: float
) -> None:
    ranking = ranked(damping=damping)
    assert ranking.trace is not None
    flow = mass_flow(index, ranking, ppr=PPROptions(damping=damping), steps=60, show=4)
    # Few passages: the trace names all seeds.
    assert flow.coverage == pytest.approx(1.0, abs=1e-6)
    seeds = {seed.name: seed.weight for seed in ranking.trace.seeds}
    for node in flow.phrases:
        assert node.masses[0] == pytest.approx(seeds.get(node.label, 0.0), abs=1e-6)
    ends = [node.limit for node in flow.phrases]
    assert ends == sorted(ends, reverse=True)
    assert [node.limit for node in flow.passages] == pytest.approx(
        [passage.mass for passage in ranking.trace.passages], abs=1e-6
    )
    for node in (*flow.phrases, *flow.passages):
        assert len(node.masses) == 61
        assert node.masses[-1] == pytest.approx(node.limit, abs=1e-5)


def test_the_four_parts_are_all_of_the_mass(index: Index, ranked: Callable[..., Ranking]) -> None:
    flow = mass_flow(index, ranked(), steps=3)
    parts = (flow.returned_passages, flow.other_passages, flow.seed_phrases, flow.other_phrases)
    for step in range(4):
        assert sum(part.masses[step] for part in parts) == pytest.approx(1.0, abs=1e-6)
    assert sum(part.limit for part in parts) == pytest.approx(1.0, abs=1e-6)
    assert sum(node.limit for node in flow.passages) == pytest.approx(flow.returned_passages.limit)
    assert flow.other_phrases.masses[0] == 0.0
    assert flow.other_passages.masses[0] > 0.0
    assert flow.passages[0].label == "1. Northwind Press"


def test_show_bounds_what_is_listed(index: Index, ranked: Callable[..., Ranking]) -> None:
    flow = mass_flow(index, ranked(top_k=3), show=2)
    assert (len(flow.phrases), len(flow.passages)) == (2, 2)


def test_coverage_is_the_share_of_the_reset_that_the_trace_names() -> None:
    index = index_of({f"Northwind prints atlas {n}.": [("Northwind", "prints", f"{n}")] for n in range(40)})
    retriever = HippoRAGRetriever(index=index, embedder=EMBEDDER, seeding=ReferenceSeeding())
    (ranking,) = retriever.retrieve(["What does Northwind print?"], top_k=3, trace=True)
    assert ranking.trace is not None
    flow = mass_flow(index, ranking)
    assert flow.coverage == pytest.approx(sum(seed.weight for seed in ranking.trace.seeds))
    assert flow.coverage < 0.99


def test_a_traced_reset_puts_seeds_at_their_nodes(index: Index) -> None:
    bread = next(p.id for p in index.passages if p.text.startswith("Rye"))
    seeds = (TracedSeed("phrase", "bergen", 0.3, ()), TracedSeed("passage", bread, 0.1, ()))
    reset, coverage = traced_reset(index, Trace(seeds=seeds))
    assert coverage == pytest.approx(0.4)
    expected = torch.zeros(index.graph.num_nodes)
    expected[index.phrases.index("bergen")] = 0.75
    expected[index.graph.num_phrases + index.passage_row[bread]] = 0.25
    torch.testing.assert_close(reset, expected)


def test_rankings_in_which_nothing_flows(index: Index, ranked: Callable[..., Ranking]) -> None:
    (dense,) = DenseRetriever(index=index, embedder=EMBEDDER).retrieve(["Who?"], top_k=2)
    for ranking, message in (
        (replace(ranked(), trace=None), "no trace; retrieve it with trace=True"),
        (replace(dense, trace=Trace()), "nothing flows on the route 'dense:requested'"),
        (replace(ranked(), trace=Trace(seeds=(TracedSeed("phrase", "oslo", 1.0, ()),))), "no phrase 'oslo'"),
        (replace(ranked(), trace=Trace(seeds=(TracedSeed("passage", "p", 1.0, ()),))), "no passage 'p'"),
        (replace(ranked(), trace=Trace(seeds=(TracedSeed("phrase", "bergen", 0.0, ()),))), "has no seeds"),
    ):
        with pytest.raises(InputError, match=message):
            mass_flow(index, ranking)
    with pytest.raises(InputError, match="the ranking is of another index"):
        mass_flow(index_of({"Other.": []}), ranked())
    for wrong in ({"steps": 0}, {"show": 0}):
        with pytest.raises(InputError, match="must be at least 1, got 0"):
            mass_flow(index, ranked(), **wrong)


def test_same_flow_same_picture(index: Index, ranked: Callable[..., Ranking], tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw_flow(mass_flow(index, ranked()), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert imread(tmp_path / "a.png").shape[:2] == (820, 1600)


def test_odd_labels_many_nodes_and_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def node(label: str, *masses: float) -> NodeFlow:
        return NodeFlow(label, masses, masses[-1])

    labels = ["東京都" * 30, "$x^2$", "", "القاهرة", "\x00", "a" * 200, "👩‍👩‍👧", "eighth", "ninth"]
    flow = MassFlow(
        "東京 " * 200,
        0.5,
        0.04,
        tuple(node(label, 0.0, 1e-9, 0.1**n) for n, label in enumerate(labels)),
        (),
        node("a", 0.0, 0.1, 0.2),
        node("b", 0.0, 0.0, 0.1),
        node("c", 1.0, 0.5, 0.5),
        node("d", 0.0, 0.4, 0.2),
    )
    draw_flow(flow, tmp_path / "it.png")
    draw_flow(replace(flow, phrases=(node("nothing", 0.0, 0.0, 0.0),)), tmp_path / "nothing.png")
    for name in ("it.png", "nothing.png"):
        assert imread(tmp_path / name).shape[:2] == (820, 1600)
    assert caplog.records == []
