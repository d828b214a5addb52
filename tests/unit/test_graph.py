from collections.abc import Callable

import pytest
import torch
from torch_geometric.data import Data

from hipporag_torch.errors import InputError
from hipporag_torch.graph import Graph
from hipporag_torch.ops.csr import CSR, csr_from_entries, symmetric_csr


def small_graph() -> Graph:
    """Phrases 0, 1, 2 (2 is alone) and passages 3, 4: 0 –(2)– 1, 0 –(1)– 3, 1 –(1)– 3, 1 –(0.5)– 4."""
    first, second = torch.tensor([0, 0, 1, 1]), torch.tensor([1, 3, 3, 4])
    return Graph(3, 2, symmetric_csr(first, second, torch.tensor([2.0, 1.0, 1.0, 0.5]), num_nodes=5))


def graph_of(entries: list[tuple[int, int, float]], num_phrases: int = 3, num_passages: int = 2) -> Graph:
    """Entries as they are: nothing mirrors, adds or checks them."""
    row, col, weight = zip(*entries, strict=True)
    num_nodes = num_phrases + num_passages
    adjacency = csr_from_entries(
        torch.tensor(row), torch.tensor(col), torch.tensor(weight), num_rows=num_nodes, num_cols=num_nodes
    )
    return Graph(num_phrases, num_passages, adjacency)


def with_parts(**parts: object) -> Graph:
    """The small graph with parts of its matrix replaced, past every check of shapes."""
    matrix = small_graph().adjacency
    broken = CSR(matrix.row_ptr, matrix.col, matrix.weight, matrix.num_cols)
    for name, value in parts.items():
        object.__setattr__(broken, name, value)
    return Graph(3, 2, broken)


