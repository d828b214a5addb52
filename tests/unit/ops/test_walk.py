import pytest
import torch

from hipporag_torch.graph import Graph
from hipporag_torch.ops.csr import symmetric_csr
from hipporag_torch.ops.walk import Walk

# 0 – 1 (1), 1 – 2 (3), 1 – 4 (4); node 3 is alone.
EDGES = ((0, 1, 1.0), (1, 2, 3.0), (1, 4, 4.0))
SHARES = torch.tensor(
    [
        [0, 1 / 8, 0, 0, 0],
        [1, 0, 1, 0, 1],
        [0, 3 / 8, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 4 / 8, 0, 0, 0],
    ]
)


def small_walk(device: torch.device) -> Walk:
    first, second, weight = zip(*EDGES, strict=True)
    adjacency = symmetric_csr(torch.tensor(first), torch.tensor(second), torch.tensor(weight), num_nodes=5)
    return Graph(5, 0, adjacency).to(device).walk


def test_the_node_with_most_edges_comes_first_and_ties_keep_their_order(device: torch.device):
    walk = small_walk(device)
    assert walk.order.tolist() == [1, 0, 2, 4, 3]
    assert walk.place[walk.order].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("batch", [0, 1, 4])
def test_gather_and_scatter_are_inverse(device: torch.device, batch: int):
    walk = small_walk(device)
    rows = torch.arange(5.0 * batch, device=device).reshape(batch, 5)
    block = walk.gather(rows)
    assert block.shape == (5, batch)
    assert torch.equal(block, rows[:, [1, 0, 2, 4, 3]].T)
    assert torch.equal(walk.scatter(block), rows)


def test_a_column_holds_how_a_node_s_mass_is_shared(device: torch.device):
    walk = small_walk(device)
    unit = walk.gather(torch.eye(5, device=device))
    stepped = walk.scatter(walk.share.matmul(unit))
    assert torch.equal(stepped.T.cpu(), SHARES)


def test_the_diagonal_is_where_it_is_said_to_be(device: torch.device):
    walk = small_walk(device)
    assert walk.diagonal.shape == (5,)
    assert torch.equal(walk.share.row[walk.diagonal], walk.share.col[walk.diagonal].long())
    assert bool((walk.share.weight[walk.diagonal] == 0).all())


def test_a_damped_walk_is_the_caller_s_to_change(device: torch.device):
    walk = small_walk(device)
    damped = walk.damped(0.5)
    assert torch.equal(damped.weight, walk.share.weight / 2)
    damped.weight.zero_()
    assert walk.share.weight.sum() > 0


def test_a_graph_without_nodes_has_a_walk(device: torch.device):
    none = torch.empty(0, dtype=torch.int64)
    walk = Graph(0, 0, symmetric_csr(none, none, none.float(), num_nodes=0)).to(device).walk
    assert walk.num_nodes == 0
    assert walk.scatter(walk.gather(torch.empty(3, 0, device=device))).shape == (3, 0)
