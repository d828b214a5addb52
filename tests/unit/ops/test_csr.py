import pytest
import torch
from torch import Tensor

from hipporag_torch.errors import InputError
from hipporag_torch.ops import csr as csr_module
from hipporag_torch.ops.csr import CSR, csr_from_entries, symmetric_csr


def dense(matrix: CSR) -> Tensor:
    out = torch.zeros(matrix.num_rows, matrix.num_cols, device=matrix.weight.device)
    out[matrix.row, matrix.col.long()] = matrix.weight
    return out


def matrix_of(rows: list[list[float]], device: torch.device) -> CSR:
    wanted = torch.tensor(rows, device=device)
    row, col = wanted.nonzero(as_tuple=True)
    return csr_from_entries(row, col, wanted[row, col], num_rows=wanted.shape[0], num_cols=wanted.shape[1])


def symmetric(pairs: list[tuple[int, int, float]], num_nodes: int) -> CSR:
    first, second, weight = zip(*pairs, strict=True)
    return symmetric_csr(
        torch.tensor(first),
        torch.tensor(second),
        torch.tensor(weight, dtype=torch.float64),
        num_nodes=num_nodes,
    )


class TestMatmul:
    ROWS = ((0.0, 2.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.0), (4.0, 0.0, -8.0, 0.5))

    @pytest.mark.parametrize("batch", [1, 2, 32])
    def test_it_is_the_dense_product(self, device: torch.device, batch: int):
        matrix = matrix_of([list(row) for row in self.ROWS], device)
        x = torch.arange(4.0 * batch, device=device).reshape(4, batch)
        plus = torch.arange(3.0 * batch, device=device).reshape(3, batch) - 7
        expected = torch.tensor(self.ROWS, device=device) @ x
        assert torch.equal(matrix.matmul(x), expected)
        assert torch.equal(matrix.matmul_add(x, plus), expected + plus)

    @pytest.mark.parametrize("batch", [0, 1, 3])
    def test_a_matrix_without_entries_gives_nothing(self, device: torch.device, batch: int):
        matrix = matrix_of([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], device)
        x, plus = torch.ones(2, batch, device=device), torch.ones(3, batch, device=device)
        assert torch.equal(matrix.matmul(x), torch.zeros(3, batch, device=device))
        assert torch.equal(matrix.matmul_add(x, plus), plus)

    @pytest.mark.parametrize("batch", [1, 3])
    def test_it_leaves_what_it_is_given(self, device: torch.device, batch: int):
        matrix = matrix_of([list(row) for row in self.ROWS], device)
        x, plus = torch.ones(4, batch, device=device), torch.ones(3, batch, device=device)
        matrix.matmul_add(x, plus)
        assert bool((x == 1).all())
        assert bool((plus == 1).all())

    def test_one_column_of_a_batch_is_that_column_alone(self, device: torch.device):
        generator = torch.Generator().manual_seed(0)
        wanted = torch.rand(30, 30, generator=generator) * (torch.rand(30, 30, generator=generator) < 0.3)
        matrix = matrix_of(wanted.tolist(), device)
        x = torch.rand(30, 8, generator=generator).to(device)
        batch = matrix.matmul_add(x, x)
        alone = torch.cat([matrix.matmul_add(column, column) for column in x.split(1, dim=1)], 1)
        torch.testing.assert_close(batch, alone, atol=1e-6, rtol=0)


class TestCsrFromEntries:
    def test_the_order_of_entries_does_not_count(self, device: torch.device):
        row, col = torch.tensor([2, 0, 2, 1], device=device), torch.tensor([1, 3, 0, 2], device=device)
        weight = torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)
        matrix = csr_from_entries(row, col, weight, num_rows=4, num_cols=4)
        assert matrix.row_ptr.tolist() == [0, 1, 2, 4, 4]
        assert matrix.col.tolist() == [3, 2, 0, 1]
        assert matrix.weight.tolist() == [2, 4, 3, 1]
        assert matrix.row.tolist() == [0, 1, 2, 2]

    def test_without_entries_or_rows(self, device: torch.device):
        none = torch.empty(0, dtype=torch.int64, device=device)
        for num_rows in (0, 3):
            matrix = csr_from_entries(none, none, none.float(), num_rows=num_rows, num_cols=5)
            assert (matrix.num_rows, matrix.num_cols, matrix.num_entries) == (num_rows, 5, 0)
            assert matrix.row_ptr.tolist() == [0] * (num_rows + 1)


class TestSymmetricCsr:
    def test_parallel_pairs_of_either_direction_are_added(self):
        matrix = symmetric([(0, 2, 1.0), (2, 0, 0.5), (0, 2, 0.25), (1, 2, 3.0)], 4)
        assert dense(matrix).tolist() == [[0, 0, 1.75, 0], [0, 0, 3, 0], [1.75, 3, 0, 0], [0, 0, 0, 0]]
        assert matrix.num_entries == 4

    def test_sums_do_not_round_to_float32_on_the_way(self):
        matrix = symmetric([(0, 1, 2.0**24), *[(0, 1, 0.25)] * 8], 2)
        assert matrix.weight.tolist() == [2.0**24 + 2] * 2

    def test_an_order_that_would_round_away_a_part_of_float64_gives_the_same_float32(self):
        pairs = [(0, 1, 0.1), (1, 0, 0.2), (0, 1, 0.3), (1, 2, 0.7)]
        there, back = symmetric(pairs, 3), symmetric(pairs[::-1], 3)
        assert torch.equal(there.weight, back.weight)
        assert torch.equal(there.col, back.col)

    def test_more_edges_than_int32_can_count_are_an_input_error(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(csr_module, "_INT32_MAX", 3)
        with pytest.raises(
            InputError, match=r"2 undirected edges, more than the 1 .* raise graph\.synonym_threshold"
        ):
            symmetric([(0, 1, 1.0), (1, 2, 1.0)], 3)


def test_to_moves_every_part(device: torch.device):
    matrix = symmetric([(0, 1, 2.0)], 2).to(device)
    assert {part.device.type for part in (matrix.row_ptr, matrix.col, matrix.weight)} == {device.type}
    assert dense(matrix).tolist() == [[0, 2], [2, 0]]
