import math

import pytest
import torch

from hipporag_torch.ops.topk import dot_scores, stable_topk, table_topk


class TestStableTopk:
    def test_ties_come_in_the_order_of_their_index(self, device: torch.device):
        scores = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0], [0.0, -0.0, 0.0, -0.0, 0.0]], device=device)
        top = stable_topk(scores, 4)
        assert top.idx.tolist() == [[1, 3, 0, 2], [0, 1, 2, 3]]
        assert top.scores.tolist() == [[2, 2, 1, 1], [0, 0, 0, 0]]

    def test_every_kind_of_number_has_its_place(self, device: torch.device):
        tiny = 1e-45
        numbers = [-tiny, math.inf, -1.0, 0.0, tiny, -math.inf, 3e38, -3e38]
        top = stable_topk(torch.tensor([numbers], device=device), len(numbers))
        assert top.idx.tolist() == [[1, 6, 4, 3, 0, 2, 7, 5]]

    def test_a_score_keeps_its_bits(self, device: torch.device):
        top = stable_topk(torch.tensor([[-0.0, -1e-45]], device=device), 2)
        assert torch.equal(
            top.scores.cpu().view(torch.int32), torch.tensor([[-0.0, -1e-45]]).view(torch.int32)
        )

    @pytest.mark.parametrize(
        ("shape", "k", "found"), [((2, 3), 0, 0), ((2, 3), 9, 3), ((2, 0), 5, 0), ((0, 3), 2, 2)]
    )
    def test_k_is_cut_to_the_items(self, device: torch.device, shape: tuple[int, int], k: int, found: int):
        top = stable_topk(torch.zeros(shape, device=device), k)
        assert top.scores.shape == top.idx.shape == (shape[0], found)

    def test_more_items_than_one_block_of_torch_s_selection(self, device: torch.device):
        scores = (torch.arange(100_000, device=device) % 5).float().unsqueeze(0)
        assert stable_topk(scores, 20_003).idx[0].tolist() == [*range(4, 100_000, 5), 3, 8, 13]

    def test_a_view_that_is_not_contiguous(self, device: torch.device):
        scores = torch.tensor([[1.0, 5.0], [3.0, 5.0], [2.0, 4.0]], device=device).T
        assert stable_topk(scores, 2).idx.tolist() == [[1, 2], [0, 1]]


class TestTableTopk:
    def test_the_best_rows_of_each_query_and_its_extremes(self, device: torch.device):
        table = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [1.0, 0.0]], device=device)
        queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]], device=device)
        top = table_topk(table, queries, 3, block_rows=3)
        assert top.idx.tolist() == [[0, 3, 1], [1, 0, 2]]
        assert top.scores.tolist() == [[1, 1, 0], [2, 0, 0]]
        assert top.lowest.tolist() == [-3, 0]
        assert top.highest.tolist() == [1, 2]

    def test_an_empty_table_has_no_best_row(self, device: torch.device):
        top = table_topk(torch.empty(0, 4, device=device), torch.ones(2, 4, device=device), 5)
        assert top.scores.shape == top.idx.shape == (2, 0)
        assert top.lowest.tolist() == [math.inf] * 2
        assert top.highest.tolist() == [-math.inf] * 2

    def test_no_query_or_no_k_gives_nothing(self, device: torch.device):
        table = torch.ones(3, 4, device=device)
        assert table_topk(table, torch.empty(0, 4, device=device), 2).idx.shape == (0, 2)
        nothing = table_topk(table, torch.ones(1, 4, device=device), 0)
        assert nothing.idx.shape == (1, 0)
        assert nothing.highest.tolist() == [4]

    def test_vectors_without_numbers_are_all_alike(self, device: torch.device):
        top = table_topk(torch.empty(3, 0, device=device), torch.empty(1, 0, device=device), 2)
        assert top.idx.tolist() == [[0, 1]]
        assert top.scores.tolist() == [[0, 0]]


def test_dot_scores_have_one_row_per_query(device: torch.device):
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device=device)
    scores = dot_scores(table, torch.tensor([[1.0, 0.0], [1.0, -1.0]], device=device))
    assert scores.tolist() == [[1, 3, 5], [-1, -1, -1]]
    assert scores.is_contiguous()
