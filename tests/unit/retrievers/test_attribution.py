from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.index import Index
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank
from hipporag_torch.retrievers.attribution import power_mean, source_masses
from hipporag_torch.retrievers.seeding import SeedSource, reset_of

# p2 and p3 have no edges; p3 is another's whole seed below.
FACTS = {"p0": [("a", "r", "b"), ("b", "r", "c")], "p1": [("c", "r", "d")], "p2": [], "p3": []}


@pytest.fixture(scope="module")
def index(index_of: Callable[..., Index]) -> Index:
    return index_of(FACTS)


@given(data=st.data(), damping=st.sampled_from([0.2, 0.5, 0.9]))
def test_sources_add_up_to_the_joint_walk(index: Index, data: st.DataObject, damping: float) -> None:
    """Also where one seeds nodes without edges alone, or nothing."""
    graph = index.graph
    size = graph.num_nodes
    weights = st.lists(st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.0]), min_size=size, max_size=size)
    nodes = torch.arange(size).expand(2, size)
    facts, entities = (
        SeedSource(name, nodes, torch.tensor([data.draw(weights), data.draw(weights)]))
        for name in ("facts", "entities")
    )
    lone = torch.zeros(2, size)
    lone[:, -1] = 0.5
    sources = (facts, entities, SeedSource("passages", nodes, lone))
    options = PPROptions(damping=damping)
    joint = personalized_pagerank(graph.walk, reset_of(sources, num_nodes=size), options)
    found = source_masses(graph, sources, options)
    expected = joint[:, graph.num_phrases :]
    torch.testing.assert_close(found.sum(0), expected, atol=1e-6, rtol=0)
    assert (found >= 0).all()
    empty = torch.stack([source.weight.sum(1) == 0 for source in sources])
    assert (found[empty] == 0).all()


def test_a_source_of_nodes_without_edges_keeps_only_what_does_not_flow_on(index: Index) -> None:
    """By hand, d = ½: a walk from p3 keeps ½ of its mass and loses the rest, one from a keeps all."""
    graph = index.graph
    nodes = torch.tensor([[graph.num_phrases + [p.text for p in index.passages].index("p3")]])
    sources = (
        SeedSource("facts", torch.tensor([[index.phrases.index("a")]]), torch.tensor([[0.5]])),
        SeedSource("passages", nodes, torch.tensor([[0.5]])),
    )
    place = int(nodes) - graph.num_phrases
    found = source_masses(graph, sources, PPROptions())
    assert found[:, 0, place].tolist() == pytest.approx([0, 0.5 * 0.5 / (0.5 + 0.5 * 0.5)], abs=1e-6)


def test_a_power_mean_favours_what_several_sources_reach():
    """2·((√0.5 + √0.1) / 2)² and 2·((√0.3 + √0.3) / 2)²; their sums are equal."""
    masses = torch.tensor([[[0.5, 0.3]], [[0.1, 0.3]]])
    assert power_mean(masses, 0.5).tolist() == [pytest.approx([(0.6 + 2 * 0.05**0.5) / 2, 0.6])]
    torch.testing.assert_close(power_mean(masses, 1.0), masses.sum(0))
