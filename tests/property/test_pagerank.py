from dataclasses import dataclass

import igraph
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hipporag_torch.graph import Graph
from hipporag_torch.ops.csr import symmetric_csr
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank

SETTINGS = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
DAMPING = st.sampled_from([0.05, 0.3, 0.5, 0.7, 0.85, 0.95])
# float32 rounds more than it solves where a walk is long.
CLOSE = {"atol": 2e-6, "rtol": 0.0}
CLOSE_LONG = {"atol": 1e-5, "rtol": 0.0}


@dataclass(frozen=True)
class Case:
    """A graph, often in several parts and with nodes that have no edge, and resets over its nodes."""

    graph: Graph
    reset: Tensor

    def permuted(self, order: Tensor) -> "Case":
        """The same case when node `order[i]` is called i."""
        place = torch.argsort(order)
        edges = self.graph.adjacency
        row, col = place[edges.row], place[edges.col.long()]
        once = row < col
        adjacency = symmetric_csr(row[once], col[once], edges.weight[once], num_nodes=self.graph.num_nodes)
        return Case(Graph(self.graph.num_phrases, self.graph.num_passages, adjacency), self.reset[:, order])


@st.composite
def cases(draw: st.DrawFn, max_nodes: int = 24, max_questions: int = 5) -> Case:
    num_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, num_nodes - 1)
    weight = st.sampled_from([0.1, 0.5, 0.8, 1.0, 2.0, 3.5, 10.0])
    edges = draw(st.lists(st.tuples(node, node, weight), max_size=3 * num_nodes))
    edges = [edge for edge in edges if edge[0] != edge[1]]
    table = torch.tensor(edges, dtype=torch.float64).reshape(-1, 3)
    pairs = table[:, :2].long()
    adjacency = symmetric_csr(pairs[:, 0], pairs[:, 1], table[:, 2], num_nodes=num_nodes)
    num_questions = draw(st.integers(1, max_questions))
    entry = st.one_of(st.just(0.0), st.sampled_from([0.05, 0.5, 1.0, 30.0]))
    reset = torch.tensor(
        [draw(st.lists(entry, min_size=num_nodes, max_size=num_nodes)) for _ in range(num_questions)]
    )
    for row in reset:
        row[draw(node)] += 1.0
    return Case(Graph(num_nodes, 0, adjacency), reset)


def solve(case: Case, device: torch.device | str = "cpu", **options: object) -> Tensor:
    graph = case.graph.to(device)
    return personalized_pagerank(graph.walk, case.reset.to(device), PPROptions(**options)).cpu()


def solved_densely(case: Case, damping: float) -> Tensor:
    """(I − dP)·x = (1−d)·r in float64, where a node without edges sends its mass to r."""
    edges, num_nodes = case.graph.adjacency, case.graph.num_nodes
    adjacency = np.zeros((num_nodes, num_nodes))
    adjacency[edges.row.numpy(), edges.col.numpy()] = edges.weight.double().numpy()
    degree = adjacency.sum(0)
    reset = case.reset.double().numpy()
    rows = []
    for r in reset / reset.sum(1, keepdims=True):
        P = np.where(degree > 0, adjacency / np.where(degree > 0, degree, 1), r[:, None])
        rows.append(np.linalg.solve(np.eye(num_nodes) - damping * P, (1 - damping) * r))
    return torch.tensor(np.array(rows)).float()


def solved_by_igraph(case: Case, damping: float) -> Tensor:
    edges = case.graph.adjacency
    once = edges.row < edges.col
    graph = igraph.Graph(
        n=case.graph.num_nodes,
        edges=torch.stack([edges.row[once], edges.col[once].long()], 1).tolist(),
        edge_attrs={"weight": edges.weight[once].double().tolist()},
    )
    return torch.tensor(
        [
            graph.personalized_pagerank(
                damping=damping, reset=row, weights="weight", directed=False, implementation="prpack"
            )
            for row in case.reset.double().tolist()
        ]
    )


@SETTINGS
@given(case=cases(), damping=DAMPING, method=st.sampled_from(["chebyshev", "power"]))
def test_it_is_the_solution_of_the_linear_system(
    device: torch.device, case: Case, damping: float, method: str
) -> None:
    got = solve(case, device, damping=damping, method=method)
    close = CLOSE if damping <= 0.85 else CLOSE_LONG
    torch.testing.assert_close(got, solved_densely(case, damping), **close)


@SETTINGS
@given(case=cases(), damping=DAMPING)
def test_it_is_prpack(case: Case, damping: float) -> None:
    close = CLOSE if damping <= 0.85 else CLOSE_LONG
    torch.testing.assert_close(solve(case, damping=damping), solved_by_igraph(case, damping), **close)


