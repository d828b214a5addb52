import math

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.graph import Graph
from hipporag_torch.ops import ppr as ppr_module
from hipporag_torch.ops.csr import symmetric_csr
from hipporag_torch.ops.ppr import PPROptions, personalized_pagerank


def graph_of(edges: list[tuple[int, int, float]], num_nodes: int) -> Graph:
    table = torch.tensor(edges, dtype=torch.float64).reshape(-1, 3)
    pairs = table[:, :2].long()
    return Graph(num_nodes, 0, symmetric_csr(pairs[:, 0], pairs[:, 1], table[:, 2], num_nodes=num_nodes))


def ranked(graph: Graph, reset: list[list[float]], device: torch.device, **options: object) -> Tensor:
    rows = torch.tensor(reset, device=device)
    return personalized_pagerank(graph.to(device).walk, rows, PPROptions(**options)).cpu()


class TestExactGraphs:
    def test_two_joined_nodes(self, device: torch.device):
        """x0 = ½ + ½·x1 and x1 = ½·x0, so x = (⅔, ⅓)."""
        got = ranked(graph_of([(0, 1, 5.0)], 2), [[1.0, 0.0], [0.0, 3.0]], device)
        torch.testing.assert_close(got, torch.tensor([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]), atol=1e-6, rtol=0)

    def test_mass_divides_by_weight(self, device: torch.device):
        """From the middle of 1 –(1)– 0 –(3)– 2: x0 = ⅔, and the rest goes 1 : 3."""
        got = ranked(graph_of([(0, 1, 1.0), (0, 2, 3.0)], 3), [[1.0, 0.0, 0.0]], device)
        torch.testing.assert_close(got, torch.tensor([[2 / 3, 1 / 12, 3 / 12]]), atol=1e-6, rtol=0)

    def test_a_dangling_node_sends_its_mass_back_to_the_reset(self, device: torch.device):
        """r = (½, 0, ½), node 2 alone: x2 = ¼ + ¼·x2 = ⅓, and the ⅔ that are left go 2 : 1."""
        got = ranked(graph_of([(0, 1, 1.0)], 3), [[1.0, 0.0, 1.0]], device)
        torch.testing.assert_close(got, torch.tensor([[4 / 9, 2 / 9, 3 / 9]]), atol=1e-6, rtol=0)

    def test_without_edges_the_reset_stays(self, device: torch.device):
        got = ranked(graph_of([], 3), [[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]], device)
        assert got.tolist() == [[0.25, 0, 0.75], [0, 1, 0]]

    def test_mass_stays_in_its_component(self, device: torch.device):
        got = ranked(graph_of([(0, 1, 1.0), (2, 3, 1.0)], 4), [[1.0, 0.0, 0.0, 0.0]], device)
        assert got[0, 2:].tolist() == [0, 0]
        assert got.sum().item() == pytest.approx(1, abs=1e-6)


def test_a_sweep_that_overshoots_leaves_no_negative_mass(device: torch.device):
    """A chain on which rounding takes the far end to -2e-19, were it not for the clamp."""
    exponents = (-3, -1, 1, 1, -3, 1, 2, -1, 2, 2, -3, -3, 0, 2, 3, 3, -2)
    graph = graph_of([(i, i + 1, 10.0**exponent) for i, exponent in enumerate(exponents)], 18)
    assert ranked(graph, [[1.0] + [0.0] * 17], device, damping=0.85).min().item() >= 0


def test_no_questions_give_no_rows(device: torch.device):
    graph = graph_of([(0, 1, 1.0)], 2).to(device)
    got = personalized_pagerank(graph.walk, torch.empty(0, 2, device=device), PPROptions())
    assert got.shape == (0, 2)


def test_the_reset_is_left_as_it_was(device: torch.device):
    reset = torch.tensor([[2.0, 2.0]], device=device)
    personalized_pagerank(graph_of([(0, 1, 1.0)], 2).to(device).walk, reset, PPROptions())
    assert reset.tolist() == [[2, 2]]


