import torch

from hipporag_torch.ops.scores import minmax


def test_each_row_is_stretched_to_0_and_1(device: torch.device):
    scores = torch.tensor([[1.0, 3.0, 2.0], [-4.0, 0.0, 4.0]], device=device)
    assert minmax(scores).tolist() == [[0, 1, 0.5], [0, 0.5, 1]]


def test_a_row_of_one_value_becomes_ones(device: torch.device):
    scores = torch.tensor([[0.3, 0.3], [0.0, 0.0], [-2.0, -2.0], [0.0, 1.0]], device=device)
    assert minmax(scores).tolist() == [[1, 1], [1, 1], [1, 1], [0, 1]]
    assert minmax(torch.tensor([[7.0]], device=device)).tolist() == [[1]]


def test_the_extremes_of_a_longer_row_may_be_given(device: torch.device):
    scores = torch.tensor([[3.0, 2.0], [1.0, 1.0]], device=device)
    lowest, highest = torch.tensor([-1.0, 1.0], device=device), torch.tensor([7.0, 1.0], device=device)
    assert minmax(scores, lowest, highest).tolist() == [[0.5, 0.375], [1, 1]]


def test_a_given_extreme_replaces_one_side_only(device: torch.device):
    scores = torch.tensor([[2.0, 4.0]], device=device)
    assert minmax(scores, lowest=torch.zeros(1, device=device)).tolist() == [[0.5, 1]]
    assert minmax(scores, highest=torch.tensor([10.0], device=device)).tolist() == [[0, 0.25]]


def test_rows_or_items_may_be_missing(device: torch.device):
    assert minmax(torch.empty(0, 3, device=device)).shape == (0, 3)
    empty = torch.empty(2, 0, device=device)
    extremes = torch.full((2,), torch.inf, device=device)
    assert minmax(empty).shape == (2, 0)
    assert minmax(empty, extremes, -extremes).shape == (2, 0)