@SETTINGS
@given(case=cases(), damping=DAMPING)
def test_it_is_a_distribution(device: torch.device, case: Case, damping: float) -> None:
    mass = solve(case, device, damping=damping)
    assert bool((mass >= 0).all())
    torch.testing.assert_close(mass.sum(1), torch.ones(len(mass)), atol=2e-6, rtol=0)
    # What restarts at a node stays there at least in part.
    assert bool((mass[case.reset > 0] > 0).all())


@SETTINGS
@given(case=cases(), data=st.data())
def test_the_numbering_of_nodes_does_not_count(case: Case, data: st.DataObject) -> None:
    order = torch.tensor(data.draw(st.permutations(range(case.graph.num_nodes))))
    torch.testing.assert_close(solve(case.permuted(order)), solve(case)[:, order], atol=1e-6, rtol=0)


@SETTINGS
@given(case=cases(max_questions=7))
def test_a_batch_is_its_questions_one_by_one(device: torch.device, case: Case) -> None:
    alone = [solve(Case(case.graph, case.reset[i : i + 1]), device) for i in range(len(case.reset))]
    torch.testing.assert_close(solve(case, device), torch.cat(alone), atol=1e-6, rtol=0)


@SETTINGS
@given(case=cases(max_questions=7), tile=st.sampled_from([1, 2, 3, 32]))
def test_the_tile_does_not_count(device: torch.device, case: Case, tile: int) -> None:
    torch.testing.assert_close(solve(case, device, tile=tile), solve(case, device), atol=1e-6, rtol=0)


@SETTINGS
@given(case=cases(), damping=DAMPING)
def test_chebyshev_and_power_iteration_agree(case: Case, damping: float) -> None:
    chebyshev = solve(case, damping=damping, method="chebyshev")
    close = CLOSE if damping <= 0.85 else CLOSE_LONG
    torch.testing.assert_close(chebyshev, solve(case, damping=damping, method="power"), **close)


@SETTINGS
@given(case=cases(), factors=st.lists(st.sampled_from([1e-6, 0.3, 1.0, 7.0, 1e9]), min_size=5, max_size=5))
def test_only_the_ratios_of_a_reset_count(case: Case, factors: list[float]) -> None:
    scaled = Case(case.graph, case.reset * torch.tensor(factors[: len(case.reset)]).unsqueeze(1))
    torch.testing.assert_close(solve(scaled), solve(case), atol=1e-6, rtol=0)


@SETTINGS
@given(case=cases(), factor=st.sampled_from([0.01, 3.0, 1e4]))
def test_only_the_ratios_of_the_edge_weights_count(case: Case, factor: float) -> None:
    edges = case.graph.adjacency
    once = edges.row < edges.col
    adjacency = symmetric_csr(
        edges.row[once], edges.col[once].long(), edges.weight[once] * factor, num_nodes=case.graph.num_nodes
    )
    scaled = Case(Graph(case.graph.num_nodes, 0, adjacency), case.reset)
    torch.testing.assert_close(solve(scaled), solve(case), atol=1e-6, rtol=0)


@SETTINGS
@given(case=cases())
def test_a_walk_is_reversible(case: Case) -> None:
    """In an undirected graph deg(i)·x_j(i-reset) = deg(j)·x_i(j-reset), between nodes with edges."""
    num_nodes, degree = case.graph.num_nodes, case.graph.degree
    mass = solve(Case(case.graph, torch.eye(num_nodes)))
    torch.testing.assert_close(
        degree.unsqueeze(1) * mass, (degree.unsqueeze(1) * mass).T, atol=2e-4, rtol=1e-4
    )


@pytest.mark.parametrize("method", ["chebyshev", "power"])
def test_a_hub_with_many_leaves_is_solved_as_well(device: torch.device, method: str) -> None:
    """The reset stands on a leaf of 1/20,000 of the hub's degree, where a bound by degree is worst."""
    num_leaves = 200
    hub = torch.zeros(num_leaves, dtype=torch.int64)
    weight = torch.full((num_leaves,), 10.0)
    weight[0] = 0.1
    adjacency = symmetric_csr(hub, torch.arange(1, num_leaves + 1), weight, num_nodes=num_leaves + 1)
    reset = torch.zeros(2, num_leaves + 1)
    reset[0, 1] = reset[1, 0] = 1
    case = Case(Graph(num_leaves + 1, 0, adjacency), reset)
    torch.testing.assert_close(
        solve(case, device, method=method), solved_densely(case, 0.5), atol=5e-6, rtol=0
    )