class TestResetErrors:
    @pytest.mark.parametrize("bad", [-0.5, -1e-30, math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("node", [0, 2])
    def test_a_weight_that_is_no_weight_is_named(self, device: torch.device, bad: float, node: int):
        reset = [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
        reset[1][node] = bad
        with pytest.raises(
            InputError,
            match=rf"question 1 has the reset weight (nan|-?inf|-\S+) at node {node}; .* not negative",
        ):
            ranked(graph_of([(0, 1, 1.0)], 3), reset, device)

    def test_infinities_that_cancel_do_not_hide(self, device: torch.device):
        with pytest.raises(InputError, match="question 0 has the reset weight"):
            ranked(graph_of([(0, 1, 1.0)], 2), [[math.inf, -math.inf]], device)

    def test_weights_whose_sum_overflows_are_an_input_error(self, device: torch.device):
        with pytest.raises(InputError, match="question 1"):
            ranked(graph_of([(0, 1, 1.0)], 2), [[1.0, 0.0], [3e38, 3e38]], device)

    def test_a_reset_of_zeros_is_named(self, device: torch.device):
        with pytest.raises(InputError, match="the reset of question 2 sums to 0; give at least one node"):
            ranked(graph_of([(0, 1, 1.0)], 2), [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], device)

    def test_a_graph_without_nodes_has_nothing_to_restart_from(self, device: torch.device):
        with pytest.raises(InputError, match="the reset of question 0 sums to 0"):
            ranked(graph_of([], 0), [[]], device)

    @pytest.mark.parametrize("width", [1, 3])
    def test_a_reset_of_another_width_is_refused(self, device: torch.device, width: int):
        with pytest.raises(InputError, match=f"the reset has {width} columns, the graph has 2 nodes"):
            ranked(graph_of([(0, 1, 1.0)], 2), [[1.0] * width], device)


class TestOptions:
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            *[("damping", value) for value in (0.0, 1.0, -0.1, 1.5, math.nan)],
            *[("tolerance", value) for value in (0.0, 1.0, -1e-7, math.nan)],
            *[("tile", value) for value in (0, -1)],
        ],
    )
    def test_a_value_out_of_range_is_refused_by_name(self, option: str, value: object):
        with pytest.raises(ConfigError, match=rf"ppr\.{option} must .*, got {value}"):
            PPROptions(**{option: value})

    def test_an_unknown_method_is_refused(self):
        """Set from behind: what checks types in these tests would refuse it first."""
        options = PPROptions()
        object.__setattr__(options, "method", "prpack")
        with pytest.raises(ConfigError, match=r"ppr\.method must be chebyshev or power, got 'prpack'"):
            options.__post_init__()

    def test_the_default_takes_12_sweeps_and_power_iteration_23(self):
        assert len(PPROptions().relaxations) == 12
        assert PPROptions(method="power").relaxations == (1.0,) * 23

    @pytest.mark.parametrize("damping", [0.05, 0.5, 0.85, 0.95])
    def test_the_sweeps_bring_every_mode_below_the_tolerance(self, damping: float):
        """A mode of P with eigenvalue λ shrinks by |Π (1 − α(1 − dλ))|, at most twice the tolerance."""
        options = PPROptions(damping=damping)
        modes = torch.linspace(-1, 1, 2001, dtype=torch.float64)
        left = torch.ones_like(modes)
        for alpha in options.relaxations:
            left *= 1 - alpha * (1 - damping * modes)
        assert left.abs().max().item() <= 2 * options.tolerance

    def test_a_looser_tolerance_takes_fewer_sweeps(self):
        sweeps = [len(PPROptions(tolerance=tolerance).relaxations) for tolerance in (0.9, 1e-2, 1e-4, 1e-7)]
        assert sweeps == sorted(set(sweeps))
        assert sweeps[0] == 1


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled:UserWarning")
@pytest.mark.parametrize("batch", [1, 7])
def test_the_operator_gives_the_numbers_of_edge_index(device: torch.device, batch: int):
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, 40, (120, 2), generator=generator)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weight = torch.rand(len(pairs), generator=generator)
    graph = Graph(40, 0, symmetric_csr(pairs[:, 0], pairs[:, 1], weight, num_nodes=40)).to(device)
    data = graph.to_pyg()
    edge_index = EdgeIndex(data.edge_index, sparse_size=(40, 40), sort_order="row", is_undirected=True)
    x = torch.rand(40, batch, generator=generator).to(device)
    expected = edge_index.validate().matmul(x, input_value=data.edge_weight)
    torch.testing.assert_close(graph.adjacency.matmul(x), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("batch", [1, 3, 40])
@pytest.mark.parametrize("seeds", [1, 40])
def test_relaxing_the_vectors_or_the_matrix_is_the_same_up_to_a_factor(
    device: torch.device, batch: int, seeds: int
):
    generator = torch.Generator().manual_seed(batch)
    pairs = torch.randint(0, 40, (120, 2), generator=generator)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weight = torch.rand(len(pairs), generator=generator)
    walk = Graph(40, 0, symmetric_csr(pairs[:, 0], pairs[:, 1], weight, num_nodes=40)).to(device).walk
    restart = torch.zeros(40, batch, device=device)
    restart[:seeds] = torch.rand(seeds, batch, generator=generator).to(device)
    damped, relaxations = walk.damped(0.5), PPROptions().relaxations
    vectors = ppr_module._relaxed_vectors(walk, damped, restart, relaxations)
    matrix = ppr_module._relaxed_matrix(walk, damped, restart, relaxations)
    factor = matrix.sum(0) / vectors.sum(0)
    assert bool((factor > 0).all())
    torch.testing.assert_close(matrix / factor, vectors, atol=1e-6, rtol=1e-5)
    assert torch.equal(damped.weight, walk.damped(0.5).weight)