def int32(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


BOTH = [(0, 1, 1.0), (1, 0, 1.0)]
NODES = "the matrix is .* the graph has 5 nodes"
POINTERS = "row pointers do not ascend"
COLUMN = "a column lies outside the graph's 5 nodes"
ORDER = "columns must ascend within a row, without repetition"
WEIGHTS = "edge weights must be finite and positive"
SYMMETRY = "the matrix is not symmetric"
BROKEN: dict[str, tuple[Callable[[], Graph], str]] = {
    "too few rows": (lambda: with_parts(row_ptr=int32(0, 2, 5, 5, 7)), NODES),
    "too many columns": (lambda: with_parts(num_cols=6), NODES),
    "another number of nodes": (lambda: Graph(3, 1, small_graph().adjacency), "the graph has 4 nodes"),
    "pointers start late": (lambda: with_parts(row_ptr=int32(1, 2, 5, 5, 7, 8)), POINTERS),
    "pointers end early": (lambda: with_parts(row_ptr=int32(0, 2, 5, 5, 7, 7)), POINTERS),
    "pointers go back": (lambda: with_parts(row_ptr=int32(0, 2, 6, 5, 7, 8)), POINTERS),
    "too few weights": (lambda: with_parts(weight=torch.ones(7)), "8 columns have 7 weights"),
    "negative column": (lambda: with_parts(col=int32(-1, 3, 0, 3, 4, 0, 1, 1)), COLUMN),
    "column too large": (lambda: with_parts(col=int32(1, 5, 0, 3, 4, 0, 1, 1)), COLUMN),
    "columns descend": (lambda: with_parts(col=int32(3, 1, 0, 3, 4, 0, 1, 1)), ORDER),
    "parallel entries": (lambda: graph_of([*BOTH, *BOTH]), ORDER),
    "self-loop": (lambda: graph_of([*BOTH, (2, 2, 1.0)]), "a node is joined to itself"),
    "passages joined": (lambda: graph_of([(3, 4, 1.0), (4, 3, 1.0)]), "two passages are joined"),
    "zero weight": (lambda: graph_of([(0, 1, 0.0), (1, 0, 0.0)]), WEIGHTS),
    "negative weight": (lambda: graph_of([(0, 1, -1.0), (1, 0, -1.0)]), WEIGHTS),
    "NaN weight": (lambda: graph_of([(0, 1, torch.nan), (1, 0, torch.nan)]), WEIGHTS),
    "infinite weight": (lambda: graph_of([(0, 1, torch.inf), (1, 0, torch.inf)]), WEIGHTS),
    "one direction only": (lambda: graph_of([*BOTH, (1, 2, 1.0)]), SYMMETRY),
    "directions of different weight": (lambda: graph_of([(0, 1, 1.0), (1, 0, 2.0)]), SYMMETRY),
    "as many one way as the other": (lambda: graph_of([(0, 1, 1.0), (2, 0, 1.0)]), SYMMETRY),
}


class TestValidate:
    def test_a_sound_graph_is_returned(self):
        graph = small_graph()
        assert graph.validate() is graph

    @pytest.mark.parametrize(("num_phrases", "num_passages"), [(0, 0), (0, 3), (3, 0)])
    def test_a_graph_without_edges_is_sound(self, num_phrases: int, num_passages: int):
        none = torch.empty(0, dtype=torch.int64)
        adjacency = symmetric_csr(none, none, none.float(), num_nodes=num_phrases + num_passages)
        assert Graph(num_phrases, num_passages, adjacency).validate().num_edges == 0

    @pytest.mark.parametrize(("build", "message"), BROKEN.values(), ids=BROKEN.keys())
    def test_a_broken_promise_is_named(self, build: Callable[[], Graph], message: str):
        with pytest.raises(InputError, match=message):
            build().validate()


class TestReading:
    def test_counts_and_degrees(self, device: torch.device):
        graph = small_graph().to(device)
        assert (graph.num_nodes, graph.num_edges) == (5, 4)
        assert graph.degree.tolist() == [3, 3.5, 0, 2, 0.5]

    def test_degrees_do_not_lose_light_edges_beside_heavy_ones(self):
        first, second = torch.zeros(9, dtype=torch.int64), torch.arange(1, 10)
        weight = torch.tensor([2.0**24, *[0.25] * 8])
        assert Graph(10, 0, symmetric_csr(first, second, weight, num_nodes=10)).degree[0] == 2.0**24 + 2

    def test_neighbours_ascend_with_the_share_that_they_send(self, device: torch.device):
        graph = small_graph().to(device)
        col, share = graph.neighbours(1)
        assert col.tolist() == [0, 3, 4]
        assert share.tolist() == torch.tensor([2 / 3, 1 / 2, 1]).tolist()

    def test_a_lone_node_has_no_neighbours(self, device: torch.device):
        col, share = small_graph().to(device).neighbours(2)
        assert col.shape == share.shape == (0,)

    def test_neighbours_account_for_a_step_of_the_walk(self):
        graph = small_graph()
        mass = torch.tensor([[0.1, 0.2, 0.3, 0.25, 0.15]])
        x = graph.walk.gather(mass)
        stepped = graph.walk.scatter(graph.walk.share.matmul(x))[0]
        for node in range(graph.num_nodes):
            col, share = graph.neighbours(node)
            assert (mass[0, col] * share).sum().item() == pytest.approx(stepped[node].item(), abs=1e-7)


EDGE_INDEX = torch.tensor([[0, 0, 1, 1, 1, 3, 3, 4], [1, 3, 0, 3, 4, 0, 1, 1]])


def assert_same(got: Graph, expected: Graph) -> None:
    assert (got.num_phrases, got.num_passages) == (expected.num_phrases, expected.num_passages)
    assert torch.equal(got.adjacency.row_ptr, expected.adjacency.row_ptr)
    assert torch.equal(got.adjacency.col, expected.adjacency.col)
    assert torch.equal(got.adjacency.weight, expected.adjacency.weight)


def changed(**entries: object) -> Data:
    data = small_graph().to_pyg()
    for name, value in entries.items():
        data[name] = value
    return data


class TestPyG:
    def test_torch_geometric_finds_it_sound_and_undirected(self, device: torch.device):
        data = small_graph().to(device).to_pyg()
        assert data.validate(raise_on_error=True)
        assert data.is_undirected()
        assert data.is_sorted()
        assert not data.has_self_loops()
        assert data.num_nodes == 5
        assert torch.equal(data["edge_index"].cpu(), EDGE_INDEX)
        assert data["edge_weight"].tolist() == [2, 1, 2, 1, 0.5, 1, 1, 0.5]
        assert data["node_type"].tolist() == [0, 0, 0, 1, 1]

    def test_there_and_back(self, device: torch.device):
        assert_same(Graph.from_pyg(small_graph().to(device).to_pyg()).to("cpu"), small_graph())

    @pytest.mark.parametrize(("num_phrases", "num_passages"), [(0, 0), (0, 2), (2, 0)])
    def test_there_and_back_without_edges(self, num_phrases: int, num_passages: int):
        none = torch.empty(0, dtype=torch.int64)
        adjacency = symmetric_csr(none, none, none.float(), num_nodes=num_phrases + num_passages)
        graph = Graph(num_phrases, num_passages, adjacency)
        assert_same(Graph.from_pyg(graph.to_pyg()), graph)

    def test_entries_may_come_in_any_order(self):
        data = small_graph().to_pyg()
        order = torch.tensor([5, 2, 7, 0, 3, 6, 1, 4])
        data["edge_index"], data["edge_weight"] = data["edge_index"][:, order], data["edge_weight"][order]
        assert_same(Graph.from_pyg(data), small_graph())

    @pytest.mark.parametrize("name", ["edge_index", "edge_weight", "node_type"])
    def test_what_is_lacking_is_named(self, name: str):
        data = small_graph().to_pyg()
        del data[name]
        with pytest.raises(InputError, match=f"the data object lacks {name}; to_pyg"):
            Graph.from_pyg(data)

    @pytest.mark.parametrize(
        "node_type", [[0, 0, 1, 0, 1], [1, 1, 0, 0, 0], [0, 0, 0, 1, 2], [-1, 0, 0, 1, 1]]
    )
    def test_phrases_come_first(self, node_type: list[int]):
        with pytest.raises(InputError, match="node_type must be 0 for the phrases, which come first, and 1"):
            Graph.from_pyg(changed(node_type=torch.tensor(node_type)))

    @pytest.mark.parametrize(
        ("entries", "message"),
        [
            ({"edge_index": torch.tensor([[0, 1], [1, 2]]), "edge_weight": torch.ones(2)}, SYMMETRY),
            ({"edge_index": torch.tensor([[0], [0]]), "edge_weight": torch.ones(1)}, "joined to itself"),
            ({"edge_index": torch.tensor([[0, 0], [1, 1]]), "edge_weight": torch.ones(2)}, ORDER),
            ({"edge_weight": -torch.ones(8)}, WEIGHTS),
            ({"node_type": torch.tensor([0, 1, 1, 1, 1])}, "two passages are joined"),
        ],
        ids=["directed", "self-loop", "parallel", "negative", "passages joined"],
    )
    def test_a_graph_that_breaks_a_promise_is_refused(self, entries: dict[str, object], message: str):
        with pytest.raises(InputError, match=message):
            Graph.from_pyg(changed(**entries))

    @pytest.mark.parametrize(
        "entries",
        [
            {"edge_index": EDGE_INDEX + 1},
            {"edge_index": EDGE_INDEX - 1},
            {"edge_index": torch.cat([EDGE_INDEX, EDGE_INDEX[:1]])},
            {"edge_index": EDGE_INDEX.float()},
            {"edge_weight": torch.ones(7)},
            {"edge_weight": torch.ones(9)},
            {"edge_weight": torch.ones(8, 1)},
            {"node_type": torch.tensor([0, 0, 0, 1])},
            {"node_type": torch.tensor([0, 0, 0, 1, 1]).unsqueeze(1)},
        ],
        ids=[
            "node too large",
            "node negative",
            "three rows",
            "fractions",
            "too few weights",
            "too many weights",
            "weights in two dimensions",
            "fewer types than nodes",
            "types in two dimensions",
        ],
    )
    def test_tensors_of_the_wrong_shape_or_range_are_refused(self, entries: dict[str, object]):
        with pytest.raises(InputError):
            Graph.from_pyg(changed(**entries))
